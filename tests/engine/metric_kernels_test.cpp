// SPDX-License-Identifier: GPL-3.0-or-later
//
// Every instruction set gives the same bits, and the right ones.
#include "core/engine/metric_kernels.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace dblame::kernels
{
namespace
{

std::vector<const KernelSet *> available()
{
    std::vector<const KernelSet *> sets;
    for (const InstructionSet set : {InstructionSet::Baseline, InstructionSet::Avx2, InstructionSet::Avx512})
        if (const KernelSet *found = kernelsFor(set))
            sets.push_back(found);
    return sets;
}

struct Data {
    std::vector<float> r, c;
};

// Magnitudes over the whole range of float32, so that a fused product would show in the last bits.
Data mixed(std::size_t n, unsigned seed)
{
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> power(-20.0F, 20.0F);
    Data data;
    for (std::size_t i = 0; i < n; ++i) {
        const float x = normal(random) * std::exp2(power(random));
        data.r.push_back(x);
        data.c.push_back(i % 3 == 0 ? x : x * (1 + 0.01F * normal(random)) + 1e-4F * normal(random));
    }
    return data;
}

std::uint64_t bits(double v)
{
    return std::bit_cast<std::uint64_t>(v);
}

void expectSame(const PairSums &a, const PairSums &b, const char *set, std::size_t n)
{
    const auto fields = [](const PairSums &s) {
        return std::vector<std::uint64_t>{bits(s.rr),   bits(s.cc),   bits(s.ee),     bits(s.rc),
                                          bits(s.ae),   bits(s.e),    bits(s.maxAbs), bits(s.rMin),
                                          bits(s.rMax), bits(s.cMin), bits(s.cMax)};
    };
    EXPECT_EQ(fields(a), fields(b)) << set << " at " << n;
    EXPECT_EQ(a.nan, b.nan);
    EXPECT_EQ(a.inf, b.inf);
    EXPECT_EQ(a.count, b.count);
}

TEST(MetricKernels, EverySetGivesTheSameBits)
{
    const auto sets = available();
    for (const std::size_t n : {0U, 1U, 7U, 15U, 16U, 17U, 31U, 33U, 100U, 1000U, 4096U, 5003U}) {
        const Data d = mixed(n + 1, static_cast<unsigned>(n));
        // One element further: no alignment is assumed.
        const float *r = d.r.data() + 1;
        const float *c = d.c.data() + 1;
        const std::vector<double> rd(r, r + n);
        std::vector<double> cd(c, c + n);
        for (double &v : cd)
            v += 1e-17 * v + 1e-12;
        const auto count = static_cast<std::int64_t>(n);
        const auto columns = [&](const KernelSet &set) {
            std::vector<double> sums(3 * 37 + 3 * 37, 0.5);
            if (n >= 37) {
                set.columnsF32(r, c, count / 37, 37, sums.data());
                set.columnsF64(rd.data(), cd.data(), count / 37, 37, sums.data() + 3 * 37);
            }
            return sums;
        };
        const KernelSet &base = *sets.front();
        for (const KernelSet *set : sets) {
            expectSame(set->pairF32(r, c, count), base.pairF32(r, c, count), set->name, n);
            expectSame(set->pairF64(rd.data(), cd.data(), count), base.pairF64(rd.data(), cd.data(), count), set->name,
                       n);
            const EnergySums a = set->energyF32(r, c, count);
            const EnergySums b = base.energyF32(r, c, count);
            EXPECT_EQ(bits(a.rr), bits(b.rr)) << set->name;
            EXPECT_EQ(bits(a.cc), bits(b.cc)) << set->name;
            EXPECT_EQ(bits(a.ee), bits(b.ee)) << set->name;
            EXPECT_EQ(bits(set->energyF64(rd.data(), cd.data(), count).ee),
                      bits(base.energyF64(rd.data(), cd.data(), count).ee))
                << set->name;
            EXPECT_EQ(columns(*set), columns(base)) << set->name;
        }
    }
}

TEST(MetricKernels, QuantizersGiveTheSameBitsInEverySet)
{
    const auto sets = available();
    std::vector<float> x = mixed(4001, 5).r;
    for (int k = -300; k < 300; ++k)
        x.push_back((static_cast<float>(k) + 0.5F) * 0.1F);
    for (const float v : {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 8388607.5F, -8388609.0F, 1e-45F})
        x.push_back(v);
    const QuantParams params{0.1F, 10.0F, 3.0F, -128.0F, 127.0F, 0.0F};
    const auto run = [&](auto kernel) {
        std::vector<float> y(x.size());
        kernel(x.data(), y.data(), static_cast<std::int64_t>(x.size()), params);
        return y;
    };
    const auto qdq = run(sets.front()->quantDequant);
    const auto fake = run(sets.front()->fakeQuant);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const float q = std::isnan(x[i]) ? 0.0F : std::clamp(std::rint(x[i] * 10.0F) + 3.0F, -128.0F, 127.0F);
        ASSERT_EQ(qdq[i], (q - 3.0F) * 0.1F) << x[i];
    }
    for (const KernelSet *set : sets) {
        EXPECT_EQ(std::memcmp(run(set->quantDequant).data(), qdq.data(), 4 * x.size()), 0) << set->name;
        EXPECT_EQ(std::memcmp(run(set->fakeQuant).data(), fake.data(), 4 * x.size()), 0) << set->name;
    }
}

TEST(MetricKernels, BinsAndRangesAgree)
{
    const auto sets = available();
    Data d = mixed(1003, 6);
    d.r[5] = NAN;
    d.r[77] = INFINITY;
    for (const KernelSet *set : sets) {
        std::vector<std::uint16_t> r(1003), c(1003), e(1003);
        set->bins(d.r.data(), d.c.data(), 1003, r.data(), c.data(), e.data());
        const RangeUse use = set->range(d.r.data(), 1003, -1.0F, 2.0F);
        RangeUse expected;
        for (std::size_t i = 0; i < 1003; ++i) {
            ASSERT_EQ(r[i], std::bit_cast<std::uint32_t>(d.r[i]) >> 19U) << set->name;
            ASSERT_EQ(c[i], std::bit_cast<std::uint32_t>(d.c[i]) >> 19U) << set->name;
            ASSERT_EQ(e[i], std::bit_cast<std::uint32_t>(d.c[i] - d.r[i]) >> 19U) << set->name;
            expected.outside += d.r[i] < -1.0F || d.r[i] > 2.0F ? 1 : 0;
            if (!std::isnan(d.r[i])) {
                expected.min = std::min(expected.min, d.r[i]);
                expected.max = std::max(expected.max, d.r[i]);
            }
        }
        EXPECT_EQ(use.outside, expected.outside) << set->name;
        EXPECT_EQ(use.min, expected.min) << set->name;
        EXPECT_EQ(use.max, expected.max) << set->name;
    }
}

TEST(MetricKernels, SumsAreRightToSixteenDigits)
{
    const Data d = mixed(4096, 9);
    long double rr = 0, cc = 0, ee = 0, rc = 0, ae = 0, e = 0;
    double maxAbs = 0;
    for (std::size_t i = 0; i < d.r.size(); ++i) {
        const long double a = d.r[i];
        const long double b = d.c[i];
        rr += a * a;
        cc += b * b;
        ee += (b - a) * (b - a);
        rc += a * b;
        ae += std::abs(b - a);
        e += b - a;
        maxAbs = std::max(maxAbs, static_cast<double>(std::abs(b - a)));
    }
    const PairSums s = kernels().pairF32(d.r.data(), d.c.data(), 4096);
    const auto near = [](double got, long double want) { EXPECT_NEAR(got / static_cast<double>(want), 1.0, 1e-14); };
    near(s.rr, rr);
    near(s.cc, cc);
    near(s.ee, ee);
    near(s.rc, rc);
    near(s.ae, ae);
    EXPECT_NEAR(s.e, static_cast<double>(e), 1e-14 * static_cast<double>(ae));
    EXPECT_EQ(s.maxAbs, maxAbs);
    EXPECT_EQ(s.rMin, static_cast<double>(*std::min_element(d.r.begin(), d.r.end())));
    EXPECT_EQ(s.cMax, static_cast<double>(*std::max_element(d.c.begin(), d.c.end())));
}

TEST(MetricKernels, NonFiniteElementsFollowTheirRules)
{
    std::vector<float> r(40, 2.0F);
    std::vector<float> c(40, 1.0F);
    r[3] = c[3] = INFINITY; // the same on both sides: neither error nor signal
    for (const KernelSet *set : available()) {
        const PairSums s = set->pairF32(r.data(), c.data(), 40);
        EXPECT_EQ(s.inf, 1);
        EXPECT_EQ(s.nan, 0);
        EXPECT_EQ(s.rr, 39 * 4.0);
        EXPECT_EQ(s.cc, 39.0);
        EXPECT_EQ(s.ee, 39.0);
        EXPECT_EQ(s.rMax, 2.0);
        EXPECT_EQ(s.maxAbs, 1.0);
    }
    c[20] = -INFINITY; // on one side only
    for (const KernelSet *set : available()) {
        const PairSums s = set->pairF32(r.data(), c.data(), 40);
        EXPECT_EQ(s.inf, 2);
        EXPECT_EQ(s.rr, 39 * 4.0);
        EXPECT_EQ(s.cc, 38.0);
        EXPECT_EQ(s.ee, INFINITY);
        EXPECT_EQ(s.maxAbs, INFINITY);
        EXPECT_EQ(s.cMin, 1.0);
        const EnergySums energy = set->energyF32(r.data(), c.data(), 40);
        EXPECT_EQ(energy.rr, s.rr);
        EXPECT_EQ(energy.ee, INFINITY);
    }
    r[39] = NAN;
    for (const KernelSet *set : available()) {
        const PairSums s = set->pairF32(r.data(), c.data(), 40);
        EXPECT_EQ(s.nan, 1);
        EXPECT_TRUE(std::isnan(s.ee));
        EXPECT_TRUE(std::isnan(s.maxAbs));
        EXPECT_EQ(s.rr, 38 * 4.0);
        std::vector<double> columns(60, 0.0);
        set->columnsF32(r.data(), c.data(), 2, 20, columns.data());
        EXPECT_TRUE(std::isnan(columns[3 * 19 + 2]));
        EXPECT_EQ(columns[3 * 0 + 2], INFINITY) << "element 20 is in column 0";
        EXPECT_EQ(columns[3 * 3 + 2], 1.0) << "element 3 is equal, element 23 is 1 off";
        EXPECT_EQ(columns[3 * 4 + 2], 2.0);
    }
}

TEST(MetricKernels, MergingKeepsNanAndExtrema)
{
    PairSums a;
    a.maxAbs = 2;
    a.rMin = -1;
    PairSums b;
    b.maxAbs = NAN;
    b.rMin = 3;
    b.rMax = 9;
    b.nan = 1;
    PairSums ab = a;
    ab.merge(b);
    PairSums ba = b;
    ba.merge(a);
    for (const PairSums &s : {ab, ba}) {
        EXPECT_TRUE(std::isnan(s.maxAbs));
        EXPECT_EQ(s.rMin, -1);
        EXPECT_EQ(s.rMax, 9);
        EXPECT_EQ(s.nan, 1);
    }
}

} // namespace
} // namespace dblame::kernels

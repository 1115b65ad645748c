// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/metric.h"

#include <cmath>
#include <limits>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "tests/engine/metric_support.h"

namespace dblame
{
namespace
{

using namespace test;

TEST(PairAccumulator, FiguresOfASmallPairByHand)
{
    const NodeReport report = measure(at::tensor({3.0F, 4.0F, 0.0F}), at::tensor({3.0F, 3.0F, 1.0F}));
    const Metrics &m = report.metrics;
    EXPECT_EQ(report.status, RowStatus::Ok);
    EXPECT_DOUBLE_EQ(m.snrDb, 10 * std::log10(25.0 / 2.0));
    EXPECT_DOUBLE_EQ(m.sqnrDb, 10 * std::log10(19.0 / 2.0));
    EXPECT_DOUBLE_EQ(m.mse, 2.0 / 3);
    EXPECT_DOUBLE_EQ(m.mae, 2.0 / 3);
    EXPECT_EQ(m.bias, 0.0);
    EXPECT_EQ(m.maxAbs, 1.0);
    EXPECT_DOUBLE_EQ(m.cosine, 21.0 / std::sqrt(25.0 * 19.0));
    EXPECT_EQ(m.refMin, 0.0);
    EXPECT_EQ(m.refMax, 4.0);
    EXPECT_EQ(m.candMin, 1.0);
    EXPECT_EQ(m.candMax, 3.0);
    EXPECT_EQ(m.count, 3);
    EXPECT_EQ(m.nan + m.inf + m.mismatches, 0);
}

TEST(PairAccumulator, BiasIsCandidateMinusReference)
{
    EXPECT_EQ(measure(at::tensor({1.0F, 1.0F}), at::tensor({1.5F, 1.5F})).metrics.bias, 0.5);
}

TEST(PairAccumulator, EqualSilentAndAllWrong)
{
    const at::Tensor zero = at::full({10}, 0.0F);
    const at::Tensor minusZero = at::full({10}, -0.0F);
    const at::Tensor one = at::full({10}, 1.0F);
    const NodeReport equal = measure(one, one.clone());
    EXPECT_EQ(equal.status, RowStatus::Exact);
    EXPECT_EQ(equal.metrics.snrDb, kInf);
    EXPECT_EQ(equal.metrics.cosine, 1.0);
    EXPECT_EQ(measure(zero, minusZero).status, RowStatus::Exact);
    EXPECT_EQ(measure(zero, minusZero).metrics.snrDb, kInf);
    const NodeReport silent = measure(zero, one);
    EXPECT_EQ(silent.status, RowStatus::Ok);
    EXPECT_EQ(silent.metrics.snrDb, -kInf);
    EXPECT_EQ(silent.metrics.sqnrDb, 0.0);
    EXPECT_TRUE(std::isnan(silent.metrics.cosine));
    EXPECT_EQ(measure(one, zero).metrics.snrDb, 0.0);
    EXPECT_EQ(measure(one, zero).metrics.sqnrDb, -kInf);
    EXPECT_EQ(measure(at::empty({0, 3}), at::empty({0, 3})).status, RowStatus::Exact);
}

TEST(PairAccumulator, NanIsCountedAndShown)
{
    at::Tensor r = at::randn({5000});
    at::Tensor c = r.clone();
    c[4500] = kNan;
    const NodeReport report = measure(r, c);
    EXPECT_EQ(report.status, RowStatus::Ok);
    EXPECT_EQ(report.metrics.nan, 1);
    EXPECT_TRUE(std::isnan(report.metrics.snrDb));
    EXPECT_TRUE(std::isnan(report.metrics.mse));
    EXPECT_EQ(report.metrics.candMax, c.slice(0, 0, 4500).max().item<double>() > c.slice(0, 4501).max().item<double>()
                                          ? c.slice(0, 0, 4500).max().item<double>()
                                          : c.slice(0, 4501).max().item<double>());
    r[4500] = kNan; // on both sides it is still no number
    EXPECT_TRUE(std::isnan(measure(r, c).metrics.snrDb));
    EXPECT_EQ(measure(r, c).status, RowStatus::Ok);
    const NodeReport all = measure(at::full({3}, kNan), at::full({3}, kNan));
    EXPECT_TRUE(std::isnan(all.metrics.refMin));
    EXPECT_EQ(all.metrics.nan, 3);
}

TEST(PairAccumulator, InfinitiesOfAMaskAreNoError)
{
    const float inf = std::numeric_limits<float>::infinity();
    const NodeReport same = measure(at::tensor({-inf, 2.0F}), at::tensor({-inf, 1.0F}));
    EXPECT_EQ(same.metrics.inf, 1);
    EXPECT_DOUBLE_EQ(same.metrics.snrDb, 10 * std::log10(4.0));
    EXPECT_EQ(measure(at::tensor({-inf, 2.0F}), at::tensor({-inf, 2.0F})).status, RowStatus::Exact);
    const NodeReport other = measure(at::tensor({-inf, 2.0F}), at::tensor({inf, 2.0F}));
    EXPECT_EQ(other.metrics.snrDb, -kInf);
    EXPECT_EQ(other.metrics.maxAbs, kInf);
    EXPECT_EQ(other.status, RowStatus::Ok);
    EXPECT_EQ(other.metrics.refMin, 2.0);
}

TEST(PairAccumulator, IntegersAndFlagsHaveMismatchesAndNoDb)
{
    const NodeReport report = measure(at::tensor({1, -5, 7}, at::kChar), at::tensor({1, 5, 9}, at::kChar));
    EXPECT_EQ(report.status, RowStatus::Mismatch);
    EXPECT_EQ(report.metrics.mismatches, 2);
    EXPECT_EQ(report.metrics.maxAbs, 10.0);
    EXPECT_EQ(report.metrics.bias, 4.0);
    EXPECT_TRUE(std::isnan(report.metrics.snrDb));
    EXPECT_TRUE(report.channels.empty());
    const at::Tensor flags = at::tensor({1, 0, 1}).to(at::kBool);
    EXPECT_EQ(measure(flags, flags.clone()).status, RowStatus::Exact);
    EXPECT_EQ(measure(flags, flags.logical_not()).metrics.mismatches, 3);
    // Neighbours that double cannot tell apart, and the ends of both 64-bit types.
    const std::int64_t big = std::int64_t{1} << 60;
    EXPECT_EQ(measure(at::full({1}, big, at::kLong), at::full({1}, big + 1, at::kLong)).metrics.maxAbs, 1.0);
    const at::Tensor low = at::full({1}, std::numeric_limits<std::int64_t>::min(), at::kLong);
    const at::Tensor high = at::full({1}, std::numeric_limits<std::int64_t>::max(), at::kLong);
    EXPECT_EQ(measure(low, high).metrics.maxAbs, 18446744073709551615.0);
    EXPECT_EQ(measure(low.view(at::kUInt64), high.view(at::kUInt64)).metrics.maxAbs, 1.0);
}

TEST(PairAccumulator, EveryFloatTypeIsRead)
{
    const at::Tensor r = at::tensor({1.0F, -2.0F, 0.5F, 4.0F});
    const at::Tensor c = at::tensor({1.0F, -2.0F, 1.0F, 4.0F});
    const double expected = 10 * std::log10(21.25 / 0.25);
    for (const at::ScalarType type :
         {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kFloat8_e4m3fn, at::kFloat8_e5m2})
        EXPECT_DOUBLE_EQ(measure(r.to(type), c.to(type)).metrics.snrDb, expected) << type;
    EXPECT_DOUBLE_EQ(measure(r, c.to(at::kDouble)).metrics.snrDb, expected);
    EXPECT_DOUBLE_EQ(measure(r.to(at::kHalf), c).metrics.snrDb, expected);
    EXPECT_DOUBLE_EQ(measure(at::tensor({1, 2}), at::tensor({1.0F, 3.0F})).metrics.snrDb, 10 * std::log10(5.0));
    EXPECT_DOUBLE_EQ(measure(at::quantize_per_tensor(r, 0.5, 0, at::kQInt8), c).metrics.snrDb, expected);
}

TEST(PairAccumulator, DoublesAreNotRounded)
{
    const at::Tensor r = at::full({3}, 1.0, at::kDouble);
    const NodeReport report = measure(r, r.add(1e-12));
    EXPECT_NEAR(report.metrics.snrDb, 240.0, 1e-2);
    EXPECT_EQ(measure(at::full({2}, 1e-300, at::kDouble), at::full({2}, 2e-300, at::kDouble)).status, RowStatus::Ok)
        << "an error whose square vanishes is an error";
}

TEST(PairAccumulator, ComplexIsAPairOfFloats)
{
    const at::Tensor r = at::complex(at::tensor({1.0F, 2.0F}), at::tensor({0.0F, -1.0F}));
    const at::Tensor c = at::complex(at::tensor({1.0F, 2.0F}), at::tensor({1.0F, -1.0F}));
    const NodeReport report = measure(r, c);
    EXPECT_EQ(report.metrics.count, 4);
    EXPECT_DOUBLE_EQ(report.metrics.snrDb, 10 * std::log10(6.0));
    EXPECT_EQ(measure(r.conj(), r.conj().resolve_conj()).status, RowStatus::Exact);
}

TEST(PairAccumulator, ThingsWithoutNumbersSaySo)
{
    const NodeReport none = measure(at::Tensor(), at::randn({2}));
    EXPECT_EQ(none.status, RowStatus::NotFloat);
    EXPECT_TRUE(std::isnan(none.metrics.snrDb));
    EXPECT_EQ(measure(at::empty({2}, at::device(at::kMeta)), at::randn({2})).status, RowStatus::NotFloat);
    PairAccumulator empty{MetricOptions{}};
    EXPECT_TRUE(empty.empty());
    NodeReport untouched;
    untouched.reason = "x";
    empty.fill(untouched);
    EXPECT_EQ(untouched.status, RowStatus::Pending);
    EXPECT_EQ(untouched.reason, "x");
}

// Per channel figures of every kind of layout against sums over slices.
TEST(PairAccumulator, ChannelsOfEveryLayout)
{
    at::manual_seed(1);
    struct Case {
        std::vector<std::int64_t> shape;
        int axis;
    };
    for (const Case &c : {Case{{2, 5, 8, 9}, 1}, Case{{3, 4, 40, 50}, 1}, Case{{2, 3, 200, 300}, 1}, Case{{64, 33}, 1},
                          Case{{700, 20, 50}, 2}, Case{{16, 4, 3, 3}, 0}, Case{{8, 16, 2, 2}, 1}, Case{{6, 1, 3}, 1},
                          Case{{1000, 7}, 0}, Case{{40}, 0}, Case{{3, 70000}, 1}, Case{{2, 3, 4, 5, 6}, 3}}) {
        at::Tensor r = at::randn(c.shape);
        at::Tensor q = r.add(at::randn(c.shape), 0.05);
        std::vector<std::pair<at::Tensor, at::Tensor>> forms{{r, q},
                                                             {r.transpose(0, -1).contiguous().transpose(0, -1), q}};
        if (r.dim() == 4)
            forms.emplace_back(r.contiguous(at::MemoryFormat::ChannelsLast),
                               q.contiguous(at::MemoryFormat::ChannelsLast));
        for (const auto &[a, b] : forms) {
            const NodeReport report = measure(a, b, channels(c.axis));
            const std::int64_t n = r.size(c.axis);
            ASSERT_EQ(static_cast<std::int64_t>(report.channels.size()), n);
            for (std::int64_t i = 0; i < n; i += std::max<std::int64_t>(1, n / 64)) {
                const at::Tensor rs = r.select(c.axis, i).to(at::kDouble);
                const at::Tensor e = rs.sub(q.select(c.axis, i).to(at::kDouble));
                const double signal = rs.square().sum().item<double>();
                const ChannelMetrics &got = report.channels[static_cast<std::size_t>(i)];
                ASSERT_EQ(got.index, i);
                ASSERT_NEAR(got.signal / signal, 1.0, 1e-13);
                ASSERT_NEAR(got.snrDb, 10 * std::log10(signal / e.square().sum().item<double>()), 1e-11);
            }
            const double expected =
                10 * std::log10(r.to(at::kDouble).square().sum().item<double>() /
                                r.to(at::kDouble).sub(q.to(at::kDouble)).square().sum().item<double>());
            EXPECT_NEAR(report.metrics.snrDb, expected, 1e-11);
            EXPECT_EQ(report.metrics.count, r.numel());
        }
    }
}

TEST(PairAccumulator, NanStaysInItsChannel)
{
    at::Tensor r = at::randn({2, 4, 30, 30});
    const at::Tensor c = r.add(0.1);
    r[1][2][3][4] = kNan;
    for (const int axis : {1, 3}) {
        const NodeReport report = measure(r, c, channels(axis));
        int bad = 0;
        for (const ChannelMetrics &m : report.channels)
            bad += std::isnan(m.snrDb) ? 1 : 0;
        EXPECT_EQ(bad, 1) << axis;
    }
}

TEST(PairAccumulator, ChannelAxisThatIsNotThereIsIgnored)
{
    EXPECT_TRUE(measure(at::randn({3}), at::randn({3}), channels(1)).channels.empty());
    EXPECT_TRUE(measure(at::full({}, 1.0), at::full({}, 2.0), channels(0)).channels.empty());
}

TEST(PairAccumulator, SameBitsAtEveryThreadCount)
{
    at::manual_seed(2);
    const int before = at::get_num_threads();
    for (const int axis : {-1, 1, 2}) {
        const at::Tensor r = at::randn({11, 96, 1000}).mul(at::randn({11, 96, 1}).exp());
        const at::Tensor c = r.add(at::randn({11, 96, 1000}), 0.01);
        MetricOptions options = channels(axis);
        options.histograms = true;
        at::set_num_threads(1);
        const NodeReport one = measure(r, c, options);
        for (const int threads : {2, 3, 5}) {
            at::set_num_threads(threads);
            expectSameBits(measure(r, c, options), one);
        }
    }
    at::set_num_threads(before);
}

TEST(PairAccumulator, MergingIsAddingOn)
{
    at::manual_seed(3);
    MetricOptions options = channels(1);
    options.histograms = true;
    PairAccumulator whole(options);
    PairAccumulator first(options);
    PairAccumulator second(options);
    for (int batch = 0; batch < 2; ++batch) {
        const at::Tensor r = at::randn({4, 6, 20, 20});
        const at::Tensor c = r.add(at::randn({4, 6, 20, 20}), 0.02 * (batch + 1));
        whole.add(r, c);
        (batch == 0 ? first : second).add(r, c);
    }
    PairAccumulator copy = first;
    first.merge(second);
    copy = std::move(first);
    NodeReport a;
    NodeReport b;
    whole.fill(a);
    copy.fill(b);
    expectSameBits(a, b);
    EXPECT_EQ(a.metrics.count, 2 * 4 * 6 * 400);
}

TEST(PairAccumulator, BatchesPoolTheirEnergy)
{
    PairAccumulator accumulator{MetricOptions{}};
    accumulator.add(at::tensor({10.0F}), at::tensor({9.0F}));
    accumulator.add(at::tensor({0.0F}), at::tensor({2.0F}));
    NodeReport report;
    accumulator.fill(report);
    EXPECT_DOUBLE_EQ(report.metrics.snrDb, 10 * std::log10(100.0 / 5.0));
    EXPECT_EQ(report.metrics.maxAbs, 2.0);
}

} // namespace
} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/metric.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

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

namespace dblame
{
namespace
{

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

NodeReport measure(const at::Tensor &r, const at::Tensor &c, const MetricOptions &options = {})
{
    PairAccumulator accumulator(options);
    accumulator.add(r, c);
    NodeReport report;
    accumulator.fill(report);
    return report;
}

MetricOptions channels(int axis)
{
    MetricOptions options;
    options.channelAxis = axis;
    return options;
}

std::uint64_t bits(double v)
{
    return std::bit_cast<std::uint64_t>(v);
}

void expectSameBits(const NodeReport &a, const NodeReport &b)
{
    EXPECT_EQ(bits(a.metrics.snrDb), bits(b.metrics.snrDb));
    EXPECT_EQ(bits(a.metrics.sqnrDb), bits(b.metrics.sqnrDb));
    EXPECT_EQ(bits(a.metrics.mse), bits(b.metrics.mse));
    EXPECT_EQ(bits(a.metrics.mae), bits(b.metrics.mae));
    EXPECT_EQ(bits(a.metrics.bias), bits(b.metrics.bias));
    EXPECT_EQ(bits(a.metrics.cosine), bits(b.metrics.cosine));
    ASSERT_EQ(a.channels.size(), b.channels.size());
    for (std::size_t i = 0; i < a.channels.size(); ++i) {
        EXPECT_EQ(bits(a.channels[i].snrDb), bits(b.channels[i].snrDb)) << i;
        EXPECT_EQ(bits(a.channels[i].signal), bits(b.channels[i].signal)) << i;
    }
    ASSERT_EQ(a.histogram.has_value(), b.histogram.has_value());
    if (a.histogram) {
        EXPECT_EQ(a.histogram->edges, b.histogram->edges);
        EXPECT_EQ(a.histogram->reference, b.histogram->reference);
        EXPECT_EQ(a.histogram->candidate, b.histogram->candidate);
        EXPECT_EQ(a.histogram->errorEdges, b.histogram->errorEdges);
        EXPECT_EQ(a.histogram->error, b.histogram->error);
    }
}

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

// --- histograms -----------------------------------------------------------------------------------

double total(const std::vector<double> &counts)
{
    return std::accumulate(counts.begin(), counts.end(), 0.0);
}

MetricOptions histograms(bool exact)
{
    MetricOptions options;
    options.histograms = true;
    options.exact = exact;
    return options;
}

TEST(MetricHistogram, KeepsEveryElementAndTheShape)
{
    at::manual_seed(5);
    const at::Tensor r = at::randn({200000});
    const at::Tensor c = r.mul(8).round().div(8);
    const NodeReport report = measure(r, c, histograms(true));
    ASSERT_TRUE(report.histogram);
    const Histogram &h = *report.histogram;
    EXPECT_FALSE(h.sampled);
    ASSERT_EQ(h.edges.size(), h.reference.size() + 1);
    ASSERT_EQ(h.edges.size(), h.candidate.size() + 1);
    ASSERT_EQ(h.errorEdges.size(), h.error.size() + 1);
    EXPECT_NEAR(total(h.reference), 200000, 1e-6);
    EXPECT_NEAR(total(h.candidate), 200000, 1e-6);
    EXPECT_NEAR(total(h.error), 200000, 1e-6);
    EXPECT_EQ(h.edges.front(), std::min(report.metrics.refMin, report.metrics.candMin));
    EXPECT_EQ(h.edges.back(), std::max(report.metrics.refMax, report.metrics.candMax));
    // The counts follow the density: within 3 % + 3 sigma of the normal distribution's share.
    const auto below = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
    for (std::size_t i = 0; i < h.reference.size(); ++i) {
        const double expected = 200000 * (below(h.edges[i + 1]) - below(h.edges[i]));
        EXPECT_NEAR(h.reference[i], expected, 0.03 * expected + 3 * std::sqrt(expected) + 3) << i;
    }
    // Rounding to eighths: the error is even between -1/16 and 1/16.
    EXPECT_NEAR(h.errorEdges.front(), -0.0625, 1e-3);
    EXPECT_NEAR(h.errorEdges.back(), 0.0625, 1e-3);
    for (const double n : h.error)
        EXPECT_NEAR(n, 2500.0, 400.0);
}

TEST(MetricHistogram, ASampleStandsForTheWhole)
{
    at::manual_seed(6);
    const at::Tensor r = at::randn({16, 64, 32, 32});
    const at::Tensor c = r.add(at::randn({16, 64, 32, 32}), 0.01);
    const NodeReport sampled = measure(r, c, histograms(false));
    const NodeReport exact = measure(r, c, histograms(true));
    EXPECT_TRUE(sampled.histogram->sampled);
    EXPECT_FALSE(exact.histogram->sampled);
    EXPECT_EQ(sampled.histogram->edges, exact.histogram->edges);
    const auto n = static_cast<double>(r.numel());
    EXPECT_NEAR(total(sampled.histogram->reference), n, 1e-6 * n);
    double distance = 0;
    for (std::size_t i = 0; i < exact.histogram->reference.size(); ++i)
        distance += std::abs(exact.histogram->reference[i] - sampled.histogram->reference[i]);
    EXPECT_LT(distance / n, 0.03);
    // Small tensors are taken whole.
    EXPECT_FALSE(measure(at::randn({4096}), at::randn({4096}), histograms(false)).histogram->sampled);
    EXPECT_FALSE(measure(at::randn({7}), at::randn({7}), histograms(false)).histogram->sampled);
}

TEST(MetricHistogram, FewValuesStandInTheirBins)
{
    const at::Tensor r = at::tensor({0.0F, 1.0F, 1.0F, 2.0F, -0.0F});
    const NodeReport report = measure(r, at::tensor({0.0F, 1.0F, 1.0F, 2.0F, 0.5F}), histograms(false));
    const Histogram &h = *report.histogram;
    const std::size_t last = h.reference.size() - 1;
    EXPECT_EQ(h.reference.front(), 2.0) << "both zeros";
    EXPECT_NEAR(h.reference[last], 1.0, 1e-9);
    // Known to a sixteenth of their octave: 1 lies between 1 and 1.0625.
    EXPECT_NEAR(h.reference[last / 2 + 1] + h.reference[last / 2 + 2] + h.reference[last / 2 + 3], 2.0, 1e-9);
    EXPECT_NEAR(total(h.error), 5.0, 1e-9);
    EXPECT_EQ(h.errorEdges.back(), 0.5);
}

TEST(MetricHistogram, EqualConstantAndNonFiniteValues)
{
    const NodeReport equal = measure(at::randn({100}), at::randn({100}).mul(0).add(1), histograms(false));
    EXPECT_TRUE(equal.histogram);
    const at::Tensor five = at::full({100}, 5.0F);
    const NodeReport constant = measure(five, five.clone(), histograms(false));
    ASSERT_TRUE(constant.histogram);
    EXPECT_EQ(constant.histogram->edges.front(), 2.5);
    EXPECT_EQ(constant.histogram->edges.back(), 7.5);
    EXPECT_EQ(total(constant.histogram->reference), 100.0);
    EXPECT_TRUE(constant.histogram->error.empty());
    EXPECT_TRUE(constant.histogram->errorEdges.empty());
    at::Tensor odd = at::full({100}, 5.0F);
    odd[3] = std::numeric_limits<float>::infinity();
    odd[4] = kNan;
    const NodeReport bad = measure(odd, five, histograms(false));
    EXPECT_EQ(total(bad.histogram->reference), 98.0);
    EXPECT_EQ(total(bad.histogram->candidate), 100.0);
    EXPECT_FALSE(measure(at::full({3}, kNan), at::full({3}, kNan), histograms(false)).histogram);
    EXPECT_FALSE(measure(five, five).histogram);
    PairAccumulator accumulator(histograms(false));
    accumulator.add(five, odd);
    NodeReport without;
    accumulator.fill(without, false);
    EXPECT_FALSE(without.histogram);
}

TEST(MetricHistogram, ManySmallBatchesAreOneLargeOne)
{
    at::manual_seed(7);
    const at::Tensor r = at::randn({50, 64});
    const at::Tensor c = r.add(at::randn({50, 64}), 0.1);
    PairAccumulator many(histograms(true));
    for (int i = 0; i < 50; ++i)
        many.add(r[i], c[i]);
    NodeReport a;
    many.fill(a);
    const NodeReport b = measure(r, c, histograms(true));
    ASSERT_EQ(a.histogram->edges, b.histogram->edges);
    for (std::size_t i = 0; i < a.histogram->reference.size(); ++i) {
        EXPECT_NEAR(a.histogram->reference[i], b.histogram->reference[i], 1e-9);
        EXPECT_NEAR(a.histogram->error[i], b.histogram->error[i], 1e-9);
    }
}

TEST(MetricHistogram, DoublesBeyondFloatStayInside)
{
    const at::Tensor r = at::tensor({1e300, -1e300, 0.0, 1.0}, at::kDouble);
    const NodeReport report = measure(r, r.mul(0.5), histograms(false));
    EXPECT_NEAR(total(report.histogram->reference), 4.0, 1e-9);
}

// --- SnrAccumulator, RangeAccumulator ---------------------------------------------------------------

TEST(SnrAccumulator, PoolsBatchesAndMerges)
{
    at::manual_seed(8);
    const at::Tensor r = at::randn({3, 200000});
    const at::Tensor c = r.add(at::randn({3, 200000}), 0.05);
    SnrAccumulator whole;
    SnrAccumulator parts;
    EXPECT_TRUE(whole.empty());
    for (int i = 0; i < 3; ++i) {
        whole.add(r[i], c[i]);
        SnrAccumulator part;
        part.add(r[i], c[i]);
        parts.merge(part);
    }
    EXPECT_FALSE(whole.empty());
    EXPECT_EQ(bits(whole.snrDb()), bits(parts.snrDb()));
    const at::Tensor rd = r.to(at::kDouble);
    const double error = rd.sub(c.to(at::kDouble)).square().sum().item<double>();
    EXPECT_NEAR(whole.snrDb(), 10 * std::log10(rd.square().sum().item<double>() / error), 1e-11);
    EXPECT_NEAR(whole.sqnrDb(), 10 * std::log10(c.to(at::kDouble).square().sum().item<double>() / error), 1e-11);
}

TEST(SnrAccumulator, IntegersAddNothing)
{
    SnrAccumulator snr;
    snr.add(at::tensor({1, 2}), at::tensor({1, 3}));
    snr.add(at::Tensor(), at::Tensor());
    EXPECT_TRUE(snr.empty());
}

TEST(RangeAccumulator, ClippedAndUnusedShares)
{
    RangeAccumulator range;
    EXPECT_FALSE(range.clipped());
    EXPECT_FALSE(range.unusedRange());
    // Grid -1 .. 3, step 0.1: 3.04 still rounds to the last value, 3.06 and -5 are clipped.
    range.add(at::tensor({0.0F, 1.0F, 3.04F, 3.06F, -5.0F}), -1, 3, 0.1);
    EXPECT_DOUBLE_EQ(*range.clipped(), 0.4);
    EXPECT_DOUBLE_EQ(*range.unusedRange(), 0.0);
    RangeAccumulator part;
    part.add(at::tensor({0.0F, 1.0F}), -1, 3, 0.1);
    EXPECT_DOUBLE_EQ(*part.clipped(), 0.0);
    EXPECT_DOUBLE_EQ(*part.unusedRange(), 0.75);
    part.add(at::tensor({0.0F, 2.0F}), -1, 3, 0.1);
    EXPECT_DOUBLE_EQ(*part.unusedRange(), 0.5);
    RangeAccumulator merged = part;
    merged.merge(range);
    EXPECT_DOUBLE_EQ(*merged.clipped(), 2.0 / 9.0);
    EXPECT_DOUBLE_EQ(*merged.unusedRange(), 0.0);
}

TEST(RangeAccumulator, RoundingAtTheEndIsNotClipping)
{
    // A symmetric scale is max / 127 in float32: 127 steps may end a bit before max.
    const float max = 1.2345678F;
    const double scale = static_cast<double>(max / 127.0F);
    RangeAccumulator range;
    range.add(at::tensor({max, -max}), -127 * scale, 127 * scale);
    EXPECT_DOUBLE_EQ(*range.clipped(), 0.0);
    EXPECT_NEAR(*range.unusedRange(), 0.0, 1e-6);
}

TEST(RangeAccumulator, LargeTensorsAndInfinities)
{
    at::Tensor x = at::full({300000}, 0.5F);
    x.slice(0, 0, 3000).fill_(std::numeric_limits<float>::infinity());
    x[5000] = kNan;
    RangeAccumulator range;
    range.add(x, 0, 1);
    EXPECT_DOUBLE_EQ(*range.clipped(), 0.01);
    EXPECT_DOUBLE_EQ(*range.unusedRange(), 0.5);
}

} // namespace
} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/engine/metric_support.h"

namespace dblame
{
namespace
{

using namespace test;

double total(const std::vector<double> &counts)
{
    return std::accumulate(counts.begin(), counts.end(), 0.0);
}

// What numpy.histogram gives: edges[i] <= x < edges[i + 1], the last bar closed; found by bisection, unlike ours.
std::vector<double> counted(const at::Tensor &values, const std::vector<double> &edges)
{
    std::vector<double> counts(edges.size() - 1);
    const at::Tensor wide = values.to(at::kDouble).contiguous();
    const double *x = wide.const_data_ptr<double>();
    for (std::int64_t i = 0; i < wide.numel(); ++i) {
        if (!(x[i] >= edges.front() && x[i] <= edges.back()))
            continue;
        const auto above = std::upper_bound(edges.begin(), edges.end(), x[i]) - edges.begin();
        ++counts[static_cast<std::size_t>(std::min<std::ptrdiff_t>(above - 1, std::ssize(counts) - 1))];
    }
    return counts;
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
    EXPECT_LE(h.edges.front(), std::min(report.metrics.refMin, report.metrics.candMin));
    EXPECT_GT(h.edges[1], std::min(report.metrics.refMin, report.metrics.candMin)) << "no empty bar at the end";
    EXPECT_GT(h.edges.back(), std::max(report.metrics.refMax, report.metrics.candMax));
    // The counts follow the density: within 3 % + 3 sigma of the normal distribution's share.
    const auto below = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
    for (std::size_t i = 0; i < h.reference.size(); ++i) {
        const double expected = 200000 * (below(h.edges[i + 1]) - below(h.edges[i]));
        EXPECT_NEAR(h.reference[i], expected, 0.03 * expected + 3 * std::sqrt(expected) + 3) << i;
    }
    // Rounding to eighths: the error is even between -1/16 and 1/16, in bars of a 512th (1/16 itself has one more).
    EXPECT_EQ(h.errorEdges.front(), -0.0625);
    EXPECT_GE(h.errorEdges.back(), 0.0625);
    for (std::size_t i = 0; i < h.error.size() && h.errorEdges[i] < 0.0625; ++i)
        EXPECT_NEAR(h.error[i], 200000.0 * 8 * (h.errorEdges[i + 1] - h.errorEdges[i]), 400.0);
}

// Random, discrete (every value on an edge), of one sign, far from zero, tiny, in doubles, and not finite.
TEST(MetricHistogram, ExactCountsAreThoseOfTheElements)
{
    at::manual_seed(11);
    const at::Tensor normal = at::randn({70000});
    at::Tensor odd = at::randn({3000});
    odd[5] = std::numeric_limits<float>::infinity();
    odd[6] = kNan;
    const std::vector<std::pair<at::Tensor, at::Tensor>> pairs = {
        {normal, normal.mul(16).round().div(16)},
        {normal.mul(4).round().div(4), normal.mul(2).round().div(2)},
        {normal.relu(), normal.relu().mul(1.01)},
        {normal.add(1000), normal.add(1001)},
        {normal.mul(1e-30), normal.mul(1.1e-30)},
        {at::randn({5000}, at::kDouble).mul(1e200), at::randn({5000}, at::kDouble).mul(1e199)},
        {at::randint(-3, 4, {100}).to(at::kFloat), at::randint(-3, 4, {100}).to(at::kFloat)},
        {odd, at::randn({3000})},
        {at::tensor({1e308, -1e-100, 1e-100, -1e308, 0.0, -5e-324}, at::kDouble), at::zeros({6}, at::kDouble)},
    };
    for (const auto &[r, c] : pairs) {
        const NodeReport report = measure(r, c, histograms(true));
        ASSERT_TRUE(report.histogram);
        const Histogram &h = *report.histogram;
        EXPECT_GE(h.reference.size(), 6U);
        EXPECT_LE(h.reference.size(), r.numel() < 512 ? 24U : 80U);
        EXPECT_EQ(h.reference, counted(r, h.edges)) << r.numel();
        EXPECT_EQ(h.candidate, counted(c, h.edges)) << r.numel();
        EXPECT_EQ(h.error, counted(c.to(at::kDouble).sub(r.to(at::kDouble)), h.errorEdges)) << r.numel();
        // Every finite element is somewhere.
        EXPECT_EQ(total(h.reference), r.isfinite().sum().item<double>());
        const double width = h.edges[1] - h.edges[0];
        EXPECT_EQ(std::exp2(std::round(std::log2(width))), width) << "a power of two";
        EXPECT_EQ(std::fmod(h.edges.front(), width), 0.0);
    }
}

TEST(MetricHistogram, ExactOnesOfOneValue)
{
    const at::Tensor five = at::full({100}, 5.0F);
    Histogram h = *measure(five, five.clone(), histograms(true)).histogram;
    EXPECT_EQ(h.edges, (std::vector<double>{4, 6}));
    EXPECT_EQ(h.reference, std::vector<double>{100});
    h = *measure(at::full({100}, 0.0F), at::full({100}, -0.0F), histograms(true)).histogram;
    EXPECT_EQ(h.edges, (std::vector<double>{0, 0.5}));
    EXPECT_EQ(h.candidate, std::vector<double>{100});
    const double largest = std::numeric_limits<float>::max();
    h = *measure(at::full({4}, largest), at::full({4}, -largest), histograms(true)).histogram;
    EXPECT_EQ(total(h.reference), 4);
    EXPECT_EQ(total(h.candidate), 4);
    EXPECT_FALSE(measure(at::full({3}, kNan), at::full({3}, kNan), histograms(true)).histogram);
}

// The result is the values' alone: any order, any batches, any merging.
TEST(MetricHistogram, ExactOnesDoNotDependOnTheOrder)
{
    const at::Tensor r = at::cat({at::full({900}, 1e-20F), at::randn({900}), at::randn({900}).mul(1e10),
                                  at::full({900}, 0.0F), at::randn({900}).sub(7)});
    const at::Tensor c = r.mul(1.001);
    const Histogram whole = *measure(r, c, histograms(true)).histogram;
    EXPECT_EQ(whole.reference, counted(r, whole.edges));
    PairAccumulator backwards(histograms(true));
    PairAccumulator first(histograms(true)), second(histograms(true));
    for (std::int64_t i = 4; i >= 0; --i) {
        backwards.add(r.narrow(0, 900 * i, 900), c.narrow(0, 900 * i, 900));
        (i % 2 == 0 ? first : second).add(r.narrow(0, 900 * i, 900), c.narrow(0, 900 * i, 900));
    }
    first.merge(second);
    for (const PairAccumulator *parts : {&backwards, &first}) {
        NodeReport report;
        parts->fill(report);
        EXPECT_EQ(report.histogram->edges, whole.edges);
        EXPECT_EQ(report.histogram->reference, whole.reference);
        EXPECT_EQ(report.histogram->candidate, whole.candidate);
        EXPECT_EQ(report.histogram->errorEdges, whole.errorEdges);
        EXPECT_EQ(report.histogram->error, whole.error);
    }
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
    const auto n = static_cast<double>(r.numel());
    EXPECT_NEAR(total(sampled.histogram->reference), n, 1e-6 * n);
    // Estimated on its own edges: against the elements themselves.
    const std::vector<double> truth = counted(r, sampled.histogram->edges);
    double distance = 0;
    for (std::size_t i = 0; i < truth.size(); ++i)
        distance += std::abs(truth[i] - sampled.histogram->reference[i]);
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
    ASSERT_EQ(h.reference.size(), 24U) << "few elements, few bars";
    EXPECT_EQ(h.reference.front(), 2.0) << "both zeros";
    EXPECT_NEAR(h.reference.back(), 1.0, 1e-9);
    EXPECT_EQ(h.reference[12], 2.0) << "known to a sixteenth of their octave: 1 to 1.0625 is inside 1 to 1.083";
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
    EXPECT_NEAR(total(constant.histogram->reference), 100.0, 1e-9);
    EXPECT_TRUE(constant.histogram->error.empty());
    EXPECT_TRUE(constant.histogram->errorEdges.empty());
    at::Tensor odd = at::full({100}, 5.0F);
    odd[3] = std::numeric_limits<float>::infinity();
    odd[4] = kNan;
    const NodeReport bad = measure(odd, five, histograms(false));
    EXPECT_NEAR(total(bad.histogram->reference), 98.0, 1e-9);
    EXPECT_NEAR(total(bad.histogram->candidate), 100.0, 1e-9);
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
    EXPECT_EQ(a.histogram->errorEdges, b.histogram->errorEdges);
    EXPECT_EQ(a.histogram->error, b.histogram->error);
    for (std::size_t i = 0; i < a.histogram->reference.size(); ++i) {
        EXPECT_EQ(a.histogram->reference[i], b.histogram->reference[i]);
    }
}

TEST(MetricHistogram, DoublesBeyondFloatStayInside)
{
    const at::Tensor r = at::tensor({1e300, -1e300, 0.0, 1.0}, at::kDouble);
    const NodeReport report = measure(r, r.mul(0.5), histograms(false));
    EXPECT_NEAR(total(report.histogram->reference), 4.0, 1e-9);
}

} // namespace
} // namespace dblame

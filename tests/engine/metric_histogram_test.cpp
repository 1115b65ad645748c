// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/metric.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
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

} // namespace
} // namespace dblame

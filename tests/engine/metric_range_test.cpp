// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/metric.h"

#include <cmath>
#include <limits>

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

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/palette.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stop_token>

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/engine/kmeans_1d.h"
#include "tests/engine/quantizer_support.h"

namespace dblame
{
namespace
{

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

double costOf(const std::vector<double> &values, const std::vector<double> &weights, const Clusters1d &clusters)
{
    double cost = 0;
    for (std::size_t c = 0; c < clusters.centroids.size(); ++c)
        for (auto i = static_cast<std::size_t>(clusters.firstOfCluster[c]);
             i < static_cast<std::size_t>(clusters.firstOfCluster[c + 1]); ++i)
            cost += weights[i] * (values[i] - clusters.centroids[c]) * (values[i] - clusters.centroids[c]);
    return cost;
}

// The least cost of k runs, by trying every boundary.
double leastCost(const std::vector<double> &values, const std::vector<double> &weights, std::size_t k)
{
    const std::size_t n = values.size();
    std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
    best[0] = 0;
    for (std::size_t c = 0; c < k; ++c) {
        std::vector<double> next(n + 1, std::numeric_limits<double>::infinity());
        next[0] = 0;
        for (std::size_t end = 1; end <= n; ++end)
            for (std::size_t begin = 0; begin < end; ++begin) {
                double w = 0;
                double mean = 0;
                for (std::size_t i = begin; i < end; ++i) {
                    w += weights[i];
                    mean += weights[i] * values[i];
                }
                mean /= w;
                double cost = 0;
                for (std::size_t i = begin; i < end; ++i)
                    cost += weights[i] * (values[i] - mean) * (values[i] - mean);
                next[end] = std::min({next[end], best[begin] + cost, best[end]});
            }
        best = next;
    }
    return best[n];
}

TEST(OptimalClusters, CostIsTheLeast)
{
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        const auto n = static_cast<std::int64_t>(5 + seed * 7 % 50);
        auto values = elements(numbers(seed, n));
        std::sort(values.begin(), values.end());
        std::vector<double> weights = elements(numbers(seed + 500, n).abs().mul(9).add(1).floor());
        for (const std::int64_t k : {1, 2, 3, 5}) {
            const Clusters1d clusters = optimalClusters(values, weights, k);
            const double least = leastCost(values, weights, static_cast<std::size_t>(k));
            EXPECT_NEAR(costOf(values, weights, clusters), least, 1e-9) << "seed " << seed << ", k " << k;
            EXPECT_TRUE(std::is_sorted(clusters.centroids.begin(), clusters.centroids.end()));
        }
    }
}

TEST(OptimalClusters, AsManyClustersAsValues)
{
    const Clusters1d clusters = optimalClusters({-3, 0.5, 7}, {1, 2, 3}, 3);
    EXPECT_THAT(clusters.centroids, ElementsAre(-3, 0.5, 7));
    EXPECT_THAT(clusters.firstOfCluster, ElementsAre(0, 1, 2, 3));
}

TEST(OptimalClusters, FewDifferentValuesLeaveClustersEmpty)
{
    const Clusters1d clusters = optimalClusters({2, 2, 2, 2}, {1, 1, 1, 1}, 2);
    EXPECT_EQ(costOf({2, 2, 2, 2}, {1, 1, 1, 1}, clusters), 0);
    EXPECT_THAT(clusters.centroids, ElementsAre(0, 2));
}

// One bit per choice: boundaries far apart in a long row are found again.
TEST(OptimalClusters, LongRows)
{
    std::vector<double> values;
    for (int c = 0; c < 40; ++c)
        for (int i = 0; i < 500; ++i)
            values.push_back(c * 10.0 + i * 1e-4);
    const Clusters1d clusters = optimalClusters(values, std::vector<double>(values.size(), 1), 40);
    for (std::size_t c = 0; c < 40; ++c) {
        EXPECT_EQ(clusters.firstOfCluster[c], static_cast<std::int64_t>(c) * 500);
        EXPECT_NEAR(clusters.centroids[c], static_cast<double>(c) * 10 + 499 * 0.5e-4, 1e-9);
    }
}

TEST(Palette, RandomWeightsEqualThePeer)
{
    const auto &cases = peerSequences().at("palettes");
    ASSERT_EQ(cases.size(), 48U);
    for (const auto &c : cases) {
        SCOPED_TRACE("seed " + std::to_string(c.at("seed").get<int>()));
        PaletteSpec spec;
        spec.bits = c.at("bits");
        spec.fast = c.at("fast");
        spec.groupSize = c.at("group");
        spec.axis = spec.groupSize > 0 ? c.at("axis").get<int>() : 0;
        spec.perChannelScale = c.at("scaled");
        if (c.at("table") != "")
            spec.tableType = elementTypeFromName(c.at("table").get<std::string>());
        spec.tableSymmetric = c.at("table_scheme") == "symmetric";
        const auto shape = c.at("shape").get<std::vector<std::int64_t>>();
        const at::Tensor x = numbers(c.at("seed"), c10::multiply_integers(shape));
        const at::Tensor w = x.mul(x)
                                 .mul(x)
                                 .mul(c.at("size").get<double>())
                                 .reshape(shape)
                                 .to(c.at("dtype") == "float16"    ? at::kHalf
                                     : c.at("dtype") == "bfloat16" ? at::kBFloat16
                                                                   : at::kFloat);
        const Palette palette = need(palettize(w, spec));
        EXPECT_EQ(palette.table.sizes().vec(), c.at("lut_shape").get<std::vector<std::int64_t>>());
        EXPECT_EQ(hashOf(palette.table), c.at("lut_hash").get<std::string>());
        EXPECT_EQ(hashOf(palette.indices), c.at("indices_hash").get<std::string>());
        EXPECT_EQ(hashOf(reconstruct(palette, spec)), c.at("values_hash").get<std::string>());
    }
}

TEST(Palette, WeightsOfFewValuesAreKept)
{
    PaletteSpec spec;
    spec.bits = 2;
    const at::Tensor w = tensorOf({0.3F, -1e-6F, 0.3F, 0, 7, 7}).reshape({2, 3});
    const Palette palette = need(palettize(w, spec));
    EXPECT_EQ(palette.reused, 1);
    EXPECT_EQ(palette.erased, 0);
    EXPECT_THAT(elements(palette.table), ElementsAre(static_cast<double>(-1e-6F), 0, static_cast<double>(0.3F), 7));
    EXPECT_TRUE(reconstruct(palette, spec).equal(w));
}

TEST(Palette, ShorterTablesAreFilledWithTheirLastValue)
{
    PaletteSpec spec;
    spec.bits = 3;
    const Palette palette = need(palettize(tensorOf({1, 2, 1, 2}).reshape({2, 2}), spec));
    EXPECT_THAT(elements(palette.table), ElementsAre(1, 2, 2, 2, 2, 2, 2, 2));
}

TEST(Palette, FastModeErasesSmallWeightsAndSaysSo)
{
    PaletteSpec spec;
    spec.bits = 2;
    const at::Tensor w = numbers(7, 64).mul(1e-5).reshape({8, 8});
    const Palette fast = need(palettize(w, spec));
    EXPECT_EQ(fast.erased, 64);
    EXPECT_THAT(elements(fast.table), Each(0));
    const auto notes = paletteDefects(fast);
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_EQ(notes[0].defect, 6);
    EXPECT_THAT(notes[0].text, HasSubstr("64 of 64 weights"));
    EXPECT_THAT(notes[0].text, HasSubstr("nothing but 0"));
    spec.fast = false;
    const Palette exact = need(palettize(w, spec));
    EXPECT_EQ(exact.erased, 0);
    EXPECT_TRUE(paletteDefects(exact).empty());
    EXPECT_GT(snrDb(w, reconstruct(exact, spec)), 8);
}

TEST(Palette, GroupsAlongBothAxesOfAConvolution)
{
    for (const int axis : {0, 1}) {
        PaletteSpec spec;
        spec.bits = 3;
        spec.axis = axis;
        spec.groupSize = 2;
        const at::Tensor w = numbers(13, 4 * 6 * 3 * 3).reshape({4, 6, 3, 3});
        const Palette palette = need(palettize(w, spec));
        EXPECT_EQ(palette.groups, axis == 0 ? 2 : 3);
        const at::Tensor y = reconstruct(palette, spec);
        EXPECT_EQ(y.sizes(), w.sizes());
        // Each group alone gives the same values.
        PaletteSpec alone = spec;
        alone.groupSize = 0;
        for (std::int64_t g = 0; g < palette.groups; ++g) {
            const at::Tensor part = w.narrow(axis, 2 * g, 2).contiguous();
            EXPECT_TRUE(reconstruct(need(palettize(part, alone)), alone).equal(y.narrow(axis, 2 * g, 2)));
        }
    }
}

TEST(Palette, ReuseStopsAtTheFirstGroupThatNeedsClustering)
{
    PaletteSpec spec;
    spec.bits = 1;
    spec.groupSize = 1;
    at::Tensor w = numbers(17, 3 * 16).reshape({3, 16});
    w[0].fill_(0.123456F);
    w[2].fill_(0.123456F);
    const Palette palette = need(palettize(w, spec));
    EXPECT_EQ(palette.reused, 1);
    EXPECT_EQ(palette.clustered, 32);
    EXPECT_EQ(palette.table[0][0][0][0].item().toFloat(), 0.123456F);
    EXPECT_EQ(palette.table[2][0][0][0].item().toFloat(), 0.1235F); // rounded to four decimals on its way
}

TEST(Palette, ChannelScalesAndHalfTypes)
{
    PaletteSpec spec;
    spec.bits = 4;
    spec.perChannelScale = true;
    at::Tensor w = numbers(19, 4 * 64).reshape({4, 64});
    w[1].zero_();
    w[2].mul_(100);
    const Palette palette = need(palettize(w, spec));
    EXPECT_EQ(palette.channelScale.sizes().vec(), (std::vector<std::int64_t>{4, 1}));
    EXPECT_EQ(palette.channelScale[1].item().toFloat(), 1);
    EXPECT_EQ(palette.channelScale[2].item().toFloat(), w[2].abs().max().item().toFloat());
    EXPECT_GT(snrDb(w, reconstruct(palette, spec)), 18);
    for (const auto type : {at::kHalf, at::kBFloat16}) {
        const at::Tensor half = w.to(type);
        const at::Tensor y = reconstruct(need(palettize(half, spec)), spec);
        EXPECT_EQ(y.scalar_type(), type);
        EXPECT_GT(snrDb(half, y), 18);
    }
}

TEST(Palette, ManyWeightsAndBits)
{
    PaletteSpec spec;
    spec.bits = 8;
    const at::Tensor w = numbers(23, 1 << 20).reshape({1024, 1024});
    const Palette fast = need(palettize(w, spec));
    EXPECT_GT(snrDb(w, reconstruct(fast, spec)), 47);
    spec.bits = 4;
    spec.fast = false;
    const at::Tensor some = w.narrow(0, 0, 64).contiguous();
    EXPECT_GT(snrDb(some, reconstruct(need(palettize(some, spec)), spec)), 23.5);
}

TEST(Palette, StopsWhenAsked)
{
    std::stop_source source;
    source.request_stop();
    const auto stopped = palettize(numbers(29, 4096).reshape({64, 64}), PaletteSpec{}, source.get_token());
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::Cancelled);
}

TEST(Palette, RefusalsSayWhy)
{
    PaletteSpec spec;
    const auto refusal = [&](const at::Tensor &w) {
        const auto palette = palettize(w, spec);
        EXPECT_FALSE(palette);
        return palette ? "" : palette.error().message;
    };
    EXPECT_THAT(refusal(at::zeros({4})), HasSubstr("1 dimensions"));
    spec.groupSize = 3;
    EXPECT_THAT(refusal(at::zeros({4, 4})), HasSubstr("groups of 3 do not divide the 4 channels"));
    spec.groupSize = 0;
    EXPECT_THAT(refusal(at::full({2, 2}, std::numeric_limits<float>::infinity())), HasSubstr("not finite"));
    spec.bits = 9;
    EXPECT_THAT(refusal(at::zeros({2, 2})), HasSubstr("1 to 8 bits"));
}

} // namespace
} // namespace dblame

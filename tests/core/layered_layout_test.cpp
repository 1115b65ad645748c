// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/layered_layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/layered_internal.h"

namespace dblame
{
namespace
{

LayoutNode box(double width = 100, double height = 46)
{
    LayoutNode n;
    n.width = width;
    n.height = height;
    return n;
}

// Builds graphs the way a program does: add() returns the new node, which reads `from`.
struct Builder {
    LayoutInput in;
    std::int32_t add(std::initializer_list<std::int32_t> from = {}, LayoutNode node = box())
    {
        const auto id = static_cast<std::int32_t>(in.nodes.size());
        in.nodes.push_back(node);
        for (std::int32_t f : from)
            in.edges.push_back({f, id});
        return id;
    }
    std::int32_t weight()
    {
        LayoutNode n = box(60, 20);
        n.weight = true;
        return add({}, n);
    }
};

LayoutInput chain(int length)
{
    Builder b;
    std::int32_t v = b.add();
    for (int i = 1; i < length; ++i)
        v = b.add({v});
    return b.in;
}

LayoutInput residual(int blocks)
{
    Builder b;
    std::int32_t v = b.add();
    for (int i = 0; i < blocks; ++i) {
        const std::int32_t c1 = b.add({v}), r = b.add({c1}), c2 = b.add({r});
        v = b.add({c2, v});
    }
    return b.in;
}

LayoutInput attention(int blocks)
{
    Builder b;
    std::int32_t v = b.add();
    const std::int32_t mask = b.add();
    for (int i = 0; i < blocks; ++i) {
        const std::int32_t norm = b.add({v});
        const std::int32_t q = b.add({norm}), k = b.add({norm}), w = b.add({norm});
        const std::int32_t kt = b.add({k});
        const std::int32_t scores = b.add({q, kt}), masked = b.add({scores, mask}), soft = b.add({masked});
        const std::int32_t context = b.add({soft, w});
        v = b.add({b.add({context}), v});
    }
    return b.in;
}

LayoutInput unet(int depth)
{
    Builder b;
    std::vector<std::int32_t> skips;
    std::int32_t v = b.add();
    for (int i = 0; i < depth; ++i) {
        v = b.add({v});
        skips.push_back(v);
        v = b.add({v});
    }
    for (int i = depth; i-- > 0;) {
        const std::int32_t up = b.add({v});
        v = b.add({b.add({up, skips[i]})});
    }
    return b.in;
}

// As a converted model is: q -> dq after each operator, weights dequantized beside their readers, marks to keep
// room for.
LayoutInput quantized(int layers)
{
    Builder b;
    std::int32_t v = b.add();
    for (int i = 0; i < layers; ++i) {
        const std::int32_t q = b.add({v}, box(60, 24)), dq = b.add({q}, box(60, 24));
        const std::int32_t w = b.weight(), wdq = b.add({w}, box(60, 24));
        LayoutNode conv = box(96.0 + 8 * (i % 3));
        conv.leadIn = 26;
        conv.leadOut = 30;
        conv.sideRoom = 30;
        v = b.add({dq, wdq}, conv);
        b.in.edges[b.in.edges.size() - 2].mark = 20;
    }
    return b.in;
}

LayoutRect withRooms(const LayoutInput &in, const LayoutResult &r, std::size_t i, LayoutDirection direction)
{
    LayoutRect b = r.nodes[i];
    const LayoutNode &n = in.nodes[i];
    if (direction == LayoutDirection::LeftRight)
        return {b.x - n.leadIn, b.y - n.sideRoom, b.width + n.leadIn + n.leadOut, b.height + n.sideRoom};
    return {b.x - n.sideRoom, b.y - n.leadIn, b.width + n.sideRoom, b.height + n.leadIn + n.leadOut};
}

bool overlap(const LayoutRect &a, const LayoutRect &b)
{
    constexpr double kTouch = 1e-6;
    return a.x < b.right() - kTouch && b.x < a.right() - kTouch && a.y < b.bottom() - kTouch &&
           b.y < a.bottom() - kTouch;
}

// Nothing overlaps, everything lies inside, every edge joins the sides of its boxes, and in program order.
void expectSound(const LayoutInput &in, const LayoutResult &r, LayoutDirection direction)
{
    ASSERT_FALSE(r.cancelled);
    ASSERT_EQ(r.nodes.size(), in.nodes.size());
    ASSERT_EQ(r.edges.size(), in.edges.size());
    const bool lr = direction == LayoutDirection::LeftRight;
    std::vector<std::size_t> order(in.nodes.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = i;
    std::vector<LayoutRect> rects;
    for (std::size_t i = 0; i < in.nodes.size(); ++i) {
        EXPECT_EQ(r.nodes[i].width, in.nodes[i].width);
        EXPECT_EQ(r.nodes[i].height, in.nodes[i].height);
        rects.push_back(withRooms(in, r, i, direction));
        EXPECT_GE(rects.back().x, -1e-6);
        EXPECT_GE(rects.back().y, -1e-6);
        EXPECT_LE(rects.back().right(), r.width + 1e-6);
        EXPECT_LE(rects.back().bottom(), r.height + 1e-6);
    }
    // A sweep along x: only boxes whose x intervals meet are compared.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rects[a].x < rects[b].x; });
    for (std::size_t i = 0; i < order.size(); ++i)
        for (std::size_t j = i + 1; j < order.size() && rects[order[j]].x < rects[order[i]].right(); ++j)
            ASSERT_FALSE(overlap(rects[order[i]], rects[order[j]])) << order[i] << " and " << order[j];
    for (std::size_t e = 0; e < in.edges.size(); ++e) {
        const auto [from, to, mark] = in.edges[e];
        ASSERT_LT(r.layer[from], r.layer[to]) << from << " -> " << to;
        const LayoutRect a = r.nodes[from], b = r.nodes[to];
        const auto &path = r.edges[e];
        ASSERT_GE(path.size(), 2U);
        if (lr) {
            EXPECT_NEAR(path.front().x, a.right(), 1e-6);
            EXPECT_NEAR(path.back().x, b.x, 1e-6);
            EXPECT_GE(path.back().y, b.y - 1e-6);
            EXPECT_LE(path.back().y, b.bottom() + 1e-6);
            if (r.row[from] == r.row[to]) {
                EXPECT_LT(a.right(), b.x);
            }
        } else {
            EXPECT_NEAR(path.front().y, a.bottom(), 1e-6);
            EXPECT_NEAR(path.back().y, b.y, 1e-6);
            EXPECT_GE(path.back().x, b.x - 1e-6);
            EXPECT_LE(path.back().x, b.right() + 1e-6);
            if (r.row[from] == r.row[to]) {
                EXPECT_LT(a.bottom(), b.y);
            }
        }
        for (const LayoutPoint &p : path) {
            EXPECT_GE(p.x, -1e-6);
            EXPECT_GE(p.y, -1e-6);
            EXPECT_LE(p.x, r.width + 1e-6);
            EXPECT_LE(p.y, r.height + 1e-6);
        }
    }
}

// The straight parts of an edge pass through no box.
void expectLinesFree(const LayoutInput &in, const LayoutResult &r)
{
    for (std::size_t e = 0; e < in.edges.size(); ++e)
        for (std::size_t i = 0; i + 1 < r.edges[e].size(); ++i) {
            const LayoutPoint a = r.edges[e][i], b = r.edges[e][i + 1];
            if (a.x != b.x && a.y != b.y)
                continue;
            const LayoutRect line{std::min(a.x, b.x), std::min(a.y, b.y), std::abs(a.x - b.x), std::abs(a.y - b.y)};
            for (std::size_t v = 0; v < in.nodes.size(); ++v) {
                const LayoutRect &n = r.nodes[v];
                const bool meets = line.x < n.right() - 0.01 && n.x + 0.01 < line.right() + 1e-9 &&
                                   line.y < n.bottom() - 0.01 && n.y + 0.01 < line.bottom() + 1e-9;
                EXPECT_FALSE(meets) << "edge " << in.edges[e].from << " -> " << in.edges[e].to << " through " << v;
            }
        }
}

struct Shape {
    const char *name;
    LayoutInput input;
};

std::vector<Shape> shapes()
{
    return {{"one", chain(1)},           {"chain", chain(40)}, {"residual", residual(12)},
            {"attention", attention(6)}, {"unet", unet(6)},    {"quantized", quantized(20)}};
}

class LayoutShapes : public ::testing::TestWithParam<std::tuple<LayoutDirection, double>>
{
};

TEST_P(LayoutShapes, SoundAndTheSameEveryTime)
{
    LayoutOptions options;
    std::tie(options.direction, options.aspect) = GetParam();
    for (const Shape &shape : shapes()) {
        SCOPED_TRACE(shape.name);
        const LayoutResult r = layoutLayered(shape.input, options);
        expectSound(shape.input, r, options.direction);
        expectLinesFree(shape.input, r);
        const LayoutResult again = layoutLayered(shape.input, options);
        EXPECT_EQ(r.nodes, again.nodes);
        EXPECT_EQ(r.edges, again.edges);
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, LayoutShapes,
                         ::testing::Combine(::testing::Values(LayoutDirection::LeftRight, LayoutDirection::TopBottom),
                                            ::testing::Values(0.0, 2.0)));

TEST(LayeredLayout, NothingGivesNothing)
{
    const LayoutResult r = layoutLayered({}, {});
    EXPECT_FALSE(r.cancelled);
    EXPECT_TRUE(r.nodes.empty());
    EXPECT_EQ(r.width, 0);
    EXPECT_EQ(r.height, 0);
}

TEST(LayeredLayout, AChainIsALine)
{
    const LayoutInput in = chain(10);
    const LayoutResult r = layoutLayered(in, {});
    for (std::size_t i = 0; i < 10; ++i) {
        EXPECT_EQ(r.layer[i], static_cast<int>(i));
        EXPECT_EQ(r.nodes[i].y, r.nodes[0].y);
    }
    for (const auto &path : r.edges)
        EXPECT_EQ(path.size(), 2U); // straight: nothing between its ends
    EXPECT_EQ(r.crossings, 0);
    EXPECT_EQ(r.dummies, 0);
}

TEST(LayeredLayout, TheMainPathStaysStraightBesideSkipConnections)
{
    const LayoutInput in = residual(8);
    const LayoutResult r = layoutLayered(in, {});
    for (const LayoutRect &n : r.nodes)
        EXPECT_EQ(n.y, r.nodes[0].y);
    EXPECT_EQ(r.crossings, 0);
    EXPECT_EQ(r.dummies, 8 * 3);
}

TEST(LayeredLayout, SkipsOfAUNetNestWithoutCrossing)
{
    const LayoutResult r = layoutLayered(unet(6), {});
    EXPECT_EQ(r.crossings, 0);
}

TEST(LayeredLayout, WeightsStandBesideTheirReader)
{
    Builder b;
    std::int32_t v = b.add();
    std::vector<std::pair<std::int32_t, std::int32_t>> readers;
    for (int i = 0; i < 5; ++i) {
        const std::int32_t w = b.weight(), dq = b.add({w});
        v = b.add({v, dq});
        readers.emplace_back(dq, v);
        readers.emplace_back(w, dq);
    }
    const LayoutResult r = layoutLayered(b.in, {});
    for (const auto &[weight, reader] : readers)
        EXPECT_EQ(r.layer[weight] + 1, r.layer[reader]);
}

TEST(LayeredLayout, OneChainOfDummiesServesAllReadersOfAValue)
{
    Builder b;
    const std::int32_t shared = b.add();
    std::int32_t v = b.add({shared});
    for (int i = 0; i < 20; ++i)
        v = b.add({v, shared});
    const LayoutResult r = layoutLayered(b.in, {});
    EXPECT_EQ(r.dummies, 20);
}

TEST(LayeredLayout, LongEdgesTakeALane)
{
    Builder b;
    const std::int32_t first = b.add();
    std::int32_t v = first;
    for (int i = 0; i < 200; ++i)
        v = b.add({v});
    b.add({v, first});
    for (const double aspect : {0.0, 1.5, 4.0}) {
        LayoutOptions options;
        options.aspect = aspect;
        const LayoutResult r = layoutLayered(b.in, options);
        EXPECT_EQ(r.dummies, 0);
        expectSound(b.in, r, options.direction);
        expectLinesFree(b.in, r);
        if (aspect == 0) {
            // Below every box.
            double lowest = 0, deepest = 0;
            for (const LayoutRect &n : r.nodes)
                lowest = std::max(lowest, n.bottom());
            for (const LayoutPoint &p : r.edges.back())
                deepest = std::max(deepest, p.y);
            EXPECT_GT(deepest, lowest);
        }
    }
}

TEST(LayeredLayout, RowsComeNearTheAspectAskedFor)
{
    for (const double aspect : {1.0, 2.0, 4.0}) {
        LayoutOptions options;
        options.aspect = aspect;
        const LayoutInput in = residual(40);
        const LayoutResult r = layoutLayered(in, options);
        EXPECT_GT(r.row.back(), 0);
        EXPECT_GT(r.width / r.height, aspect * 0.6);
        EXPECT_LT(r.width / r.height, aspect * 1.7);
        // Rows are cut where one line passes, not inside a residual block.
        for (std::size_t i = 1; i + 4 <= in.nodes.size(); i += 4) {
            EXPECT_EQ(r.row[i], r.row[i + 3]);
        }
    }
}

TEST(LayeredLayout, CyclesOfCollapsedGroupsAreBrokenAndDrawn)
{
    Builder b;
    const std::int32_t x = b.add(), a = b.add({x}), c = b.add({a});
    b.in.edges.push_back({c, a});
    b.in.edges.push_back({a, a});
    const LayoutResult r = layoutLayered(b.in, {});
    EXPECT_LT(r.layer[x], r.layer[a]);
    EXPECT_LT(r.layer[a], r.layer[c]);
    EXPECT_NEAR(r.edges[2].front().x, r.nodes[c].x, 1e-6); // starts at c and runs back
    EXPECT_NEAR(r.edges[2].back().x, r.nodes[a].right(), 1e-6);
    EXPECT_TRUE(r.edges[3].empty());
}

TEST(LayeredLayout, OutlinesHoldTheirMembersAndNestApart)
{
    for (const auto direction : {LayoutDirection::LeftRight, LayoutDirection::TopBottom}) {
        Builder b;
        b.in.groups = {{-1}, {0}, {-1}};
        const auto in = [](std::int32_t group) {
            LayoutNode n = box();
            n.group = group;
            return n;
        };
        std::int32_t v = b.add();
        const std::int32_t p = b.add({v}, in(0)), q = b.add({p}, in(1)), r1 = b.add({q}, in(1)), s = b.add({p}, in(0));
        v = b.add({r1, s}, in(2));
        v = b.add({v}, in(2));
        LayoutOptions options;
        options.direction = direction;
        const LayoutResult r = layoutLayered(b.in, options);
        expectSound(b.in, r, direction);
        ASSERT_EQ(r.groups.size(), 3U);
        for (const auto &outlines : r.groups)
            ASSERT_EQ(outlines.size(), 1U);
        const auto holds = [](const LayoutRect &a, const LayoutRect &n) {
            return a.x < n.x && a.y < n.y && a.right() > n.right() && a.bottom() > n.bottom();
        };
        for (std::int32_t i : {p, q, r1, s})
            EXPECT_TRUE(holds(r.groups[0][0], r.nodes[i])) << i;
        for (std::int32_t i : {q, r1})
            EXPECT_TRUE(holds(r.groups[1][0], r.nodes[i])) << i;
        EXPECT_TRUE(holds(r.groups[0][0], r.groups[1][0]));
        EXPECT_FALSE(overlap(r.groups[1][0], r.nodes[s]));
        EXPECT_FALSE(overlap(r.groups[0][0], r.groups[2][0]));
    }
}

TEST(LayeredLayout, StopsWhenAskedTo)
{
    std::stop_source source;
    source.request_stop();
    EXPECT_TRUE(layoutLayered(residual(10), {}, source.get_token()).cancelled);
}

// Counted work, not time: twenty thousand nodes cost about ten times what two thousand cost.
TEST(LayeredLayout, WorkGrowsWithTheGraph)
{
    const auto perNode = [](const LayoutInput &in) {
        LayoutOptions options;
        options.aspect = 2;
        const LayoutResult r = layoutLayered(in, options);
        expectSound(in, r, options.direction);
        return static_cast<double>(r.work) / static_cast<double>(in.nodes.size());
    };
    struct Case {
        const char *name;
        LayoutInput small, large;
    };
    const std::vector<Case> cases = {{"chain", chain(2000), chain(20000)},
                                     {"residual", residual(500), residual(5000)},
                                     {"attention", attention(180), attention(1800)},
                                     {"quantized", quantized(400), quantized(4000)}};
    for (const Case &c : cases) {
        SCOPED_TRACE(c.name);
        EXPECT_GE(c.large.nodes.size(), 18000U);
        const double small = perNode(c.small), large = perNode(c.large);
        EXPECT_LT(large, 1.6 * small);
        EXPECT_LT(large, 600);
    }
}

TEST(LayeredLayout, AWideLayerIsNoTrap)
{
    Builder b;
    const std::int32_t x = b.add();
    std::vector<std::int32_t> middle;
    for (int i = 0; i < 10000; ++i)
        middle.push_back(b.add({x}));
    const std::int32_t out = b.add();
    for (std::int32_t m : middle)
        b.in.edges.push_back({m, out});
    const LayoutResult r = layoutLayered(b.in, {});
    EXPECT_EQ(r.crossings, 0);
    EXPECT_LT(static_cast<double>(r.work) / 10000, 200);
    expectSound(b.in, r, LayoutDirection::LeftRight);
}

TEST(PoolAdjacent, IsTheLeastSquaresSolution)
{
    // Two that want the same place share the way by weight.
    const std::vector<double> desired = {10, 10, 40}, weight = {1, 3, 1}, distance = {8, 8};
    std::vector<double> x(3);
    layered::poolAdjacent(desired, weight, distance, x);
    EXPECT_DOUBLE_EQ(x[0], 4);
    EXPECT_DOUBLE_EQ(x[1], 12);
    EXPECT_DOUBLE_EQ(x[2], 40);
    // No shift of any run of adjacent elements that keeps the distances makes it better.
    const std::vector<double> d2 = {5, 1, 9, 2, 2, 30, 12}, w2 = {1, 2, 1, 0.5, 4, 1, 1}, s2 = {3, 3, 1, 2, 6, 4};
    std::vector<double> y(d2.size());
    layered::poolAdjacent(d2, w2, s2, y);
    const auto cost = [&](const std::vector<double> &v) {
        double c = 0;
        for (std::size_t i = 0; i < v.size(); ++i)
            c += w2[i] * (v[i] - d2[i]) * (v[i] - d2[i]);
        return c;
    };
    const auto feasible = [&](const std::vector<double> &v) {
        for (std::size_t i = 0; i + 1 < v.size(); ++i)
            if (v[i + 1] - v[i] < s2[i] - 1e-9)
                return false;
        return true;
    };
    ASSERT_TRUE(feasible(y));
    for (std::size_t a = 0; a < y.size(); ++a)
        for (std::size_t b = a; b < y.size(); ++b)
            for (const double shift : {-0.5, -0.01, 0.01, 0.5}) {
                auto moved = y;
                for (std::size_t i = a; i <= b; ++i)
                    moved[i] += shift;
                if (feasible(moved)) {
                    EXPECT_GE(cost(moved), cost(y) - 1e-9) << a << ".." << b << " by " << shift;
                }
            }
}

} // namespace
} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_layout.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ui/graph_examples.h"

namespace dblame::ui
{
namespace
{

GraphLayoutRequest requestFor(const GraphDocumentPtr &document, GraphFlow flow)
{
    GraphLayoutRequest request;
    request.document = document;
    request.options.flow = flow;
    request.options.aspect = 2;
    return request;
}

QRectF hexagonAt(const QPointF &c)
{
    return {c.x() - kHexWidth, c.y() - kHexHeight, 2 * kHexWidth, 2 * kHexHeight};
}

// Boxes and hexagons are apart, and all of them inside the bounds.
void expectApart(const GraphLayoutResult &r)
{
    std::vector<QRectF> rects;
    for (const GraphItem &item : r.items)
        rects.push_back(item.rect);
    for (const GraphPlacedMark &mark : r.marks)
        rects.push_back(hexagonAt(mark.centre));
    for (std::size_t i = 0; i < rects.size(); ++i) {
        EXPECT_TRUE(r.bounds.contains(rects[i])) << i;
        for (std::size_t j = i + 1; j < rects.size(); ++j)
            EXPECT_FALSE(rects[i].intersects(rects[j])) << i << " and " << j;
    }
}

class GraphLayoutFlows : public ::testing::TestWithParam<GraphFlow>
{
};

TEST_P(GraphLayoutFlows, MarksHaveRoomBesideTheirBoxesAndOnTheirLines)
{
    for (const auto view : {GraphViewKind::Merged, GraphViewKind::Candidate}) {
        GraphOptions options;
        options.view = view;
        const auto document = buildGraph(pairOf(digitsNet(false), digitsNet(true)), options);
        const GraphLayoutResult r = layoutGraph(requestFor(document, GetParam()));
        ASSERT_FALSE(r.cancelled);
        EXPECT_EQ(r.items.size(), document->nodes.size());
        EXPECT_EQ(r.lines.size(), document->edges.size());
        if (view == GraphViewKind::Merged) {
            EXPECT_EQ(r.marks.size(), document->marks.size());
        }
        expectApart(r);
        for (const GraphLine &line : r.lines) {
            ASSERT_GE(line.points.size(), 2U);
            const QRectF from = r.items[line.from].rect.adjusted(-0.01, -0.01, 0.01, 0.01);
            const QRectF to = r.items[line.to].rect.adjusted(-0.01, -0.01, 0.01, 0.01);
            EXPECT_TRUE(from.contains(line.points.front()));
            EXPECT_TRUE(to.contains(line.points.back()));
        }
    }
}

// Every box and outline is apart from the others or inside them as the document says.
void expectOutlinesHoldTheirOwn(const GraphLayoutResult &r, const GraphDocument &document)
{
    for (const GraphOutline &outline : r.outlines)
        for (std::size_t n = 0; n < document.nodes.size(); ++n) {
            const QRectF &rect = r.items[r.itemOfNode[n]].rect;
            // In another row the group has another outline.
            EXPECT_TRUE(!outline.rect.intersects(rect) || document.groupHolds(outline.group, document.nodes[n].group))
                << document.nodes[n].label.toStdString() << " in " << document.groups[outline.group].path.toStdString();
            EXPECT_EQ(outline.rect.intersects(rect), outline.rect.contains(rect));
        }
}

TEST_P(GraphLayoutFlows, OutlinesHoldTheirOwnNodesInEveryView)
{
    const std::vector<OpenPairPtr> pairs{pairOf(digitsNet(false), digitsNet(true)),
                                         pairOf(residualNet(3, false), residualNet(3, true))};
    for (const OpenPairPtr &pair : pairs)
        for (const auto view : {GraphViewKind::Merged, GraphViewKind::Reference, GraphViewKind::Candidate})
            for (const bool inner : {false, true}) {
                GraphOptions options;
                options.view = view;
                options.innerNodes = inner;
                const auto document = buildGraph(pair, options);
                const GraphLayoutResult r = layoutGraph(requestFor(document, GetParam()));
                expectApart(r);
                expectOutlinesHoldTheirOwn(r, *document);
            }
}

INSTANTIATE_TEST_SUITE_P(Flows, GraphLayoutFlows,
                         ::testing::Values(GraphFlow::Rows, GraphFlow::Columns, GraphFlow::LeftRight,
                                           GraphFlow::TopBottom));

TEST(GraphLayout, HexagonsOfInputSitesStandOnTheLineJustBeforeTheBox)
{
    const auto document = buildGraph(pairOf(digitsNet(false), digitsNet(true)), {});
    const GraphLayoutResult r = layoutGraph(requestFor(document, GraphFlow::LeftRight));
    int inputs = 0;
    for (const GraphPlacedMark &placed : r.marks) {
        const GraphMark &mark = document->marks[placed.mark];
        const QRectF &rect = r.items[placed.item].rect;
        if (mark.place == GraphMark::Place::In) {
            ++inputs;
            EXPECT_LT(placed.centre.x() + kHexWidth, rect.left());
            EXPECT_GT(placed.centre.x() + kHexWidth, rect.left() - 10);
        } else if (mark.place == GraphMark::Place::Out) {
            EXPECT_GT(placed.centre.x() - kHexWidth, rect.right());
            EXPECT_EQ(placed.centre.y(), rect.center().y());
        } else {
            EXPECT_LT(placed.centre.y() + kHexHeight, rect.top());
            EXPECT_EQ(placed.centre.x(), rect.center().x());
        }
    }
    EXPECT_EQ(inputs, 1); // the graph input's site belongs to its reader
}

// Skip connections go around the main path, which stays straight however many blocks follow each other.
TEST(GraphLayout, ChainsOfResidualBlocksDoNotDrift)
{
    const auto document = buildGraph(pairOf(residualNet(24, false), residualNet(24, true)), {});
    for (const GraphFlow flow : {GraphFlow::Rows, GraphFlow::LeftRight}) {
        const GraphLayoutResult r = layoutGraph(requestFor(document, flow));
        std::map<int, std::pair<double, double>> rows; // lowest and highest middle of a box
        double before = -1;
        int row = 0;
        for (std::size_t i = 0; i < r.items.size(); ++i) {
            const QRectF &rect = r.items[i].rect;
            if (rect.left() < before)
                ++row;
            before = rect.left();
            const double y = rect.center().y();
            auto &[low, high] = rows.try_emplace(row, y, y).first->second;
            low = std::min(low, y);
            high = std::max(high, y);
        }
        for (const auto &[number, range] : rows)
            EXPECT_LE(range.second - range.first, 40) << "row " << number;
    }
}

TEST(GraphLayout, ACollapsedGroupIsOneBoxAndItsLinesMeetThere)
{
    const auto document = buildGraph(pairOf(digitsNet(false), digitsNet(true)), {});
    std::int32_t block = -1;
    for (std::size_t g = 0; g < document->groups.size(); ++g)
        if (document->groups[g].path == QLatin1String("block"))
            block = static_cast<std::int32_t>(g);
    ASSERT_GE(block, 0);
    GraphLayoutRequest request = requestFor(document, GraphFlow::Rows);
    request.options.collapsed = {block};
    const GraphLayoutResult r = layoutGraph(request);
    // block.conv1, block.conv2, two relus and the addition become one.
    EXPECT_EQ(r.items.size(), document->nodes.size() - 4);
    EXPECT_EQ(r.items.size(), visibleCount(*document, {block}));
    std::int32_t box = -1;
    for (std::size_t i = 0; i < r.items.size(); ++i)
        if (r.items[i].group == block)
            box = static_cast<std::int32_t>(i);
    ASSERT_GE(box, 0);
    int in = 0, out = 0;
    for (const GraphLine &line : r.lines) {
        in += line.to == box ? 1 : 0;
        out += line.from == box ? 1 : 0;
        EXPECT_NE(line.from, line.to);
    }
    EXPECT_EQ(in, 1);  // pool1, once
    EXPECT_EQ(out, 1); // pool2
    for (const GraphOutline &outline : r.outlines)
        EXPECT_NE(outline.group, block);
    expectApart(r);
}

TEST(GraphLayout, LinesAreCurvesWhereTheyMoveAsideAndRoundTheirCorners)
{
    const QPainterPath curve = linePath({{0, 0}, {40, 30}}, false);
    ASSERT_EQ(curve.elementCount(), 4);
    EXPECT_EQ(QPointF(curve.elementAt(1)), QPointF(20, 0));
    EXPECT_EQ(QPointF(curve.elementAt(2)), QPointF(20, 30));
    const QPainterPath down = linePath({{0, 0}, {40, 30}}, true);
    EXPECT_EQ(QPointF(down.elementAt(1)), QPointF(0, 15));
    const QPainterPath corner = linePath({{0, 0}, {40, 0}, {40, 30}}, false);
    EXPECT_FALSE(corner.contains({40, 0}));
    EXPECT_EQ(corner.currentPosition(), QPointF(40, 30));
    EXPECT_TRUE(linePath({}, false).isEmpty());
}

TEST(GraphLayout, StopsWhenAskedTo)
{
    const auto document = buildGraph(pairOf(residualNet(40, false), residualNet(40, true)), {});
    std::stop_source source;
    source.request_stop();
    EXPECT_TRUE(layoutGraph(requestFor(document, GraphFlow::Rows), source.get_token()).cancelled);
}

} // namespace
} // namespace dblame::ui

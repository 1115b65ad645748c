// SPDX-License-Identifier: GPL-3.0-or-later
//
// From a document to positions: which boxes are to be seen (collapsed groups stand for their members), their
// sizes with room for marks, and where everything goes. Pure; the window runs it on the engine thread for large
// graphs.
#pragma once

#include <memory>
#include <set>
#include <stop_token>
#include <vector>

#include <QPainterPath>
#include <QPointF>
#include <QRectF>

#include "core/layered_layout.h"
#include "ui/graph_document.h"

namespace dblame::ui
{

// Rows: left to right, wrapped like text; Columns: top to bottom, wrapped like a newspaper.
enum class GraphFlow { Rows, Columns, LeftRight, TopBottom };

struct GraphLayoutOptions {
    GraphFlow flow = GraphFlow::Rows;
    double aspect = 2;                // width / height of the space to fill (Rows, Columns)
    std::set<std::int32_t> collapsed; // groups drawn as one box
    // Widths in pixels of the letters of the first and second line; those that are not in the tables are as wide as
    // nameChar, detailChar. Measured by whoever asks, for the layout runs on any thread.
    std::vector<float> nameWidths, detailWidths;
    double nameChar = 7.2, detailChar = 6.3;
    double lineHeight = 15;
};

// A box to be seen: a node, or a collapsed group.
struct GraphItem {
    std::int32_t node = -1;  // into the document
    std::int32_t group = -1; // collapsed group, where node is -1
    QRectF rect;
};

struct GraphLine {                 // one per pair of joined items
    std::int32_t from = 0, to = 0; // items
    std::vector<QPointF> points;   // as LayoutResult::edges
};

struct GraphPlacedMark {
    std::int32_t mark = 0; // into the document
    std::int32_t item = 0; // beside which it stands
    QPointF centre;
};

struct GraphOutline {
    std::int32_t group = 0;
    QRectF rect;
    bool first = false; // of its group: carries the name
};

struct GraphLayoutResult {
    GraphDocumentPtr document;
    GraphLayoutOptions options;
    std::vector<GraphItem> items;
    std::vector<std::int32_t> itemOfNode; // per node: its box, or the box of the collapsed group it is in
    std::vector<GraphLine> lines;
    std::vector<GraphPlacedMark> marks;
    std::vector<GraphOutline> outlines; // outer before inner
    QRectF bounds;
    std::uint64_t request = 0; // GraphLayoutRequest::serial
    bool cancelled = false;
    bool downwards = false; // flow is top to bottom
};

struct GraphLayoutRequest {
    // Null: to be built from `pair` and `graph`, with groups collapsed until at most `openBoxes` are to be seen.
    GraphDocumentPtr document;
    OpenPairPtr pair;
    GraphOptions graph;
    std::size_t openBoxes = 0;
    GraphLayoutOptions options;
    std::uint64_t serial = 0;
};

// Half extents of a hexagon.
constexpr double kHexWidth = 11, kHexHeight = 9;

// The result carries the document and the collapsed groups that were used.
[[nodiscard]] GraphLayoutResult layoutGraph(GraphLayoutRequest request, std::stop_token stop = {});
// How many boxes are to be seen with these groups collapsed.
[[nodiscard]] std::size_t visibleCount(const GraphDocument &document, const std::set<std::int32_t> &collapsed);
// Groups to collapse, deepest first, until at most `limit` boxes are to be seen (or only top groups are left).
[[nodiscard]] std::set<std::int32_t> groupsToCollapse(const GraphDocument &document, std::size_t limit);
// The line as drawn: curves along the flow, rounded corners.
[[nodiscard]] QPainterPath linePath(const std::vector<QPointF> &points, bool downwards);

} // namespace dblame::ui

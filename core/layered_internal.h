// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the steps of layered_layout hand to each other. Coordinates are (flow, cross): flow runs with the
// layers, cross along them; only layered_route.cpp knows which of the two is x.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/layered_layout.h"

namespace dblame::layered
{

using Index = std::int32_t;

struct Link {
    Index from = 0, to = 0; // vertices of adjacent layers
    friend auto operator<=>(const Link &, const Link &) = default;
};

// Neighbours of each vertex in one direction, compressed.
struct Neighbours {
    std::vector<Index> start, items;
    [[nodiscard]] std::span<const Index> of(Index v) const
    {
        const auto b = static_cast<std::size_t>(start[v]);
        return {items.data() + b, static_cast<std::size_t>(start[v + 1]) - b};
    }
};

// An input edge in the layered graph. Edges of broken cycles run backwards: from and to are swapped.
struct Route {
    Index from = -1, to = -1; // -1: not drawn (a self-loop)
    bool reversed = false;
    bool lane = false; // too long for a chain of dummies
};

// The layered graph: vertices 0..real-1 are the input's nodes, the rest dummies.
struct Layered {
    const LayoutInput &input;
    const LayoutOptions &options;
    std::stop_token stop;
    Index real = 0;

    std::vector<Index> topological;
    std::vector<Index> layerOf;
    std::vector<Index> groupOf;              // innermost group; a dummy's is the one that encloses its whole edge
    std::vector<Index> chainStart, chainEnd; // per node: its dummies, one per layer after it
    std::vector<Route> routes;               // per input edge
    std::vector<Link> links;                 // sorted
    Neighbours up, down;

    std::vector<std::vector<Index>> layers;
    std::vector<Index> position;       // within its layer
    std::vector<double> before, after; // extent across the flow on both sides of the port
    std::vector<double> cross;         // of the port
    std::int64_t crossings = 0;
    std::int64_t work = 0;

    Layered(const LayoutInput &in, const LayoutOptions &opt, std::stop_token token)
        : input(in), options(opt), stop(std::move(token)), real(static_cast<Index>(in.nodes.size()))
    {
    }
    [[nodiscard]] bool leftRight() const { return options.direction == LayoutDirection::LeftRight; }
    [[nodiscard]] bool isDummy(Index v) const { return v >= real; }
    [[nodiscard]] Index vertexCount() const { return static_cast<Index>(layerOf.size()); }
    [[nodiscard]] double flowSize(Index v) const { return leftRight() ? input.nodes[v].width : input.nodes[v].height; }
    [[nodiscard]] double crossSize(Index v) const { return leftRight() ? input.nodes[v].height : input.nodes[v].width; }
    // The vertex that carries an edge's line in layer `layer`, between its two ends.
    [[nodiscard]] Index carrier(Index source, Index layer) const
    {
        return layer == layerOf[source] ? source : chainStart[source] + (layer - layerOf[source] - 1);
    }
    [[nodiscard]] Index commonGroup(Index a, Index b) const;
    // Groups to leave on the way from group a to group b.
    [[nodiscard]] int groupsLeft(Index a, Index b) const;

    std::vector<Index> groupDepth;
};

struct Extent {
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
    void add(double a, double b)
    {
        low = std::min(low, a);
        high = std::max(high, b);
    }
    [[nodiscard]] bool empty() const { return low > high; }
};

struct Row {
    Index first = 0, last = 0; // layers
    double length = 0;
    Extent cross; // of what is in it, before the shift
    double shift = 0;
    double start = 0, end = 0; // of its boxes and outlines, along the flow
};

// Where layers and rows lie along the flow, and the outlines of groups in row coordinates.
struct RowPlan {
    std::vector<double> leadIn, body, gap; // per layer; the gap is the one after it
    std::vector<double> start;             // of a layer within its row
    std::vector<Index> rowOf;              // per layer
    std::vector<Row> rows;
    std::vector<std::vector<std::pair<Index, LayoutRect>>> outlines; // per group: row and rectangle
    [[nodiscard]] double thickness(Index k) const { return leadIn[k] + body[k]; }
    [[nodiscard]] double end(Index k) const { return start[k] + thickness(k); }
};

constexpr double kGutterPad = 10; // between a gutter's lanes and the rows beside it

// Step 6, first half. There is at least one layer.
[[nodiscard]] RowPlan planRows(Layered &g);

// Each false when stopped.
[[nodiscard]] bool assignLayers(Layered &g);                     // steps 1 to 3
[[nodiscard]] bool orderLayers(Layered &g);                      // step 4
[[nodiscard]] bool placeAcross(Layered &g);                      // step 5
[[nodiscard]] bool placeAlong(Layered &g, LayoutResult &result); // step 6 and the edges' paths

// The x that minimises sum weight (x - desired)^2 with x[i+1] - x[i] >= distance[i]; n - 1 distances.
void poolAdjacent(std::span<const double> desired, std::span<const double> weight, std::span<const double> distance,
                  std::span<double> x);

} // namespace dblame::layered

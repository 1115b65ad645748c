// SPDX-License-Identifier: GPL-3.0-or-later
//
// Places a directed graph in layers. A pure function of its arguments: no clock, no random numbers, no
// pointers in any order; safe on every thread.
//
// The steps, each linear or n log n in nodes + links:
//  1. Cycles (there are none in a program, but a collapsed group can close one) are broken at the node that
//     comes first in the input's order.
//  2. Longest-path layering; what depends on weights alone is pulled next to its reader.
//  3. An edge over several layers becomes a chain of dummies, one chain per source shared by all its edges.
//     Edges longer than LayoutOptions::longestChain take a lane beside the drawing instead: one mask that every
//     block reads would otherwise cost blocks x layers dummies.
//  4. Barycenter sweeps, the order with the fewest crossings wins; stops when sweeps bring nothing.
//  5. Positions across the flow: each layer wants to stand where its neighbours are, least squares under
//     minimum distances, solved exactly by pooling adjacent violators. Nodes weigh a thousand times more than
//     dummies: the main path stays straight and skip connections go around it.
//  6. With an aspect ratio given, a drawing much longer than that is cut into rows, like lines of text.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

namespace dblame
{

struct LayoutPoint {
    double x = 0, y = 0;
    friend bool operator==(const LayoutPoint &, const LayoutPoint &) = default;
};

struct LayoutRect {
    double x = 0, y = 0, width = 0, height = 0;
    [[nodiscard]] double right() const { return x + width; }
    [[nodiscard]] double bottom() const { return y + height; }
    friend bool operator==(const LayoutRect &, const LayoutRect &) = default;
};

// Sizes in pixels. `leadIn`, `leadOut` and `sideRoom` are kept free beside the box for marks: before it and
// after it in the direction of flow, and on its left (top-bottom) or top (left-right).
struct LayoutNode {
    double width = 0, height = 0;
    double leadIn = 0, leadOut = 0, sideRoom = 0;
    bool weight = false;     // a source that is pulled next to its reader
    std::int32_t group = -1; // innermost group, into LayoutInput::groups
};

struct LayoutEdge {
    std::int32_t from = 0, to = 0; // into LayoutInput::nodes; self-loops and repeats are allowed
    double mark = 0;               // extent across the flow of a mark where the edge arrives; 0: none
};

struct LayoutGroup {
    std::int32_t parent = -1; // comes before its children
};

struct LayoutInput {
    std::vector<LayoutNode> nodes; // in execution order
    std::vector<LayoutEdge> edges;
    std::vector<LayoutGroup> groups;
};

enum class LayoutDirection { TopBottom, LeftRight };

struct LayoutOptions {
    LayoutDirection direction = LayoutDirection::LeftRight;
    double layerGap = 22;   // between layers
    double nodeGap = 18;    // between nodes of a layer
    double edgeGap = 9;     // between parallel edges
    double groupPad = 9;    // between the outlines of nested groups
    double groupLabel = 15; // room for a group's name at the top of its outline
    int longestChain = 64;  // layers that an edge may cross as a chain of dummies
    int sweeps = 24;        // of the ordering, at most
    double aspect = 0;      // length of a row / height of all rows; 0: one row
};

struct LayoutResult {
    std::vector<LayoutRect> nodes;   // the boxes, without the rooms for marks
    std::vector<std::int32_t> layer; // per node
    std::vector<std::int32_t> row;   // per node: which row its layer is in
    // Per edge, from box to box. Two points that differ in both coordinates are joined by a curve that leaves
    // and arrives in the direction of flow; all others by a straight line.
    std::vector<std::vector<LayoutPoint>> edges;
    std::vector<std::vector<LayoutRect>> groups; // per group: one outline per row it is in
    double width = 0, height = 0;                // everything lies in 0..width, 0..height
    std::int64_t crossings = 0;
    std::int64_t dummies = 0;
    std::int64_t work = 0;  // nodes and links visited, for tests of how the work grows
    bool cancelled = false; // the stop token was set: the rest is unspecified
};

[[nodiscard]] LayoutResult layoutLayered(const LayoutInput &input, const LayoutOptions &options,
                                         std::stop_token stop = {});

} // namespace dblame

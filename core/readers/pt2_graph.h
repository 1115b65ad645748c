// SPDX-License-Identifier: GPL-3.0-or-later
//
// The graph_module of an exported program (JSON, schema 8) as a Graph.
#pragma once

#include <string>
#include <vector>

#include "core/graph.h"
#include "core/readers/json_text.h"

namespace dblame
{

struct Pt2Graph {
    Graph graph;
    // Per node: what in its arguments cannot be carried ("argument kind as_future is unknown"); else empty.
    std::vector<std::string> faults;
    std::vector<std::string> notes;
};

// Throws ReadError for what makes the graph as a whole unusable: undefined or doubly defined values, wrong
// counts, fields that are missing or of another kind. The message names node, input or output.
[[nodiscard]] Pt2Graph readPt2Graph(const Json &graphModule, const ReadControl *control);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The parts of buildGraph: nodes and edges of one graph (GraphBuilder), the marks of the merged view
// (graph_marks.cpp), module groups (graph_groups.cpp).
#pragma once

#include <map>
#include <unordered_map>

#include "core/graph.h"
#include "ui/graph_document.h"

namespace dblame::ui
{

// One side of the pair while the document is made. `ofValue` and `ofNode` say which drawn node stands for a
// value or an operator; hidden ones stand behind the drawn node that their first input comes from.
struct GraphSide {
    Side side;
    const Graph &graph;
    std::vector<std::int32_t> ofValue, ofNode;
    std::vector<char> depends;           // on a user input
    std::vector<std::int32_t> unmatched; // per value: into Alignment::unmatched, or -1
    GraphSide(Side which, const Graph &g, const Alignment &alignment);
};

class GraphBuilder
{
public:
    GraphBuilder(GraphDocument &document) : m_doc(document) {}
    void merged();
    void single(Side side);

private:
    [[nodiscard]] const Alignment &alignment() const { return m_doc.pair->alignment; }
    std::int32_t addInput(GraphSide &side, const GraphInput &input);
    std::int32_t addOperator(GraphSide &side, NodeId id);
    std::int32_t addNode(GraphNode node);
    void addEdge(std::int32_t from, std::int32_t to);
    void addInputs(GraphSide &side);
    void addEdges(GraphSide &side, NodeId id);
    void standBehind(GraphSide &side, NodeId id); // a hidden operator
    void nameNodes();
    void numberInstances();

    // Merged view
    void mergeReference(GraphSide &ref);
    void mergeCandidate(GraphSide &cand, const GraphSide &ref);
    void placeMarks(const GraphSide &cand);
    void placeMark(const GraphSide &cand, SiteId id);
    [[nodiscard]] std::int32_t drawnOwner(const GraphSide &cand, NodeId owner) const;

    // Single views
    std::int32_t addSite(GraphSide &side, NodeId id, const SiteTable &sites, SiteId site, bool whole);

    GraphDocument &m_doc;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> m_edgeOf;
};

// Fills groups and GraphNode::group from the module frames; only groups that hold two nodes or more, and of
// nested groups that hold the same nodes only one.
void groupByModule(GraphDocument &document);

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The graph as coreai-opt walks it: one entry per FX node, results of several values taken apart, parameters and inputs
// as nodes, and the questions its placement asks. Built once per placement; holds a reference to the graph.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph.h"

namespace dblame
{

enum class FxKind : std::uint8_t {
    Input,
    State, // a parameter, buffer or constant
    Call,
    Item, // one of several results of a call
    Output,
};

struct FxNode {
    FxKind kind = FxKind::Call;
    NodeId node;             // Call
    ValueId value;           // the result; invalid for a call of several results, and for Output
    std::vector<int> inputs; // distinct, in order of the arguments
    std::vector<int> users;  // distinct, in graph order
};

class CoreAiGraph
{
public:
    explicit CoreAiGraph(const Graph &graph);

    [[nodiscard]] const Graph &graph() const { return m_graph; }
    [[nodiscard]] const std::vector<FxNode> &nodes() const { return m_nodes; }
    [[nodiscard]] const FxNode &at(int i) const { return m_nodes[static_cast<std::size_t>(i)]; }
    [[nodiscard]] int size() const { return static_cast<int>(m_nodes.size()); }
    [[nodiscard]] int ofNode(NodeId node) const { return m_ofNode[node.get()]; }
    [[nodiscard]] int ofValue(ValueId value) const { return m_ofValue[value.get()]; } // -1: an unused constant

    [[nodiscard]] bool isCall(int i) const { return at(i).kind == FxKind::Call; }
    [[nodiscard]] bool isState(int i) const;
    // Position of `producer` among the inputs of `consumer`, or -1.
    [[nodiscard]] int inputIndex(int consumer, int producer) const;
    [[nodiscard]] const std::string &target(int i) const; // "" unless a call
    // The operator's type: the part of torch_fn after its dot ("add" of "add_1;method_descriptor.add"); "" without.
    [[nodiscard]] std::string_view opType(int i) const;
    [[nodiscard]] std::string_view name(int i) const; // of a call's node

    [[nodiscard]] bool isFloat(int i) const;
    // A floating tensor known to have at most one element: never quantized.
    [[nodiscard]] bool isSingleElement(int i) const;
    [[nodiscard]] std::optional<int> rank(int i) const;
    [[nodiscard]] std::vector<std::int64_t> shape(int i) const; // -1: symbolic

    // Every name by which a module of the model knows this parameter ("weight"): tied parameters have several.
    [[nodiscard]] const std::vector<std::string> &localNames(int state) const;
    // The paths of the modules that own it.
    [[nodiscard]] const std::vector<std::string> &owners(int state) const;

private:
    const Graph &m_graph;
    std::vector<FxNode> m_nodes;
    std::vector<int> m_ofNode;
    std::vector<int> m_ofValue;
    std::vector<std::vector<std::string>> m_localNames; // by entry; states only
    std::vector<std::vector<std::string>> m_owners;
};

} // namespace dblame

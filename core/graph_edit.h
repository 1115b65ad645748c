// SPDX-License-Identifier: GPL-3.0-or-later
//
// Changes to a graph, on a copy: nodes put before or after others, reads turned to other values, nodes taken out.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/graph.h"

namespace dblame
{

// A deep copy, indexed.
[[nodiscard]] Graph cloneGraph(const Graph &graph);

// Ids of the original stay valid until finish(); values and nodes that are added get ids behind them.
class GraphEdit
{
public:
    explicit GraphEdit(const Graph &graph);

    // The working copy: for reading, and for changing arguments of nodes in place.
    [[nodiscard]] Graph &graph() { return m_graph; }
    [[nodiscard]] const Graph &graph() const { return m_graph; }

    // A graph input behind the others. The name is made unique.
    ValueId addInput(InputKind kind, std::string target, const std::string &name, std::optional<TensorMeta> meta);
    // A node with one result, named as the node; the name is made unique. Several nodes at one place stand in the order
    // of the calls. An invalid place: before everything.
    ValueId addBefore(NodeId place, Node node, std::optional<TensorMeta> meta);
    ValueId addAfter(NodeId place, Node node, std::optional<TensorMeta> meta);
    // The node goes; its results must not be read any more by finish().
    void remove(NodeId node);
    // Reads of `from` become reads of `to`: by one node, or by all nodes and the graph's outputs.
    void replaceReads(ValueId from, ValueId to, NodeId reader);
    void replaceAllReads(ValueId from, ValueId to);
    void replaceOutputs(ValueId from, ValueId to);

    struct Finished {
        Graph graph;                // indexed
        std::vector<ValueId> value; // per value of the working copy: its id now; invalid when it is gone
        std::vector<NodeId> node;   // the same for nodes
    };
    // The result. Graph inputs that nothing reads any more stay.
    [[nodiscard]] Finished finish() &&;

private:
    ValueId add(std::int64_t place, Node node, std::optional<TensorMeta> meta);
    [[nodiscard]] std::string unique(const std::string &name);

    Graph m_graph;
    std::vector<std::int64_t> m_place; // per node: its place in the order; equal places keep the order of ids
    std::vector<char> m_removed;
    std::unordered_set<std::string> m_addedNames;
};

// Turns every value id in an argument into another.
template <class F>
void mapValues(Argument &argument, const F &to)
{
    if (auto *one = std::get_if<ValueId>(&argument)) {
        *one = to(*one);
    } else if (auto *list = std::get_if<ValueListArg>(&argument)) {
        for (auto &v : list->values)
            if (v)
                *v = to(*v);
    } else if (auto *nested = std::get_if<NestedValueListArg>(&argument)) {
        for (auto &inner : nested->values)
            for (ValueId &v : inner)
                v = to(v);
    } else if (auto *ints = std::get_if<IntListArg>(&argument)) {
        for (auto &v : ints->values)
            if (auto *id = std::get_if<ValueId>(&v))
                *id = to(*id);
    } else if (auto *bools = std::get_if<BoolListArg>(&argument)) {
        for (auto &v : bools->values)
            if (auto *id = std::get_if<ValueId>(&v))
                *id = to(*id);
    }
}

} // namespace dblame

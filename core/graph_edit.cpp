// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/graph_edit.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace dblame
{

namespace
{

// Places of the nodes of the original: three for each, so that there is room before and behind.
constexpr std::int64_t kStride = 3;

std::int64_t ownPlace(NodeId node)
{
    return static_cast<std::int64_t>(node.get()) * kStride + 1;
}

template <class F>
void eachOutput(NodeOutput &output, const F &f)
{
    if (auto *one = std::get_if<ValueId>(&output))
        f(*one);
    else if (auto *list = std::get_if<std::vector<ValueId>>(&output))
        for (ValueId &v : *list)
            f(v);
}

} // namespace

Graph cloneGraph(const Graph &graph)
{
    Graph copy;
    copy.values = graph.values;
    copy.nodes = graph.nodes;
    copy.inputs = graph.inputs;
    copy.outputs = graph.outputs;
    copy.subgraphNames = graph.subgraphNames;
    for (const auto &sub : graph.subgraphs)
        copy.subgraphs.push_back(std::make_unique<Graph>(cloneGraph(*sub)));
    copy.index();
    return copy;
}

GraphEdit::GraphEdit(const Graph &graph) : m_graph(cloneGraph(graph)), m_removed(graph.nodes.size(), 0)
{
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        m_place.push_back(ownPlace(NodeId(i)));
}

std::string GraphEdit::unique(const std::string &name)
{
    const auto taken = [this](const std::string &text) {
        return m_graph.find(text).valid() || m_graph.findNode(text).valid() || m_addedNames.contains(text);
    };
    std::string text = name;
    for (int k = 1; taken(text); ++k)
        text = name + "_" + std::to_string(k);
    m_addedNames.insert(text);
    return text;
}

ValueId GraphEdit::addInput(InputKind kind, std::string target, const std::string &name, std::optional<TensorMeta> meta)
{
    const ValueId value(m_graph.values.size());
    m_graph.values.push_back({unique(name), NodeId{}, 0, std::move(meta)});
    GraphInput input;
    input.kind = kind;
    input.value = value;
    input.target = std::move(target);
    m_graph.inputs.push_back(std::move(input));
    return value;
}

ValueId GraphEdit::add(std::int64_t place, Node node, std::optional<TensorMeta> meta)
{
    const ValueId value(m_graph.values.size());
    const NodeId id(m_graph.nodes.size());
    node.name = unique(node.name);
    node.outputs = {value};
    m_graph.values.push_back({node.name, id, 0, std::move(meta)});
    m_graph.nodes.push_back(std::move(node));
    m_place.push_back(place);
    m_removed.push_back(0);
    return value;
}

ValueId GraphEdit::addBefore(NodeId place, Node node, std::optional<TensorMeta> meta)
{
    return add(place.valid() ? m_place[place.get()] - 1 : -1, std::move(node), std::move(meta));
}

ValueId GraphEdit::addAfter(NodeId place, Node node, std::optional<TensorMeta> meta)
{
    return add(place.valid() ? m_place[place.get()] + 1 : -1, std::move(node), std::move(meta));
}

void GraphEdit::remove(NodeId node)
{
    m_removed[node.get()] = 1;
}

void GraphEdit::replaceReads(ValueId from, ValueId to, NodeId reader)
{
    for (NamedArgument &argument : m_graph.nodes[reader.get()].inputs)
        mapValues(argument.value, [&](ValueId v) { return v == from ? to : v; });
}

void GraphEdit::replaceAllReads(ValueId from, ValueId to)
{
    for (std::size_t i = 0; i < m_graph.nodes.size(); ++i)
        replaceReads(from, to, NodeId(i));
    replaceOutputs(from, to);
}

void GraphEdit::replaceOutputs(ValueId from, ValueId to)
{
    for (GraphOutput &output : m_graph.outputs)
        if (output.value == from)
            output.value = to;
}

GraphEdit::Finished GraphEdit::finish() &&
{
    Finished result;
    std::vector<std::size_t> order(m_graph.nodes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return m_place[a] < m_place[b]; });
    result.node.resize(m_graph.nodes.size());
    result.value.resize(m_graph.values.size());

    const auto keep = [&](ValueId &old) {
        ValueId &known = result.value[old.get()];
        if (!known.valid()) {
            known = ValueId(result.graph.values.size());
            result.graph.values.push_back(std::move(m_graph.values[old.get()]));
        }
        old = known;
    };
    for (GraphInput &input : m_graph.inputs)
        if (input.value.valid())
            keep(input.value);
    for (const std::size_t i : order) {
        if (m_removed[i] != 0)
            continue;
        Node &node = m_graph.nodes[i];
        const NodeId id(result.graph.nodes.size());
        result.node[i] = id;
        for (NamedArgument &argument : node.inputs)
            mapValues(argument.value, [&](ValueId v) {
                assert(result.value[v.get()].valid());
                return result.value[v.get()];
            });
        for (NodeOutput &output : node.outputs)
            eachOutput(output, [&](ValueId &v) {
                keep(v);
                result.graph.values[v.get()].producer = id;
            });
        result.graph.nodes.push_back(std::move(node));
    }
    for (GraphOutput &output : m_graph.outputs)
        if (output.value.valid())
            output.value = result.value[output.value.get()];
    result.graph.inputs = std::move(m_graph.inputs);
    result.graph.outputs = std::move(m_graph.outputs);
    result.graph.subgraphs = std::move(m_graph.subgraphs);
    result.graph.subgraphNames = std::move(m_graph.subgraphNames);
    result.graph.index();
    return result;
}

} // namespace dblame

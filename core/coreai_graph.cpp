// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/coreai_graph.h"

#include <algorithm>
#include <array>

namespace dblame
{

namespace
{

// Decompression of weights that were compressed before: coreai-opt counts their result as state.
bool decompresses(const Node &node)
{
    static constexpr std::array kOps = {"coreai.lut_to_dense", "coreai.constexpr_blockwise_shift_scale",
                                        "coreai.sparse_to_dense", "coreai.sparse_with_bitmask_to_dense"};
    const std::string type = node.opType();
    return std::find(kOps.begin(), kOps.end(), type) != kOps.end();
}

void addUnique(std::vector<int> &list, int entry)
{
    if (std::find(list.begin(), list.end(), entry) == list.end())
        list.push_back(entry);
}

std::pair<std::string, std::string> splitTarget(const std::string &target)
{
    const auto dot = target.rfind('.');
    return dot == std::string::npos ? std::pair{std::string(), target}
                                    : std::pair{target.substr(0, dot), target.substr(dot + 1)};
}

} // namespace

CoreAiGraph::CoreAiGraph(const Graph &graph) : m_graph(graph)
{
    m_ofNode.assign(graph.nodes.size(), -1);
    m_ofValue.assign(graph.values.size(), -1);
    const auto add = [this](FxNode node) {
        m_nodes.push_back(std::move(node));
        return static_cast<int>(m_nodes.size()) - 1;
    };
    for (const GraphInput &input : graph.inputs) {
        if (!input.value.valid())
            continue;
        FxNode node;
        const bool user =
            input.kind == InputKind::User || input.kind == InputKind::Constant || input.kind == InputKind::Token;
        node.kind = user ? FxKind::Input : FxKind::State;
        node.value = input.value;
        m_ofValue[input.value.get()] = add(node);
    }
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        const Node &source = graph.nodes[n];
        FxNode node;
        node.node = NodeId(n);
        for (const ValueId v : source.inputValues())
            if (m_ofValue[v.get()] >= 0)
                addUnique(node.inputs, m_ofValue[v.get()]);
        const auto results = source.outputValues();
        const bool single = source.outputs.size() == 1 && std::holds_alternative<ValueId>(source.outputs.front());
        if (single)
            node.value = results.front();
        const int call = add(std::move(node));
        m_ofNode[n] = call;
        if (single) {
            m_ofValue[results.front().get()] = call;
            continue;
        }
        for (const ValueId v : results) {
            FxNode item;
            item.kind = FxKind::Item;
            item.value = v;
            item.inputs = {call};
            m_ofValue[v.get()] = add(std::move(item));
        }
    }
    FxNode output;
    output.kind = FxKind::Output;
    for (const GraphOutput &result : graph.outputs)
        if (result.value.valid() && m_ofValue[result.value.get()] >= 0)
            addUnique(output.inputs, m_ofValue[result.value.get()]);
    add(std::move(output));
    for (int i = 0; i < size(); ++i)
        for (const int input : m_nodes[static_cast<std::size_t>(i)].inputs)
            m_nodes[static_cast<std::size_t>(input)].users.push_back(i);

    m_localNames.resize(m_nodes.size());
    m_owners.resize(m_nodes.size());
    for (const GraphInput &input : graph.inputs) {
        if (!input.value.valid() || input.target.empty())
            continue;
        const auto entry = static_cast<std::size_t>(m_ofValue[input.value.get()]);
        const auto [owner, local] = splitTarget(input.target);
        m_localNames[entry].push_back(local);
        m_owners[entry].push_back(owner);
    }
}

bool CoreAiGraph::isState(int i) const
{
    return at(i).kind == FxKind::State || (isCall(i) && decompresses(m_graph.node(at(i).node)));
}

int CoreAiGraph::inputIndex(int consumer, int producer) const
{
    const auto &inputs = at(consumer).inputs;
    const auto it = std::find(inputs.begin(), inputs.end(), producer);
    return it == inputs.end() ? -1 : static_cast<int>(it - inputs.begin());
}

const std::string &CoreAiGraph::target(int i) const
{
    static const std::string kNone;
    return isCall(i) ? m_graph.node(at(i).node).target : kNone;
}

std::string_view CoreAiGraph::opType(int i) const
{
    if (!isCall(i))
        return {};
    const std::string_view text = m_graph.node(at(i).node).torchFn;
    const auto semicolon = text.find(';');
    if (semicolon == std::string_view::npos)
        return {};
    const std::string_view function = text.substr(semicolon + 1);
    const auto dot = function.find('.');
    if (dot == std::string_view::npos)
        return {};
    const std::string_view rest = function.substr(dot + 1);
    return rest.substr(0, rest.find('.'));
}

std::string_view CoreAiGraph::name(int i) const
{
    return isCall(i) ? std::string_view(m_graph.node(at(i).node).name) : std::string_view();
}

bool CoreAiGraph::isFloat(int i) const
{
    if (!at(i).value.valid())
        return false;
    const auto &meta = m_graph.value(at(i).value).meta;
    return meta && isFloatingPoint(meta->dtype);
}

bool CoreAiGraph::isSingleElement(int i) const
{
    if (!isFloat(i))
        return false;
    std::int64_t count = 1;
    for (const Dim &dim : m_graph.value(at(i).value).meta->sizes) {
        if (!dim.symbol.empty())
            return false;
        count *= dim.size;
    }
    return count <= 1;
}

std::optional<int> CoreAiGraph::rank(int i) const
{
    if (!at(i).value.valid() || !m_graph.value(at(i).value).meta)
        return std::nullopt;
    return static_cast<int>(m_graph.value(at(i).value).meta->sizes.size());
}

std::vector<std::int64_t> CoreAiGraph::shape(int i) const
{
    std::vector<std::int64_t> sizes;
    if (at(i).value.valid() && m_graph.value(at(i).value).meta)
        for (const Dim &dim : m_graph.value(at(i).value).meta->sizes)
            sizes.push_back(dim.symbol.empty() ? dim.size : -1);
    return sizes;
}

const std::vector<std::string> &CoreAiGraph::localNames(int state) const
{
    return m_localNames[static_cast<std::size_t>(state)];
}

const std::vector<std::string> &CoreAiGraph::owners(int state) const
{
    return m_owners[static_cast<std::size_t>(state)];
}

} // namespace dblame

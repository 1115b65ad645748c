// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/graph_inline.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/graph_edit.h"

namespace dblame
{

namespace
{

constexpr std::string_view kWrapper = "higher_order.wrap_with_set_grad_enabled";

template <class F>
void renameOutputs(Node &node, const F &f)
{
    for (NodeOutput &output : node.outputs) {
        if (auto *one = std::get_if<ValueId>(&output))
            *one = f(*one);
        else if (auto *list = std::get_if<std::vector<ValueId>>(&output))
            for (ValueId &v : *list)
                v = f(v);
    }
}

class Inliner
{
public:
    explicit Inliner(Graph &graph) : m_graph(graph)
    {
        for (const Value &value : graph.values)
            m_names.insert(value.name);
    }

    std::vector<std::size_t> run()
    {
        std::vector<Node> old = std::move(m_graph.nodes);
        m_graph.nodes.clear();
        for (std::size_t i = 0; i < old.size(); ++i)
            place(std::move(old[i]), i);
        for (GraphOutput &output : m_graph.outputs)
            if (output.value.valid())
                output.value = replaced(output.value);
        for (std::size_t i = 0; i < m_graph.nodes.size(); ++i) {
            int position = 0;
            for (ValueId v : m_graph.nodes[i].outputValues()) {
                m_graph.values[v.get()].producer = NodeId(i);
                m_graph.values[v.get()].outputIndex = position++;
            }
        }
        return std::move(m_origin);
    }

private:
    ValueId replaced(ValueId v) const
    {
        const auto it = m_replaced.find(v);
        return it == m_replaced.end() ? v : it->second;
    }

    void place(Node node, std::size_t origin)
    {
        for (NamedArgument &input : node.inputs)
            mapValues(input.value, [this](ValueId v) { return replaced(v); });
        const auto *body = node.target == kWrapper && node.inputs.size() >= 2
                               ? std::get_if<SubgraphArg>(&node.inputs[1].value)
                               : nullptr;
        if (!body || !canInline(node, *m_graph.subgraphs[body->index])) {
            const std::string name = node.name;
            for (int k = 1; !m_nodeNames.insert(node.name).second; ++k)
                node.name = name + "_" + std::to_string(k);
            m_graph.nodes.push_back(std::move(node));
            m_origin.push_back(origin);
            return;
        }
        splice(node, *m_graph.subgraphs[body->index], origin);
    }

    // Operands and results must answer to the body's inputs and outputs one by one.
    static bool canInline(const Node &node, const Graph &body)
    {
        std::size_t operands = 0;
        for (std::size_t k = 2; k < node.inputs.size(); ++k) {
            if (!std::holds_alternative<ValueId>(node.inputs[k].value))
                return false;
            ++operands;
        }
        if (operands != body.inputs.size() || node.outputValues().size() != body.outputs.size())
            return false;
        for (const GraphInput &input : body.inputs)
            if (!input.value.valid())
                return false;
        for (const GraphOutput &output : body.outputs)
            if (!output.value.valid())
                return false;
        return true;
    }

    void splice(const Node &wrapper, Graph &body, std::size_t origin)
    {
        std::unordered_map<ValueId, ValueId> outer; // of the body's values
        for (std::size_t k = 0; k < body.inputs.size(); ++k)
            outer.emplace(body.inputs[k].value, std::get<ValueId>(wrapper.inputs[k + 2].value));
        const auto results = wrapper.outputValues();
        for (std::size_t k = 0; k < results.size(); ++k) {
            // A result that is an operand, or that is returned twice, is another name for a value that exists.
            const auto [it, fresh] = outer.emplace(body.outputs[k].value, results[k]);
            if (!fresh)
                m_replaced[results[k]] = it->second;
        }
        const auto subgraphBase = m_graph.subgraphs.size();
        for (std::size_t g = 0; g < body.subgraphs.size(); ++g) {
            m_graph.subgraphs.push_back(std::move(body.subgraphs[g]));
            m_graph.subgraphNames.push_back(g < body.subgraphNames.size() ? body.subgraphNames[g] : std::string());
        }
        const auto toOuter = [&](ValueId inner) {
            const auto known = outer.find(inner);
            if (known != outer.end())
                return known->second;
            Value value = body.values[inner.get()];
            if (m_names.contains(value.name))
                value.name = wrapper.name + "/" + value.name;
            for (int k = 1; !m_names.insert(value.name).second; ++k)
                value.name = wrapper.name + "/" + body.values[inner.get()].name + "_" + std::to_string(k);
            m_graph.values.push_back(std::move(value));
            return outer.emplace(inner, ValueId(m_graph.values.size() - 1)).first->second;
        };
        for (Node node : std::move(body.nodes)) {
            for (NamedArgument &input : node.inputs) {
                mapValues(input.value, toOuter);
                if (auto *graph = std::get_if<SubgraphArg>(&input.value))
                    graph->index += subgraphBase;
            }
            renameOutputs(node, toOuter);
            place(std::move(node), origin);
        }
    }

    Graph &m_graph;
    std::unordered_set<std::string> m_names, m_nodeNames;
    std::unordered_map<ValueId, ValueId> m_replaced;
    std::vector<std::size_t> m_origin;
};

} // namespace

std::vector<std::size_t> inlineGradBlocks(Graph &graph)
{
    return Inliner(graph).run();
}

} // namespace dblame

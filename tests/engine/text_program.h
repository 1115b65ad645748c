// SPDX-License-Identifier: GPL-3.0-or-later
//
// Programs for tests, from graphs written as text (core/graph_text.h).
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "core/engine/program.h"
#include "core/graph_text.h"

namespace dblame::test
{

// `stored`: tensors by the target of their input.
inline std::shared_ptr<const LoadedModel> textModel(std::string_view text,
                                                    const std::map<std::string, at::Tensor> &stored = {})
{
    auto graph = parseGraph(text);
    if (!graph)
        throw std::runtime_error(graph.error().text());
    auto model = std::make_shared<LoadedModel>();
    model->m_graph = std::move(*graph);
    model->m_tensors.resize(model->m_graph.values.size());
    model->m_mapped.resize(model->m_graph.values.size());
    model->m_nodeFaults.resize(model->m_graph.nodes.size());
    for (const auto &input : model->m_graph.inputs)
        if (const auto it = stored.find(input.target); it != stored.end())
            model->m_tensors[input.value.get()] = it->second;
    return model;
}

inline ValueId id(const Graph &graph, std::string_view name)
{
    const ValueId v = graph.find(name);
    if (!v.valid())
        throw std::runtime_error("no value " + std::string(name));
    return v;
}

inline std::vector<NodeId> everyNode(const Graph &graph)
{
    std::vector<NodeId> nodes;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
        nodes.emplace_back(n);
    return nodes;
}

inline std::vector<ValueId> everyValue(const Graph &graph)
{
    std::vector<ValueId> values;
    for (std::size_t v = 0; v < graph.values.size(); ++v)
        values.emplace_back(v);
    return values;
}

} // namespace dblame::test

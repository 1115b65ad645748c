// SPDX-License-Identifier: GPL-3.0-or-later
//
// A model made of a graph text (core/graph_text.h): no file, no tensors.
#pragma once

#include <map>
#include <stdexcept>

#include "core/graph_text.h"
#include "core/model.h"

namespace dblame
{

class TextModel : public Model
{
public:
    explicit TextModel(std::string_view text)
    {
        auto graph = parseGraph(text);
        if (!graph)
            throw std::invalid_argument(graph.error().text());
        m_graph = std::move(*graph);
        m_faults.resize(m_graph.nodes.size());
        m_info.path = "text";
        m_info.format = "text";
    }

    Graph m_graph;
    ModelInfo m_info;
    std::vector<std::string> m_faults;
    std::map<std::string, std::vector<double>> m_numbers; // by value name: small stored tensors

    [[nodiscard]] const Graph &graph() const override { return m_graph; }
    [[nodiscard]] const ModelInfo &info() const override { return m_info; }
    [[nodiscard]] const std::vector<std::string> &nodeFaults() const override { return m_faults; }

    // Every parameter, buffer and constant input with meta counts as stored.
    [[nodiscard]] std::optional<StoredTensor> stored(ValueId value) const override
    {
        const GraphInput *input = m_graph.input(value);
        const auto &meta = m_graph.value(value).meta;
        if (input == nullptr || input->kind == InputKind::User || !meta)
            return std::nullopt;
        StoredTensor tensor;
        tensor.target = input->target;
        tensor.dtype = meta->dtype;
        for (const auto &dim : meta->sizes)
            tensor.shape.push_back(dim.size);
        return tensor;
    }
    [[nodiscard]] std::vector<StoredTensor> storedTensors() const override
    {
        std::vector<StoredTensor> result;
        for (const auto &input : m_graph.inputs)
            if (input.value.valid())
                if (auto tensor = stored(input.value))
                    result.push_back(*tensor);
        return result;
    }
    [[nodiscard]] std::optional<std::vector<double>> numbers(ValueId value, std::size_t maxElements) const override
    {
        const auto found = m_numbers.find(m_graph.value(value).name);
        if (found == m_numbers.end() || found->second.size() > maxElements)
            return std::nullopt;
        return found->second;
    }
};

} // namespace dblame

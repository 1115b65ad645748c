// SPDX-License-Identifier: GPL-3.0-or-later
//
// A model with its tensors: what a reader produces and the engine runs.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "core/error.h"
#include "core/model.h"
#include "core/quant_site.h"
#include "core/readers/mapped_file.h"
#include "core/readers/pytree.h"

namespace dblame
{

// What a symbolic size may be.
struct SymbolRange {
    std::int64_t lowest = 0;
    std::int64_t highest = std::numeric_limits<std::int64_t>::max();
};

// The sites of a model that a recipe made, and what each does to its float input. May throw c10::Error.
struct PlannedSites {
    SiteTable table;
    std::vector<std::function<at::Tensor(const at::Tensor &)>> kernels; // per site
    std::vector<std::string> keys; // per site: equal where the kernels do the same (core/engine/value_keys.h)
    std::string origin;            // of the float model and of how it was rewritten
};

class LoadedModel final : public Model
{
public:
    Graph m_graph;
    ModelInfo m_info;
    // Per graph value: the stored tensor behind a parameter, buffer or constant input; undefined elsewhere.
    // Tensors lie in the file's private mapping where it allows (their storage keeps the mapping alive).
    std::vector<at::Tensor> m_tensors;
    std::vector<bool> m_mapped; // per graph value
    // User inputs saved with the model, flattened in signature order (Constant inputs left out); empty when none.
    std::vector<c10::IValue> m_sampleInputs;
    Pytree m_inputTree;                                // nesting of the arguments (args, kwargs); a leaf when unknown
    std::map<std::string, SymbolRange> m_symbolRanges; // of the symbols in Dim::symbol
    std::vector<std::string> m_nodeFaults;             // per node, see Model::nodeFaults

    [[nodiscard]] const Graph &graph() const override { return m_graph; }
    [[nodiscard]] const ModelInfo &info() const override { return m_info; }
    [[nodiscard]] std::vector<StoredTensor> storedTensors() const override;
    [[nodiscard]] std::optional<StoredTensor> stored(ValueId input) const override;
    [[nodiscard]] std::optional<std::vector<double>> numbers(ValueId input,
                                                             std::size_t maxElements = 1U << 20U) const override;
    [[nodiscard]] std::optional<ValueTable> valueTable(ValueId input) const override;
    [[nodiscard]] const std::vector<std::string> &nodeFaults() const override { return m_nodeFaults; }

    std::shared_ptr<const PlannedSites> m_planned; // null for models that come from a file
    [[nodiscard]] const SiteTable *plannedSites() const override { return m_planned ? &m_planned->table : nullptr; }

    std::shared_ptr<const MappedFile> m_file; // null for models that do not come from a file
    // Weights lie in the file's mapping and the file is no longer the one that was opened: they may be wrong. Looks at
    // the file's size and time, and at whether pages of it were gone.
    [[nodiscard]] bool fileChanged() const;

    [[nodiscard]] const at::Tensor &tensor(ValueId input) const { return m_tensors[input.get()]; }
};

[[nodiscard]] DType fromTorch(at::ScalarType type);
[[nodiscard]] at::ScalarType toTorch(DType dtype); // at::ScalarType::Undefined for Unknown

} // namespace dblame

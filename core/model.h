// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/graph.h"

namespace dblame
{

struct ModelInfo {
    std::string path;                       // as given (without "#name")
    std::string sha256;                     // of the whole file
    std::uint64_t bytes = 0;                // size of the file
    std::string format;                     // "pt2 archive"
    std::string producer;                   // "torch 2.13.0", "schema 8.20" when the file does not say
    std::string program;                    // name of the opened program
    std::vector<std::string> otherPrograms; // the archive's other programs
    std::vector<std::string> notes;         // what the reader had to say (newer minor version, copied weights, ...)
    bool hasSampleInputs = false;
    std::string sampleInputsNote; // why there are none
};

// A weight, buffer or constant as it is stored.
struct StoredTensor {
    std::string target; // state-dict name
    DType dtype = DType::Unknown;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes = 0;
    bool mapped = false; // lies in the file's mapping, not on the heap
};

// A stored float tensor that holds few distinct values: a palette, or a grid that was folded back to floats.
struct ValueTable {
    std::int64_t entries = 0;   // the largest number of distinct values in one group
    std::int64_t groupSize = 0; // rows along axis 0 that share a table; 0: one table for the whole tensor
};

struct SiteTable; // core/quant_site.h

// A loaded program: graph, signature, weights. Immutable; shared between threads.
class Model
{
public:
    virtual ~Model() = default;
    [[nodiscard]] virtual const Graph &graph() const = 0;
    [[nodiscard]] virtual const ModelInfo &info() const = 0;
    [[nodiscard]] virtual std::vector<StoredTensor> storedTensors() const = 0;

    // Shape of a parameter, buffer or constant input; nullopt when the value is no stored tensor.
    [[nodiscard]] virtual std::optional<StoredTensor> stored(ValueId input) const = 0;
    // Elements of a small stored tensor (qparams, flags), row-major, as doubles; nullopt when the value
    // is not stored or has more than `maxElements`.
    [[nodiscard]] virtual std::optional<std::vector<double>> numbers(ValueId input,
                                                                     std::size_t maxElements = 1U << 20U) const = 0;
    // The table behind a stored tensor, if its values say that it has one: at most 256 entries, and at least
    // four elements for each. nullopt otherwise.
    [[nodiscard]] virtual std::optional<ValueTable> valueTable(ValueId /*input*/) const { return std::nullopt; }
    // The sites of a model that a recipe made (Engine::quantize); nullptr for a model from a file, whose sites are
    // recognized in its graph.
    [[nodiscard]] virtual const SiteTable *plannedSites() const { return nullptr; }
    // Per node: why it cannot run ("needs mylib::crelu", "argument other is missing"); empty when it can.
    // One entry per node of graph().
    [[nodiscard]] virtual const std::vector<std::string> &nodeFaults() const = 0;
};

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Input files matched with a model's arguments: still as given, not yet checked against shapes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "core/readers/loaded_model.h"
#include "core/readers/read_control.h"

namespace dblame
{

// One value that a batch has to give: a User input of the model.
struct InputSlot {
    std::string name;               // argument name, "x", "d.b"
    std::string valueName;          // in the graph
    std::optional<TensorMeta> meta; // absent: a number
};
[[nodiscard]] std::vector<InputSlot> inputSlots(const Graph &graph);

using InputBatch = std::vector<c10::IValue>; // one value per slot

struct GivenInputs {
    std::vector<InputBatch> batches;
    std::vector<std::string> notes;
    std::vector<std::shared_ptr<const MappedFile>> files;
};

// Reads the files: several .npy are the tensor arguments in order, several others are batches.
// Throws ReadError; `member` of the error is the file it concerns.
[[nodiscard]] GivenInputs readInputFiles(const std::vector<std::string> &files, const LoadedModel &model,
                                         ReadControl &control);

// Numbers from a fixed generator, the same on every machine: normal for floats, 0 or 1 for integers and flags.
// Throws ReadError when a size is not known.
[[nodiscard]] InputBatch randomBatch(const std::vector<InputSlot> &slots, std::uint64_t seed);

// "x, mask": for messages.
[[nodiscard]] std::string slotNames(const std::vector<InputSlot> &slots);

} // namespace dblame

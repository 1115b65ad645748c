// SPDX-License-Identifier: GPL-3.0-or-later
//
// Zip files of torch.save: weights, tensors, sample inputs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>

#include "core/readers/pickle.h"
#include "core/readers/pytree.h"
#include "core/readers/zip_archive.h"

namespace dblame
{

// A member of another archive or a whole file. `name` is what messages call it.
[[nodiscard]] PickleDocument readTorchSave(const Bytes &bytes, const std::string &name, ReadControl *control);
[[nodiscard]] PickleDocument readTorchSave(const ZipArchive &archive, const std::string &name, ReadControl *control);

// The tensors of a (nested) dictionary or list with dotted keys, in order: "model.fc.weight", "0.x".
[[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> namedTensors(const PickleValue &value);

// Leaves of pickled arguments in flattening order; dictionaries in the order of `tree` where it fits (it may be
// null). Throws ReadError when nested too deep or too large.
[[nodiscard]] std::vector<PickleValue> flattenLeaves(const PickleValue &value, const Pytree *tree);

// A leaf as the engine takes it; throws ReadError for containers.
[[nodiscard]] c10::IValue toIValue(const PickleValue &value);

} // namespace dblame

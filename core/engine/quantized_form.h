// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to float_form.cpp and quantized_model.cpp.
#pragma once

#include <memory>
#include <vector>

#include "core/engine/quantized_model.h"
#include "core/graph_edit.h"

namespace dblame
{

// The model of an edited graph: tensors, sample inputs and faults follow their values and nodes; derived tensors are
// computed from the original's.
[[nodiscard]] std::shared_ptr<LoadedModel> rebuilt(const LoadedModel &original, GraphEdit::Finished &finished,
                                                   const std::vector<DerivedTensor> &derived);

} // namespace dblame

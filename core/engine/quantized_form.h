// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to float_form.cpp, planned_sites.cpp and quantized_model.cpp.
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

// The float form with a node for each site of the placement, and with its table of planned sites, which have no numbers
// and no kernels yet. `siteOfPlaced`: per placement site, its number in the table.
[[nodiscard]] std::shared_ptr<LoadedModel> insertSites(const FloatForm &form, const Placement &placement,
                                                       const QuantizerFlow &flow, RewriteNotes &notes,
                                                       std::vector<SiteId> &siteOfPlaced);

} // namespace dblame

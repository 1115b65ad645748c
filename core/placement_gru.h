// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/placement_annotations.h"

namespace dblame
{

// XNNPACKQuantizer's rule for nn.GRU: its inputs and results, never its weights. Where the peer would stop with an
// error the layer is left alone and a warning says so. Returns why the last layer that was left alone was, or "".
[[nodiscard]] std::string annotateGrus(const Graph &graph, const Pt2eConfig &config, const TensorSpec &activation,
                                       Annotations &notes, std::vector<std::string> &warnings);

} // namespace dblame

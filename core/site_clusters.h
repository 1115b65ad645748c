// SPDX-License-Identifier: GPL-3.0-or-later
//
// Quantizers that an exporter inlined: twenty-odd operators that came from one call of one module, read as one site.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/quant_site.h"

namespace dblame
{

// The outermost frame of a quantizer module (an observer nested in a fake-quantizer is part of it); nullptr when the
// node belongs to none.
[[nodiscard]] const ModuleFrame *quantizerFrame(const Node &node);

// The site that the nodes of one quantizer call make up: a decomposed fake-quant, or an observer that only watches.
// Nothing, and a line in `notes`, when no tensor enters them.
[[nodiscard]] std::optional<QuantSite> readCluster(const Model &model, const std::string &key,
                                                   const std::vector<NodeId> &nodes, std::vector<std::string> &notes);

// "conv.weight" -> "conv"; a name without a dot is its own parent.
[[nodiscard]] std::string parentTarget(const std::string &target);
// The smallest integer type that holds a grid.
[[nodiscard]] DType storageOfGrid(std::int64_t quantMin, std::int64_t quantMax);
// All zero points at the middle of the grid: 0 for signed ranges, 2^(n-1) for unsigned ones.
[[nodiscard]] bool hasMiddleZeroPoints(const QuantSite &site);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// A site under any SpecChange: integers of its own kind by site_kernels.h; other types and given ranges by the
// quantizer's own qparams and grids (qparams.h, quantize_tensor.h), with the rule and rounding of the site's form.
#pragma once

#include <string>
#include <vector>

#include "core/engine/site_kernels.h"

namespace dblame
{

// Range: the given one; a bound that is not given, or the whole range:
//   activations per tensor   what the site's own scale and zero point stand for (ownRangeOf; of a floating grid +-
//                            scale * largest value)
//   else                     of the values: a weight's once, others of each tensor.
// Throws c10::Error with the text of changeProblem() where that is not empty, and where values hold NaN and torchao's
// rule finds no scale.
[[nodiscard]] SiteKernel changedSite(const QuantSite &site, const SpecChange &change);

// Scales and zero points that changedSite() uses on this tensor, one per unit; none for casts. Zero points of floating
// types: none. Throws as the kernel.
[[nodiscard]] SiteQparams changedQparams(const QuantSite &site, const SpecChange &change, const at::Tensor &source);
// The same where they do not depend on the tensor; else empty.
[[nodiscard]] SiteQparams fixedQparams(const QuantSite &site, const SpecChange &change);

// Where the range comes from: "range -1.2 .. 3.4 from the site's own scale", "range from the reference's weight",
// "range of each tensor"; empty for casts of activations. `weights`: whose values a weight has ("from the reference's
// weight").
[[nodiscard]] std::string rangeWords(const QuantSite &site, const SpecChange &change, const std::string &weights);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Weights of the reference as a candidate should have them: with a batch norm folded in where the candidate
// folded it, and the check that a quantized weight is what rounding of that float weight explains.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "core/alignment.h"
#include "core/error.h"
#include "core/quant_site.h"
#include "core/readers/loaded_model.h"

namespace dblame
{

// The tensor that a Weight row compares on the reference side: the stored one, or, in a fold,
//   W' = W * (gamma * rsqrt(var + eps)) per output channel (axis 1 for transposed convolutions) and
//   b' = (b - mean) * rsqrt(var + eps) * gamma + beta   (b = 0, gamma = 1, beta = 0 where absent),
// in float32 in this order, as the exporter's own folding does it. Undefined when a needed tensor is missing.
[[nodiscard]] at::Tensor referenceWeight(const LoadedModel &reference, const Alignment &alignment,
                                         const AlignedPair &row);

// Is `quantized` (the dequantized weight) what rounding and clipping of `weight` to the site's grid gives?
// Returns an empty text if so, else what happened to the weight, in words ("rescaled per channel", "pruned", ...).
[[nodiscard]] std::string explainWeightChange(const at::Tensor &weight, const at::Tensor &quantized,
                                              const QuantSite &site);

} // namespace dblame

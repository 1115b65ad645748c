// SPDX-License-Identifier: GPL-3.0-or-later
//
// Whole sites as one kernel: used instead of their nodes where the result is equal bit for bit (a test proves it).
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

#include "core/edits.h"
#include "core/quant_site.h"

namespace dblame {

using SiteKernel = std::function<at::Tensor(const at::Tensor &)>;

// quantize_per_tensor -> dequantize_per_tensor of quantized_decomposed (reciprocal; zero point after rounding), float32.
[[nodiscard]] SiteKernel fusedQdqPerTensor(double scale, std::int64_t zeroPoint, std::int64_t quantMin, std::int64_t quantMax);
// coreai-opt's decomposed fake-quant chain (division; zero point after rounding), float32 input, scale and zero point
// tensors as stored (1 element, or broadcastable to the input after view). Returns an empty function when the
// combination is not known to be bit-equal.
[[nodiscard]] SiteKernel fusedDecomposedFakeQuant(const at::Tensor &scaleView, const at::Tensor &zeroPointView,
                                                  std::int64_t quantMin, std::int64_t quantMax);

// A site under another spec (SpecChange), on a float tensor. Ranges:
// weights: min/max of the tensor itself per unit; activations per tensor: the site's own range
// [(qmin - z) s, (qmax - z) s]; activations per channel or token, and dynamic sites: min/max of each tensor.
// Scale and zero point by the torchao formulas (docs/quantization.md): affine or symmetric, eps = 2^-23.
[[nodiscard]] SiteKernel respecifiedSite(const QuantSite &site, const SpecChange &change);

} // namespace dblame

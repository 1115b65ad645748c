// SPDX-License-Identifier: GPL-3.0-or-later
//
// Whole sites as one kernel: used instead of their nodes where the result is equal bit for bit (a test proves it).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/edits.h"
#include "core/quant_site.h"

namespace dblame
{

// Values and strides of the result are those that the site's nodes would give. May throw c10::Error, as they may.
using SiteKernel = std::function<at::Tensor(const at::Tensor &)>;

// quantize_per_tensor -> dequantize_per_tensor of quantized_decomposed (reciprocal; zero point after rounding), float32
// to float32; another input type gives an undefined tensor: run the nodes then. `storage` decides what a NaN becomes.
// Returns an empty function when integers of the range are not exact in float32.
[[nodiscard]] SiteKernel fusedQdqPerTensor(double scale, std::int64_t zeroPoint, std::int64_t quantMin,
                                           std::int64_t quantMax, DType storage = DType::Int8);
// coreai-opt's decomposed fake-quant chain (division; zero point after rounding), float32 input (another type gives an
// undefined tensor), scale and zero point tensors as stored (1 element, or broadcastable to the input after view).
// Returns an empty function when the combination is not known to be bit-equal.
[[nodiscard]] SiteKernel fusedDecomposedFakeQuant(const at::Tensor &scaleView, const at::Tensor &zeroPointView,
                                                  std::int64_t quantMin, std::int64_t quantMax);

// The range that an activation site's scale and zero point stand for (see respecifiedSite); of several units, all of
// them together. `symmetric`: what it is for. nullopt: not in the file (weights, dynamic sites).
[[nodiscard]] std::optional<std::pair<double, double>> ownRangeOf(const QuantSite &site, bool symmetric);

// A site under another integer grid of its own kind, on a float tensor: changes without a type and a range (all
// others, and the choice between them: site_change.h). Ranges:
// weights: min/max of the tensor itself per unit; activations per tensor: the site's own range
// [(qmin - z) s, (qmax - z) s], for a symmetric one that stays symmetric +-s (qmax - qmin)/2, which its scale was
// made from; activations per channel, block or token, and dynamic sites: min/max of each tensor.
// Scale and zero point by the torchao formulas (docs/quantization.md): affine or symmetric, eps = 2^-23, or 2^-12
// where one of the site's scales is exactly that (the floor of the XNNPACK and x86 presets).
// Grid of b bits: [-2^(b-1), 2^(b-1)-1]; [0, 2^b-1] where the site's own is unsigned; without its lowest value where
// the site's own is so and stays symmetric; with the site's own number of bits and symmetry its own grid.
// Arithmetic as the site's own form: x / s for DecomposedFakeQuant, x * (1/s) elsewhere. A NaN stays a NaN.
// Units: channels along the site's own axis, else axis 0 of a weight (1 of a transposed convolution) and axis 1 of an
// activation (the last one of a 3-dimensional activation outside convolutions); blocks along axis 1 of a weight (0 of
// a transposed convolution), one per index of the other of axes 0 and 1, and along the channel axis of an activation;
// tokens: everything but the last axis.
// Throws c10::Error with the text of respecifyProblem() where that is not empty.
[[nodiscard]] SiteKernel respecifiedSite(const QuantSite &site, const SpecChange &change);

// Why a tensor of this shape cannot take the spec ("blocks of 32 do not divide 9 input channels"); empty when it can.
[[nodiscard]] std::string respecifyProblem(const QuantSite &site, const SpecChange &change,
                                           const std::vector<std::int64_t> &shape);

// Scales and zero points that respecifiedSite() uses on this tensor, one per unit, in the order of the units.
struct SiteQparams {
    std::vector<double> scale;
    std::vector<std::int64_t> zeroPoint;
    std::int64_t quantMin = 0, quantMax = 0;
};
[[nodiscard]] SiteQparams respecifiedQparams(const QuantSite &site, const SpecChange &change, const at::Tensor &source);

} // namespace dblame

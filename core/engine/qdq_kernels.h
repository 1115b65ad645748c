// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to the program target: one pass over memory for the common quantize and dequantize cases. Each
// returns an undefined tensor where it cannot promise the bits and strides of the composite.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace dblame
{

// clamp(rint(x * inverseScale) + zeroPoint, quantMin, quantMax), float32 to uint8, int8, uint16 or int16.
[[nodiscard]] at::Tensor fastQuantizePerTensor(const at::Tensor &x, float inverseScale, std::int64_t zeroPoint,
                                               std::int64_t quantMin, std::int64_t quantMax, at::ScalarType dtype);
// (float(q) - zeroPoint) * scale, from uint8, int8, uint16 or int16 to float32.
[[nodiscard]] at::Tensor fastDequantizePerTensor(const at::Tensor &q, float scale, std::int64_t zeroPoint);
// The same along `axis`, with the reciprocals of `scales`. `axes` is the permutation (its own inverse) under which
// the composite works: it decides the strides.
[[nodiscard]] at::Tensor fastQuantizePerChannel(const at::Tensor &x, const at::Tensor &scales,
                                                const at::Tensor &zeroPoints, std::int64_t axis, at::IntArrayRef axes,
                                                std::int64_t quantMin, std::int64_t quantMax, at::ScalarType dtype);
// (q - zeroPoints) * scales along `axis`, the difference in the promoted integer type, to float32.
[[nodiscard]] at::Tensor fastDequantizePerChannel(const at::Tensor &q, const at::Tensor &scales,
                                                  const std::optional<at::Tensor> &zeroPoints, std::int64_t axis,
                                                  at::IntArrayRef axes);

} // namespace dblame

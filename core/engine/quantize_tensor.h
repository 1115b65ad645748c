// SPDX-License-Identifier: GPL-3.0-or-later
//
// A tensor on its grid: integers, and the floats that they stand for, with the arithmetic of the peer that the spec
// names (docs/quantization.md).
#pragma once

#include <ATen/core/Tensor.h>

#include "core/engine/qparams.h"
#include "core/error.h"
#include "core/tensor_spec.h"

namespace dblame
{

// x [any shape; float32, float16, bfloat16; float32 inside] on the grid, x's shape, in scalarTypeOf(spec.type): narrow
// integers one per byte, f4e2m1 as codes 0..15 (bit 3: sign; 0, .5, 1, 1.5, 2, 3, 4, 6), bf16 and f16 as such.
//   Reciprocal  clamp(rint(x * (1/s)) + z); per token clamp(rint(x * (1/s) + z)) (quantize_per_token)
//   Division    clamp(rint(x / s) + z); spec.minValue: clamp(rint((x - m) / s) + quantMin)
//   float8      cast(clamp(x / s, +-largest)); float4 to the nearest, ties to the even code
// rint: half to even. A NaN becomes what the platform's conversion makes of it (0 on x86).
// qparams.dynamic: chosen from x first. Errors (Usage): shapes that do not fit; those of chooseQparams().
[[nodiscard]] Result<at::Tensor> quantizeTensor(const at::Tensor &x, const Qparams &qparams, const TensorSpec &spec,
                                                SiteRole role);

// What the elements stand for, in `out`: (q - z) * s (+ m), and as the peers compute it in half types: per tensor
// Reciprocal in `out`, else in float32 and cast.
[[nodiscard]] Result<at::Tensor> dequantizeTensor(const at::Tensor &q, const Qparams &qparams, const TensorSpec &spec,
                                                  SiteRole role, at::ScalarType out);

// Both, in x's type. NaN: Reciprocal as through the integers; Division keeps it. Float types keep it.
[[nodiscard]] Result<at::Tensor> fakeQuantize(const at::Tensor &x, const Qparams &qparams, const TensorSpec &spec,
                                              SiteRole role);

} // namespace dblame

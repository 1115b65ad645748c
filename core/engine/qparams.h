// SPDX-License-Identifier: GPL-3.0-or-later
//
// From ranges to scales and zero points: the formulas of torchao's observers and of coreai-opt (docs/quantization.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/engine/quant_units.h"
#include "core/error.h"
#include "core/placement.h"
#include "core/tensor_spec.h"

namespace dblame
{

// What turns a tensor into integers and back. All tensors have the units' shape (0-dimensional: per tensor).
struct Qparams {
    at::Tensor scale;     // float32; float64 for torchao's affine per-token rule. Undefined for bf16 and f16: casts
    at::Tensor zeroPoint; // int64 (int32 in the peers, the same values); undefined for floating element types
    at::Tensor minValue;  // float32, what integer quantMin stands for (spec.minValue); else undefined
    at::Tensor low, high; // float32, the range behind the scale: as observed, or as searched; undefined: qparams given
    std::int64_t quantMin = 0, quantMax = 0;
    bool dynamic = false;           // everything is chosen from each tensor: nothing above is defined
    std::vector<std::string> notes; // what the user should know ("never observed: scale 1")

    // Row-major over the units.
    [[nodiscard]] std::vector<double> scales() const;
    [[nodiscard]] std::vector<std::int64_t> zeroPoints() const;
    [[nodiscard]] std::vector<double> minValues() const;
    [[nodiscard]] std::vector<double> lows() const;
    [[nodiscard]] std::vector<double> highs() const;
};

// Qparams with the given numbers, one per unit in row-major order; zero points are ignored for floating types.
// Errors (Usage): counts that do not fit, a scale that is not a positive number, zero points outside the range.
[[nodiscard]] Result<Qparams> givenQparams(const TensorSpec &spec, const std::vector<double> &scales,
                                           const std::vector<std::int64_t> &zeroPoints,
                                           const std::vector<std::int64_t> &counts = {});

// The rule of spec.rule applied to a range per unit (any float type; same shapes). mn = min(low, 0), mx = max(high, 0):
//   Torchao, FusedQat   float32 (observer Dynamic: up to the eps in the type of the range).  affine: s = max((mx -
//   mn)/(qmax - qmin), eps), z = clamp(qmin - rint(mn/s));
//                       symmetric: s = max(max(-mn, mx)/((qmax - qmin)/2), eps), z = 0, unsigned: 128 of [0, 255],
//                       32768 of uint16, else the middle rounded down. (What is deployed; FusedQat simulates with
//                       others: Observer::simulatedQparams.)
//   CoreAi              in the type of the range, rounded to it; symmetric z = trunc((qmin + qmax + 1)/2).
// float8: s = max|x| / largest value, float4 and spec.powerOfTwoScale: 2^(floor(log2 max|x|) - t), t = 2 (f4e2m1),
// 8 (f8e4m3), 15 (f8e5m2), 6 (int8).
// Errors (Incomparable): NaN, or low > high, under torchao's rules (coreai-opt goes on with a NaN scale; a note says
// so).
[[nodiscard]] Result<Qparams> qparamsOfRange(const at::Tensor &low, const at::Tensor &high, const TensorSpec &spec);

// Qparams from one tensor: weights, and activations quantized dynamically. Per token under torchao's rule:
// symmetric s = max(amax|x|, 1e-5)/qmax; affine s = max((mx - mn)/(qmax - qmin), 2^-23) in the tensor's type,
// z = rint(clamp((qmin + mn/s) + (qmax + mx/s) > 0 ? qmin - mn/s : qmax - mx/s, qmin, qmax)).
// spec.low and spec.high replace what the tensor says. An empty tensor: scale 1, zero point 0, as never observed.
[[nodiscard]] Result<Qparams> chooseQparams(const at::Tensor &x, const TensorSpec &spec, SiteRole role);

// Scale 1, zero point 0: what an observer answers that never saw anything.
[[nodiscard]] Qparams unobservedQparams(const TensorSpec &spec);

// Units whose scale is exactly the spec's eps: their step is not theirs. `ofZeros` of them saw nothing but zeros, where
// that does no harm.
struct FlooredUnits {
    std::int64_t count = 0, ofZeros = 0;
};
[[nodiscard]] FlooredUnits flooredUnits(const Qparams &qparams, const TensorSpec &spec);

// Units of an 8-bit grid whose q - z leaves int8 (uint8) for some q of the grid: a dequantize that subtracts in 8 bits
// wraps there. int8 -128 with z = 127 gives 1, not -255.
[[nodiscard]] std::int64_t wrappingZeroPoints(const Qparams &qparams, const TensorSpec &spec);

// The two above as notes of docs/quantization.md's list (9: eps starves channels, only where the spec's eps is the
// presets' 2^-12; 11: zero points that would wrap if stored in 8 bits). `node` is left invalid.
[[nodiscard]] std::vector<DefectNote> qparamDefects(const Qparams &qparams, const TensorSpec &spec);

// Largest finite value of float8 and float4 types, bf16 and f16; 0 for integers.
[[nodiscard]] double largestValue(ElementType type);
// The tensor type that holds the elements (storageOf as LibTorch names it).
[[nodiscard]] at::ScalarType scalarTypeOf(ElementType type);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Grids applied to tensors: what fused and respecified sites share. Private to the metric target.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/engine/metric_kernels.h"

namespace dblame
{

using QuantLoop = void (*)(const float *, float *, std::int64_t, const kernels::QuantParams &);

// The layouts whose result strides are plainly the input's; nullopt: let the operators find them.
[[nodiscard]] std::optional<at::MemoryFormat> plainLayout(const at::Tensor &x);

// float32 in one of the plain layouts; the result has the same layout.
[[nodiscard]] at::Tensor mapAll(const at::Tensor &x, at::MemoryFormat layout, QuantLoop loop,
                                const kernels::QuantParams &params);
// One set of parameters per index of an axis whose stride in the dense memory of x is `inner`.
[[nodiscard]] at::Tensor mapChannels(const at::Tensor &x, at::MemoryFormat layout, std::int64_t inner, QuantLoop loop,
                                     const std::vector<kernels::QuantParams> &params);

// One per element of the two tensors, which have as many.
[[nodiscard]] std::vector<kernels::QuantParams> paramsOf(const at::Tensor &scale, const at::Tensor &zeroPoint,
                                                         std::int64_t quantMin, std::int64_t quantMax);

// coreai-opt's chain, operator by operator.
[[nodiscard]] at::Tensor compositeFakeQuant(const at::Tensor &x, const at::Tensor &scale, const at::Tensor &zeroPoint,
                                            std::int64_t quantMin, std::int64_t quantMax);

} // namespace dblame

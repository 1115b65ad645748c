// SPDX-License-Identifier: GPL-3.0-or-later
//
// Two tensors as two flat arrays that a loop can read. Private to the metric target.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace dblame
{

enum class Numbers { None, Integer, Single, Double };

// Two dense arrays whose elements answer to each other, in the memory order of the reference.
struct FlatPair {
    Numbers numbers = Numbers::None;
    const void *r = nullptr;
    const void *c = nullptr;
    std::int64_t n = 0;
    // Element i belongs to channel (i / inner) % channels; channels = 0: no channels.
    std::int64_t channels = 0, inner = 1;
    bool unsigned64 = false;
    at::Tensor rHeld, cHeld; // copies, where the tensors could not be read as they are
};

// Any two tensors of equal shape: half and float8 types widened to float32, integers beside floats likewise (to
// float64 where float32 would round), quantized ones dequantized, complex as pairs; copies only where the memory
// cannot be read as it is. Numbers::None for what has no numbers; throws c10::Error for types without conversion.
[[nodiscard]] FlatPair flatten(const at::Tensor &reference, const at::Tensor &candidate, int channelAxis);

} // namespace dblame

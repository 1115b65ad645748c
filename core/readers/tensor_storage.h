// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "core/readers/mapped_file.h"

namespace dblame
{

// One storage over a whole payload. Payloads of 16 MiB and more that lie 64-byte aligned in a file's mapping
// stay there (the storage keeps the mapping alive); others are copied, because a file that changes while
// mapped takes its values along, and kernels may not read unaligned elements.
struct Payload {
    c10::Storage storage;
    std::size_t size = 0; // bytes
    bool mapped = false;
    bool aligned = true; // false: it was copied for want of alignment
};
[[nodiscard]] Payload makePayload(const Bytes &bytes);
[[nodiscard]] bool staysMapped(const Bytes &bytes);

struct Strided {
    std::vector<std::int64_t> sizes, strides; // elements
    std::int64_t offset = 0;                  // elements
};

// Throws ReadError unless every element lies inside `bytes`: sizes, strides and offset not negative, and
// (offset + sum((size - 1) * stride) + 1) * itemSize <= bytes. `who` starts the message ("weight fc.weight").
// Returns the number of elements.
std::int64_t checkStrided(const Strided &shape, std::size_t itemSize, std::uint64_t bytes, const std::string &who);

// A tensor on the payload, after checkStrided.
[[nodiscard]] at::Tensor makeTensor(const Payload &payload, at::ScalarType type, const Strided &shape,
                                    const std::string &who);

// Row-major strides of `sizes`; sizes must have passed a check against overflow.
[[nodiscard]] std::vector<std::int64_t> contiguousStrides(const std::vector<std::int64_t> &sizes);

} // namespace dblame

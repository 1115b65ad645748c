// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/tensor_storage.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "core/readers/read_error.h"

namespace dblame
{

namespace
{

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSmallestMapped = std::size_t{16} << 20U;

bool isAligned(const Bytes &bytes)
{
    return reinterpret_cast<std::uintptr_t>(bytes.data) % kAlignment == 0;
}

} // namespace

bool staysMapped(const Bytes &bytes)
{
    return bytes.mapped && bytes.size >= kSmallestMapped && isAligned(bytes);
}

Payload makePayload(const Bytes &bytes)
{
    Payload payload;
    payload.size = bytes.size;
    payload.mapped = staysMapped(bytes);
    payload.aligned = isAligned(bytes);
    c10::DataPtr data;
    if (payload.mapped) {
        auto *owner = new std::shared_ptr<const void>(bytes.owner);
        data = c10::DataPtr(
            const_cast<std::uint8_t *>(bytes.data), owner,
            [](void *o) { delete static_cast<std::shared_ptr<const void> *>(o); }, c10::kCPU);
    } else {
        data = c10::GetCPUAllocator()->allocate(bytes.size);
        if (bytes.size != 0)
            std::memcpy(data.get(), bytes.data, bytes.size);
    }
    payload.storage =
        c10::Storage(c10::Storage::use_byte_size_t(), bytes.size, std::move(data), nullptr, /*resizable=*/false);
    return payload;
}

std::int64_t checkStrided(const Strided &shape, std::size_t itemSize, std::uint64_t bytes, const std::string &who)
{
    if (shape.sizes.size() != shape.strides.size())
        throw ReadError(who + ": sizes and strides differ in length");
    constexpr std::size_t kMaxDims = 64; // what ATen's kernels take
    if (shape.sizes.size() > kMaxDims)
        throw ReadError(who + ": has " + std::to_string(shape.sizes.size()) + " dimensions");
    if (shape.offset < 0)
        throw ReadError(who + ": negative storage offset");
    if (std::any_of(shape.sizes.begin(), shape.sizes.end(), [](std::int64_t s) { return s < 0; }))
        throw ReadError(who + ": negative size");
    if (std::any_of(shape.strides.begin(), shape.strides.end(), [](std::int64_t s) { return s < 0; }))
        throw ReadError(who + ": negative stride");
    // Also of an empty tensor, whose other sizes must still multiply within 64 bits.
    std::int64_t elements = 1, extent = 1;
    for (const std::int64_t size : shape.sizes) {
        elements *= size == 0 ? 0 : 1;
        if (__builtin_mul_overflow(extent, std::max<std::int64_t>(size, 1), &extent))
            throw ReadError(who + ": size overflows");
    }
    if (elements == 0)
        return 0;
    using Wide = __int128;
    Wide last = shape.offset;
    for (std::size_t i = 0; i < shape.sizes.size(); ++i) {
        last += static_cast<Wide>(shape.sizes[i] - 1) * shape.strides[i];
        if (last > (static_cast<Wide>(1) << 62U))
            throw ReadError(who + " reaches outside its payload of " + std::to_string(bytes) + " bytes");
    }
    if ((last + 1) * static_cast<Wide>(itemSize) > static_cast<Wide>(bytes))
        throw ReadError(who + " reaches outside its payload of " + std::to_string(bytes) + " bytes");
    return extent;
}

at::Tensor makeTensor(const Payload &payload, at::ScalarType type, const Strided &shape, const std::string &who)
{
    checkStrided(shape, c10::elementSize(type), payload.size, who);
    at::Tensor tensor = at::empty({0}, at::TensorOptions(type));
    // An empty tensor may state an offset beyond its (empty) storage.
    std::int64_t offset = shape.offset;
    if (std::find(shape.sizes.begin(), shape.sizes.end(), 0) != shape.sizes.end())
        offset = 0;
    return tensor.set_(payload.storage, offset, shape.sizes, shape.strides);
}

std::vector<std::int64_t> contiguousStrides(const std::vector<std::int64_t> &sizes)
{
    std::vector<std::int64_t> strides(sizes.size(), 1);
    for (std::size_t i = sizes.size(); i-- > 1;)
        strides[i - 1] = strides[i] * std::max<std::int64_t>(sizes[i], 1);
    return strides;
}

} // namespace dblame

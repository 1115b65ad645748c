// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compiled with -ffp-contract=off: every clone must give the bits of separate multiply, round and add.
#include "core/engine/qdq_kernels.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include "core/engine/target_clones.h"

namespace dblame
{

namespace
{

constexpr std::int64_t kGrain = 32768;

// Same sizes and strides as elementwise ATen operators give to a dense operand; undefined for others
// (expanded or overlapping), whose result strides depend on the operator.
at::Tensor denseLike(const at::Tensor &t, at::ScalarType dtype)
{
    const auto options = t.options().dtype(dtype);
    if (t.is_contiguous())
        return at::empty(t.sizes(), options);
    if (t.dim() == 4 && t.is_contiguous(at::MemoryFormat::ChannelsLast))
        return at::empty(t.sizes(), options, at::MemoryFormat::ChannelsLast);
    if (t.dim() == 5 && t.is_contiguous(at::MemoryFormat::ChannelsLast3d))
        return at::empty(t.sizes(), options, at::MemoryFormat::ChannelsLast3d);
    if (t.is_non_overlapping_and_dense())
        return at::empty_strided(t.sizes(), t.strides(), options);
    return {};
}

// The comparisons let NaN through, as at::clamp does; the conversion then gives what torch's gives
// (x86: the low bits of INT_MIN, which are zero).
template <class Q>
DBLAME_TARGET_CLONES void quantizeRun(const float *x, Q *q, std::int64_t n, float inverse, float zero, float lo,
                                      float hi)
{
    for (std::int64_t i = 0; i < n; ++i) {
        float r = __builtin_rintf(x[i] * inverse) + zero;
        r = r < lo ? lo : r;
        r = r > hi ? hi : r;
        q[i] = static_cast<Q>(static_cast<std::int32_t>(r));
    }
}

template <class Q>
DBLAME_TARGET_CLONES void dequantizeRun(const Q *q, float *y, std::int64_t n, float scale, float zero)
{
    for (std::int64_t i = 0; i < n; ++i)
        y[i] = (static_cast<float>(q[i]) - zero) * scale;
}

template <class Q>
void quantizeAll(const at::Tensor &x, const at::Tensor &out, float inverse, float zero, float lo, float hi)
{
    const auto *src = x.const_data_ptr<float>();
    auto *dst = out.mutable_data_ptr<Q>();
    at::parallel_for(0, x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        quantizeRun(src + begin, dst + begin, end - begin, inverse, zero, lo, hi);
    });
}

template <class Q>
void dequantizeAll(const at::Tensor &q, const at::Tensor &out, float scale, float zero)
{
    const auto *src = q.const_data_ptr<Q>();
    auto *dst = out.mutable_data_ptr<float>();
    at::parallel_for(0, q.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        dequantizeRun(src + begin, dst + begin, end - begin, scale, zero);
    });
}

// Per index of the axis: dense rows of `inner` elements, `outer` times over.
template <class Q>
void dequantizeRows(const at::Tensor &q, const at::Tensor &out, const std::vector<float> &scales,
                    const std::vector<float> &zeros, std::int64_t inner)
{
    const auto *src = q.const_data_ptr<Q>();
    auto *dst = out.mutable_data_ptr<float>();
    const auto channels = static_cast<std::int64_t>(scales.size());
    const std::int64_t rows = inner == 0 ? 0 : q.numel() / inner;
    at::parallel_for(0, rows, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(inner, 1)),
                     [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t r = begin; r < end; ++r) {
                             const auto c = static_cast<std::size_t>(r % channels);
                             dequantizeRun(src + r * inner, dst + r * inner, inner, scales[c], zeros[c]);
                         }
                     });
}

bool smallIntegers(at::ScalarType dtype)
{
    return dtype == at::kByte || dtype == at::kChar || dtype == at::kShort || dtype == at::kUInt16;
}

template <class F>
void withStorageType(at::ScalarType dtype, const F &f)
{
    switch (dtype) {
    case at::kByte:
        f(std::uint8_t{});
        break;
    case at::kChar:
        f(std::int8_t{});
        break;
    case at::kShort:
        f(std::int16_t{});
        break;
    default:
        f(std::uint16_t{});
        break;
    }
}

} // namespace

at::Tensor fastQuantizePerTensor(const at::Tensor &x, float inverseScale, std::int64_t zeroPoint, std::int64_t quantMin,
                                 std::int64_t quantMax, at::ScalarType dtype)
{
    if (!smallIntegers(dtype) || x.scalar_type() != at::kFloat || quantMin > quantMax)
        return {};
    at::Tensor out = denseLike(x, dtype);
    if (!out.defined())
        return {};
    withStorageType(dtype, [&](auto q) {
        quantizeAll<decltype(q)>(x, out, inverseScale, static_cast<float>(zeroPoint), static_cast<float>(quantMin),
                                 static_cast<float>(quantMax));
    });
    return out;
}

at::Tensor fastDequantizePerTensor(const at::Tensor &q, float scale, std::int64_t zeroPoint)
{
    if (!smallIntegers(q.scalar_type()))
        return {};
    at::Tensor out = denseLike(q, at::kFloat);
    if (!out.defined())
        return {};
    withStorageType(q.scalar_type(),
                    [&](auto type) { dequantizeAll<decltype(type)>(q, out, scale, static_cast<float>(zeroPoint)); });
    return out;
}

at::Tensor fastDequantizePerChannel(const at::Tensor &q, const at::Tensor &scales,
                                    const std::optional<at::Tensor> &zeroPoints, std::int64_t axis)
{
    // Dimensions of size 1 have no place in the order of strides, so the composite may arrange them differently.
    // uint16 does not promote with other integers: the composite says so.
    bool plain = smallIntegers(q.scalar_type()) && q.scalar_type() != at::kUInt16 &&
                 scales.scalar_type() == at::kFloat && scales.dim() == 1 && axis >= 0 && q.is_contiguous();
    for (const auto size : q.sizes())
        plain = plain && size > 1;
    plain = plain && scales.size(0) == q.size(axis);
    if (!plain)
        return {};
    const auto channels = scales.size(0);
    std::vector<float> s(static_cast<std::size_t>(channels)), z(static_cast<std::size_t>(channels), 0.0F);
    const at::Tensor dense = scales.contiguous();
    std::copy_n(dense.const_data_ptr<float>(), channels, s.begin());
    if (zeroPoints) {
        // Wider than the values, and small: the difference is exact in the promoted type and in float32.
        const auto type = zeroPoints->scalar_type();
        if ((type != at::kLong && type != at::kInt) || zeroPoints->dim() != 1 || zeroPoints->size(0) != channels)
            return {};
        const at::Tensor wide = zeroPoints->to(at::kLong).contiguous();
        const auto *values = wide.const_data_ptr<std::int64_t>();
        for (std::int64_t c = 0; c < channels; ++c) {
            if (std::llabs(values[c]) > (1 << 22))
                return {};
            z[static_cast<std::size_t>(c)] = static_cast<float>(values[c]);
        }
    }
    std::int64_t inner = 1;
    for (std::int64_t d = axis + 1; d < q.dim(); ++d)
        inner *= q.size(d);
    at::Tensor out = at::empty(q.sizes(), q.options().dtype(at::kFloat));
    withStorageType(q.scalar_type(), [&](auto type) { dequantizeRows<decltype(type)>(q, out, s, z, inner); });
    return out;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compiled with -ffp-contract=off: every clone must give the bits of separate multiply, round and add.
#include "core/engine/qdq_kernels.h"

#include <algorithm>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
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

// `run(channel, first element)` for every dense row of `inner` elements; rows go through the channels in order.
template <class F>
void eachRow(std::int64_t numel, std::int64_t channels, std::int64_t inner, const F &run)
{
    const std::int64_t rows = inner == 0 ? 0 : numel / inner;
    at::parallel_for(0, rows, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(inner, 1)),
                     [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t r = begin; r < end; ++r)
                             run(static_cast<std::size_t>(r % channels), r * inner);
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

// --- per channel --------------------------------------------------------------------------------

// Strides that elementwise operators give to their result, found by asking them about tensors without data.
class Layout
{
public:
    explicit Layout(const at::Tensor &t)
        : m_tensor(at::empty_strided(t.sizes(), t.strides(), at::TensorOptions(at::kFloat).device(at::kMeta)))
    {
    }
    void permute(at::IntArrayRef axes) { m_tensor = m_tensor.permute(axes); }
    // An operator on the tensor and a column [n, 1, 1, ...].
    void withColumn(std::int64_t n)
    {
        std::vector<std::int64_t> shape(static_cast<std::size_t>(m_tensor.dim()), 1);
        shape[0] = n;
        const at::Tensor column = at::empty(shape, m_tensor.options());
        auto iterator = at::TensorIteratorConfig()
                            .set_check_mem_overlap(false)
                            .add_owned_output(at::Tensor())
                            .add_owned_const_input(m_tensor)
                            .add_owned_const_input(column)
                            .build();
        m_tensor = iterator.output();
    }
    // An operator on the tensor alone.
    void alone() { m_tensor = denseLike(m_tensor, at::kFloat); }
    [[nodiscard]] at::IntArrayRef strides() const { return m_tensor.strides(); }

private:
    at::Tensor m_tensor;
};

// Scales (or their reciprocals) and zero points as float32, where the kernels may use them.
struct Channels {
    std::vector<float> scales, zeros;
    std::int64_t inner = 1; // elements per row
};

std::optional<Channels> channelsOf(const at::Tensor &t, const at::Tensor &scales,
                                   const std::optional<at::Tensor> &zeroPoints, std::int64_t axis)
{
    constexpr std::int64_t kShortestRow = 4; // below, one call per row costs more than the composite
    if (axis < 0 || axis >= t.dim() || !t.is_contiguous() || scales.scalar_type() != at::kFloat || scales.dim() != 1 ||
        scales.size(0) != t.size(axis) || !scales.is_contiguous() || t.numel() == 0)
        return {};
    const auto n = static_cast<std::size_t>(scales.size(0));
    Channels channels;
    channels.scales.assign(scales.const_data_ptr<float>(), scales.const_data_ptr<float>() + n);
    channels.zeros.assign(n, 0.0F);
    if (zeroPoints) {
        // Wider than the values, and small: sums and differences are exact in the promoted type and in float32.
        const auto type = zeroPoints->scalar_type();
        if ((type != at::kLong && type != at::kInt) || zeroPoints->sizes() != scales.sizes() ||
            !zeroPoints->is_contiguous())
            return {};
        const at::Tensor wide = zeroPoints->to(at::kLong);
        const auto *values = wide.const_data_ptr<std::int64_t>();
        for (std::size_t c = 0; c < n; ++c) {
            if (values[c] > (1 << 22) || values[c] < -(1 << 22))
                return {};
            channels.zeros[c] = static_cast<float>(values[c]);
        }
    }
    for (std::int64_t d = axis + 1; d < t.dim(); ++d)
        channels.inner *= t.size(d);
    if (channels.inner < kShortestRow)
        return {};
    return channels;
}

// A tensor with the strides of the layout if its elements lie as those of a contiguous one; undefined otherwise.
at::Tensor placed(const at::Tensor &like, const Layout &layout, at::ScalarType dtype)
{
    at::Tensor out = at::empty_strided(like.sizes(), layout.strides(), like.options().dtype(dtype));
    return out.is_contiguous() ? out : at::Tensor();
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

at::Tensor fastQuantizePerChannel(const at::Tensor &x, const at::Tensor &scales, const at::Tensor &zeroPoints,
                                  std::int64_t axis, at::IntArrayRef axes, std::int64_t quantMin, std::int64_t quantMax,
                                  at::ScalarType dtype)
{
    if (!smallIntegers(dtype) || x.scalar_type() != at::kFloat || quantMin > quantMax)
        return {};
    auto channels = channelsOf(x, scales, zeroPoints, axis);
    if (!channels)
        return {};
    Layout layout(x);
    layout.permute(axes);
    layout.withColumn(scales.size(0)); // mul
    layout.alone();                    // round
    layout.withColumn(scales.size(0)); // add
    layout.alone();                    // clamp
    layout.permute(axes);
    at::Tensor out = placed(x, layout, dtype);
    if (!out.defined())
        return {};
    for (float &s : channels->scales)
        s = 1.0F / s;
    const auto lo = static_cast<float>(quantMin), hi = static_cast<float>(quantMax);
    const auto *src = x.const_data_ptr<float>();
    withStorageType(dtype, [&](auto type) {
        auto *dst = out.mutable_data_ptr<decltype(type)>();
        eachRow(x.numel(), scales.size(0), channels->inner, [&](std::size_t c, std::int64_t at) {
            quantizeRun(src + at, dst + at, channels->inner, channels->scales[c], channels->zeros[c], lo, hi);
        });
    });
    return out;
}

at::Tensor fastDequantizePerChannel(const at::Tensor &q, const at::Tensor &scales,
                                    const std::optional<at::Tensor> &zeroPoints, std::int64_t axis,
                                    at::IntArrayRef axes)
{
    // uint16 does not promote with other integers: the composite says so.
    if (!smallIntegers(q.scalar_type()) || q.scalar_type() == at::kUInt16)
        return {};
    const auto channels = channelsOf(q, scales, zeroPoints, axis);
    if (!channels)
        return {};
    Layout layout(q);
    layout.permute(axes);
    if (zeroPoints)
        layout.withColumn(scales.size(0)); // sub
    layout.withColumn(scales.size(0));     // mul
    layout.permute(axes);
    at::Tensor out = placed(q, layout, at::kFloat);
    if (!out.defined())
        return {};
    auto *dst = out.mutable_data_ptr<float>();
    withStorageType(q.scalar_type(), [&](auto type) {
        const auto *src = q.const_data_ptr<decltype(type)>();
        eachRow(q.numel(), scales.size(0), channels->inner, [&](std::size_t c, std::int64_t at) {
            dequantizeRun(src + at, dst + at, channels->inner, channels->scales[c], channels->zeros[c]);
        });
    });
    return out;
}

} // namespace dblame

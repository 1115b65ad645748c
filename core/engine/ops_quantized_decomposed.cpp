// SPDX-License-Identifier: GPL-3.0-or-later
//
// The operators of namespace quantized_decomposed, which torch registers from Python only; here they are
// dblame::quantized_decomposed_<name>. Each gives the bits and the strides of the Python one: the composites
// below are the same sequences of ATen calls, and the one-pass kernels of qdq_kernels.h stand in where they are equal.
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/round.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "core/engine/qdq_kernels.h"

namespace dblame
{

namespace
{

using at::ScalarType;
using at::Tensor;
using OptDType = std::optional<ScalarType>;

// Smallest and largest integer of a storage type, as torch's table has them.
std::pair<std::int64_t, std::int64_t> boundsOf(ScalarType dtype)
{
    switch (dtype) {
    case ScalarType::Byte:
        return {0, 255};
    case ScalarType::Char:
        return {-128, 127};
    case ScalarType::UInt16:
        return {0, 65535};
    case ScalarType::Short:
        return {-32768, 32767};
    case ScalarType::Int:
        return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    case ScalarType::Float8_e5m2:
        return {-57344, 57344};
    case ScalarType::Float8_e4m3fn:
        return {-448, 448};
    default:
        TORCH_CHECK(false, "unsupported dtype ", dtype);
    }
}

void checkBounds(std::int64_t quantMin, std::int64_t quantMax, ScalarType dtype)
{
    const auto [lo, hi] = boundsOf(dtype);
    TORCH_CHECK(quantMin >= lo, "quant_min ", quantMin, " is below ", lo, ", the least value of ", dtype);
    TORCH_CHECK(quantMax <= hi, "quant_max ", quantMax, " is above ", hi, ", the largest value of ", dtype);
}

Tensor widened(const Tensor &input)
{
    const auto dtype = input.scalar_type();
    if (dtype == ScalarType::Half || dtype == ScalarType::BFloat16)
        return input.to(ScalarType::Float);
    TORCH_CHECK(dtype == ScalarType::Float, "expects float32 input, got ", dtype);
    return input;
}

void checkSingle(const Tensor &t, const char *name)
{
    TORCH_CHECK(t.numel() == 1, name, " must have one element, has ", t.numel());
}

// --- per tensor ---------------------------------------------------------------------------------

Tensor quantizePerTensor(const Tensor &input, double scale, std::int64_t zeroPoint, std::int64_t quantMin,
                         std::int64_t quantMax, ScalarType dtype)
{
    const Tensor x = widened(input);
    checkBounds(quantMin, quantMax, dtype);
    TORCH_CHECK(scale != 0, "scale is zero");
    const double inverse = 1.0 / scale;
    if (auto fast = fastQuantizePerTensor(x, static_cast<float>(inverse), zeroPoint, quantMin, quantMax, dtype);
        fast.defined())
        return fast;
    return at::clamp(at::add(at::round(at::mul(x, inverse)), zeroPoint), quantMin, quantMax).to(dtype);
}

Tensor quantizePerTensorTensor(const Tensor &input, const Tensor &scale, const Tensor &zeroPoint, std::int64_t quantMin,
                               std::int64_t quantMax, ScalarType dtype)
{
    checkSingle(zeroPoint, "zero_point");
    checkSingle(scale, "scale");
    return quantizePerTensor(input, scale.item().toDouble(), zeroPoint.item().toLong(), quantMin, quantMax, dtype);
}

Tensor quantizePerTensorTensor2(const Tensor &input, const Tensor &scale, const Tensor &zeroPoint,
                                const Tensor &quantMin, const Tensor &quantMax, ScalarType dtype)
{
    return quantizePerTensorTensor(input, scale, zeroPoint, quantMin.item().toLong(), quantMax.item().toLong(), dtype);
}

Tensor dequantizePerTensor(const Tensor &input, double scale, std::int64_t zeroPoint, std::int64_t, std::int64_t,
                           ScalarType dtype, OptDType outDtype)
{
    TORCH_CHECK(input.scalar_type() == dtype, "expects ", dtype, " input, got ", input.scalar_type());
    (void)boundsOf(dtype);
    const ScalarType out = outDtype.value_or(ScalarType::Float);
    if (out == ScalarType::Float)
        if (auto fast = fastDequantizePerTensor(input, static_cast<float>(scale), zeroPoint); fast.defined())
            return fast;
    return at::mul(at::sub(input.to(out), zeroPoint), scale);
}

Tensor dequantizePerTensorTensor(const Tensor &input, const Tensor &scale, const Tensor &zeroPoint,
                                 std::int64_t quantMin, std::int64_t quantMax, ScalarType dtype, OptDType outDtype)
{
    checkSingle(zeroPoint, "zero_point");
    checkSingle(scale, "scale");
    return dequantizePerTensor(input, scale.item().toDouble(), zeroPoint.item().toLong(), quantMin, quantMax, dtype,
                               outDtype);
}

Tensor dequantizePerTensorTensor2(const Tensor &input, const Tensor &scale, const Tensor &zeroPoint,
                                  const Tensor &quantMin, const Tensor &quantMax, ScalarType dtype, OptDType outDtype)
{
    return dequantizePerTensorTensor(input, scale, zeroPoint, quantMin.item().toLong(), quantMax.item().toLong(), dtype,
                                     outDtype);
}

// --- choose_qparams -----------------------------------------------------------------------------

std::tuple<Tensor, Tensor> chooseQParams(const Tensor &input, std::int64_t qmin, std::int64_t qmax, double eps,
                                         ScalarType dtype, bool symmetric)
{
    const auto in = input.scalar_type();
    TORCH_CHECK(in == ScalarType::Float || in == ScalarType::Half || in == ScalarType::BFloat16,
                "expects float32, float16 or bfloat16 input, got ", in);
    (void)boundsOf(dtype);
    TORCH_CHECK(qmin <= 0 && qmax >= 0, "the quantization range must include 0");
    TORCH_CHECK(qmin < qmax, "quant_min must be less than quant_max");
    auto [min, max] = at::aminmax(input);
    const double lo = min.item().toDouble(), hi = max.item().toDouble();
    if (lo == std::numeric_limits<double>::infinity() && hi == -std::numeric_limits<double>::infinity())
        return {at::full({1}, 1.0, at::kFloat), at::full({1}, 0, at::kLong)}; // nothing was observed
    TORCH_CHECK(!(lo > hi), "min ", lo, " should be less than max ", hi);     // NaN goes on, as in Python
    const Tensor epsTensor = at::full({1}, eps, at::kFloat);
    const Tensor negative = at::minimum(min, at::zeros_like(min));
    const Tensor positive = at::maximum(max, at::zeros_like(max));
    Tensor scale, zeroPoint;
    if (symmetric) {
        scale = at::maximum(at::div(at::maximum(at::neg(negative), positive), static_cast<double>(qmax - qmin) / 2),
                            epsTensor);
        zeroPoint = at::full(min.sizes(), dtype == ScalarType::Byte ? 128 : 0, at::kLong);
    } else {
        scale = at::maximum(at::div(at::sub(positive, negative), static_cast<double>(qmax - qmin)), epsTensor);
        zeroPoint = at::rsub(at::round(at::div(negative, scale)).to(at::kInt), qmin);
        zeroPoint = at::clamp(zeroPoint, qmin, qmax);
    }
    return {scale.reshape({-1}).to(at::kDouble), zeroPoint.reshape({-1}).to(at::kLong)};
}

std::tuple<Tensor, Tensor> chooseQParamsAffine(const Tensor &input, std::int64_t qmin, std::int64_t qmax, double eps,
                                               ScalarType dtype)
{
    return chooseQParams(input, qmin, qmax, eps, dtype, false);
}

std::tuple<Tensor, Tensor> chooseQParamsSymmetric(const Tensor &input, std::int64_t qmin, std::int64_t qmax, double eps,
                                                  ScalarType dtype)
{
    return chooseQParams(input, qmin, qmax, eps, dtype, true);
}

// --- per channel --------------------------------------------------------------------------------

// Axis 0 and `axis` exchanged; the same permutation takes it back.
std::vector<std::int64_t> swappedAxes(const Tensor &t, std::int64_t axis)
{
    TORCH_CHECK(axis < t.dim(), "axis ", axis, " of a tensor with ", t.dim(), " dimensions");
    std::vector<std::int64_t> axes(static_cast<std::size_t>(t.dim()));
    std::iota(axes.begin(), axes.end(), 0);
    const auto a = static_cast<std::size_t>(axis < 0 ? axis + t.dim() : axis);
    axes[a] = 0;
    axes[0] = axis;
    return axes;
}

std::vector<std::int64_t> columnShape(const Tensor &t, const Tensor &scales)
{
    std::vector<std::int64_t> shape(static_cast<std::size_t>(t.dim()), 1);
    shape[0] = scales.size(0);
    return shape;
}

Tensor quantizePerChannel(const Tensor &input, const Tensor &scales, const Tensor &zeroPoints, std::int64_t axis,
                          std::int64_t quantMin, std::int64_t quantMax, ScalarType dtype)
{
    const Tensor x = widened(input);
    const auto axes = swappedAxes(x, axis);
    checkBounds(quantMin, quantMax, dtype);
    if (auto fast = fastQuantizePerChannel(x, scales, zeroPoints, axis, axes, quantMin, quantMax, dtype);
        fast.defined())
        return fast;
    const Tensor rows = x.permute(axes);
    const auto shape = columnShape(rows, scales);
    const Tensor s = scales.view(shape), z = zeroPoints.view(shape);
    const Tensor q = at::clamp(at::add(at::round(at::mul(rows, at::reciprocal(s))), z), quantMin, quantMax);
    return q.permute(axes).to(dtype);
}

Tensor dequantizePerChannel(const Tensor &input, const Tensor &scales, const std::optional<Tensor> &zeroPoints,
                            std::int64_t axis, std::int64_t quantMin, std::int64_t quantMax, ScalarType dtype,
                            OptDType outDtype)
{
    TORCH_CHECK(input.scalar_type() == dtype, "expects ", dtype, " input, got ", input.scalar_type());
    const auto axes = swappedAxes(input, axis);
    checkBounds(quantMin, quantMax, dtype);
    const ScalarType out = outDtype.value_or(ScalarType::Float);
    if (out == ScalarType::Float)
        if (auto fast = fastDequantizePerChannel(input, scales, zeroPoints, axis, axes); fast.defined())
            return fast;
    const Tensor rows = input.permute(axes);
    const auto shape = columnShape(rows, scales);
    const Tensor s = scales.view(shape);
    const Tensor res = zeroPoints ? at::mul(at::sub(rows, zeroPoints->view(shape)), s) : at::mul(rows, s);
    return res.to(out).permute(axes);
}

Tensor fakeQuantPerChannel(const Tensor &input, const Tensor &scalesIn, const Tensor &zeroPointsIn, std::int64_t axis,
                           std::int64_t quantMin, std::int64_t quantMax)
{
    TORCH_CHECK(input.scalar_type() == ScalarType::Float, "expects float32 input, got ", input.scalar_type());
    TORCH_CHECK(axis < input.dim(), "axis ", axis, " of a tensor with ", input.dim(), " dimensions");
    Tensor s = scalesIn.to(ScalarType::Float), z = zeroPointsIn.to(ScalarType::Int);
    for (std::int64_t d = 0; d < input.dim(); ++d) {
        if (d == axis)
            continue;
        s = s.unsqueeze(d);
        z = z.unsqueeze(d);
    }
    const Tensor q = at::clamp(at::add(at::round(at::mul(input, at::reciprocal(s))), z), quantMin, quantMax);
    return at::mul(at::sub(q, z), s);
}

// --- per token ----------------------------------------------------------------------------------

std::tuple<Tensor, Tensor> chooseQParamsPerToken(const Tensor &input, ScalarType dtype)
{
    Tensor scales = at::amax(at::abs(input), {-1}, true);
    if (scales.scalar_type() == ScalarType::Half)
        scales = scales.to(ScalarType::Float);
    TORCH_CHECK(dtype == ScalarType::Char, "choose_qparams_per_token takes int8 only, got ", dtype);
    scales = at::div(at::clamp(scales, 1e-5), 127);
    return {scales, at::zeros_like(scales)};
}

std::tuple<Tensor, Tensor> chooseQParamsPerTokenAsymmetric(const Tensor &input, ScalarType)
{
    const std::int64_t qmin = -128, qmax = 127;
    const Tensor min = at::amin(input, {-1}, true), max = at::amax(input, {-1}, true);
    const Tensor negative = at::minimum(min, at::zeros_like(min)), positive = at::maximum(max, at::zeros_like(max));
    const Tensor scale = at::clamp(at::div(at::sub(positive, negative), static_cast<double>(qmax - qmin)),
                                   static_cast<double>(std::numeric_limits<float>::epsilon()));
    const Tensor low = at::div(negative, scale), high = at::div(positive, scale);
    const Tensor sum = at::add(at::add(low, qmin), at::add(high, qmax));
    Tensor zeroPoint = at::where(at::gt(sum, 0), at::rsub(low, qmin), at::rsub(high, qmax));
    zeroPoint = at::round(at::clamp(zeroPoint, qmin, qmax));
    return {scale.to(at::kDouble), zeroPoint.to(at::kLong)};
}

Tensor quantizePerToken(const Tensor &input, const Tensor &scales, const Tensor &zeroPoints, std::int64_t quantMin,
                        std::int64_t quantMax, ScalarType dtype)
{
    checkBounds(quantMin, quantMax, dtype);
    std::int64_t tokens = 1;
    for (std::int64_t d = 0; d + 1 < input.dim(); ++d)
        tokens *= input.size(d);
    TORCH_CHECK(tokens == scales.numel(), tokens, " tokens, ", scales.numel(), " scales");
    TORCH_CHECK(tokens == zeroPoints.numel(), tokens, " tokens, ", zeroPoints.numel(), " zero points");
    return at::clamp(at::round(at::add(at::mul(input, at::reciprocal(scales)), zeroPoints)), quantMin, quantMax)
        .to(dtype);
}

Tensor dequantizePerToken(const Tensor &input, const Tensor &scales, const Tensor &zeroPoints, std::int64_t,
                          std::int64_t, ScalarType, ScalarType outputDtype)
{
    return at::mul(at::sub(input, zeroPoints), scales).to(outputDtype);
}

// --- per channel group --------------------------------------------------------------------------

std::int64_t groupSize(const Tensor &t, const Tensor &scales, std::int64_t group)
{
    TORCH_CHECK(group > 1, "group_size must be more than 1");
    TORCH_CHECK(t.dim() == 2, "input must have two dimensions, has ", t.dim());
    if (group > t.size(-1) && scales.size(-1) == 1)
        group = t.size(-1);
    TORCH_CHECK(t.size(-1) % group == 0, "the last dimension (", t.size(-1), ") must be a multiple of group_size ",
                group);
    return group;
}

Tensor quantizePerChannelGroup(const Tensor &input, const Tensor &scales, const Tensor &zeroPoints,
                               std::int64_t quantMin, std::int64_t quantMax, ScalarType dtype, std::int64_t group)
{
    group = groupSize(input, scales, group);
    const Tensor rows = input.reshape({-1, group});
    TORCH_CHECK(at::isnan(rows).sum().item().toLong() == 0, "the input holds NaN");
    const Tensor s = scales.reshape({-1, 1}), z = zeroPoints.reshape({-1, 1});
    return at::clamp(at::round(at::add(at::mul(rows, at::reciprocal(s)), z)), quantMin, quantMax)
        .to(dtype)
        .reshape_as(input);
}

Tensor dequantizePerChannelGroup(const Tensor &input, const Tensor &scales, const std::optional<Tensor> &zeroPoints,
                                 std::int64_t, std::int64_t, ScalarType, std::int64_t group, ScalarType outputDtype)
{
    group = groupSize(input, scales, group);
    const Tensor rows = input.reshape({-1, group});
    const Tensor s = scales.reshape({-1, 1});
    const Tensor z = zeroPoints ? zeroPoints->reshape({-1, 1}) : at::zeros({}, at::kInt);
    return at::mul(at::sub(rows, z), s).reshape_as(input).to(outputDtype);
}

Tensor convertElementType(const Tensor &input, ScalarType dtype)
{
    return input.to(dtype, /*non_blocking=*/false, /*copy=*/true);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(dblame, m)
{
#define DBLAME_QD "quantized_decomposed_"
#define DBLAME_RANGE "int quant_min, int quant_max, ScalarType dtype"
    m.def(DBLAME_QD "quantize_per_tensor(Tensor input, float scale, int zero_point, " DBLAME_RANGE ") -> Tensor",
          &quantizePerTensor);
    m.def(DBLAME_QD "quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, " DBLAME_RANGE
                    ") -> Tensor",
          &quantizePerTensorTensor);
    m.def(DBLAME_QD "quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, "
                    "Tensor quant_max, ScalarType dtype) -> Tensor",
          &quantizePerTensorTensor2);
    m.def(DBLAME_QD "dequantize_per_tensor(Tensor input, float scale, int zero_point, " DBLAME_RANGE
                    ", *, ScalarType? out_dtype=None) -> Tensor",
          &dequantizePerTensor);
    m.def(DBLAME_QD "dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, " DBLAME_RANGE
                    ", *, ScalarType? out_dtype=None) -> Tensor",
          &dequantizePerTensorTensor);
    m.def(DBLAME_QD "dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, "
                    "Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
          &dequantizePerTensorTensor2);
    m.def(DBLAME_QD "choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) "
                    "-> (Tensor, Tensor)",
          &chooseQParamsAffine);
    m.def(DBLAME_QD "choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, "
                    "ScalarType dtype) -> (Tensor, Tensor)",
          &chooseQParamsSymmetric);
    m.def(DBLAME_QD "quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, " DBLAME_RANGE
                    ") -> Tensor",
          &quantizePerChannel);
    m.def(DBLAME_QD "dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, " DBLAME_RANGE
                    ", *, ScalarType? out_dtype=None) -> Tensor",
          &dequantizePerChannel);
    m.def(DBLAME_QD "fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, "
                    "int quant_max) -> Tensor",
          &fakeQuantPerChannel);
    m.def(DBLAME_QD "choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
          &chooseQParamsPerToken);
    m.def(DBLAME_QD "choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
          &chooseQParamsPerTokenAsymmetric);
    m.def(DBLAME_QD "_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
          &chooseQParamsPerTokenAsymmetric);
    m.def(DBLAME_QD "quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, " DBLAME_RANGE ") -> Tensor",
          &quantizePerToken);
    m.def(DBLAME_QD "dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, " DBLAME_RANGE
                    ", ScalarType output_dtype) -> Tensor",
          &dequantizePerToken);
    m.def(DBLAME_QD "quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, " DBLAME_RANGE
                    ", int group_size) -> Tensor",
          &quantizePerChannelGroup);
    m.def(DBLAME_QD "dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, " DBLAME_RANGE
                    ", int group_size, ScalarType output_dtype) -> Tensor",
          &dequantizePerChannelGroup);
    m.def(DBLAME_QD "convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor", &convertElementType);
#undef DBLAME_RANGE
#undef DBLAME_QD
}

} // namespace dblame

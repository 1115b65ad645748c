// SPDX-License-Identifier: GPL-3.0-or-later
//
// The operators of namespace torchao that quantize_() models contain, registered from Python there; here they are
// dblame::torchao_<name>. Same ATen calls in the same order, so the same bits.
#include <limits>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/round.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

namespace dblame
{

namespace
{

using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

double float8Max(ScalarType dtype)
{
    switch (dtype) {
    case ScalarType::Float8_e4m3fn:
        return 448;
    case ScalarType::Float8_e5m2:
    case ScalarType::Float8_e5m2fnuz:
        return 57344;
    case ScalarType::Float8_e4m3fnuz:
        return 240;
    default:
        return 0;
    }
}

// The range of a type, or the part of it that was asked for.
std::pair<Scalar, Scalar> rangeOf(ScalarType dtype, const std::optional<Scalar> &quantMin,
                                  const std::optional<Scalar> &quantMax)
{
    Scalar lo, hi;
    switch (dtype) {
    case ScalarType::Byte:
        lo = 0;
        hi = 255;
        break;
    case ScalarType::Char:
        lo = -128;
        hi = 127;
        break;
    case ScalarType::Short:
        lo = -32768;
        hi = 32767;
        break;
    case ScalarType::Int:
        lo = std::int64_t{std::numeric_limits<std::int32_t>::min()};
        hi = std::int64_t{std::numeric_limits<std::int32_t>::max()};
        break;
    default:
        TORCH_CHECK(float8Max(dtype) > 0, "unsupported dtype ", dtype);
        lo = -float8Max(dtype);
        hi = float8Max(dtype);
    }
    const Scalar low = quantMin.value_or(lo), high = quantMax.value_or(hi);
    TORCH_CHECK(low.toDouble() >= lo.toDouble(), "quant_min is below the least value of ", dtype);
    TORCH_CHECK(high.toDouble() <= hi.toDouble(), "quant_max is above the largest value of ", dtype);
    return {low, high};
}

// The shape in which every block is an axis of its own, and the axes that one scale covers.
struct Blocks {
    std::vector<std::int64_t> shape, reduced, units; // units: `shape` with the reduced axes at 1
};

Blocks blocksOf(const Tensor &input, IntArrayRef blockSize)
{
    TORCH_CHECK(static_cast<std::int64_t>(blockSize.size()) == input.dim(), "block_size has ", blockSize.size(),
                " entries, the tensor ", input.dim(), " dimensions");
    Blocks blocks;
    for (std::size_t d = 0; d < blockSize.size(); ++d) {
        const std::int64_t size = input.size(static_cast<std::int64_t>(d)), block = blockSize[d];
        if (block != size && block > 1) {
            TORCH_CHECK(size % block == 0, "dimension ", d, " (", size, ") is no multiple of its block ", block);
            blocks.shape.push_back(size / block);
            blocks.reduced.push_back(static_cast<std::int64_t>(blocks.shape.size()));
            blocks.shape.push_back(block);
        } else {
            if (block != 1)
                blocks.reduced.push_back(static_cast<std::int64_t>(blocks.shape.size()));
            blocks.shape.push_back(size);
        }
    }
    blocks.units = blocks.shape;
    for (const auto axis : blocks.reduced)
        blocks.units[static_cast<std::size_t>(axis)] = 1;
    return blocks;
}

Tensor quantizeAffine(const Tensor &input, IntArrayRef blockSize, const Tensor &scale,
                      const std::optional<Tensor> &zeroPoint, ScalarType outputDtype,
                      const std::optional<Scalar> &quantMin, const std::optional<Scalar> &quantMax)
{
    const auto in = input.scalar_type();
    TORCH_CHECK(in == at::kFloat || in == at::kHalf || in == at::kBFloat16, "unsupported input dtype ", in);
    const auto [lo, hi] = rangeOf(outputDtype, quantMin, quantMax);
    const Blocks blocks = blocksOf(input, blockSize);
    TORCH_CHECK(zeroPoint && zeroPoint->numel() > 0, "zero_point is missing");
    const Tensor s = scale.view(blocks.units), z = zeroPoint->view(blocks.units);
    const Tensor q = at::clamp(at::add(at::round(at::mul(input.view(blocks.shape), at::reciprocal(s))), z), lo, hi);
    return q.view(input.sizes()).to(outputDtype);
}

Tensor dequantizeAffine(const Tensor &input, IntArrayRef blockSize, const Tensor &scale,
                        const std::optional<Tensor> &zeroPoint, ScalarType inputDtype,
                        const std::optional<Scalar> &quantMin, const std::optional<Scalar> &quantMax,
                        ScalarType outputDtype)
{
    TORCH_CHECK(input.scalar_type() == inputDtype, "expects ", inputDtype, " input, got ", input.scalar_type());
    TORCH_CHECK(outputDtype == at::kFloat || outputDtype == at::kHalf || outputDtype == at::kBFloat16,
                "unsupported output dtype ", outputDtype);
    (void)rangeOf(inputDtype, quantMin, quantMax);
    const Blocks blocks = blocksOf(input, blockSize);
    const Tensor s = scale.view(blocks.units);
    Tensor x = input.view(blocks.shape).to(outputDtype, /*non_blocking=*/false, /*copy=*/true);
    if (zeroPoint)
        x = at::sub(x, zeroPoint->view(blocks.units).to(outputDtype));
    return at::mul(x, s).view(input.sizes()).to(outputDtype);
}

double smallestNormal(ScalarType dtype)
{
    switch (dtype) {
    case ScalarType::Half:
        return 0x1p-14;
    case ScalarType::Double:
        return std::numeric_limits<double>::min();
    default: // float32 and bfloat16 share their exponents
        return static_cast<double>(std::numeric_limits<float>::min());
    }
}

Tensor symmetricScale(const Tensor &negative, const Tensor &positive, const Scalar &lo, const Scalar &hi,
                      bool noClipping)
{
    if (!noClipping) {
        const double half = (hi.isFloatingPoint() || lo.isFloatingPoint())
                                ? (hi.toDouble() - lo.toDouble()) / 2
                                : static_cast<double>(hi.toLong() - lo.toLong()) / 2;
        return at::div(at::maximum(at::neg(negative), positive), half);
    }
    const Tensor low = at::div(negative, lo.toDouble()), high = at::div(positive, hi.toDouble());
    return at::where(at::gt(low, high), low, high);
}

std::tuple<Tensor, Tensor> chooseQParamsAffine(const std::optional<Tensor> &maybeInput, c10::string_view mapping,
                                               IntArrayRef blockSize, ScalarType targetDtype,
                                               const std::optional<Scalar> &quantMin,
                                               const std::optional<Scalar> &quantMax, std::optional<double> eps,
                                               std::optional<ScalarType> scaleDtype,
                                               std::optional<ScalarType> zeroPointDtype, bool keepdim)
{
    TORCH_CHECK(maybeInput.has_value(), "input is missing");
    const Tensor &input = *maybeInput;
    const auto [lo, hi] = rangeOf(targetDtype, quantMin, quantMax);
    const bool symmetric = mapping == "SYMMETRIC", noClipping = mapping == "SYMMETRIC_NO_CLIPPING_ERR";
    TORCH_CHECK(symmetric || noClipping || mapping == "ASYMMETRIC", "unsupported mapping type ", mapping);
    const double least = eps.value_or(smallestNormal(input.scalar_type()));
    const Blocks blocks = blocksOf(input, blockSize);
    const Tensor x = input.view(blocks.shape);
    const Tensor min = at::amin(x, blocks.reduced, keepdim), max = at::amax(x, blocks.reduced, keepdim);
    const Tensor negative = at::minimum(min, at::zeros_like(min)), positive = at::maximum(max, at::zeros_like(max));
    Tensor scale, zeroPoint;
    if (symmetric || noClipping) {
        scale = symmetricScale(negative, positive, lo, hi, noClipping);
        zeroPoint = at::full_like(scale, static_cast<std::int64_t>((hi.toDouble() + lo.toDouble() + 1) / 2));
        scale = at::clamp(scale, least);
    } else {
        scale = at::clamp(at::div(at::sub(positive, negative), hi.toDouble() - lo.toDouble()), least);
        zeroPoint = at::clamp(at::rsub(at::round(at::div(negative, scale)), lo), lo, hi);
        zeroPointDtype = zeroPointDtype.value_or(at::kInt);
    }
    if (keepdim) {
        std::vector<std::int64_t> shape;
        for (std::size_t d = 0; d < blockSize.size(); ++d)
            shape.push_back(input.size(static_cast<std::int64_t>(d)) / blockSize[d]);
        scale = scale.reshape(shape);
        zeroPoint = zeroPoint.reshape(shape);
    }
    return {scale.to(scaleDtype.value_or(input.scalar_type())),
            zeroPointDtype ? zeroPoint.to(*zeroPointDtype) : zeroPoint};
}

Tensor chooseScaleFloat8(const Tensor &tensor, IntArrayRef blockSize, ScalarType float8, ScalarType scaleDtype,
                         std::optional<double> lower, std::optional<double> upper)
{
    TORCH_CHECK(float8Max(float8) > 0, "unsupported float8 dtype ", float8);
    const Blocks blocks = blocksOf(tensor, blockSize);
    Tensor most = at::amax(at::abs(tensor.view(blocks.shape)), blocks.reduced, true);
    if (lower || upper)
        most = at::clamp(most, lower ? std::optional<Scalar>(*lower) : std::nullopt,
                         upper ? std::optional<Scalar>(*upper) : std::nullopt);
    Tensor scale = at::div(most, float8Max(float8));
    std::vector<std::int64_t> shape;
    for (std::size_t d = 0; d < blockSize.size(); ++d)
        shape.push_back(tensor.size(static_cast<std::int64_t>(d)) / blockSize[d]);
    scale = scale.reshape(shape);
    if (scaleDtype != at::kFloat) {
        TORCH_CHECK(scaleDtype == ScalarType::Float8_e8m0fnu, "unsupported scale dtype ", scaleDtype);
        scale = at::exp2(at::round(at::log2(scale)));
    }
    return scale.to(at::kFloat);
}

// One scale per block, spread over the tensor.
Tensor expandedScale(const Tensor &scale, const Tensor &tensor)
{
    if (scale.numel() == 1 || scale.sizes() == tensor.sizes())
        return scale;
    bool broadcasts = true; // as far as the shorter shape goes
    for (std::int64_t d = 0; d < std::min(scale.dim(), tensor.dim()); ++d)
        broadcasts = broadcasts && (scale.size(d) == tensor.size(d) || scale.size(d) == 1);
    if (broadcasts)
        return scale;
    TORCH_CHECK(scale.dim() == tensor.dim(), "scale has ", scale.dim(), " dimensions, the tensor ", tensor.dim());
    Tensor result = scale;
    for (std::int64_t d = 0; d < tensor.dim(); ++d) {
        const std::int64_t block = scale.size(d) == 0 ? 0 : tensor.size(d) / scale.size(d);
        TORCH_CHECK(block * scale.size(d) == tensor.size(d), "dimension ", d, " is no multiple of its scales");
        if (block > 1)
            result = at::repeat_interleave(result, block, d);
    }
    return result;
}

Tensor quantizeAffineFloat8(const Tensor &tensor, const Tensor &scale, ScalarType float8)
{
    TORCH_CHECK(float8Max(float8) > 0, "unsupported float8 dtype ", float8);
    const Tensor x = at::div(tensor.to(at::kFloat), expandedScale(scale, tensor));
    return at::clamp(x, -float8Max(float8), float8Max(float8)).to(float8);
}

Tensor dequantizeAffineFloat8(const Tensor &tensor, const Tensor &scale, ScalarType outputDtype)
{
    return at::mul(tensor.to(at::kFloat), expandedScale(scale, tensor)).to(outputDtype);
}

} // namespace

TORCH_LIBRARY_FRAGMENT(dblame, m)
{
    m.def("torchao_quantize_affine(Tensor input, int[] block_size, Tensor scale, Tensor? zero_point, ScalarType "
          "output_dtype, "
          "Scalar? quant_min=None, Scalar? quant_max=None) -> Tensor",
          &quantizeAffine);
    m.def("torchao_dequantize_affine(Tensor input, int[] block_size, Tensor scale, Tensor? zero_point, ScalarType "
          "input_dtype, "
          "Scalar? quant_min=None, Scalar? quant_max=None, ScalarType output_dtype=6) -> Tensor",
          &dequantizeAffine);
    m.def("torchao_choose_qparams_affine(Tensor? input, str mapping_type, int[] block_size, ScalarType target_dtype, "
          "Scalar? quant_min=None, Scalar? quant_max=None, float? eps=None, ScalarType? scale_dtype=None, "
          "ScalarType? zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)",
          &chooseQParamsAffine);
    m.def("torchao_choose_scale_float8(Tensor tensor, int[] block_size, ScalarType float8_dtype=24, ScalarType "
          "scale_dtype=6, "
          "float? hp_value_lb=None, float? hp_value_ub=None) -> Tensor",
          &chooseScaleFloat8);
    m.def("torchao_quantize_affine_float8_non_decomposed(Tensor tensor, Tensor scale, ScalarType float8_dtype=24) -> "
          "Tensor",
          &quantizeAffineFloat8);
    m.def("torchao_dequantize_affine_float8_non_decomposed(Tensor tensor, Tensor scale, ScalarType output_dtype=6) -> "
          "Tensor",
          &dequantizeAffineFloat8);
}

} // namespace dblame

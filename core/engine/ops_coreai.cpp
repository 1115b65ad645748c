// SPDX-License-Identifier: GPL-3.0-or-later
//
// The operators of namespace coreai (weights and activations finalized for Core AI), registered from Python there;
// here they are dblame::coreai_<name>. Same ATen calls in the same order, so the same bits. Sub-byte integers lie
// one per byte; their logical width is the argument input_dtype.
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/index.h>
#include <ATen/ops/movedim.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/round.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

namespace dblame
{

namespace
{

using at::ScalarType;
using at::Tensor;
using OptTensor = std::optional<Tensor>;
using OptDType = std::optional<ScalarType>;

std::pair<std::int64_t, std::int64_t> integerRange(ScalarType dtype)
{
    const auto width = [](bool isSigned, int bits) -> std::pair<std::int64_t, std::int64_t> {
        if (isSigned)
            return {-(std::int64_t{1} << (bits - 1)), (std::int64_t{1} << (bits - 1)) - 1};
        return {0, (std::int64_t{1} << bits) - 1};
    };
    switch (dtype) {
    case ScalarType::Byte:
        return width(false, 8);
    case ScalarType::Char:
        return width(true, 8);
    case ScalarType::UInt16:
        return width(false, 16);
    case ScalarType::Short:
        return width(true, 16);
    case ScalarType::Int:
        return width(true, 32);
    default:
        TORCH_CHECK(false, "unsupported integer dtype ", dtype);
    }
}

double floatMax(ScalarType dtype)
{
    switch (dtype) {
    case ScalarType::Float8_e4m3fn:
        return 448;
    case ScalarType::Float8_e5m2:
    case ScalarType::Float8_e5m2fnuz:
        return 57344;
    case ScalarType::Float8_e4m3fnuz:
        return 240;
    case ScalarType::Half:
        return 65504;
    case ScalarType::BFloat16:
        return 3.3895313892515355e38;
    default:
        return std::numeric_limits<float>::max();
    }
}

void checkOffsets(const Tensor &scale, const OptTensor &zeroPoint, const OptTensor &minval, bool isFloat)
{
    TORCH_CHECK(!zeroPoint || !minval, "zero_point and minval exclude each other");
    TORCH_CHECK(!isFloat || (!zeroPoint && !minval), "float types take neither zero_point nor minval");
    TORCH_CHECK(!zeroPoint || zeroPoint->sizes() == scale.sizes(), "zero_point has another shape than scale");
    TORCH_CHECK(!minval || minval->sizes() == scale.sizes(), "minval has another shape than scale");
}

// A scale of one element or of one per index of `axis`, ready to broadcast over the tensor.
Tensor onAxis(const Tensor &t, std::int64_t axis, const Tensor &input)
{
    if (t.dim() > 1)
        return t;
    std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
    if (!shape.empty())
        shape[static_cast<std::size_t>(axis < 0 ? axis + input.dim() : axis)] = t.numel();
    return t.reshape(shape);
}

void checkAxis(const Tensor &input, const Tensor &scale, std::int64_t axis)
{
    TORCH_CHECK(scale.dim() <= 1 || scale.dim() == input.dim(), "scale has ", scale.dim(), " dimensions, the tensor ",
                input.dim());
    TORCH_CHECK(scale.numel() == 1 || scale.numel() == input.size(axis), "scale has ", scale.numel(),
                " elements, axis ", axis, " has ", input.size(axis));
}

Tensor quantize(const Tensor &input, const Tensor &scaleIn, ScalarType outputDtype, const OptTensor &zeroPoint,
                const OptTensor &minval, std::int64_t axis)
{
    const bool isFloat = c10::isFloatingType(outputDtype);
    checkOffsets(scaleIn, zeroPoint, minval, isFloat);
    checkAxis(input, scaleIn, axis);
    TORCH_CHECK(!minval || minval->scalar_type() == input.scalar_type(), "minval must have the input's dtype");
    const Tensor scale = onAxis(scaleIn, axis, input);
    if (isFloat) {
        const double most = floatMax(outputDtype);
        return at::clamp(at::div(input.to(at::kFloat), scale.to(at::kFloat)), -most, most).to(outputDtype);
    }
    const auto [lo, hi] = integerRange(outputDtype);
    Tensor q;
    if (zeroPoint)
        q = at::add(at::round(at::div(input, scale)), onAxis(*zeroPoint, axis, input));
    else if (minval)
        q = at::add(at::round(at::div(at::sub(input, onAxis(*minval, axis, input)), scale)), lo);
    else
        q = at::round(at::div(input, scale));
    return at::clamp(q, lo, hi).to(outputDtype);
}

Tensor shiftAndScale(const Tensor &input, const Tensor &scale, const OptTensor &zeroPoint, const OptTensor &minval,
                     OptDType inputDtype)
{
    const Tensor x = input.to(scale.scalar_type());
    if (zeroPoint)
        return at::mul(at::sub(x, *zeroPoint), scale);
    if (minval) {
        TORCH_CHECK(inputDtype.has_value(), "minval needs input_dtype");
        return at::add(at::mul(at::sub(x, integerRange(*inputDtype).first), scale), *minval);
    }
    return at::mul(x, scale);
}

void checkStoredOffsets(const Tensor &input, const Tensor &scale, const OptTensor &zeroPoint, const OptTensor &minval)
{
    TORCH_CHECK(!zeroPoint || zeroPoint->scalar_type() == input.scalar_type(),
                "zero_point must have the input's dtype");
    TORCH_CHECK(!minval || minval->scalar_type() == scale.scalar_type(), "minval must have the scale's dtype");
}

Tensor dequantize(const Tensor &input, const Tensor &scaleIn, const OptTensor &zeroPoint, const OptTensor &minval,
                  std::int64_t axis, OptDType inputDtype, OptDType outputDtype)
{
    const bool isFloat = input.is_floating_point();
    checkOffsets(scaleIn, zeroPoint, minval, isFloat);
    checkAxis(input, scaleIn, axis);
    const Tensor scale = onAxis(scaleIn, axis, input);
    if (isFloat) {
        TORCH_CHECK(outputDtype || scaleIn.scalar_type() != ScalarType::Float8_e8m0fnu,
                    "a float8_e8m0fnu scale needs output_dtype");
        return at::mul(input.to(at::kFloat), scale.to(at::kFloat)).to(outputDtype.value_or(scaleIn.scalar_type()));
    }
    checkStoredOffsets(input, scaleIn, zeroPoint, minval);
    const auto placed = [&](const OptTensor &t) { return t ? OptTensor(onAxis(*t, axis, input)) : std::nullopt; };
    return shiftAndScale(input, scale, placed(zeroPoint), placed(minval), inputDtype);
}

// Every entry of `t` repeated in a run, so that its leading dimensions cover `shape`.
Tensor repeatedTo(const Tensor &t, at::IntArrayRef shape)
{
    Tensor result = t;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const auto axis = static_cast<std::int64_t>(d);
        TORCH_CHECK(t.size(axis) != 0 && shape[d] % t.size(axis) == 0, "dimension ", d, " (", shape[d],
                    ") is no multiple of ", t.size(axis));
        if (const std::int64_t run = shape[d] / t.size(axis); run > 1)
            result = at::repeat_interleave(result, run, axis);
    }
    return result;
}

// Two 4-bit floats (2 bits exponent, 1 bit mantissa) per byte, the low one first.
Tensor unpackedFloat4(const Tensor &bytes)
{
    static constexpr std::array<float, 16> kValues = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                                      -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};
    const Tensor table = at::tensor(at::ArrayRef<float>(kValues));
    const auto pick = [&](const Tensor &bits) { return at::index(table, {bits.to(at::kLong)}); };
    return at::stack({pick(at::bitwise_and(bytes, 15)), pick(at::bitwise_right_shift(bytes, 4))}, -1).flatten(-2);
}

Tensor blockwiseShiftScale(const Tensor &input, const Tensor &scale, const OptTensor &zeroPoint,
                           const OptTensor &minval, OptDType inputDtype, OptDType outputDtype)
{
    const bool float4 = input.scalar_type() == at::kByte && scale.scalar_type() == ScalarType::Float8_e8m0fnu;
    const bool isFloat = float4 || input.is_floating_point();
    TORCH_CHECK(scale.dim() == input.dim(), "scale has ", scale.dim(), " dimensions, the tensor ", input.dim());
    checkOffsets(scale, zeroPoint, minval, isFloat);
    if (isFloat) {
        TORCH_CHECK(outputDtype || scale.scalar_type() != ScalarType::Float8_e8m0fnu,
                    "a float8_e8m0fnu scale needs output_dtype");
        const Tensor x = float4 ? unpackedFloat4(input) : input;
        return at::mul(x.to(at::kFloat), repeatedTo(scale.to(at::kFloat), x.sizes()))
            .to(outputDtype.value_or(scale.scalar_type()));
    }
    checkStoredOffsets(input, scale, zeroPoint, minval);
    const auto repeated = [&](const OptTensor &t) {
        return t ? OptTensor(repeatedTo(*t, input.sizes())) : std::nullopt;
    };
    return shiftAndScale(input, repeatedTo(scale, input.sizes()), repeated(zeroPoint), repeated(minval), inputDtype);
}

Tensor lutToDense(const Tensor &indicesIn, const Tensor &lutIn, std::int64_t axis)
{
    TORCH_CHECK(lutIn.dim() == indicesIn.dim() + 2, "lut has ", lutIn.dim(), " dimensions, ", indicesIn.dim() + 2,
                " are needed");
    const std::int64_t entries = lutIn.size(-2), vector = lutIn.size(-1);
    TORCH_CHECK(entries > 0 && std::has_single_bit(static_cast<std::uint64_t>(entries)), "the lut has ", entries,
                " entries, no power of two");
    Tensor indices = indicesIn;
    if (indices.scalar_type() != at::kByte) {
        indices = indicesIn.to(at::kByte);
        TORCH_CHECK(at::equal(indicesIn, indices.to(indicesIn.scalar_type())), "indices must lie within 0..255");
    }
    const Tensor lut = lutIn.scalar_type() == at::kDouble ? lutIn.to(at::kFloat) : lutIn;
    const std::int64_t count = indices.numel();
    const Tensor tables = repeatedTo(lut, indices.sizes()).reshape({count, entries, vector});
    // Half of LibTorch's supported versions cannot index float8: its bytes are moved as they are.
    const bool bytes = lut.element_size() == 1 && lut.is_floating_point();
    const Tensor source = bytes ? tables.view(at::kByte) : tables;
    Tensor picked = at::index(source, {at::arange(count), indices.flatten().to(at::kLong)});
    if (bytes)
        picked = picked.view(lut.scalar_type());
    if (vector == 1)
        return picked.reshape(indices.sizes());
    const std::int64_t place = axis < 0 ? axis + indices.dim() : axis;
    auto shape = indices.sizes().vec();
    shape.push_back(vector);
    const Tensor spread = at::movedim(picked.reshape(shape), -1, place + 1);
    shape.pop_back();
    shape[static_cast<std::size_t>(place)] *= vector;
    return spread.reshape(shape);
}

Tensor sparseToDense(const Tensor &values, const Tensor &mask)
{
    TORCH_CHECK(values.dim() == 1, "nonzero_data must have one dimension, has ", values.dim());
    const Tensor where = mask.to(at::kBool);
    TORCH_CHECK(at::equal(mask, where.to(mask.scalar_type())), "mask must hold zeros and ones only");
    const std::int64_t ones = where.sum().item().toLong();
    TORCH_CHECK(values.numel() == ones, "nonzero_data has ", values.numel(), " elements, the mask ", ones);
    Tensor dense = at::zeros(mask.sizes(), values.options());
    const bool bytes = values.element_size() == 1 && values.is_floating_point();
    if (bytes)
        dense.view(at::kByte).masked_scatter_(where, values.view(at::kByte));
    else
        dense.masked_scatter_(where, values);
    return dense;
}

} // namespace

TORCH_LIBRARY_FRAGMENT(dblame, m)
{
    m.def("coreai_quantize(Tensor input, Tensor scale, ScalarType output_dtype, Tensor? zero_point=None, Tensor? "
          "minval=None, "
          "int axis=0) -> Tensor",
          &quantize);
    m.def("coreai_dequantize(Tensor input, Tensor scale, Tensor? zero_point=None, Tensor? minval=None, int axis=0, "
          "ScalarType? input_dtype=None, ScalarType? output_dtype=None) -> Tensor",
          &dequantize);
    m.def("coreai_constexpr_blockwise_shift_scale(Tensor input, Tensor scale, Tensor? zero_point=None, Tensor? "
          "minval=None, "
          "ScalarType? input_dtype=None, ScalarType? output_dtype=None) -> Tensor",
          &blockwiseShiftScale);
    m.def("coreai_lut_to_dense(Tensor indices, Tensor lut, int axis) -> Tensor", &lutToDense);
    m.def("coreai_sparse_to_dense(Tensor nonzero_data, Tensor mask) -> Tensor", &sparseToDense);
}

} // namespace dblame

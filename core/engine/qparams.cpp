// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/qparams.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <ATen/ops/all.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/round.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

namespace dblame
{

namespace
{

constexpr double kPresetEps = 1.0 / (1U << 12U);
constexpr double kTokenEps = 1.0 / (1U << 23U);

tl::unexpected<Error> unfit(const std::string &why)
{
    return fail(ErrorCode::Usage, "", why);
}

// 2^(floor(log2 m) - t) from the bits of m; the smallest normal for zero.
at::Tensor powerOfTwoScale(const at::Tensor &largest, ElementType type)
{
    const int target = type == ElementType::Float4E2M1   ? 2
                       : type == ElementType::Float8E4M3 ? 8
                       : type == ElementType::Float8E5M2 ? 15
                                                         : 6;
    constexpr int kBias = 127;
    const at::Tensor m = largest.to(at::kFloat).contiguous();
    at::Tensor scale = at::empty(m.sizes(), at::kFloat);
    for (std::int64_t i = 0; i < m.numel(); ++i) {
        const auto bits = std::bit_cast<std::uint32_t>(m.const_data_ptr<float>()[i]);
        const int exponent = static_cast<int>((bits >> 23U) & 0xFFU) - kBias;
        const int biased = std::clamp(exponent - target, -kBias, kBias + 1) + kBias;
        scale.mutable_data_ptr<float>()[i] = std::max(std::bit_cast<float>(static_cast<std::uint32_t>(biased) << 23U),
                                                      std::numeric_limits<float>::min());
    }
    return scale;
}

std::int64_t symmetricZero(const TensorSpec &spec)
{
    const std::int64_t sum = spec.quantMin + spec.quantMax;
    if (spec.rule == QparamRule::CoreAi)
        return static_cast<std::int64_t>(static_cast<double>(sum + 1) / 2); // towards zero
    if (isSigned(spec.type))
        return 0;
    if (spec.type == ElementType::UInt16)
        return std::int64_t{1} << 15U;
    return spec.quantMin == 0 && spec.quantMax == 255 ? 128 : sum / 2;
}

at::Tensor constantZero(std::int64_t zero, const at::Tensor &scale)
{
    return at::full(scale.sizes(), zero, at::kLong);
}

// torchao: float32 at the latest where eps comes in, z in int32.
void applyTorchao(const at::Tensor &negative, const at::Tensor &positive, const TensorSpec &spec, Qparams &q)
{
    const auto steps = static_cast<double>(spec.quantMax - spec.quantMin);
    const at::Tensor eps = at::full({}, spec.eps, at::kFloat);
    if (spec.scheme == Scheme::Affine) {
        q.scale = at::maximum(positive.sub(negative).div(steps), eps);
        const at::Tensor below = at::round(negative.div(q.scale)).to(at::kInt);
        q.zeroPoint = at::clamp(at::rsub(below, spec.quantMin), spec.quantMin, spec.quantMax).to(at::kLong);
        return;
    }
    q.scale = at::maximum(at::maximum(negative.neg(), positive).div(steps / 2), eps);
    q.zeroPoint = constantZero(symmetricZero(spec), q.scale);
}

// coreai-opt: in the type of the range.
void applyCoreAi(const at::Tensor &negative, const at::Tensor &positive, const TensorSpec &spec, Qparams &q)
{
    const auto steps = static_cast<double>(spec.quantMax - spec.quantMin);
    if (spec.scheme == Scheme::Affine) {
        const at::Tensor scale = at::clamp_min(positive.sub(negative).div(steps), spec.eps);
        const at::Tensor zero = at::rsub(at::round(negative.div(scale)), spec.quantMin);
        q.zeroPoint = at::clamp(zero, spec.quantMin, spec.quantMax).to(at::kInt).to(at::kLong);
        q.scale = scale.to(at::kFloat);
        return;
    }
    q.scale = at::clamp_min(at::maximum(negative.neg(), positive).div(steps / 2), spec.eps).to(at::kFloat);
    q.zeroPoint = constantZero(symmetricZero(spec), q.scale);
}

std::vector<double> doubles(const at::Tensor &t)
{
    if (!t.defined())
        return {};
    const at::Tensor d = t.to(at::kDouble).contiguous();
    return {d.const_data_ptr<double>(), d.const_data_ptr<double>() + d.numel()};
}

Result<Qparams> tokenQparams(const at::Tensor &x, const TensorSpec &spec, const Units &units)
{
    UnitRanges range = rangesOf(x, units);
    Qparams q;
    q.quantMin = spec.quantMin;
    q.quantMax = spec.quantMax;
    q.low = range.low.to(at::kFloat);
    q.high = range.high.to(at::kFloat);
    if (spec.scheme != Scheme::Affine) {
        at::Tensor largest = at::maximum(range.low.neg(), range.high);
        if (largest.scalar_type() == at::kHalf)
            largest = largest.to(at::kFloat);
        q.scale = at::clamp(largest, 1e-5).div(static_cast<double>(spec.quantMax)).to(at::kFloat);
        q.zeroPoint = constantZero(isSigned(spec.type) ? 0 : symmetricZero(spec), q.scale);
        return q;
    }
    const auto qmin = static_cast<double>(spec.quantMin);
    const auto qmax = static_cast<double>(spec.quantMax);
    const at::Tensor negative = at::clamp_max(range.low, 0);
    const at::Tensor positive = at::clamp_min(range.high, 0);
    const at::Tensor scale = at::clamp_min(positive.sub(negative).div(qmax - qmin), kTokenEps);
    const at::Tensor low = negative.div(scale);
    const at::Tensor high = positive.div(scale);
    const at::Tensor sum = low.add(qmin).add(high.add(qmax));
    const at::Tensor zero = at::where(sum.gt(0), at::rsub(low, qmin), at::rsub(high, qmax));
    q.zeroPoint = at::round(at::clamp(zero, qmin, qmax)).to(at::kLong);
    q.scale = scale.to(at::kDouble);
    return q;
}

Result<Qparams> chooseUnguarded(const at::Tensor &x, const TensorSpec &spec, SiteRole role)
{
    const auto units = unitsOf(spec, role, x.sizes());
    if (!units)
        return tl::unexpected(units.error());
    if (x.numel() == 0)
        return unobservedQparams(spec);
    if (spec.granularity == Granularity::PerToken && spec.rule != QparamRule::CoreAi && isInteger(spec.type))
        return tokenQparams(x, spec, *units);
    UnitRanges range = rangesOf(x, *units);
    if (spec.low)
        range.low = at::full_like(range.low, *spec.low);
    if (spec.high)
        range.high = at::full_like(range.high, *spec.high);
    return qparamsOfRange(range.low, range.high, spec);
}

} // namespace

double largestValue(ElementType type)
{
    switch (type) {
    case ElementType::Float4E2M1:
        return 6;
    case ElementType::Float8E4M3:
        return 448;
    case ElementType::Float8E5M2:
        return 57344;
    case ElementType::Float16:
        return 65504;
    case ElementType::BFloat16:
        return 0x1.FEp127;
    default:
        return 0;
    }
}

at::ScalarType scalarTypeOf(ElementType type)
{
    switch (storageOf(type)) {
    case DType::UInt8:
        return at::kByte;
    case DType::Int8:
        return at::kChar;
    case DType::Int16:
        return at::kShort;
    case DType::UInt16:
        return at::kUInt16;
    case DType::Int32:
        return at::kInt;
    case DType::Float8E4M3FN:
        return at::kFloat8_e4m3fn;
    case DType::Float8E5M2:
        return at::kFloat8_e5m2;
    case DType::BFloat16:
        return at::kBFloat16;
    default:
        return at::kHalf;
    }
}

std::vector<double> Qparams::scales() const
{
    return doubles(scale);
}

std::vector<std::int64_t> Qparams::zeroPoints() const
{
    if (!zeroPoint.defined())
        return {};
    const at::Tensor z = zeroPoint.to(at::kLong).contiguous();
    return {z.const_data_ptr<std::int64_t>(), z.const_data_ptr<std::int64_t>() + z.numel()};
}

std::vector<double> Qparams::minValues() const
{
    return doubles(minValue);
}

std::vector<double> Qparams::lows() const
{
    return doubles(low);
}

std::vector<double> Qparams::highs() const
{
    return doubles(high);
}

Qparams unobservedQparams(const TensorSpec &spec)
{
    Qparams q;
    q.quantMin = spec.quantMin;
    q.quantMax = spec.quantMax;
    if (isCast(spec.type))
        return q;
    q.scale = at::full({}, 1.0, at::kFloat);
    if (isInteger(spec.type))
        q.zeroPoint = at::full({}, 0, at::kLong);
    if (spec.minValue && isInteger(spec.type))
        q.minValue = at::full({}, 0.0, at::kFloat);
    q.notes.emplace_back("never observed a value: scale 1, zero point 0");
    return q;
}

Result<Qparams> givenQparams(const TensorSpec &spec, const std::vector<double> &scales,
                             const std::vector<std::int64_t> &zeroPoints, const std::vector<std::int64_t> &counts)
{
    std::int64_t units = 1;
    for (const std::int64_t count : counts)
        units *= count;
    if (static_cast<std::int64_t>(scales.size()) != units ||
        (isInteger(spec.type) && zeroPoints.size() != scales.size()))
        return unfit(std::to_string(scales.size()) + " scales and " + std::to_string(zeroPoints.size()) +
                     " zero points for " + std::to_string(units) + " units");
    Qparams q;
    q.quantMin = spec.quantMin;
    q.quantMax = spec.quantMax;
    q.scale = at::empty(counts, at::kFloat);
    q.zeroPoint = isInteger(spec.type) ? at::empty(counts, at::kLong) : at::Tensor();
    for (std::size_t i = 0; i < scales.size(); ++i) {
        const auto scale = static_cast<float>(scales[i]);
        if (!(scale > 0) || !std::isfinite(scale))
            return unfit("scale " + std::to_string(scales[i]) + " is no positive float32 number");
        q.scale.mutable_data_ptr<float>()[i] = scale;
        if (!isInteger(spec.type))
            continue;
        if (zeroPoints[i] < spec.quantMin || zeroPoints[i] > spec.quantMax)
            return unfit("zero point " + std::to_string(zeroPoints[i]) + " is outside [" +
                         std::to_string(spec.quantMin) + ", " + std::to_string(spec.quantMax) + "]");
        q.zeroPoint.mutable_data_ptr<std::int64_t>()[i] = zeroPoints[i];
    }
    return q;
}

Result<Qparams> qparamsOfRange(const at::Tensor &low, const at::Tensor &high, const TensorSpec &spec)
{
    Qparams q;
    q.quantMin = spec.quantMin;
    q.quantMax = spec.quantMax;
    if (isCast(spec.type))
        return q;
    const bool coreAi = spec.rule == QparamRule::CoreAi;
    // torchao's observers work in float32, its choose_qparams in the tensor's type up to the eps.
    const bool own = coreAi || spec.observer == ObserverKind::Dynamic;
    const at::ScalarType type = own ? low.scalar_type() : at::kFloat;
    const at::Tensor from = low.to(type);
    const at::Tensor to = high.to(type);
    q.low = low.to(at::kFloat);
    q.high = high.to(at::kFloat);
    if (!from.le(to).all().item<bool>()) {
        if (!coreAi)
            return fail(ErrorCode::Incomparable, "",
                        "the values to quantize contain NaN: no scale can be chosen. Find where the float model first "
                        "gives NaN on these inputs (compare it with itself), or leave the tensor float");
        q.notes.emplace_back("the values to quantize contain NaN: the scale is NaN, as coreai-opt has it");
    }
    const at::Tensor negative = at::clamp_max(from, 0);
    const at::Tensor positive = at::clamp_min(to, 0);
    if (spec.powerOfTwoScale || spec.type == ElementType::Float4E2M1) {
        q.scale = powerOfTwoScale(at::maximum(negative.neg(), positive), spec.type);
        q.zeroPoint = isInteger(spec.type) ? constantZero(symmetricZero(spec), q.scale) : at::Tensor();
    } else if (!isInteger(spec.type)) {
        const at::Tensor largest = at::maximum(negative.neg(), positive);
        q.scale = at::clamp_min(largest.div(largestValue(spec.type)), spec.eps).to(at::kFloat);
    } else if (coreAi) {
        applyCoreAi(negative, positive, spec, q);
    } else {
        applyTorchao(negative, positive, spec, q);
    }
    if (spec.minValue && isInteger(spec.type))
        q.minValue =
            (spec.scheme == Scheme::Affine ? negative : at::maximum(negative.neg(), positive).neg()).to(at::kFloat);
    return q;
}

Result<Qparams> chooseQparams(const at::Tensor &x, const TensorSpec &spec, SiteRole role)
{
    if (isCast(spec.type))
        return unobservedQparams(spec);
    try {
        return chooseUnguarded(x, spec, role);
    } catch (const c10::Error &error) {
        return fail(ErrorCode::Incomparable, "", error.what_without_backtrace(), error.what());
    }
}

FlooredUnits flooredUnits(const Qparams &qparams, const TensorSpec &spec)
{
    FlooredUnits floored;
    const std::vector<double> scales = qparams.scales();
    const std::vector<double> lows = qparams.lows();
    const std::vector<double> highs = qparams.highs();
    for (std::size_t i = 0; i < scales.size(); ++i) {
        if (scales[i] != static_cast<double>(static_cast<float>(spec.eps)))
            continue;
        ++floored.count;
        if (i < lows.size() && lows[i] == 0 && highs[i] == 0)
            ++floored.ofZeros;
    }
    return floored;
}

std::int64_t wrappingZeroPoints(const Qparams &qparams, const TensorSpec &spec)
{
    const at::ScalarType storage = scalarTypeOf(spec.type);
    if (!isInteger(spec.type) || (storage != at::kChar && storage != at::kByte))
        return 0;
    const std::int64_t lowest = storage == at::kChar ? -128 : 0;
    std::int64_t wrapping = 0;
    for (const std::int64_t z : qparams.zeroPoints())
        if (qparams.quantMin - z < lowest || qparams.quantMax - z > lowest + 255)
            ++wrapping;
    return wrapping;
}

std::vector<DefectNote> qparamDefects(const Qparams &qparams, const TensorSpec &spec)
{
    std::vector<DefectNote> notes;
    const auto units = std::to_string(qparams.scales().size());
    if (spec.eps == kPresetEps) {
        const FlooredUnits floored = flooredUnits(qparams, spec);
        if (const std::int64_t starved = floored.count - floored.ofZeros; starved > 0)
            notes.push_back({9,
                             {},
                             std::to_string(starved) + " of " + units +
                                 " scales are the smallest that the preset allows (2^-12): the values are smaller than "
                                 "its step is made for and lose resolution"});
    }
    if (const std::int64_t wrapping = wrappingZeroPoints(qparams, spec);
        wrapping > 0 && spec.granularity == Granularity::PerChannel)
        notes.push_back({11,
                         {},
                         std::to_string(wrapping) + " of " + units +
                             " zero points would wrap in a dequantize that subtracts them in 8 bits: keep them in a "
                             "wider type"});
    return notes;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/coreai_config.h"

#include <algorithm>
#include <array>

namespace dblame
{

namespace
{

struct TypeName {
    ElementType type;
    std::string_view name;
};
constexpr TypeName kTypes[] = {
    {ElementType::Int8, "int8"},
    {ElementType::Int6, "int6"},
    {ElementType::Int4, "int4"},
    {ElementType::Int2, "int2"},
    {ElementType::UInt8, "uint8"},
    {ElementType::UInt6, "uint6"},
    {ElementType::UInt4, "uint4"},
    {ElementType::UInt2, "uint2"},
    {ElementType::Float8E4M3, "float8_e4m3fn"},
    {ElementType::Float8E5M2, "float8_e5m2"},
    {ElementType::Float4E2M1, "float4_e2m1fn_x2"},
};

constexpr double kCoreAiEps = 1.0 / (1U << 23); // float32 epsilon

ObserverKind observerOf(CoreAiCalculator calculator, bool weight)
{
    switch (calculator) {
    case CoreAiCalculator::Default:
        return weight ? ObserverKind::LastBatch : ObserverKind::MovingAverage;
    case CoreAiCalculator::Static:
        return ObserverKind::LastBatch;
    case CoreAiCalculator::MovingAverage:
        return ObserverKind::MovingAverage;
    case CoreAiCalculator::GlobalMinMax:
        return ObserverKind::MinMax;
    case CoreAiCalculator::Dynamic:
        return ObserverKind::Dynamic;
    }
    return ObserverKind::LastBatch;
}

std::optional<CoreAiCalculator> calculatorOf(ObserverKind observer)
{
    switch (observer) {
    case ObserverKind::LastBatch:
    case ObserverKind::Fixed: // both bounds are given: any calculator keeps them
        return CoreAiCalculator::Static;
    case ObserverKind::MovingAverage:
        return CoreAiCalculator::MovingAverage;
    case ObserverKind::MinMax:
        return CoreAiCalculator::GlobalMinMax;
    case ObserverKind::Dynamic:
        return CoreAiCalculator::Dynamic;
    default:
        return std::nullopt;
    }
}

} // namespace

std::optional<std::string_view> coreAiTypeName(ElementType type)
{
    const auto *it =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName &t) { return t.type == type; });
    return it == std::end(kTypes) ? std::nullopt : std::optional(it->name);
}

CoreAiSpec defaultActivationSpec()
{
    CoreAiSpec spec;
    spec.calculator = CoreAiCalculator::MovingAverage;
    return spec;
}

CoreAiSpec defaultWeightSpec()
{
    CoreAiSpec spec;
    spec.granularity.kind = Granularity::PerChannel;
    spec.granularity.axis = 0;
    spec.calculator = CoreAiCalculator::Static;
    return spec;
}

CoreAiSpecs declinedSpecs()
{
    return {{"*", std::nullopt}};
}

CoreAiOpConfig CoreAiOpConfig::declined()
{
    return {declinedSpecs(), declinedSpecs(), declinedSpecs()};
}

CoreAiModuleConfig CoreAiModuleConfig::declined()
{
    CoreAiModuleConfig config;
    config.op = CoreAiOpConfig::declined();
    return config;
}

CoreAiConfig coreAiWeightOnly(ElementType type, std::optional<std::int64_t> blockSize)
{
    CoreAiSpec weight;
    weight.type = type;
    weight.granularity.kind = blockSize ? Granularity::PerBlock : Granularity::PerChannel;
    if (blockSize)
        weight.granularity.blockSizes = {*blockSize};
    CoreAiConfig config;
    config.global.op.inputs = declinedSpecs();
    config.global.op.outputs = declinedSpecs();
    config.global.op.states = {{"weight", weight}};
    return config;
}

TensorSpec tensorSpecOf(const CoreAiSpec &spec, bool weight)
{
    TensorSpec result;
    result.type = spec.type;
    const IntegerRange range = integerRange(spec.type, spec.scheme);
    result.quantMin = range.low;
    result.quantMax = range.high;
    result.scheme = spec.scheme;
    result.minValue = spec.minValue;
    result.granularity = spec.granularity.kind;
    result.axis = spec.granularity.axis;
    result.blockSizes = spec.granularity.blockSizes;
    result.observer = observerOf(spec.calculator, weight);
    result.rule = QparamRule::CoreAi;
    result.arithmetic = Arithmetic::Division;
    result.eps = kCoreAiEps;
    result.low = spec.low;
    result.high = spec.high;
    result.powerOfTwoScale = spec.powerOfTwoScale || spec.type == ElementType::Float4E2M1;
    return result;
}

Result<CoreAiSpec> coreAiSpecOf(const TensorSpec &spec)
{
    const auto refuse = [&](const std::string &what) {
        return fail(ErrorCode::Usage, spec.text(), "coreai-opt has no " + what);
    };
    CoreAiSpec result;
    if (!coreAiTypeName(spec.type))
        return refuse("type " + std::string(elementTypeName(spec.type)) +
                      "; it has int2, int4, int6, int8, uint2, uint4, uint6, uint8, f8e4m3, f8e5m2 and f4e2m1");
    result.type = spec.type;
    result.scheme = spec.scheme;
    result.minValue = spec.minValue;
    const IntegerRange range = integerRange(spec.type, spec.scheme);
    if (isInteger(spec.type) && (spec.quantMin != range.low || spec.quantMax != range.high)) {
        const IntegerRange clipped = integerRange(spec.type, Scheme::SymmetricWithClipping);
        if (spec.scheme != Scheme::Symmetric || spec.quantMin != clipped.low || spec.quantMax != clipped.high)
            return refuse("range " + std::to_string(spec.quantMin) + ".." + std::to_string(spec.quantMax) + " of " +
                          std::string(elementTypeName(spec.type)) + "; the type and the scheme decide it");
        result.scheme = Scheme::SymmetricWithClipping;
    }
    if (spec.granularity == Granularity::PerToken)
        return refuse("quantization per token; per_block along the last axis is the nearest");
    result.granularity.kind = spec.granularity;
    result.granularity.axis = spec.axis;
    result.granularity.blockSizes = spec.blockSizes;
    result.granularity.perDimension = spec.granularity == Granularity::PerBlock && spec.blockSizes.size() > 1;
    const auto calculator = calculatorOf(spec.observer);
    if (!calculator)
        return refuse("observer of this kind (" + std::string(observerKindName(spec.observer)) +
                      "); it has static, moving average, global min-max and dynamic");
    result.calculator = *calculator;
    result.low = spec.low;
    result.high = spec.high;
    result.powerOfTwoScale = spec.powerOfTwoScale || spec.type == ElementType::Float4E2M1;
    if (spec.palette)
        return refuse("lookup table in its quantizer; use a palette preset");
    if (auto broken = brokenRule(result))
        return fail(ErrorCode::Usage, spec.text(), *broken);
    return result;
}

std::optional<std::string> brokenRule(const CoreAiSpec &spec)
{
    const bool floating = !isInteger(spec.type);
    if (spec.powerOfTwoScale && !floating && spec.type != ElementType::Int8)
        return "scale_dtype float8_e8m0fnu needs dtype int8, a float8 type or float4_e2m1fn_x2";
    const bool needsSymmetric = floating || spec.powerOfTwoScale;
    if (needsSymmetric && spec.scheme != Scheme::Symmetric)
        return "float types and float8_e8m0fnu scales need qscheme symmetric";
    if (needsSymmetric && spec.minValue)
        return "float types and float8_e8m0fnu scales need qformulation zp";
    if (spec.low && spec.high && *spec.low >= *spec.high)
        return "float_range needs its first number below its second";
    if (spec.low && *spec.low > 0.0)
        return "the lower bound of float_range must not be above 0";
    if (spec.high && *spec.high < 0.0)
        return "the upper bound of float_range must not be below 0";
    if (spec.calculator == CoreAiCalculator::Dynamic && spec.scheme == Scheme::SymmetricWithClipping)
        return "qparam_calculator_cls dynamic does not go with symmetric_with_clipping; use symmetric or asymmetric";
    return std::nullopt;
}

PaletteSpecs defaultPaletteSpecs()
{
    return {{"weight", PaletteWeightSpec{}}, {"in_proj_weight", PaletteWeightSpec{}}};
}

PaletteOpConfig PaletteOpConfig::declined()
{
    return {PaletteSpecs{{"*", std::nullopt}}};
}

PaletteModuleConfig PaletteModuleConfig::declined()
{
    PaletteModuleConfig config;
    config.op = PaletteOpConfig::declined();
    return config;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/coreai_fields.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace dblame
{

namespace
{

// Equal priorities: the peer takes the value whose Python text comes first.
std::string orderText(ElementType type)
{
    return std::string(coreAiTypeName(type).value_or(""));
}
std::string orderText(Scheme scheme)
{
    switch (scheme) {
    case Scheme::Affine:
        return "asymmetric";
    case Scheme::Symmetric:
        return "symmetric";
    case Scheme::SymmetricWithClipping:
        return "symmetric_with_clipping";
    }
    return {};
}
std::string orderText(const CoreAiGranularity &granularity)
{
    std::string text = "axis=" + (granularity.axis ? std::to_string(*granularity.axis) : "None");
    if (granularity.kind == Granularity::PerBlock) {
        std::string sizes;
        for (const auto size : granularity.blockSizes)
            sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
        text += " block_size=" + (granularity.perDimension ? "(" + sizes + ")" : sizes);
    }
    return text;
}
std::string orderText(CoreAiCalculator calculator)
{
    switch (calculator) {
    case CoreAiCalculator::Dynamic:
        return "Dynamic";
    case CoreAiCalculator::GlobalMinMax:
        return "GlobalMinMax";
    case CoreAiCalculator::MovingAverage:
        return "MovingAverage";
    case CoreAiCalculator::Static:
        return "Static";
    case CoreAiCalculator::Default:
        return "_Default";
    }
    return {};
}
// False before true: "zp" after "minval" and "WEIGHT" after "ACTIVATION" are turned round by the callers.
std::string orderText(bool value)
{
    return value ? "1" : "0";
}

template <class T>
void strongest(Ranked<T> &best, const Ranked<T> &other, bool reverse = false)
{
    const bool wins = other.priority < best.priority ||
                      (other.priority == best.priority && (reverse ? orderText(best.value) < orderText(other.value)
                                                                   : orderText(other.value) < orderText(best.value)));
    if (wins)
        best = other;
}

std::optional<double> wider(const std::optional<double> &a, const std::optional<double> &b, bool low)
{
    if (!a || !b)
        return std::nullopt;
    return low ? std::min(*a, *b) : std::max(*a, *b);
}

} // namespace

SpecFields SpecFields::of(const CoreAiSpec &spec, int priority, bool weight)
{
    return {{spec.type, priority},
            {spec.scheme, priority},
            {spec.minValue, priority},
            {spec.granularity, priority},
            {{spec.low, spec.high}, priority},
            {spec.calculator, priority},
            {spec.powerOfTwoScale, priority},
            {weight, priority}};
}

CoreAiSpec SpecFields::spec() const
{
    CoreAiSpec result;
    result.type = type.value;
    result.scheme = scheme.value;
    result.minValue = minValue.value;
    result.granularity = granularity.value;
    std::tie(result.low, result.high) = range.value;
    result.calculator = calculator.value;
    result.powerOfTwoScale = powerOfTwoScale.value;
    if (scheme.priority == kIntrinsicPriority && (!isInteger(result.type) || result.powerOfTwoScale))
        result.scheme = Scheme::Symmetric;
    return result;
}

void mergeFields(SpecFields &into, const SpecFields &other)
{
    strongest(into.type, other.type);
    strongest(into.scheme, other.scheme);
    strongest(into.minValue, other.minValue, true); // "minval" < "zp"
    strongest(into.granularity, other.granularity);
    strongest(into.calculator, other.calculator);
    strongest(into.powerOfTwoScale, other.powerOfTwoScale); // "None" < "torch.float8_e8m0fnu"
    strongest(into.weight, other.weight);                   // "...ACTIVATION" < "...WEIGHT"
    into.range.value = {wider(into.range.value.first, other.range.value.first, true),
                        wider(into.range.value.second, other.range.value.second, false)};
    into.range.priority = std::min(into.range.priority, other.range.priority);
}

int strongestPriority(const SpecFields &f)
{
    return std::min({f.type.priority, f.scheme.priority, f.minValue.priority, f.granularity.priority, f.range.priority,
                     f.calculator.priority, f.powerOfTwoScale.priority, f.weight.priority});
}

void mergeType(Ranked<ElementType> &into, const Ranked<ElementType> &other)
{
    strongest(into, other);
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/edits.h"

#include "core/number_text.h"

namespace dblame
{

namespace
{

constexpr int kRangeDigits = 4;

std::string bound(const std::optional<double> &value)
{
    return value ? significantText(*value, kRangeDigits) : std::string();
}

} // namespace

std::string SpecChange::text() const
{
    std::string text = type ? std::string(elementTypeName(*type)) : "int" + std::to_string(bits);
    if (type == ElementType::BFloat16 || type == ElementType::Float16)
        return text;
    if (symmetric)
        text += *symmetric ? " symmetric" : " affine";
    text += ' ';
    text += granularityName(granularity);
    if (granularity == Granularity::PerBlock)
        text += " of " + std::to_string(blockSize);
    if (low || high)
        text += " in " + bound(low) + ".." + bound(high);
    return text;
}

} // namespace dblame

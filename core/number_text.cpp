// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/number_text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace dblame
{

namespace
{

// Enough for every double in fixed notation: 309 digits, sign, point, decimals.
using Buffer = std::array<char, 400>;

template <class... Format>
std::string converted(double number, Format... format)
{
    if (std::isnan(number))
        return "nan";
    if (std::isinf(number))
        return number < 0 ? "-inf" : "inf";
    Buffer buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format...).ptr;
    return {buffer.data(), end};
}

} // namespace

std::string shortestText(double number)
{
    return converted(number);
}

std::string fixedText(double number, int decimals)
{
    auto text = converted(number, std::chars_format::fixed, decimals);
    // "-0.00" is a rounding artefact.
    if (!text.empty() && text.front() == '-' && text.find_first_not_of("-0.") == std::string::npos)
        text.erase(0, 1);
    return text;
}

std::string significantText(double number, int digits)
{
    return converted(number, std::chars_format::general, digits);
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/numbers.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace dblame
{

NumberCheck wholeNumber(std::uint64_t lowest, std::uint64_t highest)
{
    return [lowest, highest](const std::string &text) -> std::string {
        std::uint64_t number = 0;
        const char *end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, number);
        if (error == std::errc() && stop == end && number >= lowest && number <= highest)
            return {};
        const bool bounded = highest <= std::uint64_t{1} << 32U;
        return text + " is no whole number " +
               (bounded       ? "from " + std::to_string(lowest) + " to " + std::to_string(highest)
                : lowest == 0 ? "from 0 to " + std::to_string(highest)
                              : "of " + std::to_string(lowest) + " or more");
    };
}

NumberCheck decibelNumber()
{
    return [](const std::string &text) -> std::string {
        double number = std::numeric_limits<double>::quiet_NaN();
        const char *begin = text.data() + (text.starts_with('+') ? 1 : 0);
        const char *end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(begin, end, number);
        if (error == std::errc() && stop == end && !std::isnan(number))
            return {};
        return text + " is no number of decibels";
    };
}

} // namespace dblame

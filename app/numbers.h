// SPDX-License-Identifier: GPL-3.0-or-later
//
// Checks of numbers on the command line, with messages that say what is taken.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dblame
{

// For CLI::Option::check(): empty when the text is fine, else what is wrong.
using NumberCheck = std::function<std::string(const std::string &)>;

// Digits alone, lowest..highest: no sign, no fraction, nothing that wraps around.
[[nodiscard]] NumberCheck wholeNumber(std::uint64_t lowest, std::uint64_t highest);
// A number of decibels: "inf" is one, "nan" (which no value is below) is not.
[[nodiscard]] NumberCheck decibelNumber();

} // namespace dblame

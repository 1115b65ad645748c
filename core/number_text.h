// SPDX-License-Identifier: GPL-3.0-or-later
//
// Numbers as text, the same in every locale.
#pragma once

#include <string>

namespace dblame
{

// The shortest decimal that reads back as the same double; "inf", "-inf", "nan".
[[nodiscard]] std::string shortestText(double number);
// With this many decimals: "23.40"; "inf", "-inf", "nan".
[[nodiscard]] std::string fixedText(double number, int decimals);
// Significant digits, without trailing zeros: "1.25e-05", "0.5".
[[nodiscard]] std::string significantText(double number, int digits);

} // namespace dblame

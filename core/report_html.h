// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parts of the HTML report.
#pragma once

#include <string>
#include <string_view>

#include "core/report.h"

namespace dblame::html
{

// & < > " ' as entities; control characters that HTML forbids as U+FFFD.
[[nodiscard]] std::string escaped(std::string_view text);

// The dB curve as inline SVG: one point per computed activation row, the largest drop circled and named.
// Rows without a finite number are marks at the edge: exact ones above, -inf and NaN below.
[[nodiscard]] std::string plot(const Report &report);

} // namespace dblame::html

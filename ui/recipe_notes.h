// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/quantization.h"

namespace dblame::ui
{

// What a report and the log say of a recipe's candidate: warnings, defects that bite, layers left float with the
// reason.
[[nodiscard]] std::vector<std::string> recipeNotes(const QuantizedModel &quantized);

} // namespace dblame::ui

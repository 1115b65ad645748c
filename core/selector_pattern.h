// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace dblame
{

// A regular expression (ECMAScript) for full matches. Invalid: Usage, with the position (1 = first
// character) and what is wrong there.
[[nodiscard]] Result<std::regex> compilePattern(const std::string &pattern);

// The (at most `count`) candidates with the smallest edit distance to `text`, nearest first; ties in the
// order of the candidates. Equal candidates count once.
[[nodiscard]] std::vector<std::string> nearest(std::string_view text, const std::vector<std::string> &candidates,
                                               std::size_t count);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Lists of a graph text: from elements of any kind to one typed list.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/graph.h"

namespace dblame::text_words
{

// `kind` is the word before the list ("floats"), or empty: then the elements tell. The error is a message.
[[nodiscard]] tl::expected<Argument, std::string> typedList(std::string_view kind,
                                                            const std::vector<Argument> &elements);

} // namespace dblame::text_words

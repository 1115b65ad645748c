// SPDX-License-Identifier: GPL-3.0-or-later
//
// Words and characters that the printer and the parser of core/graph_text.h share.
#pragma once

#include <array>
#include <string_view>

namespace dblame::text_words
{

// In the order of InputKind and OutputKind.
inline constexpr std::array<std::string_view, 7> kInputKinds = {
    "user", "parameter", "buffer", "tensor_constant", "constant", "custom_object", "token"};
inline constexpr std::array<std::string_view, 7> kOutputKinds = {
    "user", "buffer_mutation", "parameter_mutation", "input_mutation", "loss", "gradient", "token"};

// What a name may hold without quotes.
[[nodiscard]] constexpr bool isWordChar(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '$' || c == '@' || c == '-';
}

} // namespace dblame::text_words

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/graph_text_scanner.h"

#include <charconv>

namespace dblame::text_words
{

std::string Scanner::takeString()
{
    expect('"');
    std::string out;
    const auto hex = [this](char c) {
        if (c >= '0' && c <= '9')
            return c - '0';
        if (c >= 'a' && c <= 'f')
            return c - 'a' + 10;
        error("expected two lower-case hexadecimal digits after \\x");
    };
    for (;;) {
        if (atEnd() || m_text[m_position] == '\n')
            error("string without closing quote");
        const char c = m_text[m_position++];
        if (c == '"')
            return out;
        if (c != '\\') {
            out += c;
            continue;
        }
        const char escape = atEnd() ? '\0' : m_text[m_position++];
        if (escape == 'n') {
            out += '\n';
        } else if (escape == 't') {
            out += '\t';
        } else if (escape == 'x' && m_position + 2 <= m_text.size()) {
            out += static_cast<char>(hex(m_text[m_position]) * 16 + hex(m_text[m_position + 1]));
            m_position += 2;
        } else if (escape == '"' || escape == '\\') {
            out += escape;
        } else {
            error("unknown escape in a string");
        }
    }
}

std::int64_t Scanner::integer()
{
    const auto begin = (skipSpaces(), m_position);
    const auto word = takeWord();
    std::int64_t number = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (failure != std::errc() || end != word.data() + word.size()) {
        m_position = begin;
        error("expected a whole number of 64 bits");
    }
    return number;
}

} // namespace dblame::text_words

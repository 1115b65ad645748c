// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/graph_text_words.h"

namespace dblame::text_words
{

// Thrown and caught inside parseGraph() only.
struct SyntaxError {
    std::size_t position;
    std::string message;
};

// Characters to words: knows strings, numbers and white space, nothing of graphs.
class Scanner
{
public:
    explicit Scanner(std::string_view text) : m_text(text) {}

    [[noreturn]] void error(std::string message) const { throw SyntaxError{m_position, std::move(message)}; }
    [[nodiscard]] std::size_t position() const { return m_position; }
    void rewind(std::size_t position) { m_position = position; }

    // Spaces inside a line; newlines end a statement.
    void skipSpaces()
    {
        while (m_position < m_text.size() &&
               (m_text[m_position] == ' ' || m_text[m_position] == '\t' || m_text[m_position] == '\r'))
            ++m_position;
    }
    void skipLines()
    {
        for (;;) {
            skipSpaces();
            if (m_position < m_text.size() && m_text[m_position] == '#')
                m_position = std::min(m_text.find('\n', m_position), m_text.size());
            if (m_position >= m_text.size() || m_text[m_position] != '\n')
                return;
            ++m_position;
        }
    }
    [[nodiscard]] bool atEnd() const { return m_position >= m_text.size(); }
    [[nodiscard]] char peek()
    {
        skipSpaces();
        return atEnd() ? '\0' : m_text[m_position];
    }
    bool accept(char c)
    {
        if (peek() != c)
            return false;
        ++m_position;
        return true;
    }
    void expect(char c)
    {
        if (!accept(c))
            error(std::string("expected '") + c + "'");
    }
    [[nodiscard]] bool atWord() { return text_words::isWordChar(peek()); }
    std::string_view takeWord()
    {
        skipSpaces();
        const auto begin = m_position;
        while (m_position < m_text.size() && text_words::isWordChar(m_text[m_position]))
            ++m_position;
        if (begin == m_position)
            error("expected a word");
        return m_text.substr(begin, m_position - begin);
    }
    [[nodiscard]] std::string_view peekWord()
    {
        const auto begin = m_position;
        const auto found = atWord() ? takeWord() : std::string_view();
        m_position = begin;
        return found;
    }
    bool acceptWord(std::string_view expected)
    {
        if (peekWord() != expected)
            return false;
        takeWord();
        return true;
    }
    std::string takeString();
    std::string wordOrString() { return peek() == '"' ? takeString() : std::string(takeWord()); }
    std::int64_t integer();

private:
    std::string_view m_text;
    std::size_t m_position = 0;
};

} // namespace dblame::text_words

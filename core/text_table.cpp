// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text_table.h"

#include <algorithm>

namespace dblame
{

namespace
{

// Code points, not bytes: module paths and site ids may hold any.
std::size_t width(const std::string &text)
{
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// A line break in a reason would tear the table.
std::string oneLine(std::string text)
{
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    return text;
}

} // namespace

TextTable::TextTable(std::vector<std::string> header)
{
    for (auto &name : header) {
        const bool right = !name.empty() && name.front() == '>';
        m_right.push_back(right ? 1 : 0);
        if (right)
            name.erase(0, 1);
    }
    m_lines.push_back(std::move(header));
}

std::string TextTable::text() const
{
    std::vector<std::vector<std::string>> lines = m_lines;
    std::vector<std::size_t> widths(m_right.size(), 0);
    for (auto &line : lines) {
        line.resize(m_right.size());
        for (std::size_t i = 0; i < line.size(); ++i) {
            line[i] = oneLine(std::move(line[i]));
            widths[i] = std::max(widths[i], width(line[i]));
        }
    }
    std::string out;
    for (const auto &line : lines) {
        std::string text;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::string padding(widths[i] - width(line[i]), ' ');
            text += (i == 0 ? "" : "  ") + (m_right[i] != 0 ? padding + line[i] : line[i] + padding);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + "\n";
    }
    return out;
}

} // namespace dblame

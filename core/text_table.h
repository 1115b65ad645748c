// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace dblame
{

// Columns aligned by code points, two spaces between them. A header that begins with '>' aligns its column right.
class TextTable
{
public:
    explicit TextTable(std::vector<std::string> header);
    void add(std::vector<std::string> cells) { m_lines.push_back(std::move(cells)); }
    [[nodiscard]] std::string text() const; // one line per row, header first

private:
    std::vector<std::vector<std::string>> m_lines;
    std::vector<char> m_right;
};

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/selector_pattern.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>

namespace dblame
{

namespace
{

struct Fault {
    std::size_t position;
    const char *what;
};

// std::regex says what is wrong, not where. This walks the pattern for the faults that occur in practice.
class FaultFinder
{
public:
    explicit FaultFinder(const std::string &pattern) : m_pattern(pattern) {}

    std::optional<Fault> find()
    {
        for (m_at = 0; m_at < m_pattern.size() && !m_fault; ++m_at)
            step(m_pattern[m_at]);
        if (!m_fault && !m_open.empty())
            m_fault = {m_open.back(), "'(' without ')'"};
        return m_fault;
    }

private:
    void step(char c)
    {
        switch (c) {
        case '\\':
            if (m_at + 1 == m_pattern.size())
                m_fault = {m_at, "nothing follows '\\'"};
            ++m_at;
            m_repeatable = true;
            break;
        case '(':
            m_open.push_back(m_at);
            skipGroupPrefix();
            m_repeatable = false;
            break;
        case ')':
            if (m_open.empty())
                m_fault = {m_at, "')' without '('"};
            else
                m_open.pop_back();
            m_repeatable = true;
            break;
        case '[':
            characterSet();
            break;
        case '{':
            braces();
            break;
        case '*':
        case '+':
        case '?':
            repeat();
            break;
        case '|':
        case '^':
            m_repeatable = false;
            break;
        default:
            m_repeatable = true;
        }
    }

    void skipGroupPrefix()
    {
        if (m_at + 2 < m_pattern.size() && m_pattern[m_at + 1] == '?')
            m_at += 2;
    }

    void repeat()
    {
        if (!m_repeatable) {
            m_fault = {m_at, "nothing to repeat before this"};
            return;
        }
        if (m_at + 1 < m_pattern.size() && m_pattern[m_at + 1] == '?')
            ++m_at; // lazy
        m_repeatable = false;
    }

    void characterSet()
    {
        const auto begin = m_at;
        auto end = begin + 1;
        if (end < m_pattern.size() && m_pattern[end] == '^')
            ++end;
        char previous = '\0';
        bool escaped = false;
        for (; end < m_pattern.size() && (escaped || m_pattern[end] != ']'); ++end) {
            const char c = m_pattern[end];
            const bool range = !escaped && c == '-' && previous != '\0' && end + 1 < m_pattern.size() &&
                               m_pattern[end + 1] != ']' && m_pattern[end + 1] != '\\';
            if (range && m_pattern[end + 1] < previous) {
                m_fault = {end - 1, "range that runs backwards"};
                return;
            }
            previous = c;
            escaped = !escaped && c == '\\';
        }
        if (end == m_pattern.size())
            m_fault = {begin, "'[' without ']'"};
        m_at = end;
        m_repeatable = true;
    }

    void braces()
    {
        const auto close = m_pattern.find('}', m_at);
        if (close == std::string::npos) {
            m_fault = {m_at, "'{' without '}'"};
            return;
        }
        const auto inside = m_pattern.substr(m_at + 1, close - m_at - 1);
        if (inside.empty() || inside.find_first_not_of("0123456789,") != std::string::npos || inside.front() == ',' ||
            std::count(inside.begin(), inside.end(), ',') > 1) {
            m_fault = {m_at, "'{' takes one or two numbers; write \\{ for the character"};
            return;
        }
        const auto begin = m_at;
        m_at = close;
        if (!m_repeatable)
            m_fault = {begin, "nothing to repeat before this"};
        m_repeatable = false;
    }

    const std::string &m_pattern;
    std::size_t m_at = 0;
    bool m_repeatable = false;
    std::vector<std::size_t> m_open;
    std::optional<Fault> m_fault;
};

const char *words(std::regex_constants::error_type code)
{
    using namespace std::regex_constants;
    if (code == error_badbrace)
        return "bad numbers in '{...}'";
    if (code == error_range)
        return "bad range in '[...]'";
    if (code == error_escape)
        return "unknown escape";
    if (code == error_backref)
        return "back reference to a group that does not exist";
    if (code == error_ctype || code == error_collate)
        return "unknown character class";
    if (code == error_complexity || code == error_stack || code == error_space)
        return "too complicated";
    return "not a regular expression";
}

std::size_t editDistance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
        }
    }
    return row.back();
}

} // namespace

Result<std::regex> compilePattern(const std::string &pattern)
{
    try {
        return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error &error) {
        if (const auto fault = FaultFinder(pattern).find())
            return fail(ErrorCode::Usage, pattern,
                        std::string("no regular expression: ") + fault->what + " (character " +
                            std::to_string(fault->position + 1) + ")",
                        error.what());
        // The shortest beginning that is already wrong in this way ends at the fault.
        std::size_t position = pattern.size();
        for (std::size_t length = 1; length < pattern.size(); ++length) {
            try {
                [[maybe_unused]] const std::regex part(pattern.substr(0, length));
            } catch (const std::regex_error &partial) {
                if (partial.code() == error.code()) {
                    position = length;
                    break;
                }
            }
        }
        return fail(ErrorCode::Usage, pattern,
                    std::string("no regular expression: ") + words(error.code()) + " (character " +
                        std::to_string(position) + ")",
                    error.what());
    }
}

std::vector<std::string> nearest(std::string_view text, const std::vector<std::string> &candidates, std::size_t count)
{
    std::vector<std::pair<std::size_t, const std::string *>> ranked;
    std::unordered_set<std::string_view> seen;
    for (const auto &candidate : candidates)
        if (!candidate.empty() && seen.insert(candidate).second)
            ranked.emplace_back(editDistance(text, candidate), &candidate);
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    std::vector<std::string> result;
    for (std::size_t i = 0; i < ranked.size() && i < count; ++i)
        result.push_back(*ranked[i].second);
    return result;
}

} // namespace dblame

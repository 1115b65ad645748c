// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <stop_token>
#include <utility>

#include "core/engine.h"
#include "core/readers/read_error.h"

namespace dblame
{

// What a long read reports to and obeys: progress in bytes and the stop token.
class ReadControl
{
public:
    ReadControl() = default;
    ReadControl(Progress progress, std::stop_token stop) : m_progress(std::move(progress)), m_stop(std::move(stop)) {}

    void expect(std::uint64_t bytes) { m_total += bytes; }
    void advance(std::uint64_t bytes, const char *what)
    {
        check();
        m_done += bytes;
        if (m_progress)
            m_progress(m_done < m_total ? m_done : m_total, m_total, what);
    }
    // Throws ReadCancelled once the stop token is set.
    void check() const
    {
        if (m_stop.stop_requested())
            throw ReadCancelled();
    }

private:
    Progress m_progress;
    std::stop_token m_stop;
    std::uint64_t m_done = 0, m_total = 0;
};

} // namespace dblame

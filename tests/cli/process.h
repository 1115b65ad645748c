// SPDX-License-Identifier: GPL-3.0-or-later
//
// Runs a program without a shell.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace dblame
{

struct Finished {
    int status = -1; // exit status, or 128 + signal
    std::string out, err;
};

// stdin is empty; stdout and stderr are files, so no pipe can fill up. `environment`: "NAME=value", added to ours.
class Process
{
public:
    explicit Process(const std::vector<std::string> &command, const std::vector<std::string> &environment = {});
    ~Process();
    Process(const Process &) = delete;
    Process &operator=(const Process &) = delete;

    [[nodiscard]] pid_t pid() const { return m_pid; }
    // Returns when the process handles this signal itself; false when it ended before.
    bool waitUntilItCatches(int signal) const;
    Finished wait();

private:
    pid_t m_pid = -1;
    int m_out = -1, m_err = -1;
};

Finished run(const std::vector<std::string> &command, const std::vector<std::string> &environment = {});

} // namespace dblame

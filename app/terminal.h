// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the command line says and where: messages and progress on stderr, data on stdout or in files.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/engine.h"
#include "core/error.h"

namespace dblame
{

// Exit statuses of the contract (docs/cli.md).
enum ExitStatus : int {
    kDone = 0,
    kThresholdCrossed = 1,
    kWrongUsage = 2,
    kUnreadable = 3,
    kIncomparable = 4,
    kCancelled = 5,
    kInternalError = 70,
};

// "dblame: <where>: <message>" on stderr.
void say(const std::string &text);
// Says the error and gives the status that belongs to its code.
[[nodiscard]] int failed(const Error &error);

// Writes to the named file, whole or not at all; "-" is stdout.
[[nodiscard]] Result<void> deliver(const std::string &path, std::string_view content);

// One line on stderr that is redrawn at most ten times a second and removed at the end; silent when stderr is
// no terminal.
class ProgressBar
{
public:
    ProgressBar();
    ~ProgressBar();
    ProgressBar(const ProgressBar &) = delete;
    ProgressBar &operator=(const ProgressBar &) = delete;

    void show(double done, const std::string &what); // done: 0..1
    void clear();
    [[nodiscard]] Progress callback(std::string what); // for Engine::openModel; lives no longer than this

private:
    bool m_terminal;
    bool m_shown = false;
    std::chrono::steady_clock::time_point m_next;
};

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <sys/ioctl.h>
#include <unistd.h>

#include "core/atomic_file.h"

namespace dblame
{

namespace
{

constexpr int kBarWidth = 24;
constexpr auto kRedraw = std::chrono::milliseconds(100);

std::size_t terminalWidth()
{
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

} // namespace

void say(const std::string &text)
{
    std::fprintf(stderr, "dblame: %s\n", text.c_str());
}

int failed(const Error &error)
{
    say(error.text());
    switch (error.code) {
    case ErrorCode::Usage:
        return kWrongUsage;
    case ErrorCode::Unreadable:
        return kUnreadable;
    case ErrorCode::Incomparable:
        return kIncomparable;
    case ErrorCode::Cancelled:
        return kCancelled;
    case ErrorCode::Internal:
        break;
    }
    return kInternalError;
}

Result<void> deliver(const std::string &path, std::string_view content)
{
    if (path != "-")
        return writeFileAtomically(path, content);
    const bool written =
        std::fwrite(content.data(), 1, content.size(), stdout) == content.size() && std::fflush(stdout) == 0;
    if (!written)
        return fail(ErrorCode::Unreadable, "stdout", std::string("cannot be written: ") + std::strerror(errno));
    return {};
}

ProgressBar::ProgressBar() : m_terminal(isatty(STDERR_FILENO) != 0), m_next(std::chrono::steady_clock::now() + kRedraw)
{
}

ProgressBar::~ProgressBar()
{
    clear();
}

void ProgressBar::show(double done, const std::string &what)
{
    if (!m_terminal)
        return;
    const auto now = std::chrono::steady_clock::now();
    if (now < m_next)
        return;
    m_next = now + kRedraw;
    const auto filled = static_cast<int>(std::clamp(done, 0.0, 1.0) * kBarWidth);
    std::string line = "[" + std::string(static_cast<std::size_t>(filled), '#') +
                       std::string(static_cast<std::size_t>(kBarWidth - filled), ' ') + "] " +
                       std::to_string(static_cast<int>(std::clamp(done, 0.0, 1.0) * 100)) + "% " + what;
    line.resize(std::min(line.size(), terminalWidth() - 1)); // a wrapped line could not be removed
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
    m_shown = true;
}

void ProgressBar::clear()
{
    if (m_shown)
        std::fputs("\r\033[K", stderr);
    m_shown = false;
}

Progress ProgressBar::callback(std::string what)
{
    return [this, what = std::move(what)](std::uint64_t done, std::uint64_t total, const char *step) {
        show(total == 0 ? 0.0 : static_cast<double>(done) / static_cast<double>(total), what + ": " + step);
    };
}

} // namespace dblame

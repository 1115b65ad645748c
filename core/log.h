// SPDX-License-Identifier: GPL-3.0-or-later
//
// The program's log. Callable from any thread; what is behind it is nobody's business.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace dblame
{

enum class LogLevel { Debug, Info, Warning, Error };
[[nodiscard]] const char *logLevelName(LogLevel level); // "debug", "info", "warning", "error"

// One line. Lines below the level that was set are dropped (default: Info).
void logLine(LogLevel level, std::string_view text);
// The error's text; its detail (backtrace, cause) follows as a debug line.
void logError(const Error &error);
void setLogLevel(LogLevel level);

// Whether lines also go to stderr (default: no; the command line prints its own messages).
void setLogToStderr(bool on);

// Receives every line that passes the level, on the thread that logged it and one at a time: keep it short and
// never log from inside it. An empty function takes the sink away; when this returns, no call is under way.
using LogSink = std::function<void(LogLevel level, const std::string &text)>;
void setLogSink(LogSink sink);

} // namespace dblame

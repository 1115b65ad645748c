// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/log.h"

#include <memory>
#include <mutex>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace dblame
{

namespace
{

spdlog::level::level_enum spdlogLevel(LogLevel level)
{
    switch (level) {
    case LogLevel::Debug:
        return spdlog::level::debug;
    case LogLevel::Info:
        return spdlog::level::info;
    case LogLevel::Warning:
        return spdlog::level::warn;
    case LogLevel::Error:
        return spdlog::level::err;
    }
    return spdlog::level::info;
}

LogLevel ourLevel(spdlog::level::level_enum level)
{
    if (level <= spdlog::level::debug)
        return LogLevel::Debug;
    if (level == spdlog::level::info)
        return LogLevel::Info;
    return level == spdlog::level::warn ? LogLevel::Warning : LogLevel::Error;
}

// Hands lines to the window and, when asked to, to stderr. base_sink's mutex is the only one of the log:
// changing the receiver takes it too, so a receiver that was taken away is never called again.
class Outlet final : public spdlog::sinks::base_sink<std::mutex>
{
public:
    void setReceiver(LogSink receiver)
    {
        const std::lock_guard lock(mutex_);
        m_receiver = std::move(receiver);
    }
    void setStderr(bool on)
    {
        const std::lock_guard lock(mutex_);
        m_stderr = on ? std::make_unique<spdlog::sinks::stderr_sink_st>() : nullptr;
        if (m_stderr)
            m_stderr->set_pattern("dblame: %l: %v");
    }

protected:
    void sink_it_(const spdlog::details::log_msg &message) override
    {
        if (m_stderr)
            m_stderr->log(message);
        if (m_receiver)
            m_receiver(ourLevel(message.level), std::string(message.payload.data(), message.payload.size()));
    }
    void flush_() override
    {
        if (m_stderr)
            m_stderr->flush();
    }

private:
    LogSink m_receiver;
    std::unique_ptr<spdlog::sinks::stderr_sink_st> m_stderr;
};

struct Log {
    std::shared_ptr<Outlet> outlet = std::make_shared<Outlet>();
    spdlog::logger logger{"dblame", outlet};
};

Log &theLog()
{
    static Log log;
    return log;
}

} // namespace

const char *logLevelName(LogLevel level)
{
    switch (level) {
    case LogLevel::Debug:
        return "debug";
    case LogLevel::Info:
        return "info";
    case LogLevel::Warning:
        return "warning";
    case LogLevel::Error:
        return "error";
    }
    return "info";
}

void logLine(LogLevel level, std::string_view text)
{
    // Not a format string: braces in file and node names are text.
    theLog().logger.log(spdlogLevel(level), spdlog::string_view_t(text.data(), text.size()));
}

void logError(const Error &error)
{
    logLine(error.code == ErrorCode::Cancelled ? LogLevel::Info : LogLevel::Error, error.text());
    if (!error.detail.empty())
        logLine(LogLevel::Debug, error.detail);
}

void setLogLevel(LogLevel level)
{
    theLog().logger.set_level(spdlogLevel(level));
}

void setLogToStderr(bool on)
{
    theLog().outlet->setStderr(on);
}

void setLogSink(LogSink sink)
{
    theLog().outlet->setReceiver(std::move(sink));
}

} // namespace dblame

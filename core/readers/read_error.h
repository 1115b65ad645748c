// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "core/error.h"

namespace dblame
{

// Thrown between the parts of the readers only; the public functions turn it into an Error.
// `member` is the archive member it concerns, when the message does not name it itself.
class ReadError : public std::runtime_error
{
public:
    explicit ReadError(const std::string &message, std::string member = {})
        : std::runtime_error(message), m_member(std::move(member))
    {
    }
    [[nodiscard]] const std::string &member() const { return m_member; }
    // `remedy`: what to do where the message does not say so itself, after a semicolon.
    [[nodiscard]] Error toError(const std::string &file, const char *remedy) const
    {
        std::string message = what();
        if (message.find("; ") == std::string::npos)
            message += std::string("; ") + remedy;
        return Error{ErrorCode::Unreadable, m_member.empty() ? file : file + ": " + m_member, std::move(message), {}};
    }

private:
    std::string m_member;
};

// The file is sound, but what it holds needs Python code or a library that is not here.
class NeedsCode : public ReadError
{
public:
    using ReadError::ReadError;
};

// The stop token was set.
class ReadCancelled : public std::runtime_error
{
public:
    ReadCancelled() : std::runtime_error("cancelled") {}
};

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace dblame
{

// What kind of failure it is; the command line maps these to exit statuses (docs/cli.md).
enum class ErrorCode {
    Usage,        // unknown option, selector that matches nothing        -> exit 2
    Unreadable,   // file missing, damaged, refused, of an unknown kind   -> exit 3
    Incomparable, // nothing could be compared                            -> exit 4
    Cancelled,    // the stop token was set                               -> exit 5
    Internal,     // a defect of dBlame                                   -> exit 70
};

// An error as the user sees it. `message` says what happened and what to do; `where` names the
// file, member or node it happened at (may be empty); `detail` is for the log (backtraces, causes).
struct Error {
    ErrorCode code = ErrorCode::Internal;
    std::string where;
    std::string message;
    std::string detail;

    // "where: message", or the message alone when there is no place to name.
    [[nodiscard]] std::string text() const { return where.empty() ? message : where + ": " + message; }
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string where, std::string message,
                                                std::string detail = {})
{
    return tl::unexpected<Error>(Error{code, std::move(where), std::move(message), std::move(detail)});
}

} // namespace dblame

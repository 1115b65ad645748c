// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reads a JSON report back.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "core/report.h"

namespace dblame
{

// Unreadable: the file is missing, no JSON (with the position), or no report (with the field that is wrong).
// Fields that this version does not know are ignored.
[[nodiscard]] Result<Report> readReport(const std::string &path);
[[nodiscard]] Result<Report> parseReport(std::string_view text, const std::string &name);

} // namespace dblame

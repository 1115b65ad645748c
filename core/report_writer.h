// SPDX-License-Identifier: GPL-3.0-or-later
//
// A Report as JSON, CSV, HTML and as a table for a terminal. Pure functions to text; files are written whole
// or not at all. docs/cli.md lists the fields.
#pragma once

#include <string>

#include "core/error.h"
#include "core/report.h"

namespace dblame
{

// One row per line, so that two reports can be compared by any text tool. Numbers that JSON lacks are the
// strings "inf", "-inf", "nan".
[[nodiscard]] std::string reportJson(const Report &report);
// RFC 4180, UTF-8, '.' as decimal point in every locale; arrays are left out.
[[nodiscard]] std::string reportCsv(const Report &report);
// One file that refers to nothing outside: plot, sortable table, warnings; light and dark.
[[nodiscard]] std::string reportHtml(const Report &report);
// For stdout: rows in order, the largest drop marked.
[[nodiscard]] std::string reportTable(const Report &report);

// One CSV field, quoted where it has to be.
[[nodiscard]] std::string csvField(const std::string &text);

} // namespace dblame

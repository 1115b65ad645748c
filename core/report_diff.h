// SPDX-License-Identifier: GPL-3.0-or-later
//
// Two reports against each other: what changed per row, regressions first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/report.h"

namespace dblame
{

// What makes a row of one report the same as a row of the other.
enum class DiffKey {
    Node,   // the reference's value name
    Module, // module path: its last row (after its output site); rows outside modules by value name
};

struct DiffRow {
    std::string key;
    std::string node, module, op; // of B's row (of A's for removed ones)
    std::string kind;
    std::optional<double> a, b; // dB in the convention of A; absent without a figure
    std::string aWord, bWord;   // "23.41", "exact", "failed: ..."
    // b - a; negative: worse. Finite numbers only; a row that went from a figure to none counts as -inf,
    // the way back as +inf; exact = +inf dB. Absent where neither has a figure.
    std::optional<double> change;
};

struct ReportDiff {
    std::vector<DiffRow> rows;           // in both; regressions first, then unchanged ones in A's order, then gains
    std::vector<DiffRow> added, removed; // in B's, A's order
    std::vector<std::string> warnings;   // threads, CPU, inputs, models or versions differ
    std::string signal;
    std::vector<double> outputChange; // b - a per output, where both have the same count
    double worst = 0;                 // the largest regression, positive; 0 when none
};

[[nodiscard]] ReportDiff diffReports(const Report &a, const Report &b, DiffKey key);

// For stdout. `limit`: rows with a change to show, 0 = all.
[[nodiscard]] std::string diffTable(const ReportDiff &diff);

} // namespace dblame

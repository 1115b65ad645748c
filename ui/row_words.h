// SPDX-License-Identifier: GPL-3.0-or-later
//
// How rows are put into words and figures: one spelling for table, runs and status bar.
#pragma once

#include <QString>

#include "core/graph.h"
#include "core/node_report.h"

namespace dblame::ui
{

// "31.3", "−4.9"; "exact" for +inf, "−inf", "NaN". Without the unit.
[[nodiscard]] QString decibels(double db, int decimals = 1);
// A loss of 5.4 dB as "−5.4", a gain of 2 as "+2.0".
[[nodiscard]] QString lossDecibels(double dropDb);
// "+2.0", "−0.3": a change between two runs.
[[nodiscard]] QString changeDecibels(double db);
// Four significant digits, C locale.
[[nodiscard]] QString figure(double value);
// "not run", "ok", "exact", "shapes differ 4×8 / 4×16", "not computed: needs mylib::crelu", ...
[[nodiscard]] QString stateWords(const NodeReport &row);
// What the dB column shows: the number, or the state's first word where there is no number.
[[nodiscard]] QString snrText(const NodeReport &row, Signal signal);
// False where a row has no dB at all (pending, integers, failures); NaN and infinities are numbers.
[[nodiscard]] bool hasDb(const NodeReport &row);
// "4×16×8"
[[nodiscard]] QString sizesText(const std::vector<std::int64_t> &shape);
// "int8 per ch": the short form of a site's spec for narrow columns.
[[nodiscard]] QString shortSpec(const QuantSpec &spec);
// Whether the row takes part in drops and in "worst node".
[[nodiscard]] inline bool isActivation(RowKind kind)
{
    return kind == RowKind::Activation || kind == RowKind::Output;
}

} // namespace dblame::ui

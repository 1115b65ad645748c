// SPDX-License-Identifier: GPL-3.0-or-later
//
// What File > Recent keeps of something that was opened, as one text: the reference, the candidate and the inputs, one
// a line; then, of a candidate that a recipe made, the recipe and its calibration files behind their words. A line
// alone is a document.
#pragma once

#include <optional>

#include <QString>

#include "core/error.h"
#include "ui/engine_side.h"

namespace dblame::ui
{

[[nodiscard]] QString recentEntry(const OpenRequest &request);

struct RecentEntry {
    QString document;    // path; empty: `request`
    OpenRequest request; // without random inputs: those are asked for
    QString title;       // "fixtures/float.pt2 ↔ xnnpack-static"
};
// Errors (Unreadable): a recipe that this version does not read.
[[nodiscard]] Result<RecentEntry> readRecentEntry(const QString &text);

} // namespace dblame::ui

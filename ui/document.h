// SPDX-License-Identifier: GPL-3.0-or-later
//
// A .dblame document: what was open and what was changed, so that it can be taken up again. JSON; files are kept by
// their path from the document's folder and by their absolute path, the former is tried first (a folder that was
// moved as a whole still opens).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <QByteArray>
#include <QString>

#include "core/alignment.h"
#include "core/error.h"
#include "core/node_report.h"
#include "ui/edits_text.h"

namespace dblame::ui
{

struct Document {
    QString reference, candidate; // absolute paths, "FILE#program" allowed; empty: none
    std::vector<QString> inputs;
    QString recipe; // text of a recipe file, in place of `candidate`; empty: none
    std::vector<QString> calibration;
    std::optional<std::uint64_t> random; // seed
    NamedEdits edits;
    std::vector<HandPair> hand;
    Signal signal = Signal::Reference;
    // The window's choices.
    QByteArray geometry, docks, graph;
    QString theme;
};

inline constexpr const char *kDocumentSuffix = ".dblame";

// Errors: Unreadable, with the reason and what to do.
[[nodiscard]] Result<Document> readDocument(const QString &path);
// Written to a neighbour and renamed: an interrupted save leaves the old document whole.
[[nodiscard]] Result<void> writeDocument(const QString &path, const Document &document);

} // namespace dblame::ui

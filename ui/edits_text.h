// SPDX-License-Identifier: GPL-3.0-or-later
//
// Edits by name: site ids are stable over re-export, positions in a SiteTable are not. Documents keep names, and an
// edit outlives the candidate it was made on.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <QString>
#include <QStringList>

#include "core/edits.h"
#include "ui/open_pair.h"

namespace dblame::ui
{

struct NamedEdits {
    std::vector<std::string> off;                              // site ids
    std::vector<std::pair<std::string, std::string>> bypassed; // site id, name of the reading node
    std::map<std::string, SpecChange> respecified;             // by site id
    friend bool operator==(const NamedEdits &, const NamedEdits &) = default;
    [[nodiscard]] bool empty() const { return off.empty() && bypassed.empty() && respecified.empty(); }
};

[[nodiscard]] NamedEdits nameEdits(const EditSet &edits, const OpenPair &pair);
// What names no site of this candidate goes to `lost` as "block.conv9/weight".
[[nodiscard]] EditSet resolveEdits(const NamedEdits &edits, const OpenPair &pair, QStringList *lost);

// "as opened", "head_conv.conv float here", "3 layers float here, fc/weight int4 per channel".
[[nodiscard]] QString describeEdits(const EditSet &edits, const OpenPair &pair);
// The operator of the reference whose row an operator of the candidate has; null when it has none.
[[nodiscard]] const Node *referenceOf(const OpenPair &pair, NodeId node);
// The module (with its call) that an operator of the candidate belongs to: its own, or that of its row, for a rewrite
// leaves operators without one. May be empty.
[[nodiscard]] std::string layerOf(const OpenPair &pair, NodeId node);
// As graph, plot and table call it: by the reference's name where it has a row.
[[nodiscard]] QString operatorName(const OpenPair &pair, NodeId node);
// The layer that an operator of the candidate is shown as: its module path, or the operator's name.
[[nodiscard]] QString layerName(const OpenPair &pair, NodeId node);

// a with b's sites taken in, or taken out.
[[nodiscard]] EditSet unite(EditSet a, const EditSet &b);
[[nodiscard]] EditSet subtract(EditSet a, const EditSet &b);

} // namespace dblame::ui

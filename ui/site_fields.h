// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the inspector says in words about a row: its quantizers, its pairing, its values. No widgets.
#pragma once

#include <cstdint>
#include <vector>

#include <QString>

#include "core/node_report.h"
#include "ui/field_grid.h"
#include "ui/open_pair.h"

namespace dblame::ui
{

// One quantizer of a row.
struct SiteSection {
    SiteId site;
    QString title; // "output", "weight", "input of block.conv2, argument 0"
    std::vector<Field> fields;
    std::vector<double> scale; // for the table; at most one entry when per tensor
    std::vector<std::int64_t> zeroPoint;
};

// The sites that touch a row: its output or weight site, the consumers' input sites, and, for an operator, the
// weight and input sites it owns. `report` may be pending: then the file's qparams are shown.
[[nodiscard]] std::vector<SiteSection> siteSections(const OpenPair &pair, PairId row, const NodeReport &report);

// paired by, folded norms, shape, dtype, ranges of both sides, NaN and inf counts, elements, time.
[[nodiscard]] std::vector<Field> rowFields(const OpenPair &pair, PairId row, const NodeReport &report);

// "aten.conv2d · node 11 of 14 · net.py:41"; "weight fc.weight · 2 of 10"
[[nodiscard]] QString rowSubtitle(const OpenPair &pair, PairId row);

} // namespace dblame::ui

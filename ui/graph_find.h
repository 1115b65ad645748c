// SPDX-License-Identifier: GPL-3.0-or-later
//
// The find field of the graph: words and comparisons, all of which must hold, as in the table's filter.
//   conv             in label, module path or operator; case does not matter
//   -relu            not there
//   snr<20  snr>=30  figures: snr, drop
//   exact, failed    words of the state
#pragma once

#include <vector>

#include <QString>

#include "ui/graph_document.h"

namespace dblame::ui
{

class NodeTableModel;

// Nodes of the document that fit, in its order. An empty query fits nothing.
[[nodiscard]] std::vector<std::int32_t> findNodes(const GraphDocument &document, const NodeTableModel *table,
                                                  const QString &query);

} // namespace dblame::ui

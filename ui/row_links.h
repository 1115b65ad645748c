// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <unordered_map>
#include <vector>

#include "ui/open_pair.h"

namespace dblame::ui
{

// Which rows feed a row and which read it, from the reference's graph. Values without a row of their own (unpaired
// nodes, norms that were folded, sizes) are passed through, so the links are the nearest rows. Weights count as inputs.
class RowLinks
{
public:
    RowLinks() = default;
    explicit RowLinks(OpenPairPtr pair);

    // In the order of the operator's arguments, and of execution; at most kMost each.
    [[nodiscard]] std::vector<PairId> inputs(PairId row) const;
    [[nodiscard]] std::vector<PairId> outputs(PairId row) const;
    // The row that has this reference value; invalid when there is none.
    [[nodiscard]] PairId rowOf(ValueId reference) const;

    static constexpr std::size_t kMost = 24;

private:
    OpenPairPtr m_pair;
    std::unordered_map<ValueId, PairId> m_rowOf; // by ref and by refCompared
};

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
//
// What changes between two placements of one model: for the plan, and to compare two recipes.
#pragma once

#include <string>
#include <vector>

#include "core/placement.h"

namespace dblame
{

enum class SiteChange : std::uint8_t { Appears, Vanishes, Changes };
[[nodiscard]] const char *siteChangeName(SiteChange change); // "appears", "vanishes", "changes"

struct PlacementChange {
    SiteChange kind = SiteChange::Changes;
    std::string id;   // of the site
    int before = -1;  // position in the first placement's sites, -1 where there is none
    int after = -1;   // ... in the second's
    std::string text; // "int8 symmetric per channel, last batch -> int4 symmetric per channel, last batch"
};

struct PlacementDiff {
    std::vector<PlacementChange> changes; // in execution order
    std::vector<std::string> notes;       // weights that become float or quantized, with the reason; new warnings
    int same = 0;                         // sites that stay as they are
    [[nodiscard]] bool empty() const { return changes.empty(); }
};

// Sites are paired by what they are: tensor, role, readers' owner, place in a chain; ids may differ where one placement
// has two sites in a module and the other one.
[[nodiscard]] PlacementDiff comparePlacements(const Graph &graph, const Placement &before, const Placement &after);
// Of recipes that rewrite one model in different ways (norms folded, numbers lifted into buffers): paired by the names
// of values and nodes, which the rewrites keep. A value behind a norm that only the other graph has folded is its
// convolution's there.
[[nodiscard]] PlacementDiff comparePlacements(const Graph &beforeGraph, const Placement &before,
                                              const Graph &afterGraph, const Placement &after);

} // namespace dblame

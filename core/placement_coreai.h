// SPDX-License-Identifier: GPL-3.0-or-later
//
// coreai-opt's placement with what a recipe adds. placeCoreAi and placePalettes of core/placement.h are these without
// additions.
#pragma once

#include <set>
#include <vector>

#include "core/coreai_config.h"
#include "core/placement.h"

namespace dblame
{

struct CoreAiOptions {
    bool corrected = false;
    std::set<NodeId> excluded; // operators that ask for nothing, whatever the configuration says
    std::vector<SpecOverride> overrides;
};

// Usage: what coreai-opt refuses when it prepares a model (a position that is a parameter, an activation per channel
// without an axis, ...), with the operator.
[[nodiscard]] Result<Placement> placeCoreAi(const Graph &graph, const CoreAiConfig &config,
                                            const CoreAiOptions &options);
[[nodiscard]] Result<Placement> placePalettes(const Graph &graph, const PaletteConfig &config,
                                              const CoreAiOptions &options);

// Where the peer has a site on a module's weight, an execution_mode eager configuration places by calls of functions:
// every registered call has its own observers, nothing is shared. core/placement_coreai_eager.cpp.
[[nodiscard]] Result<Placement> placeCoreAiEager(const Graph &graph, const CoreAiConfig &config,
                                                 const CoreAiOptions &options);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which configuration counts for an operator, and which pattern has it: by level, then by the length of the pattern,
// then by the place of its module's entry, then by graph order.
#pragma once

#include <string>
#include <vector>

#include "core/coreai_graph.h"
#include "core/coreai_patterns.h"
#include "core/coreai_records.h"
#include "core/module_levels.h"
#include "core/placement_coreai.h"

namespace dblame
{

// Strongest first, as ConfigLevel.
enum class OpConfigLevel : std::uint8_t { Name, Type, Default };

struct ChosenConfig {
    const CoreAiOpConfig *config = nullptr;
    ConfigLevel level = ConfigLevel::Global;
    OpConfigLevel opLevel = OpConfigLevel::Default;
    int place = 0;
    std::string key; // what named it: "fc", "conv2d_.*"; "" for the module's own specs
    bool excluded = false;
};

struct CoreAiChoice {
    std::vector<ChosenConfig> configs; // per entry; config is nullptr where no pattern is anchored
    std::vector<CoreAiCover> covers;   // per entry
    std::vector<std::string> warnings; // operator names and types that match nothing
};

// Usage: keys that graph mode refuses ("x" among inputs, an output other than 0). The arguments must outlive the
// result.
[[nodiscard]] Result<CoreAiChoice> chooseCoreAiConfigs(const CoreAiGraph &graph, const ModuleTree &tree,
                                                       const ModuleLevels<CoreAiConfig> &levels,
                                                       const CoreAiConfig &config, const CoreAiOptions &options);

} // namespace dblame

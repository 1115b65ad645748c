// SPDX-License-Identifier: GPL-3.0-or-later
//
// What coreai-opt's graph mode asks of every edge and output before sites are grouped: configuration by operator,
// settled records, module boundaries, key-value caches.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/coreai_choice.h"
#include "core/coreai_graph.h"
#include "core/coreai_patterns.h"
#include "core/coreai_records.h"
#include "core/module_levels.h"
#include "core/placement_coreai.h"
#include "core/placement_groups.h"

namespace dblame
{

struct CoreAiAnnotation {
    SpecMap asked;
    std::vector<ChosenConfig> configs; // per entry; config is nullptr where no pattern is anchored
    std::vector<CoreAiCover> covers;   // per entry
    std::vector<std::string> warnings;
    std::vector<DefectNote> defects;
};

// `graph`, `tree` and `config` must outlive the result.
[[nodiscard]] Result<CoreAiAnnotation> annotateCoreAi(const CoreAiGraph &graph, const ModuleTree &tree,
                                                      const CoreAiConfig &config, const CoreAiOptions &options);

// Keys of the configuration that name nothing in this model, one line each with the nearest names.
[[nodiscard]] std::vector<std::string> idleKeyWarnings(const ModuleTree &tree, const IdleKeys &idle);

// The last entry for one of the names, else "*"; nullptr: no entry speaks for it.
[[nodiscard]] const std::optional<CoreAiSpec> *lookUp(const CoreAiSpecs &specs, const std::vector<std::string> &names);

} // namespace dblame

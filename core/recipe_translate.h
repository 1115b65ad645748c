// SPDX-License-Identifier: GPL-3.0-or-later
//
// Overrides of a recipe said in coreai-opt's own terms: entries of module_name_configs, module_type_configs,
// op_type_config and op_name_config.
#pragma once

#include <string>
#include <vector>

#include "core/module_levels.h"
#include "core/recipe.h"

namespace dblame
{

struct TranslatedConfig {
    CoreAiConfig config;
    std::vector<RecipeOverride> left; // those that the configuration cannot say, in order
    std::vector<std::string> reasons; // why, one per entry of `left`
};

// Overrides that mean what the quantizer would do (and specs) become entries; "float here" stays, because no entry says
// it for one reader. With a graph the entries name what the selectors name on it. Without one, only selectors that need
// no look at the model are translated.
// `ranges`: a spec with a range is translated too, though coreai-opt widens it where other sites of the tensor have
// none.
[[nodiscard]] TranslatedConfig translateOverrides(const Recipe &recipe, const Graph *graph, bool ranges = false);

// A regular expression that matches this text only.
[[nodiscard]] std::string literalPattern(const std::string &text);

} // namespace dblame

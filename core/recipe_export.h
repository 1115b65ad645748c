// SPDX-License-Identifier: GPL-3.0-or-later
//
// A recipe as a configuration that its own quantizer loads.
#pragma once

#include <string>

#include "core/recipe.h"

namespace dblame
{

// What the quantizer of the recipe cannot say is an error (Usage) that names the override. `graph` is the graph that
// the quantizer annotates, or nullptr where only the recipe is at hand: overrides that need a look at the model are
// then errors too. With a graph, the text is checked: placed alone it gives the sites of the recipe.

// YAML for QuantizerConfig.from_yaml or KMeansPalettizerConfig.from_yaml.
[[nodiscard]] Result<std::string> exportCoreAiOpt(const Recipe &recipe, const Graph *graph = nullptr);
// Python source with to_quantizer_config() (or to_palettizer_config()), the same configuration.
[[nodiscard]] Result<std::string> exportCoreAiPython(const Recipe &recipe, const Graph *graph = nullptr);
// recipe.json for RecipeQuantizer (docs/recipe.md).
[[nodiscard]] Result<std::string> exportTorchao(const Recipe &recipe, const Graph *graph = nullptr);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// --preset, --recipe, --set, --calibration: what a float model is quantized with.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "core/recipe.h"

namespace dblame
{

struct RecipeArguments {
    std::vector<std::string> presets, files; // in the order given, presets first
    std::vector<std::string> set;

    // `many`: two recipes may be given, to be compared.
    void addTo(CLI::App &command, bool many);
    [[nodiscard]] bool given() const { return !presets.empty() || !files.empty(); }
};

// What --set says, in order.
[[nodiscard]] Result<std::vector<RecipeOverride>> parseOverrides(const std::vector<std::string> &texts);

// The recipes, each with the --set overrides. `notes`: what a file says and the peer drops silently.
[[nodiscard]] Result<std::vector<Recipe>> readRecipes(const RecipeArguments &arguments,
                                                      std::vector<std::string> &notes);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Recipes on disk: reading one, and writing one in the form that its own quantizer loads.
#pragma once

#include <QString>

#include "core/recipe_export.h"

namespace dblame::ui
{

// YAML, as a coreai-opt configuration or as dBlame writes it. Errors: Unreadable, with the line. `notes`: as
// parseRecipe.
[[nodiscard]] Result<Recipe> readRecipeFile(const QString &path, std::vector<std::string> *notes = nullptr);

enum class RecipeFormat { DBlame, CoreAiOpt, Python, Torchao };
// By extension: .py is Python, .json torchao's recipe, .coreai.yaml a coreai-opt configuration, other YAML dBlame's
// own. Usage: any other extension.
[[nodiscard]] Result<RecipeFormat> recipeFormatOf(const QString &path);
// Name filters of the file dialog, and what was meant by the one that was chosen.
[[nodiscard]] QString recipeFilters();
[[nodiscard]] Result<RecipeFormat> recipeFormatOf(const QString &path, const QString &chosenFilter);

// `graph`: the one that the quantizer annotates. Errors: what the quantizer cannot say; what cannot be written.
[[nodiscard]] Result<void> writeRecipe(const Recipe &recipe, const Graph &graph, const QString &path,
                                       RecipeFormat format);

} // namespace dblame::ui

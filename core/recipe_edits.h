// SPDX-License-Identifier: GPL-3.0-or-later
//
// Changes that were made to the sites of a recipe's candidate, as overrides of the recipe: what was tried in the Layers
// dock goes into what is exported.
#pragma once

#include <string>
#include <vector>

#include "core/edits.h"
#include "core/quantization.h"
#include "core/recipe.h"

namespace dblame
{

struct EditsAsOverrides {
    std::vector<RecipeOverride> overrides; // to be added behind the recipe's own
    EditSet left;                          // what no override says, with the reason in `notes`
    std::vector<std::string> notes;        // and what the overrides change besides
};

// `sites` are those of `quantized.model`, which the edits speak of. A weight or a result that is off is float here at
// the operator it belongs to, an input that is off or bypassed is float for its readers alone; another spec becomes the
// role's spec, with its range where it has one. An operator is named by its module where it is the only one in it, else
// by its node. Float here gives the numbers of the edit, unless calibrating sees something else now: an observer that
// stays had watched the site too, or the recipe quantizes while it calibrates (coreai-opt's static one, training).
// Another spec is calibrated anew and need not give those numbers.
// Errors: as placeRecipe.
[[nodiscard]] Result<EditsAsOverrides> overridesOf(const EditSet &edits, const SiteTable &sites,
                                                   const QuantizedModel &quantized, const Recipe &recipe);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/recipe_notes.h"

#include "core/recipe_facts.h"

namespace dblame::ui
{

std::vector<std::string> recipeNotes(const QuantizedModel &quantized)
{
    std::vector<std::string> notes = quantized.warnings;
    notes.insert(notes.end(), quantized.placement.warnings.begin(), quantized.placement.warnings.end());
    const RecipeFacts facts = factsOf(quantized);
    for (const std::string &defect : facts.defects)
        notes.push_back("known " + defect);
    for (const FloatOperator &left : facts.leftFloat)
        notes.push_back((left.module.empty() ? left.node : left.module) + " stays float: " + left.reason);
    return notes;
}

} // namespace dblame::ui

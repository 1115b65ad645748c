// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/recipe_options.h"

#include <fstream>
#include <iterator>

namespace dblame
{

namespace
{

Result<Recipe> readRecipeFile(const std::string &path, std::vector<std::string> &notes)
{
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file.good() && text.empty())
        return fail(ErrorCode::Unreadable, path, "cannot be read, or is empty; give a recipe file (docs/recipe.md)");
    return parseRecipe(text, path, &notes);
}

} // namespace

void RecipeArguments::addTo(CLI::App &command, bool many)
{
    std::string names;
    for (const std::string &name : presetNames())
        names += (names.empty() ? "" : ", ") + name;
    const int most = many ? 2 : 1;
    command
        .add_option("--preset", presets,
                    "Quantize the model as this preset does: " + names +
                        "; with :corrected the peer's known defects are left out")
        ->type_name("NAME")
        ->expected(1, most);
    command
        .add_option("--recipe", files,
                    "Quantize the model as this recipe says: YAML as coreai-opt reads it, or as written by dBlame")
        ->type_name("FILE")
        ->expected(1, most);
    command
        .add_option("--set", set,
                    "Another spec for the layers a selector names: SELECTOR=SPEC, SPEC = weight=, in=, out=, act= with "
                    "float or DTYPE:SCHEME[:GRANULARITY], and range=LO..HI, separated by commas; none: as the "
                    "quantizer would without them")
        ->type_name("SELECTOR=SPEC")
        ->expected(1, -1);
}

Result<std::vector<RecipeOverride>> parseOverrides(const std::vector<std::string> &texts)
{
    std::vector<RecipeOverride> overrides;
    for (const auto &text : texts) {
        auto change = parseOverride(text);
        if (!change)
            return tl::unexpected(change.error());
        overrides.push_back(std::move(*change));
    }
    return overrides;
}

Result<std::vector<Recipe>> readRecipes(const RecipeArguments &arguments, std::vector<std::string> &notes)
{
    std::vector<Recipe> recipes;
    for (const std::string &name : arguments.presets) {
        auto recipe = presetRecipe(name);
        if (!recipe)
            return tl::unexpected(recipe.error());
        recipes.push_back(std::move(*recipe));
    }
    for (const std::string &path : arguments.files) {
        auto recipe = readRecipeFile(path, notes);
        if (!recipe)
            return tl::unexpected(recipe.error());
        recipes.push_back(std::move(*recipe));
    }
    const auto changes = parseOverrides(arguments.set);
    if (!changes)
        return tl::unexpected(changes.error());
    for (Recipe &recipe : recipes)
        recipe.overrides.insert(recipe.overrides.end(), changes->begin(), changes->end());
    return recipes;
}

} // namespace dblame

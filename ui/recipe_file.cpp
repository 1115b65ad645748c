// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/recipe_file.h"

#include <array>
#include <utility>

#include <QFile>
#include <QFileInfo>
#include <QStringList>

#include "core/atomic_file.h"

namespace dblame::ui
{

namespace
{

constexpr std::array<std::pair<const char *, RecipeFormat>, 4> kFilters = {{
    {"dBlame recipe (*.yaml *.yml)", RecipeFormat::DBlame},
    {"coreai-opt configuration (*.coreai.yaml)", RecipeFormat::CoreAiOpt},
    {"Python source (*.py)", RecipeFormat::Python},
    {"torchao recipe (*.json)", RecipeFormat::Torchao},
}};

} // namespace

Result<Recipe> readRecipeFile(const QString &path, std::vector<std::string> *notes)
{
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly))
        return fail(ErrorCode::Unreadable, path.toStdString(),
                    "cannot be read: " + file.errorString().toStdString() + "; choose a recipe file");
    return parseRecipe(file.readAll().toStdString(), path.toStdString(), notes);
}

Result<RecipeFormat> recipeFormatOf(const QString &path)
{
    const QString name = QFileInfo(path).fileName().toLower();
    if (name.endsWith(QLatin1String(".coreai.yaml")) || name.endsWith(QLatin1String(".coreai.yml")))
        return RecipeFormat::CoreAiOpt;
    if (name.endsWith(QLatin1String(".yaml")) || name.endsWith(QLatin1String(".yml")))
        return RecipeFormat::DBlame;
    if (name.endsWith(QLatin1String(".py")))
        return RecipeFormat::Python;
    if (name.endsWith(QLatin1String(".json")))
        return RecipeFormat::Torchao;
    return fail(ErrorCode::Usage, path.toStdString(), "a recipe is .yaml, .coreai.yaml, .py or .json; name it so");
}

QString recipeFilters()
{
    QStringList filters;
    for (const auto &[filter, format] : kFilters)
        filters << QString::fromLatin1(filter);
    return filters.join(QStringLiteral(";;"));
}

Result<RecipeFormat> recipeFormatOf(const QString &path, const QString &chosenFilter)
{
    const auto byName = recipeFormatOf(path);
    // Both kinds of YAML end alike: there the filter decides.
    const bool yaml = byName && (*byName == RecipeFormat::DBlame || *byName == RecipeFormat::CoreAiOpt);
    for (const auto &[filter, format] : kFilters)
        if (chosenFilter == QLatin1String(filter) && (!byName || (yaml && format == RecipeFormat::CoreAiOpt)))
            return format;
    return byName;
}

Result<void> writeRecipe(const Recipe &recipe, const Graph &graph, const QString &path, RecipeFormat format)
{
    const auto text = [&]() -> Result<std::string> {
        switch (format) {
        case RecipeFormat::CoreAiOpt:
            return exportCoreAiOpt(recipe, &graph);
        case RecipeFormat::Python:
            return exportCoreAiPython(recipe, &graph);
        case RecipeFormat::Torchao:
            return exportTorchao(recipe, &graph);
        case RecipeFormat::DBlame:
            break;
        }
        return recipeText(recipe);
    }();
    if (!text)
        return tl::unexpected(text.error());
    return writeFileAtomically(path.toStdString(), *text);
}

} // namespace dblame::ui

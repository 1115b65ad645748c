// SPDX-License-Identifier: GPL-3.0-or-later
//
// dblame recipe export: a recipe as a configuration that its own quantizer loads.
#include "app/commands.h"
#include "app/output_files.h"
#include "app/recipe_options.h"
#include "app/terminal.h"
#include "core/engine.h"
#include "core/recipe_export.h"

namespace dblame
{

namespace
{

struct ExportOptions {
    RecipeArguments recipes;
    std::string format, model, output = "-";
};

int runExport(const ExportOptions &options, std::stop_token stop)
{
    if (const auto checked = checkOutputs({{"--output", options.output}}, options.recipes.files); !checked)
        return failed(checked.error());
    std::vector<std::string> notes;
    const auto recipes = readRecipes(options.recipes, notes);
    if (!recipes)
        return failed(recipes.error());
    if (recipes->size() != 1)
        return failed({ErrorCode::Usage, "recipe export", "give one recipe: a FILE or --preset NAME", {}});
    for (const std::string &note : notes)
        say("warning: " + note);
    std::shared_ptr<const Model> annotated; // keeps the graph
    if (!options.model.empty()) {
        ProgressBar bar;
        const auto engine = loadEngine();
        if (!engine)
            return failed(engine.error());
        const auto model = (*engine)->openModel(options.model, bar.callback(options.model), stop);
        if (!model)
            return failed(model.error());
        const auto placed = (*engine)->place(*model, recipes->front());
        if (!placed)
            return failed(placed.error());
        annotated = placed->annotated;
    }
    const Graph *graph = annotated ? &annotated->graph() : nullptr;
    const auto text = options.format == "torchao"      ? exportTorchao(recipes->front(), graph)
                      : options.format == "coreai-opt" ? exportCoreAiOpt(recipes->front(), graph)
                      : options.format == "python"     ? exportCoreAiPython(recipes->front(), graph)
                                                       : Result<std::string>(recipeText(recipes->front()));
    if (!text)
        return failed(text.error());
    if (const auto written = deliver(options.output, *text); !written)
        return failed(written.error());
    return kDone;
}

} // namespace

void addRecipe(CLI::App &program, Command &chosen)
{
    auto *recipe = program.add_subcommand("recipe", "Recipes as files");
    recipe->require_subcommand(1);
    auto *command = recipe->add_subcommand("export", "Write a recipe as a configuration that its quantizer loads");
    const auto options = std::make_shared<ExportOptions>();
    command->add_option("file", options->recipes.files, "The recipe")->type_name("FILE")->expected(0, 1);
    command->add_option("--preset", options->recipes.presets, "A preset instead of a file")
        ->type_name("NAME")
        ->expected(1);
    command->add_option("--set", options->recipes.set, "Further overrides, as for compare")
        ->type_name("SELECTOR=SPEC")
        ->expected(1, -1);
    command
        ->add_option("--format", options->format,
                     "coreai-opt: YAML for QuantizerConfig.from_yaml; python: the same as source with "
                     "to_quantizer_config(); torchao: recipe.json for RecipeQuantizer (resources/python); dblame: a "
                     "recipe file")
        ->required()
        ->check(CLI::IsMember({"coreai-opt", "python", "torchao", "dblame"}));
    command
        ->add_option("--model", options->model,
                     "The float model, for overrides that need a look at it; the export is then checked against it")
        ->type_name("MODEL");
    command->add_option("-o,--output", options->output, "Where to; - is stdout")
        ->type_name("FILE")
        ->capture_default_str();
    command->callback(
        [options, &chosen] { chosen = [options](std::stop_token stop) { return runExport(*options, stop); }; });
}

} // namespace dblame

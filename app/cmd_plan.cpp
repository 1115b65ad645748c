// SPDX-License-Identifier: GPL-3.0-or-later
//
// dblame plan MODEL: the sites a recipe would give it, without running; with two recipes, the difference.
#include <limits>

#include "app/commands.h"
#include "app/recipe_options.h"
#include "app/terminal.h"
#include "core/engine.h"
#include "core/placement_diff.h"
#include "core/recipe_facts.h"
#include "core/text_table.h"

namespace dblame
{

namespace
{

struct PlanOptions {
    std::string model;
    RecipeArguments recipes;
    bool weights = false;
};

std::string sitesText(const QuantizedModel &placed)
{
    const Graph &graph = placed.annotated->graph();
    TextTable table({"site", "value", "spec", "observer"});
    for (const PlacedSite &site : placed.placement.sites) {
        const PlacedObserver &observer = placed.placement.observers[static_cast<std::size_t>(site.instance)];
        table.add({site.id, graph.value(site.value).name, observer.spec.text(), observer.name});
    }
    return table.text();
}

std::string differenceText(const std::vector<Recipe> &recipes, const PlacementDiff &diff)
{
    std::string text = "from " + recipes[0].title() + " to " + recipes[1].title() + ": " +
                       std::to_string(diff.changes.size()) + " sites differ, " + std::to_string(diff.same) +
                       " are the same\n";
    TextTable table({"site", "", "spec"});
    for (const PlacementChange &change : diff.changes)
        table.add({change.id, siteChangeName(change.kind), change.text});
    if (!diff.changes.empty())
        text += table.text();
    for (const std::string &note : diff.notes)
        text += note + "\n";
    return text;
}

int runPlan(const PlanOptions &options, std::stop_token stop)
{
    std::vector<std::string> notes;
    const auto recipes = readRecipes(options.recipes, notes);
    if (!recipes)
        return failed(recipes.error());
    if (recipes->empty() || recipes->size() > 2)
        return failed({ErrorCode::Usage,
                       "plan",
                       recipes->empty() ? "no recipe; give --preset NAME or --recipe FILE"
                                        : "three recipes cannot be compared; give one or two",
                       {}});
    ProgressBar bar;
    const auto engine = loadEngine();
    if (!engine)
        return failed(engine.error());
    const auto model = (*engine)->openModel(options.model, bar.callback(options.model), stop);
    if (!model)
        return failed(model.error());
    for (const std::string &note : notes)
        say("warning: " + note);
    std::vector<QuantizedModel> placed;
    for (const Recipe &recipe : *recipes) {
        QuantizeOptions weightsOnly;
        weightsOnly.weightsOnly = true;
        auto one = options.weights
                       ? (*engine)->quantize(*model, recipe, nullptr, weightsOnly, bar.callback("weights"), stop)
                       : (*engine)->place(*model, recipe);
        if (!one)
            return failed(one.error());
        placed.push_back(std::move(*one));
    }
    bar.clear();
    std::string text;
    if (placed.size() == 1) {
        text = sitesText(placed[0]) + "\n" + factsText(placed[0]);
    } else if (!sameIds(placed[0].annotated->graph(), placed[1].annotated->graph())) {
        text = "the two recipes rewrite the float model in different ways; each on its own:\n\n" +
               recipes->at(0).title() + "\n" + sitesText(placed[0]) + "\n" + recipes->at(1).title() + "\n" +
               sitesText(placed[1]);
    } else {
        text = differenceText(
            *recipes, comparePlacements(placed[0].annotated->graph(), placed[0].placement, placed[1].placement));
    }
    if (const auto written = deliver("-", text); !written)
        return failed(written.error());
    for (const QuantizedModel &one : placed) {
        for (const std::string &warning : one.warnings)
            say("warning: " + warning);
        for (const std::string &warning : one.placement.warnings)
            say("warning: " + warning);
    }
    return kDone;
}

} // namespace

void addPlan(CLI::App &program, Command &chosen)
{
    auto *command = program.add_subcommand(
        "plan", "The sites a recipe would give a model, without running it; with two recipes, what differs");
    const auto options = std::make_shared<PlanOptions>();
    command->add_option("model", options->model, "The float model: FILE, or FILE#program")
        ->required()
        ->type_name("MODEL");
    options->recipes.addTo(*command, true);
    command->add_flag("--weights", options->weights, "Also what quantizing costs each weight, per channel");
    command->callback(
        [options, &chosen] { chosen = [options](std::stop_token stop) { return runPlan(*options, stop); }; });
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// dblame plan MODEL: the sites a recipe would give it, without running; with two recipes, the difference. With inputs
// it quantizes and runs, for what weights and activations cost on their own.
#include <limits>

#include "app/commands.h"
#include "app/numbers.h"
#include "app/quantize_pair.h"
#include "app/recipe_options.h"
#include "app/terminal.h"
#include "core/engine.h"
#include "core/output_parts.h"
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
    bool weights = false, channels = false, noCache = false;
    std::vector<std::string> inputs, calibration;
    int threads = 0;
    std::int64_t limitBatches = 0;
};

// What one recipe makes of the model.
struct Planned {
    QuantizedModel quantized; // without a model where nothing ran
    std::optional<OutputParts> parts;
    std::string calibrated; // on what
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

std::string outputsText(const Planned &planned)
{
    if (!planned.parts)
        return {};
    const std::string calibrated = planned.calibrated.empty() ? "" : "; calibrated: " + planned.calibrated;
    return "\noutputs" + calibrated + "\n" + outputPartsText(*planned.parts);
}

Result<Planned> planOne(Engine &engine, const std::shared_ptr<const Model> &model, const Recipe &recipe,
                        const std::shared_ptr<const InputSet> &inputs, const PlanOptions &options, ProgressBar &bar,
                        std::stop_token stop)
{
    const auto planned = [](QuantizedModel quantized) { return Planned{std::move(quantized), {}, {}}; };
    if (!inputs && !options.weights && !options.channels)
        return engine.place(model, recipe).map(planned);
    if (!inputs) {
        QuantizeOptions weightsOnly;
        weightsOnly.weightsOnly = true;
        return engine.quantize(model, recipe, nullptr, weightsOnly, bar.callback("weights"), stop).map(planned);
    }
    Planned result;
    auto made = quantizeReference(engine, model, recipe, {options.calibration, !options.noCache, options.threads},
                                  inputs, result.calibrated, bar, stop);
    if (!made)
        return tl::unexpected(made.error());
    result.quantized = std::move(*made);
    const auto comparison = engine.compare(model, result.quantized.model, inputs);
    if (!comparison)
        return tl::unexpected(comparison.error());
    RunOptions run;
    run.channels = run.histograms = false;
    run.threads = options.threads;
    run.limitBatches = options.limitBatches;
    auto parts = measureOutputParts(**comparison, run, bar.callback(recipe.title()), stop);
    if (!parts)
        return tl::unexpected(parts.error());
    result.parts = std::move(*parts);
    return result;
}

std::string planText(const std::vector<Recipe> &recipes, const std::vector<Planned> &planned,
                     const PlanOptions &options)
{
    if (planned.size() == 1)
        return sitesText(planned[0].quantized) + "\n" + factsText(planned[0].quantized) + outputsText(planned[0]) +
               (options.channels ? "\n" + weightChannelsText(planned[0].quantized) : "");
    const QuantizedModel &before = planned[0].quantized;
    const QuantizedModel &after = planned[1].quantized;
    std::string text = differenceText(recipes, comparePlacements(before.annotated->graph(), before.placement,
                                                                 after.annotated->graph(), after.placement));
    for (std::size_t i = 0; i < planned.size(); ++i)
        if (planned[i].parts)
            text += "\n" + recipes[i].title() + outputsText(planned[i]);
    return text;
}

Result<std::vector<Recipe>> recipesOf(const PlanOptions &options, std::vector<std::string> &notes)
{
    auto recipes = readRecipes(options.recipes, notes);
    if (recipes && (recipes->empty() || recipes->size() > 2))
        return fail(ErrorCode::Usage, "plan",
                    recipes->empty() ? "no recipe; give --preset NAME or --recipe FILE"
                                     : "three recipes cannot be compared; give one or two");
    if (recipes && options.inputs.empty() && !options.calibration.empty())
        return fail(ErrorCode::Usage, "--calibration", "is for a run; give --inputs FILE too");
    return recipes;
}

int runPlan(const PlanOptions &options, std::stop_token stop)
{
    std::vector<std::string> notes;
    const auto recipes = recipesOf(options, notes);
    if (!recipes)
        return failed(recipes.error());
    ProgressBar bar;
    const auto engine = loadEngine();
    if (!engine)
        return failed(engine.error());
    const auto model = (*engine)->openModel(options.model, bar.callback(options.model), stop);
    if (!model)
        return failed(model.error());
    std::shared_ptr<const InputSet> inputs;
    if (!options.inputs.empty()) {
        InputRequest request;
        request.files = options.inputs;
        auto opened = (*engine)->openInputs(request, **model, **model, stop);
        if (!opened)
            return failed(opened.error());
        inputs = std::move(*opened);
        notes.insert(notes.end(), inputs->info().notes.begin(), inputs->info().notes.end());
    }
    for (const std::string &note : notes)
        say("warning: " + note);
    std::vector<Planned> planned;
    for (const Recipe &recipe : *recipes) {
        auto one = planOne(**engine, *model, recipe, inputs, options, bar, stop);
        if (!one)
            return failed(one.error());
        planned.push_back(std::move(*one));
    }
    bar.clear();
    if (const auto written = deliver("-", planText(*recipes, planned, options)); !written)
        return failed(written.error());
    for (const Planned &one : planned) {
        for (const std::string &warning : one.quantized.warnings)
            say("warning: " + warning);
        for (const std::string &warning : one.quantized.placement.warnings)
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
    command->add_flag("--weights", options->weights, "Also what quantizing costs each weight, and its worst channel");
    command->add_flag("--channels", options->channels, "Also what quantizing costs each channel of each weight");
    command
        ->add_option("--inputs", options->inputs,
                     "Run on these inputs, in the forms that compare takes: dB at the outputs with everything "
                     "quantized, with the weights alone, with the activations alone")
        ->type_name("FILE")
        ->expected(1, -1);
    command
        ->add_option("--calibration", options->calibration, "Inputs for the observers (default: the inputs themselves)")
        ->type_name("FILE")
        ->expected(1, -1);
    command->add_flag("--no-cache", options->noCache,
                      "Calibrate anew, even where an earlier calibration on the same data is known");
    command->add_option("--limit-batches", options->limitBatches, "Run only the first N batches")
        ->type_name("N")
        ->check(wholeNumber(1, std::numeric_limits<std::int64_t>::max()));
    command
        ->add_option("--threads", options->threads,
                     "Threads per operator; results depend on it (default: physical cores, at most 8)")
        ->type_name("N")
        ->check(wholeNumber(1, 1024));
    command->callback(
        [options, &chosen] { chosen = [options](std::stop_token stop) { return runPlan(*options, stop); }; });
}

} // namespace dblame

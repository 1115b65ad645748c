// SPDX-License-Identifier: GPL-3.0-or-later
//
// dblame compare REF CAND: runs both models and reports one row per aligned pair.
#include <algorithm>
#include <cmath>
#include <limits>

#include "app/commands.h"
#include "app/numbers.h"
#include "app/output_files.h"
#include "app/pair_options.h"
#include "app/quantize_pair.h"
#include "app/recipe_options.h"
#include "core/number_text.h"
#include "core/recipe_facts.h"
#include "core/report_writer.h"
#include "core/selector.h"
#include "core/spec_change.h"

namespace dblame
{

namespace
{

struct CompareOptions {
    PairArguments pair;
    RecipeArguments recipe;
    std::vector<std::string> inputs, calibration;
    std::optional<std::uint64_t> random;
    std::vector<std::string> skip, only;
    std::string json, csv, html;
    std::string signal = "reference";
    bool channels = false, histograms = false, hashes = false, noCache = false;
    int threads = 0;
    std::int64_t limitBatches = 0;
    std::optional<double> failBelow, failRowBelow, failDrop;
};

class BarSink final : public ReportSink
{
public:
    explicit BarSink(ProgressBar &bar) : m_bar(bar) {}
    void row(const NodeReport &) override {}
    void progress(std::int64_t batch, std::int64_t batches, std::int64_t node, std::int64_t nodes) override
    {
        const double inBatch = nodes > 0 ? static_cast<double>(node) / static_cast<double>(nodes) : 0.0;
        const double done = batches > 0 ? (static_cast<double>(batch) + inBatch) / static_cast<double>(batches) : 0.0;
        m_bar.show(done, "batch " + std::to_string(std::min(batch + 1, batches)) + " of " + std::to_string(batches));
    }

private:
    ProgressBar &m_bar;
};

Result<std::vector<Selector>> parseSelectors(const std::vector<std::string> &texts)
{
    std::vector<Selector> selectors;
    for (const auto &text : texts) {
        auto selector = parseSelector(text);
        if (!selector)
            return tl::unexpected(selector.error());
        selectors.push_back(std::move(*selector));
    }
    return selectors;
}

// A later --set has the last word on a site.
Result<void> addOverride(const RecipeOverride &change, const Model &candidate, const SiteTable &sites, EditSet &edits)
{
    const auto more = editsOf(change, candidate, sites);
    if (!more)
        return tl::unexpected(more.error());
    for (const SiteId site : more->off) {
        edits.off.insert(site);
        edits.respecified.erase(site);
    }
    edits.bypassed.insert(more->bypassed.begin(), more->bypassed.end());
    for (const auto &[site, spec] : more->respecified) {
        edits.off.erase(site);
        std::erase_if(edits.bypassed,
                      [&](const EdgeBypass &edge) { return edge.site == site && !more->bypassed.contains(edge); });
        edits.respecified.insert_or_assign(site, spec);
    }
    return {};
}

// What --only leaves out, and what --set and --skip name, together; float has the last word.
Result<EditSet> resolve(const std::vector<Selector> &skip, const std::vector<Selector> &only,
                        const std::vector<RecipeOverride> &set, const Model &candidate, const SiteTable &sites)
{
    EditSet edits;
    for (const auto &change : set)
        if (auto added = addOverride(change, candidate, sites, edits); !added)
            return tl::unexpected(added.error());
    if (!only.empty()) {
        auto rest = selectAllBut(only, candidate, sites);
        if (!rest)
            return rest;
        edits.off.merge(rest->off);
        edits.bypassed.merge(rest->bypassed);
    }
    for (const auto &selector : skip) {
        auto more = selectForSkip(selector, candidate, sites);
        if (!more)
            return more;
        edits.off.merge(more->off);
        edits.bypassed.merge(more->bypassed);
    }
    std::erase_if(edits.bypassed, [&edits](const EdgeBypass &edge) { return edits.off.contains(edge.site); });
    std::erase_if(edits.respecified, [&edits](const auto &entry) { return edits.off.contains(entry.first); });
    return edits;
}

// A row whose figures --fail-row-below needs and that has none.
bool hasFailed(const ReportRow &row)
{
    return row.status == "failed" || row.status == "not_computed" || row.status == "shape_mismatch";
}

bool below(double db, double limit)
{
    return std::isnan(db) || db < limit;
}

std::string decibels(double db)
{
    return fixedText(db, 2) + " dB";
}

// Says each threshold that was crossed.
bool crossed(const Report &report, const CompareOptions &options)
{
    bool any = false;
    const auto cross = [&any](const std::string &where, const std::string &what) {
        say(where + ": " + what);
        any = true;
    };
    if (options.failBelow) {
        const auto &outputs = report.signal == "candidate" ? report.outputSqnrDb : report.outputSnrDb;
        for (std::size_t i = 0; i < outputs.size(); ++i)
            if (std::isnan(outputs[i]))
                cross("output " + std::to_string(i), "has no figure, so --fail-below does not hold");
            else if (outputs[i] < *options.failBelow)
                cross("output " + std::to_string(i),
                      decibels(outputs[i]) + " is below --fail-below " + decibels(*options.failBelow));
        for (const auto &row : report.rows)
            if (row.kind == "output" && hasFailed(row))
                cross(row.ref, "an output has no figure for --fail-below: " + row.reason);
        if (outputs.empty())
            cross("outputs", "none could be compared, so --fail-below does not hold");
    }
    for (const auto &row : report.rows) {
        if (!options.failRowBelow)
            break;
        if (const auto db = shownDb(report, row); db && below(*db, *options.failRowBelow))
            cross(row.ref, decibels(*db) + " is below --fail-row-below " + decibels(*options.failRowBelow));
        else if (hasFailed(row))
            cross(row.ref, "has no figure for --fail-row-below: " + row.reason);
    }
    if (options.failDrop && report.largestDrop && report.largestDrop->db > *options.failDrop) {
        const auto row = static_cast<std::size_t>(report.largestDrop->row);
        cross(row < report.rows.size() ? report.rows[row].ref : "rows",
              "a drop of " + decibels(report.largestDrop->db) + " is above --fail-drop " + decibels(*options.failDrop));
    }
    return any;
}

// Empty when at least one computed row could be compared; else why not.
std::string nothingCompared(const Report &report)
{
    const ReportRow *first = nullptr; // that says why
    for (const auto &row : report.rows) {
        if (row.kind != "activation" && row.kind != "output")
            continue;
        if (!hasFailed(row) && row.status != "pending")
            return {};
        if (first == nullptr && !row.reason.empty())
            first = &row;
    }
    if (first == nullptr)
        return "no computed value has a partner; dblame align lists the reasons";
    return first->ref + " (" + first->status + "): " + first->reason + "; dblame inspect names what is missing";
}

Result<void> writeReports(const Report &report, const CompareOptions &options)
{
    const std::pair<const std::string *, std::string (*)(const Report &)> targets[] = {
        {&options.json, reportJson}, {&options.csv, reportCsv}, {&options.html, reportHtml}};
    bool any = false;
    for (const auto &[path, write] : targets) {
        if (path->empty())
            continue;
        any = true;
        if (auto written = deliver(*path, write(report)); !written)
            return written;
    }
    if (!any)
        return deliver("-", reportTable(report));
    for (const auto &warning : report.warnings)
        say("warning: " + warning);
    return {};
}

void addRecipeWarnings(const QuantizedModel &quantized, std::vector<std::string> &warnings)
{
    warnings.insert(warnings.end(), quantized.warnings.begin(), quantized.warnings.end());
    warnings.insert(warnings.end(), quantized.placement.warnings.begin(), quantized.placement.warnings.end());
    const RecipeFacts facts = factsOf(quantized);
    for (const std::string &defect : facts.defects)
        warnings.push_back("known " + defect);
    for (const FloatOperator &left : facts.leftFloat)
        warnings.push_back((left.module.empty() ? left.node : left.module) + " stays float: " + left.reason);
}

Result<Report> compare(const CompareOptions &options, std::stop_token stop)
{
    // Before minutes of work: what is wrong in the words themselves.
    const auto skip = parseSelectors(options.skip);
    if (!skip)
        return tl::unexpected(skip.error());
    const auto only = parseSelectors(options.only);
    if (!only)
        return tl::unexpected(only.error());

    std::vector<std::string> notes;
    const auto recipes = readRecipes(options.recipe, notes);
    if (!recipes)
        return tl::unexpected(recipes.error());
    if (recipes->size() > 1)
        return fail(ErrorCode::Usage, "compare", "one recipe makes one candidate; dblame plan compares two recipes");
    const auto set = parseOverrides(recipes->empty() ? options.recipe.set : std::vector<std::string>{});
    if (!set)
        return tl::unexpected(set.error());
    if (recipes->empty() && !options.calibration.empty())
        return fail(ErrorCode::Usage, "--calibration", "is for a recipe's observers; give --preset or --recipe");

    ProgressBar bar;
    PairArguments arguments = options.pair;
    arguments.referenceOnly = !recipes->empty();
    auto pair = openPair(arguments, bar, stop);
    if (!pair)
        return tl::unexpected(pair.error());
    if (arguments.referenceOnly)
        pair->candidate = pair->reference; // until the recipe has made one
    InputRequest request;
    request.files = options.inputs.empty() ? pair->inputs : options.inputs;
    request.random = options.random;
    const auto inputs = pair->engine->openInputs(request, *pair->reference, *pair->candidate, stop);
    if (!inputs)
        return tl::unexpected(inputs.error());
    std::optional<QuantizedModel> quantized;
    std::string calibrated;
    if (!recipes->empty()) {
        auto made =
            quantizeReference(*pair->engine, pair->reference, recipes->front(),
                              {options.calibration, !options.noCache, options.threads}, *inputs, calibrated, bar, stop);
        if (!made)
            return tl::unexpected(made.error());
        quantized = std::move(*made);
        pair->candidate = quantized->model;
    }
    const auto comparison = pair->engine->compare(pair->reference, pair->candidate, *inputs);
    if (!comparison)
        return tl::unexpected(comparison.error());
    const SiteTable &sites = (*comparison)->sites();
    const auto edits = resolve(*skip, *only, *set, *pair->candidate, sites);
    if (!edits)
        return tl::unexpected(edits.error());

    RunOptions run;
    run.signal = options.signal == "candidate" ? Signal::Candidate : Signal::Reference;
    run.channels = options.channels;
    run.histograms = run.exactHistograms = options.histograms;
    run.hashes = options.hashes;
    run.threads = options.threads;
    run.limitBatches = options.limitBatches;
    BarSink sink(bar);
    const auto result = (*comparison)->run(*edits, run, sink, stop);
    if (!result)
        return tl::unexpected(result.error());
    if (stop.stop_requested())
        return fail(ErrorCode::Cancelled, "", "cancelled");
    const SiteTable ran = changedSites(sites, *edits, result->changed);
    Report report = makeReport(*result, (*comparison)->alignment(), ran, *pair->reference, *pair->candidate,
                               {options.channels, options.histograms, options.hashes});
    report.warnings.insert(report.warnings.begin(), pair->notes.begin(), pair->notes.end());
    if (quantized) {
        report.recipe = ReportRecipe{recipes->front().title(), recipeText(recipes->front())};
        report.inputs.calibration = calibrated;
        report.warnings.insert(report.warnings.end(), notes.begin(), notes.end());
        addRecipeWarnings(*quantized, report.warnings);
    }
    return report;
}

int runCompare(const CompareOptions &options, std::stop_token stop)
{
    std::vector<std::string> read = options.pair.models;
    for (const auto *more : {&options.inputs, &options.calibration, &options.recipe.files})
        read.insert(read.end(), more->begin(), more->end());
    if (const auto checked =
            checkOutputs({{"--json", options.json}, {"--csv", options.csv}, {"--html", options.html}}, read);
        !checked)
        return failed(checked.error());
    const auto report = compare(options, stop);
    if (!report)
        return failed(report.error());
    if (const auto written = writeReports(*report, options); !written)
        return failed(written.error());
    if (const auto why = nothingCompared(*report); !why.empty())
        return failed({ErrorCode::Incomparable, report->candidate.path, "nothing could be compared: " + why, {}});
    return crossed(*report, options) ? kThresholdCrossed : kDone;
}

void addInputOptions(CLI::App &command, CompareOptions &options)
{
    command
        .add_option(
            "--inputs", options.inputs,
            "Inputs: .pt (a tensor, or a list of tensors = one batch; a list of lists = batches), .npz (arrays by "
            "input name or x0, x1 ... = one batch; b0_x0 ... = batches), .npy, .safetensors (by name). Several .npy "
            "are the tensor arguments in order; several of the others are batches. Default: the sample inputs saved "
            "in the model")
        ->type_name("FILE")
        ->expected(1, -1);
    command
        .add_option("--calibration", options.calibration,
                    "Inputs for the observers of a recipe, in the forms of --inputs (default: the inputs themselves)")
        ->type_name("FILE")
        ->expected(1, -1);
    command.add_flag("--no-cache", options.noCache,
                     "Calibrate anew, even where an earlier calibration on the same data is known");
    command
        .add_option("--random", options.random, "Random inputs from this seed, where the model has no sample inputs")
        ->type_name("SEED")
        ->check(wholeNumber(0, std::numeric_limits<std::uint64_t>::max()));
    command.add_option("--limit-batches", options.limitBatches, "Run only the first N batches")
        ->type_name("N")
        ->check(wholeNumber(1, std::numeric_limits<std::int64_t>::max()));
    command
        .add_option("--threads", options.threads,
                    "Threads per operator; results depend on it (default: physical cores, at most 8)")
        ->type_name("N")
        ->check(wholeNumber(1, 1024));
}

void addSelectionOptions(CLI::App &command, CompareOptions &options)
{
    const char *selector =
        "module:REGEX, type:CLASS, op:NODE or optype:aten.conv2d, each optionally followed by /weight, /in, "
        "/in[0], /out or /act";
    command
        .add_option("--skip", options.skip,
                    std::string("Float here: these layers are not quantized. SELECTOR = ") + selector)
        ->type_name("SELECTOR")
        ->expected(1, -1);
    command.add_option("--only", options.only, "Only these layers stay quantized")
        ->type_name("SELECTOR")
        ->expected(1, -1);
}

void addReportOptions(CLI::App &command, CompareOptions &options)
{
    command.add_option("--json", options.json, "Write the report as JSON; - is stdout")->type_name("FILE");
    command.add_option("--csv", options.csv, "Write the rows as CSV; - is stdout")->type_name("FILE");
    command.add_option("--html", options.html, "Write one self-contained HTML file; - is stdout")->type_name("FILE");
    command
        .add_option("--signal", options.signal,
                    "Whose energy is the signal: reference (SNR) or candidate (torchao's SQNR)")
        ->type_name("SIDE")
        ->check(CLI::IsMember({"reference", "candidate"}))
        ->capture_default_str();
    command.add_flag("--channels", options.channels, "Figures per channel");
    command.add_flag("--histograms", options.histograms, "Histograms of both sides on common edges");
    command.add_flag("--hashes", options.hashes, "SHA-256 of every value");
    command.add_option("--fail-below", options.failBelow, "Exit 1 if an output is below this")
        ->type_name("DB")
        ->check(decibelNumber());
    command.add_option("--fail-row-below", options.failRowBelow, "Exit 1 if any row is below this")
        ->type_name("DB")
        ->check(decibelNumber());
    command.add_option("--fail-drop", options.failDrop, "Exit 1 if the largest drop is above this")
        ->type_name("DB")
        ->check(decibelNumber());
}

} // namespace

void addCompare(CLI::App &program, Command &chosen)
{
    auto *command = program.add_subcommand("compare", "Run both models and report one row per aligned pair");
    const auto options = std::make_shared<CompareOptions>();
    options->pair.addTo(*command);
    options->recipe.addTo(*command, false);
    addInputOptions(*command, *options);
    addSelectionOptions(*command, *options);
    addReportOptions(*command, *options);
    command->callback(
        [options, &chosen] { chosen = [options](std::stop_token stop) { return runCompare(*options, stop); }; });
}

} // namespace dblame

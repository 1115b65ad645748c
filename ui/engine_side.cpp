// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/engine_side.h"

#include <filesystem>
#include <system_error>

namespace dblame::ui
{

namespace
{

// "FILE#program" names a program in FILE, unless a file of that very name exists.
std::string fileStamp(const std::string &path)
{
    namespace fs = std::filesystem;
    std::error_code ec;
    fs::path file(path);
    if (!fs::exists(file, ec))
        file = path.substr(0, path.rfind('#'));
    const auto size = fs::file_size(file, ec);
    const auto time = fs::last_write_time(file, ec).time_since_epoch().count();
    return std::to_string(size) + "/" + std::to_string(time);
}

std::vector<std::string> fileStamps(const std::vector<std::string> &paths)
{
    std::vector<std::string> stamps;
    for (const std::string &path : paths)
        stamps.push_back(fileStamp(path));
    return stamps;
}

} // namespace

EngineSide::~EngineSide() = default;

Result<Engine *> EngineSide::engine()
{
    if (m_engine == nullptr) {
        auto loaded = m_source();
        if (!loaded)
            return tl::unexpected(loaded.error());
        m_engine = *loaded;
    }
    return m_engine;
}

Result<EngineSide::OpenModel> EngineSide::openModel(Engine &engine, const std::string &path, const OpenModel &before,
                                                    const Progress &progress, std::stop_token stop) const
{
    if (path.empty())
        return OpenModel{};
    const std::string stamp = fileStamp(path);
    if (before.model && before.path == path && before.stamp == stamp)
        return before;
    auto model = engine.openModel(path, progress, stop);
    if (!model)
        return tl::unexpected(model.error());
    return OpenModel{path, stamp, *model};
}

Result<EngineSide::OpenInputs> EngineSide::openInputs(Engine &engine, const InputRequest &request,
                                                      const OpenInputs &before,
                                                      const std::shared_ptr<const Model> &reference,
                                                      const std::shared_ptr<const Model> &candidate,
                                                      std::stop_token stop)
{
    std::vector<std::string> stamps = fileStamps(request.files);
    if (before.set && before.request.files == request.files && before.request.random == request.random &&
        before.stamps == stamps && before.reference == reference && before.candidate == candidate)
        return before;
    auto set = engine.openInputs(request, *reference, *candidate, std::move(stop));
    if (!set)
        return tl::unexpected(set.error());
    return OpenInputs{request, std::move(stamps), reference, candidate, std::move(*set)};
}

Result<EngineSide::Made> EngineSide::make(Engine &engine, const RecipeRequest &request, State &next,
                                          const Progress &progress, std::stop_token stop) const
{
    const std::shared_ptr<const Model> &reference = next.reference.model;
    const bool onInputs = request.calibration.empty();
    if (!onInputs) {
        InputRequest wanted;
        wanted.files = request.calibration;
        auto opened = openInputs(engine, wanted, m_open.calibration, reference, reference, stop);
        if (!opened)
            return tl::unexpected(opened.error());
        next.calibration = std::move(*opened);
    }
    const std::shared_ptr<const InputSet> calibration = onInputs ? next.inputs.set : next.calibration.set;
    const Made &before = m_open.made;
    if (before.candidate && before.request == request && before.reference == reference &&
        before.calibration == calibration)
        return before;
    QuantizeOptions options;
    options.cacheFolder = m_cacheFolder;
    auto quantized = engine.quantize(reference, request.recipe, calibration, options, progress, stop);
    if (!quantized)
        return tl::unexpected(quantized.error());
    if (stop.stop_requested())
        return fail(ErrorCode::Cancelled, {}, "quantizing was stopped");
    auto made = std::make_shared<MadeCandidate>();
    made->recipe = request.recipe;
    made->quantized = std::move(*quantized);
    if (calibration && made->quantized.calibrationBatches > 0) {
        made->calibration = calibration->info();
        made->onInputs = onInputs;
    }
    return Made{request, reference, calibration, std::move(made)};
}

Result<Opened> EngineSide::open(const OpenRequest &request, const Progress &progress, std::stop_token stop)
{
    const auto loaded = engine();
    if (!loaded)
        return tl::unexpected(loaded.error());
    Engine &engine = **loaded;
    State next;
    auto reference = openModel(engine, request.reference, m_open.reference, progress, stop);
    if (!reference)
        return tl::unexpected(reference.error());
    next.reference = std::move(*reference);
    if (!request.recipe) {
        auto candidate = openModel(engine, request.candidate, m_open.candidate, progress, stop);
        if (!candidate)
            return tl::unexpected(candidate.error());
        next.candidate = std::move(*candidate);
    } else if (!next.reference.model) {
        return fail(ErrorCode::Usage, {}, "a recipe makes the candidate of a reference; open a reference first");
    }

    Opened opened;
    auto pair = std::make_shared<OpenPair>();
    pair->reference = next.reference.model;
    pair->candidate = next.candidate.model;
    if (pair->reference && (pair->candidate || request.recipe)) {
        auto batches = openInputs(engine, request.inputs, m_open.inputs, pair->reference,
                                  request.recipe ? pair->reference : pair->candidate, stop);
        if (!batches && batches.error().code == ErrorCode::Cancelled)
            return tl::unexpected(batches.error());
        if (batches)
            next.inputs = std::move(*batches);
        else
            opened.inputsError = batches.error();
    }
    // Nothing to calibrate on: what is open stays; where nothing is, the reference is open until inputs come.
    const bool somethingToObserve = next.inputs.set || (request.recipe && !request.recipe->calibration.empty());
    if (request.recipe && !somethingToObserve && (m_open.candidate.model || m_open.made.candidate))
        return tl::unexpected(*opened.inputsError);
    if (request.recipe && somethingToObserve) {
        auto made = make(engine, *request.recipe, next, progress, stop);
        if (!made)
            return tl::unexpected(made.error());
        next.made = std::move(*made);
        pair->made = next.made.candidate;
        pair->candidate = pair->made->quantized.model;
    }
    if (auto aligned = alignPair(engine, request, m_open.comparison.get(), next, *pair); !aligned)
        return tl::unexpected(aligned.error());
    opened.runnable = next.comparison != nullptr;
    m_open.comparison.reset();
    m_open = std::move(next);
    opened.pair = std::move(pair);
    return opened;
}

Result<void> EngineSide::alignPair(Engine &engine, const OpenRequest &request, Comparison *before, State &next,
                                   OpenPair &pair)
{
    if (!pair.candidate)
        return {};
    if (pair.reference && next.inputs.set) {
        auto comparison = engine.compare(pair.reference, pair.candidate, next.inputs.set, request.hand, before);
        if (!comparison)
            return tl::unexpected(comparison.error());
        next.comparison = std::move(*comparison);
        pair.inputs = next.inputs.set->info();
        pair.sites = next.comparison->sites();
        pair.alignment = next.comparison->alignment();
        return {};
    }
    pair.sites = recognizeSites(*pair.candidate);
    if (pair.reference)
        pair.alignment = align(*pair.reference, *pair.candidate, pair.sites, request.hand);
    return {};
}

Result<RecipePreview> EngineSide::preview(const Recipe &recipe)
{
    if (!m_open.reference.model)
        return fail(ErrorCode::Usage, {}, "a recipe makes the candidate of a reference; open a reference first");
    const auto loaded = engine();
    if (!loaded)
        return tl::unexpected(loaded.error());
    const auto placed = (*loaded)->place(m_open.reference.model, recipe);
    if (!placed)
        return tl::unexpected(placed.error());
    RecipePreview preview;
    preview.sites = static_cast<int>(placed->placement.sites.size());
    if (m_open.made.candidate) {
        const QuantizedModel &now = m_open.made.candidate->quantized;
        preview.diff =
            comparePlacements(now.annotated->graph(), now.placement, placed->annotated->graph(), placed->placement);
    }
    return preview;
}

Result<Plan> EngineSide::plan(const EditSet &edits)
{
    if (!m_open.comparison)
        return fail(ErrorCode::Incomparable, {}, "nothing to plan: open a reference, a candidate and inputs first");
    return m_open.comparison->plan(edits);
}

Result<RunReport> EngineSide::run(const EditSet &edits, const RunOptions &options, ReportSink &sink,
                                  std::stop_token stop)
{
    if (!m_open.comparison)
        return fail(ErrorCode::Incomparable, {}, "nothing to run: open a reference, a candidate and inputs first");
    return m_open.comparison->run(edits, options, sink, std::move(stop));
}

Result<NodeReport> EngineSide::detail(PairId row, std::stop_token stop)
{
    if (!m_open.comparison)
        return fail(ErrorCode::Incomparable, {}, "no figures yet: run the comparison first");
    return m_open.comparison->detail(row, std::move(stop));
}

Result<OutputParts> EngineSide::measureParts(const RunOptions &options, const Progress &progress, std::stop_token stop)
{
    if (!m_open.comparison || !m_open.made.candidate)
        return fail(ErrorCode::Incomparable, {},
                    "nothing to measure: make a candidate of the reference by a recipe, and open inputs first");
    auto own = m_engine->compare(m_open.reference.model, m_open.made.candidate->quantized.model, m_open.inputs.set, {},
                                 m_open.comparison.get());
    if (!own)
        return tl::unexpected(own.error());
    return measureOutputParts(**own, options, progress, std::move(stop));
}

} // namespace dblame::ui

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

} // namespace

EngineSide::~EngineSide()
{
    m_comparison.reset();
    m_inputs.reset();
}

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

Result<Opened> EngineSide::open(const OpenRequest &request, const Progress &progress, std::stop_token stop)
{
    const auto loaded = engine();
    if (!loaded)
        return tl::unexpected(loaded.error());
    auto reference = openModel(**loaded, request.reference, m_reference, progress, stop);
    if (!reference)
        return tl::unexpected(reference.error());
    auto candidate = openModel(**loaded, request.candidate, m_candidate, progress, stop);
    if (!candidate)
        return tl::unexpected(candidate.error());

    Opened opened;
    auto pair = std::make_shared<OpenPair>();
    pair->reference = reference->model;
    pair->candidate = candidate->model;
    std::shared_ptr<const InputSet> inputs;
    std::unique_ptr<Comparison> comparison;
    if (pair->reference && pair->candidate) {
        auto batches = (*loaded)->openInputs(request.inputs, *pair->reference, *pair->candidate, stop);
        if (!batches && batches.error().code == ErrorCode::Cancelled)
            return tl::unexpected(batches.error());
        if (batches) {
            inputs = *batches;
            pair->inputs = inputs->info();
            auto made = (*loaded)->compare(pair->reference, pair->candidate, inputs, request.hand);
            if (!made)
                return tl::unexpected(made.error());
            comparison = std::move(*made);
            pair->sites = comparison->sites();
            pair->alignment = comparison->alignment();
            opened.runnable = true;
        } else {
            opened.inputsError = batches.error();
            pair->sites = recognizeSites(*pair->candidate);
            pair->alignment = align(*pair->reference, *pair->candidate, pair->sites, request.hand);
        }
    } else if (pair->candidate) {
        pair->sites = recognizeSites(*pair->candidate);
    }
    m_comparison = std::move(comparison);
    m_inputs = std::move(inputs);
    m_reference = std::move(*reference);
    m_candidate = std::move(*candidate);
    opened.pair = std::move(pair);
    return opened;
}

Result<Plan> EngineSide::plan(const EditSet &edits)
{
    if (!m_comparison)
        return fail(ErrorCode::Incomparable, {}, "nothing to plan: open a reference, a candidate and inputs first");
    return m_comparison->plan(edits);
}

Result<RunReport> EngineSide::run(const EditSet &edits, const RunOptions &options, ReportSink &sink,
                                  std::stop_token stop)
{
    if (!m_comparison)
        return fail(ErrorCode::Incomparable, {}, "nothing to run: open a reference, a candidate and inputs first");
    return m_comparison->run(edits, options, sink, std::move(stop));
}

Result<NodeReport> EngineSide::detail(PairId row, std::stop_token stop)
{
    if (!m_comparison)
        return fail(ErrorCode::Incomparable, {}, "no figures yet: run the comparison first");
    return m_comparison->detail(row, std::move(stop));
}

} // namespace dblame::ui

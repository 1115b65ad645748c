// SPDX-License-Identifier: GPL-3.0-or-later
//
// From a placement on a float form to a candidate with its numbers.
#include "core/engine/quantized_model.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <dlfcn.h>

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include "core/engine/calibration.h"
#include "core/engine/comparison.h"
#include "core/engine/quantized_form.h"
#include "core/report.h"
#include "core/site_ownership.h"

namespace dblame
{

namespace
{

constexpr int kNormEpsDefect = 2; // docs/quantization.md

// The engine that calibrates: a later build may do it otherwise under the same version.
std::string engineStamp()
{
    Dl_info library{};
    if (dladdr(reinterpret_cast<const void *>(&engineStamp), &library) == 0 || library.dli_fname == nullptr)
        return {};
    std::error_code ec;
    const auto size = std::filesystem::file_size(library.dli_fname, ec);
    const auto time = std::filesystem::last_write_time(library.dli_fname, ec).time_since_epoch().count();
    return std::to_string(size) + "/" + std::to_string(time);
}

// Everything that a calibration's numbers depend on besides the observers and what they watch.
ValueKey contextOf(const std::vector<std::vector<c10::IValue>> &example,
                   const std::vector<std::vector<c10::IValue>> &batches, const QuantizerFlow &flow, int threads)
{
    Digest digest("calibration, format 1");
    digest.text(dblameVersion()).text(engineStamp()).text(TORCH_VERSION).text(at::get_cpu_capability()).number(threads);
    digest.number(flow.quantizesWeightsMeanwhile ? 1 : 0);
    for (const auto *pass : {&example, &batches}) {
        digest.number(static_cast<std::int64_t>(pass->size()));
        for (const std::vector<c10::IValue> &batch : *pass) {
            digest.number(static_cast<std::int64_t>(batch.size()));
            for (const c10::IValue &value : batch) {
                digest.text(value.tagKind());
                if (value.isTensor())
                    digest.tensor(value.toTensor());
                else if (value.isDouble())
                    digest.real(value.toDouble());
                else if (value.isInt() || value.isBool())
                    digest.number(value.isInt() ? value.toInt() : static_cast<std::int64_t>(value.toBool()));
            }
        }
    }
    return digest.key();
}

} // namespace

Result<QuantizedModel> placeAndCalibrate(const FloatForm &form, Placement placement, const QuantizerFlow &flow,
                                         const LoadedInputs *calibration, const QuantizeOptions &options,
                                         CalibrationCache &cache, const Progress &progress, const std::stop_token &stop)
{
    const c10::InferenceMode guard;
    const int threads = options.threads > 0 ? options.threads : defaultThreadCount();
    if (at::get_num_threads() != threads)
        at::set_num_threads(threads);

    QuantizedModel result;
    result.placement = std::move(placement);
    RewriteNotes notes = form.notes;
    const std::shared_ptr<LoadedModel> model = insertSites(form, result.placement, flow, notes, result.siteOfPlaced);
    model->m_info.format = "float model with the recipe " + flow.name;
    std::vector<DefectNote> placed = std::exchange(result.placement.defects, std::move(notes.defects));
    if (flow.rewriteNorms) // said of each norm by the rewrite itself
        std::erase_if(placed, [](const DefectNote &note) { return note.defect == kNormEpsDefect; });
    result.placement.defects.insert(result.placement.defects.end(), placed.begin(), placed.end());
    result.warnings = std::move(notes.warnings);

    Calibration calibrated(model, result.placement, result.siteOfPlaced, flow, options.reuse ? &cache : nullptr);
    if (auto made = calibrated.makeObservers(); !made)
        return tl::unexpected<Error>(made.error());
    if (auto done = calibrated.weights(stop); !done)
        return tl::unexpected<Error>(done.error());
    if (calibrated.needsInputs() && !options.weightsOnly) {
        std::vector<std::vector<c10::IValue>> example, batches;
        if (calibration) {
            batches = calibration->m_batches;
            if (options.limitBatches > 0 && static_cast<std::size_t>(options.limitBatches) < batches.size())
                batches.resize(static_cast<std::size_t>(options.limitBatches));
        }
        if (flow.observesExample && !form.model->m_sampleInputs.empty()) {
            example.push_back(form.model->m_sampleInputs);
        } else if (flow.observesExample && !batches.empty()) {
            example.push_back(std::move(batches.front()));
            batches.erase(batches.begin());
        }
        if (example.empty() && batches.empty())
            return fail(ErrorCode::Usage, model->info().path,
                        "the recipe " + flow.name +
                            " observes activations, but there are no calibration inputs; give some with --calibration");
        const ValueKey context = contextOf(example, batches, flow, threads);
        if (options.reuse) {
            cache.open(context, options.cacheFolder);
            result.observersKnown = calibrated.recall(context);
        }
        const std::size_t all = example.size() + batches.size();
        result.calibrationBatches = static_cast<std::int64_t>(all);
        std::size_t before = 0;
        const auto report = [&](std::size_t batch, std::size_t node, std::size_t nodes) {
            if (progress)
                progress((before + batch) * nodes + node, all * nodes, "calibrating");
        };
        if (calibrated.incomplete()) {
            if (auto done = calibrated.run(example, false, report, stop); !done)
                return tl::unexpected<Error>(done.error());
            before = example.size();
            if (auto done = calibrated.run(batches, flow.quantizesWeightsMeanwhile, report, stop); !done)
                return tl::unexpected<Error>(done.error());
            if (auto kept = calibrated.keep(context); !kept)
                return tl::unexpected<Error>(kept.error());
            if (options.reuse)
                cache.save(context, options.cacheFolder);
        }
    }
    auto planned = std::make_shared<PlannedSites>(*model->m_planned);
    if (auto done = calibrated.finish(*planned, result, !options.weightsOnly); !done)
        return tl::unexpected<Error>(done.error());
    assignGroups(*model, planned->table);
    model->m_planned = std::move(planned);
    result.model = model;
    result.annotated = form.model;
    return result;
}

} // namespace dblame

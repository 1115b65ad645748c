// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/quantize_pair.h"

#include "core/random_looking.h"
#include "core/user_folders.h"

namespace dblame
{

Result<QuantizedModel> quantizeReference(Engine &engine, const std::shared_ptr<const Model> &reference,
                                         const Recipe &recipe, const CalibrationChoice &choice,
                                         const std::shared_ptr<const InputSet> &inputs, std::string &source,
                                         ProgressBar &bar, std::stop_token stop)
{
    std::shared_ptr<const InputSet> calibration = inputs;
    if (!choice.files.empty()) {
        InputRequest request;
        request.files = choice.files;
        auto opened = engine.openInputs(request, *reference, *reference, stop);
        if (!opened)
            return tl::unexpected(opened.error());
        calibration = *opened;
    }
    QuantizeOptions options;
    options.threads = choice.threads;
    options.reuse = choice.useCache;
    if (options.reuse)
        options.cacheFolder = calibrationCacheFolder();
    auto made = engine.quantize(reference, recipe, calibration, options, bar.callback("calibrating"), stop);
    bar.clear();
    if (made && made->calibrationBatches > 0)
        source = choice.files.empty() ? "on the inputs themselves: give other data with --calibration"
                                      : calibration->info().source;
    // Those of the inputs themselves are said anyway.
    if (made && made->calibrationBatches > 0 && !choice.files.empty())
        if (const auto note = randomLookNote(calibration->info()))
            made->warnings.push_back("calibration: " + *note);
    return made;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pair_options.h"

#include <filesystem>

#include "core/pair_folder.h"

namespace dblame
{

void PairArguments::addTo(CLI::App &command)
{
    command
        .add_option(
            "models", models,
            "REF CAND: reference and candidate (FILE, or FILE#program), or one folder written by dblame_export.py")
        ->required()
        ->expected(1, 2)
        ->type_name("REF CAND");
}

Result<OpenedPair> openPair(const PairArguments &arguments, ProgressBar &bar, std::stop_token stop)
{
    OpenedPair pair;
    std::string reference = arguments.models.front();
    std::string candidate = arguments.models.back();
    if (arguments.referenceOnly && arguments.models.size() > 1)
        return fail(ErrorCode::Usage, candidate,
                    "a recipe makes the candidate of the reference; give REF alone with --preset or --recipe");
    if (arguments.models.size() == 1 && !arguments.referenceOnly) {
        std::error_code ec;
        if (!std::filesystem::is_directory(reference, ec))
            return fail(
                ErrorCode::Usage, reference,
                std::filesystem::exists(reference, ec)
                    ? "a second model is missing; give REF CAND before the options, or a folder that holds a pair"
                    : "no such folder, and a second model is missing; give REF CAND before the options");
        auto folder = readPairFolder(reference);
        if (!folder)
            return tl::unexpected(folder.error());
        reference = folder->reference;
        candidate = folder->candidate;
        pair.inputs = folder->inputs;
        pair.notes = folder->notes;
    }
    const auto engine = loadEngine();
    if (!engine)
        return tl::unexpected(engine.error());
    pair.engine = *engine;
    for (auto [path, model] : {std::pair{&reference, &pair.reference}, std::pair{&candidate, &pair.candidate}}) {
        if (arguments.referenceOnly && model == &pair.candidate)
            break;
        auto opened = pair.engine->openModel(*path, bar.callback(*path), stop);
        if (!opened)
            return tl::unexpected(opened.error());
        *model = std::move(*opened);
    }
    return pair;
}

} // namespace dblame

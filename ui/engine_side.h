// SPDX-License-Identifier: GPL-3.0-or-later
//
// What lives on the engine thread: the engine, the two models, the inputs and the comparison. Synchronous and
// without a lock; Runner calls it from its one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/output_parts.h"
#include "core/placement_diff.h"
#include "ui/open_pair.h"

namespace dblame::ui
{

using EngineSource = std::function<Result<Engine *>()>;

// A candidate that is made of the reference instead of being opened.
struct RecipeRequest {
    Recipe recipe;
    std::vector<std::string> calibration; // input files; empty: the inputs of the comparison themselves
    friend bool operator==(const RecipeRequest &, const RecipeRequest &) = default;
};

// What to open. An empty path: that side stays empty.
struct OpenRequest {
    std::string reference, candidate;
    InputRequest inputs;
    std::vector<HandPair> hand;
    std::optional<RecipeRequest> recipe = std::nullopt; // in place of `candidate`, which is empty then
};

// What another recipe would do to the reference, before it is made. Nothing runs for it.
struct RecipePreview {
    int sites = 0;
    // Against the present recipe; nothing where the candidate comes from a file, or there is none.
    std::optional<PlacementDiff> diff;
};

struct Opened {
    OpenPairPtr pair;
    bool runnable = false;            // both models and inputs are there
    std::optional<Error> inputsError; // the models are open, the inputs are not: why
};

class EngineSide
{
public:
    // `cacheFolder`: QuantizeOptions::cacheFolder.
    explicit EngineSide(EngineSource source, std::string cacheFolder = {})
        : m_source(std::move(source)), m_cacheFolder(std::move(cacheFolder))
    {
    }
    EngineSide(const EngineSide &) = delete;
    EngineSide &operator=(const EngineSide &) = delete;
    ~EngineSide();

    // Opens the engine library at the first call.
    [[nodiscard]] Result<Engine *> engine();
    // Opens the pair; files that did not change since the last call are not read again. On failure everything
    // stays as it was. Without usable inputs the pair is aligned all the same, but cannot run. A recipe makes its
    // candidate anew only when the reference, the recipe or what it is calibrated on changed; where neither inputs nor
    // calibration files can be used, the reference is open alone.
    [[nodiscard]] Result<Opened> open(const OpenRequest &request, const Progress &progress, std::stop_token stop);
    [[nodiscard]] Result<RecipePreview> preview(const Recipe &recipe);
    [[nodiscard]] Result<Plan> plan(const EditSet &edits);
    [[nodiscard]] Result<RunReport> run(const EditSet &edits, const RunOptions &options, ReportSink &sink,
                                        std::stop_token stop);
    [[nodiscard]] Result<NodeReport> detail(PairId row, std::stop_token stop);
    // Of the recipe's candidate without edits, on a comparison of its own: what run() left stays as it is.
    [[nodiscard]] Result<OutputParts> measureParts(const RunOptions &options, const Progress &progress,
                                                   std::stop_token stop);

private:
    struct OpenModel {
        std::string path;
        std::string stamp; // size and time of the file: a file written anew is read anew
        std::shared_ptr<const Model> model;
    };
    // An input set and what it was read for.
    struct OpenInputs {
        InputRequest request;
        std::vector<std::string> stamps;
        std::shared_ptr<const Model> reference, candidate;
        std::shared_ptr<const InputSet> set;
    };
    struct Made {
        RecipeRequest request;
        std::shared_ptr<const Model> reference;
        std::shared_ptr<const InputSet> calibration;
        std::shared_ptr<const MadeCandidate> candidate;
    };
    // Everything that is open; a new one replaces the old as a whole, or not at all.
    // Destroyed from the bottom up: the comparison before its inputs and models.
    struct State {
        OpenModel reference, candidate;
        OpenInputs inputs, calibration;
        Made made;
        std::unique_ptr<Comparison> comparison;
    };
    [[nodiscard]] static Result<OpenInputs> openInputs(Engine &engine, const InputRequest &request,
                                                       const OpenInputs &before,
                                                       const std::shared_ptr<const Model> &reference,
                                                       const std::shared_ptr<const Model> &candidate,
                                                       std::stop_token stop);
    // `next` has the reference, and the inputs if there are any.
    [[nodiscard]] Result<Made> make(Engine &engine, const RecipeRequest &request, State &next, const Progress &progress,
                                    std::stop_token stop) const;
    // Fills the pair's sites and alignment, and `next.comparison` where there are inputs. `before`: what is open, for
    // what it has in common with the new one; may be null.
    [[nodiscard]] static Result<void> alignPair(Engine &engine, const OpenRequest &request, Comparison *before,
                                                State &next, OpenPair &pair);
    [[nodiscard]] Result<OpenModel> openModel(Engine &engine, const std::string &path, const OpenModel &before,
                                              const Progress &progress, std::stop_token stop) const;

    EngineSource m_source;
    std::string m_cacheFolder;
    Engine *m_engine = nullptr;
    State m_open;
};

} // namespace dblame::ui

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
#include "ui/open_pair.h"

namespace dblame::ui
{

using EngineSource = std::function<Result<Engine *>()>;

// What to open. An empty path: that side stays empty.
struct OpenRequest {
    std::string reference, candidate;
    InputRequest inputs;
    std::vector<HandPair> hand;
};

struct Opened {
    OpenPairPtr pair;
    bool runnable = false;            // both models and inputs are there
    std::optional<Error> inputsError; // the models are open, the inputs are not: why
};

class EngineSide
{
public:
    explicit EngineSide(EngineSource source) : m_source(std::move(source)) {}
    EngineSide(const EngineSide &) = delete;
    EngineSide &operator=(const EngineSide &) = delete;
    ~EngineSide();

    // Opens the engine library at the first call.
    [[nodiscard]] Result<Engine *> engine();
    // Opens the pair; files that did not change since the last call are not read again. On failure everything
    // stays as it was. Without usable inputs the pair is aligned all the same, but cannot run.
    [[nodiscard]] Result<Opened> open(const OpenRequest &request, const Progress &progress, std::stop_token stop);
    [[nodiscard]] Result<Plan> plan(const EditSet &edits);
    [[nodiscard]] Result<RunReport> run(const EditSet &edits, const RunOptions &options, ReportSink &sink,
                                        std::stop_token stop);
    [[nodiscard]] Result<NodeReport> detail(PairId row, std::stop_token stop);

private:
    struct OpenModel {
        std::string path;
        std::string stamp; // size and time of the file: a file written anew is read anew
        std::shared_ptr<const Model> model;
    };
    [[nodiscard]] Result<OpenModel> openModel(Engine &engine, const std::string &path, const OpenModel &before,
                                              const Progress &progress, std::stop_token stop) const;

    EngineSource m_source;
    Engine *m_engine = nullptr;
    // Destroyed from the bottom up: the comparison before its inputs and models.
    OpenModel m_reference, m_candidate;
    std::shared_ptr<const InputSet> m_inputs;
    std::unique_ptr<Comparison> m_comparison;
};

} // namespace dblame::ui

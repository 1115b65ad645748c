// SPDX-License-Identifier: GPL-3.0-or-later
//
// An engine without tensors for tests of the window: a digits-like net of 14 operators with its int8 candidate.
// Figures are made so that they can be foretold: every site that is off (or bypassed for a reader) gives
// kDbPerSite to each row at or downstream of its operator, every bit above 8 kDbPerBit. Runs can be held at a Gate
// before each operator; opening and running can be told to fail.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/engine.h"

namespace dblame::ui::test
{

inline constexpr double kDbPerSite = 1.25;
inline constexpr double kDbPerBit = 0.5;

// Lets a run through one operator at a time. Open (not holding) until hold() is called.
class Gate
{
public:
    void hold();               // from now on operators wait
    void allow(int operators); // lets so many more through
    void open();               // and all that follow
    // The engine's side: waits for its turn, or for the stop token.
    void pass(const std::stop_token &stop);
    // The test's side: returns once `operators` in all have arrived at the gate.
    void waitForArrivals(int operators);

private:
    std::mutex m_mutex;
    std::condition_variable_any m_changed;
    bool m_holding = false;
    int m_allowed = 0, m_arrived = 0;
};

class FakeEngine : public Engine
{
public:
    FakeEngine();
    ~FakeEngine() override;

    [[nodiscard]] EngineInfo info() const override { return {"2.13.0", "AVX2", 2}; }
    // Any path opens, except one that contains "damaged"; "other" in the name gives a net with another last layer,
    // "float" no sites (a reference).
    [[nodiscard]] Result<std::shared_ptr<const Model>> openModel(const std::string &path, const Progress &progress,
                                                                 std::stop_token stop) override;
    // Without files fails unless `sampleInputs` or a random seed.
    [[nodiscard]] Result<std::shared_ptr<const InputSet>> openInputs(const InputRequest &request,
                                                                     const Model &reference, const Model &candidate,
                                                                     std::stop_token stop) override;
    // The net's int8 candidate, whatever the recipe, with the placement that the recipe has on the reference. Every
    // observer saw -6..7 on a grid of -6..7, the last one -7..10; calibrating waits at the gate once.
    [[nodiscard]] Result<QuantizedModel> quantize(std::shared_ptr<const Model> model, const Recipe &recipe,
                                                  std::shared_ptr<const InputSet> calibration,
                                                  const QuantizeOptions &options, const Progress &progress,
                                                  std::stop_token stop) override;
    [[nodiscard]] Result<QuantizedModel> place(std::shared_ptr<const Model> model, const Recipe &recipe) override;
    [[nodiscard]] Result<std::unique_ptr<Comparison>>
    compare(std::shared_ptr<const Model> reference, std::shared_ptr<const Model> candidate,
            std::shared_ptr<const InputSet> inputs, const std::vector<HandPair> &hand, Comparison *before) override;

    Gate gate;
    bool sampleInputs = true;
    std::optional<Error> failNextRun; // set between runs only
    std::optional<Error> failNextQuantize;
    bool unpairFc = false; // leave the last layer unpaired until it is paired by hand
    // What the engine was asked, for tests to look at between jobs.
    int modelsRead = 0, inputsRead = 0, quantizations = 0, placements = 0, runs = 0;
    std::string calibratedOn; // source of the last calibration
    std::thread::id thread;
};

// Rows of the fake pair: 5 weights, the input, 13 activations, the output.
inline constexpr int kFakeWeights = 5;
inline constexpr int kFakeRows = kFakeWeights + 15;

} // namespace dblame::ui::test

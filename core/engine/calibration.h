// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to quantized_model.cpp: calibration over the graph with its sites, and numbers into the sites. Calibration
// runs the candidate's own graph, each site observing as its node comes up; so shared observers see their sites in
// execution order, as in the peers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/ivalue.h>

#include "core/engine/calibration_cache.h"
#include "core/engine/observer.h"
#include "core/engine/program.h"
#include "core/engine/quantized_model.h"

namespace dblame
{

class Calibration
{
public:
    // `model`: from insertSites(), with its origin. `cache` may be null.
    Calibration(std::shared_ptr<LoadedModel> model, const Placement &placement, const std::vector<SiteId> &siteOfPlaced,
                const QuantizerFlow &flow, CalibrationCache *cache);

    // Palettes need none; they keep the place of one.
    [[nodiscard]] Result<void> makeObservers();
    // An activation has to be seen before its numbers are known.
    [[nodiscard]] bool needsInputs() const;
    // Weights: observed, quantized, once and for all.
    [[nodiscard]] Result<void> weights(const std::stop_token &stop);

    // The observers that the cache knows for this data; how many.
    int recall(const ValueKey &context);
    // Some observer has to look at the data.
    [[nodiscard]] bool incomplete() const;
    [[nodiscard]] Result<void> run(const std::vector<std::vector<c10::IValue>> &batches, bool quantizeWeights,
                                   const std::function<void(std::size_t, std::size_t, std::size_t)> &progress,
                                   const std::stop_token &stop);
    // What was observed goes to the cache, unless an operator failed on the way.
    [[nodiscard]] Result<void> keep(const ValueKey &context);

    // What each site does from now on, and its numbers for the table.
    // `observed`: activations were looked at, so an observer that saw nothing is worth a word.
    [[nodiscard]] Result<void> finish(PlannedSites &planned, QuantizedModel &result, bool observed);

private:
    enum class Phase { Weights, Batches };

    // One site while the model is calibrated.
    struct Live {
        Observer *observer = nullptr;
        std::size_t instance = 0;
        ValueId source, result;
        bool constant = false; // on weights alone: observed once
        at::Tensor seen;       // constant: what readers see during calibration
        at::Tensor quantized;  // constant: what readers see afterwards
        std::optional<WeightError> error;
    };
    // One observer of the placement.
    struct Instance {
        std::unique_ptr<Observer> observer; // null: a palette
        std::vector<std::size_t> sites;     // in execution order
        bool activations = true;            // all its sites
        std::optional<KnownObserver> known; // it need not look
    };

    [[nodiscard]] const TensorSpec &specOf(const Live &live) const { return m_placement.observers[live.instance].spec; }
    [[nodiscard]] std::string nameOf(std::size_t instance) const;
    [[nodiscard]] Result<KnownObserver> outcomeOf(std::size_t instance) const;
    [[nodiscard]] std::vector<ValueKey> keysWhileCalibrating() const;
    [[nodiscard]] ValueKey weightKey(const Live &live, const ValueKey &source) const;
    // Per instance, "" where others than its spec and its sources decide what it sees.
    [[nodiscard]] std::vector<ValueKey> observerKeys() const;

    [[nodiscard]] Result<void> pass(const std::vector<c10::IValue> &inputs, const std::vector<ValueId> &wanted,
                                    Phase phase, const std::stop_token &stop,
                                    const std::function<void(std::size_t, std::size_t)> &progress);
    // What the readers of a site see while the model is calibrated.
    [[nodiscard]] Result<at::Tensor> site(std::size_t index, const at::Tensor &x, Phase phase,
                                          const std::stop_token &stop);
    [[nodiscard]] Result<at::Tensor> weight(std::size_t index, const at::Tensor &x, const std::stop_token &stop);
    [[nodiscard]] Result<KnownWeight> quantizeWeight(Live &live, const at::Tensor &x, const std::stop_token &stop);
    [[nodiscard]] static std::function<at::Tensor(const at::Tensor &)>
    kernelOf(const Live &live, const TensorSpec &spec, const std::shared_ptr<const Qparams> &qparams, SiteRole role);

    std::shared_ptr<LoadedModel> m_model;
    const Placement &m_placement;
    const QuantizerFlow &m_flow;
    CalibrationCache *m_cache;
    std::shared_ptr<const Program> m_program;
    std::vector<Instance> m_instances;
    std::vector<Live> m_live; // per planned site
    std::unordered_map<NodeId, std::size_t> m_siteOfNode;
    std::vector<ValueKey> m_keys; // per value, while calibrating; empty without a cache
    bool m_weightsQuantized = false;
    std::string m_failure;
    std::vector<DefectNote> m_defects;
};

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// What quantizing a float model by a recipe gives (Engine::quantize), as plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model.h"
#include "core/placement.h"

namespace dblame
{

struct QuantizeOptions {
    int threads = 0;               // 0: EngineInfo::defaultThreads
    std::int64_t limitBatches = 0; // of the calibration; 0: all
    bool weightsOnly = false;      // leave the activations' observers empty: for what needs no inputs
    // Observers that saw the same values before, under the same spec, need not see them again: their results are kept
    // by content.
    bool reuse = true;
    std::string cacheFolder; // from one process to the next; empty: in memory only
};

// What an observer saw during calibration.
struct ObserverRange {
    std::int64_t batches = 0, elements = 0;
    double lowest = 0, highest = 0; // of all finite elements; both 0 when there were none
    double low = 0, high = 0;       // what the lowest and the highest integer of a per-tensor grid stand for
    std::optional<double> clipped;  // share of the elements outside [low, high]
    std::optional<double> unused;   // share of [low, high] that nothing observed uses
};

// What quantizing costs a weight.
struct WeightError {
    std::string site;
    double snrDb = 0; // of the whole tensor; +inf: exact
    int axis = 0;     // of the channels
    std::vector<double> channelDb;
    int worstChannel = -1; // -1: no channel has a finite number
};

// A candidate that a recipe made of a float model.
struct QuantizedModel {
    std::shared_ptr<const Model> model;     // its plannedSites() are the placement's, in execution order
    std::shared_ptr<const Model> annotated; // the rewritten float model on which the sites were placed
    Placement placement;                    // ids are of `annotated`'s graph
    std::vector<SiteId> siteOfPlaced;       // per placement site: its number in plannedSites()
    std::vector<ObserverRange> observed;    // per placement observer
    std::vector<WeightError> weightErrors;  // per weight site, in execution order
    std::vector<std::string> warnings;
    std::int64_t calibrationBatches = 0;
    int observersKnown = 0; // of `observed`: taken from an earlier calibration on the same data
};

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// A folder that resources/python/dblame_export.py wrote: two programs, their inputs, and what the candidate's
// observers saw (an exported program has no place for it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/graph.h"

namespace dblame
{

// What one observer saw at one place. An instance that serves several places is repeated under its name.
struct ObserverRecord {
    std::string module;           // path of the layer it watches, "block.conv1"
    std::string role;             // "weight", "input" or "output" of that layer
    std::string name;             // of the observer instance, "activation_post_process_3"
    std::string node;             // FX name of the value it watches in the prepared graph; empty when there is none
    std::string kind;             // class name, "HistogramObserver"; empty when the file does not say
    std::vector<double> min, max; // one, or one per channel; empty: it saw nothing. In the value's own units
    std::vector<double> scale;
    std::vector<std::int64_t> zeroPoint;
    std::vector<double> histogram; // counts of equal bins over histogramRange; empty: none
    std::optional<std::pair<double, double>> histogramRange;
    DType dtype = DType::Unknown;
    std::optional<std::int64_t> quantMin, quantMax;
    std::optional<int> axis; // of the channels
    bool fakeQuant = false;  // quantizes, not only watches
};

struct PairFolder {
    std::string reference, candidate; // paths of the programs
    std::vector<std::string> inputs;  // inputs.pt or inputs.npz; empty: the programs' own sample inputs
    std::string labels;               // labels.*; empty: none
    std::vector<ObserverRecord> observers;
    std::vector<std::string> notes; // what was lost when the folder was written, and what could not be read
};

// Errors (Unreadable): no folder, a program is missing, observers.json is damaged or of a newer version.
[[nodiscard]] Result<PairFolder> readPairFolder(const std::string &path);

} // namespace dblame

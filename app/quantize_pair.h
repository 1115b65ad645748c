// SPDX-License-Identifier: GPL-3.0-or-later
//
// A reference and the candidate that a recipe makes of it, on inputs from the command line.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "app/terminal.h"
#include "core/engine.h"

namespace dblame
{

struct CalibrationChoice {
    std::vector<std::string> files; // empty: the inputs of the comparison themselves
    bool useCache = true;           // calibrations of earlier processes
    int threads = 0;                // RunOptions::threads
};

// `inputs` may be null where the recipe observes no activation. `source`: what the observers saw, in the words of the
[[nodiscard]] Result<QuantizedModel> quantizeReference(Engine &engine, const std::shared_ptr<const Model> &reference,
                                                       const Recipe &recipe, const CalibrationChoice &choice,
                                                       const std::shared_ptr<const InputSet> &inputs,
                                                       std::string &source, ProgressBar &bar, std::stop_token stop);

} // namespace dblame

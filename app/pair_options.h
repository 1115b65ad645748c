// SPDX-License-Identifier: GPL-3.0-or-later
//
// The two models that compare and align take: REF CAND, or a folder that holds a pair.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/terminal.h"
#include "core/engine.h"

namespace dblame
{

struct PairArguments {
    std::vector<std::string> models; // REF CAND, or one folder
    bool referenceOnly = false;      // a recipe makes the candidate: REF alone
    void addTo(CLI::App &command);
};

struct OpenedPair {
    Engine *engine = nullptr;
    std::shared_ptr<const Model> reference, candidate;
    std::vector<std::string> inputs; // of the folder; empty otherwise
    std::vector<std::string> notes;
};

// Loads the engine and both models.
[[nodiscard]] Result<OpenedPair> openPair(const PairArguments &arguments, ProgressBar &bar, std::stop_token stop);

} // namespace dblame

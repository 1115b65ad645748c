// SPDX-License-Identifier: GPL-3.0-or-later
//
// How much of the loss at the outputs is the weights', how much the activations': a candidate measured with everything
// quantized, with its weights alone and with its activations alone.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/engine.h"

namespace dblame
{

// One way to run the candidate.
struct OutputPart {
    int sites = 0;                     // that are on
    std::vector<double> snrDb, sqnrDb; // RunReport::outputSnrDb and outputSqnrDb: dB per tensor, NaN without a figure
};

struct OutputParts {
    OutputPart everything;
    OutputPart weights;     // every activation site is float
    OutputPart activations; // every weight site is float
};

// The sites to switch off so that only those of weights (only those of activations) stay.
[[nodiscard]] EditSet onlyWeights(const SiteTable &sites);
[[nodiscard]] EditSet onlyActivations(const SiteTable &sites);

// Runs `comparison` up to three times and leaves it at the last one: give it a comparison that nobody else looks at.
// Where a candidate has weights (or activations) alone, there is less to run. `progress` counts thousandths of a run.
// Cancelled: as Comparison::run.
[[nodiscard]] Result<OutputParts> measureOutputParts(Comparison &comparison, const RunOptions &options,
                                                     const Progress &progress, std::stop_token stop);

// A table for a terminal: one line per part and output.
[[nodiscard]] std::string outputPartsText(const OutputParts &parts);

} // namespace dblame

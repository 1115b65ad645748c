// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/alignment.h"
#include "core/model.h"
#include "core/node_report.h"
#include "core/quant_site.h"
#include "core/quantization.h"
#include "core/recipe.h"

namespace dblame::ui
{

// How a recipe made the candidate of the reference, and what its observers saw.
struct MadeCandidate {
    Recipe recipe;
    QuantizedModel quantized;
    InputsInfo calibration; // no batches: nothing was observed
    bool onInputs = false;  // calibrated on the inputs of the comparison themselves
};

// What is open: two models, the candidate's sites and the alignment. Immutable; a new one per opened pair.
// Either model may be null while only one has been opened.
struct OpenPair {
    std::shared_ptr<const Model> reference;
    std::shared_ptr<const Model> candidate;
    SiteTable sites;
    Alignment alignment;
    InputsInfo inputs;
    std::shared_ptr<const MadeCandidate> made; // null: the candidate comes from a file
};
using OpenPairPtr = std::shared_ptr<const OpenPair>;

} // namespace dblame::ui

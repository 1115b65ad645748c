// SPDX-License-Identifier: GPL-3.0-or-later
//
// A float model becomes a candidate: rewritten as a quantizer does it, its observers placed, calibrated, and each site
// given its numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/float_rewrite.h"
#include "core/placement.h"
#include "core/quantization.h"
#include "core/readers/readers.h"

namespace dblame
{

class CalibrationCache;

// Engine::quantize and Engine::place.
[[nodiscard]] Result<QuantizedModel> quantizeModel(const std::shared_ptr<const LoadedModel> &model,
                                                   const Recipe &recipe, const LoadedInputs *calibration,
                                                   const QuantizeOptions &options, CalibrationCache &cache,
                                                   const Progress &progress, const std::stop_token &stop);
[[nodiscard]] Result<QuantizedModel> placeOnModel(const std::shared_ptr<const LoadedModel> &model,
                                                  const Recipe &recipe);

// How a family of quantizers treats a model around its observers.
struct QuantizerFlow {
    bool foldNorms = false;    // before placement (torchao)
    bool liftScalars = false;  // before placement (torchao)
    bool rewriteNorms = false; // after placement: W·sf (coreai-opt's graph mode)
    bool corrected = false;
    bool observesExample = false;           // the model's sample inputs (else the first batch) come first, nothing
                                            // quantized yet (coreai-opt's prepare())
    bool quantizesWeightsMeanwhile = false; // calibration sees quantized weights (coreai-opt)
    std::string name;                       // "xnnpack-static"
};

// The float model as its quantizer annotates it, with tensors.
struct FloatForm {
    std::shared_ptr<const LoadedModel> model;
    RewriteNotes notes;
};
[[nodiscard]] FloatForm rewriteFloat(const std::shared_ptr<const LoadedModel> &model, const QuantizerFlow &flow);

// `form` with its placement's sites in the graph, calibrated. `calibration` may be null when no placed observer watches
// activations. Errors: no inputs though an activation is observed (Usage), cancelled, an observer that refuses what it
// sees (Incomparable; the message names site and reason).
[[nodiscard]] Result<QuantizedModel> placeAndCalibrate(const FloatForm &form, Placement placement,
                                                       const QuantizerFlow &flow, const LoadedInputs *calibration,
                                                       const QuantizeOptions &options, CalibrationCache &cache,
                                                       const Progress &progress, const std::stop_token &stop);

} // namespace dblame

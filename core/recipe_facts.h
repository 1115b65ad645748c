// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a recipe does to a model, in numbers: observers, q/dq nodes, what is quantized and what is not and why, the cost
// of each weight. Known before anything runs.
#pragma once

#include <string>
#include <vector>

#include "core/quantization.h"

namespace dblame
{

struct ObserverCount {
    std::string kind; // "histogram, int8 affine per tensor"
    int observers = 0, sites = 0;
    bool weight = false;
};

// Operators of one type ("aten.conv2d"): with a site at their weight, or at an input or output.
struct OperatorCount {
    std::string op;
    int total = 0, quantized = 0;
    bool readsWeights = false;
};

struct FloatOperator {
    std::string op, node, module, reason;
};

// An operator whose activations enter and leave with different numbers of bits.
struct BitBoundary {
    std::string node, module;
    int bitsIn = 0, bitsOut = 0;
};

struct RecipeFacts {
    std::vector<ObserverCount> observers; // weights first, most frequent first
    int observerCount = 0, siteCount = 0;
    // Quantize and dequantize nodes that the peer's converted graph has: one quantize for each activation site (weights
    // are stored as integers), one dequantize for each weight site and for each reader of an activation site.
    int quantizeNodes = 0, dequantizeNodes = 0;
    std::vector<OperatorCount> operators; // by frequency; operators without sites and weights are left out
    std::vector<FloatOperator> leftFloat; // that read weights
    std::vector<BitBoundary> boundaries;
    std::vector<std::string> defects; // "defect 9: ..."
};

[[nodiscard]] RecipeFacts factsOf(const QuantizedModel &quantized);

// The facts as lines for a terminal, weight errors included if they are known.
[[nodiscard]] std::string factsText(const QuantizedModel &quantized);

// One line per channel of each quantized weight: what quantizing costs it.
[[nodiscard]] std::string weightChannelsText(const QuantizedModel &quantized);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Model pairs made on the spot: a float graph with random weights, and the same graph as a PT2E conversion leaves it
// (int8 weights behind a dequantize, q -> dq pairs on activations, ranges from one run of the float graph).
#pragma once

#include <memory>

#include "core/readers/loaded_model.h"
#include "core/readers/readers.h"

namespace dblame::bench
{

struct ModelPair {
    std::shared_ptr<const LoadedModel> reference, candidate;
    std::shared_ptr<const LoadedInputs> inputs;
};

// Bottleneck blocks 3-4-6-3 on batch x 3 x 224 x 224, norms folded away.
[[nodiscard]] ModelPair residualNet(std::int64_t batch);
// blocks x (mul, add, tanh) on 64 floats; weights per tensor.
[[nodiscard]] ModelPair smallOperators(int blocks);
// depth x (1x1 convolution, relu, add) on 1 x 64 x 112 x 112: every activation is 3.2 MB.
[[nodiscard]] ModelPair constantWidth(int depth);

} // namespace dblame::bench

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The tensors and cases of tests/data/quantizer/conformance.json (docs/quantization.md): expected numbers that torchao
// and coreai-opt gave on tensors that are defined by formula.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/tensor_spec.h"

namespace dblame
{

// The value, or an exception that carries the error's text.
template <class T>
[[nodiscard]] T need(Result<T> result)
{
    if (!result)
        throw std::runtime_error(result.error().text());
    return std::move(*result);
}

[[nodiscard]] const nlohmann::json &conformance();
// "lin", "weight_edge", ...
[[nodiscard]] at::Tensor namedTensor(const std::string &name);
// 10*log10(sum x^2 / sum (x - y)^2) in float64.
[[nodiscard]] double snrDb(const at::Tensor &x, const at::Tensor &y);
// Elements in row-major order, as doubles.
[[nodiscard]] std::vector<double> elements(const at::Tensor &t);
[[nodiscard]] at::Tensor tensorOf(const std::vector<float> &values);

// tests/data/quantizer/peer_sequences.json and the generator of make_peer_sequences.py beside it.
[[nodiscard]] const nlohmann::json &peerSequences();
[[nodiscard]] at::Tensor numbers(std::uint64_t seed, std::int64_t n); // float32 in [-1, 1)
[[nodiscard]] std::string hashOf(const at::Tensor &t);                // 64-bit FNV-1a of the elements' bytes

// The presets' and coreai-opt's spec.
[[nodiscard]] TensorSpec xnnpackActivation(ObserverKind observer);
[[nodiscard]] TensorSpec xnnpackWeight(Granularity granularity);
[[nodiscard]] TensorSpec coreAiSpec(ElementType type, Scheme scheme, Granularity granularity);

} // namespace dblame

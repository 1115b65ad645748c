// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which operators coreai-opt quantizes, as patterns: a weighted operator with its norm and activation, an n-ary one
// with its activation, and operators whose sites share one observer. docs/quantization.md.
#pragma once

#include <cstdint>
#include <vector>

#include "core/coreai_graph.h"

namespace dblame
{

enum class SharedOp : std::uint8_t { None, Values, Concat };

struct CoreAiPattern {
    int anchor = -1;          // entry of the CoreAiGraph whose configuration counts
    std::vector<int> covered; // anchor first
    [[nodiscard]] int length() const { return static_cast<int>(covered.size()); }
};

// Every match of every pattern, patterns in the peer's order, matches of one in graph order. `extraTypes` are operator
// types that are matched alone (key-value cache updates).
[[nodiscard]] std::vector<CoreAiPattern> matchCoreAiPatterns(const CoreAiGraph &graph,
                                                             const std::vector<std::string> &extraTypes);
[[nodiscard]] SharedOp sharedOp(const CoreAiGraph &graph, int entry);
[[nodiscard]] bool isWeighted(const CoreAiGraph &graph, int entry); // conv, conv_transpose, linear, embedding
[[nodiscard]] bool isConvTranspose(const CoreAiGraph &graph, int entry);
// The batch norm that reads nothing but this convolution and is its only reader, or -1: the pair is rewritten.
[[nodiscard]] int batchNormAfter(const CoreAiGraph &graph, int entry);

} // namespace dblame

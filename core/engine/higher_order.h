// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to the program target: operators that call subgraphs.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "core/engine/compiled_graph.h"

namespace dblame
{

// Compiles node `node` of `owner` whose target is the higher-order operator `name`. Throws CompileFault.
// Sets step.hop and step.aliases. `nextInput` is advanced over the node's inputs.
void compileHigherOrder(const CompiledGraph &owner, const Node &node, const std::string &name, Step &step,
                        std::uint32_t &nextInput);

// Runs it on the node's inputs; returns the results in order. Throws what its operators throw, with the inner
// node's place ("in cond[true]/linear: ...") before the text. Cancelled is thrown when `stop` was set.
struct Cancelled {
};
[[nodiscard]] std::vector<c10::IValue> runHigherOrder(const HigherOrder &hop, const std::vector<c10::IValue> &inputs,
                                                      const std::stop_token &stop);

} // namespace dblame

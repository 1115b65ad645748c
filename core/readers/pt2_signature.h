// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a program takes and returns: kinds and targets of its inputs and outputs, and their names from the root
// module's in_spec and out_spec.
#pragma once

#include <string>

#include "core/graph.h"
#include "core/readers/json_text.h"
#include "core/readers/pytree.h"

namespace dblame
{

// Kinds and targets from input_specs and output_specs. Throws ReadError when they do not fit the graph.
void applySignature(const Json &signature, Graph &graph);

// A treespec text: [version, tree]. Throws ReadError.
[[nodiscard]] Pytree parsePytree(const std::string &text, const Json &graphModule);

// The nesting of the arguments: a tuple of the positional ones and a dict of the others. A leaf when the file
// has none or it is damaged.
[[nodiscard]] Pytree inputTree(const Json &graphModule);

// Targets of user and constant inputs (argument names) and of user outputs (labels). A spec that does not fit
// the graph is left aside: inputs are then called by their value names.
void nameInputsAndOutputs(const Json &graphModule, Graph &graph);

} // namespace dblame

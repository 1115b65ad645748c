// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to the program target: arguments of the file fitted to the types of an operator's schema.
#pragma once

#include <stdexcept>
#include <string>

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include "core/engine/compiled_graph.h"
#include "core/graph.h"

namespace dblame
{

// An argument or a node that cannot be compiled; the text is the node's fault.
struct CompileFault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Takes the values of an argument in the order of Node::inputValues(): `nextInput` is the position of the
// first one and is advanced. `type` is nullptr for arguments without a schema (size arithmetic).
// `where` ("argument dim of aten::sum") begins the text of a fault.
[[nodiscard]] ArgumentTemplate fitArgument(const Argument &argument, const c10::Argument *type,
                                           std::uint32_t &nextInput, const std::string &where);

// The items of a higher-order operator's operand: a value, a literal, or a list of both.
void appendOperands(const Argument &argument, std::uint32_t &nextInput, std::vector<ListItem> &items);

// A literal as it is; None for values and lists of them.
[[nodiscard]] c10::IValue literalOf(const Argument &argument);

// At run time: the value a template names, fitted. `inputs` are the node's inputs.
[[nodiscard]] c10::IValue fitValue(const c10::IValue &value, Fit fit);

// A number as a 0-dim tensor that does not take part in type promotion, as Python's numbers do not.
[[nodiscard]] at::Tensor wrappedNumber(const c10::IValue &number);

} // namespace dblame

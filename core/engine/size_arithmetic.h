// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to the program target: Python's arithmetic on sizes (_operator.*, torch.sym_*, math.*).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>

#include "core/engine/compiled_graph.h"

namespace dblame
{

// The function behind a target such as "_operator.floordiv" or "torch.sym_max"; nullopt when it is none.
[[nodiscard]] std::optional<SizeOp> sizeOpOf(std::string_view target);

// Operands are int, double, bool, or 0-dim tensors; results as Python gives them: floordiv and mod round to
// minus infinity, truediv is a double, pow of ints with a non-negative exponent an int, comparisons bool.
// Throws std::runtime_error for a division by zero, a result outside 64 bits, or a wrong operand.
[[nodiscard]] c10::IValue evaluateSize(SizeOp op, const std::vector<c10::IValue> &operands);

} // namespace dblame

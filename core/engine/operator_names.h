// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to the program target: from targets of the file to operators of the dispatcher.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dblame
{

struct OperatorName {
    std::string ns, op, overload; // as the file says; overload empty for "default"
    // "aten::mul.Tensor", "quantized_decomposed::quantize_per_tensor"
    [[nodiscard]] std::string shown() const;
    // The name it is registered under: operators that only exist in Python are ours, in namespace dblame
    // ("dblame::quantized_decomposed_quantize_per_tensor").
    [[nodiscard]] std::string registered() const;
};

// "aten.mul.Tensor", with or without "torch.ops." before it; nullopt when it is no operator's name.
[[nodiscard]] std::optional<OperatorName> operatorName(std::string_view target);

// "wrap_with_autocast" of "higher_order.wrap_with_autocast", "torch.ops.map_impl", "torch._higher_order_ops.wrap.x".
[[nodiscard]] std::optional<std::string> higherOrderName(std::string_view target);

// Operators that touch something outside the model (files, other processes, compiled code).
[[nodiscard]] bool isDenied(const OperatorName &name);

} // namespace dblame

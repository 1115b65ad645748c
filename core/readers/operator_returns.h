// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace dblame
{

// How many values the operator "aten.mul.Tensor" returns; nullopt when LibTorch does not have it.
[[nodiscard]] std::optional<std::size_t> operatorReturns(const std::string &target);

// "aten::mul.Tensor", "aten::relu": the dispatcher's way to write it.
[[nodiscard]] std::string dispatcherName(const std::string &target);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The parts of an exported program that stand for themselves: literals, enumerations (the file's numbers are not
// c10's) and tensor descriptions. All throw ReadError for fields of another kind.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"
#include "core/readers/json_text.h"

namespace dblame
{

template <class T, class F>
std::vector<T> listOf(const Json &list, const std::string &what, const F &convert)
{
    std::vector<T> result;
    for (const Json &item : asList(list, what))
        result.push_back(convert(item));
    return result;
}

// The file's number of a scalar type; Unknown for numbers that are not known.
[[nodiscard]] DType pt2ScalarType(std::int64_t number);

// Literals, lists of literals and enumerations; nullopt for every other tag (values, graphs, devices, unknown).
[[nodiscard]] std::optional<Argument> literalArgument(const std::string &tag, const Json &value);

[[nodiscard]] TensorMeta readTensorMeta(const Json &json);

} // namespace dblame

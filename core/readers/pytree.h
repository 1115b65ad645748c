// SPDX-License-Identifier: GPL-3.0-or-later
//
// The nesting of a program's arguments and results: used for names and for the order of dictionaries.
#pragma once

#include <string>
#include <vector>

namespace dblame
{

// One node of the nesting. A leaf has no type.
struct Pytree {
    std::string type;              // "builtins.dict", "builtins.tuple", ...; empty for a leaf
    std::vector<std::string> keys; // dictionaries: in flattening order; named tuples: field names
    std::vector<Pytree> children;
    [[nodiscard]] bool isLeaf() const { return type.empty(); }
};

// "[0]", "k", "m[0]", "m.k" for each leaf, in flattening order.
[[nodiscard]] std::vector<std::string> leafLabels(const Pytree &tree);

} // namespace dblame

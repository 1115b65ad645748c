// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to the program target: which values may share storage, and who writes it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/engine/compiled_graph.h"

namespace dblame
{

// What an operator's schema says, by positions of arguments and returns: arguments with a write annotation (out=
// included) are written; returns share with arguments of the same alias set. Composite operators without annotations
// may hand back an argument (dropout outside training, type_as), so their returns count as sharing with every argument
// unless the operator is known to make new storage.
struct OperatorAliases {
    std::vector<std::uint32_t> written;                          // arguments
    std::vector<std::pair<std::uint32_t, std::uint32_t>> shared; // (return, argument)
};
[[nodiscard]] OperatorAliases aliasesOf(const c10::OperatorHandle &op);

struct Span {
    std::uint32_t begin = 0, end = 0;
};
// The same for one node: `inputsOf[i]` = positions in the node's inputs that belong to argument i; `outputsOf[r]` =
// positions in its flattened outputs that belong to return r.
[[nodiscard]] StepAliases aliasesOf(const OperatorAliases &op, const std::vector<Span> &inputsOf,
                                    const std::vector<Span> &outputsOf);

// The alias classes of one graph (or of a rewired view of it).
struct AliasClasses {
    std::vector<std::uint32_t> classOf;              // per slot
    std::vector<std::vector<std::uint32_t>> writers; // per class: node positions, ascending
    std::vector<char> hot;                           // per slot: written after it was made

    [[nodiscard]] bool written(Slot slot) const { return !writers[classOf[slot]].empty(); }
    // Some node at or after `from` writes the slot's storage.
    [[nodiscard]] bool writtenFrom(Slot slot, std::uint32_t from) const;
};

// `inputSlots`: parallel to CompiledGraph::inputValues. `slotCount` >= the number of values; slots beyond are
// storage of their own. `sharing`: pairs of slots that share storage from the start (tied weights).
[[nodiscard]] AliasClasses findAliases(const CompiledGraph &graph, const std::vector<Slot> &inputSlots,
                                       std::size_t slotCount, const std::vector<std::pair<Slot, Slot>> &sharing);

// What the graph as a whole does to its inputs.
[[nodiscard]] GraphAliases summarize(const CompiledGraph &graph);

} // namespace dblame

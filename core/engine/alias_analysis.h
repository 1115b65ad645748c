// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to the program target: which values may share storage, and who writes it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/engine/compiled_graph.h"

namespace dblame
{

// From an operator's schema: arguments with a write annotation (out= included) are written; returns share
// with arguments of the same alias set. Composite operators without annotations may hand back an argument
// (dropout outside training, type_as), so their outputs count as sharing with every tensor they read unless
// the operator is known to make new storage. `inputsOf[i]` = positions [begin, end) in the node's inputs that
// belong to schema argument i; `outputsOf[r]` = positions in the flattened outputs that belong to return r.
struct Span {
    std::uint32_t begin = 0, end = 0;
};
[[nodiscard]] StepAliases aliasesOf(const c10::OperatorHandle &op, const std::vector<Span> &inputsOf,
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

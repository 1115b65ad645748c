// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to the program target: a compiled graph under a rewiring.
//
// Every value has a slot of its own number. A redirected read simply reads another slot, except where that
// would let an in-place operator of one reader be seen by others: then the redirected value becomes a private
// copy in a slot of its own (Derived without a function). Substitutes are Derived with a function and keep
// the value's own slot.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/engine/alias_analysis.h"
#include "core/engine/compiled_graph.h"
#include "core/engine/program.h"

namespace dblame
{

struct Derived {
    Slot target = kNoSlot;
    Slot source = kNoSlot;
    ValueId value;                                          // whose reads it serves
    std::function<at::Tensor(const at::Tensor &)> function; // empty: a copy
    std::uint32_t point = 0; // first node that must not run before the source was read...
    bool forced = false;     // ...because the source's storage is written at or after it
};

struct Program::Impl {
    std::shared_ptr<const LoadedModel> model;
    std::shared_ptr<const CompiledGraph> compiled;
    Rewiring rewiring;

    std::vector<Slot> inputSlots;           // parallel to compiled->inputValues
    std::vector<Slot> slotOf;               // per value: what a reader without an edge of its own sees
    std::vector<Derived> derived;           // sources before the values made from them
    std::vector<std::int32_t> derivedAt;    // per slot: into derived, or -1
    std::vector<char> overridden;           // per value: given or computed, its producer does not set it
    std::vector<std::uint32_t> forcedOrder; // into derived, by point; forced ones only
    AliasClasses aliases;
    std::vector<std::pair<Slot, Slot>> sharing; // stored tensors on one storage
    std::vector<Slot> privateStored;            // stored tensors that some node writes

    [[nodiscard]] const Graph &graph() const { return model->m_graph; }
    [[nodiscard]] std::size_t slotCount() const { return derivedAt.size(); }
    // Fills everything below `rewiring`.
    void link();
    [[nodiscard]] ValueId resolve(NodeId reader, ValueId value) const;
};

} // namespace dblame

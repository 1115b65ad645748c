// SPDX-License-Identifier: GPL-3.0-or-later
//
// What is asked of each slot of a graph, while it is still being changed: module boundaries, caches and overrides take
// slots out of the groups that the records made. Written to a SpecMap at the end.
#pragma once

#include <optional>
#include <vector>

#include "core/coreai_graph.h"
#include "core/coreai_records.h"
#include "core/placement_groups.h"

namespace dblame
{

class CoreAiSlots
{
public:
    explicit CoreAiSlots(const CoreAiGraph &graph);

    [[nodiscard]] SpecKey keyOf(CoreAiSlot slot) const;
    // Replaces what is asked there; who shares with the slot keeps doing so. NoSpec at an output clears it.
    void ask(CoreAiSlot slot, AskedSpec spec);
    void clearOutput(int entry);
    // Nothing at any input and output of an operator.
    void clearOperator(int entry);
    // One override on one operator: the slots leave their groups.
    void apply(const SpecOverride &change, int entry);
    // Usage: a group shares with a slot whose spec was taken away, which coreai-opt does not survive.
    [[nodiscard]] Result<SpecMap> write() const;

private:
    [[nodiscard]] ValueId tensorOf(CoreAiSlot slot) const;
    [[nodiscard]] std::optional<AskedSpec> current(CoreAiSlot slot) const;
    [[nodiscard]] std::optional<SpecKey> rootOf(CoreAiSlot slot) const;
    [[nodiscard]] bool isWeightArgument(int entry, ValueId value) const;
    void detach(CoreAiSlot slot);
    void replace(CoreAiSlot slot, const SpecOverride &change);
    template <class F>
    void eachSlot(const F &f);

    const CoreAiGraph &m_graph;
    std::vector<std::vector<std::optional<AskedSpec>>> m_inputs; // per entry and input
    std::vector<std::optional<AskedSpec>> m_outputs;             // per entry
};

} // namespace dblame

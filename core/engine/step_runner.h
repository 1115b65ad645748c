// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to the program target: one compiled node on the values of its inputs.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include "core/engine/compiled_graph.h"

namespace dblame
{

// Buffers that are reused from node to node.
struct StepScratch {
    torch::jit::Stack stack;
    std::vector<c10::IValue> operands;
};

// Runs `step` with inputs slots[inputSlots[step.inputsBegin]] and following; the results, one IValue per
// return, are left in scratch.stack. Throws c10::Error and std::exception of the operator, Cancelled.
void runStep(const Step &step, const Slot *inputSlots, const std::vector<c10::IValue> &slots, StepScratch &scratch,
             const std::stop_token &stop);

// Moves the results in scratch.stack to the slots of the node's outputs. `skip(slot)` slots keep what they hold.
// Throws std::runtime_error when a list has another number of elements than the file names.
template <class Skip>
void storeResults(const Node &node, StepScratch &scratch, std::vector<c10::IValue> &slots, const Skip &skip);

// Runs a whole graph on `inputs` (one per graph input) and returns its outputs.
[[nodiscard]] std::vector<c10::IValue> runGraph(const CompiledGraph &graph, const std::string &name,
                                                const std::vector<c10::IValue> &inputs, const std::stop_token &stop);

// The message of a caught exception, without a backtrace. Call inside a catch block's handler.
[[nodiscard]] std::string messageOf(const std::exception &error);

[[noreturn]] void listLengthMismatch(std::size_t named, std::size_t returned);

template <class Skip>
void storeResults(const Node &node, StepScratch &scratch, std::vector<c10::IValue> &slots, const Skip &skip)
{
    std::size_t r = 0;
    for (const auto &output : node.outputs) {
        if (r >= scratch.stack.size())
            break;
        if (const auto *one = std::get_if<ValueId>(&output)) {
            if (!skip(static_cast<Slot>(one->get())))
                slots[one->get()] = std::move(scratch.stack[r]);
        } else if (const auto *list = std::get_if<std::vector<ValueId>>(&output)) {
            const auto items = scratch.stack[r].toListRef();
            std::size_t i = 0; // holes of optional lists are left out in the file
            for (const auto &item : items) {
                if (item.isNone())
                    continue;
                if (i == list->size())
                    listLengthMismatch(list->size(), items.size());
                const Slot slot = static_cast<Slot>((*list)[i++].get());
                if (!skip(slot))
                    slots[slot] = item;
            }
            if (i != list->size())
                listLengthMismatch(list->size(), items.size());
        }
        ++r;
    }
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/step_runner.h"

#include <mutex>
#include <stdexcept>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include "core/engine/argument_fit.h"
#include "core/engine/higher_order.h"
#include "core/engine/size_arithmetic.h"

namespace dblame
{

namespace
{

// Every random operator starts from a seed of its own (this plus its ordinal), so that a node gives the same
// numbers whatever ran before it: both models of a pair, and a rerun of a part, draw alike.
constexpr std::uint64_t kRandomSeed = 0x5eed0000;

void seedFor(std::int32_t ordinal)
{
    auto generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(kRandomSeed + static_cast<std::uint64_t>(ordinal));
}

const c10::IValue &itemOf(const ListItem &item, const Slot *inputs, const std::vector<c10::IValue> &slots)
{
    return item.input < 0 ? item.constant : slots[inputs[item.input]];
}

template <class T, class Convert>
c10::IValue listOf(const ArgumentTemplate &t, const Slot *inputs, const std::vector<c10::IValue> &slots,
                   const Convert &convert)
{
    c10::List<T> list;
    list.reserve(t.items.size());
    for (const auto &item : t.items)
        list.push_back(convert(itemOf(item, inputs, slots)));
    return list;
}

c10::IValue makeList(const ArgumentTemplate &t, const Slot *inputs, const std::vector<c10::IValue> &slots)
{
    switch (t.fit) {
    case Fit::TensorList:
        return listOf<at::Tensor>(t, inputs, slots,
                                  [](const c10::IValue &v) { return fitValue(v, Fit::Tensor).toTensor(); });
    case Fit::OptionalTensorList:
        return listOf<std::optional<at::Tensor>>(
            t, inputs, slots, [](const c10::IValue &v) -> std::optional<at::Tensor> {
                return v.isNone() ? std::nullopt : std::optional(fitValue(v, Fit::Tensor).toTensor());
            });
    case Fit::IntList:
        return listOf<std::int64_t>(t, inputs, slots,
                                    [](const c10::IValue &v) { return fitValue(v, Fit::Int).toInt(); });
    case Fit::FloatList:
        return listOf<double>(t, inputs, slots,
                              [](const c10::IValue &v) { return fitValue(v, Fit::Float).toDouble(); });
    case Fit::BoolList:
        return listOf<bool>(t, inputs, slots, [](const c10::IValue &v) { return fitValue(v, Fit::Bool).toBool(); });
    default: {
        c10::impl::GenericList list(c10::AnyType::get());
        for (const auto &item : t.items)
            list.push_back(itemOf(item, inputs, slots));
        return list;
    }
    }
}

void pushArgument(const ArgumentTemplate &t, const Slot *inputs, const std::vector<c10::IValue> &slots,
                  std::vector<c10::IValue> &stack)
{
    switch (t.kind) {
    case ArgumentTemplate::Kind::Constant:
        stack.push_back(t.constant);
        break;
    case ArgumentTemplate::Kind::Value: {
        const c10::IValue &v = slots[inputs[t.input]];
        if (t.fit == Fit::Tensor ? v.isTensor() : t.fit == Fit::AsIs)
            stack.push_back(v);
        else
            stack.push_back(fitValue(v, t.fit));
        break;
    }
    case ArgumentTemplate::Kind::List:
        stack.push_back(makeList(t, inputs, slots));
        break;
    }
}

} // namespace

std::string messageOf(const std::exception &error)
{
    if (const auto *torchError = dynamic_cast<const c10::Error *>(&error))
        return torchError->what_without_backtrace();
    return error.what();
}

void listLengthMismatch(std::size_t named, std::size_t returned)
{
    throw std::runtime_error("returns a list of " + std::to_string(returned) + ", the file names " +
                             std::to_string(named));
}

void runStep(const Step &step, const Slot *inputSlots, const std::vector<c10::IValue> &slots, StepScratch &scratch,
             const std::stop_token &stop)
{
    const Slot *inputs = inputSlots + step.inputsBegin;
    auto &stack = scratch.stack;
    stack.clear();
    switch (step.kind) {
    case Step::Kind::Operator:
        for (const auto &t : step.arguments)
            pushArgument(t, inputs, slots, stack);
        if (step.random >= 0)
            seedFor(step.random);
        step.op->callBoxed(stack);
        break;
    case Step::Kind::Size:
        scratch.operands.clear();
        for (const auto &t : step.arguments)
            pushArgument(t, inputs, slots, scratch.operands);
        stack.push_back(evaluateSize(step.size, scratch.operands));
        break;
    case Step::Kind::HigherOrder: {
        std::vector<c10::IValue> values;
        for (std::uint32_t i = step.inputsBegin; i < step.inputsEnd; ++i)
            values.push_back(slots[inputSlots[i]]);
        stack = runHigherOrder(*step.hop, values, stop);
        if (step.listOutput) { // one list for all results, as writers before torch 2.7 say it
            c10::impl::GenericList list(c10::AnyType::get());
            for (auto &v : stack)
                list.push_back(std::move(v));
            stack.clear();
            stack.emplace_back(std::move(list));
        }
        break;
    }
    case Step::Kind::Faulty:
        throw std::runtime_error("cannot run");
    }
}

std::vector<c10::IValue> runGraph(const CompiledGraph &graph, const std::string &name,
                                  const std::vector<c10::IValue> &inputs, const std::stop_token &stop)
{
    const Graph &g = *graph.graph;
    std::vector<c10::IValue> slots(g.values.size());
    auto remaining = graph.useCounts;
    for (std::size_t i = 0; i < g.inputs.size(); ++i)
        if (g.inputs[i].value.valid())
            slots[g.inputs[i].value.get()] = inputs.at(i);
    StepScratch scratch;
    for (std::size_t n = 0; n < g.nodes.size(); ++n) {
        if (stop.stop_requested())
            throw Cancelled{};
        const auto &step = graph.steps[n];
        try {
            if (!graph.faults[n].empty())
                throw std::runtime_error(graph.faults[n]);
            runStep(step, graph.inputValues.data(), slots, scratch, stop);
            storeResults(g.nodes[n], scratch, slots, [](Slot) { return false; });
        } catch (const std::exception &error) {
            throw std::runtime_error("in " + name + "/" + g.nodes[n].name + ": " + messageOf(error));
        }
        for (std::uint32_t i = step.inputsBegin; i < step.inputsEnd; ++i)
            if (--remaining[graph.inputValues[i]] == 0)
                slots[graph.inputValues[i]] = {};
    }
    std::vector<c10::IValue> outputs;
    for (const auto &output : g.outputs)
        outputs.push_back(output.value.valid() ? slots[output.value.get()] : literalOf(output.literal));
    return outputs;
}

} // namespace dblame

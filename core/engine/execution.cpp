// SPDX-License-Identifier: GPL-3.0-or-later
#include <unordered_map>

#include <ATen/core/Tensor.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include "core/engine/higher_order.h"
#include "core/engine/program_impl.h"
#include "core/engine/step_runner.h"

namespace dblame
{

namespace
{

// A copy that later writes to the original do not reach.
at::Tensor snapshot(const at::Tensor &tensor)
{
    return at::clone(tensor);
}

} // namespace

struct Execution::State {
    // Why a value is not there: `root` is what its dependents need.
    struct Fault {
        std::string text;
        std::string root;
        bool own = false;
    };

    std::shared_ptr<const Program> program;
    const Program::Impl *impl = nullptr;
    std::vector<c10::IValue> slots;
    std::vector<std::int32_t> remaining; // reads still to come by scheduled nodes and derived values
    std::vector<std::int32_t> wanted;    // per slot: wanted values that read it
    std::vector<char> isWanted;          // per value
    std::vector<char> needed;            // per derived value
    std::vector<char> made;              // per derived value
    std::size_t nextForced = 0;
    StepScratch scratch;
    std::unordered_map<Slot, Fault> valueFaults;
    std::unordered_map<NodeId, std::string> nodeFaults;
    c10::IValue none;
    std::string noFault;

    State(std::shared_ptr<const Program> p, const std::vector<NodeId> &nodes, const std::vector<ValueId> &wantedValues);
    void count(const std::vector<NodeId> &nodes, const std::vector<ValueId> &wantedValues);
    void bindStored();
    void bindGiven();

    [[nodiscard]] const Graph &graph() const { return impl->graph(); }
    void drop(Slot slot)
    {
        if (--remaining[slot] == 0 && wanted[slot] == 0)
            slots[slot] = {};
    }
    void makeDerived(std::size_t d);
    // Makes the slot's value if it is derived and not there yet.
    void ensure(Slot slot)
    {
        if (const std::int32_t d = impl->derivedAt[slot]; d >= 0 && made[static_cast<std::size_t>(d)] == 0)
            makeDerived(static_cast<std::size_t>(d));
    }
    bool runNode(NodeId node, const std::stop_token &stop);
    void failNode(NodeId node, Fault fault);
    [[nodiscard]] Fault missing(Slot slot) const;
};

Execution::State::State(std::shared_ptr<const Program> p, const std::vector<NodeId> &nodes,
                        const std::vector<ValueId> &wantedValues)
    : program(std::move(p)), impl(&program->impl()), slots(impl->slotCount()), remaining(impl->slotCount()),
      wanted(impl->slotCount()), isWanted(impl->graph().values.size()), needed(impl->derived.size()),
      made(impl->derived.size())
{
    count(nodes, wantedValues);
    bindStored();
    bindGiven();
}

void Execution::State::count(const std::vector<NodeId> &nodes, const std::vector<ValueId> &wantedValues)
{
    for (NodeId n : nodes) {
        const Step &step = impl->compiled->steps[n.get()];
        for (std::uint32_t i = step.inputsBegin; i < step.inputsEnd; ++i)
            ++remaining[impl->inputSlots[i]];
    }
    for (ValueId v : wantedValues) {
        if (isWanted[v.get()] != 0)
            continue;
        isWanted[v.get()] = 1;
        ++wanted[impl->slotOf[v.get()]];
    }
    for (std::size_t d = impl->derived.size(); d-- > 0;) {
        const Derived &derived = impl->derived[d];
        if (remaining[derived.target] == 0 && wanted[derived.target] == 0)
            continue;
        needed[d] = 1;
        ++remaining[derived.source];
    }
}

// Stored tensors that some node writes become copies of their own; those on one storage stay on one.
void Execution::State::bindStored()
{
    const auto &tensors = impl->model->m_tensors;
    for (std::size_t v = 0; v < tensors.size(); ++v)
        if (tensors[v].defined() && (remaining[v] > 0 || wanted[v] > 0))
            slots[v] = tensors[v];
    std::unordered_map<const void *, at::Tensor> copies; // whole storages, as bytes
    for (Slot v : impl->privateStored) {
        if (slots[v].isNone())
            continue;
        const at::Tensor &stored = tensors[v];
        if (stored.is_quantized()) {
            slots[v] = snapshot(stored);
            continue;
        }
        at::Tensor &bytes = copies[stored.storage().unsafeGetStorageImpl()];
        if (!bytes.defined()) {
            const at::Tensor all =
                at::empty({0}, stored.options().dtype(at::kByte))
                    .set_(stored.storage(), 0, {static_cast<std::int64_t>(stored.storage().nbytes())}, {1});
            bytes = at::clone(all);
        }
        slots[v] = at::empty({0}, stored.options())
                       .set_(bytes.storage(), stored.storage_offset(), stored.sizes(), stored.strides());
    }
}

void Execution::State::bindGiven()
{
    for (const auto &[value, tensor] : impl->rewiring.given) {
        const auto slot = static_cast<Slot>(value.get());
        if (remaining[slot] > 0 || wanted[slot] > 0)
            slots[slot] = impl->aliases.written(slot) ? snapshot(tensor) : tensor;
    }
}

Execution::State::Fault Execution::State::missing(Slot slot) const
{
    if (const auto it = valueFaults.find(slot); it != valueFaults.end())
        return {"needs " + it->second.root, it->second.root, false};
    const std::string &name =
        slot < graph().values.size()
            ? graph().values[slot].name
            : graph().values[impl->derived[static_cast<std::size_t>(impl->derivedAt[slot])].value.get()].name;
    return {"needs " + name, name, false};
}

void Execution::State::makeDerived(std::size_t d)
{
    const Derived &derived = impl->derived[d];
    made[d] = 1;
    if (!slots[derived.target].isNone()) // bound from outside
        return;
    ensure(derived.source);
    const c10::IValue &source = slots[derived.source];
    if (source.isNone()) {
        valueFaults.emplace(derived.target, missing(derived.source));
    } else {
        try {
            if (!derived.function) {
                slots[derived.target] = source.isTensor() ? c10::IValue(snapshot(source.toTensor())) : source;
            } else {
                at::Tensor result = derived.function(source.toTensor());
                if (result.is_alias_of(source.toTensor()) && (derived.forced || impl->aliases.written(derived.target)))
                    result = snapshot(result);
                slots[derived.target] = std::move(result);
            }
        } catch (const std::exception &error) {
            const auto &name = graph().values[derived.value.get()].name;
            valueFaults.emplace(derived.target, Fault{"failed: " + messageOf(error), name, true});
        }
    }
    if (needed[d] != 0)
        drop(derived.source);
}

void Execution::State::failNode(NodeId node, Fault fault)
{
    nodeFaults[node] = fault.own ? fault.text.substr(std::string_view("failed: ").size()) : fault.text;
    const auto outputs = graph().node(node).outputValues();
    const bool namesItself = fault.root.empty();
    for (ValueId v : outputs) {
        const auto slot = static_cast<Slot>(v.get());
        if (impl->overridden[slot] != 0)
            continue;
        slots[slot] = {};
        if (namesItself)
            fault.root = graph().value(v).name;
        valueFaults[slot] = fault;
    }
    if (namesItself && outputs.empty())
        fault.root = graph().node(node).name;
    // What it should have written holds something else than the model means.
    const Step &step = impl->compiled->steps[node.get()];
    for (std::uint32_t i : step.aliases.written) {
        const auto cls = impl->aliases.classOf[impl->inputSlots[step.inputsBegin + i]];
        for (Slot s = 0; s < slots.size(); ++s) {
            if (impl->aliases.classOf[s] != cls || slots[s].isNone())
                continue;
            slots[s] = {};
            valueFaults[s] = {"needs " + fault.root, fault.root, false};
        }
    }
}

bool Execution::State::runNode(NodeId node, const std::stop_token &stop)
{
    while (nextForced < impl->forcedOrder.size()) {
        const std::size_t d = impl->forcedOrder[nextForced];
        if (impl->derived[d].point > node.get())
            break;
        ++nextForced;
        if (needed[d] != 0 && made[d] == 0)
            makeDerived(d);
    }
    const Step &step = impl->compiled->steps[node.get()];
    const std::string &fault = impl->compiled->faults[node.get()];
    if (!fault.empty()) {
        const bool needs = fault.rfind("needs ", 0) == 0;
        failNode(node, needs ? Fault{fault, fault.substr(6), false} : Fault{"failed: " + fault, "", true});
        return false;
    }
    for (std::uint32_t i = step.inputsBegin; i < step.inputsEnd; ++i) {
        const Slot slot = impl->inputSlots[i];
        if (slots[slot].isNone()) {
            ensure(slot);
            if (slots[slot].isNone()) {
                failNode(node, missing(slot));
                return false;
            }
        }
    }
    try {
        runStep(step, impl->inputSlots.data(), slots, scratch, stop);
        storeResults(graph().node(node), scratch, slots,
                     [&](Slot s) { return impl->overridden[s] != 0 || (remaining[s] == 0 && wanted[s] == 0); });
        scratch.stack.clear();
        return true;
    } catch (const std::exception &error) {
        scratch.stack.clear();
        failNode(node, {"failed: " + messageOf(error), "", true});
    } catch (const Cancelled &) {
        scratch.stack.clear();
        failNode(node, {"failed: cancelled", "", true});
    }
    return false;
}

Execution::Execution(std::shared_ptr<const Program> program, const std::vector<NodeId> &nodes,
                     const std::vector<ValueId> &wanted)
    : m_state(std::make_unique<State>(std::move(program), nodes, wanted))
{
}
Execution::~Execution() = default;
Execution::Execution(Execution &&) noexcept = default;
Execution &Execution::operator=(Execution &&) noexcept = default;

void Execution::bind(ValueId value, c10::IValue v)
{
    const auto slot = static_cast<Slot>(value.get());
    State &s = *m_state;
    if (s.remaining[slot] == 0 && s.wanted[slot] == 0)
        return;
    s.slots[slot] = v.isTensor() && s.impl->aliases.hot[slot] != 0 ? c10::IValue(snapshot(v.toTensor())) : std::move(v);
}

bool Execution::run(NodeId node, const std::stop_token &stop)
{
    State &s = *m_state;
    const bool ok = s.runNode(node, stop);
    const Step &step = s.impl->compiled->steps[node.get()];
    for (std::uint32_t i = step.inputsBegin; i < step.inputsEnd; ++i)
        s.drop(s.impl->inputSlots[i]);
    return ok;
}

void Execution::provide(NodeId node, at::Tensor result)
{
    State &s = *m_state;
    const auto slot = static_cast<Slot>(s.graph().node(node).outputValues().front().get());
    if (s.remaining[slot] > 0 || s.wanted[slot] > 0)
        s.slots[slot] = std::move(result);
    const Step &step = s.impl->compiled->steps[node.get()];
    for (std::uint32_t i = step.inputsBegin; i < step.inputsEnd; ++i)
        s.drop(s.impl->inputSlots[i]);
}

const c10::IValue &Execution::value(ValueId value)
{
    State &s = *m_state;
    const Slot slot = s.impl->slotOf[value.get()];
    if (s.slots[slot].isNone())
        s.ensure(slot);
    return s.slots[slot];
}

void Execution::release(ValueId value)
{
    State &s = *m_state;
    if (s.isWanted[value.get()] == 0)
        return;
    s.isWanted[value.get()] = 0;
    const Slot slot = s.impl->slotOf[value.get()];
    if (--s.wanted[slot] == 0 && s.remaining[slot] <= 0)
        s.slots[slot] = {};
}

const std::string &Execution::fault(NodeId node) const
{
    const auto it = m_state->nodeFaults.find(node);
    return it == m_state->nodeFaults.end() ? m_state->noFault : it->second;
}

std::string Execution::faultOf(ValueId value) const
{
    const auto it = m_state->valueFaults.find(m_state->impl->slotOf[value.get()]);
    return it == m_state->valueFaults.end() ? std::string() : it->second.text;
}

bool Execution::failedItself(ValueId value) const
{
    const auto it = m_state->valueFaults.find(m_state->impl->slotOf[value.get()]);
    return it != m_state->valueFaults.end() && it->second.own;
}

} // namespace dblame

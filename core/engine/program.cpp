// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/program.h"

#include <algorithm>

#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>

#include "core/engine/program_impl.h"

namespace dblame
{

Program::Program(std::shared_ptr<const Impl> impl) : m_impl(std::move(impl)) {}

std::shared_ptr<const Program> Program::compile(std::shared_ptr<const LoadedModel> model)
{
    const c10::InferenceMode guard;
    auto impl = std::make_shared<Impl>();
    impl->compiled = compileGraph(model->m_graph, model->m_nodeFaults);
    impl->model = std::move(model);
    std::unordered_map<const void *, Slot> owner;
    const auto &tensors = impl->model->m_tensors;
    for (std::size_t v = 0; v < tensors.size(); ++v) {
        if (!tensors[v].defined() || !tensors[v].has_storage() || tensors[v].storage().nbytes() == 0)
            continue;
        const auto [it, fresh] = owner.emplace(tensors[v].storage().unsafeGetStorageImpl(), static_cast<Slot>(v));
        if (!fresh)
            impl->sharing.emplace_back(it->second, static_cast<Slot>(v));
    }
    impl->link();
    return std::make_shared<const Program>(std::move(impl));
}

std::shared_ptr<const Program> Program::rewired(Rewiring rewiring) const
{
    const c10::InferenceMode guard;
    auto impl = std::make_shared<Impl>();
    impl->model = m_impl->model;
    impl->compiled = m_impl->compiled;
    impl->sharing = m_impl->sharing;
    impl->rewiring = std::move(rewiring);
    impl->link();
    return std::make_shared<const Program>(std::move(impl));
}

const Graph &Program::graph() const
{
    return m_impl->graph();
}

const LoadedModel &Program::model() const
{
    return *m_impl->model;
}

const std::vector<std::string> &Program::faults() const
{
    return m_impl->compiled->faults;
}

const std::vector<std::string> &Program::notes() const
{
    return m_impl->compiled->notes;
}

bool Program::hot(ValueId value) const
{
    return m_impl->aliases.hot[m_impl->slotOf[value.get()]] != 0;
}

ValueId Program::resolve(NodeId reader, ValueId value) const
{
    return m_impl->resolve(reader, value);
}

namespace
{

// The backward walk of schedule(). Nodes are visited in descending order; a read at node n asks for the
// producer of what is read and for every earlier writer of its storage.
class Scheduler
{
public:
    Scheduler(const Program::Impl &impl, const std::function<bool(ValueId)> &available)
        : m_impl(impl), m_available(available), m_nodes(impl.graph().nodes.size()), m_classDone(impl.slotCount()),
          m_leaf(impl.graph().values.size(), -1)
    {
    }

    // `time`: writers before this node count.
    void need(Slot slot, std::uint32_t time)
    {
        if (const std::int32_t d = m_impl.derivedAt[slot]; d >= 0) {
            if (slot < m_leaf.size() && leaf(slot))
                return;
            const Derived &derived = m_impl.derived[static_cast<std::size_t>(d)];
            if (m_impl.aliases.written(slot))
                needWriters(slot, time);
            need(derived.source, derived.forced ? derived.point : time);
            return;
        }
        if (m_impl.overridden[slot] != 0) {
            if (m_impl.aliases.written(slot))
                needWriters(slot, time);
            return;
        }
        if (leaf(slot))
            return;
        if (m_impl.aliases.written(slot))
            needWriters(slot, time);
        const NodeId producer = m_impl.graph().values[slot].producer;
        if (producer.valid())
            m_nodes[producer.get()] = 1;
    }

    [[nodiscard]] std::vector<NodeId> walk()
    {
        const auto &compiled = *m_impl.compiled;
        std::vector<NodeId> result;
        for (std::size_t n = m_nodes.size(); n-- > 0;) {
            if (m_nodes[n] == 0)
                continue;
            result.emplace_back(n);
            const Step &step = compiled.steps[n];
            for (std::uint32_t i = step.inputsBegin; i < step.inputsEnd; ++i)
                need(m_impl.inputSlots[i], static_cast<std::uint32_t>(n));
        }
        std::reverse(result.begin(), result.end());
        return result;
    }

private:
    // A value that is kept from elsewhere; never one whose storage is written later.
    bool leaf(Slot slot)
    {
        auto &known = m_leaf[slot];
        if (known < 0)
            known = m_impl.aliases.hot[slot] == 0 && m_available(ValueId(slot)) ? 1 : 0;
        return known != 0;
    }

    void needWriters(Slot slot, std::uint32_t time)
    {
        auto &done = m_classDone[m_impl.aliases.classOf[slot]]; // writers before this node are in
        for (std::uint32_t w : m_impl.aliases.writers[m_impl.aliases.classOf[slot]])
            if (w >= done && w < time)
                m_nodes[w] = 1;
        done = std::max(done, time);
    }

    const Program::Impl &m_impl;
    const std::function<bool(ValueId)> &m_available;
    std::vector<char> m_nodes;
    std::vector<std::uint32_t> m_classDone;
    std::vector<signed char> m_leaf;
};

} // namespace

std::vector<NodeId> Program::schedule(const std::vector<ValueId> &wanted,
                                      const std::function<bool(ValueId)> &available) const
{
    Scheduler scheduler(*m_impl, available);
    const auto end = static_cast<std::uint32_t>(graph().nodes.size());
    for (ValueId v : wanted) {
        // The graph's results are read when everything has run, other values right after they were made.
        const Slot slot = m_impl->slotOf[v.get()];
        std::uint32_t time = end;
        const bool isResult = std::any_of(graph().outputs.begin(), graph().outputs.end(),
                                          [&](const GraphOutput &o) { return o.value == v; });
        if (!isResult && slot < graph().values.size() && m_impl->derivedAt[slot] < 0) {
            const NodeId producer = graph().values[slot].producer;
            time = producer.valid() ? static_cast<std::uint32_t>(producer.get()) : 0;
        }
        scheduler.need(slot, time);
    }
    return scheduler.walk();
}

std::vector<char> Program::downstream(const std::vector<ValueId> &changed) const
{
    const Impl &impl = *m_impl;
    const auto &compiled = *impl.compiled;
    const std::size_t values = graph().values.size();
    std::vector<char> explicitly(values), tainted(impl.slotCount()), classes(impl.slotCount());
    const auto taint = [&](Slot slot) {
        tainted[slot] = 1;
        if (impl.aliases.written(slot)) // its writers, or writes through it, reach the whole class
            classes[impl.aliases.classOf[slot]] = 1;
    };
    for (ValueId v : changed) {
        explicitly[v.get()] = 1;
        taint(static_cast<Slot>(v.get()));
    }
    const std::function<bool(Slot)> differs = [&](Slot slot) {
        if (tainted[slot] != 0 || classes[impl.aliases.classOf[slot]] != 0)
            return true;
        const std::int32_t d = impl.derivedAt[slot];
        return d >= 0 && differs(impl.derived[static_cast<std::size_t>(d)].source);
    };
    for (std::size_t n = 0; n < compiled.steps.size(); ++n) {
        const Step &step = compiled.steps[n];
        bool differ = false;
        for (std::uint32_t i = step.inputsBegin; i < step.inputsEnd && !differ; ++i)
            differ = explicitly[compiled.inputValues[i]] != 0 || differs(impl.inputSlots[i]);
        if (!differ)
            continue;
        for (std::uint32_t i : step.aliases.written)
            classes[impl.aliases.classOf[impl.inputSlots[step.inputsBegin + i]]] = 1;
        for (ValueId v : graph().nodes[n].outputValues())
            if (impl.overridden[v.get()] == 0)
                tainted[v.get()] = 1;
    }
    std::vector<char> result(values);
    for (std::size_t v = 0; v < values; ++v)
        result[v] = explicitly[v] != 0 || tainted[v] != 0 || differs(impl.slotOf[v]) ? 1 : 0;
    return result;
}

} // namespace dblame

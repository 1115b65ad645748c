// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/engine/program_impl.h"

namespace dblame
{

namespace
{

// Builds the slots of one rewiring. `base` are the alias classes of the graph as the file has it: they say
// which values are written through, and so which redirects must be copies.
class Linker
{
public:
    Linker(Program::Impl &impl, const AliasClasses &base) : m_impl(impl), m_graph(impl.graph()), m_base(base) {}

    void run()
    {
        const std::size_t values = m_graph.values.size();
        m_impl.slotOf.resize(values);
        m_impl.derivedAt.assign(values, -1);
        m_impl.overridden.assign(values, 0);
        m_state.assign(values, State::Unknown);
        for (const auto &[edge, target] : m_impl.rewiring.redirectFor)
            m_edgesOf.insert(edge.first);
        for (const auto &[value, tensor] : m_impl.rewiring.given)
            m_impl.overridden[value.get()] = 1;
        for (const auto &[value, substitute] : m_impl.rewiring.computed)
            m_impl.overridden[value.get()] = 1;
        for (std::size_t v = 0; v < values; ++v)
            m_impl.slotOf[v] = slotFor(NodeId{}, ValueId(v));
        m_impl.inputSlots = m_impl.compiled->inputValues;
        if (m_impl.rewiring.redirect.empty() && m_impl.rewiring.redirectFor.empty())
            return;
        for (std::size_t n = 0; n < m_graph.nodes.size(); ++n) {
            const Step &step = m_impl.compiled->steps[n];
            for (std::uint32_t i = step.inputsBegin; i < step.inputsEnd; ++i)
                m_impl.inputSlots[i] = slotFor(NodeId(n), ValueId(m_impl.compiled->inputValues[i]));
        }
    }

private:
    enum class State : std::uint8_t { Unknown, Open, Done };

    // What `reader` sees when it reads `value`. Redirects are followed one by one, not to the end at once: a value
    // in between may be a copy that its own readers write to.
    Slot slotFor(NodeId reader, ValueId value)
    {
        if (reader.valid() && m_edgesOf.count(reader) != 0 && m_impl.resolve(reader, value) != value)
            for (ValueId at = value;;) {
                if (const auto edge = m_impl.rewiring.redirectFor.find({reader, at});
                    edge != m_impl.rewiring.redirectFor.end())
                    return redirected(value, nextHop(reader, value), slotFor(reader, nextHop(reader, value)));
                const auto next = m_impl.rewiring.redirect.find(at);
                if (next == m_impl.rewiring.redirect.end())
                    break; // no edge of its own on the way: as for everyone
                at = next->second;
            }
        if (m_state[value.get()] == State::Done)
            return m_impl.slotOf[value.get()];
        if (m_state[value.get()] == State::Open) // a substitute that reads itself: leave it alone
            return static_cast<Slot>(value.get());
        m_state[value.get()] = State::Open;
        const bool here = m_impl.resolve(NodeId{}, value) == value; // not redirected, or in a ring
        const ValueId next = here ? value : nextHop(NodeId{}, value);
        const Slot slot = here ? own(value) : redirected(value, next, slotFor(NodeId{}, next));
        m_state[value.get()] = State::Done;
        m_impl.slotOf[value.get()] = slot;
        return slot;
    }

    [[nodiscard]] ValueId nextHop(NodeId reader, ValueId value) const
    {
        if (reader.valid())
            if (const auto edge = m_impl.rewiring.redirectFor.find({reader, value});
                edge != m_impl.rewiring.redirectFor.end())
                return edge->second;
        return m_impl.rewiring.redirect.at(value);
    }

    // `value` is read as `target`, which lies in `source`: there, or in a copy where `value` is written through, or
    // where `target` is written after the nodes that used to read it.
    Slot redirected(ValueId value, ValueId target, Slot source)
    {
        const std::uint32_t point = readPoint(value, target);
        const bool copy = m_base.hot[value.get()] != 0 || m_base.writtenFrom(static_cast<Slot>(target.get()), point);
        return copy ? addDerived({newSlot(), source, value, {}, point, false}) : source;
    }

    // The slot of a value that is not redirected.
    Slot own(ValueId value)
    {
        const auto slot = static_cast<Slot>(value.get());
        const auto it = m_impl.rewiring.computed.find(value);
        if (it == m_impl.rewiring.computed.end() || m_impl.rewiring.given.count(value) != 0)
            return slot;
        const Slot source = slotFor(NodeId{}, it->second.source);
        return addDerived({slot, source, value, it->second.function, readPoint(value, it->second.source), false});
    }

    Slot newSlot()
    {
        m_impl.derivedAt.push_back(-1);
        return static_cast<Slot>(m_impl.derivedAt.size() - 1);
    }

    Slot addDerived(Derived derived)
    {
        const Slot target = derived.target;
        m_impl.derivedAt[target] = static_cast<std::int32_t>(m_impl.derived.size());
        m_impl.derived.push_back(std::move(derived));
        return target;
    }

    // When the file's own nodes read `source` on the way to `value`: the first of them.
    std::uint32_t readPoint(ValueId value, ValueId source) const
    {
        const NodeId from = m_graph.values[value.get()].producer;
        if (!from.valid())
            return 0;
        const NodeId source_node = m_graph.values[source.get()].producer;
        std::uint32_t first = static_cast<std::uint32_t>(from.get());
        std::vector<NodeId> open = {from};
        std::unordered_map<NodeId, char> seen;
        while (!open.empty()) {
            const NodeId n = open.back();
            open.pop_back();
            if (!seen.emplace(n, 1).second || (source_node.valid() && n <= source_node))
                continue;
            const Step &step = m_impl.compiled->steps[n.get()];
            for (std::uint32_t i = step.inputsBegin; i < step.inputsEnd; ++i) {
                const Slot read = m_impl.compiled->inputValues[i];
                if (read == source.get())
                    first = std::min(first, static_cast<std::uint32_t>(n.get()));
                else if (m_graph.values[read].producer.valid())
                    open.push_back(m_graph.values[read].producer);
            }
        }
        return first;
    }

    Program::Impl &m_impl;
    const Graph &m_graph;
    const AliasClasses &m_base;
    std::vector<State> m_state;
    std::unordered_set<NodeId> m_edgesOf; // readers that have edges of their own
};

} // namespace

ValueId Program::Impl::resolve(NodeId reader, ValueId value) const
{
    if (rewiring.redirect.empty() && rewiring.redirectFor.empty())
        return value;
    ValueId at = value;
    for (std::size_t steps = 0; steps <= rewiring.redirect.size() + rewiring.redirectFor.size(); ++steps) {
        if (reader.valid()) {
            if (const auto edge = rewiring.redirectFor.find({reader, at}); edge != rewiring.redirectFor.end()) {
                at = edge->second;
                continue;
            }
        }
        const auto it = rewiring.redirect.find(at);
        if (it == rewiring.redirect.end())
            return at;
        at = it->second;
    }
    return value; // a ring of redirects: none of them holds
}

void Program::Impl::link()
{
    const auto base = findAliases(*compiled, compiled->inputValues, graph().values.size(), sharing);
    Linker(*this, base).run();
    aliases = slotCount() == graph().values.size() && inputSlots == compiled->inputValues
                  ? base
                  : findAliases(*compiled, inputSlots, slotCount(), sharing);
    for (std::size_t d = 0; d < derived.size(); ++d) {
        derived[d].forced = aliases.writtenFrom(derived[d].source, derived[d].point);
        if (derived[d].forced)
            forcedOrder.push_back(static_cast<std::uint32_t>(d));
    }
    std::stable_sort(forcedOrder.begin(), forcedOrder.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return derived[a].point < derived[b].point; });
    for (std::size_t v = 0; v < model->m_tensors.size(); ++v)
        if (model->m_tensors[v].defined() && aliases.written(static_cast<Slot>(v)))
            privateStored.push_back(static_cast<Slot>(v));
}

} // namespace dblame

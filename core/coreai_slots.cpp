// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/coreai_slots.h"

#include <algorithm>

#include "core/graph_query.h"

namespace dblame
{

CoreAiSlots::CoreAiSlots(const CoreAiGraph &graph)
    : m_graph(graph), m_inputs(graph.nodes().size()), m_outputs(graph.nodes().size())
{
}

void CoreAiSlots::clearOutput(int entry)
{
    m_outputs[static_cast<std::size_t>(entry)].reset();
}

void CoreAiSlots::clearOperator(int entry)
{
    clearOutput(entry);
    m_inputs[static_cast<std::size_t>(entry)].assign(m_graph.at(entry).inputs.size(), NoSpec{});
}

ValueId CoreAiSlots::tensorOf(CoreAiSlot slot) const
{
    return slot.input < 0 ? m_graph.at(slot.entry).value
                          : m_graph.at(m_graph.at(slot.entry).inputs[static_cast<std::size_t>(slot.input)]).value;
}

SpecKey CoreAiSlots::keyOf(CoreAiSlot slot) const
{
    return slot.input < 0 ? outputKey(tensorOf(slot)) : edgeKey(tensorOf(slot), m_graph.at(slot.entry).node);
}

void CoreAiSlots::ask(CoreAiSlot slot, AskedSpec spec)
{
    const auto entry = static_cast<std::size_t>(slot.entry);
    if (slot.input < 0) {
        // An output that asks for nothing has no key.
        if (std::holds_alternative<NoSpec>(spec))
            m_outputs[entry].reset();
        else
            m_outputs[entry] = std::move(spec);
        return;
    }
    m_inputs[entry].resize(m_graph.at(slot.entry).inputs.size());
    m_inputs[entry][static_cast<std::size_t>(slot.input)] = std::move(spec);
}

template <class F>
void CoreAiSlots::eachSlot(const F &f)
{
    for (int i = 0; i < m_graph.size(); ++i) {
        for (int k = 0; k < static_cast<int>(m_graph.at(i).inputs.size()); ++k)
            f(CoreAiSlot{i, k});
        f(CoreAiSlot{i, -1});
    }
}

// A slot leaves its group: the next one of the group becomes the one the others share with.
void CoreAiSlots::detach(CoreAiSlot slot)
{
    const SpecKey key = keyOf(slot);
    std::optional<CoreAiSlot> heir;
    std::optional<AskedSpec> spec = current(slot);
    if (!spec || std::holds_alternative<SharedWith>(*spec))
        return;
    CoreAiSlots::eachSlot([&](CoreAiSlot other) {
        const auto asked = current(other);
        const auto *shared = asked ? std::get_if<SharedWith>(&*asked) : nullptr;
        if (other == slot || !shared || shared->key != key)
            return;
        if (!heir) {
            heir = other;
            CoreAiSlots::ask(other, *spec);
        } else {
            CoreAiSlots::ask(other, SharedWith{keyOf(*heir)});
        }
    });
}

std::optional<AskedSpec> CoreAiSlots::current(CoreAiSlot slot) const
{
    const auto entry = static_cast<std::size_t>(slot.entry);
    if (slot.input < 0)
        return m_outputs[entry];
    const auto input = static_cast<std::size_t>(slot.input);
    return input < m_inputs[entry].size() ? m_inputs[entry][input] : std::nullopt;
}

// The slot whose spec counts for this one; nullopt when nothing is asked.
std::optional<SpecKey> CoreAiSlots::rootOf(CoreAiSlot slot) const
{
    const auto asked = current(slot);
    if (!asked || std::holds_alternative<NoSpec>(*asked))
        return std::nullopt;
    const auto *shared = std::get_if<SharedWith>(&*asked);
    return shared ? shared->key : keyOf(slot);
}

void CoreAiSlots::replace(CoreAiSlot slot, const SpecOverride &change)
{
    // Readers that were to see what the producer writes still are.
    std::vector<CoreAiSlot> followers;
    if (slot.input < 0 && change.spec)
        for (const int user : m_graph.at(slot.entry).users) {
            const CoreAiSlot reader{user, m_graph.inputIndex(user, slot.entry)};
            if (m_graph.isCall(user) && rootOf(reader) && rootOf(reader) == rootOf(slot))
                followers.push_back(reader);
        }
    CoreAiSlots::detach(slot);
    for (const CoreAiSlot &reader : followers) {
        CoreAiSlots::detach(reader);
        CoreAiSlots::ask(reader, SharedWith{keyOf(slot)});
    }
    if (change.spec)
        CoreAiSlots::ask(slot, *change.spec);
    else if (slot.input < 0)
        m_outputs[static_cast<std::size_t>(slot.entry)].reset();
    else
        CoreAiSlots::ask(slot, NoSpec{});
}

void CoreAiSlots::apply(const SpecOverride &change, int entry)
{
    const Facet facet = change.facet;
    int tensorPosition = 0;
    for (int k = 0; k < static_cast<int>(m_graph.at(entry).inputs.size()); ++k) {
        const int producer = m_graph.at(entry).inputs[static_cast<std::size_t>(k)];
        const auto &value = m_graph.at(producer).value;
        if (!value.valid() || !m_graph.graph().value(value).meta)
            continue;
        const int position = tensorPosition++;
        if (!m_graph.isFloat(producer) || m_graph.isSingleElement(producer))
            continue;
        const bool weight = m_graph.isState(producer);
        const bool wanted = weight
                                ? facet == Facet::All || facet == Facet::Weight
                                : facet == Facet::All || facet == Facet::Act ||
                                      (facet == Facet::In && (change.inputIndex < 0 || change.inputIndex == position));
        // A spec replaces what is asked; only a weight that has none yet is not given one (a bias).
        if (wanted && (!weight || current({entry, k}) || isWeightArgument(entry, value)))
            CoreAiSlots::replace({entry, k}, change);
    }
    if ((facet == Facet::All || facet == Facet::Act || facet == Facet::Out) && m_graph.isFloat(entry) &&
        !m_graph.isSingleElement(entry))
        CoreAiSlots::replace({entry, -1}, change);
}

bool CoreAiSlots::isWeightArgument(int entry, ValueId value) const
{
    return valueArgument(m_graph.graph().node(m_graph.at(entry).node), "weight") == value;
}

Result<SpecMap> CoreAiSlots::write() const
{
    SpecMap asked;
    for (int i = 0; i < m_graph.size(); ++i) {
        const auto entry = static_cast<std::size_t>(i);
        const bool any = std::any_of(m_inputs[entry].begin(), m_inputs[entry].end(),
                                     [](const auto &spec) { return spec.has_value(); });
        const auto &inputs = m_graph.at(i).inputs;
        for (std::size_t k = 0; any && k < inputs.size(); ++k)
            if (m_graph.at(inputs[k]).value.valid())
                asked.set(keyOf({i, static_cast<int>(k)}), m_inputs[entry][k].value_or(NoSpec{}));
        if (m_outputs[entry] && m_graph.at(i).value.valid())
            asked.set(outputKey(m_graph.at(i).value), *m_outputs[entry]);
    }
    for (const auto &[key, spec] : asked.entries())
        if (const auto *shared = std::get_if<SharedWith>(&spec); shared && !asked.find(shared->key))
            return fail(ErrorCode::Usage, m_graph.graph().value(shared->key.value).name,
                        "module_output_spec takes the spec from a tensor that others share; coreai-opt fails on this "
                        "(KeyError). Use op_output_spec of the module instead");
    return asked;
}

} // namespace dblame

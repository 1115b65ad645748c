// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/placement_annotations.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/graph_query.h"
#include "core/placement_patterns.h"

namespace dblame
{

void Annotation::setInput(ValueId value, AskedSpec spec)
{
    const auto it = std::find_if(inputs.begin(), inputs.end(), [&](const auto &input) { return input.first == value; });
    if (it == inputs.end())
        inputs.emplace_back(value, std::move(spec));
    else
        it->second = std::move(spec);
}

Annotations::Annotations(const Graph &graph)
    : m_graph(graph), m_ofNode(graph.nodes.size()), m_ofValue(graph.values.size())
{
}

Annotation &Annotations::at(ValueId value)
{
    const NodeId producer = m_graph.value(value).producer;
    if (producer.valid() && onlyResult(m_graph.node(producer)) == value)
        return m_ofNode[producer.get()];
    return m_ofValue[value.get()];
}

SpecMap Annotations::specs() const
{
    SpecMap specs;
    for (std::size_t n = 0; n < m_ofNode.size(); ++n) {
        const Annotation &annotation = m_ofNode[n];
        for (const auto &[value, spec] : annotation.inputs)
            specs.set(edgeKey(value, NodeId(n)), spec);
        const ValueId result = onlyResult(m_graph.nodes[n]);
        if (result.valid()) {
            if (annotation.output)
                specs.set(outputKey(result), *annotation.output);
            continue;
        }
        for (ValueId value : m_graph.nodes[n].outputValues())
            if (m_ofValue[value.get()].output)
                specs.set(outputKey(value), *m_ofValue[value.get()].output);
    }
    return specs;
}

namespace
{

// Changes what is asked as the overrides say, and tells afterwards which of them came to nothing.
class Overrides
{
public:
    Overrides(const Graph &graph, const Annotations &annotations, const Pt2eConfig &config, SpecMap &specs)
        : m_graph(graph), m_annotations(annotations), m_config(config), m_specs(specs),
          m_depends(dependsOnUserInput(graph))
    {
        for (std::size_t i = 0; i < m_specs.entries().size(); ++i) {
            m_entryOf.emplace(pairOf(m_specs.entries()[i].key), i);
            if (const auto *shared = std::get_if<SharedWith>(&m_specs.entries()[i].spec))
                m_sharers[pairOf(shared->key)].push_back(m_specs.entries()[i].key);
        }
    }

    Result<void> apply()
    {
        for (std::size_t i = 0; i < m_config.overrides.size(); ++i)
            if (auto done = applyOne(i); !done)
                return done;
        return {};
    }

    // After grouping: overrides that reached nothing, and those whose wish was outvoted by a site of the same tensor.
    void report(const GroupedPlacement &placed, const std::string &quantizer, std::vector<std::string> &warnings) const
    {
        for (std::size_t i = 0; i < m_config.overrides.size(); ++i)
            if (!m_reached.contains(i))
                warnings.push_back("override '" + m_config.overrides[i].text + "' changes nothing: " + quantizer +
                                   " asks for no such site there");
        std::set<std::size_t> told;
        for (const auto &[entry, wish] : m_wishes) {
            const int observer = placed.observerOf[entry];
            const auto &spec = m_config.overrides[wish].spec;
            if (observer < 0 || !spec || !told.insert(wish).second)
                continue;
            const TensorSpec *asked = std::get_if<TensorSpec>(&m_specs.entries()[entry].spec);
            if (asked && placed.placement.observers[static_cast<std::size_t>(observer)].spec != *asked)
                warnings.push_back("override '" + m_config.overrides[wish].text + "' is outvoted at " +
                                   m_graph.value(m_specs.entries()[entry].key.value).name +
                                   ": another site of the tensor asks for the same range first, and one observer "
                                   "serves both; override that site too");
        }
    }

    // The override that left a site of this operator's weights float, or nullptr.
    [[nodiscard]] const SpecOverride *declinedWeight(NodeId node) const
    {
        const auto it = m_declined.find(node);
        return it == m_declined.end() ? nullptr : &m_config.overrides[it->second];
    }

private:
    static std::pair<ValueId, NodeId> pairOf(const SpecKey &key) { return {key.value, key.reader}; }

    Result<void> applyOne(std::size_t index)
    {
        const SpecOverride &change = m_config.overrides[index];
        for (NodeId node : change.nodes) {
            if (change.facet != Facet::Out) {
                const auto arguments = distinctTensorArguments(m_graph, m_graph.node(node));
                for (std::size_t i = 0; i < arguments.size(); ++i)
                    if (facetCovers(change, arguments[i], static_cast<int>(i)))
                        if (auto done = set(edgeKey(arguments[i], node), index); !done)
                            return done;
            }
            if (change.facet == Facet::All || change.facet == Facet::Out || change.facet == Facet::Act)
                for (ValueId value : m_graph.node(node).outputValues())
                    if (auto done = set(outputKey(value), index); !done)
                        return done;
        }
        return {};
    }

    [[nodiscard]] bool facetCovers(const SpecOverride &change, ValueId value, int position) const
    {
        const bool isActivation = m_depends[value.get()] != 0;
        switch (change.facet) {
        case Facet::All:
            return true;
        case Facet::Weight:
            return !isActivation;
        case Facet::In:
            return change.inputIndex >= 0 ? position == change.inputIndex : isActivation;
        case Facet::Act:
            return isActivation;
        case Facet::Out:
            break;
        }
        return false;
    }

    Result<void> set(SpecKey key, std::size_t index)
    {
        const AskedSpec *asked = m_specs.find(key);
        if (!asked || std::holds_alternative<NoSpec>(*asked))
            return {};
        const SpecOverride &change = m_config.overrides[index];
        m_reached.insert(index);
        if (!change.spec) {
            if (!key.isOutput() && !m_depends[key.value.get()])
                m_declined[key.reader] = index;
            remove(key);
            return {};
        }
        TensorSpec spec = *change.spec;
        if (auto axis = resolveAxis(key, spec, change.text); !axis)
            return axis;
        m_specs.set(key, spec);
        m_wishes[m_entryOf.at(pairOf(key))] = index;
        return {};
    }

    // What shared with the key: an operator that only passed the spec on asks for nothing any more, another takes over
    // what the key asked for.
    void remove(SpecKey key)
    {
        const AskedSpec was = *m_specs.find(key);
        m_specs.set(key, NoSpec{});
        const auto it = m_sharers.find(pairOf(key));
        if (it == m_sharers.end())
            return;
        std::optional<SpecKey> heir;
        for (const SpecKey &sharer : it->second) {
            const auto *shared = std::get_if<SharedWith>(m_specs.find(sharer));
            if (!shared || shared->key != key)
                continue;
            const NodeId node = sharer.isOutput() ? m_graph.value(sharer.value).producer : sharer.reader;
            if (node.valid() && m_annotations.isPropagated(node)) {
                remove(sharer);
            } else if (heir) {
                m_specs.set(sharer, SharedWith{*heir});
                m_sharers[pairOf(*heir)].push_back(sharer);
            } else {
                heir = sharer;
                m_specs.set(sharer, was);
                if (const auto *further = std::get_if<SharedWith>(&was))
                    m_sharers[pairOf(further->key)].push_back(sharer);
            }
        }
    }

    // An absent axis is the operator's: the output channels of a weight, the channels of an activation.
    Result<void> resolveAxis(const SpecKey &key, TensorSpec &spec, const std::string &text) const
    {
        if (spec.granularity != Granularity::PerChannel && spec.granularity != Granularity::PerBlock)
            return {};
        const auto &meta = m_graph.value(key.value).meta;
        const int rank = meta ? static_cast<int>(meta->sizes.size()) : 0;
        if (rank == 0)
            return fail(ErrorCode::Usage, text, m_graph.value(key.value).name + " has no dimensions to split");
        if (!spec.axis) {
            const bool isWeight = !key.isOutput() && !m_depends[key.value.get()];
            const bool isTransposed =
                isWeight && operatorFamily(m_graph.node(key.reader)) == "conv_transpose" && rank > 1;
            const bool alongInput = spec.granularity == Granularity::PerBlock;
            if (isWeight)
                spec.axis = rank > 1 && isTransposed != alongInput ? 1 : 0;
            else
                spec.axis = rank >= 4 ? 1 : rank - 1;
        }
        if (*spec.axis < 0)
            spec.axis = *spec.axis + rank;
        if (*spec.axis < 0 || *spec.axis >= rank)
            return fail(ErrorCode::Usage, text,
                        "axis outside the " + std::to_string(rank) + " dimensions of " + m_graph.value(key.value).name);
        return {};
    }

    const Graph &m_graph;
    const Annotations &m_annotations;
    const Pt2eConfig &m_config;
    SpecMap &m_specs;
    std::vector<char> m_depends;
    std::map<std::pair<ValueId, NodeId>, std::size_t> m_entryOf;
    std::map<std::pair<ValueId, NodeId>, std::vector<SpecKey>> m_sharers;
    std::set<std::size_t> m_reached;
    std::map<std::size_t, std::size_t> m_wishes; // entry -> last override with a spec
    std::unordered_map<NodeId, std::size_t> m_declined;
};

} // namespace

Result<Placement> finishPlacement(const Graph &graph, Annotations &annotations, const Pt2eConfig &config,
                                  const FinishOptions &options)
{
    SpecMap specs = annotations.specs();
    Overrides overrides(graph, annotations, config, specs);
    if (auto done = overrides.apply(); !done)
        return tl::unexpected(done.error());
    auto placed = placeObservers(graph, specs);
    if (!placed)
        return tl::unexpected(placed.error());
    Placement placement = std::move(placed->placement);
    placed->placement.observers = placement.observers;
    overrides.report(*placed, options.quantizer, placement.warnings);

    std::unordered_set<NodeId> held; // operators whose weight has a site
    for (const PlacedSite &site : placement.sites)
        if (site.role == SiteRole::Weight) {
            held.insert(site.readers.begin(), site.readers.end());
            if (site.owner.valid())
                held.insert(site.owner);
        }
    const auto depends = dependsOnUserInput(graph);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        const NodeId node(n);
        if (held.contains(node) || weightsOf(graph, graph.nodes[n], depends).empty())
            continue;
        std::string reason;
        if (const SpecOverride *declined = overrides.declinedWeight(node))
            reason = "its weight is left float by the override '" + declined->text + "'";
        else if (config.excluded.contains(node))
            reason = "left float by the recipe";
        else
            reason = options.whyFloat(node);
        placement.leftFloat.push_back({node, std::move(reason)});
    }
    return placement;
}

TensorSpec pt2eActivationSpec(const Pt2eConfig &config)
{
    TensorSpec spec;
    spec.type = config.x86 ? ElementType::UInt8 : ElementType::Int8;
    spec.quantMin = config.x86 ? 0 : -128;
    spec.quantMax = config.x86 && !config.reduceRange ? 255 : 127;
    spec.scheme = Scheme::Affine;
    spec.granularity = Granularity::PerTensor;
    spec.eps = 1.0 / 4096;
    spec.observer = ObserverKind::Histogram;
    if (config.qat) {
        spec.observer = ObserverKind::MovingAverage;
        spec.rule = QparamRule::FusedQat;
    }
    if (config.dynamic) {
        spec.observer = ObserverKind::Dynamic;
        spec.rule = QparamRule::Torchao;
    }
    return spec;
}

TensorSpec pt2eWeightSpec(const Pt2eConfig &config)
{
    TensorSpec spec;
    spec.type = ElementType::Int8;
    spec.quantMin = config.x86 ? -128 : -127;
    spec.quantMax = 127;
    spec.scheme = Scheme::Symmetric;
    if (config.perChannel || config.x86) {
        spec.granularity = Granularity::PerChannel;
        spec.axis = 0;
    }
    spec.eps = 1.0 / 4096;
    spec.observer = ObserverKind::MinMax;
    if (config.qat) {
        spec.observer = ObserverKind::MovingAverage;
        spec.rule = QparamRule::FusedQat;
    }
    return spec;
}

} // namespace dblame

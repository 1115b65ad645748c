// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/placement_diff.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "core/graph_query.h"
#include "core/number_text.h"

namespace dblame
{

namespace
{

const TensorSpec &specOf(const Placement &placement, const PlacedSite &site)
{
    return placement.observers[static_cast<std::size_t>(site.instance)].spec;
}

int chainLength(const Placement &placement, const PlacedSite &site)
{
    int length = 0;
    for (int at = site.after; at >= 0; at = placement.sites[static_cast<std::size_t>(at)].after)
        ++length;
    return length;
}

// One placement with its graph. Two graphs of one model have their names in common, not their ids.
class Side
{
public:
    Side(const Graph &graph, const Placement &placement) : m_graph(graph), m_placement(placement)
    {
        for (const Value &value : graph.values)
            m_values.emplace(value.name, value.producer.valid() ? value.producer.index : -1);
        for (std::size_t i = 0; i < graph.nodes.size(); ++i)
            m_nodes.emplace(graph.nodes[i].name, static_cast<int>(i));
    }
    [[nodiscard]] const Graph &graph() const { return m_graph; }
    [[nodiscard]] const Placement &placement() const { return m_placement; }
    [[nodiscard]] std::string nodeName(NodeId node) const
    {
        return node.valid() ? m_graph.node(node).name : std::string();
    }
    // The value's name in `other`: one behind a norm that is folded there is the convolution's.
    [[nodiscard]] const std::string &valueName(ValueId value, const Side &other) const
    {
        const std::string &name = m_graph.value(value).name;
        const Node *producer = m_graph.producer(value);
        if (other.m_values.contains(name) || producer == nullptr ||
            producer->opType().find("batch_norm") == std::string::npos)
            return name;
        const ValueId normed = valueArgument(*producer, "input");
        return normed.valid() ? m_graph.value(normed).name : name;
    }
    // Position in the order of execution of `other`: that of the value, or behind the last node before it that is
    // there too.
    [[nodiscard]] int placeIn(const Side &other, ValueId value) const
    {
        const auto found = other.m_values.find(valueName(value, other));
        if (found != other.m_values.end())
            return found->second;
        for (int at = m_graph.value(value).producer.valid() ? m_graph.value(value).producer.index : -1; at >= 0; --at)
            if (const auto node = other.m_nodes.find(m_graph.nodes[static_cast<std::size_t>(at)].name);
                node != other.m_nodes.end())
                return node->second;
        return -1;
    }

private:
    const Graph &m_graph;
    const Placement &m_placement;
    std::unordered_map<std::string_view, int> m_values, m_nodes; // position of the producer; of the node
};

// What makes two sites the same one: value, role, owner, place in a chain, number among those that are alike.
using Identity = std::tuple<std::string, SiteRole, std::string, int, int>;
Identity identityOf(const Side &side, const PlacedSite &site, const Side &other)
{
    // An activation's output site is its tensor's, whoever asked; inputs and weights are their reader's.
    const std::string owner = site.role == SiteRole::Output ? std::string() : side.nodeName(site.owner);
    return {side.valueName(site.value, other), site.role, owner, chainLength(side.placement(), site), 0};
}

// Of every site; sites that are alike in this are numbered.
std::vector<Identity> identities(const Side &side, const Side &other)
{
    std::vector<Identity> result;
    std::map<Identity, int> counts;
    for (const PlacedSite &site : side.placement().sites) {
        Identity identity = identityOf(side, site, other);
        std::get<4>(identity) = counts[identity]++;
        result.push_back(identity);
    }
    return result;
}

// Ids of the sites that share the observer, this one left out.
std::set<std::string> companions(const Placement &placement, const PlacedSite &site)
{
    std::set<std::string> ids;
    for (const PlacedSite &other : placement.sites)
        if (other.instance == site.instance && other.id != site.id)
            ids.insert(other.id);
    return ids;
}

std::string joined(const std::set<std::string> &ids)
{
    std::string text;
    for (const auto &id : ids)
        text += (text.empty() ? "" : ", ") + id;
    return text.empty() ? "nothing" : text;
}

std::string boundsText(const TensorSpec &spec)
{
    if (!spec.low && !spec.high)
        return {};
    const auto bound = [](const std::optional<double> &value) { return value ? shortestText(*value) : std::string(); };
    std::string text = ", range " + bound(spec.low) + ".." + bound(spec.high);
    return text;
}

std::string specWords(const TensorSpec &spec)
{
    std::string text = spec.text();
    if (spec.axis && spec.granularity != Granularity::PerTensor)
        text += ", axis " + std::to_string(*spec.axis);
    return text + boundsText(spec);
}

std::string readerNames(const Side &side, const PlacedSite &site)
{
    std::string text;
    for (const NodeId reader : site.readers)
        text += (text.empty() ? "" : ", ") + side.nodeName(reader);
    if (site.readByOutput)
        text += text.empty() ? "the output" : ", the output";
    return text.empty() ? "nothing" : text;
}

std::string changeWords(const Side &before, const PlacedSite &a, const Side &after, const PlacedSite &b)
{
    std::string text;
    const auto add = [&text](const std::string &part) { text += (text.empty() ? "" : "; ") + part; };
    const TensorSpec &from = specOf(before.placement(), a);
    const TensorSpec &to = specOf(after.placement(), b);
    if (from != to) {
        const std::string words = specWords(from);
        const std::string newWords = specWords(to);
        add(words == newWords ? "rounds or averages differently (" + words + ")" : words + " -> " + newWords);
    }
    const std::string readers = readerNames(before, a);
    const std::string newReaders = readerNames(after, b);
    if (readers != newReaders)
        add("read by " + readers + " -> " + newReaders);
    const auto had = companions(before.placement(), a);
    const auto has = companions(after.placement(), b);
    if (had != has)
        add("shares its observer with " + joined(had) + " -> " + joined(has));
    return text;
}

void noteWeights(const Side &before, const Side &after, PlacementDiff &diff)
{
    // Of every node that is left float, in execution order.
    const auto reasons = [](const Side &side) {
        std::vector<std::pair<std::string, std::string>> list;
        for (const LeftFloat &entry : side.placement().leftFloat)
            list.emplace_back(side.nodeName(entry.node), entry.reason);
        return list;
    };
    const auto was = reasons(before);
    const auto is = reasons(after);
    const auto names = [](const auto &list) {
        std::set<std::string> set;
        for (const auto &[node, reason] : list)
            set.insert(node);
        return set;
    };
    const auto wasFloat = names(was);
    const auto isFloat = names(is);
    for (const auto &[node, reason] : is)
        if (!wasFloat.contains(node))
            diff.notes.push_back(node + ": its weight becomes float; " + reason);
    for (const auto &[node, reason] : was)
        if (!isFloat.contains(node))
            diff.notes.push_back(node + ": its weight becomes quantized");
    const auto &known = before.placement().warnings;
    for (const auto &warning : after.placement().warnings)
        if (std::find(known.begin(), known.end(), warning) == known.end())
            diff.notes.push_back(warning);
}

} // namespace

const char *siteChangeName(SiteChange change)
{
    switch (change) {
    case SiteChange::Appears:
        return "appears";
    case SiteChange::Vanishes:
        return "vanishes";
    case SiteChange::Changes:
        return "changes";
    }
    return "";
}

PlacementDiff comparePlacements(const Graph &graph, const Placement &before, const Placement &after)
{
    return comparePlacements(graph, before, graph, after);
}

PlacementDiff comparePlacements(const Graph &beforeGraph, const Placement &before, const Graph &afterGraph,
                                const Placement &after)
{
    const Side old(beforeGraph, before);
    const Side now(afterGraph, after);
    PlacementDiff diff;
    std::map<Identity, int> known;
    const auto was = identities(old, now);
    const auto is = identities(now, old);
    for (std::size_t i = 0; i < was.size(); ++i)
        known.try_emplace(was[i], static_cast<int>(i));
    std::vector<char> met(before.sites.size(), 0);
    struct Placed {
        std::tuple<int, int, int> place;
        PlacementChange change;
    };
    std::vector<Placed> found;
    const auto placeOf = [&now](const Side &side, const PlacedSite &site) {
        return std::tuple(side.placeIn(now, site.value), chainLength(side.placement(), site),
                          static_cast<int>(site.value.index));
    };
    for (std::size_t i = 0; i < after.sites.size(); ++i) {
        const PlacedSite &site = after.sites[i];
        const auto it = known.find(is[i]);
        if (it == known.end()) {
            found.push_back({placeOf(now, site),
                             {SiteChange::Appears, site.id, -1, static_cast<int>(i), specWords(specOf(after, site))}});
            continue;
        }
        met[static_cast<std::size_t>(it->second)] = 1;
        const std::string words = changeWords(old, before.sites[static_cast<std::size_t>(it->second)], now, site);
        if (words.empty())
            ++diff.same;
        else
            found.push_back(
                {placeOf(now, site), {SiteChange::Changes, site.id, it->second, static_cast<int>(i), words}});
    }
    for (std::size_t i = 0; i < before.sites.size(); ++i)
        if (met[i] == 0)
            found.push_back({placeOf(old, before.sites[i]),
                             {SiteChange::Vanishes, before.sites[i].id, static_cast<int>(i), -1,
                              specWords(specOf(before, before.sites[i])) + " -> float"}});
    std::stable_sort(found.begin(), found.end(), [](const Placed &a, const Placed &b) { return a.place < b.place; });
    for (Placed &placed : found)
        diff.changes.push_back(std::move(placed.change));
    noteWeights(old, now, diff);
    return diff;
}

} // namespace dblame

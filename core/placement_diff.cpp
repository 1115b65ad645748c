// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/placement_diff.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

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

// What makes two sites the same one.
using Identity = std::tuple<std::int32_t, SiteRole, std::int32_t, int, int>;
Identity identityOf(const Placement &placement, const PlacedSite &site)
{
    // An activation's output site is its tensor's, whoever asked; inputs and weights are their reader's.
    const std::int32_t owner = site.role == SiteRole::Output ? -1 : site.owner.index;
    return {site.value.index, site.role, owner, chainLength(placement, site), 0};
}

// Of every site; sites that are alike in this are numbered.
std::vector<Identity> identities(const Placement &placement)
{
    std::vector<Identity> result;
    std::map<Identity, int> counts;
    for (const PlacedSite &site : placement.sites) {
        Identity identity = identityOf(placement, site);
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

std::string readerNames(const Graph &graph, const PlacedSite &site)
{
    std::string text;
    for (const NodeId reader : site.readers)
        text += (text.empty() ? "" : ", ") + graph.node(reader).name;
    if (site.readByOutput)
        text += text.empty() ? "the output" : ", the output";
    return text.empty() ? "nothing" : text;
}

std::string changeWords(const Graph &graph, const Placement &before, const PlacedSite &a, const Placement &after,
                        const PlacedSite &b)
{
    std::string text;
    const auto add = [&text](const std::string &part) { text += (text.empty() ? "" : "; ") + part; };
    const TensorSpec &from = specOf(before, a);
    const TensorSpec &to = specOf(after, b);
    if (from != to) {
        const std::string words = specWords(from);
        const std::string newWords = specWords(to);
        add(words == newWords ? "rounds or averages differently (" + words + ")" : words + " -> " + newWords);
    }
    if (a.readers != b.readers || a.readByOutput != b.readByOutput)
        add("read by " + readerNames(graph, a) + " -> " + readerNames(graph, b));
    const auto had = companions(before, a);
    const auto has = companions(after, b);
    if (had != has)
        add("shares its observer with " + joined(had) + " -> " + joined(has));
    return text;
}

void noteWeights(const Graph &graph, const Placement &before, const Placement &after, PlacementDiff &diff)
{
    const auto reasons = [](const Placement &placement) {
        std::map<NodeId, std::string> map;
        for (const LeftFloat &entry : placement.leftFloat)
            map.emplace(entry.node, entry.reason);
        return map;
    };
    const auto was = reasons(before);
    const auto is = reasons(after);
    for (const auto &[node, reason] : is)
        if (!was.contains(node))
            diff.notes.push_back(graph.node(node).name + ": its weight becomes float; " + reason);
    for (const auto &[node, reason] : was)
        if (!is.contains(node))
            diff.notes.push_back(graph.node(node).name + ": its weight becomes quantized");
    for (const auto &warning : after.warnings)
        if (std::find(before.warnings.begin(), before.warnings.end(), warning) == before.warnings.end())
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

bool sameIds(const Graph &a, const Graph &b)
{
    const auto sameName = [](const auto &x, const auto &y) { return x.name == y.name; };
    return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), sameName) &&
           std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), sameName);
}

PlacementDiff comparePlacements(const Graph &graph, const Placement &before, const Placement &after)
{
    PlacementDiff diff;
    std::map<Identity, int> known;
    const auto was = identities(before);
    const auto is = identities(after);
    for (std::size_t i = 0; i < was.size(); ++i)
        known.try_emplace(was[i], static_cast<int>(i));
    std::vector<char> met(before.sites.size(), 0);
    struct Placed {
        std::tuple<std::int32_t, int, int> place;
        PlacementChange change;
    };
    std::vector<Placed> found;
    const auto placeOf = [&](const Placement &placement, const PlacedSite &site) {
        return std::tuple(graph.value(site.value).producer.index, chainLength(placement, site),
                          static_cast<int>(site.value.index));
    };
    for (std::size_t i = 0; i < after.sites.size(); ++i) {
        const PlacedSite &site = after.sites[i];
        const auto it = known.find(is[i]);
        if (it == known.end()) {
            found.push_back({placeOf(after, site),
                             {SiteChange::Appears, site.id, -1, static_cast<int>(i), specWords(specOf(after, site))}});
            continue;
        }
        met[static_cast<std::size_t>(it->second)] = 1;
        const PlacedSite &old = before.sites[static_cast<std::size_t>(it->second)];
        const std::string words = changeWords(graph, before, old, after, site);
        if (words.empty())
            ++diff.same;
        else
            found.push_back(
                {placeOf(after, site), {SiteChange::Changes, site.id, it->second, static_cast<int>(i), words}});
    }
    for (std::size_t i = 0; i < before.sites.size(); ++i)
        if (met[i] == 0)
            found.push_back({placeOf(before, before.sites[i]),
                             {SiteChange::Vanishes, before.sites[i].id, static_cast<int>(i), -1,
                              specWords(specOf(before, before.sites[i])) + " -> float"}});
    std::stable_sort(found.begin(), found.end(), [](const Placed &a, const Placed &b) { return a.place < b.place; });
    for (Placed &placed : found)
        diff.changes.push_back(std::move(placed.change));
    noteWeights(graph, before, after, diff);
    return diff;
}

} // namespace dblame

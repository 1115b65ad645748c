// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/edits_text.h"

#include <algorithm>

#include "core/graph_query.h"

namespace dblame::ui
{

NamedEdits nameEdits(const EditSet &edits, const OpenPair &pair)
{
    NamedEdits named;
    for (const SiteId site : edits.off)
        named.off.push_back(pair.sites.site(site).id);
    for (const EdgeBypass &edge : edits.bypassed)
        named.bypassed.emplace_back(pair.sites.site(edge.site).id, pair.candidate->graph().node(edge.reader).name);
    for (const auto &[site, change] : edits.respecified)
        named.respecified.emplace(pair.sites.site(site).id, change);
    return named;
}

EditSet resolveEdits(const NamedEdits &edits, const OpenPair &pair, QStringList *lost)
{
    EditSet resolved;
    const auto find = [&](const std::string &id) {
        const SiteId site = pair.sites.byId(id);
        if (!site.valid() && lost != nullptr)
            lost->append(QString::fromStdString(id));
        return site;
    };
    for (const std::string &id : edits.off)
        if (const SiteId site = find(id); site.valid())
            resolved.off.insert(site);
    for (const auto &[id, reader] : edits.bypassed) {
        const SiteId site = find(id);
        if (!site.valid())
            continue;
        const NodeId node = pair.candidate->graph().findNode(reader);
        if (node.valid())
            resolved.bypassed.insert({site, node});
        else if (lost != nullptr)
            lost->append(QString::fromStdString(id + " for " + reader));
    }
    for (const auto &[id, change] : edits.respecified)
        if (const SiteId site = find(id); site.valid())
            resolved.respecified.emplace(site, change);
    return resolved;
}

const Node *referenceOf(const OpenPair &pair, NodeId node)
{
    if (!pair.reference || !pair.candidate)
        return nullptr;
    for (const ValueId value : pair.candidate->graph().node(node).outputValues()) {
        if (value.get() >= pair.alignment.rowOfCand.size())
            continue;
        if (const std::int32_t row = pair.alignment.rowOfCand[value.get()]; row >= 0)
            if (const ValueId ref = pair.alignment.pairs[static_cast<std::size_t>(row)].ref; ref.valid())
                return pair.reference->graph().producer(ref);
    }
    return nullptr;
}

std::string layerOf(const OpenPair &pair, NodeId node)
{
    const Graph &graph = pair.candidate->graph();
    std::string module = moduleCallOf(graph, graph.node(node));
    if (const Node *reference = referenceOf(pair, node); module.empty() && reference != nullptr)
        module = moduleCallOf(pair.reference->graph(), *reference);
    return module;
}

QString operatorName(const OpenPair &pair, NodeId node)
{
    const Node *reference = referenceOf(pair, node);
    return QString::fromStdString(reference != nullptr ? reference->name : pair.candidate->graph().node(node).name);
}

QString layerName(const OpenPair &pair, NodeId node)
{
    const Graph &graph = pair.candidate->graph();
    std::string module = moduleOf(graph, graph.node(node));
    if (module.empty())
        module = layerOf(pair, node);
    return module.empty() ? operatorName(pair, node) : QString::fromStdString(module);
}

QString describeEdits(const EditSet &edits, const OpenPair &pair)
{
    if (edits.empty())
        return QStringLiteral("as opened");
    QStringList layers;
    const auto add = [&layers](const QString &layer) {
        if (!layers.contains(layer))
            layers << layer;
    };
    for (const SiteId id : edits.off) {
        const QuantSite &site = pair.sites.site(id);
        add(site.owner.valid() ? layerName(pair, site.owner) : QString::fromStdString(site.id));
    }
    for (const EdgeBypass &edge : edits.bypassed)
        add(layerName(pair, edge.reader));
    QStringList parts;
    if (layers.size() == 1)
        parts << QStringLiteral("%1 float here").arg(layers.front());
    else if (layers.size() == 2)
        parts << QStringLiteral("%1 and %2 float here").arg(layers[0], layers[1]);
    else if (!layers.isEmpty())
        parts << QStringLiteral("%1 layers float here").arg(layers.size());
    if (edits.respecified.size() > 2) {
        parts << QStringLiteral("%1 sites with another spec").arg(edits.respecified.size());
    } else {
        for (const auto &[site, change] : edits.respecified)
            parts << QString::fromStdString(pair.sites.site(site).id + " " + change.text());
    }
    return parts.join(QStringLiteral(", "));
}

EditSet unite(EditSet a, const EditSet &b)
{
    a.off.insert(b.off.begin(), b.off.end());
    a.bypassed.insert(b.bypassed.begin(), b.bypassed.end());
    for (const auto &[site, change] : b.respecified)
        a.respecified.insert_or_assign(site, change);
    return a;
}

EditSet subtract(EditSet a, const EditSet &b)
{
    std::erase_if(a.off, [&](SiteId site) { return b.off.contains(site); });
    std::erase_if(a.bypassed, [&](const EdgeBypass &edge) { return b.bypassed.contains(edge); });
    std::erase_if(a.respecified, [&](const auto &entry) { return b.respecified.contains(entry.first); });
    return a;
}

} // namespace dblame::ui

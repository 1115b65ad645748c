// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layer_tree.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/graph_query.h"
#include "ui/edits_text.h"

namespace dblame::ui
{

namespace
{

class Builder
{
public:
    explicit Builder(const OpenPair &pair) : m_pair(pair), m_graph(pair.candidate->graph()) {}
    LayerTree build();

private:
    struct LayerOps {
        std::string path; // module path with its call, "" outside any module
        std::vector<NodeId> nodes;
    };
    void findRows();
    void findShownNodes();
    [[nodiscard]] std::string servedLayer(NodeId node, const std::vector<char> &depends) const;
    void findContainers();
    [[nodiscard]] std::string layerKey(NodeId node) const;
    int container(const std::string &path);
    int add(LayerItem item, int parent);
    void addLayer(const LayerOps &ops);
    void addSites(int layer, const std::vector<NodeId> &nodes);
    void addInputSites();
    void addSite(int layer, SiteId id, NodeId reader, const QString &name);
    void gather();

    const OpenPair &m_pair;
    const Graph &m_graph;
    LayerTree m_tree;
    std::vector<PairId> m_rowOfNode;
    std::vector<char> m_shown;
    std::vector<std::vector<SiteId>> m_ownedBy; // sites whose owner a node is
    std::vector<std::vector<SiteId>> m_readBy;  // sites that a node reads
    std::vector<std::string> m_module;          // per node
    std::set<std::string> m_withChildren;       // module paths that contain others
    std::map<std::string, int> m_containers;
};

void Builder::findRows()
{
    m_rowOfNode.assign(m_graph.nodes.size(), PairId());
    for (std::size_t i = 0; i < m_pair.alignment.pairs.size(); ++i) {
        const AlignedPair &pair = m_pair.alignment.pairs[i];
        if (pair.kind == RowKind::Weight || !pair.cand.valid())
            continue;
        if (const NodeId node = m_graph.value(pair.cand).producer; node.valid())
            m_rowOfNode[node.get()] = PairId(i);
    }
}

// Shape arithmetic, getitems and the inner nodes of sites are no layers: an operator is shown when it has a row or
// touches a site.
void Builder::findShownNodes()
{
    const std::size_t count = m_graph.nodes.size();
    m_ownedBy.resize(count);
    m_readBy.resize(count);
    for (std::size_t i = 0; i < m_pair.sites.sites.size(); ++i) {
        const QuantSite &site = m_pair.sites.sites[i];
        if (site.owner.valid())
            m_ownedBy[site.owner.get()].emplace_back(i);
        for (const NodeId reader : site.readers)
            m_readBy[reader.get()].emplace_back(i);
    }
    m_shown.assign(count, 0);
    m_module.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (m_pair.sites.siteOfNode(NodeId(i)).valid())
            continue;
        m_shown[i] = m_rowOfNode[i].valid() || !m_ownedBy[i].empty() || !m_readBy[i].empty() ? 1 : 0;
        m_module[i] = layerOf(m_pair, NodeId(i));
    }
    // In execution order: what stands behind one of them finds it named already.
    const std::vector<char> depends = dependsOnUserInput(m_graph);
    for (std::size_t i = 0; i < count; ++i)
        if (m_shown[i] != 0 && m_module[i].empty() && !m_rowOfNode[i].valid())
            m_module[i] = servedLayer(NodeId(i), depends);
}

// A rewrite leaves arithmetic with weights behind an operator (x / scale, + bias) that belongs to no module: it serves
// the layer whose result it corrects.
std::string Builder::servedLayer(NodeId node, const std::vector<char> &depends) const
{
    NodeId producer;
    int activations = 0, weights = 0;
    for (const ValueId value : m_graph.node(node).inputValues()) {
        ++(depends[value.get()] != 0 ? activations : weights);
        if (depends[value.get()] != 0)
            producer = m_graph.value(value).producer;
    }
    if (activations != 1 || weights == 0 || !producer.valid() || m_pair.sites.siteOfNode(producer).valid())
        return {};
    return layerOf(m_pair, producer);
}

void Builder::findContainers()
{
    for (std::size_t i = 0; i < m_module.size(); ++i) {
        if (m_shown[i] == 0)
            continue;
        const std::string &path = m_module[i];
        for (auto dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
            m_withChildren.insert(path.substr(0, dot));
    }
}

// Operators of one leaf module are one layer; an operator that lies directly in a container stands for itself.
std::string Builder::layerKey(NodeId node) const
{
    const std::string &path = m_module[node.get()];
    if (path.empty() || m_withChildren.contains(path))
        return path + "\n" + m_graph.node(node).name;
    return path;
}

int Builder::add(LayerItem item, int parent)
{
    const int position = static_cast<int>(m_tree.items.size());
    item.parent = parent;
    (parent < 0 ? m_tree.roots : m_tree.items[static_cast<std::size_t>(parent)].children).push_back(position);
    m_tree.items.push_back(std::move(item));
    return position;
}

int Builder::container(const std::string &path)
{
    if (path.empty())
        return -1;
    if (const auto known = m_containers.find(path); known != m_containers.end())
        return known->second;
    const auto dot = path.rfind('.');
    const int parent = dot == std::string::npos ? -1 : container(path.substr(0, dot));
    LayerItem item;
    item.kind = LayerItem::Module;
    item.name = QString::fromStdString(dot == std::string::npos ? path : path.substr(dot + 1));
    item.path = QString::fromStdString(path);
    const int position = add(std::move(item), parent);
    m_containers.emplace(path, position);
    return position;
}

void Builder::addSite(int layer, SiteId id, NodeId reader, const QString &name)
{
    const QuantSite &site = m_pair.sites.site(id);
    LayerItem item;
    item.kind = LayerItem::Site;
    item.name = name;
    item.path = QString::fromStdString(site.id);
    item.site = id;
    item.node = reader;
    item.edge = reader.valid() && site.owner != reader;
    if (!site.watchesOnly) {
        if (reader.valid())
            item.whole.bypassed.insert({id, reader});
        else
            item.whole.off.insert(id);
    }
    // A weight of which only the integers are in the file has its float source in the reference.
    item.hasFloat = !site.watchesOnly && !site.spec.dynamic && !item.edge &&
                    (site.source.valid() || (site.role == SiteRole::Weight && m_pair.reference));
    add(std::move(item), layer);
}

void Builder::addSites(int layer, const std::vector<NodeId> &nodes)
{
    LayerItem &self = m_tree.items[static_cast<std::size_t>(layer)];
    self.node = nodes.back();
    for (const NodeId node : nodes)
        if (m_rowOfNode[node.get()].valid())
            self.row = m_rowOfNode[node.get()];
    std::vector<SiteId> own;
    for (const SiteRole role : {SiteRole::Weight, SiteRole::Output})
        for (const NodeId node : nodes)
            for (const SiteId id : m_ownedBy[node.get()])
                if (m_pair.sites.site(id).role == role)
                    own.push_back(id);
    self.site = own.empty() ? SiteId() : own.front();
    for (const SiteId id : own)
        addSite(layer, id, {}, QString::fromLatin1(siteRoleName(m_pair.sites.site(id).role)));
    for (const NodeId node : nodes) {
        for (const SiteId id : m_readBy[node.get()]) {
            if (std::find(own.begin(), own.end(), id) != own.end())
                continue;
            const QuantSite &site = m_pair.sites.site(id);
            QString from = QString::fromStdString(site.id);
            if (site.source.valid() && m_graph.producer(site.source) == nullptr)
                from = QString::fromStdString(m_graph.value(site.source).name);
            else if (site.role != SiteRole::Input && site.owner.valid())
                from = layerName(m_pair, site.owner);
            else if (site.source.valid())
                from = layerName(m_pair, m_graph.value(site.source).producer);
            addSite(layer, id, node, QStringLiteral("input from %1").arg(from));
        }
    }
}

void Builder::addLayer(const LayerOps &ops)
{
    LayerItem item;
    item.kind = LayerItem::Layer;
    int parent = -1;
    if (ops.path.empty() || m_withChildren.contains(ops.path)) {
        item.name = operatorName(m_pair, ops.nodes.front()); // the reference's, as everywhere else
        item.path = item.name;
        parent = container(ops.path);
    } else {
        const auto dot = ops.path.rfind('.');
        item.name = QString::fromStdString(dot == std::string::npos ? ops.path : ops.path.substr(dot + 1));
        item.path = QString::fromStdString(ops.path);
        parent = container(dot == std::string::npos ? std::string() : ops.path.substr(0, dot));
    }
    addSites(add(std::move(item), parent), ops.nodes);
}

// The site of a graph input belongs to no operator: it gets a layer of its own, first.
void Builder::addInputSites()
{
    for (std::size_t i = 0; i < m_pair.sites.sites.size(); ++i) {
        const QuantSite &site = m_pair.sites.sites[i];
        if (site.owner.valid() || site.role == SiteRole::Weight)
            continue;
        LayerItem item;
        item.kind = LayerItem::Layer;
        item.name = QString::fromStdString(site.source.valid() ? m_graph.value(site.source).name : site.id);
        item.path = QString::fromStdString(site.id);
        item.site = SiteId(i);
        addSite(add(std::move(item), -1), SiteId(i), {}, QStringLiteral("output"));
    }
}

// Every item takes its children's sites in. A watching observer changes nothing and is left out.
void Builder::gather()
{
    for (std::size_t i = m_tree.items.size(); i-- > 0;) {
        const LayerItem &item = m_tree.items[i];
        if (item.parent >= 0) {
            LayerItem &parent = m_tree.items[static_cast<std::size_t>(item.parent)];
            parent.whole = unite(std::move(parent.whole), item.whole);
        }
    }
    // A site that goes off as a whole needs no bypass for its readers: that is what a selector says, too.
    for (LayerItem &item : m_tree.items)
        std::erase_if(item.whole.bypassed, [&](const EdgeBypass &edge) { return item.whole.off.contains(edge.site); });
    m_tree.rowItem.assign(m_pair.alignment.pairs.size(), -1);
    std::vector<int> layerOfNode(m_graph.nodes.size(), -1);
    std::map<std::string, int> layerOfKey;
    for (std::size_t i = 0; i < m_tree.items.size(); ++i)
        if (m_tree.items[i].kind == LayerItem::Layer && m_tree.items[i].node.valid())
            layerOfKey.emplace(layerKey(m_tree.items[i].node), static_cast<int>(i));
    for (std::size_t i = 0; i < m_graph.nodes.size(); ++i)
        if (m_shown[i] != 0)
            if (const auto found = layerOfKey.find(layerKey(NodeId(i))); found != layerOfKey.end())
                layerOfNode[i] = found->second;
    for (std::size_t i = 0; i < m_graph.nodes.size(); ++i)
        if (m_rowOfNode[i].valid())
            m_tree.rowItem[m_rowOfNode[i].get()] = layerOfNode[i];
    // A weight's row leads to the layer that reads it.
    for (std::size_t i = 0; i < m_pair.alignment.pairs.size(); ++i) {
        const AlignedPair &pair = m_pair.alignment.pairs[i];
        if (pair.kind == RowKind::Weight && pair.site.valid())
            if (const NodeId owner = m_pair.sites.site(pair.site).owner; owner.valid())
                m_tree.rowItem[i] = layerOfNode[owner.get()];
    }
}

LayerTree Builder::build()
{
    findRows();
    findShownNodes();
    findContainers();
    addInputSites();
    std::vector<LayerOps> layers;
    std::map<std::string, std::size_t> layerAt;
    for (std::size_t i = 0; i < m_graph.nodes.size(); ++i) {
        if (m_shown[i] == 0)
            continue;
        const auto [at, isNew] = layerAt.try_emplace(layerKey(NodeId(i)), layers.size());
        if (isNew)
            layers.push_back({m_module[i], {}});
        layers[at->second].nodes.emplace_back(i);
    }
    for (const LayerOps &ops : layers)
        addLayer(ops);
    gather();
    return std::move(m_tree);
}

} // namespace

int LayerTree::itemOfRow(PairId row) const
{
    return row.valid() && row.get() < rowItem.size() ? rowItem[row.get()] : -1;
}

LayerTree buildLayerTree(const OpenPair &pair)
{
    if (!pair.candidate)
        return {};
    return Builder(pair).build();
}

EditSet toggled(const LayerItem &item, const EditSet &edits)
{
    const EditSet without = unite(edits, item.whole);
    if (stateOf(item, edits) == LayerState::On)
        return without;
    // A layer that is float only because its producer is cannot be switched on here: the box then switches it off.
    const EditSet with = subtract(edits, item.whole);
    return with == edits ? without : with;
}

LayerState stateOf(const LayerItem &item, const EditSet &edits)
{
    const std::size_t all = item.whole.off.size() + item.whole.bypassed.size();
    if (all == 0)
        return LayerState::None;
    const auto off = static_cast<std::size_t>(
        std::count_if(item.whole.off.begin(), item.whole.off.end(), [&](SiteId s) { return edits.off.contains(s); }) +
        std::count_if(item.whole.bypassed.begin(), item.whole.bypassed.end(), [&](const EdgeBypass &edge) {
            return edits.bypassed.contains(edge) || edits.off.contains(edge.site);
        }));
    return off == 0 ? LayerState::On : off == all ? LayerState::Off : LayerState::Partly;
}

} // namespace dblame::ui

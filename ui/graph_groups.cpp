// SPDX-License-Identifier: GPL-3.0-or-later
#include <functional>
#include <string>
#include <unordered_map>

#include "ui/graph_builder.h"

namespace dblame::ui
{

namespace
{

struct Tree {
    std::vector<GraphGroup> groups;
    std::vector<int> operators; // in it and in its children; a layer and its quantizers alone are no group
};

// A quantizer node of torchao has no module frames: it stands with the layer it belongs to, which the site knows.
std::vector<ModuleFrame> framesOf(const GraphDocument &document, const GraphNode &node)
{
    const NodeId id = node.owner.valid() ? node.owner : node.node;
    if (!id.valid())
        return {};
    const Graph &graph =
        node.side == Side::Reference ? document.pair->reference->graph() : document.pair->candidate->graph();
    std::vector<ModuleFrame> frames;
    for (const ModuleFrame &frame : graph.node(id).modules)
        if (!frame.path.empty())
            frames.push_back(frame);
    return frames;
}

std::int32_t commonGroup(const std::vector<GraphGroup> &groups, std::int32_t a, std::int32_t b)
{
    while (a != b) {
        if (a < 0 || b < 0)
            return -1;
        std::int32_t &deeper = groups[a].depth >= groups[b].depth ? a : b;
        deeper = groups[deeper].parent;
    }
    return a;
}

// Quantizers on activations stand before their readers: in the same outline as those, or they would lie in it as
// strangers. From the last to the first, for quantize is followed by dequantize.
void seatQuantizers(GraphDocument &document)
{
    std::vector<std::vector<std::int32_t>> readers(document.nodes.size());
    for (const GraphEdge &edge : document.edges)
        readers[edge.from].push_back(edge.to);
    for (std::size_t i = document.nodes.size(); i-- > 0;) {
        GraphNode &node = document.nodes[i];
        if (node.kind != GraphNode::Kind::Site || readers[i].empty())
            continue;
        std::int32_t group = document.nodes[readers[i].front()].group;
        for (std::int32_t reader : readers[i])
            group = commonGroup(document.groups, group, document.nodes[reader].group);
        if (group >= 0)
            node.group = group;
    }
}

// An operator that a rewrite left without frames, between two of one module, would lie inside that module's outline
// without being in it.
void adoptStrays(GraphDocument &document)
{
    constexpr std::int32_t kNone = -2;
    std::vector<std::int32_t> before(document.nodes.size(), kNone), after(document.nodes.size(), kNone);
    const auto meet = [&document](std::int32_t &group, std::int32_t other) {
        group = group == kNone ? other : commonGroup(document.groups, group, other);
    };
    for (const GraphEdge &edge : document.edges) {
        meet(before[edge.to], document.nodes[edge.from].group);
        meet(after[edge.from], document.nodes[edge.to].group);
    }
    for (std::size_t i = 0; i < document.nodes.size(); ++i) {
        GraphNode &node = document.nodes[i];
        if (node.group >= 0 || before[i] == kNone || after[i] == kNone || !framesOf(document, node).empty())
            continue;
        node.group = commonGroup(document.groups, before[i], after[i]);
    }
}

Tree allGroups(GraphDocument &document)
{
    Tree tree;
    std::unordered_map<std::string, std::int32_t> byKey;
    for (GraphNode &node : document.nodes) {
        std::int32_t parent = -1;
        std::string key;
        for (const ModuleFrame &frame : framesOf(document, node)) {
            // Two calls of one module are two groups.
            key += '/' + (frame.key.empty() ? frame.path : frame.key);
            const auto [it, fresh] = byKey.try_emplace(key, static_cast<std::int32_t>(tree.groups.size()));
            if (fresh) {
                GraphGroup group;
                group.path = QString::fromStdString(frame.path);
                group.type = QString::fromStdString(frame.type);
                group.parent = parent;
                tree.groups.push_back(std::move(group));
                tree.operators.push_back(0);
            }
            parent = it->second;
        }
        node.group = parent;
        if (parent >= 0 && node.kind != GraphNode::Kind::Site)
            ++tree.operators[parent];
    }
    for (std::size_t i = tree.groups.size(); i-- > 0;)
        if (tree.groups[i].parent >= 0)
            tree.operators[tree.groups[i].parent] += tree.operators[i];
    return tree;
}

} // namespace

void groupByModule(GraphDocument &document)
{
    const Tree tree = allGroups(document);
    // A parent that holds nothing but one child says nothing more than the child: the child stays.
    std::vector<char> kept(tree.groups.size(), 0), shadowed(tree.groups.size(), 0);
    for (std::size_t i = 0; i < tree.groups.size(); ++i) {
        kept[i] = tree.operators[i] > 1;
        const std::int32_t parent = tree.groups[i].parent;
        if (parent >= 0 && tree.operators[parent] == tree.operators[i])
            shadowed[parent] = 1;
    }
    std::vector<std::int32_t> now(tree.groups.size(), -1); // the nearest kept group at or above
    for (std::size_t i = 0; i < tree.groups.size(); ++i) {
        const std::int32_t parent = tree.groups[i].parent >= 0 ? now[tree.groups[i].parent] : -1;
        if (!kept[i] || shadowed[i]) {
            now[i] = parent;
            continue;
        }
        now[i] = static_cast<std::int32_t>(document.groups.size());
        GraphGroup group = tree.groups[i];
        group.parent = parent;
        group.depth = parent >= 0 ? document.groups[parent].depth + 1 : 0;
        group.name = group.path;
        if (parent >= 0 && group.path.startsWith(document.groups[parent].path + QLatin1Char('.')))
            group.name = group.path.mid(document.groups[parent].path.size() + 1);
        document.groups.push_back(std::move(group));
    }
    for (GraphNode &node : document.nodes)
        if (node.group >= 0)
            node.group = now[node.group];
    seatQuantizers(document);
    adoptStrays(document);
    for (const GraphNode &node : document.nodes)
        for (std::int32_t g = node.group; g >= 0; g = document.groups[g].parent)
            ++document.groups[g].members;
}

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_document.h"

#include <algorithm>

#include <QHash>

#include "core/graph_query.h"
#include "ui/graph_builder.h"

namespace dblame::ui
{

namespace
{

ValueId firstTensor(const Graph &graph, const Node &node)
{
    for (ValueId value : node.outputValues())
        if (graph.value(value).meta)
            return value;
    return {};
}

bool isStored(const GraphInput &input)
{
    return input.kind == InputKind::Parameter || input.kind == InputKind::Buffer ||
           input.kind == InputKind::TensorConstant;
}

} // namespace

GraphSide::GraphSide(Side which, const Graph &g, const Alignment &alignment) : side(which), graph(g)
{
    ofValue.assign(g.values.size(), -1);
    ofNode.assign(g.nodes.size(), -1);
    depends = dependsOnUserInput(g);
    unmatched.assign(g.values.size(), -1);
    for (std::size_t i = 0; i < alignment.unmatched.size(); ++i)
        if (const Unmatched &u = alignment.unmatched[i]; u.side == which && u.value.valid())
            unmatched[u.value.get()] = static_cast<std::int32_t>(i);
}

std::int32_t GraphBuilder::addNode(GraphNode node)
{
    m_doc.nodes.push_back(std::move(node));
    return static_cast<std::int32_t>(m_doc.nodes.size()) - 1;
}

void GraphBuilder::addEdge(std::int32_t from, std::int32_t to)
{
    if (from < 0 || to < 0 || from == to)
        return;
    if (m_edgeOf.try_emplace({from, to}, static_cast<std::int32_t>(m_doc.edges.size())).second)
        m_doc.edges.push_back({from, to, {}});
}

std::int32_t GraphBuilder::addInput(GraphSide &side, const GraphInput &input)
{
    GraphNode node;
    node.kind = isStored(input) ? GraphNode::Kind::Parameter : GraphNode::Kind::Input;
    node.side = side.side;
    node.value = input.value;
    node.label = QString::fromStdString(isStored(input) && !input.target.empty() ? input.target
                                                                                 : side.graph.value(input.value).name);
    node.op = node.kind == GraphNode::Kind::Input  ? QStringLiteral("input")
              : input.kind == InputKind::Parameter ? QStringLiteral("parameter")
              : input.kind == InputKind::Buffer    ? QStringLiteral("buffer")
                                                   : QStringLiteral("constant");
    if (const std::int32_t i = side.unmatched[input.value.get()]; i >= 0) {
        node.unpaired = true;
        node.why = QString::fromStdString(alignment().unmatched[static_cast<std::size_t>(i)].reason);
    }
    return side.ofValue[input.value.get()] = addNode(std::move(node));
}

std::int32_t GraphBuilder::addOperator(GraphSide &side, NodeId id)
{
    const Node &n = side.graph.node(id);
    GraphNode node;
    node.side = side.side;
    node.node = id;
    node.value = firstTensor(side.graph, n);
    node.op = QString::fromStdString(n.opName());
    node.path = QString::fromStdString(moduleCallOf(side.graph, n));
    node.label = QString::fromStdString(node.value.valid() ? side.graph.value(node.value).name : n.name);
    for (ValueId value : n.outputValues())
        if (const std::int32_t i = side.unmatched[value.get()]; i >= 0) {
            node.unpaired = true;
            node.why = QString::fromStdString(alignment().unmatched[static_cast<std::size_t>(i)].reason);
            break;
        }
    const std::int32_t drawn = addNode(std::move(node));
    side.ofNode[id.get()] = drawn;
    for (ValueId value : n.outputValues())
        side.ofValue[value.get()] = drawn;
    return drawn;
}

void GraphBuilder::addInputs(GraphSide &side)
{
    for (const GraphInput &input : side.graph.inputs) {
        if (!input.value.valid() || !side.graph.value(input.value).meta)
            continue;
        if (isStored(input) && (!m_doc.options.parameters || side.graph.readers(input.value).empty()))
            continue;
        if (isStored(input) || input.kind == InputKind::User)
            addInput(side, input);
    }
}

void GraphBuilder::addEdges(GraphSide &side, NodeId id)
{
    const std::int32_t to = side.ofNode[id.get()];
    for (ValueId value : side.graph.node(id).inputValues())
        addEdge(side.ofValue[value.get()], to);
}

void GraphBuilder::standBehind(GraphSide &side, NodeId id)
{
    const Node &node = side.graph.node(id);
    std::int32_t before = -1;
    for (ValueId value : node.inputValues())
        if (before < 0)
            before = side.ofValue[value.get()];
    for (ValueId value : node.outputValues())
        if (side.ofValue[value.get()] < 0)
            side.ofValue[value.get()] = before;
}

// As the table names its rows: the module path where it names one node only, path and operator where those do,
// else the value.
void GraphBuilder::nameNodes()
{
    QHash<QString, int> ofPath, ofOperator;
    const auto withOperator = [](const GraphNode &n) { return n.path + QStringLiteral(" · ") + n.op; };
    for (const GraphNode &n : m_doc.nodes)
        if (n.kind == GraphNode::Kind::Operator && !n.path.isEmpty()) {
            ++ofPath[n.path];
            ++ofOperator[withOperator(n)];
        }
    for (GraphNode &n : m_doc.nodes) {
        if (n.kind != GraphNode::Kind::Operator || n.path.isEmpty())
            continue;
        if (ofPath[n.path] == 1)
            n.label = n.path;
        else if (ofOperator[withOperator(n)] == 1)
            n.label = withOperator(n);
    }
}

void GraphBuilder::single(Side which)
{
    const Model &model = which == Side::Reference ? *m_doc.pair->reference : *m_doc.pair->candidate;
    GraphSide side(which, model.graph(), alignment());
    // The open pair carries the candidate's sites; a prepared reference has quantizers of its own.
    SiteTable ofReference;
    if (which == Side::Reference)
        ofReference = recognizeSites(model);
    const SiteTable &sites = which == Side::Reference ? ofReference : m_doc.pair->sites;
    const auto &o = m_doc.options;
    addInputs(side);
    const bool noInputs = std::none_of(side.depends.begin(), side.depends.end(), [](char d) { return d != 0; });
    for (std::size_t i = 0; i < side.graph.nodes.size(); ++i) {
        const NodeId id(i);
        const ValueId value = firstTensor(side.graph, side.graph.node(id));
        const SiteId site = sites.siteOfNode(id);
        if (site.valid() && o.sites) {
            // The operators of a decomposed fake-quant are one thing to the reader unless asked for.
            const bool whole = sites.site(site).nodes.size() > 3 && !o.innerNodes;
            if (side.ofNode[i] < 0)
                addSite(side, id, sites, site, whole);
            addEdges(side, id);
            continue;
        }
        const bool plain = value.valid() && (side.depends[value.get()] || noInputs);
        if (site.valid() || !(plain || (value.valid() ? o.parameters : o.innerNodes))) {
            standBehind(side, id);
            continue;
        }
        addOperator(side, id);
        addEdges(side, id);
    }
    for (std::size_t i = 0; i < alignment().pairs.size(); ++i) {
        const AlignedPair &pair = alignment().pairs[i];
        const ValueId value = which == Side::Reference ? pair.ref : pair.cand;
        const std::int32_t node = value.valid() ? side.ofValue[value.get()] : -1;
        if (node < 0)
            continue;
        m_doc.nodeOfRow[i] = node;
        if (!m_doc.nodes[node].row.valid() && m_doc.nodes[node].kind != GraphNode::Kind::Site) {
            m_doc.nodes[node].row = PairId(i);
            m_doc.nodes[node].unpaired = false;
        }
    }
    nameNodes();
}

std::int32_t GraphBuilder::addSite(GraphSide &side, NodeId id, const SiteTable &sites, SiteId site, bool whole)
{
    const QuantSite &quantSite = sites.site(site);
    const Node &n = side.graph.node(id);
    GraphNode node;
    node.kind = GraphNode::Kind::Site;
    node.side = side.side;
    node.node = id;
    node.value = firstTensor(side.graph, n);
    node.site = side.side == Side::Candidate ? site : SiteId();
    node.owner = quantSite.owner;
    node.observer = quantSite.watchesOnly;
    node.path = QString::fromStdString(quantSite.module);
    node.op = QString::fromStdString(quantSite.watchesOnly ? "observer" : quantSite.spec.text());
    node.label = QString::fromStdString(whole ? quantSite.id : n.opName());
    const std::int32_t drawn = addNode(std::move(node));
    for (NodeId member : whole ? quantSite.nodes : std::vector<NodeId>{id}) {
        side.ofNode[member.get()] = drawn;
        for (ValueId value : side.graph.node(member).outputValues())
            side.ofValue[value.get()] = drawn;
    }
    if (side.side == Side::Candidate && m_doc.markOfSite.size() > site.get() && m_doc.markOfSite[site.get()] < 0) {
        // A mark without a hexagon of its own: selection and pending changes find the node through it.
        GraphMark mark;
        mark.site = site;
        mark.node = drawn;
        mark.weight = quantSite.role == SiteRole::Weight;
        mark.watchesOnly = quantSite.watchesOnly;
        mark.enabled = quantSite.enabled;
        mark.name = QString::fromStdString(quantSite.id);
        mark.spec = QString::fromStdString(quantSite.spec.text());
        m_doc.markOfSite[site.get()] = static_cast<std::int32_t>(m_doc.marks.size());
        m_doc.marks.push_back(std::move(mark));
    }
    return drawn;
}

bool GraphDocument::groupHolds(std::int32_t outer, std::int32_t inner) const
{
    while (inner >= 0 && inner != outer)
        inner = groups[inner].parent;
    return inner == outer && outer >= 0;
}

GraphDocumentPtr buildGraph(OpenPairPtr pair, const GraphOptions &options)
{
    auto document = std::make_shared<GraphDocument>();
    document->pair = std::move(pair);
    document->options = options;
    if (!document->pair)
        return document;
    document->nodeOfRow.assign(document->pair->alignment.pairs.size(), -1);
    document->markOfSite.assign(document->pair->sites.sites.size(), -1);
    // With one model open there is nothing to merge: that model is shown.
    const bool ref = document->pair->reference != nullptr, cand = document->pair->candidate != nullptr;
    GraphViewKind view = options.view;
    if (view == GraphViewKind::Merged && !(ref && cand))
        view = ref ? GraphViewKind::Reference : GraphViewKind::Candidate;
    if ((view == GraphViewKind::Reference && !ref) || (view == GraphViewKind::Candidate && !cand))
        return document;
    GraphBuilder builder(*document);
    if (view == GraphViewKind::Merged)
        builder.merged();
    else
        builder.single(view == GraphViewKind::Reference ? Side::Reference : Side::Candidate);
    groupByModule(*document);
    return document;
}

} // namespace dblame::ui

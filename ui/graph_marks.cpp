// SPDX-License-Identifier: GPL-3.0-or-later
//
// The merged view: reference operators, and the candidate's quantizers as marks on them.
#include <algorithm>
#include <deque>
#include <map>

#include "ui/graph_builder.h"

namespace dblame::ui
{

void GraphBuilder::merged()
{
    GraphSide ref(Side::Reference, m_doc.pair->reference->graph(), alignment());
    GraphSide cand(Side::Candidate, m_doc.pair->candidate->graph(), alignment());
    mergeReference(ref);
    for (std::size_t i = 0; i < alignment().pairs.size(); ++i) {
        const AlignedPair &pair = alignment().pairs[i];
        const std::int32_t node = pair.ref.valid() ? ref.ofValue[pair.ref.get()] : -1;
        if (node < 0 || (pair.kind == RowKind::Weight && m_doc.nodes[node].kind != GraphNode::Kind::Parameter))
            continue;
        m_doc.nodeOfRow[i] = node;
        GraphNode &drawn = m_doc.nodes[node];
        if (!drawn.row.valid()) {
            drawn.row = PairId(i);
            drawn.unpaired = false;
            for (const std::string &norm : pair.folded)
                drawn.why += (drawn.why.isEmpty() ? QString() : QStringLiteral(", ")) + QString::fromStdString(norm) +
                             QStringLiteral(" folded");
        }
    }
    mergeCandidate(cand, ref);
    nameNodes();
    if (m_doc.options.sites)
        placeMarks(cand);
}

void GraphBuilder::mergeReference(GraphSide &ref)
{
    // A prepared reference has quantizers too; here they are only in the way.
    const SiteTable sites = recognizeSites(*m_doc.pair->reference);
    std::vector<char> folded(ref.graph.nodes.size(), 0);
    for (const FoldedNorm &fold : alignment().folds)
        if (fold.norm.valid())
            folded[fold.norm.get()] = 1;
    addInputs(ref);
    const bool noInputs = std::none_of(ref.depends.begin(), ref.depends.end(), [](char d) { return d != 0; });
    for (std::size_t i = 0; i < ref.graph.nodes.size(); ++i) {
        const NodeId id(i);
        const auto outputs = ref.graph.node(id).outputValues();
        const bool tensor = std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) {
            return ref.graph.value(v).meta && (ref.depends[v.get()] || noInputs || m_doc.options.parameters);
        });
        if (!tensor || folded[i] || sites.siteOfNode(id).valid()) {
            standBehind(ref, id);
            continue;
        }
        addOperator(ref, id);
        addEdges(ref, id);
    }
}

// Operators that only the candidate has stand between the drawn partners of their neighbours.
void GraphBuilder::mergeCandidate(GraphSide &cand, const GraphSide &ref)
{
    for (std::size_t i = 0; i < alignment().pairs.size(); ++i) {
        const AlignedPair &pair = alignment().pairs[i];
        const std::int32_t node = pair.kind == RowKind::Weight ? m_doc.nodeOfRow[i]
                                  : pair.ref.valid()           ? ref.ofValue[pair.ref.get()]
                                                               : -1;
        if (node < 0)
            continue;
        for (ValueId value : {pair.cand, pair.candCompared}) {
            if (!value.valid())
                continue;
            cand.ofValue[value.get()] = node;
            if (const NodeId producer = cand.graph.value(value).producer; producer.valid() && value == pair.cand)
                cand.ofNode[producer.get()] = node;
        }
    }
    const SiteTable &sites = m_doc.pair->sites;
    std::vector<NodeId> extra;
    for (std::size_t i = 0; i < cand.graph.nodes.size(); ++i) {
        const NodeId id(i);
        if (cand.ofNode[i] >= 0)
            continue;
        const auto outputs = cand.graph.node(id).outputValues();
        const bool listed = std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) {
            return cand.unmatched[v.get()] >= 0 && cand.ofValue[v.get()] < 0 &&
                   (cand.depends[v.get()] || m_doc.options.parameters);
        });
        if (listed && !sites.siteOfNode(id).valid()) {
            addOperator(cand, id);
            extra.push_back(id);
        } else {
            standBehind(cand, id);
        }
    }
    for (NodeId id : extra) {
        addEdges(cand, id);
        // Its readers, also those behind quantizers and other hidden operators.
        std::deque<ValueId> open;
        std::vector<char> seen(cand.graph.values.size(), 0);
        for (ValueId value : cand.graph.node(id).outputValues())
            open.push_back(value);
        while (!open.empty()) {
            const ValueId value = open.front();
            open.pop_front();
            if (std::exchange(seen[value.get()], 1))
                continue;
            for (NodeId reader : cand.graph.readers(value)) {
                if (cand.ofNode[reader.get()] >= 0)
                    addEdge(cand.ofNode[id.get()], cand.ofNode[reader.get()]);
                else
                    for (ValueId next : cand.graph.node(reader).outputValues())
                        open.push_back(next);
            }
        }
    }
}

// The drawn node of an operator of the candidate. A convolution with a rewritten norm is compared some steps
// later (after /scale and bias): then what its readers lead to is drawn for it.
std::int32_t GraphBuilder::drawnOwner(const GraphSide &cand, NodeId owner) const
{
    constexpr int kSteps = 16;
    std::deque<NodeId> open{owner};
    for (int step = 0; step < kSteps && !open.empty(); ++step) {
        const NodeId id = open.front();
        open.pop_front();
        if (cand.ofNode[id.get()] >= 0)
            return cand.ofNode[id.get()];
        for (ValueId value : cand.graph.node(id).outputValues())
            for (NodeId reader : cand.graph.readers(value))
                open.push_back(reader);
    }
    return -1;
}

void GraphBuilder::placeMarks(const GraphSide &cand)
{
    const auto &sites = m_doc.pair->sites.sites;
    for (std::size_t i = 0; i < sites.size(); ++i)
        placeMark(cand, SiteId(i));
    for (std::size_t i = 0; i < alignment().pairs.size(); ++i) {
        const AlignedPair &pair = alignment().pairs[i];
        if (pair.kind != RowKind::Weight || !pair.site.valid())
            continue;
        if (const std::int32_t mark = m_doc.markOfSite[pair.site.get()]; mark >= 0) {
            m_doc.marks[mark].row = PairId(i);
            if (m_doc.nodeOfRow[i] < 0)
                m_doc.nodeOfRow[i] = m_doc.marks[mark].node;
        }
    }
    numberInstances();
}

void GraphBuilder::placeMark(const GraphSide &cand, SiteId id)
{
    const QuantSite &site = m_doc.pair->sites.site(id);
    const std::int32_t source = site.source.valid() ? cand.ofValue[site.source.get()] : -1;
    GraphMark mark;
    mark.site = id;
    mark.weight = site.role == SiteRole::Weight;
    mark.watchesOnly = site.watchesOnly;
    mark.enabled = site.enabled;
    mark.name = QString::fromStdString(site.id);
    mark.spec = QString::fromStdString(site.spec.text());
    mark.node = site.owner.valid() ? drawnOwner(cand, site.owner) : source;
    if (site.role == SiteRole::Output) {
        // The value's own node, where the owner is hidden behind it.
        if (source >= 0)
            mark.node = source;
    } else if (mark.weight) {
        mark.place = GraphMark::Place::Side;
    } else {
        mark.place = GraphMark::Place::In;
        if (const auto edge = m_edgeOf.find({source, mark.node}); edge != m_edgeOf.end())
            mark.edge = edge->second;
    }
    if (mark.node < 0)
        return;
    if (!mark.weight)
        mark.row = m_doc.nodes[source >= 0 ? source : mark.node].row;
    const auto index = static_cast<std::int32_t>(m_doc.marks.size());
    m_doc.markOfSite[id.get()] = index;
    m_doc.nodes[mark.node].marks.push_back(index);
    if (mark.edge >= 0)
        m_doc.edges[mark.edge].marks.push_back(index);
    m_doc.marks.push_back(std::move(mark));
}

void GraphBuilder::numberInstances()
{
    std::map<std::string, int> members;
    const auto &sites = m_doc.pair->sites;
    for (const GraphMark &mark : m_doc.marks)
        if (!sites.site(mark.site).instance.empty())
            ++members[sites.site(mark.site).instance];
    std::map<std::string, int> numbers;
    for (GraphMark &mark : m_doc.marks) {
        const std::string &instance = sites.site(mark.site).instance;
        if (!instance.empty() && members[instance] > 1)
            mark.instance = numbers.try_emplace(instance, static_cast<int>(numbers.size()) + 1).first->second;
    }
}

} // namespace dblame::ui

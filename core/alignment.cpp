// SPDX-License-Identifier: GPL-3.0-or-later
//
// The alignment ladder. Nodes are paired first, rung by rung, each rung only among what the rungs before left
// over; values, weights and rows follow from the node pairs. A pair is made only between operators of one
// family with compatible shapes, and only when it is the single choice: an ambiguous name goes to the next rung.
#include "core/alignment.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/alignment_state.h"
#include "core/graph_query.h"

namespace dblame
{

const char *rungName(Rung rung)
{
    switch (rung) {
    case Rung::Provenance:
        return "from_node";
    case Rung::DebugHandle:
        return "debug handle";
    case Rung::Name:
        return "name";
    case Rung::ModuleOrdinal:
        return "module";
    case Rung::Structure:
        return "structure";
    case Rung::Signature:
        return "signature";
    case Rung::ByHand:
        return "by hand";
    }
    return "";
}

const char *rowKindName(RowKind kind)
{
    switch (kind) {
    case RowKind::Activation:
        return "activation";
    case RowKind::Weight:
        return "weight";
    case RowKind::Input:
        return "input";
    case RowKind::Output:
        return "output";
    }
    return "";
}

AlignmentState::AlignmentState(const Model &refModel, const Model &candModel, const SiteTable &refSiteTable,
                               const SiteTable &candSiteTable)
    : ref{refModel, refModel.graph(), refSiteTable, dependsOnUserInput(refModel.graph()), {}, {}},
      cand{candModel, candModel.graph(), candSiteTable, dependsOnUserInput(candModel.graph()), {}, {}}
{
    for (SideState *side : {&ref, &cand}) {
        side->pair.assign(side->graph.nodes.size(), -1);
        side->usable.assign(side->graph.nodes.size(), 0);
        for (std::size_t i = 0; i < side->graph.nodes.size(); ++i)
            side->usable[i] = isActivationNode(*side, NodeId(i));
    }
}

bool AlignmentState::isActivationNode(const SideState &side, NodeId id)
{
    if (side.sites.siteOfNode(id).valid())
        return false;
    const auto outputs = side.graph.node(id).outputValues();
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](ValueId v) { return side.graph.value(v).meta && side.depends[v.get()]; });
}

ValueId AlignmentState::rawCandidate(ValueId value) const
{
    for (SiteId site = cand.sites.siteOfResult(value); site.valid(); site = cand.sites.siteOfResult(value)) {
        const ValueId source = cand.sites.site(site).source;
        if (!source.valid() || source == value)
            break;
        value = source;
    }
    return value;
}

ValueId AlignmentState::rawReference(ValueId value) const
{
    for (SiteId site = ref.sites.siteOfResult(value); site.valid(); site = ref.sites.siteOfResult(value)) {
        const ValueId source = ref.sites.site(site).source;
        if (!source.valid() || source == value)
            break;
        value = source;
    }
    return value;
}

namespace
{

ValueId firstTensor(const Graph &graph, const Node &node)
{
    for (ValueId v : node.outputValues())
        if (graph.value(v).meta)
            return v;
    return {};
}

// Names that say where a node came from; a first-generation export is its own source.
const std::string &originName(const Node &node)
{
    return node.provenance.empty() ? node.name : node.provenance.back().name;
}

class Ladder
{
public:
    explicit Ladder(AlignmentState &state) : m_state(state) {}

    void climb(const std::vector<HandPair> &hand)
    {
        byHand(hand);
        byKey(
            Rung::Provenance, [](const Node &node) { return originName(node); }, true);
        byKey(
            Rung::DebugHandle,
            [](const Node &node) { return node.debugHandle ? std::to_string(*node.debugHandle) : std::string(); },
            false);
        byKey(
            Rung::Name, [](const Node &node) { return node.name; }, false);
        byModule();
        // Folding and structure feed each other: a folded norm makes its readers' inputs known.
        for (bool changed = true; changed;) {
            changed = findFolds();
            changed = byStructure() || changed;
        }
        byOutputs();
    }

private:
    bool fits(NodeId r, NodeId c) const
    {
        const Node &a = m_state.ref.graph.node(r);
        const Node &b = m_state.cand.graph.node(c);
        if (operatorFamily(a) != operatorFamily(b))
            return false;
        const ValueId va = firstTensor(m_state.ref.graph, a);
        const ValueId vb = firstTensor(m_state.cand.graph, b);
        return va.valid() && vb.valid() &&
               compatibleShapes(*m_state.ref.graph.value(va).meta, *m_state.cand.graph.value(vb).meta, true);
    }

    bool freeRef(NodeId r) const { return m_state.ref.usable[r.get()] && m_state.ref.pair[r.get()] < 0; }
    bool freeCand(NodeId c) const { return m_state.cand.usable[c.get()] && m_state.cand.pair[c.get()] < 0; }

    void join(NodeId r, NodeId c, Rung rung, std::string reason)
    {
        m_state.ref.pair[r.get()] = c.index;
        m_state.cand.pair[c.get()] = r.index;
        m_state.how.emplace(r, AlignmentState::How{rung, std::move(reason)});
    }

    void byHand(const std::vector<HandPair> &hand)
    {
        for (const auto &pair : hand) {
            const ValueId r = m_state.ref.graph.find(pair.ref);
            const ValueId c = m_state.rawCandidate(m_state.cand.graph.find(pair.cand));
            const NodeId rn = r.valid() ? m_state.ref.graph.value(r).producer : NodeId{};
            const NodeId cn = c.valid() ? m_state.cand.graph.value(c).producer : NodeId{};
            if (!rn.valid() || !cn.valid() || !freeRef(rn) || !freeCand(cn)) {
                m_state.notes.push_back("the pair made by hand " + pair.ref + " / " + pair.cand +
                                        " names no activation that is still there");
                continue;
            }
            join(rn, cn, Rung::ByHand, "paired by hand");
        }
    }

    // How many inputs of two nodes are already partners: settles names that several nodes share.
    int agreement(NodeId r, NodeId c) const
    {
        int agree = 0;
        std::vector<ValueId> candInputs;
        for (ValueId v : m_state.cand.graph.node(c).inputValues())
            candInputs.push_back(m_state.rawCandidate(v));
        for (ValueId v : m_state.ref.graph.node(r).inputValues()) {
            const ValueId partner = m_state.partnerOf(m_state.rawReference(v));
            agree += partner.valid() && std::find(candInputs.begin(), candInputs.end(), partner) != candInputs.end();
        }
        return agree;
    }

    template <class Key>
    void byKey(Rung rung, const Key &key, bool needsProvenance)
    {
        std::unordered_map<std::string, std::vector<NodeId>> candidates;
        std::unordered_map<std::string, int> uses;
        for (std::size_t i = 0; i < m_state.cand.graph.nodes.size(); ++i)
            if (freeCand(NodeId(i)))
                candidates[key(m_state.cand.graph.nodes[i])].push_back(NodeId(i));
        for (std::size_t i = 0; i < m_state.ref.graph.nodes.size(); ++i)
            if (freeRef(NodeId(i)))
                ++uses[key(m_state.ref.graph.nodes[i]) + '|' + operatorFamily(m_state.ref.graph.nodes[i])];
        for (std::size_t i = 0; i < m_state.ref.graph.nodes.size(); ++i) {
            const NodeId r(i);
            const Node &node = m_state.ref.graph.nodes[i];
            const std::string text = key(node);
            const auto found = candidates.find(text);
            if (!freeRef(r) || text.empty() || found == candidates.end())
                continue;
            std::vector<NodeId> open;
            for (NodeId c : found->second) {
                const bool traced = !needsProvenance || !m_state.cand.graph.node(c).provenance.empty();
                if (freeCand(c) && traced && fits(r, c))
                    open.push_back(c);
            }
            const NodeId chosen = choose(r, open);
            if (!chosen.valid() || uses[text + '|' + operatorFamily(node)] > 1) {
                if (!open.empty())
                    m_state.doubts[r] = "ambiguous: several nodes come from " + text;
                continue;
            }
            join(r, chosen, rung, reasonFor(rung, text));
        }
    }

    NodeId choose(NodeId r, const std::vector<NodeId> &open) const
    {
        if (open.size() == 1)
            return open.front();
        std::vector<NodeId> same;
        const std::string module = moduleOf(m_state.ref.graph, m_state.ref.graph.node(r));
        std::copy_if(open.begin(), open.end(), std::back_inserter(same),
                     [&](NodeId c) { return moduleOf(m_state.cand.graph, m_state.cand.graph.node(c)) == module; });
        if (same.size() == 1)
            return same.front();
        NodeId best;
        int bestScore = 0;
        bool tie = false;
        for (NodeId c : same.empty() ? open : same) {
            const int score = agreement(r, c);
            tie = score == bestScore && best.valid();
            if (score > bestScore) {
                best = c;
                bestScore = score;
                tie = false;
            }
        }
        return tie ? NodeId{} : best;
    }

    static std::string reasonFor(Rung rung, const std::string &text)
    {
        switch (rung) {
        case Rung::Provenance:
            return "both come from " + text;
        case Rung::DebugHandle:
            return "same numeric debug handle " + text;
        default:
            return "same name " + text;
        }
    }

    void byModule()
    {
        using Key = std::pair<std::string, std::string>;
        std::map<Key, std::pair<std::vector<NodeId>, std::vector<NodeId>>> groups;
        const auto collect = [&](const SideState &side, bool isRef) {
            for (std::size_t i = 0; i < side.graph.nodes.size(); ++i) {
                const NodeId id(i);
                if (!(isRef ? freeRef(id) : freeCand(id)))
                    continue;
                const Node &node = side.graph.nodes[i];
                auto &group = groups[{moduleOf(side.graph, node), operatorFamily(node)}];
                (isRef ? group.first : group.second).push_back(id);
            }
        };
        collect(m_state.ref, true);
        collect(m_state.cand, false);
        for (const auto &[key, group] : groups) {
            if (group.first.size() != group.second.size())
                continue;
            for (std::size_t i = 0; i < group.first.size(); ++i)
                if (fits(group.first[i], group.second[i]))
                    join(group.first[i], group.second[i], Rung::ModuleOrdinal,
                         (key.first.empty() ? "top level" : "module " + key.first) + ", " + key.second + " no. " +
                             std::to_string(i + 1));
        }
    }

    // conv -> batch_norm in the reference, and no norm behind the candidate's convolution.
    bool findFolds()
    {
        bool changed = false;
        for (std::size_t i = 0; i < m_state.ref.graph.nodes.size(); ++i) {
            const NodeId norm(i);
            const Node &node = m_state.ref.graph.nodes[i];
            if (!isBatchNorm(node) || !freeRef(norm) || m_state.foldOf.contains(norm))
                continue;
            const ValueId input = m_state.rawReference(valueArgument(node, node.argument("input") ? "input" : "self"));
            const NodeId conv = input.valid() ? m_state.ref.graph.value(input).producer : NodeId{};
            if (!conv.valid() || m_state.ref.pair[conv.get()] < 0 || m_state.ref.graph.readers(input).size() != 1)
                continue;
            const Node &convNode = m_state.ref.graph.node(conv);
            if (!isConvolution(convNode) && operatorFamily(convNode) != "linear")
                continue;
            const NodeId partner(static_cast<std::size_t>(m_state.ref.pair[conv.get()]));
            if (normBehind(firstTensor(m_state.cand.graph, m_state.cand.graph.node(partner))))
                continue;
            m_state.foldOf.emplace(norm, conv);
            m_state.foldedInto.emplace(conv, norm);
            changed = true;
        }
        return changed;
    }

    // A batch norm among the readers of a candidate value, arithmetic with weights alone in between allowed.
    bool normBehind(ValueId value) const
    {
        std::vector<ValueId> open{value};
        for (int depth = 0; depth < 8 && !open.empty(); ++depth) {
            std::vector<ValueId> next;
            for (ValueId v : open)
                for (NodeId reader : m_state.cand.graph.readers(v)) {
                    const Node &node = m_state.cand.graph.node(reader);
                    if (isBatchNorm(node))
                        return true;
                    const std::string family = operatorFamily(node);
                    const bool scaling = family == "div" || family == "add" || family == "mul";
                    if (scaling && m_state.otherInputsAreWeights(reader, v))
                        for (ValueId out : node.outputValues())
                            next.push_back(out);
                }
            open = std::move(next);
        }
        return false;
    }

    // Nodes whose inputs are partners, or whose readers are: unmatched operators between matched neighbours.
    bool byStructure()
    {
        std::unordered_map<ValueId, std::vector<NodeId>> readersOfRaw;
        for (std::size_t i = 0; i < m_state.cand.graph.nodes.size(); ++i)
            if (freeCand(NodeId(i)))
                for (ValueId v : m_state.cand.graph.nodes[i].inputValues())
                    readersOfRaw[m_state.rawCandidate(v)].push_back(NodeId(i));
        bool changed = false;
        for (std::size_t i = 0; i < m_state.ref.graph.nodes.size(); ++i) {
            const NodeId r(i);
            if (!freeRef(r) || m_state.foldOf.contains(r))
                continue;
            const NodeId c = structuralPartner(r, readersOfRaw);
            if (!c.valid())
                continue;
            join(r, c, Rung::Structure, "same operator on paired inputs");
            changed = true;
        }
        return changed;
    }

    NodeId structuralPartner(NodeId r, const std::unordered_map<ValueId, std::vector<NodeId>> &readersOfRaw) const
    {
        std::vector<ValueId> wanted;
        for (ValueId v : m_state.ref.graph.node(r).inputValues()) {
            if (!m_state.ref.depends[v.get()])
                continue;
            const ValueId partner = m_state.partnerOf(m_state.rawReference(v));
            if (!partner.valid())
                return {};
            wanted.push_back(partner);
        }
        if (wanted.empty())
            return {};
        const auto readers = readersOfRaw.find(wanted.front());
        if (readers == readersOfRaw.end())
            return {};
        NodeId found;
        for (NodeId c : readers->second) {
            if (!freeCand(c) || !fits(r, c) || c == found)
                continue;
            std::vector<ValueId> have;
            for (ValueId v : m_state.cand.graph.node(c).inputValues())
                if (m_state.cand.depends[v.get()])
                    have.push_back(m_state.rawCandidate(v));
            if (have != wanted)
                continue;
            if (found.valid())
                return {}; // two that fit: no choice
            found = c;
        }
        return found;
    }

    void byOutputs()
    {
        const auto outputs = [](const Graph &graph) {
            std::vector<ValueId> result;
            for (const auto &output : graph.outputs)
                if (output.kind == OutputKind::User)
                    result.push_back(output.value);
            return result;
        };
        const auto refs = outputs(m_state.ref.graph);
        const auto cands = outputs(m_state.cand.graph);
        if (refs.size() != cands.size())
            return;
        for (std::size_t i = 0; i < refs.size(); ++i) {
            if (!refs[i].valid() || !cands[i].valid())
                continue;
            const NodeId r = m_state.ref.graph.value(m_state.rawReference(refs[i])).producer;
            const NodeId c = m_state.cand.graph.value(m_state.rawCandidate(cands[i])).producer;
            if (!r.valid() || !c.valid() || !freeRef(r) || !freeCand(c) || m_state.foldOf.contains(r))
                continue;
            const auto &a = m_state.ref.graph.value(m_state.rawReference(refs[i])).meta;
            const auto &b = m_state.cand.graph.value(m_state.rawCandidate(cands[i])).meta;
            if (a && b && compatibleShapes(*a, *b, true))
                join(r, c, Rung::Signature, "both are output " + std::to_string(i));
        }
    }

    AlignmentState &m_state;
};

} // namespace

ValueId AlignmentState::partnerOf(ValueId value) const
{
    if (!value.valid())
        return {};
    if (const GraphInput *input = ref.graph.input(value)) {
        if (input->kind != InputKind::User)
            return {};
        const auto it = userInputs.find(value);
        return it == userInputs.end() ? ValueId{} : it->second;
    }
    NodeId producer = ref.graph.value(value).producer;
    int output = ref.graph.value(value).outputIndex;
    if (const auto fold = foldOf.find(producer); fold != foldOf.end()) {
        producer = fold->second;
        output = 0;
    }
    if (!producer.valid() || ref.pair[producer.get()] < 0)
        return {};
    const auto outputs = cand.graph.nodes[static_cast<std::size_t>(ref.pair[producer.get()])].outputValues();
    return static_cast<std::size_t>(output) < outputs.size() ? effective(outputs[static_cast<std::size_t>(output)])
                                                             : ValueId{};
}

bool AlignmentState::otherInputsAreWeights(NodeId node, ValueId data) const
{
    for (ValueId v : cand.graph.node(node).inputValues())
        if (v != data && cand.depends[v.get()])
            return false;
    return true;
}

// A convolution whose norm was rewritten (W·sf -> fake-quant -> conv -> /sf -> + bias -> batch_norm) has its value
// after the division and the bias.
ValueId AlignmentState::effective(ValueId value) const
{
    const Node *conv = cand.graph.producer(value);
    if (!conv || !(isConvolution(*conv) || operatorFamily(*conv) == "linear") || cand.graph.readers(value).size() != 1)
        return value;
    const NodeId division = cand.graph.readers(value).front();
    const Node &div = cand.graph.node(division);
    if (operatorFamily(div) != "div" || valueArgument(div, "self") != value ||
        !otherInputsAreWeights(division, value) || !valueArgument(div, "other").valid())
        return value;
    ValueId result = div.outputValues().front();
    if (cand.graph.readers(result).size() != 1)
        return result;
    const NodeId next = cand.graph.readers(result).front();
    const Node &add = cand.graph.node(next);
    if (operatorFamily(add) == "add" && otherInputsAreWeights(next, result) && !add.outputValues().empty())
        result = add.outputValues().front();
    return result;
}

Alignment align(const Model &reference, const Model &candidate, const SiteTable &candidateSites,
                const std::vector<HandPair> &hand)
{
    const SiteTable referenceSites = recognizeSites(reference);
    AlignmentState state(reference, candidate, referenceSites, candidateSites);
    state.pairUserInputs();
    Ladder(state).climb(hand);
    return rowsOf(state);
}

} // namespace dblame

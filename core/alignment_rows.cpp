// SPDX-License-Identifier: GPL-3.0-or-later
//
// From node pairs to rows: weights through the operators that read them, inputs, activations, and a reason for
// everything that found no partner.
#include <algorithm>
#include <cstdio>
#include <set>

#include "core/alignment_state.h"
#include "core/graph_query.h"

namespace dblame
{

void AlignmentState::pairUserInputs()
{
    const auto collect = [](const Graph &graph) {
        std::vector<ValueId> result;
        for (const auto &input : graph.inputs)
            if (input.kind == InputKind::User && input.value.valid())
                result.push_back(input.value);
        return result;
    };
    const auto refs = collect(ref.graph);
    const auto cands = collect(cand.graph);
    for (std::size_t i = 0; i < refs.size() && i < cands.size(); ++i)
        userInputs.emplace(refs[i], cands[i]);
}

std::vector<int> channelAxes(const Graph &graph)
{
    std::vector<int> axes(graph.values.size(), -1);
    const auto byRank = [](std::size_t rank) {
        if (rank < 2)
            return -1;
        return rank == 3 ? 2 : 1;
    };
    for (std::size_t i = 0; i < graph.values.size(); ++i)
        if (graph.values[i].meta)
            axes[i] = byRank(graph.values[i].meta->sizes.size());
    for (const Node &node : graph.nodes) {
        const std::string family = operatorFamily(node);
        const auto inputs = node.inputValues();
        for (ValueId out : node.outputValues()) {
            if (!graph.value(out).meta)
                continue;
            const std::size_t rank = graph.value(out).meta->sizes.size();
            int &axis = axes[out.get()];
            if (rank < 2)
                continue;
            if (isConvolution(node) || isBatchNorm(node) || family == "group_norm" || family == "instance_norm")
                axis = 1;
            else if (family == "linear" || family == "layer_norm" || family == "embedding" || family == "rms_norm")
                axis = static_cast<int>(rank) - 1;
            else if (!isElementMover(node) || family == "clone" || family == "detach" || family == "dropout")
                for (ValueId in : inputs)
                    if (graph.value(in).meta && graph.value(in).meta->sizes.size() == rank && axes[in.get()] >= 0) {
                        axis = axes[in.get()];
                        break;
                    }
        }
    }
    return axes;
}

namespace
{

class RowMaker
{
public:
    explicit RowMaker(const AlignmentState &state)
        : m_state(state), m_ref(state.ref.graph), m_cand(state.cand.graph), m_axes(channelAxes(m_ref))
    {
        m_result.notes = state.notes;
        m_usedCand.assign(m_cand.values.size(), 0);
    }

    Alignment run()
    {
        for (const auto &[conv, norm] : m_state.foldedInto) {
            m_foldIndex[conv] = static_cast<std::int32_t>(m_result.folds.size());
            m_result.folds.push_back({conv, norm, m_ref.value(m_ref.node(norm).outputValues().front()).name});
        }
        collectOperands();
        pairConstantOutputs();
        stored();
        inputs();
        activations();
        unmatchedCandidate();
        if (!m_result.folds.empty())
            m_result.notes.push_back(m_result.folds.size() == 1
                                         ? "1 batch norm folded: the candidate has it inside its convolution, so that "
                                           "is compared after the reference's norm"
                                         : std::to_string(m_result.folds.size()) +
                                               " batch norms folded: the candidate has them inside its convolutions, "
                                               "so those are compared after the reference's norms");
        noteArguments();
        noteQuantizers();
        if (m_result.pairs.empty())
            m_result.notes.push_back("nothing could be paired: the two files seem to hold different models");
        fillTables();
        return std::move(m_result);
    }

private:
    // --- weights -------------------------------------------------------------------------------------------------

    // Stored tensors that paired operators read under the same argument name: reference parameter -> what the
    // candidate reads there (a weight site's result or a stored tensor).
    void collectOperands()
    {
        for (std::size_t i = 0; i < m_ref.nodes.size(); ++i) {
            if (m_state.ref.pair[i] < 0)
                continue;
            const Node &r = m_ref.nodes[i];
            const Node &c = m_cand.nodes[static_cast<std::size_t>(m_state.ref.pair[i])];
            for (const auto &argument : r.inputs) {
                const auto *rv = std::get_if<ValueId>(&argument.value);
                const ValueId cv = valueArgument(c, argument.name);
                if (!rv || !cv.valid() || m_state.ref.depends[rv->get()] || m_state.cand.depends[cv.get()])
                    continue;
                const ValueId source = throughMovers(m_ref, m_state.ref.sites, *rv);
                if (!source.valid() || !m_ref.input(source))
                    continue;
                // A reference with quantizers of its own: like is compared with like, after the site on both sides.
                const SiteId own = m_state.ref.sites.siteOfResult(*rv);
                const bool quantizes = own.valid() && !m_state.ref.sites.site(own).watchesOnly;
                m_operands.try_emplace(source, Operand{cv, NodeId(i), quantizes ? *rv : source});
            }
        }
    }

    struct Operand {
        ValueId cand;
        NodeId reader; // the reference operator
        ValueId refCompared;
    };

    static ValueId throughMovers(const Graph &graph, const SiteTable &sites, ValueId value)
    {
        for (int depth = 0; depth < 32; ++depth) {
            if (graph.input(value))
                return value;
            if (const SiteId site = sites.siteOfResult(value); site.valid()) {
                const QuantSite &found = sites.site(site);
                value = found.source.valid() ? found.source : found.stored;
                if (!value.valid())
                    return {};
                continue;
            }
            const Node *producer = graph.producer(value);
            if (!producer || !(isElementMover(*producer) || operatorFamily(*producer) == "to"))
                return {};
            value = producer->inputValues().front();
        }
        return {};
    }

    void stored()
    {
        for (const auto &input : m_ref.inputs) {
            const bool isStored = input.kind == InputKind::Parameter || input.kind == InputKind::Buffer ||
                                  input.kind == InputKind::TensorConstant;
            if (!isStored || !input.value.valid())
                continue;
            AlignedPair row;
            row.kind = RowKind::Weight;
            row.ref = row.refCompared = input.value;
            if (!(viaOperator(input, row) || viaTarget(input, row))) {
                if (isQuantizerState(input) && m_ref.readers(input.value).empty())
                    continue; // state of observers that were taken out: no value of the graph
                unmatchedReference(input.value, reasonForStored(input));
                continue;
            }
            const auto &a = m_ref.value(row.ref).meta;
            const auto &b = m_cand.value(row.candCompared).meta;
            if (a && b && !compatibleShapes(*a, *b, false)) {
                unmatchedReference(input.value, "shapes differ " + shapeText(*a) + " / " + shapeText(*b));
                continue;
            }
            finishWeight(row);
        }
    }

    bool viaOperator(const GraphInput &input, AlignedPair &row)
    {
        const auto found = m_operands.find(input.value);
        if (found == m_operands.end())
            return false;
        const Operand &operand = found->second;
        const ValueId cv = operand.cand;
        if (const SiteId site = m_state.cand.sites.siteOfResult(cv); site.valid())
            useSite(site, cv, row);
        else if (m_cand.input(cv))
            row.cand = row.candCompared = cv;
        else
            return false;
        row.refCompared = operand.refCompared;
        if (row.refCompared != row.ref)
            row.refBefore = row.ref;
        row.rung = m_state.how.at(operand.reader).rung;
        row.reason = "read by the paired " + m_ref.node(operand.reader).name;
        if (const auto fold = m_foldIndex.find(operand.reader); fold != m_foldIndex.end()) {
            row.foldedNorm = fold->second;
            row.folded = {m_result.folds[static_cast<std::size_t>(fold->second)].name};
        }
        return true;
    }

    void useSite(SiteId id, ValueId result, AlignedPair &row)
    {
        const QuantSite &site = m_state.cand.sites.site(id);
        row.site = id;
        row.cand = site.source.valid() ? site.source : site.stored;
        row.candCompared = site.watchesOnly ? row.cand : result;
        // W·sf of a rewritten norm is computed by the candidate itself: the site is measured against its own input.
        if (site.source.valid() && !m_cand.input(site.source) && !isPlainCopy(site.source)) {
            row.refFromCandidate = site.source;
            row.rewritten = "the candidate rewrote the norm: its own scaled weight " + m_cand.value(site.source).name +
                            " is compared with the quantized one";
        }
    }

    [[nodiscard]] bool isPlainCopy(ValueId value) const
    {
        return throughMovers(m_cand, m_state.cand.sites, value).valid();
    }

    bool viaTarget(const GraphInput &input, AlignedPair &row)
    {
        const auto &sites = m_state.cand.sites.sites;
        for (std::size_t i = 0; i < sites.size(); ++i)
            if (sites[i].role == SiteRole::Weight && sites[i].weightTarget == input.target) {
                useSite(SiteId(i), sites[i].result, row);
                row.rung = Rung::Name;
                row.reason = "same state-dict name " + input.target;
                return true;
            }
        for (const auto &other : m_cand.inputs) {
            const bool isStored = other.kind == InputKind::Parameter || other.kind == InputKind::Buffer ||
                                  other.kind == InputKind::TensorConstant;
            if (!isStored || other.target != input.target || !other.value.valid())
                continue;
            // The float original of a folded weight lies unread in converted files: no partner for a weight in use,
            // on either side.
            if (m_cand.readers(other.value).empty() != m_ref.readers(input.value).empty())
                continue;
            row.cand = row.candCompared = other.value;
            row.rung = Rung::Name;
            row.reason = "same state-dict name " + input.target;
            return true;
        }
        return false;
    }

    void finishWeight(AlignedPair row)
    {
        row.channelAxis = -1;
        const auto &meta = m_ref.value(row.ref).meta;
        if (meta && meta->sizes.size() >= 2) {
            row.channelAxis = 0;
            for (NodeId reader : m_ref.readers(row.refCompared))
                if (operatorFamily(m_ref.node(reader)) == "conv_transpose")
                    row.channelAxis = 1;
            if (row.site.valid() && m_state.cand.sites.site(row.site).spec.granularity == Granularity::PerChannel)
                row.channelAxis = m_state.cand.sites.site(row.site).spec.axis;
        }
        use(row);
        m_result.pairs.push_back(std::move(row));
    }

    std::string reasonForStored(const GraphInput &input) const
    {
        for (NodeId reader : m_ref.readers(input.value)) {
            if (const auto fold = m_state.foldOf.find(reader); fold != m_state.foldOf.end())
                return "folded into " + m_ref.node(fold->second).name;
            if (m_state.ref.pair[reader.get()] < 0)
                return "its reader " + m_ref.node(reader).name + " has no partner";
        }
        if (!m_ref.readers(input.value).empty())
            return "no stored tensor of that name in the candidate";
        return hasQuantizer(m_state.ref.sites)
                   ? "not read by any node: a float original left in the file"
                   : "not read by any node, and no unread one of the candidate has its name";
    }

    // --- inputs and activations ----------------------------------------------------------------------------------

    void inputs()
    {
        for (const auto &input : m_ref.inputs) {
            if (input.kind != InputKind::User || !input.value.valid() || !m_ref.value(input.value).meta)
                continue;
            const auto partner = m_state.userInputs.find(input.value);
            if (partner == m_state.userInputs.end()) {
                unmatchedReference(input.value, "the candidate has fewer inputs");
                continue;
            }
            AlignedPair row;
            row.kind = RowKind::Input;
            row.ref = row.refCompared = input.value;
            row.cand = partner->second;
            row.rung = Rung::Signature;
            row.reason = "same place in the signature";
            addActivation(std::move(row));
        }
    }

    void activations()
    {
        for (std::size_t i = 0; i < m_ref.nodes.size(); ++i) {
            const NodeId id(i);
            if (m_state.foldOf.contains(id))
                continue;
            const Node &node = m_ref.nodes[i];
            const auto outputs = node.outputValues();
            if (!m_state.ref.usable[i]) {
                constants(id);
                continue;
            }
            if (m_state.ref.pair[i] < 0) {
                for (ValueId v : outputs)
                    if (m_ref.value(v).meta)
                        unmatchedReference(v, reasonForNode(id));
                continue;
            }
            const auto partners = m_cand.nodes[static_cast<std::size_t>(m_state.ref.pair[i])].outputValues();
            for (std::size_t k = 0; k < outputs.size(); ++k) {
                if (!m_ref.value(outputs[k]).meta)
                    continue;
                if (k >= partners.size() || !m_cand.value(partners[k]).meta) {
                    unmatchedReference(outputs[k], "the candidate's node has fewer outputs");
                    continue;
                }
                addNodeRow(id, outputs[k], partners[k]);
            }
        }
    }

    // Computed from weights alone. Inside a quantizer its site stands for such values, and what both models return is
    // paired by its place; others are listed, as on the candidate's side.
    void constants(NodeId id)
    {
        if (m_state.ref.sites.siteOfNode(id).valid())
            return;
        for (ValueId v : m_ref.node(id).outputValues()) {
            if (!m_ref.value(v).meta)
                continue;
            const auto partner = m_constantOutputs.find(v);
            if (partner == m_constantOutputs.end()) {
                unmatchedReference(v, "computed from weights alone");
                continue;
            }
            AlignedPair row;
            row.ref = row.refCompared = v;
            row.cand = partner->second;
            row.rung = Rung::Signature;
            row.reason = "the same output, computed from weights alone";
            addActivation(std::move(row));
        }
    }

    void pairConstantOutputs()
    {
        const auto returned = [](const SideState &side) {
            std::vector<ValueId> values;
            for (const auto &output : side.graph.outputs)
                if (output.kind == OutputKind::User)
                    values.push_back(output.value);
            return values;
        };
        const auto constant = [](const SideState &side, ValueId value) {
            return value.valid() && side.graph.value(value).meta && side.graph.value(value).producer.valid() &&
                   !side.depends[value.get()];
        };
        const auto refs = returned(m_state.ref);
        const auto cands = returned(m_state.cand);
        if (refs.size() != cands.size())
            return;
        for (std::size_t i = 0; i < refs.size(); ++i)
            if (constant(m_state.ref, refs[i]) && constant(m_state.cand, cands[i]) &&
                compatibleShapes(*m_ref.value(refs[i]).meta, *m_cand.value(cands[i]).meta, false))
                m_constantOutputs.emplace(refs[i], cands[i]);
    }

    void addNodeRow(NodeId id, ValueId ref, ValueId cand)
    {
        AlignedPair row;
        row.kind = RowKind::Activation;
        row.ref = row.refCompared = ref;
        row.cand = m_state.effective(cand);
        if (row.cand != cand) {
            row.rewritten = "compared after the candidate's /scale" +
                            std::string(operatorFamily(*m_cand.producer(row.cand)) == "add" ? " and bias" : "");
            m_usedCand[cand.get()] = 1;
            if (const Node *add = m_cand.producer(row.cand))
                for (ValueId v : add->inputValues())
                    if (m_state.cand.depends[v.get()])
                        m_usedCand[v.get()] = 1;
        }
        const auto &how = m_state.how.at(id);
        row.rung = how.rung;
        row.reason = how.reason;
        if (const auto fold = m_foldIndex.find(id); fold != m_foldIndex.end()) {
            const FoldedNorm &folded = m_result.folds[static_cast<std::size_t>(fold->second)];
            row.foldedNorm = fold->second;
            row.folded = {folded.name};
            row.refCompared = m_ref.node(folded.norm).outputValues().front();
        }
        addActivation(std::move(row));
    }

    void addActivation(AlignedPair row)
    {
        row.candCompared = row.cand;
        // A reference with quantizers of its own: like is compared with like, raw with raw and after with after.
        if (const SiteId own = m_state.ref.sites.outputSiteOf(row.refCompared);
            own.valid() && !m_state.ref.sites.site(own).watchesOnly) {
            row.refBefore = row.refCompared;
            row.refCompared = m_state.ref.sites.site(own).result;
        }
        const auto &sites = m_state.cand.sites;
        if (const SiteId site = sites.outputSiteOf(row.cand); site.valid()) {
            row.site = site;
            if (!sites.site(site).watchesOnly)
                row.candCompared = sites.site(site).result;
        }
        for (std::size_t i = 0; i < sites.sites.size(); ++i)
            if (sites.sites[i].role == SiteRole::Input && sites.sites[i].source == row.cand)
                row.inputSites.push_back(SiteId(i));
        if (row.candCompared == row.cand && !row.inputSites.empty()) {
            row.candAfter = sites.site(row.inputSites.front()).result;
            for (const QuantSite &own : m_state.ref.sites.sites)
                if (own.role == SiteRole::Input && own.source == row.refCompared && !row.refAfter.valid())
                    row.refAfter = own.result;
        }
        const bool returned = m_ref.isOutput(row.refCompared) || m_ref.isOutput(row.ref) || returnsResultOf(row.ref);
        if (returned && row.kind == RowKind::Activation)
            row.kind = RowKind::Output;
        row.channelAxis = m_axes[row.ref.get()];
        use(row);
        m_result.pairs.push_back(std::move(row));
    }

    // The reference may be quantized itself: what it returns is then the result of a site on this value.
    [[nodiscard]] bool returnsResultOf(ValueId value) const
    {
        const SiteId site = m_state.ref.sites.outputSiteOf(value);
        return site.valid() && m_ref.isOutput(m_state.ref.sites.site(site).result);
    }

    std::string reasonForNode(NodeId id) const
    {
        if (const auto doubt = m_state.doubts.find(id); doubt != m_state.doubts.end())
            return doubt->second;
        const Node &node = m_ref.node(id);
        const NodeId named = m_cand.findNode(node.name);
        if (named.valid() && m_state.cand.usable[named.get()] && m_state.cand.pair[named.get()] < 0) {
            const Node &other = m_cand.node(named);
            if (operatorFamily(other) != operatorFamily(node))
                return "the candidate's " + other.name + " is another operator (" + other.opType() + ")";
            const auto &a = m_ref.value(node.outputValues().front()).meta;
            const auto &b = m_cand.value(other.outputValues().front()).meta;
            if (a && b)
                return "shapes differ " + shapeText(*a) + " / " + shapeText(*b);
        }
        return "no node of that name, source or module";
    }

    // --- what is left --------------------------------------------------------------------------------------------

    void unmatchedReference(ValueId value, std::string reason)
    {
        if (reason.starts_with("shapes differ"))
            ++m_result.shapeMismatches;
        const Node *producer = m_ref.producer(value);
        m_result.unmatched.push_back({Side::Reference, value, m_ref.value(value).name,
                                      producer ? moduleOf(m_ref, *producer) : moduleOfInput(m_ref, value),
                                      std::move(reason)});
    }

    static std::string moduleOfInput(const Graph &graph, ValueId value)
    {
        const GraphInput *input = graph.input(value);
        const auto dot = input ? input->target.rfind('.') : std::string::npos;
        return dot == std::string::npos ? std::string() : input->target.substr(0, dot);
    }

    void unmatchedCandidate()
    {
        for (std::size_t i = 0; i < m_cand.values.size(); ++i) {
            const ValueId value(i);
            if (m_usedCand[i] || !m_cand.value(value).meta)
                continue;
            const NodeId producer = m_cand.value(value).producer;
            if (m_state.cand.sites.siteOfNode(producer).valid())
                continue; // inside a quantizer: the site stands for it
            const std::string reason =
                producer.valid() ? reasonForCandidateNode(value, producer) : reasonForCandidateInput(value);
            if (reason.empty())
                continue;
            const Node *node = m_cand.producer(value);
            m_result.unmatched.push_back({Side::Candidate, value, m_cand.value(value).name,
                                          node ? moduleOf(m_cand, *node) : moduleOfInput(m_cand, value), reason});
        }
    }

    std::string reasonForCandidateNode(ValueId value, NodeId producer) const
    {
        if (!m_state.cand.depends[value.get()])
            return "computed from weights alone";
        if (m_cand.readers(value).empty() && !m_cand.isOutput(value))
            return "no node of that name, source or module; nothing reads it";
        (void)producer;
        return "no node of that name, source or module";
    }

    // Empty: not worth a line (the state of a quantizer, the integers of a weight site).
    std::string reasonForCandidateInput(ValueId value) const
    {
        const GraphInput *input = m_cand.input(value);
        if (!input || input->kind == InputKind::User)
            return "the reference has fewer inputs";
        const auto &readers = m_cand.readers(value);
        const bool onlySites = !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId n) {
            return m_state.cand.sites.siteOfNode(n).valid();
        });
        if (onlySites)
            return {};
        if (!readers.empty()) {
            const bool bias = input->target.ends_with("_bias") && !m_result.folds.empty();
            return bias ? "made by folding a batch norm" : "no stored tensor of that name in the reference";
        }
        if (input->kind == InputKind::Buffer)
            return {}; // observer state and flags that were baked into the graph
        return "not read by any node: a float original left in the file";
    }

    void use(const AlignedPair &row)
    {
        for (ValueId v : {row.cand, row.candCompared, row.candAfter, row.refFromCandidate})
            if (v.valid())
                m_usedCand[v.get()] = 1;
    }

    // Paired operators with other literal arguments (an eps that an exporter replaced): float arithmetic differs, and
    // no quantizer is to blame. One line per operator family, argument and pair of values.
    void noteArguments()
    {
        std::map<std::string, int> seen;
        for (std::size_t i = 0; i < m_ref.nodes.size(); ++i) {
            if (m_state.ref.pair[i] < 0)
                continue;
            const Node &r = m_ref.nodes[i];
            const Node &c = m_cand.nodes[static_cast<std::size_t>(m_state.ref.pair[i])];
            if (r.target != c.target)
                continue;
            for (const auto &argument : r.inputs) {
                const auto *a = std::get_if<double>(&argument.value);
                const auto b = numberArgument(c, argument.name);
                if (a && b && *a != *b)
                    ++seen[r.opName() + " uses " + argument.name + " " + number(*b) + " in the candidate, " +
                           number(*a) + " in the reference"];
            }
        }
        for (const auto &[text, count] : seen)
            m_result.notes.push_back(text + (count > 1 ? " (" + std::to_string(count) + " times)" : "") +
                                     ": the float arithmetic differs");
    }

    static bool hasQuantizer(const SiteTable &sites)
    {
        return std::any_of(sites.sites.begin(), sites.sites.end(), [](const QuantSite &s) { return !s.watchesOnly; });
    }

    // A candidate without a quantizer is seldom what was meant.
    void noteQuantizers()
    {
        if (hasQuantizer(m_state.cand.sites))
            return;
        if (hasQuantizer(m_state.ref.sites))
            m_result.notes.emplace_back("the reference is quantized and the candidate is not: the sides look swapped; "
                                        "the reference comes first");
        else if (!m_state.cand.sites.sites.empty())
            m_result.notes.emplace_back("no quantizer is recognized in the candidate, only observers that watch; "
                                        "convert it before it is exported");
        else
            m_result.notes.emplace_back("no quantizer is recognized in the candidate: what differs is not laid to any "
                                        "(dblame inspect lists the operators of a file)");
    }

    static std::string number(double value)
    {
        char text[32];
        std::snprintf(text, sizeof text, "%g", value);
        return text;
    }

    void fillTables()
    {
        m_result.rowOfRef.assign(m_ref.values.size(), -1);
        m_result.rowOfCand.assign(m_cand.values.size(), -1);
        for (std::size_t i = 0; i < m_result.pairs.size(); ++i) {
            const AlignedPair &row = m_result.pairs[i];
            m_result.rowOfRef[row.ref.get()] = m_result.rowOfRef[row.refCompared.get()] = static_cast<std::int32_t>(i);
            for (ValueId v : {row.cand, row.candCompared})
                if (v.valid())
                    m_result.rowOfCand[v.get()] = static_cast<std::int32_t>(i);
        }
    }

    const AlignmentState &m_state;
    const Graph &m_ref;
    const Graph &m_cand;
    std::vector<int> m_axes;
    Alignment m_result;
    std::map<ValueId, Operand> m_operands;
    std::map<ValueId, ValueId> m_constantOutputs; // reference -> candidate
    std::map<NodeId, std::int32_t> m_foldIndex;
    std::vector<char> m_usedCand;
};

} // namespace

Alignment rowsOf(const AlignmentState &state)
{
    return RowMaker(state).run();
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/site_plan.h"

#include <algorithm>
#include <set>

#include <c10/util/Exception.h>

#include "core/engine/reference_weights.h"
#include "core/engine/site_change.h"
#include "core/engine/site_kernels.h"
#include "core/graph_query.h"
#include "core/spec_change.h"

namespace dblame
{

namespace
{

template <class F>
void eachResult(const QuantSite &site, const F &f)
{
    f(site.result);
    for (ValueId v : site.moreResults)
        f(v);
}

bool isFloat32(const Graph &graph, ValueId value)
{
    return graph.value(value).meta && graph.value(value).meta->dtype == DType::Float32;
}

const Node *nodeOf(const Graph &graph, const QuantSite &site, std::string_view family)
{
    for (NodeId n : site.nodes)
        if (operatorFamily(graph.node(n)) == family)
            return &graph.node(n);
    return nullptr;
}

// Nothing is lost by the change: what the grid's group does behind it stays all there is.
bool isFiner(const SpecChange &change, const QuantSpec &own)
{
    const int bits = change.type ? bitsOf(*change.type) : change.bits;
    return bits > own.effectiveBits() && !change.low && !change.high && own.tableSize == 0 && !isFloatGrid(own);
}

// The stored tensor behind a chain of views, viewed as the chain's end is.
at::Tensor storedView(const LoadedModel &model, ValueId value)
{
    const Graph &graph = model.graph();
    if (!graph.value(value).meta)
        return {};
    std::vector<std::int64_t> sizes;
    for (const Dim &dim : graph.value(value).meta->sizes)
        sizes.push_back(dim.size);
    for (int depth = 0; depth < 16 && !graph.input(value); ++depth) {
        const Node *producer = graph.producer(value);
        if (!producer || !(isElementMover(*producer) || operatorFamily(*producer) == "to"))
            return {};
        value = producer->inputValues().front();
    }
    if (!graph.input(value) || !model.tensor(value).defined())
        return {};
    const at::Tensor &stored = model.tensor(value);
    std::int64_t count = 1;
    for (std::int64_t size : sizes)
        count *= size;
    return count == stored.numel() && stored.is_contiguous() ? stored.view(sizes) : at::Tensor();
}

} // namespace

SitePlanner::SitePlanner(std::shared_ptr<const LoadedModel> reference, std::shared_ptr<const LoadedModel> candidate,
                         const SiteTable &sites, const Alignment &alignment)
    : m_reference(std::move(reference)), m_candidate(std::move(candidate)), m_sites(sites), m_alignment(alignment)
{
    addFusedKernels();
}

// Only the shapes of site whose kernel is known to give the bits of its nodes (site_kernels.h).
void SitePlanner::addFusedKernels()
{
    const Graph &graph = m_candidate->graph();
    if (const auto &planned = m_candidate->m_planned)
        for (std::size_t i = 0; i < planned->kernels.size(); ++i) {
            const QuantSite &site = m_sites.sites[i];
            m_untouched.computed[site.result] = Substitute{site.source, planned->kernels[i]};
        }
    for (const QuantSite &site : m_sites.sites) {
        if (!site.source.valid() || !isFloat32(graph, site.source) || !isFloat32(graph, site.result))
            continue;
        SiteKernel kernel;
        if (site.form == SiteForm::QdqPair && site.spec.granularity == Granularity::PerTensor &&
            site.scale.size() == 1 && site.zeroPoint.size() == 1 &&
            (site.spec.storage == DType::Int8 || site.spec.storage == DType::UInt8)) {
            kernel =
                fusedQdqPerTensor(site.scale.front(), site.zeroPoint.front(), site.spec.quantMin, site.spec.quantMax);
        } else if (site.form == SiteForm::DecomposedFakeQuant && site.spec.granularity != Granularity::PerBlock) {
            const Node *div = nodeOf(graph, site, "div");
            const Node *sub = nodeOf(graph, site, "sub");
            const Node *clamp = nodeOf(graph, site, "clamp");
            const Node *add = clamp ? graph.producer(valueArgument(*clamp, "self")) : nullptr;
            if (!div || !sub || !add || !nodeOf(graph, site, "round") || operatorFamily(*add) != "add")
                continue;
            // The minval formulation subtracts a stored tensor here; the zero-point one subtracts a fresh zero.
            const Node *offset = graph.producer(valueArgument(*sub, "other"));
            const std::string made = offset ? operatorFamily(*offset) : std::string();
            if (made != "new_zeros" && made != "full" && made != "zeros" && made != "zeros_like")
                continue;
            const at::Tensor scale = storedView(*m_candidate, valueArgument(*div, "other"));
            const at::Tensor zero = storedView(*m_candidate, valueArgument(*add, "other"));
            if (scale.defined() && zero.defined())
                kernel = fusedDecomposedFakeQuant(scale, zero, site.spec.quantMin, site.spec.quantMax);
        }
        if (kernel)
            eachResult(site, [&](ValueId v) { m_untouched.computed[v] = Substitute{site.source, kernel}; });
    }
}

const SitePlanner::FloatSource &SitePlanner::sourceOf(SiteId site) const
{
    const auto known = m_sources.find(site);
    return known != m_sources.end() ? known->second : m_sources.emplace(site, findSource(site)).first->second;
}

SitePlanner::FloatSource SitePlanner::findSource(SiteId id) const
{
    const QuantSite &site = m_sites.site(id);
    FloatSource found;
    if (site.source.valid()) {
        found.inGraph = true;
        found.text = "from the site's own float input";
        return found;
    }
    const auto row = std::find_if(m_alignment.pairs.begin(), m_alignment.pairs.end(), [&](const AlignedPair &pair) {
        return pair.kind == RowKind::Weight && pair.site == id;
    });
    if (row == m_alignment.pairs.end()) {
        found.refusal = "no float weight: the file holds only the integers, and no reference weight is paired with it";
        return found;
    }
    const at::Tensor weight = referenceWeight(*m_reference, m_alignment, *row);
    if (!weight.defined()) {
        found.refusal = "the reference's weight cannot be folded: its norm's statistics are not stored";
        return found;
    }
    // Run the dequantize node alone to see the weight as the candidate has it.
    const auto program = Program::compile(m_candidate);
    const std::vector<ValueId> wanted{site.result};
    const auto nodes = program->schedule(wanted, [](ValueId) { return false; });
    Execution execution(program, nodes, wanted);
    for (NodeId n : nodes)
        execution.run(n);
    const c10::IValue quantized = execution.value(site.result);
    if (!quantized.isTensor()) {
        found.refusal = "the quantized weight cannot be computed: " + execution.faultOf(site.result);
        return found;
    }
    const std::string change = explainWeightChange(weight, quantized.toTensor(), site);
    if (!change.empty()) {
        found.refusal = "the candidate's weight was " + change +
                        ", so the reference's weight is not its float original; its activations can be skipped";
        return found;
    }
    found.tensor = weight;
    found.text =
        row->folded.empty() ? "from the reference's weight" : "from the reference's weight with the norm folded in";
    return found;
}

std::string SitePlanner::refusal(SiteId site) const
{
    return sourceOf(site).refusal;
}

void SitePlanner::switchOff(SiteId id, Rewiring &rewiring) const
{
    const QuantSite &site = m_sites.site(id);
    const FloatSource &source = sourceOf(id);
    if (site.watchesOnly || !source.refusal.empty())
        return;
    eachResult(site, [&](ValueId result) {
        rewiring.computed.erase(result);
        if (source.inGraph)
            rewiring.redirect[result] = site.source;
        else
            rewiring.given[result] = source.tensor;
    });
}

std::string SitePlanner::refusal(SiteId id, const SpecChange &change) const
{
    const QuantSite &site = m_sites.site(id);
    const FloatSource &source = sourceOf(id);
    if (site.watchesOnly)
        return changeProblem(site, change, std::nullopt);
    if (!source.refusal.empty())
        return source.refusal;
    std::optional<std::vector<std::int64_t>> shape;
    if (!source.inGraph) {
        shape = source.tensor.sizes().vec();
    } else if (const auto &meta = m_candidate->graph().value(site.source).meta) {
        shape.emplace();
        for (const Dim &dim : meta->sizes)
            shape->push_back(dim.size);
    }
    std::string problem = changeProblem(site, change, shape);
    if (problem.empty() && !source.inGraph)
        problem = chosenQparams(id, change).second;
    return problem;
}

void SitePlanner::respecify(SiteId id, const SpecChange &change, Rewiring &rewiring) const
{
    if (!refusal(id, change).empty())
        return;
    const QuantSite &site = m_sites.site(id);
    const FloatSource &source = sourceOf(id);
    const SiteKernel kernel = changedSite(site, change);
    if (source.inGraph) {
        eachResult(site, [&](ValueId result) { rewiring.computed[result] = Substitute{site.source, kernel}; });
    } else {
        const at::Tensor value = kernel(source.tensor);
        eachResult(site, [&](ValueId result) { rewiring.given[result] = value; });
    }
}

SiteQparams SitePlanner::qparams(SiteId id, const SpecChange &change) const
{
    return chosenQparams(id, change).first;
}

const std::pair<SiteQparams, std::string> &SitePlanner::chosenQparams(SiteId id, const SpecChange &change) const
{
    const auto known = m_qparams.find(id);
    if (known != m_qparams.end() && known->second.first == change)
        return known->second.second;
    const QuantSite &site = m_sites.site(id);
    const FloatSource &source = sourceOf(id);
    std::pair<SiteQparams, std::string> found;
    try {
        if (!source.inGraph)
            found.first = changedQparams(site, change, source.tensor);
        else if (const at::Tensor weight = storedView(*m_candidate, site.source); weight.defined())
            found.first = changedQparams(site, change, weight);
        else
            found.first = fixedQparams(site, change);
    } catch (const c10::Error &error) { // NaN: no scale
        found = {{}, error.what_without_backtrace()};
    }
    return m_qparams.insert_or_assign(id, std::pair{change, std::move(found)}).first->second.second;
}

Rewiring SitePlanner::rewiring(const EditSet &edits) const
{
    Rewiring result = m_untouched;
    for (const auto &[site, change] : edits.respecified)
        if (!edits.off.contains(site))
            respecify(site, change, result);
    for (SiteId site : edits.off)
        switchOff(site, result);
    for (const EdgeBypass &edge : edits.bypassed) {
        const QuantSite &site = m_sites.site(edge.site);
        if (site.watchesOnly || !site.source.valid() || edits.off.contains(edge.site))
            continue;
        eachResult(site, [&](ValueId value) { result.redirectFor[{edge.reader, value}] = site.source; });
    }
    return result;
}

std::string SitePlanner::edgeId(const EdgeBypass &edge) const
{
    const QuantSite &site = m_sites.site(edge.site);
    const Graph &graph = m_candidate->graph();
    const Node &reader = graph.node(edge.reader);
    const auto arguments = distinctTensorArguments(graph, reader);
    std::size_t index = 0;
    eachResult(site, [&](ValueId value) {
        const auto it = std::find(arguments.begin(), arguments.end(), value);
        if (it != arguments.end())
            index = static_cast<std::size_t>(it - arguments.begin());
    });
    const std::string module = moduleCallOf(graph, reader);
    return (module.empty() ? reader.name : module) + "/in[" + std::to_string(index) + "]";
}

// Whose values a weight site quantizes.
std::string SitePlanner::weightWords(SiteId id) const
{
    if (!sourceOf(id).inGraph)
        return sourceOf(id).text;
    return "from the candidate's own float weight";
}

Plan SitePlanner::plan(const EditSet &edits) const
{
    Plan plan;
    EditSet taken{edits.off, edits.bypassed, {}};
    const auto add = [&](ChangeKind kind, SiteId site, NodeId reader, std::string id, std::string text) {
        plan.changes.push_back({kind, site, reader, std::move(id), std::move(text)});
    };
    for (SiteId id : edits.off) {
        const QuantSite &site = m_sites.site(id);
        const FloatSource &source = sourceOf(id);
        if (site.watchesOnly)
            add(ChangeKind::NoEffect, id, {}, site.id, "only watches: there is nothing to switch off");
        else if (!source.refusal.empty())
            add(ChangeKind::Refused, id, {}, site.id, source.refusal);
        else
            add(ChangeKind::Off, id, {}, site.id,
                site.spec.text() + " → float" + (site.role == SiteRole::Weight ? ", " + source.text : std::string()));
    }
    for (const EdgeBypass &edge : edits.bypassed) {
        const QuantSite &site = m_sites.site(edge.site);
        if (edits.off.contains(edge.site) || site.watchesOnly)
            continue;
        add(ChangeKind::Bypassed, edge.site, edge.reader, edgeId(edge),
            site.spec.text() + " → float on this edge only" +
                (site.readers.size() > 1 ? "; " + site.id + " stays for its other readers" : std::string()));
    }
    for (const auto &[id, change] : edits.respecified) {
        const QuantSite &site = m_sites.site(id);
        if (edits.off.contains(id))
            continue;
        if (std::string why = refusal(id, change); !why.empty()) {
            add(ChangeKind::Refused, id, {}, site.id, std::move(why));
            continue;
        }
        const std::string range = rangeWords(site, change, weightWords(id));
        SpecChange brief = change; // its range is said in words
        brief.low.reset();
        brief.high.reset();
        add(ChangeKind::Respecified, id, {}, site.id,
            site.spec.text() + " → " + brief.text() + (range.empty() ? "" : ", " + range));
        taken.respecified.emplace(id, change);
    }
    noteGroups(edits, plan);
    for (const std::string &boundary : newBitBoundaries(m_candidate->graph(), m_sites, taken))
        plan.notes.push_back(boundary);
    return plan;
}

// Changing one member of a grid group changes little behind the group: say so and name the others.
void SitePlanner::noteGroups(const EditSet &edits, Plan &plan) const
{
    const auto note = [&](SiteId id, const std::string &what) {
        const QuantSite &site = m_sites.site(id);
        if (site.group < 0)
            return;
        std::string others;
        for (std::size_t i = 0; i < m_sites.sites.size(); ++i)
            if (m_sites.sites[i].group == site.group && SiteId(i) != id && !edits.off.contains(SiteId(i)) &&
                !edits.respecified.contains(SiteId(i)))
                others += (others.empty() ? "" : ", ") + m_sites.sites[i].id;
        if (!others.empty())
            plan.notes.push_back(what + site.id + " alone changes little: " + others +
                                 " quantizes the same values on the same grid");
    };
    for (SiteId id : edits.off)
        note(id, "switching off ");
    for (const PlannedChange &change : plan.changes)
        if (change.kind == ChangeKind::Respecified &&
            isFiner(edits.respecified.at(change.site), m_sites.site(change.site).spec))
            note(change.site, "a finer spec for ");
}

std::vector<std::string> SitePlanner::offIds(const EditSet &edits) const
{
    std::set<std::string> ids;
    for (const PlannedChange &change : plan(edits).changes)
        if (change.kind == ChangeKind::Off || change.kind == ChangeKind::Bypassed)
            ids.insert(change.id);
    return {ids.begin(), ids.end()};
}

std::vector<std::string> SitePlanner::changedIds(const EditSet &edits) const
{
    std::vector<std::string> ids;
    for (const PlannedChange &change : plan(edits).changes)
        if (change.kind == ChangeKind::Respecified)
            ids.push_back(change.id + "=" + edits.respecified.at(change.site).text());
    return ids;
}

SiteTable SitePlanner::sitesUnder(const EditSet &edits) const
{
    SiteTable sites = changedSites(m_sites, edits, changedIds(edits));
    for (const auto &[id, change] : edits.respecified) {
        if (edits.off.contains(id) || !refusal(id, change).empty())
            continue;
        const SiteQparams chosen = qparams(id, change);
        sites.sites[id.get()].scale = chosen.scale;
        sites.sites[id.get()].zeroPoint = chosen.zeroPoint;
    }
    return sites;
}

bool SitePlanner::everythingOff(const EditSet &edits) const
{
    for (std::size_t i = 0; i < m_sites.sites.size(); ++i) {
        const QuantSite &site = m_sites.sites[i];
        if (site.watchesOnly)
            continue;
        if (edits.off.contains(SiteId(i)) && refusal(SiteId(i)).empty())
            continue;
        const bool bypassedForAll =
            !site.readers.empty() && std::all_of(site.readers.begin(), site.readers.end(), [&](NodeId reader) {
                return edits.bypassed.contains(EdgeBypass{SiteId(i), reader});
            });
        if (!bypassedForAll)
            return false;
    }
    return !m_sites.sites.empty();
}

} // namespace dblame

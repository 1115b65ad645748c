// SPDX-License-Identifier: GPL-3.0-or-later
//
// The sites of a placement as nodes of a graph, and as a table.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/engine/quantized_form.h"
#include "core/engine/value_keys.h"
#include "core/graph_query.h"
#include "core/site_ownership.h"

namespace dblame
{

namespace
{

QuantSpec specOfSite(const TensorSpec &spec)
{
    QuantSpec result;
    result.storage = storageOf(spec.type);
    result.quantMin = spec.quantMin;
    result.quantMax = spec.quantMax;
    result.symmetric = spec.scheme != Scheme::Affine;
    result.granularity = spec.granularity;
    result.axis = spec.axis.value_or(-1);
    result.blockSize = spec.blockSizes.size() == 1 ? spec.blockSizes.front() : 0;
    result.dynamic = spec.observer == ObserverKind::Dynamic;
    result.divides = spec.arithmetic == Arithmetic::Division;
    if (spec.palette) {
        result.tableSize = std::int64_t{1} << spec.palette->bits;
        result.quantMin = 0;
        result.quantMax = result.tableSize - 1;
        result.granularity = spec.palette->groupSize > 0 ? Granularity::PerBlock : Granularity::PerTensor;
        result.axis = spec.palette->axis;
        result.blockSize = spec.palette->groupSize;
    }
    return result;
}

// Of the float model's file, and of how it was rewritten: what stored tensors of equal names have in common.
std::string originOf(const LoadedModel &model, const QuantizerFlow &flow)
{
    Digest digest("float form");
    digest.text(model.info().sha256).text(model.info().program);
    digest.number(flow.foldNorms ? 1 : 0).number(flow.liftScalars ? 1 : 0).number(flow.rewriteNorms ? 1 : 0);
    return digest.number(flow.corrected ? 1 : 0).key();
}

// Puts the sites of a placement into the graph.
class SiteBuilder
{
public:
    SiteBuilder(const FloatForm &form, const Placement &placement, const QuantizerFlow &flow, RewriteNotes &notes)
        : m_float(*form.model), m_placement(placement), m_origin(originOf(m_float, flow)), m_edit(form.model->graph())
    {
        if (flow.rewriteNorms)
            m_scaled = rewriteConvNorms(m_edit, flow.corrected, notes);
    }

    std::shared_ptr<LoadedModel> build(std::vector<SiteId> &siteOfPlaced)
    {
        for (const PlacedSite &site : m_placement.sites)
            insert(site);
        GraphEdit::Finished finished = std::move(m_edit).finish();
        SiteTable table;
        std::vector<ValueId> resultOf;
        for (std::size_t i = 0; i < m_placement.sites.size(); ++i) {
            table.sites.push_back(siteOf(i, finished));
            resultOf.push_back(table.sites.back().result);
        }
        std::shared_ptr<LoadedModel> model = rebuilt(m_float, finished, {});
        assignOwnership(*model, dependsOnUserInput(model->graph()), table);
        for (const ValueId result : resultOf)
            siteOfPlaced.push_back(table.siteOfResult(result));
        auto planned = std::make_shared<PlannedSites>();
        planned->table = std::move(table);
        planned->origin = m_origin;
        model->m_planned = std::move(planned);
        return model;
    }

private:
    void insert(const PlacedSite &site)
    {
        const Graph &graph = m_float.graph();
        ValueId base = site.value;
        if (site.role == SiteRole::Weight && site.owner.valid())
            if (const auto scaled = m_scaled.find(site.owner); scaled != m_scaled.end() && reads(site.owner, base))
                base = scaled->second;
        // What the readers see at present: the value, or the result of a site before this one.
        std::vector<ValueId> seen{base};
        for (int at = site.after; at >= 0; at = m_placement.sites[static_cast<std::size_t>(at)].after)
            seen.push_back(m_results[static_cast<std::size_t>(at)]);
        const ValueId source = site.after >= 0 ? m_results[static_cast<std::size_t>(site.after)] : base;

        Node node;
        node.name = m_placement.observers[static_cast<std::size_t>(site.instance)].name;
        node.target = "dblame.fake_quantize.default";
        node.inputs = {{"input", source}};
        if (site.owner.valid())
            node.modules = graph.node(site.owner).modules;
        const auto meta = graph.value(site.value).meta;
        const NodeId producer = graph.value(site.value).producer;
        const bool early = site.role == SiteRole::Output || site.readers.empty();
        const ValueId result = early ? m_edit.addAfter(producer, std::move(node), meta)
                                     : m_edit.addBefore(*std::min_element(site.readers.begin(), site.readers.end()),
                                                        std::move(node), meta);
        for (const ValueId from : seen) {
            for (const NodeId reader : site.readers)
                m_edit.replaceReads(from, result, reader);
            if (site.readByOutput)
                m_edit.replaceOutputs(from, result);
        }
        m_results.push_back(result);
        m_sources.push_back(source);
    }

    // The convolution reads this parameter as its weight (not as its bias).
    [[nodiscard]] bool reads(NodeId conv, ValueId weight) const
    {
        return valueArgument(m_float.graph().node(conv), "weight") == weight;
    }

    [[nodiscard]] QuantSite siteOf(std::size_t i, const GraphEdit::Finished &finished) const
    {
        const PlacedSite &placed = m_placement.sites[i];
        const PlacedObserver &observer = m_placement.observers[static_cast<std::size_t>(placed.instance)];
        QuantSite site;
        site.form = SiteForm::Planned;
        site.role = placed.role;
        site.owner = placed.owner.valid() ? finished.node[placed.owner.get()] : NodeId{};
        site.inputIndex = placed.inputIndex;
        site.instance = observer.name;
        site.source = finished.value[m_sources[i].get()];
        site.result = finished.value[m_results[i].get()];
        site.nodes = {finished.graph.value(site.result).producer};
        site.spec = specOfSite(observer.spec);
        return site;
    }

    const LoadedModel &m_float;
    const Placement &m_placement;
    std::string m_origin;
    GraphEdit m_edit;
    std::unordered_map<NodeId, ValueId> m_scaled;
    std::vector<ValueId> m_results, m_sources; // per placed site
};

} // namespace

std::shared_ptr<LoadedModel> insertSites(const FloatForm &form, const Placement &placement, const QuantizerFlow &flow,
                                         RewriteNotes &notes, std::vector<SiteId> &siteOfPlaced)
{
    return SiteBuilder(form, placement, flow, notes).build(siteOfPlaced);
}

} // namespace dblame

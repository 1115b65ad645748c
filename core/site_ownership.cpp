// SPDX-License-Identifier: GPL-3.0-or-later
//
// Whose site it is. A weight site belongs to the operator that reads it; a fake-quant on an activation is the
// output site of the value it reads; a q->dq is an output site of its producer if the dq's provenance contains
// the producer's innermost name, else the input site of its reader (this rule reproduces torchao's own partner
// for every row of its reference tables).
#include "core/site_ownership.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_set>

#include "core/graph_query.h"
#include "core/site_names.h"

namespace dblame
{

namespace
{

class Ownership
{
public:
    Ownership(const Model &model, const std::vector<char> &depends, SiteTable &table)
        : m_graph(model.graph()), m_depends(depends), m_table(table)
    {
    }

    void run()
    {
        for (auto &site : m_table.sites)
            m_inside.insert(site.nodes.begin(), site.nodes.end());
        std::vector<QuantSite> decided;
        for (auto &site : m_table.sites)
            decide(std::move(site), decided);
        std::stable_sort(decided.begin(), decided.end(),
                         [](const QuantSite &a, const QuantSite &b) { return lastNode(a) < lastNode(b); });
        m_table.sites = std::move(decided);
        nameSites(m_graph, m_table.sites);
        fillTables();
        groupGrids();
    }

    void groupAgain()
    {
        for (auto &site : m_table.sites) {
            site.group = -1;
            m_inside.insert(site.nodes.begin(), site.nodes.end());
        }
        groupGrids();
    }

private:
    static NodeId lastNode(const QuantSite &site) { return site.nodes.empty() ? NodeId{} : site.nodes.back(); }

    void decide(QuantSite site, std::vector<QuantSite> &out)
    {
        if (site.form == SiteForm::Planned) { // who asked for it is known
            if (site.role == SiteRole::Weight) {
                site.weightTarget = floatTarget(site.source);
                if (m_graph.input(site.source))
                    site.stored = site.source;
            }
            finish(std::move(site), out);
            return;
        }
        const bool isWeight = !site.source.valid() || !m_depends[site.source.get()];
        if (isWeight) {
            site.role = SiteRole::Weight;
            if (site.source.valid())
                site.weightTarget = floatTarget(site.source);
            if (site.source.valid() && m_graph.input(site.source))
                site.stored = site.source;
            finish(std::move(site), out);
            return;
        }
        const bool pair = site.form == SiteForm::QdqPair || site.form == SiteForm::DynamicQdq;
        if (!pair || belongsToProducer(site)) {
            site.role = SiteRole::Output;
            site.owner = m_graph.value(site.source).producer;
            finish(std::move(site), out);
            return;
        }
        // Input sites: one for each reader's dequantize, all fed by one quantize.
        std::vector<ValueId> results{site.result};
        results.insert(results.end(), site.moreResults.begin(), site.moreResults.end());
        std::vector<NodeId> shared;
        std::copy_if(site.nodes.begin(), site.nodes.end(), std::back_inserter(shared), [&](NodeId n) {
            return std::none_of(results.begin(), results.end(),
                                [&](ValueId r) { return m_graph.value(r).producer == n; });
        });
        for (ValueId result : results) {
            QuantSite one = site;
            one.role = SiteRole::Input;
            one.result = result;
            one.moreResults.clear();
            one.nodes = shared;
            one.nodes.push_back(m_graph.value(result).producer);
            finish(std::move(one), out);
        }
    }

    [[nodiscard]] bool belongsToProducer(const QuantSite &site) const
    {
        const Node *producer = m_graph.producer(site.source);
        if (!producer)
            return false; // a graph input's site belongs to its readers
        const auto &chain = m_graph.producer(site.result)->provenance;
        if (chain.empty()) // a file without provenance: an output site if nobody reads the raw value beside it
            return !site.spec.dynamic && m_graph.readers(site.source).size() == 1;
        const std::string &name = producer->provenance.empty() ? producer->name : producer->provenance.back().name;
        const auto names = [&](const ProvenanceStep &step) { return step.name == name; };
        if (std::any_of(chain.begin(), chain.end(), names))
            return true;
        // QAT conversion folds the norm into the convolution; the observer sat on the norm.
        return isConvolution(*producer) && chain.back().target.find("batch_norm") != std::string::npos;
    }

    void finish(QuantSite site, std::vector<QuantSite> &out)
    {
        const std::unordered_set<NodeId> inside(site.nodes.begin(), site.nodes.end());
        std::vector<ValueId> results{site.result};
        results.insert(results.end(), site.moreResults.begin(), site.moreResults.end());
        for (ValueId result : results)
            for (NodeId reader : m_graph.readers(result))
                if (!inside.contains(reader) &&
                    std::find(site.readers.begin(), site.readers.end(), reader) == site.readers.end())
                    site.readers.push_back(reader);
        if (site.role != SiteRole::Output)
            ownByReader(site);
        if (site.role == SiteRole::Output && !site.owner.valid()) {
            site.module.clear();
        } else if (site.owner.valid()) {
            const Node &owner = m_graph.node(site.owner);
            site.module = moduleOf(m_graph, owner);
            site.moduleType = owner.moduleType();
        }
        out.push_back(std::move(site));
    }

    // The operator that computes with the value: readers that only move elements (a transposed weight) are passed.
    void ownByReader(QuantSite &site)
    {
        ValueId through = site.result;
        NodeId reader = site.readers.empty() ? NodeId{} : site.readers.front();
        while (reader.valid() && site.role == SiteRole::Weight && isElementMover(m_graph.node(reader))) {
            const auto outputs = m_graph.node(reader).outputValues();
            if (outputs.empty() || m_graph.readers(outputs.front()).empty())
                break;
            through = outputs.front();
            reader = m_graph.readers(through).front();
        }
        site.owner = reader;
        if (!reader.valid())
            return;
        const auto arguments = distinctTensorArguments(m_graph, m_graph.node(reader));
        const auto it = std::find(arguments.begin(), arguments.end(), through);
        site.inputIndex = it == arguments.end() ? -1 : static_cast<int>(it - arguments.begin());
    }

    // State-dict name of the float parameter that a weight site's source is computed from.
    [[nodiscard]] std::string floatTarget(ValueId source) const
    {
        if (!source.valid())
            return {};
        std::vector<ValueId> open{source};
        std::set<ValueId> seen;
        std::string best;
        std::size_t bestRank = 0;
        while (!open.empty()) {
            const ValueId value = open.back();
            open.pop_back();
            if (!seen.insert(value).second)
                continue;
            if (const GraphInput *input = m_graph.input(value)) {
                const std::size_t rank = m_graph.value(value).meta ? m_graph.value(value).meta->sizes.size() : 0;
                if (input->kind == InputKind::Parameter && (best.empty() || rank > bestRank)) {
                    best = input->target;
                    bestRank = rank;
                }
            } else if (const Node *producer = m_graph.producer(value)) {
                for (ValueId v : producer->inputValues())
                    open.push_back(v);
            }
        }
        // torch.nn.utils.parametrize keeps the tensor of "conv.weight" as "conv.parametrizations.weight.original".
        const std::string middle = ".parametrizations.";
        const std::string tail = ".original";
        if (const auto at = best.find(middle);
            at != std::string::npos && best.size() > tail.size() && best.ends_with(tail))
            best = best.substr(0, at) + "." +
                   best.substr(at + middle.size(), best.size() - at - middle.size() - tail.size());
        return best;
    }

    void fillTables()
    {
        m_table.ofNode.assign(m_graph.nodes.size(), -1);
        m_table.ofResult.assign(m_graph.values.size(), -1);
        m_table.outputOf.assign(m_graph.values.size(), -1);
        for (std::size_t i = 0; i < m_table.sites.size(); ++i) {
            const auto index = static_cast<std::int32_t>(i);
            const QuantSite &site = m_table.sites[i];
            for (NodeId n : site.nodes)
                if (m_table.ofNode[n.get()] < 0)
                    m_table.ofNode[n.get()] = index;
            if (site.form != SiteForm::WatchingObserver) {
                m_table.ofResult[site.result.get()] = index;
                for (ValueId v : site.moreResults)
                    m_table.ofResult[v.get()] = index;
            }
            if (site.role == SiteRole::Output && site.source.valid()) {
                auto &slot = m_table.outputOf[site.source.get()];
                // An observer that only watches gives way to a site that quantizes the same value.
                if (slot < 0 || m_table.sites[static_cast<std::size_t>(slot)].watchesOnly)
                    slot = index;
            }
        }
    }

    // --- grid groups ---------------------------------------------------------------------------------------------

    static bool sameGrid(const QuantSite &a, const QuantSite &b)
    {
        return !a.spec.dynamic && !b.spec.dynamic && !a.scale.empty() && a.scale == b.scale &&
               a.zeroPoint == b.zeroPoint && a.spec.quantMin == b.spec.quantMin && a.spec.quantMax == b.spec.quantMax &&
               a.spec.granularity == Granularity::PerTensor && b.spec.granularity == Granularity::PerTensor;
    }

    // Follows the result of each site through operators that keep values (relu may add the grid's own zero) to the
    // sites that quantize them again.
    void groupGrids()
    {
        std::vector<std::size_t> parent(m_table.sites.size());
        std::iota(parent.begin(), parent.end(), std::size_t{0});
        const auto root = [&](std::size_t i) {
            while (parent[i] != i)
                i = parent[i] = parent[parent[i]];
            return i;
        };
        std::map<ValueId, std::vector<std::size_t>> bySource;
        for (std::size_t i = 0; i < m_table.sites.size(); ++i)
            if (m_table.sites[i].role != SiteRole::Weight && !m_table.sites[i].watchesOnly)
                bySource[m_table.sites[i].source].push_back(i);
        for (std::size_t i = 0; i < m_table.sites.size(); ++i) {
            const QuantSite &site = m_table.sites[i];
            if (site.role == SiteRole::Weight || site.watchesOnly)
                continue;
            std::vector<ValueId> open{site.result};
            open.insert(open.end(), site.moreResults.begin(), site.moreResults.end());
            std::set<ValueId> seen;
            while (!open.empty()) {
                const ValueId value = open.back();
                open.pop_back();
                if (!seen.insert(value).second)
                    continue;
                if (const auto again = bySource.find(value); again != bySource.end())
                    for (std::size_t other : again->second)
                        if (other != i && sameGrid(site, m_table.sites[other]))
                            parent[root(other)] = root(i);
                for (NodeId reader : m_graph.readers(value)) {
                    const Node &node = m_graph.node(reader);
                    if (!m_inside.contains(reader) && (keepsValues(node) || operatorFamily(node) == "relu"))
                        for (ValueId v : node.outputValues())
                            open.push_back(v);
                }
            }
        }
        std::map<std::size_t, int> size;
        for (std::size_t i = 0; i < parent.size(); ++i)
            ++size[root(i)];
        std::map<std::size_t, int> number;
        for (std::size_t i = 0; i < parent.size(); ++i)
            if (size[root(i)] > 1)
                m_table.sites[i].group = number.try_emplace(root(i), static_cast<int>(number.size())).first->second;
    }

    const Graph &m_graph;
    const std::vector<char> &m_depends;
    SiteTable &m_table;
    std::unordered_set<NodeId> m_inside;
};

} // namespace

void assignOwnership(const Model &model, const std::vector<char> &dependsOnInput, SiteTable &table)
{
    Ownership(model, dependsOnInput, table).run();
}

void assignGroups(const Model &model, SiteTable &table)
{
    Ownership(model, {}, table).groupAgain();
}

} // namespace dblame

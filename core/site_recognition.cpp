// SPDX-License-Identifier: GPL-3.0-or-later
//
// Finds the sites of a graph, form by form. What belongs to whom (role, owner, id, group) is decided in
// site_ownership.cpp once every site is known.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/graph_query.h"
#include "core/quant_site.h"
#include "core/site_clusters.h"
#include "core/site_ownership.h"

namespace dblame
{

namespace
{

// Quantizers that the exporter knows only from Python: torch's decomposed set and torchao's affine operators.
bool isQuantizerNamespace(const Node &node)
{
    return node.target.starts_with("quantized_decomposed.") || node.target.starts_with("torchao.");
}

bool isQuantize(const Node &node)
{
    return isQuantizerNamespace(node) && node.opName().starts_with("quantize_");
}

bool isDequantize(const Node &node)
{
    return isQuantizerNamespace(node) && node.opName().starts_with("dequantize_");
}

bool isChooseQparams(const Node &node)
{
    return isQuantizerNamespace(node) && node.opName().find("choose_qparams") != std::string::npos;
}

bool isFakeQuantizeOp(const Node &node)
{
    const std::string op = node.opName();
    return (node.target.starts_with("aten.") && op.starts_with("fake_quantize_per_")) ||
           node.target == "quantized_decomposed.fake_quant_per_channel.default";
}

bool isFusedObserver(const Node &node)
{
    const std::string op = node.opName();
    return op == "fused_moving_avg_obs_fake_quant" || op == "_fused_moving_avg_obs_fq_helper" ||
           op == "_fused_moving_avg_obs_fq_helper_functional";
}

class Recognizer
{
public:
    explicit Recognizer(const Model &model)
        : m_model(model), m_graph(model.graph()), m_depends(dependsOnUserInput(model.graph()))
    {
    }

    SiteTable run()
    {
        collectClusters();
        for (std::size_t i = 0; i < m_graph.nodes.size(); ++i) {
            const Node &node = m_graph.nodes[i];
            if (m_taken.contains(NodeId(i)))
                continue;
            if (isFakeQuantizeOp(node))
                addFakeQuantizeOp(NodeId(i), {NodeId(i)});
            else if (isFusedObserver(node))
                addFusedObserver(NodeId(i), {NodeId(i)});
            else if (isDequantize(node))
                addDequantize(NodeId(i));
        }
        collectFoldedWeights();
        assignOwnership(m_model, m_depends, m_table);
        return std::move(m_table);
    }

private:
    // --- clusters: nodes that an exporter inlined from one call of one quantizer module -------------------------

    void collectClusters()
    {
        std::map<std::string, std::vector<NodeId>> byKey;
        for (std::size_t i = 0; i < m_graph.nodes.size(); ++i)
            if (const ModuleFrame *frame = quantizerFrame(m_graph.nodes[i]))
                byKey[frame->key].push_back(NodeId(i));
        for (const auto &[key, nodes] : byKey) {
            const auto is = [&](auto predicate) {
                return std::find_if(nodes.begin(), nodes.end(), [&](NodeId n) { return predicate(m_graph.node(n)); });
            };
            if (const auto op = is(isFakeQuantizeOp); op != nodes.end())
                addFakeQuantizeOp(*op, nodes);
            else if (const auto fused = is(isFusedObserver); fused != nodes.end())
                addFusedObserver(*fused, nodes);
            else if (is(isQuantize) == nodes.end() && is(isDequantize) == nodes.end())
                addCluster(key, nodes);
        }
    }

    void addCluster(const std::string &key, const std::vector<NodeId> &nodes)
    {
        if (auto site = readCluster(m_model, key, nodes, m_table.notes))
            take(std::move(*site));
    }

    // --- single operators ----------------------------------------------------------------------------------------

    void readQparams(const Node &node, const char *scaleName, const char *zeroName, QuantSite &site) const
    {
        if (const auto scale = numberArgument(node, scaleName)) {
            site.scale = {*scale};
        } else if (const ValueId v = valueArgument(node, scaleName); v.valid()) {
            site.scale = m_model.numbers(v).value_or(std::vector<double>{});
        }
        if (const auto zero = intArgument(node, zeroName)) {
            site.zeroPoint = {*zero};
        } else if (const ValueId v = valueArgument(node, zeroName); v.valid()) {
            for (double z : m_model.numbers(v).value_or(std::vector<double>{}))
                site.zeroPoint.push_back(static_cast<std::int64_t>(z));
        }
    }

    void addFakeQuantizeOp(NodeId id, const std::vector<NodeId> &nodes)
    {
        const Node &node = m_graph.node(id);
        QuantSite site;
        site.form = SiteForm::FakeQuantizeOp;
        site.nodes = nodes;
        site.source = valueArgument(node, node.argument("self") ? "self" : "input");
        site.result = firstOutput(node);
        if (node.argument("scales"))
            readQparams(node, "scales", "zero_points", site);
        else
            readQparams(node, "scale", "zero_point", site);
        site.spec.quantMin = intArgument(node, "quant_min").value_or(-128);
        site.spec.quantMax = intArgument(node, "quant_max").value_or(127);
        site.spec.storage = storageOfGrid(site.spec.quantMin, site.spec.quantMax);
        if (node.opName().find("per_channel") != std::string::npos) {
            site.spec.granularity = Granularity::PerChannel;
            site.spec.axis = static_cast<int>(intArgument(node, "axis").value_or(0));
        }
        const ModuleFrame *frame = quantizerFrame(node);
        site.instance = frame ? frame->path : node.name;
        if (const ValueId v = valueArgument(node, "scale"); v.valid() && m_graph.input(v))
            site.instance = parentTarget(m_graph.input(v)->target);
        if (const ValueId on = valueArgument(node, "fake_quant_enabled"); on.valid())
            site.enabled = flag(on);
        site.spec.symmetric = hasMiddleZeroPoints(site);
        take(std::move(site));
    }

    void addFusedObserver(NodeId id, const std::vector<NodeId> &nodes)
    {
        const Node &node = m_graph.node(id);
        QuantSite site;
        site.form = SiteForm::FusedObserver;
        site.nodes = nodes;
        site.source = valueArgument(node, "self");
        site.result = firstOutput(node);
        readQparams(node, "scale", "zero_point", site);
        site.spec.quantMin = intArgument(node, "quant_min").value_or(-128);
        site.spec.quantMax = intArgument(node, "quant_max").value_or(127);
        site.spec.storage = storageOfGrid(site.spec.quantMin, site.spec.quantMax);
        if (boolArgument(node, "per_row_fake_quant")) {
            site.spec.granularity = Granularity::PerChannel;
            site.spec.axis = static_cast<int>(intArgument(node, "ch_axis").value_or(0));
        }
        site.spec.symmetric = boolArgument(node, "symmetric_quant");
        site.enabled = flag(valueArgument(node, "fake_quant_on"));
        site.watchesOnly = !site.enabled;
        if (const ValueId v = valueArgument(node, "scale"); v.valid() && m_graph.input(v))
            site.instance = parentTarget(m_graph.input(v)->target);
        take(std::move(site));
    }

    void addDequantize(NodeId id)
    {
        const Node &dq = m_graph.node(id);
        const ValueId q = valueArgument(dq, "input");
        if (!q.valid())
            return;
        const Node *quantize = m_graph.producer(q);
        if (quantize && isQuantize(*quantize)) {
            const NodeId producer = m_graph.value(q).producer;
            const auto known = m_siteOfQuantize.find(producer);
            // torchao clones the dequantize for each reader: one site, several copies of its result. Input sites
            // are taken apart again by their owner.
            if (known != m_siteOfQuantize.end()) {
                QuantSite &site = m_table.sites[known->second];
                site.moreResults.push_back(firstOutput(dq));
                site.nodes.push_back(id);
                m_taken.insert(id);
                return;
            }
            addPair(producer, id);
        } else if (m_graph.input(q)) {
            addDequantizedWeight(id, q);
        } else {
            m_table.notes.push_back(dq.name + " dequantizes " + m_graph.value(q).name +
                                    ", which no quantize operator made");
        }
    }

    void addPair(NodeId quantizeId, NodeId dequantizeId)
    {
        const Node &quantize = m_graph.node(quantizeId);
        const Node &dq = m_graph.node(dequantizeId);
        QuantSite site;
        site.form = SiteForm::QdqPair;
        site.source = valueArgument(quantize, "input");
        site.result = firstOutput(dq);
        site.nodes = {quantizeId, dequantizeId};
        readSpec(quantize, site);
        const ValueId scale = valueArgument(quantize, quantize.argument("scales") ? "scales" : "scale");
        if (const Node *choose = scale.valid() ? m_graph.producer(scale) : nullptr;
            choose && isChooseQparams(*choose)) {
            site.form = SiteForm::DynamicQdq;
            site.spec.dynamic = true;
            site.spec.symmetric = choose->opName().find("symmetric") != std::string::npos &&
                                  choose->opName().find("asymmetric") == std::string::npos;
            site.nodes.insert(site.nodes.begin(), m_graph.value(scale).producer);
        }
        site.instance = observerName(dq);
        const std::size_t index = m_table.sites.size();
        take(std::move(site));
        m_siteOfQuantize.emplace(quantizeId, index);
    }

    void addDequantizedWeight(NodeId id, ValueId stored)
    {
        const Node &dq = m_graph.node(id);
        QuantSite site;
        site.form = SiteForm::DequantizedWeight;
        site.stored = stored;
        site.result = firstOutput(dq);
        site.nodes = {id};
        readSpec(dq, site);
        site.instance = observerName(dq);
        take(std::move(site));
    }

    void readSpec(const Node &node, QuantSite &site) const
    {
        const bool plural = node.argument("scales") != nullptr;
        readQparams(node, plural ? "scales" : "scale", plural ? "zero_points" : "zero_point", site);
        site.spec.quantMin = intArgument(node, "quant_min").value_or(-128);
        site.spec.quantMax = intArgument(node, "quant_max").value_or(127);
        for (const char *name : {"dtype", "output_dtype", "input_dtype"})
            if (const Argument *argument = node.argument(name))
                if (const auto *type = std::get_if<ScalarTypeArg>(argument)) {
                    site.spec.storage = type->dtype;
                    break;
                }
        const std::string op = node.opName();
        if (op.find("per_channel_group") != std::string::npos) {
            site.spec.granularity = Granularity::PerBlock;
            site.spec.axis = 1;
            site.spec.blockSize = intArgument(node, "group_size").value_or(0);
        } else if (op.find("per_channel") != std::string::npos) {
            site.spec.granularity = Granularity::PerChannel;
            site.spec.axis = static_cast<int>(intArgument(node, "axis").value_or(0));
        } else if (op.find("per_token") != std::string::npos) {
            site.spec.granularity = Granularity::PerToken;
        } else if (op.find("affine") != std::string::npos) {
            readBlocks(node, site);
        }
        site.spec.symmetric = hasMiddleZeroPoints(site);
    }

    // torchao's affine operators say the granularity through block_size, one entry per dimension.
    void readBlocks(const Node &node, QuantSite &site) const
    {
        const Argument *argument = node.argument("block_size");
        const auto *blocks = argument ? std::get_if<IntListArg>(argument) : nullptr;
        const ValueId input = valueArgument(node, "input");
        const auto &meta = m_graph.value(input).meta;
        if (!blocks || !meta || blocks->values.size() != meta->sizes.size())
            return;
        std::vector<int> split;
        std::int64_t size = 0;
        for (std::size_t i = 0; i < blocks->values.size(); ++i) {
            const auto *extent = std::get_if<std::int64_t>(&blocks->values[i]);
            if (extent && *extent != meta->sizes[i].size) {
                split.push_back(static_cast<int>(i));
                size = *extent;
            }
        }
        if (split.empty())
            return;
        const bool lastIsWhole = split.back() + 1 != static_cast<int>(blocks->values.size());
        if (split.size() == 1 && size == 1) {
            site.spec.granularity = Granularity::PerChannel;
            site.spec.axis = split.front();
        } else if (lastIsWhole && size == 1) {
            site.spec.granularity = Granularity::PerToken;
        } else {
            site.spec.granularity = Granularity::PerBlock;
            site.spec.axis = split.back();
            site.spec.blockSize = size;
        }
    }

    // --- weights that a quantizer folded back to floats: few distinct values ----------------------------------------

    void collectFoldedWeights()
    {
        for (const auto &input : m_graph.inputs) {
            if (input.kind != InputKind::Parameter || !input.value.valid() || m_graph.readers(input.value).empty())
                continue;
            const auto &meta = m_graph.value(input.value).meta;
            if (!meta || meta->sizes.size() < 2 || !isFloatingPoint(meta->dtype) || alreadyQuantized(input.value))
                continue;
            const auto table = m_model.valueTable(input.value);
            if (!table)
                continue;
            QuantSite site;
            site.form = SiteForm::FoldedWeight;
            site.stored = site.result = input.value;
            site.weightTarget = input.target;
            site.instance = input.target;
            site.spec.storage = meta->dtype;
            site.spec.tableSize = table->entries;
            site.spec.quantMin = 0;
            site.spec.quantMax = table->entries - 1;
            if (table->groupSize > 0) {
                site.spec.granularity = Granularity::PerBlock;
                site.spec.axis = 0;
                site.spec.blockSize = table->groupSize;
            }
            take(std::move(site));
        }
    }

    [[nodiscard]] bool alreadyQuantized(ValueId value) const
    {
        return std::any_of(m_table.sites.begin(), m_table.sites.end(),
                           [&](const QuantSite &site) { return site.source == value || site.stored == value; });
    }

    // --- small things --------------------------------------------------------------------------------------------

    // Name of the observer that the conversion replaced; sites converted from one observer node share it.
    static std::string observerName(const Node &dq)
    {
        for (const auto &step : dq.provenance)
            if (step.pass.starts_with("replace_observer"))
                return step.name;
        return dq.name;
    }

    [[nodiscard]] bool flag(ValueId value) const
    {
        if (!value.valid())
            return true;
        const auto numbers = m_model.numbers(value, 1);
        return !numbers || numbers->empty() || numbers->front() != 0;
    }

    static bool boolArgument(const Node &node, std::string_view name)
    {
        const Argument *argument = node.argument(name);
        const auto *value = argument ? std::get_if<bool>(argument) : nullptr;
        return value && *value;
    }

    static ValueId firstOutput(const Node &node)
    {
        const auto outputs = node.outputValues();
        return outputs.empty() ? ValueId{} : outputs.front();
    }

    void take(QuantSite site)
    {
        for (NodeId n : site.nodes)
            m_taken.insert(n);
        m_table.sites.push_back(std::move(site));
    }

    const Model &m_model;
    const Graph &m_graph;
    std::vector<char> m_depends;
    SiteTable m_table;
    std::unordered_set<NodeId> m_taken;
    std::unordered_map<NodeId, std::size_t> m_siteOfQuantize;
};

} // namespace

SiteTable recognizeSites(const Model &model)
{
    const SiteTable *planned = model.plannedSites();
    return planned ? *planned : Recognizer(model).run();
}

} // namespace dblame

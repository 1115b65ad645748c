// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/site_clusters.h"

#include <algorithm>
#include <unordered_set>

#include "core/graph_query.h"

namespace dblame
{

const ModuleFrame *quantizerFrame(const Node &node)
{
    for (const auto &frame : node.modules) {
        const auto dot = frame.type.rfind('.');
        const std::string cls = dot == std::string::npos ? frame.type : frame.type.substr(dot + 1);
        if (cls.find("FakeQuant") != std::string::npos || cls.ends_with("Observer"))
            return &frame;
    }
    return nullptr;
}

std::string parentTarget(const std::string &target)
{
    const auto dot = target.rfind('.');
    return dot == std::string::npos ? target : target.substr(0, dot);
}

DType storageOfGrid(std::int64_t quantMin, std::int64_t quantMax)
{
    if (quantMin < 0)
        return quantMin >= -128 && quantMax <= 127 ? DType::Int8 : quantMin >= -32768 ? DType::Int16 : DType::Int32;
    return quantMax <= 255 ? DType::UInt8 : quantMax <= 65535 ? DType::UInt16 : DType::Int32;
}

bool hasMiddleZeroPoints(const QuantSite &site)
{
    const std::int64_t middle = site.spec.quantMin < 0 ? 0 : (site.spec.quantMin + site.spec.quantMax + 1) / 2;
    return std::all_of(site.zeroPoint.begin(), site.zeroPoint.end(), [&](std::int64_t z) { return z == middle; });
}

namespace
{

class ClusterReader
{
public:
    ClusterReader(const Model &model, std::vector<std::string> &notes)
        : m_model(model), m_graph(model.graph()), m_notes(notes)
    {
    }

    std::optional<QuantSite> read(const std::string &key, const std::vector<NodeId> &nodes)
    {
        const std::unordered_set<NodeId> inside(nodes.begin(), nodes.end());
        const ValueId source = clusterSource(nodes, inside);
        if (!source.valid()) {
            m_notes.push_back("the nodes of " + key + " look like a quantizer, but no tensor enters them");
            return std::nullopt;
        }
        QuantSite site;
        site.source = source;
        site.nodes = nodes;
        site.result = clusterResult(nodes, inside);
        const std::string path = quantizerFrame(m_graph.node(nodes.front()))->path;
        site.instance = path;
        if (!site.result.valid()) {
            site.form = SiteForm::WatchingObserver;
            site.watchesOnly = true;
            site.result = source;
            readWatchedRange(nodes, inside, site);
        } else {
            site.form = SiteForm::DecomposedFakeQuant;
            site.spec.divides = true;
            readClusterGrid(nodes, inside, site);
        }
        return site;
    }

    // The tensor that enters a cluster: the first float value from outside that is not the quantizer's own state.
    [[nodiscard]] ValueId clusterSource(const std::vector<NodeId> &nodes,
                                        const std::unordered_set<NodeId> &inside) const
    {
        for (NodeId n : nodes)
            for (ValueId v : m_graph.node(n).inputValues()) {
                const Value &value = m_graph.value(v);
                if (value.producer.valid() && inside.contains(value.producer))
                    continue;
                const GraphInput *input = m_graph.input(v);
                if (value.meta && isFloatingPoint(value.meta->dtype) && !(input && isQuantizerState(*input)))
                    return v;
            }
        return {};
    }

    // The value that leaves it: the last one that a node outside reads or that the graph returns.
    [[nodiscard]] ValueId clusterResult(const std::vector<NodeId> &nodes,
                                        const std::unordered_set<NodeId> &inside) const
    {
        for (auto it = nodes.rbegin(); it != nodes.rend(); ++it)
            for (ValueId v : m_graph.node(*it).outputValues()) {
                const auto &readers = m_graph.readers(v);
                if (m_graph.isOutput(v) ||
                    std::any_of(readers.begin(), readers.end(), [&](NodeId r) { return !inside.contains(r); }))
                    return v;
            }
        return {};
    }

    // Follows views and casts inside a cluster back to the stored tensor they start from.
    [[nodiscard]] ValueId traceToStored(ValueId value, const std::unordered_set<NodeId> &inside) const
    {
        while (value.valid()) {
            if (m_graph.input(value))
                return value;
            const NodeId producer = m_graph.value(value).producer;
            if (!inside.contains(producer))
                return {};
            const Node &node = m_graph.node(producer);
            const std::string family = operatorFamily(node);
            if (!isElementMover(node) && family != "to")
                return {};
            const auto inputs = node.inputValues();
            value = inputs.empty() ? ValueId{} : inputs.front();
        }
        return {};
    }

    [[nodiscard]] const Node *findInCluster(const std::vector<NodeId> &nodes, std::string_view family) const
    {
        for (NodeId n : nodes)
            if (operatorFamily(m_graph.node(n)) == family)
                return &m_graph.node(n);
        return nullptr;
    }

    // Grid of a decomposed fake-quant: div by the scale, round, add the zero point, clamp to the range.
    void readClusterGrid(const std::vector<NodeId> &nodes, const std::unordered_set<NodeId> &inside, QuantSite &site)
    {
        const Node *div = findInCluster(nodes, "div");
        const Node *clamp = findInCluster(nodes, "clamp");
        const Node *round = findInCluster(nodes, "round");
        if (!div || !clamp) {
            m_notes.push_back("the quantizer " + site.instance + " has no scale or no range that can be read");
            return;
        }
        const ValueId scaleView = valueArgument(*div, "other");
        const ValueId scale = traceToStored(scaleView, inside);
        if (scale.valid()) {
            site.scale = m_model.numbers(scale).value_or(std::vector<double>{});
            site.instance = parentTarget(m_graph.input(scale)->target);
            readGranularity(valueArgument(*div, "self"), scaleView, site);
        }
        if (!round) { // float8 grids: divide, clamp to the finite range, cast
            readFloatGrid(nodes, site);
            return;
        }
        site.spec.quantMin = static_cast<std::int64_t>(numberArgument(*clamp, "min").value_or(-128));
        site.spec.quantMax = static_cast<std::int64_t>(numberArgument(*clamp, "max").value_or(127));
        site.spec.storage = storageOfGrid(site.spec.quantMin, site.spec.quantMax);
        const Node *add = m_graph.producer(valueArgument(*clamp, "self"));
        if (add && operatorFamily(*add) == "add") {
            const ValueId zero = traceToStored(valueArgument(*add, "other"), inside);
            if (zero.valid())
                for (double z : m_model.numbers(zero).value_or(std::vector<double>{}))
                    site.zeroPoint.push_back(static_cast<std::int64_t>(z));
        }
        site.spec.symmetric = hasMiddleZeroPoints(site);
    }

    void readFloatGrid(const std::vector<NodeId> &nodes, QuantSite &site) const
    {
        for (NodeId n : nodes) {
            const Argument *dtype = m_graph.node(n).argument("dtype");
            const auto *type = dtype ? std::get_if<ScalarTypeArg>(dtype) : nullptr;
            if (type && isFloatingPoint(type->dtype) && dtypeName(type->dtype).substr(0, 6) == "float8")
                site.spec.storage = type->dtype;
        }
        site.spec.symmetric = true;
        site.spec.quantMin = site.spec.quantMax = 0;
    }

    void readGranularity(ValueId data, ValueId scale, QuantSite &site) const
    {
        const auto &dataMeta = m_graph.value(data).meta;
        const auto &scaleMeta = m_graph.value(scale).meta;
        const auto &sourceMeta = m_graph.value(site.source).meta;
        if (site.scale.size() <= 1 || !dataMeta || !scaleMeta || dataMeta->sizes.size() != scaleMeta->sizes.size())
            return;
        std::vector<int> varying;
        std::int64_t block = 1;
        for (std::size_t i = 0; i < scaleMeta->sizes.size(); ++i) {
            if (scaleMeta->sizes[i].size > 1)
                varying.push_back(static_cast<int>(i));
            else
                block *= std::max<std::int64_t>(1, dataMeta->sizes[i].size);
        }
        const bool sameRank = sourceMeta && sourceMeta->sizes.size() == dataMeta->sizes.size();
        if (varying.size() == 1 && sameRank) {
            site.spec.granularity = Granularity::PerChannel;
            site.spec.axis = varying.front();
        } else {
            site.spec.granularity = Granularity::PerBlock;
            site.spec.axis = varying.empty() ? -1 : varying.back();
            site.spec.blockSize = block;
        }
    }

    // A min-max observer keeps what it saw in <path>.min_val and <path>.max_val.
    void readWatchedRange(const std::vector<NodeId> &nodes, const std::unordered_set<NodeId> &inside,
                          QuantSite &site) const
    {
        for (NodeId n : nodes)
            for (ValueId v : m_graph.node(n).inputValues())
                if (const GraphInput *input = m_graph.input(v); input && input->target.ends_with(".min_val"))
                    site.instance = parentTarget(input->target);
        const Node *aminmax = findInCluster(nodes, "aminmax");
        if (aminmax && aminmax->argument("dim")) {
            site.spec.granularity = Granularity::PerChannel;
            site.spec.axis = 0;
        }
        (void)inside;
    }

private:
    const Model &m_model;
    const Graph &m_graph;
    std::vector<std::string> &m_notes;
};

} // namespace

std::optional<QuantSite> readCluster(const Model &model, const std::string &key, const std::vector<NodeId> &nodes,
                                     std::vector<std::string> &notes)
{
    return ClusterReader(model, notes).read(key, nodes);
}

} // namespace dblame

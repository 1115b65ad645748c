// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/placement_patterns.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "core/graph_query.h"

namespace dblame
{

namespace
{

constexpr std::string_view kRelu[] = {"aten.relu.default", "aten.relu_.default"};

// (source, name of the partition), or nothing.
std::optional<std::pair<std::string, std::string>> sourceOf(const Node &node, const Sources &sources)
{
    if (!node.sourceFn.empty()) {
        const auto comma = node.sourceFn.find(',');
        if (comma == std::string::npos)
            return std::nullopt;
        std::string function = node.sourceFn.substr(comma + 1);
        if (sources.classes.contains(function) || sources.functions.contains(function) ||
            sources.methods.contains(function))
            return std::pair(std::move(function), node.sourceFn.substr(0, comma));
        return std::nullopt;
    }
    if (const auto semicolon = node.torchFn.find(';'); semicolon != std::string::npos) {
        std::string_view function = std::string_view(node.torchFn).substr(semicolon + 1);
        if (const auto dot = function.find('.'); dot != std::string_view::npos) {
            function.remove_prefix(dot + 1);
            function = function.substr(0, function.find('.'));
            if (sources.methods.contains(function))
                return std::pair(std::string(function), node.torchFn.substr(0, semicolon));
        }
    }
    if (!node.modules.empty() && sources.classes.contains(node.moduleType()))
        return std::pair(node.moduleType(), node.modulePath());
    return std::nullopt;
}

} // namespace

ValueId argumentAt(const Node &node, std::size_t i)
{
    if (i >= node.inputs.size())
        return {};
    const auto *value = std::get_if<ValueId>(&node.inputs[i].value);
    return value ? *value : ValueId{};
}

std::vector<ValueId> listArgumentAt(const Node &node, std::size_t i)
{
    std::vector<ValueId> values;
    if (i < node.inputs.size())
        if (const auto *list = std::get_if<ValueListArg>(&node.inputs[i].value))
            for (const auto &value : list->values)
                if (value)
                    values.push_back(*value);
    return values;
}

ValueId onlyResult(const Node &node)
{
    if (node.outputs.size() != 1)
        return {};
    const auto *value = std::get_if<ValueId>(&node.outputs.front());
    return value ? *value : ValueId{};
}

bool isTarget(const Node &node, std::span<const std::string_view> targets)
{
    return std::find(targets.begin(), targets.end(), node.target) != targets.end();
}

std::size_t userCount(const Graph &graph, ValueId value)
{
    std::vector<NodeId> readers = graph.readers(value);
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    return readers.size() + (graph.isOutput(value) ? 1 : 0);
}

NodeId soleProducer(const Graph &graph, NodeId consumer, std::span<const std::string_view> producers)
{
    const ValueId read = argumentAt(graph.node(consumer), 0);
    if (!read.valid())
        return {};
    const NodeId producer = graph.value(read).producer;
    if (!producer.valid() || !isTarget(graph.node(producer), producers) || userCount(graph, read) > 1)
        return {};
    return producer;
}

std::vector<ConvBatchNorm> findConvBatchNorm(const Graph &graph, bool transposed, bool withRelu, bool anyConvolution)
{
    // The first two of each list are the plain forms.
    static constexpr std::string_view kConv[] = {"aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default",
                                                 "aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding"};
    static constexpr std::string_view kTransposed[] = {"aten.conv_transpose1d.default", "aten.conv_transpose2d.input",
                                                       "aten.conv_transpose3d.input"};
    static constexpr std::string_view kNorm[] = {"aten.batch_norm.default"};
    std::span<const std::string_view> convolutions = kConv;
    if (transposed)
        convolutions = kTransposed;
    if (!anyConvolution)
        convolutions = convolutions.first(2);
    std::vector<ConvBatchNorm> found;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        NodeId norm(n);
        if (withRelu) {
            if (!isTarget(graph.nodes[n], kRelu))
                continue;
            norm = soleProducer(graph, NodeId(n), kNorm);
        } else if (!isTarget(graph.nodes[n], kNorm)) {
            continue;
        }
        const NodeId conv = norm.valid() ? soleProducer(graph, norm, convolutions) : NodeId{};
        if (conv.valid())
            found.push_back({conv, norm, NodeId(n)});
    }
    return found;
}

bool SourcePartition::contains(NodeId node) const
{
    return std::binary_search(nodes.begin(), nodes.end(), node);
}

std::vector<SourcePartition> findPartitions(const Graph &graph, const Sources &sources)
{
    std::vector<SourcePartition> partitions;
    std::map<std::string, std::size_t, std::less<>> sourceOrder;
    std::map<std::pair<std::string, std::string>, std::size_t> index;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        auto key = sourceOf(graph.nodes[n], sources);
        if (!key)
            continue;
        sourceOrder.try_emplace(key->first, sourceOrder.size());
        const auto [it, isNew] = index.try_emplace(*key, partitions.size());
        if (isNew)
            partitions.push_back({key->first, key->second, {}});
        partitions[it->second].nodes.emplace_back(n);
    }
    std::stable_sort(partitions.begin(), partitions.end(), [&](const SourcePartition &a, const SourcePartition &b) {
        return sourceOrder.at(a.source) < sourceOrder.at(b.source);
    });
    return partitions;
}

std::vector<NodeId> outputNodes(const Graph &graph, const SourcePartition &partition)
{
    std::vector<NodeId> result;
    for (NodeId node : partition.nodes) {
        const auto values = graph.node(node).outputValues();
        const bool isRead = std::any_of(values.begin(), values.end(), [&](ValueId value) {
            const auto &readers = graph.readers(value);
            return graph.isOutput(value) || std::any_of(readers.begin(), readers.end(),
                                                        [&](NodeId reader) { return !partition.contains(reader); });
        });
        if (isRead)
            result.push_back(node);
    }
    return result;
}

std::vector<PartitionChain> findSequences(const Graph &graph,
                                          std::span<const std::vector<SourcePartition> *const> lists)
{
    std::vector<PartitionChain> chains;
    if (lists.empty())
        return chains;
    for (const SourcePartition &first : *lists.front())
        chains.push_back({&first});
    for (std::size_t step = 1; step < lists.size(); ++step) {
        std::unordered_map<NodeId, std::size_t> partitionOf;
        for (std::size_t i = 0; i < lists[step]->size(); ++i)
            for (NodeId node : (*lists[step])[i].nodes)
                partitionOf.emplace(node, i);
        std::vector<PartitionChain> longer;
        for (const PartitionChain &chain : chains) {
            std::set<std::size_t> next;
            for (NodeId node : chain.back()->nodes)
                for (ValueId value : graph.node(node).outputValues())
                    for (NodeId reader : graph.readers(value))
                        if (const auto it = partitionOf.find(reader); it != partitionOf.end())
                            next.insert(it->second);
            for (std::size_t i : next) {
                longer.push_back(chain);
                longer.back().push_back(&(*lists[step])[i]);
            }
        }
        chains = std::move(longer);
    }
    return chains;
}

std::vector<ValueId> weightsOf(const Graph &graph, const Node &node, const std::vector<char> &depends)
{
    const auto constant = [&](ValueId value) {
        return value.valid() && !depends[value.get()] && graph.value(value).meta.has_value();
    };
    std::vector<ValueId> candidates;
    const std::string family = operatorFamily(node);
    const std::string op = node.opName();
    if (family == "conv" || family == "conv_transpose" || op == "linear")
        candidates = {argumentAt(node, 1)};
    else if (family == "embedding" || family == "embedding_bag")
        candidates = {argumentAt(node, 0)};
    else if (op == "addmm" || op == "baddbmm")
        candidates = {argumentAt(node, 1), argumentAt(node, 2)};
    else if (op == "matmul" || op == "mm" || op == "bmm")
        candidates = {argumentAt(node, 0), argumentAt(node, 1)};
    else if (op == "lstm" || op == "gru" || op == "rnn_tanh" || op == "rnn_relu")
        candidates = node.inputValues();
    std::vector<ValueId> weights;
    const bool recurrent = op == "lstm" || op == "gru" || op == "rnn_tanh" || op == "rnn_relu";
    for (ValueId value : candidates) {
        if (!constant(value) || std::find(weights.begin(), weights.end(), value) != weights.end())
            continue;
        if (recurrent && (!graph.input(value) || graph.value(value).meta->sizes.size() < 2))
            continue; // biases, and initial states made in the graph
        weights.push_back(value);
    }
    return weights;
}

} // namespace dblame

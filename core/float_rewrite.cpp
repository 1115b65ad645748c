// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/float_rewrite.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "core/graph_query.h"

namespace dblame
{

namespace
{

constexpr double kPeersEps = 1e-5;

// A batch norm with running statistics, and the operator whose result it reads.
struct NormAfter {
    NodeId norm, producer;
    ValueId in, out;
    ValueId gamma, beta, mean, variance;
    double eps = 0;
};

bool isStored(const Graph &graph, ValueId value)
{
    const GraphInput *input = value.valid() ? graph.input(value) : nullptr;
    return input && (input->kind == InputKind::Parameter || input->kind == InputKind::Buffer ||
                     input->kind == InputKind::TensorConstant);
}

bool isTraining(const Node &norm)
{
    const Argument *training = norm.argument("training");
    const auto *flag = training ? std::get_if<bool>(training) : nullptr;
    return flag && *flag;
}

std::optional<NormAfter> normAfter(const Graph &graph, NodeId id)
{
    const Node &node = graph.node(id);
    if (!isBatchNorm(node) || isTraining(node))
        return std::nullopt;
    NormAfter found;
    found.norm = id;
    found.in = valueArgument(node, "input");
    found.gamma = valueArgument(node, "weight");
    found.beta = valueArgument(node, "bias");
    found.mean = valueArgument(node, "running_mean");
    found.variance = valueArgument(node, "running_var");
    found.eps = numberArgument(node, "eps").value_or(kPeersEps);
    const auto outputs = node.outputValues();
    if (!found.in.valid() || outputs.empty() || !isStored(graph, found.mean) || !isStored(graph, found.variance) ||
        (found.gamma.valid() && !isStored(graph, found.gamma)) || (found.beta.valid() && !isStored(graph, found.beta)))
        return std::nullopt;
    found.out = outputs.front();
    found.producer = graph.value(found.in).producer;
    return found.producer.valid() ? std::optional(found) : std::nullopt;
}

bool isLinear(const Node &node)
{
    return node.opName() == "linear";
}

bool isTransposed(const Node &conv)
{
    if (operatorFamily(conv) == "conv_transpose")
        return true;
    const Argument *transposed = conv.argument("transposed");
    const auto *flag = transposed ? std::get_if<bool>(transposed) : nullptr;
    return flag && *flag;
}

void setArgument(Node &node, std::string_view name, Argument value)
{
    for (NamedArgument &argument : node.inputs)
        if (argument.name == name) {
            argument.value = std::move(value);
            return;
        }
    node.inputs.push_back({std::string(name), std::move(value)});
}

std::string eps(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

Node makeNode(std::string name, std::string target, std::vector<NamedArgument> inputs, const Node &like)
{
    Node node;
    node.name = std::move(name);
    node.target = std::move(target);
    node.inputs = std::move(inputs);
    node.modules = like.modules;
    node.source = like.source;
    return node;
}

std::optional<TensorMeta> metaOf(const Graph &graph, ValueId value)
{
    return graph.value(value).meta;
}

} // namespace

std::vector<DerivedTensor> foldNorms(GraphEdit &edit, bool corrected, RewriteNotes &notes)
{
    std::vector<DerivedTensor> derived;
    std::set<ValueId> scaled; // weights that are folded already
    Graph &graph = edit.graph();
    const std::size_t count = graph.nodes.size();
    for (std::size_t i = 0; i < count; ++i) {
        const auto norm = normAfter(graph, NodeId(i));
        if (!norm)
            continue;
        const Node &producer = graph.node(norm->producer);
        const bool linear = isLinear(producer);
        if (!linear && !isConvolution(producer))
            continue;
        const ValueId weight = valueArgument(producer, "weight");
        const ValueId bias = valueArgument(producer, "bias");
        if (!isStored(graph, weight) || (bias.valid() && !isStored(graph, bias)))
            continue;
        const std::string name = graph.value(norm->out).name;
        if (linear) {
            const auto meta = metaOf(graph, valueArgument(producer, "input"));
            if (!meta || meta->sizes.size() > 2) {
                notes.warnings.push_back(name + ": the norm after the linear " + producer.name +
                                         " is not folded, its input has more than two dimensions");
                continue;
            }
        }
        const bool others = graph.readers(norm->in).size() > 1 || graph.isOutput(norm->in);
        const bool shared = graph.readers(weight).size() > 1;
        if (others || shared) {
            const std::string what = others ? producer.name + " is folded with the norm " + name +
                                                  " although others read it too: they see folded values"
                                            : producer.name + " shares its weight, which is scaled by one norm only";
            notes.defects.push_back({1, norm->producer, corrected ? name + ": not folded, " + what : what});
            if (corrected)
                continue;
        }
        if (scaled.insert(weight).second)
            derived.push_back({DerivedTensor::Kind::FoldedWeight, weight, weight, norm->gamma, norm->beta, norm->mean,
                               norm->variance, norm->eps, !linear && isTransposed(producer) ? 1 : 0, 0});
        ValueId folded = bias;
        if (!bias.valid()) {
            const std::string target = graph.input(weight)->target;
            TensorMeta meta = metaOf(graph, norm->mean).value_or(TensorMeta{});
            if (const auto of = metaOf(graph, weight))
                meta.dtype = of->dtype;
            folded = edit.addInput(InputKind::Parameter, target + "_bias", graph.value(weight).name + "_bias", meta);
            setArgument(graph.nodes[norm->producer.get()], "bias", folded);
        }
        derived.push_back({DerivedTensor::Kind::FoldedBias, folded, bias, norm->gamma, norm->beta, norm->mean,
                           norm->variance, norm->eps, 0, 0});
        edit.replaceAllReads(norm->out, norm->in);
        edit.remove(norm->norm);
    }
    return derived;
}

std::vector<DerivedTensor> liftScalars(GraphEdit &edit)
{
    std::vector<DerivedTensor> derived;
    Graph &graph = edit.graph();
    const std::size_t count = graph.nodes.size();
    for (std::size_t i = 0; i < count; ++i) {
        const std::string target = graph.nodes[i].target;
        if (target != "aten.add.Tensor" && target != "aten.mul.Tensor")
            continue;
        const auto number = numberArgument(graph.nodes[i], "other");
        if (!number)
            continue;
        const std::string name = "_tensor_constant_" + std::to_string(derived.size());
        const ValueId value = edit.addInput(InputKind::Buffer, name, name, TensorMeta{DType::Float32, {}});
        setArgument(graph.nodes[i], "other", value);
        DerivedTensor tensor;
        tensor.value = value;
        tensor.number = *number;
        derived.push_back(tensor);
    }
    return derived;
}

std::unordered_map<NodeId, ValueId> rewriteConvNorms(GraphEdit &edit, bool corrected, RewriteNotes &notes)
{
    std::unordered_map<NodeId, ValueId> result;
    Graph &graph = edit.graph();
    const std::size_t count = graph.nodes.size();
    for (std::size_t i = 0; i < count; ++i) {
        const auto norm = normAfter(graph, NodeId(i));
        if (!norm || !isConvolution(graph.node(norm->producer)) || !norm->gamma.valid() ||
            graph.readers(norm->in).size() != 1 || graph.isOutput(norm->in))
            continue;
        const NodeId conv = norm->producer;
        const Node convNode = graph.node(conv);
        const Node normNode = graph.node(norm->norm);
        const ValueId weight = valueArgument(convNode, "weight");
        const auto weightMeta = metaOf(graph, weight);
        const auto outMeta = metaOf(graph, norm->in);
        if (!isStored(graph, weight) || !weightMeta || !outMeta)
            continue;
        const double used = corrected ? norm->eps : kPeersEps;
        if (norm->eps != kPeersEps)
            notes.defects.push_back(
                {2, norm->norm,
                 graph.value(norm->out).name + (corrected ? ": the model's eps " + eps(norm->eps) + " is kept"
                                                          : ": eps 1e-05 is used where the model has " +
                                                                eps(norm->eps) + ", so the float values change, too")});
        const bool transposed = isTransposed(convNode);
        const auto channelMeta = metaOf(graph, norm->variance);
        // Sizes for broadcasting along one axis.
        const auto along = [](std::size_t axis, std::size_t dims) {
            IntListArg sizes;
            for (std::size_t d = 0; d < dims; ++d)
                sizes.values.emplace_back(std::int64_t{d == axis ? -1 : 1});
            return sizes;
        };
        const std::size_t weightAxis = transposed ? 1 : 0;
        const auto before = [&](std::string name, std::string target, std::vector<NamedArgument> inputs,
                                const std::optional<TensorMeta> &meta, const Node &like) {
            return edit.addBefore(conv, makeNode(std::move(name), std::move(target), std::move(inputs), like), meta);
        };
        const ValueId sum =
            before("norm_add", "aten.add.Tensor", {{"self", norm->variance}, {"other", used}}, channelMeta, normNode);
        const ValueId deviation = before("norm_sqrt", "aten.sqrt.default", {{"self", sum}}, channelMeta, normNode);
        const ValueId factor = before("norm_scale", "aten.div.Tensor", {{"self", norm->gamma}, {"other", deviation}},
                                      channelMeta, normNode);
        const ValueId wide =
            before("norm_reshape", "aten.reshape.default",
                   {{"self", factor}, {"shape", along(weightAxis, weightMeta->sizes.size())}}, std::nullopt, normNode);
        const ValueId scaled =
            before("scaled_weight", "aten.mul.Tensor", {{"self", weight}, {"other", wide}}, weightMeta, convNode);
        edit.replaceReads(weight, scaled, conv);
        result.emplace(conv, scaled);

        const ValueId bias = valueArgument(convNode, "bias");
        setArgument(graph.nodes[conv.get()], "bias", NoneArg{});
        const auto after = [&](std::string name, std::string target, std::vector<NamedArgument> inputs,
                               const std::optional<TensorMeta> &meta) {
            return edit.addAfter(conv, makeNode(std::move(name), std::move(target), std::move(inputs), normNode), meta);
        };
        const IntListArg outAlong = along(1, outMeta->sizes.size());
        const ValueId wideOut =
            after("norm_reshape", "aten.reshape.default", {{"self", factor}, {"shape", outAlong}}, std::nullopt);
        ValueId value = after("norm_div", "aten.div.Tensor", {{"self", norm->in}, {"other", wideOut}}, outMeta);
        if (bias.valid()) {
            const ValueId wideBias =
                after("norm_reshape", "aten.reshape.default", {{"self", bias}, {"shape", outAlong}}, std::nullopt);
            value = after("norm_add", "aten.add.Tensor", {{"self", value}, {"other", wideBias}}, outMeta);
        }
        Node &normNow = graph.nodes[norm->norm.get()];
        setArgument(normNow, "input", value);
        setArgument(normNow, "eps", used);
    }
    return result;
}

} // namespace dblame

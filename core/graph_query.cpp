// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/graph_query.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

namespace dblame
{

std::vector<char> dependsOnUserInput(const Graph &graph)
{
    std::vector<char> depends(graph.values.size(), 0);
    for (const auto &input : graph.inputs)
        if (input.kind == InputKind::User && input.value.valid())
            depends[input.value.get()] = 1;
    for (const auto &node : graph.nodes) {
        const auto inputs = node.inputValues();
        const bool any = std::any_of(inputs.begin(), inputs.end(), [&](ValueId v) { return depends[v.get()] != 0; });
        if (any)
            for (ValueId v : node.outputValues())
                depends[v.get()] = 1;
    }
    return depends;
}

std::string operatorFamily(const Node &node)
{
    static const std::unordered_map<std::string, std::string> kFamilies = {
        {"conv1d", "conv"},
        {"conv2d", "conv"},
        {"conv3d", "conv"},
        {"convolution", "conv"},
        {"conv_transpose1d", "conv_transpose"},
        {"conv_transpose2d", "conv_transpose"},
        {"conv_transpose3d", "conv_transpose"},
        {"_native_batch_norm_legit_no_training", "batch_norm"},
        {"_native_batch_norm_legit", "batch_norm"},
        {"_native_batch_norm_legit_functional", "batch_norm"},
        {"native_batch_norm", "batch_norm"},
        {"cudnn_batch_norm", "batch_norm"},
        {"native_layer_norm", "layer_norm"},
        {"native_group_norm", "group_norm"},
        {"max_pool2d_with_indices", "max_pool2d"},
        {"addmm", "linear"},
        {"_adaptive_avg_pool2d", "adaptive_avg_pool2d"},
        {"_unsafe_view", "view"},
        {"view_copy", "view"},
        {"reshape", "view"},
        {"flatten", "view"},
        {"_softmax", "softmax"},
        {"_log_softmax", "log_softmax"},
        {"t", "transpose"},
        {"split", "chunk"},
        {"split_with_sizes", "chunk"},
        {"_to_copy", "to"},
        {"transpose", "transpose"},
        {"numpy_T", "transpose"},
        {"hardtanh", "hardtanh"},
        {"relu6", "hardtanh"},
        {"alias", "detach"},
        {"lift_fresh_copy", "detach"},
        {"clone", "clone"},
        {"contiguous", "clone"},
    };
    std::string op = node.opName();
    if (op.size() > 1 && op.back() == '_' && op[op.size() - 2] != '_')
        op.pop_back();
    const auto it = kFamilies.find(op);
    return it == kFamilies.end() ? op : it->second;
}

bool isConvolution(const Node &node)
{
    const std::string family = operatorFamily(node);
    return family == "conv" || family == "conv_transpose";
}

bool isBatchNorm(const Node &node)
{
    return operatorFamily(node) == "batch_norm";
}

bool isElementMover(const Node &node)
{
    static const std::unordered_set<std::string> kMovers = {
        "view",    "permute",    "transpose",     "slice",           "select", "squeeze",   "unsqueeze",
        "expand",  "clone",      "detach",        "chunk",           "unbind", "unflatten", "dropout",
        "narrow",  "repeat",     "movedim",       "swapaxes",        "flip",   "roll",      "expand_as",
        "view_as", "reshape_as", "pixel_shuffle", "channel_shuffle",
    };
    return kMovers.contains(operatorFamily(node));
}

bool keepsValues(const Node &node)
{
    const std::string family = operatorFamily(node);
    return family == "max_pool2d" || family == "max_pool1d" || family == "adaptive_max_pool2d" || isElementMover(node);
}

ValueId valueArgument(const Node &node, std::string_view name)
{
    const Argument *argument = node.argument(name);
    const auto *value = argument ? std::get_if<ValueId>(argument) : nullptr;
    return value ? *value : ValueId{};
}

std::optional<std::int64_t> intArgument(const Node &node, std::string_view name)
{
    const Argument *argument = node.argument(name);
    const auto *value = argument ? std::get_if<std::int64_t>(argument) : nullptr;
    return value ? std::optional(*value) : std::nullopt;
}

std::optional<double> numberArgument(const Node &node, std::string_view name)
{
    const Argument *argument = node.argument(name);
    if (!argument)
        return std::nullopt;
    if (const auto *real = std::get_if<double>(argument))
        return *real;
    if (const auto *integer = std::get_if<std::int64_t>(argument))
        return static_cast<double>(*integer);
    return std::nullopt;
}

bool isQuantizerState(const GraphInput &input)
{
    if (input.kind != InputKind::Buffer)
        return false;
    static constexpr std::string_view kNames[] = {".scale",
                                                  ".zero_point",
                                                  ".min_val",
                                                  ".max_val",
                                                  ".eps",
                                                  ".minval",
                                                  ".running_min",
                                                  ".running_max",
                                                  ".fake_quant_enabled",
                                                  ".observer_enabled",
                                                  "._disabled",
                                                  ".histogram"};
    return std::any_of(std::begin(kNames), std::end(kNames),
                       [&](std::string_view name) { return input.target.ends_with(name); });
}

std::vector<ValueId> distinctTensorArguments(const Graph &graph, const Node &node)
{
    std::vector<ValueId> result;
    for (ValueId v : node.inputValues())
        if (graph.value(v).meta && std::find(result.begin(), result.end(), v) == result.end())
            result.push_back(v);
    return result;
}

namespace
{

std::string parentPath(const std::string &target)
{
    const auto dot = target.rfind('.');
    return dot == std::string::npos ? std::string() : target.substr(0, dot);
}

} // namespace

std::string moduleOf(const Graph &graph, const Node &node)
{
    if (!node.modulePath().empty())
        return node.modulePath();
    std::string common;
    for (ValueId v : node.inputValues()) {
        const GraphInput *input = graph.input(v);
        if (!input || (input->kind != InputKind::Parameter && input->kind != InputKind::Buffer))
            continue;
        const std::string parent = parentPath(input->target);
        if (!common.empty() && parent != common)
            return {};
        common = parent;
    }
    return common;
}

std::string moduleCallOf(const Graph &graph, const Node &node)
{
    std::string path = moduleOf(graph, node);
    if (node.modules.empty() || node.modulePath().empty())
        return path;
    const std::string &key = node.modules.back().key;
    const auto at = key.rfind('@');
    if (at == std::string::npos || at + 1 == key.size() ||
        key.find_first_not_of("0123456789", at + 1) != std::string::npos || path.find('@') != std::string::npos)
        return path;
    return path + key.substr(at);
}

bool compatibleShapes(const TensorMeta &a, const TensorMeta &b, bool freeFirst)
{
    if (a.sizes.size() != b.sizes.size())
        return false;
    for (std::size_t i = 0; i < a.sizes.size(); ++i) {
        const Dim &x = a.sizes[i];
        const Dim &y = b.sizes[i];
        if (x.size != y.size && x.symbol.empty() && y.symbol.empty() && !(freeFirst && i == 0))
            return false;
    }
    return true;
}

std::string shapeText(const TensorMeta &meta)
{
    if (meta.sizes.empty())
        return "scalar";
    std::string text;
    for (const Dim &dim : meta.sizes) {
        if (!text.empty())
            text += "×";
        text += dim.symbol.empty() ? std::to_string(dim.size) : dim.symbol;
    }
    return text;
}

} // namespace dblame

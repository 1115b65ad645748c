// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/alias_analysis.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_set>

#include <ATen/core/function_schema.h>

namespace dblame
{

namespace
{

// Composite operators of torch that always make new storage for their outputs.
bool makesNewStorage(const std::string &name)
{
    static const std::unordered_set<std::string_view> kFresh = {
        "aten::conv1d",
        "aten::conv2d",
        "aten::conv3d",
        "aten::conv_transpose1d",
        "aten::conv_transpose2d",
        "aten::conv_transpose3d",
        "aten::_convolution_mode",
        "aten::_convolution",
        "aten::linear",
        "aten::matmul",
        "aten::batch_norm",
        "aten::layer_norm",
        "aten::group_norm",
        "aten::instance_norm",
        "aten::rms_norm",
        "aten::max_pool1d",
        "aten::max_pool2d",
        "aten::max_pool3d",
        "aten::max_pool1d_with_indices",
        "aten::adaptive_avg_pool1d",
        "aten::adaptive_avg_pool2d",
        "aten::adaptive_avg_pool3d",
        "aten::adaptive_max_pool1d",
        "aten::avg_pool1d",
        "aten::softmax",
        "aten::log_softmax",
        "aten::scaled_dot_product_attention",
        "aten::relu6",
        "aten::selu",
        "aten::hardswish",
        "aten::prelu",
        "aten::stack",
        "aten::square",
        "aten::rsub",
        "aten::einsum",
        "aten::bilinear",
        "aten::lstm",
        "aten::gru",
        "aten::rnn_tanh",
        "aten::rnn_relu",
        "aten::lstm_cell",
        "aten::gru_cell",
        "aten::embedding_bag",
        "aten::upsample_nearest1d",
        "aten::upsample_nearest2d",
        "aten::upsample_nearest3d",
        "aten::upsample_bilinear2d",
        "aten::upsample_bicubic2d",
        "aten::upsample_linear1d",
        "aten::upsample_trilinear3d",
        "aten::_upsample_nearest_exact1d",
        "aten::_upsample_nearest_exact2d",
        "aten::_upsample_nearest_exact3d",
        "aten::_upsample_bilinear2d_aa",
        "aten::_upsample_bicubic2d_aa",
        "aten::cosine_similarity",
        "aten::pairwise_distance",
        "aten::cross_entropy_loss",
        "aten::nll_loss",
        "aten::l1_loss",
        "aten::one_hot",
        "aten::std",
        "aten::var",
        "aten::std_mean",
        "aten::var_mean",
        "aten::where",
        "aten::tile",
        "aten::repeat_interleave",
        "aten::outer",
        "aten::kron",
        "aten::chain_matmul",
        "aten::linalg_norm",
        "aten::linalg_vector_norm",
        "aten::linalg_multi_dot",
        "aten::norm",
        "aten::argsort",
        "aten::sort",
        "aten::msort",
        "aten::diff",
        "aten::floor_divide",
        "aten::true_divide",
        "aten::divide",
        "aten::multiply",
        "aten::subtract",
        "aten::greater",
        "aten::greater_equal",
        "aten::less",
        "aten::less_equal",
        "aten::not_equal",
        "aten::__and__",
        "aten::__or__",
        "aten::__xor__",
        "aten::clip",
        "aten::absolute",
        "aten::negative",
        "aten::arccos",
        "aten::arcsin",
        "aten::arctan",
        "aten::arctan2",
        "aten::special_expit",
        "aten::logsumexp",
        "aten::special_softmax",
        "aten::special_log_softmax",
        "aten::_trilinear",
        "aten::fake_quantize_per_tensor_affine",
        "aten::fake_quantize_per_channel_affine",
        "aten::pixel_shuffle",
        "aten::size",
        "aten::sym_size",
        "aten::sym_numel",
        "aten::sym_stride",
        "aten::_shape_as_tensor",
        "aten::item",
        "aten::is_floating_point",
        "aten::concat",
        "aten::concatenate",
        "aten::hstack",
        "aten::vstack",
        "aten::dstack",
        "aten::column_stack",
        "aten::isfinite",
        "aten::isreal",
        "aten::max",
        "aten::min",
        "aten::any",
        "aten::all",
        "aten::cdist",
        "aten::det",
        "aten::trapz",
        "aten::cumulative_trapezoid",
        "aten::fused_moving_avg_obs_fake_quant",
        "aten::gather",
        "aten::index_select",
        "aten::take_along_dim",
        "aten::masked_select",
        "aten::bitwise_and",
        "aten::bitwise_or",
        "aten::bitwise_xor",
        "aten::eq",
        "aten::ne",
        "aten::lt",
        "aten::le",
        "aten::gt",
        "aten::ge",
    };
    return kFresh.count(name) != 0 || name.rfind("dblame::", 0) == 0; // ours never return what they were given
}

using SymbolSet = std::unordered_set<c10::Symbol>;

void collect(const c10::AliasInfo *info, SymbolSet &sets)
{
    if (!info)
        return;
    sets.insert(info->beforeSets().begin(), info->beforeSets().end());
    sets.insert(info->afterSets().begin(), info->afterSets().end());
    for (const auto &inner : info->containedTypes())
        collect(&inner, sets);
}

bool writes(const c10::AliasInfo *info)
{
    if (!info)
        return false;
    if (info->isWrite())
        return true;
    return std::any_of(info->containedTypes().begin(), info->containedTypes().end(),
                       [](const auto &inner) { return writes(&inner); });
}

class UnionFind
{
public:
    explicit UnionFind(std::size_t n) : m_parent(n) { std::iota(m_parent.begin(), m_parent.end(), 0U); }
    std::uint32_t find(std::uint32_t i)
    {
        while (m_parent[i] != i) {
            m_parent[i] = m_parent[m_parent[i]];
            i = m_parent[i];
        }
        return i;
    }
    void unite(std::uint32_t a, std::uint32_t b)
    {
        a = find(a);
        b = find(b);
        if (a != b)
            m_parent[std::max(a, b)] = std::min(a, b);
    }

private:
    std::vector<std::uint32_t> m_parent;
};

} // namespace

OperatorAliases aliasesOf(const c10::OperatorHandle &op)
{
    OperatorAliases result;
    const auto &schema = op.schema();
    const auto &arguments = schema.arguments();
    const bool maybe =
        op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) && !makesNewStorage(schema.name());
    std::vector<SymbolSet> argumentSets(arguments.size());
    for (std::uint32_t a = 0; a < arguments.size(); ++a) {
        collect(arguments[a].alias_info(), argumentSets[a]);
        if (writes(arguments[a].alias_info()))
            result.written.push_back(a);
    }
    for (std::uint32_t r = 0; r < schema.returns().size(); ++r) {
        SymbolSet returnSets;
        collect(schema.returns()[r].alias_info(), returnSets);
        for (std::uint32_t a = 0; a < arguments.size(); ++a) {
            const bool shares = std::any_of(returnSets.begin(), returnSets.end(),
                                            [&](c10::Symbol s) { return argumentSets[a].count(s) != 0; });
            if (shares || (maybe && returnSets.empty()))
                result.shared.emplace_back(r, a);
        }
    }
    return result;
}

StepAliases aliasesOf(const OperatorAliases &op, const std::vector<Span> &inputsOf, const std::vector<Span> &outputsOf)
{
    StepAliases result;
    for (std::uint32_t a : op.written)
        for (std::uint32_t i = inputsOf[a].begin; i < inputsOf[a].end; ++i)
            result.written.push_back(i);
    for (const auto &[r, a] : op.shared) {
        if (r >= outputsOf.size())
            continue;
        for (std::uint32_t o = outputsOf[r].begin; o < outputsOf[r].end; ++o)
            for (std::uint32_t i = inputsOf[a].begin; i < inputsOf[a].end; ++i)
                result.shared.emplace_back(o, i);
    }
    return result;
}

bool AliasClasses::writtenFrom(Slot slot, std::uint32_t from) const
{
    const auto &list = writers[classOf[slot]];
    return !list.empty() && list.back() >= from;
}

AliasClasses findAliases(const CompiledGraph &graph, const std::vector<Slot> &inputSlots, std::size_t slotCount,
                         const std::vector<std::pair<Slot, Slot>> &sharing)
{
    UnionFind sets(slotCount);
    for (const auto &[a, b] : sharing)
        sets.unite(a, b);
    const auto &nodes = graph.graph->nodes;
    std::vector<ValueId> outputs;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        const auto &step = graph.steps[n];
        if (step.aliases.shared.empty())
            continue;
        outputs = nodes[n].outputValues();
        for (const auto &[o, i] : step.aliases.shared)
            if (o < outputs.size())
                sets.unite(static_cast<Slot>(outputs[o].get()), inputSlots[step.inputsBegin + i]);
    }
    AliasClasses result;
    result.classOf.resize(slotCount);
    for (Slot s = 0; s < slotCount; ++s)
        result.classOf[s] = sets.find(s);
    result.writers.resize(slotCount);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        const auto &step = graph.steps[n];
        for (std::uint32_t i : step.aliases.written) {
            auto &list = result.writers[result.classOf[inputSlots[step.inputsBegin + i]]];
            if (list.empty() || list.back() != n)
                list.push_back(static_cast<std::uint32_t>(n));
        }
    }
    result.hot.resize(slotCount);
    for (Slot s = 0; s < slotCount; ++s) {
        std::uint32_t after = 0;
        if (s < graph.graph->values.size()) {
            const NodeId producer = graph.graph->values[s].producer;
            after = producer.valid() ? static_cast<std::uint32_t>(producer.get()) + 1 : 0;
        }
        result.hot[s] = result.writtenFrom(s, after) ? 1 : 0;
    }
    return result;
}

GraphAliases summarize(const CompiledGraph &graph)
{
    const Graph &g = *graph.graph;
    const auto classes = findAliases(graph, graph.inputValues, g.values.size(), {});
    GraphAliases result;
    result.written.resize(g.inputs.size());
    for (std::size_t i = 0; i < g.inputs.size(); ++i)
        if (g.inputs[i].value.valid())
            result.written[i] = classes.written(static_cast<Slot>(g.inputs[i].value.get())) ? 1 : 0;
    for (const auto &output : g.outputs) {
        auto &shares = result.outputShares.emplace_back();
        if (!output.value.valid())
            continue;
        for (std::size_t i = 0; i < g.inputs.size(); ++i)
            if (g.inputs[i].value.valid() &&
                classes.classOf[g.inputs[i].value.get()] == classes.classOf[output.value.get()])
                shares.push_back(static_cast<std::uint32_t>(i));
    }
    return result;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/reference_weights.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unique.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/any.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/expand_as.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include "core/graph_query.h"

namespace dblame
{

namespace
{

at::Tensor argumentTensor(const LoadedModel &model, const Node &node, const char *name)
{
    const ValueId value = valueArgument(node, name);
    return value.valid() && model.graph().input(value) ? model.tensor(value) : at::Tensor();
}

// Shape that lets one number per channel broadcast along `axis`.
std::vector<std::int64_t> alongAxis(std::int64_t rank, std::int64_t axis)
{
    std::vector<std::int64_t> shape(static_cast<std::size_t>(rank), 1);
    shape[static_cast<std::size_t>(axis)] = -1;
    return shape;
}

// scale and zero point of every element of `like`, broadcastable.
struct Grid {
    at::Tensor scale, zero;
};

Grid gridOf(const QuantSite &site, const at::Tensor &like)
{
    const auto options = at::TensorOptions(at::kDouble);
    at::Tensor scale = at::tensor(site.scale, options);
    std::vector<double> zeros(site.zeroPoint.begin(), site.zeroPoint.end());
    if (zeros.empty())
        zeros.assign(1, 0.0);
    at::Tensor zero = at::tensor(zeros, options);
    if (site.spec.granularity == Granularity::PerChannel && scale.numel() > 1) {
        const auto shape = alongAxis(like.dim(), site.spec.axis);
        scale = scale.view(shape);
        if (zero.numel() > 1)
            zero = zero.view(shape);
    } else if (scale.numel() > 1) {
        return {}; // blocks: the stored shape of the scales is not known here
    }
    return {scale, zero};
}

// The best factor per channel turns the weight into the quantized one: W' = W * f, up to the grid.
bool isRescaled(const at::Tensor &weight, const at::Tensor &quantized, std::int64_t axis, const at::Tensor &step)
{
    if (weight.dim() < 2)
        return false;
    std::vector<std::int64_t> others;
    for (std::int64_t d = 0; d < weight.dim(); ++d)
        if (d != axis)
            others.push_back(d);
    const at::Tensor energy = (weight * weight).sum(others, true).clamp_min(1e-300);
    const at::Tensor factor = (weight * quantized).sum(others, true) / energy;
    const at::Tensor excess = (weight * factor - quantized).abs() - step * 0.75;
    return excess.max().item<double>() <= 0;
}

// A palette assigns each weight its nearest entry. Palettizers round weights to four decimals before they cluster
// (quantization notes, section 6), so an entry that is as near up to that rounding is as good.
bool isNearestEntry(const at::Tensor &weight, const at::Tensor &quantized)
{
    const at::Tensor table = std::get<0>(at::_unique(quantized.flatten(), /*sorted=*/true));
    if (table.numel() < 2)
        return true;
    const at::Tensor middles = (table.slice(0, 1) + table.slice(0, 0, -1)) * 0.5;
    const at::Tensor nearest = table.index_select(0, at::bucketize(weight.flatten(), middles)).view_as(weight);
    const at::Tensor excess = (weight - quantized).abs() - (weight - nearest).abs() - 2e-4;
    return excess.max().item<double>() <= 0;
}

bool isFromTable(const at::Tensor &weight, const at::Tensor &quantized, std::int64_t groupSize)
{
    if (groupSize <= 0)
        return isNearestEntry(weight, quantized);
    for (std::int64_t row = 0; row < weight.size(0); row += groupSize) {
        const std::int64_t end = std::min(row + groupSize, weight.size(0));
        if (!isNearestEntry(weight.slice(0, row, end), quantized.slice(0, row, end)))
            return false;
    }
    return true;
}

} // namespace

at::Tensor referenceWeight(const LoadedModel &reference, const Alignment &alignment, const AlignedPair &row)
{
    const at::Tensor stored = reference.tensor(row.ref);
    if (row.foldedNorm < 0 || !stored.defined())
        return stored;
    const FoldedNorm &fold = alignment.folds[static_cast<std::size_t>(row.foldedNorm)];
    const Node &norm = reference.graph().node(fold.norm);
    const Node &conv = reference.graph().node(fold.conv);
    const at::Tensor mean = argumentTensor(reference, norm, "running_mean");
    const at::Tensor variance = argumentTensor(reference, norm, "running_var");
    if (!mean.defined() || !variance.defined())
        return {};
    const double eps = numberArgument(norm, "eps").value_or(1e-5);
    at::Tensor gamma = argumentTensor(reference, norm, "weight");
    at::Tensor beta = argumentTensor(reference, norm, "bias");
    if (!gamma.defined())
        gamma = at::ones_like(mean);
    if (!beta.defined())
        beta = at::zeros_like(mean);
    const at::Tensor inverse = at::rsqrt(variance + eps);
    if (valueArgument(conv, "bias") == row.ref)
        return (stored - mean) * inverse * gamma + beta;
    const std::int64_t axis = operatorFamily(conv) == "conv_transpose" ? 1 : 0;
    return stored * (gamma * inverse).reshape(alongAxis(stored.dim(), axis));
}

std::string explainWeightChange(const at::Tensor &weight, const at::Tensor &quantized, const QuantSite &site)
{
    if (weight.sizes() != quantized.sizes())
        return "of another shape";
    const at::Tensor w = weight.to(at::kDouble);
    const at::Tensor q = quantized.to(at::kDouble);
    if (site.spec.tableSize > 0)
        return isFromTable(w, q, site.spec.granularity == Granularity::PerBlock ? site.spec.blockSize : 0)
                   ? std::string()
                   : "changed (trained, merged or corrected)";
    const Grid grid = gridOf(site, w);
    if (!grid.scale.defined() || isFloatingPoint(site.spec.storage))
        return {};
    const at::Tensor lowest = (static_cast<double>(site.spec.quantMin) - grid.zero) * grid.scale;
    const at::Tensor highest = (static_cast<double>(site.spec.quantMax) - grid.zero) * grid.scale;
    const at::Tensor clipped = at::max(at::min(w, highest), lowest);
    // Half a step, and what float32 arithmetic of the fold and of the grid itself can add to it.
    const at::Tensor allowed = grid.scale * 0.502 + w.abs() * 1e-6;
    const at::Tensor excess = (clipped - q).abs() - allowed;
    if (excess.max().item<double>() <= 0)
        return {};
    const at::Tensor step = grid.scale.expand_as(w);
    for (std::int64_t axis = 0; axis < w.dim() && axis < 2; ++axis)
        if (isRescaled(w, q, axis, step))
            return "rescaled per channel (as smoothing or equalization does)";
    const at::Tensor zeroed = (q == 0) & (w.abs() > allowed);
    const at::Tensor others = (excess > 0) & ~zeroed;
    if (zeroed.any().item<bool>() && !others.any().item<bool>())
        return "pruned";
    return "changed (trained, merged or corrected)";
}

} // namespace dblame

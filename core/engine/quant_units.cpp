// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/quant_units.h"

#include <algorithm>
#include <string>

#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/aminmax.h>
#include <c10/util/accumulate.h>

namespace dblame
{

namespace
{

tl::unexpected<Error> unfit(const std::string &why)
{
    return fail(ErrorCode::Usage, "", why);
}

std::string sizesText(at::IntArrayRef sizes)
{
    std::string text;
    for (const std::int64_t size : sizes)
        text += (text.empty() ? "" : "×") + std::to_string(size);
    return text.empty() ? "scalar" : text;
}

Result<std::size_t> resolvedAxis(const TensorSpec &spec, SiteRole role, at::IntArrayRef shape)
{
    const auto rank = static_cast<int>(shape.size());
    if (!spec.axis && role != SiteRole::Weight)
        return unfit("a " + std::string(granularityName(spec.granularity)) +
                     " spec of an activation needs an axis: write channel@AXIS or blockN@AXIS");
    int axis = spec.axis.value_or(spec.granularity == Granularity::PerBlock ? 1 : 0);
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank)
        return unfit("axis " + std::to_string(spec.axis.value_or(axis)) + " of a tensor with " + std::to_string(rank) +
                     " dimensions (" + sizesText(shape) + "): choose an axis that it has, or a spec per tensor");
    return static_cast<std::size_t>(axis);
}

Result<std::vector<std::int64_t>> blockExtents(const TensorSpec &spec, SiteRole role, at::IntArrayRef shape)
{
    std::vector<std::int64_t> extents(shape.begin(), shape.end());
    if (spec.blockSizes.empty())
        return unfit("a per-block spec without a block size: write for instance block32");
    if (spec.blockSizes.size() == 1) {
        const auto axis = resolvedAxis(spec, role, shape);
        if (!axis)
            return tl::unexpected(axis.error());
        const std::size_t collapsed = role == SiteRole::Weight ? std::min<std::size_t>(2, shape.size()) : shape.size();
        std::fill_n(extents.begin(), collapsed, 1);
        extents[*axis] = spec.blockSizes.front();
    } else {
        if (spec.blockSizes.size() != shape.size())
            return unfit(std::to_string(spec.blockSizes.size()) + " block sizes for a tensor with " +
                         std::to_string(shape.size()) + " dimensions (" + sizesText(shape) + ")");
        for (std::size_t d = 0; d < shape.size(); ++d)
            if (spec.blockSizes[d] >= 0)
                extents[d] = spec.blockSizes[d];
    }
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (extents[d] <= 0 || shape[d] % extents[d] != 0)
            return unfit("blocks of " + std::to_string(extents[d]) + " do not divide dimension " + std::to_string(d) +
                         " of " + sizesText(shape) + ": choose another block size, or a spec per channel");
    return extents;
}

} // namespace

Result<Units> unitsOf(const TensorSpec &spec, SiteRole role, at::IntArrayRef shape)
{
    Units units;
    units.shape.assign(shape.begin(), shape.end());
    switch (spec.granularity) {
    case Granularity::PerTensor:
        return units;
    case Granularity::PerChannel: {
        const auto axis = resolvedAxis(spec, role, shape);
        if (!axis)
            return tl::unexpected(axis.error());
        units.extents = units.shape;
        units.extents[*axis] = 1;
        break;
    }
    case Granularity::PerToken:
        if (shape.empty())
            return unfit("a spec per token of a scalar: choose a spec per tensor");
        units.extents.assign(shape.size(), 1);
        units.extents.back() = units.shape.back();
        break;
    case Granularity::PerBlock: {
        auto extents = blockExtents(spec, role, shape);
        if (!extents)
            return tl::unexpected(extents.error());
        units.extents = std::move(*extents);
        break;
    }
    }
    for (std::size_t d = 0; d < units.shape.size(); ++d)
        units.counts.push_back(units.extents[d] == 0 ? 1 : units.shape[d] / units.extents[d]);
    return units;
}

namespace
{

// Each dimension of the tensor as one of its units' or of their inside, or split into both.
struct SplitShape {
    std::vector<std::int64_t> view, units, inside; // inside: dimensions of the view
};

SplitShape splitShape(const Units &units)
{
    SplitShape split;
    for (std::size_t d = 0; d < units.shape.size(); ++d) {
        const std::int64_t size = units.shape[d];
        const std::int64_t extent = units.single() ? size : units.extents[d];
        if (extent != size && extent != 1) {
            split.view.push_back(size / extent);
            split.units.push_back(size / extent);
        }
        if (extent == 1) {
            split.view.push_back(size);
            split.units.push_back(size);
        } else {
            split.inside.push_back(static_cast<std::int64_t>(split.view.size()));
            split.view.push_back(extent);
            split.units.push_back(1);
        }
    }
    return split;
}

} // namespace

at::Tensor inUnits(const at::Tensor &x, const Units &units)
{
    return units.single() ? x : x.reshape(splitShape(units).view);
}

at::Tensor besideUnits(const at::Tensor &perUnit, const Units &units)
{
    // One number for all of several units: without dimensions, it broadcasts.
    if (units.single() || (perUnit.numel() == 1 && c10::multiply_integers(units.counts) != 1))
        return perUnit.reshape({});
    return perUnit.reshape(splitShape(units).units);
}

UnitRanges rangesOf(const at::Tensor &x, const Units &units)
{
    if (units.single()) {
        auto [low, high] = at::aminmax(x);
        return {low, high};
    }
    const SplitShape split = splitShape(units);
    const at::Tensor view = x.reshape(split.view);
    if (split.inside.empty())
        return {view.reshape(units.counts), view.reshape(units.counts)};
    return {at::amin(view, split.inside, true).reshape(units.counts),
            at::amax(view, split.inside, true).reshape(units.counts)};
}

} // namespace dblame

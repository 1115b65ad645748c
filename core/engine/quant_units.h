// SPDX-License-Identifier: GPL-3.0-or-later
//
// How a tensor is cut into units that have a scale each: the whole of it, channels, tokens, blocks.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/error.h"
#include "core/tensor_spec.h"

namespace dblame
{

// How a tensor is cut. One entry per dimension each, except per tensor: no entries at all, whatever the tensor's rank.
struct Units {
    std::vector<std::int64_t> shape;   // the tensor's
    std::vector<std::int64_t> extents; // of one unit
    std::vector<std::int64_t> counts;  // units along each dimension = shape of the scale

    [[nodiscard]] bool single() const { return extents.empty(); }
};

// Extents of a unit by granularity (coreai-opt's rule, which torchao's channels agree with):
//   per tensor    everything;   per channel  1 on the axis, the whole dimension elsewhere;
//   per token     the whole last dimension, 1 elsewhere;
//   per block     one size: that on the axis; of a weight the other of dimensions 0 and 1 is 1 and later dimensions are
//                 whole, of an activation every other dimension is 1. Several sizes: one per dimension, -1 = whole.
// Axis not given: channel 0 and block 1 of a weight; an activation needs one.
// Errors (Usage): axis out of range or missing, sizes that do not divide, too many or too few sizes.
[[nodiscard]] Result<Units> unitsOf(const TensorSpec &spec, SiteRole role, at::IntArrayRef shape);

// x as a view (or copy, if its strides ask for it) in which each unit is a run of whole dimensions, and a tensor of
// shape `units.counts` shaped to broadcast against it. inUnits(x).reshape(x.sizes()) undoes it.
[[nodiscard]] at::Tensor inUnits(const at::Tensor &x, const Units &units);
[[nodiscard]] at::Tensor besideUnits(const at::Tensor &perUnit, const Units &units);

// Lowest and highest value of each unit, shape units.counts, in x's own type. NaN makes both NaN. x must not be empty.
struct UnitRanges {
    at::Tensor low, high;
};
[[nodiscard]] UnitRanges rangesOf(const at::Tensor &x, const Units &units);

} // namespace dblame

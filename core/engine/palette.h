// SPDX-License-Identifier: GPL-3.0-or-later
//
// Weights as indices into lookup tables, as coreai-opt's KMeansPalettizer makes them (docs/quantization.md). Scalars
// are clustered; its vectors (cluster_dim > 1) depend on a random start and are not offered.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/engine/qparams.h"
#include "core/error.h"
#include "core/placement.h"
#include "core/tensor_spec.h"

namespace dblame
{

struct Palette {
    at::Tensor table;        // [groups along axis 0, groups along axis 1, 2^bits, 1], the weight's type
    at::Tensor indices;      // uint8, the weight's shape
    at::Tensor channelScale; // [size of dimension 0, 1], the weight's type; undefined without perChannelScale
    // With spec.tableType: what `table` was quantized with, one unit per group, and its elements [groups, 2^bits].
    Qparams tableQparams;
    at::Tensor tableElements;

    std::int64_t groups = 1;
    std::int64_t reused = 0;    // leading groups that held at most 2^bits values already: kept exactly
    std::int64_t erased = 0;    // weights that are not 0 and that the rounding of the fast mode made 0
    std::int64_t clustered = 0; // weights in groups that were clustered
};

// weight: float32, float16 or bfloat16 of at least two dimensions. Steps:
//  1. perChannelScale: divided by max|w| of each index of dimension 0 (1 where that is 0).
//  2. Seen as rows of dimension 0 (axis 0) or columns of dimension 1 (axis 1), cut into groups of groupSize; groupSize
//     0: one group.
//  3. A group of at most 2^bits values is its own table, ascending; only leading groups, until one does not qualify.
//  4. Else optimalClusters() of its values. fast (where all fit float16) and float16 weights: of the distinct values
//     with their counts; fast first rounds x to rint(float16(x) * 10^4) / 10^4 in float32: anything below 5e-5
//     becomes 0. Exact: every element. bfloat16 is clustered as float32. Centroids are rounded to the weight's type;
//     a table of fewer values is filled up with its last one.
//  5. tableType: the table itself, quantized per group by coreai-opt's rule and read back.
// Errors: Usage (bits, axis, shape that the groups do not divide: leave the weight float), Incomparable (not finite).
// Time: fast, some 0.5 s for millions of weights; exact, in proportion to elements times 2^bits (a million weights of
// 4 bits: seconds, of 8 bits: a minute); stops between two clusters (Cancelled).
[[nodiscard]] Result<Palette> palettize(const at::Tensor &weight, const PaletteSpec &spec,
                                        const std::stop_token &stop = {});

// table[index] * channelScale, the weight's shape and type.
[[nodiscard]] at::Tensor reconstruct(const Palette &palette, const PaletteSpec &spec);

// Defect 6 of docs/quantization.md, if the palette met it. `node` is left invalid.
[[nodiscard]] std::vector<DefectNote> paletteDefects(const Palette &palette);

} // namespace dblame

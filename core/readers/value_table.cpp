// SPDX-License-Identifier: GPL-3.0-or-later
//
// Does a stored float tensor take few distinct values? Palettes and grids that were folded back to floats leave no
// other trace in a file.
#include <algorithm>
#include <bit>

#include <ATen/ops/_unique.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/slice.h>

#include "core/readers/loaded_model.h"

namespace dblame
{

namespace
{

constexpr std::int64_t kMaxEntries = 256;
constexpr std::int64_t kElementsPerEntry = 4; // fewer say nothing: nine weights have nine values
constexpr std::int64_t kProbe = 4096;

std::int64_t distinctValues(const at::Tensor &tensor)
{
    return std::get<0>(at::_unique(tensor.flatten())).numel();
}

bool isTable(std::int64_t distinct, std::int64_t elements)
{
    return distinct >= 2 && distinct <= kMaxEntries && elements >= kElementsPerEntry * distinct;
}

int bitsOf(std::int64_t entries)
{
    return std::bit_width(static_cast<std::uint64_t>(entries - 1));
}

} // namespace

std::optional<ValueTable> LoadedModel::valueTable(ValueId input) const
{
    const at::Tensor &tensor = m_tensors[input.get()];
    if (!tensor.defined() || tensor.dim() < 2 || !tensor.is_floating_point() || tensor.numel() < 2 * kElementsPerEntry)
        return std::nullopt;
    // Most weights are dismissed by a probe: thousands of elements with as many values.
    std::optional<ValueTable> best;
    const at::Tensor flat = tensor.flatten();
    if (distinctValues(flat.slice(0, 0, std::min(kProbe, flat.numel()))) <= kMaxEntries) {
        const std::int64_t distinct = distinctValues(flat);
        if (isTable(distinct, flat.numel()))
            best = ValueTable{distinct, 0};
    }
    // Tables for groups of rows along axis 0. The fewest bits win, and of those the largest groups: five groups with
    // sixteen entries each also look like one table of eighty.
    for (std::int64_t group = tensor.size(0) / 2; group >= 1; group /= 2) {
        if (tensor.size(0) % group != 0)
            continue;
        std::int64_t most = 0;
        bool all = true;
        for (std::int64_t row = 0; all && row < tensor.size(0); row += group) {
            const at::Tensor rows = tensor.slice(0, row, row + group);
            const std::int64_t distinct = distinctValues(rows);
            all = isTable(distinct, rows.numel());
            most = std::max(most, distinct);
        }
        if (all && (!best || bitsOf(most) < bitsOf(best->entries)))
            best = ValueTable{most, group};
    }
    return best;
}

} // namespace dblame

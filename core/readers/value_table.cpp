// SPDX-License-Identifier: GPL-3.0-or-later
//
// Does a stored float tensor take few distinct values? Palettes and grids that were folded back to floats leave no
// other trace in a file.
#include <algorithm>
#include <bit>
#include <unordered_set>

#include <ATen/ops/slice.h>

#include "core/readers/loaded_model.h"

namespace dblame
{

namespace
{

constexpr std::int64_t kMaxEntries = 256;
constexpr std::int64_t kElementsPerEntry = 4; // fewer say nothing: nine weights have nine values

// Distinct values, counted up to one past kMaxEntries: most weights have that many within their first kilobytes.
std::int64_t distinctValues(const at::Tensor &tensor)
{
    const at::Tensor floats = tensor.to(at::kFloat).contiguous();
    const float *values = floats.const_data_ptr<float>();
    std::unordered_set<std::uint32_t> seen;
    for (std::int64_t i = 0; i < floats.numel(); ++i) {
        seen.insert(std::bit_cast<std::uint32_t>(values[i]));
        if (static_cast<std::int64_t>(seen.size()) > kMaxEntries)
            break;
    }
    return static_cast<std::int64_t>(seen.size());
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
    std::optional<ValueTable> best;
    if (const std::int64_t distinct = distinctValues(tensor); isTable(distinct, tensor.numel()))
        best = ValueTable{distinct, 0};
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

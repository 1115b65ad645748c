// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/palette.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include <ATen/Parallel.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/all.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

#include "core/engine/kmeans_1d.h"
#include "core/engine/quantize_tensor.h"

namespace dblame
{

namespace
{

constexpr float kRounding = 1e4F;
constexpr float kHalfMax = 65504;
constexpr std::size_t kHalfValues = 65536;

std::string problemOf(const at::Tensor &weight, const PaletteSpec &spec)
{
    if (spec.bits < 1 || spec.bits > 8)
        return "a palette has 1 to 8 bits, not " + std::to_string(spec.bits);
    if (spec.axis != 0 && spec.axis != 1)
        return "a palette groups channels of axis 0 or 1, not " + std::to_string(spec.axis);
    if (weight.dim() < 2)
        return "a weight with " + std::to_string(weight.dim()) + " dimensions cannot be palettized: two are needed";
    if (weight.scalar_type() != at::kFloat && weight.scalar_type() != at::kHalf &&
        weight.scalar_type() != at::kBFloat16)
        return std::string("a weight of ") + c10::toString(weight.scalar_type()) +
               " cannot be palettized: float32, float16 and bfloat16 can";
    if (spec.groupSize < 0 || (spec.groupSize > 0 && weight.size(spec.axis) % spec.groupSize != 0))
        return "groups of " + std::to_string(spec.groupSize) + " do not divide the " +
               std::to_string(weight.size(spec.axis)) + " channels of axis " + std::to_string(spec.axis) +
               ": coreai-opt leaves such a weight float; choose another group size";
    if (spec.tableType && *spec.tableType != ElementType::Int8 && *spec.tableType != ElementType::UInt8 &&
        *spec.tableType != ElementType::Float8E4M3 && *spec.tableType != ElementType::Float8E5M2)
        return "a table is quantized to int8, uint8, f8e4m3 or f8e5m2, not to " +
               std::string(elementTypeName(*spec.tableType));
    return {};
}

// [groups, elements of a group]: rows of dimension 0, or columns of dimension 1, row-major inside a group.
// Dimensions of the tensor that is grouped: axis 0: [groups, size, rest]; axis 1: [rest, groups, size] with the later
// dimensions in front of the first, as the peer has them.
at::Tensor grouped(const at::Tensor &x, const PaletteSpec &spec, std::int64_t groups)
{
    if (spec.axis == 0 || groups == 1)
        return x.reshape({groups, -1});
    const at::Tensor columns = x.transpose(0, 1).flatten(1).transpose(0, 1); // [rest, channels]
    return columns.reshape({columns.size(0), groups, -1}).permute({1, 0, 2}).reshape({groups, -1});
}

at::Tensor ungrouped(const at::Tensor &elements, const PaletteSpec &spec, std::int64_t groups, at::IntArrayRef shape)
{
    if (spec.axis == 0 || groups == 1)
        return elements.reshape(shape);
    const std::int64_t channels = shape[1];
    const std::int64_t rest = elements.numel() / channels;
    std::vector<std::int64_t> swapped(shape.begin(), shape.end());
    std::swap(swapped[0], swapped[1]);
    return elements.reshape({groups, rest, channels / groups})
        .permute({1, 0, 2})
        .reshape({rest, channels})
        .transpose(0, 1)
        .reshape(swapped)
        .transpose(0, 1)
        .contiguous();
}

struct GroupResult {
    std::vector<double> table;
    std::vector<std::uint8_t> indices;
    std::int64_t erased = 0;
};

// The distinct values if there are at most `limit`, each element's index among them.
std::optional<GroupResult> existingTable(const float *values, std::size_t n, std::size_t limit)
{
    std::set<float> distinct;
    for (std::size_t i = 0; i < n; ++i) {
        distinct.insert(values[i]);
        if (distinct.size() > limit)
            return std::nullopt;
    }
    GroupResult result;
    const std::vector<float> sorted(distinct.begin(), distinct.end());
    result.table.assign(sorted.begin(), sorted.end());
    result.indices.resize(n);
    for (std::size_t i = 0; i < n; ++i)
        result.indices[i] =
            static_cast<std::uint8_t>(std::lower_bound(sorted.begin(), sorted.end(), values[i]) - sorted.begin());
    return result;
}

// Cluster of each of the sorted values; all 0 where the clustering was stopped.
std::vector<std::uint8_t> clusterOf(const Clusters1d &clusters, std::size_t n)
{
    std::vector<std::uint8_t> of(n);
    for (std::size_t c = 0; c + 1 < clusters.firstOfCluster.size(); ++c)
        std::fill(of.begin() + clusters.firstOfCluster[c], of.begin() + clusters.firstOfCluster[c + 1],
                  static_cast<std::uint8_t>(c));
    return of;
}

// What the clustering sees of a float16.
float seen(c10::Half half, bool rounds)
{
    const auto value = static_cast<float>(half);
    return rounds ? std::nearbyint(value * kRounding) / kRounding : value;
}

// Few distinct values: at most the finite float16 numbers.
GroupResult clusterDistinct(const float *values, std::size_t n, std::size_t limit, bool rounds,
                            const std::stop_token &stop)
{
    std::vector<double> countOfBits(kHalfValues, 0);
    std::vector<std::uint16_t> bits(n);
    GroupResult result;
    for (std::size_t i = 0; i < n; ++i) {
        const c10::Half half(values[i]);
        bits[i] = half.x;
        countOfBits[half.x] += 1;
        if (values[i] != 0 && seen(half, rounds) == 0)
            ++result.erased;
    }
    std::vector<std::uint16_t> present;
    for (std::size_t b = 0; b < kHalfValues; ++b)
        if (countOfBits[b] > 0)
            present.push_back(static_cast<std::uint16_t>(b));
    const auto valueOf = [rounds](std::uint16_t b) { return seen(c10::Half(b, c10::Half::from_bits()), rounds); };
    std::sort(present.begin(), present.end(),
              [&](std::uint16_t a, std::uint16_t b) { return valueOf(a) < valueOf(b); });
    std::vector<double> distinct;
    std::vector<double> counts;
    std::vector<std::uint32_t> indexOfBits(kHalfValues, 0);
    for (const std::uint16_t b : present) {
        const auto value = static_cast<double>(valueOf(b));
        if (distinct.empty() || distinct.back() != value) {
            distinct.push_back(value);
            counts.push_back(0);
        }
        counts.back() += countOfBits[b];
        indexOfBits[b] = static_cast<std::uint32_t>(distinct.size() - 1);
    }
    const Clusters1d clusters =
        optimalClusters(distinct, counts, static_cast<std::int64_t>(std::min(limit, distinct.size())), stop);
    const std::vector<std::uint8_t> of = clusterOf(clusters, distinct.size());
    result.table = clusters.centroids;
    result.indices.resize(n);
    for (std::size_t i = 0; i < n; ++i)
        result.indices[i] = of[indexOfBits[bits[i]]];
    return result;
}

GroupResult clusterAll(const float *values, std::size_t n, std::size_t limit, const std::stop_token &stop)
{
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [values](std::uint32_t a, std::uint32_t b) { return values[a] < values[b]; });
    std::vector<double> sorted(n);
    for (std::size_t i = 0; i < n; ++i)
        sorted[i] = static_cast<double>(values[order[i]]);
    const Clusters1d clusters =
        optimalClusters(sorted, std::vector<double>(n, 1), static_cast<std::int64_t>(std::min(limit, n)), stop);
    const std::vector<std::uint8_t> of = clusterOf(clusters, n);
    GroupResult result;
    result.table = clusters.centroids;
    result.indices.resize(n);
    for (std::size_t i = 0; i < n; ++i)
        result.indices[order[i]] = of[i];
    return result;
}

// Step 5: the table of each group on a grid of its own.
Result<void> quantizeTable(at::Tensor &table, const PaletteSpec &spec, Palette &palette)
{
    TensorSpec grid;
    grid.type = *spec.tableType;
    grid.scheme = spec.tableSymmetric || !isInteger(grid.type) ? Scheme::Symmetric : Scheme::Affine;
    const IntegerRange range = integerRange(grid.type, grid.scheme);
    grid.quantMin = range.low;
    grid.quantMax = range.high;
    grid.granularity = Granularity::PerChannel;
    grid.axis = 0;
    grid.rule = QparamRule::CoreAi;
    grid.arithmetic = Arithmetic::Division;
    auto qparams = chooseQparams(table, grid, SiteRole::Weight);
    if (!qparams)
        return tl::unexpected(std::move(qparams.error()));
    auto elements = quantizeTensor(table, *qparams, grid, SiteRole::Weight);
    auto values = fakeQuantize(table, *qparams, grid, SiteRole::Weight);
    if (!elements || !values)
        return tl::unexpected(elements ? std::move(values.error()) : std::move(elements.error()));
    palette.tableQparams = std::move(*qparams);
    palette.tableElements = std::move(*elements);
    table = std::move(*values);
    return {};
}

GroupResult clusterGroup(const float *values, std::size_t n, const PaletteSpec &spec, bool half,
                         const std::stop_token &stop)
{
    const std::size_t limit = std::size_t{1} << static_cast<unsigned>(spec.bits);
    const auto [low, high] = std::minmax_element(values, values + n);
    const bool fits = *low >= -kHalfMax && *high <= kHalfMax;
    return half || (spec.fast && fits) ? clusterDistinct(values, n, limit, spec.fast, stop)
                                       : clusterAll(values, n, limit, stop);
}

// Tables and indices of all groups, one row of `elements` each.
std::vector<GroupResult> clusterGroups(const at::Tensor &elements, const PaletteSpec &spec, bool half,
                                       const std::stop_token &stop, Palette &palette)
{
    const auto n = static_cast<std::size_t>(elements.size(1));
    const auto valuesOf = [&](std::int64_t g) {
        return elements.const_data_ptr<float>() + static_cast<std::size_t>(g) * n;
    };
    std::vector<GroupResult> results(static_cast<std::size_t>(palette.groups));
    for (; palette.reused < palette.groups; ++palette.reused) {
        auto existing = existingTable(valuesOf(palette.reused), n, std::size_t{1} << static_cast<unsigned>(spec.bits));
        if (!existing)
            break;
        results[static_cast<std::size_t>(palette.reused)] = std::move(*existing);
    }
    at::parallel_for(palette.reused, palette.groups, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t g = begin; g < end; ++g)
            results[static_cast<std::size_t>(g)] = clusterGroup(valuesOf(g), n, spec, half, stop);
    });
    palette.clustered = (palette.groups - palette.reused) * static_cast<std::int64_t>(n);
    for (const GroupResult &result : results)
        palette.erased += result.erased;
    return results;
}

Result<Palette> palettizeUnguarded(const at::Tensor &weight, const PaletteSpec &spec, const std::stop_token &stop)
{
    Palette palette;
    at::Tensor scaled = weight.detach();
    if (spec.perChannelScale) {
        const at::Tensor rows = scaled.flatten(1);
        palette.channelScale = at::amax(at::abs(rows), {1}, true);
        palette.channelScale.masked_fill_(palette.channelScale.eq(0), 1);
        scaled = rows.div(palette.channelScale).reshape(weight.sizes());
    }
    palette.groups = spec.groupSize > 0 ? weight.size(spec.axis) / spec.groupSize : 1;
    const at::Tensor elements = grouped(scaled.to(at::kFloat), spec, palette.groups).contiguous();
    const auto n = static_cast<std::size_t>(elements.size(1));
    const std::size_t size = std::size_t{1} << static_cast<unsigned>(spec.bits);

    at::Tensor indices = at::empty(elements.sizes(), at::kByte);
    at::Tensor table = at::empty({palette.groups, static_cast<std::int64_t>(size)}, at::kDouble);
    auto results = clusterGroups(elements, spec, weight.scalar_type() == at::kHalf, stop, palette);
    if (stop.stop_requested())
        return fail(ErrorCode::Cancelled, "", "stopped while a weight was palettized");
    for (std::size_t g = 0; g < results.size(); ++g) {
        const double last = results[g].table.back();
        results[g].table.resize(size, last);
        std::copy(results[g].table.begin(), results[g].table.end(), table.mutable_data_ptr<double>() + g * size);
        std::copy(results[g].indices.begin(), results[g].indices.end(),
                  indices.mutable_data_ptr<std::uint8_t>() + g * n);
    }
    table = table.to(weight.scalar_type());
    if (spec.tableType)
        if (auto quantized = quantizeTable(table, spec, palette); !quantized)
            return tl::unexpected(std::move(quantized.error()));
    const std::int64_t groups = palette.groups;
    palette.table = spec.axis == 0 ? table.reshape({groups, 1, -1, 1}) : table.reshape({1, groups, -1, 1});
    palette.indices = ungrouped(indices, spec, groups, weight.sizes());
    return palette;
}

} // namespace

Result<Palette> palettize(const at::Tensor &weight, const PaletteSpec &spec, const std::stop_token &stop)
{
    if (const std::string problem = problemOf(weight, spec); !problem.empty())
        return fail(ErrorCode::Usage, "", problem);
    try {
        if (weight.numel() == 0)
            return fail(ErrorCode::Usage, "", "an empty weight cannot be palettized");
        if (!at::isfinite(weight).all().item<bool>())
            return fail(ErrorCode::Incomparable, "",
                        "the weight holds values that are not finite: it cannot be palettized; leave it float");
        return palettizeUnguarded(weight, spec, stop);
    } catch (const c10::Error &error) {
        return fail(ErrorCode::Incomparable, "", error.what_without_backtrace(), error.what());
    }
}

at::Tensor reconstruct(const Palette &palette, const PaletteSpec &spec)
{
    const at::Tensor indices = grouped(palette.indices, spec, palette.groups).to(at::kLong);
    const at::Tensor table = palette.table.reshape({palette.groups, -1});
    at::Tensor weight = ungrouped(table.gather(1, indices), spec, palette.groups, palette.indices.sizes());
    if (palette.channelScale.defined())
        weight = weight.flatten(1).mul(palette.channelScale).reshape(palette.indices.sizes());
    return weight;
}

std::vector<DefectNote> paletteDefects(const Palette &palette)
{
    if (palette.erased == 0)
        return {};
    std::string text = std::to_string(palette.erased) + " of " + std::to_string(palette.clustered) +
                       " weights are below 5e-5 and were rounded to 0 before they were clustered (fast mode)";
    if (palette.table.eq(0).all().item<bool>())
        text += "; nothing but 0 is left in the table";
    return {{6, {}, text + ": use the exact mode"}};
}

} // namespace dblame

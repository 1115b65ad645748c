// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/spec_change.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

namespace dblame
{

namespace
{

constexpr double kEps = 1.0 / (1U << 23U);
constexpr double kPresetEps = 1.0 / (1U << 12U);
constexpr int kByteBits = 8;

constexpr ElementType kIntegers[] = {ElementType::Int2, ElementType::UInt2, ElementType::Int3,  ElementType::UInt3,
                                     ElementType::Int4, ElementType::UInt4, ElementType::Int5,  ElementType::UInt5,
                                     ElementType::Int6, ElementType::UInt6, ElementType::Int7,  ElementType::UInt7,
                                     ElementType::Int8, ElementType::UInt8, ElementType::Int16, ElementType::UInt16};

std::optional<ElementType> integerType(int bits, bool isSignedType)
{
    for (const ElementType type : kIntegers)
        if (bitsOf(type) == bits && isSigned(type) == isSignedType)
            return type;
    return std::nullopt;
}

bool unsignedGrid(const QuantSpec &spec)
{
    return !isFloatGrid(spec) && spec.quantMin >= 0;
}

bool transposedConvolution(const QuantSite &site)
{
    return site.moduleType.find("ConvTranspose") != std::string::npos;
}

// What the quantizer of the site would fill in where a text says nothing.
TensorSpec ownTensorSpec(const QuantSite &site)
{
    const QuantSpec &own = site.spec;
    TensorSpec spec;
    spec.type = elementTypeOf(own).value_or(unsignedGrid(own) ? ElementType::UInt16 : ElementType::Int16);
    spec.quantMin = isFloatGrid(own) ? 0 : own.quantMin;
    spec.quantMax = isFloatGrid(own) ? 0 : own.quantMax;
    spec.scheme = own.symmetric || isFloatGrid(own) ? Scheme::Symmetric : Scheme::Affine;
    spec.granularity = own.granularity;
    if (own.axis >= 0)
        spec.axis = own.axis;
    if (own.blockSize > 0)
        spec.blockSizes = {own.blockSize};
    spec.rule = own.divides ? QparamRule::CoreAi : QparamRule::Torchao;
    spec.arithmetic = own.divides ? Arithmetic::Division : Arithmetic::Reciprocal;
    spec.eps = smallestScaleOf(site);
    spec.observer = own.dynamic ? ObserverKind::Dynamic : ObserverKind::MinMax;
    return spec;
}

std::string blockProblem(const QuantSite &site, std::int64_t blockSize, const std::vector<std::int64_t> &shape)
{
    if (shape.empty())
        return "a single number has no blocks";
    const std::int64_t axis = blockAxisOf(site, static_cast<std::int64_t>(shape.size()));
    const std::int64_t size = shape[static_cast<std::size_t>(axis)];
    if (size % blockSize == 0)
        return {};
    return "blocks of " + std::to_string(blockSize) + " do not divide the " + std::to_string(size) +
           " entries of axis " + std::to_string(axis);
}

std::string rangeProblem(const SpecChange &change)
{
    if (!change.low && !change.high)
        return {};
    if (change.type && isCast(*change.type))
        return std::string(elementTypeName(*change.type)) + " is a cast: it takes no range";
    if (change.granularity != Granularity::PerTensor)
        return std::string("a given range is for the whole tensor: choose per tensor instead of ") +
               granularityName(change.granularity);
    if ((change.low && !std::isfinite(*change.low)) || (change.high && !std::isfinite(*change.high)))
        return "a range needs finite ends";
    if (change.low && change.high && *change.low >= *change.high)
        return "the range is empty: its low end is not below its high end";
    return {};
}

// Bits of a site's integers under the edits; nullopt: floating, off, or a table.
std::optional<int> bitsAfter(const QuantSite &site, SiteId id, const EditSet &edits)
{
    if (site.watchesOnly || edits.off.contains(id))
        return std::nullopt;
    const auto change = edits.respecified.find(id);
    if (change != edits.respecified.end())
        return !change->second.type              ? std::optional(change->second.bits)
               : isInteger(*change->second.type) ? std::optional(bitsOf(*change->second.type))
                                                 : std::nullopt;
    return isFloatGrid(site.spec) || site.spec.tableSize > 0 ? std::nullopt : std::optional(site.spec.effectiveBits());
}

struct Boundary {
    int in = 0, out = 0;
    friend bool operator==(const Boundary &, const Boundary &) = default;
};

// Operators whose activations change between narrow and wide ones, or that read both.
std::map<NodeId, Boundary> boundariesOf(const SiteTable &sites, const EditSet &edits)
{
    std::map<NodeId, std::set<int>> in, out;
    for (std::size_t i = 0; i < sites.sites.size(); ++i) {
        const QuantSite &site = sites.sites[i];
        const auto bits = bitsAfter(site, SiteId(i), edits);
        if (site.role == SiteRole::Weight || !bits)
            continue;
        for (const NodeId reader : site.readers)
            if (!edits.bypassed.contains({SiteId(i), reader}))
                in[reader].insert(*bits);
        if (site.role == SiteRole::Output && site.owner.valid())
            out[site.owner].insert(*bits);
    }
    std::map<NodeId, Boundary> found;
    for (const auto &[node, bits] : in) {
        const auto result = out.find(node);
        const int after = result == out.end() ? *bits.begin() : *result->second.begin();
        const bool wideIn = *bits.rbegin() > kByteBits;
        const bool narrowIn = *bits.begin() <= kByteBits;
        if (wideIn && (narrowIn || after <= kByteBits))
            found[node] = {*bits.rbegin(), after};
        else if (!wideIn && after > kByteBits)
            found[node] = {*bits.begin(), after};
    }
    return found;
}

} // namespace

std::optional<ElementType> elementTypeOf(const QuantSpec &spec)
{
    if (spec.tableSize > 0)
        return std::nullopt;
    if (!isFloatGrid(spec))
        return integerType(spec.effectiveBits(), spec.quantMin < 0);
    for (const ElementType type : {ElementType::Float8E4M3, ElementType::Float8E5M2, ElementType::BFloat16,
                                   ElementType::Float16, ElementType::Float4E2M1})
        if (storageOf(type) == spec.storage)
            return type;
    return std::nullopt;
}

bool isFloatGrid(const QuantSpec &spec)
{
    return spec.tableSize == 0 && (isFloatingPoint(spec.storage) || spec.quantMax <= spec.quantMin);
}

double smallestScaleOf(const QuantSite &site)
{
    return std::find(site.scale.begin(), site.scale.end(), kPresetEps) != site.scale.end() ? kPresetEps : kEps;
}

std::int64_t channelAxisOf(const QuantSite &site, std::int64_t dims)
{
    const bool channels = site.spec.granularity != Granularity::PerBlock || site.role != SiteRole::Weight;
    if (channels && site.spec.axis >= 0 && site.spec.axis < dims)
        return site.spec.axis; // that of a weight's blocks is not that of its channels
    if (site.role == SiteRole::Weight)
        return transposedConvolution(site) && dims > 1 ? 1 : 0;
    if (dims == 3 && site.moduleType.find("Conv") == std::string::npos)
        return 2;
    return std::min<std::int64_t>(1, dims - 1);
}

std::int64_t blockAxisOf(const QuantSite &site, std::int64_t dims)
{
    if (site.spec.granularity == Granularity::PerBlock && site.spec.axis >= 0 && site.spec.axis < dims)
        return site.spec.axis;
    if (site.role == SiteRole::Weight)
        return transposedConvolution(site) || dims < 2 ? 0 : 1;
    return channelAxisOf(site, dims);
}

IntegerRange changedGrid(const QuantSite &site, const SpecChange &change)
{
    const QuantSpec &own = site.spec;
    const bool symmetric = change.symmetric.value_or(own.symmetric);
    const std::int64_t half = std::int64_t{1} << (change.bits - 1);
    if (isFloatGrid(own))
        return {-half, half - 1};
    const int ownBits = std::bit_width(static_cast<std::uint64_t>(own.quantMax - own.quantMin));
    if (change.bits == ownBits && symmetric == own.symmetric)
        return {own.quantMin, own.quantMax};
    if (own.quantMin >= 0)
        return {0, 2 * half - 1};
    const bool restricted = own.quantMin == -own.quantMax;
    return {symmetric && restricted ? 1 - half : -half, half - 1};
}

Result<TensorSpec> changedSpec(const QuantSite &site, const SpecChange &change, std::int64_t dims)
{
    const TensorSpec own = ownTensorSpec(site);
    Granularity granularity = change.granularity;
    std::optional<std::int64_t> axis;
    if (dims < 1 && granularity != Granularity::PerBlock)
        granularity = Granularity::PerTensor;
    else if (granularity == Granularity::PerChannel)
        axis = channelAxisOf(site, dims);
    else if (granularity == Granularity::PerBlock)
        axis = blockAxisOf(site, std::max<std::int64_t>(dims, 1));
    TensorSpec spec = own;
    if (change.type) {
        SpecChange words = change;
        words.granularity = granularity;
        if (!words.symmetric)
            words.symmetric = !isInteger(*change.type) || own.scheme != Scheme::Affine;
        auto parsed = parseTensorSpec(specChangeText(words), own);
        if (!parsed)
            return parsed;
        spec = std::move(*parsed);
    } else {
        const IntegerRange grid = changedGrid(site, change);
        spec.type =
            integerType(change.bits, grid.low < 0).value_or(grid.low < 0 ? ElementType::Int16 : ElementType::UInt16);
        spec.quantMin = grid.low;
        spec.quantMax = grid.high;
        const bool symmetric = change.symmetric.value_or(own.scheme != Scheme::Affine);
        spec.scheme = symmetric ? Scheme::Symmetric : Scheme::Affine;
        spec.granularity = granularity;
        spec.blockSizes.clear();
        if (granularity == Granularity::PerBlock)
            spec.blockSizes = {change.blockSize};
    }
    spec.axis.reset();
    if (axis && !isCast(spec.type))
        spec.axis = static_cast<int>(*axis);
    spec.low = change.low;
    spec.high = change.high;
    if (change.low && change.high)
        spec.observer = ObserverKind::Fixed;
    return spec;
}

std::string changeProblem(const QuantSite &site, const SpecChange &change,
                          const std::optional<std::vector<std::int64_t>> &shape)
{
    if (site.watchesOnly)
        return "only watches: it quantizes nothing, so there is no spec to change";
    if (!change.type && (change.bits < 2 || change.bits > 16))
        return std::to_string(change.bits) + " bits: 2 to 16 are possible";
    if (change.type == ElementType::Int32)
        return "int32 is a type for biases: choose int2 to int16, uint2 to uint16 or a floating type";
    if (change.type && isCast(*change.type) &&
        (change.symmetric == false || change.granularity != Granularity::PerTensor))
        return std::string(elementTypeName(*change.type)) + " is a cast: it takes no scheme and no granularity";
    if (change.type && !isInteger(*change.type) && change.symmetric == false)
        return std::string(elementTypeName(*change.type)) + " is symmetric only";
    if (std::string problem = rangeProblem(change); !problem.empty())
        return problem;
    if (change.granularity != Granularity::PerBlock)
        return {};
    if (change.blockSize < 1)
        return "the block size must be at least 1";
    return shape ? blockProblem(site, change.blockSize, *shape) : std::string();
}

SiteTable changedSites(const SiteTable &sites, const EditSet &edits, const std::vector<std::string> &changed)
{
    SiteTable result = sites;
    for (const auto &[id, change] : edits.respecified) {
        QuantSite &site = result.sites[id.get()];
        const bool taken = std::find(changed.begin(), changed.end(), site.id + "=" + change.text()) != changed.end();
        // Only the axis of the operator's own rule would need a tensor: a weight has two dimensions at least.
        const auto spec = changedSpec(site, change, site.role == SiteRole::Weight ? 2 : 4);
        if (!taken || !spec)
            continue;
        QuantSpec after;
        after.storage = storageOf(spec->type);
        after.quantMin = spec->quantMin;
        after.quantMax = spec->quantMax;
        after.symmetric = spec->scheme != Scheme::Affine;
        after.granularity = spec->granularity;
        after.axis = spec->axis.value_or(-1);
        after.blockSize = spec->blockSizes.size() == 1 ? spec->blockSizes.front() : 0;
        after.dynamic = site.spec.dynamic;
        after.divides = site.spec.divides;
        site.spec = after;
        site.scale.clear();
        site.zeroPoint.clear();
    }
    return result;
}

std::vector<std::string> newBitBoundaries(const Graph &graph, const SiteTable &sites, const EditSet &edits)
{
    const auto before = boundariesOf(sites, {});
    std::vector<std::string> texts;
    for (const auto &[node, boundary] : boundariesOf(sites, edits)) {
        const auto was = before.find(node);
        if (was == before.end() || !(was->second == boundary))
            texts.push_back("boundary of bits at " + graph.node(node).name + ": " + std::to_string(boundary.in) +
                            " in, " + std::to_string(boundary.out) + " out");
    }
    return texts;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/site_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <c10/util/Exception.h>

#include "core/engine/metric_kernels.h"
#include "core/engine/site_arithmetic.h"

namespace dblame
{

namespace
{

using kernels::QuantParams;

constexpr double kEps = 1.0 / (1U << 23U);
constexpr double kPresetEps = 1.0 / (1U << 12U);

struct Rule {
    std::int64_t quantMin = 0, quantMax = 0;
    bool symmetric = false;
    bool divides = false;
    double eps = kEps;

    [[nodiscard]] std::int64_t symmetricZero() const { return quantMin < 0 ? 0 : (quantMax + quantMin + 1) / 2; }
};

Rule ruleOf(const QuantSite &site, const SpecChange &change)
{
    const QuantSpec &own = site.spec;
    Rule rule;
    rule.symmetric = change.symmetric.value_or(own.symmetric);
    rule.divides = own.divides;
    for (const double s : site.scale)
        if (s == kPresetEps)
            rule.eps = kPresetEps;
    const int ownBits = std::bit_width(static_cast<std::uint64_t>(own.quantMax - own.quantMin));
    const std::int64_t half = std::int64_t{1} << (change.bits - 1);
    if (change.bits == ownBits && rule.symmetric == own.symmetric) {
        rule.quantMin = own.quantMin;
        rule.quantMax = own.quantMax;
    } else if (own.quantMin >= 0) {
        rule.quantMin = 0;
        rule.quantMax = 2 * half - 1;
    } else {
        const bool restricted = own.quantMin == -own.quantMax;
        rule.quantMin = rule.symmetric && restricted ? 1 - half : -half;
        rule.quantMax = half - 1;
    }
    return rule;
}

bool transposedConvolution(const QuantSite &site)
{
    return site.moduleType.find("ConvTranspose") != std::string::npos;
}

std::int64_t channelAxis(const QuantSite &site, std::int64_t dims)
{
    if (site.spec.axis >= 0 && site.spec.axis < dims)
        return site.spec.axis;
    if (site.role == SiteRole::Weight)
        return transposedConvolution(site) && dims > 1 ? 1 : 0;
    if (dims == 3 && site.moduleType.find("Conv") == std::string::npos)
        return 2;
    return std::min<std::int64_t>(1, dims - 1);
}

std::int64_t blockAxis(const QuantSite &site, std::int64_t dims)
{
    if (site.spec.granularity == Granularity::PerBlock && site.spec.axis >= 0 && site.spec.axis < dims)
        return site.spec.axis;
    if (site.role == SiteRole::Weight)
        return transposedConvolution(site) || dims < 2 ? 0 : 1;
    return channelAxis(site, dims);
}

// x with its units in place: a block axis is split in two; `reduced`: the axes inside a unit.
struct Units {
    at::Tensor view;
    std::vector<std::int64_t> reduced;
};

Units unitsOf(const QuantSite &site, const SpecChange &change, const at::Tensor &x)
{
    Units units{x, {}};
    const std::int64_t dims = x.dim();
    const auto allBut = [&](std::int64_t kept) {
        for (std::int64_t d = 0; d < dims; ++d)
            if (d != kept)
                units.reduced.push_back(d);
    };
    switch (change.granularity) {
    case Granularity::PerTensor:
        allBut(-1);
        break;
    case Granularity::PerChannel:
        allBut(dims == 0 ? -1 : channelAxis(site, dims));
        break;
    case Granularity::PerToken:
        if (dims > 0)
            units.reduced.push_back(dims - 1);
        break;
    case Granularity::PerBlock: {
        const std::int64_t axis = blockAxis(site, dims);
        units.view = x.unflatten(axis, {x.size(axis) / change.blockSize, change.blockSize});
        units.reduced.push_back(axis + 1);
        if (site.role == SiteRole::Weight)
            for (std::int64_t d = 2; d < dims; ++d)
                units.reduced.push_back(d + 1);
        break;
    }
    }
    return units;
}

struct Qparams {
    at::Tensor scale, zeroPoint; // float32, shaped to broadcast over the units' view
};

// Scale and zero point of a range [low, high] per unit; the type of the range is the type they are computed in.
Qparams chooseQparams(const at::Tensor &low, const at::Tensor &high, const Rule &rule)
{
    const at::Tensor mn = low.clamp_max(0);
    const at::Tensor mx = high.clamp_min(0);
    const auto steps = static_cast<double>(rule.quantMax - rule.quantMin);
    const at::Tensor eps = at::full({}, rule.eps, low.options());
    if (rule.symmetric) {
        const at::Tensor scale = at::maximum(at::maximum(mn.neg(), mx).div(steps / 2), eps).to(at::kFloat);
        return {scale, at::full({}, static_cast<double>(rule.symmetricZero()), scale.options()).expand_as(scale)};
    }
    const at::Tensor scale = at::maximum(mx.sub(mn).div(steps), eps);
    const at::Tensor zero = mn.div(scale).round_().neg_().add_(rule.quantMin).clamp_(rule.quantMin, rule.quantMax);
    return {scale.to(at::kFloat), zero.to(at::kFloat)};
}

// The range that an activation site was made with; nullopt: it is not in the file.
std::optional<std::pair<double, double>> ownRange(const QuantSite &site, const Rule &rule)
{
    if (site.role == SiteRole::Weight || site.spec.dynamic || site.scale.empty())
        return std::nullopt;
    double low = 0;
    double high = 0;
    for (std::size_t i = 0; i < site.scale.size(); ++i) {
        const double s = site.scale[i];
        const double z = i < site.zeroPoint.size() ? static_cast<double>(site.zeroPoint[i]) : 0.0;
        const auto qmin = static_cast<double>(site.spec.quantMin);
        const auto qmax = static_cast<double>(site.spec.quantMax);
        const bool stays = site.spec.symmetric && rule.symmetric;
        low = std::min(low, stays ? -s * (qmax - qmin) / 2 : (qmin - z) * s);
        high = std::max(high, stays ? s * (qmax - qmin) / 2 : (qmax - z) * s);
    }
    return std::pair{low, high};
}

// As chooseQparams(), in double: the range is a product that float32 would round before it is divided again.
Qparams qparamsOfRange(double low, double high, const Rule &rule)
{
    const auto steps = static_cast<double>(rule.quantMax - rule.quantMin);
    const double width = rule.symmetric ? 2 * std::max(-low, high) : high - low;
    const auto scale = static_cast<float>(std::max(width / steps, rule.eps));
    double zero = static_cast<double>(rule.symmetricZero());
    if (!rule.symmetric)
        zero = std::clamp(static_cast<double>(rule.quantMin) - std::nearbyint(low / static_cast<double>(scale)),
                          static_cast<double>(rule.quantMin), static_cast<double>(rule.quantMax));
    return {at::full({}, static_cast<double>(scale), at::kFloat), at::full({}, zero, at::kFloat)};
}

Qparams qparamsFor(const QuantSite &site, const SpecChange &change, const Rule &rule, const Units &units)
{
    if (change.granularity == Granularity::PerTensor)
        if (const auto range = ownRange(site, rule))
            return qparamsOfRange(range->first, range->second, rule);
    // coreai-opt computes a half-precision weight's scale in its own type.
    const at::Tensor values = rule.divides ? units.view : units.view.to(at::kFloat);
    if (units.reduced.empty())
        return chooseQparams(values, values, rule);
    return chooseQparams(values.amin(units.reduced, /*keepdim=*/true), values.amax(units.reduced, /*keepdim=*/true),
                         rule);
}

at::Tensor applyGrid(const at::Tensor &view, const Qparams &q, const Rule &rule)
{
    const at::Tensor x = view.to(at::kFloat);
    if (const auto layout = plainLayout(x); layout && q.scale.numel() == 1) {
        QuantParams params =
            paramsOf(q.scale.reshape({1}), q.zeroPoint.reshape({1}), rule.quantMin, rule.quantMax).front();
        params.nanInteger = std::numeric_limits<float>::quiet_NaN();
        const auto &set = kernels::kernels();
        return mapAll(x, *layout, rule.divides ? set.fakeQuant : set.quantDequant, params);
    }
    if (rule.divides)
        return compositeFakeQuant(x, q.scale, q.zeroPoint, rule.quantMin, rule.quantMax);
    return x.mul(q.scale.reciprocal())
        .round_()
        .add_(q.zeroPoint)
        .clamp_(rule.quantMin, rule.quantMax)
        .sub_(q.zeroPoint)
        .mul_(q.scale);
}

void checkRespecifiable(const QuantSite &site, const SpecChange &change, const at::Tensor &x)
{
    const std::string problem = respecifyProblem(site, change, x.sizes().vec());
    TORCH_CHECK(problem.empty(), problem);
    TORCH_CHECK(x.is_floating_point(), "only floating-point values can be quantized");
}

} // namespace

std::string respecifyProblem(const QuantSite &site, const SpecChange &change, const std::vector<std::int64_t> &shape)
{
    if (change.bits < 2 || change.bits > 16)
        return std::to_string(change.bits) + " bits: 2 to 16 are possible";
    if (change.granularity != Granularity::PerBlock)
        return {};
    if (shape.empty())
        return "a single number has no blocks";
    const std::int64_t axis = blockAxis(site, static_cast<std::int64_t>(shape.size()));
    const std::int64_t size = shape[static_cast<std::size_t>(axis)];
    if (change.blockSize < 1)
        return "the block size must be at least 1";
    if (size % change.blockSize != 0)
        return "blocks of " + std::to_string(change.blockSize) + " do not divide the " + std::to_string(size) +
               " entries of axis " + std::to_string(axis);
    return {};
}

SiteKernel respecifiedSite(const QuantSite &site, const SpecChange &change)
{
    return [site, change](const at::Tensor &x) {
        checkRespecifiable(site, change, x);
        const Rule rule = ruleOf(site, change);
        if (x.numel() == 0)
            return x.clone();
        const Units units = unitsOf(site, change, x);
        const at::Tensor y = applyGrid(units.view, qparamsFor(site, change, rule, units), rule);
        return y.reshape(x.sizes()).to(x.scalar_type());
    };
}

SiteQparams respecifiedQparams(const QuantSite &site, const SpecChange &change, const at::Tensor &source)
{
    checkRespecifiable(site, change, source);
    const Rule rule = ruleOf(site, change);
    SiteQparams result;
    result.quantMin = rule.quantMin;
    result.quantMax = rule.quantMax;
    if (source.numel() == 0)
        return result;
    const Qparams q = qparamsFor(site, change, rule, unitsOf(site, change, source));
    const at::Tensor scale = q.scale.contiguous();
    const at::Tensor zero = q.zeroPoint.contiguous();
    for (std::int64_t i = 0; i < scale.numel(); ++i) {
        result.scale.push_back(static_cast<double>(scale.const_data_ptr<float>()[i]));
        result.zeroPoint.push_back(static_cast<std::int64_t>(zero.const_data_ptr<float>()[i]));
    }
    return result;
}

} // namespace dblame

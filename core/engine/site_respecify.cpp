// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/site_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <c10/util/Exception.h>

#include "core/engine/metric_kernels.h"
#include "core/engine/site_arithmetic.h"
#include "core/spec_change.h"

namespace dblame
{

namespace
{

using kernels::QuantParams;

struct Rule {
    std::int64_t quantMin = 0, quantMax = 0;
    bool symmetric = false;
    bool divides = false;
    double eps = 0;

    [[nodiscard]] std::int64_t symmetricZero() const { return quantMin < 0 ? 0 : (quantMax + quantMin + 1) / 2; }
};

Rule ruleOf(const QuantSite &site, const SpecChange &change)
{
    const IntegerRange grid = changedGrid(site, change);
    return {grid.low, grid.high, change.symmetric.value_or(site.spec.symmetric), site.spec.divides,
            smallestScaleOf(site)};
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
        allBut(dims == 0 ? -1 : channelAxisOf(site, dims));
        break;
    case Granularity::PerToken:
        if (dims > 0)
            units.reduced.push_back(dims - 1);
        break;
    case Granularity::PerBlock: {
        const std::int64_t axis = blockAxisOf(site, dims);
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
        if (const auto range = ownRangeOf(site, rule.symmetric))
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

std::optional<std::pair<double, double>> ownRangeOf(const QuantSite &site, bool symmetric)
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
        const bool stays = site.spec.symmetric && symmetric;
        low = std::min(low, stays ? -s * (qmax - qmin) / 2 : (qmin - z) * s);
        high = std::max(high, stays ? s * (qmax - qmin) / 2 : (qmax - z) * s);
    }
    return std::pair{low, high};
}

std::string respecifyProblem(const QuantSite &site, const SpecChange &change, const std::vector<std::int64_t> &shape)
{
    return changeProblem(site, change, shape);
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

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/site_change.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/aminmax.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

#include "core/engine/observer.h"
#include "core/engine/qparams.h"
#include "core/engine/quantize_tensor.h"
#include "core/number_text.h"
#include "core/spec_change.h"

namespace dblame
{

namespace
{

using Range = std::pair<double, double>;

constexpr int kRangeDigits = 4;

// site_kernels.h knows integer grids only, and ranges that nobody gave.
bool sameKindOfGrid(const QuantSite &site, const SpecChange &change)
{
    return !change.type && !change.low && !change.high && !isFloatGrid(site.spec);
}

// A problem of any of the quantizer's functions is one of the node.
template <class T>
T orThrow(Result<T> result)
{
    TORCH_CHECK(result.has_value(), result.error().message);
    return std::move(*result);
}

std::optional<Range> ownRange(const QuantSite &site, bool symmetric)
{
    if (!isFloatGrid(site.spec))
        return ownRangeOf(site, symmetric);
    const auto type = elementTypeOf(site.spec);
    if (!type || isCast(*type) || site.role == SiteRole::Weight || site.spec.dynamic || site.scale.empty())
        return std::nullopt;
    const double largest = *std::max_element(site.scale.begin(), site.scale.end()) * largestValue(*type);
    return Range{-largest, largest};
}

// The range that is known without the values, with the bounds that are given.
std::optional<Range> knownRange(const QuantSite &site, const SpecChange &change, const TensorSpec &spec)
{
    if (spec.granularity != Granularity::PerTensor || isCast(spec.type))
        return std::nullopt;
    if (change.low && change.high)
        return Range{*change.low, *change.high};
    auto range = ownRange(site, spec.scheme != Scheme::Affine);
    if (range)
        range = Range{change.low.value_or(range->first), change.high.value_or(range->second)};
    return range;
}

// The range that scales stand for is a product: float32 would round it before it is divided again.
Qparams qparamsOfKnown(const Range &range, TensorSpec spec, SiteRole role)
{
    if (spec.observer == ObserverKind::Fixed)
        return orThrow(orThrow(makeObserver(spec, role))->qparams());
    spec.observer = ObserverKind::Dynamic; // in the type of the range
    TORCH_CHECK(range.first <= range.second, "the range ", range.first, " .. ", range.second, " is empty");
    Qparams q =
        orThrow(qparamsOfRange(at::full({}, range.first, at::kDouble), at::full({}, range.second, at::kDouble), spec));
    q.scale = q.scale.to(at::kFloat);
    return q;
}

Qparams qparamsFor(const QuantSite &site, const SpecChange &change, const TensorSpec &spec, const at::Tensor &x)
{
    if (const auto range = knownRange(site, change, spec))
        return qparamsOfKnown(*range, spec, site.role);
    if ((change.low || change.high) && x.numel() > 0) {
        const auto [low, high] = at::aminmax(x);
        const Range range{change.low.value_or(low.item<double>()), change.high.value_or(high.item<double>())};
        return qparamsOfKnown(range, spec, site.role);
    }
    return orThrow(chooseQparams(x, spec, site.role));
}

TensorSpec checkedSpec(const QuantSite &site, const SpecChange &change, const at::Tensor &x)
{
    const std::string problem = changeProblem(site, change, x.sizes().vec());
    TORCH_CHECK(problem.empty(), problem);
    TORCH_CHECK(x.is_floating_point(), "only floating-point values can be quantized");
    return orThrow(changedSpec(site, change, x.dim()));
}

SiteQparams plain(const Qparams &q)
{
    SiteQparams result{{}, {}, q.quantMin, q.quantMax};
    result.scale = q.scales();
    result.zeroPoint = q.zeroPoints();
    return result;
}

std::string rangeText(const Range &range)
{
    return significantText(range.first, kRangeDigits) + " .. " + significantText(range.second, kRangeDigits);
}

} // namespace

SiteKernel changedSite(const QuantSite &site, const SpecChange &change)
{
    if (sameKindOfGrid(site, change))
        return respecifiedSite(site, change);
    return [site, change](const at::Tensor &x) {
        const TensorSpec spec = checkedSpec(site, change, x);
        if (x.numel() == 0)
            return x.clone();
        const Qparams q = isCast(spec.type) ? Qparams{} : qparamsFor(site, change, spec, x);
        return orThrow(fakeQuantize(x, q, spec, site.role)).to(x.scalar_type());
    };
}

SiteQparams changedQparams(const QuantSite &site, const SpecChange &change, const at::Tensor &source)
{
    if (sameKindOfGrid(site, change))
        return respecifiedQparams(site, change, source);
    const TensorSpec spec = checkedSpec(site, change, source);
    if (isCast(spec.type) || source.numel() == 0)
        return {{}, {}, spec.quantMin, spec.quantMax};
    return plain(qparamsFor(site, change, spec, source));
}

SiteQparams fixedQparams(const QuantSite &site, const SpecChange &change)
{
    const auto spec = changedSpec(site, change, 1);
    if (!spec || change.granularity != Granularity::PerTensor)
        return {};
    if (!knownRange(site, change, *spec))
        return {};
    return changedQparams(site, change, at::full({1}, 0.0F));
}

std::string rangeWords(const QuantSite &site, const SpecChange &change, const std::string &weights)
{
    const bool weight = site.role == SiteRole::Weight;
    const auto spec = changedSpec(site, change, 1);
    if (!spec || isCast(spec->type))
        return weight ? weights : std::string();
    if (change.low && change.high)
        return "range " + rangeText({*change.low, *change.high}) + " as given" +
               (weight ? ", values " + weights : std::string());
    if (const auto range = knownRange(site, change, *spec))
        return "range " + rangeText(*range) + " from the site's own scale" +
               (change.low || change.high ? " and the given end" : "");
    std::string words = weight ? "range " + weights : "range of each ";
    if (!weight)
        words += change.granularity == Granularity::PerTensor    ? "tensor"
                 : change.granularity == Granularity::PerChannel ? "tensor's channels"
                 : change.granularity == Granularity::PerBlock   ? "tensor's blocks"
                                                                 : "token";
    return words + (change.low || change.high ? ", one end given" : "");
}

} // namespace dblame

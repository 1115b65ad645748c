// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/observer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <ATen/ops/aminmax.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <c10/util/Exception.h>

#include "core/engine/observer_kinds.h"

namespace dblame
{

namespace
{

tl::unexpected<Error> thrown(const c10::Error &error)
{
    return fail(ErrorCode::Incomparable, "", error.what_without_backtrace(), error.what());
}

// Elements of the histogram outside [low, high].
double outsideCount(const ObserverState &state, double low, double high)
{
    const double width = (state.histogramHigh - state.histogramLow) / static_cast<double>(state.histogram.size());
    double outside = 0;
    for (std::size_t i = 0; i < state.histogram.size(); ++i) {
        const double from = state.histogramLow + width * static_cast<double>(i);
        const double to = from + width;
        if (width == 0) {
            outside += from < low || from > high ? static_cast<double>(state.histogram[i]) : 0;
            continue;
        }
        const double within = std::max(0.0, std::min(to, high) - std::max(from, low));
        outside += static_cast<double>(state.histogram[i]) * (1 - within / width);
    }
    return outside;
}

std::string problemOf(const TensorSpec &spec)
{
    const bool histogram = spec.observer == ObserverKind::Histogram || spec.observer == ObserverKind::Percentile ||
                           spec.observer == ObserverKind::MeanSquaredError;
    const std::string name(observerKindName(spec.observer));
    if (spec.palette)
        return "a palette observes nothing: it is made from the weight";
    if (histogram && spec.granularity != Granularity::PerTensor)
        return "a " + name + " observer is per tensor only: use min-max or moving average " +
               granularityName(spec.granularity);
    if (spec.observer == ObserverKind::Histogram && (!isInteger(spec.type) || bitsOf(spec.type) > 16))
        return "a histogram observer works on integer types of up to 16 bits, not on " +
               std::string(elementTypeName(spec.type));
    if (spec.observer == ObserverKind::MeanSquaredError && !isInteger(spec.type))
        return "a mean squared error observer works on integer grids, not on " +
               std::string(elementTypeName(spec.type));
    if (isInteger(spec.type) && spec.quantMin >= spec.quantMax)
        return "the range [" + std::to_string(spec.quantMin) + ", " + std::to_string(spec.quantMax) + "] is empty";
    if (spec.low && spec.high && *spec.low > *spec.high)
        return "the given range is empty: its low end is above its high end";
    if (spec.rule == QparamRule::FusedQat && spec.observer == ObserverKind::MovingAverage &&
        (!isInteger(spec.type) || spec.granularity == Granularity::PerBlock ||
         spec.granularity == Granularity::PerToken))
        return "a fused quantization-aware observer is per tensor or per channel, and of integers";
    if (spec.observer == ObserverKind::Fixed && (!spec.low || !spec.high))
        return "a fixed range needs both ends: write range=LOW..HIGH";
    return {};
}

} // namespace

RangeFit rangeFit(const ObserverState &state, const Qparams &qparams, const TensorSpec &spec)
{
    RangeFit fit;
    const std::vector<double> scales = qparams.scales();
    if (scales.size() != 1)
        return fit;
    if (!isInteger(spec.type)) {
        fit.high = largestValue(spec.type) * scales.front();
        fit.low = -fit.high;
    } else if (qparams.minValue.defined()) {
        fit.low = qparams.minValues().front();
        fit.high = fit.low + static_cast<double>(qparams.quantMax - qparams.quantMin) * scales.front();
    } else {
        const std::int64_t zero = qparams.zeroPoints().front();
        fit.low = static_cast<double>(qparams.quantMin - zero) * scales.front();
        fit.high = static_cast<double>(qparams.quantMax - zero) * scales.front();
    }
    const std::int64_t finite = state.elements - state.nan - state.infinite;
    if (finite <= 0)
        return fit;
    if (!state.histogram.empty()) {
        double total = 0;
        for (const float count : state.histogram)
            total += static_cast<double>(count);
        const double outside = outsideCount(state, fit.low, fit.high) + static_cast<double>(state.infinite);
        fit.clipped = total > 0 ? outside / (total + static_cast<double>(state.infinite)) : 0;
    }
    if (fit.high > fit.low && std::isfinite(fit.high - fit.low)) {
        const double used = std::min(state.highest, fit.high) - std::max(state.lowest, fit.low);
        fit.unused = std::clamp(1 - used / (fit.high - fit.low), 0.0, 1.0);
    }
    return fit;
}

void Observer::count(const Batch &batch)
{
    at::Tensor low = batch.low;
    at::Tensor high = batch.high;
    at::Tensor finite = batch.x;
    if (!std::isfinite(low.item().toDouble()) || !std::isfinite(high.item().toDouble())) {
        const auto nan = at::isnan(batch.x).sum().item().toLong();
        finite = batch.x.masked_select(at::isfinite(batch.x));
        m_nan += nan;
        m_infinite += batch.x.numel() - finite.numel() - nan;
        if (finite.numel() == 0)
            return;
        std::tie(low, high) = at::aminmax(finite);
    }
    const double lowest = low.item().toDouble();
    const double highest = high.item().toDouble();
    m_lowest = std::min(m_lowest.value_or(lowest), lowest);
    m_highest = std::max(m_highest.value_or(highest), highest);
    // A range that float32 cannot hold has no bins; the figures go without a histogram then.
    if (m_tracked && std::isfinite(static_cast<float>(*m_highest - *m_lowest)))
        m_tracked->observe(finite);
}

Result<at::Tensor> Observer::forwardUnguarded(const at::Tensor &x)
{
    if (x.numel() == 0)
        return x;
    if (x.scalar_type() != at::kFloat && x.scalar_type() != at::kHalf && x.scalar_type() != at::kBFloat16)
        return fail(ErrorCode::Usage, "",
                    std::string("a tensor of ") + c10::toString(x.scalar_type()) +
                        " cannot be observed: float32, float16 and bfloat16 can");
    const at::Tensor values = x.detach();
    auto [low, high] = at::aminmax(values);
    const Batch batch{values, low, high};
    ++m_batches;
    m_elements += values.numel();
    count(batch);
    return watch(batch);
}

Result<at::Tensor> Observer::forward(const at::Tensor &x)
{
    try {
        return forwardUnguarded(x);
    } catch (const c10::Error &error) {
        return thrown(error);
    }
}

Result<void> Observer::observe(const at::Tensor &x)
{
    auto seen = forward(x);
    if (!seen)
        return tl::unexpected(std::move(seen.error()));
    return {};
}

Result<Qparams> Observer::qparams() const
{
    try {
        return choose();
    } catch (const c10::Error &error) {
        return thrown(error);
    }
}

Result<Qparams> Observer::simulatedQparams() const
{
    try {
        return simulated();
    } catch (const c10::Error &error) {
        return thrown(error);
    }
}

void Observer::reset()
{
    m_batches = m_elements = m_nan = m_infinite = 0;
    m_lowest.reset();
    m_highest.reset();
    if (m_tracked)
        m_tracked->reset();
    forget();
}

ObserverState Observer::state() const
{
    ObserverState state;
    state.batches = m_batches;
    state.elements = m_elements;
    state.nan = m_nan;
    state.infinite = m_infinite;
    state.lowest = m_lowest.value_or(0);
    state.highest = m_highest.value_or(0);
    if (m_tracked && !m_tracked->empty()) {
        const at::Tensor &counts = m_tracked->counts();
        state.histogram.assign(counts.const_data_ptr<float>(), counts.const_data_ptr<float>() + counts.numel());
        state.histogramLow = static_cast<double>(m_tracked->low());
        state.histogramHigh = static_cast<double>(m_tracked->high());
    }
    describe(state);
    return state;
}

Result<std::unique_ptr<Observer>> makeObserver(const TensorSpec &spec, SiteRole role, ObserverOptions options)
{
    if (const std::string problem = problemOf(spec); !problem.empty())
        return fail(ErrorCode::Usage, "", problem);
    std::unique_ptr<Observer> observer;
    if (spec.type == ElementType::BFloat16 || spec.type == ElementType::Float16) {
        observer = constantObserver(spec, role, unobservedQparams(spec));
    } else if (spec.observer == ObserverKind::Dynamic) {
        Qparams dynamic;
        dynamic.quantMin = spec.quantMin;
        dynamic.quantMax = spec.quantMax;
        dynamic.dynamic = true;
        observer = constantObserver(spec, role, std::move(dynamic));
    } else if (spec.observer == ObserverKind::Fixed) {
        try {
            auto fixed =
                qparamsOfRange(at::full({}, *spec.low, at::kFloat), at::full({}, *spec.high, at::kFloat), spec);
            if (!fixed)
                return tl::unexpected(std::move(fixed.error()));
            observer = constantObserver(spec, role, std::move(*fixed));
        } catch (const c10::Error &error) {
            return thrown(error);
        }
    } else if (spec.observer == ObserverKind::Histogram || spec.observer == ObserverKind::Percentile ||
               spec.observer == ObserverKind::MeanSquaredError) {
        observer = histogramObserver(spec, role);
        options.trackHistogram = false; // it has one
    } else if (spec.rule == QparamRule::FusedQat && spec.observer == ObserverKind::MovingAverage) {
        observer = fusedObserver(spec, role);
    } else {
        observer = rangeObserver(spec, role);
    }
    if (options.trackHistogram)
        observer->m_tracked = std::make_unique<RangeHistogram>();
    return observer;
}

std::unique_ptr<Observer> makeFixedObserver(const TensorSpec &spec, SiteRole role, Qparams qparams)
{
    return constantObserver(spec, role, std::move(qparams));
}

} // namespace dblame

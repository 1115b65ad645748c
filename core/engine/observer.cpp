// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/observer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <ATen/ops/_fused_moving_avg_obs_fq_helper.h>
#include <ATen/ops/add.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

namespace dblame
{

namespace
{

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<double> doubles(const at::Tensor &t)
{
    if (!t.defined())
        return {};
    const at::Tensor d = t.to(at::kDouble).contiguous();
    return {d.const_data_ptr<double>(), d.const_data_ptr<double>() + d.numel()};
}

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

// --- ranges -------------------------------------------------------------------------------------

class RangeObserver final : public Observer
{
public:
    RangeObserver(const TensorSpec &spec, SiteRole role) : Observer(spec, role) {}

protected:
    Result<at::Tensor> watch(const Batch &batch) override
    {
        const auto units = unitsOf(spec(), role(), batch.x.sizes());
        if (!units)
            return tl::unexpected(units.error());
        UnitRanges now = units->single() ? UnitRanges{batch.low, batch.high} : rangesOf(batch.x, *units);
        if (m_low.defined() && now.low.sizes() != m_low.sizes())
            return fail(ErrorCode::Usage, "",
                        "a batch with " + std::to_string(now.low.numel()) + " ranges after batches with " +
                            std::to_string(m_low.numel()) + ": the " +
                            std::string(granularityName(spec().granularity)) +
                            " observer needs batches of one shape, or a dynamic spec");
        prepare(now);
        update(now);
        return batch.x;
    }

    [[nodiscard]] Result<Qparams> choose() const override
    {
        return m_low.defined() ? qparamsOfRange(m_low, m_high, spec()) : unobservedQparams(spec());
    }

    void forget() override
    {
        m_low = at::Tensor();
        m_high = at::Tensor();
    }

    void describe(ObserverState &state) const override
    {
        state.low = doubles(m_low);
        state.high = doubles(m_high);
    }

private:
    [[nodiscard]] bool coreAi() const { return spec().rule == QparamRule::CoreAi; }

    // torchao works in float32; coreai-opt in the tensor's type, on ranges that hold zero.
    void prepare(UnitRanges &now) const
    {
        if (!coreAi()) {
            now.low = now.low.to(at::kFloat);
            now.high = now.high.to(at::kFloat);
        }
        if (spec().low)
            now.low = at::full_like(now.low, *spec().low);
        if (spec().high)
            now.high = at::full_like(now.high, *spec().high);
        if (coreAi()) {
            now.low = at::clamp_max(now.low, 0);
            now.high = at::clamp_min(now.high, 0);
        }
    }

    void update(const UnitRanges &now)
    {
        if (!m_low.defined() || spec().observer == ObserverKind::LastBatch) {
            // Never a view of the batch.
            m_low = now.low.clone();
            m_high = now.high.clone();
        } else if (spec().observer == ObserverKind::MinMax) {
            m_low = at::minimum(m_low, now.low);
            m_high = at::maximum(m_high, now.high);
        } else if (coreAi()) {
            const double c = spec().averaging;
            m_low = at::add(at::mul(now.low, c), at::mul(m_low, 1 - c));
            m_high = at::add(at::mul(now.high, c), at::mul(m_high, 1 - c));
        } else {
            const double c = spec().averaging;
            m_low = at::add(m_low, at::mul(at::sub(now.low, m_low), c));
            m_high = at::add(m_high, at::mul(at::sub(now.high, m_high), c));
        }
    }

    at::Tensor m_low, m_high;
};

// --- histograms ---------------------------------------------------------------------------------

class HistogramObserver final : public Observer
{
public:
    HistogramObserver(const TensorSpec &spec, SiteRole role) : Observer(spec, role) {}

protected:
    Result<at::Tensor> watch(const Batch &batch) override
    {
        if (std::isnan(batch.low.item().toFloat()))
            return fail(ErrorCode::Incomparable, "",
                        "a calibration batch gives NaN here, which a histogram cannot hold: leave that batch out, or "
                        "find where the float model first gives NaN");
        m_histogram.observe(batch.x);
        return batch.x;
    }

    [[nodiscard]] Result<Qparams> choose() const override
    {
        if (m_histogram.empty())
            return unobservedQparams(spec());
        auto [low, high] = range();
        if (spec().low)
            low = static_cast<float>(*spec().low);
        if (spec().high)
            high = static_cast<float>(*spec().high);
        return qparamsOfRange(at::full({}, static_cast<double>(low), at::kFloat),
                              at::full({}, static_cast<double>(high), at::kFloat), spec());
    }

    void forget() override { m_histogram.reset(); }

    void describe(ObserverState &state) const override
    {
        if (m_histogram.empty())
            return;
        state.low = {static_cast<double>(m_histogram.low())};
        state.high = {static_cast<double>(m_histogram.high())};
        const at::Tensor &counts = m_histogram.counts();
        state.histogram.assign(counts.const_data_ptr<float>(), counts.const_data_ptr<float>() + counts.numel());
        state.histogramLow = static_cast<double>(m_histogram.low());
        state.histogramHigh = static_cast<double>(m_histogram.high());
    }

private:
    [[nodiscard]] std::pair<float, float> range() const
    {
        if (spec().observer == ObserverKind::Percentile)
            return m_histogram.percentileRange(spec().percentile);
        if (spec().observer == ObserverKind::MeanSquaredError)
            return m_histogram.meanSquaredErrorRange(spec());
        // By the width of the storage, whatever the range: the peer's rule.
        const int bytes = storageOf(spec().type) == DType::Int8 || storageOf(spec().type) == DType::UInt8 ? 1 : 2;
        return m_histogram.smallestErrorRange(std::int64_t{1} << (8 * bytes));
    }

    RangeHistogram m_histogram;
};

// --- quantization-aware training ----------------------------------------------------------------

class FusedObserver final : public Observer
{
public:
    FusedObserver(const TensorSpec &spec, SiteRole role) : Observer(spec, role) { FusedObserver::forget(); }

protected:
    Result<at::Tensor> watch(const Batch &batch) override
    {
        if (std::isnan(batch.low.item().toFloat()))
            return fail(ErrorCode::Incomparable, "",
                        "a batch gives NaN here: a fused observer cannot go on. Leave that batch out, or find where "
                        "the float model first gives NaN");
        std::int64_t axis = 0;
        if (perChannel()) {
            const auto units = unitsOf(spec(), role(), batch.x.sizes());
            if (!units)
                return tl::unexpected(units.error());
            axis = channelAxis(batch.x.dim());
            m_counts = units->counts;
        }
        // The state is written in place: it may have been made inside such a guard, or outside.
        const c10::InferenceMode guard;
        const at::Tensor on = at::full({1}, 1, at::kLong);
        const at::Tensor x = batch.x.to(at::kFloat);
        auto [quantized, mask] = at::_fused_moving_avg_obs_fq_helper(
            x, on, on, m_low, m_high, m_scale, m_zeroPoint, spec().averaging, spec().quantMin, spec().quantMax, axis,
            perChannel(), spec().scheme != Scheme::Affine);
        m_seen = true;
        return quantized.to(batch.x.scalar_type());
    }

    [[nodiscard]] Result<Qparams> choose() const override
    {
        if (!m_seen)
            return unobservedQparams(spec());
        return qparamsOfRange(m_low.reshape(m_counts), m_high.reshape(m_counts), spec());
    }

    [[nodiscard]] Result<Qparams> simulated() const override
    {
        auto qparams = choose();
        if (!qparams || !m_seen)
            return qparams;
        qparams->scale = m_scale.reshape(m_counts).clone();
        qparams->zeroPoint = m_zeroPoint.reshape(m_counts).to(at::kLong);
        return qparams;
    }

    void forget() override
    {
        m_seen = false;
        m_counts.clear();
        m_low = perChannel() ? at::empty({0}, at::kFloat) : at::full({}, kInf, at::kFloat);
        m_high = perChannel() ? at::empty({0}, at::kFloat) : at::full({}, -kInf, at::kFloat);
        m_scale = at::full({1}, 1.0, at::kFloat);
        m_zeroPoint = at::full({1}, 0, at::kInt);
    }

    void describe(ObserverState &state) const override
    {
        if (!m_seen)
            return;
        state.low = doubles(m_low);
        state.high = doubles(m_high);
    }

private:
    [[nodiscard]] bool perChannel() const { return spec().granularity == Granularity::PerChannel; }
    [[nodiscard]] std::int64_t channelAxis(std::int64_t rank) const
    {
        const int axis = spec().axis.value_or(0);
        return axis < 0 ? axis + rank : axis;
    }

    bool m_seen = false;
    std::vector<std::int64_t> m_counts;
    at::Tensor m_low, m_high, m_scale, m_zeroPoint;
};

// --- without observation ------------------------------------------------------------------------

class ConstantObserver final : public Observer
{
public:
    ConstantObserver(const TensorSpec &spec, SiteRole role, Qparams qparams)
        : Observer(spec, role), m_qparams(std::move(qparams))
    {
    }

protected:
    Result<at::Tensor> watch(const Batch &batch) override { return batch.x; }
    [[nodiscard]] Result<Qparams> choose() const override { return m_qparams; }
    void forget() override {}

    void describe(ObserverState &state) const override
    {
        state.low = m_qparams.lows();
        state.high = m_qparams.highs();
    }

private:
    Qparams m_qparams;
};

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

std::unique_ptr<Observer> constant(const TensorSpec &spec, SiteRole role, Qparams qparams)
{
    return std::make_unique<ConstantObserver>(spec, role, std::move(qparams));
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
        observer = constant(spec, role, unobservedQparams(spec));
    } else if (spec.observer == ObserverKind::Dynamic) {
        Qparams dynamic;
        dynamic.quantMin = spec.quantMin;
        dynamic.quantMax = spec.quantMax;
        dynamic.dynamic = true;
        observer = constant(spec, role, std::move(dynamic));
    } else if (spec.observer == ObserverKind::Fixed) {
        try {
            auto fixed =
                qparamsOfRange(at::full({}, *spec.low, at::kFloat), at::full({}, *spec.high, at::kFloat), spec);
            if (!fixed)
                return tl::unexpected(std::move(fixed.error()));
            observer = constant(spec, role, std::move(*fixed));
        } catch (const c10::Error &error) {
            return thrown(error);
        }
    } else if (spec.observer == ObserverKind::Histogram || spec.observer == ObserverKind::Percentile ||
               spec.observer == ObserverKind::MeanSquaredError) {
        observer = std::make_unique<HistogramObserver>(spec, role);
        options.trackHistogram = false; // it has one
    } else if (spec.rule == QparamRule::FusedQat && spec.observer == ObserverKind::MovingAverage) {
        observer = std::make_unique<FusedObserver>(spec, role);
    } else {
        observer = std::make_unique<RangeObserver>(spec, role);
    }
    if (options.trackHistogram)
        observer->m_tracked = std::make_unique<RangeHistogram>();
    return observer;
}

std::unique_ptr<Observer> makeFixedObserver(const TensorSpec &spec, SiteRole role, Qparams qparams)
{
    return constant(spec, role, std::move(qparams));
}

} // namespace dblame

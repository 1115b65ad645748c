// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/observer_kinds.h"

#include <cmath>
#include <limits>
#include <string>

#include <ATen/ops/_fused_moving_avg_obs_fq_helper.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <c10/core/InferenceMode.h>

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

} // namespace

std::unique_ptr<Observer> rangeObserver(const TensorSpec &spec, SiteRole role)
{
    return std::make_unique<RangeObserver>(spec, role);
}

std::unique_ptr<Observer> histogramObserver(const TensorSpec &spec, SiteRole role)
{
    return std::make_unique<HistogramObserver>(spec, role);
}

std::unique_ptr<Observer> fusedObserver(const TensorSpec &spec, SiteRole role)
{
    return std::make_unique<FusedObserver>(spec, role);
}

std::unique_ptr<Observer> constantObserver(const TensorSpec &spec, SiteRole role, Qparams qparams)
{
    return std::make_unique<ConstantObserver>(spec, role, std::move(qparams));
}

} // namespace dblame

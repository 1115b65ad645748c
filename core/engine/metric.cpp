// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include "core/engine/bit_histogram.h"
#include "core/engine/flat_pair.h"
#include "core/engine/metric_kernels.h"
#include "core/engine/metric_pass.h"

namespace dblame
{

namespace
{

using kernels::kChunk;
using kernels::PairSums;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Bars of a histogram: a few elements make no picture of 80, and a graph of ten thousand small values should not
// hold ten thousand pictures.
int histogramBars(std::int64_t elements)
{
    return elements < 512 ? 24 : 80;
}

// 10 log10(signal / error): equal is +inf, an error without a signal -inf.
double decibels(double signal, double error)
{
    if (std::isnan(signal) || std::isnan(error))
        return kNan;
    if (error == 0)
        return kInf;
    if (signal == 0)
        return -kInf;
    return 10.0 * std::log10(signal / error);
}

} // namespace

// --- PairAccumulator ----------------------------------------------------------------------------

struct PairAccumulator::Impl {
    enum class Kind { Nothing, NoNumbers, Integer, Float };

    MetricOptions options;
    Kind kind = Kind::Nothing;
    PairSums sums;
    std::vector<double> channels; // 3 per channel
    Histograms histograms;
    std::int64_t mismatches = 0;

    void addBatch(BatchSums batch)
    {
        sums.merge(batch.sums);
        mismatches += batch.mismatches;
        if (channels.empty()) {
            channels = std::move(batch.channels);
            return;
        }
        if (channels.size() < batch.channels.size())
            channels.resize(batch.channels.size(), 0.0);
        for (std::size_t i = 0; i < batch.channels.size(); ++i)
            channels[i] += batch.channels[i];
    }
    void fillMetrics(NodeReport &report) const;
    void fillHistogram(NodeReport &report) const;
    void fillExactHistogram(NodeReport &report) const;
};

PairAccumulator::PairAccumulator(const MetricOptions &options) : m_impl(std::make_unique<Impl>())
{
    m_impl->options = options;
}

PairAccumulator::~PairAccumulator() = default;
PairAccumulator::PairAccumulator(const PairAccumulator &other) : m_impl(std::make_unique<Impl>(*other.m_impl)) {}
PairAccumulator &PairAccumulator::operator=(const PairAccumulator &other)
{
    if (this != &other)
        m_impl = std::make_unique<Impl>(*other.m_impl);
    return *this;
}
PairAccumulator::PairAccumulator(PairAccumulator &&) noexcept = default;
PairAccumulator &PairAccumulator::operator=(PairAccumulator &&) noexcept = default;

bool PairAccumulator::empty() const
{
    return m_impl->kind == Impl::Kind::Nothing;
}

void PairAccumulator::add(const at::Tensor &reference, const at::Tensor &candidate)
{
    FlatPair pair;
    try {
        pair = flatten(reference, candidate, m_impl->options.channelAxis);
    } catch (const c10::Error &) {
        // A type or layout that has no conversion to numbers.
        pair.numbers = Numbers::None;
    }
    switch (pair.numbers) {
    case Numbers::None:
        m_impl->kind = std::max(m_impl->kind, Impl::Kind::NoNumbers);
        return;
    case Numbers::Integer:
        m_impl->kind = std::max(m_impl->kind, Impl::Kind::Integer);
        m_impl->addBatch(integerPass(pair));
        return;
    case Numbers::Single:
    case Numbers::Double:
        m_impl->kind = Impl::Kind::Float;
        m_impl->addBatch(floatPass(pair, m_impl->options, m_impl->histograms));
        return;
    }
}

void PairAccumulator::merge(const PairAccumulator &other)
{
    const Impl &from = *other.m_impl;
    m_impl->kind = std::max(m_impl->kind, from.kind);
    m_impl->addBatch(BatchSums{from.sums, from.channels, from.mismatches});
    m_impl->histograms.merge(from.histograms);
}

void PairAccumulator::Impl::fillMetrics(NodeReport &report) const
{
    Metrics &m = report.metrics;
    m = Metrics{};
    m.count = sums.count;
    m.nan = sums.nan;
    m.inf = sums.inf;
    m.mismatches = mismatches;
    m.maxAbs = sums.maxAbs;
    const auto n = static_cast<double>(std::max<std::int64_t>(sums.count, 1));
    m.mse = sums.ee / n;
    m.mae = sums.ae / n;
    m.bias = sums.e / n;
    m.refMin = sums.rMin <= sums.rMax ? sums.rMin : kNan;
    m.refMax = sums.rMin <= sums.rMax ? sums.rMax : kNan;
    m.candMin = sums.cMin <= sums.cMax ? sums.cMin : kNan;
    m.candMax = sums.cMin <= sums.cMax ? sums.cMax : kNan;
    // maxAbs and not ee: the square of a float64 difference can vanish.
    const bool equal = sums.maxAbs == 0 && mismatches == 0;
    if (kind == Kind::Integer) {
        report.status = equal ? RowStatus::Exact : RowStatus::Mismatch;
        m.snrDb = m.sqnrDb = equal ? kInf : kNan;
        m.cosine = equal ? 1 : kNan;
        return;
    }
    report.status = equal ? RowStatus::Exact : RowStatus::Ok;
    m.snrDb = equal ? kInf : decibels(sums.rr, sums.ee);
    m.sqnrDb = equal ? kInf : decibels(sums.cc, sums.ee);
    m.cosine = equal ? 1
               : sums.rr == 0 || sums.cc == 0
                   ? kNan
                   : std::clamp(sums.rc / (std::sqrt(sums.rr) * std::sqrt(sums.cc)), -1.0, 1.0);
}

void PairAccumulator::Impl::fillHistogram(NodeReport &report) const
{
    const double low = std::min(sums.rMin, sums.cMin);
    const double high = std::max(sums.rMax, sums.cMax);
    if (histograms.reference.total() == 0 || !(low <= high))
        return;
    Histogram h;
    const double weight = static_cast<double>(sums.count) / static_cast<double>(histograms.reference.total());
    h.sampled = histograms.reference.total() < sums.count;
    const int bars = histogramBars(sums.count);
    h.edges = linearEdges(low, high, bars);
    histograms.reference.rebin(h.edges, low, high, weight, h.reference);
    histograms.candidate.rebin(h.edges, low, high, weight, h.candidate);
    double errorLow = 0;
    double errorHigh = 0;
    histograms.error.bounds(errorLow, errorHigh);
    // Equal so far: there is nothing to draw.
    if (sums.maxAbs != 0 && errorLow <= errorHigh) {
        const double limit = std::isfinite(sums.maxAbs) ? sums.maxAbs : kInf;
        errorLow = std::max(errorLow, -limit);
        errorHigh = std::max(errorLow, std::min(errorHigh, limit)); // maxAbs is exact, the bins hold float32
        h.errorEdges = linearEdges(errorLow, errorHigh, bars);
        histograms.error.rebin(h.errorEdges, errorLow, errorHigh, weight, h.error);
    }
    report.histogram = std::move(h);
}

void PairAccumulator::Impl::fillExactHistogram(NodeReport &report) const
{
    if (histograms.exactValues.empty())
        return;
    Histogram h;
    const int bars = histogramBars(sums.count);
    histograms.exactValues.fill(bars, h.edges, {&h.reference, &h.candidate});
    if (sums.maxAbs != 0 && !histograms.exactError.empty())
        histograms.exactError.fill(bars, h.errorEdges, {&h.error});
    report.histogram = std::move(h);
}

void PairAccumulator::fill(NodeReport &report, bool withHistogram) const
{
    const Impl &from = *m_impl;
    report.channels.clear();
    report.histogram.reset();
    if (from.kind == Impl::Kind::Nothing)
        return;
    if (from.kind == Impl::Kind::NoNumbers) {
        report.status = RowStatus::NotFloat;
        report.metrics = Metrics{};
        report.metrics.snrDb = report.metrics.sqnrDb = report.metrics.cosine = kNan;
        return;
    }
    from.fillMetrics(report);
    const std::size_t channels = from.channels.size() / 3;
    report.channels.reserve(channels);
    for (std::size_t i = 0; i < channels; ++i) {
        const double *s = from.channels.data() + 3 * i;
        report.channels.push_back({static_cast<std::int32_t>(i), decibels(s[0], s[2]), decibels(s[1], s[2]), s[0]});
    }
    if (withHistogram)
        from.options.exact ? from.fillExactHistogram(report) : from.fillHistogram(report);
}

// --- SnrAccumulator -----------------------------------------------------------------------------

void SnrAccumulator::add(const at::Tensor &reference, const at::Tensor &candidate)
{
    FlatPair pair;
    try {
        pair = flatten(reference, candidate, -1);
    } catch (const c10::Error &) {
        return; // no numbers
    }
    if (pair.numbers != Numbers::Single && pair.numbers != Numbers::Double)
        return;
    const kernels::EnergySums s = energyPass(pair);
    m_signal += s.rr;
    m_candidate += s.cc;
    m_error += s.ee;
    m_count += pair.n;
}

void SnrAccumulator::merge(const SnrAccumulator &other)
{
    m_signal += other.m_signal;
    m_candidate += other.m_candidate;
    m_error += other.m_error;
    m_count += other.m_count;
}

double SnrAccumulator::snrDb() const
{
    return decibels(m_signal, m_error);
}
double SnrAccumulator::sqnrDb() const
{
    return decibels(m_candidate, m_error);
}

// --- RangeAccumulator ---------------------------------------------------------------------------

void RangeAccumulator::add(const at::Tensor &source, double lo, double hi, double step)
{
    if (!source.defined() || !source.is_cpu() || !source.is_floating_point() || source.numel() == 0 || !(hi > lo))
        return;
    const at::Tensor t = source.to(at::kFloat).contiguous();
    const float *x = t.const_data_ptr<float>();
    const std::int64_t n = t.numel();
    // The ends of the grid are products of rounded numbers: what misses them by rounding is not clipped.
    const double margin = std::max(step / 2, 1e-6 * (hi - lo));
    const auto low = static_cast<float>(lo - margin);
    const auto high = static_cast<float>(hi + margin);
    const auto range = kernels::kernels().range;
    kernels::RangeUse all;
    if (n <= kChunk) {
        all = range(x, n, low, high);
    } else {
        const std::int64_t chunks = (n + kChunk - 1) / kChunk;
        std::vector<kernels::RangeUse> uses(static_cast<std::size_t>(chunks));
        at::parallel_for(0, chunks, kWorthThreads, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t chunk = first; chunk < last; ++chunk)
                uses[static_cast<std::size_t>(chunk)] =
                    range(x + chunk * kChunk, std::min(kChunk, n - chunk * kChunk), low, high);
        });
        for (const kernels::RangeUse &use : uses) {
            all.outside += use.outside;
            all.min = std::min(all.min, use.min);
            all.max = std::max(all.max, use.max);
        }
    }
    m_count += n;
    m_outside += all.outside;
    if (all.min > all.max)
        return; // nothing but NaN
    const auto place = [&](float v) { return std::clamp((static_cast<double>(v) - lo) / (hi - lo), 0.0, 1.0); };
    m_from = std::min(m_from, place(all.min));
    m_to = std::max(m_to, place(all.max));
}

void RangeAccumulator::merge(const RangeAccumulator &other)
{
    m_count += other.m_count;
    m_outside += other.m_outside;
    m_from = std::min(m_from, other.m_from);
    m_to = std::max(m_to, other.m_to);
}

std::optional<double> RangeAccumulator::clipped() const
{
    if (m_count == 0)
        return std::nullopt;
    return static_cast<double>(m_outside) / static_cast<double>(m_count);
}

std::optional<double> RangeAccumulator::unusedRange() const
{
    if (m_from > m_to)
        return std::nullopt;
    return 1.0 - (m_to - m_from);
}

} // namespace dblame

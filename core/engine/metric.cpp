// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/metric.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include "core/engine/bit_histogram.h"
#include "core/engine/metric_kernels.h"

namespace dblame
{

namespace
{

using kernels::EnergySums;
using kernels::kBlock;
using kernels::kChunk;
using kernels::KernelSet;
using kernels::PairSums;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kHistogramBins = 80;
// Runs of one channel that are long enough to be the blocks of the sums themselves.
constexpr std::int64_t kLongRun = 512;
// Below this a plain loop beats sixteen lanes and their folding.
constexpr std::int64_t kShortRun = 12;

// Chunks from which waking other threads is cheaper than doing their share.
constexpr std::int64_t kWorthThreads = 4;

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

// --- tensors to flat arrays ---------------------------------------------------------------------

enum class Numbers { None, Integer, Single, Double };

// Two dense arrays whose elements answer to each other, in the memory order of the reference.
struct FlatPair {
    Numbers numbers = Numbers::None;
    const void *r = nullptr;
    const void *c = nullptr;
    std::int64_t n = 0;
    // Element i belongs to channel (i / inner) % channels; channels = 0: no channels.
    std::int64_t channels = 0, inner = 1;
    bool unsigned64 = false;
    at::Tensor rHeld, cHeld; // copies, where the tensors could not be read as they are
};

// A strided tensor on the CPU with a type that has numbers, or an undefined one.
at::Tensor plain(at::Tensor t)
{
    if (!t.defined() || t.is_meta())
        return {};
    if (t.is_quantized())
        t = t.dequantize();
    if (t.layout() != at::kStrided)
        t = t.to_dense();
    if (!t.is_cpu())
        t = t.cpu();
    if (t.is_complex())
        t = at::view_as_real(
            t.resolve_conj().to(t.scalar_type() == at::kComplexHalf ? at::kComplexFloat : t.scalar_type()));
    return t.resolve_neg();
}

bool sameLayout(const at::Tensor &a, const at::Tensor &b)
{
    for (std::int64_t d = 0; d < a.dim(); ++d)
        if (a.size(d) > 1 && a.stride(d) != b.stride(d))
            return false;
    return true;
}

at::ScalarType commonType(at::ScalarType a, at::ScalarType b, Numbers &numbers)
{
    const auto integer = [](at::ScalarType t) { return at::isIntegralType(t, /*includeBool=*/true); };
    const auto known = [&](at::ScalarType t) { return integer(t) || at::isFloatingType(t); };
    const auto wide = [](at::ScalarType t) {
        return t == at::kDouble || t == at::kLong || t == at::kInt || t == at::kUInt32 || t == at::kUInt64;
    };
    if (!known(a) || !known(b)) {
        numbers = Numbers::None;
        return at::ScalarType::Undefined;
    }
    if (integer(a) && integer(b)) {
        numbers = Numbers::Integer;
        return a == at::kUInt64 && b == at::kUInt64 ? at::kUInt64 : at::kLong;
    }
    numbers = wide(a) || wide(b) ? Numbers::Double : Numbers::Single;
    return numbers == Numbers::Double ? at::kDouble : at::kFloat;
}

void setChannels(FlatPair &pair, const at::Tensor &r, int axis)
{
    if (axis < 0 || axis >= r.dim() || pair.n == 0)
        return;
    pair.channels = r.size(axis);
    pair.inner = pair.channels == 1 ? pair.n : r.stride(axis);
}

// What nearly every pair is; costs no reference count.
bool readableAsIs(const at::Tensor &t)
{
    return t.defined() && t.scalar_type() == at::kFloat && t.layout() == at::kStrided && t.is_cpu() && !t.is_neg() &&
           t.is_contiguous();
}

FlatPair flatten(const at::Tensor &reference, const at::Tensor &candidate, int channelAxis)
{
    FlatPair pair;
    if (readableAsIs(reference) && readableAsIs(candidate) && reference.sizes() == candidate.sizes()) {
        pair.numbers = Numbers::Single;
        pair.r = reference.const_data_ptr();
        pair.c = candidate.const_data_ptr();
        pair.n = reference.numel();
        setChannels(pair, reference, channelAxis);
        return pair;
    }
    at::Tensor r = plain(reference);
    at::Tensor c = plain(candidate);
    if (!r.defined() || !c.defined() || r.sizes() != c.sizes())
        return pair;
    const at::ScalarType type = commonType(r.scalar_type(), c.scalar_type(), pair.numbers);
    if (pair.numbers == Numbers::None)
        return pair;
    if (r.scalar_type() != type)
        r = r.to(type);
    if (c.scalar_type() != type)
        c = c.to(type);
    if (!r.is_non_overlapping_and_dense())
        r = r.contiguous();
    if (!sameLayout(r, c) || !c.is_non_overlapping_and_dense())
        c = r.new_empty_strided(r.sizes(), r.strides()).copy_(c);
    pair.r = r.const_data_ptr();
    pair.c = c.const_data_ptr();
    pair.n = r.numel();
    pair.unsigned64 = type == at::kUInt64;
    setChannels(pair, r, channelAxis);
    pair.rHeld = std::move(r);
    pair.cHeld = std::move(c);
    return pair;
}

// --- the pass -----------------------------------------------------------------------------------

template <class T>
struct Loops;
template <>
struct Loops<float> {
    static constexpr auto kPair = &KernelSet::pairF32;
    static constexpr auto kEnergy = &KernelSet::energyF32;
    static constexpr auto kColumns = &KernelSet::columnsF32;
};
template <>
struct Loops<double> {
    static constexpr auto kPair = &KernelSet::pairF64;
    static constexpr auto kEnergy = &KernelSet::energyF64;
    static constexpr auto kColumns = &KernelSet::columnsF64;
};

struct Histograms {
    BitHistogram reference, candidate, error;

    void merge(const Histograms &other)
    {
        reference.merge(other.reference);
        candidate.merge(other.candidate);
        error.merge(other.error);
    }
};

// Bins of one block, and the counters of this thread.
struct HistogramScratch {
    std::array<std::uint16_t, kBlock> r, c, e;
    std::array<float, kBlock> rValues, cValues;
    BitCounter reference, candidate, error;

    const float *asFloat(const float *p, std::int64_t, std::array<float, kBlock> &) { return p; }
    // The sign, exponent and first bits survive; what float32 cannot hold becomes its largest value.
    const float *asFloat(const double *p, std::int64_t n, std::array<float, kBlock> &buffer)
    {
        constexpr double kLargest = std::numeric_limits<float>::max();
        for (std::int64_t i = 0; i < n; ++i) {
            const double x = p[i];
            buffer[static_cast<std::size_t>(i)] =
                static_cast<float>(std::isfinite(x) ? std::clamp(x, -kLargest, kLargest) : x);
        }
        return buffer.data();
    }
    template <class T>
    void bins(const T *rp, const T *cp, std::int64_t n)
    {
        kernels::kernels().bins(asFloat(rp, n, rValues), asFloat(cp, n, cValues), n, r.data(), c.data(), e.data());
    }
};

HistogramScratch &histogramScratch()
{
    thread_local const std::unique_ptr<HistogramScratch> scratch = std::make_unique<HistogramScratch>();
    return *scratch;
}

// Blocks of a tensor that go into a sampled histogram: one of each 8, and of large tensors so many fewer that some
// 32 remain (131,072 elements: a bar of average height is good to 3 %). Which one is scattered, so that it does
// not fall into step with rows or channels, and a function of the place alone: the same on every machine.
class Sample
{
public:
    explicit Sample(std::int64_t n) : m_blocks((n + kBlock - 1) / kBlock)
    {
        constexpr std::int64_t kEnough = 32;
        m_group = kChunk / kBlock * std::max<std::int64_t>(1, m_blocks / (kChunk / kBlock * kEnough));
    }
    [[nodiscard]] bool contains(std::int64_t block) const
    {
        const std::int64_t group = block / m_group;
        const std::int64_t blocks = std::min(m_group, m_blocks - group * m_group);
        return block - group * m_group ==
               static_cast<std::int64_t>(scattered(group) % static_cast<std::uint64_t>(blocks));
    }

private:
    static std::uint64_t scattered(std::int64_t group)
    {
        auto x = static_cast<std::uint64_t>(group) + 0x9E3779B97F4A7C15ULL;
        x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
        x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
        return x ^ (x >> 31U);
    }

    std::int64_t m_blocks, m_group;
};

template <class T>
class Pass
{
public:
    Pass(const FlatPair &pair, const MetricOptions &options)
        : m_pair(pair), m_options(options), m_r(static_cast<const T *>(pair.r)), m_c(static_cast<const T *>(pair.c)),
          m_kernels(kernels::kernels()), m_sample(pair.n)
    {
    }

    // Sums of one chunk; channel sums are added to `channels` (3 per channel).
    PairSums sums(std::int64_t chunk, double *channels) const
    {
        const std::int64_t begin = chunk * kChunk;
        const std::int64_t end = std::min(m_pair.n, begin + kChunk);
        if (channels != nullptr && m_pair.inner >= kLongRun)
            return sumsOfRuns(begin, end, channels);
        PairSums total;
        for (std::int64_t i = begin; i < end; i += kBlock) {
            const std::int64_t n = std::min(kBlock, end - i);
            total.merge((m_kernels.*Loops<T>::kPair)(m_r + i, m_c + i, n));
            if (channels != nullptr && m_pair.inner > 1)
                shortRuns(i, i + n, channels);
        }
        if (channels != nullptr && m_pair.inner == 1)
            columns(begin, end, channels);
        return total;
    }

    // Adds the sampled blocks of a chunk (or all of them) to the counters, or a small tensor to the lists.
    void histogram(std::int64_t chunk, Histograms &into) const
    {
        const std::int64_t begin = chunk * kChunk;
        const std::int64_t end = std::min(m_pair.n, begin + kChunk);
        HistogramScratch &scratch = histogramScratch();
        for (std::int64_t at = begin; at < end; at += kBlock) {
            if (!m_options.exact && !m_sample.contains(at / kBlock))
                continue;
            const std::int64_t n = std::min(kBlock, end - at);
            scratch.bins(m_r + at, m_c + at, n);
            if (m_pair.n <= BitHistogram::kListLimit) {
                into.reference.addFew(scratch.r.data(), n, scratch.reference);
                into.candidate.addFew(scratch.c.data(), n, scratch.candidate);
                into.error.addFew(scratch.e.data(), n, scratch.error);
            } else {
                scratch.reference.count(scratch.r.data(), n);
                scratch.candidate.count(scratch.c.data(), n);
                scratch.error.count(scratch.e.data(), n);
            }
        }
    }

    // Moves this thread's counters out.
    void drain(Histograms &into) const
    {
        if (m_pair.n <= BitHistogram::kListLimit)
            return;
        HistogramScratch &scratch = histogramScratch();
        scratch.reference.drainInto(into.reference);
        scratch.candidate.drainInto(into.candidate);
        scratch.error.drainInto(into.error);
    }

private:
    std::int64_t channelOf(std::int64_t i) const { return (i / m_pair.inner) % m_pair.channels; }

    static void addEnergy(double *channel, double rr, double cc, double ee)
    {
        channel[0] += rr;
        channel[1] += cc;
        channel[2] += ee;
    }

    // Long runs of one channel: one call serves the whole and the channel.
    PairSums sumsOfRuns(std::int64_t begin, std::int64_t end, double *channels) const
    {
        PairSums total;
        for (std::int64_t i = begin; i < end;) {
            const std::int64_t runEnd = std::min({end, (i / m_pair.inner + 1) * m_pair.inner, i + kBlock});
            const PairSums s = (m_kernels.*Loops<T>::kPair)(m_r + i, m_c + i, runEnd - i);
            total.merge(s);
            addEnergy(channels + 3 * channelOf(i), s.rr, s.cc, s.ee);
            i = runEnd;
        }
        return total;
    }

    void shortRuns(std::int64_t begin, std::int64_t end, double *channels) const
    {
        for (std::int64_t i = begin; i < end;) {
            const std::int64_t runEnd = std::min(end, (i / m_pair.inner + 1) * m_pair.inner);
            const std::int64_t n = runEnd - i;
            const EnergySums s = n < kShortRun ? kernels::carefulEnergy(m_r + i, m_c + i, n)
                                               : (m_kernels.*Loops<T>::kEnergy)(m_r + i, m_c + i, n);
            addEnergy(channels + 3 * channelOf(i), s.rr, s.cc, s.ee);
            i = runEnd;
        }
    }

    // Channels side by side: the rest of a row, whole rows, the beginning of a row.
    void columns(std::int64_t begin, std::int64_t end, double *channels) const
    {
        const auto add = m_kernels.*Loops<T>::kColumns;
        std::int64_t i = begin;
        if (const std::int64_t column = i % m_pair.channels; column != 0) {
            const std::int64_t n = std::min(m_pair.channels - column, end - i);
            add(m_r + i, m_c + i, 1, n, channels + 3 * column);
            i += n;
        }
        if (const std::int64_t rows = (end - i) / m_pair.channels; rows > 0) {
            add(m_r + i, m_c + i, rows, m_pair.channels, channels);
            i += rows * m_pair.channels;
        }
        if (i < end)
            add(m_r + i, m_c + i, 1, end - i, channels);
    }

    const FlatPair &m_pair;
    const MetricOptions &m_options;
    const T *m_r;
    const T *m_c;
    const KernelSet &m_kernels;
    Sample m_sample;
};

// What one batch adds.
struct BatchSums {
    PairSums sums;
    std::vector<double> channels; // 3 per channel
};

// Work is cut by the tensor's size alone: chunks are merged in order, and channel sums are made per group of
// chunks and merged in order, whichever thread made them.
template <class T>
void runPass(const FlatPair &pair, const MetricOptions &options, BatchSums &batch, Histograms &histograms)
{
    const Pass<T> pass(pair, options);
    const std::int64_t chunks = (pair.n + kChunk - 1) / kChunk;
    batch.channels.assign(static_cast<std::size_t>(3 * pair.channels), 0.0);
    if (chunks <= 1) {
        if (chunks == 1) {
            batch.sums = pass.sums(0, pair.channels > 0 ? batch.channels.data() : nullptr);
            if (options.histograms) {
                pass.histogram(0, histograms);
                pass.drain(histograms);
            }
        }
        return;
    }
    constexpr std::int64_t kMaxGroups = 16;
    constexpr std::int64_t kMaxChannelSlots = std::int64_t{1} << 18U; // of all groups together
    const std::int64_t groups = std::clamp<std::int64_t>(
        std::min({chunks, kMaxGroups, kMaxChannelSlots / std::max<std::int64_t>(pair.channels, 1)}), 1, kMaxGroups);
    std::vector<PairSums> sums(static_cast<std::size_t>(chunks));
    std::vector<std::vector<double>> channels(static_cast<std::size_t>(groups));
    std::vector<Histograms> groupHistograms(options.histograms ? static_cast<std::size_t>(groups) : 0);
    at::parallel_for(0, groups, chunks < kWorthThreads ? groups : 1,
                     [&](std::int64_t firstGroup, std::int64_t lastGroup) {
                         for (std::int64_t g = firstGroup; g < lastGroup; ++g) {
                             auto &slots = channels[static_cast<std::size_t>(g)];
                             slots.assign(static_cast<std::size_t>(3 * pair.channels), 0.0);
                             const std::int64_t first = chunks * g / groups;
                             const std::int64_t last = chunks * (g + 1) / groups;
                             for (std::int64_t chunk = first; chunk < last; ++chunk) {
                                 sums[static_cast<std::size_t>(chunk)] =
                                     pass.sums(chunk, pair.channels > 0 ? slots.data() : nullptr);
                                 if (options.histograms)
                                     pass.histogram(chunk, groupHistograms[static_cast<std::size_t>(g)]);
                             }
                         }
                         if (options.histograms)
                             pass.drain(groupHistograms[static_cast<std::size_t>(firstGroup)]);
                     });
    for (const PairSums &s : sums)
        batch.sums.merge(s);
    for (const auto &slots : channels)
        for (std::size_t i = 0; i < slots.size(); ++i)
            batch.channels[i] += slots[i];
    for (const Histograms &h : groupHistograms)
        histograms.merge(h);
}

// Integers and flags; `U`: how the 64 bits are ordered.
template <class U>
PairSums integerSums(const FlatPair &pair, std::int64_t &mismatches)
{
    const auto *a = static_cast<const U *>(pair.r);
    const auto *b = static_cast<const U *>(pair.c);
    PairSums s;
    s.count = pair.n;
    for (std::int64_t i = 0; i < pair.n; ++i) {
        const U x = a[i];
        const U y = b[i];
        const std::uint64_t distance = x > y ? static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)
                                             : static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x);
        const double d = static_cast<double>(distance);
        mismatches += distance != 0 ? 1 : 0;
        s.ee += d * d;
        s.ae += d;
        s.e += y > x ? d : -d;
        s.maxAbs = std::max(s.maxAbs, d);
        s.rMin = std::min(s.rMin, static_cast<double>(x));
        s.rMax = std::max(s.rMax, static_cast<double>(x));
        s.cMin = std::min(s.cMin, static_cast<double>(y));
        s.cMax = std::max(s.cMax, static_cast<double>(y));
    }
    return s;
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
    BatchSums batch;
    switch (pair.numbers) {
    case Numbers::None:
        m_impl->kind = std::max(m_impl->kind, Impl::Kind::NoNumbers);
        return;
    case Numbers::Integer:
        m_impl->kind = std::max(m_impl->kind, Impl::Kind::Integer);
        batch.sums = pair.unsigned64 ? integerSums<std::uint64_t>(pair, m_impl->mismatches)
                                     : integerSums<std::int64_t>(pair, m_impl->mismatches);
        break;
    case Numbers::Single:
        m_impl->kind = Impl::Kind::Float;
        runPass<float>(pair, m_impl->options, batch, m_impl->histograms);
        break;
    case Numbers::Double:
        m_impl->kind = Impl::Kind::Float;
        runPass<double>(pair, m_impl->options, batch, m_impl->histograms);
        break;
    }
    m_impl->addBatch(std::move(batch));
}

void PairAccumulator::merge(const PairAccumulator &other)
{
    const Impl &from = *other.m_impl;
    m_impl->kind = std::max(m_impl->kind, from.kind);
    m_impl->mismatches += from.mismatches;
    m_impl->addBatch(BatchSums{from.sums, from.channels});
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
    h.edges = linearEdges(low, high, kHistogramBins);
    histograms.reference.rebin(h.edges, weight, h.reference);
    histograms.candidate.rebin(h.edges, weight, h.candidate);
    double errorLow = 0;
    double errorHigh = 0;
    histograms.error.bounds(errorLow, errorHigh);
    // Equal so far: there is nothing to draw.
    if (sums.maxAbs != 0 && errorLow <= errorHigh) {
        const double limit = std::isfinite(sums.maxAbs) ? sums.maxAbs : kInf;
        h.errorEdges = linearEdges(std::max(errorLow, -limit), std::min(errorHigh, limit), kHistogramBins);
        histograms.error.rebin(h.errorEdges, weight, h.error);
    }
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
        from.fillHistogram(report);
}

// --- SnrAccumulator -----------------------------------------------------------------------------

namespace
{

template <class T>
EnergySums energyOf(const FlatPair &pair)
{
    const auto *r = static_cast<const T *>(pair.r);
    const auto *c = static_cast<const T *>(pair.c);
    const auto energy = kernels::kernels().*Loops<T>::kEnergy;
    const std::int64_t chunks = (pair.n + kChunk - 1) / kChunk;
    if (chunks <= 1)
        return energy(r, c, pair.n);
    std::vector<EnergySums> sums(static_cast<std::size_t>(chunks));
    at::parallel_for(0, chunks, kWorthThreads, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t chunk = first; chunk < last; ++chunk)
            sums[static_cast<std::size_t>(chunk)] =
                energy(r + chunk * kChunk, c + chunk * kChunk, std::min(kChunk, pair.n - chunk * kChunk));
    });
    EnergySums total;
    for (const EnergySums &s : sums)
        total.merge(s);
    return total;
}

} // namespace

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
    const EnergySums s = pair.numbers == Numbers::Single ? energyOf<float>(pair) : energyOf<double>(pair);
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
    const std::int64_t chunks = (n + kChunk - 1) / kChunk;
    std::vector<kernels::RangeUse> uses(static_cast<std::size_t>(chunks));
    at::parallel_for(0, chunks, kWorthThreads, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t chunk = first; chunk < last; ++chunk)
            uses[static_cast<std::size_t>(chunk)] =
                kernels::kernels().range(x + chunk * kChunk, std::min(kChunk, n - chunk * kChunk), low, high);
    });
    kernels::RangeUse all;
    for (const kernels::RangeUse &use : uses) {
        all.outside += use.outside;
        all.min = std::min(all.min, use.min);
        all.max = std::max(all.max, use.max);
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

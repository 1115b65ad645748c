// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/metric_pass.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include <ATen/Parallel.h>

namespace dblame
{

namespace
{

using kernels::EnergySums;
using kernels::kBlock;
using kernels::kChunk;
using kernels::KernelSet;
using kernels::PairSums;

// Runs of one channel that are long enough to be the blocks of the sums themselves.
constexpr std::int64_t kLongRun = 512;
// Below this a plain loop beats sixteen lanes and their folding.
constexpr std::int64_t kShortRun = 12;

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

    // Adds every element of a chunk, or its sampled blocks: to the counters, or a small tensor to the lists.
    void histogram(std::int64_t chunk, Histograms &into) const
    {
        const std::int64_t begin = chunk * kChunk;
        const std::int64_t end = std::min(m_pair.n, begin + kChunk);
        if (m_options.exact) {
            exactHistogram(begin, end, into);
            return;
        }
        HistogramScratch &scratch = histogramScratch();
        for (std::int64_t at = begin; at < end; at += kBlock) {
            if (!m_sample.contains(at / kBlock))
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
        if (m_options.exact || m_pair.n <= BitHistogram::kListLimit)
            return;
        HistogramScratch &scratch = histogramScratch();
        scratch.reference.drainInto(into.reference);
        scratch.candidate.drainInto(into.candidate);
        scratch.error.drainInto(into.error);
    }

private:
    void exactHistogram(std::int64_t begin, std::int64_t end, Histograms &into) const
    {
        into.exactValues.add<T>({m_r + begin, m_c + begin}, end - begin);
        std::array<double, kBlock> error; // in double, as the sums: float32 would round it
        for (std::int64_t at = begin; at < end; at += kBlock) {
            const std::int64_t n = std::min(kBlock, end - at);
            for (std::int64_t i = 0; i < n; ++i)
                error[static_cast<std::size_t>(i)] =
                    static_cast<double>(m_c[at + i]) - static_cast<double>(m_r[at + i]);
            into.exactError.add<double>({error.data()}, n);
        }
    }

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

// Work is cut by the tensor's size alone: chunks are merged in order, and channel sums are made per group of
// chunks and merged in order, whichever thread made them.
template <class T>
BatchSums runPass(const FlatPair &pair, const MetricOptions &options, Histograms &histograms)
{
    const Pass<T> pass(pair, options);
    BatchSums batch;
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
        return batch;
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
    return batch;
}

// Integers and flags; `U`: how the 64 bits are ordered.
template <class U>
BatchSums integers(const FlatPair &pair)
{
    const auto *a = static_cast<const U *>(pair.r);
    const auto *b = static_cast<const U *>(pair.c);
    BatchSums batch;
    PairSums &s = batch.sums;
    s.count = pair.n;
    for (std::int64_t i = 0; i < pair.n; ++i) {
        const U x = a[i];
        const U y = b[i];
        const std::uint64_t distance = x > y ? static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)
                                             : static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x);
        const double d = static_cast<double>(distance);
        batch.mismatches += distance != 0 ? 1 : 0;
        s.ee += d * d;
        s.ae += d;
        s.e += y > x ? d : -d;
        s.maxAbs = std::max(s.maxAbs, d);
        s.rMin = std::min(s.rMin, static_cast<double>(x));
        s.rMax = std::max(s.rMax, static_cast<double>(x));
        s.cMin = std::min(s.cMin, static_cast<double>(y));
        s.cMax = std::max(s.cMax, static_cast<double>(y));
    }
    return batch;
}

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

BatchSums floatPass(const FlatPair &pair, const MetricOptions &options, Histograms &histograms)
{
    return pair.numbers == Numbers::Double ? runPass<double>(pair, options, histograms)
                                           : runPass<float>(pair, options, histograms);
}

BatchSums integerPass(const FlatPair &pair)
{
    return pair.unsigned64 ? integers<std::uint64_t>(pair) : integers<std::int64_t>(pair);
}

EnergySums energyPass(const FlatPair &pair)
{
    return pair.numbers == Numbers::Double ? energyOf<double>(pair) : energyOf<float>(pair);
}

} // namespace dblame

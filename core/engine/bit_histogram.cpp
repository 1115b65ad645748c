// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/bit_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/engine/metric_kernels.h"

namespace dblame
{

using kernels::kBins;
using kernels::kBinShift;
using kernels::kMantissaBits;

void BitCounter::count(const std::uint16_t *bins, std::int64_t n)
{
    std::int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
        const std::size_t a = bins[i];
        const std::size_t b = bins[i + 1];
        ++m_counts[2 * a];
        ++m_counts[2 * b + 1];
        m_touched[a >> kMantissaBits] = 1;
        m_touched[b >> kMantissaBits] = 1;
    }
    if (i < n) {
        const std::size_t a = bins[i];
        ++m_counts[2 * a];
        m_touched[a >> kMantissaBits] = 1;
    }
}

void BitCounter::drainInto(BitHistogram &histogram)
{
    std::vector<std::uint16_t> bins;
    std::vector<std::int64_t> values;
    const auto octaves = static_cast<std::size_t>(std::count(m_touched.begin(), m_touched.end(), std::uint8_t{1}));
    bins.reserve(octaves * kOctaveBins);
    values.reserve(octaves * kOctaveBins);
    for (std::size_t octave = 0; octave < m_touched.size(); ++octave) {
        if (m_touched[octave] == 0)
            continue;
        m_touched[octave] = 0;
        for (std::size_t bin = octave * kOctaveBins; bin < (octave + 1) * kOctaveBins; ++bin) {
            const std::int64_t n = std::int64_t{m_counts[2 * bin]} + m_counts[2 * bin + 1];
            if (n == 0)
                continue;
            m_counts[2 * bin] = m_counts[2 * bin + 1] = 0;
            bins.push_back(static_cast<std::uint16_t>(bin));
            values.push_back(n);
        }
    }
    histogram.addCounts(std::move(bins), std::move(values));
}

void BitHistogram::addFew(const std::uint16_t *bins, std::int64_t n, BitCounter &counter)
{
    if (static_cast<std::int64_t>(m_list.size()) + n <= kListLimit) {
        m_list.insert(m_list.end(), bins, bins + n);
        m_total += n;
        return;
    }
    counter.count(m_list.data(), static_cast<std::int64_t>(m_list.size()));
    counter.count(bins, n);
    m_total -= static_cast<std::int64_t>(m_list.size()); // addCounts() counts them again
    m_list = {};
    counter.drainInto(*this);
}

void BitHistogram::addCounts(std::vector<std::uint16_t> bins, std::vector<std::int64_t> counts)
{
    for (const std::int64_t n : counts)
        m_total += n;
    if (m_bins.empty()) {
        m_bins = std::move(bins);
        m_counts = std::move(counts);
        m_bins.shrink_to_fit();
        m_counts.shrink_to_fit();
        return;
    }
    std::vector<std::uint16_t> mergedBins;
    std::vector<std::int64_t> mergedCounts;
    mergedBins.reserve(m_bins.size() + bins.size());
    mergedCounts.reserve(m_bins.size() + bins.size());
    const auto push = [&](std::uint16_t bin, std::int64_t n) {
        if (!mergedBins.empty() && mergedBins.back() == bin) {
            mergedCounts.back() += n;
            return;
        }
        mergedBins.push_back(bin);
        mergedCounts.push_back(n);
    };
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < m_bins.size() || j < bins.size()) {
        if (j == bins.size() || (i < m_bins.size() && m_bins[i] <= bins[j])) {
            push(m_bins[i], m_counts[i]);
            ++i;
        } else {
            push(bins[j], counts[j]);
            ++j;
        }
    }
    mergedBins.shrink_to_fit();
    mergedCounts.shrink_to_fit();
    m_bins = std::move(mergedBins);
    m_counts = std::move(mergedCounts);
}

void BitHistogram::merge(const BitHistogram &other)
{
    if (static_cast<std::int64_t>(m_list.size() + other.m_list.size()) <= kListLimit) {
        m_list.insert(m_list.end(), other.m_list.begin(), other.m_list.end());
        m_total += static_cast<std::int64_t>(other.m_list.size());
    } else {
        std::vector<std::uint16_t> sorted = other.m_list;
        std::sort(sorted.begin(), sorted.end());
        std::vector<std::uint16_t> bins;
        std::vector<std::int64_t> counts;
        for (const std::uint16_t bin : sorted) {
            if (bins.empty() || bins.back() != bin) {
                bins.push_back(bin);
                counts.push_back(0);
            }
            ++counts.back();
        }
        addCounts(std::move(bins), std::move(counts));
    }
    addCounts(other.m_bins, other.m_counts);
}

template <class F>
void BitHistogram::forEach(F &&f) const
{
    for (const std::uint16_t bin : m_list)
        f(bin, std::int64_t{1});
    for (std::size_t i = 0; i < m_bins.size(); ++i)
        f(m_bins[i], m_counts[i]);
}

bool BitHistogram::finiteBin(std::uint16_t bin)
{
    return ((bin >> kMantissaBits) & 0xFF) != 0xFF;
}

double BitHistogram::binLow(std::uint16_t bin)
{
    const std::uint32_t bits = std::uint32_t{bin} << kBinShift;
    if ((bits & 0x80000000U) == 0)
        return (bits >> 23U) == 0 ? 0.0 : static_cast<double>(std::bit_cast<float>(bits));
    return -binHigh(static_cast<std::uint16_t>(bin & (kBins / 2 - 1)));
}

double BitHistogram::binHigh(std::uint16_t bin)
{
    const std::uint32_t bits = std::uint32_t{bin} << kBinShift;
    if ((bits & 0x80000000U) != 0)
        return -binLow(static_cast<std::uint16_t>(bin & (kBins / 2 - 1)));
    if ((bits >> 23U) == 0)
        return 0.0;
    return static_cast<double>(std::bit_cast<float>(bits | ((1U << kBinShift) - 1U)));
}

void BitHistogram::bounds(double &low, double &high) const
{
    low = INFINITY;
    high = -INFINITY;
    forEach([&](std::uint16_t bin, std::int64_t) {
        if (!finiteBin(bin))
            return;
        low = std::min(low, binLow(bin));
        high = std::max(high, binHigh(bin));
    });
}

void BitHistogram::rebin(const std::vector<double> &edges, double low, double high, double weight,
                         std::vector<double> &counts) const
{
    const std::size_t n = edges.size() - 1;
    counts.resize(n, 0.0);
    const double first = edges.front();
    const auto bins = static_cast<double>(n);
    const double perStep = bins / (edges.back() - first);
    // In linear bins from the first edge; the last edge belongs to the last bin.
    const auto place = [&](double value) {
        return std::clamp((std::clamp(value, low, high) - first) * perStep, 0.0, bins);
    };
    const auto index = [&](double at) { return std::min(static_cast<std::size_t>(at), n - 1); };
    forEach([&](std::uint16_t bin, std::int64_t elements) {
        if (!finiteBin(bin))
            return;
        const double amount = weight * static_cast<double>(elements);
        const double begin = place(binLow(bin));
        const double end = place(binHigh(bin));
        const std::size_t from = index(begin);
        const std::size_t to = index(end);
        if (from == to) {
            counts[from] += amount;
            return;
        }
        const double perBin = amount / (end - begin);
        counts[from] += perBin * (static_cast<double>(from + 1) - begin);
        for (std::size_t k = from + 1; k < to; ++k)
            counts[k] += perBin;
        counts[to] += perBin * (end - static_cast<double>(to));
    });
}

std::vector<double> linearEdges(double low, double high, int count)
{
    constexpr double kLargest = 8e307; // so that high - low stays finite
    low = std::clamp(low, -kLargest, kLargest);
    high = std::clamp(high, -kLargest, kLargest);
    if (!(high > low)) {
        const double half = low == 0 ? 0.5 : std::abs(low) / 2;
        low -= half;
        high = low + 2 * half;
    }
    std::vector<double> edges(static_cast<std::size_t>(count) + 1);
    for (int i = 0; i <= count; ++i)
        edges[static_cast<std::size_t>(i)] = low + (high - low) * (static_cast<double>(i) / count);
    edges.back() = high;
    return edges;
}

} // namespace dblame

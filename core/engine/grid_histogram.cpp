// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/grid_histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dblame
{

namespace
{

// A bar is no narrower than a 2048th of the largest magnitude: a range far from zero has few bars rather than bars
// finer than float32 tells apart, and numbers of bars stay small. Below 2^-1000 everything is zero to a reader.
int finest(double largest)
{
    constexpr int kLowest = -1000;
    constexpr int kBelow = 10;
    return largest == 0 ? kLowest : std::max(kLowest, std::ilogb(largest) - kBelow);
}

// Towards minus infinity, as floor() would, without a call. A tiny negative value among huge ones scales to zero, and
// still lies below it.
std::int64_t floored(double value, double scaled)
{
    const auto whole = static_cast<std::int64_t>(scaled);
    const bool below = scaled < static_cast<double>(whole) || (whole == 0 && value < 0);
    return whole - static_cast<std::int64_t>(below);
}

std::int64_t halved(std::int64_t bar, int times)
{
    return times >= 63 ? (bar < 0 ? -1 : 0) : bar >> times; // arithmetic: towards minus infinity
}

} // namespace

template <std::size_t kSides>
std::int64_t GridHistogram<kSides>::barOf(double value, int exponent)
{
    return floored(value, std::ldexp(value, -exponent));
}

template <std::size_t kSides>
void GridHistogram<kSides>::coarsenTo(int exponent)
{
    if (exponent <= m_exponent)
        return;
    const int times = exponent - m_exponent;
    const std::int64_t first = halved(m_first, times);
    const std::int64_t last = halved(m_first + m_bars - 1, times);
    for (auto &counts : m_counts) {
        std::vector<std::int64_t> joined(static_cast<std::size_t>(last - first + 1));
        for (std::int64_t i = 0; i < m_bars; ++i)
            joined[static_cast<std::size_t>(halved(m_first + i, times) - first)] += counts[static_cast<std::size_t>(i)];
        counts = std::move(joined);
    }
    m_exponent = exponent;
    m_first = first;
    m_bars = last - first + 1;
}

// Bars first..last, in units of the present width, beside those that are there.
template <std::size_t kSides>
void GridHistogram<kSides>::reserve(std::int64_t first, std::int64_t last)
{
    const std::int64_t newFirst = std::min(first, m_first);
    const std::int64_t newLast = std::max(last, m_first + m_bars - 1);
    for (auto &counts : m_counts) {
        counts.insert(counts.begin(), static_cast<std::size_t>(m_first - newFirst), 0);
        counts.resize(static_cast<std::size_t>(newLast - newFirst + 1), 0);
    }
    m_first = newFirst;
    m_bars = newLast - newFirst + 1;
}

// Makes room for values from low to high: the narrowest bars that do it.
template <std::size_t kSides>
void GridHistogram<kSides>::cover(double low, double high)
{
    m_largest = std::max({m_largest, std::abs(low), std::abs(high)});
    int exponent = finest(m_largest);
    const bool fresh = m_bars == 0;
    if (!fresh)
        exponent = std::max(exponent, m_exponent);
    const auto needed = [&](int wide) {
        std::int64_t first = barOf(low, wide);
        std::int64_t last = barOf(high, wide);
        if (!fresh) {
            first = std::min(first, halved(m_first, wide - m_exponent));
            last = std::max(last, halved(m_first + m_bars - 1, wide - m_exponent));
        }
        return last - first + 1;
    };
    while (needed(exponent) > kMostBars)
        ++exponent;
    if (fresh) {
        m_exponent = exponent;
        m_first = barOf(low, exponent);
        m_bars = 1;
        for (auto &counts : m_counts)
            counts.assign(1, 0);
    }
    coarsenTo(exponent);
    reserve(barOf(low, exponent), barOf(high, exponent));
}

template <std::size_t kSides>
template <class T>
void GridHistogram<kSides>::add(const std::array<const T *, kSides> &sides, std::int64_t n)
{
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const T *values : sides)
        for (std::int64_t i = 0; i < n; ++i) {
            if (!std::isfinite(values[i]))
                continue;
            low = std::min(low, static_cast<double>(values[i]));
            high = std::max(high, static_cast<double>(values[i]));
        }
    if (low > high)
        return; // nothing finite
    cover(low, high);
    const double perBar = std::ldexp(1.0, -m_exponent);
    for (std::size_t side = 0; side < kSides; ++side) {
        std::int64_t *counts = m_counts[side].data();
        for (std::int64_t i = 0; i < n; ++i)
            if (std::isfinite(sides[side][i])) {
                const auto value = static_cast<double>(sides[side][i]);
                ++counts[floored(value, value * perBar) - m_first];
            }
    }
}

template <std::size_t kSides>
void GridHistogram<kSides>::merge(const GridHistogram &other)
{
    if (other.m_bars == 0)
        return;
    if (m_bars == 0) {
        *this = other;
        return;
    }
    GridHistogram from = other;
    m_largest = from.m_largest = std::max(m_largest, from.m_largest);
    int exponent = std::max({m_exponent, from.m_exponent, finest(m_largest)});
    const auto needed = [&](int wide) {
        const int here = wide - m_exponent;
        const int there = wide - from.m_exponent;
        return std::max(halved(m_first + m_bars - 1, here), halved(from.m_first + from.m_bars - 1, there)) -
               std::min(halved(m_first, here), halved(from.m_first, there)) + 1;
    };
    while (needed(exponent) > kMostBars)
        ++exponent;
    coarsenTo(exponent);
    from.coarsenTo(exponent);
    reserve(from.m_first, from.m_first + from.m_bars - 1);
    for (std::size_t side = 0; side < kSides; ++side)
        for (std::int64_t i = 0; i < from.m_bars; ++i)
            m_counts[side][static_cast<std::size_t>(from.m_first + i - m_first)] +=
                from.m_counts[side][static_cast<std::size_t>(i)];
}

template <std::size_t kSides>
void GridHistogram<kSides>::fill(int bars, std::vector<double> &edges,
                                 std::array<std::vector<double> *, kSides> counts) const
{
    GridHistogram shown = *this;
    int exponent = shown.m_exponent;
    if (shown.m_bars == 1) // a single value: a bar as wide as its octave
        exponent = std::max(exponent, m_largest == 0 ? -1 : std::ilogb(m_largest) - 1);
    while (halved(m_first + m_bars - 1, exponent - m_exponent) - halved(m_first, exponent - m_exponent) + 1 > bars)
        ++exponent;
    shown.coarsenTo(exponent);
    constexpr double kLargest = std::numeric_limits<double>::max();
    edges.clear();
    for (std::int64_t i = 0; i <= shown.m_bars; ++i)
        edges.push_back(
            std::clamp(std::ldexp(static_cast<double>(shown.m_first + i), shown.m_exponent), -kLargest, kLargest));
    for (std::size_t side = 0; side < kSides; ++side)
        counts[side]->assign(shown.m_counts[side].begin(), shown.m_counts[side].end());
}

template class GridHistogram<1>;
template class GridHistogram<2>;
template void GridHistogram<1>::add(const std::array<const double *, 1> &, std::int64_t);
template void GridHistogram<2>::add(const std::array<const float *, 2> &, std::int64_t);
template void GridHistogram<2>::add(const std::array<const double *, 2> &, std::int64_t);

} // namespace dblame

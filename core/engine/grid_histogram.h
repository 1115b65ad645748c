// SPDX-License-Identifier: GPL-3.0-or-later
//
// Exact histograms in one pass, without a range known beforehand: bars of one width, a power of two, whose edges are
// multiples of it. Where values lie beyond what a bounded number of bars can hold, bars are joined in pairs; the edges
// of the wider grid are edges of the narrower one, so that no count is ever split, over batches, threads or machines.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace dblame
{

// Counts of `kSides` arrays on common bars. A bar holds its lower edge and not its upper one. The result is a function
// of the values alone, whatever the order and the grouping in which they came.
template <std::size_t kSides>
class GridHistogram
{
public:
    // Adds n values of each side; NaN and infinities are left out. T: float or double.
    template <class T>
    void add(const std::array<const T *, kSides> &sides, std::int64_t n);
    void merge(const GridHistogram &other);
    [[nodiscard]] bool empty() const { return m_bars == 0; }

    // At most `bars` bars; edges has one more entry than counts. A single value gets one bar of about its own size.
    void fill(int bars, std::vector<double> &edges, std::array<std::vector<double> *, kSides> counts) const;

private:
    static constexpr std::int64_t kMostBars = 80;

    void cover(double low, double high);
    void coarsenTo(int exponent);
    void reserve(std::int64_t first, std::int64_t last);
    [[nodiscard]] static std::int64_t barOf(double value, int exponent);

    int m_exponent = 0;       // bars are 2^m_exponent wide
    std::int64_t m_first = 0; // the first one's lower edge is m_first * 2^m_exponent
    std::int64_t m_bars = 0;
    double m_largest = 0; // magnitude, of all values
    std::array<std::vector<std::int64_t>, kSides> m_counts;
};

extern template class GridHistogram<1>;
extern template class GridHistogram<2>;

} // namespace dblame

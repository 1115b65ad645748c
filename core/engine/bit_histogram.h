// SPDX-License-Identifier: GPL-3.0-or-later
//
// Histograms whose bins are the leading bits of a float32 (sign, exponent, four bits of mantissa): no range is
// needed beforehand, so one pass suffices and histograms merge over batches, threads and machines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/engine/metric_kernels.h"

namespace dblame
{

class BitHistogram;

// Counters for every bin, at zero between uses: count() many blocks, then drainInto() one histogram. Only the
// octaves that a tensor touched are looked at again, so that a tensor does not pay for 8192 bins.
class BitCounter
{
public:
    void count(const std::uint16_t *bins, std::int64_t n); // fewer than 2^32 elements between two drains
    void drainInto(BitHistogram &histogram);

private:
    static constexpr std::size_t kOctaveBins = std::size_t{1} << kernels::kMantissaBits;
    // Two counters per bin, used in turn: the same bin twice in a row (zeros after a relu) does not wait for its store.
    std::array<std::uint32_t, std::size_t{2} * kernels::kBins> m_counts{};
    std::array<std::uint8_t, kernels::kBins / kOctaveBins> m_touched{};
};

// Counts of one side. Sparse: few elements are kept as a list of their bins, more as counts of the bins that occur.
class BitHistogram
{
public:
    // More elements than this come through a BitCounter.
    static constexpr std::int64_t kListLimit = 1024;

    // Adds the bins of at most kListLimit elements; `counter` is used when the list has grown too long.
    void addFew(const std::uint16_t *bins, std::int64_t n, BitCounter &counter);
    // Adds counts of ascending bins, no bin twice.
    void addCounts(std::vector<std::uint16_t> bins, std::vector<std::int64_t> counts);
    void merge(const BitHistogram &other);
    [[nodiscard]] std::int64_t total() const { return m_total; }

    // Lower and upper bound of a bin's values: lower <= value <= upper. Both zero for the bins of +0 and -0
    // (subnormals are below every scale that a plot can show). Bins of infinities and NaN are not finite.
    [[nodiscard]] static bool finiteBin(std::uint16_t bin);
    [[nodiscard]] static double binLow(std::uint16_t bin);
    [[nodiscard]] static double binHigh(std::uint16_t bin);
    // Bounds of all finite elements; low > high when there are none.
    void bounds(double &low, double &high) const;

    // Adds the counts, times `weight`, to the linear bins between `edges` (ascending, counts + 1 of them). All
    // elements are known to lie in [low, high], which the edges enclose: a bit bin's elements are spread evenly over
    // the part of it that lies there, so none is lost. Infinities and NaN are left out.
    void rebin(const std::vector<double> &edges, double low, double high, double weight,
               std::vector<double> &counts) const;

private:
    template <class F>
    void forEach(F &&f) const;

    std::vector<std::uint16_t> m_list;  // one entry per element, unsorted
    std::vector<std::uint16_t> m_bins;  // ascending
    std::vector<std::int64_t> m_counts; // of m_bins
    std::int64_t m_total = 0;
};

// `count` equal steps from low to high; a step of its own size around a single value.
[[nodiscard]] std::vector<double> linearEdges(double low, double high, int count);

} // namespace dblame

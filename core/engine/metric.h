// SPDX-License-Identifier: GPL-3.0-or-later
//
// The fused metric pass over two tensors, and accumulators that merge over batches, threads and machines.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/node_report.h"

namespace dblame {

struct MetricOptions {
    int channelAxis = -1;  // -1: no per-channel sums
    bool histograms = false;
    bool exact = false;    // histogram every element, not whole blocks of a sample

};

// Sums of one pair over everything added so far. Adding the same data in the same order gives the same bits,
// whatever the CPU clone and the thread count; merge() in the same order likewise.
class PairAccumulator {
public:
    explicit PairAccumulator(const MetricOptions &options);
    ~PairAccumulator();
    PairAccumulator(const PairAccumulator &);
    PairAccumulator &operator=(const PairAccumulator &);
    PairAccumulator(PairAccumulator &&) noexcept;
    PairAccumulator &operator=(PairAccumulator &&) noexcept;

    // Adds one batch. Shapes must be equal (the caller checks). Float types of any width (converted to
    // float32, float64 kept exact in double), integer and bool (mismatches); complex as pairs of floats.
    void add(const at::Tensor &reference, const at::Tensor &candidate);
    void merge(const PairAccumulator &other);
    [[nodiscard]] bool empty() const;
    // Status Ok, Exact, Mismatch or NotFloat, metrics, channels and histogram into the report.
    void fill(NodeReport &report) const;

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

// Only sum r^2, sum c^2, sum (r-c)^2: for before/after-site figures.
class SnrAccumulator {
public:
    void add(const at::Tensor &reference, const at::Tensor &candidate);
    void merge(const SnrAccumulator &other);
    [[nodiscard]] bool empty() const { return m_count == 0; }
    [[nodiscard]] double snrDb() const;
    [[nodiscard]] double sqnrDb() const;

private:
    double m_signal = 0, m_candidate = 0, m_error = 0;
    std::int64_t m_count = 0, m_nonFinite = 0;
};

// How the values that a per-tensor site reads use its range [lo, hi] = [(qmin - z) s, (qmax - z) s].
class RangeAccumulator {
public:
    // lo, hi of the grid; dynamic sites give their own per batch.
    void add(const at::Tensor &source, double lo, double hi);
    [[nodiscard]] std::optional<double> clipped() const;     // share of elements outside [lo - s/2, hi + s/2] approximated by [lo, hi]
    [[nodiscard]] std::optional<double> unusedRange() const; // 1 - used extent / extent

private:
    std::int64_t m_count = 0, m_outside = 0;
    double m_lo = 0, m_hi = 0, m_min = 0, m_max = 0;
};

} // namespace dblame

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

namespace dblame
{

struct MetricOptions {
    int channelAxis = -1; // -1: no per-channel sums
    bool histograms = false;
    // Histogram every element, not one block of 4096 in 8 (fewer of large tensors), and count each in the bar it is in:
    // bars of one width, a power of two, with edges at its multiples; a bar holds its lower edge and not its upper.
    bool exact = false;
};

// Sums of one pair over everything added so far. Adding the same data in the same order gives the same bits,
// whatever the instruction set and the thread count; merge() in the same order likewise.
//
// "In the same order" is the memory order of the reference: a channels-last tensor is summed channels last, which
// may change the last bit against the same values stored channels first. So does another channelAxis.
//
// Values that are not numbers (metrics.nan, metrics.inf count them; extrema are over finite elements):
//   NaN on either side        snr, sqnr, mse, mae, bias, cosine, maxAbs are NaN; status Ok
//   the same infinity twice   no error and no signal (masks)
//   any other infinity        an infinite error: snr = -inf, mse = mae = maxAbs = +inf
// Equal elements throughout (0 == -0) without NaN: status Exact, snr = +inf.
class PairAccumulator
{
public:
    explicit PairAccumulator(const MetricOptions &options);
    ~PairAccumulator();
    PairAccumulator(const PairAccumulator &);
    PairAccumulator &operator=(const PairAccumulator &);
    PairAccumulator(PairAccumulator &&) noexcept;
    PairAccumulator &operator=(PairAccumulator &&) noexcept;

    // Adds one batch. Shapes must be equal (the caller checks). Float types of any width (converted to
    // float32, float64 kept exact in double), integer and bool (mismatches; mse, mae and bias, but no dB);
    // complex as pairs of floats, each counted. A float beside an integer: both as floats.
    void add(const at::Tensor &reference, const at::Tensor &candidate);
    void merge(const PairAccumulator &other);
    [[nodiscard]] bool empty() const;
    // Status Ok, Exact, Mismatch or NotFloat, metrics, channels and histogram into the report; the rest of it is
    // left alone, and all of it before the first add(). Counts of a sampled histogram are scaled to all elements;
    // the error's histogram is empty while everything is equal. `withHistogram` false leaves report.histogram
    // empty: making it costs more than adding a small tensor.
    void fill(NodeReport &report, bool withHistogram = true) const;

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

// Only sum r^2, sum c^2, sum (r-c)^2: for before/after-site figures. Floating-point tensors; others add nothing.
class SnrAccumulator
{
public:
    void add(const at::Tensor &reference, const at::Tensor &candidate);
    void merge(const SnrAccumulator &other);
    [[nodiscard]] bool empty() const { return m_count == 0; }
    [[nodiscard]] double snrDb() const;
    [[nodiscard]] double sqnrDb() const;

private:
    double m_signal = 0, m_candidate = 0, m_error = 0;
    std::int64_t m_count = 0;
};

// How the values that a per-tensor site reads use its range [lo, hi] = [(qmin - z) s, (qmax - z) s].
class RangeAccumulator
{
public:
    // lo, hi of the grid; dynamic sites give their own per batch. step: the scale, 0 if not known.
    void add(const at::Tensor &source, double lo, double hi, double step = 0);
    void merge(const RangeAccumulator &other);
    // Share of elements that miss [lo, hi] by more than half a step (infinities included, NaN not).
    [[nodiscard]] std::optional<double> clipped() const;
    // 1 - used extent / extent, over all that was added.
    [[nodiscard]] std::optional<double> unusedRange() const;

private:
    std::int64_t m_count = 0, m_outside = 0;
    double m_from = 1, m_to = 0; // used part, 0 at lo and 1 at hi
};

} // namespace dblame

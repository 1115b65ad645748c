// SPDX-License-Identifier: GPL-3.0-or-later
//
// The histogram behind an observer: 2048 equal bins between the lowest and the highest value so far, in constant
// memory over any number of batches.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/tensor_spec.h"

namespace dblame
{

// Bit for bit the state and the search of torch's HistogramObserver (docs/quantization.md): LibTorch's own operators do
// what they do there, in the same order. Functions throw c10::Error where the peer raises (NaN, a range wider than
// float32).
class RangeHistogram
{
public:
    static constexpr std::int64_t kBins = 2048;

    // Adds a tensor of float32, float16 or bfloat16, not empty. Infinite elements are left out.
    void observe(const at::Tensor &x);
    void reset();

    [[nodiscard]] bool empty() const { return !m_counts.defined(); }
    [[nodiscard]] float low() const { return m_low; }
    [[nodiscard]] float high() const { return m_high; }
    [[nodiscard]] const at::Tensor &counts() const { return m_counts; } // float32 [2048]; undefined when empty()

    // The range inside which `levels` equal bins lose least, by the peer's heuristic: it never widens the range, and
    // drops tail bins of small samples.
    [[nodiscard]] std::pair<float, float> smallestErrorRange(std::int64_t levels) const;

    // The range that leaves out a share (1 - percent/100)/2 of the values at each end. Inside a bin the values are
    // spread evenly; 100 gives the observed range.
    [[nodiscard]] std::pair<float, float> percentileRange(double percent) const;

    // The range whose grid (spec.quantMin .. quantMax, spec.scheme, s >= spec.eps) has the smallest expected squared
    // error, sum over bins i of H[i] / w * integral over bin i of (x - fq(x))^2 dx, values spread evenly inside a bin
    // of width w. In closed form: with s the step, the error of rounding is (x - s*rint(x/s))^2 whose integral over
    // whole steps is s^3/12 each; outside the grid's ends it is (x - end)^2. Searched: bounds j/256 of the observed
    // ones, j = 1..256; for an affine grid upper and lower bound in turn until neither improves. Ties: the wider range.
    [[nodiscard]] std::pair<float, float> meanSquaredErrorRange(const TensorSpec &spec) const;

private:
    at::Tensor rebinned(float newLow, float newHigh) const;

    at::Tensor m_counts;
    float m_low = 0, m_high = 0;
};

// The peer's error measure of quantizing bins first..last of a histogram to `levels` bins, one number per bin: what
// smallestErrorRange() sums. `width` is (high - low)/2048 in double.
void binErrors(const float *counts, double width, std::int64_t first, std::int64_t last, std::int64_t levels,
               float *errors);

} // namespace dblame

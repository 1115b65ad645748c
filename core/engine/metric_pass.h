// SPDX-License-Identifier: GPL-3.0-or-later
//
// One batch of one pair through the kernels: chunks over threads, merged in order. Private to the metric target.
#pragma once

#include <cstdint>
#include <vector>

#include "core/engine/bit_histogram.h"
#include "core/engine/flat_pair.h"
#include "core/engine/grid_histogram.h"
#include "core/engine/metric.h"
#include "core/engine/metric_kernels.h"

namespace dblame
{

// Chunks from which waking other threads is cheaper than doing their share.
inline constexpr std::int64_t kWorthThreads = 4;

// Of a sample, by the leading bits; or of every element, by bars of one width.
struct Histograms {
    BitHistogram reference, candidate, error;
    GridHistogram<2> exactValues; // reference, candidate
    GridHistogram<1> exactError;  // candidate - reference

    void merge(const Histograms &other)
    {
        reference.merge(other.reference);
        candidate.merge(other.candidate);
        error.merge(other.error);
        exactValues.merge(other.exactValues);
        exactError.merge(other.exactError);
    }
};

// What one batch adds.
struct BatchSums {
    kernels::PairSums sums;
    std::vector<double> channels; // 3 per channel: rr, cc, ee
    std::int64_t mismatches = 0;  // integers
};

// Floats. The histograms are added to `histograms`.
[[nodiscard]] BatchSums floatPass(const FlatPair &pair, const MetricOptions &options, Histograms &histograms);
// Integers and flags: no channels, no histogram, no products.
[[nodiscard]] BatchSums integerPass(const FlatPair &pair);
// Floats, energies alone.
[[nodiscard]] kernels::EnergySums energyPass(const FlatPair &pair);

} // namespace dblame

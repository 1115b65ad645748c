// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

namespace dblame::ui
{

// A histogram ready to be drawn: densities (count per unit of x) on common edges.
struct DensityBins {
    std::vector<double> edges;     // ascending, finite
    std::vector<double> reference; // one per bin
    std::vector<double> candidate; // the same, or empty
    [[nodiscard]] bool empty() const { return reference.empty(); }
};

// The engine's bins are of unequal width, and near zero far narrower than a pixel: drawn as they are, their
// densities would tower over everything. Bins outside of what holds counts are cut off; a histogram with more than
// `most` bins, or with one narrower than 1/(4*most) of the range, is spread over `most` equal bins, each count
// evenly over its own width. Sums of count are preserved. `counts` without a second side: pass an empty vector.
[[nodiscard]] DensityBins densityBins(const std::vector<double> &edges, const std::vector<double> &reference,
                                      const std::vector<double> &candidate, int most = 128);

} // namespace dblame::ui

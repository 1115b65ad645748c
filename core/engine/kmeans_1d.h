// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

namespace dblame
{

// Globally optimal k-means of weighted numbers on a line.
struct Clusters1d {
    std::vector<double> centroids;            // k of them, ascending; 0 where a cluster got nothing
    std::vector<std::int64_t> firstOfCluster; // k + 1 entries: cluster c holds values [first[c], first[c + 1])
};

// `values` ascending (equal ones may repeat), `weights` positive, one each; 1 <= k <= values.size().
//
// Clusters of an optimal partition are runs of the sorted values. With D[c][i] the least cost of the first i + 1 values
// in at most c + 1 clusters,
//   D[c][i] = min over j of D[c - 1][j - 1] + cost(j, i),   cost = S2 + S0 mu^2 - 2 mu S1,  mu = S1 / S0,
// S0, S1, S2 = sums of w, w x, w x^2 over j..i from prefix sums in double. The matrix of each c is totally monotone, so
// SMAWK (Aggarwal et al. 1987) finds all its row minima in O(n): O(k n) in all (Gronlund et al. 2017). The leftmost
// minimum is taken, and the cost is summed in the order above: equal costs, and costs equal up to rounding, fall as in
// the implementation that coreai-opt uses. Choices are kept as one bit per value and step (the minima's columns never
// fall), 2 k n bits. Centroids by the running mean c += (x - c) w / W.
// Stopped between two clusters when asked to: no centroids then.
[[nodiscard]] Clusters1d optimalClusters(const std::vector<double> &values, const std::vector<double> &weights,
                                         std::int64_t k, const std::stop_token &stop = {});

} // namespace dblame

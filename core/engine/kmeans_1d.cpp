// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/kmeans_1d.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace dblame
{

namespace
{

using Index = std::uint32_t;

struct Sums {
    double w = 0, wx = 0, wxx = 0;
};

class Costs
{
public:
    Costs(const std::vector<double> &values, const std::vector<double> &weights) : m_sums(values.size() + 1)
    {
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double x = values[i];
            const double w = weights[i];
            m_sums[i + 1] = {w + m_sums[i].w, w * x + m_sums[i].wx, w * x * x + m_sums[i].wxx};
        }
    }

    [[nodiscard]] double weight(std::size_t from, std::size_t to) const { return m_sums[to + 1].w - m_sums[from].w; }

    // Of values from..to as one cluster; nothing for an empty run.
    [[nodiscard]] double of(std::size_t from, std::size_t to) const
    {
        if (to < from)
            return 0;
        const Sums &a = m_sums[from];
        const Sums &b = m_sums[to + 1];
        const double w = b.w - a.w;
        const double mu = (b.wx - a.wx) / w;
        double cost = b.wxx - a.wxx;
        cost += w * (mu * mu);
        cost -= 2 * mu * (b.wx - a.wx);
        return cost;
    }

private:
    std::vector<Sums> m_sums;
};

// A sequence that never falls, as unary numbers: a one for each step up, a zero after each element.
class RisingSequence
{
public:
    explicit RisingSequence(const std::vector<Index> &values) : m_bits((2 * values.size() + 63) / 64 + 1)
    {
        std::size_t position = 0;
        Index at = 0;
        for (const Index value : values) {
            for (; at < value; ++at, ++position)
                m_bits[position / 64] |= std::uint64_t{1} << (position % 64);
            ++position;
        }
    }

    [[nodiscard]] Index operator[](std::size_t index) const
    {
        std::size_t zeros = index; // to skip before the element's own
        std::size_t word = 0;
        for (;; ++word) {
            const auto here = static_cast<std::size_t>(std::popcount(~m_bits[word]));
            if (zeros < here)
                break;
            zeros -= here;
        }
        std::uint64_t open = ~m_bits[word];
        for (; zeros > 0; --zeros)
            open &= open - 1;
        return static_cast<Index>(word * 64 + static_cast<std::size_t>(std::countr_zero(open)) - index);
    }

private:
    std::vector<std::uint64_t> m_bits;
};

// Column of the leftmost minimum of each row of a totally monotone matrix, into minima[row].
template <class Matrix>
class RowMinima
{
public:
    RowMinima(const Matrix &matrix, std::vector<Index> &minima) : m_matrix(matrix), m_minima(minima) {}

    // Rows first, first + step, ... below `end`; `columns` ascending.
    void solve(std::size_t first, std::size_t step, std::size_t end, const std::vector<Index> &columns)
    {
        if (first >= end)
            return;
        const std::size_t rows = (end - first + step - 1) / step;
        const std::vector<Index> kept = surviving(first, step, rows, columns);
        solve(first + step, 2 * step, end, kept);
        fillBetween(first, step, rows, kept);
    }

private:
    // At most one column per row can still hold a minimum.
    std::vector<Index> surviving(std::size_t first, std::size_t step, std::size_t rows,
                                 const std::vector<Index> &columns) const
    {
        std::vector<Index> kept;
        kept.reserve(rows);
        for (const Index column : columns) {
            while (!kept.empty()) {
                const std::size_t row = first + (kept.size() - 1) * step;
                if (m_matrix(row, column) >= m_matrix(row, kept.back()))
                    break;
                kept.pop_back();
            }
            if (kept.size() < rows)
                kept.push_back(column);
        }
        return kept;
    }

    // Every second row is known: the minimum of a row lies between those of its neighbours.
    void fillBetween(std::size_t first, std::size_t step, std::size_t rows, const std::vector<Index> &kept)
    {
        std::size_t column = 0;
        for (std::size_t r = 0; r < rows; r += 2) {
            const std::size_t row = first + r * step;
            const Index last = r + 1 < rows ? m_minima[row + step] : kept.back();
            Index best = kept[column];
            double least = m_matrix(row, best);
            while (kept[column] != last) {
                const Index candidate = kept[++column];
                if (const double value = m_matrix(row, candidate); value < least) {
                    least = value;
                    best = candidate;
                }
            }
            m_minima[row] = best;
        }
    }

    const Matrix &m_matrix;
    std::vector<Index> &m_minima;
};

} // namespace

Clusters1d optimalClusters(const std::vector<double> &values, const std::vector<double> &weights, std::int64_t k,
                           const std::stop_token &stop)
{
    const std::size_t n = values.size();
    const auto clusters = static_cast<std::size_t>(k);
    const Costs costs(values, weights);

    std::vector<double> before(n); // D[c - 1]
    std::vector<double> now(n);
    for (std::size_t i = 0; i < n; ++i)
        before[i] = costs.of(0, i);
    std::vector<Index> columns(n);
    for (std::size_t i = 0; i < n; ++i)
        columns[i] = static_cast<Index>(i);
    std::vector<Index> minima(n);
    std::vector<RisingSequence> firsts; // of steps 1..k - 1: where the last cluster begins
    for (std::size_t c = 1; c < clusters; ++c) {
        if (stop.stop_requested())
            return {};
        // The last cluster of the first i + 1 values begins at j; j > i: it is empty, j = 0: it is all there is.
        const auto matrix = [&](std::size_t i, std::size_t j) {
            return before[j == 0 ? i : std::min(i, j - 1)] + costs.of(j, i);
        };
        RowMinima<decltype(matrix)>(matrix, minima).solve(0, 1, n, columns);
        for (std::size_t i = 0; i < n; ++i)
            now[i] = matrix(i, minima[i]);
        firsts.emplace_back(minima);
        std::swap(before, now);
    }

    Clusters1d result;
    result.centroids.assign(clusters, 0);
    result.firstOfCluster.assign(clusters + 1, 0);
    result.firstOfCluster[clusters] = static_cast<std::int64_t>(n);
    std::size_t end = n;
    for (std::size_t c = clusters; c-- > 0;) {
        const std::size_t begin = end == 0 || c == 0 ? 0 : firsts[c - 1][end - 1];
        double centroid = 0;
        for (std::size_t i = begin; i < end; ++i)
            centroid += (values[i] - centroid) * costs.weight(i, i) / costs.weight(begin, i);
        if (end > begin)
            result.centroids[c] = centroid;
        result.firstOfCluster[c] = static_cast<std::int64_t>(begin);
        end = begin;
    }
    return result;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Step 5 of layered_layout: positions across the flow.
#include <algorithm>
#include <cmath>

#include "core/layered_internal.h"

namespace dblame::layered
{

void poolAdjacent(std::span<const double> desired, std::span<const double> weight, std::span<const double> distance,
                  std::span<double> x)
{
    // With the distances subtracted the constraint is "not decreasing": isotonic regression. Blocks of equal
    // value are merged with the one before them as long as they are below it.
    struct Block {
        double sum = 0, weight = 0;
        std::size_t begin = 0;
        [[nodiscard]] double value() const { return sum / weight; }
    };
    std::vector<Block> blocks;
    blocks.reserve(desired.size());
    double offset = 0;
    for (std::size_t i = 0; i < desired.size(); ++i) {
        if (i > 0)
            offset += distance[i - 1];
        blocks.push_back({weight[i] * (desired[i] - offset), weight[i], i});
        while (blocks.size() > 1 && blocks[blocks.size() - 2].value() >= blocks.back().value()) {
            const Block last = blocks.back();
            blocks.pop_back();
            blocks.back().sum += last.sum;
            blocks.back().weight += last.weight;
        }
    }
    offset = 0;
    std::size_t block = 0;
    for (std::size_t i = 0; i < desired.size(); ++i) {
        if (i > 0)
            offset += distance[i - 1];
        if (block + 1 < blocks.size() && blocks[block + 1].begin == i)
            ++block;
        x[i] = blocks[block].value() + offset;
    }
}

namespace
{

class AcrossPlacer
{
public:
    explicit AcrossPlacer(Layered &g) : m_g(g)
    {
        m_distance.resize(g.layers.size());
        for (std::size_t k = 0; k < g.layers.size(); ++k)
            for (std::size_t i = 0; i + 1 < g.layers[k].size(); ++i)
                m_distance[k].push_back(distance(g.layers[k][i], g.layers[k][i + 1]));
        g.cross.assign(g.vertexCount(), 0);
        for (std::size_t k = 0; k < g.layers.size(); ++k) {
            double at = 0;
            for (std::size_t i = 0; i < g.layers[k].size(); ++i) {
                g.cross[g.layers[k][i]] = at;
                if (i + 1 < g.layers[k].size())
                    at += m_distance[k][i];
            }
        }
    }

    enum class Look { Up, Down, Both };
    void place(Index layer, Look look)
    {
        const auto &order = m_g.layers[layer];
        m_desired.resize(order.size());
        m_weight.resize(order.size());
        m_x.resize(order.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            m_sum = m_total = 0;
            if (look != Look::Down)
                pull(order[i], m_g.up);
            if (look != Look::Up)
                pull(order[i], m_g.down);
            m_weight[i] = m_total > 0 ? (m_g.isDummy(order[i]) ? 1e-3 : 1.0) : 1e-6;
            m_desired[i] = m_total > 0 ? m_sum / m_total : m_g.cross[order[i]];
        }
        poolAdjacent(m_desired, m_weight, m_distance[layer], m_x);
        for (std::size_t i = 0; i < order.size(); ++i)
            m_g.cross[order[i]] = m_x[i];
    }

    // Least squares leaves kinks of a fraction of a pixel: whole pixels, and a line that is almost straight is.
    void straighten(Index layer)
    {
        const auto &order = m_g.layers[layer];
        for (std::size_t i = 0; i < order.size(); ++i) {
            double &x = m_g.cross[order[i]];
            x = std::round(x);
            double nearest = kAlmost + 1;
            for (Index u : m_g.up.of(order[i]))
                if (std::abs(m_g.cross[u] - x) < std::abs(nearest))
                    nearest = m_g.cross[u] - x;
            // The gaps between nodes are wide enough to give a little of it away; never more than half a gap.
            if (std::abs(nearest) <= kAlmost)
                x += nearest;
            if (i > 0)
                x = std::max(x, m_g.cross[order[i - 1]] + m_distance[layer][i - 1] - kAlmost);
        }
    }

private:
    static constexpr double kAlmost = 2;

    void pull(Index v, const Neighbours &from)
    {
        for (Index u : from.of(v)) {
            // A line from a node to a node, or on along a chain, wants to be straight; where a chain begins or
            // ends it may bend.
            const double w = m_g.isDummy(u) == m_g.isDummy(v) ? 1.0 : 1e-3;
            m_sum += w * m_g.cross[u];
            m_total += w;
            ++m_g.work;
        }
        ++m_g.work;
    }

    [[nodiscard]] double distance(Index a, Index b) const
    {
        const LayoutOptions &o = m_g.options;
        const double gap = m_g.isDummy(a) && m_g.isDummy(b)   ? o.edgeGap
                           : m_g.isDummy(a) || m_g.isDummy(b) ? (o.edgeGap + o.nodeGap) / 2
                                                              : o.nodeGap;
        const double label = m_g.leftRight() ? o.groupLabel : 0;
        const double outlines = m_g.groupsLeft(m_g.groupOf[a], m_g.groupOf[b]) * o.groupPad +
                                m_g.groupsLeft(m_g.groupOf[b], m_g.groupOf[a]) * (o.groupPad + label);
        return m_g.after[a] + gap + outlines + m_g.before[b];
    }

    Layered &m_g;
    std::vector<std::vector<double>> m_distance; // per layer
    std::vector<double> m_desired, m_weight, m_x;
    double m_sum = 0, m_total = 0;
};

} // namespace

bool placeAcross(Layered &g)
{
    AcrossPlacer placer(g);
    const auto layers = static_cast<Index>(g.layers.size());
    using Look = AcrossPlacer::Look;
    for (int round = 0; round < 4; ++round) {
        if (g.stop.stop_requested())
            return false;
        for (Index k = 1; k < layers; ++k)
            placer.place(k, Look::Up);
        for (Index k = layers - 2; k >= 0; --k)
            placer.place(k, Look::Down);
    }
    for (Index k = 0; k < layers; ++k)
        placer.place(k, Look::Both);
    for (Index k = layers - 1; k >= 0; --k)
        placer.place(k, Look::Both);
    for (Index k = 0; k < layers; ++k)
        placer.straighten(k);
    return !g.stop.stop_requested();
}

} // namespace dblame::layered

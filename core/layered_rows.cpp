// SPDX-License-Identifier: GPL-3.0-or-later
//
// Step 6 of layered_layout, first half: positions along the flow, where rows are cut, and the outlines of groups.
#include <cmath>
#include <map>

#include "core/layered_internal.h"

namespace dblame::layered
{

namespace
{

constexpr double kInf = std::numeric_limits<double>::infinity();

struct GroupSpan {
    Index first = std::numeric_limits<Index>::max(), last = -1; // layers
    // Outlines that share an edge are nested: how many lie inside this one, at its start, its end and its sides.
    int startLevel = 1, endLevel = 1, sideLevel = 1;
    [[nodiscard]] bool empty() const { return last < 0; }
};

class RowPlanner
{
public:
    explicit RowPlanner(Layered &g) : m_g(g), m_o(g.options) {}

    RowPlan run()
    {
        measureGroups();
        measureLayers();
        cutRows();
        outlineGroups();
        return std::move(m_plan);
    }

private:
    [[nodiscard]] Index layerCount() const { return static_cast<Index>(m_g.layers.size()); }
    [[nodiscard]] double startPad() const { return m_o.groupPad + (m_g.leftRight() ? 0 : m_o.groupLabel); }
    [[nodiscard]] double topPad() const { return m_o.groupPad + (m_g.leftRight() ? m_o.groupLabel : 0); }

    void measureGroups()
    {
        const auto &groups = m_g.input.groups;
        m_spans.assign(groups.size(), {});
        for (Index v = 0; v < m_g.real; ++v)
            if (const Index group = m_g.groupOf[v]; group >= 0) {
                m_spans[group].first = std::min(m_spans[group].first, m_g.layerOf[v]);
                m_spans[group].last = std::max(m_spans[group].last, m_g.layerOf[v]);
            }
        for (std::size_t i = groups.size(); i-- > 0;) {
            const GroupSpan &s = m_spans[i];
            if (s.empty() || groups[i].parent < 0)
                continue;
            m_spans[groups[i].parent].first = std::min(m_spans[groups[i].parent].first, s.first);
            m_spans[groups[i].parent].last = std::max(m_spans[groups[i].parent].last, s.last);
        }
        for (std::size_t i = groups.size(); i-- > 0;) {
            const GroupSpan &s = m_spans[i];
            if (s.empty() || groups[i].parent < 0)
                continue;
            GroupSpan &p = m_spans[groups[i].parent];
            if (p.first == s.first)
                p.startLevel = std::max(p.startLevel, s.startLevel + 1);
            if (p.last == s.last)
                p.endLevel = std::max(p.endLevel, s.endLevel + 1);
            p.sideLevel = std::max(p.sideLevel, s.sideLevel + 1);
        }
    }

    void measureLayers()
    {
        m_plan.leadIn.assign(layerCount(), 0);
        m_plan.body.assign(layerCount(), 0);
        m_plan.gap.assign(layerCount(), 0);
        m_extent.assign(layerCount(), {});
        m_lines.assign(layerCount(), 0);
        std::vector<double> startPads(layerCount(), 0), endPads(layerCount(), 0);
        m_cutGroups.assign(static_cast<std::size_t>(layerCount()) + 1, 0);
        for (const GroupSpan &s : m_spans) {
            if (s.empty())
                continue;
            startPads[s.first] = std::max(startPads[s.first], s.startLevel * startPad());
            endPads[s.last] = std::max(endPads[s.last], s.endLevel * m_o.groupPad);
            ++m_cutGroups[s.first];
            --m_cutGroups[s.last];
        }
        for (Index k = 0; k < layerCount(); ++k) {
            double bend = 0;
            for (Index v : m_g.layers[k]) {
                m_extent[k].add(m_g.cross[v] - m_g.before[v], m_g.cross[v] + m_g.after[v]);
                m_lines[k] += m_g.down.of(v).empty() ? 0 : 1;
                for (Index to : m_g.down.of(v))
                    bend = std::max(bend, std::abs(m_g.cross[to] - m_g.cross[v]));
                if (!m_g.isDummy(v)) {
                    m_plan.leadIn[k] = std::max(m_plan.leadIn[k], m_g.input.nodes[v].leadIn);
                    m_plan.body[k] = std::max(m_plan.body[k], m_g.flowSize(v) + m_g.input.nodes[v].leadOut);
                }
            }
            // A steep curve in a narrow gap looks like a crossing: give it room.
            m_plan.gap[k] = m_o.layerGap + std::min(48.0, 0.06 * bend) + endPads[k];
            if (k > 0) {
                m_plan.gap[k - 1] += startPads[k];
                m_cutGroups[k] += m_cutGroups[k - 1];
            }
            m_g.work += static_cast<std::int64_t>(m_g.layers[k].size());
        }
    }

    // Cuts into `count` rows of about the same length, at boundaries that few lines cross.
    [[nodiscard]] std::vector<Row> cut(int count) const
    {
        std::vector<Row> rows;
        double remaining = 0;
        for (Index k = 0; k < layerCount(); ++k)
            remaining += m_plan.thickness(k) + m_plan.gap[k];
        Index first = 0;
        for (int r = 0; r < count && first < layerCount(); ++r) {
            const double target = remaining / (count - r);
            Index best = layerCount() - 1;
            double length = 0, bestCost = kInf, bestLength = remaining;
            for (Index k = first; r + 1 < count && k < layerCount(); ++k) {
                length += m_plan.thickness(k) + m_plan.gap[k];
                if (length > 1.15 * target && bestCost < kInf)
                    break;
                const double cost =
                    2 * std::abs(length - target) / target + 0.4 * (m_lines[k] - 1) + 0.1 * std::max(0, m_cutGroups[k]);
                if (length > 0.6 * target && cost < bestCost) {
                    bestCost = cost;
                    best = k;
                    bestLength = length;
                }
            }
            Row row{first, best, bestLength, {}, 0, 0, 0};
            for (Index k = first; k <= best; ++k)
                row.cross.add(m_extent[k].low, m_extent[k].high);
            rows.push_back(row);
            remaining -= bestLength;
            first = best + 1;
        }
        return rows;
    }

    void cutRows()
    {
        const double gutter = 2 * kGutterPad + m_o.edgeGap;
        const auto fit = [&](const std::vector<Row> &rows) {
            double width = 0, height = 0;
            for (const Row &row : rows) {
                width = std::max(width, row.length);
                height += row.cross.high - row.cross.low + gutter;
            }
            return std::min(m_o.aspect / width, 1 / height);
        };
        m_plan.rows = cut(1);
        if (m_o.aspect > 0 && layerCount() > 1) {
            const Row all = m_plan.rows.front();
            const double height = all.cross.high - all.cross.low + gutter;
            const int guess = static_cast<int>(std::lround(std::sqrt(all.length / (m_o.aspect * height))));
            for (int count = std::max(2, guess - 2); count <= guess + 3 && count <= layerCount(); ++count)
                // One more row has to earn its keep: rows interrupt the reader.
                if (auto rows = cut(count); fit(rows) > 1.02 * fit(m_plan.rows))
                    m_plan.rows = std::move(rows);
        }
        m_plan.rowOf.assign(layerCount(), 0);
        m_plan.start.assign(layerCount(), 0);
        for (std::size_t r = 0; r < m_plan.rows.size(); ++r) {
            double flow = 0;
            for (Index k = m_plan.rows[r].first; k <= m_plan.rows[r].last; ++k) {
                m_plan.rowOf[k] = static_cast<Index>(r);
                m_plan.start[k] = flow;
                flow += m_plan.thickness(k) + m_plan.gap[k];
            }
            m_plan.rows[r].start = 0;
            m_plan.rows[r].end = m_plan.end(m_plan.rows[r].last);
        }
    }

    // Outlines in row coordinates; they widen their rows.
    void outlineGroups()
    {
        struct Inside {
            Extent cross;
            Index first = std::numeric_limits<Index>::max(), last = -1;
        };
        m_plan.outlines.resize(m_g.input.groups.size());
        std::vector<std::map<Index, Inside>> inside(m_g.input.groups.size());
        for (Index v = 0; v < m_g.vertexCount(); ++v) {
            const Index layer = m_g.layerOf[v];
            for (Index group = m_g.groupOf[v]; group >= 0; group = m_g.input.groups[group].parent) {
                Inside &in = inside[group][m_plan.rowOf[layer]];
                in.cross.add(m_g.cross[v] - m_g.before[v], m_g.cross[v] + m_g.after[v]);
                in.first = std::min(in.first, layer);
                in.last = std::max(in.last, layer);
                ++m_g.work;
            }
        }
        for (std::size_t i = 0; i < inside.size(); ++i) {
            const GroupSpan &span = m_spans[i];
            for (const auto &[row, in] : inside[i]) {
                const int startLevel = in.first == span.first ? span.startLevel : span.sideLevel;
                const int endLevel = in.last == span.last ? span.endLevel : span.sideLevel;
                const double from = m_plan.start[in.first] - startLevel * startPad();
                const double to = m_plan.end(in.last) + endLevel * m_o.groupPad;
                const double low = in.cross.low - span.sideLevel * topPad();
                const double high = in.cross.high + span.sideLevel * m_o.groupPad;
                m_plan.outlines[i].push_back({row, {from, low, to - from, high - low}});
                m_plan.rows[row].cross.add(low, high);
                m_plan.rows[row].start = std::min(m_plan.rows[row].start, from);
                m_plan.rows[row].end = std::max(m_plan.rows[row].end, to);
            }
        }
    }

    Layered &m_g;
    const LayoutOptions &m_o;
    RowPlan m_plan;
    std::vector<GroupSpan> m_spans;
    std::vector<Extent> m_extent;          // per layer
    std::vector<int> m_lines, m_cutGroups; // that a cut after the layer would meet
};

} // namespace

RowPlan planRows(Layered &g)
{
    return RowPlanner(g).run();
}

} // namespace dblame::layered

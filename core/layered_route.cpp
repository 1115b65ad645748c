// SPDX-License-Identifier: GPL-3.0-or-later
//
// Step 6 of layered_layout, second half: gutters, ports and the edges' paths.
//
// Rows lie under each other like lines of text, with a gutter above each and below the last. A line that goes
// on in the next row turns into the gutter between them, runs back to the left margin and enters there. Lines
// too long for a chain of dummies run in gutters too: the gaps between layers hold no nodes, so every such
// path is free of boxes.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/layered_internal.h"

namespace dblame::layered
{

namespace
{

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int kMostLanes = 48; // per gutter; beyond it lanes are shared

// A piece of a long path that runs along a gutter.
struct GutterRun {
    Index gutter = 0, source = 0;
    double from = 0, to = 0;
    int lane = 0;
};

struct LanePath {                 // of one edge
    double leave = 0, arrive = 0; // where it leaves the layer gap after its source and before its target
    int out = -1, in = -1;        // runs; equal when one gutter does
    int margin = 0;               // which vertical on the left margin, when two gutters are needed
};

class Router
{
public:
    Router(Layered &g, LayoutResult &result) : m_g(g), m_o(g.options), m_out(result) {}

    bool run()
    {
        if (m_g.layers.empty()) {
            m_out.edges.resize(m_g.routes.size());
            m_out.groups.resize(m_g.input.groups.size());
            return true;
        }
        m_plan = planRows(m_g);
        planGutters();
        shiftRows();
        if (m_g.stop.stop_requested())
            return false;
        placePorts();
        emit();
        return !m_g.stop.stop_requested();
    }

private:
    using Point = LayoutPoint; // x along the flow, y across it, until turn()

    [[nodiscard]] double at(Index v) const { return m_g.cross[v] + m_plan.rows[m_plan.rowOf[m_g.layerOf[v]]].shift; }

    [[nodiscard]] double boxStart(Index v) const
    {
        return m_plan.start[m_g.layerOf[v]] + m_plan.leadIn[m_g.layerOf[v]];
    }

    [[nodiscard]] double leftMargin() const
    {
        double start = 0;
        for (const Row &row : m_plan.rows)
            start = std::min(start, row.start);
        return start - kGutterPad;
    }

    void planGutters()
    {
        // Lines that continue in the next row, lowest first: it turns first, takes the upper lane and the outer
        // margin, so that lines that keep their order do not cross.
        m_returns.resize(m_plan.rows.size());
        for (std::size_t r = 0; r + 1 < m_plan.rows.size(); ++r) {
            const auto &layer = m_g.layers[m_plan.rows[r].last];
            for (auto it = layer.rbegin(); it != layer.rend(); ++it)
                if (!m_g.down.of(*it).empty()) {
                    m_returnOf[*it] = static_cast<int>(m_returns[r].size());
                    m_returns[r].push_back(*it);
                }
            m_mostReturns = std::max(m_mostReturns, static_cast<int>(m_returns[r].size()));
        }
        m_lanes.assign(m_plan.rows.size() + 1, 0);
        for (std::size_t r = 0; r + 1 < m_plan.rows.size(); ++r)
            m_lanes[r + 1] = std::min(kMostLanes, static_cast<int>(m_returns[r].size()));
        planLongEdges();
    }

    void planLongEdges()
    {
        std::map<std::pair<Index, Index>, int> runOf; // one run per source and gutter, shared by its edges
        const auto runIn = [&](Index gutter, Index source, double a, double b) {
            const auto [it, fresh] = runOf.try_emplace({gutter, source}, static_cast<int>(m_runs.size()));
            if (fresh)
                m_runs.push_back({gutter, source, std::min(a, b), std::max(a, b), 0});
            GutterRun &run = m_runs[it->second];
            run.from = std::min({run.from, a, b});
            run.to = std::max({run.to, a, b});
            return it->second;
        };
        m_lanePaths.resize(m_g.routes.size());
        std::map<Index, int> marginOf;
        for (std::size_t e = 0; e < m_g.routes.size(); ++e) {
            const Route &route = m_g.routes[e];
            if (route.from < 0 || !route.lane)
                continue;
            LanePath &path = m_lanePaths[e];
            const Index from = m_g.layerOf[route.from], to = m_g.layerOf[route.to];
            path.leave = m_plan.end(from) + m_o.layerGap * (0.35 + 0.05 * (route.from % 5));
            path.arrive = m_plan.start[to] - m_o.layerGap * (0.35 + 0.05 * (route.from % 5));
            const Index rowFrom = m_plan.rowOf[from], rowTo = m_plan.rowOf[to];
            if (rowTo - rowFrom <= 1) {
                path.out = path.in = runIn(rowFrom + 1, route.from, path.leave, path.arrive);
                continue;
            }
            path.margin =
                marginOf.try_emplace(route.from, static_cast<int>(marginOf.size())).first->second % kMostLanes;
            const double x = marginX(path.margin);
            path.out = runIn(rowFrom + 1, route.from, path.leave, x);
            path.in = runIn(rowTo, route.from, x, path.arrive);
        }
        // First fit by where they start.
        std::vector<int> order(m_runs.size());
        for (std::size_t i = 0; i < order.size(); ++i)
            order[i] = static_cast<int>(i);
        std::sort(order.begin(), order.end(),
                  [&](int a, int b) { return std::pair(m_runs[a].from, a) < std::pair(m_runs[b].from, b); });
        std::vector<std::vector<double>> freeAt(m_lanes.size());
        const std::vector<int> reserved = m_lanes;
        for (int i : order) {
            GutterRun &run = m_runs[i];
            auto &lanes = freeAt[run.gutter];
            std::size_t lane = 0;
            while (lane < lanes.size() && lanes[lane] > run.from)
                ++lane;
            if (lane == lanes.size() && lanes.size() < kMostLanes)
                lanes.push_back(-kInf);
            lane = std::min(lane, lanes.size() - 1);
            lanes[lane] = std::max(lanes[lane], run.to + m_o.edgeGap);
            run.lane = reserved[run.gutter] + static_cast<int>(lane);
            m_lanes[run.gutter] = std::max(m_lanes[run.gutter], run.lane + 1);
            m_g.work += 1 + static_cast<std::int64_t>(lane);
        }
    }

    [[nodiscard]] double marginX(int lane) const
    {
        return leftMargin() - (std::min(kMostLanes, m_mostReturns) + 1 + lane) * m_o.edgeGap;
    }

    void shiftRows()
    {
        double cross = 0;
        m_gutterTop.resize(m_plan.rows.size() + 1);
        for (std::size_t r = 0; r <= m_plan.rows.size(); ++r) {
            m_gutterTop[r] = cross + kGutterPad;
            const bool outer = r == 0 || r == m_plan.rows.size();
            if (!outer || m_lanes[r] > 0)
                cross += 2 * kGutterPad + std::max(0, m_lanes[r] - 1) * m_o.edgeGap;
            if (r < m_plan.rows.size()) {
                m_plan.rows[r].shift = cross - m_plan.rows[r].cross.low;
                cross += m_plan.rows[r].cross.high - m_plan.rows[r].cross.low;
            }
        }
        m_height = cross;
    }

    // Where each edge arrives at its target's side: near the line it comes from, marks kept apart.
    void placePorts()
    {
        std::vector<std::vector<std::pair<double, Index>>> incoming(m_g.real);
        for (std::size_t e = 0; e < m_g.routes.size(); ++e) {
            const Route &route = m_g.routes[e];
            if (route.from < 0)
                continue;
            double from = route.lane ? kInf : 0;
            if (route.lane && m_plan.rowOf[m_g.layerOf[route.from]] != m_plan.rowOf[m_g.layerOf[route.to]])
                from = -kInf;
            if (!route.lane)
                from = m_g.cross[m_g.carrier(route.from, m_g.layerOf[route.to] - 1)];
            incoming[route.to].emplace_back(from, static_cast<Index>(e));
        }
        m_port.assign(m_g.routes.size(), 0);
        for (Index v = 0; v < m_g.real; ++v) {
            auto &in = incoming[v];
            std::sort(in.begin(), in.end());
            const double half = m_g.crossSize(v) / 2;
            const auto mark = [&](std::size_t i) { return m_g.input.edges[in[i].second].mark; };
            const auto margin = [&](std::size_t i) { return std::min(half, std::max(6.0, mark(i) / 2)); };
            // Forwards with minimum distances, then back from the far end where that ran over.
            for (std::size_t i = 0; i < in.size(); ++i) {
                const double middle = m_g.cross[v];
                double at = std::clamp(in[i].first, middle - half + margin(i), middle + half - margin(i));
                if (i > 0)
                    at = std::max(at, m_port[in[i - 1].second] + apart(mark(i - 1), mark(i), 2 * half, in.size()));
                m_port[in[i].second] = at;
            }
            for (std::size_t i = in.size(); i-- > 0;) {
                double limit = m_g.cross[v] + half - margin(i);
                if (i + 1 < in.size())
                    limit = m_port[in[i + 1].second] - apart(mark(i), mark(i + 1), 2 * half, in.size());
                m_port[in[i].second] = std::max(std::min(m_port[in[i].second], limit), m_g.cross[v] - half);
            }
        }
    }

    // Between two ports of one side; with more of them than the side has room for, evenly over what there is.
    [[nodiscard]] static double apart(double a, double b, double side, std::size_t count)
    {
        const double wanted = std::max(8.0, (a + b) / 2 + (a > 0 && b > 0 ? 2 : 0));
        const double room = side - std::max({2 * std::min(6.0, side / 2), (a + b) / 2});
        return std::min(wanted, std::max(0.0, room) / static_cast<double>(std::max<std::size_t>(count, 2) - 1));
    }

    [[nodiscard]] double laneAt(Index gutter, int lane) const
    {
        return m_gutterTop[gutter] + std::min(lane, 2 * kMostLanes) * m_o.edgeGap;
    }

    void lanePath(std::size_t e, std::vector<Point> &points) const
    {
        const Route &route = m_g.routes[e];
        const LanePath &path = m_lanePaths[e];
        const double out = laneAt(m_runs[path.out].gutter, m_runs[path.out].lane);
        const double port = m_port[e] + m_plan.rows[m_plan.rowOf[m_g.layerOf[route.to]]].shift;
        points.push_back({path.leave, at(route.from)});
        points.push_back({path.leave, out});
        if (path.in != path.out) {
            const double in = laneAt(m_runs[path.in].gutter, m_runs[path.in].lane);
            points.push_back({marginX(path.margin), out});
            points.push_back({marginX(path.margin), in});
            points.push_back({path.arrive, in});
        } else {
            points.push_back({path.arrive, out});
        }
        points.push_back({path.arrive, port});
        points.push_back({boxStart(route.to), port});
    }

    void chainPath(std::size_t e, std::vector<Point> &points) const
    {
        const Route &route = m_g.routes[e];
        const Index last = m_g.layerOf[route.to] - 1;
        for (Index k = m_g.layerOf[route.from]; k <= last; ++k) {
            const Index v = m_g.carrier(route.from, k);
            const double next =
                k == last ? m_port[e] + m_plan.rows[m_plan.rowOf[k + 1]].shift : at(m_g.carrier(route.from, k + 1));
            if (m_g.isDummy(v))
                points.push_back({m_plan.start[k], at(v)});
            points.push_back({m_plan.end(k), at(v)});
            if (m_plan.rowOf[k] != m_plan.rowOf[k + 1]) {
                const Index row = m_plan.rowOf[k];
                const int i = std::min(kMostLanes - 1, m_returnOf.at(v));
                const int count = std::min(kMostLanes, static_cast<int>(m_returns[row].size()));
                const double right = m_plan.rows[row].end + kGutterPad + i * m_o.edgeGap;
                const double left = leftMargin() - (count - 1 - i) * m_o.edgeGap;
                const double lane = laneAt(row + 1, i);
                points.insert(points.end(), {{right, at(v)}, {right, lane}, {left, lane}, {left, next}});
            }
            points.push_back({m_plan.start[k + 1], next});
        }
        points.push_back({boxStart(route.to), m_port[e] + m_plan.rows[m_plan.rowOf[last + 1]].shift});
    }

    // Drops points in the middle of straight lines.
    static void simplify(std::vector<Point> &points)
    {
        std::size_t kept = 0;
        for (const Point &p : points) {
            if (kept > 0 && points[kept - 1] == p)
                continue;
            if (kept > 1) {
                const Point &a = points[kept - 2], &b = points[kept - 1];
                if ((a.y == b.y && b.y == p.y) || (a.x == b.x && b.x == p.x)) {
                    points[kept - 1] = p;
                    continue;
                }
            }
            points[kept++] = p;
        }
        points.resize(kept);
    }

    void emit()
    {
        m_out.nodes.resize(m_g.real);
        m_out.layer.assign(m_g.layerOf.begin(), m_g.layerOf.begin() + m_g.real);
        m_out.row.resize(m_g.real);
        Extent flow{m_plan.rows.front().start, m_plan.rows.front().end}, cross{0, m_height};
        for (Index v = 0; v < m_g.real; ++v) {
            m_out.row[v] = m_plan.rowOf[m_g.layerOf[v]];
            m_out.nodes[v] = {boxStart(v), at(v) - m_g.crossSize(v) / 2, m_g.flowSize(v), m_g.crossSize(v)};
        }
        for (const Row &row : m_plan.rows)
            flow.add(row.start, row.end);
        m_out.edges.resize(m_g.routes.size());
        for (std::size_t e = 0; e < m_g.routes.size(); ++e) {
            const Route &route = m_g.routes[e];
            if (route.from < 0)
                continue;
            auto &points = m_out.edges[e];
            points.push_back({boxStart(route.from) + m_g.flowSize(route.from), at(route.from)});
            if (route.lane)
                lanePath(e, points);
            else
                chainPath(e, points);
            m_g.work += static_cast<std::int64_t>(points.size());
            simplify(points);
            if (route.reversed)
                std::reverse(points.begin(), points.end());
            for (const Point &p : points) {
                flow.add(p.x, p.x);
                cross.add(p.y, p.y);
            }
        }
        m_out.groups.resize(m_plan.outlines.size());
        for (std::size_t i = 0; i < m_plan.outlines.size(); ++i)
            for (const auto &[row, rect] : m_plan.outlines[i])
                m_out.groups[i].push_back({rect.x, rect.y + m_plan.rows[row].shift, rect.width, rect.height});
        turn(flow, cross);
    }

    // To the origin, and from (flow, cross) to (x, y).
    void turn(const Extent &flow, const Extent &cross)
    {
        const bool across = !m_g.leftRight();
        const auto point = [&](Point &p) {
            p = {p.x - flow.low, p.y - cross.low};
            if (across)
                std::swap(p.x, p.y);
        };
        const auto rect = [&](LayoutRect &r) {
            r.x -= flow.low;
            r.y -= cross.low;
            if (across) {
                std::swap(r.x, r.y);
                std::swap(r.width, r.height);
            }
        };
        for (LayoutRect &r : m_out.nodes)
            rect(r);
        for (auto &outlines : m_out.groups)
            for (LayoutRect &r : outlines)
                rect(r);
        for (auto &points : m_out.edges)
            for (Point &p : points)
                point(p);
        m_out.width = flow.high - flow.low;
        m_out.height = cross.high - cross.low;
        if (across)
            std::swap(m_out.width, m_out.height);
    }

    Layered &m_g;
    const LayoutOptions &m_o;
    LayoutResult &m_out;
    RowPlan m_plan;
    std::vector<std::vector<Index>> m_returns; // per row: what goes on in the next
    std::map<Index, int> m_returnOf;
    int m_mostReturns = 0;
    std::vector<int> m_lanes; // per gutter: how many
    std::vector<GutterRun> m_runs;
    std::vector<LanePath> m_lanePaths; // per edge
    std::vector<double> m_gutterTop, m_port;
    double m_height = 0;
};

} // namespace

bool placeAlong(Layered &g, LayoutResult &result)
{
    return Router(g, result).run();
}

} // namespace dblame::layered

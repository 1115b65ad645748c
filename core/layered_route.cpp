// SPDX-License-Identifier: GPL-3.0-or-later
//
// Step 6 of layered_layout: positions along the flow, rows, outlines of groups, and the edges' paths.
//
// Rows lie under each other like lines of text, with a gutter above each and below the last. A line that goes
// on in the next row turns into the gutter between them, runs back to the left margin and enters there. Lines
// too long for a chain of dummies run in gutters too: the gaps between layers hold no nodes, so every such
// path is free of boxes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/layered_internal.h"

namespace dblame::layered
{

namespace
{

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int kMostLanes = 48; // per gutter; beyond it lanes are shared

struct Extent {
    double low = kInf, high = -kInf;
    void add(double a, double b)
    {
        low = std::min(low, a);
        high = std::max(high, b);
    }
    [[nodiscard]] bool empty() const { return low > high; }
};

struct GroupSpan {
    Index first = std::numeric_limits<Index>::max(), last = -1; // layers
    // Outlines that share an edge are nested: how many lie inside this one, at its start, its end and its sides.
    int startLevel = 1, endLevel = 1, sideLevel = 1;
    [[nodiscard]] bool empty() const { return last < 0; }
};

struct Row {
    Index first = 0, last = 0; // layers
    double length = 0;
    Extent cross; // of what is in it, before the shift
    double shift = 0;
    double start = 0, end = 0; // of its boxes and outlines, along the flow
};

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

class AlongPlacer
{
public:
    AlongPlacer(Layered &g, LayoutResult &result) : m_g(g), m_o(g.options), m_out(result) {}

    bool run()
    {
        if (m_g.layers.empty()) {
            m_out.edges.resize(m_g.routes.size());
            m_out.groups.resize(m_g.input.groups.size());
            return true;
        }
        measureGroups();
        measureLayers();
        cutRows();
        outlineGroups();
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

    [[nodiscard]] Index layerCount() const { return static_cast<Index>(m_g.layers.size()); }
    [[nodiscard]] double startPad() const { return m_o.groupPad + (m_g.leftRight() ? 0 : m_o.groupLabel); }
    [[nodiscard]] double topPad() const { return m_o.groupPad + (m_g.leftRight() ? m_o.groupLabel : 0); }
    [[nodiscard]] double at(Index v) const { return m_g.cross[v] + m_rows[m_rowOf[m_g.layerOf[v]]].shift; }

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
        m_leadIn.assign(layerCount(), 0);
        m_body.assign(layerCount(), 0);
        m_gap.assign(layerCount(), 0);
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
                    m_leadIn[k] = std::max(m_leadIn[k], m_g.input.nodes[v].leadIn);
                    m_body[k] = std::max(m_body[k], m_g.flowSize(v) + m_g.input.nodes[v].leadOut);
                }
            }
            // A steep curve in a narrow gap looks like a crossing: give it room.
            m_gap[k] = m_o.layerGap + std::min(48.0, 0.06 * bend) + endPads[k];
            if (k > 0) {
                m_gap[k - 1] += startPads[k];
                m_cutGroups[k] += m_cutGroups[k - 1];
            }
            m_g.work += static_cast<std::int64_t>(m_g.layers[k].size());
        }
    }

    [[nodiscard]] double thickness(Index k) const { return m_leadIn[k] + m_body[k]; }

    // Cuts into `count` rows of about the same length, at boundaries that few lines cross.
    [[nodiscard]] std::vector<Row> cut(int count) const
    {
        std::vector<Row> rows;
        double remaining = 0;
        for (Index k = 0; k < layerCount(); ++k)
            remaining += thickness(k) + m_gap[k];
        Index first = 0;
        for (int r = 0; r < count && first < layerCount(); ++r) {
            const double target = remaining / (count - r);
            Index best = layerCount() - 1;
            double length = 0, bestCost = kInf, bestLength = remaining;
            for (Index k = first; r + 1 < count && k < layerCount(); ++k) {
                length += thickness(k) + m_gap[k];
                if (length > 1.15 * target && bestCost < kInf)
                    break;
                const double cost = 2 * std::abs(length - target) / target + 0.4 * (m_lines[k] - 1) +
                                    0.1 * std::max(0, m_cutGroups[k]);
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
        const double gutter = 2 * gutterPad() + m_o.edgeGap;
        const auto fit = [&](const std::vector<Row> &rows) {
            double width = 0, height = 0;
            for (const Row &row : rows) {
                width = std::max(width, row.length);
                height += row.cross.high - row.cross.low + gutter;
            }
            return std::min(m_o.aspect / width, 1 / height);
        };
        m_rows = cut(1);
        if (m_o.aspect > 0 && layerCount() > 1) {
            const Row all = m_rows.front();
            const double height = all.cross.high - all.cross.low + gutter;
            const int guess = static_cast<int>(std::lround(std::sqrt(all.length / (m_o.aspect * height))));
            for (int count = std::max(2, guess - 2); count <= guess + 3 && count <= layerCount(); ++count)
                // One more row has to earn its keep: rows interrupt the reader.
                if (auto rows = cut(count); fit(rows) > 1.02 * fit(m_rows))
                    m_rows = std::move(rows);
        }
        m_rowOf.assign(layerCount(), 0);
        m_start.assign(layerCount(), 0);
        for (std::size_t r = 0; r < m_rows.size(); ++r) {
            double flow = 0;
            for (Index k = m_rows[r].first; k <= m_rows[r].last; ++k) {
                m_rowOf[k] = static_cast<Index>(r);
                m_start[k] = flow;
                flow += thickness(k) + m_gap[k];
            }
            m_rows[r].start = 0;
            m_rows[r].end = end(m_rows[r].last);
        }
    }

    [[nodiscard]] double gutterPad() const { return 12; }
    [[nodiscard]] double end(Index k) const { return m_start[k] + thickness(k); }
    [[nodiscard]] double boxStart(Index v) const { return m_start[m_g.layerOf[v]] + m_leadIn[m_g.layerOf[v]]; }

    // Outlines in row coordinates; they widen their rows.
    void outlineGroups()
    {
        struct Inside {
            Extent cross;
            Index first = std::numeric_limits<Index>::max(), last = -1;
        };
        m_outlines.resize(m_g.input.groups.size());
        std::vector<std::map<Index, Inside>> inside(m_g.input.groups.size());
        for (Index v = 0; v < m_g.vertexCount(); ++v) {
            const Index layer = m_g.layerOf[v];
            for (Index group = m_g.groupOf[v]; group >= 0; group = m_g.input.groups[group].parent) {
                Inside &in = inside[group][m_rowOf[layer]];
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
                const double from = m_start[in.first] - startLevel * startPad();
                const double to = end(in.last) + endLevel * m_o.groupPad;
                const double low = in.cross.low - span.sideLevel * topPad();
                const double high = in.cross.high + span.sideLevel * m_o.groupPad;
                m_outlines[i].push_back({row, {from, low, to - from, high - low}});
                m_rows[row].cross.add(low, high);
                m_rows[row].start = std::min(m_rows[row].start, from);
                m_rows[row].end = std::max(m_rows[row].end, to);
            }
        }
    }

    [[nodiscard]] double leftMargin() const
    {
        double start = 0;
        for (const Row &row : m_rows)
            start = std::min(start, row.start);
        return start - gutterPad();
    }

    void planGutters()
    {
        // Lines that continue in the next row, lowest first: it turns first, takes the upper lane and the outer
        // margin, so that lines that keep their order do not cross.
        m_returns.resize(m_rows.size());
        for (std::size_t r = 0; r + 1 < m_rows.size(); ++r) {
            const auto &layer = m_g.layers[m_rows[r].last];
            for (auto it = layer.rbegin(); it != layer.rend(); ++it)
                if (!m_g.down.of(*it).empty()) {
                    m_returnOf[*it] = static_cast<int>(m_returns[r].size());
                    m_returns[r].push_back(*it);
                }
            m_mostReturns = std::max(m_mostReturns, static_cast<int>(m_returns[r].size()));
        }
        m_lanes.assign(m_rows.size() + 1, 0);
        for (std::size_t r = 0; r + 1 < m_rows.size(); ++r)
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
            path.leave = end(from) + m_o.layerGap * (0.35 + 0.05 * (route.from % 5));
            path.arrive = m_start[to] - m_o.layerGap * (0.35 + 0.05 * (route.from % 5));
            const Index rowFrom = m_rowOf[from], rowTo = m_rowOf[to];
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
                lanes.push_back(0);
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
        m_gutterTop.resize(m_rows.size() + 1);
        for (std::size_t r = 0; r <= m_rows.size(); ++r) {
            m_gutterTop[r] = cross + gutterPad();
            const bool outer = r == 0 || r == m_rows.size();
            if (!outer || m_lanes[r] > 0)
                cross += 2 * gutterPad() + std::max(0, m_lanes[r] - 1) * m_o.edgeGap;
            if (r < m_rows.size()) {
                m_rows[r].shift = cross - m_rows[r].cross.low;
                cross += m_rows[r].cross.high - m_rows[r].cross.low;
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
            if (route.lane && m_rowOf[m_g.layerOf[route.from]] != m_rowOf[m_g.layerOf[route.to]])
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
        const double port = m_port[e] + m_rows[m_rowOf[m_g.layerOf[route.to]]].shift;
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
                k == last ? m_port[e] + m_rows[m_rowOf[k + 1]].shift : at(m_g.carrier(route.from, k + 1));
            if (m_g.isDummy(v))
                points.push_back({m_start[k], at(v)});
            points.push_back({end(k), at(v)});
            if (m_rowOf[k] != m_rowOf[k + 1]) {
                const Index row = m_rowOf[k];
                const int i = std::min(kMostLanes - 1, m_returnOf.at(v));
                const int count = std::min(kMostLanes, static_cast<int>(m_returns[row].size()));
                const double right = m_rows[row].end + gutterPad() + i * m_o.edgeGap;
                const double left = leftMargin() - (count - 1 - i) * m_o.edgeGap;
                const double lane = laneAt(row + 1, i);
                points.insert(points.end(), {{right, at(v)}, {right, lane}, {left, lane}, {left, next}});
            }
            points.push_back({m_start[k + 1], next});
        }
        points.push_back({boxStart(route.to), m_port[e] + m_rows[m_rowOf[last + 1]].shift});
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
        Extent flow{m_rows.front().start, m_rows.front().end}, cross{0, m_height};
        for (Index v = 0; v < m_g.real; ++v) {
            m_out.row[v] = m_rowOf[m_g.layerOf[v]];
            m_out.nodes[v] = {boxStart(v), at(v) - m_g.crossSize(v) / 2, m_g.flowSize(v), m_g.crossSize(v)};
        }
        for (const Row &row : m_rows)
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
        m_out.groups.resize(m_outlines.size());
        for (std::size_t i = 0; i < m_outlines.size(); ++i)
            for (const auto &[row, rect] : m_outlines[i])
                m_out.groups[i].push_back({rect.x, rect.y + m_rows[row].shift, rect.width, rect.height});
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
    std::vector<GroupSpan> m_spans;
    std::vector<double> m_leadIn, m_body, m_gap, m_start; // per layer; m_start within its row
    std::vector<Extent> m_extent;
    std::vector<int> m_lines, m_cutGroups; // that a cut after the layer would meet
    std::vector<Row> m_rows;
    std::vector<Index> m_rowOf;
    std::vector<std::vector<std::pair<Index, LayoutRect>>> m_outlines; // per group: row and rectangle
    std::vector<std::vector<Index>> m_returns;                         // per row: what goes on in the next
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
    return AlongPlacer(g, result).run();
}

} // namespace dblame::layered

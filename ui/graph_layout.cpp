// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace dblame::ui
{

namespace
{

constexpr double kMinWidth = 96, kMaxWidth = 268;
constexpr double kTextMargins = 22;             // the ramp bar and the room at both sides of the words
constexpr double kHexPitch = 2 * kHexWidth + 2; // of hexagons in a row
constexpr double kHexGap = 4;                   // between a hexagon and the box it belongs to
constexpr double kSideGap = 9;                  // the same for weights: the stem is seen

double widthOf(const QString &text, const std::vector<float> &widths, double mean)
{
    double width = 0;
    for (const QChar c : text)
        width += c.unicode() < widths.size() ? static_cast<double>(widths[c.unicode()]) : mean;
    return width;
}

// The outermost collapsed group that holds `group`, or -1.
std::int32_t hiddenBy(const GraphDocument &document, const std::set<std::int32_t> &collapsed, std::int32_t group)
{
    std::int32_t found = -1;
    for (; group >= 0; group = document.groups[group].parent)
        if (collapsed.contains(group))
            found = group;
    return found;
}

class GraphPlacer
{
public:
    GraphPlacer(const GraphLayoutRequest &request) : m_doc(*request.document), m_options(request.options)
    {
        m_result.document = request.document;
        m_result.options = request.options;
        m_result.request = request.serial;
        m_result.downwards = request.options.flow == GraphFlow::TopBottom || request.options.flow == GraphFlow::Columns;
    }

    GraphLayoutResult run(std::stop_token stop)
    {
        collectItems();
        collectMarks();
        collectGroups();
        sizeItems();
        collectLines();
        LayoutOptions options;
        options.direction = m_result.downwards ? LayoutDirection::TopBottom : LayoutDirection::LeftRight;
        if (m_options.flow == GraphFlow::Rows)
            options.aspect = m_options.aspect;
        else if (m_options.flow == GraphFlow::Columns)
            options.aspect = 1 / m_options.aspect;
        // Letters are what the space is for: gaps are as narrow as lines and outlines allow.
        options.layerGap = m_result.downwards ? 18 : 12;
        options.nodeGap = 16;
        options.groupPad = 7;
        options.groupLabel = 14;
        const LayoutResult layout = layoutLayered(m_input, options, std::move(stop));
        m_result.cancelled = layout.cancelled;
        if (!layout.cancelled)
            place(layout);
        return std::move(m_result);
    }

private:
    struct Marks {                                  // of one item, in the order of drawing
        std::vector<std::int32_t> out, side, loose; // loose: input sites whose source is not drawn
        std::size_t longestIn = 0;
        int markedIn = 0;
    };

    [[nodiscard]] bool downwards() const { return m_result.downwards; }

    void collectItems()
    {
        m_result.itemOfNode.assign(m_doc.nodes.size(), -1);
        std::map<std::int32_t, std::int32_t> ofGroup;
        for (std::size_t i = 0; i < m_doc.nodes.size(); ++i) {
            const std::int32_t group = hiddenBy(m_doc, m_options.collapsed, m_doc.nodes[i].group);
            const auto next = static_cast<std::int32_t>(m_result.items.size());
            std::int32_t item = next;
            if (group >= 0)
                item = ofGroup.try_emplace(group, next).first->second;
            m_result.itemOfNode[i] = item;
            if (item == next)
                m_result.items.push_back({group < 0 ? static_cast<std::int32_t>(i) : -1, group, {}});
        }
    }

    void collectMarks()
    {
        m_marks.resize(m_result.items.size());
        for (std::size_t i = 0; i < m_result.items.size(); ++i) {
            const std::int32_t node = m_result.items[i].node;
            if (node < 0)
                continue;
            for (std::int32_t m : m_doc.nodes[node].marks) {
                const GraphMark &mark = m_doc.marks[m];
                if (mark.place == GraphMark::Place::Side)
                    m_marks[i].side.push_back(m);
                else if (mark.place == GraphMark::Place::Out)
                    m_marks[i].out.push_back(m);
                else if (mark.edge < 0)
                    m_marks[i].loose.push_back(m);
            }
        }
    }

    // Outlines are drawn for groups that are open and not inside a collapsed one.
    void collectGroups()
    {
        m_layoutGroup.assign(m_doc.groups.size(), -1);
        std::vector<int> seen(m_doc.groups.size(), 0);
        for (const GraphItem &item : m_result.items)
            for (std::int32_t g = groupAround(item); g >= 0; g = m_doc.groups[g].parent)
                ++seen[g];
        for (std::size_t g = 0; g < m_doc.groups.size(); ++g) {
            if (seen[g] == 0)
                continue;
            const std::int32_t parent = m_doc.groups[g].parent;
            m_layoutGroup[g] = static_cast<std::int32_t>(m_input.groups.size());
            m_input.groups.push_back({parent >= 0 ? m_layoutGroup[parent] : -1});
            m_groups.push_back(static_cast<std::int32_t>(g));
        }
    }

    [[nodiscard]] std::int32_t groupAround(const GraphItem &item) const
    {
        return item.node >= 0 ? m_doc.nodes[item.node].group : m_doc.groups[item.group].parent;
    }

    void collectLines()
    {
        std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> lineOf;
        for (std::size_t e = 0; e < m_doc.edges.size(); ++e) {
            const std::int32_t from = m_result.itemOfNode[m_doc.edges[e].from];
            const std::int32_t to = m_result.itemOfNode[m_doc.edges[e].to];
            if (from == to)
                continue;
            const auto [it, fresh] = lineOf.try_emplace({from, to}, static_cast<std::int32_t>(m_result.lines.size()));
            if (fresh) {
                m_result.lines.push_back({from, to, {}});
                m_input.edges.push_back({from, to, 0});
                m_lineMarks.emplace_back();
            }
            // A collapsed group hides what belongs to its inside.
            if (m_result.items[to].node < 0)
                continue;
            auto &marks = m_lineMarks[it->second];
            marks.insert(marks.end(), m_doc.edges[e].marks.begin(), m_doc.edges[e].marks.end());
            if (!marks.empty())
                m_input.edges[it->second].mark = 2 * (downwards() ? kHexWidth : kHexHeight) + 2;
        }
        for (std::size_t l = 0; l < m_lineMarks.size(); ++l) {
            Marks &marks = m_marks[m_result.lines[l].to];
            marks.longestIn = std::max(marks.longestIn, m_lineMarks[l].size());
            marks.markedIn += m_lineMarks[l].empty() ? 0 : 1;
        }
        for (std::size_t i = 0; i < m_input.nodes.size(); ++i) {
            LayoutNode &node = m_input.nodes[i];
            const Marks &marks = m_marks[i];
            const double along = downwards() ? 2 * kHexHeight + 2 : kHexPitch;
            node.leadIn = marks.longestIn > 0 ? static_cast<double>(marks.longestIn) * along + kHexGap : 0;
            // Each marked line needs a hexagon's width of its target's side.
            double &across = downwards() ? node.width : node.height;
            across = std::max(across, marks.markedIn * (2 * (downwards() ? kHexWidth : kHexHeight) + 3.0));
        }
    }

    void sizeItems()
    {
        m_input.nodes.resize(m_result.items.size());
        for (std::size_t i = 0; i < m_result.items.size(); ++i) {
            const GraphItem &item = m_result.items[i];
            LayoutNode &node = m_input.nodes[i];
            const Marks &marks = m_marks[i];
            const bool site = item.node >= 0 && m_doc.nodes[item.node].kind == GraphNode::Kind::Site;
            node.weight = item.node >= 0 && m_doc.nodes[item.node].kind == GraphNode::Kind::Parameter;
            const std::int32_t group = groupAround(item);
            node.group = group >= 0 ? m_layoutGroup[group] : -1;
            const QString name =
                item.node >= 0 ? m_doc.nodes[item.node].label : QStringLiteral("▸ ") + m_doc.groups[item.group].path;
            // " · 46.1" comes after the operator.
            const QString detail = item.node < 0 ? QStringLiteral("000 nodes · worst 00.0")
                                   : site        ? m_doc.nodes[item.node].op
                                                 : m_doc.nodes[item.node].op + QStringLiteral(" · 00.0");
            const double text = std::max(widthOf(name, m_options.nameWidths, m_options.nameChar),
                                         widthOf(detail, m_options.detailWidths, m_options.detailChar));
            node.width = std::clamp(std::ceil((text + kTextMargins) / 4) * 4, kMinWidth, kMaxWidth);
            node.height = std::ceil(2 * m_options.lineHeight + 14);
            const double along = downwards() ? 2 * kHexHeight + 2 : kHexPitch;
            const double across = downwards() ? kHexPitch : 2 * kHexHeight + 2;
            if (!marks.out.empty())
                node.leadOut = static_cast<double>(marks.out.size()) * along + kHexGap;
            if (const std::size_t beside = marks.side.size() + marks.loose.size(); beside > 0) {
                node.sideRoom = across + kSideGap;
                double &side = downwards() ? node.height : node.width;
                side = std::max(side, static_cast<double>(beside) * along);
            }
        }
    }

    void place(const LayoutResult &layout)
    {
        for (std::size_t i = 0; i < m_result.items.size(); ++i) {
            const LayoutRect &r = layout.nodes[i];
            m_result.items[i].rect = {r.x, r.y, r.width, r.height};
        }
        for (std::size_t l = 0; l < m_result.lines.size(); ++l)
            for (const LayoutPoint &p : layout.edges[l])
                m_result.lines[l].points.emplace_back(p.x, p.y);
        for (std::size_t g = 0; g < m_groups.size(); ++g)
            for (std::size_t k = 0; k < layout.groups[g].size(); ++k) {
                const LayoutRect &r = layout.groups[g][k];
                m_result.outlines.push_back({m_groups[g], {r.x, r.y, r.width, r.height}, k == 0});
            }
        m_result.bounds = {0, 0, layout.width, layout.height};
        placeMarks();
    }

    [[nodiscard]] QPointF along(double flow, double cross) const
    {
        return downwards() ? QPointF(cross, flow) : QPointF(flow, cross);
    }

    void placeMarks()
    {
        const double half = downwards() ? kHexHeight : kHexWidth;
        const double pitch = downwards() ? 2 * kHexHeight + 2 : kHexPitch;
        for (std::size_t i = 0; i < m_result.items.size(); ++i) {
            const QRectF &r = m_result.items[i].rect;
            const auto item = static_cast<std::int32_t>(i);
            const double end = downwards() ? r.bottom() : r.right();
            const double middle = downwards() ? r.center().x() : r.center().y();
            for (std::size_t k = 0; k < m_marks[i].out.size(); ++k)
                m_result.marks.push_back(
                    {m_marks[i].out[k], item, along(end + kHexGap + half + static_cast<double>(k) * pitch, middle)});
            auto side = m_marks[i].side;
            side.insert(side.end(), m_marks[i].loose.begin(), m_marks[i].loose.end());
            const double beside = downwards() ? r.left() - kSideGap - kHexWidth : r.top() - kSideGap - kHexHeight;
            const double centre = downwards() ? r.center().y() : r.center().x();
            for (std::size_t k = 0; k < side.size(); ++k)
                m_result.marks.push_back(
                    {side[k], item,
                     along(centre + (static_cast<double>(k) - static_cast<double>(side.size() - 1) / 2) * pitch,
                           beside)});
        }
        for (std::size_t l = 0; l < m_result.lines.size(); ++l) {
            if (m_lineMarks[l].empty() || m_result.lines[l].points.empty())
                continue;
            const QPointF port = m_result.lines[l].points.back();
            const double flow = downwards() ? port.y() : port.x(), cross = downwards() ? port.x() : port.y();
            const auto count = m_lineMarks[l].size();
            for (std::size_t k = 0; k < count; ++k)
                m_result.marks.push_back(
                    {m_lineMarks[l][k], m_result.lines[l].to,
                     along(flow - kHexGap - half - static_cast<double>(count - 1 - k) * pitch, cross)});
        }
    }

    const GraphDocument &m_doc;
    const GraphLayoutOptions &m_options;
    GraphLayoutResult m_result;
    LayoutInput m_input;
    std::vector<Marks> m_marks;
    std::vector<std::vector<std::int32_t>> m_lineMarks; // per line
    std::vector<std::int32_t> m_layoutGroup, m_groups;  // document group -> layout group, and back
};

} // namespace

GraphLayoutResult layoutGraph(GraphLayoutRequest request, std::stop_token stop)
{
    if (!request.document) {
        request.document = buildGraph(request.pair, request.graph);
        request.options.collapsed = groupsToCollapse(*request.document, request.openBoxes);
    }
    return GraphPlacer(request).run(std::move(stop));
}

std::size_t visibleCount(const GraphDocument &document, const std::set<std::int32_t> &collapsed)
{
    std::set<std::int32_t> groups;
    std::size_t count = 0;
    for (const GraphNode &node : document.nodes) {
        const std::int32_t group = collapsed.empty() ? -1 : hiddenBy(document, collapsed, node.group);
        if (group < 0)
            ++count;
        else
            groups.insert(group);
    }
    return count + groups.size();
}

std::set<std::int32_t> groupsToCollapse(const GraphDocument &document, std::size_t limit)
{
    int deepest = -1;
    for (const GraphGroup &group : document.groups)
        deepest = std::max(deepest, group.depth);
    std::set<std::int32_t> collapsed;
    for (int depth = deepest; depth >= 0 && visibleCount(document, collapsed) > limit; --depth)
        for (std::size_t g = 0; g < document.groups.size(); ++g)
            if (document.groups[g].depth == depth)
                collapsed.insert(static_cast<std::int32_t>(g));
    return collapsed;
}

QPainterPath linePath(const std::vector<QPointF> &points, bool downwards)
{
    constexpr double kRadius = 7;
    QPainterPath path;
    if (points.empty())
        return path;
    path.moveTo(points.front());
    const auto curved = [&](std::size_t i) { // from point i to the next
        return points[i].x() != points[i + 1].x() && points[i].y() != points[i + 1].y();
    };
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        const QPointF a = points[i], b = points[i + 1];
        if (curved(i)) {
            const QPointF bend = downwards ? QPointF(0, (b.y() - a.y()) / 2) : QPointF((b.x() - a.x()) / 2, 0);
            path.cubicTo(a + bend, b - bend, b);
            continue;
        }
        if (i + 2 >= points.size() || curved(i + 1)) {
            path.lineTo(b);
            continue;
        }
        // A corner between two straight pieces.
        const QPointF c = points[i + 2];
        const double in = std::abs(b.x() - a.x()) + std::abs(b.y() - a.y());
        const double out = std::abs(c.x() - b.x()) + std::abs(c.y() - b.y());
        const double radius = std::min({kRadius, in / 2, out / 2});
        path.lineTo(b + (a - b) * (radius / in));
        path.quadTo(b, b + (c - b) * (radius / out));
    }
    return path;
}

} // namespace dblame::ui

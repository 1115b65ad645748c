// SPDX-License-Identifier: GPL-3.0-or-later
//
// GraphScene: from a layout to tiles.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "ui/graph_scene.h"
#include "ui/graph_tiles.h"

namespace dblame::ui
{

namespace
{

constexpr double kTile = 1200; // about a screen

} // namespace

void GraphScene::setLayout(GraphLayoutResult layout)
{
    m_tiles.clear();
    clear();
    m_layout = std::move(layout);
    m_item = m_mark = m_dropItem = -1;
    m_matched.clear();
    const std::size_t count = m_layout.items.size();
    m_members.assign(count, {});
    for (std::size_t n = 0; n < m_layout.itemOfNode.size(); ++n)
        if (const std::int32_t item = m_layout.itemOfNode[n]; m_layout.items[item].node < 0)
            m_members[item].push_back(static_cast<std::int32_t>(n));
    m_marks.assign(count, {});
    m_placedMark.assign(m_layout.document ? m_layout.document->marks.size() : 0, -1);
    for (std::size_t m = 0; m < m_layout.marks.size(); ++m) {
        m_marks[m_layout.marks[m].item].push_back(static_cast<std::int32_t>(m));
        m_placedMark[m_layout.marks[m].mark] = static_cast<std::int32_t>(m);
    }
    findNeighbours();
    m_looks.resize(count);
    m_lit.assign(count, 1);
    makeTiles();
    refreshAll();
    Q_EMIT layoutChanged();
}

void GraphScene::findNeighbours()
{
    m_out.assign(m_layout.items.size(), {});
    m_in.assign(m_layout.items.size(), {});
    for (const GraphLine &line : m_layout.lines) {
        m_out[line.from].push_back(line.to);
        m_in[line.to].push_back(line.from);
    }
    // Across the flow, so that "the first" is the uppermost (leftmost).
    const auto before = [this](std::int32_t a, std::int32_t b) {
        const QRectF &p = m_layout.items[a].rect, &q = m_layout.items[b].rect;
        return m_layout.downwards ? p.x() < q.x() : p.y() < q.y();
    };
    for (auto &list : m_out)
        std::sort(list.begin(), list.end(), before);
    for (auto &list : m_in)
        std::sort(list.begin(), list.end(), before);
}

void GraphScene::makeTiles()
{
    std::map<std::tuple<int, int, int>, GraphTile *> tiles;
    const auto tileAt = [&](GraphTile::Layer layer, const QPointF &at) {
        const std::tuple key(static_cast<int>(layer), static_cast<int>(std::floor(at.x() / kTile)),
                             static_cast<int>(std::floor(at.y() / kTile)));
        GraphTile *&tile = tiles[key];
        if (tile == nullptr) {
            tile = new GraphTile(*this, layer);
            m_tiles.push_back(tile);
        }
        return tile;
    };
    for (std::size_t i = 0; i < m_layout.outlines.size(); ++i)
        tileAt(GraphTile::Layer::Outlines, m_layout.outlines[i].rect.center())
            ->addOutline(static_cast<std::int32_t>(i), m_layout.outlines[i].rect);
    for (std::size_t l = 0; l < m_layout.lines.size(); ++l) {
        const auto &points = m_layout.lines[l].points;
        if (points.size() < 2)
            continue;
        // Lines that stay within a screen are one piece; long ones are cut so that no tile grows with them.
        const QPainterPath whole = linePath(points, m_layout.downwards);
        const QRectF box = whole.controlPointRect();
        if (box.width() <= kTile && box.height() <= kTile && points.size() <= 4) {
            tileAt(GraphTile::Layer::Lines, box.center())->addPiece(whole);
            continue;
        }
        QPointF at = whole.elementAt(0);
        for (int e = 1; e < whole.elementCount(); ++e) {
            const QPainterPath::Element element = whole.elementAt(e);
            QPainterPath piece(at);
            if (element.type == QPainterPath::CurveToElement) {
                at = whole.elementAt(e + 2);
                piece.cubicTo(element, whole.elementAt(e + 1), at);
                e += 2;
            } else {
                at = element;
                piece.lineTo(at);
            }
            tileAt(GraphTile::Layer::Lines, piece.controlPointRect().center())->addPiece(piece);
        }
    }
    for (std::size_t i = 0; i < m_layout.items.size(); ++i) {
        QRectF rect = m_layout.items[i].rect.adjusted(-12, -12, 12, 12);
        for (std::int32_t m : m_marks[i])
            rect |= markRect(m).adjusted(-5, -5, 14, 8);
        tileAt(GraphTile::Layer::Nodes, m_layout.items[i].rect.center())->addItem(static_cast<std::int32_t>(i), rect);
    }
    if (!m_layout.items.empty())
        for (const auto layer : {GraphTile::Layer::LitLines, GraphTile::Layer::Above})
            tileAt(layer, {})->cover(m_layout.bounds.adjusted(-20, -20, 170, 30));
    for (GraphTile *tile : m_tiles)
        addItem(tile);
    // Room to pan past the edge.
    setSceneRect(m_layout.bounds.adjusted(-2000, -2000, 2000, 2000));
}

} // namespace dblame::ui

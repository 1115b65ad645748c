// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_tiles.h"

#include <QPainter>
#include <QStyleOptionGraphicsItem>

#include "ui/graph_scene.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

constexpr double kDimmed = 0.25;

QPen linePen(const QColor &colour, double scale, double width = 1.1)
{
    QPen pen(colour, scale < 1 ? std::max(1.0, width * scale) : width);
    pen.setCosmetic(scale < 1);
    return pen;
}

// At the end of a line: which way it goes.
void arrowHead(QPainter &painter, const QPointF &tip, bool downwards)
{
    const QPointF back = downwards ? QPointF(0, -6) : QPointF(-6, 0);
    const QPointF side = downwards ? QPointF(3, 0) : QPointF(0, 3);
    painter.drawPolygon(QPolygonF({tip, tip + back + side, tip + back - side}));
}

} // namespace

GraphTile::GraphTile(const GraphScene &scene, Layer layer) : m_scene(scene), m_layer(layer)
{
    setFlag(QGraphicsItem::ItemUsesExtendedStyleOption); // exposedRect: only what is to be seen is painted
    setAcceptedMouseButtons(Qt::NoButton);
    setZValue(static_cast<int>(layer));
}

void GraphTile::addOutline(std::int32_t outline, const QRectF &rect)
{
    m_members.push_back(outline);
    m_rects.push_back(rect.adjusted(-2, -2, 2, 2));
    m_bounds |= m_rects.back();
}

void GraphTile::addPiece(const QPainterPath &piece)
{
    m_pieces.push_back(piece);
    m_rects.push_back(piece.controlPointRect().adjusted(-2, -2, 2, 2));
    m_straight.emplace_back(piece.elementAt(0), piece.currentPosition());
    m_bounds |= m_rects.back();
}

void GraphTile::addItem(std::int32_t item, const QRectF &rect)
{
    m_members.push_back(item);
    m_rects.push_back(rect);
    m_bounds |= rect;
}

void GraphTile::paint(QPainter *painter, const QStyleOptionGraphicsItem *option, QWidget *)
{
    const double scale = QStyleOptionGraphicsItem::levelOfDetailFromTransform(painter->worldTransform());
    painter->setRenderHint(QPainter::Antialiasing, scale >= kBoxesOnly);
    switch (m_layer) {
    case Layer::Outlines:
        paintOutlines(*painter, scale, option->exposedRect);
        break;
    case Layer::Lines:
        paintLines(*painter, scale, option->exposedRect);
        break;
    case Layer::Nodes:
        paintNodes(*painter, scale, option->exposedRect);
        break;
    case Layer::LitLines:
        paintLitLines(*painter, scale);
        break;
    case Layer::Above:
        paintDrop(*painter, scale);
        break;
    }
}

void GraphTile::paintOutlines(QPainter &painter, double scale, const QRectF &exposed)
{
    GraphPainter paint(painter, scale);
    const GraphLayoutResult &layout = m_scene.layout();
    for (std::size_t i = 0; i < m_members.size(); ++i) {
        if (!m_rects[i].intersects(exposed))
            continue;
        const GraphOutline &outline = layout.outlines[m_members[i]];
        const GraphGroup &group = layout.document->groups[outline.group];
        if (scale < kGroupsOnly && group.depth == 0)
            paint.farGroup(outline.rect, outline.first ? group.name : QString(), m_scene.worstOfGroup(outline.group),
                           m_scene.range());
        else if (scale >= kGroupsOnly)
            paint.outline(outline.rect, outline.first ? group.name : group.name + QStringLiteral(" …"), outline.first);
    }
}

void GraphTile::paintLines(QPainter &painter, double scale, const QRectF &exposed)
{
    painter.setOpacity(m_scene.dimming() ? kDimmed : 1.0);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(linePen(Theme::current().edge, scale));
    if (scale < kBoxesOnly)
        painter.drawLines(m_straight);
    else
        for (std::size_t i = 0; i < m_pieces.size(); ++i)
            if (m_rects[i].intersects(exposed))
                painter.drawPath(m_pieces[i]);
    painter.setOpacity(1);
}

void GraphTile::paintNodes(QPainter &painter, double scale, const QRectF &exposed)
{
    GraphPainter paint(painter, scale);
    const GraphLayoutResult &layout = m_scene.layout();
    for (std::size_t i = 0; i < m_members.size(); ++i) {
        if (!m_rects[i].intersects(exposed))
            continue;
        const std::int32_t item = m_members[i];
        const QRectF &rect = layout.items[item].rect;
        painter.setOpacity(m_scene.dimmed(item) ? kDimmed : 1.0);
        if (scale >= kBoxesOnly)
            for (std::int32_t m : m_scene.marksOfItem(item)) {
                const GraphPlacedMark &placed = layout.marks[m];
                if (layout.document->marks[placed.mark].place == GraphMark::Place::In &&
                    layout.document->marks[placed.mark].edge >= 0)
                    continue; // it stands on its line
                // The stem that ties it to its node.
                painter.setPen(linePen(Theme::current().blue, scale));
                const QPointF c = placed.centre;
                const QPointF foot(std::clamp(c.x(), rect.left(), rect.right()),
                                   std::clamp(c.y(), rect.top(), rect.bottom()));
                painter.drawLine(c, foot);
            }
        paint.node(rect, m_scene.look(item), m_scene.range(),
                   m_scene.currentItem() == item && m_scene.currentMark() < 0, m_scene.matched(item));
        if (scale >= kBoxesOnly)
            for (std::int32_t m : m_scene.marksOfItem(item))
                paint.mark(layout.marks[m].centre, m_scene.markLook(m), m == m_scene.currentMark());
    }
    painter.setOpacity(1);
}

// Those of the current node, stronger and with their direction.
void GraphTile::paintLitLines(QPainter &painter, double scale)
{
    const GraphLayoutResult &layout = m_scene.layout();
    if (m_scene.currentItem() >= 0 && scale >= kGroupsOnly)
        for (const GraphLine &line : layout.lines)
            if ((line.from == m_scene.currentItem() || line.to == m_scene.currentItem()) && !line.points.empty()) {
                painter.setPen(linePen(Theme::current().text, scale, 1.6));
                painter.setBrush(Qt::NoBrush);
                painter.drawPath(linePath(line.points, layout.downwards));
                painter.setPen(Qt::NoPen);
                painter.setBrush(Theme::current().text);
                if (scale >= kBoxesOnly)
                    arrowHead(painter, line.points.back(), layout.downwards);
            }
}

void GraphTile::paintDrop(QPainter &painter, double scale)
{
    GraphPainter paint(painter, scale);
    const GraphLayoutResult &layout = m_scene.layout();
    if (m_scene.largestDropItem() >= 0)
        paint.drop(layout.items[m_scene.largestDropItem()].rect, m_scene.largestDropText(), layout.downwards);
}

} // namespace dblame::ui

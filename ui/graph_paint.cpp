// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_paint.h"

#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>
#include <QPolygonF>

#include "ui/graph_layout.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

constexpr double kRadius = 8, kBarWidth = 6;
constexpr double kBadgeRadius = 6.5; // of the circle with a shared instance's number

QPolygonF hexagon(const QPointF &c, double width, double height)
{
    return {c + QPointF(-width, 0), c + QPointF(-width * 0.55, -height), c + QPointF(width * 0.55, -height),
            c + QPointF(width, 0),  c + QPointF(width * 0.55, height),   c + QPointF(-width * 0.55, height)};
}

// A box with pointed ends: the hexagon of a quantizer that is drawn as a node.
QPainterPath longHexagon(const QRectF &r)
{
    const double point = std::min(14.0, r.width() / 4);
    QPainterPath path;
    path.addPolygon(QPolygonF({r.topLeft() + QPointF(point, 0), r.topRight() - QPointF(point, 0),
                               QPointF(r.right(), r.center().y()), r.bottomRight() - QPointF(point, 0),
                               r.bottomLeft() + QPointF(point, 0), QPointF(r.left(), r.center().y())}));
    path.closeSubpath();
    return path;
}

} // namespace

GraphPainter::GraphPainter(QPainter &painter, double scale)
    : m_painter(painter), m_scale(scale), m_name(Theme::bodyFont()), m_detail(Theme::labelFont()),
      m_letter(Theme::labelFont()), m_nameMetrics(m_name), m_detailMetrics(m_detail)
{
    m_name.setWeight(QFont::DemiBold);
    m_nameMetrics = QFontMetricsF(m_name);
    m_letter.setPixelSize(10);
    m_letter.setWeight(QFont::Bold);
}

QColor GraphPainter::colour(const GraphNodeLook &look, const GraphRange &range)
{
    const Theme &t = Theme::current();
    if (look.unpaired || !look.coloured)
        return t.line;
    return Theme::ramp(range.valid() ? Theme::rampPosition(look.db, range.low, range.high) : look.db > 0 ? 1 : 0);
}

void GraphPainter::node(const QRectF &rect, const GraphNodeLook &look, const GraphRange &range, bool current,
                        bool matched)
{
    const Theme &t = Theme::current();
    if (m_scale < kBoxesOnly) {
        const QColor fill = look.shape == GraphNodeLook::Shape::Site ? t.blue : colour(look, range);
        m_painter.fillRect(rect, fill);
        if (current || matched) {
            QPen pen(current ? t.orange : t.blue, 2);
            pen.setCosmetic(true);
            m_painter.setPen(pen);
            m_painter.setBrush(Qt::NoBrush);
            const double around = 2 / m_scale;
            m_painter.drawRect(rect.adjusted(-around, -around, around, around));
        }
        return;
    }
    QPen border(t.line, 1);
    if (look.shape == GraphNodeLook::Shape::Site)
        border = QPen(t.blue, look.observer ? 1.5 : 1);
    if (look.unpaired)
        border.setStyle(Qt::DotLine);
    if (matched)
        border = QPen(t.blue, 2);
    if (current)
        border = QPen(t.orange, 2);
    m_painter.setPen(border);
    m_painter.setBrush(look.unpaired ? t.base : t.panel);
    if (look.shape == GraphNodeLook::Shape::Site) {
        QColor fill = t.blue;
        fill.setAlphaF(look.observer ? 0.0F : 0.16F);
        m_painter.setBrush(t.panel);
        m_painter.drawPath(longHexagon(rect));
        m_painter.setBrush(fill);
        m_painter.drawPath(longHexagon(rect));
    } else {
        if (look.shape == GraphNodeLook::Shape::Group)
            m_painter.drawRoundedRect(rect.translated(3, 3), kRadius, kRadius); // a pile: there is more inside
        m_painter.drawRoundedRect(rect, kRadius, kRadius);
        bar(rect, look, range);
    }
    text(rect, look);
}

void GraphPainter::bar(const QRectF &rect, const GraphNodeLook &look, const GraphRange &range)
{
    const Theme &t = Theme::current();
    if (look.unpaired) {
        // Its own mark: an empty circle, struck through.
        const QPointF c(rect.left() + 12, rect.top() + 11);
        m_painter.setPen(QPen(t.mute, 1.2));
        m_painter.setBrush(Qt::NoBrush);
        m_painter.drawEllipse(c, 4.5, 4.5);
        m_painter.drawLine(c + QPointF(-3.2, 3.2), c + QPointF(3.2, -3.2));
        return;
    }
    if (!look.coloured)
        return;
    m_painter.setPen(Qt::NoPen);
    m_painter.setBrush(colour(look, range));
    m_painter.drawRoundedRect(QRectF(rect.left(), rect.top(), kBarWidth, rect.height()), 3, 3);
}

void GraphPainter::text(const QRectF &rect, const GraphNodeLook &look)
{
    const Theme &t = Theme::current();
    // Below about five pixels letters are only noise.
    if (m_scale * m_name.pixelSize() < 4.8)
        return;
    const bool twoLines = m_scale * m_detail.pixelSize() >= 5;
    const QRectF inner = rect.adjusted(kBarWidth + 5, 4, -6, -4);
    const QRectF upper(inner.left(), inner.top(), inner.width(), twoLines ? inner.height() / 2 : inner.height());
    m_painter.setFont(m_name);
    m_painter.setPen(look.unpaired ? t.mute : t.text);
    // The end of a path tells layers apart.
    m_painter.drawText(upper, Qt::AlignCenter, m_nameMetrics.elidedText(look.name, Qt::ElideLeft, inner.width()));
    if (!twoLines)
        return;
    const QString state = look.state.isEmpty() || look.op.isEmpty() ? look.state : QStringLiteral(" · ") + look.state;
    const double room = inner.width() - m_detailMetrics.horizontalAdvance(state);
    // A state in words ("not computed") may leave the operator no room: then it says more than two letters of that.
    const double least = std::min(m_detailMetrics.horizontalAdvance(look.op),
                                  m_detailMetrics.horizontalAdvance(look.op.left(3) + QChar(0x2026)));
    const bool both = look.op.isEmpty() || room >= least;
    const QString words = both ? m_detailMetrics.elidedText(look.op, Qt::ElideRight, std::max(room, 0.0)) + state
                               : m_detailMetrics.elidedText(look.state, Qt::ElideRight, inner.width());
    m_painter.setFont(m_detail);
    m_painter.setPen(look.trouble ? t.orange : t.mute);
    m_painter.drawText(QRectF(inner.left(), inner.center().y(), inner.width(), inner.height() / 2), Qt::AlignCenter,
                       words);
}

void GraphPainter::mark(const QPointF &centre, const GraphMarkLook &look, bool current)
{
    if (m_scale < kBoxesOnly)
        return;
    const Theme &t = Theme::current();
    const QColor colour = look.pending ? t.orange : t.blue;
    const bool hollow = look.watches || look.state != GraphMarkLook::State::On;
    QPen pen(colour, hollow ? 1.3 : 1);
    if (look.state != GraphMarkLook::State::On)
        pen.setDashPattern({2.5, 1.8});
    QColor fill = hollow ? t.panel : t.blue;
    if (look.state == GraphMarkLook::State::Partly) {
        fill = t.blue;
        fill.setAlphaF(0.3F);
    }
    if (look.state == GraphMarkLook::State::On && look.pending)
        pen = QPen(t.orange, 2);
    m_painter.setPen(pen);
    m_painter.setBrush(fill);
    m_painter.drawPolygon(hexagon(centre, kHexWidth, kHexHeight));
    if (current) {
        m_painter.setPen(QPen(t.orange, 2));
        m_painter.setBrush(Qt::NoBrush);
        m_painter.drawPolygon(hexagon(centre, kHexWidth + 3, kHexHeight + 3));
    }
    if (m_scale * m_letter.pixelSize() < 4.5)
        return;
    m_painter.setFont(m_letter);
    m_painter.setPen(hollow ? colour : t.dark ? t.base : QColor(Qt::white));
    m_painter.drawText(QRectF(centre.x() - kHexWidth, centre.y() - kHexHeight, 2 * kHexWidth, 2 * kHexHeight),
                       Qt::AlignCenter, QString(look.letter));
    if (look.instance > 0) {
        // On a ground of its own: beside the hexagon the number would stand on the line.
        const QString number = QString::number(look.instance);
        QFont small = m_letter;
        small.setPixelSize(9);
        const double half = std::max(kBadgeRadius, QFontMetricsF(small).horizontalAdvance(number) / 2 + 3);
        const QRectF badge(centre.x() + kHexWidth * 0.75 - half + 3, centre.y() + kHexHeight * 0.55 - kBadgeRadius + 2,
                           2 * half, 2 * kBadgeRadius);
        m_painter.setPen(QPen(colour, 1));
        m_painter.setBrush(t.panel);
        m_painter.drawRoundedRect(badge, kBadgeRadius, kBadgeRadius);
        m_painter.setFont(small);
        m_painter.setPen(t.text);
        m_painter.drawText(badge, Qt::AlignCenter, number);
    }
}

void GraphPainter::outline(const QRectF &rect, const QString &name, bool collapsible)
{
    const Theme &t = Theme::current();
    QPen pen(t.dark ? t.line : QColor(0xcfccc4), 1);
    pen.setCosmetic(true);
    // Dashes cost much when there are thousands, and are only dots at that scale.
    if (m_scale >= kBoxesOnly)
        pen.setDashPattern({5, 4});
    m_painter.setPen(pen);
    m_painter.setBrush(Qt::NoBrush);
    m_painter.drawRoundedRect(rect, kRadius, kRadius);
    if (name.isEmpty() || m_scale * m_detail.pixelSize() < 5)
        return;
    m_painter.setFont(m_detail);
    m_painter.setPen(t.mute);
    const QString label = collapsible ? QStringLiteral("▾ ") + name : name;
    const double room = rect.width() - 16;
    m_painter.drawText(QRectF(rect.left() + 8, rect.top() + 2, room, 16), Qt::AlignLeft | Qt::AlignVCenter,
                       m_detailMetrics.elidedText(label, Qt::ElideRight, room));
}

void GraphPainter::farGroup(const QRectF &rect, const QString &name, double worst, const GraphRange &range)
{
    const Theme &t = Theme::current();
    QColor fill = t.chip;
    if (!std::isnan(worst))
        fill = Theme::ramp(range.valid() ? Theme::rampPosition(worst, range.low, range.high) : 1);
    fill.setAlphaF(std::isnan(worst) ? 0.7F : 0.35F);
    QPen pen(t.line, 1);
    pen.setCosmetic(true);
    m_painter.setPen(pen);
    m_painter.setBrush(fill);
    m_painter.drawRect(rect);
    // Words keep their size on the screen; those that do not fit are left out.
    const QRectF screen = m_painter.transform().mapRect(rect);
    if (m_detailMetrics.horizontalAdvance(name) + 6 > screen.width() || m_detailMetrics.height() > screen.height())
        return;
    m_painter.save();
    m_painter.resetTransform();
    m_painter.setFont(m_detail);
    m_painter.setPen(t.text);
    m_painter.drawText(screen.adjusted(3, 1, -3, -1), Qt::AlignLeft | Qt::AlignTop, name);
    m_painter.restore();
}

QRectF GraphPainter::dropRect(const QRectF &node, bool downwards)
{
    return downwards ? QRectF(node.right() - 10, node.top() - 10, 160, 20)
                     : QRectF(node.left() - 10, node.bottom() - 10, 160, 22);
}

void GraphPainter::drop(const QRectF &rect, const QString &words, bool downwards)
{
    const Theme &t = Theme::current();
    const QPointF c = downwards ? rect.topRight() : rect.bottomLeft() + QPointF(3, 0);
    const double radius = std::max(8.0, 5 / m_scale);
    m_painter.setPen(QPen(t.orange, std::max(2.0, 1.5 / m_scale)));
    m_painter.setBrush(Qt::NoBrush);
    m_painter.drawEllipse(c, radius, radius);
    if (m_scale * m_detail.pixelSize() < 5)
        return;
    QFont font = m_detail;
    font.setWeight(QFont::DemiBold);
    m_painter.setFont(font);
    const QSizeF size(QFontMetricsF(font).horizontalAdvance(words) + 4, 15);
    const QRectF place(c + (downwards ? QPointF(radius + 4, -radius) : QPointF(radius + 2, 1)), size);
    m_painter.fillRect(place, t.base); // lines may pass behind
    m_painter.drawText(place, Qt::AlignCenter, words);
}

} // namespace dblame::ui

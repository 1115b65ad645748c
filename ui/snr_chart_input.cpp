// SPDX-License-Identifier: GPL-3.0-or-later
//
// What mouse and keyboard do in the SNR chart.
#include <climits>
#include <cmath>
#include <limits>
#include <utility>

#include <QKeyEvent>
#include <QToolTip>

#include "ui/snr_chart.h"
#include "ui/snr_chart_layers.h"

namespace dblame::ui
{
namespace
{

constexpr int kClickSlack = 4; // pixels the mouse may move between press and release of a click
constexpr double kReach = 5;   // pixels: rows this close to the mouse compete by height
constexpr double kHoverReach = 40;

} // namespace

void SnrChart::connectMouse()
{
    m_plot->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    m_plot->axisRect()->setRangeDrag(Qt::Horizontal);
    m_plot->axisRect()->setRangeZoom(Qt::Horizontal);
    connect(m_plot, &QCustomPlot::mousePress, this, &SnrChart::mousePressed);
    connect(m_plot, &QCustomPlot::mouseMove, this, &SnrChart::mouseMoved);
    connect(m_plot, &QCustomPlot::mouseRelease, this, &SnrChart::mouseReleased);
    connect(m_plot, &QCustomPlot::mouseWheel, this, &SnrChart::wheelTurned);
    connect(m_plot, &QCustomPlot::mouseDoubleClick, this, [this] {
        m_pressed = false;
        resetView();
    });
    connect(m_plot->xAxis, qOverload<const QCPRange &>(&QCPAxis::rangeChanged), this, [this](const QCPRange &range) {
        const QCPRange inside = range.bounded(fullLower(), fullUpper());
        if (inside != range)
            m_plot->xAxis->setRange(inside);
    });
    // Ticks and margins are chosen before QCustomPlot lays the plot out, words are placed after.
    connect(m_plot, &QCustomPlot::beforeReplot, this, [this] { m_layers->adapt(*m_plot, m_label, m_series); });
    connect(m_plot, &QCustomPlot::afterLayout, this, [this] { m_layers->arrange(*m_plot); });
}

PairId SnrChart::rowAt(QPointF position) const
{
    const QPointF inside = position - QPointF(m_plot->pos());
    const double at = m_plot->xAxis->pixelToCoord(inside.x());
    const double perPoint = std::abs(m_plot->xAxis->coordToPixel(1) - m_plot->xAxis->coordToPixel(0));
    const auto count = static_cast<int>(m_series.points.size());
    const double reach = std::max(kReach / std::max(perPoint, 1e-9), 0.5);
    PairId best;
    double bestDistance = std::numeric_limits<double>::infinity();
    const int from = std::max(0, static_cast<int>(std::ceil(at - reach)));
    for (int x = from; x < count && x <= at + reach; ++x) {
        const PairId row = m_series.points[static_cast<std::size_t>(x)].row;
        const QPointF point = positionOf(row);
        if (point.isNull())
            continue;
        const double distance = std::hypot(point.x() - position.x(), perPoint >= kReach ? 0 : point.y() - position.y());
        if (distance < bestDistance) {
            bestDistance = distance;
            best = row;
        }
    }
    if (best.valid())
        return best;
    // Nothing right here: the nearest point to either side.
    for (int away = 1; away < count; ++away) {
        for (const int x : {static_cast<int>(std::lround(at)) - away, static_cast<int>(std::lround(at)) + away}) {
            if (x < 0 || x >= count)
                continue;
            const PairId row = m_series.points[static_cast<std::size_t>(x)].row;
            if (!positionOf(row).isNull())
                return row;
        }
    }
    return {};
}

void SnrChart::mousePressed(QMouseEvent *event)
{
    setFocus(Qt::MouseFocusReason);
    const bool zooms = event->button() == Qt::RightButton || event->modifiers().testFlag(Qt::ShiftModifier);
    m_plot->setSelectionRectMode(zooms ? QCP::srmZoom : QCP::srmNone);
    m_pressed = event->button() == Qt::LeftButton && !zooms;
    m_pressedAt = event->pos();
}

void SnrChart::mouseMoved(QMouseEvent *event)
{
    if (event->buttons() != Qt::NoButton)
        return;
    PairId row;
    if (m_plot->axisRect()->rect().contains(event->pos())) {
        row = rowAt(event->pos() + m_plot->pos());
        if (std::abs(positionOf(row).x() - m_plot->pos().x() - event->pos().x()) > kHoverReach)
            row = {};
    }
    if (row == m_hovered)
        return;
    m_hovered = row;
    if (row.valid() && m_toolTip)
        QToolTip::showText(event->globalPosition().toPoint(), m_toolTip(row), m_plot);
    else
        QToolTip::hideText();
    Q_EMIT rowHovered(row);
}

void SnrChart::mouseReleased(QMouseEvent *event)
{
    const bool click = std::exchange(m_pressed, false) &&
                       (event->pos() - m_pressedAt).manhattanLength() <= kClickSlack &&
                       m_plot->axisRect()->rect().contains(event->pos());
    if (!click)
        return;
    const PairId row = rowAt(event->pos() + m_plot->pos());
    if (row.valid())
        Q_EMIT rowClicked(row);
}

void SnrChart::wheelTurned(QWheelEvent *event)
{
    const bool vertical = event->modifiers().testFlag(Qt::ControlModifier);
    m_userY = m_userY || vertical;
    m_plot->axisRect()->setRangeZoom(vertical ? Qt::Vertical : Qt::Horizontal);
}

void SnrChart::zoomX(double factor)
{
    const int x = m_series.position(m_selected);
    m_plot->xAxis->scaleRange(factor, x >= 0 ? x : m_plot->xAxis->range().center());
    replotSoon();
}

void SnrChart::keyPressEvent(QKeyEvent *event)
{
    switch (event->key()) {
    case Qt::Key_Left:
        Q_EMIT stepped(-1);
        return;
    case Qt::Key_Right:
        Q_EMIT stepped(1);
        return;
    case Qt::Key_PageUp:
        Q_EMIT stepped(-10);
        return;
    case Qt::Key_PageDown:
        Q_EMIT stepped(10);
        return;
    case Qt::Key_Home:
        Q_EMIT stepped(INT_MIN);
        return;
    case Qt::Key_End:
        Q_EMIT stepped(INT_MAX);
        return;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoomX(0.7);
        return;
    case Qt::Key_Minus:
        zoomX(1 / 0.7);
        return;
    case Qt::Key_0:
        resetView();
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

} // namespace dblame::ui

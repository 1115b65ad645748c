// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_view.h"

#include <algorithm>
#include <cmath>

#include <QApplication>
#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>

#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

constexpr double kLargestScale = 3, kLargestFit = 1.25;
constexpr int kFitMargin = 10; // pixels

} // namespace

GraphView::GraphView(GraphScene *scene, QWidget *parent) : QGraphicsView(scene, parent), m_scene(scene)
{
    setFrameShape(QFrame::NoFrame);
    setTransformationAnchor(QGraphicsView::NoAnchor);
    setResizeAnchor(QGraphicsView::NoAnchor);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setViewportUpdateMode(QGraphicsView::MinimalViewportUpdate); // panning repaints only what comes into view
    setOptimizationFlags(QGraphicsView::DontSavePainterState | QGraphicsView::DontAdjustForAntialiasing);
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAccessibleName(tr("Graph"));
}

QRectF GraphView::visibleScene() const
{
    return mapToScene(viewport()->rect()).boundingRect();
}

double GraphView::smallestScale() const
{
    const QRectF bounds = m_scene->layout().bounds;
    if (bounds.isEmpty())
        return 1;
    const double fitting = std::min((viewport()->width() - 2.0 * kFitMargin) / bounds.width(),
                                    (viewport()->height() - 2.0 * kFitMargin) / bounds.height());
    return std::min(fitting * 0.6, 0.2);
}

void GraphView::fit()
{
    m_fitting = true;
    const QRectF bounds = m_scene->layout().bounds;
    if (bounds.isEmpty())
        return;
    const double width = std::max(20.0, viewport()->width() - 2.0 * kFitMargin);
    const double height = std::max(20.0, viewport()->height() - 2.0 * kFitMargin);
    const double scale = std::min({width / bounds.width(), height / bounds.height(), kLargestFit});
    setTransform(QTransform::fromScale(scale, scale));
    centerOn(bounds.center());
    Q_EMIT viewChanged();
}

void GraphView::zoomAt(const QPoint &at, double factor)
{
    const double now = scale();
    const double wanted = std::clamp(now * factor, smallestScale(), kLargestScale);
    if (wanted == now)
        return;
    m_fitting = false;
    const QPointF anchor = mapToScene(at);
    setTransform(QTransform::fromScale(wanted, wanted));
    const QPointF moved = QPointF(mapFromScene(anchor)) - QPointF(at);
    horizontalScrollBar()->setValue(horizontalScrollBar()->value() + static_cast<int>(std::lround(moved.x())));
    verticalScrollBar()->setValue(verticalScrollBar()->value() + static_cast<int>(std::lround(moved.y())));
    Q_EMIT viewChanged();
}

void GraphView::zoomBy(double factor)
{
    zoomAt(viewport()->rect().center(), factor);
}

void GraphView::naturalSize()
{
    zoomBy(1 / scale());
}

void GraphView::showAt(const QPointF &scenePoint)
{
    m_fitting = false;
    centerOn(scenePoint);
    Q_EMIT viewChanged();
}

void GraphView::reveal(std::int32_t item)
{
    if (item < 0)
        return;
    const QRectF rect = m_scene->layout().items[item].rect;
    if (visibleScene().contains(rect))
        return;
    m_fitting = false;
    ensureVisible(rect, 60, 60);
    Q_EMIT viewChanged();
}

void GraphView::resizeEvent(QResizeEvent *event)
{
    QGraphicsView::resizeEvent(event);
    Q_EMIT resized();
    if (m_fitting)
        fit();
    Q_EMIT viewChanged();
}

void GraphView::focusInEvent(QFocusEvent *event)
{
    m_keyboardFocus = event->reason() != Qt::MouseFocusReason && event->reason() != Qt::ActiveWindowFocusReason &&
                      event->reason() != Qt::OtherFocusReason;
    viewport()->update();
    QGraphicsView::focusInEvent(event);
}

void GraphView::focusOutEvent(QFocusEvent *event)
{
    m_keyboardFocus = false;
    viewport()->update();
    QGraphicsView::focusOutEvent(event);
}

void GraphView::scrollContentsBy(int dx, int dy)
{
    QGraphicsView::scrollContentsBy(dx, dy);
    Q_EMIT viewChanged();
}

void GraphView::mousePressEvent(QMouseEvent *event)
{
    if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton)
        return;
    m_pressed = m_last = event->pos();
    m_down = true;
    m_panning = false;
    event->accept();
}

void GraphView::mouseMoveEvent(QMouseEvent *event)
{
    if (!m_down) {
        const auto what = hitAt(event->pos()).what;
        const bool over = what == GraphHit::What::Item || what == GraphHit::What::Mark;
        viewport()->setCursor(over ? Qt::PointingHandCursor : Qt::ArrowCursor);
        return;
    }
    if (!m_panning && (event->pos() - m_pressed).manhattanLength() >= QApplication::startDragDistance()) {
        m_panning = true;
        viewport()->setCursor(Qt::ClosedHandCursor);
    }
    if (!m_panning)
        return;
    m_fitting = false;
    const QPoint delta = event->pos() - m_last;
    m_last = event->pos();
    horizontalScrollBar()->setValue(horizontalScrollBar()->value() - delta.x());
    verticalScrollBar()->setValue(verticalScrollBar()->value() - delta.y());
}

void GraphView::mouseReleaseEvent(QMouseEvent *event)
{
    if (!m_down)
        return;
    m_down = false;
    viewport()->setCursor(Qt::ArrowCursor);
    if (m_panning || event->button() != Qt::LeftButton)
        return;
    const GraphHit hit = hitAt(event->pos());
    if (hit.what == GraphHit::What::Mark)
        Q_EMIT markPicked(hit.index);
    else
        Q_EMIT itemPicked(hit.what == GraphHit::What::Item ? hit.index : -1);
}

void GraphView::mouseDoubleClickEvent(QMouseEvent *event)
{
    if (event->button() != Qt::LeftButton)
        return;
    const GraphHit hit = hitAt(event->pos());
    if (hit.what == GraphHit::What::Mark)
        Q_EMIT markToggled(hit.index);
    else if (hit.what == GraphHit::What::Outline)
        Q_EMIT groupToggled(hit.index);
    else if (hit.what == GraphHit::What::Item && m_scene->layout().items[hit.index].node < 0)
        Q_EMIT groupToggled(m_scene->layout().items[hit.index].group);
}

void GraphView::wheelEvent(QWheelEvent *event)
{
    // A notch is 120; touch pads send small steps.
    const double steps = event->angleDelta().y() / 120.0;
    if (steps != 0)
        zoomAt(event->position().toPoint(), std::pow(1.2, steps));
    event->accept();
}

bool GraphView::moveByKey(Qt::Key key, bool far)
{
    const std::int32_t next = m_scene->next(m_scene->currentItem(), key, far);
    if (next >= 0)
        Q_EMIT itemPicked(next);
    return true;
}

void GraphView::stepMarks()
{
    const std::int32_t item = m_scene->currentItem();
    if (item < 0)
        return;
    const auto marks = m_scene->marksOfItem(item);
    if (marks.empty())
        return;
    const auto now = std::find(marks.begin(), marks.end(), m_scene->currentMark());
    // After the last one the node itself again.
    if (now == marks.end())
        Q_EMIT markPicked(marks.front());
    else if (now + 1 == marks.end())
        Q_EMIT itemPicked(item);
    else
        Q_EMIT markPicked(*(now + 1));
}

void GraphView::toggleCurrent()
{
    if (m_scene->currentMark() >= 0)
        Q_EMIT markToggled(m_scene->currentMark());
    else if (m_scene->currentItem() >= 0)
        Q_EMIT itemToggled(m_scene->currentItem());
}

void GraphView::toggleGroupOf(std::int32_t item)
{
    if (item < 0)
        return;
    const GraphItem &box = m_scene->layout().items[item];
    const std::int32_t group = box.node < 0 ? box.group : m_scene->layout().document->nodes[box.node].group;
    if (group >= 0)
        Q_EMIT groupToggled(group);
}

void GraphView::keyPressEvent(QKeyEvent *event)
{
    const auto last = static_cast<std::int32_t>(m_scene->layout().items.size()) - 1;
    switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
        moveByKey(static_cast<Qt::Key>(event->key()), event->modifiers().testFlag(Qt::ShiftModifier));
        return;
    case Qt::Key_Home:
    case Qt::Key_End:
        if (last >= 0)
            Q_EMIT itemPicked(event->key() == Qt::Key_Home ? 0 : last);
        return;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoomBy(1.25);
        return;
    case Qt::Key_Minus:
        zoomBy(0.8);
        return;
    case Qt::Key_0:
        naturalSize();
        return;
    case Qt::Key_F:
        if (event->modifiers() != Qt::NoModifier)
            break;
        fit();
        return;
    case Qt::Key_N:
        Q_EMIT neighbourhoodWanted();
        return;
    case Qt::Key_S:
        if (event->modifiers() != Qt::NoModifier)
            break;
        stepMarks();
        return;
    case Qt::Key_Space:
        toggleCurrent();
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_scene->currentItem() >= 0 && m_scene->layout().items[m_scene->currentItem()].node < 0)
            toggleGroupOf(m_scene->currentItem());
        return;
    case Qt::Key_C:
        if (event->modifiers() != Qt::NoModifier)
            break;
        toggleGroupOf(m_scene->currentItem());
        return;
    case Qt::Key_Escape:
        if (!m_scene->neighbourhood())
            break;
        Q_EMIT neighbourhoodWanted();
        return;
    case Qt::Key_Slash:
        Q_EMIT findWanted();
        return;
    default:
        break;
    }
    QGraphicsView::keyPressEvent(event);
}

void GraphView::contextMenuEvent(QContextMenuEvent *event)
{
    GraphHit hit = hitAt(event->pos());
    QPoint at = event->globalPos();
    if (event->reason() == QContextMenuEvent::Keyboard) {
        if (m_scene->currentItem() < 0)
            return;
        hit = {GraphHit::What::Item, m_scene->currentItem()};
        QRectF rect = m_scene->layout().items[hit.index].rect;
        if (m_scene->currentMark() >= 0) {
            hit = {GraphHit::What::Mark, m_scene->currentMark()};
            rect = m_scene->markRect(hit.index);
        }
        at = viewport()->mapToGlobal(mapFromScene(rect.center()));
    }
    Q_EMIT menuWanted(hit, at);
    event->accept();
}

bool GraphView::viewportEvent(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event);
        const GraphHit hit = hitAt(help->pos());
        QString text;
        if (hit.what == GraphHit::What::Item)
            text = m_scene->describeItem(hit.index);
        else if (hit.what == GraphHit::What::Mark)
            text = m_scene->describeMark(hit.index);
        if (text.isEmpty())
            QToolTip::hideText();
        else
            // As rich text, so that long names wrap.
            QToolTip::showText(help->globalPos(), QStringLiteral("<p>%1</p>").arg(text.toHtmlEscaped()), viewport());
        return true;
    }
    return QGraphicsView::viewportEvent(event);
}

void GraphView::drawForeground(QPainter *painter, const QRectF &)
{
    if (!m_keyboardFocus)
        return;
    // Keyboard focus is to be seen even when no node is current.
    painter->save();
    painter->resetTransform();
    painter->setPen(QPen(Theme::current().blue, 1));
    painter->setBrush(Qt::NoBrush);
    painter->drawRect(viewport()->rect().adjusted(0, 0, -1, -1));
    painter->restore();
}

} // namespace dblame::ui

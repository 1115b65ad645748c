// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/minimap.h"

#include <algorithm>

#include <QMouseEvent>
#include <QPainter>

#include "ui/graph_scene.h"
#include "ui/graph_view.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

constexpr double kMargin = 5, kRadius = 6;

} // namespace

Minimap::Minimap(GraphScene *scene, GraphView *view) : QWidget(view), m_scene(scene), m_view(view)
{
    setFixedSize(sizeHint());
    setFocusPolicy(Qt::NoFocus);
    setAccessibleName(tr("Map of the graph"));
    setToolTip(tr("The whole graph; click or drag to move the view"));
    setCursor(Qt::PointingHandCursor);
    connect(scene, &GraphScene::looksChanged, this, &Minimap::forget);
    connect(scene, &GraphScene::layoutChanged, this, &Minimap::forget);
    connect(view, &GraphView::viewChanged, this, qOverload<>(&QWidget::update));
}

QSize Minimap::sizeHint() const
{
    return {132, 72};
}

void Minimap::forget()
{
    m_boxes = {};
    update();
}

QTransform Minimap::toMap() const
{
    const QRectF bounds = m_scene->layout().bounds;
    if (bounds.isEmpty())
        return {};
    const double scale = std::min((width() - 2 * kMargin) / bounds.width(), (height() - 2 * kMargin) / bounds.height());
    return QTransform::fromTranslate(width() / 2.0, height() / 2.0)
        .scale(scale, scale)
        .translate(-bounds.center().x(), -bounds.center().y());
}

void Minimap::paintBoxes()
{
    const double ratio = devicePixelRatioF();
    m_boxes = QPixmap(size() * ratio);
    m_boxes.setDevicePixelRatio(ratio);
    m_boxes.fill(Qt::transparent);
    QPainter painter(&m_boxes);
    const QTransform map = toMap();
    const auto &items = m_scene->layout().items;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const GraphNodeLook &look = m_scene->look(static_cast<std::int32_t>(i));
        QColor colour = GraphPainter::colour(look, m_scene->range());
        if (!look.coloured)
            colour = Theme::current().mute;
        QRectF r = map.mapRect(items[i].rect);
        // A box is never less than a dot.
        r.setSize(r.size().expandedTo({2, 2}));
        painter.fillRect(r, colour);
    }
}

void Minimap::paintEvent(QPaintEvent *)
{
    const Theme &t = Theme::current();
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(t.line, 1));
    painter.setBrush(t.panel);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), kRadius, kRadius);
    if (m_scene->empty())
        return;
    if (m_boxes.isNull())
        paintBoxes();
    painter.drawPixmap(0, 0, m_boxes);
    const QRectF inside = QRectF(rect()).adjusted(3.5, 3.5, -3.5, -3.5);
    const QRectF seen = toMap().mapRect(m_view->visibleScene()).intersected(inside);
    QColor veil = t.blue;
    veil.setAlphaF(0.10F);
    painter.setPen(QPen(t.blue, 1));
    painter.setBrush(seen == inside ? QColor(Qt::transparent) : veil);
    painter.drawRoundedRect(seen, 3, 3);
}

void Minimap::moveTo(const QPointF &at)
{
    m_view->showAt(toMap().inverted().map(at));
}

void Minimap::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton && !m_scene->empty())
        moveTo(event->position());
}

void Minimap::mouseMoveEvent(QMouseEvent *event)
{
    if ((event->buttons() & Qt::LeftButton) && !m_scene->empty())
        moveTo(event->position());
}

void Minimap::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange)
        forget();
    QWidget::changeEvent(event);
}

void Minimap::resizeEvent(QResizeEvent *event)
{
    forget();
    QWidget::resizeEvent(event);
}

} // namespace dblame::ui

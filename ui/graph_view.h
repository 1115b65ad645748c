// SPDX-License-Identifier: GPL-3.0-or-later
//
// Zoom, pan, mouse and keys of the graph. Knows the scene; says what was meant, changes nothing itself but what
// is to be seen.
//
// Keys: arrows move along edges and across, with Shift along the longest edge; S steps through the current node's
// quantizers, Space asks to switch the current quantizer (or layer), Return opens a collapsed group, C collapses the
// current node's group,
// + and - zoom, F fits, 0 is natural size, N dims all but the neighbours, Home and End go to first and last,
// Menu (Shift+F10) opens the context menu, / asks for the find field.
#pragma once

#include <QGraphicsView>

#include "ui/graph_scene.h"

namespace dblame::ui
{

class GraphView : public QGraphicsView
{
    Q_OBJECT
public:
    explicit GraphView(GraphScene *scene, QWidget *parent = nullptr);

    void fit();
    void zoomBy(double factor); // about the middle
    void naturalSize();
    void reveal(std::int32_t item); // scrolls so that it is to be seen; does not zoom
    // True until the user zooms or pans: then new layouts and sizes no longer fit by themselves.
    [[nodiscard]] bool fitting() const { return m_fitting; }
    [[nodiscard]] double scale() const { return transform().m11(); }
    [[nodiscard]] QRectF visibleScene() const;
    void showAt(const QPointF &scenePoint); // centres

Q_SIGNALS:
    void itemPicked(int item);  // click or arrow key; -1: the background
    void markPicked(int mark);  // placed mark
    void markToggled(int mark); // double click or Space
    void itemToggled(int item); // Space on a node
    void groupToggled(int group);
    void menuWanted(dblame::ui::GraphHit hit, QPoint globalPos);
    void findWanted();
    void neighbourhoodWanted();
    void viewChanged(); // what is to be seen has moved
    void resized();

protected:
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void mouseDoubleClickEvent(QMouseEvent *event) override;
    void wheelEvent(QWheelEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void contextMenuEvent(QContextMenuEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void scrollContentsBy(int dx, int dy) override;
    bool viewportEvent(QEvent *event) override;
    void focusInEvent(QFocusEvent *event) override;
    void focusOutEvent(QFocusEvent *event) override;
    void drawForeground(QPainter *painter, const QRectF &rect) override;

private:
    void zoomAt(const QPoint &at, double factor);
    [[nodiscard]] double smallestScale() const;
    [[nodiscard]] GraphHit hitAt(const QPoint &at) const { return m_scene->hitTest(mapToScene(at)); }
    bool moveByKey(Qt::Key key, bool far);
    void stepMarks();
    void toggleCurrent();
    void toggleGroupOf(std::int32_t item);

    GraphScene *m_scene;
    QPoint m_pressed, m_last;
    bool m_down = false, m_panning = false, m_fitting = true;
    bool m_keyboardFocus = false; // came by key: the frame is drawn
};

} // namespace dblame::ui

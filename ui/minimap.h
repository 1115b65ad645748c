// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPixmap>
#include <QWidget>

namespace dblame::ui
{

class GraphScene;
class GraphView;

// The whole graph in a corner: boxes in the ramp's colours and what is to be seen as a frame; click and drag move
// the view. Painted into a pixmap that is made anew only when colours or layout change. The keyboard moves the
// view itself, so this takes no focus.
class Minimap : public QWidget
{
    Q_OBJECT
public:
    Minimap(GraphScene *scene, GraphView *view);
    [[nodiscard]] QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void changeEvent(QEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;

private:
    void paintBoxes();
    void moveTo(const QPointF &at);
    void forget();
    [[nodiscard]] QTransform toMap() const; // scene to widget

    GraphScene *m_scene;
    GraphView *m_view;
    QPixmap m_boxes; // null: to be made
};

} // namespace dblame::ui

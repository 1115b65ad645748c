// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "ui/graph_paint.h"

namespace dblame::ui
{

class GraphScene;

// What the colours and marks of the graph mean: the ramp with its numbers, and the kinds of marks that this graph
// has.
class GraphLegend : public QWidget
{
    Q_OBJECT
public:
    GraphLegend(GraphScene *scene, QWidget *parent);
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;
    // One line of words for assistive technology, and for tests.
    [[nodiscard]] QString words() const;
    void refresh();

protected:
    void paintEvent(QPaintEvent *event) override;

private:
    struct Sample {
        GraphMarkLook look;
        QString words;
    };
    [[nodiscard]] std::vector<Sample> samples() const;

    GraphScene *m_scene;
};

} // namespace dblame::ui

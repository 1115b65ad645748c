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
    [[nodiscard]] bool hasHeightForWidth() const override { return true; }
    [[nodiscard]] int heightForWidth(int width) const override;
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
    struct Placed {
        Sample sample;
        int line = 0, x = 0, width = 0; // of the words
    };
    [[nodiscard]] std::vector<Sample> samples() const;
    [[nodiscard]] std::vector<Placed> arrange(int width) const;

    GraphScene *m_scene;
};

} // namespace dblame::ui

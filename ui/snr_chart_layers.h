// SPDX-License-Identifier: GPL-3.0-or-later
//
// The QCustomPlot objects of the SNR chart and how they are styled and placed. Private to snr_chart*.cpp.
#pragma once

#include "ui/name_ticker.h"
#include "ui/qcp.h"
#include "ui/snr_chart.h"
#include "ui/theme.h"

namespace dblame::ui
{

struct SnrChart::Layers {
    // Edge marks live on a second y axis that always goes from 0 to 1, so that they stay at the edge.
    static constexpr double kTopLane = 0.95, kBottomLane = 0.05;

    explicit Layers(QCustomPlot &plot);

    void restyle(QCustomPlot &plot, const Theme &theme);
    void setBands(QCustomPlot &plot, const std::vector<ModuleBand> &bands);
    void clearMarks();
    void addMark(QCustomPlot &plot, double x, double db, const QString &text, bool second, bool below);
    void showSelection(QCustomPlot &plot, int x); // -1: none
    // Before a layout: labels, ticks, margins and point sizes for the pixels at hand.
    void adapt(QCustomPlot &plot, const RowText &label, const SnrSeries &series);
    // After a layout: words go to the side where they have room.
    void arrange(QCustomPlot &plot);
    [[nodiscard]] static QString shortName(const QString &name);

    QCPGraph *line, *overlay, *exact, *silent, *bad;
    QCPItemStraightLine *selection;
    QCPItemText *selectionText, *legend, *message;
    QSharedPointer<NameTicker> names;
    QSharedPointer<QCPAxisTickerFixed> decibels;
    struct Mark {
        QCPItemTracer *circle;
        QCPItemText *words;
        bool below; // the line rises to the right: the words go under it
    };
    std::vector<Mark> marks;
    std::vector<QCPItemRect *> bandRects;
    std::vector<QCPItemText *> bandTexts;
    std::vector<ModuleBand> bands;
    bool namesShown = true;
    int longestName = -1;      // pixels; -1: to be measured
    std::vector<QRectF> words; // of marks and selection as they stand, in the plot's pixels

private:
    void adaptX(QCustomPlot &plot, const RowText &label, const SnrSeries &series);
    void adaptY(QCustomPlot &plot);
    void adaptPoints(QCustomPlot &plot);
    void arrangeMarks(QCustomPlot &plot);
    // What `place` would cover of the line, of its points and of the words that stand already.
    [[nodiscard]] double covered(QCustomPlot &plot, const QRectF &place) const;
    void arrangeSelection(QCustomPlot &plot);
    void arrangeBands(QCustomPlot &plot);
    QCPGraph *addEdgeGraph(QCustomPlot &plot, const QString &name);
    QCPItemText *addText(QCustomPlot &plot);
};

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The canvas of the SNR plot: draws an SnrSeries and says what the user pointed at. Knows no model.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <QWidget>

#include "ui/snr_series.h"

class QCustomPlot;
class QMouseEvent;
class QWheelEvent;

namespace dblame::ui
{

// A point to look at: circled, with words.
struct DropMark {
    PairId row;
    QString text;        // "largest drop −5.4 dB"
    bool second = false; // drawn lighter
};

class SnrChart : public QWidget
{
    Q_OBJECT
public:
    using RowText = std::function<QString(PairId)>;

    explicit SnrChart(QWidget *parent = nullptr);
    ~SnrChart() override;

    void setRowTexts(RowText label, RowText toolTip);
    // Another number of points, or `newAxes`, shows the whole x range again.
    void setSeries(SnrSeries series, bool newAxes);
    // An earlier run, by row; NaN where it has no dB. Empty: none.
    void setOverlay(std::vector<double> dbOfRow);
    void setMarks(std::vector<DropMark> marks);
    void setSelected(PairId row);
    void setMessage(const QString &text); // in the middle of an empty plot; empty: none
    void resetView();                     // all points, y as tight as 5 dB steps allow

    [[nodiscard]] const SnrSeries &series() const { return m_series; }
    // The row under the mouse, by x; among rows that share pixels the one nearest in y. Invalid when there is none.
    [[nodiscard]] PairId rowAt(QPointF position) const;
    // Where a row's point or edge mark is, in this widget's coordinates; null while it has none.
    [[nodiscard]] QPointF positionOf(PairId row) const;
    [[nodiscard]] QCustomPlot &plot() { return *m_plot; }

Q_SIGNALS:
    void rowClicked(dblame::PairId row);
    void rowHovered(dblame::PairId row); // invalid when the mouse left
    void stepped(int by);                // keyboard: ±1, ±10, INT_MIN/MAX for the ends

protected:
    void changeEvent(QEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void focusInEvent(QFocusEvent *event) override;
    void focusOutEvent(QFocusEvent *event) override;
    void paintEvent(QPaintEvent *event) override;

private:
    struct Layers; // QCustomPlot objects; they belong to the plot

    void buildPlot();
    void connectMouse();
    void restyle();
    void fillGraphs();
    void fillOverlay();
    void placeMarks();
    void placeSelection();
    void placeBands();
    void placeLegend();
    void fitY();
    void zoomX(double factor);
    void mousePressed(QMouseEvent *event);
    void mouseMoved(QMouseEvent *event);
    void mouseReleased(QMouseEvent *event);
    void wheelTurned(QWheelEvent *event);
    void replotSoon();
    [[nodiscard]] QString tickText(int x) const;
    [[nodiscard]] static double fullLower() { return -0.6; }
    [[nodiscard]] double fullUpper() const;

    QCustomPlot *m_plot = nullptr;
    std::unique_ptr<Layers> m_layers;
    RowText m_label, m_toolTip;
    SnrSeries m_series;
    std::vector<double> m_overlay;
    std::vector<DropMark> m_marks;
    PairId m_selected, m_hovered;
    SteppedRange m_yRange;
    bool m_userY = false; // the user zoomed y: it stays
    QPoint m_pressedAt;
    bool m_pressed = false;
    bool m_keyboardFocus = false;
};

} // namespace dblame::ui

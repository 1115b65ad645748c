// SPDX-License-Identifier: GPL-3.0-or-later
//
// How nodes, hexagons, outlines and the legend's samples look. Stateless; colours come from the theme.
#pragma once

#include <cmath>
#include <limits>

#include <QFont>
#include <QFontMetricsF>
#include <QRectF>
#include <QString>

class QPainter;

namespace dblame::ui
{

// The dB values between which the ramp runs.
struct GraphRange {
    double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
    [[nodiscard]] bool valid() const { return !std::isnan(low); }
    friend bool operator==(const GraphRange &a, const GraphRange &b)
    {
        return (a.low == b.low && a.high == b.high) || (!a.valid() && !b.valid());
    }
};

// What a node shows of its row.
struct GraphNodeLook {
    enum class Shape { Box, Site, Group };
    Shape shape = Shape::Box;
    QString name;
    QString op;    // may be shortened to make room
    QString state; // "46.1", "exact", "failed"; never shortened
    double db = std::numeric_limits<double>::quiet_NaN();
    bool coloured = false; // db stands for a place on the ramp
    bool trouble = false;  // failed, not computed, shapes differ
    bool unpaired = false;
    bool observer = false; // Site that only watches
    friend bool operator==(const GraphNodeLook &, const GraphNodeLook &) = default;
};

struct GraphMarkLook {
    QChar letter = QLatin1Char('Q');
    enum class State { On, Off, Partly } state = State::On;
    bool watches = false; // outlined
    bool pending = false; // differs from the last run: orange
    int instance = 0;
};

// Below these scales details are left out.
constexpr double kBoxesOnly = 0.3;  // no text, no hexagons
constexpr double kGroupsOnly = 0.1; // outlines filled and named

class GraphPainter
{
public:
    // `scale`: screen pixels per scene unit.
    GraphPainter(QPainter &painter, double scale);

    void node(const QRectF &rect, const GraphNodeLook &look, const GraphRange &range, bool current, bool matched);
    void mark(const QPointF &centre, const GraphMarkLook &look, bool current);
    void outline(const QRectF &rect, const QString &name, bool collapsible);
    void farGroup(const QRectF &rect, const QString &name, double worst, const GraphRange &range);
    // The ring and words of the largest drop.
    void drop(const QRectF &rect, const QString &words, bool downwards);

    [[nodiscard]] static QRectF dropRect(const QRectF &node, bool downwards);
    [[nodiscard]] static QColor colour(const GraphNodeLook &look, const GraphRange &range);

private:
    void bar(const QRectF &rect, const GraphNodeLook &look, const GraphRange &range);
    void text(const QRectF &rect, const GraphNodeLook &look);

    QPainter &m_painter;
    double m_scale;
    QFont m_name, m_detail, m_letter;
    QFontMetricsF m_nameMetrics, m_detailMetrics;
};

} // namespace dblame::ui

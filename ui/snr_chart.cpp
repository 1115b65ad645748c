// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/snr_chart.h"

#include <cmath>
#include <limits>
#include <utility>

#include <QEvent>
#include <QPainter>
#include <QVBoxLayout>

#include "ui/snr_chart_layers.h"
#include "ui/theme.h"

namespace dblame::ui
{
namespace
{

constexpr double kYPad = 0.07; // of the span, above and below the data

} // namespace

SnrChart::SnrChart(QWidget *parent) : QWidget(parent), m_plot(new QCustomPlot(this))
{
    setFocusPolicy(Qt::StrongFocus);
    setMinimumSize(240, 120);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(1, 1, 1, 1);
    layout->addWidget(m_plot);
    m_plot->setFocusPolicy(Qt::NoFocus);
    m_plot->setMouseTracking(true);
    m_layers = std::make_unique<Layers>(*m_plot);
    m_layers->names->text = [this](int x) { return tickText(x); };
    connectMouse();
    restyle();
    resetView();
}

SnrChart::~SnrChart() = default;

double SnrChart::fullUpper() const
{
    return std::max(m_series.points.size(), std::size_t(1)) - 0.4;
}

void SnrChart::setRowTexts(RowText label, RowText toolTip)
{
    m_label = std::move(label);
    m_toolTip = std::move(toolTip);
}

QString SnrChart::tickText(int x) const
{
    if (x < 0 || static_cast<std::size_t>(x) >= m_series.points.size())
        return {};
    const PairId row = m_series.points[static_cast<std::size_t>(x)].row;
    // Numbers count what is plotted: weights, which come first in the table, have none here.
    return m_layers->namesShown && m_label ? Layers::shortName(m_label(row)) : QString::number(x + 1);
}

void SnrChart::setSeries(SnrSeries series, bool newAxes)
{
    newAxes = newAxes || series.points.size() != m_series.points.size();
    m_series = std::move(series);
    if (newAxes) {
        m_yRange.reset();
        m_userY = false;
        m_layers->names->count = static_cast<int>(m_series.points.size());
        m_layers->longestName = -1;
    }
    m_yRange.include(m_series.highest); // first: the least span is laid out below it
    m_yRange.include(m_series.lowest);
    fillGraphs();
    fillOverlay();
    placeBands();
    placeLegend();
    if (newAxes)
        m_plot->xAxis->setRange(fullLower(), fullUpper());
    fitY();
    placeMarks();
    placeSelection();
    replotSoon();
}

void SnrChart::setOverlay(std::vector<double> dbOfRow)
{
    m_overlay = std::move(dbOfRow);
    fillOverlay();
    fitY();
    replotSoon();
}

void SnrChart::setMarks(std::vector<DropMark> marks)
{
    m_marks = std::move(marks);
    placeMarks();
    replotSoon();
}

void SnrChart::setSelected(PairId row)
{
    const bool moved = std::exchange(m_selected, row) != row;
    const int x = m_series.position(row);
    const QCPRange range = m_plot->xAxis->range();
    // Follows a new selection that lies outside of the zoomed part; who pans away from it is left alone.
    if (moved && x >= 0 && !range.contains(x))
        m_plot->xAxis->setRange(x - range.size() / 2, x + range.size() / 2);
    placeSelection();
    replotSoon();
}

void SnrChart::setMessage(const QString &text)
{
    m_layers->message->setText(text);
    m_layers->message->setVisible(!text.isEmpty());
    replotSoon();
}

void SnrChart::resetView()
{
    m_userY = false;
    m_yRange.reset();
    m_yRange.include(m_series.highest); // first: the least span is laid out below it
    m_yRange.include(m_series.lowest);
    for (const SnrPoint &point : m_series.points)
        if (point.row.get() < m_overlay.size())
            m_yRange.include(m_overlay[point.row.get()]);
    m_plot->xAxis->setRange(fullLower(), fullUpper());
    fitY();
    placeMarks();
    placeSelection();
    replotSoon();
}

// The line leaves a gap where a figure is missing or wrong, and between the bands of the module order; it runs on
// over rows that are exact or have no dB by nature.
void SnrChart::fillGraphs()
{
    QVector<double> xs, ys;
    xs.reserve(static_cast<int>(m_series.points.size()));
    ys.reserve(xs.capacity());
    QVector<QCPGraphData> exact, silent, bad;
    std::size_t band = 0;
    for (std::size_t i = 0; i < m_series.points.size(); ++i) {
        const SnrPoint &point = m_series.points[i];
        const auto x = static_cast<double>(i);
        if (band < m_series.bands.size() && static_cast<int>(i) > m_series.bands[band].last) {
            ++band;
            xs << x - 0.5;
            ys << std::numeric_limits<double>::quiet_NaN();
        }
        if (point.state != PointState::Exact && point.state != PointState::NoDb) {
            xs << x;
            ys << point.db; // NaN unless it is a value
        }
        if (point.state == PointState::Exact)
            exact << QCPGraphData(x, Layers::kTopLane);
        else if (point.state == PointState::MinusInf)
            silent << QCPGraphData(x, Layers::kBottomLane);
        else if (point.state == PointState::Bad || point.flagged)
            bad << QCPGraphData(x, Layers::kBottomLane);
    }
    m_layers->line->setData(xs, ys, true);
    m_layers->exact->data()->set(exact, true);
    m_layers->silent->data()->set(silent, true);
    m_layers->bad->data()->set(bad, true);
}

void SnrChart::fillOverlay()
{
    QVector<double> xs, ys;
    for (std::size_t i = 0; !m_overlay.empty() && i < m_series.points.size(); ++i) {
        const std::size_t row = m_series.points[i].row.get();
        const double db = row < m_overlay.size() ? m_overlay[row] : std::numeric_limits<double>::quiet_NaN();
        m_yRange.include(db);
        xs << static_cast<double>(i);
        ys << (std::isfinite(db) ? db : std::numeric_limits<double>::quiet_NaN());
    }
    m_layers->overlay->setData(xs, ys, true);
}

void SnrChart::fitY()
{
    if (m_userY)
        return;
    const double pad = (m_yRange.upper() - m_yRange.lower()) * kYPad;
    m_plot->yAxis->setRange(m_yRange.lower() - pad, m_yRange.upper() + pad);
}

void SnrChart::placeMarks()
{
    m_layers->clearMarks();
    for (const DropMark &mark : m_marks) {
        const int x = m_series.position(mark.row);
        if (x < 0 || m_series.points[static_cast<std::size_t>(x)].state != PointState::Value)
            continue;
        const double db = m_series.points[static_cast<std::size_t>(x)].db;
        const auto next = static_cast<std::size_t>(x) + 1;
        const bool rises = next < m_series.points.size() && m_series.points[next].state == PointState::Value &&
                           m_series.points[next].db > db;
        m_layers->addMark(*m_plot, x, db, mark.text, mark.second, rises);
    }
}

void SnrChart::placeSelection()
{
    m_layers->showSelection(*m_plot, m_series.position(m_selected));
}

void SnrChart::placeBands()
{
    m_layers->setBands(*m_plot, m_series.bands);
}

void SnrChart::placeLegend()
{
    QStringList words;
    if (m_series.has(PointState::Exact))
        words << QStringLiteral("▲ exact");
    if (m_series.has(PointState::MinusInf))
        words << QStringLiteral("▼ −inf, silent reference");
    bool flagged = m_series.has(PointState::Bad);
    for (const SnrPoint &point : m_series.points)
        flagged = flagged || point.flagged;
    if (flagged)
        words << QStringLiteral("✕ NaN, failed or not comparable");
    m_layers->legend->setText(words.join(QStringLiteral("    ")));
    m_layers->legend->setVisible(!words.isEmpty());
}

void SnrChart::restyle()
{
    m_layers->restyle(*m_plot, Theme::current());
    m_layers->setBands(*m_plot, m_series.bands);
    placeMarks();
    replotSoon();
}

void SnrChart::replotSoon()
{
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

QPointF SnrChart::positionOf(PairId row) const
{
    const int x = m_series.position(row);
    if (x < 0)
        return {};
    const SnrPoint &point = m_series.points[static_cast<std::size_t>(x)];
    const double px = m_plot->xAxis->coordToPixel(x);
    double py = 0;
    switch (point.state) {
    case PointState::Pending:
    case PointState::NoDb:
        return {};
    case PointState::Value:
        py = m_plot->yAxis->coordToPixel(point.db);
        break;
    case PointState::Exact:
        py = m_plot->yAxis2->coordToPixel(Layers::kTopLane);
        break;
    case PointState::MinusInf:
    case PointState::Bad:
        py = m_plot->yAxis2->coordToPixel(Layers::kBottomLane);
        break;
    }
    return QPointF(px, py) + QPointF(m_plot->pos());
}

void SnrChart::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_layers)
        restyle();
}

void SnrChart::focusInEvent(QFocusEvent *event)
{
    QWidget::focusInEvent(event);
    // The frame shows where the keyboard is; who clicked knows, and a window that comes back changes nothing.
    const Qt::FocusReason reason = event->reason();
    if (reason == Qt::MouseFocusReason)
        m_keyboardFocus = false;
    else if (reason == Qt::TabFocusReason || reason == Qt::BacktabFocusReason || reason == Qt::ShortcutFocusReason)
        m_keyboardFocus = true;
    update();
}

void SnrChart::focusOutEvent(QFocusEvent *event)
{
    QWidget::focusOutEvent(event);
    update();
}

void SnrChart::paintEvent(QPaintEvent * /*event*/)
{
    QPainter painter(this);
    const Theme &theme = Theme::current();
    painter.setPen(hasFocus() && m_keyboardFocus ? theme.blue
                                                 : theme.panel); // shows through the one pixel around the plot
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

} // namespace dblame::ui

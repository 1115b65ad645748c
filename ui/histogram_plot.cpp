// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/histogram_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <QContextMenuEvent>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QMouseEvent>
#include <QToolTip>
#include <QVBoxLayout>

#include "ui/panel_text.h"
#include "ui/plot_export.h"
#include "ui/qcp.h"
#include "ui/row_words.h"
#include "ui/theme.h"

namespace dblame::ui
{
namespace
{

constexpr int kHeight = 132;

QCPItemText *addWord(QCustomPlot *plot)
{
    auto *text = new QCPItemText(plot);
    text->setClipToAxisRect(false);
    text->position->setType(QCPItemPosition::ptAxisRectRatio);
    text->setPositionAlignment(Qt::AlignRight | Qt::AlignTop);
    return text;
}

double largestOf(const std::vector<double> &values)
{
    return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

double leastAboveZero(const std::vector<double> &values)
{
    double least = std::numeric_limits<double>::infinity();
    for (const double value : values)
        if (value > 0)
            least = std::min(least, value);
    return least;
}

} // namespace

HistogramPlot::HistogramPlot(QWidget *parent)
    : QWidget(parent), m_plot(new QCustomPlot(this)), m_reference(m_plot->addGraph()), m_candidate(m_plot->addGraph()),
      m_referenceWord(addWord(m_plot)), m_candidateWord(addWord(m_plot)), m_messageText(addWord(m_plot)),
      m_low(new QLabel(this)), m_high(new QLabel(this)), m_note(new QLabel(this))
{
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(2);
    m_plot->setFixedHeight(kHeight);
    m_plot->setMouseTracking(true);
    m_plot->installEventFilter(this);
    m_plot->setFocusPolicy(Qt::NoFocus);
    m_plot->axisRect()->setAutoMargins(QCP::msNone);
    m_plot->axisRect()->setMargins(QMargins(1, 4, 1, 1));
    m_plot->axisRect()->setMinimumSize(10, 10);
    for (QCPAxis *axis : {m_plot->xAxis, m_plot->yAxis}) {
        axis->setTicks(false);
        axis->setTickLabels(false);
        axis->grid()->setVisible(false);
        axis->setBasePen(Qt::NoPen);
    }
    layout->addWidget(m_plot);
    auto *ends = new QHBoxLayout;
    for (QLabel *label : {m_low, m_note, m_high}) {
        label->setProperty("role", "mute");
        label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    }
    ends->addWidget(m_low);
    ends->addStretch(1);
    ends->addWidget(m_note);
    ends->addStretch(1);
    ends->addWidget(m_high);
    layout->addLayout(ends);
    m_reference->setLineStyle(QCPGraph::lsStepLeft);
    m_candidate->setLineStyle(QCPGraph::lsStepLeft);
    m_referenceWord->position->setCoords(0.97, 0.03);
    m_candidateWord->position->setCoords(0.97, 0.15);
    m_messageText->position->setCoords(0.5, 0.5);
    m_messageText->setPositionAlignment(Qt::AlignCenter);
    m_messageText->setTextAlignment(Qt::AlignCenter);
    restyle();
    draw();
}

void HistogramPlot::setHistogram(const std::optional<Histogram> &histogram)
{
    m_histogram = histogram;
    draw();
}

void HistogramPlot::setMessage(const QString &text)
{
    m_message = text;
    draw();
}

void HistogramPlot::setShow(Show show)
{
    m_show = show;
    draw();
}

void HistogramPlot::setLogarithmic(bool on)
{
    m_logarithmic = on;
    draw();
}

Result<void> HistogramPlot::exportTo(const QString &path)
{
    return exportPlot(*m_plot, path);
}

// Steps: the last density is repeated at the last edge, so that the last bin has its width.
void HistogramPlot::fill(QCPGraph *graph, const std::vector<double> &densities, double floor)
{
    QVector<QCPGraphData> data;
    for (std::size_t i = 0; i < densities.size(); ++i)
        data << QCPGraphData(m_bins.edges[i], std::max(densities[i], floor));
    if (!densities.empty())
        data << QCPGraphData(m_bins.edges.back(), std::max(densities.back(), floor));
    graph->data()->set(data, true);
}

void HistogramPlot::draw()
{
    const bool values = m_show == Show::Values;
    m_bins = {};
    if (m_histogram)
        m_bins = values ? densityBins(m_histogram->edges, m_histogram->reference, m_histogram->candidate)
                        : densityBins(m_histogram->errorEdges, m_histogram->error, {});
    const bool any = !m_bins.empty();
    double top = std::max(largestOf(m_bins.reference), largestOf(m_bins.candidate));
    double floor = 0;
    if (m_logarithmic && any) {
        // An empty bin has no logarithm: it sits on the baseline, half of the least count.
        floor = 0.5 * std::min(leastAboveZero(m_bins.reference), leastAboveZero(m_bins.candidate));
        m_plot->yAxis->setScaleType(QCPAxis::stLogarithmic);
        m_plot->yAxis->setRange(floor, top * std::pow(top / floor, 0.06));
    } else {
        m_plot->yAxis->setScaleType(QCPAxis::stLinear);
        m_plot->yAxis->setRange(0, top > 0 ? top * 1.06 : 1);
    }
    // The error has one side; it is the candidate's.
    fill(m_reference, values ? m_bins.reference : std::vector<double>(), floor);
    fill(m_candidate, values ? m_bins.candidate : m_bins.reference, floor);
    if (any)
        m_plot->xAxis->setRange(m_bins.edges.front(), m_bins.edges.back());
    m_referenceWord->setText(QStringLiteral("reference"));
    m_candidateWord->setText(values ? QStringLiteral("candidate") : QStringLiteral("candidate − reference"));
    m_referenceWord->setVisible(any && values);
    m_candidateWord->setVisible(any);
    m_candidateWord->position->setCoords(0.97, values ? 0.15 : 0.03);
    m_messageText->setText(m_message.isEmpty() && values ? QStringLiteral("no histogram") : m_message);
    m_messageText->setVisible(!any);
    m_low->setText(any ? figure(m_bins.edges.front()) : QString());
    m_high->setText(any ? figure(m_bins.edges.back()) : QString());
    QString note = m_logarithmic ? QStringLiteral("log count") : QStringLiteral("count");
    if (m_histogram)
        note += m_histogram->sampled ? QStringLiteral(" · sampled") : QStringLiteral(" · exact");
    m_note->setText(any ? note : QString());
    m_plot->setAccessibleName(values ? QStringLiteral("Histograms of reference and candidate")
                                     : QStringLiteral("Histogram of the error"));
    m_plot->setAccessibleDescription(any ? QStringLiteral("From %1 to %2, %3").arg(m_low->text(), m_high->text(), note)
                                         : m_messageText->text());
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

void HistogramPlot::restyle()
{
    const Theme &theme = Theme::current();
    const auto paint = [](QCPGraph *graph, QColor color, int alpha) {
        QColor wash = color;
        wash.setAlpha(alpha);
        graph->setBrush(wash);
        color.setAlpha(210);
        graph->setPen(QPen(color, 1));
    };
    paint(m_reference, theme.blue, 130);
    paint(m_candidate, theme.orange, 110);
    m_plot->setBackground(theme.base);
    m_plot->setProperty("exportBackground", theme.base);
    for (QCPAxis *axis : {m_plot->xAxis, m_plot->xAxis2, m_plot->yAxis, m_plot->yAxis2}) {
        axis->setVisible(true);
        axis->setTicks(false);
        axis->setTickLabels(false);
        axis->setBasePen(QPen(theme.line, 1));
    }
    m_referenceWord->setColor(theme.blue);
    m_candidateWord->setColor(theme.orange);
    m_messageText->setColor(theme.mute);
    QColor ground = theme.base; // keeps the words readable over the bars
    ground.setAlpha(190);
    m_referenceWord->setBrush(ground);
    m_candidateWord->setBrush(ground);
    QFont bold = Theme::labelFont();
    bold.setWeight(QFont::DemiBold);
    m_referenceWord->setFont(bold);
    m_candidateWord->setFont(bold);
    m_messageText->setFont(Theme::labelFont());
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

QString HistogramPlot::binText(double x) const
{
    if (m_bins.empty() || x < m_bins.edges.front() || x > m_bins.edges.back())
        return {};
    const auto after = std::upper_bound(m_bins.edges.begin(), m_bins.edges.end(), x);
    const auto bin = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - m_bins.edges.begin(), 1) - 1),
                              m_bins.reference.size() - 1);
    const double width = m_bins.edges[bin + 1] - m_bins.edges[bin];
    QString text = rangeText(m_bins.edges[bin], m_bins.edges[bin + 1]);
    if (m_show == Show::Error)
        return text + QStringLiteral("\n%1 elements").arg(countText(m_bins.reference[bin] * width));
    text += QStringLiteral("\nreference %1").arg(countText(m_bins.reference[bin] * width));
    if (bin < m_bins.candidate.size())
        text += QStringLiteral("\ncandidate %1").arg(countText(m_bins.candidate[bin] * width));
    return text;
}

bool HistogramPlot::eventFilter(QObject *watched, QEvent *event)
{
    if (event->type() == QEvent::MouseMove && watched == m_plot) {
        const auto *mouse = static_cast<QMouseEvent *>(event);
        const QString text = binText(m_plot->xAxis->pixelToCoord(mouse->position().x()));
        QToolTip::showText(mouse->globalPosition().toPoint(), text, m_plot);
    }
    // The wheel belongs to the panel that scrolls.
    if (event->type() == QEvent::Wheel && watched == m_plot) {
        event->ignore();
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

void HistogramPlot::contextMenuEvent(QContextMenuEvent *event)
{
    QMenu menu(this);
    QAction *save = menu.addAction(tr("Export the histogram…"));
    save->setEnabled(!m_bins.empty());
    connect(save, &QAction::triggered, this, &HistogramPlot::askExport);
    menu.exec(event->globalPos());
}

void HistogramPlot::askExport()
{
    const QString path = choosePlotPath(this, tr("Export the histogram"), QStringLiteral("histogram.png"));
    if (path.isEmpty())
        return;
    if (const auto written = exportTo(path); written)
        Q_EMIT exported(path);
    else
        Q_EMIT exportFailed(written.error());
}

void HistogramPlot::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        restyle();
}

} // namespace dblame::ui

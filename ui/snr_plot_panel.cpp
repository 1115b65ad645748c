// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/snr_plot_panel.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <utility>

#include <QButtonGroup>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/eliding.h"
#include "ui/panel_text.h"
#include "ui/plot_export.h"
#include "ui/qcp.h"
#include "ui/row_words.h"
#include "ui/snr_chart.h"

namespace dblame::ui
{
namespace
{

const char *const kOrderWords[] = {"order", "sorted", "by module"};
const char *const kOrderTips[] = {"Rows along the reference's execution order", "Worst rows first",
                                  "Rows of one module next to each other"};

QLabel *muteLabel(QWidget *parent)
{
    auto *label = new QLabel(parent);
    label->setProperty("role", "mute");
    return label;
}

QToolButton *toggle(const QString &text, const QString &toolTip, QWidget *parent)
{
    auto *button = new QToolButton(parent);
    button->setText(text);
    button->setToolTip(toolTip);
    button->setCheckable(true);
    button->setFocusPolicy(Qt::StrongFocus);
    return button;
}

} // namespace

SnrPlotPanel::SnrPlotPanel(QWidget *parent) : QWidget(parent), m_chart(new SnrChart(this))
{
    setAccessibleName(tr("SNR plot"));
    m_chart->setAccessibleName(tr("SNR by node"));
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 4, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(buildControls());
    layout->addWidget(m_chart, 1);
    setFocusProxy(m_chart);
    m_chart->setRowTexts([this](PairId row) { return m_table ? m_table->label(row) : QString(); },
                         [this](PairId row) { return rowText(row); });
    connect(m_chart, &SnrChart::rowClicked, this, [this](PairId row) {
        if (m_selection)
            m_selection->setCurrent(row);
    });
    connect(m_chart, &SnrChart::rowHovered, this, [this](PairId row) {
        Q_EMIT statusText(row.valid() ? rowText(row).replace(QLatin1Char('\n'), QStringLiteral(" · ")) : QString());
    });
    connect(m_chart, &SnrChart::stepped, this, &SnrPlotPanel::step);
    refresh();
}

QWidget *SnrPlotPanel::buildControls()
{
    auto *row = new QWidget(this);
    auto *layout = new QHBoxLayout(row);
    layout->setContentsMargins(14, 0, 14, 0);
    layout->setSpacing(4);
    m_unit = muteLabel(row);
    m_overlayText = new ElidingLabel(row); // a label that comes with a rerun must not make the window wider
    m_overlayText->setProperty("role", "mute");
    layout->addWidget(m_unit);
    layout->addSpacing(8);
    layout->addWidget(m_overlayText, 1);
    layout->addStretch(1);
    auto *orders = new QButtonGroup(row);
    for (int i = 0; i < 3; ++i) {
        QToolButton *button = toggle(tr(kOrderWords[i]), tr(kOrderTips[i]), row);
        button->setAccessibleName(tr("Plot order: %1").arg(button->text()));
        orders->addButton(button, i);
        layout->addWidget(button);
        m_orderButtons[i] = button;
    }
    m_orderButtons[0]->setChecked(true);
    connect(orders, &QButtonGroup::idClicked, this, [this](int id) { setOrder(static_cast<PlotOrder>(id)); });
    layout->addSpacing(8);
    m_everythingButton = toggle(tr("weights"), tr("Weights and inputs too, before the activations"), row);
    m_bothDropsButton = toggle(
        tr("both drops"),
        tr("Mark the largest drop against the worst producer in the data flow too, where it is another one"), row);
    m_bothDropsButton->setChecked(m_bothDrops);
    connect(m_everythingButton, &QToolButton::toggled, this, &SnrPlotPanel::setEverything);
    connect(m_bothDropsButton, &QToolButton::toggled, this, &SnrPlotPanel::setBothDrops);
    layout->addWidget(m_everythingButton);
    layout->addWidget(m_bothDropsButton);
    layout->addSpacing(8);
    auto *save = new QToolButton(row);
    save->setText(tr("Export…"));
    save->setToolTip(tr("Save the plot as PNG, SVG or PDF"));
    save->setAccessibleName(tr("Export the plot"));
    save->setFocusPolicy(Qt::StrongFocus);
    connect(save, &QToolButton::clicked, this, &SnrPlotPanel::askExport);
    layout->addWidget(save);
    return row;
}

void SnrPlotPanel::setPair(OpenPairPtr pair)
{
    m_pair = std::move(pair);
    m_running = false;
    m_overlay.reset();
    m_overlayLabel.clear();
    readSoon(true);
}

void SnrPlotPanel::setTable(NodeTableModel *table)
{
    if (m_table)
        m_table->disconnect(this);
    m_table = table;
    if (table != nullptr) {
        connect(table, &NodeTableModel::rowsChanged, this, [this] { readSoon(false); });
        connect(table, &NodeTableModel::modelReset, this, [this] { readSoon(true); });
        connect(table, &NodeTableModel::dropsChanged, this, [this] {
            // A table that was cleared for a run has none; a finished run brings one.
            m_running = m_running && !m_table->largestDrop();
            readSoon(false);
        });
    }
    readSoon(true);
}

void SnrPlotPanel::setSelection(Selection *selection)
{
    if (m_selection)
        m_selection->disconnect(this);
    m_selection = selection;
    if (selection != nullptr)
        connect(selection, &Selection::currentChanged, this, [this](PairId row) {
            m_chart->setSelected(row);
            describe();
        });
    m_chart->setSelected(selection != nullptr ? selection->current() : PairId());
}

void SnrPlotPanel::runStarted()
{
    m_running = true;
    readSoon(false);
}

void SnrPlotPanel::setRunnable(bool runnable)
{
    m_runnable = runnable;
    readSoon(false);
}

void SnrPlotPanel::setOverlay(std::shared_ptr<const RunReport> report, const QString &label)
{
    m_overlay = std::move(report);
    m_overlayLabel = label;
    readOverlay();
}

Result<void> SnrPlotPanel::exportTo(const QString &path)
{
    refresh();
    return exportPlot(m_chart->plot(), path);
}

void SnrPlotPanel::setOrder(PlotOrder order)
{
    m_order = order;
    m_orderButtons[static_cast<int>(order)]->setChecked(true);
    readSoon(false);
}

void SnrPlotPanel::setEverything(bool on)
{
    m_everything = on;
    m_everythingButton->setChecked(on);
    readSoon(true);
}

void SnrPlotPanel::setBothDrops(bool on)
{
    m_bothDrops = on;
    m_bothDropsButton->setChecked(on);
    readSoon(false);
}

// Rows come in bursts; one reading per turn of the event loop is enough, and QCustomPlot gathers the replots.
void SnrPlotPanel::readSoon(bool newAxes)
{
    m_newAxes = m_newAxes || newAxes;
    if (newAxes)
        m_modules.reset(); // other rows
    if (std::exchange(m_waiting, true))
        return;
    QMetaObject::invokeMethod(
        this,
        [this] {
            if (m_waiting)
                refresh();
        },
        Qt::QueuedConnection);
}

void SnrPlotPanel::refresh()
{
    m_waiting = false;
    SnrSeries series;
    const bool readable = m_table && m_table->pair() != nullptr;
    if (readable && m_order == PlotOrder::Module) {
        if (!m_modules)
            m_modules = makeModuleOrder(*m_table, m_everything);
        series = makeSeries(*m_table, *m_modules);
    } else if (readable) {
        series = makeSeries(*m_table, m_order == PlotOrder::Sorted, m_everything);
    }
    m_chart->setSeries(std::move(series), std::exchange(m_newAxes, false));
    readOverlay();
    readMarks();
    readMessage();
    m_chart->setSelected(m_selection ? m_selection->current() : PairId());
    const bool reference = !m_table || m_table->signal() == Signal::Reference;
    m_unit->setText(reference ? tr("dB · signal: reference") : tr("dB · signal: candidate"));
    describe();
}

std::optional<Drop> SnrPlotPanel::shownDrop() const
{
    return m_running || !m_table->largestDrop() ? dropSoFar(*m_table) : m_table->largestDrop();
}

void SnrPlotPanel::readMarks()
{
    std::vector<DropMark> marks;
    if (m_table && m_table->pair() != nullptr) {
        const auto byOrder = shownDrop();
        const auto byFlow = m_running ? std::optional<Drop>() : m_table->largestFlowDrop();
        if (m_bothDrops && byFlow && (!byOrder || byFlow->row != byOrder->row))
            marks.push_back({byFlow->row, tr("largest in data flow %1 dB").arg(lossText(byFlow->db, 1)), true});
        if (byOrder) {
            const QString words =
                m_running || !m_table->largestDrop() ? tr("largest drop so far %1 dB") : tr("largest drop %1 dB");
            marks.push_back({byOrder->row, words.arg(lossText(byOrder->db, 1)), false});
        }
    }
    m_chart->setMarks(std::move(marks));
}

void SnrPlotPanel::readMessage()
{
    QString message;
    if (m_pair == nullptr || m_pair->reference == nullptr)
        message = tr("Open a reference and a candidate: each node's SNR appears here.");
    else if (m_pair->candidate == nullptr)
        message = tr("Open a candidate to compare with the reference.");
    else if (m_chart->series().points.empty())
        message = tr("No node of the two models is paired; the Alignment view gives the reasons.");
    else if (m_chart->series().done == 0 && !m_running)
        message = m_runnable ? tr("Not run yet. Press F5: points appear while the run goes on.")
                             : tr("Not run yet: the inputs are missing. Open some (Ctrl+I), or use random ones.");
    m_chart->setMessage(message);
}

void SnrPlotPanel::readOverlay()
{
    std::vector<double> dbOfRow;
    if (m_overlay != nullptr && m_table) {
        dbOfRow.reserve(m_overlay->rows.size());
        for (const NodeReport &report : m_overlay->rows)
            dbOfRow.push_back(dblame::shownDb(report, m_table->signal()));
    }
    m_overlayText->setText(dbOfRow.empty() ? QString() : tr("dotted: %1").arg(m_overlayLabel));
    m_overlayText->setVisible(!dbOfRow.empty());
    m_chart->setOverlay(std::move(dbOfRow));
}

void SnrPlotPanel::describe()
{
    QStringList words;
    const SnrSeries &series = m_chart->series();
    if (m_table && !series.points.empty()) {
        words << tr("%1 of %2 rows have figures.").arg(series.done).arg(series.points.size());
        if (const auto drop = shownDrop())
            words << tr("Largest drop %1 dB at %2.").arg(lossText(drop->db, 1), m_table->label(drop->row));
        if (m_selection && m_selection->current().valid())
            words << tr("Selected: %1.")
                         .arg(rowText(m_selection->current()).replace(QLatin1Char('\n'), QStringLiteral(", ")));
    }
    m_chart->setAccessibleDescription(words.join(QLatin1Char(' ')));
    m_chart->plot().setAccessibleName(m_chart->accessibleName());
    m_chart->plot().setAccessibleDescription(m_chart->accessibleDescription());
}

QString SnrPlotPanel::rowText(PairId row) const
{
    if (!m_table || !row.valid() || row.get() >= static_cast<std::size_t>(m_table->pairCount()))
        return {};
    const NodeReport &report = m_table->report(row);
    QStringList lines{m_table->label(row)};
    const double db = m_table->shownDb(row);
    const bool plain = report.status == RowStatus::Ok && report.metrics.nan == 0 && report.metrics.inf == 0;
    if (hasDb(report))
        lines << dbUnitText(db, 2);
    if (!plain && report.status != RowStatus::Exact)
        lines << stateWords(report);
    if (report.dropDb)
        lines << tr("against the row before: %1 dB").arg(lossText(*report.dropDb, 2));
    if (report.flowDropDb && report.flowDropDb != report.dropDb)
        lines << tr("against its worst producer: %1 dB").arg(lossText(*report.flowDropDb, 2));
    if (m_overlay != nullptr && row.get() < m_overlay->rows.size())
        lines << QStringLiteral("%1: %2").arg(
            m_overlayLabel, dbUnitText(dblame::shownDb(m_overlay->rows[row.get()], m_table->signal()), 2));
    return lines.join(QLatin1Char('\n'));
}

void SnrPlotPanel::step(int by)
{
    const SnrSeries &series = m_chart->series();
    if (!m_selection || series.points.empty())
        return;
    const int last = static_cast<int>(series.points.size()) - 1;
    const int from = series.position(m_selection->current());
    int to = 0;
    if (by == INT_MAX)
        to = last;
    else if (by != INT_MIN)
        to = from < 0 ? (by > 0 ? 0 : last) : std::clamp(from + by, 0, last);
    m_selection->setCurrent(series.points[static_cast<std::size_t>(to)].row);
}

void SnrPlotPanel::askExport()
{
    const QString path = choosePlotPath(this, tr("Export the plot"), QStringLiteral("snr.png"));
    if (path.isEmpty())
        return;
    if (const auto written = exportTo(path); written)
        Q_EMIT exported(path);
    else
        Q_EMIT exportFailed(written.error());
}

void SnrPlotPanel::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_chart != nullptr)
        readSoon(false);
}

} // namespace dblame::ui

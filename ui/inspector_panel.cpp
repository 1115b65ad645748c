// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/inspector_panel.h"

#include <cmath>
#include <utility>

#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/channel_strip.h"
#include "ui/field_grid.h"
#include "ui/histogram_plot.h"
#include "ui/inspector_sections.h"
#include "ui/metric_tile.h"
#include "ui/panel_text.h"
#include "ui/row_words.h"
#include "ui/site_fields.h"
#include "ui/theme.h"

namespace dblame::ui
{
namespace
{

constexpr int kWidth = 320, kLeastWidth = 280;

struct Figure {
    QString name, value, toolTip;
};

std::vector<Figure> figuresOf(const NodeReport &report, Signal signal)
{
    std::vector<Figure> figures;
    const Metrics &m = report.metrics;
    if (report.status == RowStatus::Mismatch) {
        figures.push_back({"differ", countText(static_cast<double>(m.mismatches)), "Elements that are not equal"});
        figures.push_back({"of", countText(static_cast<double>(m.count)), "Elements compared"});
        figures.push_back({"max |e|", figure(m.maxAbs), "Largest absolute difference"});
        return figures;
    }
    if (!hasDb(report))
        return figures;
    const bool reference = signal == Signal::Reference;
    const auto db = [](double value) { return dbUnitText(value, 2); };
    figures.push_back({reference ? "SNR" : "SQNR", db(dblame::shownDb(report, signal)),
                       reference ? "Signal is the reference" : "Signal is the candidate"});
    const QString drop = report.dropDb ? lossText(*report.dropDb, 2) + " dB" : QStringLiteral("none");
    figures.push_back({"drop", drop, "Against the previous row with a finite number"});
    figures.push_back({"max |e|", figure(m.maxAbs), "Largest absolute error"});
    figures.push_back({"cosine", std::isnan(m.cosine) ? QStringLiteral("n/a") : QString::number(m.cosine, 'f', 5),
                       "Cosine similarity of the two tensors"});
    figures.push_back({"MSE", figure(m.mse), "Mean squared error"});
    figures.push_back({"bias", figure(m.bias), "Mean of candidate − reference"});
    const auto before = reference ? report.beforeSiteDb : report.beforeSiteSqnrDb;
    const auto after = reference ? report.afterSiteDb : report.afterSiteSqnrDb;
    if (before)
        figures.push_back({"before site", db(*before), "The raw operator output, before its output site"});
    if (after)
        figures.push_back({"after site", db(*after), "After the consumers' input site"});
    if (report.flowDropDb && (!report.dropDb || std::abs(*report.flowDropDb - *report.dropDb) >= 0.005))
        figures.push_back(
            {"flow drop", lossText(*report.flowDropDb, 2) + " dB", "Against the worst producer in the data flow"});
    return figures;
}

} // namespace

InspectorPanel::InspectorPanel(QWidget *parent)
    : QWidget(parent), m_empty(new QLabel(this)), m_scroll(new QScrollArea(this))
{
    setAccessibleName(tr("Inspector"));
    setMinimumWidth(kLeastWidth);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    m_empty->setProperty("role", "mute");
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setMargin(28);
    layout->addWidget(m_empty, 1);
    m_scroll->setAccessibleName(tr("Figures of the selected node"));
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setWidget(buildContent());
    layout->addWidget(m_scroll, 1);
    refresh();
}

QSize InspectorPanel::sizeHint() const
{
    return {kWidth, 700};
}

void InspectorPanel::setPair(OpenPairPtr pair)
{
    m_pair = std::move(pair);
    m_links = RowLinks(m_pair);
    m_detail.reset();
    m_waitingDetail = {};
    readSoon();
}

void InspectorPanel::setTable(NodeTableModel *table)
{
    if (m_table)
        m_table->disconnect(this);
    m_table = table;
    if (table != nullptr) {
        connect(table, &NodeTableModel::rowsChanged, this, [this](int first, int last) {
            if (const PairId shown = row(); shown.valid() && shown.index >= first && shown.index <= last)
                readSoon();
        });
        connect(table, &NodeTableModel::modelReset, this, &InspectorPanel::readSoon);
        connect(table, &NodeTableModel::dropsChanged, this, &InspectorPanel::readSoon);
    }
    readSoon();
}

void InspectorPanel::setSelection(Selection *selection)
{
    if (m_selection)
        m_selection->disconnect(this);
    m_selection = selection;
    if (selection != nullptr)
        connect(selection, &Selection::currentChanged, this, [this] {
            m_scroll->ensureVisible(0, 0);
            readSoon();
        });
    readSoon();
}

void InspectorPanel::setRunnable(bool runnable)
{
    m_runnable = runnable;
    readSoon();
}

void InspectorPanel::setDetail(const NodeReport &detail)
{
    m_detail = detail;
    if (m_waitingDetail == detail.row)
        m_waitingDetail = {};
    readSoon();
}

void InspectorPanel::setDetailFailed(PairId failed, const QString &why)
{
    if (m_waitingDetail != failed)
        return;
    m_detailFailure = why;
    readSoon();
}

void InspectorPanel::readSoon()
{
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

PairId InspectorPanel::row() const
{
    const bool readable =
        m_table && m_selection && m_pair != nullptr && m_pair->reference != nullptr && m_table->pair() == m_pair;
    if (!readable)
        return {};
    const PairId current = m_selection->current();
    return current.valid() && current.get() < static_cast<std::size_t>(m_table->pairCount()) ? current : PairId();
}

const NodeReport *InspectorPanel::detailFor(const NodeReport &report) const
{
    const bool fits = m_detail && m_detail->row == report.row && m_detail->metrics.count == report.metrics.count &&
                      m_detail->metrics.mse == report.metrics.mse;
    return fits ? &*m_detail : nullptr;
}

void InspectorPanel::showEmpty(const QString &words)
{
    m_empty->setText(words);
    m_empty->setVisible(!words.isEmpty());
    m_scroll->setVisible(words.isEmpty());
}

void InspectorPanel::refresh()
{
    m_waiting = false;
    const PairId shown = row();
    if (!shown.valid()) {
        if (m_pair == nullptr || m_pair->reference == nullptr)
            return showEmpty(tr("Open a reference and a candidate. The node that you select is taken apart here."));
        return showEmpty(tr("Select a node in the graph, the plot or the table."));
    }
    const NodeReport &report = m_table->report(shown);
    const NodeReport *detail = detailFor(report);
    setUpdatesEnabled(false);
    readHead(shown, report);
    readTiles(report);
    readHistogram(shown, detail != nullptr && detail->histogram ? *detail : report);
    readChannels(detail != nullptr && !detail->channels.empty() ? *detail : report);
    readSites(shown, report);
    m_fields->setFields(rowFields(*m_pair, shown, report));
    readLinks(shown);
    m_exact->setEnabled(hasDb(report) && m_waitingDetail != shown);
    showEmpty({});
    setUpdatesEnabled(true);
}

void InspectorPanel::readHead(PairId shown, const NodeReport &report)
{
    m_title->setText(m_table->label(shown));
    m_subtitle->setText(rowSubtitle(*m_pair, shown));
    QString state;
    if (report.status == RowStatus::Pending)
        state = m_runnable ? tr("Not run yet. Press F5 to compare.") : tr("Not run yet: the inputs are missing.");
    else if (report.status != RowStatus::Ok || report.metrics.nan > 0 || report.metrics.inf > 0)
        state = stateWords(report);
    m_state->setText(state);
    m_state->setVisible(!state.isEmpty());
}

void InspectorPanel::readTiles(const NodeReport &report)
{
    const std::vector<Figure> figures = figuresOf(report, m_table->signal());
    auto *grid = static_cast<QGridLayout *>(m_tileBox->layout());
    while (m_tiles.size() < figures.size()) {
        auto *tile = new MetricTile(m_tileBox);
        const int at = static_cast<int>(m_tiles.size());
        grid->addWidget(tile, at / kTileColumns, at % kTileColumns);
        m_tiles.push_back(tile);
    }
    for (std::size_t i = 0; i < m_tiles.size(); ++i) {
        m_tiles[i]->setVisible(i < figures.size());
        if (i < figures.size())
            m_tiles[i]->setFigure(figures[i].name, figures[i].value, figures[i].toolTip);
    }
    m_tileBox->setVisible(!figures.empty());
}

void InspectorPanel::readHistogram(PairId shown, const NodeReport &report)
{
    m_histogramSection->setTitle(m_table->aligned(shown).kind == RowKind::Weight ? tr("Weights") : tr("Activations"));
    QString why;
    if (m_waitingDetail == shown)
        why = m_detailFailure.isEmpty() ? tr("computing exact histograms…") : m_detailFailure;
    else if (report.status == RowStatus::Pending)
        why = tr("not run yet");
    else if (!hasDb(report))
        why = stateWords(report);
    else
        why = tr("not gathered in this run;\n“Exact histograms” computes them");
    m_histogram->setMessage(why);
    m_histogram->setHistogram(report.histogram);
}

void InspectorPanel::readChannels(const NodeReport &report)
{
    m_channelSection->setVisible(report.channels.size() > 1);
    const Signal signal = m_table->signal();
    const ChannelSummary summary = summarizeChannels(report.channels, signal);
    m_worst->setText(worstChannelText(summary));
    QStringList words;
    if (const QString low = lowChannelsText(summary); !low.isEmpty())
        words << low;
    if (!std::isnan(summary.lowest))
        words << tr("dark %1, bright %2 dB").arg(decibels(summary.lowest), decibels(summary.highest));
    m_channelWords = words.join(QStringLiteral(" · "));
    m_channelLine->setText(m_channelWords);
    m_strip->setChannels(report.channels, signal);
}

void InspectorPanel::readSites(PairId shown, const NodeReport &report)
{
    const std::vector<SiteSection> sections = siteSections(*m_pair, shown, report);
    while (m_siteViews.size() < sections.size()) {
        auto *view = new SiteView(m_siteSection);
        m_siteLayout->addWidget(view);
        m_siteViews.push_back(view);
    }
    for (std::size_t i = 0; i < m_siteViews.size(); ++i) {
        m_siteViews[i]->setVisible(i < sections.size());
        if (i < sections.size())
            m_siteViews[i]->setSection(sections[i]);
    }
    m_siteSection->setTitle(sections.size() > 1 ? tr("Quantizers") : tr("Quantizer"));
    m_noSites->setText(tr("none: the candidate keeps this value in float"));
    m_noSites->setVisible(sections.empty());
    // Float here also bypasses the sites on the layer's input edges, which belong to others.
    m_skip->setEnabled(!m_pair->sites.sites.empty() && m_table->aligned(shown).kind != RowKind::Input);
}

void InspectorPanel::readLinks(PairId shown)
{
    const auto linksOf = [this](const std::vector<PairId> &rows) {
        std::vector<LinkList::Link> links;
        for (const PairId to : rows) {
            QString text = m_table->label(to);
            const QString db = snrText(m_table->report(to), m_table->signal());
            if (!db.isEmpty())
                text += QStringLiteral(" · ") + db;
            links.push_back({to, text});
        }
        return links;
    };
    m_inputs->setLinks(linksOf(m_links.inputs(shown)), tr("none that is paired"));
    m_outputs->setLinks(linksOf(m_links.outputs(shown)), tr("none that is paired"));
}

void InspectorPanel::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_strip != nullptr)
        readSoon();
}

} // namespace dblame::ui

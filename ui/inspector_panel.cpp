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
constexpr int kTileColumns = 3;

struct Figure {
    QString name, value, toolTip;
};

QToolButton *toggle(const QString &text, const QString &toolTip, QWidget *parent)
{
    auto *button = new QToolButton(parent);
    button->setText(text);
    button->setToolTip(toolTip);
    button->setAccessibleName(toolTip);
    button->setCheckable(true);
    button->setFocusPolicy(Qt::StrongFocus);
    return button;
}

QLabel *selectable(QWidget *parent, const char *role)
{
    auto *label = new QLabel(parent);
    if (role != nullptr)
        label->setProperty("role", role);
    label->setTextFormat(Qt::PlainText);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    label->setWordWrap(true);
    return label;
}

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

QWidget *InspectorPanel::buildContent()
{
    auto *content = new QWidget;
    // Labels may ask for more; the panel's width is what there is.
    content->setMinimumWidth(1);
    auto *layout = new QVBoxLayout(content);
    layout->setContentsMargins(14, 10, 14, 14);
    layout->setSpacing(14);
    auto *head = new QVBoxLayout;
    head->setSpacing(2);
    m_title = selectable(content, nullptr);
    m_title->setStyleSheet(QStringLiteral("font-size: %1px; font-weight: 600").arg(Theme::titleFont().pixelSize() + 2));
    m_subtitle = selectable(content, "mute");
    m_state = selectable(content, "accent");
    head->addWidget(m_title);
    head->addWidget(m_subtitle);
    head->addWidget(m_state);
    layout->addLayout(head);

    m_tileBox = new QWidget(content);
    auto *tiles = new QGridLayout(m_tileBox);
    tiles->setContentsMargins(0, 0, 0, 0);
    tiles->setSpacing(6);
    for (int column = 0; column < kTileColumns; ++column)
        tiles->setColumnStretch(column, 1);
    layout->addWidget(m_tileBox);

    buildHistogram(content, layout);
    buildChannels(content, layout);
    m_siteSection = new InspectorSection(tr("Quantizer"), content);
    auto *sites = new QWidget(m_siteSection);
    m_siteLayout = new QVBoxLayout(sites);
    m_siteLayout->setContentsMargins(0, 0, 0, 0);
    m_siteLayout->setSpacing(8);
    m_noSites = selectable(sites, "mute");
    m_siteLayout->addWidget(m_noSites);
    m_siteSection->addBody(sites);
    layout->addWidget(m_siteSection);

    auto *fields = new InspectorSection(tr("Pair"), content);
    m_fields = new FieldGrid(fields);
    fields->addBody(m_fields);
    layout->addWidget(fields);
    buildLinks(content, layout);
    buildButtons(content, layout);
    layout->addStretch(1);
    return content;
}

void InspectorPanel::buildHistogram(QWidget *content, QVBoxLayout *layout)
{
    m_histogramSection = new InspectorSection(tr("Activations"), content);
    m_errorButton = toggle(tr("error"), tr("Histogram of candidate − reference"), m_histogramSection);
    m_logButton = toggle(tr("log"), tr("Logarithmic count"), m_histogramSection);
    m_histogramSection->addControl(m_errorButton);
    m_histogramSection->addControl(m_logButton);
    m_histogram = new HistogramPlot(m_histogramSection);
    m_histogramSection->addBody(m_histogram);
    layout->addWidget(m_histogramSection);
    connect(m_logButton, &QToolButton::toggled, m_histogram, &HistogramPlot::setLogarithmic);
    connect(m_errorButton, &QToolButton::toggled, this, [this](bool error) {
        m_histogram->setShow(error ? HistogramPlot::Show::Error : HistogramPlot::Show::Values);
    });
}

void InspectorPanel::buildChannels(QWidget *content, QVBoxLayout *layout)
{
    m_channelSection = new InspectorSection(tr("Channels"), content);
    m_worst = new QLabel(m_channelSection);
    m_worst->setProperty("role", "accent");
    m_worst->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_sortButton = toggle(tr("sorted"), tr("Channels worst first"), m_channelSection);
    m_channelSection->addControl(m_worst);
    m_strip = new ChannelStrip(m_channelSection);
    m_channelSection->addBody(m_strip);
    auto *foot = new QWidget(m_channelSection);
    auto *footLayout = new QHBoxLayout(foot);
    footLayout->setContentsMargins(0, 0, 0, 0);
    m_channelLine = selectable(foot, "mute");
    footLayout->addWidget(m_channelLine, 1);
    footLayout->addWidget(m_sortButton);
    m_channelSection->addBody(foot);
    layout->addWidget(m_channelSection);
    connect(m_sortButton, &QToolButton::toggled, m_strip, &ChannelStrip::setSorted);
    connect(m_strip, &ChannelStrip::cellChanged, this,
            [this](const QString &text) { m_channelLine->setText(text.isEmpty() ? m_channelWords : text); });
}

void InspectorPanel::buildLinks(QWidget *content, QVBoxLayout *layout)
{
    auto *inputs = new InspectorSection(tr("Inputs"), content);
    m_inputs = new LinkList(inputs);
    inputs->addBody(m_inputs);
    auto *outputs = new InspectorSection(tr("Read by"), content);
    m_outputs = new LinkList(outputs);
    outputs->addBody(m_outputs);
    layout->addWidget(inputs);
    layout->addWidget(outputs);
    for (LinkList *list : {m_inputs, m_outputs})
        connect(list, &LinkList::activated, this, [this](PairId to) {
            Q_EMIT jumpRequested(to);
            if (m_selection)
                m_selection->setCurrent(to);
        });
}

void InspectorPanel::buildButtons(QWidget *content, QVBoxLayout *layout)
{
    auto *buttons = new QHBoxLayout;
    buttons->setSpacing(8);
    m_skip = new QPushButton(tr("Skip this layer"), content);
    m_skip->setToolTip(tr("Run this layer in float: its weight and output sites off, its input edges bypassed"));
    m_exact = new QPushButton(tr("Exact histograms"), content);
    m_exact->setToolTip(tr("Compute this row's histograms and channels from every element, not a sample"));
    buttons->addWidget(m_skip, 1);
    buttons->addWidget(m_exact, 1);
    layout->addLayout(buttons);
    connect(m_skip, &QPushButton::clicked, this, [this] {
        if (row().valid())
            Q_EMIT skipLayerRequested(row());
    });
    connect(m_exact, &QPushButton::clicked, this, [this] {
        if (!row().valid())
            return;
        m_waitingDetail = row();
        m_detailFailure.clear();
        readSoon();
        Q_EMIT detailRequested(row());
    });
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
    readTiles(shown, report);
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
        state = tr("Not run yet. Press F5 to compare.");
    else if (report.status != RowStatus::Ok || report.metrics.nan > 0 || report.metrics.inf > 0)
        state = stateWords(report);
    m_state->setText(state);
    m_state->setVisible(!state.isEmpty());
}

void InspectorPanel::readTiles(PairId shown, const NodeReport &report)
{
    Q_UNUSED(shown)
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
    m_skip->setEnabled(!sections.empty());
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

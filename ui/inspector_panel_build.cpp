// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inspector's widgets, made once; inspector_panel.cpp fills them.
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/channel_strip.h"
#include "ui/field_grid.h"
#include "ui/histogram_plot.h"
#include "ui/inspector_panel.h"
#include "ui/inspector_sections.h"
#include "ui/theme.h"

namespace dblame::ui
{
namespace
{

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

} // namespace

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
    connect(m_histogram, &HistogramPlot::exported, this, &InspectorPanel::exported);
    connect(m_histogram, &HistogramPlot::exportFailed, this, &InspectorPanel::exportFailed);
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

} // namespace dblame::ui

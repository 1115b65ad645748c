// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/recipe_weights.h"

#include <algorithm>

#include <QHBoxLayout>
#include <QHeaderView>
#include <QSplitter>
#include <QStandardItemModel>
#include <QTableView>

#include "ui/recipe_tables.h"
#include "ui/row_words.h"
#include "ui/selection.h"

namespace dblame::ui
{

namespace
{

constexpr int kWidestSite = 200, kChannelWidth = 80, kChannelsWidth = 180; // pixels

void setHeader(QStandardItemModel &model, const QStringList &names)
{
    model.setHorizontalHeaderLabels(names);
    for (int column = 0; column < names.size(); ++column)
        model.setHeaderData(column, Qt::Horizontal,
                            int((column == 0 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter),
                            Qt::TextAlignmentRole);
}

} // namespace

RecipeWeights::RecipeWeights(QWidget *parent)
    : QWidget(parent), m_weightModel(new QStandardItemModel(this)), m_channelModel(new QStandardItemModel(this)),
      m_weights(makeRecipeTable(m_weightModel, tr("What the recipe costs each weight"))),
      m_channels(makeRecipeTable(m_channelModel, tr("What the recipe costs each channel of the weight")))
{
    setHeader(*m_weightModel, {tr("Weight"), tr("SNR dB"), tr("Worst at"), tr("Worst dB"), tr("Channels")});
    setHeader(*m_channelModel, {tr("Channel"), tr("SNR dB")});
    m_channels->setColumnWidth(Channel, kChannelWidth);
    m_channels->setColumnWidth(ChannelDb, kChannelWidth); // the least it stretches from
    m_channels->setMinimumWidth(kChannelsWidth);
    m_channels->setSelectionMode(QAbstractItemView::NoSelection);
    connect(m_weights->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex &now) { showChannels(now.isValid() ? now.row() : -1); });
    auto *split = new QSplitter;
    split->addWidget(m_weights);
    split->addWidget(m_channels);
    split->setStretchFactor(0, 3);
    split->setStretchFactor(1, 1);
    split->setChildrenCollapsible(false);
    auto *layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(split);
}

void RecipeWeights::setRows(std::vector<WeightRow> rows)
{
    m_weightModel->removeRows(0, m_weightModel->rowCount());
    m_rows = std::move(rows);
    for (const WeightRow &row : m_rows) {
        const WeightError &error = row.error;
        const bool worst = error.worstChannel >= 0;
        m_weightModel->appendRow(
            {recipeCell(QString::fromStdString(error.site)), recipeCell(decibels(error.snrDb, 2), true),
             recipeCell(worst ? QString::number(error.worstChannel) : QString(), true),
             recipeCell(worst ? decibels(error.channelDb[static_cast<std::size_t>(error.worstChannel)], 2) : QString(),
                        true),
             recipeCell(tr("%1 on axis %2").arg(error.channelDb.size()).arg(error.axis), true)});
    }
    for (int column = 0; column < Channels; ++column)
        m_weights->resizeColumnToContents(column);
    m_weights->setColumnWidth(Weight, std::min(m_weights->columnWidth(Weight), kWidestSite));
    showChannels(-1);
}

void RecipeWeights::showChannels(int row)
{
    m_channelModel->removeRows(0, m_channelModel->rowCount());
    if (row < 0 || row >= static_cast<int>(m_rows.size()))
        return;
    const WeightRow &chosen = m_rows[static_cast<std::size_t>(row)];
    for (std::size_t i = 0; i < chosen.error.channelDb.size(); ++i) {
        const bool worst = static_cast<int>(i) == chosen.error.worstChannel;
        m_channelModel->appendRow({recipeCell(QString::number(i) + (worst ? tr(" worst") : QString()), false, worst),
                                   recipeCell(decibels(chosen.error.channelDb[i], 2), true, worst)});
    }
    if (m_selection != nullptr && chosen.row.valid())
        m_selection->setCurrent(chosen.row);
}

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a recipe costs each weight, and each channel of the one that is chosen.
#pragma once

#include <vector>

#include <QWidget>

#include "ui/recipe_rows.h"

class QStandardItemModel;
class QTableView;

namespace dblame::ui
{

class Selection;

class RecipeWeights : public QWidget
{
    Q_OBJECT
public:
    enum Column { Weight, Db, WorstChannel, WorstDb, Channels, ColumnCount };
    enum ChannelColumn { Channel, ChannelDb, ChannelColumns };

    explicit RecipeWeights(QWidget *parent = nullptr);

    void setRows(std::vector<WeightRow> rows);
    void setSelection(Selection *selection) { m_selection = selection; } // gets the weight that is chosen
    [[nodiscard]] QTableView *weights() const { return m_weights; }
    [[nodiscard]] QTableView *channels() const { return m_channels; }

private:
    void showChannels(int row);

    std::vector<WeightRow> m_rows;
    Selection *m_selection = nullptr;
    QStandardItemModel *m_weightModel, *m_channelModel;
    QTableView *m_weights, *m_channels;
};

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The layer tree as an item model: check boxes, specs, SNR.
#pragma once

#include <QAbstractItemModel>

#include "core/edits.h"
#include "ui/layer_tree.h"
#include "ui/open_pair.h"

namespace dblame::ui
{

class NodeTableModel;

class LayersModel : public QAbstractItemModel
{
    Q_OBJECT
public:
    enum Column { Name, Spec, Snr, ColumnCount };

    explicit LayersModel(QObject *parent = nullptr);

    void setPair(OpenPairPtr pair);
    void setTable(NodeTableModel *table); // for the SNR column
    // `ran`: the edits of the run that is shown; what differs is marked as pending.
    void setEdits(const EditSet &edits, const EditSet &ran);

    [[nodiscard]] const LayerTree &tree() const { return m_tree; }
    [[nodiscard]] const LayerItem *item(const QModelIndex &index) const;
    [[nodiscard]] QModelIndex indexOf(int item, int column = Name) const;
    [[nodiscard]] QModelIndex indexOfPath(const QString &path) const; // of a module, layer or site id

    [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex &parent = {}) const override;
    [[nodiscard]] QModelIndex parent(const QModelIndex &child) const override;
    [[nodiscard]] int rowCount(const QModelIndex &parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex &parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex &index, int role) const override;
    [[nodiscard]] bool setData(const QModelIndex &index, const QVariant &value, int role) override;
    [[nodiscard]] Qt::ItemFlags flags(const QModelIndex &index) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

Q_SIGNALS:
    // A check box was pressed: these are the edits that the user wants.
    void editsWanted(const dblame::EditSet &edits, const QString &what);

private:
    [[nodiscard]] QString specText(const LayerItem &item) const;
    [[nodiscard]] QString snrText(const LayerItem &item) const;
    [[nodiscard]] PairId worstRow(const LayerItem &item) const;
    [[nodiscard]] bool pending(const LayerItem &item) const;
    [[nodiscard]] int rowInParent(int item) const { return m_rowInParent[static_cast<std::size_t>(item)]; }
    void tellAll();

    OpenPairPtr m_pair;
    NodeTableModel *m_table = nullptr;
    LayerTree m_tree;
    std::vector<int> m_rowInParent;
    std::vector<std::vector<PairId>> m_rowsBelow; // per module item: its layers' rows
    EditSet m_edits, m_ran;
};

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The alignment as a table: pairs first, then what found no partner.
#pragma once

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>

#include "ui/open_pair.h"

namespace dblame::ui
{

class NodeTableModel;

class AlignmentModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { State, Reference, Candidate, Rule, Reason, ColumnCount };
    enum class Group { All, Paired, Unpaired, Mismatched, ByHand };
    enum Role { GroupRole = Qt::UserRole + 1, PairRole };

    explicit AlignmentModel(QObject *parent = nullptr) : QAbstractTableModel(parent) {}

    void setPair(OpenPairPtr pair);
    void setTable(NodeTableModel *table);
    // Rows in a group; Paired counts the mismatched ones too: they have a partner, it does not fit.
    [[nodiscard]] int count(Group group) const;
    [[nodiscard]] Group groupOf(int row) const;
    // Value names of a row; empty on the side that has none.
    [[nodiscard]] QString referenceName(int row) const;
    [[nodiscard]] QString candidateName(int row) const;

    [[nodiscard]] int rowCount(const QModelIndex &parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex &parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex &index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] int pairs() const { return m_pair ? static_cast<int>(m_pair->alignment.pairs.size()) : 0; }
    [[nodiscard]] bool mismatched(int row) const;
    [[nodiscard]] QVariant text(int row, int column) const;

    OpenPairPtr m_pair;
    NodeTableModel *m_table = nullptr;
};

class AlignmentFilter : public QSortFilterProxyModel
{
    Q_OBJECT
public:
    using QSortFilterProxyModel::QSortFilterProxyModel;
    void setGroup(AlignmentModel::Group group);
    void setWords(const QString &words);

protected:
    [[nodiscard]] bool filterAcceptsRow(int row, const QModelIndex &parent) const override;

private:
    AlignmentModel::Group m_group = AlignmentModel::Group::All;
    QStringList m_words;
};

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The Nodes dock: the accessible twin of the graph. Sorted, filtered, copied as text.
#pragma once

#include <QWidget>

#include "ui/node_filter.h"

class QLabel;
class QLineEdit;
class QStackedLayout;
class QTableView;

namespace dblame::ui
{

class NodeTableModel;
class Selection;

class NodesPanel : public QWidget
{
    Q_OBJECT
public:
    explicit NodesPanel(QWidget *parent = nullptr);

    void setTable(NodeTableModel *table);
    void setSelection(Selection *selection);
    void setFilter(const QString &text);
    [[nodiscard]] QString filter() const;
    // The next (previous) row that the filter lets through, from the selected one on; wraps around.
    void selectNext(bool forward);
    [[nodiscard]] int shownRows() const;
    // The selected rows (all, when none is) with the shown columns, tab separated, with a header line.
    [[nodiscard]] QString asText() const;
    void copy() const;
    [[nodiscard]] QTableView *view() const { return m_view; }
    // Columns that are hidden, for settings.
    [[nodiscard]] QByteArray columnState() const;
    void restoreColumns(const QByteArray &state);

Q_SIGNALS:
    void filterChanged(const QString &text);

private:
    void showColumnMenu(const QPoint &at);
    void takeCurrent(const QModelIndex &current);
    void followSelection();
    void tell();

    NodeFilter *m_filter;
    QTableView *m_view;
    QLineEdit *m_edit;
    QLabel *m_count;
    QLabel *m_empty;
    QStackedLayout *m_stack;
    NodeTableModel *m_table = nullptr;
    Selection *m_selection = nullptr;
};

} // namespace dblame::ui

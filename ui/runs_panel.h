// SPDX-License-Identifier: GPL-3.0-or-later
//
// The Runs dock: every run of this session with what it changed and what that bought. One selected: it is shown
// everywhere; two selected: the newer one is shown with the older one laid under it.
#pragma once

#include <QAbstractTableModel>
#include <QWidget>

class QLabel;
class QStackedLayout;
class QTableView;

namespace dblame::ui
{

class Session;

class RunsModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column { Number, Shown, Change, Output, Delta, Worst, Inputs, Rows, Seconds, ColumnCount };

    explicit RunsModel(const Session &session, QObject *parent = nullptr);
    void reset();

    [[nodiscard]] int rowCount(const QModelIndex &parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex &parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex &index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] QVariant text(int row, int column) const;
    const Session &m_session;
};

class RunsPanel : public QWidget
{
    Q_OBJECT
public:
    explicit RunsPanel(Session &session, QWidget *parent = nullptr);
    [[nodiscard]] QTableView *view() const { return m_view; }

Q_SIGNALS:
    void useEditsWanted(int run); // make this run's edits the current ones

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void takeSelection();
    void showSession();
    void stretchChange();

    Session &m_session;
    RunsModel *m_model;
    QTableView *m_view;
    QLabel *m_hint;
    QStackedLayout *m_stack;
    bool m_showing = false; // the selection is being set from the session
};

} // namespace dblame::ui

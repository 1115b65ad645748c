// SPDX-License-Identifier: GPL-3.0-or-later
//
// The Alignment dock: which value answers to which, by what rule; what found no partner and why; pairing by hand.
#pragma once

#include <vector>

#include <QWidget>

#include "ui/alignment_model.h"
#include "ui/open_pair.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QStackedLayout;
class QTableView;

namespace dblame::ui
{

class NodeTableModel;
class Selection;

class AlignmentPanel : public QWidget
{
    Q_OBJECT
public:
    explicit AlignmentPanel(QWidget *parent = nullptr);

    void setPair(OpenPairPtr pair);
    void setTable(NodeTableModel *table); // states of run rows: shapes that differ
    void setSelection(Selection *selection);
    void setHand(const std::vector<HandPair> &hand);
    void show(AlignmentModel::Group group);

    [[nodiscard]] QTableView *view() const { return m_view; }
    [[nodiscard]] QComboBox *referenceBox() const { return m_reference; }
    [[nodiscard]] QComboBox *candidateBox() const { return m_candidate; }
    [[nodiscard]] QPushButton *pairButton() const { return m_pairUp; }
    [[nodiscard]] int shownRows() const;

Q_SIGNALS:
    void handWanted(const std::vector<dblame::HandPair> &hand, const QString &what);

private:
    QWidget *buildHand();
    void takeCurrent();
    void followSelection();
    void fillValues();
    void pairUp();
    void unpair();
    void tell();

    AlignmentModel *m_model;
    AlignmentFilter *m_filter;
    QTableView *m_view;
    QComboBox *m_group;
    QLineEdit *m_words;
    QLabel *m_counts, *m_notes;
    QLabel *m_empty;
    QStackedLayout *m_stack;
    QComboBox *m_reference = nullptr, *m_candidate = nullptr;
    QPushButton *m_pairUp = nullptr, *m_unpair = nullptr;
    OpenPairPtr m_pair;
    std::vector<HandPair> m_hand;
    Selection *m_selection = nullptr;
};

} // namespace dblame::ui

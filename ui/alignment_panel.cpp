// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/alignment_panel.h"

#include <algorithm>

#include <QComboBox>
#include <QCompleter>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStackedLayout>
#include <QTableView>

#include "ui/node_table_model.h"
#include "ui/selection.h"

namespace dblame::ui
{

namespace
{

QComboBox *valueBox(const QString &name)
{
    auto *box = new QComboBox;
    box->setEditable(true);
    box->setInsertPolicy(QComboBox::NoInsert);
    box->setMinimumContentsLength(18);
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setAccessibleName(name);
    box->lineEdit()->setPlaceholderText(name);
    box->completer()->setFilterMode(Qt::MatchContains);
    box->completer()->setCompletionMode(QCompleter::PopupCompletion);
    return box;
}

} // namespace

AlignmentPanel::AlignmentPanel(QWidget *parent)
    : QWidget(parent), m_model(new AlignmentModel(this)), m_filter(new AlignmentFilter(this)), m_view(new QTableView),
      m_group(new QComboBox), m_words(new QLineEdit), m_counts(new QLabel), m_notes(new QLabel), m_empty(new QLabel),
      m_stack(new QStackedLayout)
{
    m_filter->setSourceModel(m_model);
    m_view->setModel(m_filter);
    m_view->setAccessibleName(tr("Alignment"));
    m_view->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_view->setSelectionMode(QAbstractItemView::SingleSelection);
    m_view->setShowGrid(false);
    m_view->setWordWrap(false);
    m_view->setTabKeyNavigation(false);
    m_view->setSortingEnabled(true);
    m_view->sortByColumn(-1, Qt::AscendingOrder);
    m_view->verticalHeader()->hide();
    m_view->verticalHeader()->setDefaultSectionSize(24);
    m_view->horizontalHeader()->setHighlightSections(false);
    m_view->horizontalHeader()->setStretchLastSection(true);
    m_view->setColumnWidth(AlignmentModel::State, 120);
    m_view->setColumnWidth(AlignmentModel::Reference, 180);
    m_view->setColumnWidth(AlignmentModel::Candidate, 180);
    connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &AlignmentPanel::takeCurrent);

    m_group->setAccessibleName(tr("Which rows of the alignment"));
    const auto group = [this](const QString &text, AlignmentModel::Group g) {
        m_group->addItem(text, static_cast<int>(g));
    };
    group(tr("All"), AlignmentModel::Group::All);
    group(tr("Paired"), AlignmentModel::Group::Paired);
    group(tr("Unpaired"), AlignmentModel::Group::Unpaired);
    group(tr("Shapes differ"), AlignmentModel::Group::Mismatched);
    group(tr("Paired by hand"), AlignmentModel::Group::ByHand);
    connect(m_group, &QComboBox::currentIndexChanged, this, [this] {
        m_filter->setGroup(static_cast<AlignmentModel::Group>(m_group->currentData().toInt()));
        tell();
    });
    m_words->setPlaceholderText(tr("Filter by name or reason"));
    m_words->setAccessibleName(tr("Filter of the alignment"));
    m_words->setClearButtonEnabled(true);
    connect(m_words, &QLineEdit::textChanged, this, [this](const QString &words) {
        m_filter->setWords(words);
        tell();
    });
    m_counts->setProperty("role", "mute");
    m_notes->setTextFormat(Qt::PlainText);
    m_notes->setWordWrap(true);
    m_notes->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_notes->setContentsMargins(14, 0, 14, 6);
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setProperty("role", "mute");

    auto *bar = new QHBoxLayout;
    bar->setContentsMargins(14, 6, 14, 6);
    bar->addWidget(m_group);
    bar->addWidget(m_words, 1);
    bar->addWidget(m_counts);
    m_stack->addWidget(m_view);
    m_stack->addWidget(m_empty);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(bar);
    layout->addWidget(m_notes);
    layout->addLayout(m_stack, 1);
    layout->addWidget(buildHand());
    tell();
}

QWidget *AlignmentPanel::buildHand()
{
    auto *label = new QLabel(tr("Pair by hand"));
    label->setProperty("role", "mute");
    m_reference = valueBox(tr("Reference value"));
    m_candidate = valueBox(tr("Candidate value"));
    m_pairUp = new QPushButton(tr("Pair"));
    m_unpair = new QPushButton(tr("Take apart"));
    m_unpair->setToolTip(tr("Undo the pairing by hand of the selected row"));
    connect(m_pairUp, &QPushButton::clicked, this, &AlignmentPanel::pairUp);
    connect(m_unpair, &QPushButton::clicked, this, &AlignmentPanel::unpair);
    for (const QComboBox *box : {m_reference, m_candidate})
        connect(box, &QComboBox::currentTextChanged, this, &AlignmentPanel::tell);
    auto *hand = new QWidget;
    auto *layout = new QHBoxLayout(hand);
    layout->setContentsMargins(14, 6, 14, 8);
    layout->addWidget(label);
    layout->addWidget(m_reference, 1);
    layout->addWidget(m_candidate, 1);
    layout->addWidget(m_pairUp);
    layout->addWidget(m_unpair);
    return hand;
}

void AlignmentPanel::setPair(OpenPairPtr pair)
{
    m_pair = pair;
    m_model->setPair(std::move(pair));
    QStringList notes;
    for (const std::string &note : m_pair ? m_pair->alignment.notes : std::vector<std::string>())
        notes << QString::fromStdString(note);
    m_notes->setText(notes.join(QLatin1Char('\n')));
    m_notes->setVisible(!notes.isEmpty());
    fillValues();
    tell();
}

void AlignmentPanel::setTable(NodeTableModel *table)
{
    m_model->setTable(table);
    connect(table, &NodeTableModel::dropsChanged, this, &AlignmentPanel::tell); // once a run, not once a row
}

void AlignmentPanel::setSelection(Selection *selection)
{
    m_selection = selection;
    connect(selection, &Selection::currentChanged, this, &AlignmentPanel::followSelection);
}

void AlignmentPanel::setHand(const std::vector<HandPair> &hand)
{
    m_hand = hand;
    tell();
}

void AlignmentPanel::show(AlignmentModel::Group group)
{
    m_words->clear();
    m_group->setCurrentIndex(m_group->findData(static_cast<int>(group)));
}

int AlignmentPanel::shownRows() const
{
    return m_filter->rowCount();
}

// What is alone comes first; any produced value may be chosen, also to take a wrong pair apart.
void AlignmentPanel::fillValues()
{
    const auto fill = [&](QComboBox *box, const std::shared_ptr<const Model> &model, Side side) {
        box->clear();
        if (!m_pair || !model || !m_pair->reference || !m_pair->candidate)
            return;
        QStringList names;
        for (const Unmatched &alone : m_pair->alignment.unmatched)
            if (alone.side == side)
                names << QString::fromStdString(alone.name);
        for (const Value &value : model->graph().values)
            names << QString::fromStdString(value.name);
        names.removeDuplicates();
        box->addItems(names);
        box->setCurrentIndex(-1);
        box->clearEditText();
    };
    fill(m_reference, m_pair ? m_pair->reference : nullptr, Side::Reference);
    fill(m_candidate, m_pair ? m_pair->candidate : nullptr, Side::Candidate);
}

void AlignmentPanel::takeCurrent()
{
    const QModelIndex current = m_filter->mapToSource(m_view->currentIndex());
    if (current.isValid()) {
        const int pair = current.data(AlignmentModel::PairRole).toInt();
        if (pair >= 0 && m_selection != nullptr)
            m_selection->setCurrent(PairId(static_cast<std::size_t>(pair)));
        // An unpaired value goes into its field: two clicks and the button make a pair.
        if (m_model->groupOf(current.row()) == AlignmentModel::Group::Unpaired) {
            const QString reference = m_model->referenceName(current.row());
            if (!reference.isEmpty())
                m_reference->setEditText(reference);
            else
                m_candidate->setEditText(m_model->candidateName(current.row()));
        }
    }
    tell();
}

void AlignmentPanel::followSelection()
{
    const PairId row = m_selection->current();
    if (!row.valid() || row.index >= m_model->rowCount())
        return;
    const QModelIndex index = m_filter->mapFromSource(m_model->index(row.index, 0));
    if (index.isValid() && index.row() != m_view->currentIndex().row()) {
        m_view->setCurrentIndex(index);
        m_view->scrollTo(index);
    }
}

void AlignmentPanel::pairUp()
{
    const HandPair pair{m_reference->currentText().trimmed().toStdString(),
                        m_candidate->currentText().trimmed().toStdString()};
    std::vector<HandPair> hand = m_hand;
    std::erase_if(hand, [&](const HandPair &other) { return other.ref == pair.ref || other.cand == pair.cand; });
    hand.push_back(pair);
    Q_EMIT handWanted(hand,
                      tr("pair %1 with %2").arg(QString::fromStdString(pair.ref), QString::fromStdString(pair.cand)));
}

void AlignmentPanel::unpair()
{
    const QModelIndex current = m_filter->mapToSource(m_view->currentIndex());
    if (!current.isValid())
        return;
    const std::string reference = m_model->referenceName(current.row()).toStdString();
    std::vector<HandPair> hand = m_hand;
    if (std::erase_if(hand, [&](const HandPair &pair) { return pair.ref == reference; }) > 0)
        Q_EMIT handWanted(hand, tr("take %1 apart").arg(QString::fromStdString(reference)));
}

void AlignmentPanel::tell()
{
    const bool both = m_pair && m_pair->reference && m_pair->candidate;
    const auto known = [](const std::shared_ptr<const Model> &model, const QComboBox *box) {
        return model->graph().find(box->currentText().trimmed().toStdString()).valid();
    };
    m_pairUp->setEnabled(both && known(m_pair->reference, m_reference) && known(m_pair->candidate, m_candidate));
    const QModelIndex current = m_filter->mapToSource(m_view->currentIndex());
    m_unpair->setEnabled(current.isValid() && m_model->groupOf(current.row()) == AlignmentModel::Group::ByHand);
    if (!both) {
        m_counts->clear();
        m_empty->setText(tr("Which value answers to which will stand here, with the rule that paired them.\n"
                            "Open a reference and a candidate."));
    } else {
        m_counts->setText(tr("%1 paired · %2 unpaired · %3 mismatched")
                              .arg(m_model->count(AlignmentModel::Group::Paired))
                              .arg(m_model->count(AlignmentModel::Group::Unpaired))
                              .arg(m_model->count(AlignmentModel::Group::Mismatched)));
        m_empty->setText(m_model->rowCount() == 0
                             ? tr("No value of either model found a partner.\nPair the first ones by hand below.")
                             : tr("No row here: choose “All” or clear the filter."));
    }
    m_stack->setCurrentIndex(m_filter->rowCount() == 0 ? 1 : 0);
}

} // namespace dblame::ui

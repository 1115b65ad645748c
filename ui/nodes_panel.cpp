// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/nodes_panel.h"

#include <algorithm>

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QScrollBar>
#include <QStackedLayout>
#include <QTableView>

#include "ui/node_table_model.h"
#include "ui/selection.h"

namespace dblame::ui
{

namespace
{

constexpr int kHiddenAtFirst[] = {NodeTableModel::Module,  NodeTableModel::FlowDrop, NodeTableModel::Mse,
                                  NodeTableModel::Bias,    NodeTableModel::RefMin,   NodeTableModel::RefMax,
                                  NodeTableModel::CandMin, NodeTableModel::CandMax,  NodeTableModel::DTypeColumn,
                                  NodeTableModel::Time,    NodeTableModel::Delta,    NodeTableModel::Value};

struct Width {
    int column, pixels;
};
constexpr Width kWidths[] = {
    {NodeTableModel::Index, 44},     {NodeTableModel::Name, 180},  {NodeTableModel::Module, 150},
    {NodeTableModel::Operator, 130}, {NodeTableModel::Kind, 80},   {NodeTableModel::Status, 130},
    {NodeTableModel::Snr, 78},       {NodeTableModel::Drop, 92},   {NodeTableModel::FlowDrop, 92},
    {NodeTableModel::OwnSite, 190},  {NodeTableModel::MaxAbs, 78}, {NodeTableModel::Cosine, 78},
    {NodeTableModel::Shape, 100},    {NodeTableModel::Rung, 100},  {NodeTableModel::Time, 70},
};

// Following the selection it scrolls up and down, never sideways: the columns stay where the reader put them. Keys
// that go from column to column do both.
class RowTable final : public QTableView
{
public:
    using QTableView::QTableView;
    void scrollTo(const QModelIndex &index, ScrollHint hint) override
    {
        const int before = horizontalScrollBar()->value();
        QTableView::scrollTo(index, hint);
        if (!m_sideways)
            horizontalScrollBar()->setValue(before);
    }

protected:
    void keyPressEvent(QKeyEvent *event) override
    {
        const int key = event->key();
        m_sideways = key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Home || key == Qt::Key_End;
        QTableView::keyPressEvent(event);
        m_sideways = false;
    }

private:
    bool m_sideways = false;
};

} // namespace

NodesPanel::NodesPanel(QWidget *parent)
    : QWidget(parent), m_filter(new NodeFilter(this)), m_view(new RowTable(this)), m_edit(new QLineEdit(this)),
      m_count(new QLabel(this)), m_empty(new QLabel(this)), m_stack(new QStackedLayout)
{
    m_view->setModel(m_filter);
    m_view->setAccessibleName(tr("Nodes"));
    m_view->setAccessibleDescription(tr("One row per aligned pair; the same rows as the graph"));
    m_view->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_view->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_view->setShowGrid(false);
    m_view->setWordWrap(false);
    m_view->setTabKeyNavigation(false);
    m_view->verticalHeader()->hide();
    m_view->verticalHeader()->setDefaultSectionSize(24);
    m_view->horizontalHeader()->setHighlightSections(false);
    m_view->horizontalHeader()->setSectionsMovable(true);
    m_view->horizontalHeader()->setContextMenuPolicy(Qt::CustomContextMenu);
    m_view->horizontalHeader()->setMinimumSectionSize(36);
    m_view->setSortingEnabled(true);
    m_view->sortByColumn(NodeTableModel::Index, Qt::AscendingOrder);
    connect(m_view->horizontalHeader(), &QWidget::customContextMenuRequested, this,
            [this](const QPoint &at) { showColumnMenu(m_view->horizontalHeader()->mapToGlobal(at)); });
    connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &NodesPanel::takeCurrent);

    auto *copyAction = new QAction(tr("Copy"), this);
    copyAction->setShortcut(QKeySequence::Copy);
    copyAction->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(copyAction, &QAction::triggered, this, &NodesPanel::copy);
    addAction(copyAction);

    m_edit->setPlaceholderText(tr("Filter: conv, -relu, snr<20, drop>3, kind:weight"));
    m_edit->setAccessibleName(tr("Filter of the nodes table"));
    m_edit->setClearButtonEnabled(true);
    connect(m_edit, &QLineEdit::textChanged, this, [this](const QString &text) {
        m_filter->setText(text);
        tell();
        Q_EMIT filterChanged(text);
    });
    auto *columns = new QPushButton(tr("Columns…"), this);
    columns->setAccessibleName(tr("Choose columns"));
    connect(columns, &QPushButton::clicked, this,
            [this, columns] { showColumnMenu(columns->mapToGlobal(QPoint(0, columns->height()))); });
    m_count->setProperty("role", "mute");

    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setProperty("role", "mute");
    m_empty->setWordWrap(true);
    auto *bar = new QHBoxLayout;
    bar->setContentsMargins(14, 6, 14, 6);
    bar->addWidget(m_edit, 1);
    bar->addWidget(m_count);
    bar->addWidget(columns);
    m_stack->addWidget(m_view);
    m_stack->addWidget(m_empty);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(bar);
    layout->addLayout(m_stack, 1);
    tell();
}

void NodesPanel::setTable(NodeTableModel *table)
{
    m_table = table;
    m_filter->setSourceModel(table);
    for (const Width &width : kWidths)
        m_view->setColumnWidth(width.column, width.pixels);
    for (const int column : kHiddenAtFirst)
        m_view->setColumnHidden(column, true);
    // What the row costs stands beside its name: in sight however narrow the dock is.
    auto *header = m_view->horizontalHeader();
    header->moveSection(header->visualIndex(NodeTableModel::Snr), 2);
    header->moveSection(header->visualIndex(NodeTableModel::Drop), 3);
    connect(m_filter, &QAbstractItemModel::modelReset, this, &NodesPanel::tell);
    connect(m_filter, &QAbstractItemModel::rowsInserted, this, &NodesPanel::tell);
    connect(m_filter, &QAbstractItemModel::rowsRemoved, this, &NodesPanel::tell);
    tell();
}

void NodesPanel::setSelection(Selection *selection)
{
    m_selection = selection;
    connect(selection, &Selection::currentChanged, this, &NodesPanel::followSelection);
}

void NodesPanel::setFilter(const QString &text)
{
    if (text != m_edit->text())
        m_edit->setText(text);
}

QString NodesPanel::filter() const
{
    return m_edit->text();
}

int NodesPanel::shownRows() const
{
    return m_filter->rowCount();
}

// Rows count as shown once the table says so; an empty table says why.
void NodesPanel::tell()
{
    const int all = m_table != nullptr ? m_table->pairCount() : 0;
    const int shown = m_filter->rowCount();
    m_count->setText(all == 0 ? QString() : shown == all ? tr("%1 rows").arg(all) : tr("%1 of %2").arg(shown).arg(all));
    if (all == 0)
        m_empty->setText(tr("One row per pair of values will stand here.\nOpen a reference and a candidate."));
    else
        m_empty->setText(tr("No row passes the filter “%1”. Clear it to see all %2.").arg(m_edit->text()).arg(all));
    m_stack->setCurrentIndex(shown == 0 ? 1 : 0);
}

void NodesPanel::selectNext(bool forward)
{
    const int count = m_filter->rowCount();
    if (count == 0)
        return;
    const QModelIndex current = m_view->currentIndex();
    int row = forward ? 0 : count - 1;
    if (current.isValid())
        row = (current.row() + (forward ? 1 : count - 1)) % count;
    m_view->setCurrentIndex(m_filter->index(row, NodeTableModel::Name));
    takeCurrent(m_view->currentIndex()); // also when it already was the current one
}

void NodesPanel::takeCurrent(const QModelIndex &current)
{
    if (m_selection != nullptr && current.isValid())
        m_selection->setCurrent(PairId(static_cast<std::size_t>(current.data(NodeTableModel::PairRole).toInt())));
}

void NodesPanel::followSelection()
{
    const PairId row = m_selection->current();
    if (!row.valid()) {
        m_view->clearSelection();
        return;
    }
    const QModelIndex current = m_view->currentIndex();
    if (current.isValid() && current.data(NodeTableModel::PairRole).toInt() == row.index)
        return;
    const QModelIndex index = m_filter->mapFromSource(m_table->index(row.index, NodeTableModel::Name));
    if (!index.isValid())
        return; // filtered away: the selection of the others stays
    m_view->setCurrentIndex(index);
    m_view->scrollTo(index);
}

QString NodesPanel::asText() const
{
    QList<int> columns;
    const auto *header = m_view->horizontalHeader();
    for (int visual = 0; visual < header->count(); ++visual)
        if (const int column = header->logicalIndex(visual); !m_view->isColumnHidden(column))
            columns << column;
    QList<int> rows;
    const auto selected = m_view->selectionModel()->selectedRows();
    for (const QModelIndex &index : selected)
        rows << index.row();
    std::sort(rows.begin(), rows.end());
    if (rows.isEmpty())
        for (int row = 0; row < m_filter->rowCount(); ++row)
            rows << row;
    const auto line = [&](auto &&cell) {
        QStringList cells;
        for (const int column : columns)
            cells << QString(cell(column)).replace(QLatin1Char('\t'), QLatin1Char(' '));
        return cells.join(QLatin1Char('\t')) + QLatin1Char('\n');
    };
    QString text = line([&](int column) { return m_filter->headerData(column, Qt::Horizontal).toString(); });
    for (const int row : rows)
        text += line([&](int column) { return m_filter->index(row, column).data().toString(); });
    return text;
}

void NodesPanel::copy() const
{
    QGuiApplication::clipboard()->setText(asText());
}

void NodesPanel::showColumnMenu(const QPoint &at)
{
    QMenu menu(this);
    for (int column = 0; column < m_filter->columnCount(); ++column) {
        QAction *action = menu.addAction(m_filter->headerData(column, Qt::Horizontal).toString());
        action->setCheckable(true);
        action->setChecked(!m_view->isColumnHidden(column));
        action->setEnabled(column != NodeTableModel::Name); // a row without a name helps nobody
        connect(action, &QAction::toggled, this, [this, column](bool on) {
            m_view->setColumnHidden(column, !on);
            if (on && m_view->columnWidth(column) < 40)
                m_view->setColumnWidth(column, 90);
        });
    }
    menu.exec(at);
}

QByteArray NodesPanel::columnState() const
{
    return m_view->horizontalHeader()->saveState();
}

void NodesPanel::restoreColumns(const QByteArray &state)
{
    if (!state.isEmpty())
        m_view->horizontalHeader()->restoreState(state);
}

} // namespace dblame::ui

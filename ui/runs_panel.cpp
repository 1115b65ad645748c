// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs_panel.h"

#include <algorithm>
#include <cmath>

#include <QEvent>
#include <QFont>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QStackedLayout>
#include <QTableView>

#include "ui/row_words.h"
#include "ui/session.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{
constexpr int kLeastChange = 190, kInputsWidth = 150; // pixels
}

RunsModel::RunsModel(const Session &session, QObject *parent) : QAbstractTableModel(parent), m_session(session) {}

void RunsModel::reset()
{
    beginResetModel();
    endResetModel();
}

int RunsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_session.runs().size());
}

int RunsModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant RunsModel::text(int row, int column) const
{
    const RunRecord &run = m_session.runs()[static_cast<std::size_t>(row)];
    const Signal signal = m_session.signal();
    switch (column) {
    case Number:
        return run.number;
    case Shown:
        return row == m_session.shownRun()      ? tr("shown")
               : row == m_session.overlaidRun() ? tr("laid under")
                                                : QString();
    case Change:
        return run.label;
    case Output: {
        const auto db = run.outputDb(signal);
        return db ? decibels(*db, 2) : tr("no output paired");
    }
    case Delta: {
        // Against the run that is laid under the shown one; without one, against the first.
        const int base = m_session.overlaidRun() >= 0 ? m_session.overlaidRun() : 0;
        const auto now = run.outputDb(signal);
        const auto then = m_session.runs()[static_cast<std::size_t>(base)].outputDb(signal);
        if (row == base)
            return tr("base");
        if (!now || !then || std::isnan(*now - *then))
            return now && then && *now == *then ? QStringLiteral("0.0") : QString();
        return changeDecibels(*now - *then);
    }
    case Worst: {
        const NodeReport *worst = nullptr;
        for (const NodeReport &report : run.report->rows)
            if (isActivation(run.pair->alignment.pairs[report.row.get()].kind) && hasDb(report) &&
                (worst == nullptr || dblame::shownDb(report, signal) < dblame::shownDb(*worst, signal)))
                worst = &report;
        if (worst == nullptr || !run.pair->reference)
            return {};
        const Graph &graph = run.pair->reference->graph();
        const ValueId value = run.pair->alignment.pairs[worst->row.get()].ref;
        const Node *node = graph.producer(value);
        const bool named = node != nullptr && !node->modulePath().empty();
        return tr("%1 %2").arg(QString::fromStdString(named ? node->modulePath() : graph.value(value).name),
                               decibels(dblame::shownDb(*worst, signal)));
    }
    case Inputs:
        return tr("%1 · %2").arg(QString::fromStdString(run.report->inputs.source)).arg(run.report->inputs.samples);
    case Rows:
        return tr("%1 of %2").arg(run.report->rowsRecomputed).arg(run.report->rows.size());
    case Seconds:
        return QLocale::c().toString(run.report->seconds, 'f', 1);
    default:
        return {};
    }
}

QVariant RunsModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const bool shown = index.row() == m_session.shownRun();
    switch (role) {
    case Qt::DisplayRole:
        return text(index.row(), index.column());
    case Qt::ToolTipRole:
        return index.column() == Change ? text(index.row(), Change) : QVariant();
    case Qt::TextAlignmentRole: {
        const int c = index.column();
        const bool number = c == Number || c == Output || c == Delta || c == Rows || c == Seconds;
        return QVariant((number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    }
    case Qt::FontRole: {
        QFont font;
        font.setWeight(shown ? QFont::DemiBold : QFont::Normal);
        return font;
    }
    case Qt::ForegroundRole:
        return index.column() == Shown ? QVariant(shown ? Theme::current().blue : Theme::current().mute) : QVariant();
    default:
        return {};
    }
}

QVariant RunsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole) {
        const bool number =
            section == Number || section == Output || section == Delta || section == Rows || section == Seconds;
        return QVariant((number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    }
    if (role != Qt::DisplayRole)
        return {};
    static const char *const names[ColumnCount] = {"Run",        "In the plot", "Changed",    "Output dB", "Δ dB",
                                                   "Worst node", "Inputs",      "Rows rerun", "s"};
    return tr(names[section]);
}

RunsPanel::RunsPanel(Session &session, QWidget *parent)
    : QWidget(parent), m_session(session), m_model(new RunsModel(session, this)), m_view(new QTableView),
      m_hint(new QLabel), m_stack(new QStackedLayout)
{
    m_view->setModel(m_model);
    m_view->setAccessibleName(tr("Runs"));
    m_view->setAccessibleDescription(tr("Select one run to show it, two to lay them over each other"));
    m_view->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_view->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_view->setShowGrid(false);
    m_view->setWordWrap(false);
    m_view->setTabKeyNavigation(false);
    m_view->verticalHeader()->hide();
    m_view->verticalHeader()->setDefaultSectionSize(24);
    m_view->horizontalHeader()->setHighlightSections(false);
    m_view->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    // What was changed tells runs apart: it has what the others leave, and never less than a reader needs. Where the
    // inputs came from is the first to go out of sight.
    m_view->horizontalHeader()->setSectionResizeMode(RunsModel::Change, QHeaderView::Interactive);
    m_view->horizontalHeader()->setSectionResizeMode(RunsModel::Inputs, QHeaderView::Interactive);
    m_view->horizontalHeader()->moveSection(RunsModel::Inputs, RunsModel::ColumnCount - 1);
    m_view->setColumnWidth(RunsModel::Inputs, kInputsWidth);
    m_view->viewport()->installEventFilter(this);
    connect(m_view->selectionModel(), &QItemSelectionModel::selectionChanged, this, &RunsPanel::takeSelection);
    connect(&m_session, &Session::runsChanged, this, [this] {
        m_model->reset();
        showSession();
    });
    connect(&m_session, &Session::shownRunChanged, this, &RunsPanel::showSession);
    connect(&m_session, &Session::signalChanged, this, &RunsPanel::showSession);

    auto *use = new QPushButton(tr("Take its changes"));
    use->setToolTip(tr("Make the changes of the selected run the current ones"));
    connect(use, &QPushButton::clicked, this, [this] {
        if (const auto rows = m_view->selectionModel()->selectedRows(); !rows.isEmpty())
            Q_EMIT useEditsWanted(rows.last().row());
    });
    m_hint->setProperty("role", "mute");
    m_hint->setText(tr("Select one run to show it, two to lay them over each other."));
    auto *empty = new QLabel(tr("Every run is kept here with what it changed and what that bought.\nPress Run (F5)."));
    empty->setAlignment(Qt::AlignCenter);
    empty->setProperty("role", "mute");
    auto *filled = new QWidget;
    auto *foot = new QHBoxLayout;
    foot->setContentsMargins(14, 6, 14, 8);
    foot->addWidget(m_hint, 1);
    foot->addWidget(use);
    auto *layout = new QVBoxLayout(filled);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_view, 1);
    layout->addLayout(foot);
    m_stack->addWidget(filled);
    m_stack->addWidget(empty);
    setLayout(m_stack);
    showSession();
}

bool RunsPanel::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == m_view->viewport() && event->type() == QEvent::Resize)
        stretchChange();
    return QWidget::eventFilter(watched, event);
}

void RunsPanel::stretchChange()
{
    int others = 0;
    for (int column = 0; column < RunsModel::ColumnCount; ++column)
        if (column != RunsModel::Change && column != RunsModel::Inputs)
            others += m_view->columnWidth(column);
    const int room = m_view->viewport()->width() - others;
    const bool inputsToo = room - kInputsWidth >= kLeastChange;
    m_view->setColumnWidth(RunsModel::Change, std::max(kLeastChange, inputsToo ? room - kInputsWidth : room));
}

void RunsPanel::takeSelection()
{
    if (m_showing)
        return;
    QList<int> rows;
    for (const QModelIndex &index : m_view->selectionModel()->selectedRows())
        rows << index.row();
    std::sort(rows.begin(), rows.end());
    if (rows.size() == 1)
        m_session.showRun(rows.front(), -1);
    else if (rows.size() >= 2)
        m_session.showRun(rows.last(), rows[rows.size() - 2]);
}

void RunsPanel::showSession()
{
    m_stack->setCurrentIndex(m_session.runs().empty() ? 1 : 0);
    if (m_session.runs().empty())
        return;
    m_showing = true;
    QItemSelection rows;
    for (const int run : {m_session.shownRun(), m_session.overlaidRun()})
        if (run >= 0)
            rows.select(m_model->index(run, 0), m_model->index(run, RunsModel::ColumnCount - 1));
    m_view->selectionModel()->select(rows, QItemSelectionModel::ClearAndSelect);
    m_showing = false;
    Q_EMIT m_model->dataChanged(m_model->index(0, 0),
                                m_model->index(m_model->rowCount() - 1, RunsModel::ColumnCount - 1));
    m_view->resizeColumnsToContents();
    m_view->setColumnWidth(RunsModel::Inputs, kInputsWidth);
    stretchChange();
}

} // namespace dblame::ui

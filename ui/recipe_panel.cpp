// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/recipe_panel.h"

#include <algorithm>

#include <QComboBox>
#include <QFont>
#include <QFrame>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QStackedLayout>
#include <QStackedWidget>
#include <QStandardItemModel>
#include <QTableView>

#include "ui/eliding.h"
#include "ui/row_words.h"
#include "ui/selection.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

constexpr int kRowHeight = 24; // pixels

QTableView *makeTable(QStandardItemModel *model, const QString &name)
{
    auto *view = new QTableView;
    view->setModel(model);
    view->setAccessibleName(name);
    view->setSelectionBehavior(QAbstractItemView::SelectRows);
    view->setSelectionMode(QAbstractItemView::SingleSelection);
    view->setEditTriggers(QAbstractItemView::NoEditTriggers);
    view->setShowGrid(false);
    view->setWordWrap(false);
    view->setTabKeyNavigation(false);
    view->verticalHeader()->hide();
    view->verticalHeader()->setDefaultSectionSize(kRowHeight);
    view->horizontalHeader()->setHighlightSections(false);
    view->horizontalHeader()->setStretchLastSection(true);
    return view;
}

QStandardItem *cell(const QString &text, bool number = false, bool marked = false)
{
    auto *item = new QStandardItem(text);
    item->setToolTip(text);
    item->setTextAlignment((number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    if (marked) {
        QFont font;
        font.setWeight(QFont::DemiBold);
        item->setFont(font);
    }
    return item;
}

QString range(double low, double high)
{
    return figure(low) + QStringLiteral(" … ") + figure(high);
}

QString share(const std::optional<double> &part)
{
    return part ? QLocale::c().toString(100 * *part, 'f', *part > 0 && *part < 0.001 ? 3 : 1) + QStringLiteral(" %")
                : QString();
}

} // namespace

RecipePanel::RecipePanel(QWidget *parent)
    : QWidget(parent), m_factModel(new QStandardItemModel(this)), m_calibrationModel(new QStandardItemModel(this)),
      m_facts(makeTable(m_factModel, tr("Facts of the recipe"))),
      m_calibration(makeTable(m_calibrationModel, tr("Calibration per site"))), m_title(new ElidingLabel),
      m_summary(new ElidingLabel), m_warning(new QLabel), m_banner(new QFrame),
      m_change(new QPushButton(tr("Another recipe…"))), m_export(new QPushButton(tr("Export recipe…"))),
      m_which(new QComboBox), m_tables(new QStackedWidget), m_stack(new QStackedLayout)
{
    m_factModel->setHorizontalHeaderLabels({tr("Fact"), tr("Where"), tr("Value")});
    m_calibrationModel->setHorizontalHeaderLabels({tr("Site"), tr("Drift"), tr("Observed"), tr("Evaluation"),
                                                   tr("Grid"), tr("Clipped"), tr("Unused"), tr("Batches")});
    for (int column = 0; column < FactColumns; ++column)
        m_factModel->setHeaderData(column, Qt::Horizontal, int(Qt::AlignLeft | Qt::AlignVCenter),
                                   Qt::TextAlignmentRole);
    for (int column = 0; column < ColumnCount; ++column)
        m_calibrationModel->setHeaderData(column, Qt::Horizontal,
                                          int((column == Site ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter),
                                          Qt::TextAlignmentRole);
    m_calibrationModel->setHeaderData(Drift, Qt::Horizontal,
                                      tr("How far the values of the run leave what was observed, as a share of it"),
                                      Qt::ToolTipRole);
    connect(m_calibration->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex &now) {
                if (m_selection == nullptr || !now.isValid())
                    return;
                const auto &row = m_rows[static_cast<std::size_t>(now.row())];
                if (row.row.valid())
                    m_selection->setCurrent(row.row);
            });

    // One at a time: beside each other neither has room for its last columns.
    m_tables->addWidget(m_calibration);
    m_tables->addWidget(m_facts);
    m_which->addItems({tr("Calibration"), tr("Facts")});
    m_which->setAccessibleName(tr("What the table shows"));
    connect(m_which, &QComboBox::currentIndexChanged, m_tables, &QStackedWidget::setCurrentIndex);
    auto *made = new QWidget;
    auto *layout = new QVBoxLayout(made);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(buildHead());
    layout->addWidget(m_banner);
    layout->addWidget(m_tables, 1);

    auto *none = new QWidget;
    auto *words = new QLabel(tr("The candidate comes from a file. A recipe can make one of the reference."));
    words->setProperty("role", "mute");
    words->setAlignment(Qt::AlignCenter);
    words->setWordWrap(true);
    auto *quantize = new QPushButton(tr("Quantize the reference…"));
    connect(quantize, &QPushButton::clicked, this, &RecipePanel::recipeWanted);
    auto *noneLayout = new QVBoxLayout(none);
    noneLayout->addStretch();
    noneLayout->addWidget(words);
    noneLayout->addWidget(quantize, 0, Qt::AlignHCenter);
    noneLayout->addStretch();
    m_stack->addWidget(none);
    m_stack->addWidget(made);
    setLayout(m_stack);
}

QWidget *RecipePanel::buildHead()
{
    m_title->setProperty("role", "value");
    m_summary->setProperty("role", "mute");
    connect(m_change, &QPushButton::clicked, this, &RecipePanel::recipeWanted);
    connect(m_export, &QPushButton::clicked, this, &RecipePanel::exportWanted);
    auto *head = new QWidget;
    auto *layout = new QHBoxLayout(head);
    layout->setContentsMargins(14, 6, 14, 6);
    layout->addWidget(m_which);
    layout->addWidget(m_title);
    layout->addWidget(m_summary, 1);
    layout->addWidget(m_change);
    layout->addWidget(m_export);

    m_banner->setProperty("role", "tile");
    auto *word = new QLabel(tr("Warning"));
    word->setProperty("role", "accent");
    m_warning->setTextFormat(Qt::PlainText);
    m_warning->setWordWrap(true);
    auto *bannerLayout = new QHBoxLayout(m_banner);
    bannerLayout->setContentsMargins(10, 5, 10, 5);
    bannerLayout->addWidget(word);
    bannerLayout->addWidget(m_warning, 1);
    m_banner->hide();
    return head;
}

void RecipePanel::setSelection(Selection *selection)
{
    m_selection = selection;
}

void RecipePanel::setPair(OpenPairPtr pair)
{
    m_pair = std::move(pair);
    m_report.reset();
    showFacts();
    showCalibration();
    m_stack->setCurrentIndex(m_pair && m_pair->made ? 1 : 0);
}

void RecipePanel::setReport(std::shared_ptr<const RunReport> report)
{
    m_report = std::move(report);
    showCalibration();
}

void RecipePanel::showFacts()
{
    m_factModel->removeRows(0, m_factModel->rowCount());
    const QString warning = m_pair ? calibrationWarning(*m_pair) : QString();
    m_warning->setText(warning);
    m_banner->setAccessibleName(warning.isEmpty() ? QString() : tr("Warning: %1").arg(warning));
    m_banner->setVisible(!warning.isEmpty());
    m_title->setText({});
    if (!m_pair || !m_pair->made)
        return;
    m_title->setText(QString::fromStdString(m_pair->made->recipe.title()));
    for (const FactRow &fact : factRows(m_pair->made->quantized))
        m_factModel->appendRow({cell(fact.what, false, fact.marked), cell(fact.where), cell(fact.value)});
    m_facts->resizeColumnToContents(What);
    m_facts->setColumnWidth(Where, 220);
}

void RecipePanel::showCalibration()
{
    m_calibrationModel->removeRows(0, m_calibrationModel->rowCount());
    m_rows.clear();
    m_summary->setText({});
    if (!m_pair || !m_pair->made)
        return;
    m_rows = calibrationRows(*m_pair, m_report.get());
    for (const CalibrationRow &row : m_rows) {
        const bool seen = row.seen.batches > 0 && !row.dynamic;
        QString drift = row.drift ? share(row.drift) : QString();
        if (row.drifts())
            drift = tr("leaves it, %1").arg(drift);
        const QString observed = row.dynamic ? tr("from each tensor")
                                 : seen      ? range(row.seen.lowest, row.seen.highest)
                                             : tr("nothing");
        const QString evaluated = row.evaluationLow ? range(*row.evaluationLow, *row.evaluationHigh) : QString();
        m_calibrationModel->appendRow(
            {cell(row.site), cell(drift, true, row.drifts()), cell(observed, true), cell(evaluated, true),
             cell(seen ? range(row.seen.low, row.seen.high) : QString(), true), cell(share(row.seen.clipped), true),
             cell(share(row.seen.unused), true), cell(seen ? QString::number(row.seen.batches) : QString(), true)});
    }
    for (int column = 0; column < Batches; ++column)
        m_calibration->resizeColumnToContents(column);
    m_calibration->setColumnWidth(Site, std::min(m_calibration->columnWidth(Site), 240));
    const auto drifting = std::count_if(m_rows.begin(), m_rows.end(), [](const auto &row) { return row.drifts(); });
    const MadeCandidate &made = *m_pair->made;
    QString summary = made.quantized.calibrationBatches > 0
                          ? tr("calibrated on %1 · %2 batches")
                                .arg(QString::fromStdString(made.calibration.source).section(QLatin1Char('/'), -1))
                                .arg(made.quantized.calibrationBatches)
                          : tr("nothing to calibrate");
    if (drifting > 0)
        summary.prepend(
            tr("the run leaves the calibrated range at %1 of %2 sites · ").arg(drifting).arg(m_rows.size()));
    m_summary->setText(summary);
}

QString RecipePanel::warning() const
{
    return m_banner->isHidden() ? QString() : m_warning->text();
}

QString RecipePanel::summary() const
{
    return m_summary->text();
}

} // namespace dblame::ui

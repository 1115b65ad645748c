// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/recipe_panel.h"

#include <algorithm>

#include <QComboBox>
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
#include "ui/recipe_tables.h"
#include "ui/recipe_weights.h"
#include "ui/row_words.h"
#include "ui/selection.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

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
      m_facts(makeRecipeTable(m_factModel, tr("Facts of the recipe"))),
      m_calibration(makeRecipeTable(m_calibrationModel, tr("Calibration per site"))), m_title(new ElidingLabel),
      m_summary(new ElidingLabel), m_warning(new QLabel), m_banner(new QFrame), m_weights(new RecipeWeights),
      m_measure(new QPushButton), m_take(new QPushButton(tr("Take in changes"))),
      m_change(new QPushButton(tr("Another recipe…"))), m_export(new QPushButton(tr("Export…"))),
      m_which(new QComboBox), m_tables(new QStackedWidget), m_stack(new QStackedLayout)
{
    m_factModel->setHorizontalHeaderLabels({tr("Fact"), tr("Where"), tr("Value")});
    m_calibrationModel->setHorizontalHeaderLabels({tr("Site"), tr("Drift"), tr("Clipped"), tr("Unused"), tr("Observed"),
                                                   tr("Evaluation"), tr("Grid"), tr("Batches")});
    for (int column = 0; column < FactColumns; ++column)
        m_factModel->setHeaderData(column, Qt::Horizontal, int(Qt::AlignLeft | Qt::AlignVCenter),
                                   Qt::TextAlignmentRole);
    for (int column = 0; column < ColumnCount; ++column)
        m_calibrationModel->setHeaderData(column, Qt::Horizontal,
                                          int((column == Site ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter),
                                          Qt::TextAlignmentRole);
    m_calibrationModel->setHeaderData(
        Drift, Qt::Horizontal, tr("How far the values of the run are out of what was observed, as a share of it"),
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
    m_tables->addWidget(m_weights);
    m_which->addItems({tr("Calibration"), tr("Facts"), tr("Weights")});
    m_which->setAccessibleName(tr("What the table shows"));
    connect(m_which, &QComboBox::currentIndexChanged, this, [this](int page) {
        m_tables->setCurrentIndex(page);
        m_measure->setVisible(m_tables->currentWidget() == m_facts);
    });
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
    m_take->setEnabled(false);
    m_take->setToolTip(tr("Makes overrides of the recipe out of the changes to layers and quantizes again, so that the "
                          "exported recipe has them"));
    connect(m_take, &QPushButton::clicked, this, &RecipePanel::takeEditsWanted);
    connect(m_change, &QPushButton::clicked, this, &RecipePanel::recipeWanted);
    connect(m_export, &QPushButton::clicked, this, &RecipePanel::exportWanted);
    m_measure->hide(); // until the facts are looked at
    connect(m_measure, &QPushButton::clicked, this,
            [this] { m_measuring ? Q_EMIT stopMeasuringWanted() : Q_EMIT measureWanted(); });
    m_export->setToolTip(tr("Writes the recipe down"));
    auto *controls = new QHBoxLayout;
    controls->addWidget(m_which);
    controls->addStretch();
    for (QPushButton *button : {m_measure, m_take, m_change, m_export})
        controls->addWidget(button);
    auto *words = new QHBoxLayout;
    words->addWidget(m_title);
    words->addWidget(m_summary, 1);
    auto *head = new QWidget;
    auto *layout = new QVBoxLayout(head);
    layout->setContentsMargins(14, 6, 14, 6);
    layout->setSpacing(4);
    layout->addLayout(controls);
    layout->addLayout(words);

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
    m_weights->setSelection(selection);
}

void RecipePanel::setPair(OpenPairPtr pair)
{
    m_pair = std::move(pair);
    m_report.reset();
    showFacts();
    showCalibration();
    m_weights->setRows(m_pair ? weightRows(*m_pair) : std::vector<WeightRow>());
    showMeasuring();
    m_stack->setCurrentIndex(m_pair && m_pair->made ? 1 : 0);
}

void RecipePanel::setReport(std::shared_ptr<const RunReport> report)
{
    m_report = std::move(report);
    showCalibration();
}

void RecipePanel::setRunnable(bool runnable)
{
    m_runnable = runnable;
    showMeasuring();
}

void RecipePanel::setLayerChanges(bool any)
{
    m_take->setEnabled(any);
}

void RecipePanel::setMeasuring(bool measuring)
{
    if (m_measuring == measuring)
        return;
    m_measuring = measuring;
    showMeasuring();
}

void RecipePanel::setParts(const OutputParts &parts)
{
    if (!m_pair || !m_pair->made)
        return;
    std::erase_if(m_measured, [this](const Measured &each) {
        return each.made.expired() || (each.made.lock() == m_pair->made && each.inputs == m_pair->inputs.sha256);
    });
    m_measured.push_back({m_pair->made, m_pair->inputs.sha256, parts});
    showFacts();
    showMeasuring();
}

const OutputParts *RecipePanel::parts() const
{
    for (const Measured &each : m_measured)
        if (m_pair && m_pair->made && each.made.lock() == m_pair->made && each.inputs == m_pair->inputs.sha256)
            return &each.parts;
    return nullptr;
}

void RecipePanel::showMeasuring()
{
    const bool known = parts() != nullptr;
    m_measure->setText(m_measuring ? tr("Stop measuring") : known ? tr("Measure again") : tr("Measure the outputs"));
    m_measure->setEnabled(m_measuring || m_runnable);
    m_measure->setToolTip(tr("Runs the recipe's candidate, without the changes to layers, with everything quantized, "
                             "with its weights alone and with its activations alone"));
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
    std::vector<FactRow> facts = factRows(m_pair->made->quantized);
    const std::vector<FactRow> measured = partRows(parts());
    facts.insert(facts.begin(), measured.begin(), measured.end());
    for (const FactRow &fact : facts)
        m_factModel->appendRow(
            {recipeCell(fact.what, false, fact.marked), recipeCell(fact.where), recipeCell(fact.value)});
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
            drift = tr("%1 out").arg(drift);
        const QString observed = row.dynamic ? tr("from each tensor")
                                 : seen      ? range(row.seen.lowest, row.seen.highest)
                                             : tr("nothing");
        const QString evaluated = row.evaluationLow ? range(*row.evaluationLow, *row.evaluationHigh) : QString();
        m_calibrationModel->appendRow(
            {recipeCell(row.site), recipeCell(drift, true, row.drifts()), recipeCell(share(row.seen.clipped), true),
             recipeCell(share(row.seen.unused), true), recipeCell(observed, true), recipeCell(evaluated, true),
             recipeCell(seen ? range(row.seen.low, row.seen.high) : QString(), true),
             recipeCell(seen ? QString::number(row.seen.batches) : QString(), true)});
    }
    // Where every site saw all batches (a shared observer sees each at all of its sites) the summary says how many.
    const std::int64_t batches = m_pair->made->quantized.calibrationBatches;
    m_calibration->setColumnHidden(Batches, std::all_of(m_rows.begin(), m_rows.end(), [&](const auto &row) {
                                       return row.dynamic || row.seen.batches >= batches;
                                   }));
    for (int column = 0; column < Batches; ++column)
        m_calibration->resizeColumnToContents(column);
    m_calibration->setColumnWidth(Site, std::min(m_calibration->columnWidth(Site), 200));
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

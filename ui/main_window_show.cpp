// SPDX-License-Identifier: GPL-3.0-or-later
//
// How the session is shown: pair, edits, run, activity, status bar.
#include "ui/main_window.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <unistd.h>

#include <QAction>
#include <QDockWidget>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>

#include "core/random_looking.h"
#include "ui/alignment_panel.h"
#include "ui/eliding.h"
#include "ui/graph_panel.h"
#include "ui/inspector_panel.h"
#include "ui/layers_panel.h"
#include "ui/node_table_model.h"
#include "ui/recipe_panel.h"
#include "ui/row_words.h"
#include "ui/selection.h"
#include "ui/snr_plot_panel.h"

namespace dblame::ui
{

namespace
{

// Resident memory of this process in bytes, 0 where the system does not say.
std::uint64_t residentBytes()
{
    std::ifstream statm("/proc/self/statm");
    std::uint64_t total = 0;
    std::uint64_t resident = 0;
    statm >> total >> resident;
    return resident * static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PAGE_SIZE)));
}

} // namespace

EditSet MainWindow::editsOfShownRun() const
{
    const int shown = m_session->shownRun();
    return shown < 0 ? EditSet() : m_session->runs()[static_cast<std::size_t>(shown)].edits;
}

void MainWindow::showPair()
{
    const OpenPairPtr &pair = m_session->pair();
    m_selection->setCurrent({});
    m_table->setPair(pair);
    m_graph->setPair(pair);
    m_plot->setPair(pair);
    m_inspector->setPair(pair);
    m_layers->setPair(pair);
    m_alignment->setPair(pair);
    m_alignment->setHand(m_session->hand());
    m_recipe->setPair(pair);
    m_layers->setRunnable(m_session->runnable());
    m_plot->setRunnable(m_session->runnable());
    m_recipe->setRunnable(m_session->runnable());
    m_inspector->setRunnable(m_session->runnable());
    m_nodesDock->setWindowTitle(m_table->pairCount() == 0 ? tr("Nodes") : tr("Nodes %1").arg(m_table->pairCount()));
    if (pair->inputs.random)
        m_banners->show(QStringLiteral("random"), BannerArea::Warning,
                        tr("The inputs are random numbers. They rank layers differently from real data: take what "
                           "you see as a test of the set-up, not as a finding."),
                        {{tr("Inputs…"), [this] { chooseInputs(); }}});
    else if (const auto note = randomLookNote(pair->inputs))
        m_banners->show(
            QStringLiteral("random"), BannerArea::Warning,
            tr("Take what you see as a test of the set-up, not as a finding: %1").arg(QString::fromStdString(*note)),
            {{tr("Inputs…"), [this] { chooseInputs(); }}});
    else
        m_banners->remove(QStringLiteral("random"));
    showFileNames();
    showStatus();
}

// What is to change against the run that is shown: the same in graph and tree.
void MainWindow::showChanges()
{
    const EditSet ran = editsOfShownRun();
    m_graph->setPendingChanges(m_session->edits(), ran);
    m_layers->setEdits(m_session->edits(), ran);
}

void MainWindow::showEdits()
{
    showChanges();
    m_recipe->setLayerChanges(m_session->pair()->made && !m_session->edits().empty());
    if (m_session->runnable())
        m_runner->plan(m_session->edits());
    else
        m_layers->setPlan(std::nullopt);
}

void MainWindow::showShownRun()
{
    auto report = m_session->reportFor(m_session->shownRun());
    if (report && report->signal != m_session->signal()) {
        // Drops go by the signal that is shown.
        auto other = std::make_shared<RunReport>(*report);
        other->signal = m_session->signal();
        findDrops(*other, m_session->pair()->alignment, m_session->pair()->reference->graph(), m_session->signal());
        report = other;
    }
    m_recipe->setReport(report);
    if (report)
        m_table->setReport(*report);
    else
        m_table->setPair(m_session->pair()); // not run: every row pending again
    const auto overlay = m_session->reportFor(m_session->overlaidRun());
    m_table->setBaseline(overlay);
    m_plot->setOverlay(
        overlay, overlay
                     ? tr("run %1").arg(m_session->runs()[static_cast<std::size_t>(m_session->overlaidRun())].number)
                     : QString());
    showChanges();
    showStatus();
}

void MainWindow::showActivity()
{
    const auto activity = m_runner->activity();
    const bool running = m_runner->running();
    const bool opening = m_runner->opening();
    const bool measuring = m_runner->measuring();
    m_stopButton->setEnabled(running || opening || measuring || activity == Runner::Layout);
    m_recipe->setMeasuring(measuring);
    m_stopAction->setEnabled(m_stopButton->isEnabled());
    m_runButton->setEnabled(m_session->runnable() || opening);
    m_runAction->setEnabled(true); // says what is missing
    m_reload->setEnabled(!opening && (m_session->pair()->reference || m_session->pair()->candidate));
    m_exportReport->setEnabled(m_session->shownRun() >= 0);
    m_exportPlot->setEnabled(m_session->shownRun() >= 0);
    m_exportRecipe->setEnabled(m_session->pair()->made != nullptr);
    if (opening && m_progressText->text().isEmpty())
        say(tr("opening"));
    if (activity == Runner::Load)
        say(tr("loading LibTorch"));
    else if (activity == Runner::Layout)
        say(tr("laying out the graph"));
    const bool busyText =
        m_progressText->text() == tr("loading LibTorch") || m_progressText->text() == tr("laying out the graph") ||
        m_progressText->text().startsWith(tr("opening: ")) || m_progressText->text().startsWith(tr("quantizing: ")) ||
        m_progressText->text().startsWith(tr("measuring ")) || m_progressText->text() == tr("opening");
    if (!activity && busyText)
        say({});
    const bool shown = running || opening || measuring || activity == Runner::Load || activity == Runner::Layout;
    if (shown && m_progress->isHidden())
        m_progress->setRange(0, running ? kProgressSteps : 0); // without figures it shows that something goes on
    m_progress->setVisible(shown);
    showFileNames();
}

void MainWindow::showStatus()
{
    const OpenPairPtr &pair = m_session->pair();
    if (pair->reference && pair->candidate) {
        int mismatched = 0;
        for (int i = 0; i < m_table->pairCount(); ++i)
            mismatched +=
                m_table->report(PairId(static_cast<std::size_t>(i))).status == RowStatus::ShapeMismatch ? 1 : 0;
        mismatched = std::max(mismatched, pair->alignment.shapeMismatches);
        QString counts =
            tr("%1 paired · %2 unpaired").arg(pair->alignment.pairs.size()).arg(pair->alignment.unmatched.size());
        if (mismatched > 0)
            counts += tr(" · %1 with other shapes").arg(mismatched);
        if (!pair->alignment.folds.empty())
            counts += pair->alignment.folds.size() == 1
                          ? tr(" · 1 batch norm folded")
                          : tr(" · %1 batch norms folded").arg(pair->alignment.folds.size());
        m_counts->setText(counts);
    } else {
        m_counts->setText(pair->reference   ? tr("reference open; now open a candidate")
                          : pair->candidate ? tr("candidate open; now open a reference")
                                            : tr("nothing open; drop two models here"));
    }
    m_outcome->clear();
    if (m_session->shownRun() >= 0) {
        const RunRecord &run = m_session->runs()[static_cast<std::size_t>(m_session->shownRun())];
        PairId worst;
        for (int i = 0; i < m_table->pairCount(); ++i) {
            const PairId row(static_cast<std::size_t>(i));
            const double db = m_table->shownDb(row);
            if (isActivation(m_table->aligned(row).kind) && !std::isnan(db) &&
                (!worst.valid() || db < m_table->shownDb(worst)))
                worst = row;
        }
        const auto output = run.outputDb(m_session->signal());
        QString text = output ? tr("output %1 dB").arg(decibels(*output, 2)) : tr("no output is paired");
        if (worst.valid())
            text += tr(" · worst %1").arg(m_table->label(worst));
        m_outcome->setText(text);
    }
    QStringList machine;
    if (m_session->shownRun() >= 0)
        machine
            << tr("%1 threads").arg(m_session->runs()[static_cast<std::size_t>(m_session->shownRun())].report->threads);
    else if (m_engine)
        machine << tr("%1 threads").arg(m_engine->defaultThreads);
    if (m_engine)
        machine << tr("LibTorch %1").arg(QString::fromStdString(m_engine->libtorch));
    if (const auto bytes = residentBytes(); bytes > 0)
        machine << tr("%1 MB").arg(bytes / 1'000'000);
    m_machine->setText(machine.join(QStringLiteral(" · ")));
}

} // namespace dblame::ui

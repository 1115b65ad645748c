// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the runner brings back, and how it is shown.
#include "ui/main_window.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <unistd.h>

#include <QAction>
#include <QComboBox>
#include <QDockWidget>
#include <QLabel>
#include <QLocale>
#include <QProgressBar>
#include <QPushButton>
#include <QUndoStack>

#include "core/log.h"
#include "ui/alignment_panel.h"
#include "ui/edits_text.h"
#include "ui/graph_panel.h"
#include "ui/inspector_panel.h"
#include "ui/layers_panel.h"
#include "ui/node_table_model.h"
#include "ui/nodes_panel.h"
#include "ui/row_words.h"
#include "ui/selection.h"
#include "ui/snr_plot_panel.h"

namespace dblame::ui
{

namespace
{

constexpr int kProgressSteps = 1000;
// Activations kept for reruns: an eighth of the machine's memory, so that two windows still fit beside the models.
constexpr std::uint64_t kCacheShare = 8;

std::uint64_t cacheBytes()
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long size = sysconf(_SC_PAGE_SIZE);
    return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) / kCacheShare
                                 : 0;
}

// Resident memory of this process in bytes, 0 where the system does not say.
std::uint64_t residentBytes()
{
    std::ifstream statm("/proc/self/statm");
    std::uint64_t total = 0;
    std::uint64_t resident = 0;
    statm >> total >> resident;
    return resident * static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PAGE_SIZE)));
}

QString seconds(double s)
{
    return QLocale::c().toString(s, 'f', 1) + QStringLiteral(" s");
}

} // namespace

void MainWindow::connectRunner()
{
    connect(m_runner, &Runner::engineReady, this, [this](const EngineInfo &info) {
        m_engine = info;
        showStatus();
    });
    connect(m_runner, &Runner::engineFailed, this, [this](const Error &error) {
        logError(error);
        m_lastError = error;
        m_banners->show(QStringLiteral("engine"), BannerArea::Problem, QString::fromStdString(error.text()));
    });
    connect(m_runner, &Runner::activityChanged, this, [this] {
        showActivity();
        // Panels gather their changes until the event loop is idle; what is settled comes after them.
        if (!m_runner->activity())
            QMetaObject::invokeMethod(
                this,
                [this] {
                    if (!m_runner->activity())
                        Q_EMIT settled();
                },
                Qt::QueuedConnection);
    });
    connect(m_runner, &Runner::progressed, this, [this](const QString &what, quint64 done, quint64 total) {
        m_progress->setRange(0, total > 0 ? kProgressSteps : 0);
        m_progress->setValue(
            total > 0 ? static_cast<int>(kProgressSteps * static_cast<double>(done) / static_cast<double>(total)) : 0);
        say(tr("opening: %1").arg(what));
    });
    connect(m_runner, &Runner::opened, this, &MainWindow::takeOpened);
    connect(m_runner, &Runner::openFailed, this, &MainWindow::takeOpenFailure);
    connect(m_runner, &Runner::rowsArrived, m_table, &NodeTableModel::update);
    connect(m_runner, &Runner::runProgressed, this, [this](const RunProgress &p) {
        const double batches = static_cast<double>(std::max<std::int64_t>(1, p.batches));
        const double inBatch = p.nodes > 0 ? static_cast<double>(p.node) / static_cast<double>(p.nodes) : 0;
        m_progress->setRange(0, kProgressSteps);
        m_progress->setValue(static_cast<int>(kProgressSteps * (static_cast<double>(p.batch) + inBatch) / batches));
        QString text = tr("%1 / %2 nodes · %3").arg(p.node).arg(p.nodes).arg(seconds(p.seconds));
        if (p.batches > 1)
            text = tr("batch %1 / %2 · ").arg(p.batch + 1).arg(p.batches) + text;
        say(text);
    });
    connect(m_runner, &Runner::runFinished, this, &MainWindow::takeFinished);
    connect(m_runner, &Runner::runFailed, this, &MainWindow::takeRunFailure);
    connect(m_runner, &Runner::planned, m_session, &Session::setPlan);
    connect(m_runner, &Runner::planFailed, this, [this](const Error &error) {
        logError(error);
        m_banners->show(QStringLiteral("plan"), BannerArea::Problem, QString::fromStdString(error.text()),
                        {{tr("Undo the change"), [this] { m_session->undoStack()->undo(); }}});
    });
    connect(m_runner, &Runner::detailArrived, m_inspector, &InspectorPanel::setDetail);
    connect(m_runner, &Runner::detailFailed, this, [this](const Error &error) {
        if (error.code != ErrorCode::Cancelled)
            logError(error);
        m_inspector->setDetailFailed(m_selection->current(), QString::fromStdString(error.text()));
    });
}

void MainWindow::takeOpened(const Opened &opened)
{
    const OpenRequest request = *m_opening;
    m_opening.reset();
    m_lastError.reset();
    QStringList lost;
    m_session->setOpened(request, opened, &lost);
    if (!lost.isEmpty())
        m_banners->show(
            QStringLiteral("edits"), BannerArea::Problem,
            tr("This candidate has no %1; those changes were left out").arg(lost.join(QStringLiteral(", "))));
    for (const auto &model : {opened.pair->reference, opened.pair->candidate})
        if (model)
            for (const std::string &note : model->info().notes)
                logLine(LogLevel::Info, model->info().path + ": " + note);
    for (const std::string &note : opened.pair->sites.notes)
        logLine(LogLevel::Info, note);
    for (const std::string &note : opened.pair->alignment.notes)
        logLine(LogLevel::Info, note);
    for (const std::string &note : opened.pair->inputs.notes)
        logLine(LogLevel::Info, note);
    if (opened.inputsError) {
        logError(*opened.inputsError);
        m_lastError = opened.inputsError;
        m_banners->show(QStringLiteral("inputs"), BannerArea::Problem,
                        QString::fromStdString(opened.inputsError->text()),
                        {{tr("Inputs…"), [this] { chooseInputs(); }}, {tr("Use random inputs"), [this] {
                                                                           OpenRequest again = wantedRequest();
                                                                           again.inputs = {};
                                                                           again.inputs.random = 1;
                                                                           requestOpen(std::move(again), false);
                                                                       }}});
    }
    if (opened.pair->reference && opened.pair->candidate) {
        QStringList entry{QString::fromStdString(request.reference), QString::fromStdString(request.candidate)};
        for (const std::string &file : request.inputs.files)
            entry << QString::fromStdString(file);
        remember(entry.join(QLatin1Char('\n')));
    }
    if (m_runWhenOpen && opened.runnable)
        run();
    m_runWhenOpen = false;
}

void MainWindow::takeOpenFailure(const Error &error)
{
    m_opening.reset();
    m_runWhenOpen = false;
    showFileNames();
    logError(error);
    if (error.code == ErrorCode::Cancelled) {
        say(tr("opening was stopped"));
        return;
    }
    m_lastError = error;
    m_banners->show(
        QStringLiteral("open"), BannerArea::Problem, QString::fromStdString(error.text()),
        {{tr("Reference…"), [this] { chooseReference(); }}, {tr("Candidate…"), [this] { chooseCandidate(); }}});
}

void MainWindow::run()
{
    if (m_opening) {
        m_runWhenOpen = true; // as soon as it is there
        return;
    }
    if (!m_session->runnable()) {
        m_banners->show(QStringLiteral("run"), BannerArea::Problem,
                        tr("Nothing to run yet: a comparison needs a reference, a candidate and inputs"),
                        {{tr("Reference…"), [this] { chooseReference(); }},
                         {tr("Candidate…"), [this] { chooseCandidate(); }},
                         {tr("Inputs…"), [this] { chooseInputs(); }}});
        return;
    }
    m_banners->remove(QStringLiteral("run"));
    RunOptions options;
    options.signal = m_session->signal();
    options.cacheBytes = cacheBytes();
    m_table->startRun();
    m_plot->runStarted();
    m_progress->setRange(0, kProgressSteps);
    m_progress->setValue(0);
    say(tr("starting"));
    m_runner->run(m_session->edits(), options);
}

void MainWindow::stop()
{
    if (m_runner->activity())
        say(tr("stopping at the next operator"));
    m_runner->cancel();
}

void MainWindow::takeFinished(const std::shared_ptr<const RunReport> &report, const EditSet &edits)
{
    m_lastError.reset();
    for (const std::string &warning : report->warnings)
        logLine(LogLevel::Warning, warning);
    m_session->addRun(report, edits);
    m_progress->setRange(0, kProgressSteps);
    m_progress->setValue(kProgressSteps);
    say(tr("%1 of %2 rows · %3").arg(report->rowsRecomputed).arg(report->rows.size()).arg(seconds(report->seconds)));
    if (m_session->pair()->candidate && !edits.empty())
        logLine(LogLevel::Info, "run " + std::to_string(m_session->runs().back().number) + ": " +
                                    m_session->runs().back().label.toStdString());
    showStatus();
}

void MainWindow::takeRunFailure(const Error &error)
{
    logError(error);
    showShownRun(); // rows of the broken run give way to those of the last whole one
    m_progress->setRange(0, kProgressSteps);
    m_progress->setValue(0);
    if (error.code == ErrorCode::Cancelled) {
        say(tr("stopped"));
        return;
    }
    say(tr("failed"));
    m_lastError = error;
    m_banners->show(QStringLiteral("run"), BannerArea::Problem, QString::fromStdString(error.text()),
                    {{tr("Run again"), [this] { run(); }}, {tr("Show log"), [this] {
                                                                m_logDock->show();
                                                                m_logDock->raise();
                                                            }}});
}

bool MainWindow::selectNode(const QString &name)
{
    const OpenPairPtr &pair = m_session->pair();
    for (int i = 0; i < m_table->pairCount(); ++i) {
        const PairId row(static_cast<std::size_t>(i));
        const AlignedPair &aligned = m_table->aligned(row);
        if (!aligned.ref.valid() || !pair->reference)
            continue;
        const Graph &graph = pair->reference->graph();
        const Node *node = graph.producer(aligned.ref);
        const std::string wanted = name.toStdString();
        if (graph.value(aligned.ref).name == wanted || m_table->label(row) == name ||
            (node != nullptr && (node->name == wanted || node->modulePath() == wanted))) {
            m_selection->setCurrent(row);
            return true;
        }
    }
    return false;
}

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
    m_layers->setRunnable(m_session->runnable());
    if (pair->inputs.random)
        m_banners->show(QStringLiteral("random"), BannerArea::Warning,
                        tr("The inputs are random numbers. They rank layers differently from real data: take what "
                           "you see as a test of the set-up, not as a finding."),
                        {{tr("Inputs…"), [this] { chooseInputs(); }}});
    else
        m_banners->remove(QStringLiteral("random"));
    showFileNames();
    showStatus();
}

void MainWindow::showEdits()
{
    m_graph->setPendingChanges(m_session->edits().off, m_session->edits().bypassed);
    m_layers->setEdits(m_session->edits(), editsOfShownRun());
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
    m_layers->setEdits(m_session->edits(), editsOfShownRun());
    showStatus();
}

void MainWindow::showActivity()
{
    const auto activity = m_runner->activity();
    const bool running = m_runner->running();
    const bool opening = m_runner->opening();
    m_stopButton->setEnabled(running || opening || activity == Runner::Layout);
    m_stopAction->setEnabled(m_stopButton->isEnabled());
    m_runButton->setEnabled(m_session->runnable() || opening);
    m_runAction->setEnabled(true); // says what is missing
    m_exportReport->setEnabled(m_session->shownRun() >= 0);
    m_exportPlot->setEnabled(m_session->shownRun() >= 0);
    if (opening && m_progressText->text().isEmpty())
        say(tr("opening"));
    if (activity == Runner::Load)
        say(tr("loading LibTorch"));
    else if (activity == Runner::Layout)
        say(tr("laying out the graph"));
    const bool busyText = m_progressText->text() == tr("loading LibTorch") ||
                          m_progressText->text() == tr("laying out the graph") ||
                          m_progressText->text().startsWith(tr("opening"));
    if (!activity && busyText) {
        m_progress->setRange(0, kProgressSteps);
        m_progress->setValue(0);
        say({});
    }
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
            counts += tr(" · %1 batch norms folded").arg(pair->alignment.folds.size());
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

void MainWindow::say(const QString &progress)
{
    m_progressText->setText(progress);
}

} // namespace dblame::ui

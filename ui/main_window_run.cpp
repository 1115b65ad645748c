// SPDX-License-Identifier: GPL-3.0-or-later
//
// What goes to the runner and what it brings back.
#include "ui/main_window.h"

#include <algorithm>

#include <unistd.h>

#include <QAction>
#include <QDockWidget>
#include <QFileInfo>
#include <QLabel>
#include <QLocale>
#include <QProgressBar>
#include <QPushButton>
#include <QUndoStack>

#include "core/log.h"
#include "ui/eliding.h"
#include "ui/graph_panel.h"
#include "ui/inspector_panel.h"
#include "ui/node_table_model.h"
#include "ui/recent_entry.h"
#include "ui/recipe_notes.h"
#include "ui/selection.h"
#include "ui/snr_plot_panel.h"

namespace dblame::ui
{

namespace
{

// Activations kept for reruns: an eighth of the machine's memory, so that two windows still fit beside the models.
constexpr std::uint64_t kCacheShare = 8;

std::uint64_t cacheBytes()
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long size = sysconf(_SC_PAGE_SIZE);
    return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) / kCacheShare
                                 : 0;
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
        const quint64 percent = total > 0 ? 100 * done / total : 0;
        if (what.startsWith(QLatin1String("measuring ")))
            say(tr("%1: %2 %").arg(what).arg(percent));
        else
            say(what == QLatin1String("calibrating") ? tr("quantizing: %1 %").arg(percent)
                                                     : tr("opening: %1").arg(what));
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
    connect(m_runner, &Runner::partsMeasured, this, &MainWindow::takeParts);
    connect(m_runner, &Runner::partsFailed, this, &MainWindow::takePartsFailure);
    connect(m_runner, &Runner::detailArrived, m_inspector, &InspectorPanel::setDetail);
    connect(m_runner, &Runner::detailFailed, this, [this](PairId row, const Error &error) {
        if (error.code != ErrorCode::Cancelled)
            logError(error);
        m_inspector->setDetailFailed(row, QString::fromStdString(error.text()));
    });
}

void MainWindow::takeDocument()
{
    const auto &[path, document] = *m_openingDocument;
    m_document = path;
    m_session->expectEdits(document.edits);
    m_session->setSignal(document.signal);
    if (m_options.keepsSettings && !document.geometry.isEmpty()) {
        restoreGeometry(document.geometry);
        restoreState(document.docks);
        showTitleBars();
    }
    if (!document.graph.isEmpty())
        m_graph->restoreState(document.graph);
    if (!document.theme.isEmpty())
        chooseTheme(document.theme);
    remember(QFileInfo(path).absoluteFilePath());
}

void MainWindow::logNotes(const OpenPair &pair) const
{
    const auto log = [](const std::string &where, const std::vector<std::string> &notes) {
        for (const std::string &note : notes)
            logLine(LogLevel::Info, where.empty() ? note : where + ": " + note);
    };
    for (const auto &model : {pair.reference, pair.candidate})
        if (model)
            log(model->info().path, model->info().notes);
    if (pair.made)
        log("recipe " + pair.made->recipe.title(), recipeNotes(pair.made->quantized));
    log({}, pair.sites.notes);
    log({}, pair.alignment.notes);
    log(pair.inputs.source, pair.inputs.notes);
}

// What the alignment found that no quantizer is to blame for (another eps in a batch norm) belongs in sight: it costs
// decibels that no edit brings back. That norms were folded stands in the status bar.
void MainWindow::showNotes(const OpenPair &pair)
{
    QStringList notes;
    for (const std::string &note : pair.alignment.notes)
        if (const QString text = QString::fromStdString(note);
            pair.alignment.folds.empty() || !(text.contains(tr("batch norm")) && text.contains(tr("folded"))))
            notes << text;
    if (notes.isEmpty()) {
        m_banners->remove(QStringLiteral("alignment"));
        return;
    }
    m_banners->show(QStringLiteral("alignment"), BannerArea::Warning, notes.join(QStringLiteral("; ")),
                    {{tr("Show alignment"), [this] {
                          m_alignmentDock->show();
                          m_alignmentDock->raise();
                      }}});
}

void MainWindow::offerInputs(const Error &error)
{
    logError(error);
    m_lastError = error;
    // The reader's words end with the ways out of the command line; here they are the banner's buttons.
    QString text = QString::fromStdString(error.text());
    if (const auto at = text.indexOf(QLatin1String("; give inputs with --inputs")); at >= 0)
        text = text.left(at) + tr("; open an input file, or use random inputs");
    m_banners->show(QStringLiteral("inputs"), BannerArea::Problem, text,
                    {{tr("Inputs…"), [this] { chooseInputs(); }}, {tr("Use random inputs"), [this] {
                                                                       OpenRequest again = wantedRequest();
                                                                       again.inputs = {};
                                                                       again.inputs.random = 1;
                                                                       requestOpen(std::move(again), false);
                                                                   }}});
}

void MainWindow::takeOpened(const Opened &opened)
{
    const OpenRequest request = *m_opening;
    m_opening.reset();
    m_lastError.reset();
    const bool sameModels = request.reference == m_session->request().reference &&
                            request.candidate == m_session->request().candidate &&
                            request.recipe == m_session->request().recipe;
    const bool document = m_openingDocument.has_value();
    if (document)
        takeDocument();
    else if (!sameModels && opened.pair->reference && opened.pair->candidate && m_session->pair()->reference &&
             m_session->pair()->candidate)
        m_document.clear(); // another pair is no longer what that document is about
    m_openingDocument.reset();
    m_session->expectHand(request.hand);
    if (m_editsLeft)
        m_session->changeEdits(*m_editsLeft, tr("what the recipe did not take in"));
    m_editsLeft.reset();
    QStringList lost;
    m_session->setOpened(request, opened, &lost);
    if (document)
        m_session->markSaved();
    if (!lost.isEmpty())
        m_banners->show(
            QStringLiteral("edits"), BannerArea::Problem,
            tr("This candidate has no %1; those changes were left out").arg(lost.join(QStringLiteral(", "))));
    logNotes(*opened.pair);
    showNotes(*opened.pair);
    if (opened.inputsError)
        offerInputs(*opened.inputsError);
    if (opened.pair->reference && opened.pair->candidate && !document) {
        remember(recentEntry(request));
    }
    showFileNames();
    if (m_runWhenOpen && opened.runnable)
        run();
    m_runWhenOpen = false;
}

void MainWindow::takeOpenFailure(const Error &error)
{
    const bool quantizing = m_opening && m_opening->recipe;
    m_opening.reset();
    m_openingDocument.reset();
    m_editsLeft.reset();
    m_runWhenOpen = false;
    showFileNames();
    logError(error);
    if (error.code == ErrorCode::Cancelled) {
        say(quantizing ? tr("quantizing was stopped") : tr("opening was stopped"));
        return;
    }
    m_lastError = error;
    if (quantizing) {
        m_banners->show(QStringLiteral("open"), BannerArea::Problem, QString::fromStdString(error.text()),
                        {{tr("Another recipe…"), [this] { chooseRecipe(); }}});
        return;
    }
    m_banners->show(
        QStringLiteral("open"), BannerArea::Problem, QString::fromStdString(error.text()),
        {{tr("Reference…"), [this] { chooseReference(); }}, {tr("Candidate…"), [this] { chooseCandidate(); }}});
}

RunOptions MainWindow::runOptions() const
{
    RunOptions options;
    options.signal = m_session->signal();
    options.cacheBytes = cacheBytes();
    return options;
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
                         {tr("Quantize…"), [this] { chooseRecipe(); }},
                         {tr("Inputs…"), [this] { chooseInputs(); }}});
        return;
    }
    m_banners->remove(QStringLiteral("run"));
    if (m_session->runIsCurrent() && !m_runner->running()) {
        const int number = m_session->runs()[static_cast<std::size_t>(m_session->shownRun())].number;
        say(tr("no effect: nothing changed since run %1").arg(number));
        m_progressText->setToolTip(
            tr("The run that is shown has these models, inputs and changes. Reload (Ctrl+R) reads "
               "files that changed on disk."));
        return;
    }
    m_table->startRun();
    m_plot->runStarted();
    m_progress->setRange(0, kProgressSteps);
    m_progress->setValue(0);
    say(tr("starting"));
    m_runner->run(m_session->edits(), runOptions());
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
    // A first look has something to look at.
    if (!m_selection->current().valid() && m_table->largestDrop())
        m_selection->setCurrent(m_table->largestDrop()->row);
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
    if (error.code == ErrorCode::Cancelled) {
        say(tr("stopped"));
        return;
    }
    say(tr("failed"));
    m_lastError = error;
    // A file that was written anew under the run: to run again would only fail again.
    const bool stale = error.code == ErrorCode::Unreadable &&
                       error.message.find("has changed since it was opened") != std::string::npos;
    const BannerArea::WayOut wayOut = stale ? BannerArea::WayOut{tr("Reload"), [this] { reload(); }}
                                            : BannerArea::WayOut{tr("Run again"), [this] { run(); }};
    m_banners->show(QStringLiteral("run"), BannerArea::Problem, QString::fromStdString(error.text()),
                    {wayOut, {tr("Show log"), [this] {
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

void MainWindow::say(const QString &progress)
{
    m_progressText->setToolTip({});
    m_progressText->setText(progress);
}

} // namespace dblame::ui

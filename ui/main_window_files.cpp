// SPDX-License-Identifier: GPL-3.0-or-later
//
// Opening, saving, exporting, drag and drop.
#include "ui/main_window.h"

#include <QCloseEvent>
#include <QDir>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QSettings>
#include <QUndoStack>

#include "core/atomic_file.h"
#include "core/log.h"
#include "core/report_writer.h"
#include "core/spec_change.h"
#include "ui/document.h"
#include "ui/eliding.h"
#include "ui/file_kinds.h"
#include "ui/graph_panel.h"
#include "ui/plot_export.h"
#include "ui/recipe_notes.h"
#include "ui/snr_plot_panel.h"

namespace dblame::ui
{

namespace
{

constexpr int kRecent = 10;

// A program's name after '#' is no part of the path on disk.
QString absolutePath(const QString &path)
{
    if (path.isEmpty() || QFileInfo(path).isAbsolute())
        return path;
    return QDir::cleanPath(QDir::current().absoluteFilePath(path));
}

std::vector<std::string> absolutePaths(const QStringList &paths)
{
    std::vector<std::string> absolute;
    for (const QString &path : paths)
        absolute.push_back(absolutePath(path).toStdString());
    return absolute;
}

// What the report says of a candidate that a recipe made, in the words of the command line.
void addRecipe(const OpenPair &pair, Report &report)
{
    if (!pair.made)
        return;
    report.recipe = ReportRecipe{pair.made->recipe.title(), recipeText(pair.made->recipe)};
    if (pair.made->quantized.calibrationBatches > 0)
        report.inputs.calibration = pair.made->onInputs ? "on the inputs themselves: give other data with --calibration"
                                                        : pair.made->calibration.source;
    const std::vector<std::string> notes = recipeNotes(pair.made->quantized);
    report.warnings.insert(report.warnings.end(), notes.begin(), notes.end());
}

QString folderOf(const std::string &path)
{
    return path.empty() ? QString() : QFileInfo(QString::fromStdString(path)).absolutePath();
}

} // namespace

OpenRequest MainWindow::wantedRequest() const
{
    return m_opening ? *m_opening : m_session->request();
}

void MainWindow::requestOpen(OpenRequest request, bool runWhenOpen)
{
    m_banners->remove(QStringLiteral("open"));
    m_banners->remove(QStringLiteral("inputs"));
    m_runWhenOpen = runWhenOpen;
    m_openingDocument.reset();
    m_editsLeft.reset();
    m_opening = request;
    m_runner->open(std::move(request));
    showFileNames();
    showActivity();
}

void MainWindow::reload()
{
    if (m_opening)
        return; // it comes fresh from the disk anyway
    OpenRequest request = m_session->request();
    if (request.reference.empty() && request.candidate.empty()) {
        say(tr("nothing to reload: nothing is open"));
        return;
    }
    request.hand = m_session->hand();
    requestOpen(std::move(request), false);
}

void MainWindow::openPair(const QString &reference, const QString &candidate, const QStringList &inputs,
                          bool runWhenOpen)
{
    OpenRequest request;
    request.reference = absolutePath(reference).toStdString();
    request.candidate = absolutePath(candidate).toStdString();
    request.inputs.files = absolutePaths(inputs);
    requestOpen(std::move(request), runWhenOpen);
}

void MainWindow::openAndQuantize(const QString &reference, RecipeRequest recipe, const QStringList &inputs,
                                 bool runWhenOpen)
{
    OpenRequest request;
    request.reference = absolutePath(reference).toStdString();
    request.inputs.files = absolutePaths(inputs);
    for (std::string &file : recipe.calibration)
        file = absolutePath(QString::fromStdString(file)).toStdString();
    request.recipe = std::move(recipe);
    requestOpen(std::move(request), runWhenOpen);
}

void MainWindow::openFiles(const QStringList &paths, bool runWhenOpen, const QStringList &inputs)
{
    SortedFiles files = sortFiles(paths);
    if (!inputs.isEmpty())
        files.inputs = inputs;
    for (const QString &folder : files.unknown)
        m_banners->show(QStringLiteral("open"), BannerArea::Problem,
                        tr("%1 holds no pair: a pair folder has reference.pt2, candidate.pt2 and inputs").arg(folder),
                        {{tr("Open pair folder…"), [this] { chooseFolder(); }}});
    if (!files.document.isEmpty()) {
        openDocument(files.document, runWhenOpen, files.inputs);
        return;
    }
    if (files.models.isEmpty() && files.inputs.isEmpty())
        return;
    OpenRequest request = wantedRequest();
    const QStringList &models = files.models;
    if (models.size() >= 2) {
        request = {};
        request.reference = absolutePath(models[0]).toStdString();
        request.candidate = absolutePath(models[1]).toStdString();
    } else if (models.size() == 1) {
        // The first model is the reference; the next one that comes alone, its candidate.
        if (!request.reference.empty())
            request.recipe.reset();
        (request.reference.empty() ? request.reference : request.candidate) = absolutePath(models[0]).toStdString();
    }
    if (!files.inputs.isEmpty()) {
        request.inputs.files = absolutePaths(files.inputs);
        request.inputs.random.reset();
    }
    requestOpen(std::move(request), runWhenOpen);
}

void MainWindow::openDocument(const QString &path, bool runWhenOpen, const QStringList &inputs)
{
    const auto takeFailure = [this](const Error &error) {
        logError(error);
        m_lastError = error;
        m_banners->show(QStringLiteral("document"), BannerArea::Problem, QString::fromStdString(error.text()),
                        {{tr("Open another…"), [this] { chooseDocument(); }}});
    };
    const auto document = readDocument(path);
    if (!document) {
        takeFailure(document.error());
        return;
    }
    OpenRequest request;
    request.reference = document->reference.toStdString();
    request.candidate = document->candidate.toStdString();
    for (const QString &file : document->inputs)
        request.inputs.files.push_back(file.toStdString());
    request.inputs.random = document->random;
    if (!inputs.isEmpty())
        request.inputs = {absolutePaths(inputs), std::nullopt};
    request.hand = document->hand;
    if (!document->recipe.isEmpty()) {
        std::vector<std::string> notes;
        auto recipe = parseRecipe(document->recipe.toStdString(), path.toStdString(), &notes);
        for (const std::string &note : notes)
            logLine(LogLevel::Warning, path.toStdString() + ": " + note);
        if (!recipe) {
            takeFailure(recipe.error());
            return;
        }
        request.recipe = RecipeRequest{std::move(*recipe), {}};
        for (const QString &file : document->calibration)
            request.recipe->calibration.push_back(file.toStdString());
    }
    requestOpen(std::move(request), runWhenOpen);
    m_openingDocument.emplace(path, *document);
}

bool MainWindow::saveDocumentAs(const QString &path)
{
    Document document = m_session->toDocument();
    document.geometry = saveGeometry();
    document.docks = saveState();
    document.graph = m_graph->saveState();
    document.theme = m_theme;
    const auto written = writeDocument(path, document);
    if (!written) {
        logError(written.error());
        m_banners->show(QStringLiteral("document"), BannerArea::Problem,
                        QString::fromStdString(written.error().text()));
        return false;
    }
    m_document = path;
    m_session->markSaved();
    remember(QFileInfo(path).absoluteFilePath());
    showFileNames();
    showModified();
    return true;
}

void MainWindow::saveDocument()
{
    QString path = m_document;
    if (path.isEmpty())
        path = QFileDialog::getSaveFileName(this, tr("Save document"), folderOf(m_session->request().candidate),
                                            documentFilter());
    if (path.isEmpty())
        return;
    if (QFileInfo(path).suffix().isEmpty())
        path += QLatin1String(kDocumentSuffix);
    (void)saveDocumentAs(path); // a failure stands in the banner
}

void MainWindow::chooseReference()
{
    const QString path =
        QFileDialog::getOpenFileName(this, tr("Open reference"), folderOf(wantedRequest().reference), modelFilter());
    if (path.isEmpty())
        return;
    OpenRequest request = wantedRequest();
    request.reference = path.toStdString();
    requestOpen(std::move(request), false);
}

void MainWindow::chooseCandidate()
{
    const OpenRequest now = wantedRequest();
    const QString path = QFileDialog::getOpenFileName(
        this, tr("Open candidate"), folderOf(now.candidate.empty() ? now.reference : now.candidate), modelFilter());
    if (path.isEmpty())
        return;
    OpenRequest request = now;
    request.candidate = path.toStdString();
    request.recipe.reset();
    requestOpen(std::move(request), false);
}

void MainWindow::chooseInputs()
{
    OpenRequest request = wantedRequest();
    const QStringList paths = QFileDialog::getOpenFileNames(
        this, tr("Open inputs"),
        folderOf(request.inputs.files.empty() ? request.reference : request.inputs.files.front()), inputsFilter());
    if (paths.isEmpty())
        return;
    request.inputs.files = absolutePaths(paths);
    request.inputs.random.reset();
    requestOpen(std::move(request), false);
}

void MainWindow::chooseFolder()
{
    const QString path =
        QFileDialog::getExistingDirectory(this, tr("Open pair folder"), folderOf(wantedRequest().reference));
    if (!path.isEmpty() && mayLoseChanges())
        openFiles({path});
}

void MainWindow::chooseDocument()
{
    const QString path =
        QFileDialog::getOpenFileName(this, tr("Open document"), QFileInfo(m_document).absolutePath(), documentFilter());
    if (!path.isEmpty() && mayLoseChanges())
        openDocument(path);
}

bool MainWindow::exportReportTo(const QString &path)
{
    const auto run = m_session->reportFor(m_session->shownRun());
    const OpenPairPtr &pair = m_session->pair();
    if (!run || !pair->reference || !pair->candidate)
        return false;
    const QString suffix = QFileInfo(path).suffix().toLower();
    ReportFields fields;
    fields.channels = fields.histograms = suffix == QLatin1String("json");
    const RunRecord &shown = m_session->runs()[static_cast<std::size_t>(m_session->shownRun())];
    const SiteTable ran = shown.pair == pair ? changedSites(pair->sites, shown.edits, run->changed) : pair->sites;
    Report report = makeReport(*run, pair->alignment, ran, *pair->reference, *pair->candidate, fields);
    addRecipe(*m_session->runs()[static_cast<std::size_t>(m_session->shownRun())].pair, report);
    Result<void> written = fail(ErrorCode::Usage, path.toStdString(), "a report is .json, .csv or .html; name it so");
    if (suffix == QLatin1String("json"))
        written = writeFileAtomically(path.toStdString(), reportJson(report));
    else if (suffix == QLatin1String("csv"))
        written = writeFileAtomically(path.toStdString(), reportCsv(report));
    else if (suffix == QLatin1String("html"))
        written = writeFileAtomically(path.toStdString(), reportHtml(report));
    if (!written) {
        logError(written.error());
        m_banners->show(QStringLiteral("export"), BannerArea::Problem, QString::fromStdString(written.error().text()),
                        {{tr("Export again…"), [this] { exportReport(); }}});
        return false;
    }
    m_banners->remove(QStringLiteral("export"));
    logLine(LogLevel::Info, "report written to " + path.toStdString());
    return true;
}

void MainWindow::exportReport()
{
    const QString path = QFileDialog::getSaveFileName(this, tr("Export report"),
                                                      folderOf(m_session->request().candidate) + "/report.html",
                                                      tr("Reports (*.html *.json *.csv)"));
    if (!path.isEmpty())
        (void)exportReportTo(path); // a failure stands in the banner
}

void MainWindow::exportPlot()
{
    const QString path = choosePlotPath(this, tr("Export plot"), folderOf(m_session->request().candidate) + "/snr.png");
    if (path.isEmpty())
        return;
    if (const auto written = m_plot->exportTo(path); written)
        takeExported(path);
    else
        takeExportFailure(written.error());
}

void MainWindow::takeExported(const QString &path)
{
    m_banners->remove(QStringLiteral("export"));
    logLine(LogLevel::Info, "written to " + path.toStdString());
    say(tr("written to %1").arg(QFileInfo(path).fileName()));
}

void MainWindow::takeExportFailure(const Error &error)
{
    logError(error);
    m_banners->show(QStringLiteral("export"), BannerArea::Problem, QString::fromStdString(error.text()));
}

// Asks only for what was made here: edits and pairs by hand.
bool MainWindow::mayLoseChanges()
{
    if (!m_options.keepsSettings || m_session->undoStack()->isClean())
        return true;
    const auto answer = QMessageBox::question(
        this, tr("Unsaved changes"), tr("The changes to layers and pairs are not saved in a document."),
        QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, QMessageBox::Save);
    if (answer == QMessageBox::Save) {
        saveDocument();
        return m_session->undoStack()->isClean();
    }
    return answer == QMessageBox::Discard;
}

void MainWindow::remember(const QString &entry)
{
    if (!m_options.keepsSettings)
        return;
    QSettings settings;
    QStringList entries = settings.value("recent").toStringList();
    entries.removeAll(entry);
    entries.prepend(entry);
    settings.setValue("recent", entries.mid(0, kRecent));
}

void MainWindow::showFileNames()
{
    const OpenRequest request = wantedRequest();
    const auto name = [](const std::string &path) {
        return QString::fromStdString(path).section(QLatin1Char('/'), -1);
    };
    const auto set = [&](ElidingButton *button, const QString &what, const QString &file, const QString &tip) {
        button->setText(file.isEmpty() ? what + QStringLiteral("…") : what + QLatin1Char(' ') + file);
        button->setLeastText(file.isEmpty() ? button->text() : what + QStringLiteral("…") + file.right(3));
        button->setToolTip(tip.isEmpty() ? tr("Open %1").arg(what.toLower()) : tip);
        button->setAccessibleName(file.isEmpty() ? what : what + QStringLiteral(": ") + file);
    };
    set(m_referenceButton, tr("Reference"), name(request.reference), QString::fromStdString(request.reference));
    if (request.recipe)
        set(m_candidateButton, tr("Recipe"), QString::fromStdString(request.recipe->recipe.title()),
            tr("The candidate is made of the reference by the recipe %1")
                .arg(QString::fromStdString(request.recipe->recipe.title())));
    else
        set(m_candidateButton, tr("Candidate"), name(request.candidate), QString::fromStdString(request.candidate));
    QString inputs;
    const InputsInfo &info = m_session->pair()->inputs;
    if (request.inputs.files.size() == 1)
        inputs = name(request.inputs.files.front());
    else if (request.inputs.files.size() > 1)
        inputs = tr("%1 files").arg(request.inputs.files.size());
    else if (info.random)
        inputs = tr("random");
    else if (info.samples > 0)
        inputs = tr("sample inputs");
    if (!inputs.isEmpty() && info.samples > 0 && !m_opening)
        inputs += QStringLiteral(" · %1").arg(info.samples);
    set(m_inputsButton, tr("Inputs"), inputs, QString::fromStdString(info.source));

    QString title = tr("dBlame");
    const QString reference = name(request.reference);
    const QString candidate =
        request.recipe ? QString::fromStdString(request.recipe->recipe.title()) : name(request.candidate);
    if (!m_document.isEmpty())
        title = QFileInfo(m_document).fileName() + QStringLiteral("[*] — dBlame");
    else if (!reference.isEmpty() && !candidate.isEmpty())
        title = QStringLiteral("%1 ↔ %2[*] — dBlame").arg(reference, candidate);
    else if (!reference.isEmpty() || !candidate.isEmpty())
        title = reference + candidate + QStringLiteral("[*] — dBlame");
    setWindowTitle(title);
}

void MainWindow::showModified()
{
    // Without a document only what was made here can be lost, not which files were chosen.
    setWindowModified(!m_session->undoStack()->isClean() || (!m_document.isEmpty() && m_session->modified()));
}

void MainWindow::closeEvent(QCloseEvent *event)
{
    if (!mayLoseChanges()) {
        event->ignore();
        return;
    }
    if (m_options.keepsSettings)
        saveSettings();
    event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent *event)
{
    if (event->mimeData()->hasUrls())
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent *event)
{
    QStringList paths;
    for (const QUrl &url : event->mimeData()->urls())
        if (url.isLocalFile())
            paths << url.toLocalFile();
    if (paths.isEmpty())
        return;
    event->acceptProposedAction();
    if (sortFiles(paths).document.isEmpty() || mayLoseChanges())
        openFiles(paths);
}

} // namespace dblame::ui

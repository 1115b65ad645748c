// SPDX-License-Identifier: GPL-3.0-or-later
//
// The candidate that a recipe makes of the reference: asking for it, writing the recipe down.
#include "ui/main_window.h"

#include <QFileDialog>
#include <QFileInfo>

#include "core/log.h"
#include "core/recipe_edits.h"
#include "ui/recipe_dialog.h"
#include "ui/recipe_panel.h"

namespace dblame::ui
{

void MainWindow::quantize(RecipeRequest recipe, bool runWhenOpen)
{
    OpenRequest request = wantedRequest();
    if (request.reference.empty()) {
        showNoReference();
        return;
    }
    request.candidate.clear();
    request.recipe = std::move(recipe);
    requestOpen(std::move(request), runWhenOpen);
}

void MainWindow::chooseRecipe()
{
    if (wantedRequest().reference.empty()) {
        showNoReference();
        return;
    }
    if (!m_recipeDialog) {
        m_recipeDialog = new RecipeDialog(this);
        m_recipeDialog->setAttribute(Qt::WA_DeleteOnClose);
        m_recipeDialog->setFolder(QFileInfo(QString::fromStdString(wantedRequest().reference)).absolutePath());
        connect(m_recipeDialog, &RecipeDialog::quantizeWanted, this, &MainWindow::quantize);
        connect(m_recipeDialog, &RecipeDialog::previewWanted, m_runner, &Runner::preview);
        connect(m_runner, &Runner::previewed, m_recipeDialog, &RecipeDialog::setPreview);
        connect(m_runner, &Runner::previewFailed, m_recipeDialog, &RecipeDialog::setPreviewFailed);
        if (const auto now = wantedRequest().recipe)
            m_recipeDialog->setRequest(*now);
        else
            m_recipeDialog->setRequest({presetRecipe(presetNames().front()).value(), {}});
        m_recipeDialog->open();
    }
    m_recipeDialog->raise();
    m_recipeDialog->activateWindow();
}

void MainWindow::showNoReference()
{
    m_banners->show(QStringLiteral("open"), BannerArea::Problem,
                    tr("A recipe makes the candidate of a reference: open the float model first"),
                    {{tr("Reference…"), [this] { chooseReference(); }}});
}

void MainWindow::takeEdits()
{
    const OpenPairPtr &pair = m_session->pair();
    OpenRequest request = m_session->request();
    if (!pair->made || !request.recipe || m_opening)
        return;
    const auto taken = overridesOf(m_session->edits(), pair->sites, pair->made->quantized, request.recipe->recipe);
    m_banners->remove(QStringLiteral("take"));
    if (!taken) {
        logError(taken.error());
        m_banners->show(QStringLiteral("take"), BannerArea::Problem, QString::fromStdString(taken.error().text()));
        return;
    }
    QStringList notes;
    for (const std::string &note : taken->notes) {
        logLine(LogLevel::Warning, note);
        notes << QString::fromStdString(note);
    }
    if (!notes.isEmpty())
        m_banners->show(QStringLiteral("take"), BannerArea::Warning, notes.join(QStringLiteral("; ")));
    if (taken->overrides.empty())
        return;
    auto &overrides = request.recipe->recipe.overrides;
    for (const RecipeOverride &change : taken->overrides) {
        logLine(LogLevel::Info, "taken into the recipe: " + change.text());
        overrides.push_back(change);
    }
    requestOpen(std::move(request), !m_session->runs().empty());
    m_editsLeft = taken->left;
}

void MainWindow::measureParts()
{
    m_banners->remove(QStringLiteral("parts"));
    m_runner->measureParts(runOptions());
}

void MainWindow::takeParts(const OutputParts &parts)
{
    m_recipe->setParts(parts);
    say(tr("the outputs are measured"));
}

void MainWindow::takePartsFailure(const Error &error)
{
    logError(error);
    if (error.code == ErrorCode::Cancelled) {
        say(tr("stopped measuring"));
        return;
    }
    m_banners->show(QStringLiteral("parts"), BannerArea::Problem, QString::fromStdString(error.text()),
                    {{tr("Measure again"), [this] { measureParts(); }}});
}

bool MainWindow::exportRecipeTo(const QString &path, RecipeFormat format)
{
    const auto made = m_session->pair()->made;
    if (!made)
        return false;
    if (const auto written = writeRecipe(made->recipe, made->quantized.annotated->graph(), path, format); !written) {
        takeExportFailure(written.error());
        return false;
    }
    takeExported(path);
    return true;
}

void MainWindow::exportRecipe()
{
    QString filter;
    QString path = QFileDialog::getSaveFileName(
        this, tr("Export recipe"),
        QFileInfo(QString::fromStdString(m_session->request().reference)).absolutePath() + "/recipe.yaml",
        recipeFilters(), &filter);
    if (path.isEmpty())
        return;
    if (const auto format = recipeFormatOf(path, filter); format)
        (void)exportRecipeTo(path, *format); // a failure stands in the banner
    else
        takeExportFailure(format.error());
}

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
//
// A candidate that a recipe makes of the reference, on the fake engine: real widgets, real clicks.
#include <QCheckBox>
#include <QComboBox>
#include <QDockWidget>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QListWidget>
#include <QMenu>
#include <QPushButton>
#include <QScrollBar>
#include <QSettings>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>

#include <gtest/gtest.h>

#include "core/recipe_facts.h"
#include "fake_engine.h"
#include "ui/layers_panel.h"
#include "ui/main_window.h"
#include "ui/node_table_model.h"
#include "ui/recent_entry.h"
#include "ui/recipe_dialog.h"
#include "ui/recipe_panel.h"
#include "ui/recipe_weights.h"
#include "ui/selection.h"
#include "wait.h"

namespace dblame::ui::test
{
namespace
{

RecipeRequest preset(const char *name, std::vector<std::string> calibration = {})
{
    return {presetRecipe(name).value(), std::move(calibration)};
}

class RecipeWindow : public ::testing::Test
{
protected:
    FakeEngine engine;
    std::unique_ptr<MainWindow> window;

    RecipeWindow()
    {
        window =
            std::make_unique<MainWindow>(MainWindow::Options{[this]() -> Result<Engine *> { return &engine; }, false});
        window->resize(1440, 900);
        window->show();
    }
    ~RecipeWindow() override { engine.gate.open(); }

    [[nodiscard]] bool settle()
    {
        return waitUntil([this] { return !window->runner().activity(); });
    }
    void openReference()
    {
        window->openPair("/models/float.pt2", {}, {"/models/inputs.pt"}, false);
        ASSERT_TRUE(settle());
    }
    void quantize(const RecipeRequest &recipe, bool run = false)
    {
        window->quantize(recipe, run);
        ASSERT_TRUE(settle());
    }
    [[nodiscard]] QPushButton *button(const QString &text) const
    {
        for (QPushButton *button : window->findChildren<QPushButton *>())
            if (button->text().startsWith(text) && button->isVisible())
                return button;
        ADD_FAILURE() << "no button " << text.toStdString();
        return nullptr;
    }
    [[nodiscard]] EditSet oneOff() const
    {
        EditSet edits;
        edits.off.insert(window->session().pair()->sites.byId("block.conv2/weight"));
        return edits;
    }
};

TEST_F(RecipeWindow, ARecipeMakesTheCandidateAndTheRunFollows)
{
    openReference();
    quantize(preset("xnnpack-static", {"/models/calib.pt"}), true);
    EXPECT_EQ(engine.quantizations, 1);
    EXPECT_EQ(engine.calibratedOn, "/models/calib.pt");
    EXPECT_EQ(engine.modelsRead, 1);
    EXPECT_EQ(engine.runs, 1);
    EXPECT_EQ(window->session().runs().size(), 1U);
    ASSERT_TRUE(window->session().pair()->made);
    EXPECT_EQ(window->session().pair()->made->recipe.title(), "xnnpack-static");
    EXPECT_FALSE(window->session().pair()->made->onInputs);
    EXPECT_EQ(button("Recipe xnnpack-static")->accessibleName(), "Recipe: xnnpack-static");
    EXPECT_TRUE(window->windowTitle().startsWith(QString::fromUtf8("float.pt2 ↔ xnnpack-static")));
}

TEST_F(RecipeWindow, TheInputsCalibrateWhereNoFilesAreGiven)
{
    openReference();
    quantize(preset("xnnpack-static"));
    EXPECT_EQ(engine.calibratedOn, "/models/inputs.pt");
    EXPECT_TRUE(window->session().pair()->made->onInputs);
    EXPECT_EQ(window->session().pair()->made->calibration.source, "/models/inputs.pt");
}

TEST_F(RecipeWindow, AnotherRecipeReadsNothingAnewAndCarriesTheEdits)
{
    openReference();
    quantize(preset("xnnpack-static", {"/models/calib.pt"}), true);
    window->session().changeEdits(oneOff(), "one off");
    ASSERT_TRUE(settle());
    const int inputsRead = engine.inputsRead;
    quantize(preset("x86-static", {"/models/calib.pt"}), true);
    EXPECT_EQ(engine.quantizations, 2);
    EXPECT_EQ(engine.modelsRead, 1);
    EXPECT_EQ(engine.inputsRead, inputsRead);
    EXPECT_EQ(window->session().edits(), oneOff());
    EXPECT_EQ(window->session().runs().size(), 2U);
}

TEST_F(RecipeWindow, TheSameRecipeAgainQuantizesNothing)
{
    openReference();
    quantize(preset("xnnpack-static"), true);
    const auto candidate = window->session().pair()->candidate;
    window->session().changeHand({{"relu", "relu"}}, "a pair by hand");
    ASSERT_TRUE(settle());
    EXPECT_EQ(engine.quantizations, 1);
    EXPECT_EQ(window->session().pair()->candidate, candidate);
}

TEST_F(RecipeWindow, AFailureLeavesPairReportAndEditsAndSaysWhy)
{
    openReference();
    quantize(preset("xnnpack-static"), true);
    window->session().changeEdits(oneOff(), "one off");
    ASSERT_TRUE(settle());
    const OpenPairPtr pair = window->session().pair();
    const int runs = engine.runs;
    engine.failNextQuantize = Error{ErrorCode::Incomparable, "conv2d", "has no weight that can be quantized", {}};
    quantize(preset("x86-static"), true);
    EXPECT_EQ(window->session().pair(), pair);
    EXPECT_EQ(window->session().edits(), oneOff());
    EXPECT_EQ(window->session().shownRun(), 0);
    EXPECT_EQ(engine.runs, runs);
    EXPECT_TRUE(window->banners().text("open").contains("has no weight that can be quantized"));
    EXPECT_NE(button("Recipe xnnpack-static"), nullptr);
    // What is open still runs, on the engine's side too.
    window->run();
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().runs().size(), 2U);
}

TEST_F(RecipeWindow, StopWhileItCalibratesKeepsWhatIsOpen)
{
    openReference();
    quantize(preset("xnnpack-static"), true);
    const OpenPairPtr pair = window->session().pair();
    engine.gate.hold();
    window->quantize(preset("x86-static"), true);
    engine.gate.waitForArrivals(1);
    ASSERT_TRUE(waitUntil([&] { return window->progressText() == "quantizing: 25 %"; }));
    EXPECT_NE(button("Recipe x86-static"), nullptr);
    QTest::mouseClick(button("Stop"), Qt::LeftButton);
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().pair(), pair);
    EXPECT_EQ(window->progressText(), "quantizing was stopped");
    EXPECT_TRUE(window->banners().empty());
    EXPECT_NE(button("Recipe xnnpack-static"), nullptr);
    EXPECT_EQ(window->session().runs().size(), 1U);
}

TEST_F(RecipeWindow, WithoutAReferenceThereIsNothingToQuantize)
{
    ASSERT_TRUE(settle());
    window->quantize(preset("xnnpack-static"), true);
    EXPECT_TRUE(window->banners().text("open").contains("open the float model first"));
    EXPECT_EQ(engine.quantizations, 0);
}

TEST_F(RecipeWindow, WithoutInputsItWaitsForThem)
{
    engine.sampleInputs = false;
    window->openPair("/models/float.pt2", {}, {}, false);
    ASSERT_TRUE(settle());
    quantize(preset("xnnpack-static"), true);
    EXPECT_EQ(engine.quantizations, 0);
    EXPECT_FALSE(window->banners().text("inputs").isEmpty());
    QTest::mouseClick(button("Use random inputs"), Qt::LeftButton);
    ASSERT_TRUE(settle());
    EXPECT_EQ(engine.quantizations, 1);
    EXPECT_TRUE(window->session().pair()->made->calibration.random);
    EXPECT_TRUE(window->session().runnable());
}

TEST_F(RecipeWindow, AFileTakesTheRecipesPlace)
{
    openReference();
    quantize(preset("xnnpack-static"), true);
    window->openFiles({"/models/int8.pt2"});
    ASSERT_TRUE(settle());
    EXPECT_FALSE(window->session().request().recipe.has_value());
    EXPECT_FALSE(window->session().pair()->made);
    EXPECT_NE(button("Candidate int8.pt2"), nullptr);
    EXPECT_TRUE(window->session().runnable());
}

TEST_F(RecipeWindow, TheDialogDoesNotBlockAndItsAnswerIsCarriedOut)
{
    openReference();
    QMenu *menu = button("Candidate")->menu();
    ASSERT_NE(menu, nullptr);
    ASSERT_EQ(menu->actions().size(), 2);
    EXPECT_EQ(menu->actions().at(1)->text().remove('&'), QString::fromUtf8("Quantize the reference…"));
    menu->actions().at(1)->trigger();
    auto *dialog = window->findChild<RecipeDialog *>();
    ASSERT_NE(dialog, nullptr);
    EXPECT_TRUE(dialog->isVisible());
    window->chooseRecipe(); // the same again
    EXPECT_EQ(window->findChildren<RecipeDialog *>().size(), 1);
    dialog->findChild<QComboBox *>("preset")->setCurrentText("x86-static");
    dialog->findChild<QCheckBox *>("run")->setChecked(false);
    QTest::mouseClick(dialog->findChild<QPushButton *>("ok"), Qt::LeftButton);
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().pair()->made->recipe.title(), "x86-static");
    EXPECT_TRUE(window->session().runs().empty());
    EXPECT_NE(button("Recipe x86-static"), nullptr);
    // The next time it starts from there.
    window->chooseRecipe();
    ASSERT_TRUE(waitUntil([this] { return window->findChildren<RecipeDialog *>().size() == 1; }));
    EXPECT_EQ(window->findChild<RecipeDialog *>()->findChild<QComboBox *>("preset")->currentText(), "x86-static");
}

TEST_F(RecipeWindow, RunsSayWhichRecipe)
{
    openReference();
    quantize(preset("xnnpack-static"), true);
    EXPECT_TRUE(window->session().runs().front().label.startsWith(QString::fromUtf8("xnnpack-static · ")));
}

TEST_F(RecipeWindow, TheRecipeDockListsFactsAndCalibration)
{
    EXPECT_EQ(window->recipe().calibration()->model()->rowCount(), 0);
    openReference();
    quantize(preset("xnnpack-static", {"/models/calib.pt"}));
    EXPECT_TRUE(window->recipe().warning().isEmpty());
    EXPECT_EQ(window->recipe().summary(), QString::fromUtf8("calibrated on calib.pt · 3 batches"));
    const QAbstractItemModel &facts = *window->recipe().facts()->model();
    QStringList lines;
    for (int row = 0; row < facts.rowCount(); ++row)
        lines << facts.index(row, RecipePanel::What).data().toString() + '|' +
                     facts.index(row, RecipePanel::Where).data().toString() + '|' +
                     facts.index(row, RecipePanel::Value).data().toString();
    const RecipeFacts expected = factsOf(window->session().pair()->made->quantized);
    EXPECT_TRUE(lines.contains(
        QStringLiteral("observers||%1 at %2 sites").arg(expected.observerCount).arg(expected.siteCount)));
    EXPECT_TRUE(lines.contains("quantized|aten.conv2d|4 of 4")) << lines.join('\n').toStdString();
    EXPECT_TRUE(lines.contains("weight error|fc/weight|42.50 dB, worst channel 1: 30.75 dB"))
        << lines.join('\n').toStdString();

    // Not run yet: nothing to hold the ranges against.
    const QAbstractItemModel &sites = *window->recipe().calibration()->model();
    ASSERT_GT(sites.rowCount(), 2);
    EXPECT_EQ(sites.index(0, RecipePanel::Batches).data().toString(), "3");
    EXPECT_EQ(sites.index(0, RecipePanel::Unused).data().toString(), "12.5 %");
    EXPECT_TRUE(sites.index(0, RecipePanel::Drift).data().toString().isEmpty());
}

TEST_F(RecipeWindow, TheColumnsOfTheDockFitASmallWindow)
{
    window->resize(1280, 800);
    openReference();
    quantize(preset("xnnpack-static", {"/models/calib.pt"}), true);
    auto *dock = window->findChild<QDockWidget *>("Recipe");
    ASSERT_NE(dock, nullptr);
    dock->raise();
    ASSERT_TRUE(waitUntil([this] { return window->recipe().isVisible(); }));
    QTableView &table = *window->recipe().calibration();
    ASSERT_TRUE(waitUntil([&] { return table.viewport()->width() > 400; }));
    const int last = RecipePanel::Grid;
    EXPECT_LE(table.columnViewportPosition(last) + table.columnWidth(last), table.viewport()->width());
    EXPECT_EQ(table.horizontalScrollBar()->maximum(), 0);
    EXPECT_TRUE(table.isColumnHidden(RecipePanel::Batches)) << "the same for every site, and said above";
}

TEST_F(RecipeWindow, RowsThatLeaveTheCalibratedRangeAreMarked)
{
    openReference();
    quantize(preset("xnnpack-static", {"/models/calib.pt"}), true);
    const RunReport &report = *window->session().runs().front().report;
    const auto rows = calibrationRows(*window->session().pair(), &report);
    int drifting = 0;
    int inside = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const CalibrationRow &row = rows[i];
        const QString shown =
            window->recipe().calibration()->model()->index(int(i), RecipePanel::Drift).data().toString();
        if (!row.drift)
            continue;
        EXPECT_EQ(row.evaluationHigh, 9.4);
        if (row.seen.highest == 7) { // 9.4 is 2.4 beyond a range of 13
            EXPECT_NEAR(*row.drift, 2.4 / 13, 1e-12);
            EXPECT_TRUE(row.drifts());
            EXPECT_EQ(shown, "18.5 % out");
            ++drifting;
        } else {
            EXPECT_EQ(*row.drift, 0.0);
            EXPECT_FALSE(row.drifts());
            EXPECT_EQ(shown, "0.0 %");
            ++inside;
        }
    }
    EXPECT_GT(drifting, 0);
    EXPECT_TRUE(window->recipe().summary().contains(
        QStringLiteral("leaves the calibrated range at %1 of %2 sites").arg(drifting).arg(rows.size())));
    (void)inside;
}

TEST_F(RecipeWindow, SaysWhenTheObserversSawTheInputsOrRandomNumbers)
{
    openReference();
    quantize(preset("xnnpack-static"));
    EXPECT_TRUE(window->recipe().warning().contains("the inputs of the comparison themselves"));
    engine.sampleInputs = false;
    OpenRequest request = window->session().request();
    window->openPair("/models/float.pt2", {}, {}, false);
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->recipe().warning().isEmpty());
    quantize(preset("xnnpack-static"));
    QTest::mouseClick(button("Use random inputs"), Qt::LeftButton);
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->recipe().warning().contains("random numbers"));
}

TEST_F(RecipeWindow, SaysWhenFilesLookRandom)
{
    openReference();
    quantize(preset("xnnpack-static", {"/models/randn.pt"}));
    EXPECT_TRUE(window->recipe().warning().contains("look random: x holds"))
        << window->recipe().warning().toStdString();
    EXPECT_TRUE(window->banners().text("random").isEmpty()) << "the comparison's inputs are real";
    window->openPair("/models/float.pt2", "/models/int8.pt2", {"/models/randn.pt"}, false);
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->banners().text("random").contains("the inputs look random"));
    window->openPair("/models/float.pt2", "/models/int8.pt2", {"/models/inputs.pt"}, false);
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->banners().text("random").isEmpty());
}

TEST_F(RecipeWindow, ASiteOfTheDockSelectsItsRow)
{
    openReference();
    quantize(preset("xnnpack-static", {"/models/calib.pt"}), true);
    const auto rows = calibrationRows(*window->session().pair(), nullptr);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].row.valid())
            continue;
        window->recipe().calibration()->setCurrentIndex(
            window->recipe().calibration()->model()->index(int(i), RecipePanel::Site));
        EXPECT_EQ(window->selection().current(), rows[i].row);
        return;
    }
    FAIL() << "no site has a row";
}

TEST_F(RecipeWindow, MeasuresWhatWeightsAndActivationsCost)
{
    openReference();
    EXPECT_FALSE(window->recipe().measureButton()->isVisible());
    quantize(preset("xnnpack-static", {"/models/calib.pt"}), true);
    const auto run = window->session().runs().front().report;
    window->recipe().pages()->setCurrentIndex(1);
    const auto line = [this](int row) {
        const QAbstractItemModel &facts = *window->recipe().facts()->model();
        return facts.index(row, RecipePanel::Where).data().toString() + "|" +
               facts.index(row, RecipePanel::Value).data().toString();
    };
    EXPECT_EQ(line(0), "everything quantized|not measured");
    EXPECT_TRUE(window->recipe().measureButton()->isEnabled());
    window->recipe().measureButton()->click();
    EXPECT_EQ(window->recipe().measureButton()->text(), "Stop measuring");
    ASSERT_TRUE(settle());
    EXPECT_EQ(engine.runs, 4); // one was the comparison's
    const SiteTable &sites = window->session().pair()->sites;
    const int weights = static_cast<int>(onlyActivations(sites).off.size());
    const int activations = static_cast<int>(onlyWeights(sites).off.size());
    ASSERT_GT(weights, 0);
    ASSERT_GT(activations, 0);
    // Every site of the fake net is upstream of its output: each that is off gives the same.
    const double db = run->outputSnrDb.front();
    const auto expected = [&](double snr, int count) {
        return QStringLiteral("SNR %1 dB, SQNR %2 dB, %3 sites")
            .arg(snr, 0, 'f', 2)
            .arg(snr + 0.01, 0, 'f', 2)
            .arg(count);
    };
    EXPECT_EQ(line(0), "everything quantized|" + expected(db, weights + activations));
    EXPECT_EQ(line(1), "weights only|" + expected(db + kDbPerSite * activations, weights));
    EXPECT_EQ(line(2), "activations only|" + expected(db + kDbPerSite * weights, activations));
    EXPECT_EQ(window->recipe().measureButton()->text(), "Measure again");
    // The window's own comparison is where it was.
    EXPECT_EQ(window->session().runs().size(), 1U);
    EXPECT_TRUE(window->session().runIsCurrent());

    // Known again for the same candidate, not for another one.
    window->session().changeHand({{"relu", "relu"}}, "a pair by hand");
    ASSERT_TRUE(settle());
    EXPECT_EQ(line(1), "weights only|" + expected(db + kDbPerSite * activations, weights));
    quantize(preset("x86-static", {"/models/calib.pt"}));
    EXPECT_EQ(line(1), "weights only|not measured");
}

TEST_F(RecipeWindow, MeasuringStopsAndGivesWayToARun)
{
    openReference();
    quantize(preset("xnnpack-static", {"/models/calib.pt"}), true);
    window->recipe().pages()->setCurrentIndex(1);
    const auto value = [this] {
        return window->recipe().facts()->model()->index(0, RecipePanel::Value).data().toString();
    };
    engine.gate.hold();
    window->recipe().measureButton()->click();
    engine.gate.waitForArrivals(1);
    EXPECT_TRUE(window->runner().measuring());
    window->recipe().measureButton()->click();
    EXPECT_FALSE(window->runner().measuring());
    EXPECT_EQ(window->progressText(), "stopped measuring");
    ASSERT_TRUE(settle());
    EXPECT_EQ(value(), "not measured");

    window->recipe().measureButton()->click();
    engine.gate.waitForArrivals(2);
    window->session().changeEdits(oneOff(), "one off");
    window->run();
    engine.gate.open();
    ASSERT_TRUE(settle());
    ASSERT_EQ(window->session().runs().size(), 2U);
    EXPECT_EQ(window->session().runs().back().edits, oneOff());
    EXPECT_NE(value(), "not measured"); // it began again behind the run
    EXPECT_TRUE(window->banners().empty());

    // A failure is said, with a way out; the run that is shown stays.
    engine.failNextRun = Error{ErrorCode::Internal, "conv2d", "no memory for it", {}};
    window->recipe().measureButton()->click();
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->banners().text("parts").contains("no memory for it"));
    EXPECT_EQ(window->session().shownRun(), 1);
}

TEST_F(RecipeWindow, TheWeightsPageListsWeightsAndTheChannelsOfOne)
{
    openReference();
    quantize(preset("xnnpack-static", {"/models/calib.pt"}));
    window->recipe().pages()->setCurrentIndex(2);
    RecipeWeights &weights = *window->recipe().weights();
    EXPECT_TRUE(weights.isVisible());
    const auto rows = weightRows(*window->session().pair());
    const QAbstractItemModel &table = *weights.weights()->model();
    ASSERT_EQ(table.rowCount(), static_cast<int>(rows.size()));
    ASSERT_GT(table.rowCount(), 0);
    EXPECT_EQ(table.index(0, RecipeWeights::Db).data().toString(), "42.50");
    EXPECT_EQ(table.index(0, RecipeWeights::WorstChannel).data().toString(), "1");
    EXPECT_EQ(table.index(0, RecipeWeights::WorstDb).data().toString(), "30.75");
    EXPECT_EQ(table.index(0, RecipeWeights::Channels).data().toString(), "3 on axis 0");
    EXPECT_EQ(weights.channels()->model()->rowCount(), 0);
    weights.weights()->setCurrentIndex(table.index(0, RecipeWeights::Weight));
    const QAbstractItemModel &channels = *weights.channels()->model();
    ASSERT_EQ(channels.rowCount(), 3);
    EXPECT_EQ(channels.index(2, RecipeWeights::ChannelDb).data().toString(), "55.00");
    EXPECT_EQ(channels.index(1, RecipeWeights::Channel).data().toString(), "1 worst");
    ASSERT_TRUE(rows[0].row.valid());
    // Its layer is selected in every dock.
    ASSERT_TRUE(window->selection().current().valid());
    const Node *layer = window->session().pair()->reference->graph().producer(
        window->table().aligned(window->selection().current()).ref);
    ASSERT_NE(layer, nullptr);
    EXPECT_EQ(layer->modulePath() + "/weight", rows[0].error.site);
}

TEST_F(RecipeWindow, TheRecipeTakesInTheChangesToLayers)
{
    openReference();
    EXPECT_FALSE(window->recipe().takeButton()->isEnabled());
    quantize(preset("xnnpack-static", {"/models/calib.pt"}), true);
    EXPECT_FALSE(window->recipe().takeButton()->isEnabled());
    EditSet edits = oneOff();
    SpecChange ranged; // nothing that a recipe says
    ranged.low = -1;
    ranged.high = 1;
    const SiteId fc = window->session().pair()->sites.byId("fc/weight");
    edits.respecified[fc] = ranged;
    window->session().changeEdits(edits, "two changes");
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->recipe().takeButton()->isEnabled());

    engine.failNextQuantize = Error{ErrorCode::Internal, "conv2d", "no memory for it", {}};
    window->recipe().takeButton()->click();
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().edits(), edits) << "nothing was taken, nothing is lost";

    window->recipe().takeButton()->click();
    ASSERT_TRUE(settle());
    const Recipe &recipe = window->session().pair()->made->recipe;
    ASSERT_EQ(recipe.overrides.size(), 1U);
    EXPECT_EQ(recipe.overrides[0].text(), "module:block\\.conv2=weight=float");
    EXPECT_EQ(window->session().request().recipe->calibration, std::vector<std::string>{"/models/calib.pt"});
    EditSet left;
    left.respecified[window->session().pair()->sites.byId("fc/weight")] = ranged;
    EXPECT_EQ(window->session().edits(), left);
    EXPECT_TRUE(window->banners().text("take").contains("a recipe gives weights no range"));
    EXPECT_TRUE(window->banners().text("edits").isEmpty()) << "what was taken in is not missing";
    EXPECT_EQ(window->session().runs().size(), 2U);
}

TEST_F(RecipeWindow, WhatWasOpenComesBackWithItsRecipe)
{
    OpenRequest request;
    request.reference = "/models/float.pt2";
    request.inputs.files = {"/models/a.pt", "/models/b.pt"};
    request.recipe = preset("coreai-w8a8:corrected", {"/models/calib.pt", "/models/50%.pt"});
    request.recipe->recipe.overrides.push_back(parseOverride("module:fc=float").value());
    const auto entry = readRecentEntry(recentEntry(request));
    ASSERT_TRUE(entry.has_value()) << entry.error().text();
    EXPECT_TRUE(entry->document.isEmpty());
    EXPECT_EQ(entry->request.reference, request.reference);
    EXPECT_TRUE(entry->request.candidate.empty());
    EXPECT_EQ(entry->request.inputs.files, request.inputs.files);
    EXPECT_EQ(entry->request.recipe, request.recipe);
    EXPECT_EQ(entry->title, QString::fromUtf8("models/float.pt2 ↔ coreai-w8a8:corrected, 1 override"));
    EXPECT_EQ(readRecentEntry("/a/b.dblame")->document, "/a/b.dblame");
    EXPECT_EQ(readRecentEntry("/a/r.pt2\n/a/c.pt2\n/a/x.pt")->request.candidate, "/a/c.pt2"); // of older versions
    EXPECT_FALSE(readRecentEntry("/a/r.pt2\n\nrecipe:nonsense%3A%20%5B").has_value());

    QSettings().remove("recent");
    MainWindow own({[this]() -> Result<Engine *> { return &engine; }, true});
    const auto settled = [&own] { return waitUntil([&own] { return !own.runner().activity(); }); };
    own.openAndQuantize("/models/float.pt2", *request.recipe, {"/models/a.pt"}, false);
    ASSERT_TRUE(settled());
    own.openPair("/models/float.pt2", "/models/int8.pt2", {"/models/a.pt"}, false);
    ASSERT_TRUE(settled());
    QMenu *recent = nullptr;
    for (QMenu *menu : own.findChildren<QMenu *>())
        if (menu->title().remove(QLatin1Char('&')) == "Recent")
            recent = menu;
    ASSERT_NE(recent, nullptr);
    Q_EMIT recent->aboutToShow();
    ASSERT_EQ(recent->actions().size(), 3);
    EXPECT_TRUE(recent->actions()[1]->text().contains("coreai-w8a8"));
    recent->actions()[1]->trigger();
    ASSERT_TRUE(settled());
    EXPECT_EQ(own.session().request().recipe, request.recipe);
    EXPECT_EQ(engine.calibratedOn, "/models/calib.pt");
    QSettings().remove("recent");
}

TEST_F(RecipeWindow, WritesTheRecipeInEveryFormOrSaysWhyNot)
{
    const QTemporaryDir folder;
    openReference();
    EXPECT_FALSE(window->exportRecipeTo(folder.filePath("none.yaml"), RecipeFormat::DBlame));
    quantize(preset("xnnpack-static"));
    ASSERT_TRUE(window->exportRecipeTo(folder.filePath("r.yaml"), RecipeFormat::DBlame));
    EXPECT_EQ(readRecipeFile(folder.filePath("r.yaml")).value(), presetRecipe("xnnpack-static").value());
    EXPECT_TRUE(window->exportRecipeTo(folder.filePath("r.json"), RecipeFormat::Torchao));
    // coreai-opt cannot say what XNNPACK's quantizer does.
    EXPECT_FALSE(window->exportRecipeTo(folder.filePath("r.coreai.yaml"), RecipeFormat::CoreAiOpt));
    EXPECT_FALSE(window->banners().text("export").isEmpty());
    EXPECT_FALSE(QFile::exists(folder.filePath("r.coreai.yaml")));
    quantize(preset("coreai-w8"));
    EXPECT_TRUE(window->exportRecipeTo(folder.filePath("r.coreai.yaml"), RecipeFormat::CoreAiOpt));
    EXPECT_TRUE(window->exportRecipeTo(folder.filePath("r.py"), RecipeFormat::Python));
    EXPECT_TRUE(window->banners().text("export").isEmpty());
}

TEST(RecipeFile, TheNameSaysTheFormatAndTheFilterSettlesYaml)
{
    EXPECT_EQ(recipeFormatOf("a.yaml").value(), RecipeFormat::DBlame);
    EXPECT_EQ(recipeFormatOf("a.coreai.yaml").value(), RecipeFormat::CoreAiOpt);
    EXPECT_EQ(recipeFormatOf("a.PY").value(), RecipeFormat::Python);
    EXPECT_EQ(recipeFormatOf("recipe.json").value(), RecipeFormat::Torchao);
    EXPECT_EQ(recipeFormatOf("a.txt").error().code, ErrorCode::Usage);
    const QStringList filters = recipeFilters().split(";;");
    ASSERT_EQ(filters.size(), 4);
    EXPECT_EQ(recipeFormatOf("a.yaml", filters[1]).value(), RecipeFormat::CoreAiOpt);
    EXPECT_EQ(recipeFormatOf("a.yaml", filters[0]).value(), RecipeFormat::DBlame);
    EXPECT_EQ(recipeFormatOf("a", filters[3]).value(), RecipeFormat::Torchao);
    EXPECT_EQ(recipeFormatOf("a.py", filters[3]).value(), RecipeFormat::Python);
}

TEST_F(RecipeWindow, ADocumentBringsTheRecipeBack)
{
    const QTemporaryDir folder;
    openReference();
    RecipeRequest request = preset("coreai-w8a8:corrected", {"/models/calib.pt", "/models/more.pt"});
    request.recipe.overrides.push_back(parseOverride("module:fc=float").value());
    quantize(request, true);
    window->session().changeEdits(oneOff(), "one off");
    ASSERT_TRUE(settle());
    ASSERT_TRUE(window->saveDocumentAs(folder.filePath("d.dblame")));
    EXPECT_FALSE(window->session().modified());

    MainWindow other({[this]() -> Result<Engine *> { return &engine; }, false});
    other.openDocument(folder.filePath("d.dblame"));
    ASSERT_TRUE(waitUntil([&] { return !other.runner().activity(); }));
    EXPECT_EQ(other.session().request().recipe, request);
    EXPECT_EQ(other.session().request().reference, "/models/float.pt2");
    EXPECT_EQ(other.session().edits(), oneOff());
    EXPECT_FALSE(other.session().modified());
    quantize(preset("xnnpack-static"));
    EXPECT_TRUE(window->session().modified());
}

TEST_F(RecipeWindow, ADocumentWithABrokenRecipeIsSaid)
{
    const QTemporaryDir folder;
    Document document;
    document.reference = "/models/float.pt2";
    document.recipe = "quantization_spec: [";
    ASSERT_TRUE(writeDocument(folder.filePath("d.dblame"), document));
    window->openDocument(folder.filePath("d.dblame"));
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->banners().text("document").contains("d.dblame"));
    EXPECT_EQ(window->session().pair()->reference, nullptr);
}

TEST_F(RecipeWindow, OpensAReferenceAndItsRecipeInOneStep)
{
    window->openAndQuantize("/models/float.pt2", preset("xnnpack-static", {"/models/calib.pt"}), {"/models/inputs.pt"},
                            true);
    ASSERT_TRUE(settle());
    EXPECT_EQ(engine.calibratedOn, "/models/calib.pt");
    EXPECT_EQ(window->session().runs().size(), 1U);
}

TEST_F(RecipeWindow, TheDialogComparesWithThePresentRecipe)
{
    openReference();
    window->chooseRecipe();
    auto *dialog = window->findChild<RecipeDialog *>();
    auto *summary = dialog->findChild<QLabel *>("preview-summary");
    ASSERT_TRUE(settle());
    EXPECT_TRUE(summary->text().endsWith("sites would be quantized")) << summary->text().toStdString();
    QTest::mouseClick(dialog->findChild<QPushButton *>("ok"), Qt::LeftButton);
    ASSERT_TRUE(settle());
    ASSERT_TRUE(waitUntil([this] { return window->findChild<RecipeDialog *>() == nullptr; }));

    const QuantizedModel &now = window->session().pair()->made->quantized;
    window->chooseRecipe();
    dialog = window->findChild<RecipeDialog *>();
    summary = dialog->findChild<QLabel *>("preview-summary");
    ASSERT_TRUE(settle());
    EXPECT_EQ(summary->text(),
              QStringLiteral("No site changes against the present recipe; %1 stay").arg(now.placement.sites.size()));
    dialog->findChild<QComboBox *>("preset")->setCurrentText("x86-static");
    ASSERT_TRUE(settle());
    const Placement other = placeRecipe(now.annotated->graph(), presetRecipe("x86-static").value()).value();
    const PlacementDiff diff = comparePlacements(now.annotated->graph(), now.placement, other);
    ASSERT_FALSE(diff.empty());
    EXPECT_TRUE(summary->text().endsWith(QStringLiteral("%1 stay").arg(diff.same))) << summary->text().toStdString();
    EXPECT_EQ(dialog->findChild<QListWidget *>("preview")->count(),
              static_cast<int>(diff.changes.size() + diff.notes.size()));
    EXPECT_EQ(engine.quantizations, 1); // nothing was made for it
}

TEST_F(RecipeWindow, AReportNamesRecipeAndCalibrationAndItsWarnings)
{
    const QTemporaryDir folder;
    openReference();
    quantize(preset("xnnpack-static", {"/models/calib.pt"}), true);
    ASSERT_TRUE(window->exportReportTo(folder.filePath("r.json")));
    QFile file(folder.filePath("r.json"));
    ASSERT_TRUE(file.open(QIODevice::ReadOnly));
    const QJsonObject report = QJsonDocument::fromJson(file.readAll()).object();
    EXPECT_EQ(report.value("recipe").toObject().value("title").toString(), "xnnpack-static");
    EXPECT_EQ(parseRecipe(report.value("recipe").toObject().value("text").toString().toStdString(), "r").value(),
              presetRecipe("xnnpack-static").value());
    EXPECT_EQ(report.value("inputs").toObject().value("calibration").toString(), "/models/calib.pt");
    EXPECT_TRUE(report.value("warnings").toArray().contains("one warning of the quantizer"));
}

} // namespace
} // namespace dblame::ui::test

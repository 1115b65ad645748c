// SPDX-License-Identifier: GPL-3.0-or-later
//
// A candidate that a recipe makes of the reference, on the fake engine: real widgets, real clicks.
#include <QCheckBox>
#include <QComboBox>
#include <QMenu>
#include <QPushButton>
#include <QTest>

#include <gtest/gtest.h>

#include "fake_engine.h"
#include "ui/layers_panel.h"
#include "ui/main_window.h"
#include "ui/node_table_model.h"
#include "ui/recipe_dialog.h"
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

} // namespace
} // namespace dblame::ui::test

// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/recipe_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QRadioButton>
#include <QTemporaryDir>
#include <QTest>

#include <gtest/gtest.h>

namespace dblame::ui::test
{
namespace
{

class Dialog : public ::testing::Test
{
protected:
    RecipeDialog dialog;
    std::optional<RecipeRequest> wanted;
    bool run = false;

    Dialog()
    {
        QObject::connect(&dialog, &RecipeDialog::quantizeWanted, [this](const RecipeRequest &request, bool runs) {
            wanted = request;
            run = runs;
        });
        dialog.open();
    }
    template <class Widget>
    [[nodiscard]] Widget *part(const char *name) const
    {
        auto *found = dialog.findChild<Widget *>(QString::fromLatin1(name));
        EXPECT_NE(found, nullptr) << name;
        return found;
    }
    void press(const char *name) { QTest::mouseClick(part<QPushButton>(name), Qt::LeftButton); }
    void type(const QString &text) { part<QLineEdit>("override")->setText(text); }
    [[nodiscard]] bool mayGo() const { return part<QPushButton>("ok")->isEnabled(); }
};

TEST_F(Dialog, OffersEveryPresetAndTakesTheChosenOne)
{
    auto *presets = part<QComboBox>("preset");
    ASSERT_EQ(presets->count(), static_cast<int>(presetNames().size()));
    for (int i = 0; i < presets->count(); ++i) {
        presets->setCurrentIndex(i);
        EXPECT_TRUE(mayGo()) << presets->currentText().toStdString();
    }
    presets->setCurrentText("x86-static");
    press("ok");
    ASSERT_TRUE(wanted.has_value());
    EXPECT_EQ(wanted->recipe, presetRecipe("x86-static").value());
    EXPECT_TRUE(wanted->calibration.empty());
    EXPECT_TRUE(run);
    EXPECT_FALSE(dialog.isVisible());
}

TEST_F(Dialog, APresetWithAParameterIsTypedAndAnUnknownOneIsSaid)
{
    auto *presets = part<QComboBox>("preset");
    presets->setCurrentText("coreai-w4-block64");
    EXPECT_EQ(dialog.request()->recipe, presetRecipe("coreai-w4-block64").value());
    presets->setCurrentText("coreai-w4-blok");
    EXPECT_FALSE(mayGo());
    EXPECT_TRUE(dialog.problem().contains("no such preset")) << dialog.problem().toStdString();
    EXPECT_EQ(part<QLabel>("problem")->text(), dialog.problem());
    EXPECT_FALSE(part<QLabel>("problem")->isHidden());
    QTest::keyClick(presets, Qt::Key_Return);
    EXPECT_FALSE(wanted.has_value());
}

TEST_F(Dialog, LeavesTheKnownDefectsOut)
{
    part<QComboBox>("preset")->setCurrentText("coreai-w8a8");
    part<QCheckBox>("corrected")->setChecked(true);
    EXPECT_EQ(dialog.request()->recipe, presetRecipe("coreai-w8a8:corrected").value());
}

TEST_F(Dialog, OverridesAreCheckedAtOnceAndListed)
{
    type("module:fc=weight=int4:sym:chanel");
    EXPECT_EQ(part<QLabel>("override-problem")->text().toStdString(),
              parseOverride("module:fc=weight=int4:sym:chanel").error().text());
    EXPECT_FALSE(part<QPushButton>("add-override")->isEnabled());
    EXPECT_FALSE(mayGo());

    type("module:fc=weight=int4:sym:channel");
    EXPECT_TRUE(part<QLabel>("override-problem")->isHidden());
    EXPECT_FALSE(mayGo()); // it is not in the list yet
    EXPECT_TRUE(dialog.problem().contains("not in the list yet"));
    QTest::keyClick(part<QLineEdit>("override"), Qt::Key_Return);
    EXPECT_TRUE(dialog.isVisible());
    EXPECT_FALSE(wanted.has_value());
    auto *list = part<QListWidget>("overrides");
    ASSERT_EQ(list->count(), 1);
    EXPECT_EQ(list->item(0)->text(), "module:fc=weight=int4:sym:channel");
    EXPECT_TRUE(part<QLineEdit>("override")->text().isEmpty());

    type("optype:aten.add=float");
    press("add-override");
    ASSERT_EQ(list->count(), 2);
    list->setCurrentRow(0);
    press("remove-override");
    ASSERT_EQ(list->count(), 1);
    ASSERT_TRUE(dialog.request().has_value());
    ASSERT_EQ(dialog.request()->recipe.overrides.size(), 1U);
    EXPECT_EQ(dialog.request()->recipe.overrides[0], parseOverride("optype:aten.add=float").value());
}

TEST_F(Dialog, CalibrationFilesAreListedAndTheNoteSaysWhatIsObserved)
{
    EXPECT_TRUE(part<QLabel>("calibration-note")->text().contains("inputs of the comparison themselves"));
    dialog.addCalibration({"/data/a.pt", "/data/b.pt"});
    EXPECT_FALSE(part<QLabel>("calibration-note")->text().contains("themselves"));
    part<QListWidget>("calibration")->setCurrentRow(0);
    press("remove-calibration");
    EXPECT_EQ(dialog.request()->calibration, std::vector<std::string>{"/data/b.pt"});
}

TEST_F(Dialog, ARecipeFileIsReadAndItsFaultsAreSaid)
{
    const QTemporaryDir folder;
    Recipe recipe = presetRecipe("xnnpack-static:corrected").value();
    recipe.overrides.push_back(parseOverride("module:fc=float").value());
    QFile good(folder.filePath("good.yaml"));
    ASSERT_TRUE(good.open(QIODevice::WriteOnly));
    good.write(QByteArray::fromStdString(recipeText(recipe)));
    good.close();
    dialog.setRecipeFile(good.fileName());
    EXPECT_TRUE(part<QRadioButton>("by-file")->isChecked());
    EXPECT_FALSE(part<QCheckBox>("corrected")->isEnabled());
    ASSERT_TRUE(dialog.request().has_value());
    EXPECT_EQ(dialog.request()->recipe, recipe);

    QFile bad(folder.filePath("bad.yaml"));
    ASSERT_TRUE(bad.open(QIODevice::WriteOnly));
    bad.write("quantization_spec: [");
    bad.close();
    dialog.setRecipeFile(bad.fileName());
    EXPECT_FALSE(mayGo());
    EXPECT_TRUE(dialog.problem().contains("bad.yaml")) << dialog.problem().toStdString();
    dialog.setRecipeFile(folder.filePath("missing.yaml"));
    EXPECT_TRUE(dialog.problem().contains("cannot be read"));
    // Back to the preset, which was right all along.
    part<QRadioButton>("by-preset")->setChecked(true);
    EXPECT_TRUE(mayGo());
}

TEST_F(Dialog, StartsFromThePresentRecipe)
{
    RecipeRequest now{presetRecipe("coreai-w8a8:corrected").value(), {"/data/calib.pt"}};
    now.recipe.overrides.push_back(parseOverride("module:fc=float").value());
    dialog.setRequest(now);
    EXPECT_EQ(part<QComboBox>("preset")->currentText(), "coreai-w8a8");
    EXPECT_TRUE(part<QCheckBox>("corrected")->isChecked());
    EXPECT_EQ(dialog.request(), now);
}

TEST_F(Dialog, EverythingHasAnAccessibleNameAndTheKeyboardReachesIt)
{
    for (QWidget *widget : dialog.findChildren<QWidget *>()) {
        if (qobject_cast<QPushButton *>(widget) == nullptr && qobject_cast<QListWidget *>(widget) == nullptr &&
            qobject_cast<QComboBox *>(widget) == nullptr && qobject_cast<QCheckBox *>(widget) == nullptr &&
            qobject_cast<QRadioButton *>(widget) == nullptr && qobject_cast<QLineEdit *>(widget) == nullptr)
            continue;
        if (!widget->isVisible())
            continue;
        EXPECT_FALSE(widget->accessibleName().isEmpty()) << widget->objectName().toStdString();
        EXPECT_TRUE((widget->focusPolicy() & Qt::TabFocus) != 0) << widget->objectName().toStdString();
    }
    QTest::keyClick(&dialog, Qt::Key_Escape);
    EXPECT_FALSE(dialog.isVisible());
    EXPECT_FALSE(wanted.has_value());
}

TEST_F(Dialog, SaysWhatAnotherRecipeWouldChange)
{
    std::vector<Recipe> asked;
    QObject::connect(&dialog, &RecipeDialog::previewWanted, [&](const Recipe &recipe) { asked.push_back(recipe); });
    part<QComboBox>("preset")->setCurrentText("x86-static");
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked.back(), presetRecipe("x86-static").value());
    dialog.addCalibration({"/data/a.pt"}); // the same recipe
    EXPECT_EQ(asked.size(), 1U);

    RecipePreview preview;
    preview.sites = 12;
    dialog.setPreview(preview);
    EXPECT_EQ(part<QLabel>("preview-summary")->text(), "12 sites would be quantized");
    EXPECT_TRUE(part<QListWidget>("preview")->isHidden());

    preview.diff.emplace();
    preview.diff->same = 7;
    preview.diff->changes = {{SiteChange::Appears, "pool/out", -1, 0, "int8 affine"},
                             {SiteChange::Changes, "fc/weight", 1, 1, "int8 -> int4"},
                             {SiteChange::Appears, "add/out", -1, 2, "int8 affine"},
                             {SiteChange::Vanishes, "relu/out", 3, -1, "int8 affine"}};
    preview.diff->notes = {"fc becomes float"};
    dialog.setPreview(preview);
    EXPECT_EQ(part<QLabel>("preview-summary")->text(),
              "Against the present recipe 2 sites appear, 1 vanish, 1 change, 7 stay");
    auto *list = part<QListWidget>("preview");
    ASSERT_EQ(list->count(), 5);
    EXPECT_EQ(list->item(1)->text(), "fc/weight changes: int8 -> int4");
    EXPECT_EQ(list->item(4)->text(), "fc becomes float");

    // What is wrong has no preview, and a late answer does not bring one.
    part<QComboBox>("preset")->setCurrentText("x86-statik");
    EXPECT_TRUE(part<QLabel>("preview-summary")->text().isEmpty());
    dialog.setPreview(preview);
    EXPECT_EQ(list->count(), 0);
}

TEST_F(Dialog, SaysWhatThePeerDropsOfAFile)
{
    const QTemporaryDir folder;
    const QString path = folder.filePath("r.yaml");
    QFile file(path);
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write("quantization_config:\n"
               "  global_config:\n"
               "    op_state_spec:\n"
               "      weight: {dtype: int8, qsheme: asymmetric}\n");
    file.close();
    auto *note = part<QLabel>("file-note");
    EXPECT_TRUE(note->isHidden());
    dialog.setRecipeFile(path);
    EXPECT_TRUE(dialog.problem().isEmpty()) << dialog.problem().toStdString();
    EXPECT_FALSE(note->isHidden());
    EXPECT_TRUE(note->text().contains("'qsheme'")) << note->text().toStdString();
    part<QRadioButton>("by-preset")->setChecked(true);
    EXPECT_TRUE(note->isHidden());
}

} // namespace
} // namespace dblame::ui::test

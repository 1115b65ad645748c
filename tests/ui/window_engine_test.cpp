// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window on the real engine and the demo pair: what it shows is what the command line writes.
#include "ui/main_window.h"

#include <QComboBox>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>

#include <gtest/gtest.h>

#include "ui/layers_model.h"
#include "ui/layers_panel.h"
#include "ui/node_table_model.h"
#include "ui/recipe_panel.h"
#include "ui/selection.h"
#include "wait.h"

namespace dblame::ui::test
{
namespace
{

QString demo(const char *name)
{
    return QStringLiteral(DBLAME_SOURCE_DIR "/resources/demo/") + name;
}

// Rows of `dblame compare` on the demo pair, by reference value name.
QMap<QString, QJsonObject> compare(const QStringList &options)
{
    const QTemporaryDir folder;
    QProcess dblame;
    dblame.start(QStringLiteral(DBLAME_CLI), QStringList{"compare", demo("float.pt2"), demo("int8.pt2"), "--inputs",
                                                         demo("inputs.pt"), "--json", folder.filePath("r.json")} +
                                                 options);
    EXPECT_TRUE(dblame.waitForFinished(120000));
    EXPECT_EQ(dblame.exitCode(), 0) << dblame.readAllStandardError().toStdString();
    QFile file(folder.filePath("r.json"));
    EXPECT_TRUE(file.open(QIODevice::ReadOnly));
    QMap<QString, QJsonObject> rows;
    for (const auto &row : QJsonDocument::fromJson(file.readAll()).object().value("rows").toArray())
        rows[row.toObject().value("ref").toString()] = row.toObject();
    return rows;
}

class EngineWindow : public ::testing::Test
{
protected:
    MainWindow window{{[] { return loadEngine(DBLAME_ENGINE_FOLDER); }, false}};
    [[nodiscard]] bool settle()
    {
        return waitUntil([this] { return !window.runner().activity(); }, 120000);
    }
    void openDemo()
    {
        window.resize(1440, 900);
        window.show();
        window.openPair(demo("float.pt2"), demo("int8.pt2"), {demo("inputs.pt")}, true);
        ASSERT_TRUE(settle());
        ASSERT_FALSE(window.lastError().has_value()) << window.lastError()->text();
    }
    void expectRows(const QMap<QString, QJsonObject> &rows)
    {
        const Graph &graph = window.session().pair()->reference->graph();
        ASSERT_EQ(rows.size(), window.table().pairCount());
        for (int i = 0; i < window.table().pairCount(); ++i) {
            const PairId row(static_cast<std::size_t>(i));
            const std::string name = graph.value(window.table().aligned(row).ref).name;
            const QJsonObject expected = rows.value(QString::fromStdString(name));
            if (expected.value("snr_db").isDouble()) {
                EXPECT_DOUBLE_EQ(window.table().report(row).metrics.snrDb, expected.value("snr_db").toDouble()) << name;
                EXPECT_DOUBLE_EQ(window.table().report(row).metrics.sqnrDb, expected.value("sqnr_db").toDouble())
                    << name;
            } else {
                EXPECT_EQ(window.table().report(row).status, RowStatus::Exact) << name;
            }
        }
    }
};

TEST_F(EngineWindow, ShowsWhatTheCommandLineWrites)
{
    openDemo();
    expectRows(compare({}));
    EXPECT_EQ(window.session().signal(), Signal::Reference);
    ASSERT_TRUE(window.table().largestDrop().has_value());
    EXPECT_EQ(window.table().label(window.table().largestDrop()->row), "stem.relu");
}

// The recipe's parts against `compare --skip`, and the comparison of the window unmoved by them.
TEST_F(EngineWindow, MeasuresThePartsOfARecipeBesideTheWindowsRun)
{
    window.resize(1440, 900);
    window.show();
    window.openAndQuantize(demo("float.pt2"), {presetRecipe("xnnpack-static").value(), {}}, {demo("inputs.pt")}, true);
    ASSERT_TRUE(settle());
    ASSERT_FALSE(window.lastError().has_value()) << window.lastError()->text();
    const auto recipeOutputs = [](const QStringList &more) {
        const QTemporaryDir folder;
        QProcess dblame;
        dblame.start(QStringLiteral(DBLAME_CLI),
                     QStringList{"compare", demo("float.pt2"), "--preset", "xnnpack-static", "--inputs",
                                 demo("inputs.pt"), "--no-cache", "--json", folder.filePath("r.json")} +
                         more);
        EXPECT_TRUE(dblame.waitForFinished(120000));
        QFile file(folder.filePath("r.json"));
        EXPECT_TRUE(file.open(QIODevice::ReadOnly));
        const QJsonObject report = QJsonDocument::fromJson(file.readAll()).object();
        return std::pair(report.value("output_snr_db").toArray().at(0).toDouble(),
                         report.value("output_sqnr_db").toArray().at(0).toDouble());
    };
    std::optional<OutputParts> parts;
    QObject::connect(&window.runner(), &Runner::partsMeasured, [&](const OutputParts &measured) { parts = measured; });
    const auto measure = [&] {
        window.recipe().pages()->setCurrentIndex(1);
        window.recipe().measureButton()->click();
        EXPECT_TRUE(settle());
    };
    measure();
    ASSERT_TRUE(parts.has_value());
    const auto expectPart = [&](const OutputPart &part, const QStringList &options) {
        const auto [snr, sqnr] = recipeOutputs(options);
        EXPECT_DOUBLE_EQ(part.snrDb.at(0), snr);
        EXPECT_DOUBLE_EQ(part.sqnrDb.at(0), sqnr);
    };
    expectPart(parts->everything, {});
    expectPart(parts->weights, {"--skip", "module:.*/act"});
    expectPart(parts->activations, {"--skip", "module:.*/weight"});
    EXPECT_GT(parts->weights.snrDb[0], parts->everything.snrDb[0]);

    // A rerun after it is the rerun of the window's own comparison, and the parts do not see its edits.
    EditSet edits;
    edits.off.insert(window.session().pair()->sites.byId("fc/weight"));
    window.session().changeEdits(edits, "fc float");
    window.run();
    ASSERT_TRUE(settle());
    const RunReport &rerun = *window.session().runs().back().report;
    EXPECT_LT(rerun.rowsRecomputed, static_cast<int>(rerun.rows.size()));
    EXPECT_DOUBLE_EQ(rerun.outputSnrDb.at(0), recipeOutputs({"--skip", "module:fc/weight"}).first);
    const OutputParts before = *parts;
    measure();
    EXPECT_DOUBLE_EQ(parts->everything.snrDb[0], before.everything.snrDb[0]);
    EXPECT_DOUBLE_EQ(parts->weights.snrDb[0], before.weights.snrDb[0]);
    EXPECT_DOUBLE_EQ(parts->activations.snrDb[0], before.activations.snrDb[0]);
}

TEST_F(EngineWindow, ARecipeThatTookInTheChangesGivesTheirNumbers)
{
    window.openAndQuantize(demo("float.pt2"), {presetRecipe("xnnpack-static").value(), {}}, {demo("inputs.pt")}, true);
    ASSERT_TRUE(settle());
    EditSet edits;
    edits.off = {window.session().pair()->sites.byId("fc/weight"),
                 window.session().pair()->sites.byId("head_conv.conv/weight")};
    window.session().changeEdits(edits, "two weights float");
    window.run();
    ASSERT_TRUE(settle());
    window.recipe().takeButton()->click();
    ASSERT_TRUE(settle());
    ASSERT_FALSE(window.lastError().has_value()) << window.lastError()->text();
    ASSERT_EQ(window.session().runs().size(), 3U);
    EXPECT_TRUE(window.session().edits().empty());
    EXPECT_FALSE(window.session().pair()->sites.byId("fc/weight").valid());
    const auto output = [&](std::size_t run) { return window.session().runs()[run].report->outputSnrDb.at(0); };
    EXPECT_NE(output(0), output(1));
    EXPECT_DOUBLE_EQ(output(2), output(1));
}

TEST_F(EngineWindow, SkippingOneConvByItsBoxGivesTheNumbersOfCompareSkip)
{
    openDemo();
    QTreeView *view = window.layers().view();
    const QModelIndex conv = window.layers().model()->indexOfPath("head_conv.conv");
    ASSERT_TRUE(conv.isValid());
    view->scrollTo(conv);
    QStyleOptionViewItem option;
    option.initFrom(view);
    option.rect = view->visualRect(conv);
    option.features = QStyleOptionViewItem::HasCheckIndicator;
    const QRect box = view->style()->subElementRect(QStyle::SE_ItemViewItemCheckIndicator, &option, view);
    QTest::mouseClick(view->viewport(), Qt::LeftButton, {}, box.center());
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window.layers().planText().contains("head_conv.conv/weight"));
    QTest::mouseClick(window.layers().runButton(), Qt::LeftButton);
    ASSERT_TRUE(settle());
    ASSERT_EQ(window.session().runs().size(), 2U);
    expectRows(compare({"--skip", "module:head_conv\\.conv"}));
    // It did something, and what is upstream stayed what it was.
    const auto &before = window.session().runs()[0].report->rows;
    const auto &after = window.session().runs()[1].report->rows;
    EXPECT_NE(before.back().metrics.snrDb, after.back().metrics.snrDb);
    EXPECT_LT(window.session().runs()[1].report->rowsRecomputed, static_cast<int>(after.size()));
}

TEST_F(EngineWindow, AFileThatIsNoModelIsSaidAndThePairStays)
{
    openDemo();
    window.openFiles({demo("README.md"), demo("int8.pt2")});
    ASSERT_TRUE(settle());
    EXPECT_FALSE(window.banners().text("open").isEmpty());
    EXPECT_EQ(window.session().runs().size(), 1U);
    EXPECT_EQ(window.session().request().reference, demo("float.pt2").toStdString());
}

} // namespace
} // namespace dblame::ui::test

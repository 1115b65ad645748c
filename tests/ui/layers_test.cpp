// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layers_panel.h"

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QCoreApplication>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTreeView>

#include <gtest/gtest.h>

#include "core/selector.h"
#include "fake_pair.h"
#include "tests/core/text_model.h"
#include "ui/edits_text.h"
#include "ui/layers_model.h"
#include "ui/node_table_model.h"
#include "ui/selection.h"
#include "ui/spec_editor.h"
#include "ui/theme.h"

namespace dblame::ui::test
{
namespace
{

// conv -> sum; the candidate divides the convolution's result, in no module, and calls the sum otherwise.
OpenPairPtr rewrittenPair()
{
    const char *const weight = "input parameter %w: float32[4, 4] \"conv.weight\"\n";
    const char *const scale = "input buffer %s: float32[4] \"conv.scale_of_norm\"\n";
    const char *const x = "input user %x: float32[2, 4] \"x\"\n";
    const std::string conv = "%conv: float32[2, 4] = aten.linear.default(input=%x, weight=%w) "
                             "@\"conv\":\"torch.nn.modules.linear.Linear\":\"conv\"\n";
    auto pair = std::make_shared<OpenPair>();
    pair->reference = std::make_shared<TextModel>(std::string("graph {\n") + weight + x + conv +
                                                  "%sum: float32[2, 4] = aten.add.Tensor(self=%conv, other=%x)\n"
                                                  "return %sum \"out\"\n}\n");
    pair->candidate = std::make_shared<TextModel>(std::string("graph {\n") + weight + scale + x + conv +
                                                  "%sf: float32[4] = aten.sqrt.default(self=%s)\n"
                                                  "%div_4: float32[2, 4] = aten.div.Tensor(self=%conv, other=%sf)\n"
                                                  "%add_7: float32[2, 4] = aten.add.Tensor(self=%div_4, other=%x)\n"
                                                  "return %add_7 \"out\"\n}\n");
    const Graph &ref = pair->reference->graph(), &cand = pair->candidate->graph();
    pair->sites.ofNode.assign(cand.nodes.size(), -1);
    pair->sites.ofResult.assign(cand.values.size(), -1);
    pair->sites.outputOf.assign(cand.values.size(), -1);
    pair->alignment.rowOfCand.assign(cand.values.size(), -1);
    for (const auto &[a, b] : {std::pair("conv", "div_4"), std::pair("sum", "add_7")}) {
        AlignedPair row;
        row.ref = row.refCompared = ref.find(a);
        row.cand = row.candCompared = cand.find(b);
        pair->alignment.rowOfCand[row.cand.get()] = static_cast<std::int32_t>(pair->alignment.pairs.size());
        pair->alignment.pairs.push_back(row);
    }
    return pair;
}

// What a dock of 300 pixels leaves beside the margins.
constexpr int kDockWidth = 272;

class LayersTest : public ::testing::Test
{
protected:
    FakePair fake;
    NodeTableModel table;
    Selection selection;
    LayersPanel panel;
    EditSet edits;
    QString what;

    LayersTest()
    {
        table.setPair(fake.pair());
        panel.setTable(&table);
        panel.setSelection(&selection);
        panel.setPair(fake.pair());
        QObject::connect(&panel, &LayersPanel::editsWanted, [this](const EditSet &wanted, const QString &text) {
            edits = wanted;
            what = text;
            panel.setEdits(edits, {});
        });
    }
    LayersModel &model() { return *panel.model(); }
    [[nodiscard]] QModelIndex at(const char *path, int column = LayersModel::Name)
    {
        const QModelIndex index = model().indexOfPath(path);
        EXPECT_TRUE(index.isValid()) << path;
        return index.siblingAtColumn(column);
    }
    void press(const char *path) { model().setData(at(path), Qt::Unchecked, Qt::CheckStateRole); }
    [[nodiscard]] int state(const char *path) { return at(path).data(Qt::CheckStateRole).toInt(); }
    [[nodiscard]] QString spec(const char *path) { return at(path, LayersModel::Spec).data().toString(); }
    static void choose(QComboBox *field, const char *text)
    {
        const int index = field->findText(QString::fromLatin1(text));
        ASSERT_GE(index, 0) << text;
        field->setCurrentIndex(index);
        Q_EMIT field->activated(index);
    }
    static void enter(QLineEdit *field, const char *text)
    {
        field->setText(QString::fromLatin1(text));
        Q_EMIT field->editingFinished();
    }
    [[nodiscard]] EditSet selected(const char *selector)
    {
        return selectForSkip(parseSelector(selector).value(), *fake.pair()->candidate, fake.pair()->sites).value();
    }
};

TEST_F(LayersTest, IsASoundModel)
{
    const QAbstractItemModelTester tester(&model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
    table.setReport(*fake.run());
    press("block");
    panel.setPair(std::make_shared<const OpenPair>());
    EXPECT_EQ(model().rowCount(), 0);
    panel.setPair(fake.pair());
    EXPECT_GT(model().rowCount(), 0);
}

TEST_F(LayersTest, ShowsModulesWithTheirLayersInOrder)
{
    QStringList roots;
    for (int i = 0; i < model().rowCount(); ++i)
        roots << model().index(i, 0).data().toString();
    EXPECT_EQ(roots, (QStringList{"stem", "pool1", "block", "pool2", "head_conv", "gap", "flatten", "fc"}));
    QStringList block;
    for (int i = 0; i < model().rowCount(at("block")); ++i)
        block << model().index(i, 0, at("block")).data().toString();
    // add lies directly in the container: it stands under its own name.
    EXPECT_EQ(block, (QStringList{"conv1", "relu1", "conv2", "add", "relu2"}));
    EXPECT_EQ(spec("stem.conv"), "int8 per ch");
    EXPECT_EQ(spec("stem.relu"), "int8");
}

TEST_F(LayersTest, ABoxTakesWhatTheSelectorTakes)
{
    press("head_conv.conv");
    EXPECT_EQ(edits, selected("module:head_conv\\.conv"));
    EXPECT_EQ(edits.off.size(), 1U);      // its weight
    EXPECT_EQ(edits.bypassed.size(), 1U); // pool2's output, for this reader alone
    EXPECT_EQ(what, "skip head_conv.conv");
    press("head_conv.conv");
    EXPECT_TRUE(edits.empty());
    press("block");
    EXPECT_EQ(edits, selected("module:block"));
    press("block");
    press("add");
    EXPECT_EQ(edits, selected("op:add"));
}

TEST_F(LayersTest, StatesGoUpTheTree)
{
    press("head_conv.conv");
    EXPECT_EQ(state("head_conv.conv"), Qt::Unchecked);
    EXPECT_EQ(spec("head_conv.conv"), "float here");
    EXPECT_EQ(state("head_conv"), Qt::PartiallyChecked);
    EXPECT_EQ(state("fc"), Qt::Checked);
    press("head_conv.relu");
    EXPECT_EQ(state("head_conv"), Qt::Unchecked);
    press("head_conv");
    EXPECT_EQ(state("head_conv"), Qt::Checked);
    EXPECT_TRUE(edits.empty());
}

TEST_F(LayersTest, ASiteOfItsOwnCanBeSwitched)
{
    press("head_conv.conv/weight");
    EXPECT_EQ(edits.off, std::set<SiteId>{fake.site("head_conv.conv/weight")});
    EXPECT_TRUE(edits.bypassed.empty());
    EXPECT_EQ(state("head_conv.conv"), Qt::PartiallyChecked);
    panel.toggleSite(fake.site("head_conv.conv/weight"));
    EXPECT_TRUE(edits.empty());
}

TEST_F(LayersTest, ALayerWithoutSitesHasNoBox)
{
    // flatten reads a quantized value, so it has an edge; add's inputs are edges too. Without sites: none.
    auto bare = std::make_shared<OpenPair>(*fake.pair());
    bare->sites = {};
    for (AlignedPair &row : bare->alignment.pairs) {
        row.site = {};
        row.inputSites.clear();
    }
    bare->sites.ofNode.assign(bare->candidate->graph().nodes.size(), -1);
    bare->sites.ofResult.assign(bare->candidate->graph().values.size(), -1);
    bare->sites.outputOf.assign(bare->candidate->graph().values.size(), -1);
    panel.setPair(bare);
    EXPECT_FALSE(at("stem.conv").data(Qt::CheckStateRole).isValid());
    EXPECT_EQ(spec("stem.conv"), "float");
}

// A rewritten norm leaves "/ scale" behind the convolution, in no module: the row that is compared after it is the
// convolution's.
TEST_F(LayersTest, WhatARewriteMadeBelongsToTheLayerOfItsRow)
{
    const OpenPairPtr pair = rewrittenPair();
    ASSERT_NE(pair, nullptr);
    table.setPair(pair);
    panel.setPair(pair);
    QStringList roots;
    for (int i = 0; i < model().rowCount(); ++i)
        roots << model().index(i, 0).data().toString();
    EXPECT_EQ(roots, (QStringList{"conv", "sum"})); // no div; the sum by the reference's name
    for (std::size_t i = 0; i < pair->alignment.pairs.size(); ++i) {
        if (pair->alignment.pairs[i].kind != RowKind::Activation)
            continue;
        NodeReport report;
        report.row = PairId(i);
        report.status = RowStatus::Ok;
        report.metrics.snrDb = 30;
        table.update({report});
    }
    EXPECT_EQ(at("conv", LayersModel::Snr).data().toString(), "30.0");
    // What never was quantized is no place to look at.
    ASSERT_EQ(spec("sum"), "float");
    EXPECT_EQ(at("sum", LayersModel::Spec).data(Qt::ForegroundRole).value<QColor>(), Theme::current().mute);
    EXPECT_EQ(layerName(*pair, pair->candidate->graph().findNode("add_7")), "sum");
}

TEST_F(LayersTest, OnlyKeepsOneLayerQuantized)
{
    panel.view()->setCurrentIndex(at("head_conv.conv"));
    for (QPushButton *button : panel.takeControls()->findChildren<QPushButton *>())
        if (button->text() == "Only")
            button->click();
    const auto kept = parseSelector("module:head_conv\\.conv").value();
    EXPECT_EQ(edits, selectAllBut({kept}, *fake.pair()->candidate, fake.pair()->sites).value());
    EXPECT_FALSE(edits.off.contains(fake.site("head_conv.conv/weight")));
    EXPECT_TRUE(edits.off.contains(fake.site("fc/weight")));
}

TEST_F(LayersTest, BitsOfASiteCanBeRaised)
{
    panel.view()->setCurrentIndex(at("head_conv.conv"));
    SpecEditor *editor = panel.specEditor();
    ASSERT_TRUE(editor->isVisibleTo(&panel));
    EXPECT_EQ(editor->type()->currentText(), "int8");
    editor->setBits(12); // as the menu does
    const SiteId site = fake.site("head_conv.conv/weight");
    ASSERT_TRUE(edits.respecified.contains(site));
    EXPECT_EQ(edits.respecified[site].bits, 12);
    EXPECT_FALSE(edits.respecified[site].type.has_value());
    EXPECT_EQ(edits.respecified[site].granularity, Granularity::PerChannel);
    EXPECT_EQ(spec("head_conv.conv"), "int12 per ch");
    EXPECT_EQ(spec("head_conv.conv/weight"), "int12 per channel");
    EXPECT_EQ(editor->type()->currentText(), "int12"); // no element type has 12 bits
    editor->setBits(8);                                // as the file has it: no change is left
    EXPECT_TRUE(edits.empty());
    EXPECT_EQ(what, "head_conv.conv/weight to its own");
    panel.view()->setCurrentIndex(at("flatten"));
    EXPECT_FALSE(editor->isVisibleTo(&panel));
}

TEST_F(LayersTest, ASiteTakesAnotherTypeSchemeAndGranularity)
{
    panel.view()->setCurrentIndex(at("fc/weight"));
    SpecEditor *editor = panel.specEditor();
    const SiteId site = fake.site("fc/weight");
    choose(editor->type(), "uint4");
    EXPECT_EQ(edits.respecified[site].type, ElementType::UInt4);
    EXPECT_FALSE(edits.respecified[site].symmetric.has_value());
    choose(editor->scheme(), "affine");
    EXPECT_EQ(edits.respecified[site].symmetric, false);
    EXPECT_TRUE(editor->blockSize()->isHidden());
    choose(editor->granularity(), "per block");
    EXPECT_FALSE(editor->blockSize()->isHidden());
    EXPECT_TRUE(editor->low()->isHidden()); // a range is for the whole tensor
    editor->blockSize()->setValue(16);
    EXPECT_EQ(edits.respecified[site].text(), "uint4 affine per block of 16");
    EXPECT_EQ(spec("fc"), "uint4 block 16");
    // A floating type has one scheme; a cast has no granularity either.
    choose(editor->type(), "f8e4m3");
    EXPECT_FALSE(editor->scheme()->isEnabled());
    EXPECT_FALSE(edits.respecified[site].symmetric.has_value());
    choose(editor->type(), "bf16");
    EXPECT_FALSE(editor->granularity()->isEnabled());
    EXPECT_EQ(edits.respecified[site].text(), "bf16");
    EXPECT_EQ(edits.respecified[site].granularity, Granularity::PerTensor);
    // An unchecked layer that gets a spec is quantized again.
    press("fc");
    choose(editor->type(), "int6");
    EXPECT_FALSE(edits.off.contains(site));
    for (QPushButton *button : panel.findChildren<QPushButton *>())
        if (button->text() == "As opened")
            button->click();
    EXPECT_FALSE(edits.respecified.contains(site));
    EXPECT_EQ(editor->type()->currentText(), "int8");
    EXPECT_EQ(editor->granularity()->currentText(), "per channel");
}

TEST_F(LayersTest, ARangeIsGivenAndTakenBack)
{
    panel.view()->setCurrentIndex(at("stem.relu/out"));
    SpecEditor *editor = panel.specEditor();
    const SiteId site = fake.site("stem.relu/out");
    ASSERT_FALSE(editor->low()->isHidden());
    enter(editor->low(), "-1");
    EXPECT_EQ(edits.respecified[site].low, -1);
    EXPECT_FALSE(edits.respecified[site].high.has_value());
    enter(editor->high(), "2.5");
    EXPECT_EQ(edits.respecified[site].high, 2.5);
    EXPECT_EQ(editor->high()->text(), "2.5");
    EXPECT_EQ(spec("stem.relu"), "int8 in range");
    EXPECT_EQ(spec("stem.relu/out"), "int8 per tensor in -1..2.5");
    enter(editor->low(), "");
    enter(editor->high(), "");
    EXPECT_TRUE(edits.empty());
}

TEST_F(LayersTest, LeavingAFieldAsItWasChangesNothing)
{
    press("stem.relu");
    const EditSet skipped = edits;
    panel.view()->setCurrentIndex(at("stem.relu/out"));
    what.clear();
    Q_EMIT panel.specEditor()->low()->editingFinished(); // the focus leaves it
    EXPECT_EQ(edits, skipped);
    EXPECT_TRUE(what.isEmpty());
}

TEST_F(LayersTest, TheSpecFieldsFitTheDock)
{
    panel.show(); // a hidden layout keeps what its fields were once
    panel.view()->setCurrentIndex(at("stem.relu/out"));
    QCoreApplication::processEvents();
    EXPECT_LE(panel.specEditor()->minimumSizeHint().width(), kDockWidth);
    panel.view()->setCurrentIndex(at("fc/weight"));
    choose(panel.specEditor()->granularity(), "per block");
    QCoreApplication::processEvents();
    EXPECT_LE(panel.specEditor()->minimumSizeHint().width(), kDockWidth);
}

TEST_F(LayersTest, ShowsThePlanWithRefusals)
{
    panel.setRunnable(true);
    EXPECT_FALSE(panel.runButton()->isEnabled());
    press("head_conv.conv");
    EXPECT_TRUE(panel.runButton()->isEnabled());
    Plan plan = fake.side.plan(edits).value();
    plan.changes.push_back(
        {ChangeKind::Refused, fake.site("fc/weight"), {}, "fc/weight", "changed weight: rescaled per channel"});
    plan.notes.emplace_back("pool1/out is on the same grid");
    panel.setPlan(plan);
    EXPECT_EQ(panel.planText(),
              QString::fromUtf8("− head_conv.conv/weight: int8 symmetric per channel -> float\n"
                                "− pool2/out for conv2d_3: int8 affine per tensor -> float on this edge only\n"
                                "refused: fc/weight: changed weight: rescaled per channel\n"
                                "pool1/out is on the same grid"));
    panel.setEdits(edits, edits); // the run that is shown has them
    EXPECT_FALSE(panel.runButton()->isEnabled());
}

TEST_F(LayersTest, FollowsTheSelectionAndSetsIt)
{
    selection.setCurrent(PairId(kFakeWeights + 1 + 9));
    EXPECT_EQ(panel.view()->currentIndex().data().toString(), "conv");
    EXPECT_EQ(panel.view()->currentIndex().parent().data().toString(), "head_conv");
    selection.setCurrent(PairId(0)); // a weight leads to the layer that reads it
    EXPECT_EQ(panel.view()->currentIndex().parent().data().toString(), "stem");
    panel.view()->setCurrentIndex(at("fc"));
    EXPECT_EQ(selection.current(), PairId(kFakeRows - 1));
}

TEST_F(LayersTest, ShowsTheWorstRowOfAModule)
{
    table.setReport(*fake.run());
    EXPECT_EQ(at("block", LayersModel::Snr).data().toString(), "33.7");
    EXPECT_EQ(at("block.conv1", LayersModel::Snr).data().toString(), "37.7");
}

} // namespace
} // namespace dblame::ui::test

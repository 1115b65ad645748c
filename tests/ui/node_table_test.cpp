// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/node_table_model.h"

#include <cmath>

#include <QAbstractItemModelTester>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTableView>

#include <gtest/gtest.h>

#include "fake_pair.h"
#include "ui/node_filter.h"
#include "ui/nodes_panel.h"
#include "ui/row_words.h"
#include "ui/selection.h"

namespace dblame::ui::test
{
namespace
{

constexpr auto kFatal = QAbstractItemModelTester::FailureReportingMode::Fatal;

PairId row(int activation)
{
    return PairId(static_cast<std::size_t>(kFakeWeights + 1 + activation));
}

QString cell(const NodeTableModel &model, PairId row, int column)
{
    return model.index(row.index, column).data().toString();
}

QStringList names(const NodeFilter &filter)
{
    QStringList names;
    for (int i = 0; i < filter.rowCount(); ++i)
        names << filter.index(i, NodeTableModel::Name).data().toString();
    return names;
}

class NodeTable : public ::testing::Test
{
protected:
    FakePair fake;
    NodeTableModel model;
    NodeTable() { model.setPair(fake.pair()); }
};

TEST_F(NodeTable, IsASoundModelThroughItsLife)
{
    const QAbstractItemModelTester tester(&model, kFatal);
    model.setReport(*fake.run());
    model.setSignal(Signal::Candidate);
    model.setBaseline(fake.run());
    model.setPair(std::make_shared<const OpenPair>());
    EXPECT_EQ(model.rowCount(), 0);
    model.setPair(fake.pair());
    EXPECT_EQ(model.rowCount(), kFakeRows);
}

TEST_F(NodeTable, NamesRowsByLayerAndWeightsByTheirStateDictName)
{
    EXPECT_EQ(model.label(PairId(0)), "stem.conv.weight");
    EXPECT_EQ(model.label(PairId(kFakeWeights)), "x");
    EXPECT_EQ(model.label(row(0)), "stem.conv");
    EXPECT_EQ(model.label(row(6)), "block");
    EXPECT_EQ(model.label(row(12)), "flatten"); // in no module
}

TEST_F(NodeTable, ShowsOneDecimalAndTheLargestDropInWords)
{
    EXPECT_EQ(cell(model, row(0), NodeTableModel::Snr), "");
    EXPECT_EQ(cell(model, row(0), NodeTableModel::Status), "not run");
    model.setReport(*fake.run());
    EXPECT_EQ(cell(model, row(0), NodeTableModel::Snr), "46.1");
    EXPECT_EQ(cell(model, row(13), NodeTableModel::Snr), "33.9");
    EXPECT_EQ(cell(model, PairId(kFakeWeights), NodeTableModel::Snr), "exact");
    EXPECT_EQ(cell(model, row(1), NodeTableModel::Drop), "largest −5.4");
    EXPECT_EQ(cell(model, row(9), NodeTableModel::Drop), "−4.9");
    EXPECT_EQ(cell(model, row(10), NodeTableModel::Drop), "+1.5");
    EXPECT_EQ(model.largestDrop()->row, row(1));
    model.setSignal(Signal::Candidate);
    EXPECT_EQ(model.headerData(NodeTableModel::Snr, Qt::Horizontal, Qt::DisplayRole), "SQNR dB");
    EXPECT_DOUBLE_EQ(model.shownDb(row(0)), 46.11);
}

TEST_F(NodeTable, TellsOncePerContiguousRange)
{
    const auto report = fake.run();
    QSignalSpy changed(&model, &QAbstractItemModel::dataChanged);
    QSignalSpy ranges(&model, &NodeTableModel::rowsChanged);
    model.update({report->rows[7], report->rows[3], report->rows[4], report->rows[4]});
    ASSERT_EQ(ranges.size(), 2);
    EXPECT_EQ(ranges[0], (QList<QVariant>{3, 4}));
    EXPECT_EQ(ranges[1], (QList<QVariant>{7, 7}));
    EXPECT_EQ(changed.size(), 2);
    NodeReport stranger;
    stranger.row = PairId(999);
    model.update({stranger});
    EXPECT_EQ(ranges.size(), 2);
}

TEST_F(NodeTable, EveryStateHasAWord)
{
    NodeReport report;
    EXPECT_EQ(stateWords(report), "not run");
    report.status = RowStatus::NotComputed;
    report.reason = "needs mylib::crelu";
    EXPECT_EQ(stateWords(report), "not computed: needs mylib::crelu");
    report.status = RowStatus::ShapeMismatch;
    report.reason = "4×8 / 4×16";
    EXPECT_EQ(stateWords(report), "shapes differ 4×8 / 4×16");
    report.status = RowStatus::Failed;
    report.reason = "failed: out of memory";
    EXPECT_EQ(stateWords(report), "failed: out of memory");
    report.status = RowStatus::Mismatch;
    report.metrics.mismatches = 12;
    report.metrics.count = 64;
    EXPECT_EQ(stateWords(report), "differs in 12 of 64");
    report = {};
    report.status = RowStatus::Ok;
    report.metrics.nan = 3;
    report.metrics.snrDb = NAN;
    EXPECT_EQ(stateWords(report), "ok, 3 NaN");
    EXPECT_EQ(snrText(report, Signal::Reference), "NaN");
    report.metrics.snrDb = -INFINITY;
    EXPECT_EQ(snrText(report, Signal::Reference), "−inf");
    report.status = RowStatus::Exact;
    EXPECT_EQ(snrText(report, Signal::Reference), "exact");
}

TEST_F(NodeTable, ComparesWithTheRunLaidUnder)
{
    EditSet edits;
    edits.off.insert(fake.site("head_conv.conv/weight"));
    const auto first = fake.run();
    model.setReport(*fake.run(edits));
    EXPECT_EQ(cell(model, row(9), NodeTableModel::Delta), "");
    model.setBaseline(first);
    EXPECT_EQ(cell(model, row(9), NodeTableModel::Delta), "+1.2");
    EXPECT_EQ(cell(model, row(8), NodeTableModel::Delta), "0.0");
    EXPECT_EQ(cell(model, row(9), NodeTableModel::Snr), "32.5");
}

TEST_F(NodeTable, ASkippedSiteSaysSo)
{
    EXPECT_EQ(cell(model, row(1), NodeTableModel::OwnSite), "int8 affine per tensor");
    EditSet edits;
    edits.off.insert(fake.site("stem.relu/out"));
    model.setReport(*fake.run(edits));
    EXPECT_EQ(cell(model, row(1), NodeTableModel::OwnSite), "float here");
}

TEST_F(NodeTable, SortsNanThenMinusInfThenNumbersAndStatesWithoutDbLastInEitherOrder)
{
    auto report = *fake.run();
    report.rows[row(2).get()].metrics.snrDb = NAN;
    report.rows[row(3).get()].metrics.snrDb = -INFINITY;
    report.rows[row(4).get()].status = RowStatus::Failed;
    model.setReport(report);
    NodeFilter filter;
    const QAbstractItemModelTester tester(&filter, kFatal);
    filter.setSourceModel(&model);
    filter.sort(NodeTableModel::Snr, Qt::AscendingOrder);
    QStringList sorted = names(filter);
    ASSERT_EQ(sorted.size(), kFakeRows);
    EXPECT_EQ(sorted.mid(0, 3), (QStringList{"pool1", "block.conv1", "head_conv.conv"}));
    EXPECT_EQ(sorted[kFakeRows - 2], "x"); // exact: the best
    EXPECT_EQ(sorted.last(), "block.relu1");
    filter.sort(NodeTableModel::Snr, Qt::DescendingOrder);
    sorted = names(filter);
    EXPECT_EQ(sorted.first(), "x");
    EXPECT_EQ(sorted.mid(kFakeRows - 3), (QStringList{"block.conv1", "pool1", "block.relu1"}));
}

TEST_F(NodeTable, FiltersByWordsAndComparisons)
{
    model.setReport(*fake.run());
    NodeFilter filter;
    filter.setSourceModel(&model);
    const auto count = [&](const char *text) {
        filter.setText(QString::fromUtf8(text));
        return filter.rowCount();
    };
    EXPECT_EQ(count(""), kFakeRows);
    EXPECT_EQ(count("CONV kind:activation"), 5); // four convolutions and head_conv.relu
    EXPECT_EQ(count("conv -relu kind:activation"), 4);
    EXPECT_EQ(count("snr<33.8 kind:activation"), 3); // 33.7, 31.3, 32.8
    EXPECT_EQ(count("snr<=33.8 -kind:weight"), 5);
    EXPECT_EQ(count("drop>4"), 2);
    EXPECT_EQ(count("drop>=5.3"), 1);
    EXPECT_EQ(count("snr=inf"), 1);
    EXPECT_EQ(count("snr>-inf"), kFakeRows);
    EXPECT_EQ(count("row<=5"), 5);
    EXPECT_EQ(count("op:conv2d snr<40"), 3);
    EXPECT_EQ(count("nothing<3"), 0);     // no figure of that name: a word, and no row has it
    EXPECT_EQ(count("kind:"), kFakeRows); // being typed
}

TEST_F(NodeTable, AComparisonNeverHoldsWithoutAFigure)
{
    NodeFilter filter;
    filter.setSourceModel(&model);
    filter.setText("snr<20");
    EXPECT_EQ(filter.rowCount(), 0);
    auto report = *fake.run();
    report.rows[row(2).get()].metrics.snrDb = NAN;
    model.setReport(report);
    EXPECT_EQ(names(filter), QStringList{"pool1"}); // NaN is below every number; the row came in by itself
}

class NodesPanelTest : public NodeTable
{
protected:
    Selection selection;
    NodesPanel panel;
    NodesPanelTest()
    {
        panel.setTable(&model);
        panel.setSelection(&selection);
        model.setReport(*fake.run());
    }
};

TEST_F(NodesPanelTest, CopiesShownColumnsAsTabSeparatedText)
{
    panel.setFilter("op:conv2d snr<32");
    const QStringList lines = panel.asText().split('\n', Qt::SkipEmptyParts);
    ASSERT_EQ(lines.size(), 2);
    const QStringList head = lines[0].split('\t');
    const QStringList cells = lines[1].split('\t');
    ASSERT_EQ(head.size(), cells.size());
    EXPECT_EQ(cells[head.indexOf("Node")], "head_conv.conv");
    EXPECT_EQ(cells[head.indexOf("SNR dB")], "31.3");
    EXPECT_FALSE(head.contains("MSE")); // hidden at first
}

TEST_F(NodesPanelTest, ItsSelectionIsTheOneOfTheWindow)
{
    selection.setCurrent(row(9));
    EXPECT_EQ(panel.view()->currentIndex().data(NodeTableModel::PairRole).toInt(), row(9).index);
    panel.setFilter("op:conv2d");
    panel.selectNext(true);
    EXPECT_EQ(selection.current(), row(0)); // wrapped around
    panel.selectNext(true);
    EXPECT_EQ(selection.current(), row(3));
    panel.selectNext(false);
    panel.selectNext(false);
    EXPECT_EQ(selection.current(), row(9));
}

TEST_F(NodesPanelTest, FindsByTheNamesOfTheFile)
{
    panel.setFilter(
        "conv2d_3 -kind:weight"); // the value that the command line reports; the row is called head_conv.conv
    EXPECT_EQ(panel.shownRows(), 1);
    panel.selectNext(true);
    EXPECT_EQ(selection.current(), row(9));
    panel.setFilter("value:conv2d_3 -kind:weight");
    EXPECT_EQ(panel.shownRows(), 1);
    EXPECT_EQ(model.index(row(9).index, NodeTableModel::Value).data().toString(), "conv2d_3");
    EXPECT_TRUE(panel.view()->isColumnHidden(NodeTableModel::Value));
}

TEST_F(NodesPanelTest, FollowingTheSelectionItDoesNotScrollSideways)
{
    panel.resize(600, 200);
    panel.show();
    QCoreApplication::processEvents();
    auto *bar = panel.view()->horizontalScrollBar();
    ASSERT_GT(bar->maximum(), 0);
    for (const int i : {9, 0, 13, 2}) {
        selection.setCurrent(row(i));
        QCoreApplication::processEvents();
        EXPECT_EQ(bar->value(), 0) << i;
    }
    const auto right = [&](int column) {
        return panel.view()->columnViewportPosition(column) + panel.view()->columnWidth(column);
    };
    EXPECT_EQ(panel.view()->columnViewportPosition(NodeTableModel::Index), 0);
    EXPECT_LE(right(NodeTableModel::Drop), panel.view()->viewport()->width());
}

TEST_F(NodesPanelTest, TellsWhatToDoWhenNothingIsShown)
{
    panel.setFilter("nowhere");
    EXPECT_EQ(panel.shownRows(), 0);
    panel.setFilter("");
    EXPECT_EQ(panel.shownRows(), kFakeRows);
}

} // namespace
} // namespace dblame::ui::test

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The SNR plot through its widgets: what QCustomPlot is given, where it is, and what mouse and keyboard do.
#include <cmath>
#include <limits>

#include <QFile>
#include <QImage>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

#include <gtest/gtest.h>

#include "panels_fixture.h"
#include "ui/qcp.h"
#include "ui/snr_chart.h"
#include "ui/snr_plot_panel.h"

namespace dblame::ui
{
namespace
{

using namespace test;

constexpr double kInf = std::numeric_limits<double>::infinity();

class SnrPlot : public ::testing::Test
{
protected:
    void SetUp() override
    {
        pair = makePair();
        table.setPair(pair);
        panel.resize(900, 320);
        panel.setPair(pair);
        panel.setTable(&table);
        panel.setSelection(&selection);
        panel.show();
        settle();
    }

    static void settle()
    {
        QCoreApplication::processEvents();
        QCoreApplication::processEvents();
    }

    QCustomPlot &plot() { return panel.chart().plot(); }

    QCPGraph *graph(const QString &name)
    {
        for (int i = 0; i < plot().graphCount(); ++i)
            if (plot().graph(i)->name() == name)
                return plot().graph(i);
        return nullptr;
    }

    // The one visible item of a kind that satisfies `wanted`.
    template <class Item, class Wanted>
    std::vector<Item *> items(const Wanted &wanted)
    {
        std::vector<Item *> found;
        for (int i = 0; i < plot().itemCount(); ++i)
            if (auto *item = qobject_cast<Item *>(plot().item(i)); item != nullptr && item->visible() && wanted(*item))
                found.push_back(item);
        return found;
    }

    std::vector<QCPItemText *> texts(const QString &start)
    {
        return items<QCPItemText>([&start](const QCPItemText &text) { return text.text().startsWith(start); });
    }

    std::vector<QCPItemTracer *> circles()
    {
        return items<QCPItemTracer>([](const QCPItemTracer &) { return true; });
    }

    QCPItemStraightLine *selectionLine()
    {
        const auto lines = items<QCPItemStraightLine>([](const QCPItemStraightLine &) { return true; });
        return lines.size() == 1 ? lines.front() : nullptr;
    }

    void clickOn(Row row)
    {
        const QPointF at = panel.chart().positionOf(rowId(row)) - QPointF(plot().pos());
        QTest::mouseClick(&plot(), Qt::LeftButton, Qt::NoModifier, at.toPoint());
        settle();
    }

    OpenPairPtr pair;
    NodeTableModel table;
    Selection selection;
    SnrPlotPanel panel;
};

TEST_F(SnrPlot, SaysWhatToDoBeforeARun)
{
    EXPECT_EQ(texts("Not run yet").size(), 1U);
    panel.runStarted();
    settle();
    EXPECT_TRUE(texts("Not run yet").empty());
    panel.setPair(nullptr);
    settle();
    EXPECT_EQ(texts("Open a reference").size(), 1U);
}

TEST_F(SnrPlot, PointsAppearWhereTheyShouldWhileXStaysStill)
{
    const QCPRange before = plot().xAxis->range();
    table.update(makeReports(StemConv, Pool1));
    settle();
    const auto data = graph("SNR")->data();
    int finite = 0;
    for (const QCPGraphData &point : *data)
        finite += std::isfinite(point.value);
    EXPECT_EQ(finite, 3);
    EXPECT_EQ(data->findBegin(1, false)->key, 1);
    EXPECT_EQ(data->findBegin(1, false)->value, 40.72);
    EXPECT_EQ(plot().xAxis->range().lower, before.lower);
    EXPECT_EQ(plot().xAxis->range().upper, before.upper);
    // In pixels: right below each other only if dB and positions are mapped.
    const QPointF relu = panel.chart().positionOf(rowId(StemRelu));
    EXPECT_NEAR(relu.x() - plot().x(), plot().xAxis->coordToPixel(1), 0.5);
    EXPECT_NEAR(relu.y() - plot().y(), plot().yAxis->coordToPixel(40.72), 0.5);
    EXPECT_TRUE(panel.chart().positionOf(rowId(Fc)).isNull());

    table.update(makeReports(BlockConv, Fc));
    settle();
    EXPECT_EQ(plot().xAxis->range().upper, before.upper);
    EXPECT_EQ(graph("SNR")->data()->size(), 10);
}

TEST_F(SnrPlot, ManyUpdatesBeforeTheEventLoopAreOneReplot)
{
    QSignalSpy replots(&plot(), &QCustomPlot::afterReplot);
    for (std::size_t row = StemConv; row <= Fc; ++row)
        table.update({makeReport(static_cast<Row>(row))});
    EXPECT_EQ(replots.count(), 0);
    settle();
    EXPECT_LE(replots.count(), 2);
    EXPECT_GE(replots.count(), 1);
}

TEST_F(SnrPlot, TheVerticalAxisGrowsInSteps)
{
    table.update(makeReports(StemConv, StemRelu));
    settle();
    const double pad = 20 * 0.07;
    EXPECT_NEAR(plot().yAxis->range().lower, 30 - pad, 1e-9);
    EXPECT_NEAR(plot().yAxis->range().upper, 50 + pad, 1e-9);
    const QCPRange still = plot().yAxis->range();
    table.update(makeReports(Pool1, Fc));
    settle();
    EXPECT_EQ(plot().yAxis->range(), still); // all above 30
    NodeReport low = makeReport(Fc);
    low.metrics.snrDb = 21.2;
    table.update({low});
    settle();
    EXPECT_NEAR(plot().yAxis->range().lower, 20 - 30 * 0.07, 1e-9);
}

TEST_F(SnrPlot, CirclesTheRowThatFindDropsNames)
{
    RunReport run = makeRun();
    ASSERT_TRUE(run.largestDrop);
    run.largestFlowDrop.reset();
    table.setReport(run);
    settle();
    ASSERT_EQ(circles().size(), 1U);
    EXPECT_EQ(circles()[0]->position->key(), panel.chart().series().position(run.largestDrop->row));
    EXPECT_EQ(circles()[0]->position->value(), 40.72);
    ASSERT_EQ(texts("largest drop").size(), 1U);
    EXPECT_EQ(texts("largest drop")[0]->text(), "largest drop −5.4 dB");
}

TEST_F(SnrPlot, MarksTheDropByDataFlowWhenItIsAnotherRow)
{
    RunReport run = makeRun();
    run.largestFlowDrop = Drop{rowId(HeadConv), 4.91};
    table.setReport(run);
    settle();
    ASSERT_EQ(circles().size(), 2U);
    ASSERT_EQ(texts("largest in data flow").size(), 1U);
    EXPECT_EQ(texts("largest in data flow")[0]->text(), "largest in data flow −4.9 dB");
    panel.setBothDrops(false);
    settle();
    EXPECT_EQ(circles().size(), 1U);
    run.largestFlowDrop = run.largestDrop;
    panel.setBothDrops(true);
    table.setReport(run);
    settle();
    EXPECT_EQ(circles().size(), 1U);
}

TEST_F(SnrPlot, WhileARunGoesOnTheMarkIsThatOfTheRowsSoFar)
{
    table.setReport(makeRun());
    panel.runStarted();
    NodeReport report = makeReport(Fc);
    report.metrics.snrDb = 12;
    table.update({report});
    settle();
    ASSERT_EQ(texts("largest drop so far").size(), 1U);
    EXPECT_EQ(texts("largest drop so far")[0]->text(), "largest drop so far −20.8 dB");
    RunReport run = makeRun();
    table.setReport(run);
    settle();
    EXPECT_TRUE(texts("largest drop so far").empty());
    EXPECT_EQ(texts("largest drop −5.4 dB").size(), 1U);
}

TEST_F(SnrPlot, InfinitiesAndFailuresAreMarksAtTheEdgeWithWords)
{
    std::vector<NodeReport> reports = makeReports(StemConv, Fc);
    reports[0].status = RowStatus::Exact;
    reports[0].metrics.snrDb = kInf;
    reports[3].metrics.snrDb = -kInf;
    reports[5].status = RowStatus::NotComputed;
    reports[5].reason = "needs mylib::crelu";
    reports[7].metrics.snrDb = std::numeric_limits<double>::quiet_NaN();
    table.update(reports);
    settle();
    ASSERT_EQ(graph("exact")->data()->size(), 1);
    EXPECT_EQ(graph("exact")->data()->at(0)->key, 0);
    EXPECT_EQ(graph("exact")->scatterStyle().shape(), QCPScatterStyle::ssTriangle);
    ASSERT_EQ(graph("minus infinity")->data()->size(), 1);
    EXPECT_EQ(graph("minus infinity")->data()->at(0)->key, 3);
    EXPECT_EQ(graph("minus infinity")->scatterStyle().shape(), QCPScatterStyle::ssTriangleInverted);
    ASSERT_EQ(graph("no figure")->data()->size(), 2);
    EXPECT_EQ(graph("no figure")->data()->at(1)->key, 7);
    EXPECT_EQ(graph("no figure")->scatterStyle().shape(), QCPScatterStyle::ssCross);
    const QRect area = plot().axisRect()->rect();
    EXPECT_LT(panel.chart().positionOf(rowId(StemConv)).y(), area.top() + area.height() / 10);
    EXPECT_GT(panel.chart().positionOf(rowId(Add)).y(), area.bottom() - area.height() / 10);
    EXPECT_EQ(texts("▲ exact    ▼ −inf, silent reference    ✕ NaN, failed or not comparable").size(), 1U);
    // The edge marks stay at the edge when the view moves.
    plot().yAxis->setRange(0, 20);
    EXPECT_LT(panel.chart().positionOf(rowId(StemConv)).y(), area.top() + area.height() / 10);
}

TEST_F(SnrPlot, AClickSelectsTheNearestPoint)
{
    table.setReport(makeRun());
    settle();
    clickOn(HeadConv);
    EXPECT_EQ(selection.current(), rowId(HeadConv));
    const QPointF between = panel.chart().positionOf(rowId(Add)) + QPointF(9, -40) - QPointF(plot().pos());
    QTest::mouseClick(&plot(), Qt::LeftButton, Qt::NoModifier, between.toPoint());
    EXPECT_EQ(selection.current(), rowId(Add));
}

TEST_F(SnrPlot, PendingRowsAreNotClicked)
{
    table.update(makeReports(StemConv, StemRelu));
    settle();
    const double x = plot().xAxis->coordToPixel(8);
    QTest::mouseClick(&plot(), Qt::LeftButton, Qt::NoModifier,
                      QPoint(static_cast<int>(x), plot().axisRect()->center().y()));
    EXPECT_EQ(selection.current(), rowId(StemRelu));
}

TEST_F(SnrPlot, TheSelectionIsALine)
{
    table.setReport(makeRun());
    settle();
    EXPECT_EQ(selectionLine(), nullptr);
    selection.setCurrent(rowId(Pool2));
    settle();
    ASSERT_NE(selectionLine(), nullptr);
    EXPECT_EQ(selectionLine()->point1->key(), 6);
    EXPECT_EQ(selectionLine()->pen().style(), Qt::DashLine);
    EXPECT_EQ(texts("selected").size(), 1U);
    panel.setOrder(PlotOrder::Sorted);
    settle();
    EXPECT_EQ(selectionLine()->point1->key(), panel.chart().series().position(rowId(Pool2)));
    EXPECT_EQ(panel.chart().series().position(rowId(HeadConv)), 0);
    selection.setCurrent(rowId(StemWeight)); // not in the plot
    settle();
    EXPECT_EQ(selectionLine(), nullptr);
}

TEST_F(SnrPlot, ArrowKeysMoveTheSelectionInTheShownOrder)
{
    table.setReport(makeRun());
    settle();
    QTest::keyClick(&panel.chart(), Qt::Key_Right);
    EXPECT_EQ(selection.current(), rowId(StemConv));
    QTest::keyClick(&panel.chart(), Qt::Key_Right);
    EXPECT_EQ(selection.current(), rowId(StemRelu));
    QTest::keyClick(&panel.chart(), Qt::Key_End);
    EXPECT_EQ(selection.current(), rowId(Fc));
    QTest::keyClick(&panel.chart(), Qt::Key_Right);
    EXPECT_EQ(selection.current(), rowId(Fc));
    panel.setOrder(PlotOrder::Sorted);
    settle();
    QTest::keyClick(&panel.chart(), Qt::Key_Home);
    EXPECT_EQ(selection.current(), rowId(HeadConv));
}

TEST_F(SnrPlot, AnEarlierRunIsLaidUnder)
{
    table.setReport(makeRun());
    auto earlier = std::make_shared<RunReport>(makeRun());
    earlier->rows[HeadConv].metrics.snrDb = 29.1;
    earlier->rows[Fc].status = RowStatus::Failed;
    earlier->rows[Fc].metrics.snrDb = std::numeric_limits<double>::quiet_NaN();
    panel.setOverlay(earlier, QStringLiteral("run 2"));
    settle();
    QCPGraph *overlay = graph("earlier run");
    ASSERT_EQ(overlay->data()->size(), 10);
    EXPECT_EQ(overlay->data()->at(7)->value, 29.1);
    EXPECT_TRUE(std::isnan(overlay->data()->at(9)->value));
    EXPECT_EQ(overlay->pen().style(), Qt::DotLine);
    panel.setOrder(PlotOrder::Sorted);
    settle();
    EXPECT_EQ(overlay->data()->at(0)->value, 29.1); // follows its row
    panel.setOverlay(nullptr, {});
    settle();
    EXPECT_EQ(overlay->data()->size(), 0);
}

TEST_F(SnrPlot, TheSignalSwitchIsFollowed)
{
    table.setReport(makeRun());
    table.setSignal(Signal::Candidate);
    settle();
    EXPECT_DOUBLE_EQ(graph("SNR")->data()->at(0)->value, 46.10);
}

TEST_F(SnrPlot, ZoomAndReset)
{
    table.setReport(makeRun());
    settle();
    const QCPRange all = plot().xAxis->range();
    QTest::keyClick(&panel.chart(), Qt::Key_Plus);
    EXPECT_LT(plot().xAxis->range().size(), all.size());
    // A selection outside of the zoomed part brings it into view.
    selection.setCurrent(rowId(Fc));
    EXPECT_TRUE(plot().xAxis->range().contains(9));
    // Panning away from it is not undone by rows that come in.
    plot().xAxis->setRange(0, 3);
    table.update({makeReport(StemConv)});
    settle();
    EXPECT_FALSE(plot().xAxis->range().contains(9));
    plot().xAxis->setRange(-50, 500);
    EXPECT_GE(plot().xAxis->range().lower, all.lower);
    EXPECT_LE(plot().xAxis->range().upper, all.upper);
    QTest::keyClick(&panel.chart(), Qt::Key_Plus);
    QTest::mouseDClick(&plot(), Qt::LeftButton, Qt::NoModifier, plot().axisRect()->center());
    EXPECT_EQ(plot().xAxis->range(), all);
}

TEST_F(SnrPlot, DraggingWithShiftZoomsIntoTheRange)
{
    table.setReport(makeRun());
    settle();
    const int y = plot().axisRect()->center().y();
    const QPoint from(static_cast<int>(plot().xAxis->coordToPixel(2)), y);
    const QPoint to(static_cast<int>(plot().xAxis->coordToPixel(5)), y + 30);
    QTest::mousePress(&plot(), Qt::LeftButton, Qt::ShiftModifier, from);
    QTest::mouseMove(&plot(), to);
    QTest::mouseRelease(&plot(), Qt::LeftButton, Qt::ShiftModifier, to);
    settle();
    EXPECT_NEAR(plot().xAxis->range().lower, 2, 0.1);
    EXPECT_NEAR(plot().xAxis->range().upper, 5, 0.1);
    EXPECT_FALSE(selection.current().valid());
}

TEST_F(SnrPlot, NamesUnderTheAxisWhereTheyFit)
{
    table.setReport(makeRun());
    settle();
    EXPECT_TRUE(plot().xAxis->tickVectorLabels().contains("head_conv.relu"));
    EXPECT_NE(plot().xAxis->tickLabelRotation(), 0);
    const OpenPairPtr longPair = makeLongPair(5000);
    table.setPair(longPair);
    panel.setPair(longPair);
    settle();
    EXPECT_EQ(plot().xAxis->tickLabelRotation(), 0);
    EXPECT_TRUE(plot().xAxis->tickVectorLabels().contains("1000"));
    plot().xAxis->setRange(1990, 2010);
    plot().replot();
    EXPECT_TRUE(plot().xAxis->tickVectorLabels().contains("layers.50.relu0"));
}

TEST_F(SnrPlot, NumbersUnderTheAxisCountWhatIsPlotted)
{
    table.setReport(makeRun());
    panel.resize(900, 140); // too low for names
    settle();
    const QVector<QString> labels = plot().xAxis->tickVectorLabels();
    ASSERT_FALSE(labels.isEmpty());
    EXPECT_EQ(labels.front(), "1"); // the weights, which come first in the table, are not counted
}

TEST_F(SnrPlot, WordsCoverNoPointAndNoOtherWords)
{
    table.setReport(makeRun());
    for (const Row row : {StemRelu, HeadConv, Pool1, BlockRelu}) {
        selection.setCurrent(rowId(row));
        settle();
        plot().replot();
        const auto drop = texts("largest drop"), selected = texts("selected");
        ASSERT_EQ(drop.size(), 1U);
        ASSERT_EQ(selected.size(), 1U);
        const auto rectOf = [](const QCPItemText *text) {
            return QRectF(text->topLeft->pixelPosition(), text->bottomRight->pixelPosition()).normalized();
        };
        EXPECT_FALSE(rectOf(drop[0]).intersects(rectOf(selected[0]))) << row;
        for (int i = int(StemConv); i <= int(Fc); ++i) {
            const QPointF at = panel.chart().positionOf(rowId(static_cast<Row>(i))) - QPointF(plot().pos());
            EXPECT_FALSE(rectOf(drop[0]).contains(at)) << row << " " << i;
            EXPECT_FALSE(rectOf(selected[0]).contains(at)) << row << " " << i;
        }
    }
}

TEST_F(SnrPlot, SaysWhatIsMissingWhereF5WouldDoNothing)
{
    panel.setRunnable(false);
    settle();
    EXPECT_EQ(texts("Not run yet: the inputs are missing").size(), 1U);
}

TEST_F(SnrPlot, WeightsOnRequest)
{
    table.setReport(makeRun());
    panel.setEverything(true);
    settle();
    EXPECT_EQ(panel.chart().series().points.size(), std::size_t(RowCount));
    EXPECT_EQ(graph("exact")->data()->size(), 1); // the input
}

TEST_F(SnrPlot, ExportsByExtension)
{
    table.setReport(makeRun());
    QTemporaryDir folder;
    for (const char *name : {"plot.png", "plot.svg", "plot.pdf"})
        EXPECT_TRUE(panel.exportTo(folder.filePath(name))) << name;
    const QImage image(folder.filePath("plot.png"));
    EXPECT_EQ(image.size(), plot().size() * 2);
    QFile svg(folder.filePath("plot.svg"));
    ASSERT_TRUE(svg.open(QIODevice::ReadOnly));
    const QByteArray drawing = svg.readAll();
    EXPECT_TRUE(drawing.contains("<svg"));
    EXPECT_TRUE(drawing.contains("largest drop"));
    EXPECT_TRUE(drawing.contains("head_conv.conv"));
    EXPECT_TRUE(drawing.trimmed().endsWith("</svg>"));
    QFile pdf(folder.filePath("plot.pdf"));
    ASSERT_TRUE(pdf.open(QIODevice::ReadOnly));
    const QByteArray page = pdf.readAll();
    EXPECT_TRUE(page.startsWith("%PDF-"));
    EXPECT_TRUE(page.trimmed().endsWith("%%EOF"));
    EXPECT_GT(page.size(), 2000);
}

TEST_F(SnrPlot, ExportFailuresSayWhy)
{
    const auto kind = panel.exportTo(QStringLiteral("plot.gif"));
    ASSERT_FALSE(kind);
    EXPECT_EQ(kind.error().code, ErrorCode::Usage);
    EXPECT_NE(kind.error().message.find(".png, .svg or .pdf"), std::string::npos);
    QTemporaryDir folder;
    const auto missing = panel.exportTo(folder.filePath("none/plot.png"));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::Unreadable);
}

TEST_F(SnrPlot, IsDescribedInWords)
{
    table.setReport(makeRun());
    selection.setCurrent(rowId(HeadConv));
    settle();
    const QString words = panel.chart().accessibleDescription();
    EXPECT_TRUE(words.contains("10 of 10 rows")) << words.toStdString();
    EXPECT_TRUE(words.contains("Largest drop −5.4 dB at stem.relu")) << words.toStdString();
    EXPECT_TRUE(words.contains("head_conv.conv, 31.30 dB")) << words.toStdString();
    for (const QToolButton *button : panel.findChildren<QToolButton *>())
        EXPECT_EQ(button->focusPolicy(), Qt::StrongFocus) << button->text().toStdString();
}

TEST_F(SnrPlot, TheTableMayGoFirst)
{
    auto *other = new NodeTableModel;
    other->setPair(pair);
    other->update(makeReports());
    panel.setTable(other);
    delete other;
    panel.refresh();
    EXPECT_TRUE(panel.chart().series().points.empty());
}

} // namespace
} // namespace dblame::ui

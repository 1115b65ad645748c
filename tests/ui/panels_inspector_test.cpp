// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inspector through its widgets.
#include <cmath>
#include <limits>
#include <map>

#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTest>
#include <QToolButton>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "panels_fixture.h"
#include "ui/channel_strip.h"
#include "ui/field_grid.h"
#include "ui/histogram_plot.h"
#include "ui/inspector_panel.h"
#include "ui/inspector_sections.h"
#include "ui/metric_tile.h"
#include "ui/qcp.h"

namespace dblame::ui
{
namespace
{

using namespace test;
using ::testing::DoubleNear;

class Inspector : public ::testing::Test
{
protected:
    void SetUp() override
    {
        pair = makePair();
        table.setPair(pair);
        panel.resize(320, 900);
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

    void show(Row row)
    {
        selection.setCurrent(rowId(row));
        settle();
    }

    // Texts of the labels that are on screen.
    QStringList words() const
    {
        QStringList all;
        for (const QLabel *label : panel.findChildren<QLabel *>())
            if (label->isVisibleTo(&panel) && !label->text().isEmpty())
                all << label->text();
        return all;
    }

    std::map<QString, QString> tiles() const
    {
        std::map<QString, QString> all;
        for (const MetricTile *tile : panel.tiles())
            if (tile->isVisibleTo(&panel))
                all[tile->name()] = tile->value();
        return all;
    }

    QPushButton *button(const QString &text) const
    {
        for (QPushButton *candidate : panel.findChildren<QPushButton *>())
            if (candidate->text() == text)
                return candidate;
        return nullptr;
    }

    OpenPairPtr pair;
    NodeTableModel table;
    Selection selection;
    InspectorPanel panel;
};

TEST_F(Inspector, EmptyStatesSayWhatToDo)
{
    EXPECT_THAT(words(), ::testing::ElementsAre("Select a node in the graph, the plot or the table."));
    panel.setPair(nullptr);
    settle();
    ASSERT_EQ(words().size(), 1);
    EXPECT_TRUE(words()[0].startsWith("Open a reference and a candidate"));
}

TEST_F(Inspector, ShowsTheFiguresOfTheSelectedRow)
{
    table.setReport(makeRun());
    show(HeadConv);
    EXPECT_TRUE(words().contains("head_conv.conv"));
    EXPECT_TRUE(words().contains("aten.conv2d · node 8 of 10 · net.py:41"));
    const auto shown = tiles();
    EXPECT_EQ(shown.at("SNR"), "31.30 dB");
    EXPECT_EQ(shown.at("drop"), "−4.91 dB");
    EXPECT_EQ(shown.at("max |e|"), "0.214");
    EXPECT_EQ(shown.at("cosine"), "0.99963");
    EXPECT_EQ(shown.at("MSE"), "0.00143");
    EXPECT_EQ(shown.at("bias"), "−0.00052");
    EXPECT_EQ(shown.at("before site"), "36.40 dB");
    EXPECT_TRUE(words().contains("worst 11 · 17.2 dB, hidden by 3"));
    EXPECT_TRUE(words().contains("int8 affine per tensor · zp −128"));
    EXPECT_TRUE(words().contains("reference"));
    table.setSignal(Signal::Candidate);
    settle();
    EXPECT_EQ(tiles().at("SQNR"), "31.29 dB");
}

TEST_F(Inspector, FollowsTheRunningRow)
{
    show(HeadConv);
    EXPECT_TRUE(words().contains("Not run yet. Press F5 to compare."));
    EXPECT_TRUE(tiles().empty());
    EXPECT_FALSE(button("Exact histograms")->isEnabled());
    table.update({makeReport(HeadConv)});
    settle();
    EXPECT_EQ(tiles().at("SNR"), "31.30 dB");
    EXPECT_EQ(tiles().at("drop"), "none");
    NodeReport next = makeReport(HeadConv);
    next.metrics.snrDb = 30.125;
    table.update({next});
    settle();
    EXPECT_EQ(tiles().at("SNR"), "30.13 dB");
}

TEST_F(Inspector, StatesHaveWordsAndReasons)
{
    NodeReport report = makeReport(Add);
    report.status = RowStatus::NotComputed;
    report.reason = "needs mylib::crelu";
    table.update({report});
    show(Add);
    EXPECT_TRUE(words().contains("not computed: needs mylib::crelu"));
    EXPECT_TRUE(tiles().empty());
    EXPECT_TRUE(panel.histogram().bins().empty());
    EXPECT_TRUE(words().contains("none: the candidate keeps this value in float"));
}

TEST_F(Inspector, HistogramsOfBothModelsAreDensitiesOnCommonEdges)
{
    table.setReport(makeRun());
    show(HeadConv);
    const DensityBins &bins = panel.histogram().bins();
    ASSERT_EQ(bins.reference.size(), bins.candidate.size());
    double reference = 0;
    for (std::size_t i = 0; i < bins.reference.size(); ++i)
        reference += bins.reference[i] * (bins.edges[i + 1] - bins.edges[i]);
    double counted = 0;
    const NodeReport report = makeReport(HeadConv);
    for (const double count : report.histogram->reference)
        counted += count;
    EXPECT_NEAR(reference, counted, 1e-6);
    QCustomPlot &plot = panel.histogram().plot();
    EXPECT_EQ(plot.graph(0)->data()->size(), static_cast<int>(bins.reference.size()) + 1);
    EXPECT_EQ(plot.yAxis->scaleType(), QCPAxis::stLinear);
    EXPECT_TRUE(words().contains("count · sampled"));
}

TEST_F(Inspector, LogarithmicCountAndErrorByToggle)
{
    table.setReport(makeRun());
    show(HeadConv);
    for (QToolButton *toggle : panel.findChildren<QToolButton *>())
        if (toggle->text() == "log")
            toggle->click();
    EXPECT_EQ(panel.histogram().plot().yAxis->scaleType(), QCPAxis::stLogarithmic);
    EXPECT_GT(panel.histogram().plot().yAxis->range().lower, 0);
    for (QToolButton *toggle : panel.findChildren<QToolButton *>())
        if (toggle->text() == "error")
            toggle->click();
    EXPECT_TRUE(panel.histogram().bins().candidate.empty());
    EXPECT_NEAR(panel.histogram().bins().edges.front(), -0.25, 0.2);
    EXPECT_EQ(panel.histogram().plot().graph(0)->data()->size(), 0);
    EXPECT_GT(panel.histogram().plot().graph(1)->data()->size(), 1);
}

TEST_F(Inspector, ExactHistogramsAreAskedForAndShown)
{
    table.setReport(makeRun());
    show(HeadConv);
    QSignalSpy asked(&panel, &InspectorPanel::detailRequested);
    button("Exact histograms")->click();
    settle();
    ASSERT_EQ(asked.count(), 1);
    EXPECT_EQ(asked[0][0].value<PairId>(), rowId(HeadConv));
    EXPECT_FALSE(button("Exact histograms")->isEnabled()); // on its way
    NodeReport detail = makeReport(HeadConv);
    detail.histogram->sampled = false;
    detail.histogram->reference.assign(48, 7);
    panel.setDetail(detail);
    settle();
    EXPECT_TRUE(words().contains("count · exact"));
    EXPECT_NEAR(panel.histogram().bins().reference[0] * (15.5 / 48), 7, 1e-9);
    // Another run's figures: the exact ones of the run before are no longer its own.
    NodeReport next = makeReport(HeadConv);
    next.metrics.mse *= 2;
    table.update({next});
    settle();
    EXPECT_TRUE(words().contains("count · sampled"));
}

TEST_F(Inspector, ADetailThatFailsSaysWhy)
{
    NodeReport plain = makeReport(HeadConv);
    plain.histogram.reset();
    table.update({plain});
    show(HeadConv);
    button("Exact histograms")->click();
    panel.setDetailFailed(rowId(HeadConv), QStringLiteral("out of memory"));
    settle();
    EXPECT_EQ(panel.histogram().plot().accessibleDescription(), "out of memory");
}

TEST_F(Inspector, JumpLinks)
{
    table.setReport(makeRun());
    show(HeadConv);
    ASSERT_EQ(panel.inputLinks().links().size(), 2U);
    EXPECT_EQ(panel.inputLinks().links()[0].text, "pool2 · 36.2");
    EXPECT_EQ(panel.inputLinks().links()[1].row, rowId(HeadWeight));
    QSignalSpy jumps(&panel, &InspectorPanel::jumpRequested);
    QPushButton *link = panel.outputLinks().buttons()[0];
    EXPECT_NE(link->focusPolicy() & Qt::TabFocus, 0);
    QTest::keyClick(link, Qt::Key_Space);
    ASSERT_EQ(jumps.count(), 1);
    EXPECT_EQ(jumps[0][0].value<PairId>(), rowId(HeadRelu));
    EXPECT_EQ(selection.current(), rowId(HeadRelu));
    settle();
    EXPECT_TRUE(words().contains("head_conv.relu"));
    EXPECT_EQ(panel.inputLinks().links()[0].row, rowId(HeadConv));
}

TEST_F(Inspector, SkipThisLayer)
{
    table.setReport(makeRun());
    show(HeadConv);
    QSignalSpy skips(&panel, &InspectorPanel::skipLayerRequested);
    button("Skip this layer")->click();
    ASSERT_EQ(skips.count(), 1);
    EXPECT_EQ(skips[0][0].value<PairId>(), rowId(HeadConv));
    show(Input); // no layer
    EXPECT_FALSE(button("Skip this layer")->isEnabled());
}

TEST_F(Inspector, ScalesInATableOnDemand)
{
    table.setReport(makeRun());
    show(HeadConv);
    SiteView *weight = panel.siteViews()[1];
    EXPECT_EQ(weight->table(), nullptr);
    ASSERT_TRUE(weight->tableButton()->isVisibleTo(&panel));
    weight->tableButton()->click();
    ASSERT_NE(weight->table(), nullptr);
    EXPECT_EQ(weight->table()->rowCount(), 16);
    EXPECT_EQ(weight->table()->item(10, 1)->text(), "0.011");
    show(HeadRelu);
    EXPECT_FALSE(panel.siteViews()[0]->tableButton()->isVisibleTo(&panel));
}

TEST_F(Inspector, WeightRows)
{
    table.setReport(makeRun());
    show(HeadWeight);
    EXPECT_TRUE(words().contains("Weights"));
    EXPECT_TRUE(words().contains("int8 symmetric per channel (16)"));
    EXPECT_EQ(tiles().at("SNR"), "44.50 dB");
    EXPECT_EQ(panel.outputLinks().links().size(), 3U); // block.conv, head_conv.conv and fc read it
}

TEST_F(Inspector, FitsItsWidth)
{
    table.setReport(makeRun());
    show(HeadConv);
    const auto rightEdge = [this](const QWidget &widget) {
        return widget.mapTo(&panel, QPoint(widget.width(), 0)).x();
    };
    for (const MetricTile *tile : panel.tiles()) {
        if (!tile->isVisibleTo(&panel))
            continue;
        EXPECT_LE(rightEdge(*tile), panel.width()) << tile->name().toStdString();
    }
    EXPECT_LE(rightEdge(panel.channels()), panel.width());
}

TEST_F(Inspector, NumbersAreNeverCut)
{
    table.setReport(makeRun());
    show(HeadConv);
    MetricTile tile;
    tile.setFigure("MSE", "3.197e-05");
    tile.resize(200, 40);
    tile.show();
    settle();
    EXPECT_EQ(tile.shownValue(), "3.197e-05");
    const auto fits = [&tile](const QString &text) {
        tile.resize(tile.fontMetrics().horizontalAdvance(text) + 17, 40);
        settle();
        return tile.shownValue();
    };
    EXPECT_THAT(fits("3.2e-05").toStdString(), ::testing::MatchesRegex("3\\.?[0-9]*e-05"));
    EXPECT_NE(tile.shownValue(), "3.197e-05");
    EXPECT_EQ(tile.value(), "3.197e-05");
    tile.setFigure("SNR", QString::fromUtf8("−12.34 dB"));
    EXPECT_THAT(fits(QString::fromUtf8("−12.3")).toStdString(), ::testing::StartsWith("−12"));
    EXPECT_FALSE(tile.shownValue().contains(QChar(0x2026)));
    // In the panel at its least width: each number is whole.
    panel.resize(280, 900);
    settle();
    for (const MetricTile *shown : panel.tiles())
        if (shown->isVisibleTo(&panel)) {
            EXPECT_FALSE(shown->shownValue().contains(QChar(0x2026))) << shown->name().toStdString();
        }
}

TEST_F(Inspector, AWordWiderThanItsColumnLosesItsMiddle)
{
    FieldGrid grid;
    const QString instance = "activation_post_process_of_a_module_with_a_very_long_path_17";
    grid.setFields({{"instance", instance}, {"scale", "0.05 to 0.07"}});
    grid.resize(240, 60);
    grid.show();
    settle();
    const QLabel *found = nullptr;
    for (const QLabel *label : grid.findChildren<QLabel *>())
        if (label->toolTip() == instance)
            found = label;
    ASSERT_NE(found, nullptr);
    EXPECT_TRUE(found->text().contains(QChar(0x2026)));
    EXPECT_LE(found->fontMetrics().horizontalAdvance(found->text()), found->width());
    EXPECT_TRUE(found->text().endsWith("17"));
    grid.resize(900, 60);
    settle();
    EXPECT_EQ(found->text(), instance);
}

TEST_F(Inspector, SaysWhatIsMissingWhereF5WouldDoNothing)
{
    panel.setRunnable(false);
    show(HeadConv);
    EXPECT_TRUE(words().contains("Not run yet: the inputs are missing."));
}

class Strip : public ::testing::Test
{
protected:
    Strip()
    {
        strip.resize(300, 44);
        strip.show();
    }
    ChannelStrip strip;
};

TEST_F(Strip, OneCellPerChannelWhereThereIsRoom)
{
    strip.setChannels(makeReport(HeadConv).channels, Signal::Reference);
    const auto cells = strip.cells();
    ASSERT_EQ(cells.size(), 16U);
    EXPECT_EQ(cells[11].worst, 11U);
    EXPECT_EQ(strip.cellText(cells[11]), "channel 11: 17.20 dB · 1.7 % of the signal");
    EXPECT_EQ(strip.accessibleDescription(), "worst 11 · 17.2 dB, hidden by 3");
}

TEST_F(Strip, ManyChannelsAreGatheredAndKeepTheirWorst)
{
    std::vector<ChannelMetrics> channels;
    for (int i = 0; i < 4096; ++i)
        channels.push_back({i, i == 2050 ? 3.0 : 40.0, 40.0, 1.0});
    channels[7].snrDb = std::numeric_limits<double>::quiet_NaN();
    strip.setChannels(channels, Signal::Reference);
    const auto cells = strip.cells();
    EXPECT_LE(cells.size(), 100U);
    std::size_t covered = 0, low = 0;
    for (const auto &cell : cells) {
        covered += cell.count;
        low += strip.shown()[cell.worst].snrDb < 9;
    }
    EXPECT_EQ(covered, 4096U);
    EXPECT_EQ(low, 1U);
    EXPECT_EQ(cells[0].worst, 7U); // NaN is never hidden by a neighbour
    EXPECT_TRUE(strip.cellText(cells[0]).startsWith("channels 0–40, worst 7: n/a"));
}

TEST_F(Strip, SortedPutsTheWorstFirst)
{
    strip.setChannels(makeReport(HeadConv).channels, Signal::Reference);
    strip.setSorted(true);
    EXPECT_EQ(strip.shown().front().index, 11);
    EXPECT_EQ(strip.shown().back().index, 3);
}

TEST_F(Strip, KeysAndMouseNameTheCell)
{
    strip.setChannels(makeReport(HeadConv).channels, Signal::Reference);
    QSignalSpy said(&strip, &ChannelStrip::cellChanged);
    QTest::keyClick(&strip, Qt::Key_Right);
    QTest::keyClick(&strip, Qt::Key_Right);
    ASSERT_EQ(said.count(), 2);
    EXPECT_TRUE(said[1][0].toString().startsWith("channel 1: 29.00 dB"));
    QTest::mouseMove(&strip, QPoint(static_cast<int>(300 * 11.5 / 16), 10));
    ASSERT_GE(said.count(), 3);
    EXPECT_TRUE(said.last()[0].toString().startsWith("channel 11: 17.20 dB"));
}

TEST_F(Strip, ColoursFollowTheRamp)
{
    strip.setChannels(makeReport(HeadConv).channels, Signal::Reference);
    const QImage image = strip.grab().toImage();
    const auto at = [&image](double channel) {
        const double ratio = image.devicePixelRatio();
        return image.pixelColor(static_cast<int>(300 * (channel + 0.5) / 16 * ratio), static_cast<int>(10 * ratio));
    };
    EXPECT_EQ(at(11), QColor(0x44, 0x01, 0x54)); // viridis' dark end for the worst
    EXPECT_GT(at(3).lightness(), at(11).lightness());
}

} // namespace
} // namespace dblame::ui

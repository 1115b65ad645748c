// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the panels compute before anything is drawn.
#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "panels_fixture.h"
#include "ui/channel_strip.h"
#include "ui/histogram_bins.h"
#include "ui/panel_text.h"
#include "ui/row_links.h"
#include "ui/site_fields.h"
#include "ui/snr_series.h"

namespace dblame::ui
{
namespace
{

using namespace test;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<Row> rowsOf(const SnrSeries &series)
{
    std::vector<Row> rows;
    for (const SnrPoint &point : series.points)
        rows.push_back(static_cast<Row>(point.row.get()));
    return rows;
}

TEST(SnrSeries, ActivationsInReferenceOrderAreTheDefault)
{
    NodeTableModel table;
    table.setPair(makePair());
    SnrSeries series = makeSeries(table, false, false);
    ASSERT_EQ(series.points.size(), 10U);
    EXPECT_EQ(series.done, 0);
    EXPECT_TRUE(std::isnan(series.lowest));
    EXPECT_EQ(series.position(rowId(StemConv)), 0);
    EXPECT_EQ(series.position(rowId(Fc)), 9);
    EXPECT_EQ(series.position(rowId(StemWeight)), -1);
    EXPECT_EQ(series.position(PairId()), -1);

    table.update(makeReports(StemConv, Pool1));
    series = makeSeries(table, false, false);
    EXPECT_EQ(series.done, 3);
    EXPECT_EQ(series.lowest, 39.94);
    EXPECT_EQ(series.highest, 46.11);
    EXPECT_EQ(series.points[1].db, 40.72);
    EXPECT_EQ(series.points[3].state, PointState::Pending);
}

TEST(SnrSeries, EverythingBringsWeightsAndInputs)
{
    NodeTableModel table;
    table.setPair(makePair());
    table.update(makeReports());
    const SnrSeries series = makeSeries(table, false, true);
    ASSERT_EQ(series.points.size(), std::size_t(RowCount));
    EXPECT_EQ(series.points[Input].state, PointState::Exact);
    EXPECT_EQ(series.points[HeadWeight].db, 44.5);
}

TEST(SnrSeries, SortedPutsTheWorstFirstAndStatesLast)
{
    NodeTableModel table;
    table.setPair(makePair());
    std::vector<NodeReport> reports = makeReports(StemConv, HeadRelu); // Fc stays pending
    reports[1].status = RowStatus::NotComputed;                        // StemRelu
    reports[2].status = RowStatus::Exact;                              // Pool1
    reports[2].metrics.snrDb = kInf;
    reports[3].metrics.snrDb = -kInf; // BlockConv
    reports[4].metrics.snrDb = kNaN;  // BlockRelu
    table.update(reports);
    EXPECT_THAT(rowsOf(makeSeries(table, true, false)),
                ElementsAre(BlockConv, HeadConv, HeadRelu, Add, Pool2, StemConv, Pool1, StemRelu, BlockRelu, Fc));
}

TEST(SnrSeries, ByModuleKeepsRowsOfOneModuleTogether)
{
    NodeTableModel table;
    table.setPair(makePair());
    table.update(makeReports());
    const ModuleOrder order = makeModuleOrder(table, false);
    std::vector<QString> names;
    for (const ModuleBand &band : order.bands)
        names.push_back(band.name);
    EXPECT_THAT(names, ElementsAre("stem", "pool1", "block", "pool2", "head_conv", "fc"));
    EXPECT_EQ(order.bands[2].first, 3);
    EXPECT_EQ(order.bands[2].last, 5);
    const SnrSeries series = makeSeries(table, order);
    EXPECT_EQ(series.points.size(), 10U);
    EXPECT_EQ(series.position(rowId(Add)), 5);
}

TEST(SnrSeries, NanElementsFlagAPointThatHasANumber)
{
    NodeTableModel table;
    table.setPair(makePair());
    NodeReport report = makeReport(Add);
    report.metrics.nan = 3;
    table.update({report});
    const SnrSeries series = makeSeries(table, false, false);
    const SnrPoint &point = series.points[5];
    EXPECT_EQ(point.state, PointState::Value);
    EXPECT_TRUE(point.flagged);
}

TEST(SnrSeries, DropSoFarIsTheFinalOneOnceAllRowsAreIn)
{
    NodeTableModel table;
    table.setPair(makePair());
    EXPECT_FALSE(dropSoFar(table));
    table.update(makeReports(StemConv, StemConv));
    EXPECT_FALSE(dropSoFar(table));
    table.update(makeReports(StemRelu, Fc));
    const RunReport run = makeRun();
    ASSERT_TRUE(run.largestDrop);
    ASSERT_TRUE(dropSoFar(table));
    EXPECT_EQ(dropSoFar(table)->row, run.largestDrop->row);
    EXPECT_EQ(dropSoFar(table)->row, rowId(StemRelu));
    EXPECT_DOUBLE_EQ(dropSoFar(table)->db, run.largestDrop->db);
}

TEST(SteppedRange, GrowsInStepsOfFiveAndNeverShrinks)
{
    SteppedRange range;
    range.include(kNaN);
    EXPECT_TRUE(range.empty());
    range.include(46.1);
    EXPECT_EQ(range.lower(), 30);
    EXPECT_EQ(range.upper(), 50);
    range.include(31.3);
    EXPECT_EQ(range.lower(), 30);
    range.include(29.9);
    EXPECT_EQ(range.lower(), 25);
    range.include(kInf);
    range.include(50.1);
    EXPECT_EQ(range.upper(), 55);
    range.include(40);
    EXPECT_EQ(range.lower(), 25);
    EXPECT_EQ(range.upper(), 55);
}

TEST(Channels, TheLoudChannelHidesTheWorstOne)
{
    const ChannelSummary summary = summarizeChannels(makeReport(HeadConv).channels, Signal::Reference);
    ASSERT_TRUE(summary.worst);
    EXPECT_EQ(summary.worst->index, 11);
    EXPECT_EQ(summary.worstDb, 17.2);
    EXPECT_EQ(summary.hiddenBy, 3);
    EXPECT_EQ(summary.below, 0);
    EXPECT_EQ(worstChannelText(summary), "worst 11 · 17.2 dB, hidden by 3");
    EXPECT_EQ(lowChannelsText(summary), "");
}

TEST(Channels, FifteenOfSixteenBelowNineAreCounted)
{
    std::vector<ChannelMetrics> channels;
    for (int i = 0; i < 16; ++i)
        channels.push_back({i, i == 5 ? 40.0 : 8.0, i == 5 ? 40.0 : 8.0, i == 5 ? 1e6 : 1.0});
    const ChannelSummary summary = summarizeChannels(channels, Signal::Reference);
    EXPECT_EQ(summary.below, 15);
    EXPECT_EQ(summary.hiddenBy, 5);
    EXPECT_EQ(lowChannelsText(summary), "15 of 16 below 9 dB");
}

TEST(Channels, EqualChannelsHideNothing)
{
    std::vector<ChannelMetrics> channels;
    for (int i = 0; i < 8; ++i)
        channels.push_back({i, i == 6 ? 12.0 : 30.0, 30.0, 1.0});
    const ChannelSummary summary = summarizeChannels(channels, Signal::Reference);
    EXPECT_EQ(summary.worst->index, 6);
    EXPECT_FALSE(summary.hiddenBy);
    EXPECT_EQ(worstChannelText(summary), "worst 6 · 12.0 dB");
    EXPECT_EQ(summarizeChannels(channels, Signal::Candidate).worst->index,
              0); // the other convention has its own figures
}

TEST(Channels, NanAndExactChannels)
{
    const ChannelSummary summary =
        summarizeChannels({{0, kNaN, kNaN, 1}, {1, kInf, kInf, 1}, {2, kInf, kInf, 1}}, Signal::Reference);
    EXPECT_EQ(worstChannelText(summary), "all exact");
    EXPECT_TRUE(std::isnan(summary.lowest));
    EXPECT_EQ(worstChannelText(summarizeChannels({}, Signal::Reference)), "");
}

double total(const std::vector<double> &edges, const std::vector<double> &densities)
{
    double sum = 0;
    for (std::size_t i = 0; i < densities.size(); ++i)
        sum += densities[i] * (edges[i + 1] - edges[i]);
    return sum;
}

TEST(DensityBins, DividesByTheWidth)
{
    const DensityBins bins = densityBins({0, 1, 3}, {10, 10}, {4, 0}, 128);
    EXPECT_THAT(bins.reference, ElementsAre(10, 5));
    EXPECT_THAT(bins.candidate, ElementsAre(4, 0));
}

TEST(DensityBins, CutsEmptyEndsAndKeepsBothSidesOnTheSameEdges)
{
    const DensityBins bins = densityBins({-3, -2, -1, 0, 1, 2}, {0, 1, 1, 0, 0}, {0, 0, 1, 1, 0}, 128);
    EXPECT_THAT(bins.edges, ElementsAre(-2, -1, 0, 1));
    EXPECT_THAT(bins.reference, ElementsAre(1, 1, 0));
    EXPECT_THAT(bins.candidate, ElementsAre(0, 1, 1));
}

TEST(DensityBins, BinsTooNarrowToSeeAreSpreadWithoutLosingCounts)
{
    // Widths halve towards zero, as bins by float bits do.
    std::vector<double> edges, counts;
    edges.push_back(0);
    for (int i = 40; i >= 0; --i) {
        edges.push_back(std::ldexp(8.0, -i));
        counts.push_back(100 + i);
    }
    const DensityBins bins = densityBins(edges, counts, counts, 64);
    ASSERT_EQ(bins.reference.size(), 64U);
    const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
    EXPECT_THAT(total(bins.edges, bins.reference), DoubleNear(all, 1e-6));
    EXPECT_THAT(total(bins.edges, bins.candidate), DoubleNear(all, 1e-6));
    EXPECT_DOUBLE_EQ(bins.edges[1] - bins.edges[0], 8.0 / 64);
    // The widest bin, 4..8 with 100 counts, is half of the range: each of its 32 parts has the same share.
    EXPECT_THAT(bins.reference[40] * 8.0 / 64, DoubleNear(100.0 / 32, 1e-9));
}

TEST(DensityBins, NothingToShow)
{
    EXPECT_TRUE(densityBins({}, {}, {}).empty());
    EXPECT_TRUE(densityBins({0, 1, 2}, {0, 0}, {0, 0}).empty());
    EXPECT_TRUE(densityBins({0, 1}, {1, 2}, {}).empty()); // sizes that do not fit
}

TEST(RowLinks, NearestPairedRowsOnBothSides)
{
    const RowLinks links(makePair());
    EXPECT_THAT(links.inputs(rowId(HeadConv)), ElementsAre(rowId(Pool2), rowId(HeadWeight)));
    EXPECT_THAT(links.outputs(rowId(HeadConv)), ElementsAre(rowId(HeadRelu)));
    // Passes through the alias node, which has no row.
    EXPECT_THAT(links.inputs(rowId(Pool2)), ElementsAre(rowId(Add)));
    EXPECT_THAT(links.outputs(rowId(Add)), ElementsAre(rowId(Pool2)));
    EXPECT_THAT(links.outputs(rowId(Pool1)), ElementsAre(rowId(BlockConv), rowId(Add)));
    EXPECT_THAT(links.outputs(rowId(StemWeight)), ElementsAre(rowId(StemConv)));
    EXPECT_TRUE(links.inputs(rowId(Input)).empty());
    EXPECT_TRUE(links.outputs(rowId(Fc)).empty());
    EXPECT_TRUE(RowLinks().inputs(rowId(Fc)).empty());
}

QString fieldOf(const std::vector<Field> &fields, const QString &name)
{
    for (const Field &field : fields)
        if (field.name == name)
            return field.value;
    return QStringLiteral("(absent)");
}

TEST(SiteFields, TellTheQuantizersOfARow)
{
    const OpenPairPtr pair = makePair();
    const std::vector<SiteSection> sections = siteSections(*pair, rowId(HeadConv), makeReport(HeadConv));
    ASSERT_EQ(sections.size(), 2U);
    const std::vector<Field> &output = sections[0].fields;
    EXPECT_EQ(fieldOf(output, "output"), "int8 affine per tensor · zp −128");
    EXPECT_EQ(fieldOf(output, "scale"), "0.06077");
    EXPECT_EQ(fieldOf(output, "range"), "[0, 15.5]");
    EXPECT_EQ(fieldOf(output, "use"), "clipped 0.4 %, unused 3 %");
    EXPECT_EQ(fieldOf(output, "instance"), "activation_post_process_9, shared with head_conv.relu/out");
    EXPECT_EQ(fieldOf(output, "group"), "same grid as head_conv.relu/out");
    EXPECT_EQ(fieldOf(sections[1].fields, "weight"), "int8 symmetric per channel (16)");
    EXPECT_EQ(sections[1].scale.size(), 16U);
}

TEST(SiteFields, SayWhenASiteIsOff)
{
    const OpenPairPtr pair = makePair();
    NodeReport report = makeReport(HeadConv);
    report.sites[0].on = false;
    report.sites[0].change = "float here";
    EXPECT_EQ(fieldOf(siteSections(*pair, rowId(HeadConv), report)[0].fields, "state"), "off: float here");
}

TEST(SiteFields, TellThePairing)
{
    const OpenPairPtr pair = makePair();
    const std::vector<Field> fields = rowFields(*pair, rowId(HeadConv), makeReport(HeadConv));
    EXPECT_EQ(fieldOf(fields, "paired by"), "from_node → conv2d_3; same innermost source conv2d_3");
    EXPECT_EQ(fieldOf(fields, "folded"), "batch_norm_3");
    EXPECT_EQ(fieldOf(fields, "shape"), "32×16×2×2");
    EXPECT_EQ(fieldOf(fields, "reference"), "[−6.1, 9.4]");
    EXPECT_EQ(fieldOf(fields, "elements"), "4,096 in 2 batches");
    EXPECT_EQ(rowSubtitle(*pair, rowId(HeadConv)), "aten.conv2d · node 8 of 10 · net.py:41");
    EXPECT_EQ(rowSubtitle(*pair, rowId(HeadWeight)), "head_conv.conv.weight · weight 2 of 2");
}

TEST(PanelText, SpellsFigures)
{
    EXPECT_EQ(dbUnitText(31.304, 2), "31.30 dB");
    EXPECT_EQ(dbUnitText(kInf, 2), "exact");
    EXPECT_EQ(lossText(5.4, 1), "−5.4");
    EXPECT_EQ(lossText(-2, 1), "+2.0");
    EXPECT_EQ(shareText(0.004), "0.4 %");
    EXPECT_EQ(shareText(0.0001), "below 0.1 %");
    EXPECT_EQ(shareText(0), "0 %");
    EXPECT_EQ(countText(1203456), "1,203,456");
    EXPECT_EQ(elideLeft("layers.0.attention.query", 10), "…ion.query");
}

} // namespace
} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Skipping, re-specifying and rerunning: what goes back to float, what is refused, and that a rerun equals a full run.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "comparison_support.h"
#include "core/selector.h"

namespace dblame::test
{

namespace
{

EditSet everythingOff(const OpenedPair &pair)
{
    const auto selector = parseSelector("module:.*");
    auto edits = selectForSkip(*selector, *pair.candidate, pair.comparison->sites());
    if (!edits) {
        ADD_FAILURE() << edits.error().text();
        return {};
    }
    return *edits;
}

EditSet skip(const OpenedPair &pair, const std::string &text)
{
    const auto selector = parseSelector(text);
    if (!selector) {
        ADD_FAILURE() << selector.error().text();
        return {};
    }
    auto edits = selectForSkip(*selector, *pair.candidate, pair.comparison->sites());
    if (!edits) {
        ADD_FAILURE() << edits.error().text();
        return {};
    }
    return *edits;
}

bool mentions(const std::vector<std::string> &texts, const std::string &part)
{
    return std::any_of(texts.begin(), texts.end(),
                       [&](const std::string &t) { return t.find(part) != std::string::npos; });
}

class SkipAll : public testing::TestWithParam<std::pair<const char *, const char *>>
{
};

TEST_P(SkipAll, GivesTheFloatModelBack)
{
    const auto [folder, reference] = GetParam();
    const OpenedPair pair = openPair(std::string("golden/") + folder, reference);
    ASSERT_NE(pair.comparison, nullptr);
    const RunReport before = runOrFail(*pair.comparison, {}, plainOptions());
    const RunReport report = runOrFail(*pair.comparison, everythingOff(pair), plainOptions());
    const auto &pairs = pair.comparison->alignment().pairs;
    bool wasWorse = false;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (pairs[i].kind != RowKind::Activation && pairs[i].kind != RowKind::Output)
            continue;
        EXPECT_GT(report.rows[i].metrics.snrDb, 110.0) << pair.reference->graph().value(pairs[i].ref).name;
        wasWorse = wasWorse || before.rows[i].metrics.snrDb < 60.0;
    }
    EXPECT_TRUE(wasWorse);
    EXPECT_FALSE(mentions(report.warnings, "not quantization"));
}

INSTANTIATE_TEST_SUITE_P(
    Forms, SkipAll,
    testing::Values(std::pair{"tinyconv_xnnpack", "float.pt2"}, std::pair{"tinyconv_xnnpack", "raw_export.pt2"},
                    std::pair{"tinyconv_xnnpack_pt", "float.pt2"}, std::pair{"tinyconv_dynbatch", "float.pt2"},
                    std::pair{"tinyconv_coreai", "float.pt2"}, std::pair{"cfg_qat", "raw_export.pt2"},
                    std::pair{"cfg_dynamic", "float.pt2"}, std::pair{"toy_w8a8", "float.pt2"},
                    std::pair{"toy_w4block", "float.pt2"}, std::pair{"toy_palette", "float.pt2"},
                    std::pair{"transformer_xnnpack", "float.pt2"}, std::pair{"transformer_dynamic", "float.pt2"},
                    std::pair{"transformer_coreai", "float.pt2"}),
    [](const auto &each) {
        const std::string file = each.param.second;
        return std::string(each.param.first) + "_" + file.substr(0, file.find('.'));
    });

TEST(SkipAllReport, SaysThatTheRestIsNotQuantization)
{
    const OpenedPair pair = openPair("golden/coreai_bn_eps");
    ASSERT_NE(pair.comparison, nullptr);
    EXPECT_TRUE(mentions(pair.comparison->alignment().notes, "eps 1e-05 in the candidate, 0.001 in the reference"));
    const RunReport report = runOrFail(*pair.comparison, everythingOff(pair), plainOptions());
    ASSERT_EQ(report.outputSnrDb.size(), 1U);
    EXPECT_NEAR(report.outputSnrDb.front(), 7.79, 0.01);
    EXPECT_TRUE(mentions(report.warnings, "the difference is not quantization"));
}

TEST(SkipAllReport, NamesWeightsThatLeaveNoTrace)
{
    // Groups of two channels of nine weights: sixteen entries for eighteen values cannot be told from floats.
    const OpenedPair pair = openPair("golden/toy_palette_g2");
    ASSERT_NE(pair.comparison, nullptr);
    const RunReport report = runOrFail(*pair.comparison, everythingOff(pair), plainOptions());
    EXPECT_TRUE(mentions(report.warnings, "nothing in the file says how (conv.weight)"));
}

TEST(SkipOne, ConvInputIsBypassedForThatReaderOnly)
{
    const OpenedPair pair = openPair("golden/tinyconv_xnnpack");
    ASSERT_NE(pair.comparison, nullptr);
    const EditSet edits = skip(pair, "module:block.conv1");
    // max_pool2d feeds conv1 and the residual add: its site stays for the add.
    const Plan plan = *pair.comparison->plan(edits);
    bool weight = false, edge = false;
    for (const PlannedChange &change : plan.changes) {
        weight = weight || (change.kind == ChangeKind::Off && change.id == "block.conv1/weight");
        edge = edge || (change.kind == ChangeKind::Bypassed && change.id == "block.conv1/in[0]");
    }
    EXPECT_TRUE(weight);
    EXPECT_TRUE(edge);
    const RunReport plain = runOrFail(*pair.comparison, {}, plainOptions());
    const RunReport report = runOrFail(*pair.comparison, edits, plainOptions());
    const auto snr = [&](const RunReport &r, const char *name) { return r.rows[pair.rowOf(name).get()].metrics.snrDb; };
    EXPECT_EQ(snr(report, "relu"), snr(plain, "relu"));             // upstream
    EXPECT_EQ(snr(report, "max_pool2d"), snr(plain, "max_pool2d")); // its site is still there
    EXPECT_GT(snr(report, "conv2d_1"), snr(plain, "conv2d_1") + 0.5);
    EXPECT_EQ(report.skipped, (std::vector<std::string>{"block.conv1/in[0]", "block.conv1/weight"}));
}

TEST(SkipOne, ChangedWeightIsRefusedAndTheActivationsAreOffered)
{
    // This raw export holds other weights than the model that was quantized (it was exported before training).
    const OpenedPair pair = openPair("golden/transformer_xnnpack", "raw_export.pt2");
    ASSERT_NE(pair.comparison, nullptr);
    const Plan plan = *pair.comparison->plan(skip(pair, "module:head"));
    bool refused = false;
    for (const PlannedChange &change : plan.changes)
        if (change.kind == ChangeKind::Refused && change.id == "head/weight") {
            refused = true;
            EXPECT_NE(change.text.find("changed"), std::string::npos) << change.text;
            EXPECT_NE(change.text.find("activations can be skipped"), std::string::npos) << change.text;
        }
    EXPECT_TRUE(refused);
}

TEST(SkipOne, GridGroupSaysThatOneMemberAloneChangesLittle)
{
    const OpenedPair pair = openPair("golden/tinyconv_xnnpack");
    ASSERT_NE(pair.comparison, nullptr);
    const SiteId relu = pair.comparison->sites().byId("stem.relu/out");
    ASSERT_TRUE(relu.valid());
    EditSet edits;
    edits.off.insert(relu);
    const Plan plan = *pair.comparison->plan(edits);
    EXPECT_TRUE(mentions(plan.notes, "pool1/out"));
}

// Random edits, one after the other: every incremental report equals the full run of a fresh comparison, bit for bit.
class Incremental : public testing::TestWithParam<std::pair<const char *, std::uint64_t>>
{
};

TEST_P(Incremental, EqualsAFullRunBitForBit)
{
    const auto [folder, cacheBytes] = GetParam();
    const OpenedPair pair = openPair(std::string("golden/") + folder);
    ASSERT_NE(pair.comparison, nullptr);
    RunOptions options = plainOptions();
    options.cacheBytes = cacheBytes;
    const auto &sites = pair.comparison->sites().sites;
    ASSERT_FALSE(sites.empty());
    std::mt19937 random(7);
    EditSet edits;
    (void)runOrFail(*pair.comparison, edits, options);
    int partial = 0;
    for (int step = 0; step < 10; ++step) {
        editAtRandom(edits, sites, random);
        const RunReport rerun = runOrFail(*pair.comparison, edits, options);
        partial += rerun.rowsRecomputed < static_cast<int>(rerun.rows.size());
        const OpenedPair fresh = openPair(std::string("golden/") + folder);
        const RunReport full = runOrFail(*fresh.comparison, edits, options);
        EXPECT_EQ(firstDifference(rerun, full), "") << "after edit " << step;
    }
    EXPECT_GT(partial, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Graphs, Incremental,
    testing::Values(std::pair{"tinyconv_xnnpack", 0ULL}, std::pair{"tinyconv_xnnpack", 1ULL << 28U},
                    std::pair{"tinyconv_xnnpack", 300000ULL}, std::pair{"tinyconv_coreai", 1ULL << 28U},
                    std::pair{"toy_palette", 1ULL << 28U}, std::pair{"cfg_dynamic", 1ULL << 28U},
                    std::pair{"transformer_coreai", 1ULL << 28U}),
    [](const auto &each) { return std::string(each.param.first) + "_" + std::to_string(each.param.second); });

TEST(Respecify, MoreBitsForAWeightRaiseItsRow)
{
    const OpenedPair pair = openPair("golden/tinyconv_xnnpack_pt");
    ASSERT_NE(pair.comparison, nullptr);
    const SiteId site = pair.comparison->sites().byId("block.conv2/weight");
    ASSERT_TRUE(site.valid());
    const PairId row = pair.rowOfTarget("block.conv2.weight");
    ASSERT_TRUE(row.valid());
    const auto with = [&](SpecChange change) {
        EditSet edits;
        edits.respecified[site] = change;
        return runOrFail(*pair.comparison, edits, plainOptions()).rows[row.get()].metrics.snrDb;
    };
    const double plain = runOrFail(*pair.comparison, {}, plainOptions()).rows[row.get()].metrics.snrDb;
    // The site's own spec, computed from the reference's weight, is what the file holds.
    EXPECT_NEAR(with({8, Granularity::PerTensor, {}, 32}), plain, 1e-6);
    // A bit is worth 6.02 dB as long as rounding is uniform.
    EXPECT_NEAR(with({10, Granularity::PerTensor, {}, 32}) - plain, 12.04, 1.0);
    EXPECT_GT(with({8, Granularity::PerChannel, {}, 32}), plain);
}

TEST(Runs, CancelledRunLeavesTheLastOne)
{
    const OpenedPair pair = openPair("golden/tinyconv_xnnpack");
    ASSERT_NE(pair.comparison, nullptr);
    RunOptions options = plainOptions();
    options.cacheBytes = 1U << 28U;
    const RunReport first = runOrFail(*pair.comparison, {}, options);
    std::stop_source stop;
    stop.request_stop();
    NullSink sink;
    const auto cancelled = pair.comparison->run(everythingOff(pair), options, sink, stop.get_token());
    ASSERT_FALSE(cancelled);
    EXPECT_EQ(cancelled.error().code, ErrorCode::Cancelled);
    const RunReport again = runOrFail(*pair.comparison, {}, options);
    EXPECT_EQ(again.rowsRecomputed, 0);
    EXPECT_EQ(firstDifference(first, again), "");
}

TEST(Runs, DetailGivesExactHistogramsOfTheSameRow)
{
    const OpenedPair pair = openPair("golden/tinyconv_xnnpack");
    ASSERT_NE(pair.comparison, nullptr);
    RunOptions options = plainOptions();
    options.cacheBytes = 1U << 28U;
    const RunReport report = runOrFail(*pair.comparison, {}, options);
    const PairId row = pair.rowOf("conv2d_2");
    const auto detail = pair.comparison->detail(row, {});
    ASSERT_TRUE(detail) << detail.error().text();
    EXPECT_EQ(detail->metrics.snrDb, report.rows[row.get()].metrics.snrDb);
    ASSERT_TRUE(detail->histogram);
    EXPECT_FALSE(detail->histogram->sampled);
    double counted = 0;
    for (double count : detail->histogram->reference)
        counted += count;
    EXPECT_NEAR(counted, static_cast<double>(detail->metrics.count), 1e-6 * counted);
}

} // namespace

} // namespace dblame::test

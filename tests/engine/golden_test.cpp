// SPDX-License-Identifier: GPL-3.0-or-later
//
// The peers' own tables: torchao's numeric debugger (signal = candidate) and coreai-opt's recipe (signal =
// reference), row by row, within 0.01 dB.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "comparison_support.h"

namespace dblame::test
{

namespace
{

using nlohmann::json;

double decibels(const json &value)
{
    if (!value.is_string())
        return value.get<double>();
    const std::string text = value;
    if (text == "inf")
        return std::numeric_limits<double>::infinity();
    return text == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
}

json readJson(const std::string &path)
{
    std::ifstream file(path);
    return json::parse(file);
}

std::vector<std::string> cases()
{
    std::vector<std::string> result;
    for (const auto &entry : std::filesystem::directory_iterator(dataPath("golden")))
        if (entry.is_directory())
            result.push_back(entry.path().filename());
    std::sort(result.begin(), result.end());
    return result;
}

class Golden : public testing::TestWithParam<std::string>
{
};

// The row a golden line speaks of; names in the peer's memory lack the file's prefixes.
PairId rowFor(const OpenedPair &pair, const json &line)
{
    const std::string name = line.contains("ref_pt2") ? line["ref_pt2"] : line["ref"];
    for (const char *prefix : {"", "p_", "b_", "c_"})
        if (const PairId row = pair.rowOf(prefix + name); row.valid())
            return row;
    if (const PairId row = pair.rowOfTarget(line.value("target", "")); row.valid())
        return row;
    // A placeholder of the file may lack the number that the peer's memory gave it: "input_1" is "input".
    const auto underscore = name.rfind('_');
    return underscore == std::string::npos ? PairId{} : pair.rowOf(name.substr(0, underscore));
}

TEST_P(Golden, EveryRowOfThePeerWithinAHundredthOfADecibel)
{
    const std::string folder = "golden/" + GetParam();
    const json golden = readJson(dataPath(folder + "/golden.json"));
    const OpenedPair pair = openPair(folder);
    ASSERT_NE(pair.comparison, nullptr);
    const RunReport report = runOrFail(*pair.comparison, {}, plainOptions());
    const bool candidateSignal = golden["metric"] == "actual_signal";
    // tinyconv_coreai: PyTorch itself gives other bits behind its convolutions from one CPU to the next; its own
    // check of this table differs by up to 0.303 dB on an AVX-512 machine, where dBlame and PyTorch agree bit for bit.
    const double tolerance = GetParam() == "tinyconv_coreai" ? 0.35 : 0.01;

    int compared = 0;
    for (const json &line : golden["rows"]) {
        if (line["sqnr_db"].is_array())
            continue; // a node that returns a list: its elements are rows of their own here
        const PairId id = rowFor(pair, line);
        if (!id.valid() && line.contains("part")) // getitem nodes are not in the file
            continue;
        ASSERT_TRUE(id.valid()) << "no row for " << line["ref"];
        const NodeReport &row = report.rows[id.get()];
        const AlignedPair &aligned = pair.comparison->alignment().pairs[id.get()];
        const double ours = candidateSignal ? row.metrics.sqnrDb : row.metrics.snrDb;
        const double expected = decibels(line["sqnr_db"]);
        SCOPED_TRACE(line["ref"].get<std::string>());
        if (aligned.refFromCandidate.valid()) {
            // The peer loses the fake-quant of a rewritten norm's weight and prints inf; here it is measured.
            EXPECT_TRUE(std::isinf(expected));
            EXPECT_GT(ours, 40.0);
            EXPECT_LT(ours, 60.0);
        } else if (std::isfinite(expected)) {
            EXPECT_NEAR(ours, expected, tolerance);
        } else if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(ours));
        } else {
            EXPECT_EQ(ours, expected);
        }
        ++compared;
    }
    EXPECT_GT(compared, 3);
    ASSERT_FALSE(report.outputSnrDb.empty());
    const double output = decibels(golden["output_sqnr_db"]);
    if (std::isfinite(output)) // against the original module: its norms are not folded, so 1e-3 dB of float order
        EXPECT_NEAR(report.outputSnrDb.front(), output, std::max(tolerance, 0.01));
    else
        EXPECT_EQ(report.outputSnrDb.front(), output);
}

INSTANTIATE_TEST_SUITE_P(Peers, Golden, testing::ValuesIn(cases()), [](const auto &each) { return each.param; });

TEST(GoldenTables, FourteenPositionsOfTheDigitsNetInOrder)
{
    const OpenedPair pair = openPair("golden/tinyconv_xnnpack");
    ASSERT_NE(pair.comparison, nullptr);
    const std::vector<std::string> expected = {
        "conv2d",   "relu",   "max_pool2d",          "conv2d_1", "relu_1", "conv2d_2", "add", "relu_2", "max_pool2d_1",
        "conv2d_3", "relu_3", "adaptive_avg_pool2d", "flatten",  "linear"};
    std::vector<std::string> positions;
    for (const AlignedPair &row : pair.comparison->alignment().pairs)
        if (row.kind == RowKind::Activation || row.kind == RowKind::Output)
            positions.push_back(pair.reference->graph().value(row.ref).name);
    EXPECT_EQ(positions, expected);
    const RunReport report = runOrFail(*pair.comparison, {}, [] {
        RunOptions options = plainOptions();
        options.signal = Signal::Candidate;
        return options;
    }());
    ASSERT_TRUE(report.largestDrop);
    EXPECT_EQ(report.largestDrop->row, pair.rowOf("relu"));
    EXPECT_NEAR(report.largestDrop->db, 46.107249414559355 - 40.72, 0.01);
}

TEST(GoldenTables, EagerModeOfCoreaiOptByModule)
{
    for (const char *name : {"toy_w8a8", "toy_w8"}) {
        SCOPED_TRACE(name);
        const std::string folder = std::string("golden/") + name;
        const json golden = readJson(dataPath(folder + "/golden_eager.json"));
        const OpenedPair pair = openPair(folder, "float.pt2", "candidate_eager.pt2");
        ASSERT_NE(pair.comparison, nullptr);
        const RunReport report = runOrFail(*pair.comparison, {}, plainOptions());
        std::map<std::string, double> byModule; // the last value in a module, after its site
        const auto &pairs = pair.comparison->alignment().pairs;
        for (std::size_t i = 0; i < pairs.size(); ++i)
            if (const Node *node = pair.reference->graph().producer(pairs[i].ref))
                byModule[node->modulePath()] = report.rows[i].metrics.snrDb;
        for (const json &line : golden["rows"])
            EXPECT_NEAR(byModule.at(line["module"]), decibels(line["sqnr_db"]), 0.01) << line["module"];
        for (const json &line : golden["weights"]) {
            const PairId row = pair.rowOfTarget(line["ref"]);
            ASSERT_TRUE(row.valid()) << line["ref"];
            EXPECT_NEAR(report.rows[row.get()].metrics.snrDb, decibels(line["sqnr_db"]), 0.01) << line["ref"];
        }
    }
}

TEST(GoldenTables, ChannelsShowWhatTheWholeTensorHides)
{
    const json golden = readJson(dataPath("golden/collapse_hidden_pt/golden.json"));
    const OpenedPair pair = openPair("golden/collapse_hidden_pt");
    ASSERT_NE(pair.comparison, nullptr);
    const RunReport report = runOrFail(*pair.comparison, {}, plainOptions());
    const PairId culprit = pair.rowOf("conv2d_1");
    ASSERT_TRUE(culprit.valid());
    const NodeReport &row = report.rows[culprit.get()];
    EXPECT_NEAR(row.metrics.snrDb, 29.8, 0.05);
    const json &expected = golden["per_channel_sqnr_db"]["conv2d_1"];
    ASSERT_EQ(row.channels.size(), expected.size());
    int below = 0;
    for (std::size_t c = 0; c < expected.size(); ++c) {
        EXPECT_NEAR(row.channels[c].snrDb, decibels(expected[c]), 0.01) << "channel " << c;
        below += row.channels[c].snrDb < 9.0;
    }
    EXPECT_EQ(below, 15);
}

} // namespace

} // namespace dblame::test

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/node_report.h"

#include <limits>

#include <gtest/gtest.h>

#include "core/graph_text.h"

namespace dblame
{
namespace
{

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// One row per paired value, with its dB.
struct Fixture {
    Graph graph;
    Alignment alignment;
    RunReport report;

    explicit Fixture(const char *text) : graph(std::move(*parseGraph(text))) {}

    NodeReport &row(RowKind kind, const char *value, double snr, RowStatus status = RowStatus::Ok)
    {
        AlignedPair pair;
        pair.kind = kind;
        pair.ref = pair.refCompared = graph.find(value);
        EXPECT_TRUE(pair.ref.valid()) << value;
        alignment.pairs.push_back(pair);
        NodeReport row;
        row.row = PairId{report.rows.size()};
        row.status = status;
        row.metrics.snrDb = snr;
        row.metrics.sqnrDb = snr;
        report.rows.push_back(row);
        return report.rows.back();
    }
    void find(Signal signal = Signal::Reference) { findDrops(report, alignment, graph, signal); }
};

constexpr const char *kChain = R"(graph {
  input parameter %w: float32[4] "w"
  input user %x: float32[4] "x"
  %a: float32[4] = aten.mul.Tensor(self=%x, other=%w)
  %b: float32[4] = aten.relu.default(self=%a)
  %c: float32[4] = aten.neg.default(self=%b)
  %d: float32[4] = aten.abs.default(self=%c)
  return %d
})";

TEST(FindDrops, InOrderOverFiniteRowsWithoutWeights)
{
    Fixture f(kChain);
    f.row(RowKind::Weight, "w", 5);
    f.row(RowKind::Input, "x", kInf, RowStatus::Exact);
    f.row(RowKind::Activation, "a", 40);
    f.row(RowKind::Activation, "b", kInf, RowStatus::Exact);
    f.row(RowKind::Activation, "c", 32.5);
    f.row(RowKind::Output, "d", 36);
    f.report.rows[0].dropDb = 99; // of a run before
    f.find();
    EXPECT_FALSE(f.report.rows[0].dropDb);
    EXPECT_FALSE(f.report.rows[1].dropDb);
    EXPECT_FALSE(f.report.rows[2].dropDb) << "the first finite row has nothing before it";
    EXPECT_FALSE(f.report.rows[3].dropDb);
    EXPECT_EQ(f.report.rows[4].dropDb, 7.5);
    EXPECT_EQ(f.report.rows[5].dropDb, -3.5);
    ASSERT_TRUE(f.report.largestDrop);
    EXPECT_EQ(f.report.largestDrop->row, PairId{4});
    EXPECT_EQ(f.report.largestDrop->db, 7.5);
}

TEST(FindDrops, FiniteInputCountsAndTheShownSignalDecides)
{
    Fixture f(kChain);
    f.row(RowKind::Input, "x", 50);
    f.row(RowKind::Activation, "a", 20).metrics.sqnrDb = 49;
    f.row(RowKind::Output, "d", 18).metrics.sqnrDb = 10;
    f.find();
    EXPECT_EQ(f.report.largestDrop->row, PairId{1});
    EXPECT_EQ(f.report.largestDrop->db, 30);
    f.find(Signal::Candidate);
    EXPECT_EQ(f.report.largestDrop->row, PairId{2});
    EXPECT_EQ(f.report.largestDrop->db, 39);
    EXPECT_EQ(f.report.rows[1].dropDb, 1.0);
}

TEST(FindDrops, NothingLostNothingMarked)
{
    Fixture f(kChain);
    f.row(RowKind::Activation, "a", 20);
    f.row(RowKind::Activation, "b", 25);
    f.row(RowKind::Output, "d", 25);
    f.find();
    EXPECT_FALSE(f.report.largestDrop);
    EXPECT_FALSE(f.report.largestFlowDrop);
    EXPECT_EQ(f.report.rows[1].dropDb, -5.0);
    EXPECT_EQ(f.report.rows[2].dropDb, 0.0);
}

TEST(FindDrops, RowsWithoutANumberAreNoSteps)
{
    Fixture f(kChain);
    f.row(RowKind::Activation, "a", 40);
    f.row(RowKind::Activation, "b", kNan);
    f.row(RowKind::Activation, "c", 7, RowStatus::Failed); // figures of an earlier batch
    f.row(RowKind::Output, "d", -kInf);
    f.find();
    EXPECT_FALSE(f.report.largestDrop);
    for (std::size_t i = 1; i < 4; ++i) {
        EXPECT_FALSE(f.report.rows[i].dropDb) << i;
        EXPECT_FALSE(f.report.rows[i].flowDropDb) << i;
    }
}

// Two branches: by order the good branch looks like a recovery and the join like a loss.
constexpr const char *kBranches = R"(graph {
  input parameter %w: float32[4] "w"
  input user %x: float32[4] "x"
  %stem: float32[4] = aten.mul.Tensor(self=%x, other=%w)
  %bad: float32[4] = aten.relu.default(self=%stem)
  %view: float32[4] = aten.view.default(self=%bad, size=[4])
  %good: float32[4] = aten.neg.default(self=%stem)
  %join: float32[4] = aten.add.Tensor(self=%view, other=%good)
  return %join
})";

TEST(FindDrops, AlongTheFlowAgainstTheWorstProducer)
{
    Fixture f(kBranches);
    f.row(RowKind::Weight, "w", 3);
    f.row(RowKind::Activation, "stem", 45);
    f.row(RowKind::Activation, "bad", 20);
    f.row(RowKind::Activation, "good", 44);
    f.row(RowKind::Output, "join", 21);
    f.find();
    EXPECT_EQ(f.report.rows[3].dropDb, -24.0);
    EXPECT_EQ(f.report.rows[4].dropDb, 23.0);
    EXPECT_FALSE(f.report.rows[1].flowDropDb) << "a weight is no producer";
    EXPECT_EQ(f.report.rows[2].flowDropDb, 25.0);
    EXPECT_EQ(f.report.rows[3].flowDropDb, 1.0);
    EXPECT_EQ(f.report.rows[4].flowDropDb, -1.0) << "through the unpaired view to the bad branch";
    EXPECT_EQ(f.report.largestDrop->row, PairId{2});
    EXPECT_EQ(f.report.largestFlowDrop->row, PairId{2});
    EXPECT_EQ(f.report.largestFlowDrop->db, 25.0);
}

TEST(FindDrops, TheFlowStopsAtEqualRowsAndPassesUncomputedOnes)
{
    Fixture f(kBranches);
    f.row(RowKind::Activation, "stem", 45);
    f.row(RowKind::Activation, "bad", 0, RowStatus::NotComputed);
    f.row(RowKind::Activation, "good", kInf, RowStatus::Exact);
    f.row(RowKind::Output, "join", 30);
    f.find();
    EXPECT_EQ(f.report.rows[3].flowDropDb, 15.0) << "through bad to stem; good is equal";
    f.report.rows[1].status = RowStatus::Exact;
    f.report.rows[1].metrics.snrDb = kInf;
    f.find();
    EXPECT_FALSE(f.report.rows[3].flowDropDb) << "both producers are equal";
}

TEST(FindDrops, AFoldedNormStandsForItsConvolution)
{
    Fixture f(R"(graph {
  input user %x: float32[4] "x"
  %conv: float32[4] = aten.neg.default(self=%x)
  %norm: float32[4] = aten.abs.default(self=%conv)
  %relu: float32[4] = aten.relu.default(self=%norm)
  return %relu
})");
    f.row(RowKind::Activation, "conv", 33);
    f.alignment.pairs.back().refCompared = f.graph.find("norm");
    f.row(RowKind::Output, "relu", 30);
    f.find();
    EXPECT_EQ(f.report.rows[1].flowDropDb, 3.0);
}

TEST(FindDrops, MultiOutputNodesAndLongUnpairedChains)
{
    std::string text = "graph {\n  input user %x: float32[4] \"x\"\n  (%p, %q) = aten.chunk.default(self=%x)\n";
    text += "  %n0: float32[4] = aten.neg.default(self=%q)\n";
    for (int i = 1; i < 5000; ++i)
        text += "  %n" + std::to_string(i) + ": float32[4] = aten.add.Tensor(self=%n" + std::to_string(i - 1) +
                ", other=%n" + std::to_string(i - 1) + ")\n";
    text += "  return %n4999\n}";
    Fixture f(text.c_str());
    f.row(RowKind::Input, "x", 80);
    f.row(RowKind::Activation, "p", 10);
    f.row(RowKind::Activation, "q", 60);
    f.row(RowKind::Output, "n4999", 50);
    f.find();
    EXPECT_EQ(f.report.rows[1].flowDropDb, 70.0);
    EXPECT_EQ(f.report.rows[2].flowDropDb, 20.0);
    EXPECT_EQ(f.report.rows[3].flowDropDb, 10.0) << "q, not the other output";
}

TEST(NodeReport, StatusNamesAreTheOnesOfTheReport)
{
    EXPECT_STREQ(rowStatusName(RowStatus::Pending), "pending");
    EXPECT_STREQ(rowStatusName(RowStatus::Ok), "ok");
    EXPECT_STREQ(rowStatusName(RowStatus::Exact), "exact");
    EXPECT_STREQ(rowStatusName(RowStatus::Mismatch), "mismatch");
    EXPECT_STREQ(rowStatusName(RowStatus::NotFloat), "not_float");
    EXPECT_STREQ(rowStatusName(RowStatus::ShapeMismatch), "shape_mismatch");
    EXPECT_STREQ(rowStatusName(RowStatus::Failed), "failed");
    EXPECT_STREQ(rowStatusName(RowStatus::NotComputed), "not_computed");
}

TEST(NodeReport, ShownDbFollowsTheSignal)
{
    NodeReport row;
    row.metrics.snrDb = 12;
    row.metrics.sqnrDb = 11;
    EXPECT_EQ(shownDb(row, Signal::Reference), 12);
    EXPECT_EQ(shownDb(row, Signal::Candidate), 11);
}

} // namespace
} // namespace dblame

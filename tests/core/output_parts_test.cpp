// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which runs make up the parts of the loss at the outputs, on a comparison without tensors.
#include "core/output_parts.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dblame
{
namespace
{

using testing::ElementsAre;
using testing::HasSubstr;

// Every site that is on costs its dB: a weight 1, an activation 10, from 60.
class CountingComparison final : public Comparison
{
public:
    explicit CountingComparison(const std::vector<SiteRole> &roles)
    {
        for (const SiteRole role : roles)
            m_sites.sites.emplace_back().role = role;
    }
    [[nodiscard]] const SiteTable &sites() const override { return m_sites; }
    [[nodiscard]] const Alignment &alignment() const override { return m_alignment; }
    [[nodiscard]] Result<Plan> plan(const EditSet &) override { return Plan{}; }
    [[nodiscard]] Result<NodeReport> detail(PairId, std::stop_token) override { return NodeReport{}; }
    [[nodiscard]] Result<RunReport> run(const EditSet &edits, const RunOptions &, ReportSink &sink,
                                        std::stop_token stop) override
    {
        if (m_beforeRun)
            m_beforeRun();
        ++m_runs;
        if (stop.stop_requested())
            return fail(ErrorCode::Cancelled, {}, "the run was stopped");
        sink.progress(0, 2, 1, 2);
        sink.progress(2, 2, 0, 2);
        double db = 60;
        for (std::size_t i = 0; i < m_sites.sites.size(); ++i)
            if (!edits.off.contains(SiteId(i)) && !m_sites.sites[i].watchesOnly)
                db -= m_sites.sites[i].role == SiteRole::Weight ? 1 : 10;
        RunReport report;
        report.outputSnrDb = {db, kNoFigure};
        report.outputSqnrDb = {db + 0.5, kNoFigure};
        return report;
    }

    SiteTable m_sites;
    Alignment m_alignment;
    std::function<void()> m_beforeRun;
    int m_runs = 0;
};

using enum SiteRole;

TEST(OutputParts, EverythingWeightsAndActivations)
{
    CountingComparison comparison({Weight, Output, Weight, Input, Output});
    comparison.m_sites.sites[4].watchesOnly = true; // changes nothing: not worth a switch
    std::vector<std::uint64_t> done;
    std::vector<std::string> what;
    const auto progress = [&](std::uint64_t at, std::uint64_t total, const char *words) {
        EXPECT_EQ(total, 3000U);
        done.push_back(at);
        if (what.empty() || what.back() != words)
            what.emplace_back(words);
    };
    const auto parts = measureOutputParts(comparison, {}, progress, {});
    ASSERT_TRUE(parts.has_value());
    EXPECT_EQ(comparison.m_runs, 3);
    EXPECT_EQ(parts->everything.snrDb[0], 60 - 2 - 20);
    EXPECT_EQ(parts->everything.sqnrDb[0], 60.5 - 2 - 20);
    EXPECT_EQ(parts->everything.sites, 4);
    EXPECT_EQ(parts->weights.snrDb[0], 60 - 2);
    EXPECT_EQ(parts->weights.sites, 2);
    EXPECT_EQ(parts->activations.snrDb[0], 60 - 20);
    EXPECT_EQ(parts->activations.sites, 2);
    EXPECT_THAT(done, ElementsAre(0, 250, 1000, 1000, 1250, 2000, 2000, 2250, 3000));
    EXPECT_THAT(what,
                ElementsAre("measuring the outputs", "measuring the weights alone", "measuring the activations alone"));
    EXPECT_THAT(outputPartsText(*parts), HasSubstr("weights only"));
}

TEST(OutputParts, OfOneKindOnlyNothingIsRunTwice)
{
    CountingComparison weights({Weight, Weight});
    const auto ofWeights = measureOutputParts(weights, {}, {}, {}).value();
    EXPECT_EQ(weights.m_runs, 2);
    EXPECT_EQ(ofWeights.weights.snrDb[0], 58);
    EXPECT_EQ(ofWeights.weights.sites, 2);
    EXPECT_EQ(ofWeights.activations.snrDb[0], 60);
    EXPECT_EQ(ofWeights.activations.sites, 0);

    CountingComparison activations({Output});
    const auto ofActivations = measureOutputParts(activations, {}, {}, {}).value();
    EXPECT_EQ(ofActivations.weights.snrDb[0], 60);
    EXPECT_EQ(ofActivations.activations.snrDb[0], 50);

    CountingComparison none({});
    const auto ofNothing = measureOutputParts(none, {}, {}, {}).value();
    EXPECT_EQ(none.m_runs, 1);
    EXPECT_EQ(ofNothing.weights.snrDb[0], 60);
    EXPECT_EQ(ofNothing.activations.snrDb[0], 60);
}

TEST(OutputParts, StopsBetweenAndInRuns)
{
    CountingComparison comparison({Weight, Output});
    std::stop_source stop;
    comparison.m_beforeRun = [&] {
        if (comparison.m_runs == 1)
            stop.request_stop();
    };
    const auto parts = measureOutputParts(comparison, {}, {}, stop.get_token());
    ASSERT_FALSE(parts.has_value());
    EXPECT_EQ(parts.error().code, ErrorCode::Cancelled);
    EXPECT_EQ(comparison.m_runs, 2);
}

} // namespace
} // namespace dblame

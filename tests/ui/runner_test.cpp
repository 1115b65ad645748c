// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runner.h"

#include <optional>

#include <gtest/gtest.h>

#include "fake_engine.h"
#include "ui/node_table_model.h"
#include "wait.h"

namespace dblame::ui::test
{
namespace
{

OpenRequest digits()
{
    return {"float.pt2", "int8.pt2", {}, {}};
}

// A runner on a fake engine, and everything it said.
struct Stage {
    FakeEngine engine;
    std::optional<Opened> opened;
    std::vector<Error> openErrors, runErrors;
    std::vector<std::shared_ptr<const RunReport>> reports;
    std::vector<EditSet> ranWith;
    std::map<int, NodeReport> rows;
    int rowSignals = 0;
    std::vector<std::pair<Plan, EditSet>> plans;
    std::vector<NodeReport> details;
    std::optional<EngineInfo> info;
    std::optional<RunProgress> progress;
    std::unique_ptr<Runner> runner;

    explicit Stage(EngineSource source = {})
    {
        if (!source)
            source = [this]() -> Result<Engine *> { return &engine; };
        runner = std::make_unique<Runner>(source);
        QObject::connect(runner.get(), &Runner::engineReady, [this](const EngineInfo &i) { info = i; });
        QObject::connect(runner.get(), &Runner::opened, [this](const Opened &o) { opened = o; });
        QObject::connect(runner.get(), &Runner::openFailed, [this](const Error &e) { openErrors.push_back(e); });
        QObject::connect(runner.get(), &Runner::runFailed, [this](const Error &e) { runErrors.push_back(e); });
        QObject::connect(runner.get(), &Runner::runFinished,
                         [this](const std::shared_ptr<const RunReport> &report, const EditSet &edits) {
                             reports.push_back(report);
                             ranWith.push_back(edits);
                         });
        QObject::connect(runner.get(), &Runner::rowsArrived, [this](const std::vector<NodeReport> &arrived) {
            ++rowSignals;
            for (const NodeReport &row : arrived)
                rows[row.row.index] = row;
        });
        QObject::connect(runner.get(), &Runner::planned,
                         [this](const Plan &plan, const EditSet &edits) { plans.emplace_back(plan, edits); });
        QObject::connect(runner.get(), &Runner::detailArrived, [this](const NodeReport &r) { details.push_back(r); });
        QObject::connect(runner.get(), &Runner::runProgressed, [this](const RunProgress &p) { progress = p; });
    }
    ~Stage() { engine.gate.open(); }
    [[nodiscard]] bool idle() const { return !runner->activity(); }
    void openDigits()
    {
        runner->open(digits());
        ASSERT_TRUE(waitUntil([this] { return idle(); }));
        ASSERT_TRUE(opened.has_value());
        ASSERT_TRUE(opened->runnable);
    }
};

TEST(Runner, LoadsTheEngineOnItsOwnThread)
{
    std::thread::id loadedOn;
    FakeEngine engine;
    Stage stage([&]() -> Result<Engine *> {
        loadedOn = std::this_thread::get_id();
        return &engine;
    });
    ASSERT_TRUE(waitUntil([&] { return stage.info.has_value(); }));
    EXPECT_EQ(stage.info->libtorch, "2.13.0");
    EXPECT_NE(loadedOn, std::this_thread::get_id());
}

TEST(Runner, AnEngineThatDoesNotLoadIsSaidAndOpeningSaysItAgain)
{
    Stage stage([]() -> Result<Engine *> { return fail(ErrorCode::Internal, "libdblame_engine.so", "not there"); });
    std::optional<Error> failed;
    QObject::connect(stage.runner.get(), &Runner::engineFailed, [&](const Error &e) { failed = e; });
    ASSERT_TRUE(waitUntil([&] { return failed.has_value(); }));
    EXPECT_EQ(failed->text(), "libdblame_engine.so: not there");
    stage.runner->open(digits());
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    ASSERT_EQ(stage.openErrors.size(), 1U);
    EXPECT_EQ(stage.openErrors[0].message, "not there");
}

TEST(Runner, OpensAndRuns)
{
    Stage stage;
    stage.openDigits();
    EXPECT_EQ(stage.opened->pair->alignment.pairs.size(), static_cast<std::size_t>(kFakeRows));
    stage.runner->run({}, {});
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    ASSERT_EQ(stage.reports.size(), 1U);
    EXPECT_DOUBLE_EQ(stage.reports[0]->outputSnrDb.at(0), 33.92);
    // Every row came through the mailbox as well, before the report.
    EXPECT_EQ(stage.rows.size(), static_cast<std::size_t>(kFakeRows));
    EXPECT_DOUBLE_EQ(stage.rows[kFakeWeights + 1].metrics.snrDb, 46.1);
    EXPECT_NE(stage.engine.thread, std::this_thread::get_id());
}

TEST(Runner, RowsComeWhileTheRunGoesOn)
{
    Stage stage;
    stage.openDigits();
    stage.engine.gate.hold();
    stage.runner->run({}, {});
    stage.engine.gate.allow(3);
    stage.engine.gate.waitForArrivals(4); // three operators are through, the fourth waits
    ASSERT_TRUE(waitUntil([&] { return stage.rows.size() == kFakeWeights + 1 + 3; }));
    EXPECT_TRUE(stage.runner->running());
    EXPECT_TRUE(stage.reports.empty());
    ASSERT_TRUE(stage.progress.has_value());
    EXPECT_EQ(stage.progress->node, 3);
    EXPECT_EQ(stage.progress->nodes, 14);
    stage.engine.gate.open();
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    EXPECT_EQ(stage.reports.size(), 1U);
}

TEST(Runner, CancelStopsAtTheOperatorThatRuns)
{
    Stage stage;
    stage.openDigits();
    stage.engine.gate.hold();
    stage.runner->run({}, {});
    stage.engine.gate.allow(2);
    stage.engine.gate.waitForArrivals(3);
    stage.runner->cancel();
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    ASSERT_EQ(stage.runErrors.size(), 1U);
    EXPECT_EQ(stage.runErrors[0].code, ErrorCode::Cancelled);
    EXPECT_TRUE(stage.reports.empty());
    EXPECT_LE(stage.rows.size(), static_cast<std::size_t>(kFakeWeights + 1 + 2));
    // The next run is whole.
    stage.engine.gate.open();
    stage.runner->run({}, {});
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    EXPECT_EQ(stage.reports.size(), 1U);
}

TEST(Runner, ANewRunReplacesTheOneUnderWayAndItsLateRowsAreDropped)
{
    Stage stage;
    stage.openDigits();
    stage.engine.gate.hold();
    stage.runner->run({}, {});
    stage.engine.gate.allow(5);
    stage.engine.gate.waitForArrivals(6); // rows of the first run are in the mailbox, not drained
    EditSet edits;
    edits.off.insert(SiteId(0)); // the first convolution's weight
    stage.runner->run(edits, {});
    stage.engine.gate.open();
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    ASSERT_EQ(stage.reports.size(), 1U);
    EXPECT_EQ(stage.ranWith[0], edits);
    EXPECT_TRUE(stage.runErrors.empty());
    EXPECT_DOUBLE_EQ(stage.rows[kFakeWeights + 1].metrics.snrDb, 46.1 + kDbPerSite);
    EXPECT_EQ(stage.engine.runs, 2);
}

TEST(Runner, OpeningDuringARunStopsItAndDropsWhatItBrings)
{
    Stage stage;
    stage.openDigits();
    stage.engine.gate.hold();
    stage.runner->run({}, {});
    stage.engine.gate.waitForArrivals(1);
    stage.runner->open({"float.pt2", "other.pt2", {}, {}});
    // The run ends for the window at once, whatever the engine still does.
    ASSERT_EQ(stage.runErrors.size(), 1U);
    EXPECT_EQ(stage.runErrors[0].code, ErrorCode::Cancelled);
    EXPECT_FALSE(stage.runner->running());
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    EXPECT_TRUE(stage.reports.empty());
    EXPECT_TRUE(stage.rows.empty());
    EXPECT_EQ(stage.opened->pair->candidate->info().path, "other.pt2");
}

TEST(Runner, AFailedOpenLeavesThePairThatWasOpen)
{
    Stage stage;
    stage.openDigits();
    const OpenPairPtr before = stage.opened->pair;
    stage.runner->open({"float.pt2", "damaged.pt2", {}, {}});
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    ASSERT_EQ(stage.openErrors.size(), 1U);
    EXPECT_EQ(stage.openErrors[0].where, "damaged.pt2");
    EXPECT_EQ(stage.opened->pair, before);
    stage.runner->run({}, {});
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    EXPECT_EQ(stage.reports.size(), 1U);
}

TEST(Runner, FilesThatDidNotChangeAreNotReadAgain)
{
    Stage stage;
    stage.openDigits();
    EXPECT_EQ(stage.engine.modelsRead, 2);
    OpenRequest other = digits();
    other.candidate = "other.pt2";
    stage.runner->open(other);
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    EXPECT_EQ(stage.engine.modelsRead, 3);
}

TEST(Runner, WithoutInputsThePairIsAlignedButCannotRun)
{
    Stage stage;
    stage.engine.sampleInputs = false;
    stage.runner->open(digits());
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    ASSERT_TRUE(stage.opened.has_value());
    EXPECT_FALSE(stage.opened->runnable);
    ASSERT_TRUE(stage.opened->inputsError.has_value());
    EXPECT_FALSE(stage.opened->pair->alignment.pairs.empty());
    stage.runner->run({}, {});
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    ASSERT_EQ(stage.runErrors.size(), 1U);
    EXPECT_EQ(stage.runErrors[0].code, ErrorCode::Incomparable);
}

TEST(Runner, OnlyTheLatestPlanArrives)
{
    Stage stage;
    stage.openDigits();
    stage.engine.gate.hold();
    stage.runner->run({}, {});
    stage.engine.gate.waitForArrivals(1); // plans queue up behind the run
    EditSet first;
    first.off.insert(SiteId(0));
    EditSet second = first;
    second.off.insert(SiteId(1));
    stage.runner->plan(first);
    stage.runner->plan(second);
    stage.engine.gate.open();
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    ASSERT_EQ(stage.plans.size(), 1U);
    EXPECT_EQ(stage.plans[0].second, second);
    EXPECT_EQ(stage.plans[0].first.changes.size(), 2U);
}

TEST(Runner, DetailAndLayoutComeBackOnTheGuiThread)
{
    Stage stage;
    stage.openDigits();
    std::thread::id computedOn;
    std::thread::id deliveredOn;
    stage.runner->layout([&](std::stop_token) -> Runner::Delivery {
        computedOn = std::this_thread::get_id();
        return [&] { deliveredOn = std::this_thread::get_id(); };
    });
    stage.runner->detail(PairId(7));
    ASSERT_TRUE(waitUntil([&] { return stage.idle(); }));
    EXPECT_NE(computedOn, std::this_thread::get_id());
    EXPECT_EQ(deliveredOn, std::this_thread::get_id());
    ASSERT_EQ(stage.details.size(), 1U);
    EXPECT_EQ(stage.details[0].row, PairId(7));
    EXPECT_FALSE(stage.details[0].histogram->sampled);
}

TEST(Runner, AnExceptionOfAJobBecomesAnError)
{
    Stage stage([]() -> Result<Engine *> { throw std::bad_alloc(); });
    std::optional<Error> failed;
    QObject::connect(stage.runner.get(), &Runner::engineFailed, [&](const Error &e) { failed = e; });
    ASSERT_TRUE(waitUntil([&] { return failed.has_value(); }));
    EXPECT_EQ(failed->code, ErrorCode::Internal);
}

TEST(Runner, QuittingDuringARunStopsTheEngineThread)
{
    Stage stage;
    stage.openDigits();
    stage.engine.gate.hold();
    stage.runner->run({}, {});
    stage.engine.gate.waitForArrivals(1);
    stage.runner.reset(); // returns only when the thread has ended
    EXPECT_TRUE(stage.reports.empty());
    EXPECT_TRUE(stage.runErrors.empty()); // nobody is told any more
}

} // namespace
} // namespace dblame::ui::test

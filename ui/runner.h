// SPDX-License-Identifier: GPL-3.0-or-later
//
// The only concurrency of the window: one engine thread that works through a queue of jobs, and a mailbox that a
// timer on the GUI thread empties. Every job has a number; what comes back from a job that is no longer wanted (a
// run of the pair before, a plan for edits that changed again) is dropped on arrival. All signals are emitted on the
// GUI thread; a run emits at most one rowsArrived per tick, however many nodes it computed.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

#include <QElapsedTimer>
#include <QObject>
#include <QString>
#include <QTimer>

#include "ui/engine_side.h"

namespace dblame::ui
{

struct RunProgress {
    std::int64_t batch = 0, batches = 0, node = 0, nodes = 0;
    double seconds = 0;
};

class Runner : public QObject
{
    Q_OBJECT
public:
    enum Kind { Load, Open, Run, Plan, Preview, Detail, Layout, Parts, KindCount };
    // Runs on the engine thread, synchronously; what it returns runs on the GUI thread, unless the job was replaced.
    using Delivery = std::function<void()>;
    using Task = std::function<Delivery(std::stop_token stop)>;

    // `source` is called on the engine thread, by the job that is queued here: the window is up before torch is.
    // `cacheFolder`: for calibrations, from one process to the next; may be empty.
    explicit Runner(EngineSource source, QObject *parent = nullptr, std::string cacheFolder = {});
    // Stops what runs (at most one operator later) and waits for the thread; nothing is delivered any more.
    ~Runner() override;

    // Replaces everything that is queued or running. A run that is under way ends with runFailed(Cancelled) first.
    void open(OpenRequest request);
    void run(EditSet edits, RunOptions options); // replaces a run that is under way
    void plan(EditSet edits);                    // only the latest is delivered
    void preview(Recipe recipe);                 // only the latest is delivered
    void detail(PairId row);                     // only the latest is delivered
    void layout(Task task);                      // only the latest is delivered
    // What weights and activations cost on their own. Gives way to every other job, and begins again behind it.
    void measureParts(RunOptions options);
    void stopMeasuring();
    // Stops the job that runs and forgets the queued ones; the job answers with ErrorCode::Cancelled.
    void cancel();

    // The job that runs or waits, the most important first; nothing when idle.
    [[nodiscard]] std::optional<Kind> activity() const;
    [[nodiscard]] bool running() const { return m_current[Run] != 0; }
    [[nodiscard]] bool opening() const { return m_current[Open] != 0; }
    [[nodiscard]] bool measuring() const { return m_current[Parts] != 0; }

Q_SIGNALS:
    void engineReady(const dblame::EngineInfo &info);
    void engineFailed(const dblame::Error &error);
    void activityChanged();
    void progressed(const QString &what, quint64 done, quint64 total); // of loading and measuring

    void opened(const dblame::ui::Opened &opened);
    void openFailed(const dblame::Error &error);
    void rowsArrived(const std::vector<dblame::NodeReport> &rows);
    void runProgressed(const dblame::ui::RunProgress &progress);
    void runFinished(std::shared_ptr<const dblame::RunReport> report, const dblame::EditSet &edits);
    void runFailed(const dblame::Error &error);
    void planned(const dblame::Plan &plan, const dblame::EditSet &edits);
    void planFailed(const dblame::Error &error);
    void previewed(const dblame::ui::RecipePreview &preview);
    void previewFailed(const dblame::Error &error);
    void detailArrived(const dblame::NodeReport &report);
    void detailFailed(dblame::PairId row, const dblame::Error &error);
    void partsMeasured(const dblame::OutputParts &parts);
    void partsFailed(const dblame::Error &error);

private:
    using Number = std::uint64_t;
    struct Job {
        Kind kind = Load;
        Number number = 0;
        std::stop_source stop;
        std::function<Delivery(EngineSide &, const Job &)> work; // on the engine thread
    };
    struct Letter {
        Kind kind = Load;
        Number number = 0;
        Delivery deliver;
    };
    struct LoadProgress {
        Number number = 0;
        std::string what;
        std::uint64_t done = 0, total = 0;
    };
    // Everything under m_mutex.
    struct Mailbox {
        std::vector<Letter> letters;
        Number rowsOf = 0; // run that the rows and the progress come from
        std::vector<NodeReport> rows;
        std::unordered_map<std::int32_t, std::size_t> rowAt; // row -> position in rows: the latest figures only
        std::optional<RunProgress> runProgress;
        std::optional<LoadProgress> loadProgress;
    };
    class Sink;

    void submit(Kind kind, std::function<Delivery(EngineSide &, const Job &)> work);
    void forget(const std::function<bool(Kind)> &which); // drops queued jobs, stops the running one
    void work(std::stop_token quit);                     // the engine thread
    void drain();
    void deliver(const Letter &letter);

    RunOptions m_partsOptions;                 // of the measuring that is awaited
    std::array<Number, KindCount> m_current{}; // GUI thread: the job of each kind whose answer is awaited, 0 none
    Number m_lastNumber = 0;
    QElapsedTimer m_runClock;
    QTimer m_drain;

    mutable std::mutex m_mutex;
    std::condition_variable_any m_wake;
    std::deque<Job> m_queue;
    std::optional<std::pair<Kind, std::stop_source>> m_active; // the job on the engine thread
    Mailbox m_mailbox;

    EngineSource m_source;
    std::string m_cacheFolder;
    std::jthread m_thread; // last: joined before anything it uses goes
};

} // namespace dblame::ui

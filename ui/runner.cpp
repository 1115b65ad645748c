// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runner.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace dblame::ui
{

namespace
{

constexpr int kDrainMs = 33; // 30 pictures a second: smooth to the eye, cheap to draw

// The engine throws nothing; what could still come is out of memory, and the window must outlive that.
template <class T, class Function>
Result<T> guarded(Function &&function)
{
    try {
        return function();
    } catch (const std::exception &e) {
        return fail(ErrorCode::Internal, {}, std::string("the engine gave up: ") + e.what());
    }
}

} // namespace

// Takes a run's rows on the engine thread and leaves the latest of each in the mailbox.
class Runner::Sink final : public ReportSink
{
public:
    Sink(Runner &runner, Number number) : m_runner(runner), m_number(number) {}
    void row(const NodeReport &report) override
    {
        const std::lock_guard lock(m_runner.m_mutex);
        Mailbox &box = claim();
        const auto [at, isNew] = box.rowAt.try_emplace(report.row.index, box.rows.size());
        if (isNew)
            box.rows.push_back(report);
        else
            box.rows[at->second] = report;
    }
    void progress(std::int64_t batch, std::int64_t batches, std::int64_t node, std::int64_t nodes) override
    {
        const std::lock_guard lock(m_runner.m_mutex);
        claim().runProgress = RunProgress{batch, batches, node, nodes, 0};
    }

private:
    Mailbox &claim() // with the mutex held
    {
        Mailbox &box = m_runner.m_mailbox;
        if (box.rowsOf != m_number) {
            box.rows.clear();
            box.rowAt.clear();
            box.rowsOf = m_number;
        }
        return box;
    }
    Runner &m_runner;
    Number m_number;
};

Runner::Runner(EngineSource source, QObject *parent, std::string cacheFolder)
    : QObject(parent), m_source(std::move(source)), m_cacheFolder(std::move(cacheFolder))
{
    m_drain.setInterval(kDrainMs);
    connect(&m_drain, &QTimer::timeout, this, &Runner::drain);
    m_thread = std::jthread([this](std::stop_token quit) { work(std::move(quit)); });
    submit(Load, [this](EngineSide &side, const Job &) -> Delivery {
        auto engine = guarded<Engine *>([&] { return side.engine(); });
        if (!engine)
            return [this, error = engine.error()] { Q_EMIT engineFailed(error); };
        return [this, info = (*engine)->info()] { Q_EMIT engineReady(info); };
    });
}

Runner::~Runner()
{
    m_drain.stop();
    {
        const std::lock_guard lock(m_mutex);
        m_queue.clear();
        if (m_active)
            m_active->second.request_stop();
    }
    m_thread.request_stop();
    m_wake.notify_all();
    m_thread.join();
}

void Runner::work(std::stop_token quit)
{
    EngineSide side(m_source, m_cacheFolder);
    while (true) {
        Job job;
        {
            std::unique_lock lock(m_mutex);
            m_wake.wait(lock, quit, [this] { return !m_queue.empty(); });
            if (quit.stop_requested())
                return;
            job = std::move(m_queue.front());
            m_queue.pop_front();
            m_active.emplace(job.kind, job.stop);
        }
        Delivery delivery = job.work(side, job);
        const std::lock_guard lock(m_mutex);
        m_active.reset();
        m_mailbox.letters.push_back({job.kind, job.number, std::move(delivery)});
    }
}

void Runner::submit(Kind kind, std::function<Delivery(EngineSide &, const Job &)> work)
{
    const bool measureAgain = kind != Parts && measuring();
    if (measureAgain)
        forget([](Kind other) { return other == Parts; });
    const Number number = ++m_lastNumber;
    m_current[kind] = number;
    {
        const std::lock_guard lock(m_mutex);
        m_queue.push_back({kind, number, std::stop_source(), std::move(work)});
    }
    m_wake.notify_all();
    m_drain.start();
    if (measureAgain)
        measureParts(m_partsOptions);
    Q_EMIT activityChanged();
}

void Runner::forget(const std::function<bool(Kind)> &which)
{
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_queue, [&](const Job &job) { return which(job.kind); });
    if (m_active && which(m_active->first))
        m_active->second.request_stop();
}

void Runner::open(OpenRequest request)
{
    const bool ranUntilNow = running();
    const bool measuredUntilNow = measuring();
    forget([](Kind kind) { return kind != Load; });
    for (int kind = Open; kind < KindCount; ++kind)
        m_current[static_cast<std::size_t>(kind)] = 0;
    if (ranUntilNow)
        Q_EMIT runFailed(Error{ErrorCode::Cancelled, {}, "the run was stopped to open something else", {}});
    if (measuredUntilNow)
        Q_EMIT partsFailed(Error{ErrorCode::Cancelled, {}, "measuring was stopped to open something else", {}});
    submit(Open, [this, request = std::move(request)](EngineSide &side, const Job &job) -> Delivery {
        const auto progress = [this, number = job.number](std::uint64_t done, std::uint64_t total, const char *what) {
            const std::lock_guard lock(m_mutex);
            m_mailbox.loadProgress = LoadProgress{number, what, done, total};
        };
        auto opened = guarded<Opened>([&] { return side.open(request, progress, job.stop.get_token()); });
        if (!opened)
            return [this, error = opened.error()] { Q_EMIT openFailed(error); };
        return [this, result = std::move(*opened)] { Q_EMIT this->opened(result); };
    });
}

void Runner::run(EditSet edits, RunOptions options)
{
    const auto outdated = [](Kind kind) { return kind == Run || kind == Detail; };
    forget(outdated);
    m_current[Detail] = 0;
    m_runClock.start();
    submit(Run, [this, edits = std::move(edits), options](EngineSide &side, const Job &job) -> Delivery {
        Sink sink(*this, job.number);
        auto report = guarded<RunReport>([&] { return side.run(edits, options, sink, job.stop.get_token()); });
        if (!report)
            return [this, error = report.error()] { Q_EMIT runFailed(error); };
        return [this, edits, result = std::make_shared<const RunReport>(std::move(*report))] {
            Q_EMIT runFinished(result, edits);
        };
    });
}

void Runner::plan(EditSet edits)
{
    forget([](Kind kind) { return kind == Plan; });
    submit(Plan, [this, edits = std::move(edits)](EngineSide &side, const Job &) -> Delivery {
        auto plan = guarded<dblame::Plan>([&] { return side.plan(edits); });
        if (!plan)
            return [this, error = plan.error()] { Q_EMIT planFailed(error); };
        return [this, edits, result = std::move(*plan)] { Q_EMIT planned(result, edits); };
    });
}

void Runner::preview(Recipe recipe)
{
    forget([](Kind kind) { return kind == Preview; });
    submit(Preview, [this, recipe = std::move(recipe)](EngineSide &side, const Job &) -> Delivery {
        auto preview = guarded<RecipePreview>([&] { return side.preview(recipe); });
        if (!preview)
            return [this, error = preview.error()] { Q_EMIT previewFailed(error); };
        return [this, result = std::move(*preview)] { Q_EMIT previewed(result); };
    });
}

void Runner::detail(PairId row)
{
    forget([](Kind kind) { return kind == Detail; });
    submit(Detail, [this, row](EngineSide &side, const Job &job) -> Delivery {
        auto report = guarded<NodeReport>([&] { return side.detail(row, job.stop.get_token()); });
        if (!report)
            return [this, row, error = report.error()] { Q_EMIT detailFailed(row, error); };
        return [this, result = std::move(*report)] { Q_EMIT detailArrived(result); };
    });
}

void Runner::layout(Task task)
{
    forget([](Kind kind) { return kind == Layout; });
    submit(Layout, [task = std::move(task)](EngineSide &, const Job &job) -> Delivery {
        auto delivery = guarded<Delivery>([&]() -> Result<Delivery> { return task(job.stop.get_token()); });
        return delivery ? *delivery : Delivery([] {});
    });
}

void Runner::measureParts(RunOptions options)
{
    forget([](Kind kind) { return kind == Parts; });
    m_partsOptions = options;
    submit(Parts, [this, options](EngineSide &side, const Job &job) -> Delivery {
        const auto progress = [this, number = job.number](std::uint64_t done, std::uint64_t total, const char *what) {
            const std::lock_guard lock(m_mutex);
            m_mailbox.loadProgress = LoadProgress{number, what, done, total};
        };
        auto parts = guarded<OutputParts>([&] { return side.measureParts(options, progress, job.stop.get_token()); });
        if (!parts)
            return [this, error = parts.error()] { Q_EMIT partsFailed(error); };
        return [this, result = std::move(*parts)] { Q_EMIT partsMeasured(result); };
    });
}

void Runner::stopMeasuring()
{
    if (!measuring())
        return;
    forget([](Kind kind) { return kind == Parts; });
    m_current[Parts] = 0;
    Q_EMIT partsFailed(Error{ErrorCode::Cancelled, {}, "measuring was stopped", {}});
    Q_EMIT activityChanged();
}

void Runner::cancel()
{
    std::vector<Kind> dropped;
    {
        const std::lock_guard lock(m_mutex);
        for (const Job &job : m_queue)
            if (job.kind != Load)
                dropped.push_back(job.kind);
        std::erase_if(m_queue, [](const Job &job) { return job.kind != Load; });
        if (m_active)
            m_active->second.request_stop();
    }
    const Error error{ErrorCode::Cancelled, {}, "stopped", {}};
    for (const Kind kind : dropped) {
        m_current[kind] = 0;
        if (kind == Open)
            Q_EMIT openFailed(error);
        else if (kind == Run)
            Q_EMIT runFailed(error);
        else if (kind == Parts)
            Q_EMIT partsFailed(error);
    }
    Q_EMIT activityChanged();
}

std::optional<Runner::Kind> Runner::activity() const
{
    for (const Kind kind : {Open, Run, Load, Layout, Parts, Detail, Plan, Preview})
        if (m_current[kind] != 0)
            return kind;
    return std::nullopt;
}

void Runner::deliver(const Letter &letter)
{
    if (m_current[letter.kind] != letter.number)
        return; // replaced meanwhile
    m_current[letter.kind] = 0;
    letter.deliver();
}

void Runner::drain()
{
    Mailbox box;
    bool idle = false;
    {
        const std::lock_guard lock(m_mutex);
        std::swap(box, m_mailbox);
        idle = m_queue.empty() && !m_active;
    }
    const bool ofThisRun = box.rowsOf != 0 && box.rowsOf == m_current[Run];
    if (ofThisRun && !box.rows.empty())
        Q_EMIT rowsArrived(box.rows);
    if (ofThisRun && box.runProgress) {
        box.runProgress->seconds = static_cast<double>(m_runClock.elapsed()) / 1000.0;
        Q_EMIT runProgressed(*box.runProgress);
    }
    if (box.loadProgress &&
        (box.loadProgress->number == m_current[Open] || box.loadProgress->number == m_current[Parts]))
        Q_EMIT progressed(QString::fromStdString(box.loadProgress->what), box.loadProgress->done,
                          box.loadProgress->total);
    for (const Letter &letter : box.letters)
        deliver(letter);
    // A letter may have queued new work; only a tick that finds nothing at all stops the timer.
    if (idle && box.letters.empty() && !activity())
        m_drain.stop();
    if (!box.letters.empty())
        Q_EMIT activityChanged();
}

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "fake_engine.h"

#include <cmath>

#include "core/random_looking.h"
#include "fake_net.h"

namespace dblame::ui::test
{

namespace
{

class FakeInputs final : public InputSet
{
public:
    explicit FakeInputs(InputsInfo info) : m_info(std::move(info)) {}
    [[nodiscard]] const InputsInfo &info() const override { return m_info; }

private:
    InputsInfo m_info;
};

Histogram histogram(double shift)
{
    Histogram h;
    for (int i = 0; i <= 40; ++i) {
        h.edges.push_back(-4 + 0.2 * i);
        h.errorEdges.push_back(-0.2 + 0.01 * i);
    }
    for (int i = 0; i < 40; ++i) {
        const double x = h.edges[static_cast<std::size_t>(i)] + 0.1;
        h.reference.push_back(std::round(1000 * std::exp(-x * x / 2)));
        h.candidate.push_back(std::round(1000 * std::exp(-(x - shift) * (x - shift) / 2)));
        h.error.push_back(std::round(500 * std::exp(-x * x)));
    }
    h.sampled = true;
    return h;
}

class FakeComparison final : public Comparison
{
public:
    FakeComparison(FakeEngine &engine, std::shared_ptr<const Model> reference, std::shared_ptr<const Model> candidate,
                   std::shared_ptr<const InputSet> inputs, const std::vector<HandPair> &hand)
        : m_engine(engine), m_reference(std::move(reference)), m_candidate(std::move(candidate)),
          m_inputs(std::move(inputs)), m_sites(makeSites(*m_candidate)),
          m_alignment(makeAlignment(m_reference->graph(), m_candidate->graph(), m_sites, engine.unpairFc, hand))
    {
    }
    [[nodiscard]] const SiteTable &sites() const override { return m_sites; }
    [[nodiscard]] const Alignment &alignment() const override { return m_alignment; }

    [[nodiscard]] Result<Plan> plan(const EditSet &edits) override
    {
        Plan plan;
        for (const SiteId site : edits.off)
            plan.changes.push_back(
                {ChangeKind::Off, site, {}, m_sites.site(site).id, m_sites.site(site).spec.text() + " -> float"});
        for (const EdgeBypass &edge : edits.bypassed)
            plan.changes.push_back({ChangeKind::Bypassed, edge.site, edge.reader,
                                    m_sites.site(edge.site).id + " for " + m_candidate->graph().node(edge.reader).name,
                                    m_sites.site(edge.site).spec.text() + " -> float on this edge only"});
        for (const auto &[site, change] : edits.respecified)
            plan.changes.push_back({ChangeKind::Respecified,
                                    site,
                                    {},
                                    m_sites.site(site).id,
                                    m_sites.site(site).spec.text() + " -> " + std::to_string(change.bits) + " bits"});
        plan.nodesTotal = static_cast<int>(layers().size());
        for (std::size_t i = 0; i < layers().size(); ++i)
            if (gain(edits, i) != gain(m_lastEdits, i))
                ++plan.nodesToRerun;
        return plan;
    }

    [[nodiscard]] Result<RunReport> run(const EditSet &edits, const RunOptions &options, ReportSink &sink,
                                        std::stop_token stop) override
    {
        m_engine.thread = std::this_thread::get_id();
        ++m_engine.runs;
        RunReport report;
        report.signal = options.signal;
        report.threads = 2;
        report.cpu = "AVX2";
        report.libtorch = "2.13.0";
        report.inputs = m_inputs->info();
        report.seconds = 0.8;
        const auto nodes = static_cast<std::int64_t>(layers().size());
        for (std::size_t i = 0; i < m_alignment.pairs.size(); ++i) {
            const int layer = layerOf(m_alignment.pairs[i]);
            if (layer >= 0 && isActivationRow(m_alignment.pairs[i])) {
                m_engine.gate.pass(stop);
                if (stop.stop_requested())
                    return fail(ErrorCode::Cancelled, {}, "the run was stopped");
            }
            report.rows.push_back(row(PairId(i), layer, edits));
            sink.row(report.rows.back());
            if (layer >= 0)
                sink.progress(0, 1, layer + 1, nodes);
        }
        if (m_engine.failNextRun) {
            const Error error = *m_engine.failNextRun;
            m_engine.failNextRun.reset();
            return tl::unexpected(error);
        }
        finish(report, edits);
        m_lastEdits = edits;
        return report;
    }

    [[nodiscard]] Result<NodeReport> detail(PairId id, std::stop_token) override
    {
        NodeReport report = row(id, layerOf(m_alignment.pairs[id.get()]), m_lastEdits);
        report.histogram->sampled = false;
        return report;
    }

private:
    static bool isActivationRow(const AlignedPair &pair)
    {
        return pair.kind == RowKind::Activation || pair.kind == RowKind::Output;
    }
    [[nodiscard]] int layerOf(const AlignedPair &pair) const
    {
        const std::string name = m_reference->graph().value(pair.ref).name;
        for (std::size_t i = 0; i < layers().size(); ++i)
            if (name == layers()[i].value || name == std::string("w_") + layers()[i].value)
                return static_cast<int>(i);
        return -1;
    }
    // Whether row `to` is `from` or downstream of it.
    static bool reaches(int from, int to)
    {
        if (from == to)
            return true;
        if (to < 0)
            return false;
        for (const int producer : layers()[static_cast<std::size_t>(to)].from)
            if (reaches(from, producer))
                return true;
        return false;
    }
    [[nodiscard]] int layerOfNode(NodeId node) const
    {
        const std::string &name = m_candidate->graph().node(node).name;
        for (std::size_t i = 0; i < layers().size(); ++i)
            if (name == layers()[i].value)
                return static_cast<int>(i);
        return static_cast<int>(layers().size()) - 1;
    }
    [[nodiscard]] double gain(const EditSet &edits, std::size_t layer) const
    {
        double db = 0;
        const int to = static_cast<int>(layer);
        for (const SiteId site : edits.off)
            db += reaches(layerOfNode(m_sites.site(site).owner), to) ? kDbPerSite : 0;
        for (const EdgeBypass &edge : edits.bypassed)
            db += reaches(layerOfNode(edge.reader), to) ? kDbPerSite : 0;
        for (const auto &[site, change] : edits.respecified)
            db += reaches(layerOfNode(m_sites.site(site).owner), to) ? kDbPerBit * (change.bits - 8) : 0;
        return db;
    }
    [[nodiscard]] NodeReport row(PairId id, int layer, const EditSet &edits) const
    {
        const AlignedPair &pair = m_alignment.pairs[id.get()];
        NodeReport report;
        report.row = id;
        report.batches = 1;
        report.dtype = "float32";
        report.shape = {64, 16, 8, 8};
        report.histogram = histogram(0.05);
        report.ms = 0.25;
        if (pair.kind == RowKind::Input) {
            report.status = RowStatus::Exact;
            report.metrics.snrDb = report.metrics.sqnrDb = INFINITY;
            report.metrics.cosine = 1;
            return report;
        }
        report.status = RowStatus::Ok;
        const auto at = static_cast<std::size_t>(layer);
        report.metrics.snrDb = pair.kind == RowKind::Weight ? 45.5 + layer : layers()[at].db + gain(edits, at);
        report.metrics.sqnrDb = report.metrics.snrDb + 0.01;
        report.metrics.mse = std::pow(10, -report.metrics.snrDb / 10);
        report.metrics.maxAbs = 0.214;
        report.metrics.cosine = 0.99963;
        report.metrics.refMin = report.metrics.candMin = -6.1;
        report.metrics.refMax = report.metrics.candMax = 9.4;
        report.metrics.count = 65536;
        for (int c = 0; c < 16; ++c)
            report.channels.push_back({c, report.metrics.snrDb + ((c * 7) % 5) - (c == 11 ? 14 : 2), 0, 1});
        if (pair.site.valid()) {
            SiteReport site;
            site.site = pair.site;
            site.on = !edits.off.contains(pair.site);
            site.change = site.on ? "" : "float here";
            site.clipped = 0.004;
            site.unusedRange = 0.03;
            site.scale = m_sites.site(pair.site).scale;
            site.zeroPoint = m_sites.site(pair.site).zeroPoint;
            report.sites.push_back(site);
        }
        return report;
    }
    void finish(RunReport &report, const EditSet &edits) const
    {
        std::optional<std::size_t> before;
        for (std::size_t i = 0; i < report.rows.size(); ++i) {
            NodeReport &now = report.rows[i];
            if (!isActivationRow(m_alignment.pairs[i]))
                continue;
            if (before) {
                now.dropDb = report.rows[*before].metrics.snrDb - now.metrics.snrDb;
                if (!report.largestDrop || *now.dropDb > report.largestDrop->db)
                    report.largestDrop = Drop{now.row, *now.dropDb};
            }
            before = i;
            if (m_alignment.pairs[i].kind == RowKind::Output) {
                report.outputSnrDb.push_back(now.metrics.snrDb);
                report.outputSqnrDb.push_back(now.metrics.sqnrDb);
            }
        }
        for (const SiteId site : edits.off)
            report.skipped.push_back(m_sites.site(site).id);
        report.rowsRecomputed = static_cast<int>(report.rows.size());
        if (report.inputs.random)
            report.warnings.emplace_back("random inputs rank layers differently from real data");
    }

    FakeEngine &m_engine;
    std::shared_ptr<const Model> m_reference, m_candidate;
    std::shared_ptr<const InputSet> m_inputs;
    SiteTable m_sites;
    Alignment m_alignment;
    EditSet m_lastEdits;
};

} // namespace

void Gate::hold()
{
    const std::lock_guard lock(m_mutex);
    m_holding = true;
    m_allowed = m_arrived = 0;
}

void Gate::allow(int operators)
{
    const std::lock_guard lock(m_mutex);
    m_allowed += operators;
    m_changed.notify_all();
}

void Gate::open()
{
    const std::lock_guard lock(m_mutex);
    m_holding = false;
    m_changed.notify_all();
}

void Gate::pass(const std::stop_token &stop)
{
    std::unique_lock lock(m_mutex);
    ++m_arrived;
    m_changed.notify_all();
    m_changed.wait(lock, stop, [this] { return !m_holding || m_allowed > 0; });
    if (m_holding && m_allowed > 0)
        --m_allowed;
}

void Gate::waitForArrivals(int operators)
{
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [&] { return m_arrived >= operators; });
}

FakeEngine::FakeEngine() = default;
FakeEngine::~FakeEngine() = default;

Result<std::shared_ptr<const Model>> FakeEngine::openModel(const std::string &path, const Progress &progress,
                                                           std::stop_token stop)
{
    thread = std::this_thread::get_id();
    if (path.find("damaged") != std::string::npos)
        return fail(ErrorCode::Unreadable, path, "the archive's directory is cut off; copy the file again");
    if (stop.stop_requested())
        return fail(ErrorCode::Cancelled, path, "opening was stopped");
    ++modelsRead;
    progress(1, 1, "weights");
    const bool quantized = path.find("float") == std::string::npos;
    return makeModel(path, quantized, path.find("other") != std::string::npos);
}

Result<std::shared_ptr<const InputSet>> FakeEngine::openInputs(const InputRequest &request, const Model &,
                                                               const Model &, std::stop_token)
{
    ++inputsRead;
    InputsInfo info;
    info.batches = 1;
    info.samples = 64;
    if (!request.files.empty()) {
        if (request.files.front().find("damaged") != std::string::npos)
            return fail(ErrorCode::Unreadable, request.files.front(), "no tensor in it");
        info.source = request.files.front();
        if (info.source.find("randn") != std::string::npos)
            info.notes.push_back(randomLookNote("x", "standard normal numbers"));
    } else if (sampleInputs) {
        info.source = "sample inputs of float.pt2";
    } else if (request.random) {
        info.source = "random, seed " + std::to_string(*request.random);
        info.random = true;
    } else {
        return fail(ErrorCode::Unreadable, {},
                    "the models bring no sample inputs; give an input file, or ask for random inputs");
    }
    return std::make_shared<const FakeInputs>(info);
}

Result<QuantizedModel> FakeEngine::quantize(std::shared_ptr<const Model> model, const Recipe &recipe,
                                            std::shared_ptr<const InputSet> calibration, const QuantizeOptions &,
                                            const Progress &progress, std::stop_token stop)
{
    thread = std::this_thread::get_id();
    ++quantizations;
    calibratedOn = calibration ? calibration->info().source : "";
    progress(1, 4, "calibrating");
    gate.pass(stop);
    if (stop.stop_requested())
        return fail(ErrorCode::Cancelled, {}, "quantizing was stopped");
    if (failNextQuantize) {
        const Error error = *failNextQuantize;
        failNextQuantize.reset();
        return tl::unexpected(error);
    }
    auto placed = placeRecipe(model->graph(), recipe);
    if (!placed)
        return tl::unexpected(placed.error());
    QuantizedModel result;
    result.model = makeModel(model->info().path, true, false);
    result.annotated = std::move(model);
    result.placement = std::move(*placed);
    const SiteTable sites = makeSites(*result.model);
    for (const PlacedSite &site : result.placement.sites) {
        result.siteOfPlaced.push_back(sites.byId(site.id));
        if (site.role == SiteRole::Weight)
            result.weightErrors.push_back({site.id, 42.5, 0, {40.25, 30.75, 55.0}, 1});
    }
    ObserverRange range;
    range.batches = 3;
    range.elements = 3000;
    range.lowest = range.low = -6;
    range.highest = range.high = 7;
    range.clipped = 0.0;
    range.unused = 0.125;
    result.observed.assign(result.placement.observers.size(), range);
    if (!result.observed.empty()) {
        result.observed.back().lowest = -7;
        result.observed.back().highest = 10;
    }
    result.calibrationBatches = calibration ? 3 : 0;
    result.warnings.emplace_back("one warning of the quantizer");
    return result;
}

Result<QuantizedModel> FakeEngine::place(std::shared_ptr<const Model> model, const Recipe &recipe)
{
    ++placements;
    auto placed = placeRecipe(model->graph(), recipe);
    if (!placed)
        return tl::unexpected(placed.error());
    QuantizedModel result;
    result.annotated = std::move(model);
    result.placement = std::move(*placed);
    return result;
}

Result<std::unique_ptr<Comparison>> FakeEngine::compare(std::shared_ptr<const Model> reference,
                                                        std::shared_ptr<const Model> candidate,
                                                        std::shared_ptr<const InputSet> inputs,
                                                        const std::vector<HandPair> &hand, Comparison * /*before*/)
{
    return std::make_unique<FakeComparison>(*this, std::move(reference), std::move(candidate), std::move(inputs), hand);
}

} // namespace dblame::ui::test

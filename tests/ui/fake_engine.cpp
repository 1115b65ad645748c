// SPDX-License-Identifier: GPL-3.0-or-later
#include "fake_engine.h"

#include <cmath>

#include "core/graph_text.h"

namespace dblame::ui::test
{

namespace
{

struct LayerRow {
    const char *value, *op, *module, *type;
    std::vector<int> from; // rows; -1 is the input
    double db;
    bool weight, outputSite;
};

// The digits net of the picture.
const std::vector<LayerRow> &layers()
{
    static const std::vector<LayerRow> rows = {
        {"conv2d", "aten.conv2d.default", "stem.conv", "Conv2d", {-1}, 46.1, true, false},
        {"relu", "aten.relu.default", "stem.relu", "ReLU", {0}, 40.7, false, true},
        {"max_pool2d", "aten.max_pool2d.default", "pool1", "MaxPool2d", {1}, 39.9, false, true},
        {"conv2d_1", "aten.conv2d.default", "block.conv1", "Conv2d", {2}, 37.7, true, false},
        {"relu_1", "aten.relu.default", "block.relu1", "ReLU", {3}, 36.7, false, true},
        {"conv2d_2", "aten.conv2d.default", "block.conv2", "Conv2d", {4}, 33.7, true, true},
        {"add", "aten.add.Tensor", "block", "Block", {5, 2}, 34.7, false, false},
        {"relu_2", "aten.relu.default", "block.relu2", "ReLU", {6}, 35.2, false, true},
        {"max_pool2d_1", "aten.max_pool2d.default", "pool2", "MaxPool2d", {7}, 36.2, false, true},
        {"conv2d_3", "aten.conv2d.default", "head_conv.conv", "Conv2d", {8}, 31.3, true, false},
        {"relu_3", "aten.relu.default", "head_conv.relu", "ReLU", {9}, 32.8, false, true},
        {"mean", "aten.mean.dim", "gap", "AdaptiveAvgPool2d", {10}, 33.8, false, true},
        {"flatten", "aten.flatten.using_ints", "", "", {11}, 33.8, false, false},
        {"linear", "aten.linear.default", "fc", "Linear", {12}, 33.92, true, false},
    };
    return rows;
}

std::string frames(const LayerRow &row)
{
    std::string text;
    const std::string path = row.module;
    if (const auto dot = path.find('.'); dot != std::string::npos)
        text += " @\"" + path.substr(0, dot) + "\":\"net." + path.substr(0, dot) + "\"";
    if (!path.empty())
        text += " @\"" + path + "\":\"torch.nn.modules." + row.type + "\"";
    return text + " source=\"net.py:41\"";
}

// The value that readers of a row see: its dq where it has an output site.
std::string seen(int row, bool quantized)
{
    if (row < 0)
        return "x";
    const LayerRow &layer = layers()[static_cast<std::size_t>(row)];
    return std::string(layer.value) + (quantized && layer.outputSite ? "_dq" : "");
}

std::string graphText(bool quantized, bool other)
{
    std::string inputs = "  input user %x: float32[64, 1, 8, 8] \"x\"\n";
    std::string nodes;
    for (const LayerRow &row : layers()) {
        const std::string value = row.value;
        std::string call = std::string(row.op) + "(self=%" + seen(row.from.front(), quantized);
        if (row.from.size() > 1)
            call += ", other=%" + seen(row.from[1], quantized);
        if (row.weight) {
            const std::string weight = "w_" + value;
            const std::string type = quantized ? ": int8[16, 16, 3, 3] \"" : ": float32[16, 16, 3, 3] \"";
            inputs += "  input parameter %" + weight + type + row.module + ".weight\"\n";
            if (quantized)
                nodes += "  %" + weight + "_dq: float32[16, 16, 3, 3] = quantized_decomposed.dequantize_per_channel." +
                         "default(input=%" + weight + ")\n";
            call += ", weight=%" + weight + (quantized ? "_dq" : "");
        }
        const bool last = &row == &layers().back();
        const std::string name = last && other ? "logits" : value;
        nodes += "  %" + name + ": float32[64, 16, 8, 8] = " + call + ")" + frames(row) + "\n";
        if (quantized && row.outputSite) {
            nodes += "  %" + value +
                     "_q: int8[64, 16, 8, 8] = quantized_decomposed.quantize_per_tensor.default(input=%" + value +
                     ")\n";
            nodes += "  %" + value +
                     "_dq: float32[64, 16, 8, 8] = quantized_decomposed.dequantize_per_tensor.default(" + "input=%" +
                     value + "_q)\n";
        }
    }
    return "graph {\n" + inputs + nodes + "  return %" + std::string(other ? "logits" : layers().back().value) +
           " \"logits\"\n}\n";
}

class FakeModel final : public Model
{
public:
    FakeModel(const std::string &path, bool quantized, bool other)
        : m_graph(parseGraph(graphText(quantized, other)).value()), m_faults(m_graph.nodes.size())
    {
        m_info.path = path;
        m_info.sha256 = path;
        m_info.format = "pt2 archive";
        m_info.producer = "torch 2.13.0";
        m_info.program = "model";
        m_info.bytes = 151'000'000;
        m_info.hasSampleInputs = true;
    }
    [[nodiscard]] const Graph &graph() const override { return m_graph; }
    [[nodiscard]] const ModelInfo &info() const override { return m_info; }
    [[nodiscard]] std::vector<StoredTensor> storedTensors() const override { return {}; }
    [[nodiscard]] std::optional<StoredTensor> stored(ValueId) const override { return std::nullopt; }
    [[nodiscard]] std::optional<std::vector<double>> numbers(ValueId, std::size_t) const override
    {
        return std::nullopt;
    }
    [[nodiscard]] const std::vector<std::string> &nodeFaults() const override { return m_faults; }

private:
    Graph m_graph;
    ModelInfo m_info;
    std::vector<std::string> m_faults;
};

class FakeInputs final : public InputSet
{
public:
    explicit FakeInputs(InputsInfo info) : m_info(std::move(info)) {}
    [[nodiscard]] const InputsInfo &info() const override { return m_info; }

private:
    InputsInfo m_info;
};

QuantSite makeSite(const Graph &graph, const LayerRow &row, bool weight)
{
    const std::string value = row.value;
    QuantSite site;
    const std::string layer = *row.module != '\0' ? row.module : row.value;
    site.id = layer + (weight ? "/weight" : "/out");
    site.role = weight ? SiteRole::Weight : SiteRole::Output;
    site.form = weight ? SiteForm::DequantizedWeight : SiteForm::QdqPair;
    site.module = row.module;
    site.moduleType = row.type;
    site.owner = graph.findNode(value);
    site.spec.granularity = weight ? Granularity::PerChannel : Granularity::PerTensor;
    site.spec.symmetric = weight;
    site.spec.axis = weight ? 0 : -1;
    site.scale = {0.06077};
    site.zeroPoint = {weight ? 0 : -128};
    site.inputIndex = weight ? 1 : -1;
    site.weightTarget = weight ? std::string(row.module) + ".weight" : "";
    site.result = graph.find(weight ? "w_" + value + "_dq" : value + "_dq");
    site.source = weight ? ValueId() : graph.find(value);
    site.stored = weight ? graph.find("w_" + value) : ValueId();
    site.nodes = {graph.value(site.result).producer};
    if (!weight)
        site.nodes.insert(site.nodes.begin(), graph.findNode(value + "_q"));
    site.readers = graph.readers(site.result);
    site.instance = site.id;
    return site;
}

SiteTable makeSites(const Model &candidate)
{
    SiteTable table;
    const Graph &graph = candidate.graph();
    table.ofNode.assign(graph.nodes.size(), -1);
    table.ofResult.assign(graph.values.size(), -1);
    table.outputOf.assign(graph.values.size(), -1);
    for (const LayerRow &row : layers()) {
        for (const bool weight : {true, false}) {
            if (!(weight ? row.weight : row.outputSite) || !graph.findNode(row.value).valid())
                continue;
            table.sites.push_back(makeSite(graph, row, weight));
            const auto at = static_cast<std::int32_t>(table.sites.size() - 1);
            for (const NodeId node : table.sites.back().nodes)
                table.ofNode[node.get()] = at;
            table.ofResult[table.sites.back().result.get()] = at;
            if (!weight)
                table.outputOf[table.sites.back().source.get()] = at;
        }
    }
    return table;
}

AlignedPair weightPair(const Graph &ref, const Graph &cand, const SiteTable &sites, const std::string &value)
{
    AlignedPair pair;
    pair.kind = RowKind::Weight;
    pair.ref = pair.refCompared = ref.find("w_" + value);
    pair.cand = cand.find("w_" + value);
    pair.candCompared = cand.find("w_" + value + "_dq");
    for (std::size_t i = 0; i < sites.sites.size(); ++i)
        if (sites.sites[i].stored.valid() && sites.sites[i].stored == pair.cand)
            pair.site = SiteId(i);
    pair.channelAxis = 0;
    pair.reason = "same state-dict name";
    return pair;
}

Alignment makeAlignment(const Graph &ref, const Graph &cand, const SiteTable &sites, bool unpairFc,
                        const std::vector<HandPair> &hand)
{
    Alignment alignment;
    for (const LayerRow &row : layers())
        if (row.weight && cand.find(std::string("w_") + row.value).valid())
            alignment.pairs.push_back(weightPair(ref, cand, sites, row.value));
    AlignedPair input;
    input.kind = RowKind::Input;
    input.ref = input.refCompared = ref.find("x");
    input.cand = input.candCompared = cand.find("x");
    input.reason = "argument x";
    alignment.pairs.push_back(input);
    for (const LayerRow &row : layers()) {
        const bool last = &row == &layers().back();
        AlignedPair pair;
        pair.kind = last ? RowKind::Output : RowKind::Activation;
        pair.ref = pair.refCompared = ref.find(row.value);
        pair.cand = pair.candCompared = cand.find(row.value);
        pair.rung = Rung::Provenance;
        pair.reason = std::string("same innermost source ") + row.value;
        pair.channelAxis = 1;
        if (last && (unpairFc || !pair.cand.valid())) {
            const ValueId out = cand.outputs.front().value;
            const bool paired = hand.size() == 1 && hand[0].ref == row.value && hand[0].cand == cand.value(out).name;
            if (!paired) {
                const std::string why = "no partner: no node of that name or module";
                alignment.unmatched.push_back({Side::Reference, pair.ref, row.value, row.module, why});
                alignment.unmatched.push_back({Side::Candidate, out, cand.value(out).name, row.module, why});
                continue;
            }
            pair.cand = pair.candCompared = out;
            pair.rung = Rung::ByHand;
            pair.reason = "paired by hand";
        }
        if (row.outputSite) {
            pair.candCompared = cand.find(std::string(row.value) + "_dq");
            pair.site = sites.outputSiteOf(pair.cand);
        }
        alignment.pairs.push_back(pair);
    }
    alignment.notes = {"4 batch norms folded into the convolutions before them"};
    for (int i = 0; i < 4; ++i)
        alignment.folds.push_back({NodeId(0), NodeId(0), "batch_norm"});
    return alignment;
}

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
    return std::make_shared<const FakeModel>(path, quantized, path.find("other") != std::string::npos);
}

Result<std::shared_ptr<const InputSet>> FakeEngine::openInputs(const InputRequest &request, const Model &,
                                                               const Model &, std::stop_token)
{
    InputsInfo info;
    info.batches = 1;
    info.samples = 64;
    if (!request.files.empty()) {
        if (request.files.front().find("damaged") != std::string::npos)
            return fail(ErrorCode::Unreadable, request.files.front(), "no tensor in it");
        info.source = request.files.front();
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

Result<std::unique_ptr<Comparison>> FakeEngine::compare(std::shared_ptr<const Model> reference,
                                                        std::shared_ptr<const Model> candidate,
                                                        std::shared_ptr<const InputSet> inputs,
                                                        const std::vector<HandPair> &hand)
{
    return std::make_unique<FakeComparison>(*this, std::move(reference), std::move(candidate), std::move(inputs), hand);
}

} // namespace dblame::ui::test

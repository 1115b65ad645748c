// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report.h"

#include <algorithm>

namespace dblame
{

namespace
{

std::string modelPath(const ModelInfo &info)
{
    return info.otherPrograms.empty() ? info.path : info.path + "#" + info.program;
}

std::string schemaGranularity(Granularity granularity, std::int64_t blockSize)
{
    switch (granularity) {
    case Granularity::PerTensor:
        return "tensor";
    case Granularity::PerChannel:
        return "channel";
    case Granularity::PerBlock:
        return "block" + std::to_string(blockSize);
    case Granularity::PerToken:
        return "token";
    }
    return {};
}

class ReportMaker
{
public:
    ReportMaker(const RunReport &run, const Alignment &alignment, const SiteTable &sites, const Model &reference,
                const Model &candidate, const ReportFields &fields)
        : m_run(run), m_alignment(alignment), m_sites(sites), m_reference(reference.graph()),
          m_candidate(candidate.graph()), m_referenceInfo(reference.info()), m_candidateInfo(candidate.info()),
          m_fields(fields)
    {
    }

    [[nodiscard]] Report make() const;

private:
    [[nodiscard]] ReportRow row(std::size_t index) const;
    void names(ReportRow &row, const AlignedPair &pair) const;
    void shape(ReportRow &row, const AlignedPair &pair, const NodeReport &figures) const;
    void metrics(ReportRow &row, const AlignedPair &pair, const NodeReport &figures) const;
    void sites(ReportRow &row, const AlignedPair &pair, const NodeReport &figures) const;
    [[nodiscard]] ReportSite site(SiteId id, const NodeReport &figures) const;
    [[nodiscard]] std::string multiOutputName(const Node &node) const;
    void warnings(Report &report) const;

    const RunReport &m_run;
    const Alignment &m_alignment;
    const SiteTable &m_sites;
    const Graph &m_reference, &m_candidate;
    const ModelInfo &m_referenceInfo, &m_candidateInfo;
    const ReportFields &m_fields;
};

// The node's own name; where the file has none (it is then named after its first value), operator and ordinal
// as FX names nodes: "split", "split_1".
std::string ReportMaker::multiOutputName(const Node &node) const
{
    const auto values = node.outputValues();
    if (values.empty() || node.name != m_reference.value(values.front()).name)
        return node.name;
    int ordinal = 0;
    for (const Node &other : m_reference.nodes) {
        if (&other == &node)
            break;
        ordinal += other.opName() == node.opName() ? 1 : 0;
    }
    return ordinal == 0 ? node.opName() : node.opName() + "_" + std::to_string(ordinal);
}

void ReportMaker::names(ReportRow &row, const AlignedPair &pair) const
{
    row.ref = m_reference.value(namedReference(pair)).name;
    const ValueId cand = pair.candCompared.valid() ? pair.candCompared : pair.cand;
    row.cand = cand.valid() ? m_candidate.value(cand).name : std::string();
    row.rung = rungName(pair.rung);
    row.kind = rowKindName(pair.kind);
    row.folded = pair.folded;
    if (pair.channelAxis >= 0)
        row.channelAxis = pair.channelAxis;
    if (const GraphInput *input = m_reference.input(pair.ref)) {
        if (input->kind != InputKind::User) {
            row.target = input->target;
            const auto dot = input->target.rfind('.');
            row.module = dot == std::string::npos ? std::string() : input->target.substr(0, dot);
        }
        return;
    }
    const Node &node = *m_reference.producer(pair.ref);
    row.module = node.modulePath();
    row.moduleType = node.moduleType();
    row.op = node.target;
    row.source = node.source;
    if (node.outputValues().size() > 1) {
        row.node = multiOutputName(node);
        row.output = m_reference.value(pair.ref).outputIndex;
    }
}

void ReportMaker::shape(ReportRow &row, const AlignedPair &pair, const NodeReport &figures) const
{
    row.dtype = figures.dtype;
    if (!figures.dtype.empty()) {
        row.shape = figures.shape;
        return;
    }
    const auto &meta = m_reference.value(pair.refCompared.valid() ? pair.refCompared : pair.ref).meta;
    if (!meta)
        return;
    row.dtype = dtypeName(meta->dtype);
    const bool known = std::all_of(meta->sizes.begin(), meta->sizes.end(), [](const Dim &d) { return d.size >= 0; });
    if (!known)
        return;
    row.shape.emplace();
    for (const auto &dim : meta->sizes)
        row.shape->push_back(dim.size);
}

void ReportMaker::metrics(ReportRow &row, const AlignedPair &pair, const NodeReport &figures) const
{
    row.status = rowStatusName(figures.status);
    row.reason = figures.reason;
    const Metrics &m = figures.metrics;
    const bool db = figures.status == RowStatus::Ok || figures.status == RowStatus::Exact;
    const bool numbers = db || figures.status == RowStatus::Mismatch;
    if (db) {
        row.snrDb = m.snrDb;
        row.sqnrDb = m.sqnrDb;
        row.mse = m.mse;
        row.mae = m.mae;
        row.cosine = m.cosine;
        row.bias = m.bias;
    }
    if (numbers) {
        row.maxAbs = m.maxAbs;
        row.refMin = m.refMin;
        row.refMax = m.refMax;
        row.candMin = m.candMin;
        row.candMax = m.candMax;
        row.nan = m.nan;
        row.inf = m.inf;
        row.ms = figures.ms;
    }
    if (figures.status == RowStatus::Mismatch && row.reason.empty())
        row.reason = std::to_string(m.mismatches) + " of " + std::to_string(m.count) + " elements differ";
    if (row.reason.empty())
        row.reason = pair.rewritten;
    const bool candidateSignal = m_run.signal == Signal::Candidate;
    row.beforeSiteDb = candidateSignal ? figures.beforeSiteSqnrDb : figures.beforeSiteDb;
    row.afterSiteDb = candidateSignal ? figures.afterSiteSqnrDb : figures.afterSiteDb;
    row.dropDb = figures.dropDb;
    row.flowDropDb = figures.flowDropDb;
    if (m_fields.channels)
        for (const auto &channel : figures.channels)
            row.channels.push_back({channel.index, channel.snrDb});
    if (m_fields.histograms && figures.histogram)
        row.histogram = {figures.histogram->edges, figures.histogram->reference, figures.histogram->candidate};
    if (m_fields.hashes) {
        row.refSha256 = figures.refSha256;
        row.candSha256 = figures.candSha256;
    }
}

ReportSite ReportMaker::site(SiteId id, const NodeReport &figures) const
{
    const QuantSite &from = m_sites.site(id);
    ReportSite to;
    to.id = from.id;
    to.on = from.enabled;
    to.role = siteRoleName(from.role);
    to.instance = from.instance;
    if (from.group >= 0)
        to.group = from.group;
    to.dtype = dtypeName(from.spec.storage);
    to.effectiveBits = from.spec.effectiveBits();
    to.scheme = from.spec.tableSize > 0 ? "table" : from.spec.symmetric ? "sym" : "affine";
    to.granularity = schemaGranularity(from.spec.granularity, from.spec.blockSize);
    if (from.spec.axis >= 0)
        to.axis = from.spec.axis;
    to.scale = from.scale;
    to.zeroPoint = from.zeroPoint;
    to.quantMin = from.spec.quantMin;
    to.quantMax = from.spec.quantMax;
    const auto state =
        std::find_if(figures.sites.begin(), figures.sites.end(), [id](const auto &s) { return s.site == id; });
    if (state == figures.sites.end())
        return to;
    to.on = state->on;
    to.change = state->change;
    to.clipped = state->clipped;
    to.unusedRange = state->unusedRange;
    if (!state->scale.empty())
        to.scale = state->scale;
    if (!state->zeroPoint.empty())
        to.zeroPoint = state->zeroPoint;
    return to;
}

void ReportMaker::sites(ReportRow &row, const AlignedPair &pair, const NodeReport &figures) const
{
    if (pair.site.valid())
        row.site = site(pair.site, figures);
    for (const SiteId id : pair.inputSites)
        if (id != pair.site)
            row.sites.push_back(site(id, figures));
    if (!row.site && !row.sites.empty()) {
        row.site = row.sites.front();
        row.sites.erase(row.sites.begin());
    }
}

ReportRow ReportMaker::row(std::size_t index) const
{
    const AlignedPair &pair = m_alignment.pairs[index];
    ReportRow row;
    row.index = static_cast<int>(index);
    static const NodeReport kNone;
    const NodeReport &figures = index < m_run.rows.size() ? m_run.rows[index] : kNone;
    names(row, pair);
    shape(row, pair, figures);
    metrics(row, pair, figures);
    sites(row, pair, figures);
    return row;
}

// Everything that a reader of the figures has to know, each once.
void ReportMaker::warnings(Report &report) const
{
    const auto add = [&report](const std::string &text) {
        if (std::find(report.warnings.begin(), report.warnings.end(), text) == report.warnings.end())
            report.warnings.push_back(text);
    };
    for (const auto *list : {&m_run.warnings, &m_run.inputs.notes, &m_alignment.notes, &m_sites.notes})
        for (const auto &text : *list)
            add(text);
    for (const auto *info : {&m_referenceInfo, &m_candidateInfo})
        for (const auto &note : info->notes)
            if (note != info->sampleInputsNote)
                add(info->path + ": " + note);
}

Report ReportMaker::make() const
{
    Report report;
    report.dblame = dblameVersion();
    report.libtorch = m_run.libtorch;
    report.cpu = m_run.cpu;
    report.threads = m_run.threads;
    const auto model = [](const ModelInfo &info) {
        return ReportModel{modelPath(info), info.sha256, info.format, info.producer};
    };
    report.reference = model(m_referenceInfo);
    report.candidate = model(m_candidateInfo);
    report.skipped = m_run.skipped;
    report.changed = m_run.changed;
    const InputsInfo &inputs = m_run.inputs;
    report.inputs = {inputs.source, inputs.batches, inputs.samples, inputs.sha256, inputs.random, {}};
    report.signal = m_run.signal == Signal::Candidate ? "candidate" : "reference";
    for (std::size_t i = 0; i < m_alignment.pairs.size(); ++i)
        report.rows.push_back(row(i));
    if (m_run.largestDrop)
        report.largestDrop = {m_run.largestDrop->row.index, m_run.largestDrop->db};
    for (const auto &u : m_alignment.unmatched)
        report.unmatched.push_back({u.side == Side::Reference ? "reference" : "candidate", u.name, u.module, u.reason});
    report.outputSnrDb = m_run.outputSnrDb;
    report.outputSqnrDb = m_run.outputSqnrDb;
    report.seconds = m_run.seconds;
    warnings(report);
    return report;
}

} // namespace

Report makeReport(const RunReport &run, const Alignment &alignment, const SiteTable &sites, const Model &reference,
                  const Model &candidate, const ReportFields &fields)
{
    return ReportMaker(run, alignment, sites, reference, candidate, fields).make();
}

std::optional<double> shownDb(const Report &report, const ReportRow &row)
{
    return report.signal == "candidate" ? row.sqnrDb : row.snrDb;
}

const char *dblameVersion()
{
    return DBLAME_VERSION;
}

} // namespace dblame

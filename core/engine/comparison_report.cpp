// SPDX-License-Identifier: GPL-3.0-or-later
//
// From the figures of a run to its report: the state of sites, outputs, drops, and warnings in words.
#include <cmath>
#include <cstdio>

#include <ATen/Version.h>
#include <torch/version.h>

#include "core/engine/pair_comparison.h"

namespace dblame
{

namespace
{

// A row counts as float again from here on: what float32 arithmetic itself differs by in other orders of summation.
constexpr double kFloatAgainDb = 110.0;

} // namespace

std::vector<SiteReport> PairComparison::siteReports(const AlignedPair &pair, const Pass &pass,
                                                    const EditSet &edits) const
{
    std::vector<SiteId> ids = pair.inputSites;
    if (pair.site.valid())
        ids.insert(ids.begin(), pair.site);
    std::vector<SiteReport> reports;
    for (SiteId id : ids) {
        const QuantSite &site = m_sites.site(id);
        SiteReport report;
        report.site = id;
        report.on = !site.watchesOnly && site.enabled;
        report.scale = site.scale;
        report.zeroPoint = site.zeroPoint;
        const auto seen = site.nodes.empty() ? pass.dynamic.end() : pass.dynamic.find(site.nodes.front());
        if (seen != pass.dynamic.end()) {
            report.scale = {seen->second.first};
            report.zeroPoint = {seen->second.second};
        }
        if (edits.off.contains(id) && m_planner.refusal(id).empty()) {
            report.on = false;
            report.change = "float here";
        } else if (const auto spec = edits.respecified.find(id);
                   spec != edits.respecified.end() && m_planner.refusal(id, spec->second).empty()) {
            report.on = true;
            report.change = spec->second.text();
            const SiteQparams chosen = m_planner.qparams(id, spec->second);
            report.scale = chosen.scale; // of the file's grid otherwise
            report.zeroPoint = chosen.zeroPoint;
        }
        for (const EdgeBypass &edge : edits.bypassed)
            if (edge.site == id && report.on)
                report.change += (report.change.empty() ? "float on the edge to " : ", ") +
                                 m_candidate->graph().node(edge.reader).name;
        reports.push_back(std::move(report));
    }
    return reports;
}

NodeReport PairComparison::reportOf(PairId id, Pass &pass, const EditSet &edits, bool final) const
{
    const AlignedPair &pair = m_alignment.pairs[id.get()];
    NodeReport report;
    report.row = id;
    report.sites = siteReports(pair, pass, edits);
    if (auto &figures = pass.figures[id.get()])
        figures->fill(report, final);
    const auto timeOf = [](const Graph &graph, ValueId value, const std::vector<double> &times) {
        const NodeId producer = value.valid() ? graph.value(value).producer : NodeId{};
        return producer.valid() ? times[producer.get()] : 0.0;
    };
    report.ms =
        timeOf(m_reference->graph(), pair.ref, pass.refMs) + timeOf(m_candidate->graph(), pair.cand, pass.candMs);
    return report;
}

void PairComparison::finish(RunReport &report, const EditSet &edits, const RunOptions &options) const
{
    report.signal = options.signal;
    report.threads = options.threads;
    report.cpu = at::get_cpu_capability();
    report.libtorch = TORCH_VERSION;
    report.inputs = m_inputs->infoOf(static_cast<std::size_t>(batchCount(options)));
    report.skipped = m_planner.offIds(edits);
    report.changed = m_planner.changedIds(edits);
    for (const auto &output : m_reference->graph().outputs) {
        if (output.kind != OutputKind::User || !output.value.valid() || !m_reference->graph().value(output.value).meta)
            continue;
        const auto row = m_alignment.rowOfRef[output.value.get()];
        const NodeReport *figures = row < 0 ? nullptr : &report.rows[static_cast<std::size_t>(row)];
        const bool hasDb = figures && (figures->status == RowStatus::Ok || figures->status == RowStatus::Exact);
        report.outputSnrDb.push_back(hasDb ? figures->metrics.snrDb : kNoFigure);
        report.outputSqnrDb.push_back(hasDb ? figures->metrics.sqnrDb : kNoFigure);
    }
    findDrops(report, m_alignment, m_reference->graph(), options.signal);
    addWarnings(report, edits);
}

void PairComparison::addWarnings(RunReport &report, const EditSet &edits) const
{
    for (const std::string &note : m_alignment.notes)
        report.warnings.push_back(note);
    for (const std::string &note : report.inputs.notes)
        report.warnings.push_back(note);
    for (const auto &program : {m_refProgram, m_candProgram})
        for (const std::string &note : program->notes())
            report.warnings.push_back(program->model().info().path + ": " + note);
    const Plan plan = m_planner.plan(edits);
    for (const PlannedChange &change : plan.changes)
        if (change.kind == ChangeKind::Refused)
            report.warnings.push_back(change.id + " stays quantized: " + change.text);
    for (const std::string &note : plan.notes)
        report.warnings.push_back(note);
    if (!m_planner.everythingOff(edits))
        return;
    double worst = INFINITY;
    std::string where;
    for (const NodeReport &row : report.rows) {
        const bool hasDb = row.status == RowStatus::Ok || row.status == RowStatus::Exact;
        if (hasDb && row.metrics.snrDb < worst) {
            worst = row.metrics.snrDb;
            where = m_reference->graph().value(m_alignment.pairs[row.row.get()].ref).name;
        }
    }
    if (worst >= kFloatAgainDb)
        return;
    char text[32];
    std::snprintf(text, sizeof text, "%.1f dB", worst);
    const std::string still = "with every recognized quantizer off, " + where + " is still at " + text + ": ";
    // Weights that differ although no site was recognized on them: a grid or palette too small to leave a trace.
    std::string weights;
    for (const NodeReport &row : report.rows) {
        const AlignedPair &pair = m_alignment.pairs[row.row.get()];
        if (pair.kind == RowKind::Weight && !pair.site.valid() && row.status == RowStatus::Ok &&
            row.metrics.snrDb < kFloatAgainDb)
            weights += (weights.empty() ? "" : ", ") + m_reference->graph().input(pair.ref)->target;
    }
    if (weights.empty())
        report.warnings.push_back(still +
                                  "the difference is not quantization, the candidate's float arithmetic differs");
    else
        report.warnings.push_back(still +
                                  "the stored weights differ from the reference's and nothing in the file says how (" +
                                  weights + ")");
}

} // namespace dblame

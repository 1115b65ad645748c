// SPDX-License-Identifier: GPL-3.0-or-later
//
// One pair of models on one set of inputs: full runs, incremental reruns, single rows in detail.
#include "core/engine/comparison.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "core/engine/pair_comparison.h"
#include "core/engine/reference_weights.h"
#include "core/graph_query.h"

namespace dblame
{

namespace
{

using Clock = std::chrono::steady_clock;

// How often rows are handed to the sink while a batch runs.
constexpr std::chrono::milliseconds kFlushEvery{20};

// Figures may be shared between runs only if they were made in the same way.
bool sameFigures(const RunOptions &a, const RunOptions &b)
{
    return a.channels == b.channels && a.histograms == b.histograms && a.exactHistograms == b.exactHistograms &&
           a.hashes == b.hashes && a.threads == b.threads && a.limitBatches == b.limitBatches &&
           a.cacheBytes == b.cacheBytes;
}

} // namespace

Result<Plan> PairComparison::plan(const EditSet &edits)
{
    const c10::InferenceMode guard;
    Plan plan = m_planner.plan(edits);
    const Variant next = variant(edits);
    auto dirty = dirtyValues(m_last ? m_last->variant : variant({}), next);
    for (std::size_t v = 0; m_pending && v < dirty.size(); ++v)
        dirty[v] |= m_pending->values[v];
    plan.nodesTotal = static_cast<int>(m_candidate->graph().nodes.size());
    for (const Node &node : m_candidate->graph().nodes) {
        const auto outputs = node.outputValues();
        plan.nodesToRerun +=
            std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) { return dirty[v.get()] != 0; });
    }
    if (plan.nodesToRerun == 0 && !edits.empty() && edits != (m_last ? m_last->edits : EditSet{}))
        plan.notes.push_back("no effect: no value of the candidate changes");
    return plan;
}

// Values of the candidate that can differ between two variants: everything behind a node that reads something else
// than before, or behind a value that is made in another way.
std::vector<char> PairComparison::dirtyValues(const Variant &before, const Variant &after) const
{
    const Graph &graph = m_candidate->graph();
    std::set<ValueId> made; // given or computed by other means than before
    const auto compareMade = [&](const Variant &a, const Variant &b) {
        for (const auto &[value, tensor] : a.rewiring.given) {
            const auto other = b.rewiring.given.find(value);
            if (other == b.rewiring.given.end() || !other->second.is_same(tensor))
                made.insert(value);
        }
        for (const auto &[value, substitute] : a.rewiring.computed) {
            const auto other = b.rewiring.computed.find(value);
            const auto untouched = m_planner.untouched().computed.find(value);
            // Functions cannot be compared: one of the fused kernels is the same in every variant, others are edits.
            const bool same = other != b.rewiring.computed.end() && untouched != m_planner.untouched().computed.end() &&
                              substitute.function.target_type() == untouched->second.function.target_type() &&
                              other->second.function.target_type() == untouched->second.function.target_type();
            if (!same)
                made.insert(value);
        }
    };
    compareMade(before, after);
    compareMade(after, before);
    std::vector<ValueId> changed(made.begin(), made.end());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        for (ValueId v : graph.nodes[i].inputValues()) {
            const ValueId was = before.program->resolve(NodeId(i), v);
            const ValueId is = after.program->resolve(NodeId(i), v);
            if (was != is || made.contains(is)) {
                for (ValueId out : graph.nodes[i].outputValues())
                    changed.push_back(out);
                break;
            }
        }
    std::vector<char> dirty = after.program->downstream(changed);
    for (ValueId v : changed)
        dirty[v.get()] = 1;
    return dirty;
}

RowValues PairComparison::valuesOf(PairId id, const Program &program) const
{
    const AlignedPair &pair = m_alignment.pairs[id.get()];
    RowValues values;
    values.row = id;
    if (pair.refFromCandidate.valid())
        values.referenceOnCandidate = pair.refFromCandidate;
    else if (pair.kind == RowKind::Weight && pair.foldedNorm >= 0)
        values.constant = referenceWeight(*m_reference, m_alignment, pair);
    else
        values.reference = pair.refCompared;
    values.candidate = pair.candCompared;
    if (pair.kind == RowKind::Weight)
        return values;
    const auto differs = [&](ValueId other) {
        return other.valid() && program.resolve(NodeId{}, other) != program.resolve(NodeId{}, pair.candCompared);
    };
    if (differs(pair.cand)) {
        values.before = pair.cand;
        values.referenceBefore = pair.refBefore;
    }
    if (differs(pair.candAfter)) {
        values.after = pair.candAfter;
        values.referenceAfter = pair.refAfter;
    }
    return values;
}

Result<void> PairComparison::filesUnchanged() const
{
    const auto refuse = [](const std::string &path, const char *what) {
        return fail(ErrorCode::Unreadable, path,
                    std::string("the file has changed since it was opened, so its ") + what +
                        " may be wrong; open it again");
    };
    for (const auto &model : {m_reference, m_candidate})
        if (model->fileChanged())
            return refuse(model->info().path, "weights");
    for (const auto &file : m_inputs->m_files)
        if (file->changed())
            return refuse(file->path(), "values");
    return {};
}

Result<void> PairComparison::passOver(Pass &pass, const Variant &variant, const std::vector<char> &dirty,
                                      const RunCache *cache, const EditSet &edits, const RunOptions &options,
                                      ReportSink *sink, const std::stop_token &stop)
{
    pass.figures.resize(m_alignment.pairs.size());
    pass.reports.resize(m_alignment.pairs.size());
    pass.refMs.assign(m_reference->graph().nodes.size(), 0);
    pass.candMs.assign(m_candidate->graph().nodes.size(), 0);
    // How a range is used is a question about the grid that runs.
    const SiteTable changed = edits.respecified.empty() ? SiteTable() : m_planner.sitesUnder(edits);
    const SiteTable &sites = edits.respecified.empty() ? m_sites : changed;
    std::vector<RowValues> activations; // weights are the same in every batch: they count once
    for (const RowValues &row : pass.rows) {
        pass.figures[row.row.get()].emplace(m_alignment.pairs[row.row.get()], sites, options);
        if (m_alignment.pairs[row.row.get()].kind != RowKind::Weight)
            activations.push_back(row);
    }
    const std::int64_t batches = batchCount(options);
    std::vector<PairId> waiting;
    auto flushed = Clock::now();
    std::int64_t batch = 0;
    const auto flush = [&] {
        for (PairId row : waiting) {
            // Weights count once; after the last batch a row's figures are final: what is sent is what is kept.
            const bool last = batch + 1 >= batches || m_alignment.pairs[row.get()].kind == RowKind::Weight;
            NodeReport report = reportOf(row, pass, edits, last);
            if (sink)
                sink->row(report);
            if (last)
                pass.reports[row.get()] = std::move(report);
        }
        waiting.clear();
        flushed = Clock::now();
    };
    const auto rowDone = [&](PairId row) { waiting.push_back(row); };

    LockstepCallbacks callbacks;
    callbacks.compare = [&](const RowValues &row, const RowTensors &tensors) {
        pass.figures[row.row.get()]->add(tensors);
        rowDone(row.row);
    };
    callbacks.missing = [&](const RowValues &row, bool failedItself, const std::string &reason) {
        pass.figures[row.row.get()]->setMissing(failedItself, reason);
        rowDone(row.row);
    };
    callbacks.timed = [&](NodeId node, double ms, bool reference) {
        (reference ? pass.refMs : pass.candMs)[node.get()] = ms;
    };
    callbacks.candidateRan = [&](NodeId node, Execution &execution) {
        const SiteId site = m_sites.siteOfNode(node);
        if (!site.valid() || m_sites.site(site).form != SiteForm::DynamicQdq ||
            m_sites.site(site).nodes.front() != node)
            return;
        const auto outputs = m_candidate->graph().node(node).outputValues();
        if (outputs.size() < 2)
            return;
        const c10::IValue scale = execution.value(outputs[0]);
        const c10::IValue zero = execution.value(outputs[1]);
        if (scale.isTensor() && scale.toTensor().numel() == 1 && zero.isTensor() && zero.toTensor().numel() == 1)
            pass.dynamic[node] = {scale.toTensor().item<double>(), zero.toTensor().item<std::int64_t>()};
    };
    callbacks.progress = [&](std::int64_t node, std::int64_t nodes) {
        if (!sink || Clock::now() - flushed < kFlushEvery)
            return;
        flush();
        sink->progress(batch, batches, node, nodes);
    };

    const LockstepSide ref{m_refProgram, &m_noRewiring, {}};
    const LockstepSide cand{variant.program, &variant.rewiring, dirty};
    Lockstep first(ref, cand, pass.rows);
    std::optional<Lockstep> later;
    for (batch = 0; batch < batches; ++batch) {
        if (batch == 1)
            later.emplace(ref, cand, activations);
        Lockstep &lockstep = batch == 0 ? first : *later;
        const BatchCache *kept = cache && static_cast<std::size_t>(batch) < cache->size()
                                     ? &(*cache)[static_cast<std::size_t>(batch)]
                                     : nullptr;
        const std::uint64_t keepBytes = options.cacheBytes / static_cast<std::uint64_t>(2 * batches);
        if (!lockstep.run(m_inputs->m_batches[static_cast<std::size_t>(batch)], kept ? &kept->reference : nullptr,
                          kept ? &kept->candidate : nullptr, keepBytes, callbacks, stop))
            return fail(ErrorCode::Cancelled, {}, "cancelled; the previous results are still there");
        if (auto unchanged = filesUnchanged(); !unchanged)
            return unchanged;
        if (cache) {
            pass.freshRef.push_back(lockstep.takeFreshReference());
            pass.freshCand.push_back(lockstep.takeFreshCandidate());
        }
        flush();
        if (sink)
            sink->progress(batch + 1, batches, 0, 0);
    }
    return {};
}

Result<RunReport> PairComparison::run(const EditSet &edits, const RunOptions &given, ReportSink &sink,
                                      std::stop_token stop)
try {
    const auto start = Clock::now();
    const c10::InferenceMode guard;
    RunOptions options = given;
    if (options.threads <= 0)
        options.threads = defaultThreadCount();
    if (at::get_num_threads() != options.threads)
        at::set_num_threads(options.threads);
    if (m_alignment.pairs.empty())
        return fail(ErrorCode::Incomparable, m_candidate->info().path,
                    "no value could be paired with the reference " + m_reference->info().path +
                        "; check that both files hold the same model (dblame align lists the reasons)");
    if (batchCount(options) == 0)
        return fail(ErrorCode::Incomparable, m_reference->info().path,
                    "there are no inputs to run; give some with --inputs");
    if (auto unchanged = filesUnchanged(); !unchanged)
        return tl::unexpected(unchanged.error());

    Variant next = variant(edits);
    const bool incremental = m_last && sameFigures(m_last->options, options);
    std::vector<char> dirty;
    if (incremental)
        dirty = dirtyValues(m_last->variant, next);
    const Pending *pending = incremental && m_pending ? &*m_pending : nullptr;
    for (std::size_t v = 0; pending && v < dirty.size(); ++v)
        dirty[v] |= pending->values[v];
    Pass pass;
    for (std::size_t i = 0; i < m_alignment.pairs.size(); ++i) {
        const RowValues values = valuesOf(PairId(i), *next.program);
        if (incremental && !(pending && pending->rows[i])) {
            const auto changed = [&](ValueId v) {
                if (!v.valid())
                    return false;
                const ValueId was = m_last->variant.program->resolve(NodeId{}, v);
                const ValueId is = next.program->resolve(NodeId{}, v);
                return was != is || dirty[is.get()] != 0;
            };
            const AlignedPair &pair = m_alignment.pairs[i];
            if (!changed(pair.candCompared) && !changed(pair.cand) && !changed(pair.candAfter) &&
                !changed(pair.refFromCandidate))
                continue;
        }
        pass.rows.push_back(values);
    }
    const RunCache none(static_cast<std::size_t>(batchCount(options)));
    const RunCache *cache = options.cacheBytes == 0 ? nullptr : incremental ? &m_last->cache : &none;
    if (auto passed = passOver(pass, next, dirty, cache, edits, options, &sink, stop); !passed)
        return tl::unexpected(passed.error());

    Finished finished;
    finished.edits = edits;
    finished.options = options;
    finished.variant = std::move(next);
    finished.report.rowsRecomputed = static_cast<int>(pass.rows.size());
    if (incremental)
        finished.report.rows = m_last->report.rows;
    else
        finished.report.rows.resize(m_alignment.pairs.size());
    for (NodeReport &row : finished.report.rows)
        row.carriedOver = incremental;
    for (const RowValues &row : pass.rows)
        finished.report.rows[row.row.get()] = std::move(*pass.reports[row.row.get()]);
    if (incremental) // a site may be switched for one reader only: its row keeps its figures, not its words
        for (NodeReport &row : finished.report.rows)
            if (row.carriedOver) {
                const auto states = siteReports(m_alignment.pairs[row.row.get()], pass, edits);
                for (std::size_t k = 0; k < states.size() && k < row.sites.size(); ++k) {
                    row.sites[k].on = states[k].on;
                    row.sites[k].change = states[k].change;
                }
            }
    if (cache) {
        finished.cache = incremental ? std::move(m_last->cache) : RunCache(none.size());
        for (std::size_t b = 0; b < finished.cache.size(); ++b) {
            const std::uint64_t budget = options.cacheBytes / (2 * finished.cache.size());
            if (!incremental) {
                finished.cache[b].reference.reset(budget);
                finished.cache[b].candidate.reset(budget);
            }
            for (std::size_t v = 0; v < dirty.size(); ++v)
                if (dirty[v])
                    finished.cache[b].candidate.drop(ValueId(v));
            for (const auto &[id, value] : pass.freshRef[b])
                finished.cache[b].reference.put(id, value);
            for (const auto &[id, value] : pass.freshCand[b])
                finished.cache[b].candidate.put(id, value);
        }
    }
    finish(finished.report, edits, options);
    finished.report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    m_last = std::move(finished);
    m_pending.reset();
    return m_last->report;
} catch (const c10::Error &error) {
    return fail(ErrorCode::Internal, m_candidate->info().path, error.what_without_backtrace(), error.what());
} catch (const std::exception &error) {
    return fail(ErrorCode::Internal, m_candidate->info().path, error.what());
}

Result<NodeReport> PairComparison::detail(PairId row, std::stop_token stop)
try {
    const c10::InferenceMode guard;
    if (!m_last || m_pending)
        return fail(ErrorCode::Usage, {}, "run the comparison first");
    if (auto unchanged = filesUnchanged(); !unchanged)
        return tl::unexpected(unchanged.error());
    RunOptions options = m_last->options;
    options.channels = options.histograms = options.exactHistograms = true;
    options.hashes = false;
    if (at::get_num_threads() != options.threads)
        at::set_num_threads(options.threads);
    Pass pass;
    pass.rows.push_back(valuesOf(row, *m_last->variant.program));
    const RunCache *cache = m_last->cache.empty() ? nullptr : &m_last->cache;
    if (auto passed = passOver(pass, m_last->variant, {}, cache, m_last->edits, options, nullptr, stop); !passed)
        return tl::unexpected(passed.error());
    NodeReport report = std::move(*pass.reports[row.get()]);
    const NodeReport &known = m_last->report.rows[row.get()];
    report.dropDb = known.dropDb;
    report.flowDropDb = known.flowDropDb;
    return report;
} catch (const c10::Error &error) {
    return fail(ErrorCode::Internal, m_candidate->info().path, error.what_without_backtrace(), error.what());
} catch (const std::exception &error) {
    return fail(ErrorCode::Internal, m_candidate->info().path, error.what());
}

std::unique_ptr<Comparison> makeComparison(std::shared_ptr<const LoadedModel> reference,
                                           std::shared_ptr<const LoadedModel> candidate,
                                           std::shared_ptr<const LoadedInputs> inputs,
                                           const std::vector<HandPair> &hand, Comparison *before)
{
    auto made = std::make_unique<PairComparison>(std::move(reference), std::move(candidate), std::move(inputs), hand);
    if (const auto *pair = dynamic_cast<const PairComparison *>(before))
        made->adopt(*pair);
    return made;
}

} // namespace dblame

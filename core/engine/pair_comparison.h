// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to comparison*.cpp: full runs and reruns (comparison.cpp), what is said about them (comparison_report.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/comparison.h"
#include "core/engine/lockstep.h"
#include "core/engine/row_figures.h"
#include "core/engine/site_plan.h"
#include "core/engine/value_keys.h"

namespace dblame
{

class PairComparison final : public Comparison
{
public:
    PairComparison(std::shared_ptr<const LoadedModel> reference, std::shared_ptr<const LoadedModel> candidate,
                   std::shared_ptr<const LoadedInputs> inputs, const std::vector<HandPair> &hand)
        : m_reference(std::move(reference)), m_candidate(std::move(candidate)), m_inputs(std::move(inputs)),
          m_sites(recognizeSites(*m_candidate)), m_alignment(align(*m_reference, *m_candidate, m_sites, hand)),
          m_planner(m_reference, m_candidate, m_sites, m_alignment),
          m_refProgram(Program::compile(m_reference)->rewired({})), m_candProgram(Program::compile(m_candidate))
    {
    }

    const SiteTable &sites() const override { return m_sites; }
    const Alignment &alignment() const override { return m_alignment; }

    Result<Plan> plan(const EditSet &edits) override;

    Result<RunReport> run(const EditSet &edits, const RunOptions &given, ReportSink &sink,
                          std::stop_token stop) override;
    Result<NodeReport> detail(PairId row, std::stop_token stop) override;

    // Before the first run: takes over what the last run of `before` has in common with this candidate.
    void adopt(const PairComparison &before);

private:
    // The candidate under some edits.
    struct Variant {
        Rewiring rewiring;
        std::shared_ptr<const Program> program;
    };
    struct Finished {
        EditSet edits;
        RunOptions options;
        Variant variant;
        RunReport report;
        RunCache cache;
    };
    // One pass over the batches for some of the rows.
    struct Pass {
        std::vector<RowValues> rows;
        std::vector<std::optional<RowFigures>> figures;            // per alignment row
        std::vector<std::optional<NodeReport>> reports;            // per alignment row, final
        std::vector<double> refMs, candMs;                         // per node
        std::map<NodeId, std::pair<double, std::int64_t>> dynamic; // choose_qparams node -> last scale, zero point
        std::vector<std::vector<std::pair<ValueId, c10::IValue>>> freshRef, freshCand; // per batch
    };

    // What a comparison before this one could not give.
    struct Pending {
        std::vector<char> values; // of the candidate
        std::vector<char> rows;
    };

    Variant variant(const EditSet &edits) const
    {
        Variant result;
        result.rewiring = m_planner.rewiring(edits);
        result.program = m_candProgram->rewired(result.rewiring);
        return result;
    }

    // Keys of the candidate's values where a recipe made it.
    [[nodiscard]] std::vector<ValueKey> keys() const;
    [[nodiscard]] std::vector<ValueId> sameValues(const PairComparison &before) const;
    [[nodiscard]] std::optional<NodeReport> sameRow(PairId id, const PairComparison &before,
                                                    const std::vector<ValueId> &same) const;
    std::vector<char> dirtyValues(const Variant &before, const Variant &after) const;
    RowValues valuesOf(PairId id, const Program &program) const;
    // Fails when stopped, or when a file changed under it.
    Result<void> passOver(Pass &pass, const Variant &variant, const std::vector<char> &dirty, const RunCache *cache,
                          const EditSet &edits, const RunOptions &options, ReportSink *sink,
                          const std::stop_token &stop);
    // Fails when weights or inputs lie in the mapping of a file that is no longer the one that was opened.
    [[nodiscard]] Result<void> filesUnchanged() const;
    NodeReport reportOf(PairId id, Pass &pass, const EditSet &edits, bool final) const;
    std::vector<SiteReport> siteReports(const AlignedPair &pair, const Pass &pass, const EditSet &edits) const;
    void finish(RunReport &report, const EditSet &edits, const RunOptions &options) const;
    void addWarnings(RunReport &report, const EditSet &edits) const;
    std::int64_t batchCount(const RunOptions &options) const
    {
        const auto all = static_cast<std::int64_t>(m_inputs->m_batches.size());
        return options.limitBatches > 0 ? std::min(all, options.limitBatches) : all;
    }

    std::shared_ptr<const LoadedModel> m_reference, m_candidate;
    std::shared_ptr<const LoadedInputs> m_inputs;
    SiteTable m_sites;
    Alignment m_alignment;
    SitePlanner m_planner;
    std::shared_ptr<const Program> m_refProgram, m_candProgram;
    const Rewiring m_noRewiring;
    std::optional<Finished> m_last;
    std::optional<Pending> m_pending; // m_last was taken over, and has not been completed by a run yet
};

} // namespace dblame

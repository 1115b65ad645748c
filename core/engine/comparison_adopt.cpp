// SPDX-License-Identifier: GPL-3.0-or-later
//
// From one recipe's candidate to the next: what both compute in the same way need not be computed again.
#include <algorithm>
#include <unordered_map>

#include <c10/core/InferenceMode.h>

#include "core/engine/pair_comparison.h"

namespace dblame
{

namespace
{

std::size_t operatorCount(const LoadedModel &model)
{
    const auto &sites = model.m_planned->table.ofNode;
    return static_cast<std::size_t>(std::count(sites.begin(), sites.end(), -1));
}

} // namespace

std::vector<ValueKey> PairComparison::keys() const
{
    const PlannedSites &planned = *m_candidate->m_planned;
    return valueKeys(*m_candidate, planned.origin,
                     [&](NodeId node, const std::vector<ValueKey> &known) -> std::optional<ValueKey> {
                         const SiteId site = planned.table.siteOfNode(node);
                         if (!site.valid())
                             return std::nullopt;
                         return Digest("site")
                             .text(planned.keys[site.get()])
                             .text(known[planned.table.site(site).source.get()])
                             .key();
                     });
}

// Per value of this candidate, the value of the other that equals it in the other's last run; invalid: none does.
std::vector<ValueId> PairComparison::sameValues(const PairComparison &before) const
{
    const Graph &graph = m_candidate->graph();
    const Graph &other = before.m_candidate->graph();
    const std::vector<ValueKey> mine = keys();
    const std::vector<ValueKey> theirs = before.keys();
    const Variant plain = before.variant({});
    const Variant &ran = before.m_last->variant;
    std::vector<char> edited = before.dirtyValues(plain, ran);
    for (std::size_t v = 0; before.m_pending && v < edited.size(); ++v)
        edited[v] |= before.m_pending->values[v];
    const auto stands = [&](ValueId v) {
        return edited[v.get()] == 0 && ran.program->resolve(NodeId{}, v) == plain.program->resolve(NodeId{}, v);
    };
    // Operators keep their names from one recipe to the next. Sites do not, but nothing writes into their results.
    std::unordered_map<ValueKey, ValueId> results;
    for (const QuantSite &site : before.m_sites.sites)
        if (stands(site.result))
            results.emplace(theirs[site.result.get()], site.result);
    std::vector<ValueId> same(graph.values.size());
    for (std::size_t v = 0; v < same.size(); ++v) {
        if (m_sites.siteOfResult(ValueId(v)).valid()) {
            if (const auto found = results.find(mine[v]); found != results.end())
                same[v] = found->second;
        } else if (const ValueId named = other.find(graph.values[v].name);
                   named.valid() && theirs[named.get()] == mine[v] && stands(named)) {
            same[v] = named;
        }
    }
    std::vector<ValueId> changed;
    for (std::size_t v = 0; v < same.size(); ++v)
        if (!same[v].valid())
            changed.push_back(ValueId(v));
    // What is written in place behind a change is another value, whatever its key.
    const std::vector<char> behind = variant({}).program->downstream(changed);
    for (std::size_t v = 0; v < same.size(); ++v)
        if (behind[v] != 0)
            same[v] = {};
    return same;
}

// The other's row of the same reference value, if all that it looked at is the same here.
std::optional<NodeReport> PairComparison::sameRow(PairId id, const PairComparison &before,
                                                  const std::vector<ValueId> &same) const
{
    const AlignedPair &pair = m_alignment.pairs[id.get()];
    const std::int32_t at = before.m_alignment.rowOfRef[pair.ref.get()];
    if (at < 0 || (before.m_pending && before.m_pending->rows[static_cast<std::size_t>(at)]))
        return std::nullopt;
    const AlignedPair &old = before.m_alignment.pairs[static_cast<std::size_t>(at)];
    const auto equal = [&](ValueId mine, ValueId theirs) {
        return mine.valid() ? same[mine.get()].valid() && same[mine.get()] == theirs : !theirs.valid();
    };
    if (old.ref != pair.ref || old.kind != pair.kind || old.refCompared != pair.refCompared ||
        old.refBefore != pair.refBefore || old.refAfter != pair.refAfter || old.folded != pair.folded ||
        old.channelAxis != pair.channelAxis || old.inputSites.size() != pair.inputSites.size() ||
        old.site.valid() != pair.site.valid() || !equal(pair.cand, old.cand) ||
        !equal(pair.candCompared, old.candCompared) || !equal(pair.candAfter, old.candAfter) ||
        !equal(pair.refFromCandidate, old.refFromCandidate))
        return std::nullopt;
    const auto sameSite = [&](SiteId mine, SiteId theirs) {
        return equal(m_sites.site(mine).result, before.m_sites.site(theirs).result);
    };
    if (pair.site.valid() && !sameSite(pair.site, old.site))
        return std::nullopt;
    for (std::size_t k = 0; k < pair.inputSites.size(); ++k)
        if (!sameSite(pair.inputSites[k], old.inputSites[k]))
            return std::nullopt;

    NodeReport report = before.m_last->report.rows[static_cast<std::size_t>(at)];
    report.row = id;
    std::vector<SiteReport> sites = siteReports(pair, {}, {});
    for (std::size_t k = 0; k < sites.size() && k < report.sites.size(); ++k) {
        sites[k].clipped = report.sites[k].clipped;
        sites[k].unusedRange = report.sites[k].unusedRange;
        sites[k].scale = report.sites[k].scale; // of a dynamic site: of the last batch
        sites[k].zeroPoint = report.sites[k].zeroPoint;
    }
    report.sites = std::move(sites);
    return report;
}

void PairComparison::adopt(const PairComparison &before)
{
    if (!before.m_last || before.m_reference != m_reference || before.m_inputs != m_inputs || !m_candidate->m_planned ||
        !before.m_candidate->m_planned || operatorCount(*m_candidate) != operatorCount(*before.m_candidate))
        return;
    const c10::InferenceMode guard;
    const std::vector<ValueId> same = sameValues(before);
    if (std::none_of(m_sites.sites.begin(), m_sites.sites.end(),
                     [&](const QuantSite &site) { return same[site.result.get()].valid(); }))
        return; // what is left is not worth its memory
    Finished taken;
    taken.options = before.m_last->options;
    taken.variant = variant({});
    taken.report.rows.resize(m_alignment.pairs.size());
    Pending pending;
    pending.values.resize(same.size());
    for (std::size_t v = 0; v < same.size(); ++v)
        pending.values[v] = same[v].valid() ? 0 : 1;
    for (std::size_t i = 0; i < m_alignment.pairs.size(); ++i) {
        auto row = sameRow(PairId(i), before, same);
        pending.rows.push_back(row ? 0 : 1);
        if (row)
            taken.report.rows[i] = std::move(*row);
    }
    for (const BatchCache &batch : before.m_last->cache) {
        BatchCache &copy = taken.cache.emplace_back();
        copy.reference = batch.reference;
        copy.candidate.reset(taken.options.cacheBytes / (2 * before.m_last->cache.size()));
        for (std::size_t v = 0; v < same.size(); ++v)
            if (same[v].valid())
                if (const c10::IValue *value = batch.candidate.find(same[v]))
                    copy.candidate.put(ValueId(v), *value);
    }
    m_last = std::move(taken);
    m_pending = std::move(pending);
}

} // namespace dblame

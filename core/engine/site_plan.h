// SPDX-License-Identifier: GPL-3.0-or-later
//
// From edits to a rewiring: what is read and computed differently, and in words what will happen.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/alignment.h"
#include "core/edits.h"
#include "core/engine/program.h"
#include "core/engine/site_kernels.h"
#include "core/error.h"
#include "core/quant_site.h"

namespace dblame
{

// Decides, once per pair of models, what each site can become; then turns edit sets into rewirings.
class SitePlanner
{
public:
    SitePlanner(std::shared_ptr<const LoadedModel> reference, std::shared_ptr<const LoadedModel> candidate,
                const SiteTable &sites, const Alignment &alignment);

    // Fused kernels for the sites that allow them; what an unedited run uses.
    [[nodiscard]] const Rewiring &untouched() const { return m_untouched; }
    // Edits on top of untouched(). Refused edits leave their site as it is.
    [[nodiscard]] Rewiring rewiring(const EditSet &edits) const;
    // One entry per edit, with the words for the user; nodes to rerun are filled in by the comparison.
    [[nodiscard]] Plan plan(const EditSet &edits) const;
    // Why the site cannot be float or re-specified; empty when it can.
    [[nodiscard]] std::string refusal(SiteId site) const;
    // Why the site cannot take this spec; empty when it can.
    [[nodiscard]] std::string refusal(SiteId site, const SpecChange &change) const;
    // Scales and zero points of the site under a spec that it takes; empty where they depend on each tensor.
    [[nodiscard]] SiteQparams qparams(SiteId site, const SpecChange &change) const;
    // Ids of everything that is off or bypassed and not refused, sorted.
    [[nodiscard]] std::vector<std::string> offIds(const EditSet &edits) const;
    [[nodiscard]] std::vector<std::string> changedIds(const EditSet &edits) const;
    // The sites as these edits leave them: with the specs, scales and zero points that they take.
    [[nodiscard]] SiteTable sitesUnder(const EditSet &edits) const;
    // Every site that quantizes is off under these edits.
    [[nodiscard]] bool everythingOff(const EditSet &edits) const;

private:
    struct FloatSource {
        bool inGraph = false; // the site's own float input
        at::Tensor tensor;    // or the reference's weight
        std::string refusal;  // or why there is none
        std::string text;     // where it comes from, in words
    };
    [[nodiscard]] const FloatSource &sourceOf(SiteId site) const;
    [[nodiscard]] FloatSource findSource(SiteId site) const;
    void addFusedKernels();
    void switchOff(SiteId site, Rewiring &rewiring) const;
    void respecify(SiteId site, const SpecChange &change, Rewiring &rewiring) const;
    // Or why there are none.
    [[nodiscard]] const std::pair<SiteQparams, std::string> &chosenQparams(SiteId site, const SpecChange &change) const;
    [[nodiscard]] std::string weightWords(SiteId site) const;
    [[nodiscard]] std::string edgeId(const EdgeBypass &edge) const;
    void noteGroups(const EditSet &edits, Plan &plan) const;

    std::shared_ptr<const LoadedModel> m_reference, m_candidate;
    const SiteTable &m_sites;
    const Alignment &m_alignment;
    Rewiring m_untouched;
    mutable std::unordered_map<SiteId, FloatSource> m_sources; // found on first use
    // Of the last spec asked for.
    mutable std::unordered_map<SiteId, std::pair<SpecChange, std::pair<SiteQparams, std::string>>> m_qparams;
};

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where a quantizer puts its observers in a float graph, and which of them are one instance. Plain structure: no
// tensor is touched, no range is known. The graph given is the one the quantizer annotates: batch norms folded or
// rewritten, scalars lifted (core/float_rewrite.h).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/graph.h"
#include "core/selector.h"
#include "core/tensor_spec.h"

namespace dblame
{

// One insertion point. It stands after `value` (or after the result of site `after`, if that is not -1) and is read
// by `readers` in place of it; readers that are not listed keep what they read.
struct PlacedSite {
    std::string id; // "block.conv2/weight", as QuantSite::id
    SiteRole role = SiteRole::Output;
    NodeId owner;        // the operator that asked: reader (weight, input) or producer (output)
    int inputIndex = -1; // Input, Weight: distinct tensor argument of the owner
    ValueId value;
    int after = -1;
    std::vector<NodeId> readers; // in execution order; those that read it through a later site are listed there only
    // Input site with several readers: one id per reader, `id` first. A converted candidate has a dequantize, hence a
    // recognized site, for each of them.
    std::vector<std::string> readerIds;
    bool readByOutput = false; // the graph's result also goes through it
    int instance = -1;
};

// One observer; several sites may share it. It observes at each of its sites, in the order of the sites.
struct PlacedObserver {
    TensorSpec spec;  // axis resolved
    std::string name; // "activation_post_process_3"
};

// An operator that reads weights and stays float, with the reason.
struct LeftFloat {
    NodeId node;
    std::string reason;
};

// A weight that the whole-parameter dictionary of the peer would see once: where the peer's defects bite (by number of
// docs/quantization.md, "Known defects").
struct DefectNote {
    int defect = 0;
    NodeId node; // may be invalid
    std::string text;
};

struct Placement {
    std::vector<PlacedSite> sites; // in execution order of the insertion points
    std::vector<PlacedObserver> observers;
    std::vector<LeftFloat> leftFloat;
    std::vector<DefectNote> defects;
    std::vector<std::string> warnings; // overrides that changed nothing and the like
};

// A change to what the quantizer asks, by operator. Applied after annotation, before sharing and insertion.
struct SpecOverride {
    std::vector<NodeId> nodes;
    Facet facet = Facet::All;
    int inputIndex = -1;            // Facet::In; -1: every input
    std::optional<TensorSpec> spec; // nullopt: no site is asked for
    std::string text;               // as the user wrote it
};

// torchao's XNNPACKQuantizer and X86InductorQuantizer.
struct Pt2eConfig {
    bool x86 = false;
    bool qat = false;
    bool dynamic = false;
    bool perChannel = true;   // weights; x86: always
    bool reduceRange = false; // x86
    bool corrected = false;   // without the peer's known defects
    // 0-d constants beyond 3.4028235e15: what torch.histc takes. XNNPACKQuantizer leaves an add or mul of one float.
    std::set<ValueId> hugeScalars;
    std::set<NodeId> excluded; // operators the quantizer must not annotate ("None" for a layer)
    std::vector<SpecOverride> overrides;
};
[[nodiscard]] Result<Placement> placeXnnpack(const Graph &graph, const Pt2eConfig &config);
[[nodiscard]] Result<Placement> placeX86(const Graph &graph, const Pt2eConfig &config);

struct CoreAiConfig; // core/coreai_config.h
// Weight-only and W8A8 quantization, graph mode (or eager placement if the config asks for it).
[[nodiscard]] Result<Placement> placeCoreAi(const Graph &graph, const CoreAiConfig &config, bool corrected = false);
struct PaletteConfig; // core/coreai_config.h
[[nodiscard]] Result<Placement> placePalettes(const Graph &graph, const PaletteConfig &config, bool corrected = false);

} // namespace dblame

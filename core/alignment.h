// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which reference value answers to which candidate value, by what rule, and everything that found no
// partner, with the reason.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/model.h"
#include "core/quant_site.h"

namespace dblame
{

// The ladder, strongest first. Every pair keeps the rung that made it.
enum class Rung { Provenance, DebugHandle, Name, ModuleOrdinal, Structure, Signature, ByHand };
[[nodiscard]] const char *
rungName(Rung rung); // "from_node", "debug handle", "name", "module", "structure", "signature", "by hand"

enum class RowKind { Activation, Weight, Input, Output };
[[nodiscard]] const char *rowKindName(RowKind kind);

// conv -> batch_norm on the reference side that the candidate folded into one convolution.
struct FoldedNorm {
    NodeId conv;      // in the reference
    NodeId norm;      // in the reference
    std::string name; // of the batch norm's value
};

struct AlignedPair {
    RowKind kind = RowKind::Activation;
    ValueId ref;                    // the row's reference value (name, module and operator come from it)
    ValueId cand;                   // the candidate value before its output site
    ValueId refCompared;            // what is compared: ref, or the value after a folded norm, and after the
                                    // reference's own output or weight site where it is quantized itself
    ValueId candCompared;           // what is compared: cand, or the value after its output site
    ValueId refFromCandidate;       // Weight rows of a norm that the candidate rewrote (W·sf): the row compares this
                                    // value of the candidate, the site's own float input, with the site's result
    ValueId candAfter;              // value after the consumers' input site where only those follow; invalid otherwise
    ValueId refBefore;              // what is compared with `cand` and named before_site_db: refCompared before the
                                    // reference's own site; invalid where it has none
    ValueId refAfter;               // what is compared with candAfter: refCompared after the input site of its own
                                    // consumers; invalid where it has none
    SiteId site;                    // output or weight site on the candidate side; invalid when there is none
    std::vector<SiteId> inputSites; // the consumers' input sites
    Rung rung = Rung::Name;
    std::string reason;              // words for the user: "same innermost source conv2d", "path fc, aten.linear, 1st"
    std::vector<std::string> folded; // names of norms folded into this row
    std::string rewritten;           // how the candidate rewrote this operator, in words; empty when it did not
    std::int32_t foldedNorm = -1;    // into Alignment::folds, for the weight and the conv row of a fold
    int channelAxis = -1;            // axis of the channel numbers, -1 when there is none
};

enum class Side { Reference, Candidate };
struct Unmatched {
    Side side = Side::Reference;
    ValueId value;
    std::string name; // value name
    std::string module;
    std::string reason;
};

struct HandPair {
    std::string ref, cand; // value names
};

struct Alignment {
    std::vector<AlignedPair> pairs; // parameters and inputs first, then execution order of the reference
    std::vector<Unmatched> unmatched;
    std::vector<FoldedNorm> folds;
    std::vector<std::int32_t> rowOfRef;  // reference value -> its row, or -1 (a folded norm has the convolution's)
    std::vector<std::int32_t> rowOfCand; // candidate value -> its row (raw value or value after its site), or -1
    std::vector<std::string> notes;      // "4 batch norms folded into the convolutions before them"
    int shapeMismatches = 0;
};

// The reference's value that a row's figures are of: what `ref` is, after the reference's own site where it has one.
[[nodiscard]] inline ValueId namedReference(const AlignedPair &pair)
{
    return pair.refBefore.valid() ? pair.refCompared : pair.ref;
}

// Pairs two graphs. `hand` pairs win over every rung; one that names no value is reported in notes.
[[nodiscard]] Alignment align(const Model &reference, const Model &candidate, const SiteTable &candidateSites,
                              const std::vector<HandPair> &hand = {});

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// One place where a tensor is quantized: a weight or an activation. Recognized in a loaded candidate
// (recognizeSites), in every form a saved model can take; the rest of the program does not care which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"
#include "core/ids.h"
#include "core/model.h"

namespace dblame
{

enum class SiteForm {
    QdqPair,             // quantize -> dequantize, constants for qparams
    DynamicQdq,          // choose_qparams -> quantize -> dequantize
    DequantizedWeight,   // int8 constant -> dequantize: the float weight is not in the graph
    FakeQuantizeOp,      // aten.fake_quantize_*
    FusedObserver,       // aten.fused_moving_avg_obs_fake_quant: observes and quantizes, mutates its state
    DecomposedFakeQuant, // coreai-opt's ~20 aten operators under one observer module
    FoldedWeight,        // floats that take few values: a palette or a grid folded back into the weight
    WatchingObserver,    // a min-max observer: its output is its input
    Planned,             // put there by a recipe
};
[[nodiscard]] const char *siteFormName(SiteForm form); // words for the user

enum class SiteRole { Weight, Input, Output };
[[nodiscard]] const char *siteRoleName(SiteRole role);

enum class Granularity { PerTensor, PerChannel, PerBlock, PerToken };
[[nodiscard]] const char *granularityName(Granularity granularity);

// How a site quantizes. Integer grids: q = clamp(round(x / scale) + zeroPoint, quantMin, quantMax).
struct QuantSpec {
    DType storage = DType::Int8; // the type that holds q
    std::int64_t quantMin = -128;
    std::int64_t quantMax = 127;
    bool symmetric = false;
    Granularity granularity = Granularity::PerTensor;
    int axis = -1;              // per channel
    std::int64_t blockSize = 0; // per block
    std::int64_t tableSize = 0; // entries of a lookup table; 0: a uniform grid
    bool dynamic = false;       // qparams chosen from each tensor
    bool divides = false;       // x / scale, as coreai-opt does; else x * (1 / scale)

    // ceil(log2(quantMax - quantMin + 1)): 0..65535 held in int32 is 16 bits.
    [[nodiscard]] int effectiveBits() const;
    // "int8 symmetric per channel"
    [[nodiscard]] std::string text() const;
};

struct QuantSite {
    std::string id; // "block.conv2/weight", "conv2d_3→add/in[1]"; stable over re-export
    SiteForm form = SiteForm::QdqPair;
    SiteRole role = SiteRole::Output;
    std::string module; // path of the layer it belongs to
    std::string moduleType;
    NodeId owner;         // the operator it belongs to (weight, input: the reader; output: the producer).
                          // Invalid for the output site of a graph input.
    int inputIndex = -1;  // Input and Weight: which distinct tensor argument of the owner
    std::string instance; // observer instance; sites with the same text share qparams
    int group = -1;       // grid group: sites that re-quantize the same values on the same grid; -1 alone

    ValueId source; // the float value that is quantized; invalid for DequantizedWeight
    ValueId stored; // the stored tensor behind it (float weight or int8 constant); invalid for activations
    ValueId result; // what the readers see
    std::vector<ValueId> moreResults; // the dq copies of other readers (torchao clones one dq per reader)
    std::vector<NodeId> nodes;        // every node that makes up the site; none for a FoldedWeight
    std::vector<NodeId> readers;      // operators outside the site that read result or moreResults

    QuantSpec spec;
    std::vector<double> scale; // one, or one per channel/block; empty when dynamic
    std::vector<std::int64_t> zeroPoint;
    bool watchesOnly = false; // does not change the value
    bool enabled = true;      // its own on/off flag in the file
    std::string weightTarget; // Weight: state-dict name of the float parameter if known ("conv.weight")
};

struct SiteTable {
    std::vector<QuantSite> sites;       // in execution order of their last node
    std::vector<std::int32_t> ofNode;   // node -> site index it is part of (the first, where several share it), or -1
    std::vector<std::int32_t> ofResult; // value -> site whose result or copy it is, or -1
    std::vector<std::int32_t> outputOf; // value -> output site that reads it, or -1
    std::vector<std::string> notes;     // what looked like a site and was not understood, with the node's name

    [[nodiscard]] const QuantSite &site(SiteId id) const { return sites[id.get()]; }
    [[nodiscard]] SiteId siteOfNode(NodeId node) const;
    [[nodiscard]] SiteId byId(const std::string &id) const; // invalid when there is none
    // The site whose result (or one of whose copies) this value is; invalid when there is none.
    [[nodiscard]] SiteId siteOfResult(ValueId value) const;
    // The output site that reads this value; invalid when there is none.
    [[nodiscard]] SiteId outputSiteOf(ValueId value) const;
};

// Finds the sites of a graph: forms 1 to 6 and 9, 10 of the format notes (docs/sites.md).
// Whose site it is: a weight site belongs to the operator that reads it; a fake-quant cluster or
// operator on an activation is the output site of the value it reads; an activation q->dq is the output
// site of its producer if the dq's provenance contains the producer's innermost name, else the input
// site of its reader.
[[nodiscard]] SiteTable recognizeSites(const Model &model);

} // namespace dblame

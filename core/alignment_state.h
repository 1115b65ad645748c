// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the two halves of align() share: node pairs while the ladder is climbed, rows made from them afterwards.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/alignment.h"
#include "core/graph.h"
#include "core/model.h"
#include "core/quant_site.h"

namespace dblame
{

struct SideState {
    const Model &model;
    const Graph &graph;
    const SiteTable &sites;
    std::vector<char> depends;      // per value: depends on a user input
    std::vector<std::int32_t> pair; // per node: partner's index, or -1
    std::vector<char> usable;       // per node: computes an activation outside every site
};

class AlignmentState
{
public:
    AlignmentState(const Model &refModel, const Model &candModel, const SiteTable &refSiteTable,
                   const SiteTable &candSiteTable);

    struct How {
        Rung rung;
        std::string reason;
    };

    SideState ref, cand;
    std::map<NodeId, How> how;                       // per paired reference node
    std::map<NodeId, NodeId> foldOf;                 // reference norm -> the convolution it is folded into
    std::map<NodeId, NodeId> foldedInto;             // reference convolution -> its norm
    std::unordered_map<ValueId, ValueId> userInputs; // reference -> candidate
    std::map<NodeId, std::string> doubts;            // reference node -> why a rung passed it over
    std::vector<std::string> notes;

    void pairUserInputs();
    // The value before its quantizers: follows site results back to the source.
    [[nodiscard]] ValueId rawCandidate(ValueId value) const;
    [[nodiscard]] ValueId rawReference(ValueId value) const;
    // Candidate value (before its site) that answers to a reference value, by the node pairs so far.
    [[nodiscard]] ValueId partnerOf(ValueId value) const;
    // The value that stands for a candidate operator's result when its norm was rewritten.
    [[nodiscard]] ValueId effective(ValueId value) const;
    [[nodiscard]] bool otherInputsAreWeights(NodeId candNode, ValueId data) const;

private:
    static bool isActivationNode(const SideState &side, NodeId id);
};

// Rows, unmatched values and notes from the node pairs.
[[nodiscard]] Alignment rowsOf(const AlignmentState &state);

// The axis that numbers the channels of a value: 1 after convolutions, the last after linear layers; -1 for none.
[[nodiscard]] std::vector<int> channelAxes(const Graph &graph);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/placement_patterns.h"

namespace dblame
{

// The parts patterns are made of.
enum class Part {
    Conv1d,
    Conv2d,
    BatchNorm,
    Add,
    ReLU,
    Hardtanh,
    Hardswish,
    ReLU6,
    SiLU,
    Linear,
    LeakyReLU,
    Tanh,
    GELU
};

// Finds the parts of X86InductorQuantizer's patterns in a graph, and chains of them.
class X86Parts
{
public:
    // `structural`: by operator alone, whatever module or export an operator comes from.
    X86Parts(const Graph &graph, bool structural) : m_graph(graph), m_structural(structural) {}

    [[nodiscard]] const std::vector<SourcePartition> &of(Part part);
    // For a linear layer alone the functional form counts too.
    [[nodiscard]] std::vector<SourcePartition> linears() const;

    // Chains of parts, one node each. The peer stops with an error where a module of the chain is called more than once
    // (it sees one part with several results); here each call stands for itself, unless `skipsRepeated`: then such
    // parts are left out, as the peer does for linear layers.
    [[nodiscard]] std::vector<std::vector<NodeId>> chains(const std::vector<Part> &sequence, bool skipsRepeated);

    // One for each part at which the peer stops.
    [[nodiscard]] std::vector<std::string> warnings() const;

private:
    [[nodiscard]] std::vector<SourcePartition> byTarget(const std::vector<std::string_view> &targets) const;

    const Graph &m_graph;
    bool m_structural;
    std::map<Part, std::vector<SourcePartition>> m_found;
    std::set<std::string> m_repeated, m_inChain;
};

} // namespace dblame

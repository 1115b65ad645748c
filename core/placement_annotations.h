// SPDX-License-Identifier: GPL-3.0-or-later
//
// What an annotating quantizer leaves at the operators of a graph, and the way from there to a Placement. Shared by
// the quantizers of torchao; the rules that annotate are in placement_xnnpack.cpp and placement_x86.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/placement_groups.h"

namespace dblame
{

// The note at one operator, or at one tensor where the peer has a node of its own for it: parameters, graph inputs, the
// results of operators that have several.
struct Annotation {
    std::vector<std::pair<ValueId, AskedSpec>> inputs; // in the order they were asked
    std::optional<AskedSpec> output;
    bool annotated = false;       // later annotators leave it alone
    bool propagated = false;      // asks only because its input's producer has an output spec
    bool quantizedOutput = false; // ends a pattern that computes with integers (x86)

    void setInput(ValueId value, AskedSpec spec); // replaces, keeping the place
};

class Annotations
{
public:
    explicit Annotations(const Graph &graph);

    [[nodiscard]] Annotation &at(NodeId node) { return m_ofNode[node.get()]; }
    // A value that is the only result of its producer shares the producer's annotation.
    [[nodiscard]] Annotation &at(ValueId value);
    [[nodiscard]] bool annotated(NodeId node) { return at(node).annotated; }
    [[nodiscard]] bool annotated(ValueId value) { return value.valid() && at(value).annotated; }
    void mark(NodeId node) { at(node).annotated = true; }
    void mark(ValueId value)
    {
        if (value.valid())
            at(value).annotated = true;
    }

    // All that is asked, in graph order.
    [[nodiscard]] SpecMap specs() const;
    [[nodiscard]] bool isPropagated(NodeId node) const { return m_ofNode[node.get()].propagated; }

private:
    const Graph &m_graph;
    std::vector<Annotation> m_ofNode;
    std::vector<Annotation> m_ofValue;
};

struct FinishOptions {
    std::string quantizer; // "XNNPACKQuantizer", for messages
    // Why an operator that reads weights got no weight site.
    std::function<std::string(NodeId)> whyFloat;
};

// Applies the overrides, groups, inserts, and lists what reads weights and stays float.
[[nodiscard]] Result<Placement> finishPlacement(const Graph &graph, Annotations &annotations, const Pt2eConfig &config,
                                                const FinishOptions &options);

// Scale and zero point of either quantizer's sites.
[[nodiscard]] TensorSpec pt2eActivationSpec(const Pt2eConfig &config);
[[nodiscard]] TensorSpec pt2eWeightSpec(const Pt2eConfig &config);

} // namespace dblame

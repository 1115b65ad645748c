// SPDX-License-Identifier: GPL-3.0-or-later
//
// What XNNPACKQuantizer asks for, annotator by annotator in its order. docs/quantization.md, "XNNPACKQuantizer".
#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/graph_query.h"
#include "core/placement.h"
#include "core/placement_annotations.h"
#include "core/placement_gru.h"
#include "core/placement_patterns.h"

namespace dblame
{

namespace
{

using Targets = std::span<const std::string_view>;

constexpr std::string_view kRelu[] = {"aten.relu.default", "aten.relu_.default"};
constexpr std::string_view kLinear[] = {"aten.linear.default"};
constexpr std::string_view kConv[] = {"aten.conv1d.default", "aten.conv1d.padding", "aten.conv2d.default",
                                      "aten.conv2d.padding", "aten.conv3d.default", "aten.conv3d.padding"};
constexpr std::string_view kBareConv[] = {"aten.conv1d.default", "aten.conv2d.default"};
constexpr std::string_view kConvTranspose[] = {"aten.conv_transpose1d.default", "aten.conv_transpose2d.input",
                                               "aten.conv_transpose3d.input"};
constexpr std::string_view kAnyConv[] = {
    "aten.conv1d.default",           "aten.conv1d.padding",         "aten.conv2d.default",
    "aten.conv2d.padding",           "aten.conv3d.default",         "aten.conv3d.padding",
    "aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input"};
constexpr std::string_view kAdd[] = {"aten.add.Tensor", "aten.add_.Tensor"};
constexpr std::string_view kMul[] = {"aten.mul.Tensor", "aten.mul_.Tensor"};
constexpr std::string_view kPool[] = {"aten.adaptive_avg_pool2d.default"};
constexpr std::string_view kCat[] = {"aten.cat.default"};
// Operators that pass the spec of their input on.
constexpr std::string_view kPassOn[] = {
    "aten.relu.default", "aten.hardtanh.default",  "aten.hardtanh_.default", "aten.max_pool2d.default",
    "aten.mean.default", "aten.mean.dim",          "aten.permute.default",   "aten.permute_copy.default",
    "aten.squeeze.dim",  "aten.squeeze_copy.dim",  "aten.view_copy.default", "aten.adaptive_avg_pool2d.default",
    "aten.view.default", "aten.slice_copy.Tensor", "aten.flatten.using_ints"};

constexpr std::string_view kName = "XNNPACKQuantizer";

class Xnnpack
{
public:
    Xnnpack(const Graph &graph, const Pt2eConfig &config)
        : m_graph(graph), m_config(config), m_notes(graph), m_activation(pt2eActivationSpec(config)),
          m_weight(pt2eWeightSpec(config))
    {
    }

    Result<Placement> run()
    {
        if (m_config.dynamic)
            linear();
        else
            annotateStatic();
        propagate();
        FinishOptions options;
        options.quantizer = kName;
        options.whyFloat = [this](NodeId node) { return whyFloat(node); };
        auto placement = finishPlacement(m_graph, m_notes, m_config, options);
        if (!placement)
            return placement;
        placement->warnings.insert(placement->warnings.end(), m_warnings.begin(), m_warnings.end());
        placement->defects = std::move(m_defects);
        std::stable_sort(placement->defects.begin(), placement->defects.end(),
                         [](const DefectNote &a, const DefectNote &b) { return a.node < b.node; });
        return placement;
    }

private:
    void annotateStatic()
    {
        if (m_config.qat) {
            convBatchNorm(false, true);
            convBatchNorm(false, false);
            convBatchNorm(true, true);
            convBatchNorm(true, false);
            if (!m_config.corrected)
                m_defects.push_back({4, NodeId{},
                                     "training simulates with other scales than conversion deploys: the fused "
                                     "fake-quant computes its qparams by a rule of its own"});
        }
        fusedRelu(kLinear);
        linear();
        fusedRelu(kConv);
        bareConv();
        fusedRelu(kConvTranspose);
        adaptivePool();
        m_gruNote = annotateGrus(m_graph, m_config, m_activation, m_notes, m_warnings);
        binaryRelu(kAdd);
        binary(kAdd);
        binaryRelu(kMul);
        binary(kMul);
        cat();
        tellOtherTypes();
        for (const auto &[node, parameters] : m_sharedWeight)
            if (!m_notes.annotated(node) && !m_config.corrected)
                m_defects.push_back({3, node,
                                     "shares its weight or bias with a convolution before it: only the first use is "
                                     "quantized, this one computes with the float weight"});
    }

    // --- filters -------------------------------------------------------------------------------------------------

    [[nodiscard]] bool allowed(NodeId node) const { return !m_config.excluded.contains(node); }
    [[nodiscard]] bool allowed(ValueId value) const
    {
        const NodeId producer = value.valid() ? m_graph.value(value).producer : NodeId{};
        return !producer.valid() || allowed(producer);
    }

    [[nodiscard]] std::vector<NodeId> nodesOf(Targets targets) const
    {
        std::vector<NodeId> nodes;
        for (std::size_t n = 0; n < m_graph.nodes.size(); ++n)
            if (isTarget(m_graph.nodes[n], targets))
                nodes.emplace_back(n);
        return nodes;
    }

    // --- weighted operators --------------------------------------------------------------------------------------

    struct Weighted {
        ValueId input, weight, bias; // bias may be invalid
    };
    [[nodiscard]] Weighted weighted(NodeId node) const
    {
        const Node &n = m_graph.node(node);
        return {argumentAt(n, 0), argumentAt(n, 1), argumentAt(n, 2)};
    }

    // A pattern takes its operator only if neither the operator nor its parameters are taken already.
    bool refuses(NodeId node, const Weighted &w)
    {
        if (!w.input.valid() || !w.weight.valid() || m_notes.annotated(node))
            return true;
        if (!m_notes.annotated(w.weight) && !m_notes.annotated(w.bias))
            return false;
        if (m_config.corrected)
            return m_sharedWeight.contains(node);
        m_sharedWeight.emplace(node, w);
        return true;
    }

    void askInputs(NodeId node, const Weighted &w)
    {
        Annotation &note = m_notes.at(node);
        note.setInput(w.input, m_activation);
        TensorSpec weight = m_weight;
        if (operatorFamily(m_graph.node(node)) == "conv_transpose" && weight.granularity == Granularity::PerChannel) {
            if (m_config.corrected)
                weight.axis = 1;
            else
                m_defects.push_back({10, node,
                                     "the weight of a transposed convolution is split along its input channels (axis "
                                     "0), not its output channels"});
        }
        note.setInput(w.weight, std::move(weight));
        if (w.bias.valid())
            note.setInput(w.bias, NoSpec{});
        note.annotated = true;
        m_ownerOfWeight.try_emplace(w.weight, node);
        m_notes.mark(w.weight);
        m_notes.mark(w.bias);
    }

    void askOutput(NodeId node)
    {
        Annotation &note = m_notes.at(node);
        note.output = m_activation;
        note.annotated = true;
    }

    void fusedRelu(Targets producers)
    {
        for (NodeId relu : nodesOf(kRelu)) {
            const NodeId producer = soleProducer(m_graph, relu, producers);
            if (!producer.valid() || m_notes.annotated(relu))
                continue;
            const Weighted w = weighted(producer);
            if (refuses(producer, w) || !allowed(relu) || !allowed(producer) || !allowed(w.weight) || !allowed(w.bias))
                continue;
            askInputs(producer, w);
            askOutput(relu);
        }
    }

    void linear()
    {
        for (NodeId node : nodesOf(kLinear)) {
            const Weighted w = weighted(node);
            if (!allowed(node) || m_notes.annotated(node) || !w.input.valid() || !w.weight.valid())
                continue;
            askInputs(node, w);
            if (!m_config.dynamic)
                m_notes.at(node).output = m_activation;
        }
    }

    void bareConv()
    {
        for (NodeId node : nodesOf(m_config.corrected ? Targets(kAnyConv) : Targets(kBareConv))) {
            const Weighted w = weighted(node);
            if (refuses(node, w) || !allowed(node) || !allowed(w.weight) || !allowed(w.bias))
                continue;
            askInputs(node, w);
            askOutput(node);
        }
    }

    // Training keeps the batch norm; the output site stands behind the whole pattern.
    void convBatchNorm(bool transposed, bool withRelu)
    {
        for (const ConvBatchNorm &match : findConvBatchNorm(m_graph, transposed, withRelu, m_config.corrected)) {
            const Weighted w = weighted(match.conv);
            // Two norms scale one weight in two ways: no observer could serve both, even when corrected.
            const bool isTaken =
                m_notes.annotated(match.conv) || m_notes.annotated(w.weight) || m_notes.annotated(w.bias);
            if (isTaken || !w.input.valid() || !w.weight.valid() || !allowed(match.conv) || !allowed(w.weight) ||
                !allowed(w.bias)) {
                if (isTaken && !m_notes.annotated(match.conv))
                    m_sharedWeight.emplace(match.conv, w);
                continue;
            }
            askInputs(match.conv, w);
            askOutput(match.last);
            const auto eps = numberArgument(m_graph.node(match.batchNorm), "eps");
            if (eps && *eps != 1e-5 && !m_config.corrected)
                m_defects.push_back(
                    {2, match.batchNorm, "training replaces the batch norm's eps by 1e-05: the float model changes"});
        }
    }

    // --- operators found by their source ------------------------------------------------------------------------

    void adaptivePool()
    {
        std::vector<NodeId> pools;
        if (m_config.corrected) {
            for (NodeId node : nodesOf(kPool))
                if (allowed(node))
                    pools.push_back(node);
        } else {
            Sources sources;
            sources.classes = {"torch.nn.modules.pooling.AdaptiveAvgPool2d"};
            sources.functions = {"torch.nn.functional.adaptive_avg_pool2d"};
            for (const SourcePartition &partition : findPartitions(m_graph, sources)) {
                const auto outputs = outputNodes(m_graph, partition);
                if (outputs.empty() || !std::all_of(partition.nodes.begin(), partition.nodes.end(),
                                                    [&](NodeId node) { return allowed(node); }))
                    continue;
                if (!isTarget(m_graph.node(outputs.front()), kPool))
                    m_warnings.push_back(std::string(kName) + " stops with an error at " + partition.name + ": " +
                                         m_graph.node(outputs.front()).name +
                                         " is not aten.adaptive_avg_pool2d; it is passed over here");
                else
                    pools.push_back(outputs.front());
            }
        }
        for (NodeId pool : pools) {
            const ValueId input = argumentAt(m_graph.node(pool), 0);
            if (!input.valid() || m_notes.annotated(pool))
                continue;
            const Annotation &before = m_notes.at(input);
            const bool shares = before.annotated && before.output;
            Annotation note;
            note.setInput(input, shares ? AskedSpec(SharedWith{outputKey(input)}) : AskedSpec(m_activation));
            note.output = SharedWith{edgeKey(input, pool)};
            note.annotated = true;
            m_notes.at(pool) = std::move(note);
        }
    }

    void cat()
    {
        if (m_config.corrected) {
            for (NodeId node : nodesOf(kCat))
                if (allowed(node) && allFloat(listArgumentAt(m_graph.node(node), 0)))
                    askCat(node);
            return;
        }
        Sources sources;
        sources.functions = {"torch.cat"};
        for (const SourcePartition &partition : findPartitions(m_graph, sources)) {
            const auto outputs = outputNodes(m_graph, partition);
            if (!outputs.empty() && isTarget(m_graph.node(outputs.front()), kCat) &&
                std::all_of(partition.nodes.begin(), partition.nodes.end(), [&](NodeId node) { return allowed(node); }))
                askCat(outputs.front());
        }
        for (NodeId node : nodesOf(kCat))
            if (!m_notes.annotated(node) && allowed(node) && allFloat(listArgumentAt(m_graph.node(node), 0)))
                m_defects.push_back({5, node,
                                     "torch.cat is found only in models exported with strict=True: its inputs and its "
                                     "result do not share an observer here"});
    }

    void askCat(NodeId node)
    {
        const auto inputs = listArgumentAt(m_graph.node(node), 0);
        if (inputs.empty() || m_notes.annotated(node))
            return;
        Annotation note;
        const SharedWith first{edgeKey(inputs.front(), node)};
        note.setInput(inputs.front(), m_activation);
        for (ValueId input : inputs)
            if (input != inputs.front())
                note.setInput(input, first);
        note.output = first;
        note.annotated = true;
        m_notes.at(node) = std::move(note);
    }

    [[nodiscard]] bool allFloat(const std::vector<ValueId> &values) const
    {
        return std::all_of(values.begin(), values.end(), [&](ValueId value) { return isFloat32(value); });
    }

    // --- add, mul ------------------------------------------------------------------------------------------------

    [[nodiscard]] bool isFloat32(ValueId value) const
    {
        const auto &meta = m_graph.value(value).meta;
        return meta && meta->dtype == DType::Float32;
    }

    // Observers count with float32 values below histc's bound only: an operand beyond makes the node float.
    bool askOperands(NodeId node, Annotation &note)
    {
        for (std::size_t i = 0; i < 2; ++i) {
            const ValueId operand = argumentAt(m_graph.node(node), i);
            if (!operand.valid())
                continue;
            if (m_config.hugeScalars.contains(operand) || !isFloat32(operand)) {
                m_otherType.insert(node);
                return false;
            }
            note.setInput(operand, m_activation);
        }
        note.annotated = true;
        return true;
    }

    void binaryRelu(Targets producers)
    {
        for (NodeId relu : nodesOf(kRelu)) {
            const NodeId producer = soleProducer(m_graph, relu, producers);
            if (!producer.valid() || m_notes.annotated(relu) || m_notes.annotated(producer) || !allowed(relu) ||
                !allowed(producer))
                continue;
            Annotation note;
            if (!askOperands(producer, note))
                continue;
            m_notes.at(producer) = std::move(note);
            askOutput(relu);
        }
    }

    void binary(Targets targets)
    {
        for (NodeId node : nodesOf(targets)) {
            if (m_notes.annotated(node) || !allowed(node))
                continue;
            Annotation note;
            if (!askOperands(node, note))
                continue;
            note.output = m_activation;
            m_notes.at(node) = std::move(note);
        }
    }

    void tellOtherTypes()
    {
        std::vector<NodeId> floats;
        for (NodeId node : m_otherType) {
            const ValueId result = onlyResult(m_graph.node(node));
            const auto *meta = result.valid() && m_graph.value(result).meta ? &*m_graph.value(result).meta : nullptr;
            if (meta && isFloatingPoint(meta->dtype))
                floats.push_back(node);
        }
        if (floats.empty())
            return;
        std::string text = floats.size() == 1 ? m_graph.node(floats.front()).name + " stays float"
                                              : std::to_string(floats.size()) + " add and mul operators stay float (" +
                                                    m_graph.node(floats.front()).name + ", ...)";
        m_warnings.push_back(text + ": an operand is not float32, or a constant is too large to be observed");
    }

    // --- propagation ---------------------------------------------------------------------------------------------

    void propagate()
    {
        for (NodeId node : nodesOf(kPassOn)) {
            const ValueId input = argumentAt(m_graph.node(node), 0);
            if (!input.valid() || m_notes.annotated(node) || !m_notes.at(input).output)
                continue;
            const SharedWith shared{outputKey(input)};
            Annotation note;
            note.setInput(input, shared);
            note.output = shared;
            note.annotated = note.propagated = true;
            m_notes.at(node) = std::move(note);
        }
    }

    // --- reasons -------------------------------------------------------------------------------------------------

    [[nodiscard]] std::string whyFloat(NodeId node) const
    {
        const Node &n = m_graph.node(node);
        const std::string family = operatorFamily(n);
        const std::string op = n.opName();
        if (op == "convolution" || op == "addmm" || op == "mm")
            return "the graph is decomposed to core operators, which " + std::string(kName) + " does not know (aten." +
                   op + "): export it without run_decompositions()";
        if (m_config.dynamic)
            return "dynamic quantization covers linear layers only";
        if (const auto it = m_sharedWeight.find(node); it != m_sharedWeight.end()) {
            const auto owner = m_ownerOfWeight.find(it->second.weight);
            return "its weight or bias already belongs to " +
                   (owner == m_ownerOfWeight.end() ? std::string("another operator")
                                                   : m_graph.node(owner->second).name) +
                   ": a shared convolution is quantized at its first use only";
        }
        if (family == "conv_transpose" || op == "conv3d" || (family == "conv" && n.target.ends_with(".padding")))
            return (family == "conv_transpose" ? "a transposed convolution"
                    : op == "conv3d"           ? "a 3-d convolution"
                                               : "a convolution with padding given as text") +
                   std::string(" is quantized only where a relu is its one reader");
        if (op == "gru" && !m_gruNote.empty())
            return "only inputs and results of a GRU are quantized, and here not even those: " + m_gruNote;
        if (op == "gru")
            return "only inputs and results of a GRU are quantized, its weights never";
        if (op == "linear" || family == "conv")
            return "its input or weight is not a plain tensor argument";
        return std::string(kName) + " has no rule for " + n.opType();
    }

    const Graph &m_graph;
    const Pt2eConfig &m_config;
    Annotations m_notes;
    TensorSpec m_activation, m_weight;
    std::unordered_map<ValueId, NodeId> m_ownerOfWeight;
    std::map<NodeId, Weighted> m_sharedWeight;
    std::set<NodeId> m_otherType;
    std::string m_gruNote;
    std::vector<std::string> m_warnings;
    std::vector<DefectNote> m_defects;
};

} // namespace

Result<Placement> placeXnnpack(const Graph &graph, const Pt2eConfig &config)
{
    Pt2eConfig xnnpack = config;
    xnnpack.x86 = false;
    return Xnnpack(graph, xnnpack).run();
}

} // namespace dblame

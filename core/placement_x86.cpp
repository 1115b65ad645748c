// SPDX-License-Identifier: GPL-3.0-or-later
//
// What X86InductorQuantizer asks for, pattern by pattern in its order. docs/quantization.md, "X86InductorQuantizer".
#include <algorithm>
#include <set>

#include "core/graph_query.h"
#include "core/placement.h"
#include "core/placement_annotations.h"
#include "core/placement_patterns.h"
#include "core/placement_x86_parts.h"

namespace dblame
{

namespace
{

using Targets = std::span<const std::string_view>;

constexpr std::string_view kName = "X86InductorQuantizer";
constexpr std::string_view kConv2d[] = {"aten.conv2d.default"};
constexpr std::string_view kConvs[] = {"aten.conv2d.default", "aten.conv1d.default"};
constexpr std::string_view kLinear[] = {"aten.linear.default"};
constexpr std::string_view kMul[] = {"aten.mul.Tensor"};
constexpr std::string_view kMaxPool[] = {"aten.max_pool2d.default"};
constexpr std::string_view kCat[] = {"aten.cat.default"};
constexpr std::string_view kFlatten[] = {"aten.flatten.using_ints"};
// Take integers and give integers.
constexpr std::string_view kPassOn[] = {"aten.max_pool2d.default", "aten.cat.default", "aten.avg_pool2d.default",
                                        "aten.adaptive_avg_pool2d.default", "aten.flatten.using_ints"};
// What a flatten must be read by to be worth quantizing.
constexpr std::string_view kQuantizable[] = {
    "aten.max_pool2d.default", "aten.cat.default",    "aten.avg_pool2d.default", "aten.adaptive_avg_pool2d.default",
    "aten.flatten.using_ints", "aten.conv1d.default", "aten.conv2d.default",     "aten.linear.default",
    "aten.mul.Tensor",         "aten.matmul.default"};

class X86
{
public:
    X86(const Graph &graph, const Pt2eConfig &config)
        : m_graph(graph), m_config(config), m_parts(graph, config.corrected), m_notes(graph),
          m_activation(pt2eActivationSpec(config)), m_weight(pt2eWeightSpec(config))
    {
    }

    Result<Placement> run()
    {
        if (!m_config.excluded.empty()) {
            m_declining = true;
            annotate();
            m_declining = false;
        }
        annotate();
        shareOutputs();
        FinishOptions options;
        options.quantizer = kName;
        options.whyFloat = [this](NodeId node) { return whyFloat(node); };
        auto placement = finishPlacement(m_graph, m_notes, m_config, options);
        if (!placement)
            return placement;
        const auto repeated = m_parts.warnings();
        placement->warnings.insert(placement->warnings.end(), repeated.begin(), repeated.end());
        placement->warnings.insert(placement->warnings.end(), m_warnings.begin(), m_warnings.end());
        if (m_config.qat && !m_config.corrected)
            m_defects.insert(m_defects.begin(),
                             {4, NodeId{},
                              "training simulates with other scales than conversion deploys: the fused fake-quant "
                              "computes its qparams by a rule of its own"});
        placement->defects = std::move(m_defects);
        return placement;
    }

private:
    // One pass: with the config, or, for what the recipe leaves float, with none.
    void annotate()
    {
        if (m_config.qat || m_declining) {
            convNormAdd(true);
            convNormAdd(false);
            for (Part unary : {Part::ReLU, Part::Hardtanh, Part::Hardswish, Part::ReLU6, Part::SiLU})
                convNorm(unary);
            convNorm(std::nullopt);
        }
        weightedAdd(Part::Conv2d, true);
        weightedAdd(Part::Conv2d, false);
        for (Part unary : {Part::ReLU, Part::Hardtanh, Part::Hardswish, Part::ReLU6, Part::SiLU})
            weightedUnary(Part::Conv2d, unary);
        weightedUnary(Part::Conv1d, Part::ReLU);
        if (m_config.corrected)
            single(m_parts.of(Part::Conv1d), kConvs);
        single(m_parts.of(Part::Conv2d), kConv2d);
        weightedAdd(Part::Linear, true);
        weightedAdd(Part::Linear, false);
        for (Part unary : {Part::ReLU, Part::LeakyReLU, Part::Tanh, Part::GELU})
            weightedUnary(Part::Linear, unary);
        single(m_parts.linears(), kLinear);
        mul();
        passOn();
    }

    // --- filters -------------------------------------------------------------------------------------------------

    // The pattern is taken already, or the pass is not meant for it.
    bool skips(std::initializer_list<NodeId> nodes)
    {
        if (std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) { return m_notes.annotated(node); }))
            return true;
        return m_declining &&
               !std::all_of(nodes.begin(), nodes.end(), [&](NodeId node) { return m_config.excluded.contains(node); });
    }

    void decline(std::initializer_list<NodeId> nodes)
    {
        for (NodeId node : nodes) {
            m_notes.at(node) = Annotation{};
            m_notes.mark(node);
        }
    }

    // --- what is asked -------------------------------------------------------------------------------------------

    bool askWeighted(NodeId node, bool endsPattern)
    {
        const Node &n = m_graph.node(node);
        const ValueId input = argumentAt(n, 0), weight = argumentAt(n, 1), bias = argumentAt(n, 2);
        if (!input.valid() || !weight.valid())
            return false;
        Annotation note;
        note.setInput(input, m_activation);
        note.setInput(weight, m_weight);
        if (bias.valid())
            note.setInput(bias, NoSpec{});
        note.annotated = true;
        note.quantizedOutput = endsPattern;
        m_notes.at(node) = std::move(note);
        return true;
    }

    // The end of a fused pattern: observed in training only.
    void askEnd(NodeId node, bool observed)
    {
        Annotation &note = m_notes.at(node);
        note = Annotation{};
        note.annotated = note.quantizedOutput = true;
        if (observed)
            note.output = m_activation;
    }

    [[nodiscard]] std::size_t users(NodeId node) const
    {
        const ValueId result = onlyResult(m_graph.node(node));
        return result.valid() ? userCount(m_graph, result) : 0;
    }

    // The addend that does not come from `producer`; invalid when it is no tensor, or `producer` is no operand.
    [[nodiscard]] ValueId otherAddend(NodeId add, NodeId producer) const
    {
        const ValueId a = argumentAt(m_graph.node(add), 0), b = argumentAt(m_graph.node(add), 1);
        const ValueId result = onlyResult(m_graph.node(producer));
        if (a == result)
            return b;
        return b == result ? a : ValueId{};
    }

    // conv -> batch_norm -> add [-> relu], training.
    void convNormAdd(bool withRelu)
    {
        std::vector<Part> sequence{Part::Conv2d, Part::BatchNorm, Part::Add};
        if (withRelu)
            sequence.push_back(Part::ReLU);
        for (const auto &chain : m_parts.chains(sequence, false)) {
            const NodeId conv = chain[0], norm = chain[1], add = chain[2], last = chain.back();
            const ValueId extra = otherAddend(add, norm);
            if (users(norm) != 1 || !extra.valid() || !isTarget(m_graph.node(conv), kConv2d) ||
                skips({last, add, norm, conv}))
                continue;
            if (m_declining) {
                decline({conv, norm, add, last});
                continue;
            }
            if (!askWeighted(conv, false))
                continue;
            m_notes.mark(norm);
            Annotation note;
            note.annotated = true;
            note.setInput(extra, m_activation);
            if (!withRelu) {
                note.output = m_activation;
                note.quantizedOutput = true;
            }
            m_notes.at(add) = std::move(note);
            if (withRelu)
                askEnd(last, true);
            noteEps(norm);
        }
    }

    // conv -> batch_norm [-> activation], training.
    void convNorm(std::optional<Part> unary)
    {
        std::vector<Part> sequence{Part::Conv2d, Part::BatchNorm};
        if (unary)
            sequence.push_back(*unary);
        for (const auto &chain : m_parts.chains(sequence, false)) {
            const NodeId conv = chain[0], norm = chain[1], last = chain.back();
            if (!isTarget(m_graph.node(conv), kConv2d) || skips({last, norm, conv}))
                continue;
            if (m_declining) {
                decline({conv, norm, last});
                continue;
            }
            if (!askWeighted(conv, false))
                continue;
            m_notes.mark(norm);
            askEnd(last, true);
            noteEps(norm);
        }
    }

    void noteEps(NodeId norm)
    {
        const auto eps = numberArgument(m_graph.node(norm), "eps");
        if (eps && *eps != 1e-5 && !m_config.corrected)
            m_defects.push_back({2, norm, "training replaces the batch norm's eps by 1e-05: the float model changes"});
    }

    // conv|linear -> add [-> relu]. The other addend of a convolution is quantized, that of a linear layer is not.
    void weightedAdd(Part weighted, bool withRelu)
    {
        const bool isConv = weighted == Part::Conv2d;
        std::vector<Part> sequence{weighted, Part::Add};
        if (withRelu)
            sequence.push_back(Part::ReLU);
        for (const auto &chain : m_parts.chains(sequence, !isConv)) {
            const NodeId producer = chain[0], add = chain[1], last = chain.back();
            if (users(producer) != 1 || !isTarget(m_graph.node(producer), isConv ? Targets(kConv2d) : Targets(kLinear)))
                continue;
            const ValueId extra = otherAddend(add, producer);
            if (!extra.valid()) {
                m_warnings.push_back(std::string(kName) + " stops with an error at " + m_graph.node(add).name +
                                     ", which adds a number to a layer's result; the layer is quantized alone here");
                continue;
            }
            if (skips({last, add, producer}))
                continue;
            if (m_declining) {
                decline({producer, add, last});
                continue;
            }
            if (!askWeighted(producer, false))
                continue;
            Annotation note;
            note.annotated = true;
            if (isConv)
                note.setInput(extra, m_activation);
            note.quantizedOutput = !withRelu;
            m_notes.at(add) = std::move(note);
            if (withRelu)
                askEnd(last, false);
        }
    }

    void weightedUnary(Part weighted, Part unary)
    {
        const bool isLinear = weighted == Part::Linear;
        for (const auto &chain : m_parts.chains({weighted, unary}, isLinear)) {
            const NodeId producer = chain[0], last = chain[1];
            if (!isTarget(m_graph.node(producer), isLinear ? Targets(kLinear) : Targets(kConvs)) ||
                skips({last, producer}))
                continue;
            if (m_declining)
                decline({producer, last});
            else if (askWeighted(producer, false))
                askEnd(last, false);
        }
    }

    void single(const std::vector<SourcePartition> &partitions, Targets targets)
    {
        for (const SourcePartition &part : partitions)
            for (NodeId node : outputNodes(m_graph, part)) {
                if (!isTarget(m_graph.node(node), targets)) {
                    if (m_told.insert(part.name).second)
                        m_warnings.push_back(std::string(kName) + " stops with an error at '" + part.name +
                                             "', which is traced to " + m_graph.node(node).opType() +
                                             "; it is passed over here");
                    continue;
                }
                if (skips({node}))
                    continue;
                if (m_declining)
                    decline({node});
                else
                    askWeighted(node, true);
            }
    }

    void mul()
    {
        for (std::size_t n = 0; n < m_graph.nodes.size(); ++n) {
            const NodeId node(n);
            if (!isTarget(m_graph.nodes[n], kMul) || skips({node}))
                continue;
            if (m_declining) {
                decline({node});
                continue;
            }
            const ValueId a = argumentAt(m_graph.nodes[n], 0), b = argumentAt(m_graph.nodes[n], 1);
            if (!a.valid() || !b.valid() || !sameShape(a, b))
                continue;
            Annotation note;
            note.setInput(a, m_activation);
            note.setInput(b, m_activation);
            note.annotated = note.quantizedOutput = true;
            m_notes.at(node) = std::move(note);
        }
    }

    [[nodiscard]] bool sameShape(ValueId a, ValueId b) const
    {
        const auto &x = m_graph.value(a).meta;
        const auto &y = m_graph.value(b).meta;
        return x && y &&
               std::equal(x->sizes.begin(), x->sizes.end(), y->sizes.begin(), y->sizes.end(),
                          [](const Dim &p, const Dim &q) { return p.symbol == q.symbol && p.size == q.size; });
    }

    // --- propagation ---------------------------------------------------------------------------------------------

    [[nodiscard]] std::vector<ValueId> tensorInputs(NodeId node) const
    {
        std::vector<ValueId> values;
        for (ValueId value : m_graph.node(node).inputValues())
            if (std::find(values.begin(), values.end(), value) == values.end())
                values.push_back(value);
        return values;
    }

    void passOn()
    {
        for (std::size_t n = 0; n < m_graph.nodes.size(); ++n) {
            const NodeId node(n);
            if (!isTarget(m_graph.nodes[n], kPassOn) || skips({node}))
                continue;
            if (m_declining) {
                decline({node});
                continue;
            }
            const auto inputs = tensorInputs(node);
            if (inputs.empty())
                continue;
            const bool isCat = isTarget(m_graph.nodes[n], kCat);
            if (isTarget(m_graph.nodes[n], kFlatten) && !feedsQuantizable(node))
                continue;
            const auto fromPattern = [&](ValueId value) { return m_notes.at(value).quantizedOutput; };
            if (isCat ? !std::all_of(inputs.begin(), inputs.end(), fromPattern) : !fromPattern(inputs.front()))
                continue;
            Annotation note;
            note.setInput(inputs.front(), m_activation);
            for (std::size_t i = 1; isCat && i < inputs.size(); ++i)
                note.setInput(inputs[i], SharedWith{edgeKey(inputs.front(), node)});
            note.annotated = note.quantizedOutput = true;
            m_notes.at(node) = std::move(note);
        }
    }

    // A flatten counts only where some reader can use integers; one that nothing reads counts as well.
    [[nodiscard]] bool feedsQuantizable(NodeId node) const
    {
        const ValueId result = onlyResult(m_graph.node(node));
        if (!result.valid() || userCount(m_graph, result) == 0)
            return true;
        const auto &readers = m_graph.readers(result);
        return std::any_of(readers.begin(), readers.end(),
                           [&](NodeId reader) { return isTarget(m_graph.node(reader), kQuantizable); });
    }

    void shareOutputs()
    {
        for (std::size_t n = 0; n < m_graph.nodes.size(); ++n) {
            Annotation &note = m_notes.at(NodeId(n));
            if (isTarget(m_graph.nodes[n], kPassOn) && note.quantizedOutput && !note.inputs.empty())
                note.output = SharedWith{edgeKey(note.inputs.front().first, NodeId(n))};
        }
    }

    // --- reasons -------------------------------------------------------------------------------------------------

    [[nodiscard]] std::string whyFloat(NodeId node) const
    {
        const Node &n = m_graph.node(node);
        const std::string op = n.opName();
        if (op == "convolution" || op == "addmm" || op == "mm")
            return "the graph is decomposed to core operators, which " + std::string(kName) + " does not know (aten." +
                   op + "): export it without run_decompositions()";
        if (op == "conv1d")
            return "a 1-d convolution is quantized only where a ReLU follows";
        if (n.target.ends_with(".padding"))
            return "a convolution with padding given as text is not known to " + std::string(kName);
        if (op == "conv2d" || op == "linear")
            return "it is called outside a " + std::string(op == "linear" ? "Linear" : "Conv2d") +
                   " module: " + std::string(kName) +
                   " finds functional layers only in models exported with "
                   "strict=True";
        if (op == "matmul")
            return "a matrix product is quantized only if asked for by name or type";
        return std::string(kName) + " has no rule for " + n.opType();
    }

    const Graph &m_graph;
    const Pt2eConfig &m_config;
    X86Parts m_parts;
    Annotations m_notes;
    TensorSpec m_activation, m_weight;
    bool m_declining = false;
    std::set<std::string> m_told;
    std::vector<std::string> m_warnings;
    std::vector<DefectNote> m_defects;
};

} // namespace

Result<Placement> placeX86(const Graph &graph, const Pt2eConfig &config)
{
    Pt2eConfig x86 = config;
    x86.x86 = true;
    return X86(graph, x86).run();
}

} // namespace dblame

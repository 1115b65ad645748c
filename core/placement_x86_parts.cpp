// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/placement_x86_parts.h"

namespace dblame
{

namespace
{

struct PartRule {
    Sources sources;                       // as the peer looks for it
    std::vector<std::string_view> targets; // without its dependence on the way of export
};

PartRule ruleOf(Part part)
{
    const std::string activation = "torch.nn.modules.activation.";
    switch (part) {
    case Part::Conv1d:
        return {{{"torch.nn.modules.conv.Conv1d"}, {"torch.conv1d"}, {}}, {"aten.conv1d.default"}};
    case Part::Conv2d:
        return {{{"torch.nn.modules.conv.Conv2d"}, {"torch.conv2d"}, {}}, {"aten.conv2d.default"}};
    case Part::BatchNorm:
        return {{{"torch.nn.modules.batchnorm.BatchNorm2d"}, {"torch.nn.functional.batch_norm"}, {}},
                {"aten.batch_norm.default"}};
    case Part::Add:
        return {{{}, {"torch.add", "_operator.add", "_operator.iadd"}, {"add", "add_"}},
                {"aten.add.Tensor", "aten.add_.Tensor"}};
    case Part::ReLU:
        return {{{activation + "ReLU"}, {"torch.nn.functional.relu", "torch.nn.functional.relu_", "torch.relu_"}, {}},
                {"aten.relu.default", "aten.relu_.default"}};
    case Part::Hardtanh:
        return {{{activation + "Hardtanh"},
                 {"torch.nn.functional.hardtanh", "torch.nn.functional.hardtanh_", "torch._C._nn.hardtanh_"},
                 {}},
                {"aten.hardtanh.default", "aten.hardtanh_.default"}};
    case Part::Hardswish:
        return {{{activation + "Hardswish"}, {}, {}}, {"aten.hardswish.default", "aten.hardswish_.default"}};
    case Part::ReLU6:
        return {{{activation + "ReLU6"}, {}, {}}, {}};
    case Part::SiLU:
        return {{{activation + "SiLU"}, {}, {}}, {"aten.silu.default", "aten.silu_.default"}};
    case Part::Linear:
        return {{{"torch.nn.modules.linear.Linear"}, {}, {}}, {"aten.linear.default"}};
    case Part::LeakyReLU:
        return {{{activation + "LeakyReLU"}, {}, {}}, {"aten.leaky_relu.default", "aten.leaky_relu_.default"}};
    case Part::Tanh:
        return {{{activation + "Tanh"}, {}, {}}, {"aten.tanh.default", "aten.tanh_.default"}};
    case Part::GELU:
        return {{{activation + "GELU"}, {}, {}}, {"aten.gelu.default", "aten.gelu_.default"}};
    }
    return {};
}

} // namespace

std::vector<SourcePartition> X86Parts::byTarget(const std::vector<std::string_view> &targets) const
{
    std::vector<SourcePartition> found;
    for (std::size_t n = 0; n < m_graph.nodes.size(); ++n)
        if (isTarget(m_graph.nodes[n], targets))
            found.push_back({m_graph.nodes[n].target, m_graph.nodes[n].name, {NodeId(n)}});
    return found;
}

const std::vector<SourcePartition> &X86Parts::of(Part part)
{
    const auto [it, isNew] = m_found.try_emplace(part);
    if (isNew) {
        const PartRule rule = ruleOf(part);
        it->second = m_structural ? byTarget(rule.targets) : findPartitions(m_graph, rule.sources);
    }
    return it->second;
}

std::vector<SourcePartition> X86Parts::linears() const
{
    if (m_structural)
        return byTarget({"aten.linear.default"});
    return findPartitions(m_graph, {{"torch.nn.modules.linear.Linear"}, {"torch._C._nn.linear"}, {}});
}

std::vector<std::vector<NodeId>> X86Parts::chains(const std::vector<Part> &sequence, bool skipsRepeated)
{
    std::vector<std::vector<SourcePartition>> split(sequence.size());
    std::vector<const std::vector<SourcePartition> *> lists;
    for (std::size_t i = 0; i < sequence.size(); ++i) {
        for (const SourcePartition &part : of(sequence[i])) {
            const auto outputs = outputNodes(m_graph, part);
            if (outputs.size() == 1) {
                split[i].push_back(part);
            } else if (outputs.size() > 1 && !skipsRepeated) {
                m_repeated.insert(part.name);
                for (NodeId node : outputs)
                    split[i].push_back({part.source, part.name, {node}});
            }
        }
        lists.push_back(&split[i]);
    }
    std::vector<std::vector<NodeId>> result;
    for (const PartitionChain &chain : findSequences(m_graph, lists)) {
        std::vector<NodeId> nodes;
        for (const SourcePartition *part : chain) {
            nodes.push_back(outputNodes(m_graph, *part).front());
            if (m_repeated.contains(part->name))
                m_inChain.insert(part->name);
        }
        result.push_back(std::move(nodes));
    }
    return result;
}

std::vector<std::string> X86Parts::warnings() const
{
    std::vector<std::string> warnings;
    for (const std::string &name : m_inChain)
        warnings.push_back("X86InductorQuantizer stops with an error at '" + name +
                           "', which is called more than once; each call is quantized as a layer of its own here");
    return warnings;
}

} // namespace dblame

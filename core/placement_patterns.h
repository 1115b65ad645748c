// SPDX-License-Identifier: GPL-3.0-or-later
//
// Finding the operators that quantizers ask for: by structure, and by the source an export notes for each node (the
// module it was traced in, or the function, where the export was strict). Pure functions over a Graph.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph.h"

namespace dblame
{

// The i-th positional argument where it is one tensor; invalid for literals, lists, None and absent ones.
[[nodiscard]] ValueId argumentAt(const Node &node, std::size_t i);
// The tensors of the i-th positional argument where it is a list.
[[nodiscard]] std::vector<ValueId> listArgumentAt(const Node &node, std::size_t i);
// The result of an operator that has exactly one; invalid otherwise.
[[nodiscard]] ValueId onlyResult(const Node &node);
[[nodiscard]] bool isTarget(const Node &node, std::span<const std::string_view> targets);

// Operators that read a tensor, each counted once, plus one for each kind of graph output it is.
[[nodiscard]] std::size_t userCount(const Graph &graph, ValueId value);

// A producer with one use -> consumer pair, e.g. conv -> relu where nothing else reads the convolution.
// `consumer` reads it as its first argument. Invalid when `consumer` does not match.
[[nodiscard]] NodeId soleProducer(const Graph &graph, NodeId consumer, std::span<const std::string_view> producers);

// conv -> batch_norm [-> relu] with nothing else reading between; in graph order. Convolutions of one and two
// dimensions without padding given as text, or any with `anyConvolution`.
struct ConvBatchNorm {
    NodeId conv;
    NodeId batchNorm;
    NodeId last; // the relu, or the batch norm
};
[[nodiscard]] std::vector<ConvBatchNorm> findConvBatchNorm(const Graph &graph, bool transposed, bool withRelu,
                                                           bool anyConvolution = false);

// A group of nodes that one source call was traced to.
struct SourcePartition {
    std::string source;        // what matched: a class, a function, or an operator name
    std::string name;          // module path, or name of the call
    std::vector<NodeId> nodes; // in graph order
    [[nodiscard]] bool contains(NodeId node) const;
};

// What a partition is looked up by. `classes` and `functions` are full names ("torch.nn.modules.conv.Conv2d",
// "torch.conv2d"); `methods` are bare names ("add", "mul_") as torch_fn and tensor methods have them.
struct Sources {
    std::set<std::string, std::less<>> classes;
    std::set<std::string, std::less<>> functions;
    std::set<std::string, std::less<>> methods;
};

// Partitions in order of first appearance, those of one source together. A node with a source function is found by it
// alone; without one by its torch_fn name among `methods`, else by the class of its innermost module.
[[nodiscard]] std::vector<SourcePartition> findPartitions(const Graph &graph, const Sources &sources);

// Nodes of the partition that something outside reads, in graph order.
[[nodiscard]] std::vector<NodeId> outputNodes(const Graph &graph, const SourcePartition &partition);

// Chains of partitions, one of each list, where some node of each is read by a node of the next. In lexicographic order
// of the lists.
using PartitionChain = std::vector<const SourcePartition *>;
[[nodiscard]] std::vector<PartitionChain> findSequences(const Graph &graph,
                                                        std::span<const std::vector<SourcePartition> *const> lists);

// Operators whose weights a quantizer could hold in integers: convolutions, linear, embedding, recurrent layers, and
// matrix products that read a constant. The tensors returned are the weights; empty for other operators.
[[nodiscard]] std::vector<ValueId> weightsOf(const Graph &graph, const Node &node, const std::vector<char> &depends);

} // namespace dblame

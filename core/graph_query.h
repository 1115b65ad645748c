// SPDX-License-Identifier: GPL-3.0-or-later
//
// Questions about a graph that site recognition and alignment both ask. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph.h"

namespace dblame
{

// Per value: it depends on a user input (so it is an activation, not arithmetic on weights alone).
[[nodiscard]] std::vector<char> dependsOnUserInput(const Graph &graph);

// The operator family a node belongs to, so that forms of one operator are the same: in-place and functional
// ("relu_" -> "relu"), core ATen decompositions ("convolution" and "conv2d" -> "conv", "addmm" -> "linear",
// "max_pool2d_with_indices" -> "max_pool2d", "view", "reshape" and "flatten" -> "view", ...).
[[nodiscard]] std::string operatorFamily(const Node &node);

[[nodiscard]] bool isConvolution(const Node &node);
[[nodiscard]] bool isBatchNorm(const Node &node);
// Moves or renames elements without computing new ones: view, reshape, permute, slice, clone, expand, dropout in eval
// ...
[[nodiscard]] bool isElementMover(const Node &node);
// Every output element is one of the input elements (element movers and max pooling).
[[nodiscard]] bool keepsValues(const Node &node);

[[nodiscard]] ValueId valueArgument(const Node &node, std::string_view name); // invalid when absent or not a value
[[nodiscard]] std::optional<std::int64_t> intArgument(const Node &node, std::string_view name);
[[nodiscard]] std::optional<double> numberArgument(const Node &node, std::string_view name);
// The n-th distinct tensor argument, counting as a quantizer's input index does.
[[nodiscard]] std::vector<ValueId> distinctTensorArguments(const Graph &graph, const Node &node);

// A buffer that an observer or fake-quantizer keeps for itself (scale, running range, flags), by its name.
[[nodiscard]] bool isQuantizerState(const GraphInput &input);

// The module a node belongs to: its innermost frame, or, for nodes that a rewrite left without one, the module
// whose parameters it reads ("block.bn2" of a batch_norm that reads block.bn2.weight). May be empty.
[[nodiscard]] std::string moduleOf(const Graph &graph, const Node &node);
// The same with the call suffix where a module is called more than once ("block.relu@1").
[[nodiscard]] std::string moduleCallOf(const Graph &graph, const Node &node);

// Shapes that can hold the same tensor: equal rank, each dimension equal or symbolic on either side.
// `freeFirst` lets the first dimension differ (models exported with another batch size).
[[nodiscard]] bool compatibleShapes(const TensorMeta &a, const TensorMeta &b, bool freeFirst);
[[nodiscard]] std::string shapeText(const TensorMeta &meta); // "4×8"

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/graph.h"

namespace dblame
{

// Replaces each higher_order.wrap_with_set_grad_enabled node by the nodes of its subgraph: without autograd the
// wrapper has no effect, and a model whose forward runs under no_grad would otherwise be a single node. The
// wrapper's results keep their names; inner values get "<wrapper>/" in front where their name is taken.
// Call before Graph::index(). Returns, for each node of the result, the position of the node it comes from in
// the graph as it was, so that what is kept per node can follow.
std::vector<std::size_t> inlineGradBlocks(Graph &graph);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/graph.h"
#include "core/quant_site.h"

namespace dblame
{

// Fills `id` of every site from its role, owner, input index and source: "<module>/weight", "<module>/in[0]",
// "<module>/out"; operators outside modules, and ids that would occur twice, are named by their nodes
// ("conv2d_3→add/in[1]"), and what is still equal gets "#1", "#2" in the order given. `result` is looked at only for a
// site without owner and source.
void nameSites(const Graph &graph, std::vector<QuantSite> &sites);

} // namespace dblame

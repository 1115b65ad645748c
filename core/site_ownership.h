// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/quant_site.h"

namespace dblame
{

// Second half of recognizeSites: roles, owners, readers, ids, grid groups and the look-up tables.
// `dependsOnInput`: per value, see dependsOnUserInput().
void assignOwnership(const Model &model, const std::vector<char> &dependsOnInput, SiteTable &table);

// The grid groups again, once scales and zero points are known.
void assignGroups(const Model &model, SiteTable &table);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// SELECTOR = module:REGEX | type:CLASS | op:NODE | optype:aten.conv2d, each with an optional /FACET;
// FACET = weight | in | in[N] | out | act. docs/cli.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/edits.h"
#include "core/error.h"
#include "core/model.h"
#include "core/quant_site.h"

namespace dblame
{

enum class SelectBy { Module, ModuleType, Node, OpType };
enum class Facet { All, Weight, In, Out, Act };

struct Selector {
    SelectBy by = SelectBy::Module;
    std::string pattern;
    Facet facet = Facet::All;
    int inputIndex = -1; // In: -1 = every input
    std::string text;    // as given
};

[[nodiscard]] Result<Selector> parseSelector(std::string_view text);

// What "float here" means for the operators a selector names: their weight and output sites off, the
// sites on their input edges bypassed for them alone. A selector that matches no site is an error that
// names the nearest matches.
[[nodiscard]] Result<EditSet> selectForSkip(const Selector &selector, const Model &candidate, const SiteTable &sites);
// Everything that is quantized, except what the selectors name (`--only`).
[[nodiscard]] Result<EditSet> selectAllBut(const std::vector<Selector> &keep, const Model &candidate,
                                           const SiteTable &sites);
// The sites themselves (for --set and the Layers view).
[[nodiscard]] Result<std::vector<SiteId>> selectSites(const Selector &selector, const Model &candidate,
                                                      const SiteTable &sites);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Another spec for a site that a candidate brings: what it means on that site, and why it may not fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/edits.h"
#include "core/error.h"
#include "core/graph.h"
#include "core/model.h"
#include "core/quant_site.h"
#include "core/recipe.h"
#include "core/tensor_spec.h"

namespace dblame
{

// --- the site as it is -----------------------------------------------------------------------------------------------

// The element type of a site's grid; nullopt: a table, or an integer width that has no name (9 to 15 bits).
[[nodiscard]] std::optional<ElementType> elementTypeOf(const QuantSpec &spec);
// The site quantizes to a floating type (or to none that is known), so that its integers say nothing.
[[nodiscard]] bool isFloatGrid(const QuantSpec &spec);
// Smallest scale of the quantizer that made the site: 2^-12 where one of its scales is exactly that (the XNNPACK and
// x86 presets), else 2^-23.
[[nodiscard]] double smallestScaleOf(const QuantSite &site);
// Dimension of the channels (of the blocks) of a tensor with `dims` >= 1 dimensions: the site's own axis; else of a
// weight 0 (1 of a transposed convolution; blocks: the other one), of an activation 1 (the last one of a 3-dimensional
// activation outside convolutions).
[[nodiscard]] std::int64_t channelAxisOf(const QuantSite &site, std::int64_t dims);
[[nodiscard]] std::int64_t blockAxisOf(const QuantSite &site, std::int64_t dims);

// --- the site changed ------------------------------------------------------------------------------------------------

// Integers of a change without a type, in `bits` bits: those of the site where bits and symmetry are its own; unsigned
// where the site's are; without the lowest value where the site's are so and stay symmetric.
[[nodiscard]] IntegerRange changedGrid(const QuantSite &site, const SpecChange &change);
// The change as a spec for a tensor with `dims` dimensions, with the quantizer's own rule, rounding and smallest scale.
// Its observer says where a range comes from that is not given: Dynamic, MinMax (from the values, once), Fixed (given).
// Errors (Usage): a type and a scheme that exclude each other.
[[nodiscard]] Result<TensorSpec> changedSpec(const QuantSite &site, const SpecChange &change, std::int64_t dims);
// Why the site cannot take the change, for a tensor of this shape if it is known; empty when it can.
[[nodiscard]] std::string changeProblem(const QuantSite &site, const SpecChange &change,
                                        const std::optional<std::vector<std::int64_t>> &shape);

// The table as a run under these edits had it: sites that took another spec have it (without scales: a NodeReport has
// those), all others are as they were. `changed`: the run's own list of them, RunReport::changed.
[[nodiscard]] SiteTable changedSites(const SiteTable &sites, const EditSet &edits,
                                     const std::vector<std::string> &changed);
// "boundary of bits at conv2d_3: 16 in, 8 out", for operators between activations of up to 8 and of more bits that have
// such a boundary only since the edits.
[[nodiscard]] std::vector<std::string> newBitBoundaries(const Graph &graph, const SiteTable &sites,
                                                        const EditSet &edits);

// --- from words ------------------------------------------------------------------------------------------------------

// "int4:sym:block32" for one site; what the text leaves out is as the site is. Errors (Usage): what a SpecChange does
// not hold (an axis that is not the site's, several block sizes) or does not exist.
[[nodiscard]] Result<SpecChange> parseSpecChange(std::string_view text, const QuantSite &site);
// "int4:sym:block32", as parseSpecChange takes it.
[[nodiscard]] std::string specChangeText(const SpecChange &change);
// What --set means on a candidate as it was opened: float parts as --skip, the others as another spec for the sites
// that the selector names. A site on an input belongs to all its readers, and so does its spec. Errors (Usage): nothing
// matches (with the nearest names); `none`, which only a recipe's quantizer has; a range for weights.
[[nodiscard]] Result<EditSet> editsOf(const RecipeOverride &change, const Model &candidate, const SiteTable &sites);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the user asks of a quantizer: a preset or a coreai-opt configuration, and changes by selector. A recipe is plain
// text and values; placeRecipe makes it sites on a graph. Files: docs/recipe.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/coreai_config.h"
#include "core/error.h"
#include "core/graph.h"
#include "core/placement.h"
#include "core/selector.h"

namespace dblame
{

enum class RecipeKind : std::uint8_t { Xnnpack, X86, CoreAi, Palette };

enum class OverrideMeaning : std::uint8_t {
    FloatHere,   // weights float, results pass through, inputs float for this reader only
    AsQuantizer, // the sites that the quantizer would place with None for this layer
};

// One role of an override. No text: float.
struct OverridePart {
    Facet facet = Facet::All;
    int inputIndex = -1;
    std::optional<std::string> spec; // "int4:sym:block32"
    friend bool operator==(const OverridePart &, const OverridePart &) = default;
};

struct RecipeOverride {
    Selector selector;
    OverrideMeaning meaning = OverrideMeaning::FloatHere; // of the parts that are float
    std::vector<OverridePart> parts;                      // never empty; {All, float} is the whole layer
    std::optional<double> low, high;                      // range=LO..HI, for the activation parts that have a spec
    [[nodiscard]] std::string text() const;               // "module:fc=weight=int4:sym:channel"
};
[[nodiscard]] bool operator==(const RecipeOverride &a, const RecipeOverride &b);

struct Recipe {
    std::string preset; // as presetRecipe takes it, without ":corrected"; empty where a file gives a configuration only
    RecipeKind kind = RecipeKind::Xnnpack;
    bool corrected = false;
    Pt2eConfig pt2e;       // Xnnpack, X86: switches only (excluded and overrides come from `overrides`)
    CoreAiConfig coreAi;   // CoreAi
    PaletteConfig palette; // Palette
    std::vector<RecipeOverride> overrides;

    // "coreai-w8a8:corrected, 2 overrides"
    [[nodiscard]] std::string title() const;
};
[[nodiscard]] bool operator==(const Recipe &a, const Recipe &b);

// xnnpack-static, xnnpack-qat, xnnpack-dynamic (each also ":per-tensor"), x86-static, coreai-w8a8, coreai-w8,
// coreai-w4, coreai-w4-blockN (each also ":eager"), coreai-palette-N with "-gG"; ":corrected" after any. Usage:
// unknown, with the nearest names.
[[nodiscard]] Result<Recipe> presetRecipe(std::string_view name);
[[nodiscard]] std::vector<std::string> presetNames(); // for help and completion

// SELECTOR and SPEC of docs/cli.md: "weight=int4:sym:channel,act=float,range=-1..1", "float", or "none" (as the
// quantizer would). Usage: what is not understood. Whether the selector matches is known only with a graph.
[[nodiscard]] Result<RecipeOverride> parseOverride(std::string_view selector, std::string_view spec);
// "SELECTOR=SPEC", as --set takes it.
[[nodiscard]] Result<RecipeOverride> parseOverride(std::string_view text);
// SPEC again.
[[nodiscard]] std::string overrideSpecText(const RecipeOverride &change);

// YAML: a coreai-opt configuration, with what dBlame adds under quantization_spec: {dblame: ...} (palettizer files:
// palettization_spec). Errors: Unreadable at "file:line". `notes`: what is dropped silently by the peer.
[[nodiscard]] Result<Recipe> parseRecipe(std::string_view text, const std::string &fileName,
                                         std::vector<std::string> *notes = nullptr);
// parseRecipe(recipeText(r)) == r.
[[nodiscard]] std::string recipeText(const Recipe &recipe);

// What an observer of this recipe does where nothing else is said: the base of an override's spec.
[[nodiscard]] TensorSpec baseSpec(const Recipe &recipe, bool weight);

// Operators of a planned graph that a selector names (facets aside). Usage: nothing matches, with the nearest names.
[[nodiscard]] Result<std::vector<NodeId>> selectNodes(const Selector &selector, const Graph &graph);

// Sites of the recipe on the graph that its quantizer annotates (core/float_rewrite.h: norms folded for the
// XNNPACK and x86 presets, numbers lifted for XNNPACK alone; as exported for the others). Overrides that change nothing
// are warnings.
[[nodiscard]] Result<Placement> placeRecipe(const Graph &graph, const Recipe &recipe);

// "Float here" for operators on a placement: weights and results of theirs lose their sites, their inputs bypass them.
// False: nothing changed.
bool floatHere(const Graph &graph, Placement &placement, const std::vector<NodeId> &nodes, Facet facet, int inputIndex);

} // namespace dblame

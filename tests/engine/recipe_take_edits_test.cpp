// SPDX-License-Identifier: GPL-3.0-or-later
//
// Changes to a recipe's candidate as overrides of the recipe: the candidate that it makes then has the numbers that the
// changes had.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comparison_support.h"
#include "core/recipe_edits.h"

namespace dblame::test
{

namespace
{

using testing::ElementsAre;
using testing::IsEmpty;

struct Pair {
    std::shared_ptr<const Model> reference;
    std::shared_ptr<const InputSet> inputs;

    explicit Pair(const std::string &folder)
    {
        Engine &engine = *dblame_engine_instance();
        reference = engine.openModel(dataPath("golden/" + folder + "/float.pt2"), {}, {}).value();
        InputRequest request;
        request.files = {dataPath("golden/" + folder + "/inputs.pt")};
        inputs = engine.openInputs(request, *reference, *reference, {}).value();
    }
    [[nodiscard]] QuantizedModel quantize(const Recipe &recipe) const
    {
        QuantizeOptions options;
        options.threads = 2;
        auto made = dblame_engine_instance()->quantize(reference, recipe, inputs, options, {}, {});
        EXPECT_TRUE(made.has_value()) << made.error().text();
        return made ? std::move(*made) : QuantizedModel{};
    }
    [[nodiscard]] std::unique_ptr<Comparison> compare(const QuantizedModel &quantized) const
    {
        return dblame_engine_instance()->compare(reference, quantized.model, inputs).value();
    }
};

std::vector<std::string> texts(const EditsAsOverrides &made)
{
    std::vector<std::string> result;
    for (const RecipeOverride &change : made.overrides)
        result.push_back(change.text());
    return result;
}

Recipe with(Recipe recipe, const EditsAsOverrides &made)
{
    recipe.overrides.insert(recipe.overrides.end(), made.overrides.begin(), made.overrides.end());
    // As it comes back from a file.
    auto again = parseRecipe(recipeText(recipe), "recipe.yaml");
    EXPECT_TRUE(again.has_value()) << again.error().text() << recipeText(recipe);
    return again.value_or(recipe);
}

class TakenEdits : public testing::TestWithParam<std::pair<const char *, const char *>>
{
};

// Observer by observer: every site of one off, so that none that stays has watched it.
TEST_P(TakenEdits, FloatHereGivesTheNumbersOfTheEdit)
{
    const auto [folder, preset] = GetParam();
    const Pair pair(folder);
    const Recipe recipe = presetRecipe(preset).value();
    const QuantizedModel quantized = pair.quantize(recipe);
    const auto comparison = pair.compare(quantized);
    const double plain = runOrFail(*comparison, {}, plainOptions()).outputSnrDb.front();
    const auto &placed = quantized.placement.sites;
    std::set<int> instances;
    for (const PlacedSite &site : placed)
        instances.insert(site.instance);
    int different = 0;
    int tried = 0;
    for (const int instance : instances) {
        if (tried++ % 3 != 0)
            continue; // every third: a calibration each
        EditSet edits;
        for (std::size_t i = 0; i < placed.size(); ++i)
            if (placed[i].instance == instance && quantized.siteOfPlaced[i].valid())
                edits.off.insert(quantized.siteOfPlaced[i]);
        const auto made = overridesOf(edits, comparison->sites(), quantized, recipe);
        ASSERT_TRUE(made.has_value()) << made.error().text();
        if (!made->left.empty())
            continue; // said, and checked below
        const double edited = runOrFail(*comparison, edits, plainOptions()).outputSnrDb.front();
        const QuantizedModel again = pair.quantize(with(recipe, *made));
        const double requantized = runOrFail(*pair.compare(again), {}, plainOptions()).outputSnrDb.front();
        const std::string said = testing::PrintToString(texts(*made)) + testing::PrintToString(made->notes);
        EXPECT_NEAR(requantized, edited, 1e-9) << said;
        different += edited != plain ? 1 : 0;
    }
    EXPECT_GT(different, 0);
}

INSTANTIATE_TEST_SUITE_P(Presets, TakenEdits,
                         testing::Values(std::pair{"tinyconv_xnnpack", "xnnpack-static"},
                                         std::pair{"tinyconv_xnnpack", "x86-static"},
                                         std::pair{"tinyconv_coreai", "coreai-w8"},
                                         std::pair{"toy_palette", "coreai-palette-4"},
                                         std::pair{"transformer_xnnpack", "xnnpack-static"}),
                         [](const auto &each) {
                             std::string name = std::string(each.param.first) + "_" + each.param.second;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

TEST(TakenEditsText, LayersAreNamedByModuleCallsByNodeAndSpecsAreWhole)
{
    const Pair pair("tinyconv_xnnpack");
    const Recipe recipe = presetRecipe("xnnpack-static").value();
    const QuantizedModel quantized = pair.quantize(recipe);
    const auto comparison = pair.compare(quantized);
    const SiteTable &sites = comparison->sites();
    const auto site = [&](const char *id) {
        EXPECT_TRUE(sites.byId(id).valid()) << id;
        return sites.byId(id);
    };
    EditSet edits;
    edits.off = {site("head_conv.conv/weight"), site("block.relu/out")};
    SpecChange narrow;
    narrow.bits = 4;
    narrow.granularity = Granularity::PerChannel;
    edits.respecified[site("fc/weight")] = narrow;
    SpecChange wide;
    wide.type = ElementType::Int16;
    wide.symmetric = true;
    wide.low = -8;
    wide.high = 8;
    edits.respecified[site("fc/out")] = wide;
    const auto made = overridesOf(edits, sites, quantized, recipe);
    ASSERT_TRUE(made.has_value()) << made.error().text();
    EXPECT_TRUE(made->left.empty());
    EXPECT_THAT(texts(*made), testing::UnorderedElementsAre("module:head_conv\\.conv=weight=float", "op:relu_1=float",
                                                            "module:fc=weight=int4:sym:channel",
                                                            "module:fc=out=int16:sym:tensor,range=-8..8"));
    const QuantizedModel again = pair.quantize(with(recipe, *made));
    const auto compared = pair.compare(again);
    EXPECT_FALSE(compared->sites().byId("head_conv.conv/weight").valid());
    EXPECT_FALSE(compared->sites().byId("block.relu/out").valid());
    EXPECT_EQ(compared->sites().site(compared->sites().byId("fc/weight")).spec.effectiveBits(), 4);
    EXPECT_EQ(compared->sites().site(compared->sites().byId("fc/out")).spec.effectiveBits(), 16);
}

TEST(TakenEditsText, ARangeOfAWeightStaysAnEditAndIsSaid)
{
    const Pair pair("tinyconv_xnnpack");
    const Recipe recipe = presetRecipe("xnnpack-static").value();
    const QuantizedModel quantized = pair.quantize(recipe);
    const auto comparison = pair.compare(quantized);
    EditSet edits;
    SpecChange ranged;
    ranged.low = -1;
    ranged.high = 1;
    edits.respecified[comparison->sites().byId("fc/weight")] = ranged;
    const auto made = overridesOf(edits, comparison->sites(), quantized, recipe);
    ASSERT_TRUE(made.has_value());
    EXPECT_THAT(made->overrides, IsEmpty());
    EXPECT_EQ(made->left, edits);
    EXPECT_THAT(made->notes, ElementsAre("fc/weight stays a change to layers: a recipe gives weights no range"));
}

} // namespace

} // namespace dblame::test

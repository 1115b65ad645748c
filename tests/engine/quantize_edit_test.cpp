// SPDX-License-Identifier: GPL-3.0-or-later
//
// Candidates that a recipe made, edited and rerun: a rerun equals a full run bit for bit, known defects of the peers
// are there in strict mode and absent in the corrected one.
#include <algorithm>
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comparison_support.h"
#include "core/recipe.h"
#include "core/selector.h"

namespace dblame::test
{

namespace
{

using testing::HasSubstr;

struct Made {
    std::shared_ptr<const Model> reference;
    std::shared_ptr<const InputSet> inputs;
    QuantizedModel quantized;

    [[nodiscard]] std::unique_ptr<Comparison> compare() const
    {
        auto comparison = dblame_engine_instance()->compare(reference, quantized.model, inputs);
        EXPECT_TRUE(comparison.has_value());
        return comparison ? std::move(*comparison) : nullptr;
    }
};

Made make(const std::string &folder, const std::string &file, const Recipe &recipe)
{
    Made made;
    Engine &engine = *dblame_engine_instance();
    made.reference = engine.openModel(dataPath("golden/" + folder + "/" + file), {}, {}).value();
    InputRequest request;
    request.files = {dataPath("golden/" + folder + "/inputs.pt")};
    made.inputs = engine.openInputs(request, *made.reference, *made.reference, {}).value();
    auto quantized = engine.quantize(made.reference, recipe, made.inputs, {2, 0, false}, {}, {});
    EXPECT_TRUE(quantized.has_value()) << quantized.error().text();
    if (quantized)
        made.quantized = std::move(*quantized);
    return made;
}

class QuantizedIncremental : public testing::TestWithParam<std::pair<const char *, const char *>>
{
};

TEST_P(QuantizedIncremental, EqualsAFullRunBitForBit)
{
    const auto [folder, preset] = GetParam();
    const Made made = make(folder, "float.pt2", presetRecipe(preset).value());
    ASSERT_NE(made.quantized.model, nullptr);
    RunOptions options = plainOptions();
    options.cacheBytes = 1ULL << 28U;
    const auto comparison = made.compare();
    const auto &sites = comparison->sites().sites;
    ASSERT_FALSE(sites.empty());
    std::mt19937 random(11);
    EditSet edits;
    (void)runOrFail(*comparison, edits, options);
    int partial = 0;
    for (int step = 0; step < 5; ++step) {
        editAtRandom(edits, sites, random);
        const RunReport rerun = runOrFail(*comparison, edits, options);
        partial += rerun.rowsRecomputed < static_cast<int>(rerun.rows.size());
        const RunReport full = runOrFail(*made.compare(), edits, options);
        EXPECT_EQ(firstDifference(rerun, full), "") << "after edit " << step;
    }
    EXPECT_GT(partial, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Presets, QuantizedIncremental,
    testing::Values(std::pair{"tinyconv_xnnpack", "xnnpack-static"}, std::pair{"tinyconv_xnnpack", "x86-static"},
                    std::pair{"cfg_dynamic", "xnnpack-dynamic"}, std::pair{"tinyconv_coreai", "coreai-w8a8"},
                    std::pair{"toy_palette", "coreai-palette-4"}, std::pair{"transformer_xnnpack", "xnnpack-qat"}),
    [](const auto &each) {
        std::string name = std::string(each.param.first) + "_" + each.param.second;
        std::replace(name.begin(), name.end(), '-', '_');
        return name;
    });

// coreai-opt writes eps 1e-5 into the rewritten norm where the model has 1e-3: 7.8 dB before anything is quantized.
TEST(QuantizedDefects, TheNormsEpsCostsWhatThePeerLosesAndNothingWhenCorrected)
{
    const auto outputs = [](const char *preset) {
        const Made made = make("coreai_bn_eps", "float.pt2", presetRecipe(preset).value());
        const auto comparison = made.compare();
        EditSet off;
        for (std::size_t i = 0; i < comparison->sites().sites.size(); ++i)
            off.off.insert(SiteId(i));
        const double quantized = runOrFail(*comparison, {}, plainOptions()).outputSnrDb.front();
        const double floats = runOrFail(*comparison, off, plainOptions()).outputSnrDb.front();
        return std::pair(quantized, floats);
    };
    const auto strict = outputs("coreai-w8a8");
    EXPECT_NEAR(strict.second, 7.8, 0.05);
    EXPECT_LT(strict.first, 8.0);
    const auto corrected = outputs("coreai-w8a8:corrected");
    EXPECT_GT(corrected.second, 110.0);
    EXPECT_GT(corrected.first, 30.0);
}

TEST(QuantizedDefects, AreNamedWithTheirNumber)
{
    const Made made = make("coreai_bn_eps", "float.pt2", presetRecipe("coreai-w8a8").value());
    const auto &defects = made.quantized.placement.defects;
    const auto eps = [](const DefectNote &d) { return d.defect == 2; };
    EXPECT_EQ(std::count_if(defects.begin(), defects.end(), eps), 1); // one norm
    const auto found = std::find_if(defects.begin(), defects.end(), eps);
    ASSERT_NE(found, defects.end());
    EXPECT_THAT(found->text, HasSubstr("eps 1e-05 is used where the model has 0.001"));
}

TEST(Quantize, AskedForInputsWhereAnObserverNeedsThem)
{
    Engine &engine = *dblame_engine_instance();
    const auto model = engine.openModel(dataPath("golden/tinyconv_xnnpack/float.pt2"), {}, {}).value();
    const auto quantized = engine.quantize(model, presetRecipe("xnnpack-static").value(), nullptr, {}, {}, {});
    ASSERT_FALSE(quantized.has_value());
    EXPECT_EQ(quantized.error().code, ErrorCode::Usage);
    EXPECT_THAT(quantized.error().message, HasSubstr("--calibration"));
}

TEST(Quantize, StopsWhenItIsToldTo)
{
    Engine &engine = *dblame_engine_instance();
    const auto model = engine.openModel(dataPath("golden/tinyconv_xnnpack/float.pt2"), {}, {}).value();
    InputRequest request;
    request.files = {dataPath("golden/tinyconv_xnnpack/calib.pt")};
    const auto batches = engine.openInputs(request, *model, *model, {}).value();
    std::stop_source stop;
    const auto quantized = engine.quantize(
        model, presetRecipe("xnnpack-static").value(), batches, {},
        [&](std::uint64_t, std::uint64_t, const char *) { stop.request_stop(); }, stop.get_token());
    ASSERT_FALSE(quantized.has_value());
    EXPECT_EQ(quantized.error().code, ErrorCode::Cancelled);
}

// torchao's presets search the histogram for the range with the smallest expected error; a change may ask for others.
TEST(Quantize, ObserversCanBeChosenByName)
{
    const auto rangeWith = [](const std::string &observer) {
        Recipe recipe = presetRecipe("xnnpack-static").value();
        if (!observer.empty())
            recipe.overrides.push_back(parseOverride("module:stem.*=act=int8:affine:tensor:" + observer).value());
        const Made made = make("tinyconv_xnnpack", "float.pt2", recipe);
        for (const PlacedSite &site : made.quantized.placement.sites)
            if (site.id == "stem.relu/out")
                return made.quantized.observed[static_cast<std::size_t>(site.instance)];
        ADD_FAILURE() << "no such site";
        return ObserverRange{};
    };
    const ObserverRange lowestToHighest = rangeWith("minmax");
    EXPECT_NEAR(lowestToHighest.high, lowestToHighest.highest, 1e-6 * lowestToHighest.highest);
    EXPECT_EQ(lowestToHighest.clipped, 0.0);
    const ObserverRange all = rangeWith("percentile100");
    EXPECT_NEAR(all.high, lowestToHighest.high, 1e-5 * lowestToHighest.high);
    const ObserverRange most = rangeWith("percentile99");
    EXPECT_LT(most.high, all.high);
    ASSERT_TRUE(most.clipped.has_value());
    EXPECT_NEAR(*most.clipped, 0.01, 0.006); // one percent of the elements, but for the width of a bin
    EXPECT_EQ(rangeWith("histogram").high, rangeWith("").high);
    EXPECT_LE(rangeWith("mse").high, lowestToHighest.high * 1.001);
    EXPECT_NE(rangeWith("mse").high, rangeWith("histogram").high);
}

TEST(Quantize, CalibrationSaysWhatItSaw)
{
    const Made made = make("tinyconv_xnnpack", "float.pt2", presetRecipe("xnnpack-static").value());
    ASSERT_EQ(made.quantized.observed.size(), made.quantized.placement.observers.size());
    bool any = false;
    for (std::size_t i = 0; i < made.quantized.placement.sites.size(); ++i) {
        const PlacedSite &site = made.quantized.placement.sites[i];
        if (site.id != "stem.relu/out")
            continue;
        any = true;
        const ObserverRange &range = made.quantized.observed[static_cast<std::size_t>(site.instance)];
        EXPECT_EQ(range.batches, 2 * made.quantized.calibrationBatches); // relu and the pool after it share
        EXPECT_EQ(range.lowest, 0.0);
        EXPECT_GT(range.highest, 0.0);
        ASSERT_TRUE(range.clipped.has_value());
        EXPECT_LT(*range.clipped, 0.01); // the histogram search drops a thin tail at most
        EXPECT_EQ(made.quantized.model->plannedSites()->site(made.quantized.siteOfPlaced[i]).id, site.id);
    }
    EXPECT_TRUE(any);
}

} // namespace

} // namespace dblame::test

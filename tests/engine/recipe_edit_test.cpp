// SPDX-License-Identifier: GPL-3.0-or-later
//
// A recipe that changes: the next candidate takes over what it has in common with the one before (observers, weights,
// figures, activations), and its numbers are those of a candidate made and run from nothing.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comparison_support.h"
#include "core/engine/calibration_cache.h"
#include "core/recipe.h"

namespace dblame::test
{

namespace
{

struct Float {
    std::shared_ptr<const Model> model;
    std::shared_ptr<const InputSet> inputs;
};

Float openFloat(const std::string &folder)
{
    Float result;
    Engine &engine = *dblame_engine_instance();
    result.model = engine.openModel(dataPath("golden/" + folder + "/float.pt2"), {}, {}).value();
    InputRequest request;
    request.files = {dataPath("golden/" + folder + "/inputs.pt")};
    result.inputs = engine.openInputs(request, *result.model, *result.model, {}).value();
    return result;
}

QuantizeOptions quantizeOptions(bool reuse)
{
    QuantizeOptions options;
    options.threads = 2;
    options.reuse = reuse;
    return options;
}

// Adds a change for a random operator that the recipe quantizes, or takes one back.
void changeAtRandom(Recipe &recipe, const std::vector<std::string> &operators, std::mt19937 &random)
{
    static const std::vector<std::string> kSpecs = {
        "float",     "none",     "weight=int4:sym:channel", "weight=float",
        "out=float", "in=float", "weight=int6:sym:tensor",  "act=uint8:affine,range=-3..5"};
    if (!recipe.overrides.empty() && random() % 4 == 0) {
        recipe.overrides.erase(recipe.overrides.begin() +
                               static_cast<std::ptrdiff_t>(random() % recipe.overrides.size()));
        return;
    }
    auto change = parseOverride("op:" + operators[random() % operators.size()], kSpecs[random() % kSpecs.size()]);
    ASSERT_TRUE(change.has_value());
    recipe.overrides.push_back(std::move(*change));
}

class RecipeEdits : public testing::TestWithParam<std::pair<const char *, const char *>>
{
};

TEST_P(RecipeEdits, GiveTheNumbersOfAFullRunBitForBit)
{
    const auto [folder, preset] = GetParam();
    Engine &engine = *dblame_engine_instance();
    const Float given = openFloat(folder);
    Recipe recipe = presetRecipe(preset).value();
    const auto placed = engine.place(given.model, recipe).value();
    std::vector<std::string> operators;
    for (const PlacedSite &site : placed.placement.sites)
        if (site.owner.valid())
            operators.push_back(placed.annotated->graph().node(site.owner).name);
    ASSERT_FALSE(operators.empty());
    RunOptions options = plainOptions();
    options.cacheBytes = 1ULL << 28U;
    std::mt19937 random(5);
    std::unique_ptr<Comparison> before;
    int steps = 0, partial = 0, known = 0;
    for (int attempt = 0; attempt < 14 && steps < 7; ++attempt) {
        Recipe next = recipe;
        if (attempt > 0)
            changeAtRandom(next, operators, random);
        const auto quantized = engine.quantize(given.model, next, given.inputs, quantizeOptions(true), {}, {});
        const auto fresh = engine.quantize(given.model, next, given.inputs, quantizeOptions(false), {}, {});
        ASSERT_EQ(quantized.has_value(), fresh.has_value());
        if (!quantized) // a change that this family of quantizers does not know
            continue;
        recipe = next;
        ++steps;
        known += quantized->observersKnown;
        EXPECT_EQ(fresh->observersKnown, 0);
        EXPECT_EQ(quantized->warnings, fresh->warnings);
        EXPECT_EQ(quantized->placement.defects.size(), fresh->placement.defects.size());
        ASSERT_EQ(quantized->weightErrors.size(), fresh->weightErrors.size());
        for (std::size_t w = 0; w < fresh->weightErrors.size(); ++w) {
            EXPECT_EQ(quantized->weightErrors[w].site, fresh->weightErrors[w].site);
            EXPECT_EQ(quantized->weightErrors[w].snrDb, fresh->weightErrors[w].snrDb);
        }
        for (std::size_t s = 0; s < fresh->model->plannedSites()->sites.size(); ++s) {
            const QuantSite &mine = quantized->model->plannedSites()->sites[s];
            const QuantSite &theirs = fresh->model->plannedSites()->sites[s];
            EXPECT_EQ(mine.scale, theirs.scale) << mine.id;
            EXPECT_EQ(mine.zeroPoint, theirs.zeroPoint) << mine.id;
        }
        auto comparison = engine.compare(given.model, quantized->model, given.inputs, {}, before.get());
        ASSERT_TRUE(comparison.has_value());
        if (attempt % 3 == 2) // a candidate that is replaced before it was run hands on what it was given
            comparison = engine.compare(given.model, quantized->model, given.inputs, {}, comparison->get());
        const RunReport rerun = runOrFail(**comparison, {}, options);
        partial += rerun.rowsRecomputed < static_cast<int>(rerun.rows.size());
        auto whole = engine.compare(given.model, fresh->model, given.inputs).value();
        EXPECT_EQ(firstDifference(rerun, runOrFail(*whole, {}, options)), "") << recipeText(recipe);
        // Edits of sites go on from there; what they changed is not handed on.
        EditSet edits;
        if (!(*comparison)->sites().sites.empty())
            editAtRandom(edits, (*comparison)->sites().sites, random);
        EXPECT_EQ(firstDifference(runOrFail(**comparison, edits, options), runOrFail(*whole, edits, options)), "");
        before = std::move(*comparison);
    }
    EXPECT_GE(steps, 4);
    EXPECT_GT(partial, 0);
    if (std::string(preset).find("palette") == std::string::npos &&
        std::string(preset).find("dynamic") == std::string::npos &&
        std::string(preset).find("qat") == std::string::npos) {
        EXPECT_GT(known, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Presets, RecipeEdits,
    testing::Values(std::pair{"tinyconv_xnnpack", "xnnpack-static"}, std::pair{"tinyconv_xnnpack", "x86-static"},
                    std::pair{"tinyconv_xnnpack", "xnnpack-qat"}, std::pair{"cfg_dynamic", "xnnpack-dynamic"},
                    std::pair{"tinyconv_coreai", "coreai-w8a8"}, std::pair{"tinyconv_coreai", "coreai-w8a8:eager"},
                    std::pair{"toy_palette", "coreai-palette-4"}, std::pair{"transformer_xnnpack", "xnnpack-static"}),
    [](const auto &each) {
        std::string name = std::string(each.param.first) + "_" + each.param.second;
        std::replace_if(
            name.begin(), name.end(), [](char c) { return c == '-' || c == ':'; }, '_');
        return name;
    });

TEST(RecipeEdit, OfTheLastWeightRerunsOnlyWhatIsBehindIt)
{
    Engine &engine = *dblame_engine_instance();
    const Float given = openFloat("tinyconv_xnnpack");
    Recipe recipe = presetRecipe("xnnpack-static").value();
    RunOptions options = plainOptions();
    options.cacheBytes = 1ULL << 28U;
    const auto first = engine.quantize(given.model, recipe, given.inputs, quantizeOptions(true), {}, {}).value();
    const auto before = engine.compare(given.model, first.model, given.inputs).value();
    const RunReport whole = runOrFail(*before, {}, options);
    recipe.overrides.push_back(parseOverride("module:fc=weight=int4:sym:channel").value());
    const auto second = engine.quantize(given.model, recipe, given.inputs, quantizeOptions(true), {}, {}).value();
    // Observers of torchao watch float values: no weight changes what they see.
    EXPECT_EQ(second.observersKnown, std::count_if(second.placement.observers.begin(), second.placement.observers.end(),
                                                   [](const PlacedObserver &o) {
                                                       return o.name.find("weight") == std::string::npos &&
                                                              o.spec.observer == ObserverKind::Histogram;
                                                   }));
    const auto next = engine.compare(given.model, second.model, given.inputs, {}, before.get()).value();
    const RunReport rerun = runOrFail(*next, {}, options);
    EXPECT_EQ(rerun.rowsRecomputed, 2); // the weight and the output
    EXPECT_LT(rerun.outputSnrDb.front(), whole.outputSnrDb.front());
}

TEST(RecipeEdit, TakesNothingFromAComparisonOnOtherInputs)
{
    Engine &engine = *dblame_engine_instance();
    const Float given = openFloat("tinyconv_xnnpack");
    const Float again = openFloat("tinyconv_xnnpack");
    const Recipe recipe = presetRecipe("xnnpack-static").value();
    RunOptions options = plainOptions();
    options.cacheBytes = 1ULL << 28U;
    const auto quantized = engine.quantize(given.model, recipe, given.inputs, quantizeOptions(true), {}, {}).value();
    const auto before = engine.compare(given.model, quantized.model, given.inputs).value();
    const RunReport whole = runOrFail(*before, {}, options);
    const auto next = engine.compare(given.model, quantized.model, again.inputs, {}, before.get()).value();
    EXPECT_EQ(runOrFail(*next, {}, options).rowsRecomputed, static_cast<int>(whole.rows.size()));
}

// --- the cache on disk ----------------------------------------------------------------------------------------------

class CalibrationFiles : public testing::Test
{
protected:
    void SetUp() override
    {
        m_folder =
            testing::TempDir() + "dblame_calibration_" + testing::UnitTest::GetInstance()->current_test_info()->name();
        std::filesystem::remove_all(m_folder);
    }
    void TearDown() override { std::filesystem::remove_all(m_folder); }

    static KnownObserver observer()
    {
        KnownObserver known;
        known.qparams.scale = at::full({3}, 0.1, at::kFloat);
        known.qparams.zeroPoint = at::full({3}, -7, at::kLong);
        known.qparams.low = at::full({3}, -0.1, at::kFloat);
        known.qparams.quantMin = -128;
        known.qparams.quantMax = 127;
        known.qparams.notes = {"a note"};
        known.range.batches = 4;
        known.range.highest = std::numeric_limits<double>::infinity();
        known.range.clipped = 1.0 / 3;
        return known;
    }

    [[nodiscard]] std::string file() const { return std::filesystem::directory_iterator(m_folder)->path().string(); }

    std::string m_folder;
};

TEST_F(CalibrationFiles, ComeBackToTheBit)
{
    CalibrationCache writer;
    writer.open("context", m_folder);
    writer.put("context", "key", observer());
    writer.save("context", m_folder);
    CalibrationCache reader;
    reader.open("context", m_folder);
    const KnownObserver *known = reader.observer("context", "key");
    ASSERT_NE(known, nullptr);
    EXPECT_TRUE(at::equal(known->qparams.scale, observer().qparams.scale));
    EXPECT_EQ(known->qparams.scale.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(known->qparams.zeroPoint, observer().qparams.zeroPoint));
    EXPECT_TRUE(at::equal(known->qparams.low, observer().qparams.low));
    EXPECT_FALSE(known->qparams.high.defined());
    EXPECT_FALSE(known->qparams.minValue.defined());
    EXPECT_EQ(known->qparams.quantMin, -128);
    EXPECT_EQ(known->qparams.quantMax, 127);
    EXPECT_EQ(known->qparams.notes, observer().qparams.notes);
    EXPECT_EQ(known->range.batches, 4);
    EXPECT_EQ(known->range.highest, std::numeric_limits<double>::infinity());
    EXPECT_EQ(known->range.clipped, 1.0 / 3);
    EXPECT_EQ(known->range.unused, std::nullopt);
    EXPECT_EQ(reader.observer("context", "other key"), nullptr);
    reader.open("other context", m_folder);
    EXPECT_EQ(reader.observer("other context", "key"), nullptr);
}

TEST_F(CalibrationFiles, ThatAreDamagedCountAsAbsent)
{
    CalibrationCache writer;
    writer.open("context", m_folder);
    writer.put("context", "key", observer());
    writer.save("context", m_folder);
    std::string bytes;
    {
        std::ifstream in(file(), std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    for (const std::string &damaged : {bytes.substr(0, bytes.size() / 2), std::string(), bytes.substr(0, 64),
                                       bytes.substr(0, bytes.size() - 1) + static_cast<char>(bytes.back() ^ 1)}) {
        std::ofstream(file(), std::ios::binary | std::ios::trunc) << damaged;
        CalibrationCache reader;
        reader.open("context", m_folder);
        EXPECT_EQ(reader.observer("context", "key"), nullptr) << damaged.size() << " bytes";
    }
}

TEST_F(CalibrationFiles, MayBeFoldersAndThenNothingIsKept)
{
    CalibrationCache writer;
    writer.open("context", m_folder);
    writer.put("context", "key", observer());
    writer.save("context", m_folder);
    const std::string path = file();
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    CalibrationCache reader;
    reader.open("context", m_folder);
    EXPECT_EQ(reader.observer("context", "key"), nullptr);
    reader.put("context", "key", observer());
    reader.save("context", m_folder);
    EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST_F(CalibrationFiles, AreReadByTheNextCalibrationOnTheSameData)
{
    Engine &engine = *dblame_engine_instance();
    const Float given = openFloat("tinyconv_xnnpack");
    QuantizeOptions options = quantizeOptions(true);
    options.threads = 1; // no other test of this program calibrates so
    options.cacheFolder = m_folder;
    const Recipe recipe = presetRecipe("xnnpack-static").value();
    const auto quantized = engine.quantize(given.model, recipe, given.inputs, options, {}, {}).value();
    EXPECT_EQ(quantized.observersKnown, 0);
    CalibrationCache reader;
    const std::string context = std::filesystem::path(file()).stem().string();
    reader.open(context, m_folder);
    const auto again = engine.quantize(given.model, recipe, given.inputs, options, {}, {}).value();
    EXPECT_GT(again.observersKnown, 0);
    EXPECT_EQ(again.calibrationBatches, quantized.calibrationBatches);
    for (std::size_t i = 0; i < again.observed.size(); ++i)
        EXPECT_EQ(again.observed[i].highest, quantized.observed[i].highest);
}

TEST_F(CalibrationFiles, KeepTheNewestOnly)
{
    CalibrationCache writer;
    for (int i = 0; i < 70; ++i) {
        const std::string context = "context" + std::to_string(i);
        writer.open(context, m_folder);
        writer.put(context, "key", observer());
        writer.save(context, m_folder);
    }
    const auto files = std::distance(std::filesystem::directory_iterator(m_folder), {});
    EXPECT_EQ(files, 64);
}

TEST(CalibrationMemory, HoldsAWeightOnlyWhileACandidateDoes)
{
    CalibrationCache cache;
    KnownWeight weight;
    weight.quantized = at::full({2, 2}, 3.0);
    weight.error.snrDb = 40;
    cache.putWeight("key", weight);
    ASSERT_TRUE(cache.weight("key").has_value());
    EXPECT_EQ(cache.weight("key")->error.snrDb, 40);
    EXPECT_TRUE(cache.weight("key")->quantized.is_same(weight.quantized));
    weight.quantized.reset();
    EXPECT_FALSE(cache.weight("key").has_value());
}

} // namespace

} // namespace dblame::test

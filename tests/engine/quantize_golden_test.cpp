// SPDX-License-Identifier: GPL-3.0-or-later
//
// Float models quantized here against what torchao and coreai-opt made of them: the same observers with the same
// numbers, and the peers' tables of the result.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "comparison_support.h"
#include "core/recipe.h"

namespace dblame::test
{

namespace
{

using nlohmann::json;

struct Case {
    const char *folder;
    const char *model; // what the quantizer is given
    const char *preset;
    // Against the untouched export, rows that the quantizer leaves alone differ by the float order of a folded norm.
    double exactFrom = std::numeric_limits<double>::infinity();
    const char *set = nullptr; // a change of the preset, "SELECTOR=SPEC"
};

void PrintTo(const Case &c, std::ostream *out)
{
    *out << c.folder << " " << c.preset;
}

json readJson(const std::string &path)
{
    std::ifstream file(path);
    return json::parse(file);
}

double decibels(const json &value)
{
    if (!value.is_string())
        return value.get<double>();
    const std::string text = value;
    if (text == "inf")
        return std::numeric_limits<double>::infinity();
    return text == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
}

// The peers' numbers are the shortest decimals of float32 values.
double single(const json &number)
{
    return number.get<float>();
}

std::vector<double> numbers(const json &value)
{
    std::vector<double> result;
    if (value.is_array())
        for (const json &each : value) {
            const std::vector<double> inner = numbers(each);
            result.insert(result.end(), inner.begin(), inner.end());
        }
    else if (value.is_number())
        result.push_back(single(value));
    return result;
}

struct Quantized {
    std::shared_ptr<const Model> reference;
    QuantizedModel candidate;
    std::unique_ptr<Comparison> comparison;
};

Quantized quantizeCase(const Case &c)
{
    Quantized result;
    Engine &engine = *dblame_engine_instance();
    const std::string folder = dataPath(std::string("golden/") + c.folder);
    const auto model = engine.openModel(folder + "/" + c.model, {}, {});
    EXPECT_TRUE(model.has_value()) << model.error().text();
    if (!model)
        return result;
    result.reference = *model;
    auto recipe = presetRecipe(c.preset);
    EXPECT_TRUE(recipe.has_value()) << recipe.error().text();
    if (recipe && c.set != nullptr)
        recipe->overrides.push_back(parseOverride(c.set).value());
    InputRequest calibration;
    if (std::filesystem::exists(folder + "/calib.pt"))
        calibration.files = {folder + "/calib.pt"};
    const auto batches = engine.openInputs(calibration, **model, **model, {});
    EXPECT_TRUE(batches.has_value()) << batches.error().text();
    InputRequest request;
    request.files = {folder + "/inputs.pt"};
    const auto inputs = engine.openInputs(request, **model, **model, {});
    EXPECT_TRUE(inputs.has_value()) << inputs.error().text();
    if (!recipe || !batches || !inputs)
        return result;
    // Without calibration files the peer observed its example only: the sample inputs of the file.
    const bool exampleOnly = calibration.files.empty();
    auto quantized = engine.quantize(*model, *recipe, exampleOnly ? nullptr : *batches, {2, 0}, {}, {});
    EXPECT_TRUE(quantized.has_value()) << quantized.error().text();
    if (!quantized)
        return result;
    result.candidate = std::move(*quantized);
    auto comparison = engine.compare(*model, result.candidate.model, *inputs);
    EXPECT_TRUE(comparison.has_value()) << comparison.error().text();
    if (comparison)
        result.comparison = std::move(*comparison);
    return result;
}

class QuantizeGolden : public testing::TestWithParam<Case>
{
};

TEST_P(QuantizeGolden, SameObserversWithTheSameNumbers)
{
    const json golden = readJson(dataPath(std::string("golden/") + GetParam().folder + "/golden_qparams.json"));
    const Quantized quantized = quantizeCase(GetParam());
    ASSERT_NE(quantized.comparison, nullptr);
    if (golden.contains("palettes")) { // tables: what they give is in the peer's table below
        EXPECT_EQ(quantized.comparison->sites().sites.size(), golden["palettes"].size());
        return;
    }
    const json &expected = golden.contains("observers") ? golden["observers"] : golden["fake_quants"];
    const auto &sites = quantized.comparison->sites().sites;
    const Graph &graph = quantized.candidate.model->graph();
    std::vector<char> used(expected.size(), 0);
    const auto take = [&](const auto &fits) -> const json * {
        for (std::size_t i = 0; i < expected.size(); ++i)
            if (used[i] == 0 && fits(expected[i])) {
                used[i] = 1;
                return &expected[i];
            }
        return nullptr;
    };
    // The peer's observer of a site: by the name of what it observes; in graphs that the peer rewrote, where its names
    // are others, the next one of the same operator.
    const auto partner = [&](const QuantSite &site) {
        const Node *producer = graph.producer(site.source);
        const std::string name = graph.value(site.source).name;
        const std::string target = producer                        ? producer->target
                                   : site.role == SiteRole::Weight ? site.weightTarget
                                                                   : name;
        const json *found = take([&](const json &peer) {
            return peer["observes"] == name || (!producer && peer["observes_target"] == target);
        });
        return found ? found : take([&](const json &peer) { return peer["observes_target"] == target; });
    };
    std::size_t matched = 0;
    for (const QuantSite &site : sites) {
        SCOPED_TRACE(site.id);
        const json *found = partner(site);
        ASSERT_NE(found, nullptr) << "the peer has no observer there";
        const json &peer = *found;
        ++matched;
        if (!peer.contains("scale"))
            continue; // a placeholder: from each tensor
        const std::vector<double> scale = numbers(peer["scale"]);
        ASSERT_EQ(site.scale.size(), scale.size());
        for (std::size_t i = 0; i < scale.size(); ++i)
            EXPECT_NEAR(site.scale[i], scale[i], 1e-5 * scale[i]);
        const std::vector<double> zero = numbers(peer["zero_point"]);
        ASSERT_EQ(site.zeroPoint.size(), zero.size());
        for (std::size_t i = 0; i < zero.size(); ++i)
            EXPECT_EQ(static_cast<double>(site.zeroPoint[i]), zero[i]);
        if (peer.contains("qmin")) {
            EXPECT_EQ(site.spec.quantMin, peer["qmin"].get<std::int64_t>());
            EXPECT_EQ(site.spec.quantMax, peer["qmax"].get<std::int64_t>());
        }
    }
    EXPECT_EQ(matched, expected.size());
}

TEST_P(QuantizeGolden, ThePeersTableWithinAHundredthOfADecibel)
{
    const json golden = readJson(dataPath(std::string("golden/") + GetParam().folder + "/golden.json"));
    const Quantized quantized = quantizeCase(GetParam());
    ASSERT_NE(quantized.comparison, nullptr);
    const RunReport report = runOrFail(*quantized.comparison, {}, plainOptions());
    const bool candidateSignal = golden["metric"] == "actual_signal";
    // Tables that depend on the CPU. tinyconv_coreai: see golden_test.cpp. transformer_coreai: the mean over 16 tokens
    // of values on a grid is quantized on the same grid, so one value in 16 is a tie, and a scale that differs in its
    // last bit (as that of the table's machine does here) rounds them all the other way; run on this machine coreai-opt
    // itself gives 33.382477892264916 dB at the output, as dBlame does, where its table says 33.071.
    const std::string folder = GetParam().folder;
    const double tolerance = folder == "tinyconv_coreai" || folder == "transformer_coreai" ? 0.35 : 0.01;
    const auto &pairs = quantized.comparison->alignment().pairs;
    std::map<std::string, std::size_t> rows;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        rows[quantized.reference->graph().value(pairs[i].ref).name] = i;
        if (const GraphInput *input = quantized.reference->graph().input(pairs[i].ref))
            rows["target:" + input->target] = i;
    }
    int compared = 0;
    for (const json &line : golden["rows"]) {
        if (line["sqnr_db"].is_array() || line.contains("part"))
            continue;
        const std::string name = line.contains("ref_pt2") ? line["ref_pt2"] : line["ref"];
        auto row = rows.find(name);
        if (row == rows.end())
            row = rows.find("target:" + line.value("target", ""));
        if (row == rows.end())
            row = rows.find(name.substr(0, name.rfind('_')));
        ASSERT_NE(row, rows.end()) << name;
        const AlignedPair &pair = pairs[row->second];
        const Metrics &metrics = report.rows[row->second].metrics;
        const double ours = candidateSignal ? metrics.sqnrDb : metrics.snrDb;
        const double peer = decibels(line["sqnr_db"]);
        SCOPED_TRACE(name);
        ++compared;
        if (pair.refFromCandidate.valid()) { // the peer loses the weight of a rewritten norm
            EXPECT_TRUE(std::isinf(peer));
            EXPECT_GT(ours, 40.0);
        } else if (std::isfinite(peer)) {
            EXPECT_NEAR(ours, peer, tolerance);
        } else if (peer > 0) {
            EXPECT_GE(ours, GetParam().exactFrom);
        } else {
            EXPECT_EQ(ours, peer);
        }
    }
    EXPECT_GT(compared, 3);
    const double output = decibels(golden["output_sqnr_db"]);
    ASSERT_FALSE(report.outputSnrDb.empty());
    if (std::isfinite(output))
        EXPECT_NEAR(report.outputSnrDb.front(), output, tolerance);
    else
        EXPECT_EQ(report.outputSnrDb.front(), output);
}

INSTANTIATE_TEST_SUITE_P(Torchao, QuantizeGolden,
                         testing::Values(Case{"cfg_per_tensor", "float.pt2", "xnnpack-static:per-tensor"},
                                         Case{"cfg_per_channel", "float.pt2", "xnnpack-static"},
                                         Case{"cfg_qat", "raw_export.pt2", "xnnpack-qat", 120},
                                         Case{"cfg_dynamic", "raw_export.pt2", "xnnpack-dynamic", 120},
                                         Case{"tinyconv_xnnpack", "raw_export.pt2", "xnnpack-static", 120},
                                         Case{"tinyconv_xnnpack_pt", "float.pt2", "xnnpack-static:per-tensor"},
                                         Case{"tinyconv_dynbatch", "float.pt2", "xnnpack-static"},
                                         Case{"collapse_pt", "float.pt2", "xnnpack-static:per-tensor"},
                                         Case{"collapse_pc", "float.pt2", "xnnpack-static"},
                                         Case{"collapse_act_pt", "float.pt2", "xnnpack-static:per-tensor"},
                                         Case{"collapse_act_pc", "float.pt2", "xnnpack-static"},
                                         Case{"transformer_xnnpack", "float.pt2", "xnnpack-static"},
                                         Case{"transformer_dynamic", "float.pt2", "xnnpack-dynamic"}),
                         [](const auto &each) { return std::string(each.param.folder); });

INSTANTIATE_TEST_SUITE_P(CoreAi, QuantizeGolden,
                         testing::Values(Case{"toy_w8a8", "float.pt2", "coreai-w8a8"},
                                         Case{"toy_w8", "float.pt2", "coreai-w8"},
                                         Case{"toy_w4block", "float.pt2", "coreai-w4-block32"},
                                         Case{"toy_palette", "float.pt2", "coreai-palette-4"},
                                         Case{"toy_palette_g2", "float.pt2", "coreai-palette-4-g2"},
                                         Case{"toy_palette_none", "float.pt2", "coreai-palette-4-g16"},
                                         Case{"tinyconv_coreai", "float.pt2", "coreai-w8a8"},
                                         Case{"coreai_bn_eps", "float.pt2", "coreai-w8a8"},
                                         Case{"transformer_coreai", "float.pt2", "coreai-w8a8"},
                                         Case{"collapse_hidden_pc", "float.pt2", "coreai-w8"},
                                         Case{"collapse_hidden_pt", "float.pt2", "coreai-w8",
                                              std::numeric_limits<double>::infinity(),
                                              "module:.*=weight=int8:sym:tensor"}),
                         [](const auto &each) { return std::string(each.param.folder); });

TEST(QuantizeEager, GivesThePeersTableByModule)
{
    for (const Case &c :
         {Case{"toy_w8a8", "float.pt2", "coreai-w8a8:eager"}, Case{"toy_w8", "float.pt2", "coreai-w8:eager"}}) {
        SCOPED_TRACE(c.folder);
        const json golden = readJson(dataPath(std::string("golden/") + c.folder + "/golden_eager.json"));
        const Quantized quantized = quantizeCase(c);
        ASSERT_NE(quantized.comparison, nullptr);
        const RunReport report = runOrFail(*quantized.comparison, {}, plainOptions());
        std::map<std::string, double> byModule, byWeight; // the last value in a module, after its site
        const auto &pairs = quantized.comparison->alignment().pairs;
        const Graph &graph = quantized.reference->graph();
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            if (const Node *node = graph.producer(pairs[i].ref))
                byModule[node->modulePath()] = report.rows[i].metrics.snrDb;
            else if (const GraphInput *input = graph.input(pairs[i].ref))
                byWeight[input->target] = report.rows[i].metrics.snrDb;
        }
        for (const json &line : golden["rows"])
            EXPECT_NEAR(byModule.at(line["module"]), decibels(line["sqnr_db"]), 0.01) << line["module"];
        for (const json &line : golden["weights"])
            EXPECT_NEAR(byWeight.at(line["ref"]), decibels(line["sqnr_db"]), 0.01) << line["ref"];
        EXPECT_EQ(quantized.candidate.weightErrors.size(), golden["weights"].size());
    }
}

} // namespace

} // namespace dblame::test

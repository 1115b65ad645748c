// SPDX-License-Identifier: GPL-3.0-or-later
//
// Recipes from the command line, on the trained digits net: compare, plan, recipe export.
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "process.h"

namespace dblame
{
namespace
{

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const std::string kNet = std::string(DBLAME_TEST_DATA) + "/golden/tinyconv_xnnpack/";

// Not the user's, nor that of an earlier run.
const std::string &cacheHome()
{
    struct Folder {
        std::string path = testing::TempDir() + "dblame_recipe_cli_" + std::to_string(::getpid());
        Folder() { std::filesystem::remove_all(path); }
        Folder(const Folder &) = delete;
        Folder &operator=(const Folder &) = delete;
        ~Folder()
        {
            std::error_code ignored;
            std::filesystem::remove_all(path, ignored);
        }
    };
    static const Folder folder;
    return folder.path;
}

Finished dblame(std::vector<std::string> arguments)
{
    arguments.insert(arguments.begin(), DBLAME_BINARY);
    return run(arguments, {"XDG_CACHE_HOME=" + cacheHome()});
}

Finished compare(const std::vector<std::string> &more)
{
    std::vector<std::string> arguments = {"compare",       kNet + "raw_export.pt2", "--inputs",  kNet + "inputs.pt",
                                          "--calibration", kNet + "calib.pt",       "--threads", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return dblame(arguments);
}

json report(std::vector<std::string> more)
{
    more.insert(more.end(), {"--json", "-"});
    const Finished done = compare(more);
    EXPECT_EQ(done.status, 0) << done.err;
    return done.status == 0 ? json::parse(done.out) : json();
}

double output(const json &of)
{
    return of["output_snr_db"][0].get<double>();
}

// 33.9154 dB: torchao's own output for this net, data and preset (golden.json).
TEST(RecipeCli, APresetMakesTheCandidateOfTheReference)
{
    const json made = report({"--preset", "xnnpack-static"});
    EXPECT_NEAR(output(made), 33.91535805117776, 0.01);
    EXPECT_EQ(made["recipe"]["title"], "xnnpack-static");
    EXPECT_EQ(made["inputs"]["calibration"], "calib.pt");
    EXPECT_EQ(made["largest_drop"]["by"], "order");
}

TEST(RecipeCli, ACalibrationIsKeptByContentAndTheNumbersStay)
{
    const std::filesystem::path kept = std::filesystem::path(cacheHome()) / "dblame" / "calibration";
    std::filesystem::remove_all(kept);
    const json anew = report({"--preset", "xnnpack-static", "--no-cache"});
    EXPECT_FALSE(std::filesystem::exists(kept));
    const json first = report({"--preset", "xnnpack-static"});
    ASSERT_TRUE(std::filesystem::exists(kept));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(kept), {}), 1);
    const json second = report({"--preset", "xnnpack-static"});
    const json other = report({"--preset", "xnnpack-static", "--set", "module:fc=weight=int4:sym:channel"});
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(kept), {}), 1); // the same data
    EXPECT_LT(output(other), output(first));
    for (std::size_t i = 0; i < anew["rows"].size(); ++i) {
        EXPECT_EQ(first["rows"][i]["snr_db"], anew["rows"][i]["snr_db"]) << i;
        EXPECT_EQ(second["rows"][i]["snr_db"], anew["rows"][i]["snr_db"]) << i;
        EXPECT_EQ(second["rows"][i]["site"], anew["rows"][i]["site"]) << i;
    }
}

TEST(RecipeCli, ARecipeFileGivesWhatItsPresetGives)
{
    const std::string path = testing::TempDir() + "dblame_recipe_" + std::to_string(::getpid()) + ".yaml";
    const Finished written = dblame({"recipe", "export", "--preset", "coreai-w8", "--format", "dblame", "-o", path});
    ASSERT_EQ(written.status, 0) << written.err;
    const json byName = report({"--preset", "coreai-w8"});
    const json byFile = report({"--recipe", path});
    std::filesystem::remove(path);
    EXPECT_EQ(byName["rows"].size(), byFile["rows"].size());
    EXPECT_EQ(byName["output_snr_db"], byFile["output_snr_db"]);
    EXPECT_GT(output(byName), 35.0); // weights only
}

TEST(RecipeCli, SetGivesALayerAnotherSpecAndNoneWhatTheQuantizerWouldLeaveOut)
{
    const double plain = output(report({"--preset", "xnnpack-static"}));
    const json four = report({"--preset", "xnnpack-static", "--set", "module:fc=weight=int4:sym:channel"});
    EXPECT_LT(output(four), plain - 3.0);
    const json skipped = report({"--preset", "xnnpack-static", "--set", "module:fc=none"});
    int sites = 0;
    for (const json &row : skipped["rows"])
        if (!row["site"].is_null() && row["site"]["id"].get<std::string>().starts_with("fc/"))
            ++sites;
    EXPECT_EQ(sites, 0);
}

TEST(RecipeCli, SkippingEverythingOnAPlannedCandidateIsTheFloatModel)
{
    const json made = report({"--preset", "xnnpack-static", "--skip", "module:.*"});
    EXPECT_GT(output(made), 110.0);
}

TEST(RecipeCli, InputsAreTheCalibrationWhereNoneIsGivenAndTheReportSaysSo)
{
    const Finished done = dblame(
        {"compare", kNet + "float.pt2", "--inputs", kNet + "inputs.pt", "--preset", "xnnpack-static", "--json", "-"});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(json::parse(done.out)["inputs"]["calibration"].get<std::string>(), HasSubstr("inputs themselves"));
}

TEST(RecipeCli, AChangeThatReachesNothingIsSaid)
{
    const Finished done = dblame(
        {"plan", kNet + "float.pt2", "--preset", "coreai-w8a8", "--set", "module:stem.relu=out=int4:affine:tensor"});
    EXPECT_EQ(done.status, 0);
    EXPECT_THAT(done.err, HasSubstr("module:stem.relu=out=int4:affine:tensor' changes nothing"));
    const Finished reaches = dblame(
        {"plan", kNet + "float.pt2", "--preset", "coreai-w8a8", "--set", "module:stem.conv=out=int4:affine:tensor"});
    EXPECT_THAT(reaches.err, Not(HasSubstr("changes nothing")));
}

TEST(RecipeCli, WrongUsageIsStatusTwoAndSaysWhy)
{
    const Finished twice = compare({"--preset", "xnnpack-static", "--set", "op:add/in[1]=in=int4"});
    EXPECT_EQ(twice.status, 2);
    EXPECT_THAT(twice.err, HasSubstr("another role than the selector's"));
    const Finished preset = compare({"--preset", "xnnpack-sttic"});
    EXPECT_EQ(preset.status, 2);
    EXPECT_THAT(preset.err, HasSubstr("xnnpack-static"));
    const Finished selector = compare({"--preset", "xnnpack-static", "--set", "module:nosuch=none"});
    EXPECT_EQ(selector.status, 2);
    EXPECT_THAT(selector.err, HasSubstr("nosuch"));
    const Finished both = dblame({"compare", kNet + "float.pt2", kNet + "candidate.pt2", "--preset", "coreai-w8"});
    EXPECT_EQ(both.status, 2);
    EXPECT_THAT(both.err, HasSubstr("REF alone"));
    const Finished missing = compare({"--recipe", "nosuch.yaml"});
    EXPECT_EQ(missing.status, 3);
    EXPECT_THAT(missing.err, HasSubstr("nosuch.yaml"));
}

TEST(RecipeCli, PlanListsSitesAndFactsAndComparesTwo)
{
    const Finished one = dblame({"plan", kNet + "raw_export.pt2", "--preset", "xnnpack-static", "--weights"});
    ASSERT_EQ(one.status, 0) << one.err;
    EXPECT_THAT(one.out, HasSubstr("12 observers at 16 sites; converted: 11 quantize and 17 dequantize nodes"));
    EXPECT_THAT(one.out, HasSubstr("aten.conv2d: 4 of 4 quantized"));
    EXPECT_THAT(one.out, HasSubstr("stem.conv/weight: 49.18 dB"));
    EXPECT_THAT(one.err, Not(HasSubstr("never observed")));
    const Finished two =
        dblame({"plan", kNet + "raw_export.pt2", "--preset", "xnnpack-static", "xnnpack-static:per-tensor"});
    ASSERT_EQ(two.status, 0) << two.err;
    EXPECT_THAT(two.out, HasSubstr("5 sites differ, 11 are the same"));
    const Finished dynamic = dblame({"plan", kNet + "raw_export.pt2", "--preset", "xnnpack-dynamic"});
    EXPECT_THAT(dynamic.out, HasSubstr("stays float"));
}

// "0       weights only          5   43.06    43.06" of the plan's table of outputs.
std::string partOf(const std::string &plan, const std::string &part)
{
    const std::size_t table = plan.find("\noutputs");
    const std::size_t at = table == std::string::npos ? table : plan.find(part, table);
    if (at == std::string::npos)
        return "no " + part + " in\n" + plan;
    std::istringstream words(plan.substr(at + part.size()));
    std::string sites, snr, sqnr;
    words >> sites >> snr >> sqnr;
    return sites + " " + snr + " " + sqnr;
}

std::string asPlanned(int sites, const json &report)
{
    std::array<char, 64> text{};
    (void)std::snprintf(text.data(), text.size(), "%d %.2f %.2f", sites, report["output_snr_db"][0].get<double>(),
                        report["output_sqnr_db"][0].get<double>());
    return text.data();
}

TEST(RecipeCli, PlanOnInputsGivesWhatSkippingGives)
{
    const std::vector<std::string> plan = {"plan",          kNet + "raw_export.pt2", "--inputs",  kNet + "inputs.pt",
                                           "--calibration", kNet + "calib.pt",       "--threads", "2"};
    for (const auto &[preset, weights, activations] :
         {std::tuple("xnnpack-static", 5, 11), std::tuple("coreai-w8a8", 5, 11)}) {
        std::vector<std::string> arguments = plan;
        arguments.insert(arguments.end(), {"--preset", preset});
        const Finished done = dblame(arguments);
        ASSERT_EQ(done.status, 0) << done.err;
        EXPECT_EQ(partOf(done.out, "everything"), asPlanned(weights + activations, report({"--preset", preset})));
        EXPECT_EQ(partOf(done.out, "weights only"),
                  asPlanned(weights, report({"--preset", preset, "--skip", "module:.*/act"})));
        EXPECT_EQ(partOf(done.out, "activations only"),
                  asPlanned(activations, report({"--preset", preset, "--skip", "module:.*/weight"})));
        EXPECT_THAT(done.out, HasSubstr("outputs; calibrated: calib.pt"));
        EXPECT_THAT(done.out, HasSubstr("stem.conv/weight: ")) << "quantized, so known";
    }
    std::vector<std::string> weightsOnly = plan;
    weightsOnly.insert(weightsOnly.end(), {"--preset", "coreai-w8"});
    const Finished one = dblame(weightsOnly);
    ASSERT_EQ(one.status, 0) << one.err;
    EXPECT_EQ(partOf(one.out, "weights only"), partOf(one.out, "everything"));
    EXPECT_THAT(partOf(one.out, "activations only"), HasSubstr("0 ")) << "the float model";

    std::vector<std::string> two = plan;
    two.insert(two.end(), {"--preset", "xnnpack-static", "xnnpack-static:per-tensor"});
    const Finished both = dblame(two);
    ASSERT_EQ(both.status, 0) << both.err;
    EXPECT_THAT(both.out, HasSubstr("5 sites differ, 11 are the same"));
    EXPECT_THAT(both.out, HasSubstr("\nxnnpack-static:per-tensor\noutputs"));

    const Finished refused =
        dblame({"plan", kNet + "raw_export.pt2", "--preset", "xnnpack-static", "--calibration", kNet + "calib.pt"});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("give --inputs"));
}

// xnnpack folds the norms and lifts numbers, coreai-opt does neither: values go by name.
TEST(RecipeCli, PlanComparesRecipesThatRewriteTheModelInDifferentWays)
{
    const Finished done = dblame({"plan", kNet + "raw_export.pt2", "--preset", "xnnpack-static", "coreai-w8a8"});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr("from xnnpack-static to coreai-w8a8: 17 sites differ, 0 are the same"));
    EXPECT_THAT(done.out, HasSubstr("x/out                  appears "));
    EXPECT_THAT(done.out, HasSubstr("stem.conv/in[0]        vanishes "));
    EXPECT_THAT(done.out, HasSubstr("block.bn2/out          changes "));
}

TEST(RecipeCli, PlanListsTheErrorOfEachChannelAndWhereTheBitsChange)
{
    const Finished done = dblame({"plan", kNet + "raw_export.pt2", "--preset", "xnnpack-static", "--channels", "--set",
                                  "module:fc=in=int16:sym"});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr("fc/weight                 0        4   47.97  worst\n"));
    EXPECT_THAT(done.out, HasSubstr("bits change\n"));
    EXPECT_THAT(done.out, HasSubstr("fc: 16 bits in, 8 bits out"));
}

TEST(RecipeCli, SaysWhenCalibrationLooksRandom)
{
    const std::string path = testing::TempDir() + "dblame_randn_" + std::to_string(::getpid()) + ".npy";
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (32, 1, 8, 8), }";
    header.append(63 - (10 + header.size()) % 64, ' ') += '\n';
    std::ofstream file(path, std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0' << header;
    std::mt19937 engine(3);
    std::normal_distribution<float> normal;
    for (int i = 0; i < 32 * 64; ++i) {
        const float x = normal(engine);
        file.write(reinterpret_cast<const char *>(&x), sizeof x);
    }
    file.close();
    const std::vector<std::string> plan = {"plan",     kNet + "raw_export.pt2", "--preset",     "xnnpack-static",
                                           "--inputs", kNet + "inputs.pt",      "--calibration"};
    std::vector<std::string> real = plan;
    real.push_back(kNet + "calib.pt");
    EXPECT_THAT(dblame(real).err, Not(HasSubstr("look random")));
    std::vector<std::string> random = plan;
    random.push_back(path);
    const Finished said = dblame(random);
    EXPECT_EQ(said.status, 0);
    EXPECT_THAT(said.err, HasSubstr("warning: calibration: the inputs look random: x holds standard normal numbers"));
    std::filesystem::remove(path);
}

TEST(RecipeCli, ExportSaysWhatTheQuantizerLoads)
{
    const Finished yaml = dblame({"recipe", "export", "--preset", "coreai-w4", "--format", "coreai-opt"});
    ASSERT_EQ(yaml.status, 0) << yaml.err;
    EXPECT_THAT(yaml.out, HasSubstr("quantization_config:"));
    EXPECT_THAT(yaml.out, HasSubstr("int4"));
    const Finished wrapper = dblame({"recipe", "export", "--preset", "xnnpack-static", "--set", "module:fc=none",
                                     "--format", "torchao", "--model", kNet + "raw_export.pt2"});
    ASSERT_EQ(wrapper.status, 0) << wrapper.err;
    EXPECT_THAT(json::parse(wrapper.out).dump(), HasSubstr("fc"));
    const Finished wrong = dblame({"recipe", "export", "--preset", "xnnpack-static", "--format", "coreai-opt"});
    EXPECT_EQ(wrong.status, 2) << wrong.out;
}

} // namespace
} // namespace dblame

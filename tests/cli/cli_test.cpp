// SPDX-License-Identifier: GPL-3.0-or-later
//
// The real program on the real pair of resources/demo.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "process.h"

namespace dblame
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const std::string kDemo = std::string(DBLAME_SOURCE_DIR) + "/resources/demo/";
const std::string kFloat = kDemo + "float.pt2";
const std::string kInt8 = kDemo + "int8.pt2";
const std::string kInputs = kDemo + "inputs.pt";

class Cli : public testing::Test
{
protected:
    Cli()
    {
        std::string name = testing::TempDir() + "dblame_cli_XXXXXX";
        m_folder = ::mkdtemp(name.data());
    }
    ~Cli() override { fs::remove_all(m_folder); }

    static Finished dblame(std::vector<std::string> arguments)
    {
        arguments.insert(arguments.begin(), DBLAME_BINARY);
        return run(arguments);
    }
    static Finished compare(const std::vector<std::string> &more)
    {
        std::vector<std::string> arguments = {"compare", kFloat, kInt8, "--threads", "2", "--inputs", kInputs};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return dblame(arguments);
    }
    static json compareJson(std::vector<std::string> more)
    {
        more.insert(more.end(), {"--json", "-"});
        const Finished done = compare(more);
        EXPECT_EQ(done.status, 0) << done.err;
        return json::parse(done.out);
    }
    [[nodiscard]] std::string file(const std::string &name) const { return (m_folder / name).string(); }
    static std::string content(const std::string &path)
    {
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }
    void write(const char *name, const std::string &text) const { std::ofstream(m_folder / name) << text; }
    [[nodiscard]] std::size_t files() const
    {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(m_folder), {}));
    }

    fs::path m_folder;
};

double db(const json &value)
{
    return value.is_number() ? value.get<double>() : value == "inf" ? INFINITY : value == "-inf" ? -INFINITY : NAN;
}

const json &rowOf(const json &report, const std::string &ref)
{
    for (const auto &row : report["rows"])
        if (row["ref"] == ref)
            return row;
    throw std::out_of_range(ref);
}

TEST_F(Cli, VersionNamesBoth)
{
    const Finished done = dblame({"--version"});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.out,
                testing::MatchesRegex("dBlame [0-9]+\\.[0-9]+\\.[0-9]+\nLibTorch [0-9]+\\.[0-9]+\\.[0-9].*\n"));
}

TEST_F(Cli, HelpShowsWhatIsBuiltAndNothingElse)
{
    const Finished top = dblame({"--help"});
    EXPECT_EQ(top.status, 0);
    for (const char *word : {"compare", "inspect", "align", "diff", "plan", "recipe"})
        EXPECT_THAT(top.out, HasSubstr(word));
    EXPECT_THAT(top.out, Not(HasSubstr("sweep")));
    const Finished help = dblame({"compare", "--help"});
    EXPECT_EQ(help.status, 0);
    for (const char *word :
         {"--inputs",         "--random",    "--skip",       "--only",   "--json",    "--csv",           "--html",
          "--signal",         "--channels",  "--histograms", "--hashes", "--threads", "--limit-batches", "--fail-below",
          "--fail-row-below", "--fail-drop", "--preset",     "--recipe", "--set",     "--calibration"})
        EXPECT_THAT(help.out, HasSubstr(word));
    EXPECT_THAT(help.out, Not(HasSubstr("--attribution")));
    EXPECT_EQ(dblame({"diff", "--help"}).status, 0);
}

struct WrongUsage {
    std::vector<std::string> arguments;
    const char *message;
};
class CliUsage : public Cli, public testing::WithParamInterface<WrongUsage>
{
};
TEST_P(CliUsage, IsStatusTwoAndSaysWhy)
{
    const Finished done = dblame(GetParam().arguments);
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, StartsWith("dblame: "));
    EXPECT_THAT(done.err, HasSubstr(GetParam().message));
    EXPECT_THAT(done.out, IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(
    All, CliUsage,
    testing::Values(WrongUsage{{"compare"}, "required"}, WrongUsage{{"compare", kFloat, kInt8, "--colour"}, "--colour"},
                    WrongUsage{{"compare", kFloat}, "a second model is missing"},
                    WrongUsage{{"compare", kFloat, kInt8, "--signal", "both"}, "both"},
                    WrongUsage{{"compare", kFloat, kInt8, "--threads", "0"}, "--threads"},
                    WrongUsage{{"compare", kFloat, kInt8, "--skip", "module:[a"}, "'[' without ']' (character 1)"},
                    WrongUsage{{"compare", kFloat, kInt8, "--skip", "conv1"}, "begins with module:"},
                    WrongUsage{{"compare", kFloat, kInt8, "--json", "-", "--csv", "-"},
                               "only one report can go to stdout"},
                    WrongUsage{{"compare", kFloat, kInt8, "--limit-batches", "0"}, "0 is no whole number of 1 or more"},
                    WrongUsage{{"compare", kFloat, kInt8, "--limit-batches", "1.5"}, "1.5 is no whole number"},
                    WrongUsage{{"compare", kFloat, kInt8, "--random", "-1"}, "-1 is no whole number from 0"},
                    WrongUsage{{"compare", kFloat, kInt8, "--random", "99999999999999999999"}, "is no whole number"},
                    WrongUsage{{"compare", kFloat, kInt8, "--threads", "1025"}, "from 1 to 1024"},
                    WrongUsage{{"compare", kFloat, kInt8, "--fail-below", "nan"}, "nan is no number of decibels"},
                    WrongUsage{{"compare", kFloat, kInt8, "--fail-row-below", "NaN"}, "no number of decibels"},
                    WrongUsage{{"compare", kFloat, kInt8, "--fail-drop", "3dB"}, "no number of decibels"},
                    WrongUsage{{"diff", "a.json", "b.json", "--fail-regress", "nan"}, "no number of decibels"},
                    WrongUsage{{"compare", kFloat, kInt8, "--json", kDemo}, "is a folder"},
                    WrongUsage{{"comapre", kFloat, kInt8}, "neither a command"},
                    WrongUsage{{"compare", kFloat, kInt8, "--inputs", kInputs, "--skip", "module:block.conv9"},
                               "matches no module of the candidate; nearest: block.conv"},
                    WrongUsage{{"compare", kFloat, kInt8, "--set", "module:fc=weight=int4:odd"}, "is no scheme"},
                    WrongUsage{{"compare", kFloat, kInt8, "--inputs", kInputs, "--set", "module:fcc=weight=int4:sym"},
                               "matches no module of the candidate; nearest: fc"},
                    WrongUsage{{"compare", kFloat, kInt8, "--inputs", kInputs, "--set", "module:fc=none"},
                               "asks the quantizer of a recipe (--preset or --recipe)"},
                    WrongUsage{{"compare", kFloat, kInt8, "--inputs", kInputs, "--set", "module:pool1=weight=int4:sym"},
                               "no such site; it has: pool1/out"}));

TEST_F(Cli, CompareShowsATableWithTheLargestDropMarked)
{
    const Finished done = compare({});
    EXPECT_EQ(done.status, 0);
    EXPECT_THAT(done.err, IsEmpty()) << "no progress where stderr is no terminal";
    EXPECT_THAT(done.out, testing::ContainsRegex("<== largest drop: [0-9.]+ dB"));
    EXPECT_THAT(done.out, testing::ContainsRegex("output SNR [0-9.]+ dB"));
}

TEST_F(Cli, JsonCsvAndHtmlOfOneRunAgree)
{
    const Finished done = compare({"--channels", "--histograms", "--hashes", "--json", file("r.json"), "--csv",
                                   file("r.csv"), "--html", file("r.html")});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.out, IsEmpty());
    EXPECT_EQ(files(), 3U);
    const json report = json::parse(content(file("r.json")));
    EXPECT_EQ(report["threads"], 2);
    EXPECT_EQ(report["inputs"]["random"], false);
    EXPECT_EQ(report["signal"], "reference");
    ASSERT_GT(report["rows"].size(), 14U);
    const int drop = report["largest_drop"]["row"];
    const json &row = report["rows"][static_cast<std::size_t>(drop)];
    EXPECT_EQ(row["index"], drop);
    EXPECT_EQ(row["drop_db"], report["largest_drop"]["drop_db"]);
    EXPECT_FALSE(row["channels"].empty());
    EXPECT_EQ(row["histogram"]["edges"].size(), row["histogram"]["reference"].size() + 1);
    EXPECT_EQ(row["ref_sha256"].get<std::string>().size(), 64U);

    const std::string csv = content(file("r.csv"));
    EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')), report["rows"].size() + 1);
    const std::string html = content(file("r.html"));
    EXPECT_THAT(html, HasSubstr("<tr id=\"r" + std::to_string(drop) + "\" class=\"drop\">"));
    EXPECT_THAT(html, HasSubstr("class=\"ring\""));
}

TEST_F(Cli, TwoRunsGiveTheSameReport)
{
    auto strip = [](json report) {
        report.erase("seconds");
        for (auto &row : report["rows"])
            row.erase("ms");
        return report;
    };
    EXPECT_EQ(strip(compareJson({"--hashes"})), strip(compareJson({"--hashes"})));
}

TEST_F(Cli, SkippingEverythingGivesTheFloatModelBack)
{
    const json report = compareJson({"--skip", "module:.*"});
    EXPECT_GT(report["skipped"].size(), 5U);
    for (const auto &value : report["output_snr_db"])
        EXPECT_GT(db(value), 110.0);
    const json only = compareJson({"--only", "module:.*"});
    EXPECT_TRUE(only["skipped"].empty());
    EXPECT_EQ(only["output_snr_db"], compareJson({})["output_snr_db"]);
}

TEST_F(Cli, SkippingOneLayerLeavesTheOthersQuantized)
{
    const json before = compareJson({});
    const json after = compareJson({"--skip", "module:block.conv1"});
    EXPECT_FALSE(after["skipped"].empty());
    for (const auto &id : after["skipped"])
        EXPECT_THAT(id.get<std::string>(), HasSubstr("block.conv1"));
    // The stem comes before: nothing of it changes.
    EXPECT_EQ(rowOf(after, "conv2d")["snr_db"], rowOf(before, "conv2d")["snr_db"]);
    EXPECT_NE(after["output_snr_db"], before["output_snr_db"]);
}

TEST_F(Cli, SetGivesACandidatesSitesOtherSpecs)
{
    const json before = compareJson({});
    const json after = compareJson({"--set", "module:block.conv2/weight=f8e4m3:sym:channel", "module:fc=weight=int4",
                                    "module:block.relu=out=int16:affine,range=0..4"});
    // The module is called twice.
    const std::string wide = "/out=int16 affine per tensor in 0..4";
    EXPECT_EQ(after["changed"], json({"block.conv2/weight=f8e4m3 per channel", "fc/weight=int4 per channel",
                                      "block.relu" + wide, "block.relu@1" + wide}));
    EXPECT_TRUE(after["skipped"].empty());
    const json weight = rowOf(after, "p_block_conv2_weight");
    EXPECT_EQ(weight["site"]["dtype"], "float8_e4m3fn");
    EXPECT_EQ(weight["site"]["change"], "f8e4m3 per channel");
    EXPECT_NEAR(db(weight["snr_db"]), 31.5, 3); // three bits of mantissa, against 44.5 with int8
    const json relu = rowOf(after, "relu_1");
    EXPECT_EQ(relu["site"]["effective_bits"], 16);
    EXPECT_EQ(relu["site"]["scale"].get<float>(), 4.0F / 65535);
    EXPECT_EQ(relu["site"]["quant_min"], -32768);
    EXPECT_EQ(rowOf(after, "p_fc_weight")["site"]["effective_bits"], 4);
    // A bit is worth 6 dB.
    EXPECT_NEAR(db(rowOf(before, "p_fc_weight")["snr_db"]) - db(rowOf(after, "p_fc_weight")["snr_db"]), 24.1, 2);
    EXPECT_EQ(rowOf(after, "conv2d")["snr_db"], rowOf(before, "conv2d")["snr_db"]);
    EXPECT_THAT(after["warnings"].dump(), HasSubstr("boundary of bits at conv2d_2: 16 in, 8 out"));
}

TEST_F(Cli, SetToFloatIsSkip)
{
    const json set = compareJson({"--set", "module:block.conv1=float"});
    const json skip = compareJson({"--skip", "module:block.conv1"});
    EXPECT_EQ(set["skipped"], skip["skipped"]);
    EXPECT_EQ(set["output_snr_db"], skip["output_snr_db"]);
    // The later word counts; --skip has the last one.
    const json later = compareJson({"--set", "module:fc/weight=float", "module:fc/weight=int8:sym:tensor"});
    EXPECT_TRUE(later["skipped"].empty());
    EXPECT_EQ(later["changed"], json({"fc/weight=int8 symmetric per tensor"}));
    const json off = compareJson({"--set", "module:fc/weight=int4", "--skip", "module:fc/weight"});
    EXPECT_FALSE(off.contains("changed"));
    EXPECT_EQ(off["skipped"], json({"fc/weight"}));
}

TEST_F(Cli, ARefusedSpecIsAWarningThatNamesTheReason)
{
    const json report = compareJson({"--set", "module:fc/weight=int4:sym:block5"});
    EXPECT_FALSE(report.contains("changed"));
    EXPECT_THAT(report["warnings"].dump(), HasSubstr("blocks of 5 do not divide the 32 entries of axis 1"));
    EXPECT_EQ(report["output_snr_db"], compareJson({})["output_snr_db"]);
}

TEST_F(Cli, ThresholdsGiveStatusOneAndSayWhich)
{
    Finished done = compare({"--fail-below", "500", "--json", file("r.json")});
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.err, HasSubstr("is below --fail-below 500.00 dB"));
    EXPECT_TRUE(fs::exists(file("r.json"))) << "the report is written all the same";
    EXPECT_EQ(compare({"--fail-below", "-50", "--fail-row-below", "-50", "--fail-drop", "500"}).status, 0);
    done = compare({"--fail-drop", "0.001"});
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.err, HasSubstr("is above --fail-drop 0.00 dB"));
    EXPECT_EQ(compare({"--fail-row-below", "500"}).status, 1);
}

TEST_F(Cli, FilesThatCannotBeReadAreStatusThree)
{
    Finished done = dblame({"compare", file("none.pt2"), kInt8});
    EXPECT_EQ(done.status, 3);
    EXPECT_THAT(done.err, StartsWith("dblame: " + file("none.pt2") + ": "));
    write("text.pt2", "no model");
    done = dblame({"inspect", file("text.pt2")});
    EXPECT_EQ(done.status, 3);
    EXPECT_THAT(done.err, StartsWith("dblame: " + file("text.pt2") + ": "));
    done = dblame({"compare", kFloat, kInt8, "--inputs", file("none.npz")});
    EXPECT_EQ(done.status, 3);
    EXPECT_THAT(done.err, HasSubstr("none.npz"));
    EXPECT_EQ(compare({"--json", file("no/folder/r.json")}).status, 3);
}

// All of them before the run: what is there stays as it is.
TEST_F(Cli, OutputsThatWouldOverwriteSomethingAreRefused)
{
    for (const char *name : {"float.pt2", "int8.pt2", "inputs.pt"})
        fs::copy_file(kDemo + name, m_folder / name);
    fs::create_symlink(m_folder / "float.pt2", m_folder / "link.json");
    fs::create_hard_link(m_folder / "int8.pt2", m_folder / "hard.json");
    const std::vector<std::string> base = {
        "compare", file("float.pt2"), file("int8.pt2"), "--inputs", file("inputs.pt"), "--threads", "2"};
    const auto refused = [&](std::vector<std::string> more, const char *why) {
        std::vector<std::string> arguments = base;
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Finished done = dblame(arguments);
        EXPECT_EQ(done.status, 2) << more[1];
        EXPECT_THAT(done.err, HasSubstr(why));
        EXPECT_EQ(done.out, "");
    };
    const auto sizes = [&] {
        std::vector<std::uintmax_t> result;
        for (const char *name : {"float.pt2", "int8.pt2", "inputs.pt"})
            result.push_back(fs::file_size(m_folder / name));
        return result;
    };
    const auto before = sizes();
    for (const char *name : {"float.pt2", "int8.pt2", "inputs.pt", "link.json", "hard.json"})
        refused({"--json", file(name)}, "is read by this command");
    refused({"--csv", file("../" + m_folder.filename().string() + "/float.pt2")}, "is read by this command");
    refused({"--json", file("r"), "--csv", file("./r")}, "is also what --json writes");
    fs::create_symlink("r", m_folder / "other");
    refused({"--json", file("r"), "--html", file("other")}, "is also what --json writes");
    refused({"--html", m_folder.string()}, "is a folder");
    EXPECT_EQ(sizes(), before);
    EXPECT_FALSE(fs::exists(m_folder / "r"));
    EXPECT_EQ(dblame({"align", file("float.pt2"), file("int8.pt2"), "--csv", file("int8.pt2")}).status, 2);
    EXPECT_EQ(dblame({"inspect", file("float.pt2"), "--json", file("float.pt2")}).status, 2);
    // A pair's folder stands for the files in it.
    fs::rename(m_folder / "float.pt2", m_folder / "reference.pt2");
    fs::rename(m_folder / "int8.pt2", m_folder / "candidate.pt2");
    EXPECT_THAT(dblame({"compare", m_folder.string(), "--json", file("inputs.pt")}).err,
                HasSubstr("is read by this command"));
}

TEST_F(Cli, AReportGoesThroughASymbolicLink)
{
    fs::create_directory(m_folder / "there");
    fs::create_symlink("there/new.json", m_folder / "to_nothing"); // leads to nothing yet
    write("old.json", "old");
    fs::create_symlink(m_folder / "old.json", m_folder / "to_old");
    ASSERT_EQ(compare({"--json", file("to_nothing")}).status, 0);
    ASSERT_EQ(compare({"--json", file("to_old")}).status, 0);
    EXPECT_TRUE(fs::is_symlink(m_folder / "to_nothing"));
    EXPECT_TRUE(fs::is_symlink(m_folder / "to_old"));
    EXPECT_THAT(content(file("there/new.json")), HasSubstr("output_snr_db"));
    EXPECT_THAT(content(file("old.json")), HasSubstr("output_snr_db"));
}

// The report describes what was run, so that diff can tell two runs on other inputs apart.
TEST_F(Cli, LimitedBatchesAreWhatTheReportDescribes)
{
    // Two files, two batches.
    const auto twice = [&](const char *batches, const char *name) {
        const Finished done = dblame({"compare", kFloat, kInt8, "--threads", "2", "--inputs", kInputs, kInputs,
                                      "--limit-batches", batches, "--json", file(name)});
        EXPECT_EQ(done.status, 0) << done.err;
        return json::parse(content(file(name)))["inputs"];
    };
    const json all = twice("1000", "all.json");
    const json one = twice("1", "one.json");
    EXPECT_EQ(all["batches"], 2);
    EXPECT_EQ(one["batches"], 1);
    EXPECT_EQ(2 * one["samples"].get<int>(), all["samples"].get<int>());
    EXPECT_NE(one["sha256"], all["sha256"]);
    EXPECT_EQ(one["sha256"], compareJson({})["inputs"]["sha256"]) << "what was run, wherever it came from";
    EXPECT_THAT(dblame({"diff", file("all.json"), file("one.json")}).err, HasSubstr("inputs differ"));
}

// An output that nothing computed has no figure: not 0 dB, and no threshold holds for it.
TEST_F(Cli, AnOutputThatWasNotComputedHasNoFigure)
{
    const std::string unknown = std::string(DBLAME_TEST_DATA) + "/formats/bad/operator_unknown.pt2";
    const Finished done = dblame(
        {"compare", unknown, unknown, "--json", file("r.json"), "--html", file("r.html"), "--fail-below", "-500"});
    const json report = json::parse(content(file("r.json")));
    // One of the two outputs needs the operator.
    EXPECT_EQ(report["output_snr_db"], (json{"nan", "inf"}));
    EXPECT_EQ(report["output_sqnr_db"], (json{"nan", "inf"}));
    EXPECT_EQ(report["largest_drop"], nullptr);
    EXPECT_THAT(content(file("r.html")), HasSubstr("outputs SNR no figure, inf"));
    EXPECT_THAT(content(file("r.html")), Not(HasSubstr("0.00 dB")));
    EXPECT_EQ(done.status, 1) << done.err;
    EXPECT_THAT(done.err, HasSubstr("has no figure"));
    EXPECT_THAT(dblame({"compare", unknown, unknown}).out, HasSubstr("outputs SNR no figure, inf"));
}

TEST_F(Cli, MessagesSayWhatToDo)
{
    EXPECT_THAT(dblame({"inspect", file("none.pt2")}).err, HasSubstr("; check the path"));
    write("empty.npy", "");
    EXPECT_THAT(dblame({"compare", kFloat, kInt8, "--inputs", file("empty.npy")}).err, HasSubstr("; write it again"));
    EXPECT_THAT(
        dblame({"compare", kFloat, kInt8, "--inputs", std::string(DBLAME_TEST_DATA) + "/formats/inputs/a.npy"}).err,
        HasSubstr("; give inputs that fit, or export the models for these"));
    EXPECT_THAT(dblame({"inspect", std::string(DBLAME_TEST_DATA) + "/formats/bad/flipped_weight_byte.pt2"}).err,
                HasSubstr("; export the model again, or get another copy of the file"));
}

TEST_F(Cli, ACandidateWithoutQuantizersAndSwappedSidesAreSaid)
{
    const auto warnings = [&](const std::string &reference, const std::string &candidate) {
        const Finished done = dblame({"compare", reference, candidate, "--inputs", kInputs, "--threads", "2"});
        EXPECT_EQ(done.status, 0) << done.err;
        return done.out;
    };
    EXPECT_THAT(warnings(kFloat, kFloat), HasSubstr("warning: no quantizer is recognized in the candidate"));
    EXPECT_THAT(warnings(kInt8, kFloat), HasSubstr("the sides look swapped"));
    EXPECT_THAT(warnings(kFloat, kInt8), Not(testing::AnyOf(HasSubstr("swapped"), HasSubstr("no quantizer"))));
}

TEST_F(Cli, ModelsThatCannotBeComparedAreStatusFour)
{
    const Finished done =
        dblame({"compare", kFloat, std::string(DBLAME_TEST_DATA) + "/formats/2.8.0/toy.pt2", "--inputs", kInputs});
    EXPECT_EQ(done.status, 4);
    EXPECT_THAT(done.err, HasSubstr("toy.pt2: input x: "));
    EXPECT_THAT(done.out, IsEmpty());
}

TEST_F(Cli, CancelKeepsTheOldReport)
{
    for (const int signal : {SIGTERM, SIGINT}) {
        write("r.json", "the old report");
        Process process({DBLAME_BINARY, "compare", kFloat, kInt8, "--inputs", kInputs, "--json", file("r.json")});
        ASSERT_TRUE(process.waitUntilItCatches(signal));
        kill(process.pid(), signal);
        const Finished done = process.wait();
        EXPECT_EQ(done.status, 5) << done.err;
        EXPECT_EQ(content(file("r.json")), "the old report");
        EXPECT_EQ(files(), 1U);
    }
}

TEST_F(Cli, InspectSaysWhatIsInAFile)
{
    const Finished text = dblame({"inspect", kInt8, "--graph"});
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("quantized_decomposed.dequantize_per_channel.default"));
    EXPECT_THAT(text.out, HasSubstr("block.conv1/weight"));
    EXPECT_THAT(text.out, testing::ContainsRegex("%conv2d: float32\\[.*\\] = aten.conv2d.default\\(input="));
    const Finished done = dblame({"inspect", kInt8, "--json", "-"});
    const json report = json::parse(done.out);
    EXPECT_EQ(report["sha256"].get<std::string>().size(), 64U);
    for (const auto &op : report["operators"])
        EXPECT_TRUE(op["runs"].get<bool>()) << op;
    EXPECT_GT(report["sites"].size(), 5U);
    EXPECT_EQ(report["outputs"].size(), 1U);
}

TEST_F(Cli, AlignShowsTheLedgerWithoutRunning)
{
    const Finished done = dblame({"align", kFloat, kInt8, "--json", file("a.json"), "--csv", file("a.csv")});
    EXPECT_EQ(done.status, 0) << done.err;
    const json ledger = json::parse(content(file("a.json")));
    const json report = compareJson({});
    ASSERT_EQ(ledger["pairs"].size(), report["rows"].size());
    for (std::size_t i = 0; i < report["rows"].size(); ++i) {
        EXPECT_EQ(ledger["pairs"][i]["ref"], report["rows"][i]["ref"]);
        EXPECT_EQ(ledger["pairs"][i]["cand"], report["rows"][i]["cand"]);
        EXPECT_EQ(ledger["pairs"][i]["rung"], report["rows"][i]["rung"]);
    }
    EXPECT_EQ(ledger["unmatched"], report["unmatched"]);
    EXPECT_THAT(content(file("a.csv")), StartsWith("state,ref,cand,kind,rung,module,op,folded,reason\r\n"));
    EXPECT_THAT(dblame({"align", kFloat, kInt8}).out, testing::ContainsRegex("[0-9]+ pairs \\("));
}

TEST_F(Cli, DiffPutsRegressionsFirstAndGates)
{
    ASSERT_EQ(compare({"--json", file("int8.json")}).status, 0);
    ASSERT_EQ(compare({"--skip", "module:.*", "--json", file("float.json")}).status, 0);
    Finished done = dblame({"diff", file("float.json"), file("int8.json"), "--fail-regress", "1"});
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.err, HasSubstr("is above --fail-regress 1.00 dB"));
    EXPECT_THAT(done.out, testing::ContainsRegex("output: -"));
    done = dblame({"diff", file("int8.json"), file("int8.json"), "--fail-regress", "0", "--key", "module"});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.err, IsEmpty());
    ASSERT_EQ(
        dblame({"compare", kFloat, kInt8, "--threads", "1", "--inputs", kInputs, "--json", file("one.json")}).status,
        0);
    EXPECT_THAT(dblame({"diff", file("int8.json"), file("one.json")}).err, HasSubstr("thread counts differ (2 and 1)"));
    write("bad.json", "{\"dblame\": ");
    EXPECT_EQ(dblame({"diff", file("bad.json"), file("int8.json")}).status, 3);
}

TEST_F(Cli, AFolderThatHoldsAPairStandsForBothModels)
{
    fs::create_directory(m_folder / "pair");
    fs::create_symlink(kFloat, m_folder / "pair/reference.pt2");
    fs::create_symlink(kInt8, m_folder / "pair/candidate.pt2");
    fs::create_symlink(kInputs, m_folder / "pair/inputs.pt");
    const Finished done = dblame({"compare", file("pair"), "--threads", "2", "--json", "-"});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(json::parse(done.out)["output_snr_db"], compareJson({})["output_snr_db"]);
}

// A copy of the program beside a window that prints its arguments.
TEST_F(Cli, WithoutACommandItBecomesTheWindow)
{
    fs::copy_file(DBLAME_BINARY, m_folder / "dblame");
    const std::vector<std::string> environment = {"LD_LIBRARY_PATH=" + fs::path(DBLAME_BINARY).parent_path().string()};
    Finished done = run({file("dblame"), "a.pt2"}, environment);
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, HasSubstr("dblame-gui: is not beside dblame"));
    fs::copy_file("/bin/echo", m_folder / "dblame-gui");
    done = run({file("dblame"), "a.pt2", "b.pt2", "--run"}, environment);
    EXPECT_EQ(done.status, 0);
    EXPECT_EQ(done.out, "a.pt2 b.pt2 --run\n");
    EXPECT_EQ(run({file("dblame")}, environment).out, "\n");
}

} // namespace
} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "core/number_text.h"
#include "core/report_reader.h"
#include "core/report_writer.h"
#include "text_model.h"

namespace dblame
{
namespace
{

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr const char *kReference = R"(graph {
  input parameter %p_conv_weight: float32[4, 1, 3, 3] "conv.weight"
  input user %x: float32[2, 1, 8, 8]
  %conv2d: float32[2, 4, 6, 6] = aten.conv2d.default(input=%x, weight=%p_conv_weight) @"conv":"torch.nn.modules.conv.Conv2d" source="net.py:41"
  [%getitem: float32[2, 2, 6, 6], %getitem_1: float32[2, 2, 6, 6]] = aten.split.Tensor(self=%conv2d, split_size=2, dim=1)
  %argmax: int64[2] = aten.argmax.default(self=%getitem)
  %out: float32[2, 2, 6, 6] = aten.relu.default(self=%getitem_1) @"relu <1>":"torch.nn.ReLU"
  return %out
}
)";
constexpr const char *kCandidate = R"(graph {
  input buffer %b_weight: int8[4, 1, 3, 3] "_frozen_param0"
  input user %x: float32[2, 1, 8, 8]
  %dq_w: float32[4, 1, 3, 3] = quantized_decomposed.dequantize_per_channel.default(input=%b_weight)
  %conv2d: float32[2, 4, 6, 6] = aten.conv2d.default(input=%x, weight=%dq_w)
  %q: int8[2, 4, 6, 6] = quantized_decomposed.quantize_per_tensor.default(input=%conv2d)
  %dq: float32[2, 4, 6, 6] = quantized_decomposed.dequantize_per_tensor.default(input=%q)
  [%getitem: float32[2, 2, 6, 6], %getitem_1: float32[2, 2, 6, 6]] = aten.split.Tensor(self=%dq, split_size=2, dim=1)
  %argmax: int64[2] = aten.argmax.default(self=%getitem)
  %out: float32[2, 2, 6, 6] = aten.relu.default(self=%getitem_1)
  return %out
}
)";

// A run with one row of every kind.
class ReportTest : public testing::Test
{
protected:
    ReportTest()
    {
        m_reference.m_info = {"float.pt2", "aa", 10, "pt2 archive", "torch 2.13.0", "model", {}, {}, true, {}};
        m_candidate.m_info = {"int8.pt2", "bb", 10, "pt2 archive", "torch 2.13.0", "a", {"b"}, {}, true, {}};
        makeSites();
        pair(RowKind::Weight, "p_conv_weight", "b_weight", "dq_w", 0);
        pair(RowKind::Input, "x", "x", "x", -1);
        pair(RowKind::Activation, "conv2d", "conv2d", "dq", 1);
        pair(RowKind::Activation, "getitem", "getitem", "getitem", -1);
        pair(RowKind::Activation, "argmax", "argmax", "argmax", -1);
        pair(RowKind::Output, "out", "out", "out", -1);
        m_alignment.pairs[2].folded = {"batch_norm"};
        m_alignment.pairs[2].channelAxis = 1;
        m_alignment.unmatched.push_back({Side::Candidate, {}, "stray", "mod", "no node of that name or module"});
        m_alignment.notes = {"1 batch norm folded"};
        makeRun();
    }

    void makeSites()
    {
        const Graph &g = m_candidate.m_graph;
        QuantSite weight;
        weight.id = "conv/weight";
        weight.role = SiteRole::Weight;
        weight.module = "conv";
        weight.result = g.find("dq_w");
        weight.spec = {DType::Int8, -127, 127, true, Granularity::PerChannel, 0, 0, false};
        weight.scale = {0.1, 0.2, 0.3, 0.4};
        weight.zeroPoint = {0, 0, 0, 0};
        QuantSite out;
        out.id = "conv/out";
        out.role = SiteRole::Output;
        out.instance = "activation_post_process_1";
        out.group = 3;
        out.result = g.find("dq");
        out.scale = {0.05};
        out.zeroPoint = {-12};
        m_sites.sites = {weight, out};
    }

    void pair(RowKind kind, const char *ref, const char *cand, const char *compared, int site)
    {
        AlignedPair p;
        p.kind = kind;
        p.ref = p.refCompared = m_reference.m_graph.find(ref);
        p.cand = m_candidate.m_graph.find(cand);
        p.candCompared = m_candidate.m_graph.find(compared);
        p.rung = Rung::Provenance;
        if (site >= 0)
            p.site = SiteId(static_cast<std::size_t>(site));
        m_alignment.pairs.push_back(p);
    }

    void makeRun()
    {
        const auto row = [this](std::size_t i, RowStatus status, double snr) -> NodeReport & {
            NodeReport r;
            r.row = PairId(i);
            r.status = status;
            r.metrics.snrDb = snr;
            r.metrics.sqnrDb = snr - 0.25;
            r.metrics.mse = 1.5e-7;
            r.metrics.cosine = 0.1 + 0.2;
            r.metrics.count = 100;
            r.shape = {2, 4, 6, 6};
            r.dtype = "float32";
            m_run.rows.push_back(r);
            return m_run.rows.back();
        };
        row(0, RowStatus::Ok, 40.0);
        row(1, RowStatus::Exact, kInf);
        auto &conv = row(2, RowStatus::Ok, 23.4375);
        conv.beforeSiteDb = 30.0;
        conv.dropDb = 12.5;
        conv.channels = {{0, 25.0, 24.0, 1.0}, {1, -kInf, 0, 0}};
        conv.histogram = Histogram{{-1, 0, 1}, {3, 4}, {4, 3}, {}, {}, false};
        conv.refSha256 = "cafe";
        conv.candSha256 = "beef";
        conv.ms = 0.125;
        SiteReport state;
        state.site = SiteId(1);
        state.clipped = 0.25;
        state.scale = {0.06};
        conv.sites.push_back(state);
        row(3, RowStatus::Ok, std::nan(""));
        auto &argmax = row(4, RowStatus::Mismatch, 0);
        argmax.metrics.mismatches = 3;
        argmax.dtype = "int64";
        auto &out = row(5, RowStatus::NotComputed, 0);
        out.reason = "needs \"mylib::crelu\", it\nis <missing>";
        out.dtype.clear();
        m_run.largestDrop = Drop{PairId(2), 12.5};
        m_run.outputSnrDb = {kInf};
        m_run.outputSqnrDb = {kInf};
        m_run.skipped = {"fc/weight"};
        m_run.warnings = {"random inputs rank layers differently <from real data>"};
        m_run.threads = 2;
        m_run.cpu = "AVX2";
        m_run.libtorch = "2.13.0";
        m_run.inputs = {"inputs.pt", 2, 64, "cc", false, {"64 samples split into 2 batches of 32"}};
        m_run.seconds = 0.5;
    }

    [[nodiscard]] Report make(const ReportFields &fields = {true, true, true}) const
    {
        return makeReport(m_run, m_alignment, m_sites, m_reference, m_candidate, fields);
    }

    TextModel m_reference{kReference}, m_candidate{kCandidate};
    Alignment m_alignment;
    SiteTable m_sites;
    RunReport m_run;
};

std::vector<std::vector<std::string>> parseCsv(const std::string &text)
{
    std::vector<std::vector<std::string>> lines(1, std::vector<std::string>(1));
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
            lines.back().back() += text[++i];
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && c == ',')
            lines.back().emplace_back();
        else if (!quoted && c == '\r' && i + 1 < text.size() && text[i + 1] == '\n')
            lines.emplace_back(1), ++i;
        else
            lines.back().back() += c;
    }
    lines.pop_back(); // after the last line end
    return lines;
}

TEST_F(ReportTest, JsonHasTheFieldsOfTheContract)
{
    const auto json = nlohmann::json::parse(reportJson(make()));
    EXPECT_EQ(json["dblame"], dblameVersion());
    EXPECT_EQ(json["reference"]["path"], "float.pt2");
    EXPECT_EQ(json["candidate"]["path"], "int8.pt2#a");
    EXPECT_TRUE(json["recipe"].is_null());
    EXPECT_EQ(json["skipped"], nlohmann::json({"fc/weight"}));
    EXPECT_EQ(json["inputs"]["samples"], 64);
    EXPECT_EQ(json["inputs"]["random"], false);
    EXPECT_EQ(json["largest_drop"], nlohmann::json({{"row", 2}, {"drop_db", 12.5}, {"by", "order"}}));
    EXPECT_EQ(json["output_snr_db"], nlohmann::json({"inf"}));
    EXPECT_EQ(json["unmatched"][0], nlohmann::json({{"side", "candidate"},
                                                    {"node", "stray"},
                                                    {"module", "mod"},
                                                    {"reason", "no node of that name or module"}}));
    EXPECT_EQ(json["warnings"], nlohmann::json({"random inputs rank layers differently <from real data>",
                                                "64 samples split into 2 batches of 32", "1 batch norm folded"}));
    ASSERT_EQ(json["rows"].size(), 6U);

    const auto &weight = json["rows"][0];
    EXPECT_EQ(weight["target"], "conv.weight");
    EXPECT_EQ(weight["cand"], "dq_w");
    EXPECT_EQ(weight["kind"], "weight");
    EXPECT_EQ(weight["site"]["scale"], nlohmann::json({0.1, 0.2, 0.3, 0.4}));
    EXPECT_EQ(weight["site"]["scheme"], "sym");
    EXPECT_EQ(weight["site"]["granularity"], "channel");
    EXPECT_EQ(weight["site"]["effective_bits"], 8);
    EXPECT_FALSE(weight.contains("op"));

    EXPECT_EQ(json["rows"][1]["snr_db"], "inf");
    EXPECT_EQ(json["rows"][1]["status"], "exact");
    EXPECT_TRUE(json["rows"][1]["site"].is_null());

    const auto &conv = json["rows"][2];
    EXPECT_EQ(conv["ref"], "conv2d");
    EXPECT_EQ(conv["cand"], "dq");
    EXPECT_EQ(conv["module"], "conv");
    EXPECT_EQ(conv["op"], "aten.conv2d.default");
    EXPECT_EQ(conv["source"], "net.py:41");
    EXPECT_EQ(conv["snr_db"], 23.4375);
    EXPECT_EQ(conv["sqnr_db"], 23.1875);
    EXPECT_EQ(conv["cosine"].get<double>(), 0.1 + 0.2) << "to the last digit";
    EXPECT_EQ(conv["before_site_db"], 30.0);
    EXPECT_FALSE(conv.contains("after_site_db"));
    EXPECT_EQ(conv["folded"], nlohmann::json({"batch_norm"}));
    EXPECT_EQ(conv["site"]["scale"], 0.06) << "as used in this run";
    EXPECT_EQ(conv["site"]["zero_point"], -12);
    EXPECT_EQ(conv["site"]["group"], 3);
    EXPECT_EQ(conv["site"]["clipped"], 0.25);
    EXPECT_EQ(conv["channels"][1], nlohmann::json({{"index", 1}, {"snr_db", "-inf"}}));
    EXPECT_EQ(conv["histogram"]["edges"], nlohmann::json({-1.0, 0.0, 1.0}));
    EXPECT_EQ(conv["ref_sha256"], "cafe");

    EXPECT_EQ(json["rows"][3]["snr_db"], "nan");
    EXPECT_EQ(json["rows"][3]["node"], "split");
    EXPECT_EQ(json["rows"][3]["output"], 0);

    const auto &argmax = json["rows"][4];
    EXPECT_EQ(argmax["status"], "mismatch");
    EXPECT_EQ(argmax["reason"], "3 of 100 elements differ");
    EXPECT_FALSE(argmax.contains("snr_db"));

    const auto &out = json["rows"][5];
    EXPECT_EQ(out["status"], "not_computed");
    EXPECT_EQ(out["shape"], nlohmann::json({2, 2, 6, 6})) << "from the file where nothing was computed";
    EXPECT_FALSE(out.contains("mse"));
}

TEST_F(ReportTest, WhatWasNotAskedForIsAbsent)
{
    const auto json = nlohmann::json::parse(reportJson(make({})));
    for (const char *name : {"channels", "histogram", "ref_sha256", "cand_sha256"})
        EXPECT_FALSE(json["rows"][2].contains(name)) << name;
    EXPECT_THAT(reportCsv(make({})), Not(HasSubstr("sha256")));
}

TEST_F(ReportTest, AReportReadBackIsTheSame)
{
    Report report = make();
    report.rows[3].snrDb = report.rows[3].sqnrDb = 1.0; // NaN equals nothing
    const auto back = parseReport(reportJson(report), "a.json");
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(*back, report);
    EXPECT_EQ(reportJson(*back), reportJson(report));
    EXPECT_TRUE(std::isnan(*parseReport(reportJson(make()), "a.json")->rows[3].snrDb));
}

TEST_F(ReportTest, CandidateSignalChoosesTheOtherFigures)
{
    m_run.signal = Signal::Candidate;
    m_run.rows[2].beforeSiteSqnrDb = 29.0;
    const Report report = make();
    EXPECT_EQ(report.signal, "candidate");
    EXPECT_EQ(report.rows[2].beforeSiteDb, 29.0);
    EXPECT_EQ(shownDb(report, report.rows[2]), 23.1875);
}

TEST_F(ReportTest, CsvIsRfc4180)
{
    const std::string text = reportCsv(make());
    const auto lines = parseCsv(text);
    ASSERT_EQ(lines.size(), 7U);
    const auto column = [&](const char *name) {
        const auto found = std::find(lines[0].begin(), lines[0].end(), name);
        EXPECT_NE(found, lines[0].end()) << name;
        return static_cast<std::size_t>(found - lines[0].begin());
    };
    for (const auto &line : lines)
        EXPECT_EQ(line.size(), lines[0].size());
    EXPECT_EQ(lines[0][0], "index");
    EXPECT_EQ(lines[3][column("snr_db")], "23.4375");
    EXPECT_EQ(lines[2][column("snr_db")], "inf");
    EXPECT_EQ(lines[4][column("snr_db")], "nan");
    EXPECT_EQ(lines[5][column("snr_db")], "");
    EXPECT_EQ(lines[3][column("mse")], "1.5e-07");
    EXPECT_EQ(lines[3][column("site.scale")], "0.06");
    EXPECT_EQ(lines[1][column("site.scale")], "") << "arrays are left out";
    EXPECT_EQ(lines[1][column("site.on")], "true");
    EXPECT_EQ(lines[6][column("reason")], "needs \"mylib::crelu\", it\nis <missing>");
    EXPECT_THAT(text, HasSubstr("\"needs \"\"mylib::crelu\"\", it\nis <missing>\""));
    EXPECT_THAT(text, testing::EndsWith("\r\n"));
}

TEST(CsvField, QuotesOnlyWhereNeeded)
{
    EXPECT_EQ(csvField("block.conv1"), "block.conv1");
    EXPECT_EQ(csvField("a,b"), "\"a,b\"");
    EXPECT_EQ(csvField("say \"hi\""), "\"say \"\"hi\"\"\"");
    EXPECT_EQ(csvField("a\rb"), "\"a\rb\"");
}

TEST_F(ReportTest, HtmlStandsAlone)
{
    const std::string html = reportHtml(make());
    // Nothing outside the file is referred to: no address, no import, no source.
    for (const char *word : {"http:", "https:", "//", "src=", "href=", "url(", "@import", "<link", "<iframe"})
        EXPECT_THAT(html, Not(HasSubstr(word))) << word;
    EXPECT_THAT(html, HasSubstr("largest drop 12.50 dB at conv2d (conv)"));
    EXPECT_THAT(html, HasSubstr("prefers-color-scheme:dark"));
    EXPECT_THAT(html, HasSubstr("random inputs rank layers differently &lt;from real data&gt;"));
    EXPECT_THAT(html, HasSubstr("needs &quot;mylib::crelu&quot;, it\nis &lt;missing&gt;"));
    EXPECT_THAT(html, HasSubstr("relu &lt;1&gt;"));
    EXPECT_THAT(html, HasSubstr("data-v=\"23.4375\">23.44</td>"));
    EXPECT_THAT(html, HasSubstr("data-v=\"inf\">inf</td>"));
    EXPECT_THAT(html, HasSubstr("data-v=\"\">nan</td>"));
    EXPECT_THAT(html, HasSubstr("<tr id=\"r2\" class=\"drop\">"));
    const std::regex row("<tr id=\"r[0-9]+\"");
    EXPECT_EQ(std::distance(std::sregex_iterator(html.begin(), html.end(), row), std::sregex_iterator()), 6);
}

TEST_F(ReportTest, HtmlPlotCirclesTheLargestDrop)
{
    // Two more finite points, so that scale and place can be computed by hand: 23.4375, nan, (no dB), 33.4375.
    m_run.rows[5].status = RowStatus::Ok;
    m_run.rows[5].metrics.snrDb = 33.4375;
    const std::string html = reportHtml(make());
    // Three points (argmax has no dB): x = 52, 518, 984. Ticks of 2 dB from 22 to 34: the plot is 276 high.
    // y(23.4375) = 34 + 276 * (34 - 23.4375) / 12 = 276.9
    EXPECT_THAT(html, HasSubstr("<circle class=\"ring\" cx=\"52.0\" cy=\"276.9\" r=\"9\"/>"));
    EXPECT_THAT(html, HasSubstr("<circle class=\"edge\" cx=\"518.0\""));
    EXPECT_THAT(html, HasSubstr("−12.5 dB at conv</text>"));
}

TEST_F(ReportTest, TableMarksTheLargestDrop)
{
    const std::string table = reportTable(make());
    EXPECT_THAT(table,
                testing::ContainsRegex("2  conv2d +conv +aten.conv2d.default +23.44  12.50  int8 affine per tensor  "
                                       "<== largest drop: 12.50 dB\n"));
    EXPECT_THAT(table, HasSubstr("exact"));
    EXPECT_THAT(table, HasSubstr("getitem (split[0])"));
    EXPECT_THAT(table, HasSubstr("mismatch: 3 of 100 elements differ"));
    EXPECT_THAT(table, HasSubstr("output SNR inf (SQNR inf)"));
    EXPECT_THAT(table, HasSubstr("float here fc/weight"));
    EXPECT_THAT(table, HasSubstr("1 value without a partner"));
}

TEST_F(ReportTest, EmptyRunSaysSo)
{
    m_run = {};
    m_alignment.pairs.clear();
    EXPECT_THAT(reportHtml(make()), HasSubstr("No activation could be compared"));
    EXPECT_THAT(reportTable(make()), HasSubstr("no output could be compared"));
    EXPECT_TRUE(nlohmann::json::parse(reportJson(make()))["largest_drop"].is_null());
}

struct BadReport {
    const char *text, *message;
};
class ReportReader : public testing::TestWithParam<BadReport>
{
};
TEST_P(ReportReader, NamesWhatIsWrong)
{
    const auto report = parseReport(GetParam().text, "old.json");
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::Unreadable);
    EXPECT_EQ(report.error().where, "old.json");
    EXPECT_THAT(report.error().message, HasSubstr(GetParam().message));
}
constexpr const char *kHead = R"("dblame":"1","reference":{},"candidate":{})";
const std::string kBadRow =
    std::string("{") + kHead + R"(,"rows":[{"index":0,"ref":"x","status":"ok","snr_db":"high"}]})";
const std::string kNoStatus = std::string("{") + kHead + R"(,"rows":[{"index":0,"ref":"x"}]})";
const std::string kBadScale =
    std::string("{") + kHead + R"(,"rows":[{"index":0,"ref":"x","status":"ok","site":{"scale":[1,"?"]}}]})";
const std::string kBigIndex = std::string("{") + kHead + R"(,"rows":[{"index":99999999999,"ref":"x","status":"ok"}]})";
INSTANTIATE_TEST_SUITE_P(
    All, ReportReader,
    testing::Values(BadReport{"", "is no JSON (byte 1)"}, BadReport{"{\"dblame\": ", "is no JSON"},
                    BadReport{"[]", "the file should be an object"},
                    BadReport{"{}", "dblame should be dBlame's version"},
                    BadReport{R"({"dblame":"1"})", "reference should be an object"},
                    BadReport{R"({"dblame":"1","reference":{},"candidate":{},"signal":"both"})", "signal should be"},
                    BadReport{R"({"dblame":"1","reference":{},"candidate":{}})", "rows should be a list"},
                    BadReport{kBadRow.c_str(), "rows[0].snr_db should be a number, \"inf\", \"-inf\" or \"nan\""},
                    BadReport{kNoStatus.c_str(), "rows[0].status should be a text"},
                    BadReport{kBadScale.c_str(), "rows[0].site.scale[1] should be a number"},
                    BadReport{kBigIndex.c_str(), "rows[0].index should be a whole number in range"}));

TEST(ReportReaderFile, MissingFileAndFolder)
{
    EXPECT_THAT(readReport("/nonexistent/a.json").error().text(),
                HasSubstr("/nonexistent/a.json: cannot be opened: No such file or directory"));
    EXPECT_THAT(readReport(DBLAME_SOURCE_DIR).error().text(), HasSubstr("is a folder"));
}

class AtomicFile : public testing::Test
{
protected:
    AtomicFile()
    {
        std::string name = testing::TempDir() + "dblame_atomic_XXXXXX";
        m_folder = ::mkdtemp(name.data());
    }
    ~AtomicFile() override { std::filesystem::remove_all(m_folder); }
    [[nodiscard]] static std::string content(const std::filesystem::path &path)
    {
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }
    [[nodiscard]] std::size_t files() const
    {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(m_folder), {}));
    }
    std::filesystem::path m_folder;
};

TEST_F(AtomicFile, ReplacesWholeFilesAndLeavesNoNeighbour)
{
    const auto path = m_folder / "r.json";
    ASSERT_TRUE(writeFileAtomically(path.string(), "one"));
    ASSERT_TRUE(writeFileAtomically(path.string(), "two"));
    EXPECT_EQ(content(path), "two");
    EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, FollowsLinksAndKeepsPermissions)
{
    const auto path = m_folder / "real.json";
    ASSERT_TRUE(writeFileAtomically(path.string(), "one"));
    std::filesystem::permissions(path, std::filesystem::perms(0600));
    std::filesystem::create_symlink("real.json", m_folder / "link.json");
    ASSERT_TRUE(writeFileAtomically((m_folder / "link.json").string(), "two"));
    EXPECT_TRUE(std::filesystem::is_symlink(m_folder / "link.json"));
    EXPECT_EQ(content(path), "two");
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
}

TEST_F(AtomicFile, SaysWhyItCannotWrite)
{
    const auto failed = writeFileAtomically((m_folder / "none" / "r.json").string(), "x");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, ErrorCode::Unreadable);
    EXPECT_THAT(failed.error().message, HasSubstr("No such file or directory"));
    EXPECT_THAT(writeFileAtomically(m_folder.string(), "x").error().message, HasSubstr("is a folder"));
    EXPECT_TRUE(writeFileAtomically("/dev/null", "x")) << "devices are written to";
}

TEST(NumberText, IsTheSameEverywhere)
{
    EXPECT_EQ(shortestText(0.1 + 0.2), "0.30000000000000004");
    EXPECT_EQ(shortestText(-kInf), "-inf");
    EXPECT_EQ(fixedText(23.456, 2), "23.46");
    EXPECT_EQ(fixedText(-0.001, 2), "0.00");
    EXPECT_EQ(fixedText(std::nan(""), 1), "nan");
    EXPECT_EQ(significantText(1.25e-5, 4), "1.25e-05");
}

} // namespace
} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report_diff.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dblame
{
namespace
{

using testing::ElementsAre;
using testing::HasSubstr;
constexpr double kInf = std::numeric_limits<double>::infinity();

ReportRow row(int index, const char *ref, const char *module, std::optional<double> db)
{
    ReportRow r;
    r.index = index;
    r.ref = ref;
    r.module = module;
    r.kind = "activation";
    r.status = !db ? "failed" : std::isinf(*db) ? "exact" : "ok";
    r.snrDb = db;
    if (db)
        r.sqnrDb = *db + 1;
    return r;
}

Report report(std::vector<ReportRow> rows)
{
    Report r;
    r.dblame = "0";
    r.threads = 2;
    r.cpu = "AVX2";
    r.inputs.sha256 = "aa";
    r.rows = std::move(rows);
    r.outputSnrDb = {20.0};
    return r;
}

std::vector<std::string> keys(const std::vector<DiffRow> &rows)
{
    std::vector<std::string> result;
    for (const auto &r : rows)
        result.push_back(r.key);
    return result;
}

TEST(ReportDiff, RegressionsComeFirstWorstFirst)
{
    const Report a = report({row(0, "gain", "m0", 10), row(1, "same", "m1", 20), row(2, "worse", "m2", 30),
                             row(3, "lost", "m3", 30), row(4, "found", "m4", {}), row(5, "worst", "m5", 40),
                             row(6, "exact", "m6", kInf), row(7, "gone", "m7", 5)});
    Report b = report({row(0, "gain", "m0", 12), row(1, "same", "m1", 20), row(2, "worse", "m2", 29),
                       row(3, "lost", "m3", {}), row(4, "found", "m4", 33), row(5, "worst", "m5", 20),
                       row(6, "exact", "m6", kInf), row(7, "new", "m8", 7)});
    b.outputSnrDb = {18.5};
    const ReportDiff diff = diffReports(a, b, DiffKey::Node);
    EXPECT_THAT(keys(diff.rows), ElementsAre("lost", "worst", "worse", "same", "exact", "gain", "found"));
    EXPECT_EQ(diff.rows[0].change, -kInf);
    EXPECT_EQ(diff.rows[1].change, -20.0);
    EXPECT_EQ(diff.rows[2].change, -1.0);
    EXPECT_EQ(diff.rows[4].change, 0.0) << "exact in both";
    EXPECT_EQ(diff.rows[5].change, 2.0);
    EXPECT_EQ(diff.rows[6].change, kInf);
    EXPECT_THAT(keys(diff.removed), ElementsAre("gone"));
    EXPECT_THAT(keys(diff.added), ElementsAre("new"));
    EXPECT_THAT(diff.warnings, ElementsAre());
    EXPECT_THAT(diff.outputChange, ElementsAre(-1.5));
    EXPECT_EQ(diff.worst, kInf);

    const std::string table = diffTable(diff);
    EXPECT_LT(table.find("worst"), table.find("worse  "));
    EXPECT_THAT(table, HasSubstr("-20.00"));
    EXPECT_THAT(table, HasSubstr("+2.00"));
    EXPECT_THAT(table, testing::ContainsRegex("removed +5.00 +gone +m7"));
    EXPECT_THAT(table, testing::ContainsRegex("added +7.00  new +m8"));
    EXPECT_THAT(table, HasSubstr("2 rows unchanged, 1 removed, 1 added"));
    EXPECT_THAT(table, HasSubstr("output: -1.50 dB"));
}

TEST(ReportDiff, ByModuleTheLastRowStandsForIt)
{
    const Report a = report({row(0, "conv", "block", 30), row(1, "relu", "block", 25), row(2, "x", "", 1)});
    const Report b = report({row(0, "conv_7", "block", 31), row(1, "relu_7", "block", 22)});
    const ReportDiff diff = diffReports(a, b, DiffKey::Module);
    EXPECT_THAT(keys(diff.rows), ElementsAre("block"));
    EXPECT_EQ(diff.rows[0].change, -3.0);
    EXPECT_EQ(diff.rows[0].node, "relu_7");
    EXPECT_EQ(diff.worst, 3.0);
}

TEST(ReportDiff, ExactBeforeTheLowestAfterComesFirst)
{
    const Report a = report({row(0, "x", "", kInf), row(1, "y", "", kInf), row(2, "z", "", 12)});
    const Report b = report({row(0, "x", "", 40), row(1, "y", "", 30), row(2, "z", "", {})});
    EXPECT_THAT(keys(diffReports(a, b, DiffKey::Node).rows), ElementsAre("z", "y", "x"));
}

TEST(ReportDiff, SettingsThatDifferAreSaid)
{
    const Report a = report({});
    Report b = report({});
    b.threads = 8;
    b.cpu = "AVX512";
    b.inputs.sha256 = "bb";
    b.signal = "candidate";
    EXPECT_THAT(diffReports(a, b, DiffKey::Node).warnings,
                ElementsAre(HasSubstr("thread counts differ (2 and 8)"),
                            HasSubstr("CPU capabilities differ (AVX2 and AVX512)"), HasSubstr("inputs differ"),
                            HasSubstr("signal conventions differ")));
}

TEST(ReportDiff, BothSidesInTheConventionOfTheFirst)
{
    const Report a = report({row(0, "n", "m", 10)});
    Report b = report({row(0, "n", "m", 10)});
    b.signal = "candidate"; // its snr_db is the same: nothing changed
    EXPECT_EQ(diffReports(a, b, DiffKey::Node).rows[0].change, 0.0);
}

TEST(ReportDiff, NanCountsAsNoFigure)
{
    const ReportDiff diff =
        diffReports(report({row(0, "n", "m", 10)}), report({row(0, "n", "m", std::nan(""))}), DiffKey::Node);
    EXPECT_EQ(diff.rows[0].change, -kInf);
}

} // namespace
} // namespace dblame

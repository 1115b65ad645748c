// SPDX-License-Identifier: GPL-3.0-or-later
//
// References that are no plain float model: quantized themselves, the sides swapped, values computed from weights
// alone, weights left out of the file.
#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comparison_support.h"
#include "core/report.h"

namespace dblame::test
{

namespace
{

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kInf = std::numeric_limits<double>::infinity();

Report reportOf(OpenedPair &pair)
{
    RunOptions options = plainOptions();
    options.hashes = true;
    const RunReport run = runOrFail(*pair.comparison, {}, options);
    return makeReport(run, pair.comparison->alignment(), pair.comparison->sites(), *pair.reference, *pair.candidate,
                      {false, false, true});
}

const ReportRow *rowNamed(const Report &report, const std::string &ref)
{
    const auto row = std::find_if(report.rows.begin(), report.rows.end(), [&](const auto &r) { return r.ref == ref; });
    return row == report.rows.end() ? nullptr : &*row;
}

// Before the quantizers with before, after with after: identical models are equal everywhere, and rows are called by
// the values that were compared and hashed.
TEST(QuantizedReference, AModelWithItselfIsEqualInEveryFigure)
{
    OpenedPair pair = openPair("formats/2.13.0", "qdq.pt2", "qdq.pt2");
    ASSERT_TRUE(pair.comparison);
    const Report report = reportOf(pair);
    for (const ReportRow &row : report.rows) {
        EXPECT_EQ(row.status, "exact") << row.ref;
        EXPECT_EQ(row.ref, row.cand);
        EXPECT_EQ(row.refSha256, row.candSha256);
        EXPECT_EQ(row.beforeSiteDb.value_or(kInf), kInf) << row.ref;
        EXPECT_EQ(row.afterSiteDb.value_or(kInf), kInf) << row.ref;
    }
    const ReportRow *output = rowNamed(report, "dequantize_per_tensor_1");
    ASSERT_NE(output, nullptr) << "the linear's value, after its quantizer";
    EXPECT_EQ(output->op, "aten.linear.default");
    EXPECT_EQ(output->beforeSiteDb, kInf) << "its own output against its own output";
    const ReportRow *weight = rowNamed(report, "dequantize_per_channel");
    ASSERT_NE(weight, nullptr) << "the weight as the linear reads it, not its integers";
    EXPECT_EQ(weight->target, "wq");
    EXPECT_EQ(weight->dtype, "float32");
    EXPECT_TRUE(report.unmatched.empty());
    EXPECT_THAT(report.outputSnrDb, ElementsAre(kInf));
}

TEST(QuantizedReference, SwappedSidesAreSaidAndComparedAllTheSame)
{
    OpenedPair right = openPair("golden/tinyconv_xnnpack");
    OpenedPair swapped = openPair("golden/tinyconv_xnnpack", "candidate.pt2", "float.pt2");
    ASSERT_TRUE(right.comparison && swapped.comparison);
    const Report good = reportOf(right);
    const Report turned = reportOf(swapped);
    EXPECT_THAT(turned.warnings, Contains(AllOf(HasSubstr("look swapped"), HasSubstr("comes first"))));
    EXPECT_THAT(good.warnings, Not(Contains(HasSubstr("swapped"))));
    // Signal and noise change places: SNR one way is SQNR the other way.
    ASSERT_EQ(turned.outputSqnrDb.size(), good.outputSnrDb.size());
    EXPECT_NEAR(turned.outputSqnrDb.front(), good.outputSnrDb.front(), 1e-9);
    // Weights are the dequantized ones: none is equal to its float original, which lies unread in the file.
    int weights = 0;
    for (const ReportRow &row : good.rows) {
        if (row.kind != "weight" || row.status != "ok")
            continue;
        ++weights;
        const auto found = std::find_if(turned.rows.begin(), turned.rows.end(), [&](const ReportRow &other) {
            return other.kind == "weight" && other.refSha256 == row.candSha256;
        });
        ASSERT_NE(found, turned.rows.end()) << row.target;
        EXPECT_EQ(found->status, "ok");
    }
    EXPECT_GT(weights, 3);
}

TEST(Unpaired, WhatIsComputedFromWeightsAloneIsListedOnBothSides)
{
    OpenedPair pair = openPair("formats/2.13.0", "misc.pt2", "misc.pt2");
    ASSERT_TRUE(pair.comparison);
    const Alignment &alignment = pair.comparison->alignment();
    std::vector<std::string> reference, candidate;
    for (const Unmatched &u : alignment.unmatched) {
        EXPECT_EQ(u.reason, "computed from weights alone");
        (u.side == Side::Reference ? reference : candidate).push_back(u.name);
    }
    EXPECT_FALSE(reference.empty());
    EXPECT_EQ(reference, candidate);
    // What is returned is compared all the same.
    const Report report = reportOf(pair);
    ASSERT_EQ(report.outputSnrDb.size(), 4U);
    for (const double db : report.outputSnrDb)
        EXPECT_EQ(db, kInf);
}

TEST(Unpaired, AWeightThatIsNotInTheFileIsNamed)
{
    OpenedPair pair = openPair("formats/bad", "weights_left_out.pt2", "weights_left_out.pt2");
    ASSERT_TRUE(pair.comparison);
    const Report report = reportOf(pair);
    EXPECT_THAT(report.rows,
                Contains(testing::Field(&ReportRow::reason, AllOf(HasSubstr("the weight "), HasSubstr(" is not in "),
                                                                  HasSubstr("export the model with its weights")))));
    for (const ReportRow &row : report.rows)
        EXPECT_THAT(row.reason, Not(HasSubstr("is not a tensor"))) << row.ref;
}

TEST(Unpaired, AFailureIsNotCalledFailedTwice)
{
    OpenedPair pair = openPair("formats/bad", "argument_missing.pt2", "argument_missing.pt2");
    ASSERT_TRUE(pair.comparison);
    int failed = 0;
    for (const ReportRow &row : reportOf(pair).rows) {
        failed += row.status == "failed" ? 1 : 0;
        EXPECT_THAT(row.reason, Not(testing::StartsWith("failed"))) << row.ref;
    }
    EXPECT_GE(failed, 1);
}

} // namespace

} // namespace dblame::test

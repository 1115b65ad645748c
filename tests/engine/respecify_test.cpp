// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sites of loaded candidates under other types and ranges: the figures of their rows against arithmetic by hand, plans
// in words, refusals.
#include <cmath>

#include <ATen/core/Tensor.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/round.h>
#include <gtest/gtest.h>

#include "comparison_support.h"
#include "core/readers/loaded_model.h"

namespace dblame::test
{

namespace
{

at::Tensor referenceTensor(const OpenedPair &pair, PairId row)
{
    const auto &model = dynamic_cast<const LoadedModel &>(*pair.reference);
    return model.tensor(pair.comparison->alignment().pairs[row.get()].ref);
}

double snrOf(const at::Tensor &x, const at::Tensor &y)
{
    const at::Tensor signal = x.to(at::kDouble);
    const at::Tensor noise = signal.sub(y.to(at::kDouble));
    return 10 * std::log10(signal.mul(signal).sum().item<double>() / noise.mul(noise).sum().item<double>());
}

SpecChange typed(ElementType type, Granularity granularity)
{
    SpecChange change;
    change.type = type;
    change.granularity = granularity;
    return change;
}

struct Respecified {
    RunReport report;
    Plan plan;
};

Respecified respecify(const OpenedPair &pair, const std::string &site, const SpecChange &change)
{
    EditSet edits;
    edits.respecified[pair.comparison->sites().byId(site)] = change;
    Respecified result;
    result.plan = *pair.comparison->plan(edits);
    RunOptions options = plainOptions();
    options.histograms = true; // and how the range is used
    result.report = runOrFail(*pair.comparison, edits, options);
    return result;
}

const SiteReport &siteOf(const OpenedPair &pair, const RunReport &report, const std::string &id)
{
    const SiteId site = pair.comparison->sites().byId(id);
    for (const NodeReport &row : report.rows)
        for (const SiteReport &state : row.sites)
            if (state.site == site)
                return state;
    throw std::runtime_error("no row with " + id);
}

at::Tensor perRow(const at::Tensor &values, const at::Tensor &like)
{
    std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
    shape.front() = values.numel();
    return values.reshape(shape);
}

TEST(RespecifiedSites, AStoredIntegerWeightBecomesFloat8OfTheReferencesWeight)
{
    const OpenedPair pair = openPair("golden/tinyconv_xnnpack");
    ASSERT_NE(pair.comparison, nullptr);
    const std::string id = "block.conv2/weight";
    ASSERT_EQ(pair.comparison->sites().site(pair.comparison->sites().byId(id)).form, SiteForm::DequantizedWeight);
    const PairId row = pair.rowOfTarget("block.conv2.weight");
    const Respecified run = respecify(pair, id, typed(ElementType::Float8E4M3, Granularity::PerTensor));
    ASSERT_EQ(run.plan.changes.size(), 1U);
    EXPECT_EQ(run.plan.changes[0].kind, ChangeKind::Respecified);
    EXPECT_EQ(
        run.plan.changes[0].text.find("int8 symmetric per channel → f8e4m3 per tensor, range from the reference's "
                                      "weight"),
        0U)
        << run.plan.changes[0].text;
    // The float weight with its norm folded in is what the file's integers were made of; here no norm is left.
    const at::Tensor w = referenceTensor(pair, row);
    const float scale = w.abs().max().item<float>() / 448;
    const SiteReport &state = siteOf(pair, run.report, id);
    EXPECT_EQ(state.change, "f8e4m3 per tensor");
    if (run.plan.changes[0].text.find("folded") == std::string::npos) {
        EXPECT_EQ(state.scale, std::vector<double>{scale});
        const at::Tensor y = w.div(scale).to(at::kFloat8_e4m3fn).to(at::kFloat).mul(scale);
        EXPECT_NEAR(run.report.rows[row.get()].metrics.snrDb, snrOf(w, y), 1e-6);
    }
    EXPECT_TRUE(state.zeroPoint.empty());
    EXPECT_EQ(run.report.changed, std::vector<std::string>{id + "=f8e4m3 per tensor"});
    EXPECT_NEAR(run.report.rows[row.get()].metrics.snrDb, 31.5, 3); // three bits of mantissa
}

TEST(RespecifiedSites, AFakeQuantizedWeightBecomesUnsignedAffinePerChannel)
{
    const OpenedPair pair = openPair("golden/toy_w8a8");
    ASSERT_NE(pair.comparison, nullptr);
    const auto &sites = pair.comparison->sites().sites;
    const auto weight = std::find_if(sites.begin(), sites.end(), [](const QuantSite &site) {
        return site.role == SiteRole::Weight && site.form == SiteForm::DecomposedFakeQuant;
    });
    ASSERT_NE(weight, sites.end());
    const PairId row = pair.rowOfTarget(weight->weightTarget);
    ASSERT_TRUE(row.valid()) << weight->weightTarget;
    SpecChange change = typed(ElementType::UInt4, Granularity::PerChannel);
    change.symmetric = false;
    const Respecified run = respecify(pair, weight->id, change);
    // coreai-opt's rule by hand: s = (max - min)/15, z = -rint(min/s), q = clamp(rint(w/s) + z, 0, 15).
    const at::Tensor w = referenceTensor(pair, row);
    const at::Tensor flat = w.reshape({w.size(0), -1});
    const at::Tensor low = std::get<0>(flat.min(1)).clamp_max(0);
    const at::Tensor high = std::get<0>(flat.max(1)).clamp_min(0);
    const at::Tensor s = high.sub(low).div(15).clamp_min(std::pow(2.0, -23));
    const at::Tensor z = at::round(low.div(s)).neg().clamp(0, 15);
    const at::Tensor q = at::round(w.div(perRow(s, w))).add(perRow(z, w)).clamp(0, 15);
    const at::Tensor y = q.sub(perRow(z, w)).mul(perRow(s, w));
    EXPECT_NEAR(run.report.rows[row.get()].metrics.snrDb, snrOf(w, y), 1e-6);
    const SiteReport &state = siteOf(pair, run.report, weight->id);
    ASSERT_EQ(static_cast<std::int64_t>(state.scale.size()), w.size(0));
    for (std::int64_t c = 0; c < w.size(0); ++c) {
        EXPECT_EQ(state.scale[static_cast<std::size_t>(c)], s[c].item<double>());
        EXPECT_EQ(state.zeroPoint[static_cast<std::size_t>(c)], z[c].item<std::int64_t>());
    }
}

TEST(RespecifiedSites, AnActivationTakesAGivenRangeAndKeepsItsOwnElse)
{
    const OpenedPair pair = openPair("golden/tinyconv_xnnpack");
    ASSERT_NE(pair.comparison, nullptr);
    const std::string id = "block.relu/out";
    const QuantSite &site = pair.comparison->sites().site(pair.comparison->sites().byId(id));
    ASSERT_EQ(site.form, SiteForm::QdqPair);
    SpecChange change = typed(ElementType::UInt8, Granularity::PerTensor);
    const Respecified own = respecify(pair, id, change);
    EXPECT_EQ(siteOf(pair, own.report, id).scale, site.scale); // the same 255 steps
    EXPECT_NE(own.plan.changes.at(0).text.find("from the site's own scale"), std::string::npos)
        << own.plan.changes.at(0).text;
    change.low = 0;
    change.high = 2;
    const Respecified given = respecify(pair, id, change);
    EXPECT_EQ(siteOf(pair, given.report, id).scale, std::vector<double>{2.0F / 255});
    EXPECT_EQ(siteOf(pair, given.report, id).zeroPoint, std::vector<std::int64_t>{0});
    EXPECT_NE(given.plan.changes.at(0).text.find("→ uint8 per tensor, range 0 .. 2 as given"), std::string::npos)
        << given.plan.changes.at(0).text;
    // The row's values end where the range does.
    const PairId row = pair.rowOf("relu_1");
    EXPECT_EQ(given.report.rows[row.get()].metrics.candMax, 2.0F / 255 * 255);
    EXPECT_EQ(given.report.rows[row.get()].metrics.candMin, 0);
    // And what lies above it is clipped.
    const auto inRow = [&](const RunReport &report) {
        const auto &states = report.rows[row.get()].sites;
        const SiteId self = pair.comparison->sites().byId(id);
        return *std::find_if(states.begin(), states.end(), [&](const SiteReport &s) { return s.site == self; });
    };
    EXPECT_LT(inRow(own.report).clipped.value_or(1), 0.001);
    EXPECT_GT(inRow(given.report).clipped.value_or(0), 0.001);
    EXPECT_EQ(inRow(given.report).unusedRange, 0);
    change = typed(ElementType::Float8E4M3, Granularity::PerTensor);
    EXPECT_FALSE(inRow(respecify(pair, id, change).report).clipped.has_value()); // no grid of even steps
}

// Every site under its own type and scheme, said in full: what the file does, and for weights what the reference's
// weight gives on the same grid.
TEST(RespecifiedSites, TheirOwnSpecSaidInFullChangesNothing)
{
    for (const char *folder : {"golden/tinyconv_xnnpack", "golden/tinyconv_coreai", "golden/cfg_dynamic"}) {
        SCOPED_TRACE(folder);
        const OpenedPair pair = openPair(folder);
        ASSERT_NE(pair.comparison, nullptr);
        const RunReport plain = runOrFail(*pair.comparison, {}, plainOptions());
        EditSet edits;
        const auto &sites = pair.comparison->sites().sites;
        for (std::size_t i = 0; i < sites.size(); ++i) {
            if (sites[i].watchesOnly || sites[i].role == SiteRole::Weight || sites[i].spec.dynamic)
                continue;
            SpecChange change =
                typed(sites[i].spec.quantMin < 0 ? ElementType::Int8 : ElementType::UInt8, sites[i].spec.granularity);
            change.symmetric = sites[i].spec.symmetric;
            edits.respecified[SiteId(i)] = change;
        }
        const RunReport same = runOrFail(*pair.comparison, edits, plainOptions());
        for (std::size_t i = 0; i < plain.rows.size(); ++i)
            EXPECT_EQ(same.rows[i].metrics.snrDb, plain.rows[i].metrics.snrDb) << "row " << i;
        EXPECT_EQ(same.changed.size(), edits.respecified.size());
    }
}

TEST(RespecifiedSites, RefusalsNameTheirReasonAndLeaveTheSiteAsItIs)
{
    const OpenedPair pair = openPair("golden/tinyconv_xnnpack");
    ASSERT_NE(pair.comparison, nullptr);
    const RunReport plain = runOrFail(*pair.comparison, {}, plainOptions());
    const auto refused = [&](const std::string &site, const SpecChange &change) {
        const Respecified run = respecify(pair, site, change);
        EXPECT_EQ(run.plan.changes.at(0).kind, ChangeKind::Refused);
        EXPECT_TRUE(run.report.changed.empty());
        EXPECT_TRUE(siteOf(pair, run.report, site).change.empty());
        for (std::size_t i = 0; i < plain.rows.size(); ++i)
            EXPECT_EQ(run.report.rows[i].metrics.snrDb, plain.rows[i].metrics.snrDb);
        return run.plan.changes.at(0).text;
    };
    SpecChange blocks = typed(ElementType::Int4, Granularity::PerBlock);
    blocks.blockSize = 5;
    EXPECT_NE(refused("block.conv2/weight", blocks).find("blocks of 5 do not divide the"), std::string::npos);
    SpecChange range = typed(ElementType::Int8, Granularity::PerChannel);
    range.low = 0;
    range.high = 1;
    EXPECT_EQ(refused("block.conv2/weight", range),
              "a given range is for the whole tensor: choose per tensor instead of per channel");
    range.granularity = Granularity::PerTensor;
    range.low = 1;
    EXPECT_EQ(refused("block.relu/out", range), "the range is empty: its low end is not below its high end");
    SpecChange affine = typed(ElementType::Float8E5M2, Granularity::PerTensor);
    affine.symmetric = false;
    EXPECT_EQ(refused("block.relu/out", affine), "f8e5m2 is symmetric only");
}

TEST(RespecifiedSites, NotesSayWhereNarrowAndWideIntegersMeet)
{
    const OpenedPair pair = openPair("golden/tinyconv_xnnpack");
    ASSERT_NE(pair.comparison, nullptr);
    const Respecified run = respecify(pair, "block.relu/out", typed(ElementType::Int16, Granularity::PerTensor));
    const auto &notes = run.plan.notes;
    EXPECT_NE(std::find(notes.begin(), notes.end(), "boundary of bits at conv2d_2: 16 in, 8 out"), notes.end())
        << (notes.empty() ? "no notes" : notes.front());
    // 4 bits are no other width of storage.
    EXPECT_TRUE(respecify(pair, "block.relu/out", typed(ElementType::Int4, Granularity::PerTensor)).plan.notes.empty());
}

} // namespace

} // namespace dblame::test

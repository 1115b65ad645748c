// SPDX-License-Identifier: GPL-3.0-or-later
//
// One file per form that a quantized model takes on disk: which sites are found, whose they are, what they say.
#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "comparison_support.h"

namespace dblame::test
{

namespace
{

std::shared_ptr<const Model> open(const std::string &file)
{
    auto model = dblame_engine_instance()->openModel(dataPath(file), {}, {});
    if (!model) {
        ADD_FAILURE() << model.error().text();
        return nullptr;
    }
    return *model;
}

std::map<SiteForm, int> countForms(const SiteTable &table)
{
    std::map<SiteForm, int> count;
    for (const QuantSite &site : table.sites)
        ++count[site.form];
    return count;
}

const QuantSite *find(const SiteTable &table, const std::string &id)
{
    const SiteId site = table.byId(id);
    if (!site.valid()) {
        std::string known;
        for (const QuantSite &s : table.sites)
            known += " " + s.id;
        ADD_FAILURE() << "no site " << id << " among" << known;
        return nullptr;
    }
    return &table.site(site);
}

TEST(Forms, ConvertedPairsAndIntegerWeights)
{
    const auto model = open("golden/tinyconv_xnnpack/candidate.pt2");
    ASSERT_NE(model, nullptr);
    const SiteTable table = recognizeSites(*model);
    const auto forms = countForms(table);
    EXPECT_EQ(forms.at(SiteForm::DequantizedWeight), 5);
    EXPECT_EQ(forms.at(SiteForm::QdqPair), 11);
    EXPECT_EQ(forms.size(), 2U);
    const QuantSite *input = find(table, "stem.conv/in[0]"); // a graph input's site belongs to its reader
    ASSERT_NE(input, nullptr);
    EXPECT_EQ(input->role, SiteRole::Input);
    EXPECT_NEAR(input->scale.at(0), 0.003919653594493866, 1e-15);
    EXPECT_EQ(input->zeroPoint.at(0), -128);
    const QuantSite *weight = find(table, "block.conv2/weight");
    ASSERT_NE(weight, nullptr);
    EXPECT_EQ(weight->spec.granularity, Granularity::PerChannel);
    EXPECT_EQ(weight->spec.axis, 0);
    EXPECT_EQ(weight->scale.size(), 16U);
    EXPECT_EQ(weight->spec.text(), "int8 symmetric per channel");
    // The block's convolution output, quantized for the add, belongs to the convolution: its observer sat there.
    const QuantSite *output = find(table, "block.conv2/out");
    ASSERT_NE(output, nullptr);
    EXPECT_EQ(output->role, SiteRole::Output);
    // pool1 has two readers, each with its own dequantize: one site, one more result.
    const QuantSite *pool = find(table, "pool1/out");
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(pool->moreResults.size(), 1U);
    EXPECT_EQ(pool->readers.size(), 2U);
    const QuantSite *relu = find(table, "stem.relu/out");
    ASSERT_NE(relu, nullptr);
    EXPECT_GE(relu->group, 0); // relu and the max-pool behind it are on one grid
    EXPECT_EQ(relu->group, pool->group);
    // A module that is called twice: the second call has its number.
    EXPECT_NE(find(table, "block.relu@1/out"), nullptr);
}

TEST(Forms, UnfoldedWeightsHaveTheirFloatInput)
{
    const auto model = open("forms/converted_nofold.nonstrict.pt2");
    ASSERT_NE(model, nullptr);
    const SiteTable table = recognizeSites(*model);
    const QuantSite *weight = find(table, "block.conv1/weight");
    ASSERT_NE(weight, nullptr);
    EXPECT_EQ(weight->form, SiteForm::QdqPair);
    EXPECT_EQ(weight->weightTarget, "block.conv1.weight");
    EXPECT_TRUE(weight->source.valid());
}

TEST(Forms, DynamicInputBelongsToTheLinear)
{
    const auto model = open("golden/cfg_dynamic/candidate.pt2");
    ASSERT_NE(model, nullptr);
    const SiteTable table = recognizeSites(*model);
    ASSERT_EQ(table.sites.size(), 2U);
    const QuantSite *input = find(table, "fc/in[0]");
    ASSERT_NE(input, nullptr);
    EXPECT_EQ(input->form, SiteForm::DynamicQdq);
    EXPECT_TRUE(input->spec.dynamic);
    EXPECT_EQ(input->nodes.size(), 3U); // choose_qparams, quantize, dequantize
    EXPECT_TRUE(input->scale.empty());
}

TEST(Forms, QatPreparedObserversKeepTheirInstances)
{
    const auto model = open("forms/prepared_qat.nonstrict.pt2");
    ASSERT_NE(model, nullptr);
    const SiteTable table = recognizeSites(*model);
    const auto forms = countForms(table);
    EXPECT_EQ(forms.at(SiteForm::FusedObserver), 16); // 16 observer calls ...
    std::map<std::string, int> instances;
    for (const QuantSite &site : table.sites)
        ++instances[site.instance];
    EXPECT_EQ(instances.size(), 12U); // ... of 12 modules
}

TEST(Forms, FusedObserversStartEveryRunFromTheFile)
{
    // Two runs in a row give the same figures, although the operator moves its running range.
    auto &engine = *dblame_engine_instance();
    const auto model = open("forms/fused_moving_avg_observer_on.nonstrict.pt2");
    ASSERT_NE(model, nullptr);
    const auto inputs = engine.openInputs({{}, std::uint64_t{3}}, *model, *model, {});
    ASSERT_TRUE(inputs) << inputs.error().text();
    auto comparison = engine.compare(model, model, *inputs);
    ASSERT_TRUE(comparison);
    RunOptions options = plainOptions();
    options.hashes = true;
    const RunReport first = runOrFail(**comparison, {}, options);
    auto other = engine.compare(model, model, *inputs);
    ASSERT_TRUE(other);
    const RunReport second = runOrFail(**other, {}, options);
    ASSERT_FALSE(first.rows.empty());
    for (std::size_t i = 0; i < first.rows.size(); ++i) {
        EXPECT_EQ(first.rows[i].status, RowStatus::Exact);
        EXPECT_EQ(first.rows[i].candSha256, second.rows[i].candSha256);
    }
}

TEST(Forms, MinMaxObserversOnlyWatch)
{
    for (const char *file :
         {"forms/observer_MinMaxObserver.nonstrict.pt2", "forms/observer_PerChannelMinMaxObserver.nonstrict.pt2",
          "forms/prepared_dynamic.nonstrict.pt2"}) {
        SCOPED_TRACE(file);
        const auto model = open(file);
        ASSERT_NE(model, nullptr);
        const SiteTable table = recognizeSites(*model);
        ASSERT_FALSE(table.sites.empty());
        for (const QuantSite &site : table.sites) {
            EXPECT_EQ(site.form, SiteForm::WatchingObserver);
            EXPECT_TRUE(site.watchesOnly);
        }
    }
}

TEST(Forms, DecomposedFakeQuantsShareTheirBuffers)
{
    const auto model = open("golden/tinyconv_coreai/candidate.pt2");
    ASSERT_NE(model, nullptr);
    const SiteTable table = recognizeSites(*model);
    const auto forms = countForms(table);
    EXPECT_EQ(forms.at(SiteForm::DecomposedFakeQuant), 16);
    const QuantSite *relu = find(table, "stem.relu/out");
    const QuantSite *pool = find(table, "pool1/out");
    ASSERT_NE(relu, nullptr);
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(relu->instance, pool->instance);
    EXPECT_EQ(relu->instance, "activation_post_process_3.qparams_calculator");
    EXPECT_FALSE(relu->spec.symmetric); // relu: [0, max]
    EXPECT_EQ(relu->zeroPoint.at(0), -128);
    const QuantSite *weight = find(table, "stem.conv/weight");
    ASSERT_NE(weight, nullptr);
    EXPECT_EQ(weight->weightTarget, "stem.conv.weight");
    EXPECT_EQ(weight->spec.granularity, Granularity::PerChannel);
    EXPECT_EQ(weight->scale.size(), 16U);
}

TEST(Forms, FunctionalFakeQuantsAreTheSameSites)
{
    const auto model = open("forms/coreai_prepared_decomposed.pt2");
    ASSERT_NE(model, nullptr);
    const SiteTable table = recognizeSites(*model);
    EXPECT_EQ(countForms(table).at(SiteForm::DecomposedFakeQuant), 16);
}

TEST(Forms, BlocksAndPalettesAreReadFromTheFile)
{
    const auto blocks = open("golden/toy_w4block/candidate.pt2");
    ASSERT_NE(blocks, nullptr);
    const SiteTable table = recognizeSites(*blocks);
    ASSERT_EQ(table.sites.size(), 1U); // the convolution was silently left float
    EXPECT_EQ(table.sites[0].spec.text(), "int4 symmetric per block of 32");
    const auto palette = open("golden/toy_palette/candidate.pt2");
    ASSERT_NE(palette, nullptr);
    const SiteTable folded = recognizeSites(*palette);
    ASSERT_EQ(folded.sites.size(), 2U);
    EXPECT_EQ(folded.sites[0].form, SiteForm::FoldedWeight);
    EXPECT_EQ(folded.sites[0].spec.text(), "4-bit table per tensor");
    const auto none = open("golden/toy_palette_none/candidate.pt2");
    ASSERT_NE(none, nullptr);
    EXPECT_TRUE(recognizeSites(*none).sites.empty());
}

TEST(Alignment, RawExportPairsEveryConvolutionAfterItsNorm)
{
    const OpenedPair pair = openPair("golden/tinyconv_xnnpack", "raw_export.pt2");
    ASSERT_NE(pair.comparison, nullptr);
    const Alignment &alignment = pair.comparison->alignment();
    EXPECT_EQ(alignment.folds.size(), 4U);
    int activations = 0;
    for (const AlignedPair &row : alignment.pairs)
        activations += row.kind == RowKind::Activation || row.kind == RowKind::Output;
    EXPECT_EQ(activations, 14);
    const AlignedPair *conv = pair.pairOf("conv2d_1");
    ASSERT_NE(conv, nullptr);
    EXPECT_EQ(conv->folded, std::vector<std::string>{"batch_norm_1"});
    EXPECT_EQ(pair.reference->graph().value(conv->refCompared).name, "batch_norm_1");
    // The same numbers as against the reference that torchao folded itself.
    const OpenedPair folded = openPair("golden/tinyconv_xnnpack");
    const RunReport a = runOrFail(*pair.comparison, {}, plainOptions());
    const RunReport b = runOrFail(*folded.comparison, {}, plainOptions());
    for (const char *name : {"conv2d", "relu", "conv2d_1", "conv2d_2", "add", "conv2d_3", "linear"})
        EXPECT_NEAR(a.rows[pair.rowOf(name).get()].metrics.snrDb, b.rows[folded.rowOf(name).get()].metrics.snrDb, 0.01)
            << name;
    for (const char *target : {"stem.conv.weight", "block.conv2.weight"})
        EXPECT_NEAR(a.rows[pair.rowOfTarget(target).get()].metrics.snrDb,
                    b.rows[folded.rowOfTarget(target).get()].metrics.snrDb, 0.01)
            << target;
}

TEST(Alignment, PreparedGraphsWithRewrittenNormsLoseNothing)
{
    const OpenedPair pair = openPair("golden/tinyconv_coreai");
    ASSERT_NE(pair.comparison, nullptr);
    for (const char *name :
         {"conv2d", "conv2d_1", "conv2d_2", "conv2d_3", "batch_norm", "batch_norm_1", "batch_norm_2", "batch_norm_3"}) {
        const AlignedPair *row = pair.pairOf(name);
        ASSERT_NE(row, nullptr) << name;
        EXPECT_EQ(row->rewritten.empty(), std::string(name).starts_with("batch_norm")) << name;
    }
    for (const char *target :
         {"stem.conv.weight", "block.conv1.weight", "block.conv2.weight", "head_conv.conv.weight"}) {
        const PairId row = pair.rowOfTarget(target);
        ASSERT_TRUE(row.valid()) << target;
        EXPECT_TRUE(pair.comparison->alignment().pairs[row.get()].refFromCandidate.valid()) << target;
    }
}

TEST(Alignment, EverythingUnpairedHasAReason)
{
    for (const char *folder : {"golden/tinyconv_coreai", "golden/tinyconv_xnnpack", "golden/transformer_coreai"}) {
        const OpenedPair pair = openPair(folder);
        ASSERT_NE(pair.comparison, nullptr);
        for (const Unmatched &item : pair.comparison->alignment().unmatched)
            EXPECT_FALSE(item.reason.empty()) << item.name;
    }
}

TEST(Alignment, OtherModelSaysThatNothingFits)
{
    auto &engine = *dblame_engine_instance();
    const auto a = open("golden/cfg_dynamic/float.pt2");
    const auto b = open("golden/transformer_xnnpack/candidate.pt2");
    ASSERT_TRUE(a && b);
    const Alignment alignment = align(*a, *b, recognizeSites(*b));
    int activations = 0;
    for (const AlignedPair &row : alignment.pairs)
        activations += row.kind == RowKind::Activation;
    EXPECT_EQ(activations, 0);
    EXPECT_FALSE(alignment.unmatched.empty());
    (void)engine;
}

} // namespace

} // namespace dblame::test

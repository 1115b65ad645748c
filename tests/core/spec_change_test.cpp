// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/spec_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text_model.h"

namespace dblame
{
namespace
{

using testing::HasSubstr;

// fc reads a quantized weight and the quantized result of relu, which add reads too.
constexpr const char *kText = R"(graph {
  input user %x: float32[1, 4]
  input parameter %p_fc: float32[4, 4] "fc.weight"
  %relu: float32[1, 4] = aten.relu.default(self=%x) @"":"net.Net" @"relu":"torch.nn.modules.activation.ReLU"
  %qrelu: float32[1, 4] = quantized_decomposed.fake.default(input=%relu)
  %qfc: float32[4, 4] = quantized_decomposed.fake.default(input=%p_fc)
  %linear: float32[1, 4] = aten.linear.default(input=%qrelu, weight=%qfc) @"":"net.Net" @"fc":"torch.nn.modules.linear.Linear"
  %add: float32[1, 4] = aten.add.Tensor(self=%linear, other=%qrelu) @"":"net.Net"
  return %add
}
)";

class SpecChangeTest : public testing::Test
{
protected:
    SpecChangeTest()
    {
        sites.ofNode.assign(model.m_graph.nodes.size(), -1);
        QuantSite relu;
        relu.id = "relu/out";
        relu.module = "relu";
        relu.owner = node("relu");
        relu.scale = {0.5};
        relu.zeroPoint = {-128};
        add(relu, "qrelu", {"linear", "add"});
        QuantSite fc;
        fc.id = "fc/weight";
        fc.role = SiteRole::Weight;
        fc.module = "fc";
        fc.moduleType = "torch.nn.modules.linear.Linear";
        fc.owner = node("linear");
        fc.spec.symmetric = true;
        fc.spec.quantMin = -127;
        fc.spec.granularity = Granularity::PerChannel;
        fc.spec.axis = 0;
        add(fc, "qfc", {"linear"});
    }

    [[nodiscard]] NodeId node(const char *name) const { return model.m_graph.findNode(name); }
    void add(QuantSite site, const char *name, const std::vector<const char *> &readers)
    {
        site.nodes = {node(name)};
        site.result = model.m_graph.find(name);
        for (const char *reader : readers)
            site.readers.push_back(node(reader));
        sites.ofNode[node(name).get()] = static_cast<std::int32_t>(sites.sites.size());
        sites.sites.push_back(std::move(site));
    }
    [[nodiscard]] Result<EditSet> edits(const std::string &text) const
    {
        const auto change = parseOverride(text);
        if (!change)
            return tl::unexpected(change.error());
        return editsOf(*change, model, sites);
    }

    TextModel model{kText};
    SiteTable sites;
    const SiteId relu{0}, fc{1};
};

TEST_F(SpecChangeTest, AnOverrideNamesSitesAndTheirSpecs)
{
    const auto both = edits("module:fc=weight=uint4:affine:block2,in=f8e4m3,range=-1..2.5");
    ASSERT_TRUE(both.has_value()) << both.error().text();
    EXPECT_TRUE(both->off.empty());
    ASSERT_EQ(both->respecified.size(), 2U);
    const SpecChange &weight = both->respecified.at(fc);
    EXPECT_EQ(weight.type, ElementType::UInt4);
    EXPECT_EQ(weight.symmetric, false);
    EXPECT_EQ(weight.granularity, Granularity::PerBlock);
    EXPECT_EQ(weight.blockSize, 2);
    EXPECT_FALSE(weight.low.has_value()); // a range is for activations
    const SpecChange &input = both->respecified.at(relu);
    EXPECT_EQ(input.type, ElementType::Float8E4M3);
    EXPECT_EQ(input.low, -1);
    EXPECT_EQ(input.high, 2.5);
    EXPECT_EQ(input.text(), "f8e4m3 per tensor in -1..2.5");
}

TEST_F(SpecChangeTest, WhatTheTextLeavesOutIsAsTheSiteIs)
{
    const auto short_ = edits("module:fc/weight=int4");
    ASSERT_TRUE(short_.has_value()) << short_.error().text();
    EXPECT_EQ(short_->respecified.at(fc).granularity, Granularity::PerChannel);
    EXPECT_FALSE(short_->respecified.at(fc).symmetric.has_value());
    const auto spec = changedSpec(sites.site(fc), short_->respecified.at(fc), 2);
    ASSERT_TRUE(spec.has_value());
    EXPECT_EQ(spec->quantMin, -7); // without the lowest value, as the site is
    EXPECT_EQ(spec->quantMax, 7);
    EXPECT_EQ(spec->scheme, Scheme::Symmetric);
}

TEST_F(SpecChangeTest, FloatPartsAreWhatSkipMeans)
{
    const auto layer = edits("module:fc=float");
    const auto skipped = selectForSkip(*parseSelector("module:fc"), model, sites);
    ASSERT_TRUE(layer.has_value() && skipped.has_value());
    EXPECT_EQ(*layer, *skipped);
    EXPECT_TRUE(layer->off.contains(fc));
    const auto input = edits("module:fc=in=float,weight=int4:sym");
    ASSERT_TRUE(input.has_value());
    EXPECT_EQ(input->bypassed, (std::set<EdgeBypass>{{relu, node("linear")}}));
    EXPECT_TRUE(input->off.empty());
    EXPECT_EQ(input->respecified.size(), 1U);
}

TEST_F(SpecChangeTest, WhatACandidateCannotTakeIsRefusedInWords)
{
    const auto problem = [&](const std::string &text) {
        const auto result = edits(text);
        EXPECT_FALSE(result.has_value()) << text;
        return result ? std::string() : result.error().text();
    };
    EXPECT_THAT(problem("module:fd=weight=int4:sym"), HasSubstr("nearest: fc"));
    EXPECT_THAT(problem("module:relu=weight=int4:sym"), HasSubstr("no such site; it has: relu/out"));
    EXPECT_THAT(problem("module:fc=none"), HasSubstr("a recipe (--preset or --recipe)"));
    EXPECT_THAT(problem("module:fc=weight=f8e4m3:affine"), HasSubstr("f8e4m3 is symmetric only"));
    EXPECT_THAT(problem("module:fc=weight=int4:sym,range=0..1"), HasSubstr("range= is for activations"));
    EXPECT_THAT(problem("module:fc=in=int8:affine:token,range=0..1"), HasSubstr("choose per tensor"));
    EXPECT_THAT(problem("module:fc=weight=int4:sym:block2x2"), HasSubstr("one block size"));
    EXPECT_THAT(problem("module:fc=weight=int4:sym:channel@1"), HasSubstr("keeps its own axis (0)"));
    EXPECT_THAT(problem("module:fc=in=int8:affine:tensor:mse"), HasSubstr("brings no observer"));
    EXPECT_THAT(problem("module:fc=in=int8:symclip"), HasSubstr("write sym"));
    EXPECT_THAT(problem("module:fc=weight=int32:sym"), HasSubstr("int32 is a type for biases"));
    EXPECT_TRUE(edits("module:fc=weight=int8:symclip:channel@0").has_value());
}

TEST_F(SpecChangeTest, ComesBackFromItsText)
{
    for (const char *text : {"int4:sym:channel", "uint6:affine:tensor", "f8e5m2:sym:block16", "bf16", "int16:sym:token",
                             "f4e2m1:sym:channel"}) {
        const auto change = parseSpecChange(text, sites.site(relu));
        ASSERT_TRUE(change.has_value()) << change.error().text();
        EXPECT_EQ(specChangeText(*change), text);
    }
}

TEST_F(SpecChangeTest, TheAxisOfBlocksIsNotThatOfChannels)
{
    QuantSite weight = sites.site(fc);
    weight.spec.granularity = Granularity::PerBlock;
    weight.spec.axis = 1;
    weight.spec.blockSize = 32;
    EXPECT_EQ(channelAxisOf(weight, 2), 0);
    EXPECT_EQ(blockAxisOf(weight, 2), 1);
}

TEST_F(SpecChangeTest, ReportsSeeTheSpecThatRan)
{
    EditSet edits;
    edits.respecified[fc] = *parseSpecChange("uint16:affine:tensor", sites.site(fc));
    edits.respecified[relu] = *parseSpecChange("f8e4m3", sites.site(relu));
    const SiteTable after = changedSites(sites, edits, {"fc/weight=uint16 affine per tensor"});
    EXPECT_EQ(after.site(fc).spec.effectiveBits(), 16);
    EXPECT_EQ(after.site(fc).spec.storage, DType::UInt16);
    EXPECT_FALSE(after.site(fc).spec.symmetric);
    EXPECT_EQ(after.site(fc).spec.granularity, Granularity::PerTensor);
    EXPECT_EQ(after.site(relu).spec.effectiveBits(), 8); // refused: as it was
    for (const auto &[type, bits] : {std::pair{"f8e4m3", 8}, {"f4e2m1", 4}, {"bf16", 16}}) {
        edits.respecified[fc] = *parseSpecChange(type, sites.site(fc));
        const std::string words = "fc/weight=" + edits.respecified[fc].text();
        EXPECT_EQ(changedSites(sites, edits, {words}).site(fc).spec.effectiveBits(), bits) << words;
    }
    EXPECT_EQ(after.site(relu).scale, std::vector<double>{0.5});
}

TEST_F(SpecChangeTest, BoundariesAreNamedWhereTheEditsMakeThem)
{
    EXPECT_TRUE(newBitBoundaries(model.m_graph, sites, {}).empty());
    EditSet edits;
    edits.respecified[relu] = SpecChange{16, Granularity::PerTensor, {}, 32};
    EXPECT_TRUE(newBitBoundaries(model.m_graph, sites, edits).empty()); // no other activation is quantized
    QuantSite add;
    add.id = "add/in[0]";
    add.role = SiteRole::Input;
    add.owner = node("add");
    add.readers = {node("add")};
    sites.sites.push_back(add);
    EXPECT_EQ(newBitBoundaries(model.m_graph, sites, edits),
              std::vector<std::string>{"boundary of bits at add: 16 in, 8 out"});
}

} // namespace
} // namespace dblame

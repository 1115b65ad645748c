// SPDX-License-Identifier: GPL-3.0-or-later
//
// Two recipes that rewrite one model in different ways: compared by the names that the rewrites keep.
#include "core/placement_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/float_rewrite.h"
#include "core/graph_text.h"
#include "core/recipe.h"

namespace dblame
{
namespace
{

using testing::ElementsAre;
using testing::HasSubstr;

const char *const kNet = R"(graph {
  input parameter %w: float32[4, 1, 3, 3] "conv.weight"
  input parameter %gamma: float32[4] "bn.weight"
  input parameter %beta: float32[4] "bn.bias"
  input buffer %mean: float32[4] "bn.running_mean"
  input buffer %var: float32[4] "bn.running_var"
  input user %x: float32[2, 1, 8, 8] "x"
  %conv2d: float32[2, 4, 6, 6] = aten.conv2d.default(input=%x, weight=%w) @"conv":"torch.nn.modules.conv.Conv2d"
  %batch_norm: float32[2, 4, 6, 6] = aten.batch_norm.default(input=%conv2d, weight=%gamma, bias=%beta, running_mean=%mean, running_var=%var, training=False, momentum=0.1, eps=1e-05, cudnn_enabled=True) @"bn":"torch.nn.modules.batchnorm.BatchNorm2d"
  %add: float32[2, 4, 6, 6] = aten.add.Tensor(self=%batch_norm, other=2)
  %relu: float32[2, 4, 6, 6] = aten.relu.default(self=%add)
  return %relu "out"
}
)";

Graph asExported()
{
    return parseGraph(kNet).value();
}

// As XNNPACK's quantizer annotates it: the norm folded, the number a buffer, which moves the ids of all values.
Graph rewritten()
{
    const Graph graph = asExported();
    GraphEdit edit(graph);
    RewriteNotes notes;
    (void)foldNorms(edit, false, notes);
    (void)liftScalars(edit);
    return std::move(edit).finish().graph;
}

// Sites named after their values; one observer each, int8 unless `bits` says int16.
Placement sitesAt(const Graph &graph, const std::vector<std::string> &values, bool wide = false)
{
    Placement placement;
    for (const std::string &name : values) {
        PlacedSite site;
        site.id = name + "/out";
        site.value = graph.find(name);
        EXPECT_TRUE(site.value.valid()) << name;
        site.owner = graph.value(site.value).producer;
        site.instance = static_cast<int>(placement.observers.size());
        for (std::size_t i = 0; i < graph.nodes.size(); ++i)
            for (const auto &argument : graph.nodes[i].inputs)
                if (const auto *read = std::get_if<ValueId>(&argument.value); read != nullptr && *read == site.value)
                    site.readers.push_back(NodeId(i));
        TensorSpec spec = baseSpec(presetRecipe("xnnpack-static").value(), false);
        if (wide)
            spec = parseTensorSpec("int16:sym", spec).value();
        placement.observers.push_back({spec, "observer"});
        placement.sites.push_back(site);
    }
    return placement;
}

std::vector<std::string> texts(const PlacementDiff &diff)
{
    std::vector<std::string> result;
    for (const PlacementChange &change : diff.changes)
        result.push_back(change.id + " " + siteChangeName(change.kind));
    return result;
}

TEST(PlacementDiff, PairsByNameWhereIdsMoved)
{
    const Graph plain = asExported();
    const Graph other = rewritten();
    ASSERT_NE(plain.find("relu").index, other.find("relu").index) << "ids that moved";
    const PlacementDiff same =
        comparePlacements(plain, sitesAt(plain, {"x", "add", "relu"}), other, sitesAt(other, {"x", "add", "relu"}));
    EXPECT_THAT(texts(same), ElementsAre());
    EXPECT_EQ(same.same, 3);
    const PlacementDiff diff =
        comparePlacements(plain, sitesAt(plain, {"add", "relu"}), other, sitesAt(other, {"x", "_tensor_constant_0"}));
    EXPECT_THAT(texts(diff), ElementsAre("x/out appears", "_tensor_constant_0/out appears", "add/out vanishes",
                                         "relu/out vanishes"));
    EXPECT_EQ(diff.same, 0);
    const PlacementDiff wider =
        comparePlacements(other, sitesAt(other, {"relu"}), plain, sitesAt(plain, {"relu"}, true));
    ASSERT_THAT(texts(wider), ElementsAre("relu/out changes"));
    EXPECT_THAT(wider.changes[0].text, HasSubstr("-> int16 symmetric per tensor"));
}

// What is behind the norm in one graph is what the convolution gives in the other.
TEST(PlacementDiff, AFoldedNormsValueIsItsConvolutions)
{
    const Graph plain = asExported();
    const Graph folded = rewritten();
    ASSERT_FALSE(folded.find("batch_norm").valid());
    for (const bool forth : {true, false}) {
        const Placement norm = sitesAt(plain, {"batch_norm"});
        const Placement conv = sitesAt(folded, {"conv2d"});
        const PlacementDiff diff =
            forth ? comparePlacements(plain, norm, folded, conv) : comparePlacements(folded, conv, plain, norm);
        EXPECT_THAT(texts(diff), ElementsAre()) << (diff.empty() ? "" : diff.changes[0].text);
        EXPECT_EQ(diff.same, 1);
    }
    // In one graph they are two values.
    const PlacementDiff own = comparePlacements(plain, sitesAt(plain, {"batch_norm"}), sitesAt(plain, {"conv2d"}));
    EXPECT_EQ(own.changes.size(), 2U);
}

TEST(PlacementDiff, WeightsLeftFloatAreNotedByNodeName)
{
    const Graph plain = asExported();
    const Graph other = rewritten();
    Placement before = sitesAt(plain, {"x"});
    Placement after = sitesAt(other, {"x"});
    after.leftFloat.push_back({other.findNode("conv2d"), "its weight is shared"});
    const PlacementDiff diff = comparePlacements(plain, before, other, after);
    EXPECT_THAT(diff.notes, ElementsAre("conv2d: its weight becomes float; its weight is shared"));
    before.leftFloat.push_back({plain.findNode("conv2d"), "another reason"});
    EXPECT_THAT(comparePlacements(plain, before, other, after).notes, ElementsAre());
}

} // namespace
} // namespace dblame

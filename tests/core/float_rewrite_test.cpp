// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/float_rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph_text.h"

namespace dblame
{

namespace
{

using testing::ElementsAre;
using testing::HasSubstr;

const char *const kConvNorm = R"(graph {
  input parameter %w: float32[4, 1, 3, 3] "conv.weight"
  input parameter %gamma: float32[4] "bn.weight"
  input parameter %beta: float32[4] "bn.bias"
  input buffer %mean: float32[4] "bn.running_mean"
  input buffer %var: float32[4] "bn.running_var"
  input user %x: float32[2, 1, 8, 8] "x"
  %conv2d: float32[2, 4, 6, 6] = aten.conv2d.default(input=%x, weight=%w) @"conv":"torch.nn.modules.conv.Conv2d"
  %batch_norm: float32[2, 4, 6, 6] = aten.batch_norm.default(input=%conv2d, weight=%gamma, bias=%beta, running_mean=%mean, running_var=%var, training=False, momentum=0.1, eps=0.001, cudnn_enabled=True) @"bn":"torch.nn.modules.batchnorm.BatchNorm2d"
  %relu: float32[2, 4, 6, 6] = aten.relu.default(self=%batch_norm)
  return %relu "out"
}
)";

std::vector<std::string> names(const Graph &graph)
{
    std::vector<std::string> result;
    for (const Node &node : graph.nodes)
        result.push_back(node.name);
    return result;
}

ValueId read(const Graph &graph, const std::string &node, std::string_view argument)
{
    const Argument *found = graph.node(graph.findNode(node)).argument(argument);
    const auto *value = found ? std::get_if<ValueId>(found) : nullptr;
    return value ? *value : ValueId{};
}

TEST(GraphEdit, NodesStandWhereTheyArePutAndReadsFollow)
{
    const Graph graph = parseGraph(kConvNorm).value();
    GraphEdit edit(graph);
    const ValueId conv = graph.find("conv2d");
    Node first;
    first.name = "first";
    first.target = "aten.neg.default";
    first.inputs = {{"self", conv}};
    Node second = first;
    second.name = "conv2d"; // taken
    const ValueId a = edit.addAfter(graph.findNode("conv2d"), first, {});
    second.inputs = {{"self", a}};
    const ValueId b = edit.addAfter(graph.findNode("conv2d"), second, {});
    edit.replaceReads(conv, b, graph.findNode("batch_norm"));
    Node early = first;
    early.name = "early";
    early.inputs = {{"self", graph.find("x")}};
    (void)edit.addBefore(NodeId{}, early, {});
    const auto finished = std::move(edit).finish();
    EXPECT_THAT(names(finished.graph), ElementsAre("early", "conv2d", "first", "conv2d_1", "batch_norm", "relu"));
    EXPECT_EQ(finished.graph.value(read(finished.graph, "batch_norm", "input")).name, "conv2d_1");
    EXPECT_EQ(finished.graph.value(read(finished.graph, "first", "self")).name, "conv2d");
    EXPECT_EQ(finished.graph.value(finished.value[graph.find("relu").get()]).name, "relu");
    EXPECT_EQ(finished.node[graph.findNode("relu").get()], NodeId(5));
    EXPECT_EQ(printGraph(parseGraph(printGraph(finished.graph)).value()), printGraph(finished.graph));
}

TEST(GraphEdit, AnEmptyEditChangesNothing)
{
    const Graph graph = parseGraph(kConvNorm).value();
    EXPECT_EQ(printGraph(GraphEdit(graph).finish().graph), printGraph(graph));
}

TEST(FoldNorms, TheNormGoesAndTheConvolutionGetsABias)
{
    const Graph graph = parseGraph(kConvNorm).value();
    GraphEdit edit(graph);
    RewriteNotes notes;
    const auto derived = foldNorms(edit, false, notes);
    ASSERT_EQ(derived.size(), 2U);
    EXPECT_EQ(derived[0].kind, DerivedTensor::Kind::FoldedWeight);
    EXPECT_EQ(derived[0].value, graph.find("w"));
    EXPECT_EQ(derived[0].eps, 0.001);
    EXPECT_EQ(derived[0].axis, 0);
    EXPECT_EQ(derived[1].kind, DerivedTensor::Kind::FoldedBias);
    EXPECT_FALSE(derived[1].source.valid());
    const auto finished = std::move(edit).finish();
    EXPECT_THAT(names(finished.graph), ElementsAre("conv2d", "relu"));
    const GraphInput *bias = finished.graph.input(read(finished.graph, "conv2d", "bias"));
    ASSERT_NE(bias, nullptr);
    EXPECT_EQ(bias->target, "conv.weight_bias");
    EXPECT_EQ(finished.graph.value(bias->value).meta->sizes[0].size, 4);
    EXPECT_TRUE(notes.defects.empty());
}

TEST(FoldNorms, AConvolutionThatOthersReadIsADefectAndStaysWhenCorrected)
{
    std::string text = kConvNorm;
    text.replace(text.find("return %relu"), 12, "return %conv2d, %relu");
    const Graph graph = parseGraph(text).value();
    RewriteNotes strict, corrected;
    GraphEdit a(graph), b(graph);
    EXPECT_EQ(foldNorms(a, false, strict).size(), 2U);
    ASSERT_EQ(strict.defects.size(), 1U);
    EXPECT_EQ(strict.defects[0].defect, 1);
    EXPECT_TRUE(foldNorms(b, true, corrected).empty());
    EXPECT_THAT(names(std::move(b).finish().graph), ElementsAre("conv2d", "batch_norm", "relu"));
}

TEST(LiftScalars, NumbersBecomeBuffersInOrder)
{
    const Graph graph = parseGraph(R"(graph {
  input user %x: float32[2] "x"
  %add: float32[2] = aten.add.Tensor(self=%x, other=2)
  %mul: float32[2] = aten.mul.Tensor(self=%add, other=0.5)
  %add_1: float32[2] = aten.add.Tensor(self=%mul, other=%x)
  return %add_1 "out"
}
)")
                            .value();
    GraphEdit edit(graph);
    const auto derived = liftScalars(edit);
    ASSERT_EQ(derived.size(), 2U);
    EXPECT_EQ(derived[0].number, 2.0);
    EXPECT_EQ(derived[1].number, 0.5);
    const auto finished = std::move(edit).finish();
    EXPECT_EQ(finished.graph.input(read(finished.graph, "add", "other"))->target, "_tensor_constant_0");
    EXPECT_EQ(finished.graph.input(read(finished.graph, "mul", "other"))->target, "_tensor_constant_1");
    EXPECT_EQ(read(finished.graph, "add_1", "other"), finished.graph.find("x"));
}

TEST(RewriteConvNorms, ThePeersFormAndTheirEps)
{
    const Graph graph = parseGraph(kConvNorm).value();
    GraphEdit edit(graph);
    RewriteNotes notes;
    const auto scaled = rewriteConvNorms(edit, false, notes);
    ASSERT_EQ(scaled.size(), 1U);
    ASSERT_EQ(notes.defects.size(), 1U);
    EXPECT_EQ(notes.defects[0].defect, 2);
    EXPECT_THAT(notes.defects[0].text, HasSubstr("eps 1e-05 is used where the model has 0.001"));
    const auto finished = std::move(edit).finish();
    EXPECT_THAT(names(finished.graph),
                ElementsAre("norm_add", "norm_sqrt", "norm_scale", "norm_reshape", "scaled_weight", "conv2d",
                            "norm_reshape_1", "norm_div", "batch_norm", "relu"));
    EXPECT_EQ(finished.graph.value(read(finished.graph, "conv2d", "weight")).name, "scaled_weight");
    EXPECT_EQ(finished.graph.value(read(finished.graph, "batch_norm", "input")).name, "norm_div");
    const Node &norm = finished.graph.node(finished.graph.findNode("batch_norm"));
    EXPECT_EQ(std::get<double>(*norm.argument("eps")), 1e-5);
    EXPECT_EQ(std::get<double>(*finished.graph.nodes[0].argument("other")), 1e-5);
}

TEST(RewriteConvNorms, CorrectedKeepsTheModelsEps)
{
    const Graph graph = parseGraph(kConvNorm).value();
    GraphEdit edit(graph);
    RewriteNotes notes;
    (void)rewriteConvNorms(edit, true, notes);
    const auto finished = std::move(edit).finish();
    const Node &norm = finished.graph.node(finished.graph.findNode("batch_norm"));
    EXPECT_EQ(std::get<double>(*norm.argument("eps")), 0.001);
}

} // namespace

} // namespace dblame

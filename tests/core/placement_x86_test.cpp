// SPDX-License-Identifier: GPL-3.0-or-later
//
// Placement of X86InductorQuantizer against what torchao itself placed: recorded expectations in tests/data/quantizer.
#include "placement_test_support.h"

namespace dblame
{

namespace
{

Placement place(const Graph &graph, const Pt2eConfig &config = {})
{
    auto placement = placeX86(graph, config);
    if (!placement)
        throw std::runtime_error(placement.error().text());
    return std::move(*placement);
}

const std::map<std::string, std::vector<std::string>> kExcludedBy = {
    {"CRL global", {}},
    {"CRL name conv None", {"conv2d"}},
    {"CRL name relu None", {"relu"}},
    {"CRL name fc None", {"linear"}},
    {"CRL type Conv2d None", {"conv2d"}},
    {"Res global", {}},
    {"Res name c1 None", {"conv2d"}},
    {"Res name c2 None", {"conv2d_1"}},
};

} // namespace

TEST(PlacementX86, SkipsWhatThePeerSkips)
{
    std::size_t rows = 0;
    const auto recorded = quantizerJson("placement_skips.json");
    for (const auto &row : recorded["skips"]) {
        if (row["peer"] != "torchao-x86" || row.contains("error"))
            continue;
        SCOPED_TRACE(row["case"].get<std::string>());
        const Graph graph = conformanceModel(row["model"]);
        Pt2eConfig config;
        for (NodeId node : nodesNamed(graph, kExcludedBy.at(row["case"])))
            config.excluded.insert(node);
        expectSites(row, "tensor", graph, place(graph, config));
        ++rows;
    }
    EXPECT_EQ(rows, kExcludedBy.size());
}

TEST(PlacementX86, ConformanceGraphs)
{
    std::size_t rows = 0;
    const auto recorded = quantizerJson("placement_skips.json");
    for (const auto &row : recorded["graphs"]) {
        if (row["preset"] != "x86_static")
            continue;
        SCOPED_TRACE(row["model"].get<std::string>());
        const Graph graph = conformanceModel(row["model"]);
        expectSites(row, "site", graph, place(graph));
        ++rows;
    }
    EXPECT_EQ(rows, 2U);
}

namespace
{

// conv -> relu -> max_pool -> conv -> flatten -> sigmoid, with a functional convolution in between where asked for.
Graph pooled(const std::string &secondModule, const std::string &attributes = "")
{
    return graphOf(R"(graph {
  input parameter %aw: float32[4, 4, 1, 1] "a.weight"
  input parameter %bw: float32[4, 4, 1, 1] "b.weight"
  input user %x: float32[1, 4, 8, 8] "x"
  %conv2d: float32[1, 4, 8, 8] = aten.conv2d.default(input=%x, weight=%aw) @"":"net.N" @"a":"torch.nn.modules.conv.Conv2d"
  %relu: float32[1, 4, 8, 8] = aten.relu.default(self=%conv2d) @"":"net.N" @"r":"torch.nn.modules.activation.ReLU"
  %max_pool2d: float32[1, 4, 4, 4] = aten.max_pool2d.default(self=%relu, kernel_size=[2, 2]) @"":"net.N" @"p":"torch.nn.modules.pooling.MaxPool2d"
  %conv2d_1: float32[1, 4, 4, 4] = aten.conv2d.default(input=%max_pool2d, weight=%bw) @"":"net.N" @"b":")" +
                   secondModule + "\" " + attributes + R"(
  %flatten: float32[1, 64] = aten.flatten.using_ints(self=%conv2d_1, start_dim=1) @"":"net.N"
  %sigmoid: float32[1, 64] = aten.sigmoid.default(self=%flatten) @"":"net.N"
  return %sigmoid
})");
}

const char *const kConv2d = "torch.nn.modules.conv.Conv2d";

} // namespace

TEST(PlacementX86, PoolsShareOneObserverInAndOutAndAFlattenNeedsAReader)
{
    const Graph graph = pooled(kConv2d);
    const Placement placement = place(graph);
    EXPECT_EQ(records(graph, placement),
              (std::vector<SiteRecord>{{"a_weight", {"conv2d"}, "PerChannelMinMaxObserver", 0},
                                       {"b_weight", {"conv2d_1"}, "PerChannelMinMaxObserver", 1},
                                       {"x", {"conv2d"}, "HistogramObserver", 2},
                                       {"relu", {"max_pool2d"}, "HistogramObserver", 3},
                                       {"max_pool2d", {"conv2d_1"}, "HistogramObserver", 3}}));
    const TensorSpec &weight = specOf(placement, "a/weight");
    EXPECT_EQ(std::pair(weight.quantMin, weight.quantMax), (std::pair<std::int64_t, std::int64_t>{-128, 127}));
    EXPECT_EQ(weight.axis, 0);
    const TensorSpec &input = specOf(placement, "a/in[0]");
    EXPECT_EQ(input.type, ElementType::UInt8);
    EXPECT_EQ(std::pair(input.quantMin, input.quantMax), (std::pair<std::int64_t, std::int64_t>{0, 255}));
    Pt2eConfig config;
    config.reduceRange = true;
    const Placement narrow = place(graph, config);
    EXPECT_EQ(specOf(narrow, "a/in[0]").quantMax, 127);
}

TEST(PlacementX86, FunctionalConvolutionsAreFoundInStrictExportsOnly)
{
    const Graph loose = pooled("net.Own", "torch_fn=\"conv2d_2;builtin_function_or_method.conv2d\"");
    const Placement missed = place(loose);
    EXPECT_EQ(tensors(loose, missed), (std::vector<std::string>{"a_weight", "x", "relu", "max_pool2d"}));
    EXPECT_NE(whyFloat(loose, missed, "conv2d_1").find("strict=True"), std::string::npos);

    const Graph strict = pooled("net.Own", "source_fn=\"conv2d_1,torch.conv2d\"");
    // Without a source the others are found through their modules.
    EXPECT_EQ(tensors(strict, place(strict)), tensors(loose, place(pooled(kConv2d))));
    Pt2eConfig corrected;
    corrected.corrected = true;
    EXPECT_EQ(tensors(loose, place(loose, corrected)), tensors(loose, place(pooled(kConv2d))));
    EXPECT_TRUE(place(loose, corrected).leftFloat.empty());
}

TEST(PlacementX86, ALinearsAddendIsNotQuantized)
{
    const Graph graph = graphOf(R"(graph {
  input parameter %w: float32[4, 4] "l.weight"
  input user %x: float32[2, 4] "x"
  %linear: float32[2, 4] = aten.linear.default(input=%x, weight=%w) @"":"net.N" @"l":"torch.nn.modules.linear.Linear"
  %add: float32[2, 4] = aten.add.Tensor(self=%linear, other=%x) @"":"net.N" torch_fn="add_1;method_descriptor.add"
  %mul: float32[2, 4] = aten.mul.Tensor(self=%add, other=%x) @"":"net.N" torch_fn="mul_1;method_descriptor.mul"
  return %mul
})");
    EXPECT_EQ(records(graph, place(graph)),
              (std::vector<SiteRecord>{{"l_weight", {"linear"}, "PerChannelMinMaxObserver", 0},
                                       {"x", {"linear", "mul"}, "HistogramObserver", 1},
                                       {"add", {"mul"}, "HistogramObserver", 2}}));
}

TEST(PlacementX86, AModuleCalledTwiceStopsThePeerAndIsTold)
{
    const Graph graph = graphOf(R"(graph {
  input parameter %aw: float32[4, 4, 1, 1] "a.weight"
  input parameter %bw: float32[4, 4, 1, 1] "b.weight"
  input user %x: float32[1, 4, 8, 8] "x"
  %conv2d: float32[1, 4, 8, 8] = aten.conv2d.default(input=%x, weight=%aw) @"":"net.N" @"a":"torch.nn.modules.conv.Conv2d"
  %relu: float32[1, 4, 8, 8] = aten.relu.default(self=%conv2d) @"":"net.N" @"r":"torch.nn.modules.activation.ReLU"
  %conv2d_1: float32[1, 4, 8, 8] = aten.conv2d.default(input=%relu, weight=%bw) @"":"net.N" @"b":"torch.nn.modules.conv.Conv2d"
  %relu_1: float32[1, 4, 8, 8] = aten.relu.default(self=%conv2d_1) @"":"net.N" @"r":"torch.nn.modules.activation.ReLU":"L__self__r@1"
  return %relu_1
})");
    const Placement placement = place(graph);
    EXPECT_EQ(tensors(graph, placement), (std::vector<std::string>{"a_weight", "b_weight", "x", "relu"}));
    ASSERT_EQ(placement.warnings.size(), 1U);
    EXPECT_NE(placement.warnings[0].find("stops with an error at 'r'"), std::string::npos);
}

TEST(PlacementX86, TrainingObservesTheEndOfAConvolutionWithBatchNorm)
{
    const Graph graph = graphOf(R"(graph {
  input parameter %w: float32[4, 4, 1, 1] "c.weight"
  input buffer %m: float32[4] "n.running_mean"
  input buffer %v: float32[4] "n.running_var"
  input user %x: float32[1, 4, 8, 8] "x"
  %conv2d: float32[1, 4, 8, 8] = aten.conv2d.default(input=%x, weight=%w) @"":"net.N" @"c":"torch.nn.modules.conv.Conv2d"
  %batch_norm: float32[1, 4, 8, 8] = aten.batch_norm.default(input=%conv2d, weight=None, bias=None, running_mean=%m, running_var=%v, training=True, momentum=0.1, eps=1e-05, cudnn_enabled=True) @"":"net.N" @"n":"torch.nn.modules.batchnorm.BatchNorm2d"
  %add: float32[1, 4, 8, 8] = aten.add.Tensor(self=%batch_norm, other=%x) @"":"net.N" torch_fn="add_1;method_descriptor.add"
  %relu: float32[1, 4, 8, 8] = aten.relu.default(self=%add) @"":"net.N" @"r":"torch.nn.modules.activation.ReLU"
  return %relu
})");
    Pt2eConfig config;
    config.qat = true;
    EXPECT_EQ(records(graph, place(graph, config)),
              (std::vector<SiteRecord>{{"c_weight", {"conv2d"}, "FusedMovingAvgObsFakeQuantize", 0},
                                       {"x", {"conv2d", "add"}, "FusedMovingAvgObsFakeQuantize", 1},
                                       {"relu", {"output"}, "FusedMovingAvgObsFakeQuantize", 2}}));
    // Naming the convolution leaves the whole pattern float.
    config.excluded = {graph.findNode("conv2d")};
    EXPECT_TRUE(place(graph, config).sites.empty());
}

} // namespace dblame

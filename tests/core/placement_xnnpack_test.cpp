// SPDX-License-Identifier: GPL-3.0-or-later
//
// Placement of XNNPACKQuantizer against what torchao itself placed: recorded expectations in tests/data/quantizer.
#include "placement_test_support.h"

namespace dblame
{

namespace
{

Placement place(const Graph &graph, const Pt2eConfig &config = {})
{
    auto placement = placeXnnpack(graph, config);
    if (!placement)
        throw std::runtime_error(placement.error().text());
    return std::move(*placement);
}

Pt2eConfig configOf(const nlohmann::json &json)
{
    Pt2eConfig config;
    config.perChannel = json.value("per_channel", true);
    config.qat = json.value("qat", false);
    config.dynamic = json.value("dynamic", false);
    return config;
}

const std::map<std::string, std::vector<std::string>> kExcludedBy = {
    {"CRL global", {}},
    // A positive configuration for one module is, for all others, no configuration.
    {"CRL no global, name fc", {"conv2d", "relu", "flatten"}},
    {"CRL type Conv2d=None", {"conv2d"}},
    {"CRL type ReLU=None", {"relu"}},
    {"CRL type Linear=None", {"linear"}},
    {"CRL operator_type conv2d None", {}}, // stored by the peer, never read
    {"CRL raw name conv=None", {"conv2d"}},
    {"CRL raw name relu=None", {"relu"}},
    {"CRL raw name fc=None", {"linear"}},
    {"CRL raw name nothing=None", {}},
    {"CRL raw name co=None", {}},
    {"Res global", {}},
    {"Res raw name c1=None", {"conv2d"}},
    {"Res raw name r1=None", {"relu"}},
    {"Res raw name c2=None", {"conv2d_1"}},
    {"Res raw name r2=None", {"relu_1"}},
    {"Res type Conv2d=None", {"conv2d", "conv2d_1"}},
    // A positive configuration leaves a convolution float, and the global one no longer covers it.
    {"Res name c1 static per-tensor", {"conv2d"}},
};

} // namespace

TEST(PlacementXnnpack, SkipsWhatThePeerSkips)
{
    std::size_t rows = 0;
    const auto recorded = quantizerJson("placement_skips.json");
    for (const auto &row : recorded["skips"]) {
        if (row["peer"] != "torchao-xnnpack" || row.contains("error"))
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

TEST(PlacementXnnpack, ConformanceGraphs)
{
    const std::map<std::string, nlohmann::json> presets = {
        {"xnnpack_static_per_tensor", {{"per_channel", false}}},
        {"xnnpack_static_per_channel", nlohmann::json::object()},
        {"xnnpack_dynamic_per_channel", {{"dynamic", true}}},
        {"xnnpack_qat_per_channel", {{"qat", true}}},
    };
    std::size_t rows = 0;
    const auto recorded = quantizerJson("placement_skips.json");
    for (const auto &row : recorded["graphs"]) {
        const auto preset = presets.find(row["preset"]);
        if (preset == presets.end())
            continue;
        SCOPED_TRACE(row["model"].get<std::string>() + " " + preset->first);
        const Graph graph = conformanceModel(row["model"]);
        expectSites(row, "site", graph, place(graph, configOf(preset->second)));
        ++rows;
    }
    EXPECT_EQ(rows, 8U);
}

// Every observer call of the recorded models: name, tensor, range, scheme, which of them are one instance; and the ids
// and numbers of quantize and dequantize of the converted candidate.
TEST(PlacementXnnpack, RecordedModels)
{
    for (const auto &model : quantizerJson("placement_golden.json")) {
        SCOPED_TRACE(model["case"].get<std::string>());
        const Graph graph = graphOf(quantizerData(model["graph"].get<std::string>() + ".graph.txt"));
        const Placement placement = place(graph, configOf(model["config"]));
        ASSERT_EQ(placement.sites.size(), model["calls"].size());

        std::map<int, int> instanceOf; // recorded -> placed
        std::size_t quantize = 0;
        std::vector<std::string> ids;
        for (const PlacedSite &site : placement.sites) {
            const std::string tensor =
                graph.input(site.value) ? graph.input(site.value)->target : graph.producer(site.value)->name;
            const auto call = std::find_if(model["calls"].begin(), model["calls"].end(),
                                           [&](const auto &c) { return c["tensor"] == tensor; });
            ASSERT_NE(call, model["calls"].end()) << tensor;
            const PlacedObserver &observer = placement.observers[static_cast<std::size_t>(site.instance)];
            EXPECT_EQ(observerClass(observer.spec), (*call)["kind"]) << tensor;
            EXPECT_EQ(observer.spec.quantMin, (*call)["qmin"]) << tensor;
            EXPECT_EQ(observer.spec.quantMax, (*call)["qmax"]) << tensor;
            EXPECT_EQ(observer.spec.eps, 1.0 / 4096) << tensor;
            const std::string scheme = observer.spec.scheme == Scheme::Symmetric ? "symmetric" : "affine";
            const bool perChannel = observer.spec.granularity == Granularity::PerChannel;
            EXPECT_EQ((perChannel ? "per_channel_" : "per_tensor_") + scheme, (*call)["scheme"]) << tensor;
            const auto [known, isNew] = instanceOf.try_emplace((*call)["shared"].get<int>(), site.instance);
            EXPECT_EQ(known->second, site.instance) << tensor;
            if (isNew) {
                EXPECT_EQ(observer.name, (*call)["call"]) << tensor;
            }
            // quantize of a constant is folded; each reader that carries an annotation has a dequantize of its own.
            quantize += site.role == SiteRole::Weight ? 0 : 1;
            if (site.readerIds.empty())
                ids.push_back(site.id);
            else
                ids.insert(ids.end(), site.readerIds.begin(), site.readerIds.end());
        }
        EXPECT_EQ(instanceOf.size(), placement.observers.size());
        EXPECT_EQ(quantize, model["quantize"].get<std::size_t>());
        auto recorded = model["sites"].get<std::vector<std::string>>();
        std::sort(ids.begin(), ids.end());
        std::sort(recorded.begin(), recorded.end());
        EXPECT_EQ(ids, recorded);
    }
}

// --- rules one by one -----------------------------------------------------------------------------------------

namespace
{

// One convolution module called twice, and a linear module called twice.
Graph sharedLayers()
{
    return graphOf(R"(graph {
  input parameter %cw: float32[4, 4, 1, 1] "c.weight"
  input parameter %cb: float32[4] "c.bias"
  input parameter %lw: float32[8, 8] "l.weight"
  input user %x: float32[1, 4, 8, 8] "x"
  %conv2d: float32[1, 4, 8, 8] = aten.conv2d.default(input=%x, weight=%cw, bias=%cb) @"":"net.N" @"c":"torch.nn.modules.conv.Conv2d"
  %conv2d_1: float32[1, 4, 8, 8] = aten.conv2d.default(input=%conv2d, weight=%cw, bias=%cb) @"":"net.N" @"c":"torch.nn.modules.conv.Conv2d":"L__self__c@1"
  %linear: float32[1, 4, 8, 8] = aten.linear.default(input=%conv2d_1, weight=%lw) @"":"net.N" @"l":"torch.nn.modules.linear.Linear"
  %linear_1: float32[1, 4, 8, 8] = aten.linear.default(input=%linear, weight=%lw) @"":"net.N" @"l":"torch.nn.modules.linear.Linear":"L__self__l@1"
  return %linear_1
})");
}

Graph oneOf(const std::string &weightShape, const std::string &call, const std::string &tail = "",
            const std::string &result = "y")
{
    return graphOf("graph {\n  input parameter %w: float32[" + weightShape +
                   "] \"m.weight\"\n  input user %x: float32[1, 4, 8, 8] \"x\"\n  %y: float32[1, 4, 8, 8] = " + call +
                   "\n" + tail + "  return %" + result + "\n}");
}

const std::string kReluOfY = "  %relu: float32[1, 4, 8, 8] = aten.relu.default(self=%y)\n";

Graph catOfTwo(const std::string &attributes)
{
    return graphOf(R"(graph {
  input parameter %aw: float32[4, 4] "a.weight"
  input parameter %bw: float32[4, 4] "b.weight"
  input user %x: float32[2, 4] "x"
  %linear: float32[2, 4] = aten.linear.default(input=%x, weight=%aw) @"":"net.N" @"a":"torch.nn.modules.linear.Linear"
  %linear_1: float32[2, 4] = aten.linear.default(input=%x, weight=%bw) @"":"net.N" @"b":"torch.nn.modules.linear.Linear"
  %cat: float32[2, 8] = aten.cat.default(tensors=[%linear, %linear_1], dim=1) @"":"net.N" )" +
                   attributes + "\n  return %cat\n}");
}

Graph convNormRelu(const std::string &eps)
{
    return graphOf(R"(graph {
  input parameter %w: float32[4, 4, 1, 1] "c.weight"
  input parameter %g: float32[4] "n.weight"
  input parameter %b: float32[4] "n.bias"
  input buffer %m: float32[4] "n.running_mean"
  input buffer %v: float32[4] "n.running_var"
  input user %x: float32[1, 4, 8, 8] "x"
  %conv2d: float32[1, 4, 8, 8] = aten.conv2d.default(input=%x, weight=%w) @"":"net.N" @"c":"torch.nn.modules.conv.Conv2d"
  %batch_norm: float32[1, 4, 8, 8] = aten.batch_norm.default(input=%conv2d, weight=%g, bias=%b, running_mean=%m, running_var=%v, training=False, momentum=0.1, eps=)" +
                   eps + R"(, cudnn_enabled=True) @"":"net.N" @"n":"torch.nn.modules.batchnorm.BatchNorm2d"
  %relu: float32[1, 4, 8, 8] = aten.relu.default(self=%batch_norm) @"":"net.N" @"r":"torch.nn.modules.activation.ReLU"
  return %relu
})");
}

SpecOverride overrideOf(const Graph &graph, const std::string &node, Facet facet, std::optional<TensorSpec> spec)
{
    SpecOverride change;
    change.nodes = nodesNamed(graph, {node});
    change.facet = facet;
    change.spec = std::move(spec);
    change.text = "op:" + node;
    return change;
}

} // namespace

TEST(PlacementXnnpack, ASharedConvolutionIsQuantizedOnceASharedLinearTwice)
{
    const Graph graph = sharedLayers();
    const Placement strict = place(graph);
    EXPECT_EQ(tensors(graph, strict),
              (std::vector<std::string>{"c_weight", "l_weight", "x", "conv2d", "conv2d_1", "linear", "linear_1"}));
    EXPECT_EQ(siteOf(strict, "c/weight")->readers, nodesNamed(graph, {"conv2d"}));
    EXPECT_EQ(siteOf(strict, "l/weight")->readers, nodesNamed(graph, {"linear", "linear_1"}));
    EXPECT_EQ(defects(graph, strict), "3@conv2d_1");
    ASSERT_EQ(strict.leftFloat.size(), 1U);
    EXPECT_NE(whyFloat(graph, strict, "conv2d_1").find("already belongs to conv2d:"), std::string::npos);

    Pt2eConfig corrected;
    corrected.corrected = true;
    const Placement placement = place(graph, corrected);
    EXPECT_EQ(siteOf(placement, "c/weight")->readers, nodesNamed(graph, {"conv2d", "conv2d_1"}));
    EXPECT_TRUE(placement.leftFloat.empty());
    EXPECT_TRUE(placement.defects.empty());
}

TEST(PlacementXnnpack, OtherConvolutionsNeedARelu)
{
    const std::map<std::string, std::string> calls = {
        {"4, 4, 1, 1, 1", "aten.conv3d.default(input=%x, weight=%w)"},
        {"4, 4, 3, 3", "aten.conv2d.padding(input=%x, weight=%w, bias=None, stride=[1, 1], padding=\"same\")"},
        {"4, 2, 3, 3", "aten.conv_transpose2d.input(input=%x, weight=%w)"},
    };
    for (const auto &[shape, call] : calls) {
        SCOPED_TRACE(call);
        const Graph bare = oneOf(shape, call);
        const Placement left = place(bare);
        EXPECT_TRUE(left.sites.empty());
        EXPECT_NE(whyFloat(bare, left, "y").find("only where a relu is its one reader"), std::string::npos);

        Pt2eConfig corrected;
        corrected.corrected = true;
        EXPECT_EQ(tensors(bare, place(bare, corrected)), (std::vector<std::string>{"m_weight", "x", "y"}));

        const Graph fused = oneOf(shape, call, kReluOfY, "relu");
        const Placement placement = place(fused);
        EXPECT_EQ(tensors(fused, placement), (std::vector<std::string>{"m_weight", "x", "relu"}));
        const bool isTransposed = call.find("transpose") != std::string::npos;
        EXPECT_EQ(specOf(placement, "m/weight").axis, 0);
        EXPECT_EQ(defects(fused, placement), isTransposed ? "10@y" : "");
        const Placement right = place(fused, corrected);
        EXPECT_EQ(specOf(right, "m/weight").axis, isTransposed ? 1 : 0);
        EXPECT_TRUE(right.defects.empty());
    }
}

TEST(PlacementXnnpack, AReluIsFusedOnlyIfNothingElseReadsTheProducer)
{
    const Graph graph =
        oneOf("4, 4, 1, 1", "aten.conv2d.default(input=%x, weight=%w)",
              kReluOfY + "  %sub: float32[1, 4, 8, 8] = aten.sub.Tensor(self=%relu, other=%y)\n", "sub");
    const Placement placement = place(graph);
    // The convolution's own output is a site; the relu passes its observer on.
    EXPECT_EQ(records(graph, placement), (std::vector<SiteRecord>{{"m_weight", {"y"}, "PerChannelMinMaxObserver", 0},
                                                                  {"x", {"y"}, "HistogramObserver", 1},
                                                                  {"y", {"relu", "sub"}, "HistogramObserver", 2},
                                                                  {"relu", {"sub"}, "HistogramObserver", 2}}));
}

TEST(PlacementXnnpack, CatIsFoundInStrictExportsOnly)
{
    const Graph loose = catOfTwo("torch_fn=\"cat_1;builtin_function_or_method.cat\"");
    const Placement plain = place(loose);
    EXPECT_EQ(tensors(loose, plain), (std::vector<std::string>{"a_weight", "b_weight", "x", "linear", "linear_1"}));
    EXPECT_EQ(defects(loose, plain), "5@cat");

    const Graph strict = catOfTwo("source_fn=\"cat,torch.cat\"");
    Pt2eConfig corrected;
    corrected.corrected = true;
    for (const auto &[graph, config] : {std::pair{&strict, Pt2eConfig{}}, std::pair{&loose, corrected}}) {
        const Placement placement = place(*graph, config);
        EXPECT_TRUE(placement.defects.empty());
        const auto got = records(*graph, placement);
        ASSERT_EQ(got.size(), 6U);
        EXPECT_EQ(got[5].tensor, "cat");
        EXPECT_EQ(got[3].instance, got[4].instance);
        EXPECT_EQ(got[3].instance, got[5].instance);
    }
}

TEST(PlacementXnnpack, AddAndMulWantFloat32AndObservableConstants)
{
    const Graph graph = graphOf(R"(graph {
  input buffer %_tensor_constant_0: float32[] "_tensor_constant_0"
  input parameter %w: bfloat16[4, 4] "l.weight"
  input user %x: float32[2, 4] "x"
  input user %h: bfloat16[2, 4] "h"
  %mul: float32[2, 4] = aten.mul.Tensor(self=%x, other=%_tensor_constant_0)
  %add: bfloat16[2, 4] = aten.add.Tensor(self=%h, other=%h)
  %linear: bfloat16[2, 4] = aten.linear.default(input=%add, weight=%w)
  return %mul, %linear
})");
    const Placement placement = place(graph);
    EXPECT_EQ(tensors(graph, placement),
              (std::vector<std::string>{"_tensor_constant_0", "l_weight", "x", "mul", "add", "linear"}));
    EXPECT_EQ(siteOf(placement, "mul/weight")->value, graph.find("_tensor_constant_0"));
    EXPECT_EQ(placement.warnings,
              std::vector<std::string>{"add stays float: an operand is not float32, or a constant is too large to be "
                                       "observed"});

    Pt2eConfig config;
    config.hugeScalars.insert(graph.find("_tensor_constant_0"));
    EXPECT_EQ(tensors(graph, place(graph, config)), (std::vector<std::string>{"l_weight", "add", "linear"}));
}

TEST(PlacementXnnpack, TrainingPutsNoSiteBetweenConvolutionAndBatchNorm)
{
    Pt2eConfig config;
    config.qat = true;
    const Graph graph = convNormRelu("0.001");
    const Placement placement = place(graph, config);
    EXPECT_EQ(records(graph, placement),
              (std::vector<SiteRecord>{{"c_weight", {"conv2d"}, "FusedMovingAvgObsFakeQuantize", 0},
                                       {"x", {"conv2d"}, "FusedMovingAvgObsFakeQuantize", 1},
                                       {"relu", {"output"}, "FusedMovingAvgObsFakeQuantize", 2}}));
    EXPECT_EQ(specOf(placement, "c/weight").observer, ObserverKind::MovingAverage);
    EXPECT_EQ(specOf(placement, "c/weight").averaging, 0.01);
    EXPECT_EQ(defects(graph, placement), "4 2@batch_norm");
    EXPECT_EQ(defects(graph, place(convNormRelu("1e-05"), config)), "4");

    // The pattern's filter looks at the convolution and its parameters only.
    config.excluded.insert(graph.findNode("relu"));
    EXPECT_EQ(tensors(graph, place(graph, config)), (std::vector<std::string>{"c_weight", "x", "relu"}));
}

TEST(PlacementXnnpack, DynamicCoversLinearOnly)
{
    Pt2eConfig config;
    config.dynamic = true;
    const Graph graph = convReluLinear();
    const Placement placement = place(graph, config);
    EXPECT_EQ(specOf(placement, "fc/in[0]").observer, ObserverKind::Dynamic);
    EXPECT_EQ(whyFloat(graph, placement, "conv2d"), "dynamic quantization covers linear layers only");
}

TEST(PlacementXnnpack, OperatorsWithoutARuleSayWhyTheyStayFloat)
{
    const Graph graph = graphOf(R"(graph {
  input parameter %e: float32[10, 4] "e.weight"
  input parameter %w: float32[4, 4] "w"
  input user %i: int64[2] "i"
  %embedding: float32[2, 4] = aten.embedding.default(weight=%e, indices=%i)
  %matmul: float32[2, 4] = aten.matmul.default(self=%embedding, other=%w)
  %matmul_1: float32[2, 2] = aten.matmul.default(self=%matmul, other=%embedding)
  %addmm: float32[2, 4] = aten.addmm.default(self=%matmul, mat1=%matmul, mat2=%w)
  return %addmm, %matmul_1
})");
    Pt2eConfig config;
    config.excluded.insert(graph.findNode("matmul"));
    const Placement placement = place(graph, config);
    EXPECT_TRUE(placement.sites.empty());
    ASSERT_EQ(placement.leftFloat.size(), 3U); // a product of two activations has no weights
    EXPECT_EQ(whyFloat(graph, placement, "embedding"), "XNNPACKQuantizer has no rule for aten.embedding");
    EXPECT_EQ(whyFloat(graph, placement, "matmul"), "left float by the recipe");
    EXPECT_NE(whyFloat(graph, placement, "addmm").find("export it without run_decompositions()"), std::string::npos);
}

TEST(PlacementXnnpack, AGruIsObservedAtItsBorder)
{
    const std::string text = R"(graph {
  input parameter %wi: float32[12, 4] "g.weight_ih_l0"
  input parameter %wh: float32[12, 4] "g.weight_hh_l0"
  input user %x: float32[2, 3, 4] "x"
  input user %h: float32[1, 2, 4] "h"
  (%out: float32[2, 3, 4], %state: float32[1, 2, 4]) = aten.gru.input(input=%x, hx=%h, params=[%wi, %wh], has_biases=False, num_layers=1, dropout=0.0, train=False, bidirectional=False, batch_first=True) @"":"net.N" @"g":"torch.nn.modules.rnn.GRU" name="gru"
  return %out)";
    const Graph graph = graphOf(text + ", %state\n}");
    const auto valuesOf = [](const Placement &placement) {
        std::vector<ValueId> values;
        for (const PlacedSite &site : placement.sites)
            values.push_back(site.value);
        return values;
    };
    const Placement placement = place(graph);
    EXPECT_EQ(valuesOf(placement), (std::vector<ValueId>{graph.find("x"), graph.find("out"), graph.find("state")}));
    EXPECT_EQ(placement.warnings.size(), 1U);
    EXPECT_EQ(whyFloat(graph, placement, "gru"), "only inputs and results of a GRU are quantized, its weights never");

    Pt2eConfig corrected;
    corrected.corrected = true;
    EXPECT_EQ(place(graph, corrected).sites.size(), 4U);

    const Graph oneResult = graphOf(text + "\n}");
    const Placement left = place(oneResult);
    EXPECT_TRUE(left.sites.empty());
    ASSERT_EQ(left.warnings.size(), 1U);
    EXPECT_NE(left.warnings[0].find("stops with an error at the GRU 'g'"), std::string::npos);
}

// --- overrides ------------------------------------------------------------------------------------------------

TEST(PlacementXnnpack, OverridesReplaceSpecs)
{
    const Graph graph = residual();
    TensorSpec sixteen;
    sixteen.type = ElementType::Int16;
    sixteen.quantMin = -32768;
    sixteen.quantMax = 32767;
    TensorSpec channels = sixteen;
    channels.granularity = Granularity::PerChannel;
    Pt2eConfig config;
    config.overrides = {overrideOf(graph, "add", Facet::In, sixteen),
                        overrideOf(graph, "conv2d", Facet::Weight, channels)};
    config.overrides[0].inputIndex = 1; // x
    const Placement placement = place(graph, config);
    EXPECT_TRUE(placement.warnings.empty());
    // x is observed once for the convolution and once for the addition.
    ASSERT_EQ(placement.sites.size(), 7U);
    EXPECT_EQ(specOf(placement, "add/in[1]"), sixteen);
    EXPECT_EQ(specOf(placement, "c1/in[0]").quantMax, 127);
    channels.axis = 0;
    EXPECT_EQ(specOf(placement, "c1/weight"), channels);
}

TEST(PlacementXnnpack, ADeclinedOutputTakesWhatPassedItOnWithIt)
{
    const Graph graph = convReluLinear();
    Pt2eConfig config;
    config.overrides = {overrideOf(graph, "relu", Facet::Out, std::nullopt)};
    const Placement placement = place(graph, config);
    // flatten passed relu's spec on; what is left at its output is the linear layer's own wish.
    EXPECT_EQ(tensors(graph, placement),
              (std::vector<std::string>{"conv_weight", "fc_weight", "x", "flatten", "linear"}));
    EXPECT_NE(siteOf(placement, "fc/in[0]"), nullptr);

    config.overrides = {overrideOf(graph, "linear", Facet::Weight, std::nullopt)};
    const Placement noWeight = place(graph, config);
    EXPECT_EQ(siteOf(noWeight, "fc/weight"), nullptr);
    EXPECT_EQ(whyFloat(graph, noWeight, "linear"), "its weight is left float by the override 'op:linear'");
}

TEST(PlacementXnnpack, ADeclinedFirstInputOfCatLeavesTheOthersShared)
{
    const Graph graph = catOfTwo("source_fn=\"cat,torch.cat\"");
    Pt2eConfig config;
    config.overrides = {overrideOf(graph, "cat", Facet::In, std::nullopt)};
    config.overrides[0].inputIndex = 0;
    const auto got = records(graph, place(graph, config));
    ASSERT_EQ(got.size(), 6U);
    EXPECT_EQ(got[3].tensor, "linear"); // its own output site
    EXPECT_NE(got[3].instance, got[5].instance);
    EXPECT_EQ(got[4].instance, got[5].instance);
}

TEST(PlacementXnnpack, OverridesWithoutEffectAreTold)
{
    const Graph graph = residual();
    TensorSpec minMax = [] {
        TensorSpec spec;
        spec.eps = 1.0 / 4096;
        return spec;
    }();
    Pt2eConfig config;
    config.overrides = {overrideOf(graph, "conv2d", Facet::Out, minMax), // fused: the output site is the relu's
                        overrideOf(graph, "add", Facet::In, minMax)};
    const Placement placement = place(graph, config);
    ASSERT_EQ(placement.warnings.size(), 2U);
    EXPECT_EQ(placement.warnings[0],
              "override 'op:conv2d' changes nothing: XNNPACKQuantizer asks for no such site there");
    // The addition's inputs join sites that ask for the same range with a histogram observer.
    EXPECT_NE(placement.warnings[1].find("override 'op:add' is outvoted at "), std::string::npos);

    TensorSpec axis = minMax;
    axis.granularity = Granularity::PerChannel;
    axis.axis = 7;
    config.overrides = {overrideOf(graph, "conv2d", Facet::Weight, axis)};
    const auto refused = placeXnnpack(graph, config);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::Usage);
}

} // namespace dblame

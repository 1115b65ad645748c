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

} // namespace dblame

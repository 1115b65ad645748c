// SPDX-License-Identifier: GPL-3.0-or-later
//
// coreai-opt's placement against recordings of coreai-opt itself (tests/data/quantizer/coreai_cases.json, made by
// make_coreai_cases.py): the same tensors, readers, shared observers and specs for every model and configuration.
#include "core/placement_coreai.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/graph_text.h"
#include "core/number_text.h"
#include "text_model.h"

namespace dblame
{

namespace
{

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const nlohmann::json &cases()
{
    static const nlohmann::json kCases = [] {
        std::ifstream file(std::string(DBLAME_TEST_DATA) + "/quantizer/coreai_cases.json");
        return nlohmann::json::parse(file);
    }();
    return kCases;
}

Graph graphOf(const std::string &name)
{
    auto graph = parseGraph(cases()["graphs"][name].get<std::string>());
    EXPECT_TRUE(graph.has_value()) << (graph ? "" : graph.error().text());
    return graph ? std::move(*graph) : Graph{};
}

CoreAiConfig configOf(const std::string &text)
{
    std::vector<std::string> notes;
    auto config = parseCoreAiConfig(text, "case.yaml", notes);
    EXPECT_TRUE(config.has_value()) << (config ? "" : config.error().text());
    return config ? *config : CoreAiConfig{};
}

std::string calculatorText(ObserverKind kind)
{
    switch (kind) {
    case ObserverKind::LastBatch:
        return "static";
    case ObserverKind::MovingAverage:
        return "moving_average";
    case ObserverKind::MinMax:
        return "global_minmax";
    case ObserverKind::Dynamic:
        return "dynamic";
    default:
        return "?";
    }
}

std::string boundText(const std::optional<double> &bound)
{
    if (!bound)
        return "-";
    std::string text = shortestText(*bound);
    return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string recordedSpec(const TensorSpec &spec)
{
    static const std::map<Scheme, std::string> kSchemes = {{Scheme::Symmetric, "symmetric"},
                                                           {Scheme::SymmetricWithClipping, "symmetric_with_clipping"},
                                                           {Scheme::Affine, "asymmetric"}};
    std::string granularity = "tensor";
    const std::string axis = spec.axis ? std::to_string(*spec.axis) : "None";
    if (spec.granularity == Granularity::PerChannel)
        granularity = "channel@" + axis;
    if (spec.granularity == Granularity::PerBlock) {
        granularity = "block";
        for (std::size_t i = 0; i < spec.blockSizes.size(); ++i)
            granularity += (i > 0 ? "x" : "") + (spec.blockSizes[i] < 0 ? "*" : std::to_string(spec.blockSizes[i]));
        if (spec.axis)
            granularity += "@" + axis;
    }
    return std::string(coreAiTypeName(spec.type).value_or("?")) + " " + kSchemes.at(spec.scheme) + " " + granularity +
           " " + calculatorText(spec.observer) + " " + boundText(spec.low) + ".." + boundText(spec.high) +
           (spec.minValue ? " minval" : "") + (spec.powerOfTwoScale ? " e8m0" : "");
}

struct Line {
    std::string tensor;
    int after = 0;
    std::vector<std::string> readers; // sorted; empty where the peer renames operators
    std::string spec;
    int instance = 0;
    auto operator<=>(const Line &) const = default;
};

// Instances numbered by their first line, so that only the partition counts.
std::vector<std::string> texts(std::vector<Line> lines)
{
    std::sort(lines.begin(), lines.end());
    std::map<int, int> numbers;
    std::vector<std::string> result;
    for (const Line &line : lines) {
        const int number = numbers.try_emplace(line.instance, static_cast<int>(numbers.size())).first->second;
        std::string text = line.tensor + std::string(static_cast<std::size_t>(line.after), '\'') + " ->";
        for (const auto &reader : line.readers)
            text += " " + reader;
        result.push_back(text + " #" + std::to_string(number) + " " + line.spec);
    }
    return result;
}

std::vector<std::string> placedTexts(const Graph &graph, const Placement &placement, bool withReaders)
{
    std::vector<Line> lines;
    for (const PlacedSite &site : placement.sites) {
        Line line;
        const GraphInput *input = graph.input(site.value);
        line.tensor = input && input->kind != InputKind::User ? input->target : graph.value(site.value).name;
        for (int at = site.after; at >= 0; at = placement.sites[static_cast<std::size_t>(at)].after)
            ++line.after;
        if (withReaders) {
            for (const NodeId reader : site.readers)
                line.readers.push_back(graph.node(reader).name);
            if (site.readByOutput)
                line.readers.emplace_back("output");
            std::sort(line.readers.begin(), line.readers.end());
        }
        line.instance = site.instance;
        line.spec = recordedSpec(placement.observers[static_cast<std::size_t>(site.instance)].spec);
        lines.push_back(std::move(line));
    }
    return texts(std::move(lines));
}

std::vector<std::string> recordedTexts(const nlohmann::json &sites, bool withReaders)
{
    std::vector<Line> lines;
    for (const auto &site : sites) {
        Line line;
        line.tensor = site["tensor"].get<std::string>();
        line.after = site["after"].get<int>();
        if (withReaders)
            line.readers = site["readers"].get<std::vector<std::string>>();
        std::sort(line.readers.begin(), line.readers.end());
        line.instance = site["instance"].get<int>();
        line.spec = site["spec"].get<std::string>();
        lines.push_back(std::move(line));
    }
    return texts(std::move(lines));
}

std::vector<std::string> observerTexts(const Placement &placement)
{
    std::vector<std::string> result;
    for (const PlacedObserver &observer : placement.observers)
        result.push_back(observer.name + " " + recordedSpec(observer.spec));
    std::sort(result.begin(), result.end());
    return result;
}

class Recorded : public testing::TestWithParam<std::size_t>
{
};

TEST_P(Recorded, PlacesAsCoreAiOptDoes)
{
    const auto &one = cases()["cases"][GetParam()];
    const Graph graph = graphOf(one["graph"]);
    SCOPED_TRACE(one["graph"].get<std::string>() + ": " + one["name"].get<std::string>());
    const auto placement = placeCoreAi(graph, configOf(one["config"]));
    if (one.contains("error")) {
        ASSERT_FALSE(placement.has_value()) << "coreai-opt: " << one["error"];
        EXPECT_EQ(placement.error().code, ErrorCode::Usage) << placement.error().text();
        return;
    }
    ASSERT_TRUE(placement.has_value()) << placement.error().text();
    if (one.contains("observers")) {
        std::vector<std::string> expected;
        for (const auto &observer : one["observers"])
            expected.push_back(observer["observer"].get<std::string>() + " " + observer["spec"].get<std::string>());
        std::sort(expected.begin(), expected.end());
        EXPECT_EQ(observerTexts(*placement), expected);
        return;
    }
    const bool withReaders = one["graph"] != "bn";
    EXPECT_EQ(placedTexts(graph, *placement, withReaders), recordedTexts(one["sites"], withReaders));
}

INSTANTIATE_TEST_SUITE_P(CoreAiOpt, Recorded, testing::Range(std::size_t{0}, cases()["cases"].size()),
                         [](const auto &info) {
                             std::string name = cases()["cases"][info.param]["graph"].template get<std::string>() +
                                                "_" + std::to_string(info.param);
                             return name;
                         });

// The rows of the specification's skip table: tensor, readers, type and scheme, shared observers.
std::vector<std::string> skipTexts(const nlohmann::json &row)
{
    std::vector<std::string> result;
    for (const auto &site : row["sites"]) {
        std::string text = site["tensor"].get<std::string>() + " ->";
        auto users = site["users"].get<std::vector<std::string>>();
        std::sort(users.begin(), users.end());
        for (const auto &user : users)
            text += " " + user;
        result.push_back(text + " " + site["spec"].get<std::string>());
    }
    std::sort(result.begin(), result.end());
    return result;
}

std::string underscored(std::string name)
{
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}

std::string tensorName(const Graph &graph, const PlacedSite &site)
{
    const GraphInput *input = graph.input(site.value);
    return input && input->kind != InputKind::User ? underscored(input->target) : graph.value(site.value).name;
}

std::vector<std::string> readerNames(const Graph &graph, const PlacedSite &site)
{
    std::vector<std::string> names;
    for (const NodeId reader : site.readers)
        names.push_back(graph.node(reader).name);
    if (site.readByOutput)
        names.emplace_back("output");
    std::sort(names.begin(), names.end());
    return names;
}

const TensorSpec &specOf(const Placement &placement, const PlacedSite &site)
{
    return placement.observers[static_cast<std::size_t>(site.instance)].spec;
}

std::string rangeText(const TensorSpec &spec)
{
    if (!spec.low && !spec.high)
        return {};
    const auto bound = [](const std::optional<double> &v) { return v ? boundText(v) : std::string("None"); };
    return "[" + bound(spec.low) + ", " + bound(spec.high) + "]";
}

std::set<std::set<std::string>> sharedTensors(const Graph &graph, const Placement &placement)
{
    std::map<int, std::set<std::string>> byInstance;
    for (const PlacedSite &site : placement.sites)
        byInstance[site.instance].insert(tensorName(graph, site));
    std::set<std::set<std::string>> shared;
    for (auto &[instance, tensors] : byInstance)
        if (tensors.size() > 1)
            shared.insert(tensors);
    return shared;
}

Placement placed(const Graph &graph, const std::string &config, const CoreAiOptions &options = {})
{
    auto placement = placeCoreAi(graph, configOf(config), options);
    EXPECT_TRUE(placement.has_value()) << (placement ? "" : placement.error().text());
    return placement ? *placement : Placement{};
}

TEST(CoreAiPlacement, EveryRowOfTheSkipTable)
{
    int rows = 0;
    for (const auto &row : cases()["skips"]) {
        SCOPED_TRACE(row["case"].get<std::string>());
        const Graph graph = graphOf(row["graph"]);
        const Placement placement = placed(graph, row["config"]);
        std::vector<std::string> texts;
        for (const PlacedSite &site : placement.sites) {
            const TensorSpec &spec = specOf(placement, site);
            std::string text = tensorName(graph, site) + " ->";
            for (const auto &reader : readerNames(graph, site))
                text += " " + reader;
            texts.push_back(text + " int8," + (spec.scheme == Scheme::Affine ? "asym" : "symm") + "," +
                            rangeText(spec));
        }
        std::sort(texts.begin(), texts.end());
        EXPECT_EQ(texts, skipTexts(row));
        std::set<std::set<std::string>> shared;
        for (const auto &group : row["shared"])
            shared.insert(group.get<std::set<std::string>>());
        EXPECT_EQ(sharedTensors(graph, placement), shared);
        ++rows;
    }
    EXPECT_EQ(rows, 33);
}

TEST(CoreAiPlacement, SitesOfTheConformanceGraphs)
{
    int graphs = 0;
    for (const auto &one : cases()["conformance"]) {
        SCOPED_TRACE(one["graph"].get<std::string>() + " " + one["preset"].get<std::string>());
        const Graph graph = graphOf(one["graph"]);
        const Placement placement = placed(graph, one["config"]);
        ASSERT_EQ(placement.sites.size(), one["sites"].size());
        std::map<int, int> instances;
        std::set<int> theirs;
        for (const auto &recorded : one["sites"]) {
            const auto site =
                std::find_if(placement.sites.begin(), placement.sites.end(), [&](const PlacedSite &candidate) {
                    return tensorName(graph, candidate) == recorded["site"].get<std::string>();
                });
            ASSERT_NE(site, placement.sites.end()) << recorded["site"];
            auto users = recorded["users"].get<std::vector<std::string>>();
            std::sort(users.begin(), users.end());
            EXPECT_EQ(readerNames(graph, *site), users);
            const TensorSpec &spec = specOf(placement, *site);
            EXPECT_EQ(coreAiTypeName(spec.type), recorded["dtype"].get<std::string>());
            EXPECT_EQ(spec.scheme == Scheme::Affine, recorded["qscheme"] == "asymmetric");
            EXPECT_EQ(spec.low.has_value(), !recorded["float_range"][0].is_null());
            EXPECT_EQ(spec.high.has_value(), !recorded["float_range"][1].is_null());
            const std::string granularity = recorded["granularity"];
            EXPECT_EQ(spec.granularity, granularity == "PerChannelGranularity" ? Granularity::PerChannel
                                        : granularity == "PerBlockGranularity" ? Granularity::PerBlock
                                                                               : Granularity::PerTensor);
            const int theirInstance = recorded["instance"];
            EXPECT_EQ(instances.try_emplace(site->instance, theirInstance).first->second, theirInstance);
            theirs.insert(theirInstance);
        }
        EXPECT_EQ(instances.size(), theirs.size());
        ++graphs;
    }
    EXPECT_EQ(graphs, 8);
}

Graph graphFile(const std::string &name)
{
    std::ifstream file(std::string(DBLAME_TEST_DATA) + "/quantizer/" + name);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    auto graph = parseGraph(text);
    EXPECT_TRUE(graph.has_value()) << name << (graph ? "" : graph.error().text());
    return graph ? std::move(*graph) : Graph{};
}

// "id observer": the observer is named by its first call.
std::vector<std::string> sitesAndObservers(const Placement &placement)
{
    std::vector<std::string> result;
    const std::string prefix = "activation_post_process_";
    for (const PlacedSite &site : placement.sites) {
        std::string name = placement.observers[static_cast<std::size_t>(site.instance)].name;
        if (name.starts_with(prefix))
            name.erase(0, prefix.size());
        result.push_back(site.id + " " + name);
    }
    return result;
}

// Ids and their order as recognizeSites gives them to the saved candidate; numbers as the peer named its quantizers.
TEST(CoreAiPlacement, TinyConvAsItsCandidate)
{
    const Graph graph = graphFile("tinyconv_raw.graph.txt");
    const Placement placement = placed(graph, "quantization_config: {}");
    EXPECT_THAT(sitesAndObservers(placement),
                ElementsAre("fc/weight 14", "x/out 0", "stem.conv/weight 1", "stem.relu/out 2", "pool1/out 2",
                            "block.conv1/weight 4", "block.relu/out 5", "block.conv2/weight 6", "block.bn2/out 7",
                            "block.relu@1/out 8", "pool2/out 8", "head_conv.conv/weight 10", "head_conv.relu/out 11",
                            "gap/out 11", "flatten/out 11", "fc/out 15"));
    EXPECT_THAT(placement.leftFloat, IsEmpty());
    for (const PlacedSite &site : placement.sites) {
        EXPECT_EQ(site.role == SiteRole::Weight, site.id.ends_with("/weight"));
        EXPECT_FALSE(graph.value(site.value).name.starts_with("conv2d"))
            << "nothing between a convolution and its norm";
    }
    EXPECT_THAT(
        placed(graph, "quantization_config: {global_config: {op_input_spec: null, op_output_spec: null}}").sites,
        testing::SizeIs(5));
}

TEST(CoreAiPlacement, TransformerAsItsCandidate)
{
    const Placement placement = placed(graphFile("transformer.graph.txt"), "quantization_config: {}");
    EXPECT_THAT(sitesAndObservers(placement),
                ElementsAre("embed/weight 1", "blocks.0.attn.qkv/weight 5", "blocks.0.attn.proj/weight 8",
                            "blocks.0.fc1/weight 12", "blocks.0.fc2/weight 14", "blocks.1.attn.qkv/weight 18",
                            "blocks.1.attn.proj/weight 21", "blocks.1.fc1/weight 25", "blocks.1.fc2/weight 27",
                            "head/weight 32", "x/out 0", "embed/out 2", "add/out 3", "blocks.0.ln1/out 4",
                            "blocks.0.attn.qkv/out 6", "blocks.0.attn/out 7", "blocks.0.attn.proj/out 9",
                            "add_1/out 10", "blocks.0.ln2/out 11", "blocks.0.act/out 13", "blocks.0.fc2/out 15",
                            "add_2/out 16", "blocks.1.ln1/out 17", "blocks.1.attn.qkv/out 19", "blocks.1.attn/out 20",
                            "blocks.1.attn.proj/out 22", "add_3/out 23", "blocks.1.ln2/out 24", "blocks.1.act/out 26",
                            "blocks.1.fc2/out 28", "add_4/out 29", "norm/out 30", "mean/out 30", "head/out 33"));
    ASSERT_EQ(placement.leftFloat.size(), 1U);
    EXPECT_THAT(placement.leftFloat[0].reason, HasSubstr("no entry of op_state_spec names the parameter 'pos'"));
}

constexpr const char *kToy = R"(graph {
  input parameter %p_conv_weight: float32[8, 1, 3, 3] "conv.weight"
  input parameter %p_linear_weight: float32[10, 6272] "linear.weight"
  input user %x: float32[1, 1, 28, 28] "x"
  %conv2d: float32[1, 8, 28, 28] = aten.conv2d.default(input=%x, weight=%p_conv_weight, bias=None, stride=[1, 1], padding=[1, 1]) @"":"m.Toy" @"conv":"torch.nn.modules.conv.Conv2d" torch_fn="conv2d_1;builtin_function_or_method.conv2d"
  %relu: float32[1, 8, 28, 28] = aten.relu.default(self=%conv2d) @"":"m.Toy" @"relu":"torch.nn.modules.activation.ReLU" torch_fn="relu_1;function.relu"
  %flatten: float32[1, 6272] = aten.flatten.using_ints(self=%relu, start_dim=1) @"":"m.Toy" torch_fn="flatten_1;method_descriptor.flatten"
  %linear: float32[1, 10] = aten.linear.default(input=%flatten, weight=%p_linear_weight) @"":"m.Toy" @"linear":"torch.nn.modules.linear.Linear" torch_fn="linear_1;builtin_function_or_method.linear"
  return %linear
}
)";

Graph toy()
{
    auto graph = parseGraph(kToy);
    EXPECT_TRUE(graph.has_value()) << (graph ? "" : graph.error().text());
    return std::move(*graph);
}

TEST(CoreAiPlacement, ToyInEveryPreset)
{
    const Graph graph = toy();
    EXPECT_THAT(
        sitesAndObservers(placed(graph, "quantization_config: {}")),
        ElementsAre("conv/weight 1", "linear/weight 4", "x/out 0", "relu/out 2", "flatten/out 2", "linear/out 5"));
    const auto w8 = placeCoreAi(graph, coreAiWeightOnly(ElementType::Int8));
    EXPECT_THAT(sitesAndObservers(*w8), ElementsAre("conv/weight 0", "linear/weight 1"));
    const auto block = placeCoreAi(graph, coreAiWeightOnly(ElementType::Int4, 32));
    EXPECT_THAT(sitesAndObservers(*block), ElementsAre("linear/weight 1"));
    EXPECT_EQ(block->observers[0].spec.axis, 1);
    ASSERT_EQ(block->leftFloat.size(), 1U);
    EXPECT_EQ(graph.node(block->leftFloat[0].node).name, "conv2d");
    EXPECT_THAT(block->leftFloat[0].reason, HasSubstr("size 1 along axis 1 is not divisible by blocks of 32"));
    EXPECT_THAT(block->warnings, ElementsAre(HasSubstr("p_conv_weight: stays float")));
    const auto palette = placePalettes(graph, PaletteConfig{});
    EXPECT_THAT(sitesAndObservers(*palette), ElementsAre("conv/weight conv.parametrizations.weight.0",
                                                         "linear/weight linear.parametrizations.weight.0"));
    EXPECT_TRUE(palette->observers[0].spec.palette->fast);
    PaletteConfig groups;
    for (auto &[name, spec] : groups.global.op.states) {
        spec->groupSize = 16;
        spec->axis = 0;
    }
    const auto none = placePalettes(graph, groups);
    EXPECT_THAT(none->sites, IsEmpty()) << "16 divides neither 8 nor 10 channels";
    EXPECT_EQ(none->leftFloat.size(), 2U);
    EXPECT_EQ(none->warnings.size(), 2U);
}

TEST(CoreAiPlacement, ToyInEagerMode)
{
    const Graph graph = toy();
    const Placement placement = placed(graph, "quantization_config: {execution_mode: eager}");
    EXPECT_THAT(sitesAndObservers(placement),
                ElementsAre("conv/weight conv.parametrizations.weight.0", "x/out conv.conv2d_quantize_input",
                            "conv/out conv.conv2d_quantize_output_0", "linear/weight linear.parametrizations.weight.0",
                            "flatten/out linear.linear_quantize_input", "linear/out linear.linear_quantize_output_0"));
    for (const PlacedSite &site : placement.sites)
        EXPECT_EQ(specOf(placement, site).scheme, Scheme::Symmetric) << "no operator's bounds are known here";
}

// Several quantizers on one tensor: a saved candidate shows the later ones as results of the earlier one's module.
TEST(CoreAiPlacement, SitesThatReadATensorAgain)
{
    const Placement beside = placed(graphOf("res"), "quantization_config: {module_name_configs: {c1: {op_input_spec: "
                                                    "{\"*\": {dtype: int4}}}}}");
    EXPECT_THAT(sitesAndObservers(beside),
                ElementsAre("c1/weight 1", "c2/weight 3", "x/out 5", "activation_post_process_5/out 0", "r1/out 2",
                            "c2/out 4", "r2/out 6"));
    const Placement chain = placed(graphOf("crl"), "quantization_config: {module_name_configs: {fc: "
                                                   "{module_input_spec: {0: {dtype: int4}}}}}");
    EXPECT_THAT(sitesAndObservers(chain),
                ElementsAre("conv/weight 1", "fc/weight 5", "x/out 0", "relu/out 2", "flatten/out 2",
                            "activation_post_process_2@1/out 4", "fc/out 6"));
    const Placement eager = placed(graphOf("twice"), "quantization_config: {execution_mode: eager}");
    EXPECT_THAT(sitesAndObservers(eager),
                ElementsAre("fc1/weight fc1.parametrizations.weight.0", "x/out fc1.linear_quantize_input",
                            "fc1/out fc1.linear_quantize_output_0", "fc1@1/weight fc1.parametrizations.weight.0",
                            "act/out fc1.linear_quantize_input", "fc1@1/out fc1.linear_quantize_output_0",
                            "fc2/weight fc2.parametrizations.weight.0",
                            "fc1.linear_quantize_output_0@1/out fc2.linear_quantize_input",
                            "fc2/out fc2.linear_quantize_output_0",
                            "fc2.linear_quantize_output_0/out mul_quantize_input", "mul/out mul_quantize_output_0",
                            "fc2.linear_quantize_input/out add_quantize_input",
                            "fc1.linear_quantize_input/out add_quantize_other", "add/out add_quantize_output_0",
                            "mul_quantize_output_0/out add_1_quantize_input",
                            "add_quantize_output_0/out add_1_quantize_other", "add_1/out add_1_quantize_output_0"));
}

TEST(CoreAiPlacement, NormsAndTheirForcedEps)
{
    const Graph graph = graphOf("bn");
    const Placement placement = placed(graph, "quantization_config: {}");
    std::vector<int> numbers;
    for (const DefectNote &note : placement.defects)
        numbers.push_back(note.defect);
    EXPECT_THAT(numbers, ElementsAre(2, 8));
    EXPECT_EQ(graph.node(placement.defects[0].node).name, "batch_norm") << "the other norm has eps 1e-5";
    EXPECT_THAT(placement.defects[0].text, HasSubstr("instead of 0.001"));
    CoreAiOptions corrected;
    corrected.corrected = true;
    EXPECT_THAT(placed(graph, "quantization_config: {}", corrected).defects, IsEmpty());
    const Placement all = placed(graph, "quantization_config: {global_config: {op_state_spec: {\"*\": {}}}}");
    EXPECT_EQ(std::count_if(all.sites.begin(), all.sites.end(),
                            [](const PlacedSite &site) { return site.role == SiteRole::Weight; }),
              4)
        << "the bias of a convolution before a norm is added later, in float";
}

TEST(CoreAiPlacement, TransposedConvolutionsAxis)
{
    const Graph graph = graphOf("blocks");
    const auto axisOf = [&](const Placement &placement) {
        for (const PlacedSite &site : placement.sites)
            if (site.id == "t/weight")
                return specOf(placement, site).axis;
        return std::optional<int>();
    };
    const Placement strict = placed(graph, "quantization_config: {}");
    EXPECT_EQ(axisOf(strict), 0) << "the default spec writes axis 0";
    EXPECT_TRUE(std::any_of(strict.defects.begin(), strict.defects.end(),
                            [](const DefectNote &note) { return note.defect == 10; }));
    EXPECT_EQ(axisOf(*placeCoreAi(graph, coreAiWeightOnly(ElementType::Int8))), 1) << "w8 leaves it to the operator";
    CoreAiOptions corrected;
    corrected.corrected = true;
    EXPECT_EQ(axisOf(placed(graph, "quantization_config: {}", corrected)), 1);
}

TEST(CoreAiPlacement, ExcludedOperatorsAskForNothing)
{
    const Graph graph = graphOf("crl");
    CoreAiOptions options;
    options.excluded = {graph.findNode("conv2d")};
    const Placement placement = placed(graph, "quantization_config: {}", options);
    EXPECT_THAT(placedTexts(graph, placement, true),
                placedTexts(graph, placed(graph, "quantization_config: {module_name_configs: {conv: null}}"), true));
    ASSERT_EQ(placement.leftFloat.size(), 1U);
    EXPECT_EQ(placement.leftFloat[0].reason, "left out by the recipe");
}

TEST(CoreAiPlacement, OverridesAfterAnnotation)
{
    const Graph graph = graphOf("crl");
    SpecOverride change;
    change.nodes = {graph.findNode("relu")};
    change.facet = Facet::Out;
    TensorSpec spec = tensorSpecOf(defaultActivationSpec(), false);
    spec.type = ElementType::Int16;
    spec.quantMin = -32768;
    spec.quantMax = 32767;
    change.spec = spec;
    CoreAiOptions options;
    options.overrides = {change};
    Placement placement = placed(graph, "quantization_config: {}", options);
    const auto typeAt = [&](const Placement &p, const std::string &id) {
        for (const PlacedSite &site : p.sites)
            if (site.id == id)
                return std::string(elementTypeName(specOf(p, site).type));
        return std::string("float");
    };
    EXPECT_EQ(typeAt(placement, "relu/out"), "int16");
    EXPECT_EQ(typeAt(placement, "flatten/out"), "int8") << "flatten's own result keeps its observer";
    EXPECT_EQ(placement.sites.size(), 6U) << "one site per tensor: flatten reads what relu writes";
    options.overrides[0].spec.reset();
    options.overrides[0].nodes = {graph.findNode("linear")};
    options.overrides[0].facet = Facet::Weight;
    placement = placed(graph, "quantization_config: {}", options);
    EXPECT_EQ(typeAt(placement, "fc/weight"), "float");
    EXPECT_EQ(placement.sites.size(), 5U);
}

TEST(CoreAiPlacement, KeyValueCaches)
{
    const Graph graph = graphOf("crl");
    const std::string cache = "quantization_config: {global_config: null, kv_cache_quant_configs: {flatten: "
                              "{op_quantizer_config: {op_input_spec: {0: {dtype: int4}}, op_output_spec: null, "
                              "op_state_spec: null}}}}";
    const Placement placement = placed(graph, cache);
    EXPECT_THAT(placedTexts(graph, placement, true),
                ElementsAre("relu -> flatten #0 int4 symmetric tensor moving_average -..-"));
    const auto missing = placeCoreAi(graph, configOf("quantization_config: {kv_cache_quant_configs: {update: "
                                                     "{op_quantizer_config: {op_input_spec: {1: {}}, op_output_spec: "
                                                     "null, op_state_spec: null}}}}"));
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().where, "update");
}

TEST(CoreAiPlacement, DecomposedGraphsStayFloatWithTheReason)
{
    const auto graph = parseGraph(R"(graph {
  input parameter %w: float32[4, 2, 3, 3] "conv.weight"
  input user %x: float32[1, 2, 4, 4] "x"
  %convolution: float32[1, 4, 2, 2] = aten.convolution.default(input=%x, weight=%w, bias=None, stride=[1, 1], padding=[0, 0], dilation=[1, 1], transposed=False, output_padding=[0, 0], groups=1) @"":"M" @"conv":"torch.nn.modules.conv.Conv2d" torch_fn="conv2d_1;builtin_function_or_method.conv2d"
  return %convolution
}
)");
    ASSERT_TRUE(graph.has_value()) << graph.error().text();
    const Placement placement = placed(*graph, "quantization_config: {}");
    EXPECT_THAT(placement.sites, IsEmpty());
    ASSERT_EQ(placement.leftFloat.size(), 1U);
    EXPECT_THAT(placement.leftFloat[0].reason, HasSubstr("run_decompositions"));
}

} // namespace

} // namespace dblame

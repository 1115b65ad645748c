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

std::string specText(const TensorSpec &spec, bool)
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
        line.spec = specText(placement.observers[static_cast<std::size_t>(site.instance)].spec, false);
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
        result.push_back(observer.name + " " + specText(observer.spec, false));
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

} // namespace

} // namespace dblame

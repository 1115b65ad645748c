// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the placement tests share: the two small models of the conformance set, placements as plain records, and the
// expectations recorded from the peers (tests/data/quantizer).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/graph_text.h"
#include "core/placement.h"

namespace dblame
{

inline Graph graphOf(std::string_view text)
{
    auto graph = parseGraph(text);
    if (!graph)
        throw std::invalid_argument(graph.error().text());
    return std::move(*graph);
}

inline std::string quantizerData(const std::string &file)
{
    std::ifstream in(std::string(DBLAME_TEST_DATA) + "/quantizer/" + file);
    if (!in)
        throw std::runtime_error("no test data: " + file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

inline nlohmann::json quantizerJson(const std::string &file)
{
    return nlohmann::json::parse(quantizerData(file));
}

// Conv2d -> ReLU -> flatten -> Linear.
inline Graph convReluLinear()
{
    return graphOf(R"(graph {
  input parameter %p_conv_weight: float32[4, 2, 3, 3] "conv.weight"
  input parameter %p_conv_bias: float32[4] "conv.bias"
  input parameter %p_fc_weight: float32[3, 64] "fc.weight"
  input parameter %p_fc_bias: float32[3] "fc.bias"
  input user %x: float32[1, 2, 4, 4] "x"
  %conv2d: float32[1, 4, 4, 4] = aten.conv2d.default(input=%x, weight=%p_conv_weight, bias=%p_conv_bias, stride=[1, 1], padding=[1, 1]) @"":"net.Crl" @"conv":"torch.nn.modules.conv.Conv2d" torch_fn="conv2d_1;builtin_function_or_method.conv2d"
  %relu: float32[1, 4, 4, 4] = aten.relu.default(self=%conv2d) @"":"net.Crl" @"relu":"torch.nn.modules.activation.ReLU" torch_fn="relu_1;function.relu"
  %flatten: float32[1, 64] = aten.flatten.using_ints(self=%relu, start_dim=1) @"":"net.Crl" torch_fn="flatten_1;method_descriptor.flatten"
  %linear: float32[1, 3] = aten.linear.default(input=%flatten, weight=%p_fc_weight, bias=%p_fc_bias) @"":"net.Crl" @"fc":"torch.nn.modules.linear.Linear" torch_fn="linear_1;builtin_function_or_method.linear"
  return %linear
})");
}

// r2(c2(r1(c1(x))) + x).
inline Graph residual()
{
    return graphOf(R"(graph {
  input parameter %p_c1_weight: float32[2, 2, 3, 3] "c1.weight"
  input parameter %p_c1_bias: float32[2] "c1.bias"
  input parameter %p_c2_weight: float32[2, 2, 3, 3] "c2.weight"
  input parameter %p_c2_bias: float32[2] "c2.bias"
  input user %x: float32[1, 2, 4, 4] "x"
  %conv2d: float32[1, 2, 4, 4] = aten.conv2d.default(input=%x, weight=%p_c1_weight, bias=%p_c1_bias, stride=[1, 1], padding=[1, 1]) @"":"net.Res" @"c1":"torch.nn.modules.conv.Conv2d" torch_fn="conv2d_1;builtin_function_or_method.conv2d"
  %relu: float32[1, 2, 4, 4] = aten.relu.default(self=%conv2d) @"":"net.Res" @"r1":"torch.nn.modules.activation.ReLU" torch_fn="relu_1;function.relu"
  %conv2d_1: float32[1, 2, 4, 4] = aten.conv2d.default(input=%relu, weight=%p_c2_weight, bias=%p_c2_bias, stride=[1, 1], padding=[1, 1]) @"":"net.Res" @"c2":"torch.nn.modules.conv.Conv2d" torch_fn="conv2d_2;builtin_function_or_method.conv2d"
  %add: float32[1, 2, 4, 4] = aten.add.Tensor(self=%conv2d_1, other=%x) @"":"net.Res" torch_fn="add_1;method_descriptor.add"
  %relu_1: float32[1, 2, 4, 4] = aten.relu.default(self=%add) @"":"net.Res" @"r2":"torch.nn.modules.activation.ReLU" torch_fn="relu_2;function.relu"
  return %relu_1
})");
}

inline Graph conformanceModel(const std::string &name)
{
    return name == "residual" ? residual() : convReluLinear();
}

// The class of the peer's observer.
inline std::string observerClass(const TensorSpec &spec)
{
    if (spec.rule == QparamRule::FusedQat)
        return "FusedMovingAvgObsFakeQuantize";
    switch (spec.observer) {
    case ObserverKind::Histogram:
        return "HistogramObserver";
    case ObserverKind::MinMax:
        return spec.granularity == Granularity::PerChannel ? "PerChannelMinMaxObserver" : "MinMaxObserver";
    case ObserverKind::Dynamic:
        return "PlaceholderObserver";
    default:
        return std::string(observerKindName(spec.observer));
    }
}

// "fc_weight", "x", "relu": the name the peer's graph has for a tensor.
inline std::string peerName(const Graph &graph, ValueId value)
{
    if (const GraphInput *input = graph.input(value)) {
        std::string name = input->target;
        std::replace(name.begin(), name.end(), '.', '_');
        return name;
    }
    return graph.producer(value)->name;
}

struct SiteRecord {
    std::string tensor;
    std::set<std::string> users;
    std::string observer;
    int instance = -1;
    friend bool operator==(const SiteRecord &, const SiteRecord &) = default;
    friend std::ostream &operator<<(std::ostream &out, const SiteRecord &r)
    {
        out << r.tensor << " -> {";
        for (const auto &user : r.users)
            out << ' ' << user;
        return out << " } " << r.observer << " #" << r.instance;
    }
};

// Sites with instances numbered by first appearance.
inline std::vector<SiteRecord> records(const Graph &graph, const Placement &placement)
{
    std::vector<SiteRecord> result;
    std::map<int, int> number;
    for (const PlacedSite &site : placement.sites) {
        SiteRecord record;
        record.tensor = peerName(graph, site.value);
        for (NodeId reader : site.readers)
            record.users.insert(graph.node(reader).name);
        if (site.readByOutput)
            record.users.insert("output");
        record.observer = observerClass(placement.observers.at(static_cast<std::size_t>(site.instance)).spec);
        record.instance = number.try_emplace(site.instance, static_cast<int>(number.size())).first->second;
        result.push_back(std::move(record));
    }
    return result;
}

inline std::vector<std::string> tensors(const Graph &graph, const Placement &placement)
{
    std::vector<std::string> names;
    for (const SiteRecord &record : records(graph, placement))
        names.push_back(record.tensor);
    return names;
}

inline std::vector<NodeId> nodesNamed(const Graph &graph, const std::vector<std::string> &names)
{
    std::vector<NodeId> nodes;
    for (const auto &name : names) {
        nodes.push_back(graph.findNode(name));
        EXPECT_TRUE(nodes.back().valid()) << name;
    }
    return nodes;
}

inline const PlacedSite *siteOf(const Placement &placement, const std::string &id)
{
    const auto it = std::find_if(placement.sites.begin(), placement.sites.end(),
                                 [&](const PlacedSite &site) { return site.id == id; });
    return it == placement.sites.end() ? nullptr : &*it;
}

// What the observer of a site is asked; the site must exist.
inline const TensorSpec &specOf(const Placement &placement, const std::string &id)
{
    const PlacedSite *site = siteOf(placement, id);
    if (site == nullptr)
        throw std::runtime_error("no site " + id);
    return placement.observers.at(static_cast<std::size_t>(site->instance)).spec;
}

inline std::string whyFloat(const Graph &graph, const Placement &placement, const std::string &node)
{
    for (const LeftFloat &left : placement.leftFloat)
        if (graph.node(left.node).name == node)
            return left.reason;
    return "";
}

// "3@conv2d_1 5@cat": defects with their nodes, in order.
inline std::string defects(const Graph &graph, const Placement &placement)
{
    std::string text;
    for (const DefectNote &note : placement.defects)
        text += (text.empty() ? "" : " ") + std::to_string(note.defect) +
                (note.node.valid() ? "@" + graph.node(note.node).name : "");
    return text;
}

// A row of skip_semantics or of the conformance graphs against a placement.
inline void expectSites(const nlohmann::json &row, const char *tensorKey, const Graph &graph,
                        const Placement &placement)
{
    const auto got = records(graph, placement);
    ASSERT_EQ(got.size(), row["sites"].size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        const auto &site = row["sites"][i];
        EXPECT_EQ(got[i].tensor, site[tensorKey]);
        EXPECT_EQ(got[i].users, site["users"].get<std::set<std::string>>()) << got[i].tensor;
        if (site.contains("observer")) {
            EXPECT_EQ(got[i].observer, site["observer"]) << got[i].tensor;
        }
        if (site.contains("spec")) {
            EXPECT_EQ(got[i].observer.substr(0, 6), site["spec"]) << got[i].tensor;
        }
        if (site.contains("instance")) {
            EXPECT_EQ(got[i].instance, site["instance"]) << got[i].tensor;
        }
    }
    if (!row.contains("shared"))
        return;
    std::map<int, std::set<std::string>> groups;
    for (const SiteRecord &record : got)
        groups[record.instance].insert(record.tensor);
    std::set<std::set<std::string>> shared;
    for (const auto &[instance, members] : groups)
        if (members.size() > 1)
            shared.insert(members);
    EXPECT_EQ(shared, row["shared"].get<std::set<std::set<std::string>>>());
}

} // namespace dblame

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

} // namespace dblame

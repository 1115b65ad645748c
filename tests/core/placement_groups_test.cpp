// SPDX-License-Identifier: GPL-3.0-or-later
//
// From asked specs to observers and insertion points.
#include "core/placement_groups.h"

#include "placement_test_support.h"

namespace dblame
{

namespace
{

TensorSpec activation()
{
    TensorSpec spec;
    spec.observer = ObserverKind::Histogram;
    return spec;
}

TensorSpec fourBits()
{
    TensorSpec spec = activation();
    spec.quantMin = -8;
    spec.quantMax = 7;
    return spec;
}

// x -> relu -> {sigmoid, tanh, output}
Graph fork()
{
    return graphOf(R"(graph {
  input user %x: float32[2, 3] "x"
  %relu: float32[2, 3] = aten.relu.default(self=%x)
  %sigmoid: float32[2, 3] = aten.sigmoid.default(self=%relu)
  %tanh: float32[2, 3] = aten.tanh.default(self=%relu)
  return %sigmoid, %tanh, %relu
})");
}

GroupedPlacement place(const Graph &graph, const SpecMap &asked, const GroupingOptions &options = {})
{
    auto placed = placeObservers(graph, asked, options);
    if (!placed)
        throw std::runtime_error(placed.error().text());
    return std::move(*placed);
}

struct Fork {
    Graph graph = fork();
    ValueId x = graph.find("x"), relu = graph.find("relu");
    NodeId reluNode = graph.findNode("relu"), sigmoid = graph.findNode("sigmoid"), tanh = graph.findNode("tanh");
};

} // namespace

TEST(PlacementGroups, ReadersThatAskTheSameAreOneSite)
{
    const Fork f;
    SpecMap asked;
    asked.set(edgeKey(f.relu, f.tanh), activation());
    asked.set(edgeKey(f.relu, f.sigmoid), activation());
    const Placement placement = place(f.graph, asked).placement;
    ASSERT_EQ(placement.sites.size(), 1U);
    const PlacedSite &site = placement.sites.front();
    EXPECT_EQ(site.role, SiteRole::Input);
    EXPECT_EQ(site.owner, f.sigmoid);
    EXPECT_EQ(site.readers, (std::vector<NodeId>{f.sigmoid, f.tanh}));
    EXPECT_FALSE(site.readByOutput); // the graph's result stays what relu gives
    EXPECT_EQ(site.id, "sigmoid/in[0]");
    EXPECT_EQ(site.readerIds, (std::vector<std::string>{"sigmoid/in[0]", "tanh/in[0]"}));
    EXPECT_EQ(placement.observers.size(), 1U);
}

TEST(PlacementGroups, AnOutputSiteServesReadersThatAskTheSameAndFeedsOthers)
{
    const Fork f;
    SpecMap asked;
    asked.set(outputKey(f.relu), activation());
    asked.set(edgeKey(f.relu, f.sigmoid), activation());
    asked.set(edgeKey(f.relu, f.tanh), fourBits());
    const GroupedPlacement placed = place(f.graph, asked);
    ASSERT_EQ(placed.placement.sites.size(), 2U);
    const PlacedSite &out = placed.placement.sites[0];
    EXPECT_EQ(out.role, SiteRole::Output);
    EXPECT_EQ(out.owner, f.reluNode);
    EXPECT_EQ(out.readers, std::vector<NodeId>{f.sigmoid});
    EXPECT_TRUE(out.readByOutput);
    const PlacedSite &in = placed.placement.sites[1];
    EXPECT_EQ(in.role, SiteRole::Input);
    EXPECT_EQ(in.after, 0);
    EXPECT_EQ(in.readers, std::vector<NodeId>{f.tanh});
    EXPECT_EQ(placed.observerOf, (std::vector<int>{0, 0, 1}));
    EXPECT_EQ(placed.placement.observers[0].name, "activation_post_process_0");
    EXPECT_EQ(placed.placement.observers[1].name, "activation_post_process_1");
}

TEST(PlacementGroups, TheFirstSpecWinsWhereOnlyTheKindOfObserverDiffers)
{
    const Fork f;
    TensorSpec minMax = activation();
    minMax.observer = ObserverKind::MinMax;
    minMax.eps = 0.5;
    SpecMap asked;
    asked.set(edgeKey(f.relu, f.sigmoid), minMax);
    asked.set(edgeKey(f.relu, f.tanh), activation());
    const Placement placement = place(f.graph, asked).placement;
    ASSERT_EQ(placement.observers.size(), 1U);
    EXPECT_EQ(placement.observers.front().spec, minMax);
    EXPECT_FALSE(sameGridAsked(activation(), fourBits()));
}

TEST(PlacementGroups, SharesFollowTheSpecTheyName)
{
    const Fork f;
    SpecMap asked;
    asked.set(outputKey(f.relu), fourBits());
    asked.set(edgeKey(f.relu, f.tanh), SharedWith{outputKey(f.relu)});
    asked.set(outputKey(f.graph.find("tanh")), SharedWith{edgeKey(f.relu, f.tanh)});
    const Placement placement = place(f.graph, asked).placement;
    ASSERT_EQ(placement.sites.size(), 2U);
    ASSERT_EQ(placement.observers.size(), 1U);
    EXPECT_EQ(placement.observers.front().spec, fourBits());
    EXPECT_EQ(placement.sites[1].value, f.graph.find("tanh"));
}

TEST(PlacementGroups, OperatorsKeptApartShareOnlyOnRequest)
{
    const Fork f;
    SpecMap asked;
    asked.set(edgeKey(f.relu, f.sigmoid), activation());
    asked.set(edgeKey(f.relu, f.tanh), activation());
    GroupingOptions options;
    options.keepsApart = [](NodeId) { return true; };
    EXPECT_EQ(place(f.graph, asked, options).placement.observers.size(), 2U);
}

TEST(PlacementGroups, NothingIsAskedInACircleAndNothingOfAMissingKey)
{
    const Fork f;
    SpecMap asked;
    asked.set(edgeKey(f.relu, f.sigmoid), SharedWith{edgeKey(f.relu, f.tanh)});
    asked.set(edgeKey(f.relu, f.tanh), SharedWith{edgeKey(f.relu, f.sigmoid)});
    EXPECT_TRUE(place(f.graph, asked).placement.sites.empty());

    SpecMap missing;
    missing.set(edgeKey(f.relu, f.sigmoid), SharedWith{outputKey(f.relu)});
    const auto placed = placeObservers(f.graph, missing);
    ASSERT_FALSE(placed.has_value());
    EXPECT_EQ(placed.error().code, ErrorCode::Internal);
    EXPECT_EQ(placed.error().where, "relu");
}

TEST(PlacementGroups, AWeightBelongsToTheOperatorBehindItsTranspose)
{
    const Graph graph = graphOf(R"(graph {
  input parameter %w: float32[3, 3] "blk.w"
  input buffer %acc: float32[2, 3] "acc"
  input user %x: float32[2, 3] "x"
  %t: float32[3, 3] = aten.permute.default(self=%w, dims=[1, 0])
  %linear: float32[2, 3] = aten.linear.default(input=%x, weight=%t) @"blk":"net.Blk"
  %add_: float32[2, 3] = aten.add_.Tensor(self=%acc, other=%linear)
  return %add_
})");
    SpecMap asked;
    asked.set(edgeKey(graph.find("w"), graph.findNode("t")), fourBits());
    asked.set(edgeKey(graph.find("x"), graph.findNode("linear")), activation());
    asked.set(edgeKey(graph.find("acc"), graph.findNode("add_")), activation()); // what it writes stays as it is
    asked.set(edgeKey(graph.find("linear"), graph.findNode("add_")), NoSpec{});
    const Placement placement = place(graph, asked).placement;
    ASSERT_EQ(placement.sites.size(), 2U);
    EXPECT_EQ(placement.sites[0].id, "blk/weight");
    EXPECT_EQ(placement.sites[0].owner, graph.findNode("linear"));
    EXPECT_EQ(placement.sites[0].readers, std::vector<NodeId>{graph.findNode("t")});
    EXPECT_EQ(placement.sites[0].inputIndex, 1);
    EXPECT_EQ(placement.sites[1].id, "blk/in[0]");
}

// Twenty thousand readers of one tensor, and a chain as long: one observer each.
TEST(PlacementGroups, LongGraphs)
{
    std::string text = "graph {\n  input user %x: float32[1] \"x\"\n";
    constexpr int kNodes = 10'000;
    for (int i = 0; i < kNodes; ++i) {
        text += "  %r" + std::to_string(i) + ": float32[1] = aten.sigmoid.default(self=%x)\n";
        text += "  %c" + std::to_string(i) + ": float32[1] = aten.relu.default(self=%" +
                (i == 0 ? "x" : "c" + std::to_string(i - 1)) + ")\n";
    }
    const Graph graph = graphOf(text + "  return %c" + std::to_string(kNodes - 1) + "\n}");
    SpecMap asked;
    const ValueId x = graph.find("x");
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        const ValueId read = graph.nodes[n].inputValues().front();
        asked.set(edgeKey(read, NodeId(n)), read == x ? AskedSpec(activation()) : SharedWith{outputKey(read)});
        if (graph.nodes[n].opName() == "relu")
            asked.set(outputKey(graph.nodes[n].outputValues().front()), SharedWith{edgeKey(read, NodeId(n))});
    }
    const Placement placement = place(graph, asked).placement;
    EXPECT_EQ(placement.sites.size(), 1U + kNodes);
    EXPECT_EQ(placement.observers.size(), 1U);
    EXPECT_EQ(placement.sites.front().readers.size(), kNodes + 1U);
}

} // namespace dblame

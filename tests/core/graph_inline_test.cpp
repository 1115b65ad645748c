// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/graph_inline.h"

#include <gtest/gtest.h>

namespace dblame
{

namespace
{

ValueId addValue(Graph &graph, const std::string &name)
{
    graph.values.push_back({name, {}, 0, TensorMeta{DType::Float32, {}}});
    return ValueId(graph.values.size() - 1);
}

Node makeNode(const std::string &name, const std::string &target, std::vector<ValueId> inputs,
              std::vector<ValueId> outputs)
{
    Node node;
    node.name = name;
    node.target = target;
    for (ValueId v : inputs)
        node.inputs.push_back({"self", v});
    for (ValueId v : outputs)
        node.outputs.push_back(v);
    return node;
}

// y = relu(x) inside the block; the block returns y, x itself, and y again.
Graph withBlock()
{
    Graph graph;
    const ValueId x = addValue(graph, "x");
    const ValueId first = addValue(graph, "getitem");
    const ValueId second = addValue(graph, "getitem_1");
    const ValueId third = addValue(graph, "getitem_2");
    const ValueId relu = addValue(graph, "relu");
    auto body = std::make_unique<Graph>();
    const ValueId bx = addValue(*body, "x");
    const ValueId bn = addValue(*body, "relu"); // taken outside
    const ValueId by = addValue(*body, "neg");
    body->inputs.push_back({InputKind::User, bx, "", true, {}});
    body->nodes.push_back(makeNode("relu", "aten.relu.default", {bx}, {bn}));
    body->nodes.push_back(makeNode("neg", "aten.neg.default", {bn}, {by}));
    for (ValueId v : {by, bx, by})
        body->outputs.push_back({OutputKind::User, v, "", {}});
    graph.subgraphs.push_back(std::move(body));
    graph.subgraphNames.push_back("submod_1");
    graph.inputs.push_back({InputKind::User, x, "x", true, {}});
    Node wrapper = makeNode("wrap", "higher_order.wrap_with_set_grad_enabled", {}, {first, second, third});
    wrapper.inputs = {{"", false}, {"", SubgraphArg{0}}, {"", x}};
    graph.nodes.push_back(std::move(wrapper));
    graph.nodes.push_back(makeNode("relu", "aten.relu.default", {second}, {relu}));
    graph.outputs.push_back({OutputKind::User, relu, "", {}});
    graph.outputs.push_back({OutputKind::User, third, "", {}});
    return graph;
}

TEST(InlineGradBlocks, NodesOfTheBlockStandInTheGraph)
{
    Graph graph = withBlock();
    const auto origin = inlineGradBlocks(graph);
    graph.index();
    ASSERT_EQ(graph.nodes.size(), 3U);
    EXPECT_EQ(origin, (std::vector<std::size_t>{0, 0, 1}));
    EXPECT_EQ(graph.nodes[0].target, "aten.relu.default");
    EXPECT_EQ(graph.nodes[1].target, "aten.neg.default");
    // The inner relu had a name that is taken; the block's result keeps its own.
    EXPECT_EQ(graph.value(graph.nodes[0].outputValues().front()).name, "wrap/relu");
    EXPECT_EQ(graph.value(graph.nodes[1].outputValues().front()).name, "getitem");
    EXPECT_EQ(graph.value(graph.find("getitem")).producer, NodeId(1));
    // An operand handed through is the operand; a value returned twice is one value.
    EXPECT_EQ(graph.nodes[2].inputValues(), std::vector<ValueId>{graph.find("x")});
    EXPECT_EQ(graph.outputs[1].value, graph.find("getitem"));
    EXPECT_NE(graph.nodes[0].name, graph.nodes[2].name);
}

TEST(InlineGradBlocks, OtherWrappersStay)
{
    Graph graph = withBlock();
    graph.nodes[0].target = "higher_order.wrap_with_autocast";
    inlineGradBlocks(graph);
    EXPECT_EQ(graph.nodes.size(), 2U);
    EXPECT_EQ(graph.nodes[0].target, "higher_order.wrap_with_autocast");
}

TEST(InlineGradBlocks, BlockThatDoesNotFitStays)
{
    Graph graph = withBlock();
    graph.nodes[0].inputs.pop_back(); // an operand is missing
    inlineGradBlocks(graph);
    EXPECT_EQ(graph.nodes.size(), 2U);
}

} // namespace

} // namespace dblame

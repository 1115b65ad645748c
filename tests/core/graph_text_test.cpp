// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/graph_text.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dblame
{
namespace
{

Graph parsed(std::string_view text)
{
    auto graph = parseGraph(text);
    EXPECT_TRUE(graph.has_value()) << graph.error().text();
    return graph ? std::move(*graph) : Graph{};
}

constexpr const char *kConv = R"(graph {
  input user %x: float32[s0=1, 1, 8, 8] "x"
  input parameter %p_w: float32[4, 1, 3, 3] "block.conv1.weight"
  input buffer %b_n: int64[] "bn.num" nonpersistent
  input constant _ "flag" = True
  %conv2d: float32[s0=1, 4, 6, 6] = aten.conv2d.default(input=%x, weight=%p_w, bias=None, stride=[1, 1]) @"block":"net.Block" @"block.conv1":"torch.nn.modules.conv.Conv2d":"L__self___block.conv1@1" source="net.py:41" torch_fn="conv2d_1;f" handle=7 from_node=[("conv2d_3", "aten.conv2d.default", "Interpreter", 12), "conv2d"]
  aten.add_.Tensor(self=%b_n, other=1) name="add__tensor"
  return %conv2d "logits", buffer_mutation %b_n "bn.num"
}
)";

TEST(GraphText, ReadsEveryPartOfANode)
{
    const Graph g = parsed(kConv);
    ASSERT_EQ(g.nodes.size(), 2U);
    const Node &conv = g.nodes[0];
    EXPECT_EQ(conv.name, "conv2d");
    EXPECT_EQ(conv.target, "aten.conv2d.default");
    EXPECT_EQ(conv.modulePath(), "block.conv1");
    EXPECT_EQ(conv.moduleType(), "torch.nn.modules.conv.Conv2d");
    ASSERT_EQ(conv.modules.size(), 2U);
    EXPECT_EQ(conv.modules[0].key, "L__self__block");
    EXPECT_EQ(conv.modules[1].key, "L__self___block.conv1@1");
    EXPECT_EQ(conv.source, "net.py:41");
    EXPECT_EQ(conv.torchFn, "conv2d_1;f");
    EXPECT_EQ(conv.debugHandle, 7);
    ASSERT_EQ(conv.provenance.size(), 2U);
    EXPECT_EQ(conv.provenance[0].graphId, 12);
    EXPECT_EQ(conv.provenance[0].pass, "Interpreter");
    EXPECT_EQ(conv.provenance[1].name, "conv2d");
    EXPECT_EQ(std::get<ValueId>(*conv.argument("input")), g.find("x"));
    EXPECT_TRUE(std::holds_alternative<NoneArg>(*conv.argument("bias")));
    const auto &stride = std::get<IntListArg>(*conv.argument("stride"));
    EXPECT_EQ(std::get<std::int64_t>(stride.values.at(1)), 1);

    EXPECT_EQ(g.nodes[1].name, "add__tensor");
    EXPECT_TRUE(g.nodes[1].outputs.empty());
    EXPECT_EQ(g.readers(g.find("x")), std::vector<NodeId>{NodeId(0)});
    EXPECT_EQ(g.value(g.find("conv2d")).meta->sizes.at(0).symbol, "s0");
    EXPECT_EQ(g.value(g.find("conv2d")).meta->sizes.at(1).size, 4);

    ASSERT_EQ(g.inputs.size(), 4U);
    EXPECT_EQ(g.inputs[1].kind, InputKind::Parameter);
    EXPECT_EQ(g.inputs[1].target, "block.conv1.weight");
    EXPECT_FALSE(g.inputs[2].persistent);
    EXPECT_FALSE(g.inputs[3].value.valid());
    EXPECT_TRUE(std::get<bool>(g.inputs[3].constant));
    ASSERT_EQ(g.outputs.size(), 2U);
    EXPECT_TRUE(g.isOutput(g.find("conv2d")));
    EXPECT_EQ(g.outputs[0].target, "logits");
    EXPECT_EQ(g.outputs[1].kind, OutputKind::BufferMutation);
}

TEST(GraphText, PrintsWhatItRead)
{
    EXPECT_EQ(printGraph(parsed(kConv)), kConv);
}

TEST(GraphText, EveryKindOfArgumentSurvives)
{
    Graph g;
    g.values.push_back({"x", {}, 0, std::nullopt});
    g.values.push_back({"s y", {}, 0, std::nullopt}); // a name that needs quotes
    const ValueId x(0), s(1);
    for (std::size_t i = 0; i < 2; ++i)
        g.inputs.push_back({InputKind::User, ValueId(i), "", true, {}});
    Node n;
    n.target = "strange target";
    const auto add = [&n](Argument a) { n.inputs.push_back({"a" + std::to_string(n.inputs.size()), std::move(a)}); };
    add(NoneArg{});
    add(x);
    add(ValueListArg{{x, std::nullopt, s}});
    add(ValueListArg{});
    add(ValueListArg{{std::nullopt}});
    add(NestedValueListArg{{{x}, {}}});
    add(NestedValueListArg{});
    add(std::int64_t{std::numeric_limits<std::int64_t>::min()});
    add(0.1);
    add(3.0);
    add(-1e+30);
    add(1e-07);
    add(-std::numeric_limits<double>::infinity());
    add(true);
    add(std::string("a\"b\\c\nd\te\x01 \xc3\xa9"));
    add(std::complex<double>(1.5, -2.0));
    add(IntListArg{{std::int64_t{2}, s}});
    add(IntListArg{{s}});
    add(IntListArg{});
    add(IntListsArg{{{1, 2}, {}}});
    add(IntListsArg{});
    add(FloatListArg{{1.0, 2.5}});
    add(FloatListArg{});
    add(FloatListsArg{{{}, {0.5}}});
    add(FloatListsArg{{{}}});
    add(BoolListArg{{true, x}});
    add(BoolListArg{{x}});
    add(StringListArg{{"a", "b"}});
    add(StringListArg{});
    add(ScalarTypeArg{DType::BFloat16});
    add(ScalarTypeArg{DType::Unknown});
    add(LayoutArg{1});
    add(MemoryFormatArg{2});
    add(DeviceArg{"cuda", 1});
    add(DeviceArg{"cpu", -1});
    add(SubgraphArg{0});
    add(OperatorArg{"aten.add.Tensor"});
    add(UnsupportedArg{"as_custom_obj"});
    g.nodes.push_back(n);
    g.subgraphNames.push_back("sub");
    g.subgraphs.push_back(std::make_unique<Graph>(parsed("graph {\n  input user %q\n  return %q\n}")));
    g.index();

    const std::string text = printGraph(g);
    const Graph back = parsed(text);
    EXPECT_EQ(printGraph(back), text);
    ASSERT_EQ(back.nodes.size(), 1U);
    ASSERT_EQ(back.nodes[0].inputs.size(), n.inputs.size());
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
        EXPECT_EQ(back.nodes[0].inputs[i].value.index(), n.inputs[i].value.index()) << n.inputs[i].name;
    EXPECT_EQ(std::get<double>(*back.nodes[0].argument("a8")), 0.1);
    EXPECT_EQ(std::get<double>(*back.nodes[0].argument("a10")), -1e30);
    EXPECT_EQ(std::get<std::string>(*back.nodes[0].argument("a14")), "a\"b\\c\nd\te\x01 \xc3\xa9");
    EXPECT_EQ(std::get<ValueId>(std::get<IntListArg>(*back.nodes[0].argument("a17")).values.at(0)), s);
    EXPECT_EQ(back.subgraphNames, std::vector<std::string>{"sub"});
    EXPECT_EQ(back.subgraphs[0]->inputs.size(), 1U);
}

TEST(GraphText, ResultsInSlots)
{
    const std::string text =
        "graph {\n"
        "  input user %x\n"
        "  (%a: float32[2], [%b, %c: int64[\"2*s0\"=4]], None) = higher_order.wrap(subgraph(0), %x)\n"
        "  [%d, %e] = aten.split.Tensor(self=%a, split_size=1)\n"
        "  return %e, 3, \"text\" \"label\"\n"
        "  subgraph \"s\" {\n"
        "    input user %x\n"
        "    return %x\n"
        "  }\n"
        "}\n";
    const Graph g = parsed(text);
    EXPECT_EQ(printGraph(g), text);
    EXPECT_EQ(g.nodes[0].name, "a");
    EXPECT_EQ(g.nodes[0].outputs.size(), 3U);
    EXPECT_EQ(g.value(g.find("c")).outputIndex, 2);
    EXPECT_EQ(g.value(g.find("c")).meta->sizes.at(0).symbol, "2*s0");
    EXPECT_EQ(g.nodes[1].outputs.size(), 1U);
    EXPECT_EQ(g.nodes[1].outputValues().size(), 2U);
    EXPECT_EQ(std::get<std::int64_t>(g.outputs.at(1).literal), 3);
    EXPECT_EQ(g.outputs.at(2).target, "label");
}

TEST(GraphText, ShortFormLeavesHistoryOut)
{
    GraphTextOptions options;
    options.frames = options.provenance = options.stackTraces = false;
    EXPECT_THAT(
        printGraph(parsed(kConv), options),
        testing::HasSubstr("stride=[1, 1]) @\"block.conv1\":\"torch.nn.modules.conv.Conv2d\" source=\"net.py:41\"\n"));
}

struct Broken {
    const char *text, *where, *message;
};
class GraphTextErrors : public testing::TestWithParam<Broken>
{
};

TEST_P(GraphTextErrors, NamePlaceAndReason)
{
    const auto graph = parseGraph(GetParam().text);
    ASSERT_FALSE(graph.has_value());
    EXPECT_EQ(graph.error().code, ErrorCode::Unreadable);
    EXPECT_EQ(graph.error().where, GetParam().where);
    EXPECT_EQ(graph.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, GraphTextErrors,
    testing::Values(
        Broken{"", "line 1, column 1", "expected 'graph'"}, Broken{"graph {", "line 1, column 8", "expected '}'"},
        Broken{"graph {\n  %y = aten.relu.default(self=%x)\n}", "line 2, column 31", "%x is not defined before this"},
        Broken{"graph {\n  %y = aten.relu.default(self=%y)\n}", "line 2, column 31", "%y is not defined before this"},
        Broken{"graph {\n input user %x\n input user %x\n}", "line 3, column 13", "%x is defined twice"},
        Broken{"graph {\n input user %x: float33[1]\n}", "line 2, column 24", "unknown dtype 'float33'"},
        Broken{"graph {\n f.g(a=1, b=[1, \"x\"])\n}", "line 2, column 21", "element of another type in a list"},
        Broken{"graph {\n f.g(a=maybe)\n}", "line 2, column 8", "expected an argument"},
        Broken{"graph {\n f.g(\"a)\n}", "line 2, column 9", "string without closing quote"},
        Broken{"graph {\n f.g() colour=\"red\"\n}", "line 2, column 8", "unknown attribute 'colour'"},
        Broken{"graph {\n}\nmore", "line 3, column 1", "text after the graph"}));

} // namespace
} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/graph_text.h"
#include "core/placement_diff.h"
#include "core/recipe_export.h"
#include "core/recipe_translate.h"

namespace dblame
{

namespace
{

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

// relu2(c2(relu1(c1(x))) + x), then a linear in a container.
constexpr const char *kResidual = R"(graph {
  input parameter %p_c1_weight: float32[2, 2, 3, 3] "c1.weight"
  input parameter %p_c1_bias: float32[2] "c1.bias"
  input parameter %p_c2_weight: float32[2, 2, 3, 3] "c2.weight"
  input parameter %p_head_fc_weight: float32[3, 32] "head.fc.weight"
  input user %x: float32[1, 2, 4, 4] "x"
  %conv2d: float32[1, 2, 4, 4] = aten.conv2d.default(input=%x, weight=%p_c1_weight, bias=%p_c1_bias, stride=[1, 1], padding=[1, 1]) @"":"m.Res" @"c1":"torch.nn.modules.conv.Conv2d" torch_fn="conv2d_1;builtin_function_or_method.conv2d"
  %relu: float32[1, 2, 4, 4] = aten.relu.default(self=%conv2d) @"":"m.Res" @"r1":"torch.nn.modules.activation.ReLU" torch_fn="relu_1;function.relu"
  %conv2d_1: float32[1, 2, 4, 4] = aten.conv2d.default(input=%relu, weight=%p_c2_weight, bias=None, stride=[1, 1], padding=[1, 1]) @"":"m.Res" @"c2":"torch.nn.modules.conv.Conv2d" torch_fn="conv2d_2;builtin_function_or_method.conv2d"
  %add: float32[1, 2, 4, 4] = aten.add.Tensor(self=%conv2d_1, other=%x) @"":"m.Res" torch_fn="add_1;method_descriptor.add"
  %relu_1: float32[1, 2, 4, 4] = aten.relu.default(self=%add) @"":"m.Res" @"r2":"torch.nn.modules.activation.ReLU" torch_fn="relu_2;function.relu"
  %flatten: float32[1, 32] = aten.flatten.using_ints(self=%relu_1, start_dim=1) @"":"m.Res" @"head":"m.Head" torch_fn="flatten_1;method_descriptor.flatten"
  %linear: float32[1, 3] = aten.linear.default(input=%flatten, weight=%p_head_fc_weight) @"":"m.Res" @"head":"m.Head" @"head.fc":"torch.nn.modules.linear.Linear" torch_fn="linear_1;builtin_function_or_method.linear"
  return %linear
}
)";

Graph residual()
{
    auto graph = parseGraph(kResidual);
    EXPECT_TRUE(graph.has_value()) << (graph ? "" : graph.error().text());
    return std::move(*graph);
}

Recipe preset(const std::string &name)
{
    auto recipe = presetRecipe(name);
    EXPECT_TRUE(recipe.has_value()) << (recipe ? "" : recipe.error().text());
    return recipe ? *recipe : Recipe{};
}

Recipe with(const std::string &name, const std::vector<std::string> &overrides)
{
    Recipe recipe = preset(name);
    for (const auto &text : overrides) {
        auto change = parseOverride(text);
        EXPECT_TRUE(change.has_value()) << (change ? "" : change.error().text());
        if (change)
            recipe.overrides.push_back(*change);
    }
    return recipe;
}

Placement placed(const Graph &graph, const Recipe &recipe)
{
    auto placement = placeRecipe(graph, recipe);
    EXPECT_TRUE(placement.has_value()) << (placement ? "" : placement.error().text());
    return placement ? *placement : Placement{};
}

std::vector<std::string> ids(const Placement &placement)
{
    std::vector<std::string> result;
    for (const PlacedSite &site : placement.sites)
        result.push_back(site.id);
    return result;
}

std::string specAt(const Placement &placement, const std::string &id)
{
    for (const PlacedSite &site : placement.sites)
        if (site.id == id)
            return placement.observers[static_cast<std::size_t>(site.instance)].spec.text();
    return "float";
}

std::vector<std::string> readersOf(const Graph &graph, const Placement &placement, const std::string &id)
{
    std::vector<std::string> result;
    for (const PlacedSite &site : placement.sites)
        if (site.id == id)
            for (const NodeId reader : site.readers)
                result.push_back(graph.node(reader).name);
    return result;
}

TEST(Presets, NamesOfTheCommandLine)
{
    for (const auto &name : presetNames()) {
        const Recipe recipe = preset(name);
        EXPECT_EQ(recipe.preset, name);
        EXPECT_FALSE(recipe.corrected);
        EXPECT_TRUE(preset(name + ":corrected").corrected);
    }
    EXPECT_TRUE(preset("xnnpack-static").pt2e.perChannel);
    EXPECT_FALSE(preset("xnnpack-static:per-tensor").pt2e.perChannel);
    EXPECT_TRUE(preset("xnnpack-qat").pt2e.qat);
    EXPECT_TRUE(preset("xnnpack-dynamic").pt2e.dynamic);
    EXPECT_EQ(preset("x86-static").kind, RecipeKind::X86);
    EXPECT_EQ(preset("coreai-w8a8").coreAi, CoreAiConfig{});
    const Recipe block = preset("coreai-w4-block64");
    EXPECT_EQ(block.coreAi.global.op.states[0].second->granularity.blockSizes, std::vector<std::int64_t>{64});
    EXPECT_EQ(block.coreAi.global.op.inputs, declinedSpecs());
    EXPECT_EQ(preset("coreai-w8a8:eager").coreAi.mode, CoreAiMode::Eager);
    const Recipe palette = preset("coreai-palette-2-g4:corrected");
    EXPECT_EQ(palette.kind, RecipeKind::Palette);
    EXPECT_EQ(palette.palette.global.op.states[0].second->bits, 2);
    EXPECT_EQ(palette.palette.global.op.states[0].second->groupSize, 4);
}

TEST(Presets, UnknownNamesSayTheNearest)
{
    EXPECT_THAT(presetRecipe("xnnpack-statik").error().text(), HasSubstr("nearest: xnnpack-static"));
    EXPECT_THAT(presetRecipe("coreai-palette-5").error().text(), HasSubstr("no such preset"));
    EXPECT_THAT(presetRecipe("x86-static:per-tensor").error().text(), HasSubstr("no ':per-tensor'"));
    EXPECT_EQ(presetRecipe("coreai-w4-block").error().code, ErrorCode::Usage);
}

TEST(Overrides, ParseAndPrint)
{
    for (const char *text :
         {"module:fc=none", "module:fc=float", "module:fc/weight=float", "op:conv2d_1=weight=int4:sym",
          "optype:aten.conv2d=act=int8:affine,weight=int4:sym:block32,range=-1..1", "type:Linear/in[1]=uint8:affine",
          "module:a\\.b=in[0]=float,out=int8:sym"}) {
        const auto change = parseOverride(text);
        ASSERT_TRUE(change.has_value()) << text << change.error().text();
        EXPECT_EQ(change->text(), text);
    }
    EXPECT_EQ(parseOverride("module:fc=none")->meaning, OverrideMeaning::AsQuantizer);
    EXPECT_EQ(parseOverride("module:fc=float")->meaning, OverrideMeaning::FloatHere);
    const auto facet = parseOverride("type:Linear/in[1]=uint8:affine");
    EXPECT_EQ(facet->parts[0].facet, Facet::In);
    EXPECT_EQ(facet->parts[0].inputIndex, 1);
    EXPECT_EQ(parseOverride("op:a=act=int8:affine,range=..6")->high, 6.0);
    EXPECT_FALSE(parseOverride("op:a=act=int8:affine,range=..6")->low.has_value());
    EXPECT_THAT(parseOverride("fc=none").error().text(), HasSubstr("module:"));
    EXPECT_THAT(parseOverride("module:fc").error().text(), HasSubstr("SELECTOR=SPEC"));
    EXPECT_THAT(parseOverride("module:fc=wieght=int4:sym").error().text(), HasSubstr("weight, in, in[0], out or act"));
    EXPECT_THAT(parseOverride("module:fc=weight=int99:sym").error().text(), HasSubstr("int99"));
    EXPECT_THAT(parseOverride("module:fc=int4:sym").error().text(), HasSubstr("needs its role"));
    EXPECT_THAT(parseOverride("module:fc=act=int8:affine,range=2..1").error().text(), HasSubstr("range"));
    EXPECT_THAT(parseOverride("module:fc=range=0..1").error().text(), HasSubstr("range for nothing"));
}

TEST(RecipeFile, RoundTripsEveryKind)
{
    std::vector<Recipe> recipes;
    for (const auto &name : presetNames())
        recipes.push_back(preset(name));
    recipes.push_back(preset("coreai-w8a8:eager"));
    recipes.push_back(with("xnnpack-static:corrected", {"module:c1=none", "op:add/out=float",
                                                        "optype:aten.conv2d=weight=int4:sym:channel,act=float"}));
    recipes.push_back(with("coreai-w8a8", {"module:blocks\\.[0-9]+=weight=int4:sym:block32"}));
    recipes.push_back(with("coreai-palette-4-g2", {"module:\"fc\"=float"}));
    Recipe asQuantizer = with("xnnpack-static", {"module:c1/weight=float"});
    asQuantizer.overrides[0].meaning = OverrideMeaning::AsQuantizer;
    recipes.push_back(asQuantizer);
    for (const Recipe &recipe : recipes) {
        const std::string text = recipeText(recipe);
        const auto again = parseRecipe(text, "r.yaml");
        ASSERT_TRUE(again.has_value()) << again.error().text() << "\n" << text;
        EXPECT_EQ(*again, recipe) << text;
    }
}

TEST(RecipeFile, WhatIsAddedSitsWhereCoreAiOptIgnoresIt)
{
    const std::string text = recipeText(with("xnnpack-qat", {"module:c1=none"}));
    EXPECT_THAT(text, HasSubstr("quantization_spec:\n  dblame:\n    preset: xnnpack-qat\n"));
    EXPECT_THAT(text, HasSubstr("quantization_config:\n  global_config: null\n")) << "nothing for coreai-opt to do";
    EXPECT_THAT(recipeText(preset("coreai-palette-4")), HasSubstr("palettization_spec:\n  dblame:"));
}

TEST(RecipeFile, PlainConfigurationsAreRecipes)
{
    const auto quantizer = parseRecipe("quantization_config: {module_name_configs: {fc: null}}", "q.yaml");
    ASSERT_TRUE(quantizer.has_value()) << quantizer.error().text();
    EXPECT_EQ(quantizer->kind, RecipeKind::CoreAi);
    EXPECT_EQ(quantizer->preset, "");
    EXPECT_EQ(quantizer->title(), "coreai-opt configuration");
    const auto palettizer = parseRecipe("kmeans_palettization_config: {}", "p.yaml");
    ASSERT_TRUE(palettizer.has_value());
    EXPECT_EQ(palettizer->kind, RecipeKind::Palette);
    const auto own = parseRecipe("quantization_spec: {dblame: {preset: xnnpack-static}}", "d.yaml");
    ASSERT_TRUE(own.has_value()) << own.error().text();
    EXPECT_EQ(*own, preset("xnnpack-static"));
    std::vector<std::string> notes;
    ASSERT_TRUE(
        parseRecipe("quantization_config: {global_config: {op_state_spec: {weight: {tpye: 1}}}}", "q.yaml", &notes));
    EXPECT_THAT(notes, ElementsAre(HasSubstr("'tpye'")));
}

TEST(RecipeFile, Refusals)
{
    const auto refusal = [](const std::string &text) {
        const auto recipe = parseRecipe(text, "r.yaml");
        EXPECT_FALSE(recipe.has_value()) << text;
        return recipe ? std::string() : recipe.error().text();
    };
    EXPECT_THAT(refusal("quantization_spec:\n  dblame:\n    prest: x\n"),
                AllOf(HasSubstr("r.yaml:3"), HasSubstr("preset")));
    EXPECT_THAT(refusal("quantization_spec: {dblame: {preset: nope}}"), HasSubstr("no such preset"));
    EXPECT_THAT(refusal("quantization_spec: {dblame: {overrides: []}}"), HasSubstr("neither a preset"));
    EXPECT_THAT(refusal("quantization_spec: {dblame: {preset: xnnpack-static}}\nquantization_config: {}\n"),
                HasSubstr("global_config: null"));
    EXPECT_THAT(refusal("quantization_spec: {dblame: {preset: coreai-palette-4}}"), HasSubstr("palettiz"));
    EXPECT_THAT(refusal("quantization_spec: {dblame: {preset: x86-static, overrides: [{select: fc, set: none}]}}"),
                HasSubstr("module:"));
    EXPECT_THAT(refusal("quantization_spec: {dblame: {preset: x86-static, overrides: [{select: 'op:a'}]}}"),
                HasSubstr("select and set"));
    EXPECT_THAT(refusal("quantization_spec: {dblame: {preset: x86-static, corrected: maybe}}"),
                HasSubstr("true or false"));
    EXPECT_THAT(refusal("- 1\n"), HasSubstr("mapping"));
}

TEST(SelectNodes, ByModuleTypeNodeAndOperator)
{
    const Graph graph = residual();
    const auto names = [&](const std::string &text) {
        const auto selector = parseSelector(text);
        const auto nodes = selectNodes(*selector, graph);
        std::vector<std::string> result;
        EXPECT_TRUE(nodes.has_value()) << (nodes ? "" : nodes.error().text());
        for (const NodeId node : nodes ? *nodes : std::vector<NodeId>{})
            result.push_back(graph.node(node).name);
        return result;
    };
    EXPECT_THAT(names("module:c1"), ElementsAre("conv2d"));
    EXPECT_THAT(names("module:head"), ElementsAre("flatten", "linear")) << "a container covers what it contains";
    EXPECT_THAT(names("type:Conv2d"), ElementsAre("conv2d", "conv2d_1"));
    EXPECT_THAT(names("op:add"), ElementsAre("add"));
    EXPECT_THAT(names("optype:aten.relu"), ElementsAre("relu", "relu_1"));
    EXPECT_EQ(names("module:.*").size(), graph.nodes.size());
    const auto missing = selectNodes(*parseSelector("module:c3"), graph);
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().code, ErrorCode::Usage);
    EXPECT_THAT(missing.error().text(), AllOf(HasSubstr("matches no module of the model"), HasSubstr("nearest: c1")));
}

TEST(PlaceRecipe, CoreAiDefault)
{
    const Graph graph = residual();
    const Placement placement = placed(graph, preset("coreai-w8a8"));
    EXPECT_THAT(ids(placement), ElementsAre("c1/weight", "c2/weight", "head.fc/weight", "x/out", "r1/out", "c2/out",
                                            "r2/out", "head/out", "head.fc/out"));
    EXPECT_THAT(readersOf(graph, placement, "x/out"), ElementsAre("conv2d", "add"));
    EXPECT_EQ(specAt(placement, "r2/out"), "int8 affine per tensor, moving average");
    EXPECT_EQ(placement.sites[6].instance, placement.sites[7].instance) << "flatten shares with relu";
    EXPECT_THAT(placement.leftFloat, IsEmpty());
    ASSERT_EQ(placement.defects.size(), 1U);
    EXPECT_EQ(placement.defects[0].defect, 8);
    const Placement corrected = placed(graph, preset("coreai-w8a8:corrected"));
    EXPECT_THAT(corrected.defects, IsEmpty());
    EXPECT_EQ(specAt(corrected, "x/out"), "int8 symmetric per tensor, min-max");
}

// The two meanings of skipping a layer.
TEST(PlaceRecipe, FloatHereAndAsTheQuantizer)
{
    const Graph graph = residual();
    const Placement all = placed(graph, preset("coreai-w8a8"));
    const Placement none = placed(graph, with("coreai-w8a8", {"module:c1=none"}));
    EXPECT_THAT(ids(none), Not(Contains("c1/weight")));
    EXPECT_THAT(readersOf(graph, none, "x/out"), ElementsAre("add")) << "x is still asked for by the addition";
    EXPECT_EQ(specAt(none, "r1/out"), "int8 symmetric per tensor, moving average") << "c2 asks, with its own scheme";
    ASSERT_EQ(none.leftFloat.size(), 1U);
    EXPECT_THAT(none.leftFloat[0].reason, HasSubstr("module_name_configs 'c1'"));

    const Placement here = placed(graph, with("coreai-w8a8", {"module:c1=float"}));
    EXPECT_THAT(ids(here), Not(Contains("c1/weight")));
    EXPECT_THAT(readersOf(graph, here, "x/out"), ElementsAre("add"));
    EXPECT_EQ(specAt(here, "r1/out"), specAt(all, "r1/out")) << "nothing else changes";
    ASSERT_EQ(here.leftFloat.size(), 1U);
    EXPECT_THAT(here.leftFloat[0].reason, HasSubstr("float here"));

    const Placement relu = placed(graph, with("coreai-w8a8", {"module:r1=float"}));
    EXPECT_THAT(ids(relu), Not(Contains("r1/out"))) << "its result passes through";
    const Placement input = placed(graph, with("coreai-w8a8", {"module:c2/in=float"}));
    EXPECT_THAT(ids(input), Not(Contains("r1/out"))) << "no reader is left";
    const Placement edge = placed(graph, with("coreai-w8a8", {"op:add/in[1]=float"}));
    EXPECT_THAT(readersOf(graph, edge, "x/out"), ElementsAre("conv2d"));
    EXPECT_THAT(readersOf(graph, edge, "c2/out"), ElementsAre("add"));
}

TEST(PlaceRecipe, SpecsByRole)
{
    const Graph graph = residual();
    const Placement weight = placed(graph, with("coreai-w8a8", {"module:head\\.fc=weight=int4:sym:block8"}));
    EXPECT_EQ(specAt(weight, "head.fc/weight"), "int4 symmetric per block of 8, last batch");
    EXPECT_EQ(specAt(weight, "c1/weight"), "int8 symmetric per channel, last batch");
    EXPECT_EQ(specAt(weight, "head.fc/out"), "int8 symmetric per tensor, moving average");
    const Placement act = placed(graph, with("coreai-w8a8", {"op:conv2d_1=out=uint8:affine,range=-2..2"}));
    EXPECT_EQ(specAt(act, "c2/out"), "uint8 affine per tensor, moving average");
    for (const PlacedSite &site : act.sites)
        if (site.id == "c2/out") {
            EXPECT_EQ(act.observers[static_cast<std::size_t>(site.instance)].spec.low, -2.0);
            EXPECT_EQ(act.observers[static_cast<std::size_t>(site.instance)].spec.high, 2.0);
        }
    const Placement wide = placed(graph, with("coreai-w8a8", {"type:Conv2d=weight=int16:sym:channel"}));
    EXPECT_THAT(specAt(wide, "c1/weight"), HasSubstr("int16 symmetric per channel"))
        << "what coreai-opt has no word for is placed all the same";
    const Placement torchao = placed(graph, with("xnnpack-static", {"module:c1=weight=int4:sym:channel"}));
    EXPECT_THAT(specAt(torchao, "c1/weight"), HasSubstr("int4"));
    EXPECT_THAT(specAt(torchao, "c2/weight"), HasSubstr("int8"));
}

TEST(PlaceRecipe, SaysWhatChangesNothing)
{
    const Graph graph = residual();
    const Placement placement = placed(graph, with("coreai-w8", {"module:r1=float"}));
    EXPECT_THAT(placement.warnings, ElementsAre(HasSubstr("module:r1=float: no effect")));
    const auto missing = placeRecipe(graph, with("coreai-w8", {"module:nope=none"}));
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().code, ErrorCode::Usage);
    auto idle = parseRecipe("quantization_config: {module_name_configs: {c3: null}, module_type_configs: "
                            "{torch.nn.Linear: null}}",
                            "q.yaml");
    EXPECT_THAT(placed(graph, *idle).warnings,
                ElementsAre(AllOf(HasSubstr("module_name_configs 'c3'"), HasSubstr("nearest: c1")),
                            AllOf(HasSubstr("torch.nn.Linear"), HasSubstr("torch.nn.modules.linear.Linear"))));
}

TEST(PlaceRecipe, Palettes)
{
    const Graph graph = residual();
    const Placement placement = placed(graph, preset("coreai-palette-4"));
    EXPECT_THAT(ids(placement), ElementsAre("c1/weight", "c2/weight", "head.fc/weight"));
    EXPECT_EQ(specAt(placement, "c1/weight"), "4-bit palette");
    const Placement groups = placed(graph, preset("coreai-palette-2-g2:corrected"));
    EXPECT_THAT(ids(groups), ElementsAre("c1/weight", "c2/weight"));
    EXPECT_EQ(specAt(groups, "c1/weight"), "2-bit palette, one table per 2 channels of axis 0, exact");
    ASSERT_EQ(groups.leftFloat.size(), 1U);
    EXPECT_THAT(groups.leftFloat[0].reason, HasSubstr("3 along axis 0 is not divisible by groups of 2"));
    EXPECT_THAT(ids(placed(graph, with("coreai-palette-4", {"module:c1=none"}))),
                ElementsAre("c2/weight", "head.fc/weight"));
    EXPECT_THAT(ids(placed(graph, with("coreai-palette-4", {"module:c1=float"}))),
                ElementsAre("c2/weight", "head.fc/weight"));
}

std::vector<std::string> changeTexts(const PlacementDiff &diff)
{
    std::vector<std::string> result;
    for (const PlacementChange &change : diff.changes)
        result.push_back(change.id + " " + siteChangeName(change.kind) + ": " + change.text);
    return result;
}

TEST(PlacementDiff, SaysWhatAppearsVanishesAndChanges)
{
    const Graph graph = residual();
    const Placement all = placed(graph, preset("coreai-w8a8"));
    EXPECT_TRUE(comparePlacements(graph, all, all).empty());
    EXPECT_EQ(comparePlacements(graph, all, all).same, 9);
    const PlacementDiff skip = comparePlacements(graph, all, placed(graph, with("coreai-w8a8", {"module:c1=none"})));
    EXPECT_THAT(
        changeTexts(skip),
        UnorderedElementsAre(
            "c1/weight vanishes: int8 symmetric per channel, last batch, axis 0 -> float",
            "x/out changes: read by conv2d, add -> add",
            "r1/out changes: int8 affine per tensor, moving average -> int8 symmetric per tensor, moving average"));
    EXPECT_THAT(skip.notes, ElementsAre(AllOf(HasSubstr("conv2d: its weight becomes float"), HasSubstr("declines"))));
    const PlacementDiff back = comparePlacements(graph, placed(graph, preset("coreai-w8")), all);
    EXPECT_EQ(back.changes.size(), 6U) << "the activations appear, the weights stay";
    EXPECT_EQ(back.same, 3);
}

// Exported text, placed alone, gives the same sites.
void expectExportPlacesTheSame(const Graph &graph, const Recipe &recipe)
{
    const auto text = exportCoreAiOpt(recipe, &graph);
    ASSERT_TRUE(text.has_value()) << text.error().text();
    const auto again = parseRecipe(*text, "export.yaml");
    ASSERT_TRUE(again.has_value()) << again.error().text() << *text;
    EXPECT_THAT(again->overrides, IsEmpty());
    const auto diff = comparePlacements(graph, placed(graph, recipe), placed(graph, *again));
    EXPECT_THAT(changeTexts(diff), IsEmpty()) << *text;
}

TEST(Export, CoreAiOverridesBecomeEntries)
{
    const Graph graph = residual();
    for (const char *change :
         {"module:c1=none", "module:head=none", "type:Conv2d=none", "op:conv2d_1=none", "optype:aten.conv2d=none",
          "module:c[12]=weight=int4:sym:channel", "module:head=weight=int4:sym:block8", "op:add=out=uint8:affine",
          "type:Linear=act=int8:affine", "module:.*=weight=int4:sym:channel", "optype:aten.add=in[1]=uint8:affine",
          "module:c1/weight=int2:sym:channel"})
        expectExportPlacesTheSame(graph, with("coreai-w8a8", {change}));
    expectExportPlacesTheSame(graph, with("coreai-w8a8", {"module:.*=weight=int4:sym:channel", "module:c1=none",
                                                          "op:conv2d_1=weight=int2:sym:channel", "type:Linear=none"}));
    expectExportPlacesTheSame(graph, with("coreai-w8a8", {"module:c2/weight=float"})); // here both meanings agree
    const auto text = exportCoreAiOpt(with("coreai-w8a8", {"module:c1=none"}), &graph);
    EXPECT_THAT(*text, HasSubstr("module_name_configs:\n    c1: null"));
}

TEST(Export, WhatCoreAiCannotSayIsAnError)
{
    const Graph graph = residual();
    const auto refusal = [&](const Recipe &recipe, const Graph *g) {
        const auto text = exportCoreAiOpt(recipe, g);
        EXPECT_FALSE(text.has_value()) << *text;
        return text ? std::string() : text.error().text();
    };
    EXPECT_THAT(refusal(with("coreai-w8a8", {"module:c1=float"}), &graph),
                AllOf(HasSubstr("module:c1=float"), HasSubstr("this reader only"), HasSubstr("r1/out")));
    EXPECT_THAT(refusal(with("coreai-w8a8", {"module:c1=weight=int16:sym"}), &graph), HasSubstr("no type int16"));
    EXPECT_THAT(refusal(preset("coreai-w8a8:corrected"), &graph), HasSubstr("corrected"));
    EXPECT_THAT(refusal(preset("xnnpack-static"), &graph), HasSubstr("--format torchao"));
    EXPECT_THAT(refusal(with("coreai-w8a8", {"type:Conv2d=none"}), nullptr), HasSubstr("full name"));
    EXPECT_THAT(refusal(with("coreai-palette-4", {"module:c1=weight=int4:sym"}), nullptr), HasSubstr("lookup tables"));
}

TEST(Export, WithoutAModel)
{
    const auto text = exportCoreAiOpt(
        with("coreai-w8a8", {"module:c1=none", "op:conv2d_1=weight=int4:sym:channel", "optype:aten.add=out=float"}));
    ASSERT_FALSE(text.has_value()) << "float here needs the model";
    const auto good = exportCoreAiOpt(with("coreai-w8a8", {"module:c1=none", "op:conv2d_1=weight=int4:sym:channel",
                                                           "type:torch.nn.modules.linear.Linear=none"}));
    ASSERT_FALSE(good.has_value()) << "the class may hold layers that c1's entry governs: only the model tells";
    const auto plain = exportCoreAiOpt(with("coreai-w8a8", {"op:conv2d_1=weight=int4:sym:channel", "module:c1=none"}));
    ASSERT_TRUE(plain.has_value()) << plain.error().text();
    const auto config = parseRecipe(*plain, "x.yaml");
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(config->coreAi.moduleNames[0].first, "c1");
    EXPECT_EQ(config->coreAi.global.opNames[0].first, "conv2d_1");
    EXPECT_EQ(config->coreAi.global.opNames[0].second.states[0].second->type, ElementType::Int4);
}

TEST(Export, PythonHoldsTheSameConfiguration)
{
    const auto text = exportCoreAiPython(with("coreai-w4-block32", {"module:c1=none"}));
    ASSERT_TRUE(text.has_value()) << text.error().text();
    EXPECT_THAT(*text, AllOf(HasSubstr("from coreai_opt.quantization import QuantizerConfig"),
                             HasSubstr("def to_quantizer_config():"), HasSubstr("\"c1\": None"),
                             HasSubstr("\"block_size\": 32"), HasSubstr("\"float_range\": [None, None]")));
    EXPECT_THAT(*exportCoreAiPython(preset("coreai-palette-4")), HasSubstr("def to_palettizer_config():"));
}

TEST(Export, TorchaoEntries)
{
    const Graph graph = residual();
    const auto text = exportTorchao(
        with("xnnpack-static", {"module:c1=none", "op:add/in[1]=float", "module:c2=weight=int4:sym:channel"}), &graph);
    ASSERT_TRUE(text.has_value()) << text.error().text();
    const auto json = nlohmann::json::parse(*text);
    EXPECT_EQ(json["dblame_recipe"], 1);
    EXPECT_EQ(json["quantizer"], "XNNPACKQuantizer");
    EXPECT_EQ(json["options"]["is_per_channel"], true);
    ASSERT_EQ(json["entries"].size(), 3U);
    EXPECT_EQ(json["entries"][0]["match"]["module"], "c1");
    EXPECT_EQ(json["entries"][0]["role"], "all");
    EXPECT_EQ(json["entries"][0]["meaning"], "as_quantizer");
    EXPECT_TRUE(json["entries"][0]["spec"].is_null());
    EXPECT_EQ(json["entries"][0]["operators"][0]["module"], "c1");
    EXPECT_EQ(json["entries"][0]["operators"][0]["op"], "aten.conv2d.default");
    EXPECT_EQ(json["entries"][0]["operators"][0]["ordinal"], 0);
    EXPECT_EQ(json["entries"][1]["role"], "in[1]");
    EXPECT_EQ(json["entries"][1]["meaning"], "float_here");
    const auto &spec = json["entries"][2]["spec"];
    EXPECT_EQ(spec["dtype"], "torch.int8");
    EXPECT_EQ(spec["quant_min"], -7);
    EXPECT_EQ(spec["quant_max"], 7);
    EXPECT_EQ(spec["qscheme"], "torch.per_channel_symmetric");
    EXPECT_EQ(spec["ch_axis"], 0);
    EXPECT_EQ(spec["observer"], "PerChannelMinMaxObserver");
    EXPECT_EQ(spec["eps"], 1.0 / 4096.0);
    EXPECT_THAT(exportTorchao(with("xnnpack-static", {"module:c1=weight=int4:sym:block8"}), &graph).error().text(),
                HasSubstr("per-tensor and per-channel"));
    EXPECT_THAT(exportTorchao(preset("coreai-w8"), &graph).error().text(), HasSubstr("--format coreai-opt"));
}

} // namespace

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/coreai_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/yaml_tree.h"

namespace dblame
{

namespace
{

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string fileText(const std::string &name)
{
    std::ifstream file(std::string(DBLAME_TEST_DATA) + "/quantizer/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

Result<CoreAiConfig> parsed(const std::string &text)
{
    std::vector<std::string> notes;
    return parseCoreAiConfig(text, "q.yaml", notes);
}

Result<PaletteConfig> parsedPalettes(const std::string &text)
{
    std::vector<std::string> notes;
    return parsePaletteConfig(text, "p.yaml", notes);
}

// The message of a file that is refused.
std::string refusal(const std::string &text)
{
    const auto config = parsed(text);
    EXPECT_FALSE(config.has_value()) << text;
    if (config)
        return {};
    EXPECT_EQ(config.error().code, ErrorCode::Unreadable);
    return config.error().text();
}

std::string paletteRefusal(const std::string &text)
{
    const auto config = parsedPalettes(text);
    EXPECT_FALSE(config.has_value()) << text;
    return config ? std::string() : config.error().text();
}

template <class T>
const T *entry(const KeyedList<T> &list, const std::string &key)
{
    for (const auto &[name, value] : list)
        if (name == key)
            return &value;
    return nullptr;
}

// One spec, inside the smallest file.
std::string withSpec(const std::string &spec)
{
    return "quantization_config:\n  global_config:\n    op_state_spec:\n      weight: " + spec + "\n";
}

CoreAiSpec specOf(const std::string &spec)
{
    const auto config = parsed(withSpec(spec));
    EXPECT_TRUE(config.has_value()) << (config ? "" : config.error().text());
    const auto *weight = config ? entry(config->global.op.states, "weight") : nullptr;
    return weight && *weight ? **weight : CoreAiSpec{};
}

TEST(CoreAiConfig, DefaultsAreW8A8)
{
    const CoreAiConfig config;
    EXPECT_EQ(config.mode, CoreAiMode::Graph);
    ASSERT_EQ(config.global.op.inputs.size(), 1U);
    EXPECT_EQ(config.global.op.inputs[0].first, "*");
    const TensorSpec activation = tensorSpecOf(*config.global.op.inputs[0].second, false);
    EXPECT_EQ(activation.text(), "int8 symmetric per tensor, moving average");
    EXPECT_EQ(activation.quantMin, -128);
    EXPECT_EQ(activation.rule, QparamRule::CoreAi);
    EXPECT_EQ(activation.arithmetic, Arithmetic::Division);
    EXPECT_EQ(activation.eps, 1.0 / 8388608.0);
    EXPECT_EQ(config.global.op.states[0].first, "weight");
    const TensorSpec weight = tensorSpecOf(*config.global.op.states[0].second, true);
    EXPECT_EQ(weight.text(), "int8 symmetric per channel, last batch");
    EXPECT_EQ(weight.axis, 0);
    EXPECT_EQ(*parsed("quantization_config: {}"), config);
}

TEST(CoreAiConfig, ReadsTheFullExample)
{
    std::vector<std::string> notes;
    const auto read = parseCoreAiConfig(fileText("coreai_quantizer_example.yaml"), "example.yaml", notes);
    ASSERT_TRUE(read.has_value()) << read.error().text();
    EXPECT_THAT(notes, IsEmpty());
    const CoreAiConfig &config = *read;
    EXPECT_FALSE(config.preservedAttributes.has_value());
    ASSERT_EQ(config.moduleNames.size(), 3U);
    EXPECT_EQ(config.moduleNames[0].first, "blk\\..*");
    EXPECT_EQ(config.moduleNames[1].first, "blk\\.c1");
    EXPECT_EQ(config.moduleNames[1].second, CoreAiModuleConfig::declined());
    EXPECT_EQ(config.moduleNames[0].second.op.outputs, declinedSpecs());
    const auto *add = entry(config.global.opTypes, "add");
    ASSERT_NE(add, nullptr);
    EXPECT_EQ(*add, CoreAiOpConfig::declined());
    const auto *linear = entry(config.global.opTypes, "linear");
    ASSERT_NE(linear, nullptr);
    EXPECT_EQ(linear->inputs[0].first, "0");
    ASSERT_EQ(linear->states.size(), 2U);
    EXPECT_EQ(linear->states[0].second->type, ElementType::Int4);
    EXPECT_EQ(linear->states[0].second->scheme, Scheme::SymmetricWithClipping);
    EXPECT_EQ(linear->states[0].second->granularity.blockSizes, std::vector<std::int64_t>{4});
    EXPECT_EQ(linear->states[0].second->granularity.axis, 1);
    EXPECT_FALSE(linear->states[1].second.has_value()) << "bias: null declines";
    const auto *byName = entry(config.global.opNames, "conv2d_[0-9]+");
    ASSERT_NE(byName, nullptr);
    EXPECT_EQ(byName->inputs[0].second->calculator, CoreAiCalculator::MovingAverage);
    ASSERT_TRUE(config.global.qatSchedule.has_value());
    EXPECT_EQ(config.global.qatSchedule->enableFakeQuant, 100);
    EXPECT_EQ(config.global.qatSchedule->disableObserver, 500);
    const auto *conv = entry(config.moduleTypes, "torch.nn.modules.conv.Conv2d");
    ASSERT_NE(conv, nullptr);
    EXPECT_EQ(conv->op.states[0].first, "*");
    EXPECT_EQ(conv->op.inputs, CoreAiOpConfig{}.inputs) << "what is left out is W8A8, not the parent's value";
    const auto *fc = entry(config.moduleNames, "fc");
    ASSERT_NE(fc, nullptr);
    EXPECT_EQ(fc->moduleInputs[0].first, "0");
    EXPECT_FALSE(fc->moduleOutputs[0].second.has_value());
    EXPECT_EQ(fc->moduleStates[0].second->calculator, CoreAiCalculator::Static);
}

TEST(CoreAiConfig, WrittenTextReadsBackAsTheSame)
{
    for (const char *name : {"coreai_quantizer_example.yaml"}) {
        const auto config = parsed(fileText(name));
        ASSERT_TRUE(config.has_value());
        const auto again = parsed(coreAiConfigText(*config));
        ASSERT_TRUE(again.has_value()) << again.error().text() << "\n" << coreAiConfigText(*config);
        EXPECT_EQ(*again, *config);
    }
    CoreAiConfig config = coreAiWeightOnly(ElementType::Int4, 32);
    config.mode = CoreAiMode::Eager;
    config.preservedAttributes = {"a b", "yes", "0"};
    CoreAiSpec spec;
    spec.type = ElementType::Float4E2M1;
    spec.powerOfTwoScale = true;
    spec.low = -1e-5;
    spec.high = 3.0;
    spec.granularity.kind = Granularity::PerBlock;
    spec.granularity.perDimension = true;
    spec.granularity.blockSizes = {1, -1, 16};
    CoreAiModuleConfig module;
    module.op.inputs = {{"*", spec}, {"3", std::nullopt}};
    module.op.outputs = {};
    module.moduleOutputs = declinedSpecs();
    module.opNames = {{"(a|b)\\d \"x\" # :", CoreAiOpConfig::declined()}, {"null", CoreAiOpConfig{}}};
    config.moduleNames = {
        {"0", module}, {"layer\\.[0-9]+", CoreAiModuleConfig::declined()}, {"", CoreAiModuleConfig{}}};
    const auto again = parsed(coreAiConfigText(config));
    ASSERT_TRUE(again.has_value()) << again.error().text() << "\n" << coreAiConfigText(config);
    EXPECT_EQ(*again, config) << coreAiConfigText(config);
}

TEST(CoreAiConfig, SpecFields)
{
    const CoreAiSpec bare = specOf("{}");
    EXPECT_EQ(bare, CoreAiSpec{});
    EXPECT_EQ(tensorSpecOf(bare, true).observer, ObserverKind::LastBatch);
    EXPECT_EQ(tensorSpecOf(bare, false).observer, ObserverKind::MovingAverage);
    const CoreAiSpec full = specOf("{dtype: uint4, qscheme: asymmetric, qformulation: minval, granularity: {type: "
                                   "per_channel, axis: -1}, qparam_calculator_cls: global_minmax, float_range: [-1, "
                                   "null]}");
    EXPECT_EQ(full.type, ElementType::UInt4);
    EXPECT_EQ(full.scheme, Scheme::Affine);
    EXPECT_TRUE(full.minValue);
    EXPECT_EQ(full.granularity.axis, -1);
    EXPECT_EQ(full.calculator, CoreAiCalculator::GlobalMinMax);
    EXPECT_EQ(full.low, -1.0);
    EXPECT_FALSE(full.high.has_value());
    const TensorSpec tensor = tensorSpecOf(full, true);
    EXPECT_EQ(tensor.quantMin, 0);
    EXPECT_EQ(tensor.quantMax, 15);
    EXPECT_EQ(tensor.observer, ObserverKind::MinMax);
    EXPECT_EQ(tensorSpecOf(specOf("{dtype: int4, qscheme: symmetric_with_clipping}"), true).quantMin, -7);
    EXPECT_EQ(specOf("{dtype: float8_e4m3}").type, ElementType::Float8E4M3);
    EXPECT_TRUE(specOf("{dtype: float4_e2m1fn}").powerOfTwoScale) << "implied";
    EXPECT_TRUE(specOf("{scale_dtype: float8_e8m0}").powerOfTwoScale);
    EXPECT_EQ(specOf("{granularity: {type: per_channel, axis: '1'}}").granularity.axis, 1);
}

TEST(CoreAiConfig, RefusesWhatThePeerRefuses)
{
    EXPECT_THAT(refusal("quantization_config: {}\nextra: 1\n"),
                AllOf(HasSubstr("q.yaml:2"), HasSubstr("'extra'"), HasSubstr("quantization_spec")));
    EXPECT_THAT(refusal("quantization_spec: {}\n"), HasSubstr("needs the key quantization_config"));
    EXPECT_THAT(refusal(""), HasSubstr("is empty"));
    EXPECT_THAT(refusal("quantization_config:\n"), HasSubstr("must be a mapping, not null"));
    EXPECT_THAT(refusal("quantization_config:\n  globl_config: null\n"),
                AllOf(HasSubstr("q.yaml:2"), HasSubstr("'globl_config'"), HasSubstr("nearest: global_config")));
    EXPECT_THAT(refusal("quantization_config: {global_config: {op_typ_config: {}}}"), HasSubstr("op_type_config"));
    EXPECT_THAT(refusal(withSpec("{dtype: torch.int8}")),
                AllOf(HasSubstr("q.yaml:4"), HasSubstr("leave out 'torch.'")));
    EXPECT_THAT(refusal(withSpec("{dtype: int3}")), HasSubstr("dtype must be"));
    EXPECT_THAT(refusal(withSpec("{qscheme: Symmetric}")), HasSubstr("symmetric_with_clipping"));
    EXPECT_THAT(refusal(withSpec("{granularity: per_tensor}")), HasSubstr("granularity must be a mapping"));
    EXPECT_THAT(refusal(withSpec("{granularity: {axis: 0}}")), HasSubstr("needs its type"));
    EXPECT_THAT(refusal(withSpec("{granularity: {type: per_block}}")), HasSubstr("block_size"));
    EXPECT_THAT(refusal(withSpec("{granularity: {type: per_block, block_size: 0}}")), HasSubstr("at least 1"));
    EXPECT_THAT(refusal(withSpec("{granularity: {type: per_block, axis: 1, block_size: [1, 2]}}")),
                HasSubstr("leave out axis"));
    EXPECT_THAT(refusal(withSpec("{granularity: {type: per_tensor, axis: 0}}")), HasSubstr("no axis"));
    EXPECT_THAT(refusal(withSpec("{granularity: {type: per_channel, block_size: 2}}")), HasSubstr("per_block"));
    EXPECT_THAT(refusal(withSpec("{float_range: [-1e-4, 1]}")), HasSubstr("1.0e-04")) << "YAML 1.1: text";
    EXPECT_THAT(refusal(withSpec("{float_range: [1, 2]}")), HasSubstr("not be above 0"));
    EXPECT_THAT(refusal(withSpec("{float_range: [-2, -1]}")), HasSubstr("not be below 0"));
    EXPECT_THAT(refusal(withSpec("{float_range: [0, 0]}")), HasSubstr("below its second"));
    EXPECT_THAT(refusal(withSpec("{dtype: float8_e4m3fn, qscheme: asymmetric}")), HasSubstr("qscheme symmetric"));
    EXPECT_THAT(refusal(withSpec("{dtype: int4, scale_dtype: float8_e8m0fnu}")), HasSubstr("scale_dtype"));
    EXPECT_THAT(refusal(withSpec("{qparam_calculator_cls: dynamic, qscheme: symmetric_with_clipping}")),
                HasSubstr("dynamic"));
    EXPECT_THAT(refusal(withSpec("{fake_quantize_cls: mine}")), HasSubstr("must be default"));
    EXPECT_THAT(refusal("quantization_config: {module_type_configs: {Linear: null}}"), HasSubstr("full class names"));
    EXPECT_THAT(refusal("quantization_config: {module_name_configs: {0: null}}"), HasSubstr("in quotes: \"0\""));
    EXPECT_THAT(refusal("quantization_config: {module_name_configs: {\"*\": null}}"), HasSubstr("nothing to repeat"));
    EXPECT_THAT(refusal("quantization_config: {module_name_configs: {\"(\": null}}"), HasSubstr("'(' without ')'"));
    EXPECT_THAT(refusal("quantization_config: {global_config: {module_input_spec: {0: {}}}}"),
                HasSubstr("module_name_configs or module_type_configs"));
    EXPECT_THAT(refusal("quantization_config: {global_config: {op_input_spec: {0: {}, '0': null}}}"),
                HasSubstr("given twice"));
    EXPECT_THAT(refusal("quantization_config: {execution_mode: EAGER}"), HasSubstr("graph, eager"));
    EXPECT_THAT(refusal("quantization_config: {execution_mode: eager, kv_cache_quant_configs: {c: "
                        "{op_quantizer_config: {op_input_spec: {1: {}}, op_output_spec: null, op_state_spec: null}}}}"),
                HasSubstr("execution_mode graph"));
    EXPECT_THAT(refusal("quantization_config: {kv_cache_quant_configs: {c: {op_quantizer_config: {op_input_spec: "
                        "{1: {}}}}}}"),
                HasSubstr("must be null"));
    EXPECT_THAT(refusal("quantization_config: {global_config: {qat_schedule: {enable_observer: 3}}}"),
                HasSubstr("enable_fake_quant"));
    EXPECT_THAT(refusal("quantization_config: [1"), HasSubstr("no YAML"));
    EXPECT_TRUE(parsed("quantization_config: {execution_mode: pt2e}").has_value()) << "an old name";
}

TEST(CoreAiConfig, WhatThePeerDropsIsNoted)
{
    std::vector<std::string> notes;
    const auto config = parseCoreAiConfig(withSpec("{dtype: int8, qsheme: asymmetric}"), "q.yaml", notes);
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(config->global.op.states[0].second->scheme, Scheme::Symmetric);
    EXPECT_THAT(notes, ElementsAre(AllOf(HasSubstr("q.yaml:4"), HasSubstr("'qsheme'"), HasSubstr("ignored"),
                                         HasSubstr("nearest: qscheme"))));
}

TEST(CoreAiConfig, NullAndEmptyDiffer)
{
    const auto config = parsed("quantization_config: {global_config: {op_input_spec: null, op_output_spec: {}}}");
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(config->global.op.inputs, declinedSpecs());
    EXPECT_THAT(config->global.op.outputs, IsEmpty()) << "{} has no opinion";
    EXPECT_EQ(config->global.op.states, CoreAiOpConfig{}.states);
    const auto nothing = parsed("quantization_config: {global_config: null}");
    ASSERT_TRUE(nothing.has_value());
    EXPECT_EQ(nothing->global, CoreAiModuleConfig::declined());
}

TEST(CoreAiConfig, SpecsOfTheObserversAndBack)
{
    for (const char *text :
         {"{dtype: int4, granularity: {type: per_block, axis: null, block_size: 32}, qparam_calculator_cls: static}",
          "{dtype: float4_e2m1fn_x2, granularity: {type: per_block, axis: 1, block_size: 32}, qparam_calculator_cls: "
          "static}",
          "{dtype: uint8, qscheme: asymmetric, qformulation: minval, qparam_calculator_cls: moving_average}",
          "{dtype: int8, qscheme: symmetric_with_clipping, granularity: {type: per_channel, axis: 1}, "
          "qparam_calculator_cls: global_minmax, float_range: [-2.5, 4]}",
          "{dtype: int8, granularity: {type: per_block, block_size: [2, -1]}, qparam_calculator_cls: dynamic}"}) {
        const CoreAiSpec spec = specOf(text);
        const auto back = coreAiSpecOf(tensorSpecOf(spec, true));
        ASSERT_TRUE(back.has_value()) << back.error().text();
        EXPECT_EQ(*back, spec) << text;
    }
    TensorSpec other = tensorSpecOf(CoreAiSpec{}, true);
    other.type = ElementType::Int16;
    EXPECT_THAT(coreAiSpecOf(other).error().text(), HasSubstr("no type int16"));
    other = tensorSpecOf(CoreAiSpec{}, false);
    other.observer = ObserverKind::Histogram;
    EXPECT_THAT(coreAiSpecOf(other).error().text(), HasSubstr("histogram"));
    other = tensorSpecOf(CoreAiSpec{}, false);
    other.granularity = Granularity::PerToken;
    EXPECT_THAT(coreAiSpecOf(other).error().text(), HasSubstr("per token"));
    other = tensorSpecOf(CoreAiSpec{}, true);
    other.quantMin = -127;
    EXPECT_EQ(coreAiSpecOf(other)->scheme, Scheme::SymmetricWithClipping) << "the same grid under its name there";
    other.quantMin = -100;
    EXPECT_THAT(coreAiSpecOf(other).error().text(), HasSubstr("-100..127"));
}

TEST(PaletteConfig, ReadsTheFullExampleAndWritesIt)
{
    std::vector<std::string> notes;
    const auto read = parsePaletteConfig(fileText("coreai_palettizer_example.yaml"), "example.yaml", notes);
    ASSERT_TRUE(read.has_value()) << read.error().text();
    EXPECT_THAT(notes, IsEmpty());
    ASSERT_EQ(read->global.op.states.size(), 1U);
    const PaletteWeightSpec &spec = *read->global.op.states[0].second;
    EXPECT_EQ(spec.bits, 4);
    EXPECT_EQ(spec.groupSize, 4);
    EXPECT_EQ(spec.axis, 0);
    ASSERT_TRUE(spec.lut.has_value());
    EXPECT_EQ(spec.lut->type, ElementType::Int8);
    EXPECT_EQ(*entry(read->global.opTypes, "linear"), PaletteOpConfig::declined());
    EXPECT_TRUE(read->global.fast);
    EXPECT_EQ(read->global.enableFakePalettize, 0);
    EXPECT_EQ(entry(read->moduleTypes, "torch.nn.modules.linear.Linear")->op.states[0].second->bits, 8);
    EXPECT_EQ(*entry(read->moduleNames, "0"), PaletteModuleConfig::declined());
    const auto again = parsedPalettes(paletteConfigText(*read));
    ASSERT_TRUE(again.has_value()) << again.error().text() << paletteConfigText(*read);
    EXPECT_EQ(*again, *read);
}

TEST(PaletteConfig, Defaults)
{
    const auto config = parsedPalettes("kmeans_palettization_config: {}");
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(*config, PaletteConfig{});
    ASSERT_EQ(config->global.op.states.size(), 2U);
    EXPECT_EQ(config->global.op.states[1].first, "in_proj_weight");
    EXPECT_EQ(config->global.op.states[0].second->bits, 4);
    EXPECT_EQ(config->global.op.states[0].second->groupSize, 0);
}

TEST(PaletteConfig, RefusesWhatThePeerRefuses)
{
    const auto withPalette = [](const std::string &spec) {
        return "kmeans_palettization_config:\n  global_config:\n    op_state_spec:\n      weight: " + spec + "\n";
    };
    EXPECT_THAT(paletteRefusal(withPalette("{n_bits: 5}")),
                AllOf(HasSubstr("p.yaml:4"), HasSubstr("1, 2, 3, 4, 6 or 8")));
    EXPECT_THAT(paletteRefusal(withPalette("{n_bits: '4'}")), HasSubstr("1, 2, 3, 4, 6 or 8"));
    EXPECT_THAT(paletteRefusal(withPalette("{n_bit: 4}")), HasSubstr("nearest: n_bits"));
    EXPECT_THAT(paletteRefusal(withPalette("{granularity: {type: per_grouped_channel}}")), HasSubstr("group_size"));
    EXPECT_THAT(paletteRefusal(withPalette("{granularity: {type: per_grouped_channel, axis: 2, group_size: 4}}")),
                HasSubstr("0 or 1"));
    EXPECT_THAT(paletteRefusal(withPalette("{cluster_dim: 2}")), HasSubstr("enable_fast_kmeans_mode: false"));
    EXPECT_THAT(paletteRefusal(withPalette("{lut_qspec: {dtype: int4}}")), HasSubstr("lut_qspec"));
    EXPECT_THAT(paletteRefusal(withPalette("{lut_qspec: {dtype: int8, granularity: {type: per_channel, axis: 0}}}")),
                HasSubstr("per_tensor"));
    EXPECT_THAT(paletteRefusal("kmeans_palettization_config: {global_config: {op_input_spec: {'*': {n_bits: 4}}}}"),
                HasSubstr("only weights"));
    EXPECT_THAT(paletteRefusal("kmeans_palettization_config: {global_config: {qat_schedule: {}}}"),
                HasSubstr("'qat_schedule'"));
    EXPECT_THAT(paletteRefusal("kmeans_palettization_config: {global_config: {vector_kmeans_config: {}}}"),
                HasSubstr("cluster_dim above 1"));
    EXPECT_TRUE(
        parsedPalettes("kmeans_palettization_config: {global_config: {op_input_spec: {'*': null}}}").has_value());
}

TEST(YamlTree, ReadsScalarsAsPyYamlDoes)
{
    const auto tree =
        parseYaml("{a: no, b: 1e-4, c: 1.0e-4, d: 0x10, e: '7', f: 1_000, g: 010, h: ~, i: .inf, j: text, "
                  "k: 1.5e3}",
                  "t.yaml");
    ASSERT_TRUE(tree.has_value());
    EXPECT_EQ(tree->find("a")->flag(), false);
    EXPECT_EQ(tree->find("b")->text(), "1e-4");
    EXPECT_EQ(tree->find("c")->number(), 1e-4);
    EXPECT_EQ(tree->find("d")->integer(), 16);
    EXPECT_FALSE(tree->find("e")->integer().has_value());
    EXPECT_EQ(tree->find("e")->text(), "7");
    EXPECT_EQ(tree->find("f")->integer(), 1000);
    EXPECT_EQ(tree->find("g")->integer(), 8);
    EXPECT_TRUE(tree->find("h")->isNull());
    EXPECT_TRUE(std::isinf(*tree->find("i")->number()));
    EXPECT_FALSE(tree->find("j")->number().has_value());
    EXPECT_EQ(tree->find("k")->text(), "1.5e3") << "PyYAML wants the exponent's sign";
}

TEST(YamlTree, MergesAndKeepsTheOrderOfKeys)
{
    const auto tree = parseYaml("base: &b {x: 1, y: 2}\nown: {y: 3, <<: *b, z: 4}\n", "t.yaml");
    ASSERT_TRUE(tree.has_value());
    const YamlNode *own = tree->find("own");
    ASSERT_EQ(own->map.size(), 3U);
    EXPECT_EQ(own->map[0].first.scalar, "x") << "merged keys come first";
    EXPECT_EQ(own->find("y")->integer(), 3) << "but its own value counts";
}

TEST(YamlTree, HostileDocuments)
{
    std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 8; ++i) {
        const std::string last = "*a" + std::to_string(i - 1);
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
        for (int k = 0; k < 9; ++k)
            bomb += ", " + last;
        bomb += "]\n";
    }
    EXPECT_THAT(parseYaml(bomb, "t.yaml").error().text(), HasSubstr("too large"));
    EXPECT_THAT(parseYaml("a: &a [*a]", "t.yaml").error().text(), HasSubstr("deep"));
    EXPECT_THAT(parseYaml(std::string(500, '['), "t.yaml").error().text(), HasSubstr("t.yaml"));
    EXPECT_THAT(parseYaml("a: !python/object:os.system x", "t.yaml").error().text(), HasSubstr("tag"));
    EXPECT_THAT(parseYaml("a: 1\n---\nb: 2\n", "t.yaml").error().text(), HasSubstr("several"));
    EXPECT_THAT(parseYaml("[a]: 1", "t.yaml").error().text(), HasSubstr("key"));
}

} // namespace

} // namespace dblame

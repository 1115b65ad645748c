// SPDX-License-Identifier: GPL-3.0-or-later
//
// Programs of the archive layouts against what torch.export.load says about the same files.
#include <chrono>
#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/readers/node_metadata.h"
#include "readers_support.h"

namespace dblame::test
{
namespace
{

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string kindName(InputKind kind)
{
    switch (kind) {
    case InputKind::User:
        return "USER_INPUT";
    case InputKind::Parameter:
        return "PARAMETER";
    case InputKind::Buffer:
        return "BUFFER";
    case InputKind::TensorConstant:
        return "CONSTANT_TENSOR";
    case InputKind::Constant:
        return "CONSTANT_INPUT";
    case InputKind::CustomObject:
        return "CUSTOM_OBJ";
    case InputKind::Token:
        return "TOKEN";
    }
    return {};
}

std::string kindName(OutputKind kind)
{
    switch (kind) {
    case OutputKind::User:
        return "USER_OUTPUT";
    case OutputKind::BufferMutation:
        return "BUFFER_MUTATION";
    case OutputKind::ParameterMutation:
        return "PARAMETER_MUTATION";
    case OutputKind::InputMutation:
        return "USER_INPUT_MUTATION";
    case OutputKind::Loss:
        return "LOSS_OUTPUT";
    case OutputKind::Gradient:
        return "GRADIENT";
    case OutputKind::Token:
        return "TOKEN";
    }
    return {};
}

void checkTensors(const LoadedModel &model, const nlohmann::json &tensors)
{
    for (const GraphInput &input : model.graph().inputs) {
        if (input.kind != InputKind::Parameter && input.kind != InputKind::Buffer &&
            input.kind != InputKind::TensorConstant)
            continue;
        SCOPED_TRACE(input.target);
        ASSERT_TRUE(tensors.contains(input.target));
        const auto &expected = tensors[input.target];
        const at::Tensor &tensor = model.tensor(input.value);
        ASSERT_TRUE(tensor.defined());
        EXPECT_EQ(dtypeName(fromTorch(tensor.scalar_type())), expected["dtype"].get<std::string>());
        EXPECT_EQ(tensor.sizes().vec(), expected["shape"].get<std::vector<std::int64_t>>());
        EXPECT_EQ(tensor.strides().vec(), expected["stride"].get<std::vector<std::int64_t>>());
        EXPECT_EQ(sha256(tensor), expected["sha256"].get<std::string>());
        const auto stored = model.stored(input.value);
        ASSERT_TRUE(stored.has_value());
        EXPECT_EQ(stored->target, input.target);
        EXPECT_EQ(stored->shape, tensor.sizes().vec());
        EXPECT_FALSE(stored->mapped); // all payloads of the samples are small
    }
}

TEST(ReadersModels, SignatureAndTensorsAreThoseOfTorch)
{
    const nlohmann::json facts = readJson(sample("torch_facts.json"));
    ASSERT_EQ(facts.size(), 40U);
    for (const auto &[file, expected] : facts.items()) {
        SCOPED_TRACE(file);
        const auto model = mustRead(sample(file));
        const Graph &graph = model->graph();
        ASSERT_EQ(graph.inputs.size(), expected["inputs"].size());
        for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
            const GraphInput &input = graph.inputs[i];
            const auto &spec = expected["inputs"][i];
            if (input.kind == InputKind::Constant) { // torch calls it a user input with a constant
                EXPECT_FALSE(input.value.valid());
                EXPECT_EQ(input.target, spec[2].get<std::string>());
                continue;
            }
            EXPECT_EQ(kindName(input.kind), spec[0].get<std::string>());
            if (spec[1].is_string()) {
                EXPECT_EQ(input.target, spec[1].get<std::string>());
            }
            EXPECT_EQ(graph.value(input.value).name, spec[2].get<std::string>());
        }
        ASSERT_EQ(graph.outputs.size(), expected["outputs"].size());
        for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
            const auto &spec = expected["outputs"][i];
            EXPECT_EQ(kindName(graph.outputs[i].kind), spec[0].get<std::string>());
            if (spec[1].is_string()) {
                EXPECT_EQ(graph.outputs[i].target, spec[1].get<std::string>());
            }
            EXPECT_EQ(graph.value(graph.outputs[i].value).name, spec[2].get<std::string>());
        }
        checkTensors(*model, expected["tensors"]);
        EXPECT_EQ(model->info().sha256, sha256(readText(sample(file))));
        EXPECT_EQ(model->info().format, "pt2 archive");
        EXPECT_EQ(model->info().producer, file.starts_with("2.8.0") ? "torch 2.8.0" : "torch 2.13.0");
    }
}

// Every node that the writer saw is there, under its name, with its operator; getitem nodes are values.
TEST(ReadersModels, NodesAreThoseOfTheWriter)
{
    for (const char *folder : {"2.8.0", "2.13.0", "2.13.0-extra"}) {
        const nlohmann::json expected = readJson(sample(std::string(folder) + "/expected.json"));
        for (const auto &[name, entry] : expected["samples"].items()) {
            SCOPED_TRACE(std::string(folder) + "/" + name);
            auto opened = readModel(sample(std::string(folder) + "/" + entry["file"].get<std::string>()), {}, {});
            ASSERT_TRUE(opened.has_value()) << opened.error().text();
            const Graph &graph = (*opened)->graph();
            std::size_t previous = 0, found = 0, inlined = 0;
            for (const auto &node : entry["nodes"]) {
                const std::string target = node["target"].get<std::string>();
                const std::string value = node["name"].get<std::string>();
                if (target == "_operator.getitem") {
                    EXPECT_TRUE(graph.find(value).valid()) << value;
                    continue;
                }
                if (target == "torch.ops.higher_order.wrap_with_set_grad_enabled") {
                    ++inlined; // its nodes stand in the graph instead
                    continue;
                }
                std::string shown = target;
                if (shown.starts_with("torch.ops."))
                    shown = shown.substr(std::string("torch.ops.").size());
                // 2.8 stores no node names: a node is then known by its first output.
                NodeId id = graph.findNode(value);
                while (id.valid() && graph.node(id).target != shown)
                    id = {};
                if (!id.valid())
                    for (std::size_t i = previous; i < graph.nodes.size() && !id.valid(); ++i)
                        if (graph.nodes[i].target == shown)
                            id = NodeId(i);
                ASSERT_TRUE(id.valid()) << value << " " << shown;
                EXPECT_GE(id.get(), previous) << value;
                previous = id.get();
                ++found;
            }
            EXPECT_EQ(found, graph.nodes.size() - 2 * inlined); // the samples' blocks have two nodes
        }
    }
}

TEST(ReadersModels, SampleInputsAreThoseRecorded)
{
    for (const char *folder : {"2.8.0", "2.13.0", "2.13.0-extra"}) {
        const nlohmann::json expected = readJson(sample(std::string(folder) + "/expected.json"));
        for (const auto &[name, entry] : expected["samples"].items()) {
            if (name == "nested_io" || name == "two_models")
                continue; // a user's class; several programs
            SCOPED_TRACE(std::string(folder) + "/" + name);
            const auto model = mustRead(sample(std::string(folder) + "/" + entry["file"].get<std::string>()));
            ASSERT_TRUE(model->info().hasSampleInputs) << model->info().sampleInputsNote;
            std::size_t position = 0;
            for (const auto &input : entry["inputs"]) {
                if (!input.contains("npy"))
                    continue; // baked into the graph
                ASSERT_LT(position, model->m_sampleInputs.size());
                const c10::IValue &value = model->m_sampleInputs[position++];
                ASSERT_TRUE(value.isTensor());
                EXPECT_EQ(sha256(value.toTensor()), input["sha256"].get<std::string>());
            }
            EXPECT_EQ(position, model->m_sampleInputs.size());
        }
    }
}

TEST(ReadersModels, ArgumentsKeepTheirKinds)
{
    const auto model = mustRead(sample("2.13.0/misc.pt2"));
    const Graph &graph = model->graph();
    const auto node = [&](const std::string &name) -> const Node & {
        const NodeId id = graph.findNode(name);
        EXPECT_TRUE(id.valid()) << name;
        return graph.node(id);
    };
    // masked_fill(x, x > ..., inf): non-finite numbers are written as text since 2.7
    const auto *infinite = std::get_if<double>(node("masked_fill").argument("value"));
    ASSERT_NE(infinite, nullptr);
    EXPECT_EQ(*infinite, -std::numeric_limits<double>::infinity());
    const auto *dims = std::get_if<IntListArg>(node("amax").argument("dim"));
    ASSERT_NE(dims, nullptr);
    ASSERT_EQ(dims->values.size(), 1U);
    EXPECT_EQ(std::get<std::int64_t>(dims->values[0]), 1);
    EXPECT_TRUE(std::holds_alternative<ValueListArg>(*node("index").argument("indices")));
    const auto *mode = std::get_if<std::string>(node("div").argument("rounding_mode"));
    ASSERT_NE(mode, nullptr);
    EXPECT_EQ(*mode, "floor");
    const auto *dtype = std::get_if<ScalarTypeArg>(node("to").argument("dtype"));
    ASSERT_NE(dtype, nullptr);
    EXPECT_EQ(dtype->dtype, DType::Float32);
    const Node &split = node("split");
    ASSERT_EQ(split.outputs.size(), 1U);
    EXPECT_EQ(std::get<std::vector<ValueId>>(split.outputs[0]).size(), 2U);
    const Node &topk = node("topk");
    ASSERT_EQ(topk.outputs.size(), 2U);
    const ValueId second = std::get<ValueId>(topk.outputs[1]);
    EXPECT_EQ(graph.value(second).outputIndex, 1);
    EXPECT_EQ(graph.value(second).producer, graph.findNode("topk"));
}

TEST(ReadersModels, SubgraphsComeAlong)
{
    const auto model = mustRead(sample("2.13.0/autocast.pt2"));
    const Graph &graph = model->graph();
    const NodeId wrapper = graph.findNode("linear"); // the FX name; its value is called getitem
    ASSERT_TRUE(wrapper.valid());
    const Node &outer = graph.node(wrapper);
    EXPECT_EQ(outer.target, "higher_order.wrap_with_autocast");
    EXPECT_EQ(graph.value(outer.outputValues().at(0)).name, "getitem");
    ASSERT_GE(outer.inputs.size(), 6U);
    EXPECT_EQ(std::get<std::string>(outer.inputs[0].value), "cpu");
    EXPECT_EQ(std::get<ScalarTypeArg>(outer.inputs[1].value).dtype, DType::BFloat16);
    const std::size_t index = std::get<SubgraphArg>(outer.inputs[4].value).index;
    ASSERT_LT(index, graph.subgraphs.size());
    ASSERT_EQ(graph.subgraphNames.size(), graph.subgraphs.size());
    const Graph &inner = *graph.subgraphs[index];
    ASSERT_FALSE(inner.nodes.empty());
    EXPECT_EQ(inner.nodes[0].target, "aten.linear.default");
    EXPECT_EQ(inner.nodes[0].modulePath(), "fc");
    EXPECT_EQ(inner.inputs.size(), outer.inputs.size() - 5); // its operands, nothing captured
    ASSERT_EQ(inner.outputs.size(), 1U);
    EXPECT_EQ(inner.producer(inner.outputs[0].value)->name, inner.nodes.back().name);
}

// A block without gradients is part of the graph: its result keeps the wrapper's value name.
TEST(ReadersModels, NoGradBlocksAreInlinedAndConstantsBaked)
{
    const auto model = mustRead(sample("2.13.0/grad.pt2")); // y = no_grad(fc(x) + 1); y * scale + bias
    const Graph &graph = model->graph();
    ASSERT_EQ(graph.nodes.size(), 4U);
    EXPECT_EQ(graph.nodes[0].target, "aten.linear.default");
    EXPECT_EQ(graph.nodes[1].target, "aten.add.Tensor");
    EXPECT_EQ(graph.value(graph.nodes[1].outputValues().at(0)).name, "getitem");
    EXPECT_EQ(graph.nodes[0].modulePath(), "fc");
    EXPECT_EQ(graph.nodes[0].inputValues().at(1), graph.find("p_fc_weight"));

    ASSERT_EQ(graph.inputs.size(), 5U);
    EXPECT_EQ(graph.inputs[3].kind, InputKind::Constant);
    EXPECT_EQ(graph.inputs[3].target, "scale");
    EXPECT_EQ(std::get<double>(graph.inputs[3].constant), 4.0);
    EXPECT_EQ(graph.inputs[4].target, "bias");
    EXPECT_EQ(model->m_sampleInputs.size(), 2U); // x and bias, not the baked scale
}

TEST(ReadersModels, NestedArgumentsAndResultsAreLabelled)
{
    const auto model = mustRead(sample("2.13.0-extra/nested_io.pt2"));
    const Graph &graph = model->graph();
    std::vector<std::string> inputs, outputs;
    for (const GraphInput &input : graph.inputs)
        inputs.push_back(input.target);
    for (const GraphOutput &output : graph.outputs)
        outputs.push_back(output.target);
    EXPECT_THAT(inputs, ElementsAre("d.b", "d.a", "p.left", "p.right", "flag", "k"));
    EXPECT_THAT(outputs, ElementsAre("left", "right[0]", "right[1]"));
    EXPECT_THAT(model->info().sampleInputsNote, HasSubstr("make_extra.Pair"));
}

TEST(ReadersModels, SymbolicSizes)
{
    const auto model = mustRead(sample("2.13.0/dynamic.pt2"));
    const Graph &graph = model->graph();
    const Value &x = graph.value(graph.find("x"));
    ASSERT_TRUE(x.meta.has_value());
    ASSERT_EQ(x.meta->sizes.size(), 2U);
    EXPECT_EQ(x.meta->sizes[0].symbol, "s77");
    EXPECT_EQ(x.meta->sizes[0].size, 4);
    EXPECT_EQ(x.meta->sizes[1].symbol, "");
    EXPECT_EQ(x.meta->sizes[1].size, 6);
    EXPECT_EQ(graph.value(graph.find("reshape")).meta->sizes[0].symbol, "2*s77");
    EXPECT_EQ(graph.value(graph.find("reshape")).meta->sizes[0].size, 8);
    EXPECT_FALSE(graph.value(graph.find("sym_size_int_1")).meta.has_value());
    ASSERT_EQ(model->m_symbolRanges.count("s77"), 1U);
    EXPECT_EQ(model->m_symbolRanges.at("s77").lowest, 4);
    EXPECT_EQ(model->m_symbolRanges.at("s77").highest, 64);
    const auto *shape = std::get_if<IntListArg>(graph.node(graph.findNode("reshape")).argument("shape"));
    ASSERT_NE(shape, nullptr);
    EXPECT_EQ(std::get<ValueId>(shape->values[0]), graph.find("mul"));
    EXPECT_EQ(std::get<std::int64_t>(shape->values[1]), 3);
}

TEST(ReadersModels, NamesThatShareAStorageShareIt)
{
    const auto views = mustRead(sample("2.13.0/views.pt2"));
    std::map<const void *, int> storages;
    int stored = 0;
    for (const GraphInput &input : views->graph().inputs)
        if (input.value.valid() && views->tensor(input.value).defined()) {
            ++storages[views->tensor(input.value).storage().unsafeGetStorageImpl()];
            ++stored;
        }
    EXPECT_GT(stored, static_cast<int>(storages.size()));
    EXPECT_GT(stored, 1);
}

TEST(ReadersModels, SeveralProgramsInOneFile)
{
    const std::string file = sample("2.13.0-extra/two_models.pt2");
    const auto first = mustRead(file);
    EXPECT_EQ(first->info().program, "model"); // preferred, and not worth a note
    EXPECT_THAT(first->info().otherPrograms, ElementsAre("second"));
    EXPECT_THAT(first->info().notes, IsEmpty());
    EXPECT_EQ(first->graph().inputs[0].target, "a.weight");
    const auto second = mustRead(file + "#second");
    EXPECT_EQ(second->info().program, "second");
    EXPECT_THAT(second->info().otherPrograms, ElementsAre("model"));
    EXPECT_EQ(second->info().path, file);
    EXPECT_NE(second->graph().nodes.size(), first->graph().nodes.size());

    const TempFolder folder;
    std::vector<ZipMember> members = membersOf(file);
    for (ZipMember &member : members)
        for (const std::string part :
             {"/models/model.", "/weights/model_", "/constants/model_", "/sample_inputs/model."})
            if (const auto at = member.name.find(part); at != std::string::npos)
                member.name.insert(at + part.size() - 1, "_a");
    writeFile(folder.file("renamed.pt2"), makeZip(members));
    const auto renamed = mustRead(folder.file("renamed.pt2"));
    EXPECT_EQ(renamed->info().program, "model_a");
    EXPECT_THAT(renamed->info().notes, ElementsAre(HasSubstr("several programs (model_a, second); opened model_a")));
    const auto none = readModel(file + "#nothing", {}, {});
    ASSERT_FALSE(none.has_value());
    EXPECT_THAT(none.error().message, HasSubstr("no program nothing"));
    EXPECT_THAT(none.error().message, HasSubstr("model, second"));
    EXPECT_EQ(none.error().where, file);
}

TEST(ReadersModels, APathThatExistsWinsOverTheHash)
{
    const TempFolder folder;
    const std::string path = folder.file("a#b.pt2");
    writeFile(path, readText(sample("2.13.0/toy.pt2")));
    EXPECT_EQ(mustRead(path)->info().path, path);
    EXPECT_EQ(mustRead(path + "#model")->info().program, "model");
}

TEST(ReadersModels, MetadataOfNodes)
{
    const auto model = mustRead(sample("2.13.0/toy.pt2"));
    const Graph &graph = model->graph();
    const Node &conv = graph.node(graph.findNode("conv2d"));
    EXPECT_EQ(conv.modulePath(), "conv");
    EXPECT_EQ(conv.moduleType(), "torch.nn.modules.conv.Conv2d");
    EXPECT_EQ(conv.modules.size(), 2U);
    EXPECT_THAT(conv.source, HasSubstr("make_formats.py:")); // not torch's own conv.py below it
    EXPECT_THAT(conv.stackTrace, HasSubstr("conv.py"));
    EXPECT_EQ(conv.torchFn, "conv2d_1;builtin_function_or_method.conv2d");

    const Graph quantized = [] {
        Graph copy;
        auto loaded = mustRead(sample("2.13.0-extra/pt2e_toy.pt2"));
        copy.values = loaded->graph().values;
        copy.nodes = loaded->graph().nodes;
        return copy;
    }();
    const auto byName = [&](const std::string &name) -> const Node & {
        for (const Node &node : quantized.nodes)
            if (node.name == name)
                return node;
        throw std::runtime_error(name);
    };
    EXPECT_THAT(byName("quantize_per_tensor").modules, IsEmpty()); // only the exporter's wrapper stood there
    const Node &relu = byName("relu");
    ASSERT_EQ(relu.provenance.size(), 2U);
    EXPECT_EQ(relu.provenance.front().pass, "Interpreter_Interpreter");
    EXPECT_EQ(relu.provenance.back().name, "relu");
    EXPECT_EQ(relu.provenance.back().target, "aten.relu.default");
    EXPECT_EQ(relu.provenance.back().pass, "ExportedProgram.module()");
    EXPECT_NE(relu.provenance.back().graphId, relu.provenance.front().graphId);
}

TEST(ReadersModels, HistoryAndHandles)
{
    const auto read = [](const std::string &history, const std::string &custom) {
        Node node;
        readNodeMetadata({{"from_node", history}, {"custom", custom}}, node);
        return node;
    };
    const Node node = read(R"j([{"name": "q_1", "target": "q", "graph_id": 3, "pass_name": "Interpreter",
        "from_node": [{"name": "observer", "target": "o", "graph_id": 2, "pass_name": "replace", "action": "create",
        "from_node": [{"name": "relu", "target": "aten.relu.default", "graph_id": 140677591978512,
                       "pass_name": "ExportedProgram.module()", "action": "create", "from_node": []}]}]}])j",
                           R"({"numeric_debug_handle": 7, "_torchdynamo_disable": true})");
    ASSERT_EQ(node.provenance.size(), 3U);
    EXPECT_EQ(node.provenance[0].name, "q_1"); // newest first
    EXPECT_EQ(node.provenance[1].pass, "replace");
    EXPECT_EQ(node.provenance[2].name, "relu");
    EXPECT_EQ(node.provenance[2].graphId, 140677591978512);
    EXPECT_EQ(node.debugHandle, 7);

    // Damaged notes are lost, not the model.
    EXPECT_THAT(read("[{", "{").provenance, IsEmpty());
    EXPECT_FALSE(read("3", R"({"numeric_debug_handle": "seven"})").debugHandle.has_value());
    EXPECT_THAT(read(R"([{"name": "a"}, 3])", "[]").provenance, IsEmpty());
}

TEST(ReadersModels, ModuleStacks)
{
    const auto frames =
        parseModuleStack("L__self__,,torch.export._trace._non_strict_export.<locals>.Wrapper;"
                         "L__self__L__self__,,net.Net;L__self__act@1,block.act,torch.nn.modules.activation.ReLU;"
                         "L__self__fq,fq@2,coreai_opt.FakeQuant;odd;"
                         "L__self__L__self__,,torchao.quantization.pt2e.export_utils.WrapperModule");
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[0].type, "net.Net");
    EXPECT_EQ(frames[1].key, "L__self__act@1");
    EXPECT_EQ(frames[1].path, "block.act");
    EXPECT_EQ(frames[2].key, "L__self__fq@2"); // the call moves from the path to the key
    EXPECT_EQ(frames[2].path, "fq");
    // A user's own class may be called Wrapper; commas may stand in a path.
    const auto own = parseModuleStack("L__self__,,mine.Wrapper;k,getattr(L__self__, \"a,b\"),m.C");
    ASSERT_EQ(own.size(), 2U);
    EXPECT_EQ(own[0].type, "mine.Wrapper");
    EXPECT_EQ(own[1].path, "getattr(L__self__, \"a,b\")");
    EXPECT_EQ(own[1].type, "m.C");
    EXPECT_THAT(parseModuleStack("_empty_nn_module_stack_from_metadata_hook,_empty_nn_module_stack_from_metadata_hook,"
                                 "_empty_nn_module_stack_from_metadata_hook"),
                IsEmpty());
}

TEST(ReadersModels, SourceLines)
{
    EXPECT_EQ(
        sourceLine("File \"/home/u/net.py\", line 41, in forward\n    y = self.fc(x)\n"
                   "  File \"/usr/lib/python3/site-packages/torch/nn/modules/linear.py\", line 134, in forward\n"),
        "net.py:41");
    EXPECT_EQ(sourceLine("  File \"torch/fx/passes/runtime_assert.py\", line 24, in insert\n"), "runtime_assert.py:24");
    EXPECT_EQ(sourceLine("File \"C:\\\\m\\\\net.py\", line 7, in forward"), "net.py:7");
    EXPECT_EQ(sourceLine("NoneType: None"), "");
}

TEST(ReadersModels, SymbolTexts)
{
    EXPECT_EQ(symbolText("Symbol('s0', positive=True, integer=True)"), "s0");
    EXPECT_EQ(symbolText("Mul(Integer(2), Symbol('s0', positive=True, integer=True))"), "2*s0");
    EXPECT_EQ(symbolText("Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))"), "(2*s0) + -1");
    EXPECT_EQ(symbolText("FloorDiv(Symbol('s0', integer=True), Integer(2))"), "s0//2");
    EXPECT_EQ(symbolText("Max(Integer(1), Symbol('u0', integer=True))"), "Max(1, u0)");
    EXPECT_EQ(symbolText("2*s0"), "2*s0");
    EXPECT_EQ(symbolText("Mul(Integer(2), "), "Mul(Integer(2), ");
    std::string deep;
    for (int i = 0; i < 5000; ++i)
        deep += "Mul(";
    EXPECT_EQ(symbolText(deep), deep);
}

TEST(ReadersModels, ProgressReachesTheEndAndCancelStops)
{
    std::uint64_t last = 0, total = 0;
    int calls = 0;
    const auto watch = [&](std::uint64_t done, std::uint64_t all, const char *what) {
        EXPECT_GE(done, last);
        EXPECT_LE(done, all);
        EXPECT_NE(what, nullptr);
        last = done;
        total = all;
        ++calls;
    };
    ASSERT_TRUE(readModel(sample("2.13.0/toy.pt2"), watch, {}).has_value());
    EXPECT_GT(calls, 3);
    EXPECT_GT(last, total / 2);

    std::stop_source stop;
    const auto cancelled = readModel(
        sample("2.13.0/toy.pt2"), [&](std::uint64_t, std::uint64_t, const char *) { stop.request_stop(); },
        stop.get_token());
    ASSERT_FALSE(cancelled.has_value());
    EXPECT_EQ(cancelled.error().code, ErrorCode::Cancelled);
}

TEST(ReadersModels, LargeWeightsStayInThePrivateMapping)
{
    const TempFolder folder;
    const std::string path = folder.file("large.pt2");
    constexpr std::size_t kFloats = std::size_t{4} << 20U; // 16 MiB
    writeFile(path, largeProgram(kFloats));
    const std::string before = sha256(readText(path));
    {
        const auto model = mustRead(path);
        const ValueId weight = model->graph().find("p_w");
        EXPECT_TRUE(model->stored(weight)->mapped);
        EXPECT_EQ(model->stored(weight)->bytes, kFloats * sizeof(float));
        at::Tensor tensor = model->tensor(weight);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 64, 0U);
        EXPECT_EQ(tensor[2048].item<float>(), 2048.0F);
        tensor.mul_(2.0); // in place: private pages, never the file
        EXPECT_EQ(tensor[2048].item<float>(), 4096.0F);
        EXPECT_EQ(mustRead(path)->tensor(weight)[2048].item<float>(), 2048.0F);
    }
    EXPECT_EQ(sha256(readText(path)), before);

    // The tensor keeps the mapping alive without the model.
    at::Tensor survivor = mustRead(path)->tensor(ValueId(0));
    EXPECT_EQ(survivor[3072].item<float>(), 3072.0F);

    const auto old = mustRead(path);
    EXPECT_FALSE(old->fileChanged());
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(5));
    EXPECT_TRUE(old->fileChanged());

    std::filesystem::remove(path);                 // the mapping of the old file must not be cut short
    writeFile(path, largeProgram(kFloats - 1024)); // below the limit: copied
    const auto small = mustRead(path);
    std::filesystem::remove(path);
    EXPECT_FALSE(small->fileChanged()); // nothing of it is mapped
    EXPECT_FALSE(small->stored(ValueId(0))->mapped);
    EXPECT_THAT(small->info().notes, IsEmpty());
}

TEST(ReadersModels, NumbersOfSmallTensors)
{
    const auto model = mustRead(sample("2.13.0-extra/pt2e_toy.pt2"));
    const ValueId scale = model->graph().find("b__scale_0");
    ASSERT_TRUE(scale.valid());
    const auto numbers = model->numbers(scale);
    ASSERT_TRUE(numbers.has_value());
    const at::Tensor tensor = model->tensor(scale).to(at::kDouble);
    ASSERT_EQ(static_cast<std::int64_t>(numbers->size()), tensor.numel());
    EXPECT_EQ((*numbers)[0], tensor.flatten()[0].item<double>());
    EXPECT_FALSE(model->numbers(scale, 1).has_value());
    EXPECT_FALSE(model->numbers(model->graph().find("x")).has_value());
    EXPECT_FALSE(model->stored(ValueId{}).has_value());
}

TEST(ReadersModels, MissingWeightsAreNamedTogether)
{
    const TempFolder folder;
    const std::string path = folder.file("none.pt2");
    const std::string empty = R"({"config": {}})";
    writeFile(path, withMember(sample("2.13.0/toy.pt2"), "data/weights/model_weights_config.json", &empty));
    const auto model = readModel(path, {}, {});
    ASSERT_FALSE(model.has_value());
    for (const char *name : {"parameter conv.weight", "parameter fc.bias", "buffer bn.running_mean", "have no data"})
        EXPECT_THAT(model.error().message, HasSubstr(name));
}

TEST(ReadersModels, DTypesGoThereAndBack)
{
    for (int i = 1; i <= static_cast<int>(DType::QInt32); ++i) {
        const auto dtype = static_cast<DType>(i);
        EXPECT_EQ(fromTorch(toTorch(dtype)), dtype) << dtypeName(dtype);
    }
    EXPECT_EQ(toTorch(DType::Unknown), at::ScalarType::Undefined);
    EXPECT_EQ(fromTorch(at::ScalarType::Undefined), DType::Unknown);
}

} // namespace
} // namespace dblame::test

// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/engine/program_samples.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <nlohmann/json.hpp>

#include "core/engine/program.h"
#include "core/readers/readers.h"
#include "core/readers/sha256.h"

namespace dblame::test
{

namespace
{

using nlohmann::json;

json readExpected(const std::filesystem::path &folder)
{
    std::ifstream in(folder / "expected.json");
    return json::parse(in, nullptr, false);
}

std::string shaOf(const at::Tensor &tensor)
{
    const at::Tensor dense = (tensor.is_quantized() ? tensor : tensor.resolve_conj().resolve_neg()).contiguous();
    Sha256 sha;
    sha.add(dense.const_data_ptr(), static_cast<std::size_t>(dense.nbytes()));
    return sha.hex();
}

// One summary of expected.json against one value; what differs, or nothing.
std::string compare(const json &expected, const c10::IValue &value, bool closeIsEnough)
{
    if (expected.contains("value")) { // a number, flag or nothing
        const json &v = expected["value"];
        if (v.is_null())
            return value.isNone() ? "" : "expected nothing";
        if (value.isBool() && v.is_boolean())
            return value.toBool() == v.get<bool>() ? "" : "flag differs";
        if (value.isInt() && v.is_number_integer())
            return value.toInt() == v.get<std::int64_t>()
                       ? ""
                       : "is " + std::to_string(value.toInt()) + ", expected " + v.dump();
        if (value.isDouble() && v.is_number())
            return value.toDouble() == v.get<double>()
                       ? ""
                       : "is " + std::to_string(value.toDouble()) + ", expected " + v.dump();
        return "is a " + value.tagKind() + ", expected " + v.dump();
    }
    if (!value.isTensor())
        return "is no tensor but " + value.tagKind();
    const at::Tensor tensor = value.toTensor();
    if (std::string(dtypeName(fromTorch(tensor.scalar_type()))) != expected["dtype"].get<std::string>())
        return "is " + std::string(dtypeName(fromTorch(tensor.scalar_type()))) + ", expected " +
               expected["dtype"].dump();
    if (tensor.sizes().vec() != expected["shape"].get<std::vector<std::int64_t>>())
        return "has another shape than " + expected["shape"].dump();
    const std::string sha = shaOf(tensor);
    if (sha == expected["sha256"].get<std::string>())
        return "";
    if (closeIsEnough) { // the summaries of float kernels that are not exact everywhere
        const double l2 = tensor.to(at::kDouble).norm().item().toDouble();
        const double want = expected["l2"].get<double>();
        if (std::abs(l2 - want) <= 1e-3 * std::abs(want))
            return "";
    }
    return "sha256 " + sha + ", expected " + expected["sha256"].get<std::string>();
}

// The recorded input: an array file (version 1, little-endian, C order), or a literal that is baked into the graph.
at::Tensor readArray(const std::filesystem::path &file)
{
    std::ifstream in(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    if (bytes.size() < 10)
        return {};
    const std::size_t headerSize = static_cast<unsigned char>(bytes[8]) + 256U * static_cast<unsigned char>(bytes[9]);
    const std::string header = bytes.substr(10, headerSize);
    const auto type = header.find("'<f4'") != std::string::npos   ? at::kFloat
                      : header.find("'<i8'") != std::string::npos ? at::kLong
                                                                  : at::ScalarType::Undefined;
    std::vector<std::int64_t> shape;
    const auto open = header.find('('), shut = header.find(')');
    std::stringstream list(header.substr(open + 1, shut - open - 1));
    for (std::string item; std::getline(list, item, ',');)
        if (item.find_first_of("0123456789") != std::string::npos)
            shape.push_back(std::stoll(item));
    if (type == at::ScalarType::Undefined)
        return {};
    at::Tensor tensor = at::empty(shape, type);
    std::memcpy(tensor.mutable_data_ptr(), bytes.data() + 10 + headerSize, tensor.nbytes());
    return tensor;
}

void bindInputs(const std::filesystem::path &folder, const json &sample, const LoadedModel &model, Execution &execution)
{
    std::size_t next = 0;
    for (const auto &input : model.graph().inputs) {
        if (input.kind != InputKind::User && input.kind != InputKind::Constant)
            continue;
        if (next == sample["inputs"].size())
            break;
        const json &given = sample["inputs"][next++];
        if (input.kind == InputKind::User && given.contains("npy"))
            execution.bind(input.value, readArray(folder / given["npy"].get<std::string>()));
    }
}

void compareNode(const json &expected, const LoadedModel &model, Execution &execution, std::vector<char> &done,
                 SampleResult &result, bool close)
{
    // Multi-output nodes are lists here, and their elements follow as getitem nodes of their own.
    if (expected["op"] != "call_function" || !expected["value"].is_object())
        return;
    const ValueId id = model.graph().find(expected["name"].get<std::string>());
    if (!id.valid() || done[id.get()] != 0)
        return;
    done[id.get()] = 1;
    ++result.values;
    const std::string why = compare(expected["value"], execution.value(id), close);
    if (!why.empty())
        result.differences.push_back(expected["name"].get<std::string>() + ": " + why + " " + execution.faultOf(id));
}

} // namespace

std::vector<std::string> sampleNames(const std::filesystem::path &folder)
{
    std::vector<std::string> names;
    const json expected = readExpected(folder);
    if (!expected.is_discarded())
        for (const auto &[name, sample] : expected["samples"].items())
            names.push_back(name);
    return names;
}

SampleResult runSample(const std::filesystem::path &folder, const std::string &name)
{
    SampleResult result;
    const json sample = readExpected(folder)["samples"][name];
    const bool close = name == "pt2e_toy";
    auto loaded = readModel((folder / sample["file"].get<std::string>()).string(), {}, {});
    if (!loaded) {
        result.differences.push_back(loaded.error().text());
        return result;
    }
    const c10::InferenceMode guard;
    const auto model = *loaded;
    const Graph &graph = model->graph();
    const auto program = Program::compile(model);
    std::vector<ValueId> all;
    std::vector<NodeId> nodes;
    for (std::size_t v = 0; v < graph.values.size(); ++v)
        all.emplace_back(v);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
        nodes.emplace_back(n);
    Execution execution(program, nodes, all);
    bindInputs(folder, sample, *model, execution);

    // The values of a node are compared right after it ran: later nodes may write to them.
    std::vector<char> done(graph.values.size());
    for (NodeId n : nodes) {
        if (!execution.run(n))
            result.differences.push_back(graph.node(n).name + ": " + execution.fault(n));
        for (ValueId v : graph.node(n).outputValues())
            for (const auto &expected : sample["nodes"])
                if (expected["name"] == graph.value(v).name)
                    compareNode(expected, *model, execution, done, result, close);
    }
    std::size_t o = 0;
    for (const auto &expected : sample["graph_outputs"]) {
        if (o >= graph.outputs.size()) {
            result.differences.push_back("the graph has fewer outputs");
            break;
        }
        const auto &output = graph.outputs[o++];
        if (!output.value.valid())
            continue;
        ++result.outputs;
        const std::string why = compare(expected, execution.value(output.value), close);
        if (!why.empty())
            result.differences.push_back("output " + std::to_string(o - 1) + ": " + why);
    }
    return result;
}

} // namespace dblame::test

// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/bench/bench_models.h"

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include "core/engine/program.h"
#include "core/graph_text.h"

namespace dblame::bench
{

namespace
{

using Ranges = std::map<std::string, std::pair<double, double>>; // by value name

std::string number(double v)
{
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", v);
    const std::string s = text;
    return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

// Writes one of the two graphs; the same calls give both.
class Writer
{
public:
    // nullptr: the float graph.
    explicit Writer(const Ranges *ranges) : m_ranges(ranges) { at::manual_seed(1); }

    std::string input(const std::string &name)
    {
        m_inputs += "  input user %" + name + ": float32[] \"" + name + "\"\n";
        return observed(name);
    }

    // A float parameter, or int8 with one scale per entry of axis 0 (per tensor: one scale).
    std::string weight(const std::string &name, const std::vector<std::int64_t> &shape, double spread, bool perChannel)
    {
        const at::Tensor w = at::randn(shape).mul(spread);
        if (m_ranges == nullptr)
            return stored("parameter", name, w);
        std::vector<std::int64_t> inner;
        for (std::int64_t d = perChannel ? 1 : 0; d < w.dim(); ++d)
            inner.push_back(d);
        const at::Tensor scale = w.abs().amax(inner, /*keepdim=*/true).div(127);
        const at::Tensor q = w.div(scale).round().clamp(-127, 127).to(at::kChar);
        const std::string integers = stored("buffer", name + "_int8", q);
        if (!perChannel)
            return node(name + "_dq", "quantized_decomposed.dequantize_per_tensor.default",
                        "input=%" + integers + ", scale=" + number(scale.item<double>()) +
                            ", zero_point=0, quant_min=-127, quant_max=127, dtype=torch.int8",
                        "");
        const std::string scales = stored("buffer", name + "_scale", scale.flatten());
        const std::string zeros = stored("buffer", name + "_zero", at::full({shape.front()}, 0, at::kLong));
        return node(name + "_dq", "quantized_decomposed.dequantize_per_channel.default",
                    "input=%" + integers + ", scales=%" + scales + ", zero_points=%" + zeros +
                        ", axis=0, quant_min=-127, quant_max=127, dtype=torch.int8",
                    "");
    }

    std::string parameter(const std::string &name, const std::vector<std::int64_t> &shape, double spread)
    {
        return stored("parameter", name, at::randn(shape).mul(spread));
    }

    std::string node(const std::string &name, const std::string &target, const std::string &arguments,
                     const std::string &module)
    {
        m_nodes += "  %" + name + ": float32[] = " + target + "(" + arguments + ")" +
                   (module.empty() ? "" : " @\"" + module + "\"") + "\n";
        return name;
    }

    // The value as its readers see it: behind a q -> dq pair in the candidate.
    std::string observed(const std::string &value)
    {
        if (m_ranges == nullptr)
            return value;
        const auto [low, high] = m_ranges->at(value);
        const double scale = std::max((high - low) / 255, 1.0 / 4096);
        const auto zero = static_cast<std::int64_t>(-128 - std::nearbyint(low / scale));
        const std::string grid = "scale=" + number(scale) + ", zero_point=" + std::to_string(zero) +
                                 ", quant_min=-128, quant_max=127, dtype=torch.int8";
        const std::string q = "q_" + value;
        const std::string dq = "dq_" + value;
        node(q, "quantized_decomposed.quantize_per_tensor.default", "input=%" + value + ", " + grid, "");
        return node(dq, "quantized_decomposed.dequantize_per_tensor.default", "input=%" + q + ", " + grid, "");
    }

    std::shared_ptr<const LoadedModel> finish(const std::string &output)
    {
        auto graph = parseGraph("graph {\n" + m_inputs + m_nodes + "  return %" + output + " \"out\"\n}\n");
        if (!graph)
            throw std::runtime_error(graph.error().text());
        auto model = std::make_shared<LoadedModel>();
        model->m_graph = std::move(*graph);
        // Shapes are not written: nothing here depends on them; types are.
        model->m_tensors.resize(model->m_graph.values.size());
        model->m_mapped.resize(model->m_graph.values.size());
        model->m_nodeFaults.resize(model->m_graph.nodes.size());
        model->m_info.path = m_ranges == nullptr ? "float graph" : "quantized graph";
        for (const auto &graphInput : model->m_graph.inputs)
            if (const auto it = m_stored.find(graphInput.target); it != m_stored.end())
                model->m_tensors[graphInput.value.get()] = it->second;
        return model;
    }

private:
    std::string stored(const std::string &kind, const std::string &name, const at::Tensor &tensor)
    {
        const std::string value = (kind == "parameter" ? "p_" : "b_") + name;
        std::string sizes;
        for (const std::int64_t size : tensor.sizes())
            sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
        const char *type = tensor.scalar_type() == at::kChar   ? "int8"
                           : tensor.scalar_type() == at::kLong ? "int64"
                                                               : "float32";
        m_inputs += "  input " + kind + " %" + value + ": " + type + "[" + sizes + "] \"" + name + "\"\n";
        m_stored[name] = tensor;
        return value;
    }

    const Ranges *m_ranges;
    std::string m_inputs, m_nodes;
    std::map<std::string, at::Tensor> m_stored;
};

Ranges rangesOf(const std::shared_ptr<const LoadedModel> &model, const std::vector<c10::IValue> &inputs)
{
    const auto program = Program::compile(model);
    const Graph &graph = program->graph();
    std::vector<NodeId> nodes;
    std::vector<ValueId> values;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        nodes.emplace_back(i);
    for (std::size_t i = 0; i < graph.values.size(); ++i)
        values.emplace_back(i);
    Execution execution(program, nodes, values);
    Ranges ranges;
    const auto note = [&](ValueId id) {
        const c10::IValue &value = execution.value(id);
        if (value.isTensor() && value.toTensor().is_floating_point())
            ranges[graph.value(id).name] = {std::min(0.0, value.toTensor().min().item<double>()),
                                            std::max(0.0, value.toTensor().max().item<double>())};
        execution.release(id);
    };
    std::size_t next = 0;
    for (const auto &input : graph.inputs)
        if (input.kind == InputKind::User) {
            execution.bind(input.value, inputs[next++]);
            note(input.value);
        }
    for (const NodeId node : nodes) {
        if (!execution.run(node))
            throw std::runtime_error(graph.node(node).name + ": " + execution.fault(node));
        for (const ValueId id : graph.node(node).outputValues())
            note(id);
    }
    return ranges;
}

ModelPair makePair(const std::function<std::string(Writer &)> &write, const at::Tensor &input)
{
    ModelPair pair;
    auto inputs = std::make_shared<LoadedInputs>();
    inputs->m_batches = {{input}};
    inputs->m_info.source = "random, seed 1";
    inputs->m_info.batches = 1;
    inputs->m_info.samples = input.size(0);
    pair.inputs = inputs;
    Writer floating(nullptr);
    pair.reference = floating.finish(write(floating));
    const Ranges ranges = rangesOf(pair.reference, inputs->m_batches.front());
    Writer quantized(&ranges);
    pair.candidate = quantized.finish(write(quantized));
    return pair;
}

std::string convolution(Writer &w, const std::string &name, const std::string &input, std::int64_t to,
                        std::int64_t from, std::int64_t kernel, std::int64_t stride)
{
    const double spread = std::sqrt(2.0 / static_cast<double>(from * kernel * kernel));
    const std::string weight = w.weight(name + ".weight", {to, from, kernel, kernel}, spread, true);
    const std::string bias = w.parameter(name + ".bias", {to}, 0.1);
    const std::string s = std::to_string(stride);
    const std::string p = std::to_string(kernel / 2);
    std::string node = name;
    for (char &ch : node)
        ch = ch == '.' ? '_' : ch;
    return w.node(node, "aten.conv2d.default",
                  "input=%" + input + ", weight=%" + weight + ", bias=%" + bias + ", stride=[" + s + ", " + s +
                      "], padding=[" + p + ", " + p + "]",
                  name);
}

std::string relu(Writer &w, const std::string &input)
{
    return w.observed(w.node(input + "_relu", "aten.relu.default", "self=%" + input, ""));
}

std::string bottleneck(Writer &w, const std::string &name, const std::string &input, std::int64_t from,
                       std::int64_t width, std::int64_t stride)
{
    std::string v = relu(w, convolution(w, name + ".conv1", input, width, from, 1, 1));
    v = relu(w, convolution(w, name + ".conv2", v, width, width, 3, stride));
    v = w.observed(convolution(w, name + ".conv3", v, 4 * width, width, 1, 1));
    std::string skip = input;
    if (from != 4 * width)
        skip = w.observed(convolution(w, name + ".down", input, 4 * width, from, 1, stride));
    std::string sum = name + "_add";
    for (char &ch : sum)
        ch = ch == '.' ? '_' : ch;
    // Halved, so that random weights do not grow along the residual path.
    w.node(sum, "aten.add.Tensor", "self=%" + v + ", other=%" + skip + ", alpha=0.5", name);
    return relu(w, sum);
}

} // namespace

ModelPair residualNet(std::int64_t batch)
{
    const auto write = [](Writer &w) {
        std::string v = relu(w, convolution(w, "stem", w.input("x"), 64, 3, 7, 2));
        v = w.observed(w.node("pool", "aten.max_pool2d.default",
                              "self=%" + v + ", kernel_size=[3, 3], stride=[2, 2], padding=[1, 1]", "pool"));
        std::int64_t channels = 64;
        std::int64_t width = 64;
        int stage = 1;
        for (const int blocks : {3, 4, 6, 3}) {
            for (int b = 0; b < blocks; ++b) {
                v = bottleneck(w, "stage" + std::to_string(stage) + "." + std::to_string(b), v, channels, width,
                               b == 0 && stage > 1 ? 2 : 1);
                channels = 4 * width;
            }
            width *= 2;
            ++stage;
        }
        v = w.observed(
            w.node("mean", "aten.adaptive_avg_pool2d.default", "self=%" + v + ", output_size=[1, 1]", "mean"));
        v = w.observed(w.node("flatten", "aten.flatten.using_ints", "self=%" + v + ", start_dim=1", ""));
        const std::string weight = w.weight("fc.weight", {1000, 2048}, 0.02, true);
        const std::string bias = w.parameter("fc.bias", {1000}, 0.1);
        return w.observed(
            w.node("fc", "aten.linear.default", "input=%" + v + ", weight=%" + weight + ", bias=%" + bias, "fc"));
    };
    at::manual_seed(2);
    return makePair(write, at::randn({batch, 3, 224, 224}));
}

ModelPair smallOperators(int blocks)
{
    const auto write = [blocks](Writer &w) {
        std::string v = w.input("x");
        for (int b = 0; b < blocks; ++b) {
            const std::string i = std::to_string(b);
            const std::string weight = w.weight("w" + i, {64}, 1.5, false);
            const std::string bias = w.parameter("b" + i, {64}, 0.3);
            w.node("mul" + i, "aten.mul.Tensor", "self=%" + v + ", other=%" + weight, "block" + i);
            w.node("add" + i, "aten.add.Tensor", "self=%mul" + i + ", other=%" + bias, "block" + i);
            v = w.observed(w.node("tanh" + i, "aten.tanh.default", "self=%add" + i, "block" + i));
        }
        return v;
    };
    at::manual_seed(2);
    return makePair(write, at::randn({1, 64}));
}

ModelPair constantWidth(int depth)
{
    const auto write = [depth](Writer &w) {
        std::string v = w.input("x");
        for (int b = 0; b < depth; ++b) {
            const std::string name = "block" + std::to_string(b);
            const std::string r = relu(w, convolution(w, name, v, 64, 64, 1, 1));
            v = w.observed(w.node("add" + std::to_string(b), "aten.add.Tensor",
                                  "self=%" + r + ", other=%" + v + ", alpha=0.5", name));
        }
        return v;
    };
    at::manual_seed(2);
    return makePair(write, at::randn({1, 64, 112, 112}));
}

} // namespace dblame::bench

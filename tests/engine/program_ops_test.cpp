// SPDX-License-Identifier: GPL-3.0-or-later
//
// The operators that only exist in Python, against what Python gives (tests/data/ops/make_*.py): elements byte for
// byte, shapes and strides, and the calls that must fail.
#include <cstring>
#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/readers/loaded_model.h"

namespace dblame::test
{

namespace
{

using nlohmann::json;

std::string decoded(const std::string &text)
{
    static const std::string kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (char c : text) {
        if (c == '=')
            break;
        bits = bits << 6U | static_cast<std::uint32_t>(kAlphabet.find(c));
        count += 6;
        if (count >= 8) {
            count -= 8;
            bytes.push_back(static_cast<char>(bits >> static_cast<unsigned>(count) & 0xffU));
        }
    }
    return bytes;
}

at::ScalarType typeOf(const json &name)
{
    return toTorch(dtypeFromName(name.get<std::string>()));
}

at::Tensor tensorOf(const json &t)
{
    const auto shape = t["shape"].get<std::vector<std::int64_t>>();
    const auto strides = t["strides"].get<std::vector<std::int64_t>>();
    at::Tensor dense = at::empty(shape, typeOf(t["dtype"]));
    const std::string bytes = decoded(t["data"].get<std::string>());
    if (bytes.size() != dense.nbytes())
        throw std::runtime_error("wrong length of data");
    std::memcpy(dense.mutable_data_ptr(), bytes.data(), bytes.size());
    bool expanded = false;
    for (std::size_t d = 0; d < shape.size(); ++d)
        expanded = expanded || (strides[d] == 0 && shape[d] > 1);
    if (expanded) {
        for (std::size_t d = 0; d < shape.size(); ++d)
            if (strides[d] == 0 && shape[d] > 1)
                dense = dense.narrow(static_cast<std::int64_t>(d), 0, 1);
        return dense.contiguous().expand(shape);
    }
    std::int64_t span = 1; // strided slices leave holes
    for (std::size_t d = 0; d < shape.size(); ++d)
        span += (std::max<std::int64_t>(shape[d], 1) - 1) * strides[d];
    at::Tensor placed = at::empty({std::max<std::int64_t>(span, 1)}, dense.options()).as_strided(shape, strides);
    placed.copy_(dense);
    return placed;
}

c10::IValue argumentOf(const json &a, const c10::TypePtr &type)
{
    const bool isFloat = type->str() == "float" || type->str() == "float?";
    if (a.is_null())
        return {};
    if (a.is_boolean())
        return a.get<bool>();
    if (a.is_number_integer() && !isFloat)
        return a.get<std::int64_t>();
    if (a.is_number())
        return a.get<double>();
    if (a.is_string())
        return a.get<std::string>();
    if (a.is_array()) {
        c10::List<std::int64_t> list;
        for (const auto &item : a)
            list.push_back(item.get<std::int64_t>());
        return list;
    }
    if (a.contains("tensor"))
        return tensorOf(a["tensor"]);
    if (a.contains("float"))
        return std::stod(a["float"].get<std::string>());
    return static_cast<std::int64_t>(typeOf(a["dtype"]));
}

std::string hexOf(const at::Tensor &t)
{
    const at::Tensor dense = t.contiguous();
    const auto *bytes = static_cast<const unsigned char *>(dense.const_data_ptr());
    std::string text;
    for (std::size_t i = 0; i < dense.nbytes(); ++i) {
        char two[4];
        std::snprintf(two, sizeof two, "%02x", bytes[i]);
        text += two;
    }
    return text;
}

// Every NaN is one value: its sign and payload are the processor's, not the operator's.
at::Tensor plainNaN(const at::Tensor &t)
{
    if (!t.is_floating_point() || c10::isFloat8Type(t.scalar_type()))
        return t;
    return t.clone().masked_fill_(t.isnan(), std::numeric_limits<double>::quiet_NaN());
}

void runCase(const json &c, const std::string &ns)
{
    const std::string op = c["op"];
    const auto dot = op.find('.');
    const std::string overload = dot == std::string::npos ? "" : op.substr(dot + 1);
    const auto handle = c10::Dispatcher::singleton().findSchema({"dblame::" + ns + "_" + op.substr(0, dot), overload});
    ASSERT_TRUE(handle.has_value()) << op;
    const auto &arguments = handle->schema().arguments();
    torch::jit::Stack stack;
    for (std::size_t a = 0; a < arguments.size(); ++a) {
        if (a < c["args"].size())
            stack.push_back(argumentOf(c["args"][a], arguments[a].type()));
        else
            stack.push_back(arguments[a].default_value().value());
    }
    if (c.contains("fails")) {
        EXPECT_THROW(handle->callBoxed(stack), std::exception);
        return;
    }
    handle->callBoxed(stack);
    const auto &results = c["results"];
    ASSERT_EQ(stack.size(), results.size());
    for (std::size_t r = 0; r < results.size(); ++r) {
        const at::Tensor got = stack[r].toTensor(), want = tensorOf(results[r]);
        EXPECT_EQ(got.scalar_type(), want.scalar_type());
        EXPECT_EQ(got.sizes(), want.sizes());
        EXPECT_EQ(got.strides().vec(), results[r]["strides"].get<std::vector<std::int64_t>>());
        EXPECT_EQ(hexOf(plainNaN(got)), hexOf(plainNaN(want)));
    }
}

class ProgramOperators : public ::testing::TestWithParam<const char *>
{
};

TEST_P(ProgramOperators, GiveTheBitsOfPython)
{
    const std::string ns = GetParam();
    std::ifstream in(std::string(DBLAME_TEST_DATA) + "/ops/" + ns + ".json");
    const json file = json::parse(in);
    ASSERT_GT(file["cases"].size(), 20U);
    const c10::InferenceMode guard;
    std::size_t index = 0;
    for (const auto &c : file["cases"]) {
        SCOPED_TRACE("case " + std::to_string(index++) + ": " + c.dump().substr(0, 400));
        runCase(c, ns);
        if (HasFatalFailure())
            return;
    }
}

INSTANTIATE_TEST_SUITE_P(Namespaces, ProgramOperators, ::testing::Values("quantized_decomposed", "torchao", "coreai"));

at::Tensor call(const char *name, std::vector<c10::IValue> arguments)
{
    torch::jit::Stack stack(std::move(arguments));
    c10::Dispatcher::singleton()
        .findSchema({std::string("dblame::quantized_decomposed_") + name, ""})
        .value()
        .callBoxed(stack);
    return stack.at(0).toTensor();
}

// Large enough for several threads, odd enough for every loop's tail.
TEST(ProgramOperatorKernels, EqualSeparateOperatorsOnLargeTensors)
{
    const c10::InferenceMode guard;
    at::Tensor x = at::randn({7, 33, 61, 23}) * 40;
    x.view({-1}).slice(0, 0, 4000, 7).mul_(1e30);
    x.view({-1}).slice(0, 5, 9000, 11).fill_(std::numeric_limits<double>::quiet_NaN());
    const double scale = 0.0371;
    const at::Tensor scales = at::rand({33}) * 0.1 + 0.01,
                     zeros = at::randint(-100, 100, {33}, at::TensorOptions(at::kLong));
    const std::vector<std::int64_t> swapped{1, 0, 2, 3}, column{33, 1, 1, 1};
    for (const auto dtype : {at::kByte, at::kChar, at::kShort, at::kUInt16}) {
        const std::int64_t lo = dtype == at::kChar ? -128 : dtype == at::kShort ? -32768 : 0;
        const std::int64_t hi = dtype == at::kByte    ? 255
                                : dtype == at::kChar  ? 127
                                : dtype == at::kShort ? 32767
                                                      : 65535;
        const auto type = static_cast<std::int64_t>(dtype);
        const at::Tensor q = call("quantize_per_tensor", {x, scale, std::int64_t{5}, lo, hi, type});
        EXPECT_TRUE(at::equal(q, at::clamp((x * (1.0 / scale)).round() + 5, lo, hi).to(dtype)));
        const at::Tensor dq = call("dequantize_per_tensor", {q, scale, std::int64_t{5}, lo, hi, type, c10::IValue()});
        EXPECT_TRUE(at::equal(dq, (q.to(at::kFloat) - 5) * scale));
        const at::Tensor rows = x.permute(swapped), s = scales.view(column), z = zeros.view(column);
        const at::Tensor qc = call("quantize_per_channel", {x, scales, zeros, std::int64_t{1}, lo, hi, type});
        EXPECT_TRUE(at::equal(qc, at::clamp((rows * s.reciprocal()).round() + z, lo, hi).permute(swapped).to(dtype)));
        if (dtype == at::kUInt16)
            continue; // does not promote with int64
        const at::Tensor dqc =
            call("dequantize_per_channel", {qc, scales, zeros, std::int64_t{1}, lo, hi, type, c10::IValue()});
        EXPECT_TRUE(at::equal(dqc, ((qc.permute(swapped) - z) * s).permute(swapped)));
    }
}

} // namespace

} // namespace dblame::test

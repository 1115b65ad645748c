// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/engine/quantizer_support.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>

#include <ATen/ops/empty.h>

namespace dblame
{

namespace
{

// (((i*37 + 11 + shift) mod 101) - 50) / 16
float lin(int i, int shift = 0)
{
    return static_cast<float>((i * 37 + 11 + shift) % 101 - 50) / 16.0F;
}

float element(const std::string &name, int i)
{
    if (name == "lin")
        return lin(i);
    if (name == "relu")
        return std::max(lin(i), 0.0F);
    if (name == "skew")
        return static_cast<float>((i * i * 7 + 3 * i) % 257) / 32.0F - 1.0F;
    if (name == "outlier")
        return i == 17 ? 40.0F : lin(i) / 8.0F;
    if (name == "tiny")
        return lin(i) * 0x1p-20F;
    if (name == "zeros")
        return 0.0F;
    if (name == "const")
        return 2.5F;
    if (name == "negative")
        return -std::abs(lin(i)) - 0.25F;
    if (name == "heavy") {
        const float k = static_cast<float>((i * 7919 + 13) % 4093 - 2046) / 512.0F;
        const float square = k * k;
        return square * k;
    }
    if (name.starts_with("batch")) {
        const int b = name.back() - '0';
        return lin(i, b * 13) * (1.0F + static_cast<float>(b) / 4.0F);
    }
    if (name.starts_with("weight")) {
        const int o = i / 32;
        const float w = static_cast<float>((o * 53 + i % 32 * 29 + 7) % 127 - 63) / 256.0F * static_cast<float>(o + 1);
        if (name == "weight_edge" && o == 1)
            return 0.0F;
        return name == "weight_edge" && o == 2 ? std::abs(w) + 1.0F / 64.0F : w;
    }
    throw std::invalid_argument("no tensor " + name);
}

} // namespace

const nlohmann::json &conformance()
{
    static const nlohmann::json data = [] {
        std::ifstream in(DBLAME_TEST_DATA "/quantizer/conformance.json");
        return nlohmann::json::parse(in);
    }();
    return data;
}

at::Tensor namedTensor(const std::string &name)
{
    const auto shape = conformance().at("tensors").at(name).at("shape").get<std::vector<std::int64_t>>();
    at::Tensor x = at::empty(shape, at::kFloat);
    for (std::int64_t i = 0; i < x.numel(); ++i)
        x.mutable_data_ptr<float>()[i] = element(name, static_cast<int>(i));
    return x;
}

std::vector<double> elements(const at::Tensor &t)
{
    const at::Tensor d = t.to(at::kDouble).contiguous();
    return {d.const_data_ptr<double>(), d.const_data_ptr<double>() + d.numel()};
}

at::Tensor tensorOf(const std::vector<float> &values)
{
    at::Tensor x = at::empty({static_cast<std::int64_t>(values.size())}, at::kFloat);
    std::copy(values.begin(), values.end(), x.mutable_data_ptr<float>());
    return x;
}

const nlohmann::json &peerSequences()
{
    static const nlohmann::json data = [] {
        std::ifstream in(DBLAME_TEST_DATA "/quantizer/peer_sequences.json");
        return nlohmann::json::parse(in);
    }();
    return data;
}

at::Tensor numbers(std::uint64_t seed, std::int64_t n)
{
    at::Tensor x = at::empty({n}, at::kFloat);
    std::uint64_t state = seed;
    for (std::int64_t i = 0; i < n; ++i) {
        state += 0x9E3779B97F4A7C15U;
        std::uint64_t z = state;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
        z ^= z >> 31U;
        x.mutable_data_ptr<float>()[i] = static_cast<float>(z >> 40U) / 0x1p23F - 1.0F;
    }
    return x;
}

std::string hashOf(const at::Tensor &t)
{
    const at::Tensor c = t.contiguous();
    const auto *bytes = static_cast<const unsigned char *>(c.const_data_ptr());
    std::uint64_t value = 0xCBF29CE484222325U;
    for (std::size_t i = 0; i < c.nbytes(); ++i)
        value = (value ^ bytes[i]) * 0x100000001B3U;
    std::array<char, 17> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
    return text.data();
}

double snrDb(const at::Tensor &x, const at::Tensor &y)
{
    const auto a = elements(x);
    const auto b = elements(y);
    double signal = 0;
    double noise = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        signal += a[i] * a[i];
        noise += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return noise == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
}

TensorSpec xnnpackActivation(ObserverKind observer)
{
    TensorSpec spec;
    spec.observer = observer;
    spec.eps = 0x1p-12;
    return spec;
}

TensorSpec xnnpackWeight(Granularity granularity)
{
    TensorSpec spec;
    spec.quantMin = -127;
    spec.scheme = Scheme::Symmetric;
    spec.granularity = granularity;
    if (granularity == Granularity::PerChannel)
        spec.axis = 0;
    spec.eps = 0x1p-12;
    return spec;
}

TensorSpec coreAiSpec(ElementType type, Scheme scheme, Granularity granularity)
{
    TensorSpec spec;
    spec.type = type;
    spec.scheme = scheme;
    const IntegerRange range = integerRange(type, scheme);
    spec.quantMin = range.low;
    spec.quantMax = range.high;
    spec.granularity = granularity;
    spec.rule = QparamRule::CoreAi;
    spec.arithmetic = Arithmetic::Division;
    spec.powerOfTwoScale = type == ElementType::Float4E2M1;
    spec.observer = ObserverKind::LastBatch;
    return spec;
}

} // namespace dblame

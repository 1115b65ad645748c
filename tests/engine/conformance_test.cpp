// SPDX-License-Identifier: GPL-3.0-or-later
//
// Every case of conformance.json: scale, zero point and integers exactly, SNR to 1e-4 dB.
#include <cmath>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "core/engine/observer.h"
#include "core/engine/palette.h"
#include "core/engine/quantize_tensor.h"
#include "tests/engine/quantizer_support.h"

namespace dblame
{
namespace
{

constexpr double kSnrTolerance = 1e-4;

struct Case {
    std::string id, config, tensor;
    nlohmann::json json;
    TensorSpec spec;
    SiteRole role = SiteRole::Output;
};

Scheme schemeOf(const std::string &name)
{
    return name == "symmetric"    ? Scheme::Symmetric
           : name == "asymmetric" ? Scheme::Affine
                                  : Scheme::SymmetricWithClipping;
}

// "per_channel0", "per_block_ax1_8", "per_block_2x16".
void readGranularity(const std::string &text, TensorSpec &spec)
{
    if (text.starts_with("per_channel")) {
        spec.granularity = Granularity::PerChannel;
        spec.axis = std::stoi(text.substr(11));
    } else if (text.starts_with("per_block_ax")) {
        spec.granularity = Granularity::PerBlock;
        spec.axis = text.at(12) - '0';
        spec.blockSizes = {std::stoi(text.substr(14))};
    } else if (text == "per_block_2x16") {
        spec.granularity = Granularity::PerBlock;
        spec.blockSizes = {2, 16};
    } else {
        ASSERT_EQ(text, "per_tensor");
    }
}

TensorSpec coreAiCase(const nlohmann::json &c)
{
    const nlohmann::json &config = c.at("config");
    const auto type = elementTypeFromName(config.at("dtype").get<std::string>());
    TensorSpec spec = coreAiSpec(type.value(), schemeOf(config.value("qscheme", "symmetric")), Granularity::PerTensor);
    readGranularity(config.value("granularity", "per_tensor"), spec);
    spec.minValue = config.value("qformulation", "zp") == "minval";
    spec.powerOfTwoScale = config.contains("scale_dtype") && config["scale_dtype"].is_string();
    spec.observer =
        c.at("id").get<std::string>().starts_with("coreai_act") ? ObserverKind::MovingAverage : ObserverKind::LastBatch;
    return spec;
}

TensorSpec torchaoCase(const std::string &config)
{
    if (config == "xnnpack_weight_per_tensor" || config == "xnnpack_weight_qat_per_tensor")
        return xnnpackWeight(Granularity::PerTensor);
    if (config == "xnnpack_weight_per_channel" || config == "xnnpack_weight_qat_per_channel")
        return xnnpackWeight(Granularity::PerChannel);
    if (config == "x86_weight_per_channel") {
        TensorSpec spec = xnnpackWeight(Granularity::PerChannel);
        spec.quantMin = -128;
        return spec;
    }
    TensorSpec spec = xnnpackActivation(ObserverKind::Histogram);
    if (config == "x86_act_static") {
        spec.type = ElementType::UInt8;
        spec.quantMin = 0;
        spec.quantMax = 255;
    } else if (config == "minmax_int8_affine") {
        spec.observer = ObserverKind::MinMax;
    } else if (config == "moving_average_int8_affine" || config == "xnnpack_act_qat") {
        spec.observer = ObserverKind::MovingAverage;
    } else if (config == "xnnpack_act_dynamic") {
        spec.observer = ObserverKind::Dynamic;
    } else if (config.starts_with("per_token")) {
        spec.observer = ObserverKind::Dynamic;
        spec.granularity = Granularity::PerToken;
        spec.scheme = config == "per_token_sym" ? Scheme::Symmetric : Scheme::Affine;
    } else {
        EXPECT_EQ(config, "xnnpack_act_static");
    }
    return spec;
}

std::vector<Case> cases()
{
    std::vector<Case> all;
    for (const auto &json : conformance().at("cases")) {
        Case c;
        c.json = json;
        c.id = json.at("id");
        c.config = c.id.substr(0, c.id.find('/'));
        c.tensor = json.at("tensors").back();
        c.role =
            c.tensor.starts_with("weight") && !c.config.starts_with("per_token") ? SiteRole::Weight : SiteRole::Output;
        c.spec = c.config.starts_with("coreai") ? coreAiCase(json) : torchaoCase(c.config);
        if (c.config.find("_qat") != std::string::npos) {
            c.spec.rule = QparamRule::FusedQat;
            c.spec.observer = ObserverKind::MovingAverage;
        }
        all.push_back(std::move(c));
    }
    return all;
}

void expectNumbers(const nlohmann::json &expected, const std::vector<double> &actual, const std::string &what)
{
    ASSERT_EQ(expected.size(), actual.size()) << what;
    for (std::size_t i = 0; i < actual.size(); ++i)
        EXPECT_EQ(expected[i].get<double>(), actual[i]) << what << '[' << i << ']';
}

void expectSnr(const nlohmann::json &expected, double actual)
{
    if (expected.is_string())
        EXPECT_EQ(actual, std::numeric_limits<double>::infinity());
    else
        EXPECT_NEAR(actual, expected.get<double>(), kSnrTolerance);
}

void expectQparams(const nlohmann::json &scale, const nlohmann::json &zeroPoint, const Qparams &qparams)
{
    expectNumbers(scale, qparams.scales(), "scale");
    const auto zeros = qparams.zeroPoints();
    if (!zeroPoint.is_null())
        expectNumbers(zeroPoint, {zeros.begin(), zeros.end()}, "zero point");
    else
        EXPECT_TRUE(zeros.empty());
}

class ConformanceCase : public testing::TestWithParam<int>
{
};

// Simulated and deployed qparams, and the fake-quantized output of the last batch.
void checkTraining(const Case &c)
{
    const auto observer = need(makeObserver(c.spec, c.role));
    at::Tensor out;
    for (const auto &name : c.json.at("tensors"))
        out = need(observer->forward(namedTensor(name)));
    expectQparams(c.json.at("scale"), c.json.at("zero_point"), need(observer->simulatedQparams()));
    expectQparams(c.json.at("convert_scale"), c.json.at("convert_zero_point"), need(observer->qparams()));
    expectSnr(c.json.at("snr_db"), snrDb(namedTensor(c.tensor), out));
}

void checkIntegers(const Case &c, const at::Tensor &x, const Qparams &qparams)
{
    const at::Tensor q = need(quantizeTensor(x, qparams, c.spec, c.role));
    EXPECT_EQ(q.scalar_type(), scalarTypeOf(c.spec.type));
    const at::Tensor values = c.spec.type == ElementType::Float4E2M1
                                  ? need(dequantizeTensor(q, unobservedQparams(c.spec), c.spec, c.role, at::kFloat))
                                  : q;
    std::vector<double> integers = elements(values);
    double sum = 0;
    for (const double v : integers)
        sum += v;
    EXPECT_EQ(sum, c.json.at("q_sum").get<double>());
    integers.resize(c.json.at("q_first").size());
    expectNumbers(c.json.at("q_first"), integers, "q");
}

TEST_P(ConformanceCase, EqualsThePeer)
{
    const Case c = cases().at(static_cast<std::size_t>(GetParam()));
    SCOPED_TRACE(c.id);
    if (c.spec.rule == QparamRule::FusedQat)
        return checkTraining(c);
    const at::Tensor x = namedTensor(c.tensor);
    const auto observer = need(makeObserver(c.spec, c.role));
    for (const auto &name : c.json.at("tensors"))
        ASSERT_TRUE(observer->observe(namedTensor(name)));
    Qparams qparams = need(observer->qparams());
    if (qparams.dynamic)
        qparams = need(chooseQparams(x, c.spec, c.role));

    expectQparams(c.json.at("scale"), c.json.at("zero_point"), qparams);
    if (c.json.contains("minval"))
        expectNumbers(c.json["minval"], qparams.minValues(), "minval");
    if (c.json.contains("scale_shape")) {
        EXPECT_EQ(c.spec.granularity == Granularity::PerTensor ? std::vector<std::int64_t>(2, 1)
                                                               : qparams.scale.sizes().vec(),
                  c.json["scale_shape"].get<std::vector<std::int64_t>>());
    }
    const ObserverState state = observer->state();
    if (c.json.contains("observed_min")) {
        EXPECT_EQ(state.low, std::vector<double>{c.json["observed_min"].get<double>()});
        EXPECT_EQ(state.high, std::vector<double>{c.json["observed_max"].get<double>()});
    }
    if (c.json.contains("searched_min")) {
        EXPECT_EQ(qparams.lows(), std::vector<double>{c.json["searched_min"].get<double>()});
        EXPECT_EQ(qparams.highs(), std::vector<double>{c.json["searched_max"].get<double>()});
    }
    if (c.json.contains("histogram_sum")) {
        double sum = 0;
        int occupied = 0;
        for (const float count : state.histogram) {
            sum += static_cast<double>(count);
            occupied += count > 0 ? 1 : 0;
        }
        EXPECT_EQ(sum, c.json["histogram_sum"].get<double>());
        EXPECT_EQ(occupied, c.json["histogram_nonzero"].get<int>());
    }
    checkIntegers(c, x, qparams);
    const at::Tensor y = need(fakeQuantize(x, qparams, c.spec, c.role));
    EXPECT_EQ(y.sizes(), x.sizes());
    expectSnr(c.json.at("snr_db"), snrDb(x, y));
}

INSTANTIATE_TEST_SUITE_P(All, ConformanceCase, testing::Range(0, 189), [](const auto &test) {
    std::string name = cases().at(static_cast<std::size_t>(test.param)).id;
    for (char &ch : name)
        ch = std::isalnum(static_cast<unsigned char>(ch)) != 0 ? ch : '_';
    return name;
});

TEST(Conformance, DataIsWhole)
{
    EXPECT_EQ(conformance().at("cases").size(), 189U);
    EXPECT_EQ(conformance().at("palettes").size(), 44U);
    for (const auto &[name, tensor] : conformance().at("tensors").items()) {
        SCOPED_TRACE(name);
        std::vector<double> values = elements(namedTensor(name));
        double sum = 0;
        for (const double v : values)
            sum += v;
        EXPECT_EQ(sum, tensor.at("sum").get<double>());
        values.resize(8);
        expectNumbers(tensor.at("first"), values, "first");
    }
}

class ConformancePalette : public testing::TestWithParam<int>
{
};

PaletteSpec paletteSpec(const nlohmann::json &p)
{
    PaletteSpec spec;
    spec.bits = p.at("n_bits");
    spec.fast = p.at("fast");
    spec.perChannelScale = p.value("enable_per_channel_scale", false);
    const std::string granularity = p.at("granularity");
    if (granularity.starts_with("grouped_ax")) {
        spec.axis = granularity.at(10) - '0';
        spec.groupSize = std::stoi(granularity.substr(12));
    }
    if (p.contains("lut_q"))
        spec.tableType = ElementType::Int8;
    return spec;
}

TEST_P(ConformancePalette, EqualsThePeer)
{
    const nlohmann::json &p = conformance().at("palettes").at(static_cast<std::size_t>(GetParam()));
    const std::string id = p.at("id");
    SCOPED_TRACE(id);
    const at::Tensor w = namedTensor(id.substr(id.find('/') + 1));
    const PaletteSpec spec = paletteSpec(p);
    const Palette palette = need(palettize(w, spec));
    EXPECT_EQ(palette.table.sizes().vec(), p.at("lut_shape").get<std::vector<std::int64_t>>());
    expectNumbers(p.at("lut"), elements(palette.table), "lut");
    std::vector<double> indices = elements(palette.indices);
    double sum = 0;
    for (const double i : indices)
        sum += i;
    if (p.contains("indices_sum")) {
        EXPECT_EQ(sum, p.at("indices_sum").get<double>());
    }
    indices.resize(p.at("indices_first").size());
    expectNumbers(p.at("indices_first"), indices, "indices");
    if (spec.perChannelScale)
        expectNumbers(p.at("per_channel_scale"), elements(palette.channelScale), "per-channel scale");
    if (spec.tableType) {
        expectNumbers(p.at("lut_scale"), palette.tableQparams.scales(), "lut scale");
        expectNumbers(p.at("lut_q"), elements(palette.tableElements), "lut_q");
    }
    const at::Tensor y = reconstruct(palette, spec);
    EXPECT_EQ(y.sizes(), w.sizes());
    expectSnr(p.at("snr_db"), snrDb(w, y));
}

INSTANTIATE_TEST_SUITE_P(All, ConformancePalette, testing::Range(0, 44), [](const auto &test) {
    std::string name = conformance().at("palettes").at(static_cast<std::size_t>(test.param)).at("id");
    for (char &ch : name)
        ch = std::isalnum(static_cast<unsigned char>(ch)) != 0 ? ch : '_';
    return name;
});

} // namespace
} // namespace dblame

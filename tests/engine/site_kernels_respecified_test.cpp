// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sites under another spec. tests/data/quantized_weights.json: integers, scales and SNR that torchao 0.18 and
// coreai-opt 0.4 give for two weights that are defined by formula.
#include "core/engine/site_kernels.h"

#include <cmath>
#include <fstream>
#include <limits>

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fake_quantize_per_channel_affine.h>
#include <ATen/ops/fake_quantize_per_tensor_affine.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/engine/metric.h"

namespace dblame
{
namespace
{

// w[o][i] = (((53 o + 29 i + 7) mod 127) - 63) / 256 * (o + 1); "weight_edge": row 1 zero, row 2 positive.
at::Tensor namedWeight(const std::string &name)
{
    at::Tensor w = at::empty({4, 32});
    auto *p = w.mutable_data_ptr<float>();
    for (int o = 0; o < 4; ++o)
        for (int i = 0; i < 32; ++i) {
            const float v = static_cast<float>((o * 53 + i * 29 + 7) % 127 - 63) / 256.0F * static_cast<float>(o + 1);
            p[o * 32 + i] = name == "weight_edge" && o == 1   ? 0.0F
                            : name == "weight_edge" && o == 2 ? std::abs(v) + 1.0F / 64.0F
                                                              : v;
        }
    return w;
}

Granularity granularityOf(const std::string &name)
{
    return name == "tensor"    ? Granularity::PerTensor
           : name == "channel" ? Granularity::PerChannel
                               : Granularity::PerBlock;
}

QuantSite weightSite(const nlohmann::json &c)
{
    QuantSite site;
    site.role = SiteRole::Weight;
    site.form = c["divides"].get<bool>() ? SiteForm::DecomposedFakeQuant : SiteForm::DequantizedWeight;
    site.spec.divides = c["divides"];
    site.moduleType = "torch.nn.modules.linear.Linear";
    site.spec.quantMin = c["quant_min"];
    site.spec.quantMax = c["quant_max"];
    site.spec.symmetric = c["symmetric"];
    site.spec.granularity = granularityOf(c["granularity"]);
    site.spec.axis = c["axis"];
    site.spec.blockSize = c["block"];
    site.scale = c["scale"].get<std::vector<double>>();
    site.zeroPoint = c["zero_point"].get<std::vector<std::int64_t>>();
    return site;
}

int bitsOf(const QuantSite &site)
{
    int bits = 0;
    while ((std::int64_t{1} << bits) <= site.spec.quantMax - site.spec.quantMin)
        ++bits;
    return bits;
}

// Which scale element i of a 4 x 32 weight uses.
std::size_t unitOf(const QuantSite &site, int o, int i)
{
    const auto block = static_cast<int>(site.spec.blockSize);
    switch (site.spec.granularity) {
    case Granularity::PerTensor:
        return 0;
    case Granularity::PerChannel:
        return static_cast<std::size_t>(site.spec.axis == 0 ? o : i);
    default:
        return static_cast<std::size_t>(site.spec.axis == 1 ? o * (32 / block) + i / block : (o / block) * 32 + i);
    }
}

class OwnSpec : public testing::TestWithParam<nlohmann::json>
{
};

TEST_P(OwnSpec, ReproducesThePeersValues)
{
    const nlohmann::json &c = GetParam();
    const QuantSite site = weightSite(c);
    SpecChange same;
    same.bits = bitsOf(site);
    same.granularity = site.spec.granularity;
    same.blockSize = site.spec.blockSize;
    const at::Tensor w = namedWeight(c["tensor"]);

    const SiteQparams q = respecifiedQparams(site, same, w);
    EXPECT_EQ(q.scale, site.scale);
    EXPECT_EQ(q.zeroPoint, site.zeroPoint);
    EXPECT_EQ(q.quantMin, site.spec.quantMin);
    EXPECT_EQ(q.quantMax, site.spec.quantMax);

    const at::Tensor y = respecifiedSite(site, same)(w).contiguous();
    ASSERT_EQ(y.sizes(), w.sizes());
    for (int o = 0; o < 4; ++o)
        for (int i = 0; i < 32; ++i) {
            const std::size_t u = unitOf(site, o, i);
            const float expected =
                (c["q"][static_cast<std::size_t>(o * 32 + i)].get<float>() - static_cast<float>(site.zeroPoint[u])) *
                static_cast<float>(site.scale[u]);
            ASSERT_EQ(y.const_data_ptr<float>()[o * 32 + i], expected) << "row " << o << ", column " << i;
        }
    SnrAccumulator snr;
    snr.add(w, y);
    EXPECT_NEAR(snr.snrDb(), c["snr_db"].get<double>(), 1e-4);
}

std::vector<nlohmann::json> peersWeights()
{
    std::ifstream file(std::string(DBLAME_TEST_DATA) + "/quantized_weights.json");
    return nlohmann::json::parse(file).get<std::vector<nlohmann::json>>();
}

std::string caseName(const testing::TestParamInfo<nlohmann::json> &info)
{
    std::string name = info.param["id"];
    for (char &ch : name)
        ch = std::isalnum(static_cast<unsigned char>(ch)) != 0 ? ch : '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(SiteKernelsRespecified, OwnSpec, testing::ValuesIn(peersWeights()), caseName);

// From the site of one case to the spec of another: what the peer would have made of the same weight.
const nlohmann::json &findCase(const std::vector<nlohmann::json> &cases, const std::string &id)
{
    for (const auto &c : cases)
        if (c["id"] == id)
            return c;
    throw std::runtime_error("no case " + id);
}

TEST(SiteKernelsRespecified, AnotherSpecIsThePeersOtherCase)
{
    struct Step {
        const char *from, *to;
        SpecChange change;
    };
    const std::vector<Step> steps{{"coreai_weight_int8_symmetric_per_channel0/weight",
                                   "coreai_weight_int4_symmetric_per_channel0/weight",
                                   {4, Granularity::PerChannel, std::nullopt, 32}},
                                  {"coreai_weight_int4_symmetric_per_tensor/weight",
                                   "coreai_weight_int8_symmetric_per_channel0/weight",
                                   {8, Granularity::PerChannel, std::nullopt, 32}},
                                  {"coreai_weight_int8_symmetric_per_tensor/weight",
                                   "coreai_weight_int8_symmetric_per_block_ax1_8/weight",
                                   {8, Granularity::PerBlock, std::nullopt, 8}},
                                  {"coreai_weight_int8_symmetric_with_clipping_per_channel0/weight",
                                   "coreai_weight_int4_symmetric_with_clipping_per_block_ax1_8/weight",
                                   {4, Granularity::PerBlock, std::nullopt, 8}},
                                  {"coreai_weight_int8_symmetric_with_clipping_per_channel0/weight",
                                   "coreai_weight_int8_asymmetric_per_channel0/weight",
                                   {8, Granularity::PerChannel, false, 32}},
                                  {"xnnpack_weight_per_channel/weight",
                                   "xnnpack_weight_per_tensor/weight",
                                   {8, Granularity::PerTensor, std::nullopt, 32}},
                                  {"xnnpack_weight_per_tensor/weight_edge",
                                   "xnnpack_weight_per_channel/weight_edge",
                                   {8, Granularity::PerChannel, std::nullopt, 32}}};
    const auto cases = peersWeights();
    for (const Step &step : steps) {
        const nlohmann::json &to = findCase(cases, step.to);
        const at::Tensor w = namedWeight(to["tensor"]);
        const at::Tensor y = respecifiedSite(weightSite(findCase(cases, step.from)), step.change)(w).contiguous();
        const QuantSite target = weightSite(to);
        for (int o = 0; o < 4; ++o)
            for (int i = 0; i < 32; ++i) {
                const std::size_t u = unitOf(target, o, i);
                const float expected = (to["q"][static_cast<std::size_t>(o * 32 + i)].get<float>() -
                                        static_cast<float>(target.zeroPoint[u])) *
                                       static_cast<float>(target.scale[u]);
                ASSERT_EQ(y.const_data_ptr<float>()[o * 32 + i], expected) << step.from << " -> " << step.to;
            }
    }
}

QuantSite activationSite(SiteForm form, std::int64_t quantMin, std::int64_t quantMax, bool symmetric, double scale,
                         std::int64_t zeroPoint)
{
    QuantSite site;
    site.role = SiteRole::Output;
    site.form = form;
    site.spec.divides = form == SiteForm::DecomposedFakeQuant;
    site.spec.quantMin = quantMin;
    site.spec.quantMax = quantMax;
    site.spec.symmetric = symmetric;
    site.scale = {scale};
    site.zeroPoint = {zeroPoint};
    return site;
}

TEST(SiteKernelsRespecified, ActivationKeepsItsOwnRange)
{
    at::manual_seed(3);
    const at::Tensor x = at::randn({2, 5, 7}).mul(3);
    SpecChange same;
    // Affine, as XNNPACK makes it: the site's own grid comes back exactly.
    const double scale = 0.030499806627631187;
    const QuantSite affine = activationSite(SiteForm::QdqPair, -128, 127, false, scale, -95);
    const SiteQparams own = respecifiedQparams(affine, same, x);
    EXPECT_EQ(own.scale, std::vector<double>{scale});
    EXPECT_EQ(own.zeroPoint, std::vector<std::int64_t>{-95});
    EXPECT_TRUE(respecifiedSite(affine, same)(x).equal(at::fake_quantize_per_tensor_affine(x, scale, -95, -128, 127)));
    // coreai-opt's symmetric: 127.5 steps to either side.
    const double symmetricScale = 0.02450980432331562;
    const QuantSite symmetric = activationSite(SiteForm::DecomposedFakeQuant, -128, 127, true, symmetricScale, 0);
    EXPECT_EQ(respecifiedQparams(symmetric, same, x).scale, std::vector<double>{symmetricScale});
    // Four bits over the same range: 255 steps become 15.
    SpecChange four;
    four.bits = 4;
    const SiteQparams coarse = respecifiedQparams(affine, four, x);
    EXPECT_EQ(coarse.quantMin, -8);
    EXPECT_EQ(coarse.quantMax, 7);
    EXPECT_EQ(coarse.scale.front(), static_cast<double>(static_cast<float>(scale * 255 / 15)));
    // low = -33 s = -1.00649; low / (17 s) = -1.94; -8 + 2
    EXPECT_EQ(coarse.zeroPoint, std::vector<std::int64_t>{-6});
    // 16 bits are nearly exact.
    SpecChange sixteen;
    sixteen.bits = 16;
    SnrAccumulator snr;
    const at::Tensor inside = x.clamp(-0.99, 6.7);
    snr.add(inside, respecifiedSite(affine, sixteen)(inside));
    EXPECT_GT(snr.snrDb(), 90);
}

TEST(SiteKernelsRespecified, PerChannelActivationAndDynamicSitesTakeEachTensorsRange)
{
    at::manual_seed(4);
    at::Tensor x = at::randn({2, 3, 4, 4});
    x.select(1, 0).mul_(100);
    const QuantSite site = activationSite(SiteForm::QdqPair, -128, 127, false, 1.0, 0);
    SpecChange change;
    change.granularity = Granularity::PerChannel;
    const SiteQparams q = respecifiedQparams(site, change, x);
    ASSERT_EQ(q.scale.size(), 3U);
    std::vector<float> scales;
    std::vector<int> zeros;
    for (int c = 0; c < 3; ++c) {
        const float low = std::min(x.select(1, c).min().item<float>(), 0.0F);
        const float high = std::max(x.select(1, c).max().item<float>(), 0.0F);
        scales.push_back((high - low) / 255.0F);
        zeros.push_back(-128 - static_cast<int>(std::nearbyint(low / scales.back())));
        EXPECT_EQ(static_cast<float>(q.scale[static_cast<std::size_t>(c)]), scales.back());
        EXPECT_EQ(q.zeroPoint[static_cast<std::size_t>(c)], zeros.back());
    }
    EXPECT_TRUE(respecifiedSite(site, change)(x).equal(
        at::fake_quantize_per_channel_affine(x, at::tensor(scales), at::tensor(zeros), 1, -128, 127)));

    QuantSite dynamic = site;
    dynamic.spec.dynamic = true;
    dynamic.scale.clear();
    dynamic.zeroPoint.clear();
    const SiteQparams whole = respecifiedQparams(dynamic, SpecChange{}, x);
    const float low = x.min().item<float>();
    EXPECT_EQ(static_cast<float>(whole.scale.front()), (x.max().item<float>() - low) / 255.0F);
}

TEST(SiteKernelsRespecified, TokensAreRowsOfTheLastAxis)
{
    const at::Tensor x = at::tensor({1.0F, -2.0F, 0.0F, 3.0F, 30.0F, 15.0F}).reshape({1, 2, 3});
    const QuantSite site = activationSite(SiteForm::QdqPair, -127, 127, true, 1.0, 0);
    SpecChange change;
    change.granularity = Granularity::PerToken;
    const SiteQparams q = respecifiedQparams(site, change, x);
    EXPECT_EQ(q.scale, (std::vector<double>{static_cast<double>(2.0F / 127.0F), static_cast<double>(30.0F / 127.0F)}));
    EXPECT_EQ(q.zeroPoint, (std::vector<std::int64_t>{0, 0}));
}

TEST(SiteKernelsRespecified, TransposedConvolutionHasItsChannelsOnAxisOne)
{
    const at::Tensor w = at::tensor({1.0F, 100.0F, 2.0F, 50.0F}).reshape({2, 2, 1, 1});
    QuantSite site = weightSite({{"divides", true},
                                 {"quant_min", -128},
                                 {"quant_max", 127},
                                 {"symmetric", true},
                                 {"granularity", "tensor"},
                                 {"axis", -1},
                                 {"block", 0},
                                 {"scale", {1.0}},
                                 {"zero_point", {0}}});
    SpecChange change;
    change.granularity = Granularity::PerChannel;
    const auto f = [](float v) { return static_cast<double>(v / 127.5F); };
    EXPECT_EQ(respecifiedQparams(site, change, w).scale, (std::vector<double>{f(100), f(50)}));
    site.moduleType = "torch.nn.modules.conv.ConvTranspose2d";
    EXPECT_EQ(respecifiedQparams(site, change, w).scale, (std::vector<double>{f(2), f(100)}));
}

TEST(SiteKernelsRespecified, HalfPrecisionIsComputedAsThePeerDoes)
{
    // torchao widens first; coreai-opt computes the scale in the weight's type: 2 / 127.5 in bfloat16.
    const at::Tensor w = at::tensor({2.0F, -1.0F, 0.5F, 0.25F}).to(at::kBFloat16);
    nlohmann::json c{{"divides", true},   {"quant_min", -128},       {"quant_max", 127},
                     {"symmetric", true}, {"granularity", "tensor"}, {"axis", -1},
                     {"block", 0},        {"scale", {1.0}},          {"zero_point", {0}}};
    EXPECT_EQ(respecifiedQparams(weightSite(c), SpecChange{}, w).scale, std::vector<double>{0.0157470703125});
    c["divides"] = false;
    EXPECT_EQ(respecifiedQparams(weightSite(c), SpecChange{}, w).scale,
              std::vector<double>{static_cast<double>(2.0F / 127.5F)});
    EXPECT_EQ(respecifiedSite(weightSite(c), SpecChange{})(w).scalar_type(), at::kBFloat16);
}

TEST(SiteKernelsRespecified, WhatIsImpossibleSaysSo)
{
    QuantSite site;
    site.role = SiteRole::Weight;
    SpecChange blocks;
    blocks.granularity = Granularity::PerBlock;
    EXPECT_EQ(respecifyProblem(site, blocks, {8, 9, 3, 3}), "blocks of 32 do not divide the 9 entries of axis 1");
    EXPECT_EQ(respecifyProblem(site, blocks, {8, 64}), "");
    EXPECT_THROW(static_cast<void>(respecifiedSite(site, blocks)(at::randn({8, 9}))), c10::Error);
    SpecChange bits;
    bits.bits = 1;
    EXPECT_EQ(respecifyProblem(site, bits, {8, 9}), "1 bits: 2 to 16 are possible");
    EXPECT_THROW(static_cast<void>(respecifiedSite(site, SpecChange{})(at::full({3}, 1, at::kInt))), c10::Error);
}

TEST(SiteKernelsRespecified, NanStaysVisible)
{
    const at::Tensor x = at::tensor({1.0F, std::numeric_limits<float>::quiet_NaN(), -1.0F});
    for (const SiteForm form : {SiteForm::QdqPair, SiteForm::DecomposedFakeQuant}) {
        const at::Tensor y = respecifiedSite(activationSite(form, -128, 127, false, 0.1, 0), SpecChange{})(x);
        EXPECT_EQ(y[0].item<float>(), 1.0F);
        EXPECT_TRUE(std::isnan(y[1].item<float>()));
    }
}

} // namespace
} // namespace dblame

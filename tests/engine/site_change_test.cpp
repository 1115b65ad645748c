// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sites under other element types and ranges, against the numbers that coreai-opt and torchao gave
// (tests/data/quantizer/conformance.json) and against LibTorch's own operators.
#include "core/engine/site_change.h"

#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include <ATen/ops/fake_quantize_per_tensor_affine.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "core/spec_change.h"
#include "tests/engine/quantizer_support.h"

namespace dblame
{
namespace
{

QuantSite weightSite(bool divides, bool restricted)
{
    QuantSite site;
    site.id = "fc/weight";
    site.role = SiteRole::Weight;
    site.form = divides ? SiteForm::DecomposedFakeQuant : SiteForm::DequantizedWeight;
    site.moduleType = "torch.nn.modules.linear.Linear";
    site.spec.divides = divides;
    site.spec.symmetric = true;
    site.spec.quantMin = restricted ? -127 : -128;
    site.spec.granularity = Granularity::PerChannel;
    site.spec.axis = 0;
    site.scale = {0.5, 0.25, 0.125, 0.5};
    site.zeroPoint = {0, 0, 0, 0};
    return site;
}

QuantSite activationSite(double scale, std::int64_t zeroPoint, bool symmetric = false)
{
    QuantSite site;
    site.id = "conv/out";
    site.spec.symmetric = symmetric;
    site.scale = {scale};
    site.zeroPoint = {zeroPoint};
    return site;
}

SpecChange typed(ElementType type, Granularity granularity = Granularity::PerTensor)
{
    SpecChange change;
    change.type = type;
    change.granularity = granularity;
    return change;
}

// --- weights: what coreai-opt makes of the same tensor -----------------------------------------------------------

std::vector<nlohmann::json> peersWeights()
{
    std::vector<nlohmann::json> cases;
    for (const auto &c : conformance().at("cases")) {
        if (!std::string(c.at("id")).starts_with("coreai_weight_") || !c.at("config").is_object())
            continue;
        const bool power = c.at("config").contains("scale_dtype") && !c.at("config").at("scale_dtype").is_null();
        const bool oneSize = std::string(c.at("config").at("granularity")).find('x', 11) == std::string::npos ||
                             std::string(c.at("config").at("granularity")).starts_with("per_block_ax");
        if (!oneSize) // per_block_2x16: a SpecChange has one block size
            continue;
        if (!power || c.at("config").at("dtype") == "float4_e2m1fn")
            cases.push_back(c);
    }
    return cases;
}

class PeersWeight : public testing::TestWithParam<nlohmann::json>
{
};

TEST_P(PeersWeight, IsReachedFromAnInt8PerChannelSite)
{
    const nlohmann::json &c = GetParam();
    const nlohmann::json &config = c.at("config");
    const std::string scheme = config.value("qscheme", "symmetric");
    const std::string granularity = config.at("granularity");
    const QuantSite site = weightSite(true, scheme == "symmetric_with_clipping");
    SpecChange change = typed(*elementTypeFromName(std::string(config.at("dtype"))));
    change.symmetric = scheme != "asymmetric";
    if (granularity.starts_with("per_channel"))
        change.granularity = Granularity::PerChannel;
    if (granularity.starts_with("per_block_ax1_")) {
        change.granularity = Granularity::PerBlock;
        change.blockSize = std::stoi(granularity.substr(14));
    }
    QuantSite own = site;
    own.spec.axis = granularity == "per_channel1" ? 1 : 0;
    if (granularity.starts_with("per_block_ax0_")) { // blocks along an axis that is not the operator's: the site's own
        own.spec.granularity = change.granularity = Granularity::PerBlock;
        change.blockSize = std::stoi(granularity.substr(14));
    }
    const at::Tensor w = namedTensor(c.at("tensors").back());
    const SiteQparams q = changedQparams(own, change, w);
    EXPECT_EQ(q.scale, c.at("scale").get<std::vector<double>>());
    if (!c.at("zero_point").is_null()) {
        EXPECT_EQ(q.zeroPoint, c.at("zero_point").get<std::vector<std::int64_t>>());
    }
    const at::Tensor y = changedSite(own, change)(w);
    ASSERT_EQ(y.sizes(), w.sizes());
    EXPECT_NEAR(snrDb(w, y), c.at("snr_db").get<double>(), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(SiteChange, PeersWeight, testing::ValuesIn(peersWeights()), [](const auto &test) {
    std::string name = test.param.at("id");
    for (char &ch : name)
        ch = std::isalnum(static_cast<unsigned char>(ch)) != 0 ? ch : '_';
    return name;
});

TEST(SiteChange, TheTestedWeightsHoldEveryKindOfType)
{
    std::set<std::string> types;
    for (const auto &c : peersWeights())
        types.insert(c.at("config").at("dtype"));
    for (const char *type : {"int2", "int4", "int8", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"})
        EXPECT_TRUE(types.contains(type)) << type;
}

// --- activations -------------------------------------------------------------------------------------------------

TEST(SiteChange, AnotherIntegerTypeKeepsTheRangeOfTheSitesOwnScale)
{
    const QuantSite site = activationSite(0.1F, -10);
    const at::Tensor x = at::randn({5, 7}).mul_(8);
    // 256 steps of the same range: the same steps, counted from elsewhere.
    SpecChange change = typed(ElementType::UInt8);
    SiteQparams q = changedQparams(site, change, x);
    EXPECT_EQ(q.scale, std::vector<double>{0.1F});
    EXPECT_EQ(q.zeroPoint, std::vector<std::int64_t>{118});
    EXPECT_TRUE(changedSite(site, change)(x).equal(at::fake_quantize_per_tensor_affine(x, 0.1F, 118, 0, 255)));
    // Its own type is the site as it is.
    change = typed(ElementType::Int8);
    EXPECT_TRUE(changedSite(site, change)(x).equal(at::fake_quantize_per_tensor_affine(x, 0.1F, -10, -128, 127)));
    // 65535 steps: 257 times as fine.
    q = changedQparams(site, typed(ElementType::UInt16), x);
    EXPECT_EQ(q.scale, std::vector<double>{static_cast<float>(static_cast<double>(0.1F) / 257)});
    EXPECT_EQ(q.quantMax, 65535);
    // The range does not depend on the tensor.
    EXPECT_EQ(fixedQparams(site, change).scale, std::vector<double>{0.1F});
}

TEST(SiteChange, FloatingTypesTakeTheLargerEndOfTheRange)
{
    const QuantSite site = activationSite(0.1F, -10); // -11.8 .. 13.7
    const at::Tensor x = at::randn({64}).mul_(8);
    for (const auto &[type, storage, largest] : {std::tuple(ElementType::Float8E4M3, at::kFloat8_e4m3fn, 448.0),
                                                 std::tuple(ElementType::Float8E5M2, at::kFloat8_e5m2, 57344.0)}) {
        const SiteQparams q = changedQparams(site, typed(type), x);
        const auto scale = static_cast<float>(static_cast<double>(0.1F) * 137 / largest);
        EXPECT_EQ(q.scale, std::vector<double>{scale});
        EXPECT_TRUE(q.zeroPoint.empty());
        const at::Tensor expected = x.div(scale).clamp(-largest, largest).to(storage).to(at::kFloat).mul(scale);
        EXPECT_TRUE(changedSite(site, typed(type))(x).equal(expected));
    }
    // A symmetric int8 site was made from +-127.5 of its steps.
    EXPECT_EQ(changedQparams(activationSite(0.1F, 0, true), typed(ElementType::Float8E4M3), x).scale,
              std::vector<double>{static_cast<float>(static_cast<double>(0.1F) * 127.5 / 448)});
    // And back: a floating site's range is its scale times its largest value.
    QuantSite floating = activationSite(0.5, 0, true);
    floating.spec.storage = DType::Float8E4M3FN;
    floating.spec.quantMin = floating.spec.quantMax = 0;
    floating.zeroPoint.clear();
    EXPECT_EQ(changedQparams(floating, typed(ElementType::Int8), x).scale,
              std::vector<double>{static_cast<float>(448.0 * 0.5 * 2 / 255)});
    SpecChange bits;
    EXPECT_EQ(changedQparams(floating, bits, x).scale, std::vector<double>{static_cast<float>(448.0 * 0.5 * 2 / 255)});
}

TEST(SiteChange, FourBitFloatsAreTheirEightMagnitudes)
{
    // Largest magnitude 11.8 -> 2^3, scale 2^(3 - 2) = 2; values / 2 to the nearest of 0 .5 1 1.5 2 3 4 6.
    const QuantSite site = activationSite(0.1F, 9, false); // -13.7 .. 11.8
    const at::Tensor x = tensorOf({0.4F, 0.6F, 3.1F, -4.9F, 7.2F, 9.9F, 20.0F, -20.0F});
    EXPECT_EQ(changedQparams(site, typed(ElementType::Float4E2M1), x).scale, std::vector<double>{2});
    EXPECT_EQ(elements(changedSite(site, typed(ElementType::Float4E2M1))(x)),
              (std::vector<double>{0, 1, 3, -4, 8, 8, 12, -12}));
}

TEST(SiteChange, CastsNeedNoRange)
{
    const QuantSite site = activationSite(0.1F, 0);
    const at::Tensor x = tensorOf({1.00390625F, 3.14159265F, -70000.0F, std::numeric_limits<float>::quiet_NaN()});
    const at::Tensor bf16 = changedSite(site, typed(ElementType::BFloat16))(x);
    EXPECT_EQ(bf16.scalar_type(), at::kFloat);
    EXPECT_TRUE(bf16.slice(0, 0, 3).equal(x.slice(0, 0, 3).to(at::kBFloat16).to(at::kFloat)));
    EXPECT_TRUE(std::isnan(bf16[3].item<float>()));
    EXPECT_EQ(changedSite(site, typed(ElementType::Float16))(x)[2].item<float>(),
              -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(changedQparams(site, typed(ElementType::BFloat16), x).scale.empty());
}

TEST(SiteChange, AGivenRangeReplacesTheSitesOwn)
{
    const QuantSite site = activationSite(0.1F, -10); // -11.8 .. 13.7
    const at::Tensor x = at::randn({64}).mul_(2);
    SpecChange change = typed(ElementType::Int8);
    change.low = -1;
    change.high = 3;
    const auto scale = 4.0F / 255;
    for (const bool byType : {true, false}) {
        if (!byType)
            change.type.reset(); // 8 bits of the site's own kind
        const SiteQparams q = changedQparams(site, change, x);
        EXPECT_EQ(q.scale, std::vector<double>{scale});
        EXPECT_EQ(q.zeroPoint, std::vector<std::int64_t>{-64}); // -128 - rint(-63.75)
        EXPECT_TRUE(changedSite(site, change)(x).equal(at::fake_quantize_per_tensor_affine(x, scale, -64, -128, 127)));
    }
    // 12 bits have no type of their own.
    change.bits = 12;
    EXPECT_EQ(changedQparams(site, change, x).scale, std::vector<double>{4.0F / 4095});
    EXPECT_EQ(changedQparams(site, change, x).quantMin, -2048);
    // One end: the other stays.
    change = typed(ElementType::Int8);
    change.high = 0.5;
    EXPECT_EQ(changedQparams(site, change, x).scale,
              std::vector<double>{static_cast<float>((static_cast<double>(0.1F) * 118 + 0.5) / 255)});
    // Of values where no range is in the file.
    QuantSite dynamic = site;
    dynamic.spec.dynamic = true;
    dynamic.scale.clear();
    dynamic.zeroPoint.clear();
    const at::Tensor known = tensorOf({-2, 0, 1.5F, 3});
    EXPECT_EQ(changedQparams(dynamic, change, known).scale, std::vector<double>{2.5F / 255});
    change.high.reset();
    EXPECT_EQ(changedQparams(dynamic, change, known).scale, std::vector<double>{5.0F / 255});
    EXPECT_TRUE(fixedQparams(dynamic, change).scale.empty());
    // A weight's range may be given too.
    SpecChange weight = typed(ElementType::Int4);
    weight.low = -0.75;
    weight.high = 0.75;
    EXPECT_EQ(changedQparams(weightSite(true, false), weight, x).scale, std::vector<double>{0.1F});
}

TEST(SiteChange, TokensAndBlocksOfActivationsHaveTheirOwnScales)
{
    QuantSite site = activationSite(0.1F, 0);
    site.moduleType = "torch.nn.modules.linear.Linear";
    const at::Tensor x = tensorOf({1, 2, 4, 8, 0.5F, -1, 2, -16}).reshape({1, 2, 4});
    SpecChange change = typed(ElementType::Float8E4M3, Granularity::PerToken);
    EXPECT_EQ(changedQparams(site, change, x).scale, (std::vector<double>{8.0F / 448, 16.0F / 448}));
    change = typed(ElementType::Float8E4M3, Granularity::PerBlock);
    change.blockSize = 2;
    EXPECT_EQ(changedQparams(site, change, x).scale,
              (std::vector<double>{2.0F / 448, 8.0F / 448, 1.0F / 448, 16.0F / 448}));
    EXPECT_EQ(changedSite(site, change)(x).sizes(), x.sizes());
}

// --- words -------------------------------------------------------------------------------------------------------

TEST(SiteChange, SaysWhereTheRangeComesFrom)
{
    const QuantSite site = activationSite(0.1F, -10);
    const std::string from = "from the reference's weight";
    EXPECT_EQ(rangeWords(site, typed(ElementType::UInt8), from), "range -11.8 .. 13.7 from the site's own scale");
    EXPECT_EQ(rangeWords(site, SpecChange{}, from), "range -11.8 .. 13.7 from the site's own scale");
    EXPECT_EQ(rangeWords(site, typed(ElementType::UInt8, Granularity::PerToken), from), "range of each token");
    EXPECT_EQ(rangeWords(site, typed(ElementType::BFloat16), from), "");
    EXPECT_EQ(rangeWords(weightSite(false, true), typed(ElementType::Int4), from), "range from the reference's weight");
    SpecChange given = typed(ElementType::Int8);
    given.low = -1;
    EXPECT_EQ(rangeWords(site, given, from), "range -1 .. 13.7 from the site's own scale and the given end");
    given.high = 2.5;
    EXPECT_EQ(rangeWords(site, given, from), "range -1 .. 2.5 as given");
}

TEST(SiteChange, WhatDoesNotFitIsThrownInWords)
{
    const at::Tensor x = at::randn({4, 9});
    SpecChange blocks = typed(ElementType::Int4, Granularity::PerBlock);
    EXPECT_THROW(static_cast<void>(changedSite(weightSite(true, true), blocks)(x)), c10::Error);
    const at::Tensor nan = at::full({3}, std::numeric_limits<float>::quiet_NaN());
    QuantSite dynamic = activationSite(0.1F, 0);
    dynamic.spec.dynamic = true;
    EXPECT_THROW(static_cast<void>(changedSite(dynamic, typed(ElementType::UInt8))(nan)), c10::Error);
    EXPECT_EQ(changedSite(dynamic, typed(ElementType::UInt8))(at::randn({0, 3})).numel(), 0);
}

} // namespace
} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/quantize_tensor.h"

#include <cmath>
#include <limits>

#include <ATen/ops/empty.h>
#include <ATen/ops/fake_quantize_per_channel_affine.h>
#include <ATen/ops/fake_quantize_per_tensor_affine.h>
#include <ATen/ops/full.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/quantizer_support.h"

namespace dblame
{
namespace
{

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::int64_t> counts(const TensorSpec &spec, SiteRole role, std::vector<std::int64_t> shape)
{
    return need(unitsOf(spec, role, shape)).counts;
}

// --- units --------------------------------------------------------------------------------------

TEST(Units, ScaleShapes)
{
    TensorSpec spec;
    EXPECT_TRUE(counts(spec, SiteRole::Weight, {2, 8, 3, 3}).empty());
    spec.granularity = Granularity::PerChannel;
    EXPECT_THAT(counts(spec, SiteRole::Weight, {2, 8, 3, 3}), ElementsAre(2, 1, 1, 1));
    spec.axis = -3;
    EXPECT_THAT(counts(spec, SiteRole::Output, {2, 8, 3, 3}), ElementsAre(1, 8, 1, 1));
    spec.granularity = Granularity::PerToken;
    EXPECT_THAT(counts(spec, SiteRole::Output, {2, 8, 5}), ElementsAre(2, 8, 1));
    spec.granularity = Granularity::PerBlock;
    spec.axis = 1;
    spec.blockSizes = {4};
    EXPECT_THAT(counts(spec, SiteRole::Weight, {2, 8, 3, 3}), ElementsAre(2, 2, 1, 1));
    EXPECT_THAT(counts(spec, SiteRole::Output, {2, 8, 3, 3}), ElementsAre(2, 2, 3, 3));
    spec.axis.reset();
    EXPECT_THAT(counts(spec, SiteRole::Weight, {2, 8, 3, 3}), ElementsAre(2, 2, 1, 1));
    spec.axis = 0;
    spec.blockSizes = {16};
    EXPECT_THAT(counts(spec, SiteRole::Weight, {32, 8, 3, 3}), ElementsAre(2, 8, 1, 1));
    spec.axis.reset();
    spec.blockSizes = {4, 16, 3, -1};
    EXPECT_THAT(counts(spec, SiteRole::Weight, {8, 32, 3, 5}), ElementsAre(2, 2, 1, 1));
}

TEST(Units, RefusalsSayWhatToDo)
{
    TensorSpec spec;
    const auto refusal = [&](SiteRole role, std::vector<std::int64_t> shape) {
        const auto units = unitsOf(spec, role, shape);
        EXPECT_FALSE(units);
        return units ? "" : units.error().message;
    };
    spec.granularity = Granularity::PerBlock;
    spec.axis = 1;
    spec.blockSizes = {4};
    EXPECT_THAT(refusal(SiteRole::Weight, {2, 9}), HasSubstr("blocks of 4 do not divide dimension 1 of 2×9"));
    spec.blockSizes = {2, 3};
    spec.axis.reset();
    EXPECT_THAT(refusal(SiteRole::Weight, {2, 9, 3}), HasSubstr("2 block sizes for a tensor with 3 dimensions"));
    spec.granularity = Granularity::PerChannel;
    EXPECT_THAT(refusal(SiteRole::Output, {2, 9}), HasSubstr("needs an axis"));
    spec.axis = 2;
    EXPECT_THAT(refusal(SiteRole::Weight, {2, 9}), HasSubstr("axis 2 of a tensor with 2 dimensions"));
}

TEST(Units, RangesOfEachUnit)
{
    TensorSpec spec;
    spec.granularity = Granularity::PerBlock;
    spec.blockSizes = {2, 3};
    const at::Tensor x = numbers(9, 4 * 6).reshape({4, 6});
    const UnitRanges ranges = rangesOf(x, need(unitsOf(spec, SiteRole::Weight, x.sizes())));
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
            const at::Tensor block = x.narrow(0, 2 * i, 2).narrow(1, 3 * j, 3);
            EXPECT_EQ(ranges.low[i][j].item().toFloat(), block.min().item().toFloat());
            EXPECT_EQ(ranges.high[i][j].item().toFloat(), block.max().item().toFloat());
        }
}

// --- integers -----------------------------------------------------------------------------------

TEST(QuantizeTensor, ReciprocalAndDivisionDifferOnTies)
{
    TensorSpec spec;
    const Qparams qparams = need(givenQparams(spec, {static_cast<double>(0.007F)}, {0}));
    at::Tensor x = at::empty({20000});
    TensorSpec wide = spec;
    wide.type = ElementType::Int16;
    wide.quantMin = -32768;
    wide.quantMax = 32767;
    const Qparams wideQparams = need(givenQparams(wide, {static_cast<double>(0.007F)}, {0}));
    for (int k = 0; k < 20000; ++k)
        x.mutable_data_ptr<float>()[k] = (static_cast<float>(k) + 0.5F) * 0.007F;
    const at::Tensor reciprocal = need(quantizeTensor(x, wideQparams, wide, SiteRole::Output));
    wide.arithmetic = Arithmetic::Division;
    const at::Tensor division = need(quantizeTensor(x, wideQparams, wide, SiteRole::Output));
    EXPECT_EQ(reciprocal.ne(division).sum().item().toLong(), 5255);
}

TEST(QuantizeTensor, ZeroPointAfterRoundingButBeforePerToken)
{
    TensorSpec spec;
    const at::Tensor x = tensorOf({0.5F, 1.5F, 2.5F}).reshape({1, 3});
    EXPECT_THAT(elements(need(quantizeTensor(x, need(givenQparams(spec, {1}, {1})), spec, SiteRole::Output))),
                ElementsAre(1, 3, 3));
    spec.granularity = Granularity::PerToken;
    EXPECT_THAT(elements(need(quantizeTensor(x, need(givenQparams(spec, {1}, {1}, {1, 1})), spec, SiteRole::Output))),
                ElementsAre(2, 2, 4));
}

TEST(QuantizeTensor, EdgeValuesOfThePeer)
{
    TensorSpec spec;
    const Qparams qparams = need(givenQparams(spec, {static_cast<double>(0.1F)}, {3}));
    const at::Tensor q =
        need(quantizeTensor(tensorOf({kNan, kInf, -kInf, 1e30F, -1e30F}), qparams, spec, SiteRole::Output));
    EXPECT_THAT(elements(q), ElementsAre(0, 127, -128, 127, -128));
}

TEST(QuantizeTensor, CoreAiExamplesOfTheDocument)
{
    const at::Tensor x = tensorOf({-1, 0.5F, 2, 0.25F});
    const auto integers = [&](const TensorSpec &spec) {
        const Qparams qparams = need(chooseQparams(x, spec, SiteRole::Output));
        return elements(need(quantizeTensor(x, qparams, spec, SiteRole::Output)));
    };
    EXPECT_THAT(integers(coreAiSpec(ElementType::Int8, Scheme::Symmetric, Granularity::PerTensor)),
                ElementsAre(-64, 32, 127, 16));
    EXPECT_THAT(integers(coreAiSpec(ElementType::Int8, Scheme::SymmetricWithClipping, Granularity::PerTensor)),
                ElementsAre(-64, 32, 127, 16));
    TensorSpec affine = coreAiSpec(ElementType::Int8, Scheme::Affine, Granularity::PerTensor);
    EXPECT_THAT(integers(affine), ElementsAre(-128, -1, 127, -22));
    affine.minValue = true;
    EXPECT_THAT(integers(affine), ElementsAre(-128, 0, 127, -22));
    EXPECT_THAT(integers(coreAiSpec(ElementType::Int4, Scheme::Symmetric, Granularity::PerTensor)),
                ElementsAre(-4, 2, 7, 1));
    EXPECT_THAT(integers(coreAiSpec(ElementType::UInt4, Scheme::Affine, Granularity::PerTensor)),
                ElementsAre(0, 7, 15, 6));
    // The positive extreme does not survive a divisor of 127.5.
    const TensorSpec spec = coreAiSpec(ElementType::Int8, Scheme::Symmetric, Granularity::PerTensor);
    const at::Tensor constant = at::full({1}, 2.5F);
    const Qparams qparams = need(chooseQparams(constant, spec, SiteRole::Output));
    EXPECT_FLOAT_EQ(need(fakeQuantize(constant, qparams, spec, SiteRole::Output)).item().toFloat(), 2.4901962F);
}

TEST(QuantizeTensor, NarrowAndWideTypesStayInTheirRange)
{
    const at::Tensor x = numbers(21, 4096).mul(5);
    for (const auto name : {"int2", "uint2", "int3", "uint3", "int4", "uint4", "int5", "uint5", "int6", "uint6", "int7",
                            "uint7", "int8", "uint8", "int16", "uint16"}) {
        const ElementType type = *elementTypeFromName(name);
        const TensorSpec spec = coreAiSpec(type, Scheme::Affine, Granularity::PerTensor);
        const Qparams qparams = need(chooseQparams(x, spec, SiteRole::Output));
        const at::Tensor q = need(quantizeTensor(x, qparams, spec, SiteRole::Output)).to(at::kLong);
        EXPECT_EQ(q.min().item().toLong(), spec.quantMin) << name;
        EXPECT_EQ(q.max().item().toLong(), spec.quantMax) << name;
        const at::Tensor y = need(fakeQuantize(x, qparams, spec, SiteRole::Output));
        EXPECT_LE(y.sub(x).abs().max().item().toDouble(), qparams.scales().at(0) * 1.01) << name;
    }
}

TEST(QuantizeTensor, DynamicChoosesFromTheTensor)
{
    TensorSpec spec = xnnpackActivation(ObserverKind::Dynamic);
    Qparams dynamic;
    dynamic.dynamic = true;
    const at::Tensor x = namedTensor("skew");
    const Qparams chosen = need(chooseQparams(x, spec, SiteRole::Input));
    EXPECT_TRUE(need(fakeQuantize(x, dynamic, spec, SiteRole::Input))
                    .equal(need(fakeQuantize(x, chosen, spec, SiteRole::Input))));
    EXPECT_EQ(chosen.scales().at(0), 0.030514705926179886);
}

TEST(QuantizeTensor, PerTokenOfZerosAsThePeer)
{
    TensorSpec spec = xnnpackActivation(ObserverKind::Dynamic);
    spec.granularity = Granularity::PerToken;
    EXPECT_THAT(need(chooseQparams(at::zeros({2, 3}), spec, SiteRole::Input)).zeroPoints(), ElementsAre(127, 127));
    spec.scheme = Scheme::Symmetric;
    EXPECT_THAT(need(chooseQparams(at::zeros({1, 3}), spec, SiteRole::Input)).scales(),
                ElementsAre(static_cast<double>(1e-5F / 127.0F)));
    // One token is still a token: its float64 scale widens the arithmetic as with many.
    spec.scheme = Scheme::Affine;
    const at::Tensor x = numbers(31, 2 * 257).reshape({2, 257});
    const auto all = need(chooseQparams(x, spec, SiteRole::Input));
    const auto first = need(chooseQparams(x.narrow(0, 0, 1), spec, SiteRole::Input));
    EXPECT_TRUE(need(quantizeTensor(x, all, spec, SiteRole::Input))
                    .narrow(0, 0, 1)
                    .equal(need(quantizeTensor(x.narrow(0, 0, 1), first, spec, SiteRole::Input))));
}

TEST(QuantizeTensor, ChangedShapesAreRefused)
{
    const TensorSpec spec = xnnpackWeight(Granularity::PerChannel);
    const Qparams qparams = need(chooseQparams(namedTensor("weight"), spec, SiteRole::Weight));
    const auto refused = quantizeTensor(at::zeros({5, 32}), qparams, spec, SiteRole::Weight);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::Usage);
    EXPECT_FALSE(givenQparams(spec, {0.0}, {0}));
    EXPECT_FALSE(givenQparams(spec, {1.0}, {200}));
    EXPECT_FALSE(givenQparams(spec, {1.0, 2.0}, {0, 0}, {3, 1}));
}

// --- fake quantization --------------------------------------------------------------------------

TEST(FakeQuantize, EqualsTheOperatorsOfTorch)
{
    const at::Tensor x = numbers(41, 6 * 40).mul(3).reshape({2, 6, 4, 5});
    const TensorSpec tensor = xnnpackActivation(ObserverKind::MinMax);
    const Qparams one = need(chooseQparams(x, tensor, SiteRole::Output));
    const at::Tensor expected =
        at::fake_quantize_per_tensor_affine(x, one.scales().at(0), one.zeroPoints().at(0), -128, 127);
    EXPECT_TRUE(need(fakeQuantize(x, one, tensor, SiteRole::Output)).equal(expected));
    TensorSpec channel = tensor;
    channel.granularity = Granularity::PerChannel;
    for (int axis = 0; axis < 4; ++axis) {
        channel.axis = axis;
        const Qparams many = need(chooseQparams(x, channel, SiteRole::Output));
        const at::Tensor each = at::fake_quantize_per_channel_affine(
            x, many.scale.reshape({-1}), many.zeroPoint.reshape({-1}).to(at::kInt), axis, -128, 127);
        EXPECT_TRUE(need(fakeQuantize(x, many, channel, SiteRole::Output)).equal(each)) << axis;
        const at::Tensor strided = x.transpose(1, 3).contiguous().transpose(1, 3);
        EXPECT_TRUE(need(fakeQuantize(strided, many, channel, SiteRole::Output)).equal(each)) << axis;
    }
}

// Integers first, then their values: the long way round, which no loop shortens.
TEST(FakeQuantize, EqualsIntegersReadBack)
{
    const at::Tensor x = numbers(43, 8 * 64 * 3).mul(2).reshape({8, 64, 3});
    for (const bool divides : {false, true})
        for (const auto &[granularity, axis, sizes] :
             {std::tuple{Granularity::PerTensor, 0, std::vector<std::int64_t>{}},
              {Granularity::PerChannel, 0, {}},
              {Granularity::PerChannel, 1, {}},
              {Granularity::PerChannel, 2, {}},
              {Granularity::PerToken, 0, {}},
              {Granularity::PerBlock, 1, {16}},
              {Granularity::PerBlock, 0, {4}},
              {Granularity::PerBlock, 0, {2, 8, 3}},
              {Granularity::PerBlock, 0, {-1, 8, -1}},
              {Granularity::PerBlock, 0, {1, -1, 1}}}) {
            TensorSpec spec = coreAiSpec(ElementType::Int8, Scheme::Affine, granularity);
            if (!divides) {
                spec.rule = QparamRule::Torchao;
                spec.arithmetic = Arithmetic::Reciprocal;
            }
            spec.blockSizes = sizes;
            if (sizes.size() < 2)
                spec.axis = axis;
            const Qparams qparams = need(chooseQparams(x, spec, SiteRole::Weight));
            const at::Tensor q = need(quantizeTensor(x, qparams, spec, SiteRole::Weight));
            EXPECT_TRUE(need(fakeQuantize(x, qparams, spec, SiteRole::Weight))
                            .equal(need(dequantizeTensor(q, qparams, spec, SiteRole::Weight, at::kFloat))))
                << spec.text() << (divides ? " divides" : " multiplies");
        }
}

TEST(FakeQuantize, HalfTypesEqualTorchao)
{
    int checked = 0;
    for (const auto &c : peerSequences().at("half_types")) {
        if (c.at("peer") != "torchao")
            continue;
        const std::string granularity = c.at("granularity");
        SCOPED_TRACE(granularity + " " + c.at("dtype").get<std::string>());
        const bool channel = granularity == "channel";
        const TensorSpec spec =
            channel ? xnnpackWeight(Granularity::PerChannel)
                    : xnnpackActivation(granularity == "tensor" ? ObserverKind::MinMax : ObserverKind::Dynamic);
        const auto role = channel ? SiteRole::Weight : SiteRole::Input;
        const at::Tensor x = numbers(c.at("seed"), 192)
                                 .mul(3)
                                 .reshape({6, 32})
                                 .to(c.at("dtype") == "float16" ? at::kHalf : at::kBFloat16);
        const Qparams qparams = need(chooseQparams(x, spec, role));
        EXPECT_EQ(qparams.scales(), c.at("scale").get<std::vector<double>>());
        EXPECT_EQ(qparams.zeroPoints(), c.at("zero_point").get<std::vector<std::int64_t>>());
        EXPECT_EQ(hashOf(need(quantizeTensor(x, qparams, spec, role))), c.at("integers_hash").get<std::string>());
        const at::Tensor y = need(fakeQuantize(x, qparams, spec, role));
        EXPECT_EQ(y.scalar_type(), x.scalar_type());
        EXPECT_EQ(hashOf(y), c.at("values_hash").get<std::string>());
        ++checked;
    }
    EXPECT_EQ(checked, 6);
}

TEST(FakeQuantize, NanByArithmetic)
{
    TensorSpec spec;
    const Qparams qparams = need(givenQparams(spec, {0.5}, {3}));
    EXPECT_EQ(need(fakeQuantize(tensorOf({kNan}), qparams, spec, SiteRole::Output)).item().toFloat(), -1.5F);
    spec.arithmetic = Arithmetic::Division;
    EXPECT_TRUE(std::isnan(need(fakeQuantize(tensorOf({kNan}), qparams, spec, SiteRole::Output)).item().toFloat()));
}

TEST(FakeQuantize, Float4TiesGoToTheEvenCode)
{
    const TensorSpec spec = coreAiSpec(ElementType::Float4E2M1, Scheme::Symmetric, Granularity::PerTensor);
    const Qparams unit = need(givenQparams(spec, {1.0}, {}));
    const at::Tensor x = tensorOf({0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5, 5.01F, 99, -0.75F, -7});
    EXPECT_THAT(elements(need(fakeQuantize(x, unit, spec, SiteRole::Weight))),
                ElementsAre(0, 1, 1, 2, 2, 4, 4, 6, 6, -1, -6));
    EXPECT_THAT(elements(need(quantizeTensor(x, unit, spec, SiteRole::Weight))),
                ElementsAre(0, 2, 2, 4, 4, 6, 6, 7, 7, 10, 15));
    EXPECT_TRUE(std::isnan(need(fakeQuantize(tensorOf({kNan}), unit, spec, SiteRole::Weight)).item().toFloat()));
}

TEST(FakeQuantize, PowerOfTwoScales)
{
    for (const auto &[type, shift] : {std::pair{ElementType::Float4E2M1, 2}, std::pair{ElementType::Float8E4M3, 8},
                                      std::pair{ElementType::Float8E5M2, 15}, std::pair{ElementType::Int8, 6}}) {
        TensorSpec spec = coreAiSpec(type, Scheme::Symmetric, Granularity::PerTensor);
        spec.powerOfTwoScale = true;
        EXPECT_EQ(need(chooseQparams(tensorOf({-3, 1}), spec, SiteRole::Weight)).scales().at(0),
                  std::ldexp(1.0, 1 - shift));
        EXPECT_EQ(need(chooseQparams(at::zeros({2}), spec, SiteRole::Weight)).scales().at(0), 1.1754943508222875e-38);
    }
}

TEST(FakeQuantize, CastsRoundToTheirType)
{
    TensorSpec spec;
    spec.type = ElementType::BFloat16;
    const Qparams none = need(chooseQparams(tensorOf({1}), spec, SiteRole::Weight));
    const at::Tensor x = numbers(51, 500);
    EXPECT_TRUE(need(fakeQuantize(x, none, spec, SiteRole::Weight)).equal(x.to(at::kBFloat16).to(at::kFloat)));
    spec.type = ElementType::Float16;
    EXPECT_TRUE(need(fakeQuantize(x, none, spec, SiteRole::Weight)).equal(x.to(at::kHalf).to(at::kFloat)));
}

// --- defects ------------------------------------------------------------------------------------

TEST(QparamDefects, ScalesAtTheFloor)
{
    const TensorSpec spec = xnnpackWeight(Granularity::PerChannel);
    const at::Tensor w = tensorOf({1, 0.5F, 0.01F, -0.02F, 0, 0}).reshape({3, 2});
    const Qparams qparams = need(chooseQparams(w, spec, SiteRole::Weight));
    const FlooredUnits floored = flooredUnits(qparams, spec);
    EXPECT_EQ(floored.count, 2);
    EXPECT_EQ(floored.ofZeros, 1);
    const auto notes = qparamDefects(qparams, spec);
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_EQ(notes[0].defect, 9);
    EXPECT_THAT(notes[0].text, HasSubstr("1 of 3 scales"));
}

TEST(QparamDefects, ZeroPointsThatWouldWrap)
{
    TensorSpec spec = xnnpackActivation(ObserverKind::MinMax);
    spec.granularity = Granularity::PerChannel;
    spec.axis = 0;
    const Qparams qparams = need(givenQparams(spec, {0.1, 0.1, 0.1}, {127, 0, -128}, {3, 1}));
    EXPECT_EQ(wrappingZeroPoints(qparams, spec), 2);
    const auto notes = qparamDefects(qparams, spec);
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_EQ(notes[0].defect, 11);
    spec.type = ElementType::Int16;
    EXPECT_EQ(wrappingZeroPoints(qparams, spec), 0);
}

} // namespace
} // namespace dblame

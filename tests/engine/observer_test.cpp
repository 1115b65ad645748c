// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/observer.h"

#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/round.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/engine/quantize_tensor.h"
#include "tests/engine/quantizer_support.h"

namespace dblame
{
namespace
{

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

at::ScalarType typeNamed(const std::string &name)
{
    return name == "float16" ? at::kHalf : name == "bfloat16" ? at::kBFloat16 : at::kFloat;
}

Qparams observed(const TensorSpec &spec, const std::vector<at::Tensor> &batches, SiteRole role = SiteRole::Output)
{
    const auto observer = need(makeObserver(spec, role));
    for (const auto &batch : batches)
        if (auto result = observer->observe(batch); !result)
            throw std::runtime_error(result.error().text());
    return need(observer->qparams());
}

std::pair<double, std::int64_t> scaleAndZero(const Qparams &qparams)
{
    return {qparams.scales().at(0), qparams.zeroPoints().at(0)};
}

// --- histograms ---------------------------------------------------------------------------------

// As batch() of make_peer_sequences.py.
at::Tensor sequenceBatch(const nlohmann::json &c, std::size_t b)
{
    at::Tensor x = numbers(c.at("seed").get<std::uint64_t>() * 1000 + b, c.at("size"));
    const std::string kind = c.at("kind");
    if (kind == "cubes")
        x = x.mul(x).mul(x);
    else if (kind == "relu")
        x = x.clamp_min(0);
    else if (kind == "outliers")
        x = at::where(x.abs().gt(0.999), x.mul(64), x);
    else if (kind == "constant first" && b == 0)
        x = at::full_like(x, 0.75);
    else if (kind == "coarse")
        x = at::round(x.mul(8)).div(8);
    x = x.mul(c.at("scales").at(b).get<double>()).add(c.at("shifts").at(b).get<double>());
    if (kind == "infinite") {
        x.mutable_data_ptr<float>()[3] = kInf;
        x.mutable_data_ptr<float>()[5] = -kInf;
    }
    return x.to(typeNamed(c.at("dtype")));
}

TensorSpec histogramSpec(const std::string &type, bool symmetric)
{
    TensorSpec spec = xnnpackActivation(ObserverKind::Histogram);
    spec.type = *elementTypeFromName(type);
    spec.scheme = symmetric ? Scheme::Symmetric : Scheme::Affine;
    const IntegerRange range = integerRange(spec.type, spec.scheme);
    spec.quantMin = range.low;
    spec.quantMax = range.high;
    return spec;
}

TEST(HistogramObserver, EqualsThePeerBitForBitOnRandomSequences)
{
    // In half types a bin stops at 2048 or 256 counts per thread: the peer's numbers are those of one.
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    const auto &cases = peerSequences().at("histograms");
    ASSERT_EQ(cases.size(), 63U);
    for (const auto &c : cases) {
        SCOPED_TRACE("seed " + std::to_string(c.at("seed").get<int>()) + " " + c.at("kind").get<std::string>() + " " +
                     c.at("dtype").get<std::string>() + " " + c.at("type").get<std::string>());
        const auto observer = need(makeObserver(histogramSpec(c.at("type"), c.at("symmetric")), SiteRole::Output));
        for (std::size_t b = 0; b < c.at("scales").size(); ++b)
            ASSERT_TRUE(observer->observe(sequenceBatch(c, b)));
        const ObserverState state = observer->state();
        EXPECT_EQ(state.histogramLow, c.at("min").get<double>());
        EXPECT_EQ(state.histogramHigh, c.at("max").get<double>());
        EXPECT_EQ(hashOf(tensorOf(state.histogram)), c.at("histogram_hash").get<std::string>());
        const Qparams qparams = need(observer->qparams());
        EXPECT_EQ(qparams.lows().at(0), c.at("searched_min").get<double>());
        EXPECT_EQ(qparams.highs().at(0), c.at("searched_max").get<double>());
        EXPECT_EQ(qparams.scales().at(0), c.at("scale").get<double>());
        if (!(c.at("type") == "uint8" && c.at("symmetric").get<bool>())) {
            EXPECT_EQ(qparams.zeroPoints().at(0), c.at("zero_point").get<int>());
        }
    }
    at::set_num_threads(threads);
}

// The peer's operators, one after the other.
at::Tensor errorsByOperators(const at::Tensor &counts, double width, std::int64_t first, std::int64_t last,
                             std::int64_t levels)
{
    const double target = width * static_cast<double>(last - first + 1) / static_cast<double>(levels);
    const auto norm = [](const at::Tensor &from, const at::Tensor &to, const at::Tensor &density) {
        return density.mul(to.mul(to).mul(to).sub(from.mul(from).mul(from)).div(3));
    };
    const auto number = [](double v) { return at::full({}, v, at::kFloat); };
    const at::Tensor begin = at::arange(2048, at::kLong).sub(first).mul(width);
    const at::Tensor end = begin.add(width);
    const at::Tensor binOfBegin = at::clamp(at::div(begin, target, "floor"), 0, levels - 1);
    const at::Tensor binOfEnd = at::clamp(at::div(end, target, "floor"), 0, levels - 1);
    const at::Tensor density = counts.div(width);
    at::Tensor errors = at::zeros({2048});
    errors.add_(norm(begin.sub(binOfBegin.add(0.5).mul(target)), at::ones({2048}).mul(target / 2), density));
    errors.add_(binOfEnd.sub(binOfBegin).sub(1).mul(norm(number(-target / 2), number(target / 2), density)));
    return errors.add_(norm(number(-target / 2), end.sub(binOfEnd.mul(target).add(target / 2)), density));
}

TEST(HistogramObserver, ErrorOfEachBinEqualsTheOperators)
{
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const at::Tensor counts = numbers(seed, 2048).abs().mul(1000).round();
        const std::int64_t levels = seed % 4 == 0 ? 65536 : 256;
        const double width = std::ldexp(1.0 + static_cast<double>(seed) / 37, static_cast<int>(seed % 9) - 12);
        const auto first = static_cast<std::int64_t>(seed * 7 % 900);
        const auto last = static_cast<std::int64_t>(2047 - seed * 13 % 700);
        at::Tensor errors = at::empty({2048});
        binErrors(counts.const_data_ptr<float>(), width, first, last, levels, errors.mutable_data_ptr<float>());
        EXPECT_TRUE(errors.equal(errorsByOperators(counts, width, first, last, levels))) << seed;
    }
}

TEST(HistogramObserver, ExamplesOfTheDocument)
{
    const TensorSpec spec = xnnpackActivation(ObserverKind::Histogram);
    EXPECT_EQ(scaleAndZero(observed(spec, {tensorOf({1, 2, 3, 4})})).first, 0.015680529177188873);
    EXPECT_EQ(scaleAndZero(observed(spec, {tensorOf({-1, 0.5F, 2, 0.25F})})), std::pair(0.011758961714804173, -43L));
    EXPECT_EQ(scaleAndZero(observed(spec, {tensorOf({1, kInf, -2})})), std::pair(0.011758961714804173, 42L));
    EXPECT_EQ(scaleAndZero(observed(spec, {at::full({16}, 2.5F)})), std::pair(0.009803921915590763, -128L));
}

TEST(HistogramObserver, RefusesNanAndKeepsItsState)
{
    const auto observer = need(makeObserver(xnnpackActivation(ObserverKind::Histogram), SiteRole::Output));
    ASSERT_TRUE(observer->observe(namedTensor("lin")));
    const Qparams before = need(observer->qparams());
    const auto refused = observer->observe(tensorOf({1, kNan}));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("NaN"));
    EXPECT_EQ(need(observer->qparams()).scales(), before.scales());
    EXPECT_EQ(observer->state().nan, 1);
}

TEST(HistogramObserver, RangeThatFloat32CannotHoldIsAnError)
{
    const auto observer = need(makeObserver(xnnpackActivation(ObserverKind::Histogram), SiteRole::Output));
    const auto seen = observer->observe(tensorOf({-3e38F, 3e38F}));
    EXPECT_FALSE(seen && observer->qparams());
}

TEST(HistogramObserver, ExistsPerTensorAndForIntegersOnly)
{
    TensorSpec spec = xnnpackActivation(ObserverKind::Histogram);
    spec.granularity = Granularity::PerChannel;
    spec.axis = 1;
    const auto perChannel = makeObserver(spec, SiteRole::Output);
    ASSERT_FALSE(perChannel);
    EXPECT_EQ(perChannel.error().code, ErrorCode::Usage);
    EXPECT_THAT(perChannel.error().message, HasSubstr("per tensor only"));
    spec = xnnpackActivation(ObserverKind::Histogram);
    spec.type = ElementType::Float8E4M3;
    EXPECT_FALSE(makeObserver(spec, SiteRole::Output));
}

// --- percentile, mean squared error -------------------------------------------------------------

TEST(PercentileObserver, LeavesOutItsShareAtEachEnd)
{
    TensorSpec spec = xnnpackActivation(ObserverKind::Percentile);
    spec.percentile = 90;
    std::vector<float> values(2001);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i) / 1000.0F - 1.0F;
    const Qparams qparams = observed(spec, {tensorOf(values)});
    EXPECT_NEAR(qparams.lows().at(0), -0.9, 2e-3);
    EXPECT_NEAR(qparams.highs().at(0), 0.9, 2e-3);
    spec.percentile = 100;
    const Qparams all = observed(spec, {tensorOf(values)});
    EXPECT_EQ(all.lows().at(0), -1);
    EXPECT_EQ(all.highs().at(0), 1);
}

TEST(PercentileObserver, ForgetsOutliersThatMinMaxKeeps)
{
    TensorSpec spec = xnnpackActivation(ObserverKind::Percentile);
    spec.percentile = 99;
    const at::Tensor x = namedTensor("heavy");
    const double width = observed(spec, {x}).scales().at(0);
    EXPECT_LT(width, 0.98 * observed(xnnpackActivation(ObserverKind::MinMax), {x}).scales().at(0));
    const auto [low, high] = std::pair{observed(spec, {x}).lows().at(0), observed(spec, {x}).highs().at(0)};
    const auto inside = x.ge(low).logical_and(x.le(high)).sum().item().toDouble() / static_cast<double>(x.numel());
    EXPECT_NEAR(inside, 0.99, 0.003);
}

double squaredError(const at::Tensor &x, const Qparams &qparams, const TensorSpec &spec)
{
    return need(fakeQuantize(x, qparams, spec, SiteRole::Output))
        .sub(x)
        .to(at::kDouble)
        .square()
        .sum()
        .item()
        .toDouble();
}

TEST(MeanSquaredErrorObserver, NoRangeOfAFineScanIsMuchBetter)
{
    for (const auto &[type, scheme] :
         {std::pair{ElementType::Int4, Scheme::Affine}, std::pair{ElementType::Int4, Scheme::Symmetric},
          std::pair{ElementType::UInt4, Scheme::Affine}}) {
        TensorSpec spec = coreAiSpec(type, scheme, Granularity::PerTensor);
        spec.observer = ObserverKind::MeanSquaredError;
        at::Tensor x = numbers(11, 20000);
        x = x.mul(x).mul(x).mul(x.gt(0).to(at::kFloat).mul(2).add(1));
        const Qparams chosen = observed(spec, {x});
        const double error = squaredError(x, chosen, spec);
        TensorSpec whole = spec;
        whole.observer = ObserverKind::MinMax;
        EXPECT_LT(error, 0.98 * squaredError(x, observed(whole, {x}), whole));
        double best = error;
        for (int i = 1; i <= 40; ++i)
            for (int j = 1; j <= 40; ++j) {
                const at::Tensor low = at::full({}, -1.0 * i / 40);
                const at::Tensor high = at::full({}, 3.0 * j / 40);
                best = std::min(best, squaredError(x, need(qparamsOfRange(low, high, spec)), spec));
            }
        EXPECT_LT(error, 1.03 * best) << spec.text();
    }
}

TEST(MeanSquaredErrorObserver, KeepsTheRangeThatLosesNothing)
{
    TensorSpec spec = coreAiSpec(ElementType::Int8, Scheme::Affine, Granularity::PerTensor);
    spec.observer = ObserverKind::MeanSquaredError;
    const at::Tensor x = numbers(3, 50000); // even over its range: cutting costs more than steps save
    const Qparams qparams = observed(spec, {x});
    EXPECT_NEAR(qparams.lows().at(0), -1, 0.005);
    EXPECT_NEAR(qparams.highs().at(0), 1, 0.005);
    EXPECT_EQ(observed(spec, {at::full({8}, 2.5F)}).scales().at(0), static_cast<double>(2.5F / 255.0F));
}

// --- ranges -------------------------------------------------------------------------------------

TEST(RangeObserver, MinMaxTableOfTheDocument)
{
    const TensorSpec affine = xnnpackActivation(ObserverKind::MinMax);
    const TensorSpec symmetric = xnnpackWeight(Granularity::PerTensor);
    struct Row {
        at::Tensor x;
        double affineScale;
        std::int64_t affineZero;
        double symmetricScale;
    };
    const std::vector<Row> rows{
        {at::zeros({8}), 0x1p-12, -128, 0x1p-12},
        {at::full({8}, 2.5F), 0.009803921915590763, -128, 0.019685039296746254},
        {at::full({8}, -2.5F), 0.009803921915590763, 127, 0.019685039296746254},
        {tensorOf({1, 2, 3, 4}), 0.01568627543747425, -128, 0.031496062874794006},
        {tensorOf({-1, 0.5F, 2, 0.25F}), 0.0117647061124444, -43, 0.015748031437397003},
        {tensorOf({-1e-8F, 2e-8F}), 0x1p-12, -128, 0x1p-12},
        {tensorOf({-3e38F, 3e38F}), std::numeric_limits<double>::infinity(), -128, 2.3622047786458943e+36},
        {tensorOf({-2, 1, kInf}), std::numeric_limits<double>::infinity(), -128,
         std::numeric_limits<double>::infinity()},
    };
    for (const Row &row : rows) {
        EXPECT_EQ(scaleAndZero(observed(affine, {row.x})), std::pair(row.affineScale, row.affineZero)) << row.x;
        EXPECT_EQ(scaleAndZero(observed(symmetric, {row.x})), std::pair(row.symmetricScale, 0L)) << row.x;
    }
}

TEST(RangeObserver, UnsignedSymmetricZeroPoints)
{
    TensorSpec spec = xnnpackWeight(Granularity::PerTensor);
    const auto zeroOf = [&](ElementType type, std::int64_t low, std::int64_t high) {
        spec.type = type;
        spec.quantMin = low;
        spec.quantMax = high;
        return observed(spec, {namedTensor("lin")}).zeroPoints().at(0);
    };
    EXPECT_EQ(zeroOf(ElementType::UInt8, 0, 255), 128);
    EXPECT_EQ(zeroOf(ElementType::UInt8, 0, 127), 63);
    EXPECT_EQ(zeroOf(ElementType::UInt16, 0, 65535), 32768);
    EXPECT_EQ(zeroOf(ElementType::Int16, -32768, 32767), 0);
    spec.rule = QparamRule::CoreAi;
    EXPECT_EQ(zeroOf(ElementType::UInt4, 0, 15), 8);
    EXPECT_EQ(zeroOf(ElementType::Int8, -127, 127), 0);
}

TEST(RangeObserver, MovingAverageOfTheTwoPeers)
{
    const std::vector<at::Tensor> batches{tensorOf({-1, 2}), tensorOf({-2, 1}), tensorOf({-4, 8})};
    const auto torchao = need(makeObserver(xnnpackActivation(ObserverKind::MovingAverage), SiteRole::Output));
    const std::vector<std::pair<float, float>> expected{
        {-1.0F, 2.0F}, {-1.00999999F, 1.99000001F}, {-1.03989995F, 2.05010009F}};
    for (std::size_t b = 0; b < batches.size(); ++b) {
        ASSERT_TRUE(torchao->observe(batches[b]));
        EXPECT_EQ(static_cast<float>(torchao->state().low.at(0)), expected[b].first);
        EXPECT_EQ(static_cast<float>(torchao->state().high.at(0)), expected[b].second);
    }
    // A batch above zero: torchao averages its lowest value, coreai-opt averages zero.
    ASSERT_TRUE(torchao->observe(tensorOf({1, 2})));
    EXPECT_EQ(static_cast<float>(torchao->state().low.at(0)), -1.03989995F + 0.01F * (1.0F + 1.03989995F));
    TensorSpec spec = coreAiSpec(ElementType::Int8, Scheme::Affine, Granularity::PerTensor);
    spec.observer = ObserverKind::MovingAverage;
    const auto coreAi = need(makeObserver(spec, SiteRole::Output));
    ASSERT_TRUE(coreAi->observe(tensorOf({1, 2})));
    EXPECT_EQ(coreAi->state().low.at(0), 0);
    ASSERT_TRUE(coreAi->observe(tensorOf({-4, 8})));
    EXPECT_EQ(static_cast<float>(coreAi->state().low.at(0)), 0.01F * -4.0F + 0.99F * 0.0F);
    EXPECT_EQ(static_cast<float>(coreAi->state().high.at(0)), 0.01F * 8.0F + 0.99F * 2.0F);
}

TEST(RangeObserver, LastBatchForgetsWhatWasBefore)
{
    TensorSpec spec = coreAiSpec(ElementType::Int8, Scheme::Symmetric, Granularity::PerTensor);
    const Qparams qparams = observed(spec, {tensorOf({-9, 9}), tensorOf({-1, 2})});
    EXPECT_EQ(qparams.scales().at(0), static_cast<double>(2.0F / 127.5F));
}

TEST(RangeObserver, GivenBoundsAreNotObserved)
{
    TensorSpec spec = coreAiSpec(ElementType::UInt8, Scheme::Affine, Granularity::PerTensor);
    spec.observer = ObserverKind::MinMax;
    spec.low = 0;
    EXPECT_EQ(observed(spec, {tensorOf({-5, 2})}).scales().at(0), static_cast<double>(2.0F / 255.0F));
    spec.high = 6;
    const Qparams fixed = observed(spec, {tensorOf({-5, 99})});
    EXPECT_EQ(fixed.scales().at(0), static_cast<double>(6.0F / 255.0F));
    EXPECT_EQ(fixed.zeroPoints().at(0), 0);
    spec.observer = ObserverKind::Fixed;
    EXPECT_EQ(observed(spec, {}).scales(), fixed.scales());
    spec.high.reset();
    EXPECT_FALSE(makeObserver(spec, SiteRole::Output));
}

TEST(RangeObserver, NeverObservedAndEmptyTensors)
{
    for (const auto kind : {ObserverKind::MinMax, ObserverKind::MovingAverage, ObserverKind::Histogram}) {
        const Qparams qparams = observed(xnnpackActivation(kind), {at::empty({0, 4})});
        EXPECT_EQ(scaleAndZero(qparams), std::pair(1.0, 0L));
        EXPECT_THAT(qparams.notes, ElementsAre(HasSubstr("never observed")));
    }
    const auto observer = need(makeObserver(xnnpackActivation(ObserverKind::MinMax), SiteRole::Output));
    ASSERT_TRUE(observer->observe(namedTensor("lin")));
    ASSERT_TRUE(observer->observe(at::empty({0})));
    EXPECT_EQ(observer->state().batches, 1);
    EXPECT_EQ(need(observer->qparams()).scales().at(0), 0.02450980432331562);
    observer->reset();
    EXPECT_EQ(need(observer->qparams()).scales().at(0), 1.0);
    EXPECT_EQ(observer->state().elements, 0);
}

TEST(RangeObserver, NanIsAnErrorOfTorchaoAndAScaleOfCoreAi)
{
    const auto torchao = need(makeObserver(xnnpackActivation(ObserverKind::MinMax), SiteRole::Output));
    ASSERT_TRUE(torchao->observe(tensorOf({1, kNan})));
    ASSERT_TRUE(torchao->observe(tensorOf({1, 2})));
    const auto refused = torchao->qparams();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::Incomparable);
    EXPECT_THAT(refused.error().message, HasSubstr("NaN"));
    const TensorSpec spec = coreAiSpec(ElementType::Int8, Scheme::Symmetric, Granularity::PerTensor);
    const Qparams qparams = observed(spec, {tensorOf({1, kNan})});
    EXPECT_TRUE(std::isnan(qparams.scales().at(0)));
    EXPECT_THAT(qparams.notes, ElementsAre(HasSubstr("NaN")));
    EXPECT_TRUE(need(fakeQuantize(tensorOf({1, 2}), qparams, spec, SiteRole::Output)).isnan().all().item<bool>());
    const Qparams wide = observed(spec, {tensorOf({1, kInf})});
    EXPECT_EQ(wide.scales().at(0), std::numeric_limits<double>::infinity());
    EXPECT_TRUE(need(fakeQuantize(tensorOf({1, 2}), wide, spec, SiteRole::Output)).isnan().all().item<bool>());
}

TEST(RangeObserver, ChannelsAccumulateAndMustStayAsMany)
{
    TensorSpec spec = xnnpackActivation(ObserverKind::MinMax);
    spec.granularity = Granularity::PerChannel;
    spec.axis = -2;
    const auto observer = need(makeObserver(spec, SiteRole::Output));
    ASSERT_TRUE(observer->observe(tensorOf({1, 2, -3, 4, 5, 6}).reshape({1, 3, 2})));
    ASSERT_TRUE(observer->observe(tensorOf({0, 9, 1, 1, -7, 1}).reshape({1, 3, 2})));
    EXPECT_THAT(observer->state().low, ElementsAre(0, -3, -7));
    EXPECT_THAT(observer->state().high, ElementsAre(9, 4, 6));
    EXPECT_EQ(need(observer->qparams()).scale.sizes().vec(), (std::vector<std::int64_t>{1, 3, 1}));
    const auto refused = observer->observe(at::zeros({1, 4, 2}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::Usage);
}

TEST(RangeObserver, RefusesIntegers)
{
    const auto observer = need(makeObserver(xnnpackActivation(ObserverKind::MinMax), SiteRole::Output));
    EXPECT_FALSE(observer->observe(at::ones({3}, at::kLong)));
}

TEST(RangeObserver, HalfTypesEqualThePeers)
{
    for (const auto &c : peerSequences().at("half_types")) {
        if (c.at("peer") != "coreai")
            continue;
        TensorSpec spec =
            coreAiSpec(*elementTypeFromName(c.at("type").get<std::string>()),
                       c.at("qscheme") == "symmetric" ? Scheme::Symmetric : Scheme::Affine,
                       c.at("granularity") == "channel" ? Granularity::PerChannel : Granularity::PerTensor);
        spec.axis = 0;
        spec.observer = c.at("calculator") == "static"           ? ObserverKind::LastBatch
                        : c.at("calculator") == "moving_average" ? ObserverKind::MovingAverage
                                                                 : ObserverKind::MinMax;
        const auto role = c.at("calculator") == "static" ? SiteRole::Weight : SiteRole::Output;
        SCOPED_TRACE(spec.text() + " " + c.at("dtype").get<std::string>());
        const auto observer = need(makeObserver(spec, role));
        at::Tensor x;
        for (int b = 0; b < c.at("batches").get<int>(); ++b) {
            x = numbers(c.at("seed").get<std::uint64_t>() + static_cast<std::uint64_t>(b), 192)
                    .mul(3 + b)
                    .reshape({6, 32})
                    .to(typeNamed(c.at("dtype")));
            ASSERT_TRUE(observer->observe(x));
        }
        const Qparams qparams = need(observer->qparams());
        EXPECT_EQ(qparams.scales(), c.at("scale").get<std::vector<double>>());
        EXPECT_EQ(qparams.zeroPoints(), c.at("zero_point").get<std::vector<std::int64_t>>());
        EXPECT_EQ(hashOf(need(fakeQuantize(x, qparams, spec, role))), c.at("values_hash").get<std::string>());
    }
}

TEST(RangeObserver, HalfPrecisionScaleIsRoundedToItsType)
{
    const TensorSpec spec = coreAiSpec(ElementType::Int8, Scheme::Symmetric, Granularity::PerTensor);
    const at::Tensor w = tensorOf({-1, 2}).to(at::kBFloat16);
    EXPECT_EQ(observed(spec, {w}, SiteRole::Weight).scales().at(0), 0.0157470703125);
}

// --- quantization-aware -------------------------------------------------------------------------

TensorSpec trainingSpec(Granularity granularity)
{
    TensorSpec spec = xnnpackWeight(granularity);
    spec.rule = QparamRule::FusedQat;
    spec.observer = ObserverKind::MovingAverage;
    return spec;
}

TEST(FusedObserver, SimulatesWithOtherQparamsThanItDeploys)
{
    const auto observer = need(makeObserver(trainingSpec(Granularity::PerChannel), SiteRole::Weight));
    ASSERT_TRUE(observer->observe(tensorOf({-3, 1}).reshape({1, 2})));
    EXPECT_EQ(need(observer->simulatedQparams()).scales().at(0), 0.023529773578047752);
    EXPECT_EQ(need(observer->qparams()).scales().at(0), 0.023622047156095505);
}

TEST(FusedObserver, ZerosAndPositiveChannels)
{
    TensorSpec activation = xnnpackActivation(ObserverKind::MovingAverage);
    activation.rule = QparamRule::FusedQat;
    const auto zeros = need(makeObserver(activation, SiteRole::Output));
    const at::Tensor out = need(zeros->forward(at::zeros({4})));
    EXPECT_EQ(scaleAndZero(need(zeros->simulatedQparams())), std::pair(static_cast<double>(0.1F), 127L));
    EXPECT_TRUE(out.equal(at::zeros({4})));
    const auto weight = need(makeObserver(trainingSpec(Granularity::PerChannel), SiteRole::Weight));
    ASSERT_TRUE(weight->observe(tensorOf({1, 2, -1, 2}).reshape({2, 2})));
    const Qparams simulated = need(weight->simulatedQparams());
    EXPECT_EQ(simulated.scales().at(0), static_cast<double>(2.0F / 254.0F));
    EXPECT_EQ(simulated.zeroPoints().at(0), -127);
    EXPECT_EQ(simulated.zeroPoints().at(1), 0);
    EXPECT_THAT(need(weight->qparams()).zeroPoints(), ElementsAre(0, 0));
}

TEST(FusedObserver, WorksInAndOutsideInferenceMode)
{
    const auto observer = need(makeObserver(trainingSpec(Granularity::PerTensor), SiteRole::Weight));
    {
        const c10::InferenceMode guard;
        ASSERT_TRUE(observer->observe(tensorOf({-1, 2})));
        observer->reset();
        ASSERT_TRUE(observer->observe(tensorOf({-1, 2})));
    }
    ASSERT_TRUE(observer->observe(tensorOf({-2, 1})));
    EXPECT_EQ(static_cast<float>(observer->state().low.at(0)), -1.00999999F);
    EXPECT_FALSE(observer->observe(tensorOf({kNan, 1})));
    EXPECT_EQ(static_cast<float>(observer->state().low.at(0)), -1.00999999F);
    TensorSpec blocks = trainingSpec(Granularity::PerBlock);
    blocks.blockSizes = {2};
    EXPECT_FALSE(makeObserver(blocks, SiteRole::Weight));
}

// --- panels -------------------------------------------------------------------------------------

TEST(RangeFit, ClippedAndUnusedShares)
{
    TensorSpec spec = xnnpackActivation(ObserverKind::Fixed);
    spec.low = -0.5;
    spec.high = 1.5;
    const auto observer = need(makeObserver(spec, SiteRole::Output, {.trackHistogram = true}));
    ASSERT_TRUE(observer->observe(numbers(5, 40000)));
    ASSERT_TRUE(observer->observe(numbers(6, 40000)));
    const RangeFit fit = rangeFit(observer->state(), need(observer->qparams()), spec);
    EXPECT_NEAR(fit.low, -0.5, 0.01);
    EXPECT_NEAR(fit.high, 1.5, 0.01);
    ASSERT_TRUE(fit.clipped && fit.unused);
    EXPECT_NEAR(*fit.clipped, 0.25, 0.01); // [-1, -0.5) of [-1, 1)
    EXPECT_NEAR(*fit.unused, 0.25, 0.01);  // (1, 1.5] of [-0.5, 1.5]
    EXPECT_EQ(observer->state().histogram.size(), 2048U);
}

TEST(RangeFit, CountsNanAndInfinity)
{
    const TensorSpec spec = coreAiSpec(ElementType::Int8, Scheme::Symmetric, Granularity::PerTensor);
    const auto observer = need(makeObserver(spec, SiteRole::Output, {.trackHistogram = true}));
    ASSERT_TRUE(observer->observe(tensorOf({kNan, kInf, -kInf, 1, -2})));
    const ObserverState state = observer->state();
    EXPECT_EQ(state.nan, 1);
    EXPECT_EQ(state.infinite, 2);
    EXPECT_EQ(state.lowest, -2);
    EXPECT_EQ(state.highest, 1);
    const Qparams given = need(givenQparams(spec, {1.0}, {0}));
    EXPECT_NEAR(*rangeFit(state, given, spec).clipped, 0.5, 1e-9); // the two infinities of four numbers
}

TEST(RangeFit, SeveralUnitsHaveNone)
{
    TensorSpec spec = xnnpackWeight(Granularity::PerChannel);
    const auto observer = need(makeObserver(spec, SiteRole::Weight, {.trackHistogram = true}));
    ASSERT_TRUE(observer->observe(namedTensor("weight")));
    const RangeFit fit = rangeFit(observer->state(), need(observer->qparams()), spec);
    EXPECT_FALSE(fit.clipped);
    EXPECT_FALSE(fit.unused);
}

} // namespace
} // namespace dblame

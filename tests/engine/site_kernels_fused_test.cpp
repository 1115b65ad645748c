// SPDX-License-Identifier: GPL-3.0-or-later
//
// Fused site kernels against the operators that they stand for, bit by bit and stride by stride.
#include "core/engine/site_kernels.h"

#include <bit>
#include <cstring>
#include <limits>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace dblame
{
namespace
{

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

void expectSameBits(const at::Tensor &got, const at::Tensor &want, const std::string &what)
{
    ASSERT_TRUE(got.defined()) << what;
    ASSERT_EQ(got.scalar_type(), want.scalar_type()) << what;
    ASSERT_EQ(got.sizes(), want.sizes()) << what;
    EXPECT_EQ(got.strides(), want.strides()) << what;
    const at::Tensor a = got.contiguous();
    const at::Tensor b = want.contiguous();
    if (a.numel() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0)
        return;
    for (std::int64_t i = 0; i < a.numel(); ++i) {
        const auto x = std::bit_cast<std::uint32_t>(a.const_data_ptr<float>()[i]);
        const auto y = std::bit_cast<std::uint32_t>(b.const_data_ptr<float>()[i]);
        ASSERT_EQ(x, y) << what << ", element " << i << ": " << a.const_data_ptr<float>()[i] << " and "
                        << b.const_data_ptr<float>()[i];
    }
}

// Ties and near-ties of the grid, zeros of both signs, values beyond every range, infinities, NaN.
at::Tensor edgeValues(float scale)
{
    std::vector<float> values{0.0F, -0.0F, kInf, -kInf, kNan, 1e30F, -1e30F, 3e38F, 1e-38F, -1e-38F, 1e-45F};
    for (int k = -140; k <= 140; ++k)
        for (const float f : {0.0F, 0.5F, 0.49999997F, 0.25F})
            values.push_back((static_cast<float>(k) + f) * scale);
    return at::tensor(values);
}

std::vector<at::Tensor> layouts(const at::Tensor &values)
{
    const at::Tensor flat = values.flatten().slice(0, 0, values.numel() / 240 * 240);
    const at::Tensor four = flat.reshape({-1, 4, 6, 10});
    return {values,
            flat.reshape({-1, 240}),
            flat.reshape({-1, 240}).t(),
            four,
            four.contiguous(at::MemoryFormat::ChannelsLast),
            four.permute({2, 0, 3, 1}),
            four.slice(3, 1, 9, 2),
            four.slice(1, 1, 2),
            four.select(0, 0).unsqueeze(0).expand({3, 4, 6, 10}),
            flat.reshape({-1, 60, 1, 1}),
            flat.reshape({-1, 60, 1, 1}).contiguous(at::MemoryFormat::ChannelsLast),
            flat.reshape({-1, 4, 2, 3, 10}).contiguous(at::MemoryFormat::ChannelsLast3d),
            flat.slice(0, 0, 1).reshape({}),
            flat.slice(0, 0, 0)};
}

at::Tensor qdqByOperators(const at::Tensor &x, double scale, std::int64_t zeroPoint, std::int64_t quantMin,
                          std::int64_t quantMax, at::ScalarType storage)
{
    const at::Tensor q = x.mul(1.0 / scale).round().add(zeroPoint).clamp(quantMin, quantMax).to(storage);
    return q.to(at::kFloat).sub(zeroPoint).mul(scale);
}

struct Grid {
    double scale;
    std::int64_t zeroPoint, quantMin, quantMax;
    DType dtype;
    at::ScalarType storage;
};

TEST(SiteKernelsFused, QuantizeDequantizeEqualsTheOperators)
{
    at::manual_seed(7);
    const std::vector<Grid> grids{{0.007, 0, -128, 127, DType::Int8, at::kChar},
                                  {0.02449783682823181, -95, -128, 127, DType::Int8, at::kChar},
                                  {0.1, 3, -128, 127, DType::Int8, at::kChar},
                                  {0.031, 128, 0, 255, DType::UInt8, at::kByte},
                                  {0.25, 0, -127, 127, DType::Int8, at::kChar},
                                  {1e-3, 17, 0, 65535, DType::Int32, at::kInt},
                                  {3e-4, -5, -32768, 32767, DType::Int16, at::kShort},
                                  {1e-40, 0, -128, 127, DType::Int8, at::kChar},
                                  {std::numeric_limits<double>::infinity(), -128, -128, 127, DType::Int8, at::kChar}};
    for (const Grid &g : grids) {
        const at::Tensor values =
            at::cat({edgeValues(static_cast<float>(g.scale)), at::randn({4800}).mul(g.scale * 60)});
        const SiteKernel kernel = fusedQdqPerTensor(g.scale, g.zeroPoint, g.quantMin, g.quantMax, g.dtype);
        ASSERT_TRUE(kernel);
        int k = 0;
        for (const at::Tensor &x : layouts(values))
            expectSameBits(kernel(x), qdqByOperators(x, g.scale, g.zeroPoint, g.quantMin, g.quantMax, g.storage),
                           "scale " + std::to_string(g.scale) + ", layout " + std::to_string(k++));
    }
}

TEST(SiteKernelsFused, QuantizeDequantizeLeavesOtherTypesAndHugeGridsToTheOperators)
{
    const SiteKernel kernel = fusedQdqPerTensor(0.1, 0, -128, 127);
    EXPECT_FALSE(kernel(at::randn({4}, at::kDouble)).defined());
    EXPECT_FALSE(kernel(at::randn({4}).to(at::kHalf)).defined());
    EXPECT_FALSE(fusedQdqPerTensor(0.1, 0, std::numeric_limits<std::int32_t>::min(),
                                   std::numeric_limits<std::int32_t>::max(), DType::Int32));
    EXPECT_FALSE(fusedQdqPerTensor(0.1, 0, -128, 127, DType::Float8E4M3FN));
    EXPECT_FALSE(fusedQdqPerTensor(0.0, 0, -128, 127));
}

// The chain as coreai-opt's files hold it.
at::Tensor chainByOperators(const at::Tensor &x, const at::Tensor &scale, const at::Tensor &zeroPoint,
                            std::int64_t quantMin, std::int64_t quantMax)
{
    const at::Tensor nothing = x.new_zeros({});
    at::Tensor q = x.sub(nothing).div(scale);
    q.round_();
    q.add_(zeroPoint);
    q.clamp_(quantMin, quantMax);
    return q.sub(zeroPoint).mul(scale).add(nothing);
}

TEST(SiteKernelsFused, DecomposedFakeQuantEqualsTheChainPerTensor)
{
    at::manual_seed(8);
    struct Case {
        float scale;
        int zeroPoint;
        std::int64_t quantMin, quantMax;
    };
    for (const Case &c : {Case{0.007F, 0, -128, 127}, Case{0.0122549F, -128, -128, 127}, Case{0.1F, 3, -128, 127},
                          Case{0.51875F, -6, -8, 7}, Case{0.0305F, 33, 0, 255}, Case{1.1920929e-7F, 0, -128, 127},
                          Case{kInf, 0, -128, 127}, Case{kNan, 0, -128, 127}}) {
        const float spread = std::isfinite(c.scale) ? c.scale : 1.0F;
        const at::Tensor values = at::cat({edgeValues(spread), at::randn({4800}).mul(60 * spread)});
        for (const at::ScalarType type : {at::kInt, at::kChar, at::kLong, at::kFloat}) {
            const at::Tensor scale = at::full({1}, c.scale, at::kFloat);
            const at::Tensor zeroPoint = at::full({1}, c.zeroPoint, type);
            const SiteKernel kernel = fusedDecomposedFakeQuant(scale, zeroPoint, c.quantMin, c.quantMax);
            ASSERT_TRUE(kernel);
            int k = 0;
            for (const at::Tensor &x : layouts(values))
                expectSameBits(kernel(x), chainByOperators(x, scale, zeroPoint, c.quantMin, c.quantMax),
                               "scale " + std::to_string(c.scale) + ", layout " + std::to_string(k++));
        }
    }
}

TEST(SiteKernelsFused, DecomposedFakeQuantEqualsTheChainPerChannel)
{
    at::manual_seed(9);
    struct Case {
        std::vector<std::int64_t> shape, scaleShape;
    };
    for (const Case &c :
         {Case{{3, 6, 7, 9}, {1, 6, 1, 1}}, Case{{6, 4, 3, 3}, {6, 1, 1, 1}}, Case{{8, 50}, {8, 1}},
          Case{{8, 50}, {50}}, Case{{2, 16, 64}, {1, 16, 1}}, Case{{4, 8}, {4, 8}}, Case{{2, 3, 4}, {3, 1}},
          Case{{6, 4, 3, 3}, {6, 4, 1, 1}}, Case{{3, 1, 40}, {3, 1, 1}}, Case{{4, 5}, {2, 4, 5}}}) {
        const at::Tensor scale = at::randn(c.scaleShape).abs().add(0.01).div(40);
        const at::Tensor zeroPoint = at::randint(-20, 20, c.scaleShape, at::kInt);
        const SiteKernel kernel = fusedDecomposedFakeQuant(scale, zeroPoint, -128, 127);
        ASSERT_TRUE(kernel);
        at::Tensor x = at::randn(c.shape);
        x.flatten().slice(0, 0, 4).copy_(at::tensor({kNan, kInf, -kInf, -0.0F}));
        std::vector<at::Tensor> forms{x, x.transpose(0, 1).contiguous().transpose(0, 1)};
        if (x.dim() == 4)
            forms.push_back(x.contiguous(at::MemoryFormat::ChannelsLast));
        for (const at::Tensor &form : forms)
            expectSameBits(kernel(form), chainByOperators(form, scale, zeroPoint, -128, 127),
                           "scale of " + std::to_string(c.scaleShape.size()) + " dimensions");
    }
}

TEST(SiteKernelsFused, DecomposedFakeQuantRefusesWhatWouldChangeTheType)
{
    const at::Tensor one = at::full({1}, 0.1, at::kFloat);
    const at::Tensor zero = at::full({1}, 0, at::kInt);
    EXPECT_FALSE(fusedDecomposedFakeQuant(one.to(at::kDouble), zero, -128, 127));
    EXPECT_FALSE(fusedDecomposedFakeQuant(one, zero.to(at::kDouble), -128, 127));
    EXPECT_FALSE(fusedDecomposedFakeQuant(one, at::full({2}, 0, at::kInt), -128, 127));
    EXPECT_FALSE(fusedDecomposedFakeQuant(one, at::Tensor(), -128, 127));
    EXPECT_FALSE(fusedDecomposedFakeQuant(one, at::full({1}, 1 << 25, at::kInt), -128, 127));
    EXPECT_FALSE(fusedDecomposedFakeQuant(one, zero, -128, 127)(at::randn({3}, at::kDouble)).defined());
}

TEST(SiteKernelsFused, SameBitsAtOneAndTwoThreads)
{
    at::manual_seed(10);
    const at::Tensor x = at::randn({4, 8, 128, 128});
    const SiteKernel qdq = fusedQdqPerTensor(0.02, 4, -128, 127);
    const SiteKernel chain = fusedDecomposedFakeQuant(at::randn({1, 8, 1, 1}).abs().add(0.01),
                                                      at::randint(-9, 9, {1, 8, 1, 1}, at::kInt), -128, 127);
    const int before = at::get_num_threads();
    at::set_num_threads(1);
    const at::Tensor a = qdq(x);
    const at::Tensor b = chain(x);
    at::set_num_threads(2);
    expectSameBits(qdq(x), a, "q-dq");
    expectSameBits(chain(x), b, "chain");
    at::set_num_threads(before);
}

} // namespace
} // namespace dblame

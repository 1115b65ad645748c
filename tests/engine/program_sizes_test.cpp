// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/engine/size_arithmetic.h"

namespace dblame::test
{

namespace
{

using I = std::int64_t;

c10::IValue eval(const char *target, std::vector<c10::IValue> operands)
{
    const auto op = sizeOpOf(target);
    if (!op)
        throw std::runtime_error(std::string("unknown ") + target);
    return evaluateSize(*op, operands);
}

I intOf(const char *target, std::vector<c10::IValue> operands)
{
    return eval(target, std::move(operands)).toInt();
}

double floatOf(const char *target, std::vector<c10::IValue> operands)
{
    return eval(target, std::move(operands)).toDouble();
}

TEST(SizeArithmetic, DivisionsRoundAsPythons)
{
    EXPECT_EQ(intOf("_operator.floordiv", {I{7}, I{2}}), 3);
    EXPECT_EQ(intOf("_operator.floordiv", {I{-7}, I{2}}), -4);
    EXPECT_EQ(intOf("_operator.floordiv", {I{7}, I{-2}}), -4);
    EXPECT_EQ(intOf("_operator.mod", {I{-7}, I{2}}), 1);
    EXPECT_EQ(intOf("_operator.mod", {I{7}, I{-2}}), -1);
    EXPECT_EQ(intOf("_operator.mod", {I{INT64_MIN}, I{-1}}), 0);
    EXPECT_EQ(floatOf("_operator.floordiv", {-7.0, I{2}}), -4.0);
    EXPECT_EQ(floatOf("_operator.floordiv", {1.0, 0.1}), 9.0); // as Python: 0.1 is a little more than a tenth
    EXPECT_EQ(floatOf("_operator.mod", {-1.0, 3.0}), 2.0);
    EXPECT_TRUE(std::signbit(floatOf("_operator.mod", {2.0, -1.0})));
    EXPECT_EQ(floatOf("_operator.truediv", {I{7}, I{2}}), 3.5);
    EXPECT_THROW(eval("_operator.floordiv", {I{1}, I{0}}), std::runtime_error);
    EXPECT_THROW(eval("_operator.truediv", {1.0, 0.0}), std::runtime_error);
}

TEST(SizeArithmetic, IntsStayIntsAndDoNotWrap)
{
    EXPECT_EQ(intOf("_operator.pow", {I{3}, I{4}}), 81);
    EXPECT_EQ(intOf("_operator.pow", {I{-2}, I{63}}), INT64_MIN);
    EXPECT_EQ(floatOf("_operator.pow", {I{2}, I{-1}}), 0.5);
    EXPECT_EQ(intOf("_operator.pow", {I{0}, I{0}}), 1);
    EXPECT_THROW(eval("_operator.pow", {I{2}, I{63}}), std::runtime_error);
    EXPECT_THROW(eval("_operator.mul", {I{INT64_MAX}, I{2}}), std::runtime_error);
    EXPECT_THROW(eval("_operator.neg", {I{INT64_MIN}}), std::runtime_error);
    EXPECT_THROW(eval("_operator.floordiv", {I{INT64_MIN}, I{-1}}), std::runtime_error);
    EXPECT_EQ(intOf("_operator.add", {true, true}), 2);
    EXPECT_EQ(floatOf("_operator.add", {I{1}, 0.5}), 1.5);
    EXPECT_EQ(intOf("torch.sym_int", {-2.7}), -2);
    EXPECT_EQ(floatOf("torch.sym_float", {I{3}}), 3.0);
    EXPECT_EQ(intOf("math.ceil", {2.1}), 3);
    EXPECT_EQ(intOf("math.floor", {-2.1}), -3);
    EXPECT_EQ(intOf("math.trunc", {-2.9}), -2);
    EXPECT_EQ(floatOf("torch._sym_sqrt", {I{9}}), 3.0);
    EXPECT_EQ(intOf("_operator.lshift", {I{3}, I{4}}), 48);
    EXPECT_EQ(intOf("_operator.rshift", {I{-3}, I{1}}), -2);
    EXPECT_EQ(intOf("_operator.rshift", {I{-3}, I{99}}), -1);
    EXPECT_THROW(eval("_operator.lshift", {I{3}, I{-1}}), std::runtime_error);
}

TEST(SizeArithmetic, ComparisonsAndChoices)
{
    EXPECT_TRUE(eval("_operator.lt", {I{1}, 1.5}).toBool());
    EXPECT_TRUE(eval("_operator.eq", {I{2}, 2.0}).toBool());
    EXPECT_TRUE(eval("_operator.ne", {std::nan(""), std::nan("")}).toBool());
    EXPECT_FALSE(eval("_operator.le", {std::nan(""), 1.0}).toBool());
    EXPECT_TRUE(eval("_operator.and_", {true, true}).isBool());
    EXPECT_EQ(intOf("_operator.and_", {I{6}, I{3}}), 2);
    EXPECT_EQ(intOf("torch.sym_max", {I{2}, I{5}}), 5);
    EXPECT_EQ(floatOf("torch.sym_min", {I{2}, 1.5}), 1.5);
    EXPECT_TRUE(eval("torch.sym_not", {false}).toBool());
    EXPECT_EQ(intOf("torch.sym_ite", {true, I{4}, I{5}}), 4);
    EXPECT_EQ(intOf("torch.sym_ite", {false, I{4}, I{5}}), 5);
    EXPECT_EQ(intOf("_operator.mul", {at::scalar_tensor(6, at::kLong), I{7}}), 42); // a 0-dim tensor is a number
    EXPECT_EQ(sizeOpOf("_operator.matmul"), std::nullopt);
    EXPECT_THROW(eval("_operator.add", {I{1}}), std::runtime_error);
    EXPECT_THROW(eval("_operator.add", {I{1}, std::string("x")}), std::runtime_error);
}

} // namespace

} // namespace dblame::test

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/size_arithmetic.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include <ATen/core/Tensor.h>

namespace dblame
{

namespace
{

// A Python number: an int (bool included, remembered) or a float.
struct Number {
    bool isFloat = false, isBool = false;
    std::int64_t i = 0;
    double d = 0;
    [[nodiscard]] double asDouble() const { return isFloat ? d : static_cast<double>(i); }
};

[[noreturn]] void overflow()
{
    throw std::runtime_error("the result is outside the 64-bit range");
}

Number numberOf(const c10::IValue &value)
{
    if (value.isBool())
        return {false, true, value.toBool() ? 1 : 0, 0};
    if (value.isInt())
        return {false, false, value.toInt(), 0};
    if (value.isDouble())
        return {true, false, 0, value.toDouble()};
    if (value.isTensor())
        return numberOf(value.toTensor().item());
    throw std::runtime_error("an operand is no number (" + value.tagKind() + ")");
}

std::int64_t toInt(double v)
{
    if (!(v >= -9223372036854775808.0 && v < 9223372036854775808.0))
        overflow();
    return static_cast<std::int64_t>(v);
}

c10::IValue addSubMul(SizeOp op, const Number &a, const Number &b)
{
    if (a.isFloat || b.isFloat) {
        const double x = a.asDouble(), y = b.asDouble();
        return op == SizeOp::Add ? x + y : op == SizeOp::Sub ? x - y : x * y;
    }
    std::int64_t r = 0;
    const bool wrapped = op == SizeOp::Add   ? __builtin_add_overflow(a.i, b.i, &r)
                         : op == SizeOp::Sub ? __builtin_sub_overflow(a.i, b.i, &r)
                                             : __builtin_mul_overflow(a.i, b.i, &r);
    if (wrapped)
        overflow();
    return r;
}

// Python's float modulo: the sign of the divisor.
double floatMod(double a, double b)
{
    double m = std::fmod(a, b);
    if (m != 0 && (m < 0) != (b < 0))
        m += b;
    return m == 0 ? std::copysign(0.0, b) : m;
}

double floatFloorDiv(double a, double b)
{
    const double m = floatMod(a, b);
    const double q = (a - m) / b;
    if (q == 0)
        return std::copysign(0.0, a / b);
    const double f = std::floor(q);
    return q - f > 0.5 ? f + 1 : f;
}

c10::IValue divide(SizeOp op, const Number &a, const Number &b)
{
    if (b.isFloat ? b.d == 0 : b.i == 0)
        throw std::runtime_error("division by zero");
    if (op == SizeOp::TrueDiv)
        return a.asDouble() / b.asDouble();
    if (a.isFloat || b.isFloat)
        return op == SizeOp::FloorDiv ? floatFloorDiv(a.asDouble(), b.asDouble())
                                      : floatMod(a.asDouble(), b.asDouble());
    if (b.i == -1) { // the only quotient that can leave the range, and the remainder that traps with it
        if (op == SizeOp::Mod)
            return std::int64_t{0};
        return addSubMul(SizeOp::Sub, Number{}, a);
    }
    const std::int64_t q = a.i / b.i, r = a.i % b.i;
    const bool adjust = r != 0 && (r < 0) != (b.i < 0);
    if (op == SizeOp::FloorDiv)
        return adjust ? q - 1 : q;
    return adjust ? r + b.i : r;
}

c10::IValue power(const Number &a, const Number &b)
{
    if (a.isFloat || b.isFloat || b.i < 0) {
        if (a.asDouble() == 0 && b.asDouble() < 0)
            throw std::runtime_error("zero cannot be raised to a negative power");
        return std::pow(a.asDouble(), b.asDouble());
    }
    std::int64_t result = 1, base = a.i;
    for (std::int64_t e = b.i; e > 0; e >>= 1) {
        if ((e & 1) != 0 && __builtin_mul_overflow(result, base, &result))
            overflow();
        if (e > 1 && __builtin_mul_overflow(base, base, &base))
            overflow();
    }
    return result;
}

int compare(const Number &a, const Number &b)
{
    if (a.isFloat || b.isFloat) {
        const double x = a.asDouble(), y = b.asDouble();
        return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2; // 2: unordered
    }
    return a.i < b.i ? -1 : a.i > b.i ? 1 : 0;
}

c10::IValue compared(SizeOp op, const Number &a, const Number &b)
{
    const int c = compare(a, b);
    switch (op) {
    case SizeOp::Eq:
        return c == 0;
    case SizeOp::Ne:
        return c != 0;
    case SizeOp::Lt:
        return c == -1;
    case SizeOp::Le:
        return c == -1 || c == 0;
    case SizeOp::Gt:
        return c == 1;
    default:
        return c == 1 || c == 0;
    }
}

c10::IValue bitwise(SizeOp op, const Number &a, const Number &b)
{
    if (a.isFloat || b.isFloat)
        throw std::runtime_error("bit operation on a float");
    if (op == SizeOp::LShift || op == SizeOp::RShift) {
        if (b.i < 0)
            throw std::runtime_error("negative shift count");
        if (op == SizeOp::RShift)
            return b.i > 63 ? (a.i < 0 ? std::int64_t{-1} : std::int64_t{0}) : a.i >> b.i;
        if (a.i == 0)
            return std::int64_t{0};
        if (b.i > 62)
            overflow();
        return addSubMul(SizeOp::Mul, a, Number{false, false, std::int64_t{1} << b.i, 0});
    }
    const std::int64_t r = op == SizeOp::And ? (a.i & b.i) : op == SizeOp::Or ? (a.i | b.i) : (a.i ^ b.i);
    if (a.isBool && b.isBool)
        return r != 0;
    return r;
}

c10::IValue back(const Number &n)
{
    if (n.isFloat)
        return n.d;
    if (n.isBool)
        return n.i != 0;
    return n.i;
}

c10::IValue extremum(SizeOp op, const std::vector<c10::IValue> &operands)
{
    if (operands.empty())
        throw std::runtime_error("no operand");
    Number best = numberOf(operands[0]);
    for (std::size_t i = 1; i < operands.size(); ++i) {
        const Number next = numberOf(operands[i]);
        const int c = compare(next, best);
        if (op == SizeOp::Max ? c == 1 : c == -1)
            best = next;
    }
    return back(best);
}

c10::IValue sum(const std::vector<c10::IValue> &operands)
{
    c10::IValue total = std::int64_t{0};
    for (const auto &v : operands) {
        if (v.isList()) {
            for (const auto &item : v.toListRef())
                total = addSubMul(SizeOp::Add, numberOf(total), numberOf(item));
        } else {
            total = addSubMul(SizeOp::Add, numberOf(total), numberOf(v));
        }
    }
    return total;
}

bool truth(const Number &n)
{
    return n.isFloat ? n.d != 0 : n.i != 0;
}

c10::IValue unary(SizeOp op, const Number &a)
{
    switch (op) {
    case SizeOp::Neg:
        return a.isFloat ? c10::IValue(-a.d) : addSubMul(SizeOp::Sub, Number{}, a);
    case SizeOp::Pos:
        return a.isFloat ? c10::IValue(a.d) : c10::IValue(a.i);
    case SizeOp::Abs:
        if (a.isFloat)
            return std::abs(a.d);
        return a.i < 0 ? addSubMul(SizeOp::Sub, Number{}, a) : c10::IValue(a.i);
    case SizeOp::Not:
        return !truth(a);
    case SizeOp::Invert:
        if (a.isFloat)
            throw std::runtime_error("bit operation on a float");
        return ~a.i;
    case SizeOp::ToInt:
    case SizeOp::Trunc:
        return a.isFloat ? toInt(std::trunc(a.d)) : a.i;
    case SizeOp::Ceil:
        return a.isFloat ? toInt(std::ceil(a.d)) : a.i;
    case SizeOp::Floor:
        return a.isFloat ? toInt(std::floor(a.d)) : a.i;
    case SizeOp::ToFloat:
        return a.asDouble();
    default:
        if (a.asDouble() < 0)
            throw std::runtime_error("square root of a negative number");
        return std::sqrt(a.asDouble());
    }
}

c10::IValue getItem(const c10::IValue &list, const c10::IValue &index)
{
    if (!list.isList())
        throw std::runtime_error("getitem of something that is no list");
    const auto items = list.toListRef();
    std::int64_t i = numberOf(index).i;
    if (i < 0)
        i += static_cast<std::int64_t>(items.size());
    if (i < 0 || i >= static_cast<std::int64_t>(items.size()))
        throw std::runtime_error("list index out of range");
    return items[static_cast<std::size_t>(i)];
}

std::size_t arity(SizeOp op)
{
    switch (op) {
    case SizeOp::Neg:
    case SizeOp::Pos:
    case SizeOp::Abs:
    case SizeOp::Not:
    case SizeOp::Invert:
    case SizeOp::ToInt:
    case SizeOp::ToFloat:
    case SizeOp::Trunc:
    case SizeOp::Ceil:
    case SizeOp::Floor:
    case SizeOp::Sqrt:
        return 1;
    case SizeOp::Ite:
        return 3;
    default:
        return 2;
    }
}

} // namespace

std::optional<SizeOp> sizeOpOf(std::string_view target)
{
    static const std::unordered_map<std::string_view, SizeOp> kOps = {
        {"_operator.add", SizeOp::Add},         {"_operator.sub", SizeOp::Sub},
        {"_operator.mul", SizeOp::Mul},         {"_operator.floordiv", SizeOp::FloorDiv},
        {"_operator.truediv", SizeOp::TrueDiv}, {"_operator.mod", SizeOp::Mod},
        {"_operator.pow", SizeOp::Pow},         {"_operator.neg", SizeOp::Neg},
        {"_operator.pos", SizeOp::Pos},         {"_operator.abs", SizeOp::Abs},
        {"_operator.eq", SizeOp::Eq},           {"_operator.ne", SizeOp::Ne},
        {"_operator.lt", SizeOp::Lt},           {"_operator.le", SizeOp::Le},
        {"_operator.gt", SizeOp::Gt},           {"_operator.ge", SizeOp::Ge},
        {"_operator.and_", SizeOp::And},        {"_operator.or_", SizeOp::Or},
        {"_operator.xor", SizeOp::Xor},         {"_operator.not_", SizeOp::Not},
        {"_operator.inv", SizeOp::Invert},      {"_operator.invert", SizeOp::Invert},
        {"_operator.lshift", SizeOp::LShift},   {"_operator.rshift", SizeOp::RShift},
        {"_operator.getitem", SizeOp::GetItem}, {"torch.sym_int", SizeOp::ToInt},
        {"torch.sym_float", SizeOp::ToFloat},   {"torch.sym_max", SizeOp::Max},
        {"torch.sym_min", SizeOp::Min},         {"torch.sym_not", SizeOp::Not},
        {"torch.sym_ite", SizeOp::Ite},         {"torch.sym_sum", SizeOp::Sum},
        {"torch.sym_sqrt", SizeOp::Sqrt},       {"torch._sym_sqrt", SizeOp::Sqrt},
        {"math.trunc", SizeOp::Trunc},          {"math.ceil", SizeOp::Ceil},
        {"math.floor", SizeOp::Floor},          {"math.sqrt", SizeOp::Sqrt},
    };
    const auto it = kOps.find(target);
    return it == kOps.end() ? std::nullopt : std::optional(it->second);
}

c10::IValue evaluateSize(SizeOp op, const std::vector<c10::IValue> &operands)
{
    if (op == SizeOp::Sum)
        return sum(operands);
    if (op == SizeOp::Max || op == SizeOp::Min)
        return extremum(op, operands);
    if (operands.size() != arity(op))
        throw std::runtime_error("takes " + std::to_string(arity(op)) + " operands, got " +
                                 std::to_string(operands.size()));
    if (op == SizeOp::GetItem)
        return getItem(operands[0], operands[1]);
    const Number a = numberOf(operands[0]);
    switch (op) {
    case SizeOp::Add:
    case SizeOp::Sub:
    case SizeOp::Mul:
        return addSubMul(op, a, numberOf(operands[1]));
    case SizeOp::FloorDiv:
    case SizeOp::TrueDiv:
    case SizeOp::Mod:
        return divide(op, a, numberOf(operands[1]));
    case SizeOp::Pow:
        return power(a, numberOf(operands[1]));
    case SizeOp::Eq:
    case SizeOp::Ne:
    case SizeOp::Lt:
    case SizeOp::Le:
    case SizeOp::Gt:
    case SizeOp::Ge:
        return compared(op, a, numberOf(operands[1]));
    case SizeOp::And:
    case SizeOp::Or:
    case SizeOp::Xor:
    case SizeOp::LShift:
    case SizeOp::RShift:
        return bitwise(op, a, numberOf(operands[1]));
    case SizeOp::Ite:
        return truth(a) ? operands[1] : operands[2];
    default:
        return unary(op, a);
    }
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/argument_fit.h"

#include <cmath>

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>

#include "core/readers/loaded_model.h"

namespace dblame
{

namespace
{

using c10::TypeKind;

// Some exported graphs were made on an accelerator; they run on the CPU here.
c10::IValue deviceOf(const DeviceArg &device)
{
    if (device.type == "meta")
        return c10::Device(c10::DeviceType::Meta);
    return c10::Device(c10::DeviceType::CPU);
}

template <class T>
c10::IValue numberList(const std::vector<T> &values)
{
    c10::List<T> list;
    list.reserve(values.size());
    for (const auto &v : values)
        list.push_back(v);
    return list;
}

bool isNumber(const c10::IValue &v)
{
    return v.isInt() || v.isDouble() || v.isBool() || v.isComplexDouble();
}

bool isIntegral(double v)
{
    return std::nearbyint(v) == v && std::abs(v) < 9.2e18;
}

struct Unfit {
};

// The element type of lists, TypeKind::AnyType when it is none of those that need care.
c10::TypePtr elementType(const c10::TypePtr &type)
{
    return type->castRaw<c10::ListType>()->getElementType();
}

c10::IValue fitLiteral(const c10::IValue &raw, const c10::TypePtr &type, std::optional<int> repeat);

c10::IValue fitLiteralList(const c10::IValue &raw, const c10::TypePtr &type, std::optional<int> repeat)
{
    const auto element = elementType(type);
    const auto kind = element->kind();
    if (!raw.isList()) {
        if (!isNumber(raw) || !repeat)
            throw Unfit{};
        c10::List<c10::IValue> repeated(c10::AnyType::get());
        for (int i = 0; i < *repeat; ++i)
            repeated.push_back(raw);
        return fitLiteralList(repeated, type, std::nullopt);
    }
    const auto items = raw.toListRef();
    if (items.empty() && kind == TypeKind::TensorType)
        return c10::List<at::Tensor>();
    c10::impl::GenericList list(element);
    list.reserve(items.size());
    for (const auto &item : items)
        list.push_back(fitLiteral(item, element, std::nullopt));
    switch (kind) {
    case TypeKind::IntType:
        return c10::impl::toTypedList<std::int64_t>(std::move(list));
    case TypeKind::FloatType:
        return c10::impl::toTypedList<double>(std::move(list));
    case TypeKind::BoolType:
        return c10::impl::toTypedList<bool>(std::move(list));
    default:
        return list;
    }
}

c10::IValue fitLiteral(const c10::IValue &raw, const c10::TypePtr &type, std::optional<int> repeat)
{
    switch (type->kind()) {
    case TypeKind::OptionalType:
        return raw.isNone() ? raw : fitLiteral(raw, type->castRaw<c10::OptionalType>()->getElementType(), repeat);
    case TypeKind::TensorType:
        if (isNumber(raw))
            return wrappedNumber(raw);
        throw Unfit{};
    case TypeKind::ListType:
        return fitLiteralList(raw, type, repeat);
    case TypeKind::NumberType:
        if (isNumber(raw))
            return raw;
        throw Unfit{};
    case TypeKind::FloatType:
        return fitValue(raw, Fit::Float);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
        return fitValue(raw, Fit::Int);
    case TypeKind::BoolType:
        return fitValue(raw, Fit::Bool);
    case TypeKind::StringType:
        if (raw.isString())
            return raw;
        throw Unfit{};
    case TypeKind::DeviceObjType:
        if (raw.isDevice())
            return raw;
        throw Unfit{};
    case TypeKind::ComplexType:
        return raw.isComplexDouble() ? raw : c10::IValue(c10::complex<double>(raw.toScalar().toDouble(), 0));
    default:
        if (raw.isNone())
            throw Unfit{};
        return raw;
    }
}

Fit runtimeFit(const c10::TypePtr &type)
{
    switch (type->kind()) {
    case TypeKind::OptionalType:
        return runtimeFit(type->castRaw<c10::OptionalType>()->getElementType());
    case TypeKind::TensorType:
        return Fit::Tensor;
    case TypeKind::NumberType:
        return Fit::Scalar;
    case TypeKind::FloatType:
        return Fit::Float;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
        return Fit::Int;
    case TypeKind::BoolType:
        return Fit::Bool;
    case TypeKind::ListType: {
        const auto element = elementType(type);
        switch (element->kind()) {
        case TypeKind::TensorType:
            return Fit::TensorList;
        case TypeKind::OptionalType:
            return Fit::OptionalTensorList;
        case TypeKind::IntType:
        case TypeKind::SymIntType:
            return Fit::IntList;
        case TypeKind::FloatType:
            return Fit::FloatList;
        case TypeKind::BoolType:
            return Fit::BoolList;
        default:
            return Fit::AsIs;
        }
    }
    default:
        return Fit::AsIs;
    }
}

bool takesValues(const Argument &argument)
{
    if (std::holds_alternative<ValueId>(argument))
        return true;
    if (const auto *list = std::get_if<ValueListArg>(&argument))
        return !list->values.empty();
    if (const auto *ints = std::get_if<IntListArg>(&argument)) {
        for (const auto &v : ints->values)
            if (std::holds_alternative<ValueId>(v))
                return true;
    }
    if (const auto *bools = std::get_if<BoolListArg>(&argument)) {
        for (const auto &v : bools->values)
            if (std::holds_alternative<ValueId>(v))
                return true;
    }
    return false;
}

} // namespace

at::Tensor wrappedNumber(const c10::IValue &number)
{
    at::Tensor tensor;
    if (number.isInt())
        tensor = c10::scalar_to_tensor(number.toInt());
    else if (number.isDouble())
        tensor = c10::scalar_to_tensor(number.toDouble());
    else if (number.isBool())
        tensor = c10::scalar_to_tensor(number.toBool());
    else
        tensor = c10::scalar_to_tensor(number.toComplexDouble());
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
}

c10::IValue fitValue(const c10::IValue &value, Fit fit)
{
    switch (fit) {
    case Fit::AsIs:
        return value;
    case Fit::Tensor:
        if (value.isTensor())
            return value;
        if (isNumber(value))
            return wrappedNumber(value);
        break;
    case Fit::Scalar:
        if (value.isTensor())
            return value.toTensor().item();
        if (isNumber(value))
            return value;
        break;
    case Fit::Float:
        if (value.isDouble())
            return value;
        if (value.isInt())
            return static_cast<double>(value.toInt());
        if (value.isBool())
            return value.toBool() ? 1.0 : 0.0;
        if (value.isTensor())
            return value.toTensor().item().toDouble();
        break;
    case Fit::Int:
        if (value.isInt())
            return value;
        if (value.isBool())
            return static_cast<std::int64_t>(value.toBool());
        if (value.isDouble() && isIntegral(value.toDouble()))
            return static_cast<std::int64_t>(value.toDouble());
        if (value.isTensor())
            return value.toTensor().item().toLong();
        break;
    case Fit::Bool:
        if (value.isBool())
            return value;
        if (value.isTensor())
            return value.toTensor().item().toBool();
        if (value.isInt())
            return value.toInt() != 0;
        break;
    default:
        return value; // lists that are already lists
    }
    throw CompileFault("a value of type " + value.tagKind() + " does not fit its argument");
}

c10::IValue literalOf(const Argument &argument)
{
    struct Visitor {
        c10::IValue operator()(NoneArg) const { return {}; }
        c10::IValue operator()(ValueId) const { return {}; }
        c10::IValue operator()(const ValueListArg &) const { return c10::List<at::Tensor>(); }
        c10::IValue operator()(const NestedValueListArg &) const
        {
            throw CompileFault("holds lists of lists of values");
        }
        c10::IValue operator()(std::int64_t v) const { return v; }
        c10::IValue operator()(double v) const { return v; }
        c10::IValue operator()(bool v) const { return v; }
        c10::IValue operator()(const std::string &v) const { return v; }
        c10::IValue operator()(const std::complex<double> &v) const { return c10::complex<double>(v.real(), v.imag()); }
        c10::IValue operator()(const IntListArg &v) const
        {
            c10::List<std::int64_t> list;
            for (const auto &item : v.values)
                list.push_back(std::get<std::int64_t>(item));
            return list;
        }
        c10::IValue operator()(const IntListsArg &v) const
        {
            c10::List<c10::List<std::int64_t>> list;
            for (const auto &inner : v.values)
                list.push_back(numberList(inner).toIntList());
            return list;
        }
        c10::IValue operator()(const FloatListArg &v) const { return numberList(v.values); }
        c10::IValue operator()(const FloatListsArg &v) const
        {
            c10::List<c10::List<double>> list;
            for (const auto &inner : v.values)
                list.push_back(numberList(inner).toDoubleList());
            return list;
        }
        c10::IValue operator()(const BoolListArg &v) const
        {
            c10::List<bool> list;
            for (const auto &item : v.values)
                list.push_back(std::get<bool>(item));
            return list;
        }
        c10::IValue operator()(const StringListArg &v) const { return numberList(v.values); }
        c10::IValue operator()(ScalarTypeArg v) const { return static_cast<std::int64_t>(toTorch(v.dtype)); }
        c10::IValue operator()(LayoutArg v) const { return v.layout; }
        c10::IValue operator()(MemoryFormatArg v) const { return v.format; }
        c10::IValue operator()(const DeviceArg &v) const { return deviceOf(v); }
        c10::IValue operator()(SubgraphArg) const { throw CompileFault("holds a graph"); }
        c10::IValue operator()(const OperatorArg &v) const { throw CompileFault("holds the operator " + v.name); }
        c10::IValue operator()(const UnsupportedArg &v) const { throw CompileFault(v.what); }
    };
    return std::visit(Visitor{}, argument);
}

void appendOperands(const Argument &argument, std::uint32_t &nextInput, std::vector<ListItem> &items)
{
    const auto value = [&] { items.push_back({static_cast<std::int32_t>(nextInput++), {}}); };
    if (std::holds_alternative<ValueId>(argument)) {
        value();
    } else if (const auto *list = std::get_if<ValueListArg>(&argument)) {
        for (const auto &v : list->values) {
            if (v)
                value();
            else
                items.emplace_back();
        }
    } else if (const auto *ints = std::get_if<IntListArg>(&argument)) {
        for (const auto &v : ints->values) {
            if (const auto *number = std::get_if<std::int64_t>(&v))
                items.push_back({-1, *number});
            else
                value();
        }
    } else if (const auto *bools = std::get_if<BoolListArg>(&argument)) {
        for (const auto &v : bools->values) {
            if (const auto *flag = std::get_if<bool>(&v))
                items.push_back({-1, *flag});
            else
                value();
        }
    } else if (const auto *floats = std::get_if<FloatListArg>(&argument)) {
        for (double v : floats->values)
            items.push_back({-1, v});
    } else {
        items.push_back({-1, literalOf(argument)});
    }
}

ArgumentTemplate fitArgument(const Argument &argument, const c10::Argument *type, std::uint32_t &nextInput,
                             const std::string &where)
{
    ArgumentTemplate result;
    try {
        if (takesValues(argument)) {
            result.fit = type ? runtimeFit(type->type()) : Fit::AsIs;
            if (std::holds_alternative<ValueId>(argument)) {
                const bool asList = result.fit >= Fit::TensorList;
                if (asList && type->N()) { // one value for a list of N
                    result.kind = ArgumentTemplate::Kind::List;
                    result.items.assign(static_cast<std::size_t>(*type->N()),
                                        {static_cast<std::int32_t>(nextInput), {}});
                } else {
                    result.kind = ArgumentTemplate::Kind::Value;
                    result.input = nextInput;
                }
                ++nextInput;
            } else {
                result.kind = ArgumentTemplate::Kind::List;
                appendOperands(argument, nextInput, result.items);
            }
            return result;
        }
        const c10::IValue raw = literalOf(argument);
        result.constant =
            type ? fitLiteral(raw, type->type(), type->N() ? std::optional<int>(*type->N()) : std::nullopt) : raw;
    } catch (const Unfit &) {
        throw CompileFault(where + " does not fit its type " + (type ? type->type()->str() : std::string("unknown")));
    } catch (const CompileFault &fault) {
        throw CompileFault(where + ": " + fault.what());
    }
    return result;
}

} // namespace dblame

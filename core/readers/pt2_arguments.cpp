// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/pt2_arguments.h"

#include <array>
#include <map>

#include "core/readers/node_metadata.h"

namespace dblame
{

namespace
{

std::optional<std::int64_t> c10Layout(std::int64_t number)
{
    // File: unknown, sparse COO, CSR, CSC, BSR, BSC, mkldnn, strided. c10: strided 0, COO 1, CSR 2, mkldnn 3, ...
    constexpr std::array<std::int64_t, 8> table = {-1, 1, 2, 4, 5, 6, 3, 0};
    return number > 0 && number < 8 ? std::optional(table[static_cast<std::size_t>(number)]) : std::nullopt;
}

std::optional<std::int64_t> c10MemoryFormat(std::int64_t number)
{
    // File: unknown, contiguous, channels_last, channels_last_3d, preserve. c10: 0, 2, 3, 1.
    constexpr std::array<std::int64_t, 5> table = {-1, 0, 2, 3, 1};
    return number > 0 && number < 5 ? std::optional(table[static_cast<std::size_t>(number)]) : std::nullopt;
}

std::optional<Argument> literalList(const std::string &tag, const Json &value)
{
    using IntOrValue = std::variant<std::int64_t, ValueId>;
    using BoolOrValue = std::variant<bool, ValueId>;
    const auto integer = [](const Json &v) { return asInt(v, "an element of as_ints"); };
    const auto number = [](const Json &v) { return asFloat(v, "an element of as_floats"); };
    const auto flag = [](const Json &v) { return asBool(v, "an element of as_bools"); };
    const auto word = [](const Json &v) { return asText(v, "an element of as_strings"); };
    if (tag == "as_ints")
        return IntListArg{listOf<IntOrValue>(value, tag, integer)};
    if (tag == "as_floats")
        return FloatListArg{listOf<double>(value, tag, number)};
    if (tag == "as_bools")
        return BoolListArg{listOf<BoolOrValue>(value, tag, flag)};
    if (tag == "as_strings")
        return StringListArg{listOf<std::string>(value, tag, word)};
    if (tag == "as_int_lists")
        return IntListsArg{listOf<std::vector<std::int64_t>>(
            value, tag, [&](const Json &inner) { return listOf<std::int64_t>(inner, tag, integer); })};
    if (tag == "as_float_lists")
        return FloatListsArg{listOf<std::vector<double>>(
            value, tag, [&](const Json &inner) { return listOf<double>(inner, tag, number); })};
    return std::nullopt;
}

std::optional<Argument> enumeration(const std::string &tag, const Json &value)
{
    if (tag == "as_scalar_type") {
        const std::int64_t number = asInt(value, tag);
        const DType dtype = pt2ScalarType(number);
        if (dtype == DType::Unknown)
            return UnsupportedArg{"scalar type " + std::to_string(number) + " is unknown"};
        return ScalarTypeArg{dtype};
    }
    if (tag == "as_layout") {
        const std::int64_t number = asInt(value, tag);
        if (const auto layout = c10Layout(number))
            return LayoutArg{*layout};
        return UnsupportedArg{"layout " + std::to_string(number) + " is unknown"};
    }
    if (tag == "as_memory_format") {
        const std::int64_t number = asInt(value, tag);
        if (const auto format = c10MemoryFormat(number))
            return MemoryFormatArg{*format};
        return UnsupportedArg{"memory format " + std::to_string(number) + " is unknown"};
    }
    return std::nullopt;
}

} // namespace

DType pt2ScalarType(std::int64_t number)
{
    static const std::map<std::int64_t, DType> types = {
        {1, DType::UInt8},           {2, DType::Int8},
        {3, DType::Int16},           {4, DType::Int32},
        {5, DType::Int64},           {6, DType::Float16},
        {7, DType::Float32},         {8, DType::Float64},
        {9, DType::Complex32},       {10, DType::Complex64},
        {11, DType::Complex128},     {12, DType::Bool},
        {13, DType::BFloat16},       {28, DType::UInt16},
        {29, DType::Float8E4M3FN},   {30, DType::Float8E5M2},
        {31, DType::Float8E4M3FNUZ}, {32, DType::Float8E5M2FNUZ},
        {33, DType::Float8E8M0FNU},  {34, DType::UInt32},
        {35, DType::UInt64},
    };
    const auto found = types.find(number);
    return found == types.end() ? DType::Unknown : found->second;
}

std::optional<Argument> literalArgument(const std::string &tag, const Json &value)
{
    if (tag == "as_none")
        return NoneArg{};
    if (tag == "as_int")
        return asInt(value, tag);
    if (tag == "as_float")
        return asFloat(value, tag);
    if (tag == "as_bool")
        return asBool(value, tag);
    if (tag == "as_string")
        return asText(value, tag);
    if (tag == "as_operator")
        return OperatorArg{asText(value, tag)};
    if (tag == "as_complex")
        return std::complex<double>(asFloat(field(value, "real"), "real"), asFloat(field(value, "imag"), "imag"));
    if (auto list = literalList(tag, value))
        return list;
    return enumeration(tag, value);
}

TensorMeta readTensorMeta(const Json &json)
{
    TensorMeta meta;
    meta.dtype = pt2ScalarType(asInt(field(json, "dtype"), "dtype"));
    for (const Json &size : listField(json, "sizes")) {
        Dim dim;
        const auto [tag, value] = asUnion(size, "a size");
        if (tag == "as_int") {
            dim.size = asInt(value, tag);
        } else {
            dim.size = -1;
            dim.symbol = symbolText(textField(value, "expr_str"));
            if (const Json *hint = optionalField(value, "hint"); hint != nullptr && !hint->is_null())
                if (const Json *number = hint->is_object() ? optionalField(*hint, "as_int") : hint)
                    dim.size = asInt(*number, "hint");
        }
        meta.sizes.push_back(std::move(dim));
    }
    return meta;
}

} // namespace dblame

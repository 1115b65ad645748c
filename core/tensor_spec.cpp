// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tensor_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/number_text.h"

namespace dblame
{

namespace
{

struct TypeRow {
    ElementType type;
    std::string_view name;
    int bits;
    bool integer;
    bool isSigned;
    DType storage;
};

constexpr std::array kTypes{
    TypeRow{ElementType::Int2, "int2", 2, true, true, DType::Int8},
    TypeRow{ElementType::UInt2, "uint2", 2, true, false, DType::UInt8},
    TypeRow{ElementType::Int3, "int3", 3, true, true, DType::Int8},
    TypeRow{ElementType::UInt3, "uint3", 3, true, false, DType::UInt8},
    TypeRow{ElementType::Int4, "int4", 4, true, true, DType::Int8},
    TypeRow{ElementType::UInt4, "uint4", 4, true, false, DType::UInt8},
    TypeRow{ElementType::Int5, "int5", 5, true, true, DType::Int8},
    TypeRow{ElementType::UInt5, "uint5", 5, true, false, DType::UInt8},
    TypeRow{ElementType::Int6, "int6", 6, true, true, DType::Int8},
    TypeRow{ElementType::UInt6, "uint6", 6, true, false, DType::UInt8},
    TypeRow{ElementType::Int7, "int7", 7, true, true, DType::Int8},
    TypeRow{ElementType::UInt7, "uint7", 7, true, false, DType::UInt8},
    TypeRow{ElementType::Int8, "int8", 8, true, true, DType::Int8},
    TypeRow{ElementType::UInt8, "uint8", 8, true, false, DType::UInt8},
    TypeRow{ElementType::Int16, "int16", 16, true, true, DType::Int16},
    TypeRow{ElementType::UInt16, "uint16", 16, true, false, DType::UInt16},
    TypeRow{ElementType::Int32, "int32", 32, true, true, DType::Int32},
    TypeRow{ElementType::Float4E2M1, "f4e2m1", 4, false, true, DType::UInt8},
    TypeRow{ElementType::Float8E4M3, "f8e4m3", 8, false, true, DType::Float8E4M3FN},
    TypeRow{ElementType::Float8E5M2, "f8e5m2", 8, false, true, DType::Float8E5M2},
    TypeRow{ElementType::BFloat16, "bf16", 16, false, true, DType::BFloat16},
    TypeRow{ElementType::Float16, "f16", 16, false, true, DType::Float16},
};

constexpr std::array kSpellings{
    std::pair{std::string_view("float8_e4m3fn"), ElementType::Float8E4M3},
    std::pair{std::string_view("float8_e4m3"), ElementType::Float8E4M3},
    std::pair{std::string_view("f8e4m3fn"), ElementType::Float8E4M3},
    std::pair{std::string_view("float8_e5m2"), ElementType::Float8E5M2},
    std::pair{std::string_view("float4_e2m1fn_x2"), ElementType::Float4E2M1},
    std::pair{std::string_view("float4_e2m1fn"), ElementType::Float4E2M1},
    std::pair{std::string_view("bfloat16"), ElementType::BFloat16},
    std::pair{std::string_view("float16"), ElementType::Float16},
    std::pair{std::string_view("fp16"), ElementType::Float16},
    std::pair{std::string_view("half"), ElementType::Float16},
};

const TypeRow &row(ElementType type)
{
    return *std::find_if(kTypes.begin(), kTypes.end(), [type](const TypeRow &r) { return r.type == type; });
}

// --- the short text -----------------------------------------------------------------------------

constexpr std::array kSchemeWords{
    std::pair{std::string_view("sym"), Scheme::Symmetric},
    std::pair{std::string_view("symclip"), Scheme::SymmetricWithClipping},
    std::pair{std::string_view("affine"), Scheme::Affine},
};

std::vector<std::string_view> split(std::string_view text, char separator)
{
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos)
            return parts;
        text.remove_prefix(at + 1);
    }
}

template <class Int>
std::optional<Int> integer(std::string_view text)
{
    Int value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

// "32", "2x16x*": extents of a block, * = the whole dimension.
std::optional<std::vector<std::int64_t>> blockExtents(std::string_view text)
{
    std::vector<std::int64_t> sizes;
    for (const std::string_view part : split(text, 'x')) {
        if (part == "*") {
            sizes.push_back(-1);
            continue;
        }
        const auto size = integer<std::int64_t>(part);
        if (!size || *size <= 0)
            return std::nullopt;
        sizes.push_back(*size);
    }
    if (sizes.size() == 1 && sizes.front() < 0)
        return std::nullopt;
    return sizes;
}

// "channel", "channel@1", "block32@-1", "block2x16", "tensor", "token". False: not understood.
bool readGranularity(std::string_view text, const TensorSpec &base, TensorSpec &spec)
{
    std::optional<int> axis;
    if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
        axis = integer<int>(text.substr(at + 1));
        if (!axis)
            return false;
        text = text.substr(0, at);
    }
    const auto keptAxis = [&](Granularity granularity) {
        return axis ? axis : base.granularity == granularity ? base.axis : std::nullopt;
    };
    spec.blockSizes.clear();
    spec.axis.reset();
    if (text == "tensor" || text == "token") {
        spec.granularity = text == "tensor" ? Granularity::PerTensor : Granularity::PerToken;
        return !axis;
    }
    if (text == "channel") {
        spec.granularity = Granularity::PerChannel;
        spec.axis = keptAxis(Granularity::PerChannel);
        return true;
    }
    if (!text.starts_with("block"))
        return false;
    auto sizes = blockExtents(text.substr(5));
    if (!sizes || (sizes->size() > 1 && axis))
        return false;
    spec.granularity = Granularity::PerBlock;
    spec.axis = sizes->size() > 1 ? std::nullopt : keptAxis(Granularity::PerBlock);
    spec.blockSizes = std::move(*sizes);
    return true;
}

std::string granularityText(const TensorSpec &spec)
{
    std::string text;
    switch (spec.granularity) {
    case Granularity::PerTensor:
        return "tensor";
    case Granularity::PerToken:
        return "token";
    case Granularity::PerChannel:
        text = "channel";
        break;
    case Granularity::PerBlock:
        text = "block";
        for (std::size_t i = 0; i < spec.blockSizes.size(); ++i)
            text += (i > 0 ? "x" : "") + (spec.blockSizes[i] < 0 ? "*" : std::to_string(spec.blockSizes[i]));
        break;
    }
    return spec.axis ? text + "@" + std::to_string(*spec.axis) : text;
}

// [-127, 127] rather than [-128, 127], by the range that the quantizer gives itself.
bool leavesOutLowest(const TensorSpec &spec)
{
    return isInteger(spec.type) && isSigned(spec.type) && spec.quantMin == -spec.quantMax;
}

void chooseRange(const TensorSpec &base, TensorSpec &spec)
{
    if (spec.type == base.type && spec.scheme == base.scheme)
        return; // a range of the base's own stays
    const IntegerRange range = integerRange(spec.type, spec.scheme);
    spec.quantMin = range.low;
    spec.quantMax = range.high;
    if (spec.scheme == Scheme::Symmetric && base.scheme == Scheme::Symmetric && isSigned(spec.type) &&
        isInteger(spec.type) && leavesOutLowest(base))
        spec.quantMin = -range.high;
}

std::string typeList()
{
    std::string list;
    for (const TypeRow &r : kTypes)
        list += (list.empty() ? "" : ", ") + std::string(r.name);
    return list;
}

tl::unexpected<Error> badSpec(std::string_view text, const std::string &why)
{
    return fail(ErrorCode::Usage, "", "spec \"" + std::string(text) + "\": " + why);
}

bool readObserver(std::string_view word, TensorSpec &spec)
{
    static constexpr std::array<std::pair<std::string_view, ObserverKind>, 5> kWords{{
        {"minmax", ObserverKind::MinMax},
        {"average", ObserverKind::MovingAverage},
        {"last", ObserverKind::LastBatch},
        {"histogram", ObserverKind::Histogram},
        {"mse", ObserverKind::MeanSquaredError},
    }};
    for (const auto &[name, kind] : kWords)
        if (word == name) {
            spec.observer = kind;
            return true;
        }
    constexpr std::string_view kPercentile = "percentile";
    if (!word.starts_with(kPercentile))
        return false;
    const std::string_view number = word.substr(kPercentile.size());
    double percent = 0;
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), percent);
    if (problem != std::errc() || end != number.data() + number.size() || !(percent > 50 && percent <= 100))
        return false;
    spec.observer = ObserverKind::Percentile;
    spec.percentile = percent;
    return true;
}

} // namespace

std::string_view elementTypeName(ElementType type)
{
    return row(type).name;
}

std::optional<ElementType> elementTypeFromName(std::string_view name)
{
    for (const TypeRow &r : kTypes)
        if (r.name == name)
            return r.type;
    for (const auto &[spelling, type] : kSpellings)
        if (spelling == name)
            return type;
    return std::nullopt;
}

bool isInteger(ElementType type)
{
    return row(type).integer;
}

bool isSigned(ElementType type)
{
    return row(type).isSigned;
}

bool isCast(ElementType type)
{
    return type == ElementType::BFloat16 || type == ElementType::Float16;
}

int bitsOf(ElementType type)
{
    return row(type).bits;
}

DType storageOf(ElementType type)
{
    return row(type).storage;
}

std::string_view schemeName(Scheme scheme)
{
    switch (scheme) {
    case Scheme::Symmetric:
        return "symmetric";
    case Scheme::SymmetricWithClipping:
        return "symmetric with clipping";
    case Scheme::Affine:
        return "affine";
    }
    return "";
}

std::string_view observerKindName(ObserverKind kind)
{
    switch (kind) {
    case ObserverKind::MinMax:
        return "min-max";
    case ObserverKind::MovingAverage:
        return "moving average";
    case ObserverKind::Histogram:
        return "histogram";
    case ObserverKind::Percentile:
        return "percentile";
    case ObserverKind::MeanSquaredError:
        return "mean squared error";
    case ObserverKind::LastBatch:
        return "last batch";
    case ObserverKind::Fixed:
        return "fixed";
    case ObserverKind::Dynamic:
        return "dynamic";
    }
    return "";
}

IntegerRange integerRange(ElementType type, Scheme scheme)
{
    if (!isInteger(type))
        return {0, 0};
    const std::int64_t half = std::int64_t{1} << (bitsOf(type) - 1);
    if (!isSigned(type))
        return {0, 2 * half - 1};
    return {scheme == Scheme::SymmetricWithClipping ? 1 - half : -half, half - 1};
}

std::string TensorSpec::text() const
{
    if (palette) {
        std::string words = std::to_string(palette->bits) + "-bit palette";
        if (palette->groupSize > 0)
            words += ", one table per " + std::to_string(palette->groupSize) + " channels of axis " +
                     std::to_string(palette->axis);
        if (palette->perChannelScale)
            words += ", scale per channel";
        if (palette->tableType)
            words += ", table in " + std::string(elementTypeName(*palette->tableType));
        return palette->fast ? words : words + ", exact";
    }
    std::string words(elementTypeName(type));
    if (isCast(type))
        return words;
    const IntegerRange full = integerRange(type, scheme);
    if (isInteger(type) && (quantMin != full.low || quantMax != full.high))
        words += " [" + std::to_string(quantMin) + ", " + std::to_string(quantMax) + "]";
    words += " " + std::string(schemeName(scheme)) + " " + granularityName(granularity);
    if (granularity == Granularity::PerBlock) {
        words += " of ";
        for (std::size_t i = 0; i < blockSizes.size(); ++i)
            words += (i > 0 ? "×" : "") + (blockSizes[i] < 0 ? "all" : std::to_string(blockSizes[i]));
    }
    if (minValue)
        words += ", from the lowest value";
    if (powerOfTwoScale)
        words += ", scale a power of two";
    words += ", " + std::string(observerKindName(observer));
    if (observer == ObserverKind::Percentile)
        words += " " + shortestText(percentile);
    return words;
}

Result<TensorSpec> parseTensorSpec(std::string_view text, const TensorSpec &base)
{
    const std::vector<std::string_view> parts = split(text, ':');
    const auto type = elementTypeFromName(parts.front());
    if (!type)
        return badSpec(text, "\"" + std::string(parts.front()) + "\" is no element type; known: " + typeList());
    TensorSpec spec = base;
    spec.palette.reset();
    spec.type = *type;
    if (isCast(*type)) {
        if (parts.size() > 1)
            return badSpec(text, std::string(parts.front()) + " is a cast: it takes no scheme and no granularity");
        spec.scheme = Scheme::Symmetric;
        spec.granularity = Granularity::PerTensor;
        spec.axis.reset();
        spec.blockSizes.clear();
        spec.quantMin = spec.quantMax = 0;
        return spec;
    }
    if (parts.size() > 4)
        return badSpec(text, "write DTYPE:SCHEME[:GRANULARITY[:OBSERVER]], for instance int8:sym:channel");
    if (parts.size() > 1) {
        const auto *const word = std::find_if(kSchemeWords.begin(), kSchemeWords.end(),
                                              [&](const auto &entry) { return entry.first == parts[1]; });
        if (word == kSchemeWords.end())
            return badSpec(text, "\"" + std::string(parts[1]) + "\" is no scheme; known: sym, symclip, affine");
        spec.scheme = word->second;
    } else if (!isInteger(*type)) {
        spec.scheme = Scheme::Symmetric;
    }
    if (!isInteger(*type) && spec.scheme != Scheme::Symmetric)
        return badSpec(text, std::string(elementTypeName(*type)) + " is symmetric only: write sym");
    const bool takesPowers =
        *type == ElementType::Int8 || *type == ElementType::Float8E4M3 || *type == ElementType::Float8E5M2;
    spec.powerOfTwoScale =
        *type == ElementType::Float4E2M1 || (base.powerOfTwoScale && takesPowers && spec.scheme == Scheme::Symmetric);
    spec.minValue = base.minValue && isInteger(*type) && !spec.powerOfTwoScale;
    if (parts.size() > 2 && !readGranularity(parts[2], base, spec))
        return badSpec(text, "\"" + std::string(parts[2]) +
                                 "\" is no granularity; write tensor, channel, channel@AXIS, block32, block32@AXIS, "
                                 "block2x16 (one extent per dimension, * for all of it) or token");
    if (parts.size() > 3 && !readObserver(parts[3], spec))
        return badSpec(text, "\"" + std::string(parts[3]) +
                                 "\" is no observer; write minmax, average, last, histogram, mse or percentile99.9 "
                                 "(above 50, up to 100)");
    chooseRange(base, spec);
    return spec;
}

std::string specText(const TensorSpec &spec)
{
    std::string text(elementTypeName(spec.type));
    if (isCast(spec.type))
        return text;
    for (const auto &[word, scheme] : kSchemeWords)
        if (scheme == spec.scheme)
            text += ":" + std::string(word);
    text += ":" + granularityText(spec);
    if (spec.observer == ObserverKind::MeanSquaredError)
        text += ":mse";
    else if (spec.observer == ObserverKind::Percentile)
        text += ":percentile" + shortestText(spec.percentile);
    return text;
}

} // namespace dblame

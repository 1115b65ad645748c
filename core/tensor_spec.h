// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a quantizer asks of one tensor, before any number is known: element type, scheme, granularity, and how the
// range is found. docs/quantization.md has the formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/quant_site.h"

namespace dblame
{

// Types that a quantized element can have. Narrow integers are held in 8 bits, one each.
enum class ElementType : std::uint8_t {
    Int2,
    UInt2,
    Int3,
    UInt3,
    Int4,
    UInt4,
    Int5,
    UInt5,
    Int6,
    UInt6,
    Int7,
    UInt7,
    Int8,
    UInt8,
    Int16,
    UInt16,
    Int32,
    Float4E2M1,
    Float8E4M3,
    Float8E5M2,
    BFloat16,
    Float16,
};
// "int8", "uint4", "f8e4m3", "f8e5m2", "f4e2m1", "bf16", "f16".
[[nodiscard]] std::string_view elementTypeName(ElementType type);
// Also the peers' spellings ("float8_e4m3fn", "float8_e4m3", "float4_e2m1fn_x2", "bfloat16").
[[nodiscard]] std::optional<ElementType> elementTypeFromName(std::string_view name);
[[nodiscard]] bool isInteger(ElementType type);
[[nodiscard]] bool isSigned(ElementType type); // floating types are
[[nodiscard]] bool isCast(ElementType type);   // bf16, f16: no scale, no zero point
[[nodiscard]] int bitsOf(ElementType type);
[[nodiscard]] DType
storageOf(ElementType type); // int4 -> Int8, uint6 -> UInt8, f8e4m3 -> Float8E4M3FN, f4e2m1 -> UInt8

enum class Scheme : std::uint8_t {
    Symmetric,
    SymmetricWithClipping, // signed: without the lowest value of the range
    Affine,
};
[[nodiscard]] std::string_view schemeName(Scheme scheme); // "symmetric", "symmetric with clipping", "affine"

// How an observer turns what it sees into a range.
enum class ObserverKind : std::uint8_t {
    MinMax,           // of all batches, per unit of the granularity
    MovingAverage,    // r += c (x - r)
    Histogram,        // 2048 bins, range with the smallest expected squared error
    Percentile,       // of the same histogram
    MeanSquaredError, // range that minimizes the squared error of this grid on the same histogram
    LastBatch,        // range of the last tensor seen ("static" of coreai-opt)
    Fixed,            // given range or qparams
    Dynamic,          // none: from each tensor at run time
};
[[nodiscard]] std::string_view observerKindName(ObserverKind kind);

// The peers differ in how they round (docs/quantization.md): they agree except on ties and near-ties.
enum class Arithmetic : std::uint8_t {
    Reciprocal, // rint(x * (1/s)) + z: torch, torchao
    Division,   // rint(x / s) + z: coreai-opt
};

// The rule that turns a range into scale and zero point.
enum class QparamRule : std::uint8_t {
    Torchao,  // float32, symmetric divisor (qmax - qmin) / 2
    FusedQat, // what FusedMovingAvgObsFakeQuantize simulates with
    CoreAi,   // range clamped to hold zero before averaging
};

struct PaletteSpec {
    int bits = 4;               // 1, 2, 3, 4, 6, 8
    std::int64_t groupSize = 0; // channels that share a table; 0: one table for the tensor
    int axis = 0;               // of the groups: 0 or 1
    bool fast = true;           // cluster values rounded to 1e-4, as coreai-opt does by default
    bool perChannelScale = false;
    std::optional<ElementType> tableType; // the table itself quantized, symmetric per table
    bool tableSymmetric = true;
    friend bool operator==(const PaletteSpec &, const PaletteSpec &) = default;
};

struct TensorSpec {
    ElementType type = ElementType::Int8;
    std::int64_t quantMin = -128;
    std::int64_t quantMax = 127;
    Scheme scheme = Scheme::Affine;
    bool minValue = false; // q counts from the range's lowest value instead of a zero point (coreai-opt's "minval")
    Granularity granularity = Granularity::PerTensor;
    std::optional<int> axis;              // per channel, per block; may be negative; absent: by the operator
    std::vector<std::int64_t> blockSizes; // per block: one entry = extent on `axis`; more = one per dimension, -1 whole
    ObserverKind observer = ObserverKind::MinMax;
    QparamRule rule = QparamRule::Torchao;
    Arithmetic arithmetic = Arithmetic::Reciprocal;
    double averaging = 0.01;            // c of MovingAverage
    double eps = 1.0 / (1U << 23);      // smallest scale
    double percentile = 99.99;          // Percentile: share of values inside the range, percent
    std::optional<double> low, high;    // a bound that is not observed; both: a fixed range
    bool powerOfTwoScale = false;       // e8m0
    std::optional<PaletteSpec> palette; // a lookup table; type, scheme and range do not matter then

    friend bool operator==(const TensorSpec &, const TensorSpec &) = default;
    [[nodiscard]] std::string text() const; // "int8 symmetric per channel, min-max"
};

// Smallest and largest integer of a type under a scheme. Floating types: {0, 0}.
struct IntegerRange {
    std::int64_t low = 0, high = 0;
};
[[nodiscard]] IntegerRange integerRange(ElementType type, Scheme scheme);

// "int8:sym:channel", "uint4:affine:block32", "f8e4m3:sym", as in docs/cli.md; `base` supplies what the text leaves
// out (observer, rule, arithmetic, eps). Inverse: specText.
[[nodiscard]] Result<TensorSpec> parseTensorSpec(std::string_view text, const TensorSpec &base);
[[nodiscard]] std::string specText(const TensorSpec &spec);

} // namespace dblame

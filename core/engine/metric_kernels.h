// SPDX-License-Identifier: GPL-3.0-or-later
//
// Loops over two flat arrays. No torch here: pointers and counts.
//
// Every loop is written once, over 16 fixed lanes, and compiled for several instruction sets; the lanes and the
// order in which they are folded do not depend on the set, and nothing is contracted except products of two
// float32 in double, which are exact, so a fused multiply-add rounds to the same bits. Hence every set gives
// the same bits (a test calls each), and results do not depend on the machine's vectors.
#pragma once

#include <cstdint>
#include <limits>

namespace dblame::kernels
{

inline constexpr std::int64_t kLanes = 16;
// Elements per block: both sides in float32 fit a first-level cache (32 KiB). Also the unit of histogram samples.
inline constexpr std::int64_t kBlock = 4096;
// Elements whose sums are merged in order, whatever thread computed them.
inline constexpr std::int64_t kChunk = 8 * kBlock;

// r = reference, c = candidate, e = c - r, all in double.
//
// Non-finite elements. NaN on either side: counted, and everything that involves e is NaN. The same infinity on
// both sides (masks): counted, no error, no signal. Any other infinity: counted, the error is infinite; the
// finite side keeps its place in its own signal and extrema.
struct PairSums {
    double rr = 0, cc = 0, ee = 0, rc = 0;
    double ae = 0; // sum |e|
    double e = 0;
    double maxAbs = 0; // max |e|
    double rMin = std::numeric_limits<double>::infinity(), rMax = -std::numeric_limits<double>::infinity();
    double cMin = std::numeric_limits<double>::infinity(), cMax = -std::numeric_limits<double>::infinity();
    std::int64_t nan = 0, inf = 0, count = 0;

    void merge(const PairSums &other);
};

struct EnergySums {
    double rr = 0, cc = 0, ee = 0;

    void merge(const EnergySums &other)
    {
        rr += other.rr;
        cc += other.cc;
        ee += other.ee;
    }
};

// Histogram bins of float32 values: sign, exponent and the first kMantissaBits bits of the mantissa.
inline constexpr int kMantissaBits = 4;
inline constexpr int kBinShift = 23 - kMantissaBits;
inline constexpr std::int32_t kBins = 1 << (9 + kMantissaBits);

// A quantizer with one scale: y = (clamp(rint(x * inverse) + zeroPoint, quantMin, quantMax) - zeroPoint) * scale.
struct QuantParams {
    float scale = 1, inverse = 1, zeroPoint = 0, quantMin = -128, quantMax = 127;
    float nanInteger = 0; // what a NaN becomes on the grid; NaN keeps it one. quantDequant only
};

// What a range [low, high] meets: elements outside, extrema of what is not NaN.
struct RangeUse {
    std::int64_t outside = 0;
    float min = std::numeric_limits<float>::infinity(), max = -std::numeric_limits<float>::infinity();
};

// One instruction set. `n` is the number of elements; arrays need no alignment.
struct KernelSet {
    const char *name;
    PairSums (*pairF32)(const float *r, const float *c, std::int64_t n);
    PairSums (*pairF64)(const double *r, const double *c, std::int64_t n);
    EnergySums (*energyF32)(const float *r, const float *c, std::int64_t n);
    EnergySums (*energyF64)(const double *r, const double *c, std::int64_t n);
    // Row-major rows x columns: adds column j's sums to sums[3 * j + {0, 1, 2}] = rr, cc, ee.
    void (*columnsF32)(const float *r, const float *c, std::int64_t rows, std::int64_t columns, double *sums);
    void (*columnsF64)(const double *r, const double *c, std::int64_t rows, std::int64_t columns, double *sums);
    // Bins of r, of c and of c - r.
    void (*bins)(const float *r, const float *c, std::int64_t n, std::uint16_t *rBins, std::uint16_t *cBins,
                 std::uint16_t *eBins);
    RangeUse (*range)(const float *x, std::int64_t n, float low, float high);
    // Times the reciprocal.
    void (*quantDequant)(const float *x, float *y, std::int64_t n, const QuantParams &params);
    // True division; a NaN stays one; + 0 at the end (never -0).
    void (*fakeQuant)(const float *x, float *y, std::int64_t n, const QuantParams &params);
};

// The best set for this CPU.
[[nodiscard]] const KernelSet &kernels();

enum class InstructionSet { Baseline, Avx2, Avx512 };
// nullptr when the compiler or this CPU does not have it.
[[nodiscard]] const KernelSet *kernelsFor(InstructionSet set);

// Element by element with the rules for non-finite values; the vector loops above call it when a sum is not finite.
[[nodiscard]] EnergySums carefulEnergy(const float *r, const float *c, std::int64_t n, std::int64_t stride = 1);
[[nodiscard]] EnergySums carefulEnergy(const double *r, const double *c, std::int64_t n, std::int64_t stride = 1);

} // namespace dblame::kernels

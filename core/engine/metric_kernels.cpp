// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/metric_kernels.h"

#include <algorithm>
#include <cmath>

#include "core/engine/metric_loops.h"

// Clones by hand rather than by target_clones: tests can call each, and sanitizers do not like ifuncs.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define DBLAME_X86_CLONES 1
#define DBLAME_AVX2 __attribute__((target("avx2,fma")))
#define DBLAME_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,prefer-vector-width=512")))
#else
#define DBLAME_X86_CLONES 0
#endif

namespace dblame::kernels
{

namespace
{

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// --- element by element -------------------------------------------------------------------------

template <class T>
PairSums carefulPair(const T *r, const T *c, std::int64_t n)
{
    PairSums s;
    s.count = n;
    for (std::int64_t i = 0; i < n; ++i) {
        const double a = static_cast<double>(r[i]);
        const double b = static_cast<double>(c[i]);
        if (std::isfinite(a)) {
            s.rr += a * a;
            s.rMin = std::min(s.rMin, a);
            s.rMax = std::max(s.rMax, a);
        }
        if (std::isfinite(b)) {
            s.cc += b * b;
            s.cMin = std::min(s.cMin, b);
            s.cMax = std::max(s.cMax, b);
        }
        const bool nan = std::isnan(a) || std::isnan(b);
        const bool inf = std::isinf(a) || std::isinf(b);
        s.nan += nan ? 1 : 0;
        s.inf += inf ? 1 : 0;
        if (nan) {
            s.ee = s.rc = s.ae = s.e = s.maxAbs = kNan;
        } else if (inf) {
            if (a != b) {
                s.ee += kInf;
                s.ae += kInf;
                s.e += b - a;
                s.rc = kNan;
                s.maxAbs = std::isnan(s.maxAbs) ? s.maxAbs : kInf;
            }
        } else {
            const double e = b - a;
            s.ee += e * e;
            s.rc += a * b;
            s.ae += std::abs(e);
            s.e += e;
            s.maxAbs = std::abs(e) > s.maxAbs ? std::abs(e) : s.maxAbs;
        }
    }
    return s;
}

template <class T>
EnergySums carefulEnergyOf(const T *r, const T *c, std::int64_t n, std::int64_t stride)
{
    EnergySums s;
    for (std::int64_t i = 0; i < n; ++i) {
        const double a = static_cast<double>(r[i * stride]);
        const double b = static_cast<double>(c[i * stride]);
        s.rr += std::isfinite(a) ? a * a : 0;
        s.cc += std::isfinite(b) ? b * b : 0;
        if (std::isnan(a) || std::isnan(b))
            s.ee = kNan;
        else if (std::isinf(a) || std::isinf(b))
            s.ee += a == b ? 0 : kInf;
        else
            s.ee += (b - a) * (b - a);
    }
    return s;
}

template <class T>
PairSums checked(PairSums s, const T *r, const T *c, std::int64_t n)
{
    return std::isfinite(s.rr + s.cc) ? s : carefulPair(r, c, n);
}

template <class T>
EnergySums checked(EnergySums s, const T *r, const T *c, std::int64_t n)
{
    return std::isfinite(s.rr + s.cc) ? s : carefulEnergy(r, c, n);
}

#define DBLAME_KERNEL_SET(SUFFIX, TARGET, FMA)                                                                         \
    TARGET PairSums pairF32##SUFFIX(const float *r, const float *c, std::int64_t n)                                    \
    {                                                                                                                  \
        return checked(pairLoop<float, FMA>(r, c, n), r, c, n);                                                        \
    }                                                                                                                  \
    TARGET PairSums pairF64##SUFFIX(const double *r, const double *c, std::int64_t n)                                  \
    {                                                                                                                  \
        return checked(pairLoop<double, FMA>(r, c, n), r, c, n);                                                       \
    }                                                                                                                  \
    TARGET EnergySums energyF32##SUFFIX(const float *r, const float *c, std::int64_t n)                                \
    {                                                                                                                  \
        return checked(energyLoop<float, FMA>(r, c, n), r, c, n);                                                      \
    }                                                                                                                  \
    TARGET EnergySums energyF64##SUFFIX(const double *r, const double *c, std::int64_t n)                              \
    {                                                                                                                  \
        return checked(energyLoop<double, FMA>(r, c, n), r, c, n);                                                     \
    }                                                                                                                  \
    TARGET void columnsF32##SUFFIX(const float *r, const float *c, std::int64_t rows, std::int64_t columns,            \
                                   double *sums)                                                                       \
    {                                                                                                                  \
        columnsLoop<float, FMA>(r, c, rows, columns, sums);                                                            \
    }                                                                                                                  \
    TARGET void columnsF64##SUFFIX(const double *r, const double *c, std::int64_t rows, std::int64_t columns,          \
                                   double *sums)                                                                       \
    {                                                                                                                  \
        columnsLoop<double, FMA>(r, c, rows, columns, sums);                                                           \
    }                                                                                                                  \
    TARGET void bins##SUFFIX(const float *r, const float *c, std::int64_t n, std::uint16_t *rBins,                     \
                             std::uint16_t *cBins, std::uint16_t *eBins)                                               \
    {                                                                                                                  \
        binsLoop(r, c, n, rBins, cBins, eBins);                                                                        \
    }                                                                                                                  \
    TARGET RangeUse range##SUFFIX(const float *x, std::int64_t n, float low, float high)                               \
    {                                                                                                                  \
        return rangeLoop(x, n, low, high);                                                                             \
    }                                                                                                                  \
    TARGET void quantDequant##SUFFIX(const float *x, float *y, std::int64_t n, const QuantParams &params)              \
    {                                                                                                                  \
        quantDequantLoop(x, y, n, params);                                                                             \
    }                                                                                                                  \
    TARGET void fakeQuant##SUFFIX(const float *x, float *y, std::int64_t n, const QuantParams &params)                 \
    {                                                                                                                  \
        fakeQuantLoop(x, y, n, params);                                                                                \
    }                                                                                                                  \
    constexpr KernelSet kSet##SUFFIX{#SUFFIX,           pairF32##SUFFIX,      pairF64##SUFFIX,    energyF32##SUFFIX,   \
                                     energyF64##SUFFIX, columnsF32##SUFFIX,   columnsF64##SUFFIX, bins##SUFFIX,        \
                                     range##SUFFIX,     quantDequant##SUFFIX, fakeQuant##SUFFIX};

DBLAME_KERNEL_SET(Baseline, , false)
#if DBLAME_X86_CLONES
DBLAME_KERNEL_SET(Avx2, DBLAME_AVX2, true)
DBLAME_KERNEL_SET(Avx512, DBLAME_AVX512, true)
#endif
#undef DBLAME_KERNEL_SET

} // namespace

void PairSums::merge(const PairSums &other)
{
    rr += other.rr;
    cc += other.cc;
    ee += other.ee;
    rc += other.rc;
    ae += other.ae;
    e += other.e;
    if (other.maxAbs > maxAbs || std::isnan(other.maxAbs))
        maxAbs = other.maxAbs;
    rMin = std::min(rMin, other.rMin);
    rMax = std::max(rMax, other.rMax);
    cMin = std::min(cMin, other.cMin);
    cMax = std::max(cMax, other.cMax);
    nan += other.nan;
    inf += other.inf;
    count += other.count;
}

EnergySums carefulEnergy(const float *r, const float *c, std::int64_t n, std::int64_t stride)
{
    return carefulEnergyOf(r, c, n, stride);
}

EnergySums carefulEnergy(const double *r, const double *c, std::int64_t n, std::int64_t stride)
{
    return carefulEnergyOf(r, c, n, stride);
}

const KernelSet *kernelsFor(InstructionSet set)
{
    switch (set) {
    case InstructionSet::Baseline:
        return &kSetBaseline;
#if DBLAME_X86_CLONES
    case InstructionSet::Avx2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kSetAvx2 : nullptr;
    case InstructionSet::Avx512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("fma")
                   ? &kSetAvx512
                   : nullptr;
#endif
    default:
        return nullptr;
    }
}

const KernelSet &kernels()
{
    static const KernelSet &best = []() -> const KernelSet & {
        for (const InstructionSet set : {InstructionSet::Avx512, InstructionSet::Avx2})
            if (const KernelSet *found = kernelsFor(set))
                return *found;
        return kSetBaseline;
    }();
    return best;
}

} // namespace dblame::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The loops of the metric and of the quantizers, to be inlined into functions for one instruction set each
// (metric_kernels.cpp). Sixteen lanes of double: each lane is a sum of its own, so the order of additions is the
// same whatever the width of a register.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/engine/metric_kernels.h"

#define DBLAME_INLINE [[gnu::always_inline]] inline

namespace dblame::kernels
{

// --- loops over lanes ---------------------------------------------------------------------------

// a * b + acc. Fused only where a * b is exact in double (both were float32): then both forms round once.
template <bool Fused>
DBLAME_INLINE double exactProductAdd(double a, double b, double acc)
{
    if constexpr (Fused)
        return __builtin_fma(a, b, acc);
    else
        return acc + a * b;
}

DBLAME_INLINE double fold(double *lanes)
{
    for (std::int64_t width = kLanes / 2; width > 0; width /= 2)
        for (std::int64_t j = 0; j < width; ++j)
            lanes[j] += lanes[j + width];
    return lanes[0];
}

// Minimum and maximum do not depend on the order.
template <class T>
DBLAME_INLINE T foldMin(T *lanes)
{
    for (std::int64_t width = kLanes / 2; width > 0; width /= 2)
        for (std::int64_t j = 0; j < width; ++j)
            lanes[j] = lanes[j + width] < lanes[j] ? lanes[j + width] : lanes[j];
    return lanes[0];
}

template <class T>
DBLAME_INLINE T foldMax(T *lanes)
{
    for (std::int64_t width = kLanes / 2; width > 0; width /= 2)
        for (std::int64_t j = 0; j < width; ++j)
            lanes[j] = lanes[j + width] > lanes[j] ? lanes[j + width] : lanes[j];
    return lanes[0];
}

template <class T>
struct PairLanes {
    double rr[kLanes]{}, cc[kLanes]{}, ee[kLanes]{}, rc[kLanes]{}, ae[kLanes]{}, e[kLanes]{}, maxAbs[kLanes]{};
    T rMin[kLanes], rMax[kLanes], cMin[kLanes], cMax[kLanes];
};

template <class T, bool Fma>
DBLAME_INLINE void addPair(PairLanes<T> &l, std::int64_t j, T a, T b)
{
    constexpr bool kFused = Fma && std::is_same_v<T, float>;
    const double x = static_cast<double>(a);
    const double y = static_cast<double>(b);
    const double d = y - x;
    const double m = __builtin_fabs(d);
    l.rr[j] = exactProductAdd<kFused>(x, x, l.rr[j]);
    l.cc[j] = exactProductAdd<kFused>(y, y, l.cc[j]);
    l.rc[j] = exactProductAdd<kFused>(x, y, l.rc[j]);
    l.ee[j] += d * d;
    l.ae[j] += m;
    l.e[j] += d;
    l.maxAbs[j] = m > l.maxAbs[j] ? m : l.maxAbs[j];
    l.rMin[j] = a < l.rMin[j] ? a : l.rMin[j];
    l.rMax[j] = a > l.rMax[j] ? a : l.rMax[j];
    l.cMin[j] = b < l.cMin[j] ? b : l.cMin[j];
    l.cMax[j] = b > l.cMax[j] ? b : l.cMax[j];
}

template <class T, bool Fma>
DBLAME_INLINE PairSums pairLoop(const T *__restrict r, const T *__restrict c, std::int64_t n)
{
    PairLanes<T> l;
    for (std::int64_t j = 0; j < kLanes; ++j) {
        l.rMin[j] = l.cMin[j] = std::numeric_limits<T>::infinity();
        l.rMax[j] = l.cMax[j] = -std::numeric_limits<T>::infinity();
    }
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (std::int64_t j = 0; j < kLanes; ++j)
            addPair<T, Fma>(l, j, r[i + j], c[i + j]);
    for (std::int64_t j = 0; i + j < n; ++j)
        addPair<T, Fma>(l, j, r[i + j], c[i + j]);

    PairSums s;
    s.count = n;
    s.maxAbs = foldMax(l.maxAbs);
    s.rMin = static_cast<double>(foldMin(l.rMin));
    s.rMax = static_cast<double>(foldMax(l.rMax));
    s.cMin = static_cast<double>(foldMin(l.cMin));
    s.cMax = static_cast<double>(foldMax(l.cMax));
    s.rr = fold(l.rr);
    s.cc = fold(l.cc);
    s.ee = fold(l.ee);
    s.rc = fold(l.rc);
    s.ae = fold(l.ae);
    s.e = fold(l.e);
    return s;
}

template <class T, bool Fma>
DBLAME_INLINE EnergySums energyLoop(const T *__restrict r, const T *__restrict c, std::int64_t n)
{
    constexpr bool kFused = Fma && std::is_same_v<T, float>;
    double rr[kLanes]{}, cc[kLanes]{}, ee[kLanes]{};
    const auto add = [&](std::int64_t j, T a, T b) __attribute__((always_inline))
    {
        const double x = static_cast<double>(a);
        const double y = static_cast<double>(b);
        rr[j] = exactProductAdd<kFused>(x, x, rr[j]);
        cc[j] = exactProductAdd<kFused>(y, y, cc[j]);
        ee[j] += (y - x) * (y - x);
    };
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (std::int64_t j = 0; j < kLanes; ++j)
            add(j, r[i + j], c[i + j]);
    EnergySums s;
    s.rr = fold(rr);
    s.cc = fold(cc);
    s.ee = fold(ee);
    // Not into the lanes: an index that varies would keep them in memory, which short runs pay for.
    for (; i < n; ++i) {
        const double x = static_cast<double>(r[i]);
        const double y = static_cast<double>(c[i]);
        s.rr += x * x;
        s.cc += y * y;
        s.ee += (y - x) * (y - x);
    }
    return s;
}

// 16 columns at a time down all rows, so that their sums stay in registers.
template <class T, bool Fma>
DBLAME_INLINE void columnsLoop(const T *__restrict r, const T *__restrict c, std::int64_t rows, std::int64_t columns,
                               double *__restrict sums)
{
    constexpr bool kFused = Fma && std::is_same_v<T, float>;
    for (std::int64_t first = 0; first < columns; first += kLanes) {
        const std::int64_t width = std::min(kLanes, columns - first);
        double rr[kLanes]{}, cc[kLanes]{}, ee[kLanes]{};
        const auto add = [&](std::int64_t j, T a, T b) __attribute__((always_inline))
        {
            const double x = static_cast<double>(a);
            const double y = static_cast<double>(b);
            rr[j] = exactProductAdd<kFused>(x, x, rr[j]);
            cc[j] = exactProductAdd<kFused>(y, y, cc[j]);
            ee[j] += (y - x) * (y - x);
        };
        const T *p = r + first;
        const T *q = c + first;
        if (width == kLanes) {
            for (std::int64_t row = 0; row < rows; ++row, p += columns, q += columns)
                for (std::int64_t j = 0; j < kLanes; ++j)
                    add(j, p[j], q[j]);
        } else {
            for (std::int64_t row = 0; row < rows; ++row, p += columns, q += columns)
                for (std::int64_t j = 0; j < width; ++j)
                    add(j, p[j], q[j]);
        }
        for (std::int64_t j = 0; j < width; ++j) {
            EnergySums s{rr[j], cc[j], ee[j]};
            if (!std::isfinite(s.rr + s.cc))
                s = carefulEnergy(r + first + j, c + first + j, rows, columns);
            sums[3 * (first + j) + 0] += s.rr;
            sums[3 * (first + j) + 1] += s.cc;
            sums[3 * (first + j) + 2] += s.ee;
        }
    }
}

DBLAME_INLINE void binsLoop(const float *__restrict r, const float *__restrict c, std::int64_t n,
                            std::uint16_t *__restrict rBins, std::uint16_t *__restrict cBins,
                            std::uint16_t *__restrict eBins)
{
    // Three loops: one with three results vectorises half as well.
    for (std::int64_t i = 0; i < n; ++i)
        rBins[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(r[i]) >> kBinShift);
    for (std::int64_t i = 0; i < n; ++i)
        cBins[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(c[i]) >> kBinShift);
    for (std::int64_t i = 0; i < n; ++i)
        eBins[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(c[i] - r[i]) >> kBinShift);
}

DBLAME_INLINE RangeUse rangeLoop(const float *x, std::int64_t n, float low, float high)
{
    float min[kLanes], max[kLanes];
    std::int32_t outside[kLanes]{}; // n < 2^31: callers cut by chunk
    for (std::int64_t j = 0; j < kLanes; ++j) {
        min[j] = std::numeric_limits<float>::infinity();
        max[j] = -std::numeric_limits<float>::infinity();
    }
    const auto add = [&](std::int64_t j, float v) __attribute__((always_inline))
    {
        min[j] = v < min[j] ? v : min[j];
        max[j] = v > max[j] ? v : max[j];
        outside[j] += (v < low ? 1 : 0) + (v > high ? 1 : 0);
    };
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (std::int64_t j = 0; j < kLanes; ++j)
            add(j, x[i + j]);
    for (std::int64_t j = 0; i + j < n; ++j)
        add(j, x[i + j]);
    RangeUse use;
    for (std::int64_t j = 0; j < kLanes; ++j) {
        use.outside += outside[j];
        use.min = min[j] < use.min ? min[j] : use.min;
        use.max = max[j] > use.max ? max[j] : use.max;
    }
    return use;
}

// Round half to even without SSE 4.1: beyond 2^23 a float32 is an integer already. Keeps the sign of zero.
DBLAME_INLINE float roundEven(float x)
{
    constexpr float kTwo23 = 8388608.0F;
    const float magnitude = __builtin_fabsf(x);
    const float rounded = (magnitude + kTwo23) - kTwo23;
    return __builtin_copysignf(magnitude < kTwo23 ? rounded : magnitude, x);
}

DBLAME_INLINE float clampTo(float x, float lo, float hi)
{
    const float low = x < lo ? lo : x;
    return low > hi ? hi : low;
}

DBLAME_INLINE void quantDequantLoop(const float *x, float *y, std::int64_t n, const QuantParams &params)
{
    const float scale = params.scale;
    const float inverse = params.inverse;
    const float zero = params.zeroPoint;
    const float lo = params.quantMin;
    const float hi = params.quantMax;
    const float nanInteger = params.nanInteger;
    for (std::int64_t i = 0; i < n; ++i) {
        const float q = clampTo(roundEven(x[i] * inverse) + zero, lo, hi);
        y[i] = ((q != q ? nanInteger : q) - zero) * scale;
    }
}

DBLAME_INLINE void fakeQuantLoop(const float *x, float *y, std::int64_t n, const QuantParams &params)
{
    const float scale = params.scale;
    const float zero = params.zeroPoint;
    const float lo = params.quantMin;
    const float hi = params.quantMax;
    for (std::int64_t i = 0; i < n; ++i) {
        const float q = clampTo(roundEven(x[i] / scale) + zero, lo, hi);
        y[i] = (q - zero) * scale + 0.0F;
    }
}

} // namespace dblame::kernels

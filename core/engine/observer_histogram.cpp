// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/observer_histogram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/sum.h>
#include <c10/util/Exception.h>

#include "core/engine/target_clones.h"

namespace dblame
{

namespace
{

constexpr std::int64_t kBins = RangeHistogram::kBins;
constexpr std::int64_t kUpsample = 16;
constexpr double kSearchStep = 1e-5;
constexpr int kCandidates = 256;
constexpr double kInf = std::numeric_limits<double>::infinity();

at::Scalar scalar(float value)
{
    return {static_cast<double>(value)};
}

// Floor division as the vector loops of LibTorch do it. The remainder of two float32 numbers whose quotient is below
// 2^28 is exact in double.
inline float floorDivide(float a, float b)
{
    const double quotient = std::trunc(static_cast<double>(a) / static_cast<double>(b));
    double remainder = static_cast<double>(a) - quotient * static_cast<double>(b);
    const double sign = a < 0 ? -1.0 : 1.0;
    // The quotient itself was rounded: it may be one step off.
    if (remainder * sign < 0)
        remainder += sign * static_cast<double>(b);
    else if (remainder * sign >= static_cast<double>(b))
        remainder -= sign * static_cast<double>(b);
    const auto modulus = static_cast<float>(remainder);
    float whole = (a - modulus) / b;
    if (modulus < 0)
        whole -= 1.0F;
    const float floored = std::floor(whole);
    return whole - floored > 0.5F ? floored + 1.0F : floored;
}

inline float cubeDifference(float from, float to, float density)
{
    return density * ((to * to * to - from * from * from) / 3.0F);
}

// --- expected squared error of a grid -----------------------------------------------------------

// Integral of (t - step * rint(t/step))^2 from 0 to t.
double roundingIntegral(double t, double step)
{
    const double whole = std::nearbyint(t / step);
    const double rest = t - whole * step;
    return whole * step * step * step / 12 + rest * rest * rest / 3;
}

struct Grid {
    double step = 1, lowest = 0, highest = 0;
};

Grid gridOf(double low, double high, const TensorSpec &spec)
{
    const auto qmin = static_cast<double>(spec.quantMin);
    const auto qmax = static_cast<double>(spec.quantMax);
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
    Grid grid;
    double zero = 0;
    if (spec.scheme == Scheme::Affine) {
        grid.step = std::max((high - low) / (qmax - qmin), spec.eps);
        zero = std::clamp(qmin - std::nearbyint(low / grid.step), qmin, qmax);
    } else {
        grid.step = std::max(std::max(-low, high) / ((qmax - qmin) / 2), spec.eps);
        zero = qmin < 0 ? 0 : std::floor((qmin + qmax + 1) / 2);
    }
    grid.lowest = (qmin - zero) * grid.step;
    grid.highest = (qmax - zero) * grid.step;
    return grid;
}

double cube(double v)
{
    return v * v * v;
}

// Integral of the squared error over [from, to].
double errorIntegral(double from, double to, const Grid &grid)
{
    double sum = 0;
    if (from < grid.lowest) {
        const double end = std::min(to, grid.lowest);
        sum += (cube(grid.lowest - from) - cube(grid.lowest - end)) / 3;
    }
    if (to > grid.highest) {
        const double start = std::max(from, grid.highest);
        sum += (cube(to - grid.highest) - cube(start - grid.highest)) / 3;
    }
    const double start = std::max(from, grid.lowest);
    const double end = std::min(to, grid.highest);
    if (start < end)
        sum += roundingIntegral(end, grid.step) - roundingIntegral(start, grid.step);
    return sum;
}

} // namespace

DBLAME_TARGET_CLONES void binErrors(const float *counts, double width, std::int64_t first, std::int64_t last,
                                    std::int64_t levels, float *errors)
{
    const double target = width * static_cast<double>(last - first + 1) / static_cast<double>(levels);
    const auto w = static_cast<float>(width);
    const auto d = static_cast<float>(target);
    const auto half = static_cast<float>(target / 2);
    const auto top = static_cast<float>(levels - 1);
    for (std::int64_t i = 0; i < kBins; ++i) {
        const float begin = static_cast<float>(i - first) * w;
        const float end = begin + w;
        const float binOfBegin = std::clamp(floorDivide(begin, d), 0.0F, top);
        const float binOfEnd = std::clamp(floorDivide(end, d), 0.0F, top);
        const float centreOfBegin = (binOfBegin + 0.5F) * d;
        const float centreOfEnd = binOfEnd * d + half;
        const float density = counts[i] / w;
        float error = cubeDifference(begin - centreOfBegin, half, density);
        error += (binOfEnd - binOfBegin - 1.0F) * cubeDifference(-half, half, density);
        error += cubeDifference(-half, end - centreOfEnd, density);
        errors[i] = error;
    }
}

void RangeHistogram::reset()
{
    m_counts = at::Tensor();
    m_low = m_high = 0;
}

void RangeHistogram::observe(const at::Tensor &x)
{
    at::Tensor values = x;
    auto [lowest, highest] = at::aminmax(values);
    float low = lowest.item().toFloat();
    float high = highest.item().toFloat();
    TORCH_CHECK(!std::isnan(low) && !std::isnan(high), "the values to observe contain NaN");
    if (std::isinf(low) || std::isinf(high)) {
        values = values.masked_select(at::isinf(values).logical_not());
        if (values.numel() == 0)
            return;
        std::tie(lowest, highest) = at::aminmax(values);
        low = lowest.item().toFloat();
        high = highest.item().toFloat();
    }
    if (empty()) {
        m_counts = at::histc(values, kBins, scalar(low), scalar(high)).to(at::kFloat);
        m_low = low;
        m_high = high;
        return;
    }
    const float newLow = std::min(m_low, low);
    const float newHigh = std::max(m_high, high);
    const at::Tensor update = at::histc(values, kBins, scalar(newLow), scalar(newHigh));
    if (newLow == m_low && newHigh == m_high)
        m_counts = at::add(m_counts, update);
    else if (m_low == m_high)
        m_counts = at::histc(at::full({}, scalar(m_low), at::kFloat), kBins, scalar(newLow), scalar(newHigh))
                       .mul(at::sum(m_counts))
                       .add(update);
    else
        m_counts = at::add(update, rebinned(newLow, newHigh));
    m_counts = m_counts.to(at::kFloat);
    m_low = newLow;
    m_high = newHigh;
}

// Each old bin in 16 parts, each part whole into the new bin that holds its middle.
at::Tensor RangeHistogram::rebinned(float newLow, float newHigh) const
{
    const at::Tensor parts = at::repeat_interleave(m_counts, kUpsample).div(kUpsample);
    const float width = (m_high - m_low) / static_cast<float>(kBins * kUpsample);
    const at::Tensor middles =
        at::linspace(scalar(m_low), scalar(m_high), kBins * kUpsample + 1, at::TensorOptions(at::kFloat))
            .slice(0, 0, kBins * kUpsample)
            .add(at::full({}, scalar(0.5F * width), at::kFloat));
    const at::Tensor edges = at::linspace(scalar(newLow), scalar(newHigh), kBins + 1, at::TensorOptions(at::kFloat));
    const at::Tensor bins = at::clamp(at::bucketize(middles, edges, false, /*right=*/true).sub(1), 0, kBins - 1);
    return at::bincount(bins, parts, kBins);
}

std::pair<float, float> RangeHistogram::smallestErrorRange(std::int64_t levels) const
{
    const float binWidth = (m_high - m_low) / static_cast<float>(kBins);
    TORCH_CHECK(std::isfinite(binWidth), "the observed range [", m_low, ", ", m_high, "] is wider than float32");
    const double width = (static_cast<double>(m_high) - static_cast<double>(m_low)) / static_cast<double>(kBins);
    const auto total = at::sum(m_counts).item().toDouble();
    const at::Tensor cumulative = at::cumsum(m_counts, 0);
    const float *c = cumulative.const_data_ptr<float>();
    at::Tensor errors = at::empty({kBins}, at::kFloat);

    double alpha = 0;
    double beta = 1;
    std::int64_t first = 0;
    std::int64_t last = kBins - 1;
    double best = kInf;
    while (alpha < beta) {
        const double nextAlpha = alpha + kSearchStep;
        const double nextBeta = beta - kSearchStep;
        // Sums of counts do not fall: the peer's walks are searches.
        const std::int64_t left = std::lower_bound(c + first, c + last, static_cast<float>(nextAlpha * total)) - c;
        const std::int64_t right =
            std::upper_bound(c + first + 1, c + last + 1, static_cast<float>(nextBeta * total)) - c - 1;
        std::int64_t nextFirst = first;
        std::int64_t nextLast = last;
        if (left - first > last - right) {
            nextFirst = left;
            alpha = nextAlpha;
        } else {
            nextLast = right;
            beta = nextBeta;
        }
        if (nextFirst == first && nextLast == last)
            continue;
        double error = 0;
        if (width * static_cast<double>(nextLast - nextFirst + 1) / static_cast<double>(levels) != 0) {
            binErrors(m_counts.const_data_ptr<float>(), width, nextFirst, nextLast, levels,
                      errors.mutable_data_ptr<float>());
            error = at::sum(errors).item().toDouble();
        }
        if (error > best)
            break;
        best = error;
        first = nextFirst;
        last = nextLast;
    }
    return {m_low + binWidth * static_cast<float>(first), m_low + binWidth * static_cast<float>(last + 1)};
}

std::pair<float, float> RangeHistogram::percentileRange(double percent) const
{
    const double outside = std::clamp((1 - percent / 100) / 2, 0.0, 0.5);
    const float *h = m_counts.const_data_ptr<float>();
    double total = 0;
    for (std::int64_t i = 0; i < kBins; ++i)
        total += static_cast<double>(h[i]);
    const double width = (static_cast<double>(m_high) - static_cast<double>(m_low)) / static_cast<double>(kBins);
    if (outside == 0 || width == 0 || total == 0)
        return {m_low, m_high};
    const double tail = outside * total;
    // Position, in bins from the end, where `tail` values have been passed.
    const auto passed = [&](bool fromHigh) {
        double sum = 0;
        for (std::int64_t i = 0; i < kBins; ++i) {
            const auto count = static_cast<double>(h[fromHigh ? kBins - 1 - i : i]);
            if (sum + count > tail)
                return static_cast<double>(i) + (tail - sum) / count;
            sum += count;
        }
        return static_cast<double>(kBins) / 2;
    };
    return {static_cast<float>(static_cast<double>(m_low) + width * passed(false)),
            static_cast<float>(static_cast<double>(m_high) - width * passed(true))};
}

std::pair<float, float> RangeHistogram::meanSquaredErrorRange(const TensorSpec &spec) const
{
    const double low = std::min(static_cast<double>(m_low), 0.0);
    const double high = std::max(static_cast<double>(m_high), 0.0);
    const double width = (static_cast<double>(m_high) - static_cast<double>(m_low)) / static_cast<double>(kBins);
    if (width == 0)
        return {m_low, m_high};
    const float *h = m_counts.const_data_ptr<float>();
    const auto error = [&](double from, double to) {
        const Grid grid = gridOf(from, to, spec);
        double sum = 0;
        for (std::int64_t i = 0; i < kBins; ++i) {
            if (h[i] == 0)
                continue;
            const double start = static_cast<double>(m_low) + width * static_cast<double>(i);
            sum += static_cast<double>(h[i]) / width * errorIntegral(start, start + width, grid);
        }
        return sum;
    };
    double from = low;
    double to = high;
    double best = error(from, to);
    // Tries kCandidates parts of a bound, widest first; true when one of them was better.
    const auto improve = [&](auto &&rangeOfPart) {
        bool better = false;
        for (int j = kCandidates; j >= 1; --j) {
            const auto [tryFrom, tryTo] = rangeOfPart(static_cast<double>(j) / kCandidates);
            if (const double e = error(tryFrom, tryTo); e < best) {
                best = e;
                from = tryFrom;
                to = tryTo;
                better = true;
            }
        }
        return better;
    };
    if (spec.scheme != Scheme::Affine) {
        improve([&](double part) { return std::pair{low * part, high * part}; });
    } else {
        constexpr int kRounds = 8;
        for (int round = 0; round < kRounds; ++round) {
            const bool upper = improve([&](double part) { return std::pair{from, high * part}; });
            const bool lower = improve([&](double part) { return std::pair{low * part, to}; });
            if (!upper && !lower)
                break;
        }
    }
    return {static_cast<float>(from), static_cast<float>(to)};
}

} // namespace dblame

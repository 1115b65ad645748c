// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/random_looking.h"

#include <algorithm>
#include <cmath>

#include "core/number_text.h"

namespace dblame
{

namespace
{

constexpr double kErrors = 5; // standard errors that an estimate may be off
constexpr const char *kNote = "the inputs look random: ";

bool near(double estimate, double expected, double standardError)
{
    return std::abs(estimate - expected) <= kErrors * standardError;
}

} // namespace

void RandomLook::add(std::span<const double> elements, std::span<const std::int64_t> sizes)
{
    if (elements.empty())
        return;
    if (m_count == 0)
        m_lowest = m_highest = elements.front();
    for (const double x : elements) {
        m_finite = m_finite && std::isfinite(x);
        double power = 1;
        for (double &sum : m_powers)
            sum += power *= x;
        m_lowest = std::min(m_lowest, x);
        m_highest = std::max(m_highest, x);
    }
    m_count += static_cast<std::int64_t>(elements.size());
    m_lags.resize(std::max(m_lags.size(), sizes.size()));
    std::int64_t stride = 1;
    for (std::size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) {
        const std::int64_t block = stride * sizes[d]; // elements with the same indices before d
        for (std::int64_t begin = 0; begin < static_cast<std::int64_t>(elements.size()); begin += block)
            for (std::int64_t i = begin; i + stride < begin + block; ++i) {
                m_lags[d].products +=
                    elements[static_cast<std::size_t>(i)] * elements[static_cast<std::size_t>(i + stride)];
                ++m_lags[d].pairs;
            }
    }
}

bool RandomLook::uncorrelated(double mean, double variance) const
{
    return std::all_of(m_lags.begin(), m_lags.end(), [&](const Lag &lag) {
        if (lag.pairs == 0)
            return true;
        const auto pairs = static_cast<double>(lag.pairs);
        return near((lag.products / pairs - mean * mean) / variance, 0, 1 / std::sqrt(pairs));
    });
}

std::optional<std::string> RandomLook::words() const
{
    if (m_count < kFewest || !m_finite)
        return std::nullopt;
    const auto n = static_cast<double>(m_count);
    const double mean = m_powers[0] / n;
    const double variance = m_powers[1] / n - mean * mean;
    if (variance <= 0)
        return std::nullopt;
    const double square = m_powers[1] / n;
    const double cube = m_powers[2] / n;
    const double skewness = (cube - 3 * mean * square + 2 * mean * mean * mean) / std::pow(variance, 1.5);
    const double fourth = m_powers[3] / n - 4 * mean * cube + 6 * mean * mean * square - 3 * std::pow(mean, 4);
    const double kurtosis = fourth / (variance * variance);

    const bool normal = near(mean, 0, 1 / std::sqrt(n)) && near(variance, 1, std::sqrt(2 / n)) &&
                        near(skewness, 0, std::sqrt(6 / n)) && near(kurtosis, 3, std::sqrt(24 / n));
    const auto uniform = [&](double low, double high) {
        const double v = (high - low) * (high - low) / 12;
        return m_lowest >= low && m_highest <= high && near(mean, (low + high) / 2, std::sqrt(v / n)) &&
               near(variance, v, v * std::sqrt(0.8 / n)) && near(kurtosis, 1.8, std::sqrt(24 / n));
    };
    const char *what = normal           ? "standard normal numbers"
                       : uniform(0, 1)  ? "uniform numbers in 0..1"
                       : uniform(-1, 1) ? "uniform numbers in -1..1"
                                        : nullptr;
    if (what == nullptr || !uncorrelated(mean, variance))
        return std::nullopt;
    return std::string(what) + " (mean " + fixedText(mean, 2) + ", variance " + fixedText(variance, 2) + ", kurtosis " +
           fixedText(kurtosis, 2) + ", neighbours uncorrelated, " + std::to_string(m_count) + " elements)";
}

std::string randomLookNote(const std::string &name, const std::string &words)
{
    return kNote + name + " holds " + words + "; they rank layers differently from real data";
}

std::optional<std::string> randomLookNote(const InputsInfo &info)
{
    for (const std::string &note : info.notes)
        if (note.starts_with(kNote))
            return note;
    return std::nullopt;
}

} // namespace dblame

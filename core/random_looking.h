// SPDX-License-Identifier: GPL-3.0-or-later
//
// Inputs that were saved from torch.randn or torch.rand rank layers, and calibrate observers, differently from real
// data, and nothing in the file says what they are. Their statistics do.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/node_report.h"

namespace dblame
{

// Gathers one input over its batches. With n elements in all: standard normal where
//   |mean| <= t/sqrt(n), |variance - 1| <= t sqrt(2/n), |skewness| <= t sqrt(6/n), |kurtosis - 3| <= t sqrt(24/n);
// uniform on [0, 1] (or [-1, 1]) where all elements are in it and
//   |mean - m| <= t sqrt(v/n), |variance - v| <= t v sqrt(0.8/n), |kurtosis - 1.8| <= t sqrt(24/n), v = width^2/12;
// and in both cases neighbours along every dimension are uncorrelated: |r| <= t/sqrt(pairs). t = 5 standard errors of
// the estimates. Fewer than 512 elements say nothing. Images and sound fail by
// their correlation, features by their moments.
class RandomLook
{
public:
    static constexpr std::int64_t kFewest = 512;
    // Row-major elements of one batch.
    void add(std::span<const double> elements, std::span<const std::int64_t> sizes);
    [[nodiscard]] std::int64_t count() const { return m_count; }
    // "standard normal numbers (mean 0.02, variance 1.04, kurtosis 3.03, neighbours uncorrelated, 784 elements)";
    // nothing where they do not look random.
    [[nodiscard]] std::optional<std::string> words() const;

private:
    struct Lag {
        double products = 0; // of neighbours along one dimension
        std::int64_t pairs = 0;
    };
    [[nodiscard]] bool uncorrelated(double mean, double variance) const;

    std::int64_t m_count = 0;
    bool m_finite = true;
    double m_powers[4] = {}; // sums of x, x^2, x^3, x^4
    double m_lowest = 0, m_highest = 0;
    std::vector<Lag> m_lags; // per dimension
};

// How InputsInfo::notes says it, of input `name`.
[[nodiscard]] std::string randomLookNote(const std::string &name, const std::string &words);
// That note, if the inputs have it.
[[nodiscard]] std::optional<std::string> randomLookNote(const InputsInfo &info);

} // namespace dblame

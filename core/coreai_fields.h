// SPDX-License-Identifier: GPL-3.0-or-later
//
// One spec, field by field, each with the priority of what decided it: how coreai-opt reconciles the demands that meet
// at one observer.
#pragma once

#include <optional>
#include <utility>

#include "core/coreai_config.h"

namespace dblame
{

constexpr int kIntrinsicPriority = -1;

template <class T>
struct Ranked {
    T value{};
    int priority = 0;
    friend bool operator==(const Ranked &, const Ranked &) = default;
};

struct SpecFields {
    Ranked<ElementType> type;
    Ranked<Scheme> scheme;
    Ranked<bool> minValue;
    Ranked<CoreAiGranularity> granularity;
    Ranked<std::pair<std::optional<double>, std::optional<double>>> range;
    Ranked<CoreAiCalculator> calculator;
    Ranked<bool> powerOfTwoScale;
    Ranked<bool> weight; // else an activation
    friend bool operator==(const SpecFields &, const SpecFields &) = default;

    [[nodiscard]] static SpecFields of(const CoreAiSpec &spec, int priority, bool weight);
    [[nodiscard]] CoreAiSpec spec() const;
};

// `into` becomes what the peer makes of both: of each field the value of the strongest priority, of equals the one
// whose Python text comes first; of ranges the union, where an open bound wins.
void mergeFields(SpecFields &into, const SpecFields &other);
// The element types alone.
void mergeType(Ranked<ElementType> &into, const Ranked<ElementType> &other);
[[nodiscard]] int strongestPriority(const SpecFields &fields);

} // namespace dblame

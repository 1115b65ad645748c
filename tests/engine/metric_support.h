// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "core/engine/metric.h"

namespace dblame::test
{

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline NodeReport measure(const at::Tensor &r, const at::Tensor &c, const MetricOptions &options = {})
{
    PairAccumulator accumulator(options);
    accumulator.add(r, c);
    NodeReport report;
    accumulator.fill(report);
    return report;
}

inline MetricOptions channels(int axis)
{
    MetricOptions options;
    options.channelAxis = axis;
    return options;
}

inline std::uint64_t bits(double v)
{
    return std::bit_cast<std::uint64_t>(v);
}

inline void expectSameBits(const NodeReport &a, const NodeReport &b)
{
    EXPECT_EQ(bits(a.metrics.snrDb), bits(b.metrics.snrDb));
    EXPECT_EQ(bits(a.metrics.sqnrDb), bits(b.metrics.sqnrDb));
    EXPECT_EQ(bits(a.metrics.mse), bits(b.metrics.mse));
    EXPECT_EQ(bits(a.metrics.mae), bits(b.metrics.mae));
    EXPECT_EQ(bits(a.metrics.bias), bits(b.metrics.bias));
    EXPECT_EQ(bits(a.metrics.cosine), bits(b.metrics.cosine));
    ASSERT_EQ(a.channels.size(), b.channels.size());
    for (std::size_t i = 0; i < a.channels.size(); ++i) {
        EXPECT_EQ(bits(a.channels[i].snrDb), bits(b.channels[i].snrDb)) << i;
        EXPECT_EQ(bits(a.channels[i].signal), bits(b.channels[i].signal)) << i;
    }
    ASSERT_EQ(a.histogram.has_value(), b.histogram.has_value());
    if (a.histogram) {
        EXPECT_EQ(a.histogram->edges, b.histogram->edges);
        EXPECT_EQ(a.histogram->reference, b.histogram->reference);
        EXPECT_EQ(a.histogram->candidate, b.histogram->candidate);
        EXPECT_EQ(a.histogram->errorEdges, b.histogram->errorEdges);
        EXPECT_EQ(a.histogram->error, b.histogram->error);
    }
}

} // namespace dblame::test

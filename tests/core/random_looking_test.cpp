// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/random_looking.h"

#include <cmath>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dblame
{
namespace
{

using testing::HasSubstr;

using Sizes = std::vector<std::int64_t>;

std::vector<double> made(const Sizes &sizes, const std::function<double()> &next)
{
    std::int64_t count = 1;
    for (const std::int64_t size : sizes)
        count *= size;
    std::vector<double> elements(static_cast<std::size_t>(count));
    for (double &element : elements)
        element = next();
    return elements;
}

std::string look(const std::vector<double> &elements, const Sizes &sizes)
{
    RandomLook look;
    look.add(elements, sizes);
    return look.words().value_or("");
}

std::function<double()> normal(unsigned seed, double mean = 0, double deviation = 1)
{
    return [engine = std::mt19937_64(seed), mean, deviation]() mutable {
        return std::normal_distribution<double>(mean, deviation)(engine);
    };
}

std::function<double()> uniform(unsigned seed, double low, double high)
{
    return [engine = std::mt19937_64(seed), low, high]() mutable {
        return std::uniform_real_distribution<double>(low, high)(engine);
    };
}

TEST(RandomLook, GeneratorsAreKnownByTheirMomentsAtEverySize)
{
    for (const Sizes &sizes : {Sizes{1, 1, 28, 28}, Sizes{8, 3, 32, 32}, Sizes{16, 64}, Sizes{4096}})
        for (unsigned seed = 1; seed <= 20; ++seed) {
            EXPECT_THAT(look(made(sizes, normal(seed)), sizes), HasSubstr("standard normal"));
            EXPECT_THAT(look(made(sizes, uniform(seed, 0, 1)), sizes), HasSubstr("uniform numbers in 0..1"));
            EXPECT_THAT(look(made(sizes, uniform(seed, -1, 1)), sizes), HasSubstr("uniform numbers in -1..1"));
        }
    RandomLook inBatches;
    for (unsigned seed = 1; seed <= 8; ++seed)
        inBatches.add(made({4, 3, 8, 8}, normal(seed)), Sizes{4, 3, 8, 8});
    EXPECT_EQ(inBatches.count(), 8 * 4 * 3 * 64);
    EXPECT_THAT(inBatches.words().value_or(""), HasSubstr("6144 elements"));
}

TEST(RandomLook, WhatDiffersInOneRespectIsNot)
{
    const Sizes sizes{8, 3, 32, 32};
    EXPECT_EQ(look(made(sizes, normal(1, 0.2, 1)), sizes), "") << "another mean";
    EXPECT_EQ(look(made(sizes, normal(1, 0, 1.2)), sizes), "") << "another variance";
    EXPECT_EQ(look(made(sizes, uniform(1, -std::sqrt(3.0), std::sqrt(3.0))), sizes), "") << "another kurtosis";
    EXPECT_EQ(look(made(sizes, uniform(1, 0, 1.05)), sizes), "") << "out of the range";
    std::exponential_distribution<double> skewed(1.0);
    std::mt19937_64 engine(1);
    EXPECT_EQ(look(made(sizes, [&] { return skewed(engine) - 1; }), sizes), "") << "mean 0, variance 1, but skewed";
    EXPECT_EQ(look(made(sizes, [] { return 0.5; }), sizes), "") << "constant";
    std::vector<double> broken = made(sizes, normal(1));
    broken[17] = NAN;
    EXPECT_EQ(look(broken, sizes), "");
    EXPECT_EQ(look(made({511}, normal(1)), {511}), "") << "too few to say";
}

// Normal to the last moment, but a picture: each element resembles its neighbour, in any one dimension.
TEST(RandomLook, CorrelatedNeighboursAreData)
{
    for (std::size_t along = 0; along < 3; ++along) {
        const Sizes sizes{40, 40, 40};
        std::vector<double> elements = made(sizes, normal(3));
        const std::size_t stride = along == 0 ? 1600 : along == 1 ? 40 : 1;
        for (std::size_t i = 0; i < elements.size(); ++i)
            if (i / stride % 40 != 0)
                elements[i] = 0.3 * elements[i - stride] + std::sqrt(1 - 0.09) * elements[i];
        EXPECT_EQ(look(elements, sizes), "") << "dimension " << along;
    }
}

TEST(RandomLook, TheNoteIsFoundAgain)
{
    InputsInfo info;
    info.notes = {"64 samples split into 2 batches of 32"};
    EXPECT_FALSE(randomLookNote(info).has_value());
    info.notes.push_back(randomLookNote("x", "standard normal numbers (...)"));
    EXPECT_EQ(randomLookNote(info), "the inputs look random: x holds standard normal numbers (...); they rank layers "
                                    "differently from real data");
}

} // namespace
} // namespace dblame

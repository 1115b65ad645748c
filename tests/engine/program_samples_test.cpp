// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/program_samples.h"

namespace dblame::test
{

namespace
{

using ::testing::IsEmpty;

class ProgramSamples : public ::testing::TestWithParam<const char *>
{
};

void runFolder(const std::filesystem::path &folder)
{
    const auto names = sampleNames(folder);
    ASSERT_FALSE(names.empty()) << folder;
    int values = 0, outputs = 0;
    for (const auto &name : names) {
        SCOPED_TRACE(folder.filename().string() + "/" + name);
        const auto result = runSample(folder, name);
        EXPECT_THAT(result.differences, IsEmpty());
        EXPECT_GT(result.outputs, 0);
        values += result.values;
        outputs += result.outputs;
    }
    ::testing::Test::RecordProperty("samples", static_cast<int>(names.size()));
    std::printf("%s: %zu samples, %d values and %d outputs equal\n", folder.filename().c_str(), names.size(), values,
                outputs);
}

// Every value that Python recorded right after its node ran, and every output, byte for byte.
TEST_P(ProgramSamples, GiveTheValuesOfPython)
{
    runFolder(std::filesystem::path(DBLAME_TEST_DATA) / "formats" / GetParam());
}

INSTANTIATE_TEST_SUITE_P(Writers, ProgramSamples, ::testing::Values("2.8.0", "2.13.0", "2.13.0-extra"),
                         [](const auto &param) {
                             std::string name = param.param;
                             for (char &c : name)
                                 if (c == '.' || c == '-')
                                     c = '_';
                             return name;
                         });

// All writer versions of a larger collection (not in the repository): DBLAME_FIXTURES names its folder.
TEST(ProgramSamplesOfCollection, GiveTheValuesOfPythonSkippedUnlessDblameFixturesNamesThem)
{
    const char *root = std::getenv("DBLAME_FIXTURES");
    if (!root)
        GTEST_SKIP() << "DBLAME_FIXTURES is not set";
    for (const char *version : {"2.8.0", "2.9.1", "2.10.0", "2.13.0", "2.13.0-extra", "2.14.1"})
        runFolder(std::filesystem::path(root) / "formats" / version);
}

} // namespace

} // namespace dblame::test

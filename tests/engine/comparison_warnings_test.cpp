// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a report says about the run as a whole.
#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comparison_support.h"
#include "readers_support.h"

namespace dblame::test
{

namespace
{

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Weights in the file's mapping may have become others meanwhile; the report must not keep that to itself.
TEST(ComparisonWarnings, AFileThatChangedAfterItWasOpenedIsNamed)
{
    const TempFolder folder;
    for (const char *name : {"float.pt2", "candidate.pt2"})
        writeFile(folder.file(name), largeProgram(std::size_t{4} << 20U));
    Engine &engine = *dblame_engine_instance();
    const auto reference = *engine.openModel(folder.file("float.pt2"), {}, {});
    const auto candidate = *engine.openModel(folder.file("candidate.pt2"), {}, {});
    const auto inputs = std::make_shared<LoadedInputs>();
    inputs->m_batches.emplace_back();
    const auto comparison = engine.compare(reference, candidate, inputs);
    ASSERT_TRUE(comparison.has_value());
    EXPECT_THAT(runOrFail(**comparison, {}, plainOptions()).warnings, Not(Contains(HasSubstr("has changed"))));
    const std::string path = folder.file("candidate.pt2");
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(5));
    EXPECT_THAT(runOrFail(**comparison, {}, plainOptions()).warnings,
                Contains(testing::AllOf(HasSubstr("candidate.pt2"), HasSubstr("has changed since it was opened"))));
}

} // namespace

} // namespace dblame::test

// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a report says about the run as a whole, and what ends a run.
#include <chrono>
#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comparison_support.h"
#include "readers_support.h"

namespace dblame::test
{

namespace
{

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

// A pair whose weights lie in the mappings of its files, and as many batches as asked (it takes no inputs).
struct MappedPair {
    TempFolder folder;
    std::shared_ptr<LoadedInputs> inputs = std::make_shared<LoadedInputs>();
    std::unique_ptr<Comparison> comparison;

    explicit MappedPair(std::size_t batches)
    {
        for (const char *name : {"float.pt2", "candidate.pt2"})
            writeFile(folder.file(name), largeProgram(std::size_t{4} << 20U));
        Engine &engine = *dblame_engine_instance();
        inputs->m_batches.resize(batches);
        comparison = *engine.compare(*engine.openModel(folder.file("float.pt2"), {}, {}),
                                     *engine.openModel(folder.file("candidate.pt2"), {}, {}), inputs);
    }
    [[nodiscard]] Result<RunReport> run(ReportSink &sink) const
    {
        return comparison->run({}, plainOptions(), sink, {});
    }
};

void expectRefused(const Error &error, const std::string &file)
{
    EXPECT_EQ(error.code, ErrorCode::Unreadable);
    EXPECT_THAT(error.where, EndsWith(file));
    EXPECT_THAT(error.message, AllOf(HasSubstr("has changed since it was opened"), HasSubstr("open it again")));
}

// Weights in the file's mapping have become others meanwhile: figures of them would be nobody's.
TEST(ComparisonFiles, AFileThatChangedAfterItWasOpenedIsRefused)
{
    const MappedPair pair(1);
    NullSink sink;
    ASSERT_TRUE(pair.run(sink).has_value());
    ASSERT_TRUE(pair.comparison->detail(PairId(0), {}).has_value());
    const std::string path = pair.folder.file("candidate.pt2");
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(5));
    const auto again = pair.run(sink);
    ASSERT_FALSE(again.has_value());
    expectRefused(again.error(), "candidate.pt2");
    const auto detail = pair.comparison->detail(PairId(0), {});
    ASSERT_FALSE(detail.has_value());
    expectRefused(detail.error(), "candidate.pt2");
}

// Shortens a file once the first batch is done.
class Shortening final : public ReportSink
{
public:
    explicit Shortening(std::string path) : m_path(std::move(path)) {}
    void row(const NodeReport &) override {}
    void progress(std::int64_t batch, std::int64_t, std::int64_t, std::int64_t) override
    {
        if (batch == 1)
            std::filesystem::resize_file(m_path, 4096);
    }

private:
    std::string m_path;
};

TEST(ComparisonFiles, AFileThatIsShortenedDuringARunEndsTheRunAndNotTheProcess)
{
    const MappedPair pair(2);
    Shortening sink(pair.folder.file("float.pt2"));
    const auto report = pair.run(sink);
    ASSERT_FALSE(report.has_value());
    expectRefused(report.error(), "float.pt2");
}

TEST(ComparisonFiles, AShortenedFileIsRefusedBeforeItsWeightsAreRead)
{
    const MappedPair pair(1);
    std::filesystem::resize_file(pair.folder.file("float.pt2"), 0);
    NullSink sink;
    const auto report = pair.run(sink);
    ASSERT_FALSE(report.has_value());
    expectRefused(report.error(), "float.pt2");
    EXPECT_EQ(sink.rows, 0);
}

} // namespace

} // namespace dblame::test

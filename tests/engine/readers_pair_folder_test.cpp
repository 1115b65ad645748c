// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/pair_folder.h"
#include "readers_support.h"

namespace dblame::test
{
namespace
{

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char *const kObservers = R"({
 "version": 1, "torch": "2.13.0",
 "observers": [
  {"module": "block.conv1", "role": "weight", "name": "activation_post_process_1", "node": null, "kind": "PerChannelMinMaxObserver",
   "min": [-1.5, "-inf"], "max": [2.5, "inf"], "scale": [0.1, 0.2], "zero_point": [0, -3],
   "histogram": null, "histogram_range": null, "dtype": "int8", "quant_min": -127, "quant_max": 127, "axis": 0, "fake_quant": false},
  {"module": "", "role": "output", "name": "activation_post_process_2", "node": "relu", "kind": "HistogramObserver",
   "min": [0.0], "max": [4], "scale": [], "zero_point": [], "histogram": [1, 2.5, 0], "histogram_range": [0.0, 4.0],
   "dtype": null, "quant_min": null, "quant_max": null, "axis": null, "fake_quant": true}],
 "lost": ["2 observers saw no data: no range"]})";

struct Folder : TempFolder {
    Folder()
    {
        writeFile(file("reference.pt2"), "r");
        writeFile(file("candidate.pt2"), "c");
    }
};

std::string errorOf(const Folder &folder, const std::string &observers)
{
    writeFile(folder.file("observers.json"), observers);
    const auto pair = readPairFolder(folder.path());
    if (pair)
        return {};
    EXPECT_EQ(pair.error().code, ErrorCode::Unreadable);
    EXPECT_THAT(pair.error().where, HasSubstr("observers.json"));
    return pair.error().message;
}

TEST(ReadersPairFolder, GivesPathsAndObservers)
{
    const Folder folder;
    writeFile(folder.file("inputs.pt"), "i");
    writeFile(folder.file("labels.pt"), "l");
    writeFile(folder.file("observers.json"), kObservers);
    const auto pair = readPairFolder(folder.path());
    ASSERT_TRUE(pair.has_value()) << pair.error().text();
    EXPECT_EQ(pair->reference, folder.file("reference.pt2"));
    EXPECT_EQ(pair->candidate, folder.file("candidate.pt2"));
    EXPECT_THAT(pair->inputs, ElementsAre(folder.file("inputs.pt")));
    EXPECT_EQ(pair->labels, folder.file("labels.pt"));
    EXPECT_THAT(pair->notes, ElementsAre("2 observers saw no data: no range"));
    ASSERT_EQ(pair->observers.size(), 2U);
    const ObserverRecord &weight = pair->observers[0];
    EXPECT_EQ(weight.module, "block.conv1");
    EXPECT_EQ(weight.role, "weight");
    EXPECT_EQ(weight.name, "activation_post_process_1");
    EXPECT_EQ(weight.node, "");
    EXPECT_EQ(weight.kind, "PerChannelMinMaxObserver");
    EXPECT_THAT(weight.min, ElementsAre(-1.5, -HUGE_VAL));
    EXPECT_THAT(weight.max, ElementsAre(2.5, HUGE_VAL));
    EXPECT_THAT(weight.scale, ElementsAre(0.1, 0.2));
    EXPECT_THAT(weight.zeroPoint, ElementsAre(0, -3));
    EXPECT_EQ(weight.dtype, DType::Int8);
    EXPECT_EQ(weight.quantMin, -127);
    EXPECT_EQ(weight.axis, 0);
    EXPECT_FALSE(weight.fakeQuant);
    EXPECT_FALSE(weight.histogramRange.has_value());
    const ObserverRecord &output = pair->observers[1];
    EXPECT_EQ(output.node, "relu");
    EXPECT_THAT(output.histogram, ElementsAre(1, 2.5, 0));
    ASSERT_TRUE(output.histogramRange.has_value());
    EXPECT_EQ(output.histogramRange->second, 4.0);
    EXPECT_EQ(output.dtype, DType::Unknown);
    EXPECT_FALSE(output.quantMax.has_value());
    EXPECT_FALSE(output.axis.has_value());
    EXPECT_TRUE(output.fakeQuant);
}

TEST(ReadersPairFolder, OnlyTheProgramsAreNeeded)
{
    const Folder folder;
    const auto pair = readPairFolder(folder.path());
    ASSERT_TRUE(pair.has_value()) << pair.error().text();
    EXPECT_THAT(pair->inputs, IsEmpty());
    EXPECT_THAT(pair->labels, IsEmpty());
    EXPECT_THAT(pair->observers, IsEmpty());
    writeFile(folder.file("inputs.npz"), "i");
    EXPECT_THAT(readPairFolder(folder.path())->inputs, ElementsAre(folder.file("inputs.npz")));
}

TEST(ReadersPairFolder, SaysWhatIsMissing)
{
    const Folder folder;
    std::filesystem::remove(folder.file("candidate.pt2"));
    const auto pair = readPairFolder(folder.path());
    ASSERT_FALSE(pair.has_value());
    EXPECT_THAT(pair.error().message, HasSubstr("candidate.pt2 is missing"));
    EXPECT_THAT(readPairFolder(folder.file("reference.pt2")).error().message, HasSubstr("is no folder"));
    EXPECT_THAT(readPairFolder(folder.file("nowhere")).error().message, HasSubstr("is no folder"));
}

TEST(ReadersPairFolder, RefusesDamagedObservers)
{
    const Folder folder;
    EXPECT_THAT(errorOf(folder, "{"), HasSubstr("not valid JSON"));
    EXPECT_THAT(errorOf(folder, "[]"), HasSubstr("version is missing"));
    EXPECT_THAT(errorOf(folder, R"({"version": 2})"), HasSubstr("version 2 is newer"));
    EXPECT_THAT(errorOf(folder, R"({"version": 1, "observers": 3})"), HasSubstr("must be a list"));
    EXPECT_THAT(errorOf(folder, R"({"version": 1, "observers": [{"role": "guess"}]})"),
                HasSubstr("observer 0: role must be weight, input or output"));
    EXPECT_THAT(errorOf(folder, R"({"version": 1, "observers": [{"role": "input", "min": [1], "max": []}]})"),
                HasSubstr("min and max differ in length"));
    EXPECT_THAT(errorOf(folder, R"({"version": 1, "observers": [{"role": "input", "min": ["one"], "max": [1]}]})"),
                HasSubstr("a number is expected"));
    EXPECT_THAT(errorOf(folder, R"({"version": 1, "observers": [{"role": "input", "histogram": [1, 2]}]})"),
                HasSubstr("histogram_range"));
    EXPECT_EQ(errorOf(folder, R"({"version": 1})"), "");
}

} // namespace
} // namespace dblame::test

// SPDX-License-Identifier: GPL-3.0-or-later
//
// How the window's program starts, and how it ends where it cannot. No display is needed.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "process.h"

namespace dblame
{
namespace
{

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kDemo = std::string(DBLAME_SOURCE_DIR) + "/resources/demo/";
const std::string kFloat = kDemo + "float.pt2";
const std::string kInt8 = kDemo + "int8.pt2";

// Empty variables are as good as none; of two the first counts.
Finished gui(std::vector<std::string> arguments, std::vector<std::string> environment = {})
{
    environment.insert(environment.end(), {"DISPLAY=", "WAYLAND_DISPLAY=", "QT_QPA_PLATFORM="});
    arguments.insert(arguments.begin(), DBLAME_GUI_BINARY);
    return run(arguments, environment);
}

TEST(GuiStart, HelpAndVersionNeedNoDisplay)
{
    Finished done = gui({"--help"});
    EXPECT_EQ(done.status, 0);
    EXPECT_THAT(done.out, HasSubstr("--screenshot"));
    done = gui({"--version"});
    EXPECT_EQ(done.status, 0);
    EXPECT_THAT(done.out, StartsWith("dBlame "));
}

TEST(GuiStart, WrongUsageNeedsNoDisplay)
{
    for (const auto &arguments : std::vector<std::vector<std::string>>{{"--colour"},
                                                                       {"--size", "3"},
                                                                       {"--theme", "pink"},
                                                                       {"a", "b", "c"},
                                                                       {"-platform", "offscreen", "--colour"}}) {
        const Finished done = gui(arguments);
        EXPECT_EQ(done.status, 2) << arguments.front();
        EXPECT_THAT(done.err, StartsWith("dblame: "));
        EXPECT_THAT(done.err, HasSubstr("--help lists the options"));
        EXPECT_THAT(done.out, IsEmpty());
    }
}

TEST(GuiStart, WithoutADisplayItSaysWhatToDo)
{
    Finished done = gui({kFloat, kInt8});
    EXPECT_EQ(done.status, 2);
    EXPECT_EQ(done.err, "dblame: no display; set QT_QPA_PLATFORM=offscreen with --screenshot, or use dblame compare\n");
    done = gui({kFloat, kInt8}, {"QT_QPA_PLATFORM=nosuch"}); // Qt itself would abort
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, HasSubstr("dblame: no display; "));
}

TEST(GuiStart, APictureOfASelectionThatIsNotThereIsRefused)
{
    std::string folder = testing::TempDir() + "dblame_gui_XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const auto picture = [&](const char *node) {
        return gui(
            {kFloat, kInt8, "--inputs", kDemo + "inputs.pt", "--select", node, "--screenshot", folder + "/a.png"},
            {"QT_QPA_PLATFORM=offscreen", "HOME=" + folder, "XDG_CONFIG_HOME=" + folder});
    };
    Finished done = picture("nosuch");
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, HasSubstr("dblame: --select nosuch: no row is called that"));
    EXPECT_FALSE(std::filesystem::exists(folder + "/a.png"));
    done = picture("conv2d");
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_TRUE(std::filesystem::exists(folder + "/a.png"));
    std::filesystem::remove_all(folder);
}

TEST(GuiStart, ADockComesToTheFrontOfThePicture)
{
    std::string folder = testing::TempDir() + "dblame_gui_XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const auto picture = [&](std::vector<std::string> more, const std::string &file) {
        more.insert(more.begin(), {kFloat, kInt8, "--inputs", kDemo + "inputs.pt"});
        more.insert(more.end(), {"--screenshot", folder + "/" + file});
        const Finished done = gui(more, {"QT_QPA_PLATFORM=offscreen", "HOME=" + folder, "XDG_CONFIG_HOME=" + folder});
        std::ifstream read(folder + "/" + file, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(read), std::istreambuf_iterator<char>()};
        return std::pair(done.status, bytes);
    };
    const auto plot = picture({}, "a.png");
    const auto log = picture({"--dock", "log"}, "b.png");
    EXPECT_EQ(plot.first, 0);
    EXPECT_EQ(log.first, 0);
    EXPECT_FALSE(log.second.empty());
    EXPECT_NE(plot.second, log.second);
    EXPECT_EQ(picture({"--dock", "nosuch"}, "c.png").first, 2);
    std::filesystem::remove_all(folder);
}

} // namespace
} // namespace dblame

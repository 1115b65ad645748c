// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/readers/zip_archive.h"
#include "readers_support.h"

namespace dblame::test
{
namespace
{

using ::testing::HasSubstr;

std::string refusal(const std::string &content, const ZipLimits &limits = {})
{
    try {
        const ZipArchive archive(bytesOf(content), limits);
        for (const auto &member : archive.members())
            (void)archive.read(member);
    } catch (const ReadError &error) {
        return error.what();
    }
    return {};
}

TEST(ReadersZip, ReadsStoredAndDeflatedMembers)
{
    const std::string text(5000, 'a');
    const ZipArchive archive(bytesOf(makeZip({{"top/a.txt", "hello"}, {"top/sub/b.txt", text, true}})),
                             {.inflated = 1 << 20, .inflatedTotal = 1 << 20, .ratio = 1000});
    EXPECT_EQ(archive.root(), "top/");
    EXPECT_EQ(archive.read("a.txt").text(), "hello");
    EXPECT_EQ(archive.read("sub/b.txt").text(), text);
    EXPECT_FALSE(archive.has("top/a.txt"));
    EXPECT_THROW((void)archive.read("c.txt"), ReadError);
}

TEST(ReadersZip, ReadsZip64Records)
{
    const std::string content = makeZip({{"m/one", "first", false, true}, {"m/two", "second", true, true}}, true);
    const ZipArchive archive(bytesOf(content));
    EXPECT_EQ(archive.members().size(), 2U);
    EXPECT_EQ(archive.read("one").text(), "first");
    EXPECT_EQ(archive.read("two").text(), "second");
}

TEST(ReadersZip, NoCommonFolderMeansNoRoot)
{
    EXPECT_EQ(ZipArchive(bytesOf(makeZip({{"a/x", "1"}, {"b/x", "2"}}))).root(), "");
    EXPECT_EQ(ZipArchive(bytesOf(makeZip({{"x", "1"}, {"b/x", "2"}}))).root(), "");
}

TEST(ReadersZip, LimitsWhatIsInflated)
{
    const std::string zeros(1 << 20, '\0');
    EXPECT_THAT(refusal(makeZip({{"z", zeros, true}})), HasSubstr("beyond the limit")); // ratio about 1000
    ZipLimits limits;
    limits.ratio = 2000;
    EXPECT_EQ(refusal(makeZip({{"z", zeros, true}}), limits), "");
    limits.inflated = (1 << 20) - 1;
    EXPECT_THAT(refusal(makeZip({{"z", zeros, true}}), limits), HasSubstr("beyond the limit"));
    limits.inflated = 1 << 20;
    limits.inflatedTotal = (3 << 20) - 1;
    EXPECT_THAT(refusal(makeZip({{"x", zeros, true}, {"y", zeros, true}, {"z", zeros, true}}), limits),
                HasSubstr("expand beyond the limit"));
}

TEST(ReadersZip, DeflatedDataThatLiesAboutItsSize)
{
    std::string content = makeZip({{"a", std::string(100, 'q'), true}});
    // Uncompressed size in the directory entry (offset 24).
    const auto entry = content.rfind("PK\x01\x02");
    for (const char size : {99, 101}) {
        content[entry + 24] = size;
        EXPECT_THAT(refusal(content), HasSubstr("cannot be expanded to its declared size")) << static_cast<int>(size);
    }
}

TEST(ReadersZip, CatchesEveryFlippedPayloadBit)
{
    const std::string content = makeZip({{"m/data", "0123456789"}});
    const auto at = content.find("0123456789");
    for (std::size_t bit = 0; bit < 80; ++bit) {
        std::string damaged = content;
        damaged[at + bit / 8] = static_cast<char>(damaged[at + bit / 8] ^ (1 << (bit % 8)));
        EXPECT_THAT(refusal(damaged), HasSubstr("checksum of m/data does not match"));
    }
}

TEST(ReadersZip, OverlappingSpans)
{
    std::string content = makeZip({{"m/aa", "payload"}, {"m/bb", "payload"}});
    ASSERT_EQ(refusal(content), "");
    // The first member's data, 64 bytes into the file, is stretched over the second one's header.
    const auto first = content.find("PK\x01\x02");
    constexpr std::size_t kStored = 20, kSize = 24;
    content[first + kStored] = content[first + kSize] = 70;
    EXPECT_THAT(refusal(content), HasSubstr("members overlap (m/aa and m/bb)"));
}

TEST(ReadersZip, CommentsAndTails)
{
    std::string content = makeZip({{"a", "1"}});
    content[content.size() - 2] = 5;
    EXPECT_EQ(refusal(content + "hello"), "");
    EXPECT_THAT(refusal(content + "hell"), HasSubstr("cut"));
    EXPECT_THAT(refusal(makeZip({{"a", "1"}}) + "tail"), HasSubstr("truncated"));
    // A comment that holds the mark of an end record is a comment.
    std::string tricky = makeZip({{"a", "1"}});
    std::string comment = "PK\x05\x06";
    comment += std::string(30, 'x');
    tricky[tricky.size() - 2] = static_cast<char>(comment.size());
    EXPECT_EQ(refusal(tricky + comment), "");
}

TEST(ReadersZip, NamesInMessagesAreHarmless)
{
    EXPECT_EQ(printable("a\nb\x1b[31m"), "a\\x0ab\\x1b[31m");
    EXPECT_EQ(printable(std::string(300, 'n')).size(), 203U);
    EXPECT_THAT(refusal(makeZip({{"../\nevil", "1"}})), HasSubstr("unsafe member name ../\\x0aevil"));
}

TEST(ReadersZip, AnEmptyArchiveHasNoMembers)
{
    EXPECT_THAT(refusal(makeZip({})), HasSubstr("no members"));
}

} // namespace
} // namespace dblame::test

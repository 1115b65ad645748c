// SPDX-License-Identifier: GPL-3.0-or-later
//
// Mapped files that another process shortens or rewrites.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/readers/mapped_file.h"
#include "core/readers/mapping_faults.h"
#include "core/readers/read_error.h"
#include "readers_support.h"

namespace dblame::test
{

namespace
{

constexpr std::size_t kSize = std::size_t{1} << 20U;

struct Mapped {
    TempFolder folder;
    std::string path = folder.file("weights");
    std::shared_ptr<const MappedFile> file;

    Mapped()
    {
        writeFile(path, std::string(kSize, 'w'));
        file = MappedFile::open(path);
    }
    // The compiler may not fold two reads of the same byte: the page behind it changes between them.
    [[nodiscard]] char at(std::size_t offset) const
    {
        return static_cast<char>(*static_cast<const volatile std::uint8_t *>(MappedFile::bytes(file).data + offset));
    }
};

TEST(ReadersMapping, AShortenedFileGivesZerosAndIsChanged)
{
    const Mapped mapped;
    EXPECT_EQ(mapped.at(kSize - 1), 'w');
    EXPECT_FALSE(mapped.file->changed());
    const auto time = std::filesystem::last_write_time(mapped.path);
    std::filesystem::resize_file(mapped.path, kSize / 2);
    EXPECT_EQ(mapped.at(kSize / 4), 'w') << "what is still there is still read";
    EXPECT_EQ(mapped.at(3 * kSize / 4), '\0');
    EXPECT_EQ(mapped.at(kSize - 1), '\0') << "one fault serves the rest";
    // Size and time as they were: only the fault itself tells.
    std::filesystem::resize_file(mapped.path, kSize);
    std::filesystem::last_write_time(mapped.path, time);
    EXPECT_TRUE(mapped.file->changed());
    EXPECT_FALSE(MappedFile::open(mapped.path)->changed()) << "opened again";
}

TEST(ReadersMapping, OnlyTheDamagedMappingIsMarked)
{
    const Mapped damaged, sound;
    std::filesystem::resize_file(damaged.path, 0);
    EXPECT_EQ(damaged.at(0), '\0');
    EXPECT_TRUE(damaged.file->changed());
    EXPECT_EQ(sound.at(0), 'w');
    EXPECT_FALSE(sound.file->changed());
}

TEST(ReadersMapping, AddressesInsideAndOutside)
{
    const Mapped mapped;
    const std::uint8_t *data = MappedFile::bytes(mapped.file).data;
    EXPECT_TRUE(mapped.file->holds(data));
    EXPECT_TRUE(mapped.file->holds(data + kSize - 1));
    EXPECT_FALSE(mapped.file->holds(data + kSize));
    EXPECT_FALSE(mapped.file->holds(&mapped));
}

TEST(ReadersMapping, APlaceIsFreeAgainAfterUse)
{
    // The table has a bound: refused beyond it, and usable again when a mapping is gone.
    std::vector<char> page(1);
    std::vector<std::unique_ptr<GuardedMapping>> held;
    try {
        for (int i = 0; i < 10000; ++i)
            held.push_back(std::make_unique<GuardedMapping>(page.data(), page.size()));
        FAIL() << "no bound";
    } catch (const ReadError &error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("close some of them"));
    }
    EXPECT_GE(held.size(), 256U);
    held.pop_back();
    EXPECT_NO_THROW(held.push_back(std::make_unique<GuardedMapping>(page.data(), page.size())));
}

TEST(ReadersMappingDeathTest, ASignalFromElsewhereStillEndsTheProcess)
{
    const Mapped mapped;
    EXPECT_DEATH(std::raise(SIGBUS), "");
}

TEST(ReadersMappingDeathTest, AnotherHandlerGetsWhatIsNotOurs)
{
    // In a process of its own, where nothing was mapped before that handler went in.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            std::signal(SIGBUS, [](int) { _exit(42); });
            const Mapped mapped;
            // A fault in a mapping that nobody registered.
            const TempFolder folder;
            writeFile(folder.file("other"), std::string(kSize, 'o'));
            std::FILE *file = std::fopen(folder.file("other").c_str(), "r+");
            void *data = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, ::fileno(file), 0);
            if (data == MAP_FAILED || ::ftruncate(::fileno(file), 0) != 0)
                _exit(1);
            const char byte = *static_cast<const volatile char *>(data);
            _exit(byte == 0 ? 2 : 3);
        },
        testing::ExitedWithCode(42), "");
}

} // namespace

} // namespace dblame::test

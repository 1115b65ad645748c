// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/atomic_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dblame
{

namespace
{

namespace fs = std::filesystem;

tl::unexpected<Error> cannotWrite(const std::string &path, int error)
{
    return fail(ErrorCode::Unreadable, path,
                std::string("cannot be written: ") + std::strerror(error) + "; choose another file or free its folder");
}

bool writeAll(int file, std::string_view content)
{
    while (!content.empty()) {
        const auto written = ::write(file, content.data(), content.size());
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

// What a new file would get, or what the old one has.
mode_t permissions(const std::string &target)
{
    struct stat old {
    };
    if (::stat(target.c_str(), &old) == 0)
        return old.st_mode & 07777U;
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return 0666U & ~mask;
}

bool isPlainTarget(const std::string &target)
{
    struct stat old {
    };
    return ::stat(target.c_str(), &old) != 0 || S_ISREG(old.st_mode);
}

// A pipe or a device (/dev/stdout, >(...)) cannot be replaced: it is written to.
Result<void> writeInPlace(const std::string &path, std::string_view content)
{
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return cannotWrite(path, errno);
    const bool done = writeAll(file, content);
    const int error = errno;
    ::close(file);
    if (!done)
        return cannotWrite(path, error);
    return {};
}

} // namespace

// weakly_canonical() alone takes a link that leads to nothing for the file itself.
std::string writtenFile(const std::string &path)
{
    constexpr int kMaxLinks = 40; // as the kernel
    std::error_code ec;
    fs::path target = path;
    for (int i = 0; i < kMaxLinks; ++i) {
        const fs::path next = fs::read_symlink(target, ec);
        if (ec)
            break; // no link
        target = next.is_absolute() ? next : target.parent_path() / next;
    }
    fs::path full = fs::weakly_canonical(fs::absolute(target, ec), ec);
    return ec ? path : full.string();
}

Result<void> writeFileAtomically(const std::string &path, std::string_view content)
{
    if (!isPlainTarget(path)) {
        std::error_code ec;
        if (fs::is_directory(path, ec))
            return fail(ErrorCode::Unreadable, path, "is a folder; give a file name");
        return writeInPlace(path, content);
    }
    const std::string target = writtenFile(path);
    auto name = target + ".XXXXXX";
    const int file = ::mkostemp(name.data(), O_CLOEXEC);
    if (file < 0)
        return cannotWrite(path, errno);
    bool done = writeAll(file, content) && ::fchmod(file, permissions(target)) == 0 && ::fsync(file) == 0;
    int error = errno;
    if (::close(file) != 0 && done) {
        done = false;
        error = errno;
    }
    if (done && std::rename(name.c_str(), target.c_str()) != 0) {
        done = false;
        error = errno;
    }
    if (!done) {
        ::unlink(name.c_str());
        return cannotWrite(path, error);
    }
    return {};
}

} // namespace dblame

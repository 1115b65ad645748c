// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/mapped_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/readers/read_error.h"

namespace dblame
{

std::shared_ptr<const MappedFile> MappedFile::open(const std::string &path)
{
    // O_NONBLOCK: a named pipe must be refused below, not waited for.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        throw ReadError(std::string("cannot open the file: ") + std::strerror(errno) +
                        (errno == ENOENT ? "; check the path" : "; check its permissions"));
    struct Closer {
        int fd;
        ~Closer() { ::close(fd); }
    } const closer{fd};

    struct stat status {
    };
    if (::fstat(fd, &status) != 0)
        throw ReadError(std::string("cannot read the file: ") + std::strerror(errno));
    if (S_ISDIR(status.st_mode))
        throw ReadError("is a folder, not a file; name a file in it");
    if (!S_ISREG(status.st_mode))
        throw ReadError("is not a regular file; copy it to one first");
    if (status.st_size == 0)
        throw ReadError("the file is empty; write it again");

    std::shared_ptr<MappedFile> file(new MappedFile);
    file->m_path = path;
    file->m_size = static_cast<std::size_t>(status.st_size);
    file->m_seconds = status.st_mtim.tv_sec;
    file->m_nanoseconds = status.st_mtim.tv_nsec;
    void *data = ::mmap(nullptr, file->m_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        throw ReadError(std::string("cannot map the file: ") + std::strerror(errno));
    file->m_data = data;
    file->m_guard.emplace(data, file->m_size);
    return file;
}

MappedFile::~MappedFile()
{
    m_guard.reset(); // before another mapping can get the addresses
    if (m_data != nullptr)
        ::munmap(m_data, m_size);
}

bool MappedFile::changed() const
{
    struct stat status {
    };
    return (m_guard && m_guard->damaged()) || ::stat(m_path.c_str(), &status) != 0 ||
           static_cast<std::size_t>(status.st_size) != m_size || status.st_mtim.tv_sec != m_seconds ||
           status.st_mtim.tv_nsec != m_nanoseconds;
}

bool MappedFile::holds(const void *address) const
{
    const auto *byte = static_cast<const std::uint8_t *>(address);
    const auto *begin = static_cast<const std::uint8_t *>(m_data);
    return byte >= begin && byte < begin + m_size;
}

Bytes MappedFile::bytes(const std::shared_ptr<const MappedFile> &file)
{
    return {file, static_cast<const std::uint8_t *>(file->m_data), file->m_size, true};
}

} // namespace dblame

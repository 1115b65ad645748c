// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/readers/mapping_faults.h"

namespace dblame
{

// A range of bytes that keeps what it lies in alive: a file's mapping, or a buffer.
struct Bytes {
    std::shared_ptr<const void> owner;
    const std::uint8_t *data = nullptr;
    std::size_t size = 0;
    bool mapped = false; // lies in a file's mapping

    [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char *>(data), size}; }
    // The caller has checked that the part lies inside.
    [[nodiscard]] Bytes part(std::size_t offset, std::size_t length) const
    {
        return {owner, data + offset, length, mapped};
    }
};

// A whole file in a private, writable mapping: in-place operators on mapped weights change private pages,
// never the file. Of a file that another process shortens, zeros are read (mapping_faults.h); one that is written over
// gives other numbers. Hence small payloads are copied by the readers, and changed() tells whether the file is still
// the one that was opened.
class MappedFile
{
public:
    // Throws ReadError: missing, not a regular file, empty, cannot be mapped.
    [[nodiscard]] static std::shared_ptr<const MappedFile> open(const std::string &path);
    ~MappedFile();
    MappedFile(const MappedFile &) = delete;
    MappedFile &operator=(const MappedFile &) = delete;

    [[nodiscard]] std::size_t size() const { return m_size; }
    // Size or modification time differ from those at opening, the file is gone, or pages of it were.
    [[nodiscard]] bool changed() const;
    [[nodiscard]] const std::string &path() const { return m_path; }
    // Whether an address lies in the mapping.
    [[nodiscard]] bool holds(const void *address) const;
    [[nodiscard]] static Bytes bytes(const std::shared_ptr<const MappedFile> &file);

private:
    MappedFile() = default;

    std::string m_path;
    void *m_data = nullptr;
    std::size_t m_size = 0;
    std::int64_t m_seconds = 0, m_nanoseconds = 0; // modification time at opening
    std::optional<GuardedMapping> m_guard;
};

} // namespace dblame

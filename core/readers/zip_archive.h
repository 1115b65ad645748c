// SPDX-License-Identifier: GPL-3.0-or-later
//
// A zip archive read by its central directory, over bytes that are already in memory. LibTorch's own reader
// cannot open some of the layouts, checks no CRC and accepts unsafe names, duplicates and overlaps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/readers/mapped_file.h"
#include "core/readers/read_control.h"

namespace dblame
{

struct ZipLimits {
    std::uint64_t inflated = std::uint64_t{64} << 20U;       // of one member; no writer deflates weights
    std::uint64_t inflatedTotal = std::uint64_t{256} << 20U; // of all members together
    std::uint64_t ratio = 200;                               // plain size / stored size
};

class ZipArchive
{
public:
    struct Member {
        std::string name;
        std::uint64_t offset = 0; // of the stored data
        std::uint64_t stored = 0; // bytes in the archive
        std::uint64_t size = 0;   // bytes when inflated
        std::uint32_t crc = 0;
        std::uint16_t method = 0; // 0 stored, 8 deflated
    };

    // Reads and checks the whole directory; throws ReadError. Nothing is inflated yet.
    explicit ZipArchive(Bytes bytes, const ZipLimits &limits = {});

    [[nodiscard]] static bool looksLikeZip(const Bytes &bytes);
    [[nodiscard]] const std::vector<Member> &members() const { return m_members; }
    // The one top folder that all members share, with its slash; empty when there is none.
    [[nodiscard]] const std::string &root() const { return m_root; }
    // Names below are without the root.
    [[nodiscard]] const Member *find(std::string_view name) const;
    [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
    [[nodiscard]] std::string_view shortName(const Member &member) const;

    // The member's plain bytes, CRC checked. Stored members are not copied. Throws ReadError.
    [[nodiscard]] Bytes read(const Member &member, ReadControl *control = nullptr) const;
    [[nodiscard]] Bytes read(std::string_view name, ReadControl *control = nullptr) const;
    // The same without the CRC check, for payloads that are too large to be read at once. Stored members only.
    [[nodiscard]] Bytes readUnverified(const Member &member) const;

private:
    template <class T>
    [[nodiscard]] T number(std::uint64_t offset) const;
    void readDirectory();
    [[nodiscard]] std::uint64_t readEntry(std::uint64_t offset, std::uint64_t end);
    void locateData(Member &member, std::uint64_t localOffset, std::uint64_t directory);
    void checkOverlaps() const;
    void findRoot();
    [[nodiscard]] std::uint64_t findEndRecord() const;
    [[nodiscard]] Bytes inflate(const Member &member) const;

    struct Span {
        std::uint64_t begin, end;
        std::size_t member;
    };
    Bytes m_bytes;
    ZipLimits m_limits;
    std::vector<Member> m_members;
    std::vector<Span> m_spans; // local header to end of data
    std::unordered_map<std::string, std::size_t> m_byName;
    std::string m_root;
    std::uint64_t m_directory = 0; // where the directory starts: no data beyond
    mutable std::uint64_t m_inflated = 0;
};

// A name from a file, fit for a message: control characters escaped, cut when very long.
[[nodiscard]] std::string printable(std::string_view text);

} // namespace dblame

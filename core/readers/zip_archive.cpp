// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/zip_archive.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <zlib.h>

namespace dblame
{

namespace
{

constexpr std::uint32_t kEndRecord = 0x06054b50, kZip64Locator = 0x07064b50, kZip64Record = 0x06064b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50, kLocalHeader = 0x04034b50;
constexpr std::uint64_t kEndRecordSize = 22, kEntrySize = 46, kLocalSize = 30;
constexpr std::uint64_t kMaxMembers = 1'000'000;
constexpr std::size_t kChunk = std::size_t{8} << 20U; // bytes between two looks at the stop token

// Names are never used as paths, but one that could leave a folder is the mark of a hostile archive.
bool unsafeName(const std::string &name)
{
    if (name.empty() || name.front() == '/' || name.find('\\') != std::string::npos ||
        name.find('\0') != std::string::npos || (name.size() > 1 && name[1] == ':'))
        return true;
    for (std::size_t begin = 0; begin <= name.size();) {
        const std::size_t end = std::min(name.find('/', begin), name.size());
        if (std::string_view(name).substr(begin, end - begin) == "..")
            return true;
        begin = end + 1;
    }
    return false;
}

} // namespace

std::string printable(std::string_view text)
{
    constexpr std::size_t kLongest = 200;
    std::string result;
    for (const char c : text.substr(0, kLongest)) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            constexpr std::string_view digits = "0123456789abcdef";
            const auto byte = static_cast<unsigned char>(c);
            result += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
        } else {
            result += c;
        }
    }
    return text.size() > kLongest ? result + "..." : result;
}

template <class T>
T ZipArchive::number(std::uint64_t offset) const
{
    if (offset > m_bytes.size || m_bytes.size - offset < sizeof(T))
        throw ReadError("the directory of the archive is damaged (a record lies outside the file)");
    T value;
    std::memcpy(&value, m_bytes.data + offset, sizeof(T));
    return value;
}

bool ZipArchive::looksLikeZip(const Bytes &bytes)
{
    return bytes.size >= 2 && bytes.data[0] == 'P' && bytes.data[1] == 'K';
}

ZipArchive::ZipArchive(Bytes bytes, const ZipLimits &limits) : m_bytes(std::move(bytes)), m_limits(limits)
{
    if (!looksLikeZip(m_bytes))
        throw ReadError("not a zip archive");
    readDirectory();
    checkOverlaps();
    if (m_members.empty())
        throw ReadError("the archive has no members");
    findRoot();
}

std::uint64_t ZipArchive::findEndRecord() const
{
    constexpr std::uint64_t kLongestComment = 0xffff;
    bool cut = false;
    if (m_bytes.size >= kEndRecordSize) {
        const std::uint64_t last = m_bytes.size - kEndRecordSize;
        const std::uint64_t first = last > kLongestComment ? last - kLongestComment : 0;
        for (std::uint64_t at = last + 1; at-- > first;) {
            if (number<std::uint32_t>(at) != kEndRecord)
                continue;
            const std::uint64_t end = at + kEndRecordSize + number<std::uint16_t>(at + 20);
            if (end == m_bytes.size)
                return at;
            cut = cut || end > m_bytes.size;
        }
    }
    // A record whose own end is missing starts in the last 21 bytes.
    for (std::uint64_t back = 4; back < kEndRecordSize && back <= m_bytes.size; ++back)
        cut = cut || number<std::uint32_t>(m_bytes.size - back) == kEndRecord;
    throw ReadError(cut ? "truncated: the end-of-directory record is cut; copy or download the file again"
                        : "truncated: no end-of-directory record; copy or download the file again");
}

void ZipArchive::readDirectory()
{
    const std::uint64_t end = findEndRecord();
    std::uint64_t count = number<std::uint16_t>(end + 10);
    std::uint64_t size = number<std::uint32_t>(end + 12);
    std::uint64_t offset = number<std::uint32_t>(end + 16);
    const auto disk = number<std::uint16_t>(end + 4);
    if (disk != 0 && disk != 0xffff)
        throw ReadError("archives in several parts are not supported");
    if (end >= 20 && number<std::uint32_t>(end - 20) == kZip64Locator) {
        const auto record = number<std::uint64_t>(end - 20 + 8);
        if (number<std::uint32_t>(record) != kZip64Record)
            throw ReadError("the directory of the archive is damaged (zip64 record)");
        count = number<std::uint64_t>(record + 32);
        size = number<std::uint64_t>(record + 40);
        offset = number<std::uint64_t>(record + 48);
    }
    if (offset > end || size > end - offset)
        throw ReadError("the directory lies outside the file");
    if (count > size / kEntrySize)
        throw ReadError("the directory of the archive is damaged (more members than fit)");
    if (count > kMaxMembers)
        throw ReadError("the archive has too many members (" + std::to_string(count) + ")");
    m_directory = offset;
    m_members.reserve(count);
    m_spans.reserve(count);
    std::uint64_t at = offset;
    for (std::uint64_t i = 0; i < count; ++i)
        at = readEntry(at, offset + size);
}

std::uint64_t ZipArchive::readEntry(std::uint64_t offset, std::uint64_t end)
{
    if (end - offset < kEntrySize || number<std::uint32_t>(offset) != kDirectoryEntry)
        throw ReadError("the directory of the archive is damaged");
    Member member;
    const auto flags = number<std::uint16_t>(offset + 8);
    member.method = number<std::uint16_t>(offset + 10);
    member.crc = number<std::uint32_t>(offset + 16);
    member.stored = number<std::uint32_t>(offset + 20);
    member.size = number<std::uint32_t>(offset + 24);
    const std::uint64_t nameLength = number<std::uint16_t>(offset + 28);
    const std::uint64_t extraLength = number<std::uint16_t>(offset + 30);
    const std::uint64_t commentLength = number<std::uint16_t>(offset + 32);
    const std::uint32_t attributes = number<std::uint32_t>(offset + 38);
    std::uint64_t local = number<std::uint32_t>(offset + 42);
    const std::uint64_t length = kEntrySize + nameLength + extraLength + commentLength;
    if (length > end - offset)
        throw ReadError("the directory of the archive is damaged");
    member.name.assign(reinterpret_cast<const char *>(m_bytes.data) + offset + kEntrySize, nameLength);

    // Zip64: 8-byte numbers, present for those fields only that are all ones, in this order.
    const std::uint64_t extraEnd = offset + kEntrySize + nameLength + extraLength;
    for (std::uint64_t at = offset + kEntrySize + nameLength; at + 4 <= extraEnd;) {
        const std::uint64_t fieldEnd = at + 4 + number<std::uint16_t>(at + 2);
        if (fieldEnd > extraEnd)
            break;
        if (number<std::uint16_t>(at) == 1) {
            std::uint64_t value = at + 4;
            for (std::uint64_t *field : {&member.size, &member.stored, &local})
                if (*field == 0xffffffffU && value + 8 <= fieldEnd) {
                    *field = number<std::uint64_t>(value);
                    value += 8;
                }
        }
        at = fieldEnd;
    }

    if (unsafeName(member.name))
        throw ReadError("unsafe member name " + printable(member.name));
    const std::string who = "member " + printable(member.name);
    constexpr std::uint32_t kEncrypted = 0x2041; // encrypted, strongly encrypted, encrypted directory
    if ((flags & kEncrypted) != 0)
        throw ReadError(who + " is encrypted");
    constexpr std::uint32_t kTypeMask = 0170000, kSymlink = 0120000;
    if (((attributes >> 16U) & kTypeMask) == kSymlink)
        throw ReadError(who + " is a symbolic link");
    if (member.name.back() == '/') {
        if (member.size != 0)
            throw ReadError(who + " is a folder with data");
        return offset + length;
    }
    if (!m_byName.emplace(member.name, m_members.size()).second)
        throw ReadError("two members named " + printable(member.name));
    locateData(member, local, m_directory);
    m_members.push_back(std::move(member));
    return offset + length;
}

void ZipArchive::locateData(Member &member, std::uint64_t localOffset, std::uint64_t directory)
{
    const std::string who = printable(member.name);
    if (member.method != 0 && member.method != 8)
        throw ReadError("member " + who + " uses an unknown compression (" + std::to_string(member.method) + ")");
    if (member.method == 8 && (member.size > m_limits.inflated || member.size / m_limits.ratio > member.stored))
        throw ReadError("compressed member " + who + " expands from " + std::to_string(member.stored) + " to " +
                        std::to_string(member.size) + " bytes, beyond the limit");
    if (member.method == 0 && member.size != member.stored)
        throw ReadError("member " + who + " declares two different sizes");
    if (member.stored > m_bytes.size)
        throw ReadError("member " + who + " declares " + std::to_string(member.size) +
                        " bytes, the file is smaller; copy or download it again");
    if (localOffset > directory || number<std::uint32_t>(localOffset) != kLocalHeader)
        throw ReadError("member " + who + " has no local header, the directory of the archive is damaged");
    const std::uint64_t nameLength = number<std::uint16_t>(localOffset + 26);
    const std::uint64_t extraLength = number<std::uint16_t>(localOffset + 28);
    member.offset = localOffset + kLocalSize + nameLength + extraLength;
    if (nameLength != member.name.size() || m_bytes.size - localOffset < kLocalSize + nameLength ||
        std::memcmp(m_bytes.data + localOffset + kLocalSize, member.name.data(), nameLength) != 0)
        throw ReadError("local name and directory name differ for member " + who);
    if (member.offset > directory || member.stored > directory - member.offset)
        throw ReadError("member " + who + " lies outside the file (it declares " + std::to_string(member.stored) +
                        " bytes)");
    m_spans.push_back({localOffset, member.offset + member.stored, m_members.size()});
}

void ZipArchive::checkOverlaps() const
{
    std::vector<Span> spans = m_spans;
    std::sort(spans.begin(), spans.end(), [](const Span &a, const Span &b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < spans.size(); ++i)
        if (spans[i].begin < spans[i - 1].end)
            throw ReadError("members overlap (" + printable(m_members[spans[i - 1].member].name) + " and " +
                            printable(m_members[spans[i].member].name) + ")");
}

void ZipArchive::findRoot()
{
    const auto slash = m_members.front().name.find('/');
    if (slash == std::string::npos)
        return;
    const std::string root = m_members.front().name.substr(0, slash + 1);
    if (std::all_of(m_members.begin(), m_members.end(), [&](const Member &m) { return m.name.starts_with(root); }))
        m_root = root;
}

const ZipArchive::Member *ZipArchive::find(std::string_view name) const
{
    const auto it = m_byName.find(m_root + std::string(name));
    return it == m_byName.end() ? nullptr : &m_members[it->second];
}

std::string_view ZipArchive::shortName(const Member &member) const
{
    return std::string_view(member.name).substr(m_root.size());
}

Bytes ZipArchive::inflate(const Member &member) const
{
    const std::string who = "member " + printable(member.name);
    if (member.size > m_limits.inflatedTotal - std::min(m_inflated, m_limits.inflatedTotal))
        throw ReadError(who + ": the compressed members expand beyond the limit of " +
                        std::to_string(m_limits.inflatedTotal) + " bytes");
    m_inflated += member.size;
    auto buffer = std::make_shared<std::vector<std::uint8_t>>(member.size);
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        throw ReadError(who + " cannot be expanded");
    std::uint64_t read = 0, written = 0;
    int status = Z_OK;
    while (status == Z_OK) {
        // avail_* are 32 bits wide: feed at most a chunk at a time.
        const auto in = static_cast<uInt>(std::min<std::uint64_t>(kChunk, member.stored - read));
        const auto out = static_cast<uInt>(std::min<std::uint64_t>(kChunk, member.size - written));
        stream.next_in = const_cast<Bytef *>(m_bytes.data + member.offset + read);
        stream.avail_in = in;
        std::uint8_t none = 0; // a target for the end mark when all bytes are out
        stream.next_out = out != 0 ? buffer->data() + written : &none;
        stream.avail_out = out;
        status = ::inflate(&stream, Z_NO_FLUSH);
        read += in - stream.avail_in;
        written += out - stream.avail_out;
        if (status == Z_BUF_ERROR || (in == stream.avail_in && out == stream.avail_out))
            break;
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END || written != member.size)
        throw ReadError(who + " cannot be expanded to its declared size");
    return {buffer, buffer->data(), buffer->size(), false};
}

Bytes ZipArchive::readUnverified(const Member &member) const
{
    return member.method == 8 ? inflate(member) : m_bytes.part(member.offset, member.stored);
}

Bytes ZipArchive::read(const Member &member, ReadControl *control) const
{
    Bytes bytes = readUnverified(member);
    uLong crc = ::crc32_z(0, nullptr, 0);
    for (std::size_t at = 0; at < bytes.size; at += kChunk) {
        const std::size_t length = std::min(kChunk, bytes.size - at);
        crc = ::crc32_z(crc, bytes.data + at, length);
        if (control != nullptr)
            control->advance(length, "checking");
    }
    if (crc != member.crc)
        throw ReadError("damaged: the checksum of " + printable(member.name) + " does not match");
    return bytes;
}

Bytes ZipArchive::read(std::string_view name, ReadControl *control) const
{
    const Member *member = find(name);
    if (member == nullptr)
        throw ReadError(std::string(name) + " is missing");
    return read(*member, control);
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <filesystem>
#include <new>
#include <optional>
#include <system_error>

#include <c10/util/Exception.h>

#include "core/readers/file_kind.h"
#include "core/readers/mapped_file.h"
#include "core/readers/pt2_reader.h"
#include "core/readers/readers.h"
#include "core/readers/sha256.h"

namespace dblame
{

namespace
{

struct Target {
    std::string file, program;
};

// "FILE#program"; a path that exists as it stands wins.
Target splitTarget(const std::string &path)
{
    std::error_code ignored;
    const auto hash = path.rfind('#');
    if (hash == std::string::npos || std::filesystem::exists(path, ignored))
        return {path, {}};
    return {path.substr(0, hash), path.substr(hash + 1)};
}

std::string hashOf(const Bytes &bytes, ReadControl &control)
{
    constexpr std::size_t kChunk = std::size_t{8} << 20U;
    Sha256 hash;
    for (std::size_t at = 0; at < bytes.size; at += kChunk) {
        const std::size_t length = std::min(kChunk, bytes.size - at);
        hash.add(bytes.data + at, length);
        control.advance(length, "hashing");
    }
    return hash.hex();
}

std::shared_ptr<const LoadedModel> open(const Target &target, ReadControl &control)
{
    const auto file = MappedFile::open(target.file);
    const Bytes bytes = MappedFile::bytes(file);
    control.expect(2 * static_cast<std::uint64_t>(bytes.size)); // once for the checksums, once for the hash
    std::optional<ZipArchive> archive;
    if (ZipArchive::looksLikeZip(bytes))
        archive.emplace(bytes);
    const FileKind kind = recognize(bytes, archive ? &*archive : nullptr);
    if (kind != FileKind::Pt2Archive)
        throw ReadError(whyNoModel(kind));
    auto model = readPt2(*archive, target.program, bytes.size, control);
    model->m_file = file;
    model->m_info.path = target.file;
    model->m_info.bytes = bytes.size;
    model->m_info.sha256 = hashOf(bytes, control);
    if (file->changed())
        throw ReadError("the file changed while it was read; open it again when it is written");
    return model;
}

} // namespace

Result<std::shared_ptr<const LoadedModel>> readModel(const std::string &path, const Progress &progress,
                                                     std::stop_token stop)
{
    const Target target = splitTarget(path);
    ReadControl control(progress, std::move(stop));
    try {
        return open(target, control);
    } catch (const ReadCancelled &) {
        return fail(ErrorCode::Cancelled, target.file, "loading was cancelled");
    } catch (const ReadError &error) {
        return tl::unexpected(error.toError(target.file, "export the model again, or get another copy of the file"));
    } catch (const c10::Error &error) {
        return fail(ErrorCode::Unreadable, target.file, error.what_without_backtrace(), error.what());
    } catch (const std::bad_alloc &) {
        return fail(ErrorCode::Unreadable, target.file, "not enough memory to read the file");
    } catch (const std::exception &error) {
        return fail(ErrorCode::Internal, target.file, std::string("reading failed unexpectedly: ") + error.what());
    }
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/file_kind.h"

#include <algorithm>
#include <cstring>

namespace dblame
{

namespace
{

bool anyStartsWith(const ZipArchive &archive, std::string_view prefix)
{
    return std::any_of(archive.members().begin(), archive.members().end(),
                       [&](const auto &m) { return archive.shortName(m).starts_with(prefix); });
}

FileKind recognizeZip(const ZipArchive &archive)
{
    if (archive.has("archive_format")) {
        const bool models = anyStartsWith(archive, "models/");
        const bool compiled = anyStartsWith(archive, "data/aotinductor/");
        if (compiled && !models)
            return archive.root().empty() ? FileKind::AotInductorFlat : FileKind::AotInductor;
        return FileKind::Pt2Archive;
    }
    if (archive.root().empty() && archive.has("serialized_exported_program.json"))
        return FileKind::Pt2Flat;
    if (archive.has("data.pkl"))
        return archive.has("constants.pkl") ? FileKind::TorchScript : FileKind::TorchSave;
    const auto &members = archive.members();
    if (std::all_of(members.begin(), members.end(), [](const auto &m) { return m.name.ends_with(".npy"); }))
        return FileKind::Npz;
    if (archive.root().empty() && std::any_of(members.begin(), members.end(), [](const auto &m) {
            return m.name.ends_with("/archive_format") || m.name.ends_with("/data.pkl");
        }))
        return FileKind::SeveralRoots;
    return FileKind::UnknownZip;
}

bool isSafeTensors(const Bytes &bytes)
{
    constexpr std::uint64_t kMaxHeader = 100'000'000;
    std::uint64_t header = 0;
    if (bytes.size < sizeof header + 2)
        return false;
    std::memcpy(&header, bytes.data, sizeof header);
    return header >= 2 && header <= kMaxHeader && bytes.data[sizeof header] == '{';
}

} // namespace

FileKind recognize(const Bytes &bytes, const ZipArchive *archive)
{
    if (archive != nullptr)
        return recognizeZip(*archive);
    const std::string_view text = bytes.text();
    if (text.starts_with("\x93NUMPY"))
        return FileKind::Npy;
    if (isSafeTensors(bytes))
        return FileKind::SafeTensors;
    constexpr std::size_t kTarMark = 257;
    if (text.size() > kTarMark && text.substr(kTarMark).starts_with("ustar"))
        return FileKind::Tar;
    if (text.starts_with("\x80")) {
        // LONG1, 10 bytes: 119547037146038801333356, little-endian
        constexpr std::string_view magic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);
        return text.size() > 2 && text.substr(2).starts_with(magic) ? FileKind::LegacyTorchSave : FileKind::PlainPickle;
    }
    return FileKind::Unknown;
}

std::string whyNoModel(FileKind kind)
{
    const std::string advice = "; export the model with torch.export.save";
    switch (kind) {
    case FileKind::Pt2Flat:
        return "an exported program in the flat layout of torch 2.1 to 2.7, which this version does not open yet; "
               "load it with torch.export.load of torch 2.8 or later and save it again";
    case FileKind::TorchScript:
        return "a TorchScript archive, not an exported program; this version does not open TorchScript yet" + advice;
    case FileKind::TorchSave:
        return "a torch.save file with weights only (or a pickled object), no graph" + advice;
    case FileKind::AotInductor:
        return "a package of compiled AOTInductor code without a graph" + advice;
    case FileKind::AotInductorFlat:
        return "a package of compiled AOTInductor code (torch 2.5 to 2.7) without a graph" + advice;
    case FileKind::Npz:
    case FileKind::Npy:
        return "NumPy arrays, not a model; give the file with --inputs";
    case FileKind::SafeTensors:
        return "a safetensors file with weights or inputs only, no graph" + advice;
    case FileKind::Tar:
        return "a tar checkpoint of torch before 0.1.10, no graph; load and save it again with a newer torch" + advice;
    case FileKind::LegacyTorchSave:
        return "a torch.save file of the old format (before torch 1.6) with weights only, no graph" + advice;
    case FileKind::PlainPickle:
        return "a plain Python pickle, which is never loaded because it runs code" + advice;
    case FileKind::SeveralRoots:
        return "members lie in more than one top folder; not a known archive";
    case FileKind::UnknownZip:
        return "a zip, but no known model archive" + advice;
    case FileKind::Pt2Archive:
    case FileKind::Unknown:
        break;
    }
    return "not a zip archive and no other known model file" + advice;
}

} // namespace dblame

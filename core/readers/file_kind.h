// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/readers/zip_archive.h"

namespace dblame
{

enum class FileKind {
    Pt2Archive, // torch.export.save of 2.8 and later
    Pt2Flat,    // torch.export.save of 2.1 to 2.7
    TorchScript,
    TorchSave,       // weights, tensors or a pickled object
    AotInductor,     // compiled code without a graph (2.8 and later)
    AotInductorFlat, // the same of 2.5 to 2.7
    Npz,
    Npy,
    SafeTensors,
    Tar,             // checkpoints of torch before 0.1.10
    LegacyTorchSave, // torch before 1.6
    PlainPickle,
    SeveralRoots, // a zip whose members lie in more than one top folder
    UnknownZip,
    Unknown,
};

// By content, never by name. `archive` is what `bytes` holds when it is a zip, else null.
[[nodiscard]] FileKind recognize(const Bytes &bytes, const ZipArchive *archive);

// "weights of torch.save; ..." : what the file is, and what to do to have a model that dBlame opens.
[[nodiscard]] std::string whyNoModel(FileKind kind);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Programs of torch.export.save in the archive layouts (torch 2.8 to 2.14).
#pragma once

#include <memory>
#include <string>

#include "core/readers/loaded_model.h"
#include "core/readers/zip_archive.h"

namespace dblame
{

// `program` may be empty: the one called "model", else the first, with a note. Throws ReadError, ReadCancelled.
// Fills everything of ModelInfo that the archive knows (not path, sha256 and bytes).
[[nodiscard]] std::shared_ptr<LoadedModel> readPt2(const ZipArchive &archive, const std::string &program,
                                                   std::uint64_t fileBytes, ReadControl &control);

} // namespace dblame

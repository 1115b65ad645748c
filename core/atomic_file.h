// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace dblame
{

// Writes a temporary neighbour, syncs it and renames it over `path`: whoever is interrupted leaves the old file
// whole. A symbolic link is followed, also one that leads to nothing yet; the permissions of an existing file are kept.
[[nodiscard]] Result<void> writeFileAtomically(const std::string &path, std::string_view content);

// The file that a write to `path` reaches: absolute, all links followed. Same text, same file (hard links aside).
[[nodiscard]] std::string writtenFile(const std::string &path);

} // namespace dblame

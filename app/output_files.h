// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a command is about to write, checked before its work begins.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace dblame
{

// An option and the file that it names; empty files and "-" are passed over.
using OutputFiles = std::vector<std::pair<const char *, std::string>>;

// Refused (Usage): stdout or one file named twice, a folder, and a file that is read: `inputs` are paths, FILE#program
// and folders of a pair among them. Refused (Unreadable): a file in a folder that is not there.
[[nodiscard]] Result<void> checkOutputs(const OutputFiles &outputs, const std::vector<std::string> &inputs);

} // namespace dblame

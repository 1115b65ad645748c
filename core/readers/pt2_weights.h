// SPDX-License-Identifier: GPL-3.0-or-later
//
// Weights, buffers and constants of an exported program in an archive: raw payloads (torch 2.9 and later) or
// nested torch.save files (2.8).
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/readers/zip_archive.h"

namespace dblame
{

struct Pt2Weight {
    at::Tensor tensor; // undefined when it cannot be read; then `fault` says why
    bool mapped = false;
    std::string fault;
};

struct Pt2Weights {
    std::map<std::string, Pt2Weight> weights;   // parameters and persistent buffers, by state-dict name
    std::map<std::string, Pt2Weight> constants; // other buffers, tensor constants, custom objects
    std::vector<std::string> notes;
};

// Of the program `model`. Throws ReadError for damage. `verify`: false leaves the CRC of large payloads alone
// and says so in the notes.
[[nodiscard]] Pt2Weights readPt2Weights(const ZipArchive &archive, const std::string &model, bool verify,
                                        ReadControl *control);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The sentences that the text table and the HTML report share.
#pragma once

#include <string>
#include <vector>

#include "core/report.h"

namespace dblame::words
{

// "23.41", "exact", "not computed: needs x": what stands in the dB column.
[[nodiscard]] std::string shown(const Report &report, const ReportRow &row);
// "int8 sym per channel", "off", "" without a site.
[[nodiscard]] std::string site(const ReportRow &row);
[[nodiscard]] std::string model(const ReportModel &model); // "int8.pt2 (pt2 archive, torch 2.13.0)"
[[nodiscard]] std::string inputs(const Report &report);    // "inputs.pt: 2 batches, 64 samples"
[[nodiscard]] std::string engine(const Report &report);    // "LibTorch 2.13.0, AVX512, 2 threads, 0.41 s"
[[nodiscard]] std::string outputs(const Report &report);   // "output SNR 29.31 dB (SQNR 29.30 dB)"
[[nodiscard]] std::string drop(const Report &report);      // "largest drop 12.00 dB at conv2d_1 (block.conv1)"
[[nodiscard]] std::string list(const std::vector<std::string> &texts); // "a, b, c"

} // namespace dblame::words

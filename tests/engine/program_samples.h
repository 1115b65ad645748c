// SPDX-License-Identifier: GPL-3.0-or-later
//
// Runs the sample programs of one writer version and compares every value with what Python got for it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dblame::test
{

struct SampleResult {
    int values = 0;                       // node values compared
    int outputs = 0;                      // graph outputs compared
    std::vector<std::string> differences; // "conv2d: sha256 ..., expected ..."
};

// Names of the samples that <folder>/expected.json lists.
[[nodiscard]] std::vector<std::string> sampleNames(const std::filesystem::path &folder);
[[nodiscard]] SampleResult runSample(const std::filesystem::path &folder, const std::string &name);

} // namespace dblame::test

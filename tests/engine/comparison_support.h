// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/engine.h"

namespace dblame::test
{

extern "C" dblame::Engine *dblame_engine_instance();

// A pair from tests/data/golden, opened through the engine as the programs do.
struct OpenedPair {
    std::shared_ptr<const Model> reference, candidate;
    std::shared_ptr<const InputSet> inputs;
    std::unique_ptr<Comparison> comparison;

    [[nodiscard]] const AlignedPair *pairOf(const std::string &refName) const; // by reference value name
    [[nodiscard]] PairId rowOf(const std::string &refName) const;              // invalid when there is none
    [[nodiscard]] PairId rowOfTarget(const std::string &target) const;         // weight row by state-dict name
};

// Fails the test and returns an empty pair when something cannot be opened.
[[nodiscard]] OpenedPair openPair(const std::string &folder, const std::string &reference = "float.pt2",
                                  const std::string &candidate = "candidate.pt2");
[[nodiscard]] std::string dataPath(const std::string &relative);

// Two threads and no cache unless a test says otherwise.
[[nodiscard]] RunOptions plainOptions();
[[nodiscard]] RunReport runOrFail(Comparison &comparison, const EditSet &edits, const RunOptions &options);

class NullSink : public ReportSink
{
public:
    void row(const NodeReport &) override { ++rows; }
    void progress(std::int64_t, std::int64_t, std::int64_t, std::int64_t) override {}
    int rows = 0;
};

// Equal in every figure, bit for bit; times and "carried over" aside.
[[nodiscard]] std::string firstDifference(const RunReport &a, const RunReport &b);

// Switches a site off or on again, bypasses it for its first reader, or gives it other bits, another type, per
// tensor or per channel, or a range.
void editAtRandom(EditSet &edits, const std::vector<QuantSite> &sites, std::mt19937 &random);

} // namespace dblame::test

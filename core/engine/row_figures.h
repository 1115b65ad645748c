// SPDX-License-Identifier: GPL-3.0-or-later
//
// What is compared for one row, and the sums of it over the batches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/alignment.h"
#include "core/engine.h"
#include "core/engine/metric.h"
#include "core/node_report.h"
#include "core/readers/sha256.h"

namespace dblame
{

// The tensors of one row in one batch; undefined where the row has none, or not yet.
struct RowTensors {
    at::Tensor reference, candidate;
    at::Tensor before;                          // raw operator output, where an output site follows
    at::Tensor after;                           // after the consumers' input site, where only those follow
    at::Tensor referenceBefore, referenceAfter; // of a quantized reference: like is compared with like
};

// One site of a row whose use of its range is observed on the raw values.
struct ObservedRange {
    SiteId site;
    double lo = 0, hi = 0;
    RangeAccumulator range;
};

class RowFigures
{
public:
    RowFigures(const AlignedPair &pair, const SiteTable &sites, const RunOptions &options);

    // Adds one batch. A row whose tensors cannot be compared says why from then on.
    void add(const RowTensors &tensors);
    // The value is not there: its operator failed, or could not be run.
    void setMissing(bool failedItself, std::string reason);
    // Everything but drops, times and the state of sites. Hashes are closed by the last fill (`final`).
    void fill(NodeReport &report, bool final);

private:
    void addHashes(const RowTensors &tensors);

    PairAccumulator m_main;
    SnrAccumulator m_before, m_after;
    std::vector<ObservedRange> m_ranges;
    std::unique_ptr<Sha256> m_refHash, m_candHash;
    RowStatus m_trouble = RowStatus::Pending; // Pending: none
    std::string m_reason;
    std::vector<std::int64_t> m_shape;
    std::string m_dtype;
    int m_batches = 0;
};

} // namespace dblame

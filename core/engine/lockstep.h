// SPDX-License-Identifier: GPL-3.0-or-later
//
// One batch through both models. Reference and candidate advance along the rows; a row is compared the moment
// its values exist on both sides, before a later in-place operator can overwrite one of them, and then lets go.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include <ATen/core/ivalue.h>

#include "core/alignment.h"
#include "core/engine/activation_cache.h"
#include "core/engine/program.h"
#include "core/engine/row_figures.h"

namespace dblame
{

// Which values of a row are looked at under the programs of this run.
struct RowValues {
    PairId row;
    ValueId reference;            // on the reference side; invalid when `constant` or a candidate value stands for it
    ValueId referenceOnCandidate; // W·sf of a rewritten norm
    at::Tensor constant;          // a folded weight
    ValueId candidate, before, after;
    ValueId referenceBefore, referenceAfter; // what before and after are compared with; invalid: the reference itself
};

struct LockstepSide {
    std::shared_ptr<const Program> program;
    const Rewiring *rewiring = nullptr; // of `program`
    std::vector<char> dirty;            // values whose cached copy is of another run; empty: none
};

struct LockstepCallbacks {
    std::function<void(const RowValues &, const RowTensors &)> compare; // row is complete
    std::function<void(const RowValues &, bool failedItself, const std::string &reason)> missing;
    std::function<void(NodeId, double ms, bool reference)> timed;
    std::function<void(NodeId, Execution &)> candidateRan; // after each candidate node
    std::function<void(std::int64_t node, std::int64_t nodes)> progress;
};

class Lockstep
{
public:
    Lockstep(LockstepSide reference, LockstepSide candidate, const std::vector<RowValues> &rows);
    ~Lockstep();
    Lockstep(const Lockstep &) = delete;
    Lockstep &operator=(const Lockstep &) = delete;

    [[nodiscard]] std::size_t nodeCount() const; // to run per batch, both sides
    // False when stopped. User inputs in signature order. Under the caller's c10::InferenceMode.
    // Caches (may be null) are read as leaves only; `keepBytes`: how much of each side to hand out as fresh.
    bool run(const std::vector<c10::IValue> &inputs, const ActivationCache *referenceCache,
             const ActivationCache *candidateCache, std::uint64_t keepBytes, const LockstepCallbacks &callbacks,
             const std::stop_token &stop);
    // What the batch computed and a cache may keep; empty when it ran without caches.
    [[nodiscard]] std::vector<std::pair<ValueId, c10::IValue>> takeFreshReference();
    [[nodiscard]] std::vector<std::pair<ValueId, c10::IValue>> takeFreshCandidate();

private:
    class Side;
    [[nodiscard]] std::vector<std::size_t> steppingOrder() const;
    const std::vector<RowValues> &m_rows;
    std::unique_ptr<Side> m_reference, m_candidate;
};

} // namespace dblame

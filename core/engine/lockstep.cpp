// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/lockstep.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <string_view>

#include <ATen/ops/clone.h>

namespace dblame
{

namespace
{

using Slot = at::Tensor RowTensors::*;

struct Watch {
    std::size_t row;
    Slot slot;
    ValueId value;
};

double millisecondsSince(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

// One model's way through a batch.
class Lockstep::Side
{
public:
    Side(LockstepSide setup, std::vector<Watch> watches) : m_setup(std::move(setup)), m_watches(std::move(watches))
    {
        for (const Watch &watch : m_watches)
            m_wanted.push_back(watch.value);
        for (const auto &input : m_setup.program->graph().inputs)
            if (input.kind == InputKind::User && input.value.valid())
                m_userInputs.push_back(input.value);
    }

    // Nodes from scratch, without a cache: what a full run of a batch takes.
    [[nodiscard]] std::size_t plainCount() const
    {
        return m_setup.program->schedule(m_wanted, [](ValueId) { return false; }).size();
    }

    void begin(const std::vector<c10::IValue> &inputs, const ActivationCache *cache, std::uint64_t keepBytes)
    {
        m_cache = cache;
        m_keepBytes = keepBytes;
        m_fresh.clear();
        m_freshBytes = 0;
        const auto available = [this](ValueId v) { return leaf(v) != nullptr; };
        if (m_schedule.empty() || cache)
            m_schedule = m_setup.program->schedule(m_wanted, available);
        m_next = 0;
        m_execution.emplace(m_setup.program, m_schedule, m_wanted);
        for (std::size_t i = 0; i < m_userInputs.size() && i < inputs.size(); ++i)
            m_execution->bind(m_userInputs[i], inputs[i]);
        bindLeaves();
        m_byNode.clear();
        m_atStart.clear();
        for (std::size_t i = 0; i < m_watches.size(); ++i) {
            const NodeId node = trigger(m_watches[i].value);
            if (node.valid())
                m_byNode[node].push_back(i);
            else
                m_atStart.push_back(i);
        }
    }

    [[nodiscard]] bool hasNext() const { return m_next < m_schedule.size(); }
    [[nodiscard]] std::size_t position() const { return m_next; }
    [[nodiscard]] std::size_t length() const { return m_schedule.size(); }
    [[nodiscard]] const std::vector<std::size_t> &atStart() const { return m_atStart; }
    [[nodiscard]] const Watch &watch(std::size_t index) const { return m_watches[index]; }
    [[nodiscard]] Execution &execution() { return *m_execution; }

    // Runs the next node; returns the watches whose values it made.
    const std::vector<std::size_t> &step(const LockstepCallbacks &callbacks, bool reference,
                                         const std::stop_token &stop)
    {
        static const std::vector<std::size_t> kNone;
        const NodeId node = m_schedule[m_next++];
        const auto start = std::chrono::steady_clock::now();
        const bool ran = m_execution->run(node, stop);
        callbacks.timed(node, millisecondsSince(start), reference);
        if (ran && !reference)
            callbacks.candidateRan(node, *m_execution);
        if (ran && m_cache)
            keep(node, reference);
        const auto found = m_byNode.find(node);
        return found == m_byNode.end() ? kNone : found->second;
    }

    // The node that makes a value, as a position in execution order; -1 when it is there from the start.
    [[nodiscard]] std::int32_t positionOf(ValueId value) const { return trigger(value).index; }

    [[nodiscard]] at::Tensor take(ValueId value)
    {
        const c10::IValue &held = m_execution->value(value);
        return held.isTensor() ? held.toTensor() : at::Tensor();
    }

    // Why a stored tensor is not there; empty for other values.
    [[nodiscard]] std::string leftOut(ValueId value) const
    {
        const LoadedModel &model = m_setup.program->model();
        const GraphInput *input = model.graph().input(root(value));
        const bool stored = input && (input->kind == InputKind::Parameter || input->kind == InputKind::Buffer ||
                                      input->kind == InputKind::TensorConstant);
        if (!stored || model.tensor(input->value).defined())
            return {};
        return "the weight " + input->target + " is not in " + model.info().path +
               "; export the model with its weights";
    }

    void release(ValueId value) { m_execution->release(value); }
    [[nodiscard]] bool hot(ValueId value) const { return m_setup.program->hot(root(value)); }
    void end() { m_execution.reset(); }

private:
    // The value that a read of `value` really comes from: redirects and substitutes followed to what is computed.
    [[nodiscard]] ValueId root(ValueId value) const
    {
        for (;;) {
            value = m_setup.program->resolve(NodeId{}, value);
            const auto computed = m_setup.rewiring->computed.find(value);
            if (computed == m_setup.rewiring->computed.end())
                return value;
            value = computed->second.source;
        }
    }

    [[nodiscard]] NodeId trigger(ValueId value) const
    {
        const ValueId from = root(value);
        if (leaf(from) || m_setup.rewiring->given.contains(from))
            return {};
        return m_setup.program->graph().value(from).producer;
    }

    [[nodiscard]] const c10::IValue *leaf(ValueId value) const
    {
        if (!m_cache || (!m_setup.dirty.empty() && m_setup.dirty[value.get()]))
            return nullptr;
        return m_cache->find(value);
    }

    void bindLeaves()
    {
        if (!m_cache)
            return;
        const auto bindIfLeaf = [this](NodeId reader, ValueId value) {
            value = m_setup.program->resolve(reader, value);
            while (true) {
                const auto computed = m_setup.rewiring->computed.find(value);
                if (computed == m_setup.rewiring->computed.end())
                    break;
                value = m_setup.program->resolve(NodeId{}, computed->second.source);
            }
            if (const c10::IValue *cached = leaf(value))
                m_execution->bind(value, *cached);
        };
        for (NodeId node : m_schedule)
            for (ValueId v : m_setup.program->graph().node(node).inputValues())
                bindIfLeaf(node, v);
        for (ValueId v : m_wanted)
            bindIfLeaf(NodeId{}, v);
    }

    // The candidate keeps every activation (an edit may start anywhere), the reference what rows look at.
    void keep(NodeId node, bool reference)
    {
        for (ValueId v : m_setup.program->graph().node(node).outputValues()) {
            const bool own = m_setup.program->resolve(NodeId{}, v) == v && !m_setup.rewiring->computed.contains(v) &&
                             !m_setup.rewiring->given.contains(v);
            if (!own || m_setup.program->hot(v) || (reference && !m_byNode.contains(node)))
                continue;
            const c10::IValue &value = m_execution->value(v);
            if (value.isNone())
                continue;
            const std::uint64_t bytes =
                value.isTensor() && value.toTensor().has_storage() ? value.toTensor().nbytes() : 0;
            if (m_freshBytes + bytes > m_keepBytes)
                continue;
            m_freshBytes += bytes;
            m_fresh.emplace_back(v, value);
        }
    }

public:
    // Values computed in this batch, for the caller to put into the cache once the run is finished.
    std::vector<std::pair<ValueId, c10::IValue>> takeFresh() { return std::move(m_fresh); }

private:
    LockstepSide m_setup;
    std::vector<Watch> m_watches;
    std::vector<ValueId> m_wanted, m_userInputs;
    std::vector<NodeId> m_schedule;
    std::size_t m_next = 0;
    const ActivationCache *m_cache = nullptr;
    std::optional<Execution> m_execution;
    std::unordered_map<NodeId, std::vector<std::size_t>> m_byNode;
    std::vector<std::size_t> m_atStart;
    std::vector<std::pair<ValueId, c10::IValue>> m_fresh;
    std::uint64_t m_keepBytes = 0, m_freshBytes = 0;
};

Lockstep::Lockstep(LockstepSide reference, LockstepSide candidate, const std::vector<RowValues> &rows) : m_rows(rows)
{
    std::vector<Watch> ref, cand;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const RowValues &row = rows[i];
        if (row.reference.valid())
            ref.push_back({i, &RowTensors::reference, row.reference});
        if (row.referenceBefore.valid())
            ref.push_back({i, &RowTensors::referenceBefore, row.referenceBefore});
        if (row.referenceAfter.valid())
            ref.push_back({i, &RowTensors::referenceAfter, row.referenceAfter});
        if (row.referenceOnCandidate.valid())
            cand.push_back({i, &RowTensors::reference, row.referenceOnCandidate});
        if (row.candidate.valid())
            cand.push_back({i, &RowTensors::candidate, row.candidate});
        if (row.before.valid())
            cand.push_back({i, &RowTensors::before, row.before});
        if (row.after.valid())
            cand.push_back({i, &RowTensors::after, row.after});
    }
    m_reference = std::make_unique<Side>(std::move(reference), std::move(ref));
    m_candidate = std::make_unique<Side>(std::move(candidate), std::move(cand));
}

Lockstep::~Lockstep() = default;

// Rows by the place where the candidate makes their values: neither side runs ahead of the other, so few values wait.
// (In the order of the rows, the weight of the last layer would send the candidate to its end at once.)
std::vector<std::size_t> Lockstep::steppingOrder() const
{
    std::vector<std::int32_t> place(m_rows.size(), -1);
    for (std::size_t i = 0; i < m_rows.size(); ++i)
        for (ValueId v : {m_rows[i].candidate, m_rows[i].before, m_rows[i].after, m_rows[i].referenceOnCandidate})
            if (v.valid())
                place[i] = std::max(place[i], m_candidate->positionOf(v));
    std::vector<std::size_t> order(m_rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
    return order;
}

std::size_t Lockstep::nodeCount() const
{
    return m_reference->plainCount() + m_candidate->plainCount();
}

namespace
{

struct RowState {
    RowTensors tensors;
    int pending = 0;
    int pendingReference = 0;
    bool done = false;
};

} // namespace

bool Lockstep::run(const std::vector<c10::IValue> &inputs, const ActivationCache *referenceCache,
                   const ActivationCache *candidateCache, std::uint64_t keepBytes, const LockstepCallbacks &callbacks,
                   const std::stop_token &stop)
{
    std::vector<RowState> states(m_rows.size());
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        const RowValues &row = m_rows[i];
        RowState &state = states[i];
        state.tensors.reference = row.constant;
        state.pendingReference = row.reference.valid() + row.referenceBefore.valid() + row.referenceAfter.valid();
        state.pending = state.pendingReference + row.referenceOnCandidate.valid() + row.candidate.valid() +
                        row.before.valid() + row.after.valid();
    }
    m_reference->begin(inputs, referenceCache, keepBytes);
    m_candidate->begin(inputs, candidateCache, keepBytes);
    const std::vector<std::size_t> order = steppingOrder();

    const auto capture = [&](Side &side, const std::vector<std::size_t> &watches) {
        for (std::size_t index : watches) {
            const Watch &watch = side.watch(index);
            RowState &state = states[watch.row];
            const at::Tensor value = side.take(watch.value);
            state.tensors.*watch.slot = value;
            --state.pending;
            if (&side == m_reference.get())
                --state.pendingReference;
            if (state.pending > 0) {
                // It has to wait for the other side: a later node may write into its storage meanwhile.
                if (value.defined() && side.hot(watch.value))
                    state.tensors.*watch.slot = value.clone();
                continue;
            }
            if (state.tensors.reference.defined() && state.tensors.candidate.defined()) {
                callbacks.compare(m_rows[watch.row], state.tensors);
                state.done = true;
            }
            state.tensors = {};
        }
        for (std::size_t index : watches)
            side.release(side.watch(index).value);
    };
    const auto step = [&](Side &side, bool reference) {
        capture(side, side.step(callbacks, reference, stop));
        callbacks.progress(static_cast<std::int64_t>(m_reference->position() + m_candidate->position()),
                           static_cast<std::int64_t>(m_reference->length() + m_candidate->length()));
    };

    capture(*m_reference, m_reference->atStart());
    capture(*m_candidate, m_candidate->atStart());
    for (std::size_t k = 0; k <= order.size(); ++k) {
        // Past the last row: what is left of both schedules.
        const bool tail = k == order.size();
        const std::size_t i = tail ? 0 : order[k];
        while (m_reference->hasNext() && (tail || states[i].pendingReference > 0)) {
            if (stop.stop_requested())
                return false;
            step(*m_reference, true);
        }
        while (m_candidate->hasNext() && (tail || states[i].pending > states[i].pendingReference)) {
            if (stop.stop_requested())
                return false;
            step(*m_candidate, false);
        }
    }
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        if (states[i].done)
            continue;
        const RowValues &row = m_rows[i];
        const auto explain = [&](Side &side, ValueId value) {
            if (!value.valid())
                return false;
            std::string reason = side.execution().faultOf(value);
            const bool own = side.execution().failedItself(value);
            if (constexpr std::string_view kFailed = "failed: "; own && reason.starts_with(kFailed))
                reason.erase(0, kFailed.size()); // the row's status says it
            if (reason.empty())
                reason = side.leftOut(value);
            if (reason.empty())
                return false;
            callbacks.missing(row, own, reason);
            return true;
        };
        if (!explain(*m_reference, row.reference) && !explain(*m_candidate, row.candidate) &&
            !explain(*m_candidate, row.referenceOnCandidate) && !explain(*m_candidate, row.before) &&
            !explain(*m_candidate, row.after) && !explain(*m_reference, row.referenceBefore) &&
            !explain(*m_reference, row.referenceAfter))
            callbacks.missing(row, false, "the value is not a tensor");
    }
    m_reference->end();
    m_candidate->end();
    return true;
}

std::vector<std::pair<ValueId, c10::IValue>> Lockstep::takeFreshReference()
{
    return m_reference->takeFresh();
}

std::vector<std::pair<ValueId, c10::IValue>> Lockstep::takeFreshCandidate()
{
    return m_candidate->takeFresh();
}

} // namespace dblame

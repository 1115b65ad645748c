// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/coreai_records.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/graph_query.h"

namespace dblame
{

namespace
{

constexpr std::int64_t kTurnsPerSlot = 100;

enum class Passing : std::uint8_t { No, KeepsRank, ChangesRank };

Passing passing(const CoreAiGraph &graph, int entry)
{
    if (!graph.isCall(entry))
        return Passing::No;
    static constexpr std::array<std::string_view, 7> kKeep = {
        "aten.clone", "aten.dropout", "aten.feature_dropout", "aten.permute", "aten.slice", "aten.t", "aten.transpose"};
    static constexpr std::array<std::string_view, 6> kChange = {"aten.expand",  "aten.reshape",   "aten.select",
                                                                "aten.squeeze", "aten.unsqueeze", "aten.view"};
    const std::string type = graph.graph().node(graph.at(entry).node).opType();
    if (std::find(kKeep.begin(), kKeep.end(), type) != kKeep.end())
        return Passing::KeepsRank;
    return std::find(kChange.begin(), kChange.end(), type) != kChange.end() ? Passing::ChangesRank : Passing::No;
}

bool declined(const SpecRecord *record)
{
    return record && record->declinedBy;
}

} // namespace

CoreAiRecords::CoreAiRecords(const CoreAiGraph &graph, const std::vector<CoreAiCover> &covers)
    : m_graph(graph), m_covers(covers)
{
    int slots = 0;
    for (int i = 0; i < graph.size(); ++i) {
        m_base.push_back(slots);
        const auto own = 1 + graph.at(i).inputs.size();
        m_entryOf.insert(m_entryOf.end(), own, i);
        slots += static_cast<int>(own);
    }
    m_recordOf.assign(static_cast<std::size_t>(slots), -1);
}

const SpecRecord *CoreAiRecords::record(int slot) const
{
    const int index = m_recordOf[static_cast<std::size_t>(slot)];
    return index < 0 ? nullptr : &m_records[static_cast<std::size_t>(index)];
}

SpecRecord &CoreAiRecords::recordFor(int slot)
{
    int &index = m_recordOf[static_cast<std::size_t>(slot)];
    if (index < 0) {
        index = static_cast<int>(m_records.size());
        m_records.emplace_back();
        m_members.push_back({slot});
    }
    return m_records[static_cast<std::size_t>(index)];
}

bool CoreAiRecords::samePattern(int entry, int other) const
{
    const auto &pattern = m_covers[static_cast<std::size_t>(entry)].pattern;
    return std::find(pattern.begin(), pattern.end(), other) != pattern.end();
}

// --- seeds ------------------------------------------------------------------------------------------------------

void CoreAiRecords::populate(CoreAiSlot slot, const CoreAiSpec &spec, int priority, bool weight)
{
    recordFor(slotOf(slot.entry, slot.input)).fields = SpecFields::of(spec, priority, weight);
}

void CoreAiRecords::decline(CoreAiSlot slot, int priority)
{
    auto &by = recordFor(slotOf(slot.entry, slot.input)).declinedBy;
    by = by ? std::min(*by, priority) : priority;
}

void CoreAiRecords::setIntrinsic(CoreAiSlot slot, std::optional<Scheme> scheme, std::optional<double> low,
                                 std::optional<double> high)
{
    SpecRecord &record = recordFor(slotOf(slot.entry, slot.input));
    if (!record.fields)
        return;
    if (scheme)
        record.fields->scheme = {*scheme, kIntrinsicPriority};
    record.fields->range = {{low, high}, kIntrinsicPriority};
}

// --- constraints ------------------------------------------------------------------------------------------------

void CoreAiRecords::add(Tie tie)
{
    std::sort(tie.slots.begin(), tie.slots.end());
    tie.slots.erase(std::unique(tie.slots.begin(), tie.slots.end()), tie.slots.end());
    m_queue.push_back({std::move(tie), std::nullopt});
}

void CoreAiRecords::generate(int entry)
{
    generateEdges(entry);
    generateShared(entry);
    generateState(entry);
    switch (passing(m_graph, entry)) {
    case Passing::KeepsRank:
        generatePassThrough(entry);
        break;
    case Passing::ChangesRank:
        generateReshaped(entry);
        break;
    case Passing::No:
        break;
    }
}

void CoreAiRecords::addEdge(int producerSlot, int consumerSlot)
{
    const SpecRecord *a = record(producerSlot);
    const SpecRecord *b = record(consumerSlot);
    if (declined(a) || declined(b) || !((a && a->fields) || (b && b->fields)))
        return;
    add({{producerSlot, consumerSlot}, false, false});
}

void CoreAiRecords::generateEdges(int entry)
{
    if (!covered(entry))
        return;
    const auto &inputs = m_graph.at(entry).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (!samePattern(entry, inputs[i]) && covered(inputs[i]))
            addEdge(slotOf(inputs[i], -1), slotOf(entry, static_cast<int>(i)));
    for (const int user : m_graph.at(entry).users)
        if (!samePattern(entry, user) && covered(user))
            addEdge(slotOf(entry, -1), slotOf(user, m_graph.inputIndex(user, entry)));
}

void CoreAiRecords::generateShared(int entry)
{
    const SharedOp kind = sharedOp(m_graph, entry);
    const auto count = static_cast<int>(m_graph.at(entry).inputs.size());
    if (kind == SharedOp::None)
        return;
    Tie tie{{slotOf(entry, -1)}, false, false};
    bool any = false;
    for (int i = 0; i < count; ++i) {
        tie.slots.push_back(slotOf(entry, i));
        any = any || known(tie.slots.back());
    }
    if (!any)
        return;
    if (kind == SharedOp::Concat) {
        const Node &node = m_graph.graph().node(m_graph.at(entry).node);
        const auto dim = intArgument(node, "dim").value_or(0);
        const auto rank = m_graph.rank(entry);
        for (const int slot : tie.slots) {
            const SpecRecord *r = record(slot);
            if (!r || !r->fields || !r->fields->granularity.value.axis)
                continue;
            const std::int64_t axis = *r->fields->granularity.value.axis;
            const auto wrap = [&](std::int64_t v) { return ((v % *rank) + *rank) % *rank; };
            if (axis == dim || (rank && *rank > 0 && wrap(axis) == wrap(dim)))
                tie.typeOnly = true; // sizes differ along this axis: each input keeps its own scales
        }
    }
    add(std::move(tie));
}

void CoreAiRecords::generateState(int entry)
{
    if (!m_graph.isState(entry) || m_graph.at(entry).users.size() < 2)
        return;
    Tie tie{{}, true, false};
    for (const int user : m_graph.at(entry).users) {
        const int slot = slotOf(user, m_graph.inputIndex(user, entry));
        if (covered(user) && known(slot))
            tie.slots.push_back(slot);
    }
    if (tie.slots.size() >= 2)
        add(std::move(tie));
}

void CoreAiRecords::generatePassThrough(int entry)
{
    if (m_graph.at(entry).inputs.empty())
        return;
    const int producer = m_graph.at(entry).inputs.front();
    Tie tie{{slotOf(entry, 0), slotOf(entry, -1)}, false, false};
    if (covered(producer) || passing(m_graph, producer) != Passing::No)
        tie.slots.push_back(slotOf(producer, -1));
    for (const int user : m_graph.at(entry).users) {
        if (covered(user))
            tie.slots.push_back(slotOf(user, m_graph.inputIndex(user, entry)));
        else if (passing(m_graph, user) != Passing::No)
            tie.slots.push_back(slotOf(user, 0));
    }
    add(std::move(tie));
}

// The slot upstream that knows something, past operators that only change the rank; -1 for none.
int CoreAiRecords::chainSource(int entry) const
{
    for (int at = entry; !m_graph.at(at).inputs.empty();) {
        const int producer = m_graph.at(at).inputs.front();
        if (known(slotOf(producer, -1)))
            return slotOf(producer, -1);
        if (passing(m_graph, producer) != Passing::ChangesRank)
            return -1;
        at = producer;
    }
    return -1;
}

std::vector<int> CoreAiRecords::chainTargets(int entry) const
{
    std::vector<int> targets;
    std::vector<int> open{entry};
    std::set<int> seen;
    while (!open.empty()) {
        const int at = open.back();
        open.pop_back();
        if (!seen.insert(at).second)
            continue;
        for (const int user : m_graph.at(at).users) {
            const int slot = slotOf(user, m_graph.inputIndex(user, at));
            if (known(slot))
                targets.push_back(slot);
            else if (passing(m_graph, user) == Passing::ChangesRank)
                open.push_back(user);
        }
    }
    std::sort(targets.begin(), targets.end());
    return targets;
}

void CoreAiRecords::generateReshaped(int entry)
{
    const int source = chainSource(entry);
    if (source < 0)
        return;
    auto targets = chainTargets(entry);
    if (!targets.empty())
        m_queue.push_back({std::nullopt, Inherit{source, std::move(targets)}});
}

// --- application ------------------------------------------------------------------------------------------------

std::optional<int> CoreAiRecords::declineOf(const std::vector<int> &slots, bool priorityDecides) const
{
    std::optional<int> decline;
    std::optional<int> active;
    for (const int slot : slots) {
        const SpecRecord *r = record(slot);
        if (!r)
            continue;
        if (r->declinedBy)
            decline = decline ? std::min(*decline, *r->declinedBy) : *r->declinedBy;
        if (r->fields)
            active = active ? std::min(*active, strongestPriority(*r->fields)) : strongestPriority(*r->fields);
    }
    if (!decline || !active)
        return decline;
    return priorityDecides && *decline <= *active ? decline : std::nullopt;
}

std::vector<int> CoreAiRecords::apply(const Tie &tie)
{
    // Whatever shares a record with a member comes along.
    std::set<int> wide(tie.slots.begin(), tie.slots.end());
    std::set<int> records;
    for (const int slot : tie.slots)
        if (known(slot))
            records.insert(m_recordOf[static_cast<std::size_t>(slot)]);
    for (const int r : records)
        wide.insert(m_members[static_cast<std::size_t>(r)].begin(), m_members[static_cast<std::size_t>(r)].end());
    const std::vector<int> slots(wide.begin(), wide.end());

    SpecRecord agreed;
    agreed.declinedBy = declineOf(slots, tie.priorityDecidesDecline);
    for (const int r : records) {
        const auto &fields = m_records[static_cast<std::size_t>(r)].fields;
        if (fields && agreed.fields)
            mergeFields(*agreed.fields, *fields);
        else if (fields)
            agreed.fields = fields;
    }
    int shared = -1;
    for (const int r : records)
        if (shared < 0 && m_records[static_cast<std::size_t>(r)] == agreed)
            shared = r;
    if (shared < 0) {
        shared = static_cast<int>(m_records.size());
        m_records.push_back(std::move(agreed));
        m_members.emplace_back();
    }
    std::vector<int> changed;
    for (const int slot : slots) {
        int &mine = m_recordOf[static_cast<std::size_t>(slot)];
        if (mine == shared)
            continue;
        mine = shared;
        changed.push_back(slot);
    }
    for (const int r : records)
        if (r != shared)
            m_members[static_cast<std::size_t>(r)].clear();
    m_members[static_cast<std::size_t>(shared)] = slots;
    return changed;
}

Result<std::vector<int>> CoreAiRecords::applyType(const Tie &tie)
{
    std::optional<Ranked<ElementType>> best;
    for (const int slot : tie.slots)
        if (const SpecRecord *r = record(slot); r && r->fields) {
            if (best)
                mergeType(*best, r->fields->type);
            else
                best = r->fields->type;
        }
    std::vector<int> changed;
    if (!best)
        return changed;
    for (const int slot : tie.slots) {
        SpecRecord &r = recordFor(slot);
        if (!r.fields) {
            const int entry = m_entryOf[static_cast<std::size_t>(slot)];
            return fail(
                ErrorCode::Usage, std::string(m_graph.name(entry)),
                "coreai-opt cannot settle this concatenation: one of its tensors is quantized per channel along "
                "the concatenated dimension and another one has no spec; quantize per tensor, or along another axis");
        }
        if (r.fields->type.value != best->value || best->priority < r.fields->type.priority) {
            r.fields->type = *best;
            changed.push_back(slot);
        }
    }
    return changed;
}

std::vector<int> CoreAiRecords::apply(const Inherit &inherit)
{
    const SpecRecord *source = record(inherit.source);
    if (!source || source->declinedBy || !source->fields)
        return {};
    const auto scheme = source->fields->scheme;
    const auto range = source->fields->range;
    std::vector<int> changed;
    for (const int target : inherit.targets) {
        const SpecRecord *r = record(target);
        if (!r || !r->fields || r->declinedBy || (r->fields->scheme == scheme && r->fields->range == range))
            continue;
        SpecFields &fields = *recordFor(target).fields;
        fields.scheme = scheme;
        fields.range = range;
        changed.push_back(target);
    }
    return changed;
}

Result<void> CoreAiRecords::settle()
{
    for (int i = 0; i < m_graph.size(); ++i)
        generate(i);
    const std::int64_t most = kTurnsPerSlot * std::max<std::int64_t>(1, static_cast<std::int64_t>(m_recordOf.size()));
    for (std::int64_t turn = 0; !m_queue.empty(); ++turn) {
        if (turn > most)
            return fail(ErrorCode::Internal, "", "the constraints of this configuration do not settle");
        const Constraint constraint = std::move(m_queue.front());
        m_queue.pop_front();
        std::vector<int> changed;
        if (constraint.inherit) {
            changed = apply(*constraint.inherit);
        } else if (constraint.tie->typeOnly) {
            auto applied = applyType(*constraint.tie);
            if (!applied)
                return tl::unexpected(applied.error());
            changed = std::move(*applied);
        } else {
            changed = apply(*constraint.tie);
        }
        std::set<int> touched;
        for (const int slot : changed)
            touched.insert(m_entryOf[static_cast<std::size_t>(slot)]);
        for (const int entry : touched)
            generate(entry);
    }
    return {};
}

std::vector<std::pair<SpecRecord, std::vector<CoreAiSlot>>> CoreAiRecords::groups() const
{
    std::map<int, std::vector<CoreAiSlot>> byRecord;
    for (int i = 0; i < m_graph.size(); ++i) {
        const auto inputs = static_cast<int>(m_graph.at(i).inputs.size());
        for (int k = 0; k <= inputs; ++k) { // inputs, then the output
            const int input = k < inputs ? k : -1;
            if (const int r = m_recordOf[static_cast<std::size_t>(slotOf(i, input))]; r >= 0)
                byRecord[r].push_back({i, input});
        }
    }
    std::vector<std::pair<SpecRecord, std::vector<CoreAiSlot>>> result;
    for (auto &[r, slots] : byRecord)
        result.emplace_back(m_records[static_cast<std::size_t>(r)], std::move(slots));
    return result;
}

} // namespace dblame

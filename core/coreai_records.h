// SPDX-License-Identifier: GPL-3.0-or-later
//
// How coreai-opt settles what each tensor of a graph gets: a record per slot (an operator's input or output), records
// that are tied become one, until nothing changes. Small numbers are strong priorities; -1 is what an operator's own
// range says.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/coreai_config.h"
#include "core/coreai_fields.h"
#include "core/coreai_graph.h"
#include "core/coreai_patterns.h"

namespace dblame
{

// Neither fields nor a refusal: known, but nobody spoke for it.
struct SpecRecord {
    std::optional<SpecFields> fields;
    std::optional<int> declinedBy;
    friend bool operator==(const SpecRecord &, const SpecRecord &) = default;
};

struct CoreAiSlot {
    int entry = -1; // of the CoreAiGraph
    int input = -1; // -1: the output
    friend bool operator==(CoreAiSlot, CoreAiSlot) = default;
};

// What decided about an entry: the operators of its pattern.
struct CoreAiCover {
    int priority = -1;        // -1: no pattern covers it
    std::vector<int> pattern; // entries
    const CoreAiOpConfig *config = nullptr;
    bool anchor = false;
};

class CoreAiRecords
{
public:
    CoreAiRecords(const CoreAiGraph &graph, const std::vector<CoreAiCover> &covers);

    void populate(CoreAiSlot slot, const CoreAiSpec &spec, int priority, bool weight);
    void decline(CoreAiSlot slot, int priority);
    // Fields that the operator's own range decides; only where the slot has fields.
    void setIntrinsic(CoreAiSlot slot, std::optional<Scheme> scheme, std::optional<double> low,
                      std::optional<double> high);
    // Ties records until nothing changes. Internal: it does not settle, or a slot would be left half described.
    [[nodiscard]] Result<void> settle();

    // Slots that share a record, each list in graph order (inputs before the output); records without slots left out.
    [[nodiscard]] std::vector<std::pair<SpecRecord, std::vector<CoreAiSlot>>> groups() const;

private:
    struct Tie { // one record for all, or one value of one field for all
        std::vector<int> slots;
        bool priorityDecidesDecline = false;
        bool typeOnly = false;
    };
    struct Inherit { // scheme and range go downstream
        int source = -1;
        std::vector<int> targets;
    };
    struct Constraint {
        std::optional<Tie> tie;
        std::optional<Inherit> inherit;
    };

    [[nodiscard]] int slotOf(int entry, int input) const { return m_base[static_cast<std::size_t>(entry)] + input + 1; }
    [[nodiscard]] bool known(int slot) const { return m_recordOf[static_cast<std::size_t>(slot)] >= 0; }
    [[nodiscard]] const SpecRecord *record(int slot) const;
    SpecRecord &recordFor(int slot);
    [[nodiscard]] bool covered(int entry) const { return m_covers[static_cast<std::size_t>(entry)].priority >= 0; }
    [[nodiscard]] bool samePattern(int entry, int other) const;

    void generate(int entry);
    void generateEdges(int entry);
    void generateShared(int entry);
    void generateState(int entry);
    void generatePassThrough(int entry);
    void generateReshaped(int entry);
    void addEdge(int producerSlot, int consumerSlot);
    void add(Tie tie);
    [[nodiscard]] int chainSource(int entry) const;
    [[nodiscard]] std::vector<int> chainTargets(int entry) const;

    [[nodiscard]] std::vector<int> apply(const Tie &tie);
    [[nodiscard]] Result<std::vector<int>> applyType(const Tie &tie);
    [[nodiscard]] std::vector<int> apply(const Inherit &inherit);
    [[nodiscard]] std::optional<int> declineOf(const std::vector<int> &slots, bool priorityDecides) const;

    const CoreAiGraph &m_graph;
    const std::vector<CoreAiCover> &m_covers;
    std::vector<int> m_base;     // entry -> its output's slot, less one
    std::vector<int> m_recordOf; // slot -> record, -1 absent
    std::vector<int> m_entryOf;  // slot -> entry
    std::vector<SpecRecord> m_records;
    std::vector<std::vector<int>> m_members; // record -> slots
    std::deque<Constraint> m_queue;
};

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// From what a quantizer asks at each edge and output to observers at insertion points: which of them are one
// instance, where each is called, who reads it. Used by every PT2E quantizer; docs/quantization.md, "Groups and
// insertion". Plain structure, no tensors; works in time linear in the number of keys.
//
//     SpecMap asked;
//     asked.set(edgeKey(x, conv), activationSpec);
//     asked.set(edgeKey(weight, conv), weightSpec);
//     asked.set(edgeKey(bias, conv), NoSpec{});          // listed, but float
//     asked.set(outputKey(relu), activationSpec);
//     asked.set(edgeKey(relu, flatten), SharedWith{outputKey(relu)});
//     asked.set(outputKey(flatten), SharedWith{outputKey(relu)});
//     Result<GroupedPlacement> result = placeObservers(graph, asked);
#pragma once

#include <compare>
#include <functional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/placement.h"

namespace dblame
{

// E(p, n): tensor `value` as an input of operator `reader`. O(n): the result `value` of its producer; no reader.
struct SpecKey {
    ValueId value;
    NodeId reader;
    [[nodiscard]] bool isOutput() const { return !reader.valid(); }
    friend auto operator<=>(const SpecKey &, const SpecKey &) = default;
};
[[nodiscard]] inline SpecKey edgeKey(ValueId value, NodeId reader)
{
    return {value, reader};
}
[[nodiscard]] inline SpecKey outputKey(ValueId value)
{
    return {value, NodeId{}};
}

struct NoSpec {
    friend bool operator==(NoSpec, NoSpec) = default;
};
// One observer with another key, whatever that one asks.
struct SharedWith {
    SpecKey key;
    friend bool operator==(const SharedWith &, const SharedWith &) = default;
};
using AskedSpec = std::variant<NoSpec, TensorSpec, SharedWith>;

// What is asked, by key. Keys may be set in any order; they are ordered by the position of their operator, inputs
// before outputs, keys of one operator as they were set first.
class SpecMap
{
public:
    struct Entry {
        SpecKey key;
        AskedSpec spec;
    };

    // Setting a key again replaces its spec and keeps its place.
    void set(SpecKey key, AskedSpec spec);
    // nullptr when nothing was set. The pointer lives until the next set().
    [[nodiscard]] const AskedSpec *find(SpecKey key) const;
    // In the order they were set.
    [[nodiscard]] const std::vector<Entry> &entries() const { return m_entries; }

private:
    struct Hash {
        std::size_t operator()(const SpecKey &key) const noexcept
        {
            return std::hash<ValueId>{}(key.value) * 0x9E3779B97F4A7C15ULL + std::hash<NodeId>{}(key.reader);
        }
    };
    std::vector<Entry> m_entries;
    std::unordered_map<SpecKey, std::size_t, Hash> m_index;
};

// The comparison the peers make before they join two sites of one tensor: element type, range, scheme, granularity,
// axis, dynamic or not, fixed range. Kind of observer, averaging and eps are not compared: the first spec wins.
[[nodiscard]] bool sameGridAsked(const TensorSpec &a, const TensorSpec &b);

struct GroupingOptions {
    std::function<bool(const TensorSpec &, const TensorSpec &)> joinable = sameGridAsked;
    // Operators whose input edges are not joined with other sites of the same tensor unless they ask for it.
    std::function<bool(NodeId)> keepsApart;
};

struct GroupedPlacement {
    Placement placement;         // sites and observers; leftFloat, defects and warnings are empty
    std::vector<int> observerOf; // per entry of the SpecMap: the observer it ends up with, or -1
};

// Sites come in execution order of their insertion points with ids, roles, owners, readers; observers in order of
// first insertion, named "activation_post_process_<k>" where k counts insertions in the order the peer makes them.
// An observer that is nowhere inserted is left out.
// Error: a SharedWith that names a key without an entry (Internal: a fault of the caller).
[[nodiscard]] Result<GroupedPlacement> placeObservers(const Graph &graph, const SpecMap &asked,
                                                      const GroupingOptions &options = {});

} // namespace dblame

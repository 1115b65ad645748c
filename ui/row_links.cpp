// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/row_links.h"

#include <algorithm>
#include <deque>
#include <unordered_set>
#include <utility>

namespace dblame::ui
{
namespace
{

// Unpaired stretches longer than this are not worth a link.
constexpr std::size_t kMostVisited = 512;

// Breadth first from `start`, stopping at values that have a row; `next` lists a value's neighbours.
template <class Next, class RowOf>
std::vector<PairId> nearest(const std::vector<ValueId> &start, PairId self, const Next &next, const RowOf &rowOf)
{
    std::vector<PairId> found;
    std::unordered_set<ValueId> seen;
    std::deque<ValueId> waiting(start.begin(), start.end());
    while (!waiting.empty() && seen.size() < kMostVisited && found.size() < RowLinks::kMost) {
        const ValueId value = waiting.front();
        waiting.pop_front();
        if (!seen.insert(value).second)
            continue;
        const PairId row = rowOf(value);
        if (row.valid() && row != self) {
            if (std::find(found.begin(), found.end(), row) == found.end())
                found.push_back(row);
            continue;
        }
        for (const ValueId neighbour : next(value))
            waiting.push_back(neighbour);
    }
    return found;
}

std::vector<ValueId> producersOf(const Graph &graph, ValueId value)
{
    const Node *node = graph.producer(value);
    return node == nullptr ? std::vector<ValueId>() : node->inputValues();
}

std::vector<ValueId> readersOf(const Graph &graph, ValueId value)
{
    std::vector<ValueId> values;
    for (const NodeId reader : graph.readers(value))
        for (const ValueId output : graph.node(reader).outputValues())
            values.push_back(output);
    return values;
}

} // namespace

RowLinks::RowLinks(OpenPairPtr pair) : m_pair(std::move(pair))
{
    if (m_pair == nullptr || m_pair->reference == nullptr)
        return;
    const auto &pairs = m_pair->alignment.pairs;
    for (std::size_t i = 0; i < pairs.size(); ++i)
        if (pairs[i].ref.valid())
            m_rowOf.emplace(pairs[i].ref, PairId(i));
    for (std::size_t i = 0; i < pairs.size(); ++i)
        if (pairs[i].refCompared.valid())
            m_rowOf.emplace(pairs[i].refCompared, PairId(i));
}

PairId RowLinks::rowOf(ValueId reference) const
{
    const auto found = m_rowOf.find(reference);
    return found == m_rowOf.end() ? PairId() : found->second;
}

std::vector<PairId> RowLinks::inputs(PairId row) const
{
    if (m_pair == nullptr || m_pair->reference == nullptr || !row.valid())
        return {};
    const Graph &graph = m_pair->reference->graph();
    const ValueId value = m_pair->alignment.pairs[row.get()].ref;
    if (!value.valid())
        return {};
    return nearest(
        producersOf(graph, value), row, [&graph](ValueId v) { return producersOf(graph, v); },
        [this](ValueId v) { return rowOf(v); });
}

std::vector<PairId> RowLinks::outputs(PairId row) const
{
    if (m_pair == nullptr || m_pair->reference == nullptr || !row.valid())
        return {};
    const Graph &graph = m_pair->reference->graph();
    const AlignedPair &pair = m_pair->alignment.pairs[row.get()];
    if (!pair.ref.valid())
        return {};
    return nearest(
        readersOf(graph, pair.ref), row, [&graph](ValueId v) { return readersOf(graph, v); },
        [this](ValueId v) { return rowOf(v); });
}

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Step 4 of layered_layout: the order within each layer.
#include <algorithm>
#include <numeric>

#include "core/layered_internal.h"

namespace dblame::layered
{

namespace
{

// Depth first from the sources: a branch stays together, and execution order decides between branches.
void initialOrder(Layered &g)
{
    const Index layers = g.layerOf.empty() ? 0 : *std::max_element(g.layerOf.begin(), g.layerOf.end()) + 1;
    g.layers.assign(layers, {});
    g.position.assign(g.vertexCount(), -1);
    std::vector<Index> stack;
    for (Index root : g.topological) {
        stack.push_back(root);
        while (!stack.empty()) {
            const Index v = stack.back();
            stack.pop_back();
            if (g.position[v] >= 0)
                continue;
            auto &layer = g.layers[g.layerOf[v]];
            g.position[v] = static_cast<Index>(layer.size());
            layer.push_back(v);
            const auto downs = g.down.of(v);
            for (auto it = downs.rbegin(); it != downs.rend(); ++it)
                if (g.position[*it] < 0)
                    stack.push_back(*it);
        }
    }
    g.work += g.vertexCount() + static_cast<std::int64_t>(g.links.size());
}

// Crossings between two adjacent layers: inversions of the lower ends when links are read by their upper ends.
class CrossingCounter
{
public:
    std::int64_t between(Layered &g, Index upper)
    {
        const auto &lower = g.layers[upper + 1];
        m_tree.assign(lower.size() + 1, 0);
        std::int64_t crossings = 0, seen = 0;
        for (Index v : g.layers[upper]) {
            m_ends.clear();
            for (Index to : g.down.of(v))
                m_ends.push_back(g.position[to]);
            for (Index end : m_ends)
                crossings += seen - upTo(end);
            for (Index end : m_ends)
                add(end);
            seen += static_cast<std::int64_t>(m_ends.size());
        }
        g.work += static_cast<std::int64_t>(lower.size()) + seen;
        return crossings;
    }

private:
    [[nodiscard]] std::int64_t upTo(Index i) const
    {
        std::int64_t sum = 0;
        for (auto k = static_cast<std::size_t>(i) + 1; k > 0; k -= k & (~k + 1))
            sum += m_tree[k];
        return sum;
    }
    void add(Index i)
    {
        for (auto k = static_cast<std::size_t>(i) + 1; k < m_tree.size(); k += k & (~k + 1))
            ++m_tree[k];
    }
    std::vector<std::int64_t> m_tree;
    std::vector<Index> m_ends;
};

std::int64_t countCrossings(Layered &g)
{
    CrossingCounter counter;
    std::int64_t total = 0;
    for (Index k = 0; k + 1 < static_cast<Index>(g.layers.size()); ++k)
        if (g.layers[k].size() > 1 && g.layers[k + 1].size() > 1)
            total += counter.between(g, k);
    return total;
}

// Sorts one layer by the mean position of each vertex's neighbours. Members of a group stay together: groups
// are sorted by the mean of their members, then inside, level by level.
class LayerSorter
{
public:
    explicit LayerSorter(Layered &g) : m_g(g), m_value(g.vertexCount(), 0) {}

    void sort(Index layer, const Neighbours &from)
    {
        auto &order = m_g.layers[layer];
        if (order.size() < 2)
            return;
        bool grouped = false;
        for (Index v : order) {
            const auto near = from.of(v);
            double sum = 0;
            for (Index u : near)
                sum += m_g.position[u];
            m_value[v] = near.empty() ? m_g.position[v] : sum / static_cast<double>(near.size());
            grouped = grouped || m_g.groupOf[v] >= 0;
            m_g.work += 1 + static_cast<std::int64_t>(near.size());
        }
        if (grouped)
            sortRange(order, 0, order.size(), 0);
        else
            std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return m_value[a] < m_value[b]; });
        for (std::size_t i = 0; i < order.size(); ++i)
            m_g.position[order[i]] = static_cast<Index>(i);
    }

private:
    struct Keyed {
        double value = 0;
        Index key = 0; // group, or -1 - vertex for one that is in no group at this depth
        Index vertex = 0;
    };

    [[nodiscard]] Index groupAt(Index v, Index depth) const
    {
        Index group = m_g.groupOf[v];
        if (group < 0 || m_g.groupDepth[group] < depth)
            return -1 - v;
        while (m_g.groupDepth[group] > depth)
            group = m_g.input.groups[group].parent;
        return group;
    }

    void sortRange(std::vector<Index> &order, std::size_t begin, std::size_t end, Index depth)
    {
        if (end - begin < 2)
            return;
        std::vector<Keyed> items;
        for (std::size_t i = begin; i < end; ++i)
            items.push_back({m_value[order[i]], groupAt(order[i], depth), order[i]});
        std::stable_sort(items.begin(), items.end(), [](const Keyed &a, const Keyed &b) { return a.key < b.key; });
        for (std::size_t i = 0; i < items.size();) {
            std::size_t j = i;
            double sum = 0;
            for (; j < items.size() && items[j].key == items[i].key; ++j)
                sum += items[j].value;
            for (std::size_t k = i; k < j; ++k)
                items[k].value = sum / static_cast<double>(j - i);
            i = j;
        }
        // Ties keep the order that the layer has now, a group's being that of its first member.
        std::vector<Index> first(items.size());
        for (std::size_t i = 0; i < items.size(); ++i)
            first[i] = i > 0 && items[i].key == items[i - 1].key ? std::min(first[i - 1], m_g.position[items[i].vertex])
                                                                 : m_g.position[items[i].vertex];
        for (std::size_t i = items.size(); i-- > 1;)
            if (items[i].key == items[i - 1].key)
                first[i - 1] = std::min(first[i - 1], first[i]);
        std::vector<std::size_t> by(items.size());
        std::iota(by.begin(), by.end(), std::size_t{0});
        std::sort(by.begin(), by.end(), [&](std::size_t a, std::size_t b) {
            if (items[a].value != items[b].value)
                return items[a].value < items[b].value;
            if (first[a] != first[b])
                return first[a] < first[b];
            return m_g.position[items[a].vertex] < m_g.position[items[b].vertex];
        });
        std::vector<Index> keys;
        for (std::size_t i = 0; i < by.size(); ++i) {
            order[begin + i] = items[by[i]].vertex;
            keys.push_back(items[by[i]].key);
        }
        for (std::size_t i = 0; i < keys.size();) {
            std::size_t j = i;
            while (j < keys.size() && keys[j] == keys[i])
                ++j;
            if (keys[i] >= 0)
                sortRange(order, begin + i, begin + j, depth + 1);
            i = j;
        }
    }

    Layered &m_g;
    std::vector<double> m_value;
};

} // namespace

bool orderLayers(Layered &g)
{
    initialOrder(g);
    LayerSorter sorter(g);
    const auto layers = static_cast<Index>(g.layers.size());
    // The first sweep also brings the members of groups together, so it is always taken.
    for (Index k = 0; k < layers; ++k)
        sorter.sort(k, g.up);
    g.crossings = countCrossings(g);
    auto best = g.layers;
    int idle = 0;
    for (int sweep = 0; sweep < g.options.sweeps && g.crossings > 0 && idle < 4; ++sweep) {
        if (g.stop.stop_requested())
            return false;
        if (sweep % 2 == 0)
            for (Index k = layers - 2; k >= 0; --k)
                sorter.sort(k, g.down);
        else
            for (Index k = 1; k < layers; ++k)
                sorter.sort(k, g.up);
        const std::int64_t now = countCrossings(g);
        ++idle;
        if (now < g.crossings) {
            g.crossings = now;
            best = g.layers;
            idle = 0;
        }
    }
    g.layers = std::move(best);
    for (const auto &layer : g.layers)
        for (std::size_t i = 0; i < layer.size(); ++i)
            g.position[layer[i]] = static_cast<Index>(i);
    return !g.stop.stop_requested();
}

} // namespace dblame::layered

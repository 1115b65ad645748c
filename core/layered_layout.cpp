// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/layered_layout.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "core/layered_internal.h"

namespace dblame
{

namespace layered
{

namespace
{

Neighbours neighbours(const std::vector<Link> &links, Index count, bool downwards)
{
    Neighbours n;
    n.start.assign(static_cast<std::size_t>(count) + 1, 0);
    for (const Link &l : links)
        ++n.start[(downwards ? l.from : l.to) + 1];
    for (Index v = 0; v < count; ++v)
        n.start[v + 1] += n.start[v];
    n.items.resize(links.size());
    std::vector<Index> next(n.start.begin(), n.start.end() - 1);
    for (const Link &l : links)
        n.items[next[downwards ? l.from : l.to]++] = downwards ? l.to : l.from;
    return n;
}

std::vector<Link> edgeLinks(const Layered &g)
{
    std::vector<Link> links;
    links.reserve(g.routes.size());
    for (const Route &r : g.routes)
        if (r.from >= 0)
            links.push_back({r.from, r.to});
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    return links;
}

// Kahn's order, smallest index first. When only cycles are left, the smallest remaining node goes next and
// the edges that still lead to it are turned around.
void breakCycles(Layered &g)
{
    g.routes.clear();
    for (const LayoutEdge &e : g.input.edges)
        g.routes.push_back(e.from == e.to ? Route{} : Route{e.from, e.to});
    const auto links = edgeLinks(g);
    const Neighbours down = neighbours(links, g.real, true);
    std::vector<Index> waiting(g.real, 0);
    for (const Link &l : links)
        ++waiting[l.to];
    std::priority_queue<Index, std::vector<Index>, std::greater<>> ready;
    for (Index v = 0; v < g.real; ++v)
        if (waiting[v] == 0)
            ready.push(v);
    std::vector<Index> rank(g.real, -1);
    Index smallest = 0;
    while (static_cast<Index>(g.topological.size()) < g.real) {
        if (ready.empty()) {
            while (rank[smallest] >= 0)
                ++smallest;
            ready.push(smallest);
        }
        const Index v = ready.top();
        ready.pop();
        if (rank[v] >= 0)
            continue;
        rank[v] = static_cast<Index>(g.topological.size());
        g.topological.push_back(v);
        for (Index to : down.of(v))
            if (--waiting[to] == 0 && rank[to] < 0)
                ready.push(to);
    }
    for (Route &r : g.routes)
        if (r.from >= 0 && rank[r.from] > rank[r.to]) {
            std::swap(r.from, r.to);
            r.reversed = true;
        }
    g.work += g.real + static_cast<std::int64_t>(links.size());
}

void longestPaths(Layered &g)
{
    const auto links = edgeLinks(g);
    const Neighbours up = neighbours(links, g.real, false);
    const Neighbours down = neighbours(links, g.real, true);
    g.layerOf.assign(g.real, 0);
    // Weights and what is computed from weights alone have no place of their own: they stand before their
    // reader. So do other sources, inputs that are read late.
    std::vector<char> weightOnly(g.real, 0);
    for (Index v : g.topological) {
        const auto ups = up.of(v);
        weightOnly[v] = ups.empty() ? g.input.nodes[v].weight
                                    : std::all_of(ups.begin(), ups.end(), [&](Index u) { return weightOnly[u] != 0; });
        for (Index u : ups)
            g.layerOf[v] = std::max(g.layerOf[v], g.layerOf[u] + 1);
    }
    for (auto it = g.topological.rbegin(); it != g.topological.rend(); ++it) {
        const auto downs = down.of(*it);
        if (downs.empty() || !(weightOnly[*it] || up.of(*it).empty()))
            continue;
        Index nearest = g.layerOf[downs.front()];
        for (Index to : downs)
            nearest = std::min(nearest, g.layerOf[to]);
        g.layerOf[*it] = nearest - 1;
    }
    // Pulling may have emptied layers.
    const Index top = g.real ? *std::max_element(g.layerOf.begin(), g.layerOf.end()) : 0;
    std::vector<Index> used(static_cast<std::size_t>(top) + 1, 0);
    for (Index layer : g.layerOf)
        used[layer] = 1;
    Index next = 0;
    for (Index &u : used)
        u = u ? next++ : -1;
    for (Index &layer : g.layerOf)
        layer = used[layer];
    g.work += 2 * (g.real + static_cast<std::int64_t>(links.size()));
}

// How far each source's chain must reach if edges longer than `longest` take a lane.
std::int64_t chainReach(const Layered &g, int longest, std::vector<Index> &reach)
{
    reach.assign(g.real, 0);
    for (const Route &r : g.routes) {
        if (r.from < 0)
            continue;
        const Index span = g.layerOf[r.to] - g.layerOf[r.from];
        if (span <= longest)
            reach[r.from] = std::max(reach[r.from], span);
    }
    std::int64_t total = 0;
    for (Index r : reach)
        total += std::max(0, r - 1);
    return total;
}

void addChains(Layered &g)
{
    int longest = std::max(1, g.options.longestChain);
    std::vector<Index> reach;
    // Many long edges (every block reads the same few values) would still cost more dummies than the drawing
    // has nodes: shorten what counts as long until the work is in proportion.
    const std::int64_t budget = 20000 + 8 * static_cast<std::int64_t>(g.real);
    while (chainReach(g, longest, reach) > budget && longest > 1)
        longest /= 2;
    g.groupOf.resize(g.real);
    for (Index v = 0; v < g.real; ++v)
        g.groupOf[v] = g.input.nodes[v].group;
    g.chainStart.resize(g.real);
    g.chainEnd.resize(g.real);
    for (Index v = 0; v < g.real; ++v) {
        g.chainStart[v] = g.vertexCount();
        for (Index i = 1; i < reach[v]; ++i) {
            g.links.push_back({i == 1 ? v : g.vertexCount() - 1, g.vertexCount()});
            g.layerOf.push_back(g.layerOf[v] + i);
            g.groupOf.push_back(-2); // no edge has claimed it yet
        }
        g.chainEnd[v] = g.vertexCount();
    }
    for (Route &r : g.routes) {
        if (r.from < 0)
            continue;
        r.lane = g.layerOf[r.to] - g.layerOf[r.from] > longest;
        if (r.lane)
            continue;
        const Index last = g.carrier(r.from, g.layerOf[r.to] - 1);
        g.links.push_back({last, r.to});
        if (last != r.from) {
            const Index common = g.commonGroup(g.groupOf[r.from], g.groupOf[r.to]);
            g.groupOf[last] = g.groupOf[last] == -2 ? common : g.commonGroup(g.groupOf[last], common);
        }
    }
    for (Index v = 0; v < g.real; ++v)
        for (Index d = g.chainEnd[v] - 2; d >= g.chainStart[v]; --d)
            g.groupOf[d] = g.groupOf[d] == -2 ? g.groupOf[d + 1] : g.commonGroup(g.groupOf[d], g.groupOf[d + 1]);
    std::sort(g.links.begin(), g.links.end());
    g.links.erase(std::unique(g.links.begin(), g.links.end()), g.links.end());
    g.up = neighbours(g.links, g.vertexCount(), false);
    g.down = neighbours(g.links, g.vertexCount(), true);
    g.work += g.vertexCount() + static_cast<std::int64_t>(g.links.size());
}

} // namespace

Index Layered::commonGroup(Index a, Index b) const
{
    while (a != b) {
        if (a < 0 || b < 0)
            return -1;
        Index &deeper = groupDepth[a] >= groupDepth[b] ? a : b;
        deeper = input.groups[deeper].parent;
    }
    return a;
}

int Layered::groupsLeft(Index a, Index b) const
{
    const Index common = commonGroup(a, b);
    return (a < 0 ? 0 : groupDepth[a] + 1) - (common < 0 ? 0 : groupDepth[common] + 1);
}

bool assignLayers(Layered &g)
{
    g.groupDepth.assign(g.input.groups.size(), 0);
    for (std::size_t i = 0; i < g.input.groups.size(); ++i)
        if (g.input.groups[i].parent >= 0)
            g.groupDepth[i] = g.groupDepth[g.input.groups[i].parent] + 1;
    breakCycles(g);
    if (g.stop.stop_requested())
        return false;
    longestPaths(g);
    addChains(g);
    g.before.assign(g.vertexCount(), 0);
    g.after.assign(g.vertexCount(), 0);
    for (Index v = 0; v < g.real; ++v) {
        g.before[v] = g.crossSize(v) / 2 + g.input.nodes[v].sideRoom;
        g.after[v] = g.crossSize(v) / 2;
    }
    return !g.stop.stop_requested();
}

} // namespace layered

LayoutResult layoutLayered(const LayoutInput &input, const LayoutOptions &options, std::stop_token stop)
{
    LayoutResult result;
    layered::Layered g(input, options, std::move(stop));
    result.cancelled = !(layered::assignLayers(g) && layered::orderLayers(g) && layered::placeAcross(g) &&
                         layered::placeAlong(g, result));
    result.crossings = g.crossings;
    result.dummies = g.vertexCount() - g.real;
    result.work = g.work;
    return result;
}

} // namespace dblame

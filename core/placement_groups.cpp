// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/placement_groups.h"

#include <algorithm>
#include <numeric>

#include "core/graph_query.h"
#include "core/site_names.h"

namespace dblame
{

void SpecMap::set(SpecKey key, AskedSpec spec)
{
    const auto [it, isNew] = m_index.try_emplace(key, m_entries.size());
    if (isNew)
        m_entries.push_back({key, std::move(spec)});
    else
        m_entries[it->second].spec = std::move(spec);
}

const AskedSpec *SpecMap::find(SpecKey key) const
{
    const auto it = m_index.find(key);
    return it == m_index.end() ? nullptr : &m_entries[it->second].spec;
}

bool sameGridAsked(const TensorSpec &a, const TensorSpec &b)
{
    const bool dynamicA = a.observer == ObserverKind::Dynamic;
    const bool dynamicB = b.observer == ObserverKind::Dynamic;
    return a.type == b.type && dynamicA == dynamicB && a.quantMin == b.quantMin && a.quantMax == b.quantMax &&
           a.scheme == b.scheme && a.minValue == b.minValue && a.granularity == b.granularity && a.axis == b.axis &&
           a.blockSizes == b.blockSizes && a.low == b.low && a.high == b.high &&
           a.powerOfTwoScale == b.powerOfTwoScale && a.palette == b.palette;
}

namespace
{

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// Entries in the order the peer walks them, with the union-find over them. Indices below are positions in that order.
class Groups
{
public:
    Groups(const Graph &graph, const SpecMap &asked, const GroupingOptions &options)
        : m_graph(graph), m_options(options), m_order(asked.entries().size())
    {
        std::iota(m_order.begin(), m_order.end(), std::size_t{0});
        const auto &entries = asked.entries();
        std::stable_sort(m_order.begin(), m_order.end(),
                         [&](std::size_t a, std::size_t b) { return place(entries[a].key) < place(entries[b].key); });
        m_edgesOf.resize(graph.values.size());
        m_outputOf.assign(graph.values.size(), kNone);
        for (std::size_t i = 0; i < m_order.size(); ++i) {
            const auto &entry = entries[m_order[i]];
            m_keys.push_back(entry.key);
            m_specs.push_back(&entry.spec);
            if (entry.key.isOutput())
                m_outputOf[entry.key.value.get()] = i;
            else
                m_edgesOf[entry.key.value.get()].push_back(i);
        }
        m_parent.resize(m_order.size());
        std::iota(m_parent.begin(), m_parent.end(), std::size_t{0});
        m_settled.assign(graph.values.size(), 0);
    }

    Result<void> run()
    {
        m_target.assign(m_keys.size(), kNone);
        for (std::size_t i = 0; i < m_keys.size(); ++i)
            if (const auto *shared = std::get_if<SharedWith>(m_specs[i])) {
                m_target[i] = indexOf(shared->key);
                if (m_target[i] == kNone)
                    return fail(ErrorCode::Internal, m_graph.value(m_keys[i].value).name,
                                "shares the observer of a tensor for which nothing is asked");
            }
        for (std::size_t i = 0; i < m_keys.size(); ++i) {
            if (!m_keys[i].isOutput())
                joinSites(i);
            if (m_target[i] != kNone)
                join(m_target[i], i);
        }
        chooseSpecs();
        return {};
    }

    // Index of a key, kNone when nothing is asked there.
    [[nodiscard]] std::size_t indexOf(SpecKey key) const
    {
        if (!key.value.valid() || key.value.get() >= m_outputOf.size())
            return kNone;
        if (key.isOutput())
            return m_outputOf[key.value.get()];
        // Keys of one value are in order of their readers.
        const auto &edges = m_edgesOf[key.value.get()];
        const auto it = std::lower_bound(edges.begin(), edges.end(), key.reader,
                                         [&](std::size_t i, NodeId reader) { return m_keys[i].reader < reader; });
        return it == edges.end() || m_keys[*it].reader != key.reader ? kNone : *it;
    }

    // The group of a key: the position of its first member; kNone when nothing is asked of the group.
    [[nodiscard]] std::size_t group(std::size_t i) const { return m_groupSpec[m_group[i]] ? m_group[i] : kNone; }
    [[nodiscard]] const TensorSpec &specOf(std::size_t group) const { return *m_groupSpec[group]; }
    [[nodiscard]] std::size_t size() const { return m_keys.size(); }
    [[nodiscard]] std::size_t entryOf(std::size_t i) const { return m_order[i]; }

private:
    // Position of a key's operator (graph inputs before all), inputs before outputs.
    [[nodiscard]] std::pair<std::int32_t, int> place(const SpecKey &key) const
    {
        if (!key.isOutput())
            return {key.reader.index, 0};
        const Value &value = m_graph.value(key.value);
        return {value.producer.index, 1 + value.outputIndex};
    }

    std::size_t find(std::size_t i)
    {
        while (m_parent[i] != i)
            i = m_parent[i] = m_parent[m_parent[i]];
        return i;
    }

    // The concrete spec behind a key, following shares to the root of their group; nullptr for none. A circle of
    // shares asks for nothing.
    const TensorSpec *unwrap(std::size_t i)
    {
        for (std::size_t steps = 0; steps <= m_keys.size(); ++steps) {
            if (m_target[i] == kNone)
                return std::get_if<TensorSpec>(m_specs[i]);
            const std::size_t next = find(m_target[i]);
            if (next == i)
                return nullptr;
            i = next;
        }
        return nullptr;
    }

    void join(std::size_t parent, std::size_t child)
    {
        const std::size_t p = find(parent);
        const std::size_t c = find(child);
        // A root that already shares with the child's root becomes its child: the other way round would be a circle.
        if (m_target[p] == c)
            m_parent[p] = c;
        else
            m_parent[c] = p;
    }

    // Sites of one tensor that ask for the same grid are one observer: other readers first, then the producer.
    void joinSites(std::size_t edge)
    {
        const SpecKey key = m_keys[edge];
        const std::size_t value = key.value.get();
        if (m_settled[value] || (m_options.keepsApart && m_options.keepsApart(key.reader)))
            return;
        const TensorSpec *mine = unwrap(edge);
        if (!mine)
            return;
        const TensorSpec asked = *mine; // as it was before joining: a join can change what a share leads to
        const auto tryJoin = [&](std::size_t other) {
            const TensorSpec *theirs = unwrap(other);
            if (theirs && m_options.joinable(*theirs, asked))
                join(other, edge);
        };
        for (std::size_t other : m_edgesOf[value])
            if (other != edge)
                tryJoin(other);
        if (m_outputOf[value] != kNone)
            tryJoin(m_outputOf[value]);
        // Once all sites of a tensor are one group, the rest of its readers have nothing to add.
        const std::size_t root = find(edge);
        const auto &edges = m_edgesOf[value];
        m_settled[value] = (m_outputOf[value] == kNone || find(m_outputOf[value]) == root) &&
                           std::all_of(edges.begin(), edges.end(), [&](std::size_t i) { return find(i) == root; });
    }

    void chooseSpecs()
    {
        m_group.assign(m_keys.size(), kNone);
        m_groupSpec.assign(m_keys.size(), nullptr);
        std::vector<std::size_t> firstOf(m_keys.size(), kNone);
        for (std::size_t i = 0; i < m_keys.size(); ++i) {
            std::size_t &first = firstOf[find(i)];
            if (first == kNone) {
                first = i;
                m_groupSpec[i] = unwrap(i);
            }
            m_group[i] = first;
        }
    }

    const Graph &m_graph;
    const GroupingOptions &m_options;
    std::vector<std::size_t> m_order;
    std::vector<SpecKey> m_keys;
    std::vector<const AskedSpec *> m_specs;
    std::vector<std::vector<std::size_t>> m_edgesOf; // by value
    std::vector<std::size_t> m_outputOf;             // by value
    std::vector<std::size_t> m_target;               // what a share names
    std::vector<std::size_t> m_parent;
    std::vector<char> m_settled; // by value
    std::vector<std::size_t> m_group;
    std::vector<const TensorSpec *> m_groupSpec;
};

// Calls of the observers, made operator by operator as the peer makes them.
class Insertion
{
public:
    Insertion(const Graph &graph, Groups &groups)
        : m_graph(graph), m_groups(groups), m_depends(dependsOnUserInput(graph))
    {
        m_outputSite.assign(graph.values.size(), -1);
        m_edgeSites.resize(graph.values.size());
        m_observerOf.assign(groups.size(), -1);
        for (const GraphOutput &output : graph.outputs)
            if (output.value.valid())
                m_results.push_back(output.value);
        std::sort(m_results.begin(), m_results.end());
    }

    Placement run()
    {
        for (const GraphInput &input : m_graph.inputs)
            if (input.value.valid())
                insertOutput(input.value);
        for (std::size_t n = 0; n < m_graph.nodes.size(); ++n) {
            const Node &node = m_graph.nodes[n];
            const auto arguments = node.inputValues();
            for (ValueId argument : arguments)
                insertInput(argument, NodeId(n), !arguments.empty() && argument == arguments.front());
            for (ValueId value : node.outputValues())
                insertOutput(value);
        }
        sortSites();
        for (PlacedSite &site : m_placement.sites)
            describe(site);
        name();
        return std::move(m_placement);
    }

    [[nodiscard]] int observerOfGroup(std::size_t group) const { return m_observerOf[group]; }

private:
    int addSite(ValueId value, int after, std::size_t group)
    {
        int &observer = m_observerOf[group];
        if (observer < 0) {
            observer = static_cast<int>(m_placement.observers.size());
            m_placement.observers.push_back(
                {m_groups.specOf(group), "activation_post_process_" + std::to_string(m_placement.sites.size())});
        }
        PlacedSite site;
        site.value = value;
        site.after = after;
        site.instance = observer;
        m_placement.sites.push_back(std::move(site));
        return static_cast<int>(m_placement.sites.size()) - 1;
    }

    void insertInput(ValueId value, NodeId reader, bool isFirst)
    {
        const std::size_t key = m_groups.indexOf(edgeKey(value, reader));
        const std::size_t group = key == kNone ? kNone : m_groups.group(key);
        if (group == kNone || (isFirst && writesBuffer(m_graph.node(reader), value)))
            return;
        const int output = m_outputSite[value.get()];
        auto &sites = m_placement.sites;
        if (output >= 0 && sites[static_cast<std::size_t>(output)].instance == m_observerOf[group])
            return; // reads it already
        auto &here = m_edgeSites[value.get()];
        const auto same = std::find_if(here.begin(), here.end(), [&](int s) {
            return sites[static_cast<std::size_t>(s)].instance == m_observerOf[group];
        });
        int site = same == here.end() ? -1 : *same;
        if (site < 0) {
            site = addSite(value, output, group);
            sites[static_cast<std::size_t>(site)].role = SiteRole::Input;
            here.push_back(site);
        }
        auto &readers = sites[static_cast<std::size_t>(site)].readers;
        if (readers.empty() || readers.back() != reader)
            readers.push_back(reader);
        if (output >= 0)
            std::erase(sites[static_cast<std::size_t>(output)].readers, reader);
    }

    void insertOutput(ValueId value)
    {
        const std::size_t key = m_groups.indexOf(outputKey(value));
        const std::size_t group = key == kNone ? kNone : m_groups.group(key);
        if (group == kNone)
            return;
        const int site = addSite(value, -1, group);
        PlacedSite &placed = m_placement.sites[static_cast<std::size_t>(site)];
        placed.readers = m_graph.readers(value);
        std::sort(placed.readers.begin(), placed.readers.end());
        placed.readers.erase(std::unique(placed.readers.begin(), placed.readers.end()), placed.readers.end());
        placed.readByOutput = std::binary_search(m_results.begin(), m_results.end(), value);
        m_outputSite[value.get()] = site;
    }

    // The destination of an in-place operator, where it is a buffer, stays what it is.
    [[nodiscard]] bool writesBuffer(const Node &node, ValueId destination) const
    {
        const std::string op = node.opName();
        if (op.size() < 2 || op.back() != '_' || op.ends_with("__") || m_depends[destination.get()])
            return false;
        std::vector<ValueId> open{destination};
        std::vector<char> seen(m_graph.values.size(), 0);
        while (!open.empty()) {
            const ValueId value = open.back();
            open.pop_back();
            if (seen[value.get()])
                continue;
            seen[value.get()] = 1;
            if (const GraphInput *input = m_graph.input(value); input && input->kind == InputKind::Buffer)
                return true;
            if (const Node *producer = m_graph.producer(value))
                for (ValueId v : producer->inputValues())
                    open.push_back(v);
        }
        return false;
    }

    // Execution order: a call comes right after the tensor it reads.
    void sortSites()
    {
        auto &sites = m_placement.sites;
        std::vector<std::int64_t> inputPlace(m_graph.values.size(), 0);
        for (std::size_t i = 0; i < m_graph.inputs.size(); ++i)
            if (m_graph.inputs[i].value.valid())
                inputPlace[m_graph.inputs[i].value.get()] =
                    static_cast<std::int64_t>(i) - static_cast<std::int64_t>(m_graph.inputs.size());
        std::vector<std::size_t> order(sites.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const auto place = [&](std::size_t i) {
            const Value &value = m_graph.value(sites[i].value);
            const std::int64_t position =
                value.producer.valid() ? value.producer.index : inputPlace[sites[i].value.get()];
            return std::tuple(position, value.outputIndex, sites[i].after >= 0);
        };
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
        std::vector<int> newIndex(sites.size());
        std::vector<PlacedSite> sorted;
        sorted.reserve(sites.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            newIndex[order[i]] = static_cast<int>(i);
            sorted.push_back(std::move(sites[order[i]]));
        }
        for (PlacedSite &site : sorted)
            if (site.after >= 0)
                site.after = newIndex[static_cast<std::size_t>(site.after)];
        sites = std::move(sorted);
    }

    // Role, owner and input index, as recognizeSites decides them for a converted model.
    void describe(PlacedSite &site) const
    {
        if (!m_depends[site.value.get()])
            site.role = SiteRole::Weight;
        if (site.role == SiteRole::Output) {
            site.owner = m_graph.value(site.value).producer;
            return;
        }
        if (site.readers.empty())
            return;
        ValueId through = site.value;
        NodeId reader = site.readers.front();
        while (site.role == SiteRole::Weight && isElementMover(m_graph.node(reader))) {
            const auto outputs = m_graph.node(reader).outputValues();
            if (outputs.empty() || m_graph.readers(outputs.front()).empty())
                break;
            through = outputs.front();
            reader = m_graph.readers(through).front();
        }
        site.owner = reader;
        site.inputIndex = inputIndex(reader, through);
    }

    [[nodiscard]] int inputIndex(NodeId reader, ValueId value) const
    {
        const auto arguments = distinctTensorArguments(m_graph, m_graph.node(reader));
        const auto it = std::find(arguments.begin(), arguments.end(), value);
        return it == arguments.end() ? -1 : static_cast<int>(it - arguments.begin());
    }

    void name()
    {
        std::vector<QuantSite> named;
        std::vector<std::size_t> siteOf;
        auto &sites = m_placement.sites;
        for (std::size_t i = 0; i < sites.size(); ++i) {
            const PlacedSite &site = sites[i];
            QuantSite one;
            one.role = site.role;
            one.owner = site.owner;
            one.inputIndex = site.inputIndex;
            one.source = one.result = site.value;
            named.push_back(one);
            siteOf.push_back(i);
            const bool split =
                site.role == SiteRole::Input &&
                m_placement.observers[static_cast<std::size_t>(site.instance)].spec.observer != ObserverKind::Dynamic;
            for (std::size_t r = 1; split && r < site.readers.size(); ++r) {
                one.owner = site.readers[r];
                one.inputIndex = inputIndex(one.owner, site.value);
                named.push_back(one);
                siteOf.push_back(i);
            }
        }
        nameSites(m_graph, named);
        for (std::size_t k = 0; k < named.size(); ++k) {
            PlacedSite &site = sites[siteOf[k]];
            if (site.id.empty())
                site.id = named[k].id;
            if (site.role == SiteRole::Input && site.readers.size() > 1)
                site.readerIds.push_back(named[k].id);
        }
    }

    const Graph &m_graph;
    Groups &m_groups;
    std::vector<char> m_depends;
    std::vector<ValueId> m_results; // sorted
    std::vector<int> m_outputSite;  // by value
    std::vector<std::vector<int>> m_edgeSites;
    std::vector<int> m_observerOf; // by group
    Placement m_placement;
};

} // namespace

Result<GroupedPlacement> placeObservers(const Graph &graph, const SpecMap &asked, const GroupingOptions &options)
{
    Groups groups(graph, asked, options);
    if (auto done = groups.run(); !done)
        return tl::unexpected(done.error());
    Insertion insertion(graph, groups);
    GroupedPlacement result;
    result.placement = insertion.run();
    result.observerOf.assign(groups.size(), -1);
    for (std::size_t i = 0; i < groups.size(); ++i)
        if (const std::size_t group = groups.group(i); group != kNone)
            result.observerOf[groups.entryOf(i)] = insertion.observerOfGroup(group);
    return result;
}

} // namespace dblame

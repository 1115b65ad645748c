// SPDX-License-Identifier: GPL-3.0-or-later
//
// coreai-opt's graph mode: annotate, group, insert, then what it does to the inserted quantizers (axes that an operator
// breaks, blocks that do not divide) and how a saved candidate shows them.
#include "core/placement_coreai.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "core/coreai_annotation.h"
#include "core/graph_query.h"
#include "core/placement_coreai_words.h"
#include "core/site_names.h"

namespace dblame
{

namespace
{

// coreai-opt hands torchao neither scheme nor granularity: sites of one tensor join when type and range agree.
bool joinable(const TensorSpec &a, const TensorSpec &b)
{
    return a.type == b.type && a.quantMin == b.quantMin && a.quantMax == b.quantMax;
}

enum class AxisChange : std::uint8_t { None, Resized, Reordered, Any };

AxisChange axisChange(const std::string &target)
{
    static const std::set<std::string, std::less<>> kResized = {
        "aten.max_pool1d.default",          "aten.max_pool2d.default",
        "aten.max_pool3d.default",          "aten.avg_pool1d.default",
        "aten.avg_pool2d.default",          "aten.avg_pool3d.default",
        "aten.adaptive_avg_pool1d.default", "aten.adaptive_avg_pool2d.default",
        "aten.adaptive_avg_pool3d.default", "aten.mean.dim"};
    static const std::set<std::string, std::less<>> kReordered = {"aten.transpose.int", "aten.t.default",
                                                                  "aten.permute.default"};
    static const std::set<std::string, std::less<>> kAny = {"aten.flatten.using_ints", "aten.reshape.default",
                                                            "aten.view.default", "aten.unsqueeze.default"};
    if (kResized.contains(target))
        return AxisChange::Resized;
    if (kReordered.contains(target))
        return AxisChange::Reordered;
    return kAny.contains(target) ? AxisChange::Any : AxisChange::None;
}

// The dimension stays where it is.
bool keepsAxis(const Node &node, std::int64_t axis, std::int64_t rank)
{
    const auto wrap = [rank](std::int64_t v) { return v < 0 ? v + rank : v; };
    const std::string op = node.opName();
    if (op == "t")
        return axis != 0 && axis != 1;
    if (op == "transpose")
        return axis != wrap(intArgument(node, "dim0").value_or(0)) &&
               axis != wrap(intArgument(node, "dim1").value_or(0));
    const Argument *dims = node.argument("dims");
    const auto *list = dims ? std::get_if<IntListArg>(dims) : nullptr;
    if (!list || static_cast<std::size_t>(axis) >= list->values.size())
        return false;
    const auto *to = std::get_if<std::int64_t>(&list->values[static_cast<std::size_t>(axis)]);
    return to && *to == axis;
}

class GraphPlacement
{
public:
    GraphPlacement(const Graph &graph, const CoreAiConfig &config, const CoreAiOptions &options)
        : m_graph(graph), m_config(config), m_options(options), m_fx(graph), m_tree(graph)
    {
    }

    Result<Placement> run()
    {
        auto annotation = annotateCoreAi(m_fx, m_tree, m_config, m_options);
        if (!annotation)
            return tl::unexpected(annotation.error());
        GroupingOptions grouping;
        grouping.joinable = joinable;
        auto grouped = placeObservers(m_graph, annotation->asked, grouping);
        if (!grouped)
            return tl::unexpected(grouped.error());
        m_placement = std::move(grouped->placement);
        m_placement.warnings = std::move(annotation->warnings);
        forcePerTensor();
        if (auto checked = checkUnits(); !checked)
            return tl::unexpected(checked.error());
        placeAsRewritten();
        nameLikeCandidates();
        noteDefects();
        m_placement.leftFloat = floatOperators(m_fx, *annotation, m_placement, m_indivisible);
        return std::move(m_placement);
    }

private:
    [[nodiscard]] PlacedObserver &observerOf(const PlacedSite &site)
    {
        return m_placement.observers[static_cast<std::size_t>(site.instance)];
    }

    // One observer on both sides of an operator that moves or resizes its axis cannot keep the axis.
    void forcePerTensor()
    {
        for (std::size_t n = 0; n < m_graph.nodes.size(); ++n) {
            const Node &node = m_graph.nodes[n];
            const AxisChange change = axisChange(node.target);
            if (change == AxisChange::None)
                continue;
            for (const PlacedSite &before : m_placement.sites) {
                if (std::find(before.readers.begin(), before.readers.end(), NodeId(n)) == before.readers.end())
                    continue;
                const auto outputs = node.outputValues();
                for (const PlacedSite &after : m_placement.sites)
                    if (after.instance == before.instance && !outputs.empty() && after.value == outputs.front() &&
                        !axisIsSafe(observerOf(before).spec, before.value, node, change))
                        makePerTensor(observerOf(before).spec, node);
            }
        }
    }

    [[nodiscard]] bool axisIsSafe(const TensorSpec &spec, ValueId input, const Node &node, AxisChange change) const
    {
        if (spec.granularity == Granularity::PerTensor)
            return true;
        const auto from = m_fx.shape(m_fx.ofValue(input));
        const auto to = m_fx.shape(m_fx.ofValue(node.outputValues().front()));
        if (from.size() != to.size() || change == AxisChange::Any)
            return false;
        const auto rank = static_cast<std::int64_t>(from.size());
        std::vector<std::int64_t> axes;
        if (spec.granularity == Granularity::PerBlock) {
            axes.resize(from.size());
            std::iota(axes.begin(), axes.end(), 0);
        } else if (spec.axis) {
            axes = {*spec.axis < 0 ? *spec.axis + rank : *spec.axis};
        } else {
            return false;
        }
        return std::all_of(axes.begin(), axes.end(), [&](std::int64_t axis) {
            if (axis < 0 || axis >= rank)
                return false;
            const auto at = static_cast<std::size_t>(axis);
            return change == AxisChange::Resized ? from[at] == to[at] : keepsAxis(node, axis, rank);
        });
    }

    void makePerTensor(TensorSpec &spec, const Node &node)
    {
        m_placement.warnings.push_back(node.name +
                                       ": the observer on both of its sides becomes per tensor, because the "
                                       "operator moves or resizes the axis (" +
                                       spec.text() + " was asked)");
        spec.granularity = Granularity::PerTensor;
        spec.axis.reset();
        spec.blockSizes.clear();
    }

    // Axes that a tensor lacks are errors; blocks that do not divide it take the quantizer away.
    Result<void> checkUnits()
    {
        std::set<int> removed;
        for (const PlacedSite &site : m_placement.sites) {
            const TensorSpec &spec = observerOf(site).spec;
            const auto shape = m_fx.shape(m_fx.ofValue(site.value));
            if (const auto misfit = misfitWords(spec, shape))
                return fail(ErrorCode::Usage, m_graph.value(site.value).name, *misfit);
            const auto words = indivisibleWords(spec, shape);
            if (!words)
                continue;
            m_indivisible.emplace(site.value, *words);
            if (removed.insert(site.instance).second)
                m_placement.warnings.push_back(m_graph.value(site.value).name + ": stays float, " + *words +
                                               "; coreai-opt says so in its log only");
        }
        removeObservers(m_placement, removed);
        return {};
    }

    // A convolution before a batch norm is rewritten: its weight is quantized after scaling, at the convolution, one
    // site per convolution even where they share the parameter.
    void placeAsRewritten()
    {
        std::vector<PlacedSite> sites;
        std::vector<int> newIndex;
        std::vector<std::int64_t> rewrittenAt; // position of the convolution, -1 where nothing is rewritten
        for (PlacedSite &site : m_placement.sites) {
            newIndex.push_back(static_cast<int>(sites.size()));
            std::vector<NodeId> others;
            for (const NodeId reader : site.readers) {
                if (addsAfterNorm(site, reader))
                    continue; // the rewritten form adds the bias after the convolution, in float
                if (!scalesWeight(site, reader)) {
                    others.push_back(reader);
                    continue;
                }
                PlacedSite own = site;
                own.readers = {reader};
                own.readByOutput = false;
                own.owner = reader;
                sites.push_back(std::move(own));
                rewrittenAt.push_back(reader.index);
            }
            if (others.size() == site.readers.size() || !others.empty()) {
                newIndex.back() = static_cast<int>(sites.size());
                site.readers = std::move(others);
                sites.push_back(std::move(site));
                rewrittenAt.push_back(-1);
            }
        }
        for (PlacedSite &site : sites)
            if (site.after >= 0)
                site.after = newIndex[static_cast<std::size_t>(site.after)];
        m_placement.sites = std::move(sites);
        sortSites(rewrittenAt);
        dropIdleObservers(m_placement);
    }

    [[nodiscard]] bool scalesWeight(const PlacedSite &site, NodeId reader) const
    {
        const int entry = m_fx.ofNode(reader);
        return m_graph.input(site.value) && batchNormAfter(m_fx, entry) >= 0 &&
               valueArgument(m_graph.node(reader), "weight") == site.value;
    }

    [[nodiscard]] bool addsAfterNorm(const PlacedSite &site, NodeId reader) const
    {
        return m_graph.input(site.value) && batchNormAfter(m_fx, m_fx.ofNode(reader)) >= 0 &&
               valueArgument(m_graph.node(reader), "bias") == site.value;
    }

    void sortSites(const std::vector<std::int64_t> &rewrittenAt)
    {
        auto &sites = m_placement.sites;
        std::vector<std::size_t> order(sites.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        // Twice the node's position, so that what stands before an operator sorts after its predecessor's results.
        const auto place = [&](std::size_t i) {
            if (rewrittenAt[i] >= 0)
                return 2 * rewrittenAt[i] - 1;
            const NodeId producer = m_graph.value(sites[i].value).producer;
            return producer.valid() ? 2 * std::int64_t{producer.index} : -2;
        };
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
        // Calls on one tensor are each put right after it: the one that was put last runs first.
        const auto alike = [&](std::size_t a, std::size_t b) {
            return sites[a].value == sites[b].value && (sites[a].after >= 0) == (sites[b].after >= 0) &&
                   rewrittenAt[a] < 0 && rewrittenAt[b] < 0;
        };
        for (auto first = order.begin(); first != order.end();) {
            const auto last = std::find_if(first, order.end(), [&](std::size_t i) { return !alike(*first, i); });
            std::reverse(first, last == first ? first + 1 : last);
            first = last == first ? first + 1 : last;
        }
        std::vector<int> newIndex(sites.size());
        std::vector<PlacedSite> sorted;
        for (std::size_t i = 0; i < order.size(); ++i) {
            newIndex[order[i]] = static_cast<int>(i);
            sorted.push_back(std::move(sites[order[i]]));
        }
        for (PlacedSite &site : sorted)
            if (site.after >= 0)
                site.after = newIndex[static_cast<std::size_t>(site.after)];
        sites = std::move(sorted);
    }

    // A saved candidate shows every activation's quantizer as the output site of the tensor it reads.
    void nameLikeCandidates()
    {
        for (PlacedSite &site : m_placement.sites)
            if (site.role == SiteRole::Input) {
                site.role = SiteRole::Output;
                site.owner = m_graph.value(site.value).producer;
                site.inputIndex = -1;
            }
        nameSitesOf(m_graph, m_placement);
    }

    void noteDefects()
    {
        constexpr double kForcedEps = 1e-5;
        if (m_options.corrected)
            return;
        for (int i = 0; i < m_fx.size(); ++i) {
            const int norm = m_fx.isCall(i) ? batchNormAfter(m_fx, i) : -1;
            if (norm < 0)
                continue;
            const NodeId node = m_fx.at(norm).node;
            const auto eps = numberArgument(m_graph.node(node), "eps");
            if (eps && *eps != kForcedEps)
                m_placement.defects.push_back({2, node, epsWords(*eps)});
        }
        std::set<int> seen;
        bool averages = false;
        for (const PlacedSite &site : m_placement.sites) {
            const TensorSpec &spec = observerOf(site).spec;
            averages = averages || (site.role != SiteRole::Weight && spec.observer == ObserverKind::MovingAverage);
            if (site.role == SiteRole::Weight && spec.granularity == Granularity::PerChannel && spec.axis == 0 &&
                site.owner.valid() && isConvTranspose(m_fx, m_fx.ofNode(site.owner)) &&
                seen.insert(site.instance).second)
                m_placement.defects.push_back({10, site.owner, transposedAxisWords()});
        }
        if (averages)
            m_placement.defects.push_back({8, NodeId{}, averagingWords()});
    }

    const Graph &m_graph;
    const CoreAiConfig &m_config;
    const CoreAiOptions &m_options;
    CoreAiGraph m_fx;
    ModuleTree m_tree;
    Placement m_placement;
    std::map<ValueId, std::string> m_indivisible;
};

} // namespace

void removeObservers(Placement &placement, const std::set<int> &observers)
{
    if (observers.empty())
        return;
    std::vector<int> newSite(placement.sites.size(), -1);
    std::vector<PlacedSite> sites;
    for (std::size_t i = 0; i < placement.sites.size(); ++i)
        if (!observers.contains(placement.sites[i].instance)) {
            newSite[i] = static_cast<int>(sites.size());
            sites.push_back(placement.sites[i]);
        }
    // What stood after a removed site stands after what that one stood after.
    for (PlacedSite &site : sites) {
        while (site.after >= 0 && newSite[static_cast<std::size_t>(site.after)] < 0)
            site.after = placement.sites[static_cast<std::size_t>(site.after)].after;
        if (site.after >= 0)
            site.after = newSite[static_cast<std::size_t>(site.after)];
    }
    // Readers of a removed site read what it read.
    for (const PlacedSite &gone : placement.sites) {
        if (!observers.contains(gone.instance))
            continue;
        int before = gone.after;
        while (before >= 0 && newSite[static_cast<std::size_t>(before)] < 0)
            before = placement.sites[static_cast<std::size_t>(before)].after;
        if (before < 0)
            continue;
        PlacedSite &heir = sites[static_cast<std::size_t>(newSite[static_cast<std::size_t>(before)])];
        heir.readers.insert(heir.readers.end(), gone.readers.begin(), gone.readers.end());
        std::sort(heir.readers.begin(), heir.readers.end());
        heir.readers.erase(std::unique(heir.readers.begin(), heir.readers.end()), heir.readers.end());
        heir.readByOutput = heir.readByOutput || gone.readByOutput;
    }
    std::vector<int> newObserver(placement.observers.size(), -1);
    std::vector<PlacedObserver> kept;
    for (std::size_t i = 0; i < placement.observers.size(); ++i)
        if (!observers.contains(static_cast<int>(i))) {
            newObserver[i] = static_cast<int>(kept.size());
            kept.push_back(std::move(placement.observers[i]));
        }
    for (PlacedSite &site : sites)
        site.instance = newObserver[static_cast<std::size_t>(site.instance)];
    placement.sites = std::move(sites);
    placement.observers = std::move(kept);
}

void dropIdleObservers(Placement &placement)
{
    std::set<int> used;
    for (const PlacedSite &site : placement.sites)
        used.insert(site.instance);
    std::set<int> idle;
    for (std::size_t i = 0; i < placement.observers.size(); ++i)
        if (!used.contains(static_cast<int>(i)))
            idle.insert(static_cast<int>(i));
    removeObservers(placement, idle);
}

// A quantizer passes its input on through an operator that returns the same tensor, so whatever reads that tensor later
// reads it, in the saved graph, out of the last quantizer that did: its module owns the site.
void nameSitesOf(const Graph &graph, Placement &placement)
{
    std::vector<QuantSite> named;
    std::vector<std::size_t> siteOf;
    std::vector<int> calls(placement.observers.size(), 0);
    std::map<ValueId, std::string> lastQuantizer;
    std::set<std::string> taken;
    for (std::size_t i = 0; i < placement.sites.size(); ++i) {
        PlacedSite &site = placement.sites[i];
        site.readerIds.clear();
        const auto observer = static_cast<std::size_t>(site.instance);
        const int call = calls[observer]++;
        std::string &last = lastQuantizer[site.value];
        if (site.role == SiteRole::Weight || last.empty()) {
            QuantSite one;
            one.role = site.role;
            one.owner = site.owner;
            one.inputIndex = site.inputIndex;
            one.source = one.result = site.value;
            named.push_back(std::move(one));
            siteOf.push_back(i);
        } else {
            site.id = last + "/out";
            for (int k = 1; !taken.insert(site.id).second; ++k)
                site.id = last + "/out#" + std::to_string(k);
        }
        last = placement.observers[observer].name + (call > 0 ? "@" + std::to_string(call) : std::string());
    }
    nameSites(graph, named);
    for (std::size_t k = 0; k < named.size(); ++k)
        placement.sites[siteOf[k]].id = named[k].id;
}

Result<Placement> placeCoreAi(const Graph &graph, const CoreAiConfig &config, const CoreAiOptions &options)
{
    if (config.mode == CoreAiMode::Eager)
        return placeCoreAiEager(graph, config, options);
    return GraphPlacement(graph, config, options).run();
}

Result<Placement> placeCoreAi(const Graph &graph, const CoreAiConfig &config, bool corrected)
{
    CoreAiOptions options;
    options.corrected = corrected;
    return placeCoreAi(graph, config, options);
}

} // namespace dblame

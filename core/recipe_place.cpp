// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <set>

#include "core/graph_query.h"
#include "core/placement_coreai.h"
#include "core/placement_coreai_words.h"
#include "core/recipe.h"
#include "core/recipe_translate.h"
#include "core/selector_match.h"

namespace dblame
{

namespace
{

bool contains(const std::vector<NodeId> &nodes, NodeId node)
{
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// The site has nothing left that reads it.
bool isIdle(const Placement &placement, std::size_t site)
{
    const PlacedSite &own = placement.sites[site];
    if (!own.readers.empty() || own.readByOutput)
        return false;
    return std::none_of(placement.sites.begin(), placement.sites.end(),
                        [&](const PlacedSite &other) { return other.after == static_cast<int>(site); });
}

void dropSite(Placement &placement, std::size_t site)
{
    const int after = placement.sites[site].after;
    placement.sites.erase(placement.sites.begin() + static_cast<std::ptrdiff_t>(site));
    for (PlacedSite &other : placement.sites) {
        if (other.after == static_cast<int>(site))
            other.after = after;
        else if (other.after > static_cast<int>(site))
            --other.after;
    }
}

bool sameSites(const Placement &a, const Placement &b)
{
    const auto specOf = [](const Placement &of, const PlacedSite &site) -> const TensorSpec & {
        return of.observers[static_cast<std::size_t>(site.instance)].spec;
    };
    return std::equal(a.sites.begin(), a.sites.end(), b.sites.begin(), b.sites.end(),
                      [&](const PlacedSite &mine, const PlacedSite &theirs) {
                          return mine.id == theirs.id && mine.value == theirs.value && mine.readers == theirs.readers &&
                                 mine.readByOutput == theirs.readByOutput && specOf(a, mine) == specOf(b, theirs);
                      });
}

// Overrides as the placements of the quantizers take them.
struct Resolved {
    std::set<NodeId> excluded;
    std::vector<SpecOverride> specs;
};

class RecipePlacement
{
public:
    RecipePlacement(const Graph &graph, const Recipe &recipe, std::vector<std::vector<NodeId>> nodes = {})
        : m_graph(graph), m_recipe(recipe), m_nodes(std::move(nodes))
    {
    }

    Result<Placement> run()
    {
        for (const RecipeOverride &change : m_recipe.overrides) {
            auto nodes = selectNodes(change.selector, m_graph);
            if (!nodes)
                return tl::unexpected(nodes.error());
            m_nodes.push_back(std::move(*nodes));
        }
        auto placement = place();
        if (!placement)
            return placement;
        for (std::size_t i = 0; i < m_recipe.overrides.size(); ++i)
            for (const OverridePart &part : m_recipe.overrides[i].parts)
                if (!part.spec && m_recipe.overrides[i].meaning == OverrideMeaning::FloatHere &&
                    !floatHere(m_graph, *placement, m_nodes[i], part.facet, part.inputIndex))
                    placement->warnings.push_back(m_recipe.overrides[i].text() +
                                                  ": no effect, nothing is quantized there");
        noteFloatWeights(*placement);
        if (m_recipe.kind == RecipeKind::CoreAi) // the others say it themselves
            noteIdleOverrides(*placement);
        return placement;
    }

private:
    // coreai-opt looks for a spec at the operator that decides a site; one given to another operator is never read.
    void noteIdleOverrides(Placement &placement) const
    {
        const auto with = RecipePlacement(m_graph, m_recipe, m_nodes).place();
        for (std::size_t i = 0; with && i < m_recipe.overrides.size(); ++i) {
            const RecipeOverride &change = m_recipe.overrides[i];
            const bool asksQuantizer = change.meaning == OverrideMeaning::AsQuantizer ||
                                       std::any_of(change.parts.begin(), change.parts.end(),
                                                   [](const OverridePart &part) { return part.spec.has_value(); });
            if (!asksQuantizer)
                continue;
            Recipe rest = m_recipe;
            std::vector<std::vector<NodeId>> nodes = m_nodes;
            rest.overrides.erase(rest.overrides.begin() + static_cast<std::ptrdiff_t>(i));
            nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
            const auto without = RecipePlacement(m_graph, rest, std::move(nodes)).place();
            if (without && sameSites(*with, *without))
                placement.warnings.push_back(
                    "override '" + change.text() +
                    "' changes nothing: coreai-opt has no such site there, takes its spec from "
                    "another operator of the same pattern, or has this spec anyway");
        }
    }

    Result<Placement> place() const
    {
        switch (m_recipe.kind) {
        case RecipeKind::Xnnpack:
        case RecipeKind::X86:
            return placePt2e();
        case RecipeKind::CoreAi:
            return placeCoreAiRecipe();
        case RecipeKind::Palette:
            break;
        }
        auto resolved = resolve(m_recipe.overrides, m_nodes);
        if (!resolved)
            return tl::unexpected(resolved.error());
        return placePalettes(m_graph, m_recipe.palette, options(std::move(*resolved)));
    }

    Result<Placement> placePt2e() const
    {
        auto resolved = resolve(m_recipe.overrides, m_nodes);
        if (!resolved)
            return tl::unexpected(resolved.error());
        Pt2eConfig config = m_recipe.pt2e;
        config.corrected = m_recipe.corrected;
        config.excluded = std::move(resolved->excluded);
        config.overrides = std::move(resolved->specs);
        return m_recipe.kind == RecipeKind::X86 ? placeX86(m_graph, config) : placeXnnpack(m_graph, config);
    }

    // What coreai-opt's configuration can say is said there, so that the plan is what the exported file gives.
    Result<Placement> placeCoreAiRecipe() const
    {
        TranslatedConfig translated = translateOverrides(m_recipe, &m_graph);
        std::vector<std::vector<NodeId>> nodes;
        for (const RecipeOverride &change : translated.left) {
            const auto it = std::find(m_recipe.overrides.begin(), m_recipe.overrides.end(), change);
            nodes.push_back(m_nodes[static_cast<std::size_t>(it - m_recipe.overrides.begin())]);
        }
        auto resolved = resolve(translated.left, nodes);
        if (!resolved)
            return tl::unexpected(resolved.error());
        return placeCoreAi(m_graph, translated.config, options(std::move(*resolved)));
    }

    [[nodiscard]] CoreAiOptions options(Resolved resolved) const
    {
        return {m_recipe.corrected, std::move(resolved.excluded), std::move(resolved.specs)};
    }

    [[nodiscard]] Result<Resolved> resolve(const std::vector<RecipeOverride> &changes,
                                           const std::vector<std::vector<NodeId>> &nodes) const
    {
        Resolved resolved;
        for (std::size_t i = 0; i < changes.size(); ++i)
            for (const OverridePart &part : changes[i].parts) {
                if (!part.spec && changes[i].meaning == OverrideMeaning::FloatHere)
                    continue; // done on the finished placement
                if (!part.spec && part.facet == Facet::All) {
                    resolved.excluded.insert(nodes[i].begin(), nodes[i].end());
                    continue;
                }
                SpecOverride change{nodes[i], part.facet, part.inputIndex, std::nullopt, changes[i].text()};
                if (part.spec) {
                    const bool weight = part.facet == Facet::Weight;
                    auto spec = parseTensorSpec(*part.spec, baseSpec(m_recipe, weight));
                    if (!spec) {
                        spec.error().where = changes[i].text();
                        return tl::unexpected(spec.error());
                    }
                    if (!weight) {
                        spec->low = changes[i].low;
                        spec->high = changes[i].high;
                    }
                    change.spec = std::move(*spec);
                }
                resolved.specs.push_back(std::move(change));
            }
        return resolved;
    }

    // Operators whose weight "float here" took away join those that stay float.
    void noteFloatWeights(Placement &placement) const
    {
        for (std::size_t i = 0; i < m_recipe.overrides.size(); ++i) {
            const RecipeOverride &change = m_recipe.overrides[i];
            const bool weights = std::any_of(change.parts.begin(), change.parts.end(), [](const OverridePart &part) {
                return !part.spec && (part.facet == Facet::All || part.facet == Facet::Weight);
            });
            if (!weights || change.meaning != OverrideMeaning::FloatHere)
                continue;
            for (const NodeId node : m_nodes[i]) {
                const ValueId weight = valueArgument(m_graph.node(node), "weight");
                const bool stored = weight.valid() && m_graph.input(weight) && m_graph.value(weight).meta &&
                                    m_graph.value(weight).meta->sizes.size() >= 2;
                const bool listed = std::any_of(placement.leftFloat.begin(), placement.leftFloat.end(),
                                                [&](const LeftFloat &entry) { return entry.node == node; });
                const bool quantized =
                    std::any_of(placement.sites.begin(), placement.sites.end(), [&](const PlacedSite &site) {
                        return site.value == weight && contains(site.readers, node);
                    });
                if (stored && !listed && !quantized)
                    placement.leftFloat.push_back({node, "float here by the recipe (" + change.text() + ")"});
            }
        }
        std::stable_sort(placement.leftFloat.begin(), placement.leftFloat.end(),
                         [](const LeftFloat &a, const LeftFloat &b) { return a.node < b.node; });
    }

    const Graph &m_graph;
    const Recipe &m_recipe;
    std::vector<std::vector<NodeId>> m_nodes; // per override
};

} // namespace

Result<std::vector<NodeId>> selectNodes(const Selector &selector, const Graph &graph)
{
    SiteTable none;
    none.ofNode.assign(graph.nodes.size(), -1);
    none.ofResult.assign(graph.values.size(), -1);
    none.outputOf.assign(graph.values.size(), -1);
    SelectorMatch match(selector, graph, none, "the model");
    if (auto matched = match.match(); !matched)
        return tl::unexpected(matched.error());
    std::vector<NodeId> nodes;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        if (match.hasNode(NodeId(i)))
            nodes.emplace_back(i);
    return nodes;
}

bool floatHere(const Graph &graph, Placement &placement, const std::vector<NodeId> &nodes, Facet facet, int inputIndex)
{
    const bool weights = facet == Facet::All || facet == Facet::Weight;
    const bool results = facet == Facet::All || facet == Facet::Act || facet == Facet::Out;
    const bool inputs = facet == Facet::All || facet == Facet::Act || facet == Facet::In;
    bool changed = false;
    // A result's site goes for all that read it, every one in its chain included.
    if (results)
        for (std::size_t i = placement.sites.size(); i-- > 0;) {
            const PlacedSite &site = placement.sites[i];
            if (site.role != SiteRole::Output || !site.owner.valid() || !contains(nodes, site.owner))
                continue;
            dropSite(placement, i);
            changed = true;
        }
    for (PlacedSite &site : placement.sites) {
        const bool wanted = site.role == SiteRole::Weight ? weights : inputs;
        if (!wanted)
            continue;
        const auto gone = std::erase_if(site.readers, [&](NodeId reader) {
            if (!contains(nodes, reader))
                return false;
            if (site.role == SiteRole::Weight || facet != Facet::In || inputIndex < 0)
                return true;
            const auto arguments = distinctTensorArguments(graph, graph.node(reader));
            const auto at = static_cast<std::size_t>(inputIndex);
            return at < arguments.size() && arguments[at] == site.value;
        });
        changed = changed || gone > 0;
    }
    for (std::size_t i = placement.sites.size(); i-- > 0;)
        if (isIdle(placement, i))
            dropSite(placement, i);
    if (changed)
        dropIdleObservers(placement);
    return changed;
}

Result<Placement> placeRecipe(const Graph &graph, const Recipe &recipe)
{
    return RecipePlacement(graph, recipe).run();
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/recipe_edits.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/graph_query.h"
#include "core/placement_diff.h"
#include "core/spec_change.h"

namespace dblame
{

namespace
{

// A role of one operator. Input: which distinct tensor argument.
using Role = std::pair<Facet, int>;

std::string escaped(const std::string &path)
{
    std::string text;
    for (const char c : path) {
        if (std::string_view(".^$|()[]{}*+?\\").find(c) != std::string_view::npos)
            text += '\\';
        text += c;
    }
    return text;
}

class Conversion
{
public:
    Conversion(const EditSet &edits, const SiteTable &sites, const QuantizedModel &quantized)
        : m_edits(edits), m_sites(sites), m_quantized(quantized), m_graph(quantized.annotated->graph())
    {
        for (std::size_t i = 0; i < quantized.siteOfPlaced.size(); ++i)
            m_placedOf.emplace(quantized.siteOfPlaced[i], static_cast<int>(i));
        for (const Node &node : m_graph.nodes)
            for (std::string path = node.modulePath(); !path.empty();
                 path.resize(path.rfind('.') == std::string::npos ? 0 : path.rfind('.')))
                ++m_operatorsIn[path];
    }

    EditsAsOverrides run()
    {
        for (const SiteId site : m_edits.off)
            if (const std::string why = takeOff(site); !why.empty()) {
                m_result.left.off.insert(site);
                refuse(site, why);
            }
        for (const EdgeBypass &edge : m_edits.bypassed)
            if (const std::string why = takeBypass(edge); !why.empty()) {
                m_result.left.bypassed.insert(edge);
                refuse(edge.site, why);
            }
        for (const auto &[node, roles] : m_float)
            addFloat(node, roles);
        for (const auto &[site, change] : m_edits.respecified)
            if (const std::string why = takeSpec(site, change); !why.empty()) {
                m_result.left.respecified.emplace(site, change);
                refuse(site, why);
            }
        return std::move(m_result);
    }
    // Of the sites that were taken, by id: their changes are no surprise.
    [[nodiscard]] const std::set<std::string> &taken() const { return m_taken; }

private:
    void refuse(SiteId site, const std::string &why)
    {
        m_result.notes.push_back(m_sites.site(site).id + " stays a change to layers: " + why);
    }

    [[nodiscard]] const PlacedSite *placed(SiteId site)
    {
        const auto found = m_placedOf.find(site);
        if (found == m_placedOf.end())
            return nullptr;
        const PlacedSite &own = m_quantized.placement.sites[static_cast<std::size_t>(found->second)];
        m_taken.insert(own.id);
        return &own;
    }

    // Which distinct tensor argument of the reader the value is; -1: none.
    [[nodiscard]] int argumentOf(NodeId reader, ValueId value) const
    {
        const auto arguments = distinctTensorArguments(m_graph, m_graph.node(reader));
        const auto found = std::find(arguments.begin(), arguments.end(), value);
        return found == arguments.end() ? -1 : static_cast<int>(found - arguments.begin());
    }

    // The roles of operators that make up the site; empty: none do.
    [[nodiscard]] std::vector<std::pair<NodeId, Role>> rolesOf(const PlacedSite &site) const
    {
        if (site.role == SiteRole::Weight)
            return {{site.owner, {Facet::Weight, -1}}};
        if (site.role == SiteRole::Output && site.owner.valid())
            return {{site.owner, {Facet::Out, -1}}};
        std::vector<std::pair<NodeId, Role>> roles; // an input, of the operator or of the graph
        for (const NodeId reader : site.readers) {
            const int argument = argumentOf(reader, site.value);
            if (argument < 0 || site.readByOutput)
                return {};
            roles.push_back({reader, {Facet::In, argument}});
        }
        return roles;
    }

    std::string takeOff(SiteId id)
    {
        const PlacedSite *site = placed(id);
        const auto roles = site != nullptr ? rolesOf(*site) : std::vector<std::pair<NodeId, Role>>();
        if (roles.empty())
            return "no operator of the float model has it";
        for (const auto &[node, role] : roles)
            m_float[node].insert(role);
        return {};
    }

    std::string takeBypass(const EdgeBypass &edge)
    {
        const PlacedSite *site = placed(edge.site);
        const NodeId reader = m_graph.findNode(m_quantized.model->graph().node(edge.reader).name);
        const int argument = site != nullptr && reader.valid() ? argumentOf(reader, site->value) : -1;
        if (argument < 0)
            return "its reader is no operator of the float model";
        m_float[reader].insert({Facet::In, argument});
        return {};
    }

    std::string takeSpec(SiteId id, const SpecChange &change)
    {
        const PlacedSite *site = placed(id);
        const auto roles = site != nullptr ? rolesOf(*site) : std::vector<std::pair<NodeId, Role>>();
        if (roles.empty())
            return "no operator of the float model has it";
        const bool ranged = change.low && change.high;
        if (ranged && site->role == SiteRole::Weight)
            return "a recipe gives weights no range";
        const QuantSite &now = m_sites.site(id);
        SpecChange whole = change; // nothing left to the site
        if (!whole.symmetric)
            whole.symmetric = now.spec.symmetric;
        if (!whole.type) {
            QuantSpec spec = now.spec;
            const IntegerRange grid = changedGrid(now, change);
            spec.quantMin = grid.low;
            spec.quantMax = grid.high;
            spec.tableSize = 0;
            whole.type = elementTypeOf(spec);
            if (!whole.type)
                return std::to_string(change.bits) + " bits are no element type of a recipe";
        }
        for (const auto &[node, role] : roles) {
            RecipeOverride made;
            made.selector = selectorOf(node);
            made.parts = {{role.first, role.second, specChangeText(whole)}};
            if (ranged) {
                made.low = change.low;
                made.high = change.high;
            }
            m_result.overrides.push_back(std::move(made));
        }
        return {};
    }

    void addFloat(NodeId node, const std::set<Role> &roles)
    {
        RecipeOverride made;
        made.selector = selectorOf(node);
        if (isWhole(node, roles))
            made.parts = {{Facet::All, -1, std::nullopt}};
        else
            for (const auto &[facet, index] : roles)
                made.parts.push_back({facet, index, std::nullopt});
        m_result.overrides.push_back(std::move(made));
    }

    // Everything that is quantized at the operator, so that the override may say the operator.
    [[nodiscard]] bool isWhole(NodeId node, const std::set<Role> &roles) const
    {
        for (const PlacedSite &site : m_quantized.placement.sites) {
            if (site.role == SiteRole::Weight && site.owner == node && !roles.contains({Facet::Weight, -1}))
                return false;
            if (site.role == SiteRole::Output && site.owner == node && !roles.contains({Facet::Out, -1}))
                return false;
            const bool reads = std::find(site.readers.begin(), site.readers.end(), node) != site.readers.end();
            if (site.role != SiteRole::Weight && reads && !roles.contains({Facet::In, argumentOf(node, site.value)}))
                return false;
        }
        return true;
    }

    [[nodiscard]] Selector selectorOf(NodeId id) const
    {
        const Node &node = m_graph.node(id);
        const std::string path = node.modulePath();
        const auto count = m_operatorsIn.find(path);
        const bool only = !path.empty() && count != m_operatorsIn.end() && count->second == 1;
        const std::string text = only ? "module:" + escaped(path) : "op:" + node.name;
        return parseSelector(text).value_or(Selector{SelectBy::Node, node.name, Facet::All, -1, "op:" + node.name});
    }

    const EditSet &m_edits;
    const SiteTable &m_sites;
    const QuantizedModel &m_quantized;
    const Graph &m_graph;
    std::map<SiteId, int> m_placedOf;
    std::map<std::string, int> m_operatorsIn; // module path -> operators in it and in what it holds
    std::map<NodeId, std::set<Role>> m_float;
    std::set<std::string> m_taken;
    EditsAsOverrides m_result;
};

} // namespace

Result<EditsAsOverrides> overridesOf(const EditSet &edits, const SiteTable &sites, const QuantizedModel &quantized,
                                     const Recipe &recipe)
{
    Conversion conversion(edits, sites, quantized);
    EditsAsOverrides result = conversion.run();
    Recipe with = recipe;
    with.overrides.insert(with.overrides.end(), result.overrides.begin(), result.overrides.end());
    const Graph &graph = quantized.annotated->graph();
    const auto after = placeRecipe(graph, with);
    if (!after)
        return tl::unexpected(after.error());
    // What the recipe's quantizer makes of it may reach further than the edit did.
    for (const PlacementChange &change : comparePlacements(graph, quantized.placement, *after).changes)
        if (!conversion.taken().contains(change.id))
            result.notes.push_back(change.id + " " + siteChangeName(change.kind) + " with it: " + change.text);
    return result;
}

} // namespace dblame

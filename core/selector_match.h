// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which operators and sites a selector names.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "core/selector.h"

namespace dblame
{

// Holds references to its arguments: for use inside one function.
class SelectorMatch
{
public:
    SelectorMatch(const Selector &selector, const Model &model, const SiteTable &sites)
        : SelectorMatch(selector, model.graph(), sites, "the candidate")
    {
    }
    // `whose` names the graph in messages.
    SelectorMatch(const Selector &selector, const Graph &graph, const SiteTable &sites, const char *whose)
        : m_selector(selector), m_graph(graph), m_sites(sites), m_whose(whose), m_selected(m_graph.nodes.size(), 0)
    {
    }

    // Once, before the others. Usage: an invalid pattern, or nothing matches.
    [[nodiscard]] Result<void> match();
    [[nodiscard]] bool hasNode(NodeId node) const { return node.valid() && m_selected[node.get()] != 0; }
    // The site is named itself: its owner is, its module is, or one of its nodes is (op:dequantize_3).
    [[nodiscard]] bool hasSite(const QuantSite &site) const;
    // The facet covers sites of this role.
    [[nodiscard]] bool wants(SiteRole role) const;
    // `reader` reads the site's result: an input edge (or a weight edge) that the facet covers.
    [[nodiscard]] bool wantsEdge(const QuantSite &site, NodeId reader) const;
    // That something is selected which has no site (of this facet), with what there is instead.
    [[nodiscard]] tl::unexpected<Error> noSite() const;

private:
    [[nodiscard]] bool matches(const std::string &name) const;
    [[nodiscard]] bool matchesType(const std::string &type) const;
    [[nodiscard]] bool matchesNode(const Node &node) const;
    [[nodiscard]] bool inNamedModule(const QuantSite &site) const;
    [[nodiscard]] std::vector<std::string> candidates() const;

    const Selector &m_selector;
    const Graph &m_graph;
    const SiteTable &m_sites;
    const char *m_whose;
    std::optional<std::regex> m_pattern;
    std::vector<char> m_selected; // per node; nodes of sites only when named by op:
};

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/site_names.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/graph_query.h"

namespace dblame
{

namespace
{

std::string label(const Graph &graph, ValueId value)
{
    const Node *producer = graph.producer(value);
    return producer ? producer->name : graph.value(value).name;
}

std::string facet(const QuantSite &site)
{
    switch (site.role) {
    case SiteRole::Weight:
        return "/weight";
    case SiteRole::Input:
        return "/in[" + std::to_string(std::max(site.inputIndex, 0)) + "]";
    case SiteRole::Output:
        break;
    }
    return "/out";
}

std::string moduleId(const Graph &graph, const QuantSite &site)
{
    if (!site.owner.valid())
        return label(graph, site.source.valid() ? site.source : site.result) + facet(site);
    const std::string module = moduleCallOf(graph, graph.node(site.owner));
    return (module.empty() ? graph.node(site.owner).name : module) + facet(site);
}

std::string nodeId(const Graph &graph, const QuantSite &site)
{
    if (!site.owner.valid())
        return moduleId(graph, site);
    const std::string &owner = graph.node(site.owner).name;
    return (site.role == SiteRole::Input ? label(graph, site.source) + "→" + owner : owner) + facet(site);
}

} // namespace

void nameSites(const Graph &graph, std::vector<QuantSite> &sites)
{
    std::map<std::string, int> uses;
    for (auto &site : sites) {
        site.id = moduleId(graph, site);
        ++uses[site.id];
    }
    std::set<std::string> taken;
    for (auto &site : sites) {
        if (uses[site.id] > 1)
            site.id = nodeId(graph, site);
        const std::string base = site.id;
        for (int k = 1; !taken.insert(site.id).second; ++k)
            site.id = base + "#" + std::to_string(k);
    }
}

} // namespace dblame

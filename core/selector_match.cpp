// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/selector_match.h"

#include <algorithm>

#include "core/graph_query.h"
#include "core/selector_pattern.h"

namespace dblame
{

namespace
{

constexpr std::size_t kNearest = 3;

const char *kindWords(SelectBy by)
{
    switch (by) {
    case SelectBy::Module:
        return "module";
    case SelectBy::ModuleType:
        return "module class";
    case SelectBy::Node:
        return "operator or value";
    case SelectBy::OpType:
        return "operator type";
    }
    return "";
}

std::string lastComponent(const std::string &type)
{
    const auto dot = type.rfind('.');
    return dot == std::string::npos ? type : type.substr(dot + 1);
}

// "block.conv1@1" and every dotted beginning of it: a container that is never called itself (a ModuleList)
// has no frame, but contains all the same.
template <class F>
void eachContainer(const std::string &path, const F &f)
{
    f(std::string()); // the model itself
    for (auto dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
        f(path.substr(0, dot));
    if (!path.empty())
        f(path);
}

std::string withoutCall(const std::string &path)
{
    const auto at = path.rfind('@');
    const bool call = at != std::string::npos && at + 1 < path.size() &&
                      path.find_first_not_of("0123456789", at + 1) == std::string::npos;
    return call ? path.substr(0, at) : path;
}

// "@1" of a frame's key: which call of the module it is; empty for the first.
std::string callSuffix(const std::string &key)
{
    const auto path = withoutCall(key);
    return key.substr(path.size());
}

// Every name by which the containers of an operator (or of a site) can be called.
std::vector<std::string> containerNames(const Graph &graph, const Node &node)
{
    std::vector<std::string> names;
    const auto add = [&names](std::string name) { names.push_back(std::move(name)); };
    eachContainer(moduleOf(graph, node), add);
    for (const auto &frame : node.modules) {
        const auto path = withoutCall(frame.path);
        eachContainer(path, add);
        auto suffix = callSuffix(frame.key);
        if (suffix.empty())
            suffix = frame.path.substr(path.size());
        if (!suffix.empty())
            add(path + suffix);
    }
    return names;
}

} // namespace

bool SelectorMatch::matches(const std::string &name) const
{
    return std::regex_match(name, *m_pattern);
}

bool SelectorMatch::matchesType(const std::string &type) const
{
    return !type.empty() && (type == m_selector.pattern || lastComponent(type) == m_selector.pattern);
}

bool SelectorMatch::matchesNode(const Node &node) const
{
    switch (m_selector.by) {
    case SelectBy::Module: {
        const auto names = containerNames(m_graph, node);
        return std::any_of(names.begin(), names.end(), [this](const auto &name) { return matches(name); });
    }
    case SelectBy::ModuleType:
        return std::any_of(node.modules.begin(), node.modules.end(),
                           [this](const ModuleFrame &frame) { return matchesType(frame.type); });
    case SelectBy::Node: {
        const auto values = node.outputValues();
        return node.name == m_selector.pattern || std::any_of(values.begin(), values.end(), [this](ValueId v) {
                   return m_graph.value(v).name == m_selector.pattern;
               });
    }
    case SelectBy::OpType:
        return node.opType() == m_selector.pattern || node.target == m_selector.pattern;
    }
    return false;
}

bool SelectorMatch::inNamedModule(const QuantSite &site) const
{
    if (m_selector.by == SelectBy::ModuleType)
        return matchesType(site.moduleType);
    if (m_selector.by != SelectBy::Module)
        return false;
    bool found = matches(site.module);
    eachContainer(withoutCall(site.module), [&](const std::string &name) { found = found || matches(name); });
    return found;
}

bool SelectorMatch::hasSite(const QuantSite &site) const
{
    if (hasNode(site.owner) || inNamedModule(site))
        return true;
    return m_selector.by == SelectBy::Node &&
           std::any_of(site.nodes.begin(), site.nodes.end(), [this](NodeId node) { return hasNode(node); });
}

bool SelectorMatch::wants(SiteRole role) const
{
    switch (m_selector.facet) {
    case Facet::All:
        return true;
    case Facet::Weight:
        return role == SiteRole::Weight;
    case Facet::In:
        return role == SiteRole::Input;
    case Facet::Out:
        return role == SiteRole::Output;
    case Facet::Act:
        return role != SiteRole::Weight;
    }
    return false;
}

bool SelectorMatch::wantsEdge(const QuantSite &site, NodeId reader) const
{
    if (!wants(site.role == SiteRole::Weight ? SiteRole::Weight : SiteRole::Input))
        return false;
    if (m_selector.inputIndex < 0)
        return true;
    const auto arguments = distinctTensorArguments(m_graph, m_graph.node(reader));
    const auto index = static_cast<std::size_t>(m_selector.inputIndex);
    if (index >= arguments.size())
        return false;
    const auto &copies = site.moreResults;
    return arguments[index] == site.result || std::find(copies.begin(), copies.end(), arguments[index]) != copies.end();
}

std::vector<std::string> SelectorMatch::candidates() const
{
    std::vector<std::string> names;
    for (std::size_t i = 0; i < m_graph.nodes.size(); ++i) {
        const Node &node = m_graph.nodes[i];
        if (m_sites.siteOfNode(NodeId(i)).valid() && m_selector.by != SelectBy::Node)
            continue;
        switch (m_selector.by) {
        case SelectBy::Module: {
            auto more = containerNames(m_graph, node);
            names.insert(names.end(), more.begin(), more.end());
            break;
        }
        case SelectBy::ModuleType:
            for (const auto &frame : node.modules)
                names.push_back(m_selector.pattern.find('.') == std::string::npos ? lastComponent(frame.type)
                                                                                  : frame.type);
            break;
        case SelectBy::Node:
            names.push_back(node.name);
            for (const ValueId v : node.outputValues())
                names.push_back(m_graph.value(v).name);
            break;
        case SelectBy::OpType:
            names.push_back(node.opType());
            break;
        }
    }
    return names;
}

Result<void> SelectorMatch::match()
{
    if (m_selector.by == SelectBy::Module) {
        auto pattern = compilePattern(m_selector.pattern);
        if (!pattern) {
            pattern.error().where = m_selector.text;
            return tl::unexpected(pattern.error());
        }
        m_pattern = std::move(*pattern);
    }
    bool any = false;
    for (std::size_t i = 0; i < m_graph.nodes.size(); ++i) {
        // The nodes inside sites carry the observer's module, not the layer's: they count only when named.
        if (m_selector.by != SelectBy::Node && m_sites.siteOfNode(NodeId(i)).valid())
            continue;
        m_selected[i] = matchesNode(m_graph.nodes[i]) ? 1 : 0;
        any = any || m_selected[i] != 0;
    }
    any = any ||
          std::any_of(m_sites.sites.begin(), m_sites.sites.end(), [this](const auto &s) { return inNamedModule(s); });
    if (any)
        return {};
    std::string message = std::string("matches no ") + kindWords(m_selector.by) + " of " + m_whose;
    const auto near = nearest(m_selector.pattern, candidates(), kNearest);
    for (std::size_t i = 0; i < near.size(); ++i)
        message += (i == 0 ? "; nearest: " : ", ") + near[i];
    return fail(ErrorCode::Usage, m_selector.text, message);
}

tl::unexpected<Error> SelectorMatch::noSite() const
{
    // Facets that would have selected something, else the nearest modules that have sites.
    std::vector<std::string> others;
    std::vector<std::string> modules;
    for (const auto &site : m_sites.sites) {
        const bool reads =
            std::any_of(site.readers.begin(), site.readers.end(), [this](NodeId n) { return hasNode(n); });
        if (hasSite(site) || reads)
            others.push_back(site.id);
        modules.push_back(m_selector.by == SelectBy::Module ? site.module : site.id);
    }
    std::string message = m_selector.facet == Facet::All
                              ? "no quantization site belongs to what this selects, and none is on its inputs"
                              : "what this selects has no such site";
    if (m_sites.sites.empty()) {
        message += "; no quantization site was recognized in the candidate at all";
    } else {
        const auto near = nearest(m_selector.pattern, others.empty() ? modules : others, kNearest);
        for (std::size_t i = 0; i < near.size(); ++i)
            message += (i == 0 ? (others.empty() ? "; nearest with sites: " : "; it has: ") : ", ") + near[i];
    }
    return fail(ErrorCode::Usage, m_selector.text, message);
}

} // namespace dblame

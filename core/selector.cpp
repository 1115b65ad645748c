// SPDX-License-Identifier: GPL-3.0-or-later
//
// A selector names operators: those that lie in a matching module (at any depth), are of a matching
// class, or match by themselves. What is selected is then said in sites: the weight and output sites of
// these operators, and the sites on their input edges.
#include "core/selector.h"

#include <algorithm>
#include <charconv>

#include "core/graph_query.h"
#include "core/selector_pattern.h"

namespace dblame
{

namespace
{

constexpr std::size_t kNearest = 3;

struct Prefix {
    std::string_view text;
    SelectBy by;
};
constexpr Prefix kPrefixes[] = {
    {"module:", SelectBy::Module},
    {"type:", SelectBy::ModuleType},
    {"op:", SelectBy::Node},
    {"optype:", SelectBy::OpType},
};

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

bool parseFacet(std::string_view word, Selector &selector)
{
    if (word == "weight") {
        selector.facet = Facet::Weight;
    } else if (word == "in") {
        selector.facet = Facet::In;
    } else if (word == "out") {
        selector.facet = Facet::Out;
    } else if (word == "act") {
        selector.facet = Facet::Act;
    } else if (word.size() > 4 && word.substr(0, 3) == "in[" && word.back() == ']') {
        const auto number = word.substr(3, word.size() - 4);
        const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), selector.inputIndex);
        selector.facet = Facet::In;
        return failure == std::errc() && end == number.data() + number.size() && selector.inputIndex >= 0;
    } else {
        return false;
    }
    return true;
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

class Matcher
{
public:
    Matcher(const Selector &selector, const Model &model, const SiteTable &sites)
        : m_selector(selector), m_graph(model.graph()), m_sites(sites), m_selected(m_graph.nodes.size(), 0)
    {
    }

    [[nodiscard]] Result<void> match();
    [[nodiscard]] bool hasNode(NodeId node) const { return node.valid() && m_selected[node.get()] != 0; }
    // The site is named itself: its owner is, its module is, or one of its nodes is (op:dequantize_3).
    [[nodiscard]] bool hasSite(const QuantSite &site) const;
    [[nodiscard]] bool wants(SiteRole role) const;
    [[nodiscard]] bool wantsEdge(const QuantSite &site, NodeId reader) const;
    [[nodiscard]] tl::unexpected<Error> noSite() const;

private:
    [[nodiscard]] bool matches(const std::string &name) const;
    [[nodiscard]] bool matchesType(const std::string &type) const
    {
        return !type.empty() && (type == m_selector.pattern || lastComponent(type) == m_selector.pattern);
    }
    [[nodiscard]] bool matchesNode(const Node &node) const;
    [[nodiscard]] bool inNamedModule(const QuantSite &site) const;
    [[nodiscard]] std::vector<std::string> candidates() const;

    const Selector &m_selector;
    const Graph &m_graph;
    const SiteTable &m_sites;
    std::optional<std::regex> m_pattern;
    std::vector<char> m_selected; // per node; nodes of sites only when named by op:
};

bool Matcher::matches(const std::string &name) const
{
    return std::regex_match(name, *m_pattern);
}

bool Matcher::matchesNode(const Node &node) const
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

bool Matcher::inNamedModule(const QuantSite &site) const
{
    if (m_selector.by == SelectBy::ModuleType)
        return matchesType(site.moduleType);
    if (m_selector.by != SelectBy::Module)
        return false;
    bool found = matches(site.module);
    eachContainer(withoutCall(site.module), [&](const std::string &name) { found = found || matches(name); });
    return found;
}

bool Matcher::hasSite(const QuantSite &site) const
{
    if (hasNode(site.owner) || inNamedModule(site))
        return true;
    return m_selector.by == SelectBy::Node &&
           std::any_of(site.nodes.begin(), site.nodes.end(), [this](NodeId node) { return hasNode(node); });
}

bool Matcher::wants(SiteRole role) const
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

// `reader` reads the site's result: is that an input edge (or a weight edge) which the facet names?
bool Matcher::wantsEdge(const QuantSite &site, NodeId reader) const
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

std::vector<std::string> Matcher::candidates() const
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

Result<void> Matcher::match()
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
    std::string message = std::string("matches no ") + kindWords(m_selector.by) + " of the candidate";
    const auto near = nearest(m_selector.pattern, candidates(), kNearest);
    for (std::size_t i = 0; i < near.size(); ++i)
        message += (i == 0 ? "; nearest: " : ", ") + near[i];
    return fail(ErrorCode::Usage, m_selector.text, message);
}

tl::unexpected<Error> Matcher::noSite() const
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

// Off and bypassed for one selector, watching observers among them.
EditSet collect(const Matcher &matcher, const SiteTable &table)
{
    EditSet edits;
    for (std::size_t i = 0; i < table.sites.size(); ++i) {
        const SiteId id(i);
        const QuantSite &site = table.sites[i];
        const bool named = matcher.hasSite(site);
        if (named && site.role != SiteRole::Input && matcher.wants(site.role)) {
            edits.off.insert(id);
            continue;
        }
        for (const NodeId reader : site.readers) {
            const bool own = named && site.role == SiteRole::Input && reader == site.owner;
            if ((own || matcher.hasNode(reader)) && matcher.wantsEdge(site, reader))
                edits.bypassed.insert({id, reader});
        }
    }
    return edits;
}

void dropWatchers(EditSet &edits, const SiteTable &table)
{
    const auto changes = [&table](SiteId id) { return !table.site(id).watchesOnly; };
    const bool any =
        std::any_of(edits.off.begin(), edits.off.end(), changes) ||
        std::any_of(edits.bypassed.begin(), edits.bypassed.end(), [&](const auto &e) { return changes(e.site); });
    if (!any)
        return; // only watchers: the plan says that it has no effect
    std::erase_if(edits.off, [&](SiteId id) { return !changes(id); });
    std::erase_if(edits.bypassed, [&](const EdgeBypass &e) { return !changes(e.site); });
}

} // namespace

Result<Selector> parseSelector(std::string_view text)
{
    Selector selector;
    selector.text = text;
    const auto *prefix = std::find_if(std::begin(kPrefixes), std::end(kPrefixes),
                                      [&](const Prefix &p) { return text.substr(0, p.text.size()) == p.text; });
    if (prefix == std::end(kPrefixes))
        return fail(ErrorCode::Usage, selector.text,
                    "no selector; it begins with module:, type:, op: or optype:, for instance module:block.conv1");
    selector.by = prefix->by;
    auto rest = text.substr(prefix->text.size());
    const auto slash = rest.rfind('/');
    if (slash != std::string_view::npos) {
        if (!parseFacet(rest.substr(slash + 1), selector))
            return fail(ErrorCode::Usage, selector.text,
                        "unknown facet '" + std::string(rest.substr(slash + 1)) +
                            "'; use /weight, /in, /in[0], /out or /act");
        rest = rest.substr(0, slash);
    }
    if (rest.empty())
        return fail(ErrorCode::Usage, selector.text,
                    std::string("names nothing") +
                        (selector.by == SelectBy::Module ? "; module:.* is everything" : ""));
    selector.pattern = rest;
    if (selector.by == SelectBy::Module) {
        if (auto pattern = compilePattern(selector.pattern); !pattern) {
            pattern.error().where = selector.text;
            return tl::unexpected(pattern.error());
        }
    }
    return selector;
}

Result<EditSet> selectForSkip(const Selector &selector, const Model &candidate, const SiteTable &sites)
{
    Matcher matcher(selector, candidate, sites);
    if (auto matched = matcher.match(); !matched)
        return tl::unexpected(matched.error());
    EditSet edits = collect(matcher, sites);
    if (edits.empty())
        return matcher.noSite();
    dropWatchers(edits, sites);
    return edits;
}

Result<EditSet> selectAllBut(const std::vector<Selector> &keep, const Model &candidate, const SiteTable &sites)
{
    std::set<SiteId> kept;
    std::set<EdgeBypass> keptEdges;
    for (const auto &selector : keep) {
        const auto edits = selectForSkip(selector, candidate, sites);
        if (!edits)
            return tl::unexpected(edits.error());
        kept.insert(edits->off.begin(), edits->off.end());
        keptEdges.insert(edits->bypassed.begin(), edits->bypassed.end());
    }
    EditSet result;
    for (std::size_t i = 0; i < sites.sites.size(); ++i) {
        const SiteId id(i);
        const QuantSite &site = sites.sites[i];
        if (site.watchesOnly || kept.contains(id))
            continue;
        const bool someReaderKeeps = std::any_of(site.readers.begin(), site.readers.end(), [&](NodeId reader) {
            return keptEdges.contains({id, reader});
        });
        if (!someReaderKeeps) {
            result.off.insert(id);
            continue;
        }
        for (const NodeId reader : site.readers)
            if (!keptEdges.contains({id, reader}))
                result.bypassed.insert({id, reader});
    }
    return result;
}

Result<std::vector<SiteId>> selectSites(const Selector &selector, const Model &candidate, const SiteTable &sites)
{
    Matcher matcher(selector, candidate, sites);
    if (auto matched = matcher.match(); !matched)
        return tl::unexpected(matched.error());
    std::vector<SiteId> result;
    const bool edges = selector.facet == Facet::In || selector.facet == Facet::Act;
    for (std::size_t i = 0; i < sites.sites.size(); ++i) {
        const QuantSite &site = sites.sites[i];
        const bool own = matcher.hasSite(site) && matcher.wants(site.role) &&
                         (selector.inputIndex < 0 || site.inputIndex == selector.inputIndex);
        const bool read = edges && site.role != SiteRole::Weight &&
                          std::any_of(site.readers.begin(), site.readers.end(), [&](NodeId reader) {
                              return matcher.hasNode(reader) && matcher.wantsEdge(site, reader);
                          });
        if (own || read)
            result.emplace_back(i);
    }
    if (result.empty())
        return matcher.noSite();
    return result;
}

} // namespace dblame

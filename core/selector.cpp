// SPDX-License-Identifier: GPL-3.0-or-later
//
// A selector names operators: those that lie in a matching module (at any depth), are of a matching
// class, or match by themselves. What is selected is then said in sites: the weight and output sites of
// these operators, and the sites on their input edges.
#include "core/selector.h"

#include <algorithm>
#include <charconv>

#include "core/selector_match.h"
#include "core/selector_pattern.h"

namespace dblame
{

namespace
{

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

// Off and bypassed for one selector, watching observers among them.
EditSet collect(const SelectorMatch &matcher, const SiteTable &table)
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
    SelectorMatch matcher(selector, candidate, sites);
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
    SelectorMatch matcher(selector, candidate, sites);
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

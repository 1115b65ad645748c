// SPDX-License-Identifier: GPL-3.0-or-later
//
// Changes of specs from and to words, and a --set override on the sites of a candidate.
#include <algorithm>

#include "core/number_text.h"
#include "core/selector.h"
#include "core/spec_change.h"

namespace dblame
{

namespace
{

tl::unexpected<Error> unfit(std::string_view text, const std::string &why)
{
    return fail(ErrorCode::Usage, "", "spec \"" + std::string(text) + "\": " + why);
}

bool isNamedIn(std::string_view text, std::string_view word)
{
    const auto colon = text.find(':');
    return colon != std::string_view::npos && text.substr(colon + 1).substr(0, word.size()) == word;
}

} // namespace

Result<SpecChange> parseSpecChange(std::string_view text, const QuantSite &site)
{
    // What the text leaves out is the site's; a scheme or granularity that is not the change's own stays open.
    TensorSpec base;
    base.scheme = site.spec.symmetric || isFloatGrid(site.spec) ? Scheme::Symmetric : Scheme::Affine;
    base.granularity = site.spec.granularity;
    if (site.spec.blockSize > 0)
        base.blockSizes = {site.spec.blockSize};
    else if (base.granularity == Granularity::PerBlock)
        base.granularity = Granularity::PerTensor; // blocks of unknown size
    const auto spec = parseTensorSpec(text, base);
    if (!spec)
        return tl::unexpected(spec.error());
    if (std::count(text.begin(), text.end(), ':') > 2)
        return unfit(text, "a candidate brings no observer: its ranges are its sites' own, given or of the values; "
                           "leave it out, or give a recipe");
    SpecChange change;
    change.type = spec->type;
    if (isCast(spec->type))
        return change;
    change.bits = std::clamp(bitsOf(spec->type), 2, 16);
    change.granularity = spec->granularity;
    if (text.find(':') != std::string_view::npos && isInteger(spec->type))
        change.symmetric = spec->scheme != Scheme::Affine;
    if (isNamedIn(text, "symclip") && !(site.spec.symmetric && site.spec.quantMin == -site.spec.quantMax))
        return unfit(text, "the grid of " + site.id +
                               " holds its lowest value, and symclip needs a recipe's quantizer; write sym");
    if (spec->granularity == Granularity::PerBlock) {
        if (spec->blockSizes.size() != 1)
            return unfit(text, "a candidate's site takes one block size, along its own axis: write block32");
        change.blockSize = spec->blockSizes.front();
    }
    if (spec->axis && *spec->axis != site.spec.axis)
        return unfit(text, "a candidate's site keeps its own axis" +
                               (site.spec.axis >= 0 ? " (" + std::to_string(site.spec.axis) + ")" : std::string()) +
                               ": leave out the @");
    return change;
}

std::string specChangeText(const SpecChange &change)
{
    std::string text = change.type ? std::string(elementTypeName(*change.type)) : "int" + std::to_string(change.bits);
    if (change.type && isCast(*change.type))
        return text;
    // Without a scheme a granularity cannot be said; a floating type has one scheme.
    const bool floating = change.type && !isInteger(*change.type);
    text += change.symmetric.value_or(floating) ? ":sym:" : ":affine:";
    switch (change.granularity) {
    case Granularity::PerTensor:
        return text + "tensor";
    case Granularity::PerChannel:
        return text + "channel";
    case Granularity::PerToken:
        return text + "token";
    case Granularity::PerBlock:
        break;
    }
    return text + "block" + std::to_string(change.blockSize);
}

Result<EditSet> editsOf(const RecipeOverride &change, const Model &candidate, const SiteTable &sites)
{
    const std::string &where = change.selector.text;
    if (change.meaning == OverrideMeaning::AsQuantizer)
        return fail(ErrorCode::Usage, where,
                    "'none' asks the quantizer of a recipe (--preset or --recipe) to leave the layer out; on a "
                    "candidate write float");
    const auto specOnActivation = [](const OverridePart &part) { return part.spec && part.facet != Facet::Weight; };
    if ((change.low || change.high) && std::none_of(change.parts.begin(), change.parts.end(), specOnActivation))
        return fail(ErrorCode::Usage, where, "range= is for activations: add act=, in= or out= with a spec");
    EditSet edits;
    for (const OverridePart &part : change.parts) {
        Selector selector = change.selector;
        selector.facet = part.facet;
        selector.inputIndex = part.inputIndex;
        if (!part.spec) {
            auto off = selectForSkip(selector, candidate, sites);
            if (!off)
                return off;
            edits.off.merge(off->off);
            edits.bypassed.merge(off->bypassed);
            continue;
        }
        const auto named = selectSites(selector, candidate, sites);
        if (!named)
            return tl::unexpected(named.error());
        for (const SiteId id : *named) {
            const QuantSite &site = sites.site(id);
            auto spec = parseSpecChange(*part.spec, site);
            if (!spec) {
                spec.error().where = where;
                return tl::unexpected(spec.error());
            }
            if (site.role != SiteRole::Weight) {
                spec->low = change.low;
                spec->high = change.high;
            }
            if (const std::string problem = changeProblem(site, *spec, std::nullopt);
                !problem.empty() && !site.watchesOnly)
                return fail(ErrorCode::Usage, where, site.id + ": " + problem);
            edits.respecified.insert_or_assign(id, *spec);
        }
    }
    return edits;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/recipe.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/number_text.h"
#include "core/placement_annotations.h"
#include "core/selector_pattern.h"

namespace dblame
{

namespace
{

constexpr std::size_t kNearest = 3;

std::vector<std::string_view> split(std::string_view text, char separator)
{
    std::vector<std::string_view> parts;
    for (auto at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
        parts.push_back(text.substr(0, at));
        text.remove_prefix(at + 1);
    }
    parts.push_back(text);
    return parts;
}

std::optional<std::int64_t> wholeNumber(std::string_view text)
{
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size() || value <= 0)
        return std::nullopt;
    return value;
}

bool setXnnpack(std::string_view base, Recipe &recipe)
{
    recipe.kind = RecipeKind::Xnnpack;
    recipe.pt2e.qat = base == "xnnpack-qat";
    recipe.pt2e.dynamic = base == "xnnpack-dynamic";
    return base == "xnnpack-static" || recipe.pt2e.qat || recipe.pt2e.dynamic;
}

bool setCoreAi(std::string_view base, Recipe &recipe)
{
    constexpr std::string_view kBlock = "coreai-w4-block";
    recipe.kind = RecipeKind::CoreAi;
    if (base == "coreai-w8a8")
        return true;
    if (base == "coreai-w8" || base == "coreai-w4") {
        recipe.coreAi = coreAiWeightOnly(base == "coreai-w8" ? ElementType::Int8 : ElementType::Int4);
        return true;
    }
    if (!base.starts_with(kBlock))
        return false;
    const auto size = wholeNumber(base.substr(kBlock.size()));
    if (size)
        recipe.coreAi = coreAiWeightOnly(ElementType::Int4, size);
    return size.has_value();
}

// "coreai-palette-4", "coreai-palette-4-g2"
bool setPalette(std::string_view base, Recipe &recipe)
{
    constexpr std::string_view kPrefix = "coreai-palette-";
    if (!base.starts_with(kPrefix))
        return false;
    recipe.kind = RecipeKind::Palette;
    const auto parts = split(base.substr(kPrefix.size()), '-');
    const auto bits = wholeNumber(parts.front());
    static constexpr std::array<std::int64_t, 6> kBits = {1, 2, 3, 4, 6, 8};
    if (!bits || std::find(kBits.begin(), kBits.end(), *bits) == kBits.end() || parts.size() > 2)
        return false;
    PaletteWeightSpec spec;
    spec.bits = static_cast<int>(*bits);
    if (parts.size() == 2) {
        const auto group = parts[1].starts_with('g') ? wholeNumber(parts[1].substr(1)) : std::nullopt;
        if (!group)
            return false;
        spec.groupSize = *group;
        spec.axis = 0; // as coreai-opt's own presets write it
    }
    recipe.palette.global.op.states = {{"weight", spec}, {"in_proj_weight", spec}};
    return true;
}

std::string meaningText(const RecipeOverride &change)
{
    const bool whole = change.parts.size() == 1 && change.parts.front().facet == Facet::All;
    return whole && change.meaning == OverrideMeaning::AsQuantizer ? "none" : "float";
}

const char *facetWord(Facet facet)
{
    switch (facet) {
    case Facet::Weight:
        return "weight";
    case Facet::In:
        return "in";
    case Facet::Out:
        return "out";
    case Facet::Act:
        return "act";
    case Facet::All:
        break;
    }
    return "";
}

tl::unexpected<Error> badPart(std::string_view selector, std::string_view part, const std::string &what)
{
    return fail(ErrorCode::Usage, std::string(selector), "'" + std::string(part) + "' " + what);
}

// "-1..1", "..6", "0.."
bool readRange(std::string_view text, RecipeOverride &change)
{
    const auto dots = text.find("..");
    if (dots == std::string_view::npos)
        return false;
    const auto bound = [](std::string_view word, std::optional<double> &value) {
        if (word.empty())
            return true;
        double number = 0.0;
        const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), number);
        value = number;
        return failure == std::errc() && end == word.data() + word.size();
    };
    return bound(text.substr(0, dots), change.low) && bound(text.substr(dots + 2), change.high) &&
           (change.low || change.high) && (!change.low || !change.high || *change.low < *change.high);
}

Result<OverridePart> readPart(std::string_view selector, std::string_view name, std::string_view spec)
{
    OverridePart part;
    if (name == "weight") {
        part.facet = Facet::Weight;
    } else if (name == "out") {
        part.facet = Facet::Out;
    } else if (name == "act") {
        part.facet = Facet::Act;
    } else if (name == "in") {
        part.facet = Facet::In;
    } else if (name.starts_with("in[") && name.ends_with(']')) {
        part.facet = Facet::In;
        const auto number = name.substr(3, name.size() - 4);
        const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), part.inputIndex);
        if (failure != std::errc() || end != number.data() + number.size() || part.inputIndex < 0)
            return badPart(selector, name, "is no input; write in[0]");
    } else {
        return badPart(selector, name, "is no role; use weight, in, in[0], out or act");
    }
    if (spec == "float")
        return part;
    if (auto parsed = parseTensorSpec(spec, TensorSpec{}); !parsed) {
        parsed.error().where = std::string(selector);
        return tl::unexpected(parsed.error());
    }
    part.spec = std::string(spec);
    return part;
}

// A spec after a selector with a facet: the facet is the role.
RecipeOverride withFacet(RecipeOverride change)
{
    if (change.selector.facet != Facet::All)
        for (OverridePart &part : change.parts)
            if (part.facet == Facet::All) {
                part.facet = change.selector.facet;
                part.inputIndex = change.selector.inputIndex;
            }
    return change;
}

} // namespace

std::string overrideSpecText(const RecipeOverride &change)
{
    std::string text;
    for (const OverridePart &part : change.parts) {
        if (!text.empty())
            text += ",";
        const bool own = part.facet == change.selector.facet && part.inputIndex == change.selector.inputIndex;
        if (!own) {
            text += facetWord(part.facet);
            if (part.facet == Facet::In && part.inputIndex >= 0)
                text += "[" + std::to_string(part.inputIndex) + "]";
            text += "=";
        }
        text += part.spec ? *part.spec : own ? meaningText(change) : "float";
    }
    if (change.low || change.high)
        text += ",range=" + (change.low ? shortestText(*change.low) : std::string()) + ".." +
                (change.high ? shortestText(*change.high) : std::string());
    return text;
}

std::string RecipeOverride::text() const
{
    return selector.text + "=" + overrideSpecText(*this);
}

bool operator==(const RecipeOverride &a, const RecipeOverride &b)
{
    return a.selector.text == b.selector.text && a.meaning == b.meaning && a.parts == b.parts && a.low == b.low &&
           a.high == b.high;
}

bool operator==(const Recipe &a, const Recipe &b)
{
    const auto switches = [](const Pt2eConfig &c) {
        return std::tuple(c.x86, c.qat, c.dynamic, c.perChannel, c.reduceRange);
    };
    return a.preset == b.preset && a.kind == b.kind && a.corrected == b.corrected &&
           switches(a.pt2e) == switches(b.pt2e) && a.coreAi == b.coreAi && a.palette == b.palette &&
           a.overrides == b.overrides;
}

std::string Recipe::title() const
{
    std::string text = preset;
    if (text.empty())
        text = kind == RecipeKind::Palette ? "coreai-opt palettizer configuration" : "coreai-opt configuration";
    if (corrected)
        text += ":corrected";
    if (!overrides.empty())
        text += ", " + std::to_string(overrides.size()) + (overrides.size() == 1 ? " override" : " overrides");
    return text;
}

std::vector<std::string> presetNames()
{
    return {"xnnpack-static",    "xnnpack-static:per-tensor",
            "xnnpack-qat",       "xnnpack-qat:per-tensor",
            "xnnpack-dynamic",   "xnnpack-dynamic:per-tensor",
            "x86-static",        "coreai-w8a8",
            "coreai-w8",         "coreai-w4",
            "coreai-w4-block32", "coreai-palette-1",
            "coreai-palette-2",  "coreai-palette-3",
            "coreai-palette-4",  "coreai-palette-4-g2",
            "coreai-palette-6",  "coreai-palette-8"};
}

Result<Recipe> presetRecipe(std::string_view name)
{
    const auto unknown = [&](const std::string &what) {
        std::string message = what;
        const auto near = nearest(name, presetNames(), kNearest);
        for (std::size_t i = 0; i < near.size(); ++i)
            message += (i == 0 ? "; nearest: " : ", ") + near[i];
        return fail(ErrorCode::Usage, std::string(name), message);
    };
    const auto parts = split(name, ':');
    Recipe recipe;
    const std::string_view base = parts.front();
    const bool known = [&] {
        if (base == "x86-static") {
            recipe.kind = RecipeKind::X86;
            recipe.pt2e.x86 = true;
            return true;
        }
        return setXnnpack(base, recipe) || setCoreAi(base, recipe) || setPalette(base, recipe);
    }();
    if (!known)
        return unknown("no such preset");
    recipe.preset = base;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        if (parts[i] == "corrected") {
            recipe.corrected = true;
        } else if (parts[i] == "per-tensor" && recipe.kind == RecipeKind::Xnnpack) {
            recipe.pt2e.perChannel = false;
        } else if (parts[i] == "eager" && recipe.kind == RecipeKind::CoreAi) {
            recipe.coreAi.mode = CoreAiMode::Eager;
        } else {
            return unknown("the preset has no ':" + std::string(parts[i]) + "'");
        }
        if (parts[i] != "corrected")
            recipe.preset += ":" + std::string(parts[i]);
    }
    return recipe;
}

Result<RecipeOverride> parseOverride(std::string_view selector, std::string_view spec)
{
    auto parsed = parseSelector(selector);
    if (!parsed)
        return tl::unexpected(parsed.error());
    RecipeOverride change;
    change.selector = std::move(*parsed);
    if (spec == "none" || spec == "None" || spec == "float") {
        change.meaning = spec == "float" ? OverrideMeaning::FloatHere : OverrideMeaning::AsQuantizer;
        change.parts = {OverridePart{change.selector.facet, change.selector.inputIndex, std::nullopt}};
        return change;
    }
    for (const std::string_view part : split(spec, ',')) {
        const auto equals = part.find('=');
        const auto name = equals == std::string_view::npos ? std::string_view() : part.substr(0, equals);
        const auto value = equals == std::string_view::npos ? part : part.substr(equals + 1);
        if (name == "range") {
            if (!readRange(value, change))
                return badPart(selector, value, "is no range; write range=-1..1, range=..6 or range=0..");
            continue;
        }
        if (name.empty() && change.selector.facet == Facet::All)
            return badPart(selector, part,
                           "needs its role, such as weight=int4:sym:channel or act=float; 'float' and 'none' alone are "
                           "the whole layer");
        if (name.empty()) {
            auto own = readPart(selector, "weight", value); // the role is the selector's
            if (!own)
                return tl::unexpected(own.error());
            own->facet = Facet::All;
            change.parts.push_back(std::move(*own));
            continue;
        }
        auto read = readPart(selector, name, value);
        if (!read)
            return tl::unexpected(read.error());
        if (change.selector.facet != Facet::All &&
            (read->facet != change.selector.facet || read->inputIndex != change.selector.inputIndex))
            return badPart(selector, name, "is another role than the selector's; name it once, in either place");
        change.parts.push_back(std::move(*read));
    }
    if (change.parts.empty())
        return badPart(selector, spec, "sets a range for nothing; add act=int8:affine or another role");
    return withFacet(std::move(change));
}

Result<RecipeOverride> parseOverride(std::string_view text)
{
    // A regular expression may hold '=' itself: the first place that makes sense splits.
    std::optional<Error> first;
    for (auto at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1)) {
        auto change = parseOverride(text.substr(0, at), text.substr(at + 1));
        if (change)
            return change;
        if (!first)
            first = change.error();
    }
    if (first)
        return tl::unexpected(*first);
    return fail(ErrorCode::Usage, std::string(text), "write SELECTOR=SPEC, such as module:fc=weight=int4:sym:channel");
}

TensorSpec baseSpec(const Recipe &recipe, bool weight)
{
    switch (recipe.kind) {
    case RecipeKind::Xnnpack:
    case RecipeKind::X86:
        return weight ? pt2eWeightSpec(recipe.pt2e) : pt2eActivationSpec(recipe.pt2e);
    case RecipeKind::CoreAi: {
        CoreAiSpec spec = weight ? defaultWeightSpec() : defaultActivationSpec();
        if (weight)
            spec.granularity.axis.reset(); // by the operator
        return tensorSpecOf(spec, weight);
    }
    case RecipeKind::Palette:
        break;
    }
    TensorSpec spec = tensorSpecOf(defaultWeightSpec(), true);
    spec.axis.reset();
    return spec;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "core/recipe.h"
#include "core/yaml_tree.h"

namespace dblame
{

namespace
{

constexpr const char *kKey = "dblame";

class Additions
{
public:
    Additions(const std::string &fileName, Recipe &recipe) : m_fileName(fileName), m_recipe(recipe) {}

    // `hasConfiguration`: the file gives coreai-opt's configuration beside this.
    Result<void> read(const YamlNode &node, bool palette, bool hasConfiguration)
    {
        if (!node.isMap())
            return refuse(node, "dblame must be a mapping, not " + node.words());
        for (const auto &[key, value] : node.map)
            if (key.scalar != "preset" && key.scalar != "corrected" && key.scalar != "overrides")
                return refuse(key,
                              "unknown key " + key.words() + " in dblame; it takes preset, corrected and overrides");
        if (const YamlNode *preset = node.find("preset"))
            if (auto set = setPreset(*preset, palette, hasConfiguration); !set)
                return set;
        if (const YamlNode *corrected = node.find("corrected")) {
            const auto flag = corrected->flag();
            if (!flag)
                return refuse(*corrected, "corrected must be true or false, not " + corrected->words());
            m_recipe.corrected = *flag;
        }
        const YamlNode *overrides = node.find("overrides");
        if (!overrides || overrides->isNull())
            return {};
        if (!overrides->isList())
            return refuse(*overrides, "overrides must be a list of {select: SELECTOR, set: SPEC}");
        for (const YamlNode &entry : overrides->list)
            if (auto read = readOverride(entry); !read)
                return read;
        return {};
    }

private:
    [[nodiscard]] tl::unexpected<Error> refuse(const YamlNode &node, const std::string &what) const
    {
        return fail(ErrorCode::Unreadable, node.line > 0 ? m_fileName + ":" + std::to_string(node.line) : m_fileName,
                    what);
    }

    Result<void> setPreset(const YamlNode &node, bool palette, bool hasConfiguration)
    {
        const auto name = node.text();
        if (!name)
            return refuse(node, "preset must be a name, not " + node.words());
        auto preset = presetRecipe(*name);
        if (!preset)
            return refuse(node, preset.error().text());
        const bool pt2e = preset->kind == RecipeKind::Xnnpack || preset->kind == RecipeKind::X86;
        if ((preset->kind == RecipeKind::Palette) != palette)
            return refuse(node, palette
                                    ? "a palettizer's file takes a coreai-palette preset"
                                    : "a coreai-palette preset belongs into a file with kmeans_palettization_config");
        CoreAiConfig nothing;
        nothing.global = CoreAiModuleConfig::declined();
        if (pt2e && hasConfiguration && m_recipe.coreAi != nothing)
            return refuse(node, "the preset " + *name +
                                    " is not coreai-opt's: quantization_config must leave everything float "
                                    "(global_config: null) beside it");
        // The configuration in the file counts; the preset is then its name.
        m_recipe.preset = preset->preset;
        m_recipe.kind = preset->kind;
        m_recipe.corrected = preset->corrected;
        m_recipe.pt2e = preset->pt2e;
        if (!hasConfiguration || pt2e) {
            m_recipe.coreAi = preset->coreAi;
            m_recipe.palette = preset->palette;
        }
        return {};
    }

    Result<void> readOverride(const YamlNode &node)
    {
        if (!node.isMap())
            return refuse(node, "an override is {select: SELECTOR, set: SPEC}, not " + node.words());
        for (const auto &[key, value] : node.map)
            if (key.scalar != "select" && key.scalar != "set" && key.scalar != "float")
                return refuse(key, "unknown key " + key.words() + " in an override; it takes select, set and float");
        const YamlNode *select = node.find("select");
        const YamlNode *set = node.find("set");
        if (!select || !select->text() || !set || !(set->text() || set->isNull()))
            return refuse(node, "an override needs select and set, both text: {select: \"module:fc\", set: none}");
        auto change = parseOverride(*select->text(), set->isNull() ? "none" : *set->text());
        if (!change)
            return refuse(node, change.error().text());
        if (const YamlNode *meaning = node.find("float")) {
            if (meaning->scalar != "here" && meaning->scalar != "as-quantizer")
                return refuse(*meaning, "float must be 'here' or 'as-quantizer', not " + meaning->words());
            change->meaning = meaning->scalar == "here" ? OverrideMeaning::FloatHere : OverrideMeaning::AsQuantizer;
        }
        m_recipe.overrides.push_back(std::move(*change));
        return {};
    }

    const std::string &m_fileName;
    Recipe &m_recipe;
};

// The word that says what no spec text does: how "float" is meant.
bool needsMeaning(const RecipeOverride &change)
{
    const auto parsed = parseOverride(change.selector.text, overrideSpecText(change));
    return !parsed || parsed->meaning != change.meaning;
}

void writeAdditions(YamlWriter &out, const Recipe &recipe, const char *specKey)
{
    if (recipe.preset.empty() && !recipe.corrected && recipe.overrides.empty())
        return;
    out.open(specKey);
    out.open(kKey);
    if (!recipe.preset.empty())
        out.line("preset", YamlWriter::quoted(recipe.preset));
    out.line("corrected", recipe.corrected ? "true" : "false");
    if (!recipe.overrides.empty()) {
        out.open("overrides");
        for (const RecipeOverride &change : recipe.overrides) {
            std::string flow = "{select: " + YamlWriter::quoted(change.selector.text) +
                               ", set: " + YamlWriter::quoted(overrideSpecText(change));
            if (needsMeaning(change))
                flow +=
                    std::string(", float: ") + (change.meaning == OverrideMeaning::FloatHere ? "here" : "as-quantizer");
            out.item(flow + "}");
        }
        out.close();
    }
    out.close();
    out.close();
}

} // namespace

Result<Recipe> parseRecipe(std::string_view text, const std::string &fileName, std::vector<std::string> *notes)
{
    const auto document = parseYaml(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    const bool palette =
        document->isMap() && (document->find("kmeans_palettization_config") || document->find("palettization_spec"));
    const char *configKey = palette ? "kmeans_palettization_config" : "quantization_config";
    const YamlNode *config = document->isMap() ? document->find(configKey) : nullptr;
    const YamlNode *spec =
        document->isMap() ? document->find(palette ? "palettization_spec" : "quantization_spec") : nullptr;
    const YamlNode *additions = spec && spec->isMap() ? spec->find(kKey) : nullptr;

    Recipe recipe;
    recipe.kind = palette ? RecipeKind::Palette : RecipeKind::CoreAi;
    std::vector<std::string> ownNotes;
    bool hasConfiguration = false;
    if (config || !additions) { // a file of dBlame's own may go without
        if (palette) {
            auto parsed = parsePaletteConfig(text, fileName, ownNotes);
            if (!parsed)
                return tl::unexpected(parsed.error());
            recipe.palette = std::move(*parsed);
            hasConfiguration = true;
        } else {
            auto parsed = parseCoreAiConfig(text, fileName, ownNotes);
            if (!parsed)
                return tl::unexpected(parsed.error());
            recipe.coreAi = std::move(*parsed);
            hasConfiguration = true;
        }
    }
    if (additions) {
        if (auto read = Additions(fileName, recipe).read(*additions, palette, hasConfiguration); !read)
            return tl::unexpected(read.error());
        if (!config && recipe.preset.empty())
            return fail(ErrorCode::Unreadable, fileName,
                        std::string("has neither a preset under dblame nor ") + configKey);
    }
    if (notes)
        notes->insert(notes->end(), ownNotes.begin(), ownNotes.end());
    return recipe;
}

std::string recipeText(const Recipe &recipe)
{
    YamlWriter out;
    switch (recipe.kind) {
    case RecipeKind::Palette:
        writeAdditions(out, recipe, "palettization_spec");
        return out.text() + paletteConfigText(recipe.palette);
    case RecipeKind::CoreAi:
        writeAdditions(out, recipe, "quantization_spec");
        return out.text() + coreAiConfigText(recipe.coreAi);
    case RecipeKind::Xnnpack:
    case RecipeKind::X86:
        break;
    }
    writeAdditions(out, recipe, "quantization_spec");
    out.open("quantization_config");
    out.line("global_config", "null");
    out.close();
    return out.text();
}

} // namespace dblame

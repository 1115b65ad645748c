// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/recipe_export.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/graph_query.h"
#include "core/module_levels.h"
#include "core/placement_coreai.h"
#include "core/placement_diff.h"
#include "core/recipe_translate.h"
#include "core/yaml_tree.h"

namespace dblame
{

namespace
{

using Json = nlohmann::ordered_json;

constexpr int kRecipeVersion = 1;

bool isCoreAi(const Recipe &recipe)
{
    return recipe.kind == RecipeKind::CoreAi || recipe.kind == RecipeKind::Palette;
}

// --- coreai-opt -------------------------------------------------------------------------------------------------

Recipe asQuantizer(Recipe recipe)
{
    for (RecipeOverride &change : recipe.overrides)
        change.meaning = OverrideMeaning::AsQuantizer;
    return recipe;
}

tl::unexpected<Error> cannotSay(const RecipeOverride &change, const std::string &reason)
{
    return fail(ErrorCode::Usage, change.text(), "cannot be exported to coreai-opt: " + reason);
}

// What the text says, placed alone, against what the recipe asks for; the first difference in words.
Result<std::string> firstDifference(const Graph &graph, const Recipe &recipe, const CoreAiConfig &config)
{
    const auto asked = placeRecipe(graph, recipe);
    if (!asked)
        return tl::unexpected(asked.error());
    const auto said = placeCoreAi(graph, config);
    if (!said)
        return tl::unexpected(said.error());
    const PlacementDiff diff = comparePlacements(graph, *asked, *said);
    if (diff.empty())
        return std::string();
    const PlacementChange &change = diff.changes.front();
    return change.id + " " + siteChangeName(change.kind) + ": " + change.text;
}

// "Float here" and ranges can be exported where the quantizer's own way gives the same sites: only a model tells.
Result<CoreAiConfig> exportedConfig(const Recipe &recipe, const Graph *graph)
{
    const TranslatedConfig plain = translateOverrides(recipe, graph);
    if (!plain.left.empty() && !graph)
        return cannotSay(plain.left.front(), plain.reasons.front());
    TranslatedConfig said = plain.left.empty() ? plain : translateOverrides(asQuantizer(recipe), graph, true);
    if (!said.left.empty())
        return cannotSay(said.left.front(), said.reasons.front());
    if (graph) {
        const auto difference = firstDifference(*graph, recipe, said.config);
        if (!difference)
            return tl::unexpected(difference.error());
        if (!difference->empty() && plain.left.empty())
            return fail(ErrorCode::Internal, recipe.title(),
                        "the exported configuration would place other sites: " + *difference);
        if (!difference->empty())
            return cannotSay(plain.left.front(), plain.reasons.front() + " (there, " + *difference + ")");
    }
    return std::move(said.config);
}

// Palettes have no activations: what an override can say is None for a layer.
Result<PaletteConfig> exportedPalettes(const Recipe &recipe)
{
    PaletteConfig config = recipe.palette;
    const auto set = [](KeyedList<PaletteModuleConfig> &list, const std::string &key) {
        std::erase_if(list, [&](const auto &entry) { return entry.first == key; });
        list.emplace_back(key, PaletteModuleConfig::declined());
    };
    for (const RecipeOverride &change : recipe.overrides) {
        for (const OverridePart &part : change.parts) {
            if (part.spec)
                return cannotSay(change, "the palettizer has lookup tables only; write the table into the "
                                         "configuration (module_name_configs)");
            if (part.facet != Facet::All && part.facet != Facet::Weight)
                continue; // a palettizer leaves activations alone
            const std::string &pattern = change.selector.pattern;
            if (change.selector.by == SelectBy::Module && pattern.find('@') == std::string::npos)
                set(config.moduleNames, pattern);
            else if (change.selector.by == SelectBy::ModuleType && pattern.find('.') != std::string::npos)
                set(config.moduleTypes, pattern);
            else
                return cannotSay(change, "the palettizer takes module paths and full class names");
        }
    }
    return config;
}

Result<std::string> coreAiText(const Recipe &recipe, const Graph *graph)
{
    if (!isCoreAi(recipe))
        return fail(ErrorCode::Usage, recipe.title(), "is no recipe for coreai-opt; export it with --format torchao");
    if (recipe.corrected)
        return fail(ErrorCode::Usage, recipe.title(),
                    "':corrected' leaves out defects of coreai-opt, which its configuration cannot do; export the "
                    "recipe without it");
    if (recipe.kind == RecipeKind::Palette) {
        const auto config = exportedPalettes(recipe);
        return config ? Result<std::string>(paletteConfigText(*config)) : tl::unexpected(config.error());
    }
    const auto config = exportedConfig(recipe, graph);
    return config ? Result<std::string>(coreAiConfigText(*config)) : tl::unexpected(config.error());
}

// --- Python -----------------------------------------------------------------------------------------------------

std::string pythonText(const std::string &text)
{
    return Json(text).dump(); // a JSON string is a Python string
}

std::string pythonLiteral(const YamlNode &node, int depth);

std::string pythonScalar(const YamlNode &node)
{
    if (node.isNull())
        return "None";
    if (const auto flag = node.flag())
        return *flag ? "True" : "False";
    if (node.integer() || node.number())
        return node.scalar;
    return pythonText(node.scalar);
}

std::string pythonLiteral(const YamlNode &node, int depth)
{
    const std::string pad(static_cast<std::size_t>(depth + 1) * 4, ' ');
    if (node.isMap()) {
        if (node.map.empty())
            return "{}";
        std::string text = "{\n";
        for (const auto &[key, value] : node.map)
            text += pad + pythonText(key.scalar) + ": " + pythonLiteral(value, depth + 1) + ",\n";
        return text + std::string(static_cast<std::size_t>(depth) * 4, ' ') + "}";
    }
    if (node.isList()) {
        std::string text = "[";
        for (std::size_t i = 0; i < node.list.size(); ++i)
            text += (i == 0 ? "" : ", ") + pythonLiteral(node.list[i], depth);
        return text + "]";
    }
    return pythonScalar(node);
}

// --- torchao ----------------------------------------------------------------------------------------------------

std::string qschemeOf(const TensorSpec &spec)
{
    const bool channel = spec.granularity == Granularity::PerChannel;
    return std::string("torch.") + (channel ? "per_channel" : "per_tensor") +
           (spec.scheme == Scheme::Affine ? "_affine" : "_symmetric");
}

std::string observerClass(const TensorSpec &spec, bool qat)
{
    const bool channel = spec.granularity == Granularity::PerChannel;
    switch (spec.observer) {
    case ObserverKind::MinMax:
    case ObserverKind::LastBatch:
        return channel ? "PerChannelMinMaxObserver" : "MinMaxObserver";
    case ObserverKind::MovingAverage:
        return channel ? "MovingAveragePerChannelMinMaxObserver" : "MovingAverageMinMaxObserver";
    case ObserverKind::Histogram:
        return channel ? std::string() : "HistogramObserver";
    case ObserverKind::Dynamic:
        return channel || qat ? std::string() : "PlaceholderObserver";
    case ObserverKind::Fixed:
        return "FixedQParamsObserver";
    default:
        return {};
    }
}

// What a PT2E quantizer's QuantizationSpec can hold; the reason where it cannot.
tl::expected<Json, std::string> torchaoSpec(const TensorSpec &spec, bool qat)
{
    const auto refuse = [](std::string why) { return tl::unexpected<std::string>(std::move(why)); };
    if (!isInteger(spec.type))
        return refuse("torchao's observers have integer types only");
    if (spec.granularity == Granularity::PerBlock || spec.granularity == Granularity::PerToken)
        return refuse("torchao's PT2E quantizers have per-tensor and per-channel observers only");
    if (spec.minValue || spec.powerOfTwoScale || spec.arithmetic != Arithmetic::Reciprocal)
        return refuse("torchao's observers have zero points and free scales only");
    const std::string observer = observerClass(spec, qat);
    if (observer.empty())
        return refuse("torchao has no observer for this spec (" + spec.text() + ")");
    if ((spec.low || spec.high) && !(spec.low && spec.high))
        return refuse("torchao can fix a range only as a whole: give both bounds");
    Json json;
    json["dtype"] = "torch." + std::string(dtypeName(storageOf(spec.type)));
    json["quant_min"] = spec.quantMin;
    json["quant_max"] = spec.quantMax;
    json["qscheme"] = qschemeOf(spec);
    json["ch_axis"] = spec.granularity == Granularity::PerChannel ? Json(spec.axis.value_or(0)) : Json(nullptr);
    json["is_dynamic"] = spec.observer == ObserverKind::Dynamic;
    json["observer"] = spec.low ? "FixedQParamsObserver" : observer;
    json["fake_quantize"] = qat && !spec.low ? Json("FusedMovingAvgObsFakeQuantize") : Json(nullptr);
    json["eps"] = spec.eps;
    if (spec.observer == ObserverKind::MovingAverage)
        json["averaging_constant"] = spec.averaging;
    if (spec.low)
        json["range"] = {*spec.low, *spec.high};
    return json;
}

const char *matchKey(SelectBy by)
{
    switch (by) {
    case SelectBy::Module:
        return "module";
    case SelectBy::ModuleType:
        return "type";
    case SelectBy::Node:
        return "node";
    case SelectBy::OpType:
        return "op_type";
    }
    return "";
}

const char *roleWord(Facet facet)
{
    switch (facet) {
    case Facet::All:
        return "all";
    case Facet::Weight:
        return "weight";
    case Facet::In:
        return "in";
    case Facet::Out:
        return "out";
    case Facet::Act:
        return "act";
    }
    return "";
}

// Operators by module, type and ordinal: names of nodes change with the export.
Json operatorsOf(const Graph &graph, const std::vector<NodeId> &nodes)
{
    std::map<std::pair<std::string, std::string>, int> counts;
    Json list = Json::array();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node &node = graph.nodes[i];
        const std::string module = moduleCallOf(graph, node);
        const int ordinal = counts[{module, node.target}]++;
        if (std::find(nodes.begin(), nodes.end(), NodeId(i)) == nodes.end())
            continue;
        list.push_back({{"module", module}, {"op", node.target}, {"ordinal", ordinal}, {"node", node.name}});
    }
    return list;
}

Result<Json> entriesOf(const Recipe &recipe, const RecipeOverride &change, const Graph *graph)
{
    Json operators;
    if (graph) {
        const auto nodes = selectNodes(change.selector, *graph);
        if (!nodes)
            return tl::unexpected(nodes.error());
        operators = operatorsOf(*graph, *nodes);
    }
    Json entries = Json::array();
    for (const OverridePart &part : change.parts) {
        Json entry;
        entry["select"] = change.selector.text;
        entry["match"] = {{matchKey(change.selector.by), change.selector.pattern}};
        if (graph)
            entry["operators"] = operators;
        const bool oneInput = part.facet == Facet::In && part.inputIndex >= 0;
        entry["role"] = roleWord(part.facet) + (oneInput ? "[" + std::to_string(part.inputIndex) + "]" : std::string());
        entry["meaning"] = change.meaning == OverrideMeaning::FloatHere && !part.spec ? "float_here" : "as_quantizer";
        entry["spec"] = nullptr;
        if (part.spec) {
            const bool weight = part.facet == Facet::Weight;
            auto spec = parseTensorSpec(*part.spec, baseSpec(recipe, weight));
            if (!spec)
                return tl::unexpected(spec.error());
            if (!weight) {
                spec->low = change.low;
                spec->high = change.high;
            }
            auto json = torchaoSpec(*spec, recipe.pt2e.qat);
            if (!json)
                return fail(ErrorCode::Usage, change.text(), "cannot be exported to torchao: " + json.error());
            entry["spec"] = std::move(*json);
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

} // namespace

Result<std::string> exportCoreAiOpt(const Recipe &recipe, const Graph *graph)
{
    auto text = coreAiText(recipe, graph);
    if (!text)
        return text;
    return "# " + recipe.title() + ", written by dBlame\n" + *text;
}

Result<std::string> exportCoreAiPython(const Recipe &recipe, const Graph *graph)
{
    const auto text = coreAiText(recipe, graph);
    if (!text)
        return text;
    const auto tree = parseYaml(*text, "recipe");
    if (!tree)
        return tl::unexpected(tree.error());
    const bool palette = recipe.kind == RecipeKind::Palette;
    const std::string config = palette ? "KMeansPalettizerConfig" : "QuantizerConfig";
    return "# " + recipe.title() + ", written by dBlame\nfrom coreai_opt." +
           (palette ? "palettization" : "quantization") + " import " + config + "\n\n\ndef " +
           (palette ? "to_palettizer_config" : "to_quantizer_config") + "():\n    return " + config + ".from_dict(" +
           pythonLiteral(*tree, 1) + ")\n";
}

Result<std::string> exportTorchao(const Recipe &recipe, const Graph *graph)
{
    if (isCoreAi(recipe))
        return fail(ErrorCode::Usage, recipe.title(), "is a recipe for coreai-opt; export it with --format coreai-opt");
    if (recipe.corrected)
        return fail(ErrorCode::Usage, recipe.title(),
                    "':corrected' leaves out defects of torchao, which no configuration of its quantizers can do; "
                    "export the recipe without it");
    Json json;
    json["dblame_recipe"] = kRecipeVersion;
    json["preset"] = recipe.preset;
    json["quantizer"] = recipe.kind == RecipeKind::X86 ? "X86InductorQuantizer" : "XNNPACKQuantizer";
    json["options"] = {{"is_per_channel", recipe.pt2e.perChannel || recipe.kind == RecipeKind::X86},
                       {"is_qat", recipe.pt2e.qat},
                       {"is_dynamic", recipe.pt2e.dynamic}};
    json["entries"] = Json::array();
    for (const RecipeOverride &change : recipe.overrides) {
        auto entries = entriesOf(recipe, change, graph);
        if (!entries)
            return tl::unexpected(entries.error());
        for (Json &entry : *entries)
            json["entries"].push_back(std::move(entry));
    }
    return json.dump(2) + "\n";
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/placement_coreai_words.h"

#include <algorithm>

#include "core/graph_query.h"
#include "core/number_text.h"

namespace dblame
{

namespace
{

// Parameters of norms scale results, they are no weights; everything else with two dimensions is one.
bool isWeightLike(const CoreAiGraph &graph, int producer)
{
    if (graph.at(producer).kind != FxKind::State || !graph.isFloat(producer) || graph.isSingleElement(producer))
        return false;
    const GraphInput *input = graph.graph().input(graph.at(producer).value);
    return input && input->kind == InputKind::Parameter && graph.rank(producer).value_or(0) >= 2;
}

// The weight that an operator reads, past operators that only move elements; -1 for none.
int weightOf(const CoreAiGraph &graph, int entry)
{
    for (int input : graph.at(entry).inputs) {
        while (graph.isCall(input) && isElementMover(graph.graph().node(graph.at(input).node)) &&
               !graph.at(input).inputs.empty())
            input = graph.at(input).inputs.front();
        if (isWeightLike(graph, input))
            return input;
    }
    return -1;
}

bool decomposed(const std::string &target)
{
    return target == "aten.convolution.default" || target == "aten.addmm.default" || target == "aten.mm.default";
}

std::string reason(const CoreAiGraph &graph, const CoreAiAnnotation &annotation, int entry, int weight,
                   const std::map<ValueId, std::string> &indivisible)
{
    const ChosenConfig &chosen = annotation.configs[static_cast<std::size_t>(entry)];
    const auto &names = graph.localNames(weight);
    if (const auto it = indivisible.find(graph.at(weight).value); it != indivisible.end())
        return "the weight stays float: " + it->second;
    if (chosen.excluded)
        return "left out by the recipe";
    if (!chosen.config) {
        if (decomposed(graph.target(entry)))
            return "coreai-opt does not know " + graph.target(entry) +
                   "; export without run_decompositions so that convolutions and linears stay whole";
        return "coreai-opt quantizes no operator of this kind (" + graph.target(entry) + ")";
    }
    if (graph.inputIndex(entry, weight) < 0)
        return "the weight is transformed before it is read; coreai-opt takes such a tensor for an activation";
    const auto *spec = lookUp(chosen.config->states, names);
    if (!spec)
        return "no entry of op_state_spec names the parameter '" + (names.empty() ? std::string() : names.front()) +
               "'";
    if (!*spec)
        return declineWords(chosen);
    return "another operator that shares the weight declines it";
}

} // namespace

std::vector<LeftFloat> floatOperators(const CoreAiGraph &graph, const CoreAiAnnotation &annotation,
                                      const Placement &placement, const std::map<ValueId, std::string> &indivisible)
{
    std::set<NodeId> quantized;
    for (const PlacedSite &site : placement.sites)
        if (site.role == SiteRole::Weight) {
            quantized.insert(site.readers.begin(), site.readers.end());
            if (site.owner.valid())
                quantized.insert(site.owner);
        }
    std::vector<LeftFloat> result;
    for (int i = 0; i < graph.size(); ++i) {
        if (!graph.isCall(i) || quantized.contains(graph.at(i).node) ||
            isElementMover(graph.graph().node(graph.at(i).node)))
            continue;
        if (const int weight = weightOf(graph, i); weight >= 0)
            result.push_back({graph.at(i).node, reason(graph, annotation, i, weight, indivisible)});
    }
    return result;
}

std::string declineWords(const ChosenConfig &chosen)
{
    std::string where = "global_config";
    if (chosen.opLevel == OpConfigLevel::Name)
        where = "op_name_config '" + chosen.key + "'";
    else if (chosen.opLevel == OpConfigLevel::Type)
        where = "op_type_config '" + chosen.key + "'";
    else if (chosen.level == ConfigLevel::ModuleName)
        where = "module_name_configs '" + chosen.key + "'";
    else if (chosen.level == ConfigLevel::ModuleType)
        where = "module_type_configs '" + chosen.key + "'";
    return "the configuration declines it (" + where + ")";
}

std::string epsWords(double eps)
{
    return "coreai-opt computes this batch norm with eps 1e-05 instead of " + shortestText(eps) +
           ", quantized or not; ':corrected' keeps the model's";
}

std::string transposedAxisWords()
{
    return "the weight of this transposed convolution is quantized per channel along axis 0, its input channels; "
           "':corrected' takes axis 1";
}

std::string averagingWords()
{
    return "activation ranges are moving averages that start at the first batch and move by 1 % per batch: after N "
           "batches 0.99^N of the first one's range is left; ':corrected' takes minimum and maximum over all batches";
}

std::optional<std::string> misfitWords(const TensorSpec &spec, const std::vector<std::int64_t> &shape)
{
    const auto rank = static_cast<std::int64_t>(shape.size());
    if (spec.granularity == Granularity::PerBlock && !spec.axis) {
        if (static_cast<std::int64_t>(spec.blockSizes.size()) != rank)
            return "has " + std::to_string(rank) + " dimensions, block_size has " +
                   std::to_string(spec.blockSizes.size()) + " entries";
        return std::nullopt;
    }
    if (!spec.axis || spec.granularity == Granularity::PerTensor)
        return std::nullopt;
    if (*spec.axis < -rank || *spec.axis >= rank)
        return "has " + std::to_string(rank) + " dimensions: there is no axis " + std::to_string(*spec.axis);
    return std::nullopt;
}

std::optional<std::string> indivisibleWords(const TensorSpec &spec, const std::vector<std::int64_t> &shape)
{
    if (spec.granularity != Granularity::PerBlock || misfitWords(spec, shape))
        return std::nullopt;
    const auto check = [&](std::int64_t axis, std::int64_t block) -> std::optional<std::string> {
        const std::int64_t size = shape[static_cast<std::size_t>(axis)];
        if (block <= 0 || size < 0 || size % block == 0)
            return std::nullopt;
        return "its size " + std::to_string(size) + " along axis " + std::to_string(axis) +
               " is not divisible by blocks of " + std::to_string(block);
    };
    if (spec.axis) {
        const auto rank = static_cast<std::int64_t>(shape.size());
        return check(*spec.axis < 0 ? *spec.axis + rank : *spec.axis, spec.blockSizes.front());
    }
    for (std::size_t axis = 0; axis < spec.blockSizes.size(); ++axis)
        if (auto words = check(static_cast<std::int64_t>(axis), spec.blockSizes[axis]))
            return words;
    return std::nullopt;
}

} // namespace dblame

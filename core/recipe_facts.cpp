// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/recipe_facts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/graph_query.h"
#include "core/number_text.h"
#include "core/text_table.h"

namespace dblame
{

namespace
{

bool readsStoredWeight(const Graph &graph, const Node &node)
{
    const ValueId weight = valueArgument(node, "weight");
    const GraphInput *input = weight.valid() ? graph.input(weight) : nullptr;
    const auto &meta = weight.valid() ? graph.value(weight).meta : std::nullopt;
    return input && input->kind == InputKind::Parameter && meta && meta->sizes.size() >= 2;
}

void countObservers(const Placement &placement, RecipeFacts &facts)
{
    std::map<std::pair<bool, std::string>, std::pair<std::set<int>, int>> byKind;
    for (const PlacedSite &site : placement.sites) {
        const TensorSpec &spec = placement.observers[static_cast<std::size_t>(site.instance)].spec;
        auto &entry = byKind[{site.role == SiteRole::Weight, spec.text()}];
        entry.first.insert(site.instance);
        ++entry.second;
    }
    for (const auto &[key, count] : byKind)
        facts.observers.push_back({key.second, static_cast<int>(count.first.size()), count.second, key.first});
    std::stable_sort(facts.observers.begin(), facts.observers.end(),
                     [](const ObserverCount &a, const ObserverCount &b) {
                         return std::pair(!a.weight, -a.sites) < std::pair(!b.weight, -b.sites);
                     });
    facts.observerCount = static_cast<int>(placement.observers.size());
    facts.siteCount = static_cast<int>(placement.sites.size());
}

void countNodes(const Placement &placement, RecipeFacts &facts)
{
    for (const PlacedSite &site : placement.sites) {
        const TensorSpec &spec = placement.observers[static_cast<std::size_t>(site.instance)].spec;
        if (site.role == SiteRole::Weight) {
            ++facts.dequantizeNodes;
            continue;
        }
        ++facts.quantizeNodes;
        const int readers = static_cast<int>(site.readers.size()) + (site.readByOutput ? 1 : 0);
        facts.dequantizeNodes += spec.observer == ObserverKind::Dynamic ? 1 : std::max(1, readers);
    }
}

void countOperators(const Graph &graph, const Placement &placement, RecipeFacts &facts)
{
    std::set<NodeId> quantized;
    for (const PlacedSite &site : placement.sites) {
        if (site.owner.valid())
            quantized.insert(site.owner);
        if (site.role != SiteRole::Weight)
            quantized.insert(site.readers.begin(), site.readers.end());
    }
    std::map<std::string, OperatorCount> byType;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node &node = graph.nodes[i];
        OperatorCount &count = byType[node.opType()];
        count.op = node.opType();
        ++count.total;
        count.quantized += quantized.contains(NodeId(i)) ? 1 : 0;
        count.readsWeights = count.readsWeights || readsStoredWeight(graph, node);
    }
    for (auto &[op, count] : byType)
        if (count.quantized > 0 || count.readsWeights)
            facts.operators.push_back(std::move(count));
    std::stable_sort(facts.operators.begin(), facts.operators.end(),
                     [](const OperatorCount &a, const OperatorCount &b) { return a.total > b.total; });
    for (const LeftFloat &left : placement.leftFloat) {
        const Node &node = graph.node(left.node);
        facts.leftFloat.push_back({node.opType(), node.name, moduleCallOf(graph, node), left.reason});
    }
}

void findBoundaries(const Graph &graph, const Placement &placement, RecipeFacts &facts)
{
    std::map<NodeId, std::set<int>> in, out;
    for (const PlacedSite &site : placement.sites) {
        const TensorSpec &spec = placement.observers[static_cast<std::size_t>(site.instance)].spec;
        if (site.role == SiteRole::Weight || !isInteger(spec.type))
            continue;
        QuantSpec grid;
        grid.quantMin = spec.quantMin;
        grid.quantMax = spec.quantMax;
        const int bits = grid.effectiveBits();
        for (const NodeId reader : site.readers)
            in[reader].insert(bits);
        if (site.role == SiteRole::Output && site.owner.valid())
            out[site.owner].insert(bits);
    }
    for (const auto &[node, bits] : in) {
        const auto found = out.find(node);
        const int before = *bits.rbegin();
        const int after = found == out.end() ? before : *found->second.begin();
        const int lowest = *bits.begin();
        if (before == after && lowest == before)
            continue;
        facts.boundaries.push_back(
            {graph.node(node).name, moduleCallOf(graph, graph.node(node)), lowest == after ? before : lowest, after});
    }
}

std::string where(const std::string &module, const std::string &node)
{
    return module.empty() ? node : module;
}

} // namespace

RecipeFacts factsOf(const QuantizedModel &quantized)
{
    RecipeFacts facts;
    const Graph &graph = quantized.annotated->graph();
    countObservers(quantized.placement, facts);
    countNodes(quantized.placement, facts);
    countOperators(graph, quantized.placement, facts);
    findBoundaries(graph, quantized.placement, facts);
    for (const DefectNote &defect : quantized.placement.defects)
        facts.defects.push_back("defect " + std::to_string(defect.defect) + ": " + defect.text);
    return facts;
}

std::string factsText(const QuantizedModel &quantized)
{
    const RecipeFacts facts = factsOf(quantized);
    std::string text = std::to_string(facts.observerCount) + " observers at " + std::to_string(facts.siteCount) +
                       " sites; converted: " + std::to_string(facts.quantizeNodes) + " quantize and " +
                       std::to_string(facts.dequantizeNodes) + " dequantize nodes\n";
    for (const ObserverCount &count : facts.observers)
        text += "  " + std::to_string(count.observers) + (count.weight ? " on weights: " : " on activations: ") +
                count.kind + "\n";
    text += "\noperators\n";
    for (const OperatorCount &count : facts.operators)
        text += "  " + count.op + ": " + std::to_string(count.quantized) + " of " + std::to_string(count.total) +
                " quantized\n";
    if (!facts.leftFloat.empty()) {
        text += "\nreads weights and stays float\n";
        for (const FloatOperator &left : facts.leftFloat)
            text += "  " + where(left.module, left.node) + " (" + left.op + "): " + left.reason + "\n";
    }
    if (!facts.boundaries.empty()) {
        text += "\nbits change\n";
        for (const BitBoundary &boundary : facts.boundaries)
            text += "  " + where(boundary.module, boundary.node) + ": " + std::to_string(boundary.bitsIn) +
                    " bits in, " + std::to_string(boundary.bitsOut) + " bits out\n";
    }
    if (!quantized.weightErrors.empty()) {
        text += "\nweights\n";
        for (const WeightError &weight : quantized.weightErrors) {
            text += "  " + weight.site + ": " + fixedText(weight.snrDb, 2) + " dB";
            if (weight.worstChannel >= 0)
                text += ", worst channel " + std::to_string(weight.worstChannel) + " " +
                        fixedText(weight.channelDb[static_cast<std::size_t>(weight.worstChannel)], 2) + " dB";
            text += "\n";
        }
    }
    if (!facts.defects.empty()) {
        text += "\nknown defects of the peer that bite here (:corrected leaves them out)\n";
        for (const std::string &defect : facts.defects)
            text += "  " + defect + "\n";
    }
    return text;
}

std::string weightChannelsText(const QuantizedModel &quantized)
{
    TextTable table({"weight", ">axis", ">channel", ">SNR dB", ""});
    for (const WeightError &weight : quantized.weightErrors)
        for (std::size_t i = 0; i < weight.channelDb.size(); ++i)
            table.add({weight.site, std::to_string(weight.axis), std::to_string(i), fixedText(weight.channelDb[i], 2),
                       static_cast<int>(i) == weight.worstChannel ? "worst" : ""});
    return table.text();
}

} // namespace dblame

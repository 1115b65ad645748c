// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/inspection.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "core/graph_text.h"
#include "core/number_text.h"
#include "core/report.h"
#include "core/text_table.h"

namespace dblame
{

namespace
{

using Json = nlohmann::ordered_json;

const char *inputRole(InputKind kind)
{
    switch (kind) {
    case InputKind::User:
        return "input";
    case InputKind::Parameter:
        return "parameter";
    case InputKind::Buffer:
        return "buffer";
    case InputKind::TensorConstant:
        return "tensor constant";
    case InputKind::Constant:
        return "constant";
    case InputKind::CustomObject:
        return "custom object";
    case InputKind::Token:
        return "token";
    }
    return "";
}

const char *outputRole(OutputKind kind)
{
    switch (kind) {
    case OutputKind::User:
        return "output";
    case OutputKind::BufferMutation:
        return "buffer mutation";
    case OutputKind::ParameterMutation:
        return "parameter mutation";
    case OutputKind::InputMutation:
        return "input mutation";
    case OutputKind::Loss:
        return "loss";
    case OutputKind::Gradient:
        return "gradient";
    case OutputKind::Token:
        return "token";
    }
    return "";
}

std::string literalText(const Argument &argument)
{
    // As the graph's text form writes it.
    Graph none;
    none.index();
    Node node;
    node.target = "x";
    node.inputs.push_back({"", argument});
    const auto call = printCall(none, node);
    return call.substr(2, call.size() - 3);
}

InspectedValue inspectedInput(const Model &model, const GraphInput &input)
{
    InspectedValue value;
    value.role = inputRole(input.kind);
    if (input.kind == InputKind::Buffer && !input.persistent)
        value.role += " (not persistent)";
    value.target = input.target;
    if (!input.value.valid()) {
        value.type = literalText(input.constant);
        return value;
    }
    value.name = model.graph().value(input.value).name;
    value.type = printMeta(model.graph().value(input.value).meta);
    if (const auto stored = model.stored(input.value)) {
        value.bytes = stored->bytes;
        value.mapped = stored->mapped;
    }
    return value;
}

// `faults`: per node of this graph, empty for subgraphs (theirs show at the node that calls them).
void countOperators(const Graph &graph, const std::vector<std::string> &faults,
                    std::map<std::string, InspectedOperator> &counts, Inspection &inspection)
{
    inspection.nodes += graph.nodes.size();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node &node = graph.nodes[i];
        auto &entry = counts[node.target];
        entry.name = node.target;
        ++entry.count;
        if (i >= faults.size() || faults[i].empty())
            continue;
        if (entry.cannotRun++ == 0) {
            entry.fault = faults[i];
            entry.node = node.name;
        }
    }
    for (const auto &subgraph : graph.subgraphs) {
        ++inspection.subgraphs;
        countOperators(*subgraph, {}, counts, inspection);
    }
}

std::string bytesText(std::uint64_t bytes)
{
    if (bytes < 10'000)
        return std::to_string(bytes) + " B";
    const char *units[] = {"kB", "MB", "GB", "TB"};
    double size = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (size /= 1000; size >= 1000 && unit < 3; size /= 1000)
        ++unit;
    return fixedText(size, 1) + " " + units[unit];
}

std::string scaleText(const QuantSite &site)
{
    if (site.scale.empty())
        return site.spec.dynamic ? "from each tensor" : "";
    const auto [low, high] = std::minmax_element(site.scale.begin(), site.scale.end());
    const std::string zero = site.zeroPoint.size() == 1 ? ", zero point " + std::to_string(site.zeroPoint.front()) : "";
    if (site.scale.size() == 1)
        return significantText(*low, 6) + zero;
    return std::to_string(site.scale.size()) + " from " + significantText(*low, 4) + " to " + significantText(*high, 4);
}

std::string stateText(const QuantSite &site)
{
    std::string text = siteFormName(site.form);
    if (site.watchesOnly)
        return text;
    if (!site.enabled)
        text += ", off in the file";
    if (site.group >= 0)
        text += ", grid group " + std::to_string(site.group);
    return text;
}

std::string signatureText(const Inspection &inspection)
{
    TextTable table({"signature", "value", "state-dict name or label", "type", "stored"});
    for (const auto *list : {&inspection.inputs, &inspection.outputs})
        for (const auto &v : *list)
            table.add({v.role, v.name, v.target, v.type,
                       v.bytes == 0 ? "" : bytesText(v.bytes) + (v.mapped ? ", mapped" : "")});
    return table.text();
}

std::string sitesText(const Inspection &inspection)
{
    if (inspection.sites.sites.empty())
        return "no quantization sites\n";
    TextTable table({"quantization site", "role", "spec", "scale", "form"});
    for (const auto &site : inspection.sites.sites)
        table.add({site.id, siteRoleName(site.role), site.spec.text(), scaleText(site), stateText(site)});
    return table.text();
}

std::string operatorsText(const Inspection &inspection)
{
    TextTable table({"operator", ">nodes", "runs"});
    for (const auto &op : inspection.operators)
        table.add(
            {op.name, std::to_string(op.count),
             op.cannotRun == 0 ? "yes" : "no: " + op.fault + " (" + op.node + (op.cannotRun > 1 ? ", ..." : "") + ")"});
    return table.text();
}

Json number(double value)
{
    return std::isfinite(value) ? Json(value) : Json(shortestText(value));
}

Json siteJson(const QuantSite &site)
{
    Json scale = Json::array();
    for (const double s : site.scale)
        scale.push_back(number(s));
    Json json{{"id", site.id},
              {"role", siteRoleName(site.role)},
              {"form", siteFormName(site.form)},
              {"module", site.module},
              {"instance", site.instance},
              {"dtype", dtypeName(site.spec.storage)},
              {"effective_bits", site.spec.effectiveBits()},
              {"spec", site.spec.text()},
              {"scale", scale},
              {"zero_point", site.zeroPoint},
              {"quant_min", site.spec.quantMin},
              {"quant_max", site.spec.quantMax},
              {"on", site.enabled},
              {"watches_only", site.watchesOnly}};
    if (site.group >= 0)
        json["group"] = site.group;
    if (site.spec.axis >= 0)
        json["axis"] = site.spec.axis;
    return json;
}

Json valueJson(const InspectedValue &value)
{
    Json json{{"role", value.role}, {"name", value.name}, {"target", value.target}, {"type", value.type}};
    if (value.bytes > 0) {
        json["bytes"] = value.bytes;
        json["mapped"] = value.mapped;
    }
    return json;
}

} // namespace

Inspection inspect(const Model &model, bool withGraph)
{
    Inspection inspection;
    inspection.info = model.info();
    const Graph &graph = model.graph();
    for (const auto &input : graph.inputs)
        inspection.inputs.push_back(inspectedInput(model, input));
    for (const auto &output : graph.outputs) {
        InspectedValue value;
        value.role = outputRole(output.kind);
        value.target = output.target;
        if (output.value.valid()) {
            value.name = graph.value(output.value).name;
            value.type = printMeta(graph.value(output.value).meta);
        } else {
            value.type = literalText(output.literal);
        }
        inspection.outputs.push_back(std::move(value));
    }
    std::map<std::string, InspectedOperator> counts;
    countOperators(graph, model.nodeFaults(), counts, inspection);
    for (auto &[name, entry] : counts)
        inspection.operators.push_back(std::move(entry));
    std::stable_sort(inspection.operators.begin(), inspection.operators.end(),
                     [](const auto &a, const auto &b) { return a.count > b.count; });
    inspection.sites = recognizeSites(model);
    if (withGraph) {
        GraphTextOptions options;
        options.stackTraces = false;
        inspection.graph = printGraph(graph, options);
    }
    return inspection;
}

std::string inspectionText(const Inspection &inspection)
{
    const ModelInfo &info = inspection.info;
    std::string out = "file        " + info.path + "\n";
    out += "format      " + info.format + ", " + info.producer + ", " + bytesText(info.bytes) + "\n";
    out += "sha256      " + info.sha256 + "\n";
    out += "program     " + info.program;
    for (const auto &other : info.otherPrograms)
        out += ", also #" + other;
    out += "\ngraph       " + std::to_string(inspection.nodes) + " nodes, " +
           std::to_string(inspection.sites.sites.size()) + " quantization sites";
    if (inspection.subgraphs > 0)
        out += ", " + std::to_string(inspection.subgraphs) + " subgraphs";
    out += "\nsamples     " + (info.hasSampleInputs
                                   ? std::string("sample inputs are in the file")
                                   : "none" + (info.sampleInputsNote.empty() ? "" : ": " + info.sampleInputsNote));
    out += "\n";
    for (const auto *notes : {&info.notes, &inspection.sites.notes})
        for (const auto &note : *notes)
            out += "note        " + note + "\n";
    out += "\n" + signatureText(inspection) + "\n" + sitesText(inspection) + "\n" + operatorsText(inspection);
    if (!inspection.graph.empty())
        out += "\n" + inspection.graph;
    return out;
}

std::string inspectionJson(const Inspection &inspection)
{
    const ModelInfo &info = inspection.info;
    Json json{{"dblame", dblameVersion()},
              {"path", info.path},
              {"sha256", info.sha256},
              {"bytes", info.bytes},
              {"format", info.format},
              {"producer", info.producer},
              {"program", info.program},
              {"other_programs", info.otherPrograms},
              {"sample_inputs", info.hasSampleInputs},
              {"notes", info.notes}};
    if (!info.sampleInputsNote.empty())
        json["sample_inputs_note"] = info.sampleInputsNote;
    json["nodes"] = inspection.nodes;
    json["inputs"] = Json::array();
    for (const auto &value : inspection.inputs)
        json["inputs"].push_back(valueJson(value));
    json["outputs"] = Json::array();
    for (const auto &value : inspection.outputs)
        json["outputs"].push_back(valueJson(value));
    json["operators"] = Json::array();
    for (const auto &op : inspection.operators) {
        Json entry{{"name", op.name}, {"nodes", op.count}, {"runs", op.cannotRun == 0}};
        if (op.cannotRun > 0) {
            entry["cannot_run"] = op.cannotRun;
            entry["reason"] = op.fault;
            entry["node"] = op.node;
        }
        json["operators"].push_back(std::move(entry));
    }
    json["sites"] = Json::array();
    for (const auto &site : inspection.sites.sites)
        json["sites"].push_back(siteJson(site));
    json["site_notes"] = inspection.sites.notes;
    if (!inspection.graph.empty())
        json["graph"] = inspection.graph;
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace dblame

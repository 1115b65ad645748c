// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/pt2_reader.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/readers/json_text.h"
#include "core/readers/pt2_graph.h"
#include "core/readers/pt2_signature.h"
#include "core/readers/pt2_weights.h"
#include "core/readers/torch_save.h"

namespace dblame
{

namespace
{

constexpr std::int64_t kKnownMajor = 8, kKnownMinor = 20;
// Beyond, the checksums of weights would cost seconds before the graph is on screen.
constexpr std::uint64_t kVerifyUpTo = std::uint64_t{2} << 30U;

void checkArchive(const ZipArchive &archive)
{
    const auto text = [&](const char *name) {
        const Bytes bytes = archive.read(name);
        std::string_view content = bytes.text();
        while (!content.empty() && (content.back() == '\n' || content.back() == '\r'))
            content.remove_suffix(1);
        return std::string(content);
    };
    if (const std::string format = text("archive_format"); format != "pt2")
        throw ReadError("archive_format " + printable(format) + " is unknown");
    if (archive.has("archive_version"))
        if (const std::string version = text("archive_version"); version != "0")
            throw ReadError("archive_version " + printable(version) + " is newer than this program knows (0)");
    if (archive.has("byteorder"))
        if (const std::string order = text("byteorder"); order != "little")
            throw ReadError("big-endian archive: export it on a little-endian machine");
}

std::vector<std::string> programNames(const ZipArchive &archive)
{
    constexpr std::string_view prefix = "models/", suffix = ".json";
    std::vector<std::string> names;
    for (const auto &member : archive.members()) {
        const std::string_view name = archive.shortName(member);
        if (name.starts_with(prefix) && name.ends_with(suffix) && name.size() > prefix.size() + suffix.size())
            names.emplace_back(name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
    }
    return names;
}

std::string chooseProgram(const std::vector<std::string> &names, const std::string &asked, ModelInfo &info)
{
    const auto has = [&](const std::string &name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    std::string all;
    for (const std::string &name : names)
        all += (all.empty() ? "" : ", ") + name;
    if (!asked.empty()) {
        if (!has(asked))
            throw ReadError("there is no program " + printable(asked) + " in the file; it holds: " + all);
        return asked;
    }
    if (names.empty())
        throw ReadError("models/model.json is missing");
    if (has("model"))
        return "model";
    if (names.size() > 1)
        info.notes.push_back("the file holds several programs (" + all + "); opened " + names.front() +
                             ", ask for another with FILE#name");
    return names.front();
}

void unknownFields(const Json &object, const std::set<std::string> &known, std::set<std::string> &unknown)
{
    if (object.is_object())
        for (const auto &[key, value] : object.items())
            if (known.count(key) == 0)
                unknown.insert(key);
}

// Only looked for in files of a newer schema: which fields this version does not read.
std::string ignoredFields(const Json &document)
{
    std::set<std::string> unknown;
    unknownFields(document,
                  {"graph_module", "opset_version", "range_constraints", "schema_version", "verifiers", "torch_version",
                   "guards_code", "dialect", "example_inputs"},
                  unknown);
    const Json &module = objectField(document, "graph_module");
    unknownFields(module, {"graph", "signature", "module_call_graph", "metadata", "treespec_namedtuple_fields"},
                  unknown);
    if (const Json *graph = optionalField(module, "graph")) {
        unknownFields(*graph,
                      {"inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values",
                       "is_single_tensor_return", "custom_obj_values", "sym_float_values", "constants"},
                      unknown);
        if (const Json *nodes = optionalField(*graph, "nodes"); nodes != nullptr && nodes->is_array())
            for (const Json &node : *nodes)
                unknownFields(node, {"target", "inputs", "outputs", "metadata", "is_hop_single_tensor_return", "name"},
                              unknown);
    }
    std::string list;
    for (const std::string &name : unknown)
        list += (list.empty() ? "" : ", ") + printable(name);
    return list;
}

void checkVersion(const Json &document, ModelInfo &info)
{
    const Json &version = field(document, "schema_version");
    std::int64_t major = 0, minor = 0;
    if (version.is_object()) {
        major = asInt(field(version, "major"), "major");
        minor = asInt(field(version, "minor"), "minor");
    } else {
        major = asInt(version, "schema_version");
    }
    const std::string text = std::to_string(major) + "." + std::to_string(minor);
    if (major > kKnownMajor || major < 1)
        throw ReadError("schema version " + text + " is newer than this program knows (8.x)");
    if (major < kKnownMajor)
        info.notes.push_back("schema " + text + " was never released in this layout; read like 8.x");
    if (major == kKnownMajor && minor > kKnownMinor) {
        const std::string ignored = ignoredFields(document);
        info.notes.push_back("schema " + text + " is newer than 8." + std::to_string(kKnownMinor) +
                             (ignored.empty() ? "" : "; unknown fields " + ignored + " ignored"));
    }
    info.producer = "schema " + text;
    if (const Json *torch = optionalField(document, "torch_version"); torch != nullptr && torch->is_string()) {
        const auto &full = torch->get_ref<const std::string &>();
        info.producer = "torch " + printable(full.substr(0, full.find('+')));
    }
}

// {symbol: {min_val, max_val}}; either may be absent, or infinite (a float).
std::map<std::string, SymbolRange> symbolRanges(const Json &document)
{
    std::map<std::string, SymbolRange> ranges;
    const Json *all = optionalField(document, "range_constraints");
    if (all == nullptr || !all->is_object())
        return ranges;
    for (const auto &[symbol, range] : all->items()) {
        SymbolRange found;
        if (const Json *lowest = optionalField(range, "min_val"); lowest != nullptr && lowest->is_number_integer())
            found.lowest = lowest->get<std::int64_t>();
        if (const Json *highest = optionalField(range, "max_val"); highest != nullptr && highest->is_number_integer())
            found.highest = highest->get<std::int64_t>();
        ranges.emplace(symbol, found);
    }
    return ranges;
}

const char *kindWord(InputKind kind)
{
    switch (kind) {
    case InputKind::Parameter:
        return "parameter";
    case InputKind::Buffer:
        return "buffer";
    default:
        return "constant";
    }
}

void bindTensors(const Pt2Weights &weights, LoadedModel &model)
{
    const Graph &graph = model.m_graph;
    model.m_tensors.assign(graph.values.size(), {});
    model.m_mapped.assign(graph.values.size(), false);
    std::string missing;
    std::size_t missingCount = 0;
    const auto blame = [&](ValueId value, const std::string &fault) {
        model.m_info.notes.push_back(fault);
        for (const NodeId reader : graph.readers(value))
            if (model.m_nodeFaults[reader.get()].empty())
                model.m_nodeFaults[reader.get()] = fault;
    };
    for (const GraphInput &input : graph.inputs) {
        const bool isTensor = input.kind == InputKind::Parameter || input.kind == InputKind::Buffer ||
                              input.kind == InputKind::TensorConstant;
        if (!isTensor && input.kind != InputKind::CustomObject)
            continue;
        const Pt2Weight *weight = nullptr;
        for (const auto *source : {&weights.weights, &weights.constants})
            if (const auto found = source->find(input.target); weight == nullptr && found != source->end())
                weight = &found->second;
        if (!isTensor) {
            blame(input.value, weight != nullptr && !weight->fault.empty()
                                   ? weight->fault
                                   : "constant " + printable(input.target) +
                                         " is a custom object and cannot be read without its library");
        } else if (weight == nullptr) {
            missing +=
                (missing.empty() ? "" : ", ") + std::string(kindWord(input.kind)) + " " + printable(input.target);
            ++missingCount;
        } else if (!weight->tensor.defined()) {
            blame(input.value, weight->fault);
        } else {
            model.m_tensors[input.value.get()] = weight->tensor;
            model.m_mapped[input.value.get()] = weight->mapped;
        }
    }
    // Objects that no input names: lifted elsewhere, or left over.
    for (const auto &[name, weight] : weights.constants)
        if (!weight.fault.empty() &&
            std::find(model.m_info.notes.begin(), model.m_info.notes.end(), weight.fault) == model.m_info.notes.end())
            model.m_info.notes.push_back(weight.fault);
    if (missingCount != 0)
        throw ReadError(missing + (missingCount == 1 ? " has" : " have") + " no data in the file");
}

void readSampleInputs(const ZipArchive &archive, const std::string &program, LoadedModel &model, ReadControl &control)
{
    ModelInfo &info = model.m_info;
    const std::string member = "data/sample_inputs/" + program + ".pt";
    const ZipArchive::Member *found = archive.find(member);
    if (found == nullptr || found->size == 0) {
        info.sampleInputsNote = "no sample inputs in the file";
        return;
    }
    try {
        const PickleDocument document = readTorchSave(archive.read(*found, &control), member, &control);
        const std::vector<PickleValue> leaves = flattenLeaves(document.root(), &model.m_inputTree);
        std::size_t position = 0;
        std::vector<c10::IValue> inputs;
        for (const GraphInput &input : model.m_graph.inputs) {
            if (input.kind != InputKind::User && input.kind != InputKind::Constant)
                continue;
            if (position >= leaves.size())
                throw ReadError("fewer values than the program has inputs");
            const PickleValue &leaf = leaves[position++];
            if (input.kind == InputKind::User)
                inputs.push_back(toIValue(leaf));
        }
        if (position != leaves.size())
            throw ReadError("more values than the program has inputs");
        model.m_sampleInputs = std::move(inputs);
        info.hasSampleInputs = true;
    } catch (const ReadError &error) {
        info.sampleInputsNote = std::string("sample inputs cannot be read (") + error.what() + ")";
        info.notes.push_back(info.sampleInputsNote);
    }
}

} // namespace

std::shared_ptr<LoadedModel> readPt2(const ZipArchive &archive, const std::string &program, std::uint64_t fileBytes,
                                     ReadControl &control)
{
    checkArchive(archive);
    auto model = std::make_shared<LoadedModel>();
    ModelInfo &info = model->m_info;
    info.format = "pt2 archive";
    const std::vector<std::string> names = programNames(archive);
    info.program = chooseProgram(names, program, info);
    for (const std::string &name : names)
        if (name != info.program)
            info.otherPrograms.push_back(name);
    if (std::any_of(archive.members().begin(), archive.members().end(),
                    [&](const auto &m) { return archive.shortName(m).starts_with("data/aotinductor/"); }))
        info.notes.emplace_back("the file also holds compiled AOTInductor code, which is not used");

    const std::string member = "models/" + info.program + ".json";
    Json document = parseJson(archive.read(member, &control).text(), member, &control);
    checkVersion(document, info);
    const Json &graphModule = objectField(document, "graph_module");
    Pt2Graph graph = readPt2Graph(graphModule, &control);
    model->m_graph = std::move(graph.graph);
    model->m_nodeFaults = std::move(graph.faults);
    model->m_inputTree = inputTree(graphModule);
    model->m_symbolRanges = symbolRanges(document);
    info.notes.insert(info.notes.end(), graph.notes.begin(), graph.notes.end());

    Pt2Weights weights = readPt2Weights(archive, info.program, fileBytes <= kVerifyUpTo, &control);
    info.notes.insert(info.notes.end(), weights.notes.begin(), weights.notes.end());
    bindTensors(weights, *model);
    readSampleInputs(archive, info.program, *model, control);
    return model;
}

} // namespace dblame

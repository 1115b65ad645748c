// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/pt2_weights.h"

#include <unordered_map>

#include "core/readers/json_text.h"
#include "core/readers/loaded_model.h"
#include "core/readers/pt2_arguments.h"
#include "core/readers/tensor_storage.h"
#include "core/readers/torch_save.h"

namespace dblame
{

namespace
{

using Entries = std::map<std::string, Pt2Weight>;

struct RawFolder {
    const ZipArchive &archive;
    std::string folder; // "data/weights/"
    const char *word;   // "weight", "constant"
    bool verify;
    ReadControl *control;
    std::unordered_map<std::string, Payload> payloads; // by path_name: names that share one share its storage
    std::size_t unaligned = 0, unverified = 0;
};

std::vector<std::int64_t> integers(const Json &meta, const char *name)
{
    std::vector<std::int64_t> result;
    for (const Json &item : listField(meta, name)) {
        const Json *number = optionalField(item, "as_int");
        if (number == nullptr)
            throw ReadError(std::string(name) + " of stored tensors must be integers");
        result.push_back(asInt(*number, name));
    }
    return result;
}

Strided readShape(const Json &meta)
{
    Strided shape;
    shape.sizes = integers(meta, "sizes");
    shape.strides = integers(meta, "strides");
    const Json &offset = field(meta, "storage_offset");
    shape.offset = asInt(offset.is_object() ? field(offset, "as_int") : offset, "storage_offset");
    return shape;
}

const Payload &payloadOf(RawFolder &from, const std::string &pathName, const std::string &who)
{
    const auto found = from.payloads.find(pathName);
    if (found != from.payloads.end())
        return found->second;
    const ZipArchive::Member *member = from.archive.find(from.folder + pathName);
    if (member == nullptr)
        throw ReadError(from.folder + pathName + " is missing (" + who + ")");
    const bool skip = !from.verify && member->method == 0;
    from.unverified += skip ? 1 : 0;
    Payload payload =
        makePayload(skip ? from.archive.readUnverified(*member) : from.archive.read(*member, from.control));
    from.unaligned += payload.size != 0 && !payload.aligned ? 1 : 0;
    return from.payloads.emplace(pathName, std::move(payload)).first->second;
}

Pt2Weight readPickled(RawFolder &from, const std::string &name, const std::string &pathName)
{
    Pt2Weight weight;
    const std::string who = std::string(from.word) + " " + printable(name);
    // custom_obj_*: an object of a C++ class; opaque_obj_*: a Python pickle. Neither is ever loaded.
    if (pathName.starts_with("custom_obj_") || pathName.starts_with("opaque_obj_")) {
        weight.fault = who + " is a custom object and cannot be read without its library";
        return weight;
    }
    const ZipArchive::Member *member = from.archive.find(from.folder + pathName);
    if (member == nullptr)
        throw ReadError(from.folder + pathName + " is missing (" + who + ")");
    try {
        const PickleDocument document =
            readTorchSave(from.archive.read(*member, from.control), from.folder + pathName, from.control);
        if (document.root().kind == PickleValue::Kind::Tensor)
            weight.tensor = document.root().tensor;
        else
            weight.fault = who + " is pickled and not a plain tensor";
    } catch (const NeedsCode &error) {
        weight.fault = who + " is a pickled tensor subclass: " + error.what();
    }
    return weight;
}

Pt2Weight readRaw(RawFolder &from, const std::string &name, const Json &entry)
{
    const std::string who = std::string(from.word) + " " + printable(name);
    const std::string &pathName = textField(entry, "path_name");
    if (pathName.empty() || pathName.find('/') != std::string::npos || pathName.find('\\') != std::string::npos ||
        pathName == "..")
        throw ReadError("unsafe path_name " + printable(pathName));
    if (const Json *pickled = optionalField(entry, "use_pickle"); pickled != nullptr && asBool(*pickled, "use_pickle"))
        return readPickled(from, name, pathName);

    const Json *meta = optionalField(entry, "tensor_meta");
    if (meta == nullptr)
        throw ReadError(who + ": tensor_meta is missing");
    constexpr std::int64_t kStrided = 7;
    if (const Json *layout = optionalField(*meta, "layout"); layout != nullptr && asInt(*layout, "layout") != kStrided)
        throw ReadError(who + " is not a strided tensor");
    const std::int64_t number = asInt(field(*meta, "dtype"), "dtype");
    const at::ScalarType type = toTorch(pt2ScalarType(number));
    if (type == at::ScalarType::Undefined)
        throw ReadError(who + ": unknown scalar type " + std::to_string(number));
    Strided shape;
    try {
        shape = readShape(*meta);
    } catch (const ReadError &error) {
        throw ReadError(who + ": " + error.what());
    }
    const Payload &payload = payloadOf(from, pathName, who);
    Pt2Weight weight;
    bool empty = false;
    for (const std::int64_t size : shape.sizes)
        empty = empty || size == 0;
    if (payload.size == 0 && !empty) {
        weight.fault = who + " holds no data: the model was saved without its weights";
        return weight;
    }
    // torch 2.9 wrote the bytes of a copied GPU slice while keeping the slice's old offset.
    const std::size_t item = c10::elementSize(type);
    Strided fromZero = shape;
    fromZero.offset = 0;
    try {
        weight.tensor = makeTensor(payload, type, shape, who);
    } catch (const ReadError &error) {
        const bool fillsFromZero =
            shape.offset > 0 && shape.sizes.size() == shape.strides.size() &&
            shape.strides == contiguousStrides(shape.sizes) &&
            static_cast<std::uint64_t>(checkStrided(fromZero, item, payload.size, who)) * item == payload.size;
        if (!fillsFromZero)
            throw;
        throw ReadError(
            std::string(error.what()) +
            "; probably written by torch 2.9 from a GPU slice: move the model to the CPU and save it again");
    }
    weight.mapped = payload.mapped;
    return weight;
}

void readConfig(RawFolder &from, const std::string &config, Entries &entries)
{
    const Bytes text = from.archive.read(config, from.control);
    const Json document = parseJson(text.text(), config, from.control);
    for (const auto &[name, entry] : objectField(document, "config").items())
        entries.emplace(name, readRaw(from, name, entry));
}

// A nested torch.save file: name -> tensor. Classes in it make its entries unreadable, not the model.
void readNested(const ZipArchive &archive, const std::string &member, Entries &entries, std::vector<std::string> &notes,
                ReadControl *control)
{
    const Bytes bytes = archive.read(member, control);
    if (bytes.size == 0)
        return;
    try {
        const PickleDocument document = readTorchSave(bytes, member, control);
        const PickleValue &root = document.root();
        if (root.kind != PickleValue::Kind::Dict)
            throw ReadError("holds no dictionary of tensors", member);
        for (std::size_t i = 0; i + 1 < root.items->size(); i += 2) {
            const PickleValue &name = (*root.items)[i], &value = (*root.items)[i + 1];
            if (name.kind != PickleValue::Kind::Text || value.kind != PickleValue::Kind::Tensor)
                continue;
            Pt2Weight weight;
            weight.tensor = value.tensor;
            weight.mapped = value.tensor.has_storage() &&
                            staysMapped({{},
                                         static_cast<const std::uint8_t *>(value.tensor.storage().data()),
                                         value.tensor.storage().nbytes(),
                                         bytes.mapped});
            entries.emplace(name.text, std::move(weight));
        }
    } catch (const NeedsCode &error) {
        notes.push_back(member + ": " + error.what());
    }
}

void report(const RawFolder &from, std::vector<std::string> &notes)
{
    if (from.unaligned != 0)
        notes.push_back(std::to_string(from.unaligned) + " payloads in " + from.folder +
                        " are not aligned, so they are copied instead of mapped");
    if (from.unverified != 0)
        notes.push_back("not yet verified: the checksums of " + std::to_string(from.unverified) + " payloads in " +
                        from.folder + " (the file is larger than 2 GiB)");
}

} // namespace

Pt2Weights readPt2Weights(const ZipArchive &archive, const std::string &model, bool verify, ReadControl *control)
{
    Pt2Weights result;
    const std::string weights = "data/weights/" + model, constants = "data/constants/" + model;
    const bool nested = !archive.has(weights + "_weights_config.json") && archive.has(weights + ".pt");
    if (nested) {
        readNested(archive, weights + ".pt", result.weights, result.notes, control);
        if (archive.has(constants + ".pt"))
            readNested(archive, constants + ".pt", result.constants, result.notes, control);
        return result;
    }
    RawFolder from{archive, "data/weights/", "weight", verify, control, {}, 0, 0};
    readConfig(from, weights + "_weights_config.json", result.weights);
    report(from, result.notes);
    if (archive.has(constants + "_constants_config.json")) {
        RawFolder other{archive, "data/constants/", "constant", verify, control, {}, 0, 0};
        readConfig(other, constants + "_constants_config.json", result.constants);
        report(other, result.notes);
    }
    return result;
}

} // namespace dblame

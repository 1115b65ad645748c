// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/torch_save.h"

namespace dblame
{

namespace
{

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxLeaves = 100'000;
constexpr std::size_t kMaxTensors = 1'000'000;

using Named = std::vector<std::pair<std::string, at::Tensor>>;

void collect(const PickleValue &value, const std::string &prefix, int depth, Named &result)
{
    if (depth > kMaxDepth || result.size() > kMaxTensors)
        throw ReadError("the pickled object is nested too deep or too large");
    const auto key = [&](const std::string &name) { return prefix.empty() ? name : prefix + "." + name; };
    if (value.kind == PickleValue::Kind::Tensor) {
        result.emplace_back(prefix, value.tensor);
    } else if (value.kind == PickleValue::Kind::Dict) {
        for (std::size_t i = 0; i + 1 < value.items->size(); i += 2) {
            const PickleValue &name = (*value.items)[i];
            if (name.kind == PickleValue::Kind::Text)
                collect((*value.items)[i + 1], key(name.text), depth + 1, result);
            else if (name.kind == PickleValue::Kind::Int)
                collect((*value.items)[i + 1], key(std::to_string(name.integer)), depth + 1, result);
        }
    } else if (value.isSequence()) {
        for (std::size_t i = 0; i < value.items->size(); ++i)
            collect((*value.items)[i], key(std::to_string(i)), depth + 1, result);
    }
}

void flattenInto(const PickleValue &value, const Pytree *tree, int depth, std::vector<PickleValue> &leaves)
{
    if (depth > kMaxDepth || leaves.size() > kMaxLeaves)
        throw ReadError("the values are nested too deep or too many");
    const bool fits = tree != nullptr && !tree->isLeaf();
    if (value.isSequence()) {
        for (std::size_t i = 0; i < value.items->size(); ++i)
            flattenInto((*value.items)[i], fits && i < tree->children.size() ? &tree->children[i] : nullptr, depth + 1,
                        leaves);
        return;
    }
    if (value.kind != PickleValue::Kind::Dict) {
        leaves.push_back(value);
        return;
    }
    const std::size_t count = value.items->size() / 2;
    const auto keyed = [&](const std::string &key) -> const PickleValue * {
        for (std::size_t i = 0; i < count; ++i)
            if (const PickleValue &name = (*value.items)[2 * i];
                (name.kind == PickleValue::Kind::Text && name.text == key) ||
                (name.kind == PickleValue::Kind::Int && std::to_string(name.integer) == key))
                return &(*value.items)[2 * i + 1];
        return nullptr;
    };
    bool sameKeys = fits && tree->keys.size() == count && tree->children.size() == count;
    for (std::size_t i = 0; sameKeys && i < count; ++i)
        sameKeys = keyed(tree->keys[i]) != nullptr;
    for (std::size_t i = 0; i < count; ++i)
        if (sameKeys)
            flattenInto(*keyed(tree->keys[i]), &tree->children[i], depth + 1, leaves);
        else
            flattenInto((*value.items)[2 * i + 1], nullptr, depth + 1, leaves);
}

} // namespace

PickleDocument readTorchSave(const ZipArchive &archive, const std::string &name, ReadControl *control)
{
    try {
        if (archive.has("byteorder") && archive.read("byteorder").text() != "little")
            throw ReadError("big-endian archive; save it on a little-endian machine");
        const Bytes pickle = archive.read("data.pkl", control);
        const StorageSource storages = [&](const std::string &key) {
            const ZipArchive::Member *member = archive.find("data/" + key);
            if (member == nullptr)
                throw ReadError("data/" + printable(key) + " is missing");
            return makePayload(archive.read(*member, control));
        };
        return unpickle(pickle.text(), storages, control);
    } catch (const NeedsCode &error) {
        throw NeedsCode(error.what(), name);
    } catch (const ReadError &error) {
        throw ReadError(error.what(), name);
    }
}

PickleDocument readTorchSave(const Bytes &bytes, const std::string &name, ReadControl *control)
{
    try {
        const ZipArchive archive(bytes);
        return readTorchSave(archive, name, control);
    } catch (const NeedsCode &) {
        throw;
    } catch (const ReadError &error) {
        throw ReadError(error.what(), name);
    }
}

Named namedTensors(const PickleValue &value)
{
    Named result;
    collect(value, {}, 0, result);
    return result;
}

std::vector<PickleValue> flattenLeaves(const PickleValue &value, const Pytree *tree)
{
    std::vector<PickleValue> leaves;
    flattenInto(value, tree, 0, leaves);
    return leaves;
}

c10::IValue toIValue(const PickleValue &value)
{
    using Kind = PickleValue::Kind;
    switch (value.kind) {
    case Kind::None:
        return {};
    case Kind::Bool:
        return value.integer != 0;
    case Kind::Int:
        return value.integer;
    case Kind::Float:
        return value.number;
    case Kind::Complex:
        return c10::complex<double>(value.complex.real(), value.complex.imag());
    case Kind::Text:
        return value.text;
    case Kind::Tensor:
        return value.tensor;
    default:
        throw ReadError("a value is neither a tensor nor a number");
    }
}

} // namespace dblame

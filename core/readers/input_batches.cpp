// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/input_batches.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <numbers>

#include <ATen/ops/empty.h>

#include "core/readers/tensor_files.h"
#include "core/readers/torch_save.h"
#include "core/readers/zip_archive.h"

namespace dblame
{

namespace
{

using Kind = PickleValue::Kind;

// Values of one batch that came with names.
using Named = std::vector<std::pair<std::string, c10::IValue>>;

std::string listNames(const Named &values)
{
    constexpr std::size_t kShown = 12;
    std::string list;
    for (std::size_t i = 0; i < values.size() && i < kShown; ++i)
        list += (i == 0 ? "" : ", ") + printable(values[i].first);
    return values.size() > kShown ? list + ", ..." : list;
}

class Matcher
{
public:
    explicit Matcher(const LoadedModel &model) : m_model(model), m_slots(inputSlots(model.graph())) {}

    GivenInputs given;

    void addFile(const TensorFile &file)
    {
        if (file.kind == TensorFile::Kind::Pickled)
            addPickled(file.pickled.root());
        else
            addArrays(file.arrays);
    }

    // .npy files: the arguments in order.
    void addPositional(const std::vector<at::Tensor> &arrays)
    {
        InputBatch batch(arrays.begin(), arrays.end());
        given.batches.push_back(checkedCount(std::move(batch), std::to_string(arrays.size()) +
                                                                   (arrays.size() == 1 ? " array" : " arrays")));
    }

private:
    [[nodiscard]] std::string asked() const
    {
        return std::to_string(m_slots.size()) + (m_slots.size() == 1 ? " input (" : " inputs (") + slotNames(m_slots) +
               ")";
    }
    InputBatch checkedCount(InputBatch batch, const std::string &what) const
    {
        if (batch.size() != m_slots.size())
            throw ReadError(what + " given, the model takes " + asked() + "; give one per input");
        return batch;
    }

    // "b3_x0" -> (3, "x0")
    static std::optional<std::pair<std::size_t, std::string>> batchName(const std::string &name)
    {
        std::size_t at = 1, number = 0;
        if (name.empty() || name[0] != 'b')
            return std::nullopt;
        for (; at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])) != 0 && at < 10; ++at)
            number = 10 * number + static_cast<std::size_t>(name[at] - '0');
        if (at == 1 || at + 1 >= name.size() || name[at] != '_')
            return std::nullopt;
        return std::pair(number, name.substr(at + 1));
    }

    void addArrays(const std::vector<NamedTensor> &arrays)
    {
        std::map<std::size_t, Named> numbered; // batches in the order of their numbers
        Named plain;
        for (const NamedTensor &array : arrays) {
            plain.emplace_back(array.name, array.tensor);
            if (const auto parts = batchName(array.name))
                numbered[parts->first].emplace_back(parts->second, array.tensor);
        }
        std::size_t inBatches = 0;
        for (const auto &[number, values] : numbered)
            inBatches += values.size();
        // A model may have an argument called b0_x: only when all names have the form are they batches.
        if (inBatches == plain.size() && !plain.empty())
            for (const auto &[number, values] : numbered)
                addNamed(values);
        else
            addNamed(plain);
    }

    void addNamed(const Named &values)
    {
        InputBatch batch;
        std::vector<bool> used(values.size(), false);
        for (std::size_t i = 0; i < m_slots.size(); ++i) {
            const std::string positional = "x" + std::to_string(i);
            std::size_t found = values.size();
            for (const std::string &name : {m_slots[i].name, m_slots[i].valueName, positional})
                for (std::size_t k = 0; k < values.size() && found == values.size(); ++k)
                    if (values[k].first == name)
                        found = k;
            if (found == values.size() && m_slots.size() == 1 && values.size() == 1) {
                found = 0;
                note("array " + printable(values[0].first) + " taken as input " + m_slots[0].name);
            }
            if (found == values.size())
                throw ReadError("input " + m_slots[i].name + " is not among the arrays (" + listNames(values) +
                                "); the model takes " + asked());
            used[found] = true;
            batch.push_back(values[found].second);
        }
        Named rest;
        for (std::size_t k = 0; k < values.size(); ++k)
            if (!used[k])
                rest.push_back(values[k]);
        if (!rest.empty())
            note(listNames(rest) + (rest.size() == 1 ? " is" : " are") + " no input of the model and not used");
        given.batches.push_back(std::move(batch));
    }

    void note(const std::string &text)
    {
        if (std::find(given.notes.begin(), given.notes.end(), text) == given.notes.end())
            given.notes.push_back(text);
    }

    // --- torch.save ---

    static bool isContainer(const PickleValue &value) { return value.isSequence() || value.kind == Kind::Dict; }

    // A dictionary whose values are leaves under the names of arguments (or nested like them).
    void addDict(const PickleValue &dict)
    {
        Named values;
        collectNamed(dict, {}, 0, values);
        addNamed(values);
    }
    static void collectNamed(const PickleValue &value, const std::string &label, int depth, Named &values)
    {
        constexpr int kMaxDepth = 64;
        constexpr std::size_t kMaxValues = 100'000;
        if (depth > kMaxDepth || values.size() > kMaxValues)
            throw ReadError("the values are nested too deep or too many");
        if (value.kind == Kind::Dict) {
            for (std::size_t i = 0; i + 1 < value.items->size(); i += 2) {
                const PickleValue &key = (*value.items)[i];
                const std::string name = key.kind == Kind::Int ? std::to_string(key.integer) : key.text;
                collectNamed((*value.items)[i + 1], label.empty() ? name : label + "." + name, depth + 1, values);
            }
        } else if (value.isSequence()) {
            for (std::size_t i = 0; i < value.items->size(); ++i)
                collectNamed((*value.items)[i], label + "[" + std::to_string(i) + "]", depth + 1, values);
        } else {
            values.emplace_back(label, toIValue(value));
        }
    }

    // Leaves in order; values for the arguments that are baked into the graph may be there and are left out.
    std::optional<InputBatch> fromLeaves(const std::vector<PickleValue> &leaves) const
    {
        std::vector<InputKind> kinds;
        for (const GraphInput &input : m_model.graph().inputs)
            if (input.kind == InputKind::User || input.kind == InputKind::Constant)
                kinds.push_back(input.kind);
        InputBatch batch;
        if (leaves.size() == m_slots.size()) {
            for (const PickleValue &leaf : leaves)
                batch.push_back(toIValue(leaf));
            return batch;
        }
        if (leaves.size() != kinds.size())
            return std::nullopt;
        for (std::size_t i = 0; i < leaves.size(); ++i)
            if (kinds[i] == InputKind::User)
                batch.push_back(toIValue(leaves[i]));
        return batch;
    }

    // The nesting of the positional arguments, for the order of dictionaries inside them.
    [[nodiscard]] const Pytree *positionalTree() const
    {
        const Pytree &tree = m_model.m_inputTree;
        return tree.children.size() == 2 ? tree.children.data() : nullptr;
    }

    void addBatch(const PickleValue &value)
    {
        if (value.kind == Kind::Dict) {
            addDict(value);
            return;
        }
        const auto leaves = flattenLeaves(value, positionalTree());
        auto batch = fromLeaves(leaves);
        if (!batch)
            throw ReadError("batch " + std::to_string(given.batches.size()) + " has " + std::to_string(leaves.size()) +
                            (leaves.size() == 1 ? " value" : " values") + ", the model takes " + asked() +
                            "; give one per input");
        given.batches.push_back(std::move(*batch));
    }

    void addPickled(const PickleValue &root)
    {
        if (!isContainer(root) || root.kind == Kind::Dict) {
            addBatch(root);
            return;
        }
        const auto &items = *root.items;
        if (items.empty())
            throw ReadError("holds an empty list; put the inputs into it");
        // (args, kwargs), as a model's own sample inputs are saved.
        if (root.kind == Kind::Tuple && items.size() == 2 && items[0].kind == Kind::Tuple &&
            items[1].kind == Kind::Dict) {
            const auto leaves = flattenLeaves(root, &m_model.m_inputTree);
            if (auto batch = fromLeaves(leaves)) {
                given.batches.push_back(std::move(*batch));
                return;
            }
        }
        const bool allContainers = std::all_of(items.begin(), items.end(), isContainer);
        const auto isTensor = [](const PickleValue &v) { return v.kind == Kind::Tensor; };
        if (!allContainers && m_slots.size() == 1 && items.size() > 1 &&
            std::all_of(items.begin(), items.end(), isTensor)) {
            note("a list of " + std::to_string(items.size()) + " tensors, read as batches: the model takes one input");
            for (const PickleValue &item : items)
                given.batches.push_back({toIValue(item)});
            return;
        }
        // A tuple or list of containers is a list of batches, unless it fits the arguments as it stands.
        const Pytree *tree = positionalTree();
        const bool oneNested = allContainers && tree != nullptr && tree->children.size() == items.size() &&
                               std::none_of(tree->children.begin(), tree->children.end(),
                                            [](const Pytree &child) { return child.isLeaf(); });
        if (!allContainers || oneNested) {
            addBatch(root);
            return;
        }
        for (const PickleValue &item : items)
            addBatch(item);
    }

    const LoadedModel &m_model;
    std::vector<InputSlot> m_slots;
};

// splitmix64: the same sequence everywhere, which std's distributions do not promise.
class Generator
{
public:
    explicit Generator(std::uint64_t seed) : m_state(seed) {}
    std::uint64_t next()
    {
        m_state += 0x9e3779b97f4a7c15U;
        std::uint64_t z = m_state;
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    }
    double uniform() { return (static_cast<double>(next() >> 11U) + 0.5) * 0x1p-53; } // (0, 1)
    double normal()                                                                   // Box-Muller
    {
        const double radius = std::sqrt(-2.0 * std::log(uniform()));
        return radius * std::cos(2.0 * std::numbers::pi * uniform());
    }

private:
    std::uint64_t m_state;
};

} // namespace

std::string slotNames(const std::vector<InputSlot> &slots)
{
    std::string list;
    for (const InputSlot &slot : slots)
        list += (list.empty() ? "" : ", ") + slot.name;
    return list;
}

std::vector<InputSlot> inputSlots(const Graph &graph)
{
    std::vector<InputSlot> slots;
    for (const GraphInput &input : graph.inputs) {
        if (input.kind != InputKind::User || !input.value.valid())
            continue;
        const Value &value = graph.value(input.value);
        slots.push_back({input.target.empty() ? value.name : input.target, value.name, value.meta});
    }
    return slots;
}

GivenInputs readInputFiles(const std::vector<std::string> &files, const LoadedModel &model, ReadControl &control)
{
    Matcher matcher(model);
    std::vector<at::Tensor> arrays;
    bool others = false;
    for (const std::string &path : files) {
        try {
            const TensorFile file = readTensorFile(path, control);
            matcher.given.files.push_back(file.file);
            if (file.kind == TensorFile::Kind::Npy) {
                arrays.push_back(file.arrays.front().tensor);
            } else {
                others = true;
                matcher.addFile(file);
            }
        } catch (const ReadError &error) {
            throw ReadError(error.what(), error.member().empty() ? path : path + ": " + error.member());
        }
        if (others && !arrays.empty())
            throw ReadError("give either .npy files (the arguments of one batch) or others (batches), not both", path);
    }
    if (!arrays.empty())
        matcher.addPositional(arrays);
    return std::move(matcher.given);
}

InputBatch randomBatch(const std::vector<InputSlot> &slots, std::uint64_t seed)
{
    Generator generator(seed);
    InputBatch batch;
    for (const InputSlot &slot : slots) {
        if (!slot.meta) {
            batch.emplace_back(std::int64_t{1});
            continue;
        }
        std::vector<std::int64_t> sizes;
        std::int64_t count = 1;
        for (const Dim &dim : slot.meta->sizes) {
            if (dim.size < 0)
                throw ReadError("input " + slot.name + ": the file does not say how large " + dim.symbol +
                                " was; give inputs with --inputs");
            sizes.push_back(dim.size);
            if (__builtin_mul_overflow(count, std::max<std::int64_t>(dim.size, 1), &count) || count > (1LL << 32))
                throw ReadError("input " + slot.name + " is too large for random values; give inputs with --inputs");
        }
        const at::ScalarType type = toTorch(slot.meta->dtype);
        if (type == at::ScalarType::Undefined)
            throw ReadError("input " + slot.name + ": its type is unknown; give inputs with --inputs");
        const at::Tensor values = at::empty(sizes, at::TensorOptions(at::kDouble));
        auto *data = values.mutable_data_ptr<double>();
        for (std::int64_t i = 0; i < values.numel(); ++i)
            data[i] = isFloatingPoint(slot.meta->dtype) || c10::isComplexType(type)
                          ? generator.normal()
                          : static_cast<double>(generator.next() >> 63U);
        batch.emplace_back(values.to(type));
    }
    return batch;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/input_checks.h"

#include <algorithm>
#include <map>
#include <optional>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>

namespace dblame
{

namespace
{

std::string shapeText(at::IntArrayRef sizes)
{
    std::string result = "[";
    for (std::size_t i = 0; i < sizes.size(); ++i)
        result += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
    return result + "]";
}

[[noreturn]] void refuse(const InputSlot &slot, const ModelSide &side, const std::string &given,
                         const std::string &expected)
{
    const bool says = expected.find("; ") != std::string::npos;
    throw ReadError("input " + slot.name + ": " + given + " given, the " + side.word + " takes " + expected +
                    (says ? "" : "; give inputs that fit, or export the models for these"));
}

// --- the first dimension --------------------------------------------------------------------------

// A per-tensor dynamic quantizer takes its range from the whole batch: other batches, other numbers.
bool hasDynamicQuantizer(const Graph &graph)
{
    const auto dynamic = [](const Node &node) {
        return node.target.starts_with("quantized_decomposed.choose_qparams") &&
               node.target.find("per_token") == std::string::npos;
    };
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), dynamic) ||
           std::any_of(graph.subgraphs.begin(), graph.subgraphs.end(),
                       [](const auto &subgraph) { return hasDynamicQuantizer(*subgraph); });
}

// The first size that both programs were exported with; nullopt where neither fixes it.
std::optional<std::int64_t> fixedFirst(std::size_t i, const ModelSide &reference, const ModelSide &candidate)
{
    std::optional<std::int64_t> fixed;
    for (const ModelSide *side : {&reference, &candidate}) {
        const auto &meta = side->slots[i].meta;
        if (meta && !meta->sizes.empty() && isFixed(meta->sizes[0]))
            fixed = meta->sizes[0].size;
    }
    return fixed;
}

class FirstDimension
{
public:
    FirstDimension(const ModelSide &reference, const ModelSide &candidate, std::vector<InputBatch> &batches)
        : m_reference(reference), m_candidate(candidate), m_batches(batches)
    {
    }

    // Splits or joins so that every batch has the size that the programs fix; says so in `notes`.
    void fit(std::vector<std::string> &notes)
    {
        for (std::size_t i = 0; i < m_reference.slots.size(); ++i)
            m_fixed.push_back(fixedFirst(i, m_reference, m_candidate));
        if (!findSize())
            return;
        std::int64_t samples = 0;
        for (const InputBatch &batch : m_batches)
            samples += samplesOf(batch);
        for (const ModelSide *side : {&m_reference, &m_candidate})
            if (hasDynamicQuantizer(side->model.graph()))
                throw ReadError("the programs take batches of " + std::to_string(m_size) + ", the inputs have " +
                                std::to_string(samplesOf(m_batches.front())) +
                                "; they are not split or joined, because the " + side->word +
                                " quantizes dynamically per tensor and would see other numbers: give batches of " +
                                std::to_string(m_size));
        if (samples < m_size)
            throw ReadError("the programs take batches of " + std::to_string(m_size) + ", the inputs have only " +
                            std::to_string(samples) + (samples == 1 ? " sample" : " samples") + " in all; give more");
        const std::size_t before = m_batches.size();
        const bool joined = rebuild();
        const std::int64_t used = static_cast<std::int64_t>(m_batches.size()) * m_size;
        const auto counted = [](std::int64_t count, const char *one, const char *many) {
            return std::to_string(count) + " " + (count == 1 ? one : many);
        };
        std::string note = counted(samples, "sample", "samples") + " in " +
                           counted(static_cast<std::int64_t>(before), "batch", "batches") +
                           (joined ? " joined and split into " : " split into ") +
                           counted(static_cast<std::int64_t>(m_batches.size()), "batch", "batches") + " of " +
                           std::to_string(m_size) + ", the size that the programs fix";
        if (used != samples)
            note += "; the last " +
                    (samples - used == 1 ? "sample is" : counted(samples - used, "sample", "samples") + " are") +
                    " left over and not used";
        notes.push_back(std::move(note));
    }

private:
    // False when every batch fits already.
    bool findSize()
    {
        bool differs = false;
        for (const InputBatch &batch : m_batches)
            for (std::size_t i = 0; i < m_fixed.size(); ++i) {
                if (!m_fixed[i] || batch[i].toTensor().size(0) == *m_fixed[i])
                    continue;
                if (*m_fixed[i] == 0 || (differs && *m_fixed[i] != m_size))
                    refuseShape(batch, i);
                m_size = *m_fixed[i];
                differs = true;
            }
        return differs;
    }
    [[nodiscard]] bool batched(std::size_t i) const { return m_fixed[i] == m_size; }

    // All inputs that carry samples must carry the same number.
    [[nodiscard]] std::int64_t samplesOf(const InputBatch &batch) const
    {
        std::optional<std::int64_t> samples;
        for (std::size_t i = 0; i < m_fixed.size(); ++i) {
            if (!batched(i))
                continue;
            const std::int64_t size = batch[i].toTensor().size(0);
            if (samples && *samples != size)
                refuseShape(batch, i);
            samples = size;
        }
        return samples.value_or(0);
    }
    [[noreturn]] void refuseShape(const InputBatch &batch, std::size_t i) const
    {
        const ModelSide &side = m_reference.slots[i].meta && !m_reference.slots[i].meta->sizes.empty() &&
                                        isFixed(m_reference.slots[i].meta->sizes[0])
                                    ? m_reference
                                    : m_candidate;
        refuse(side.slots[i], side, "shape " + shapeText(batch[i].toTensor().sizes()),
               "shape " + shapeText(side.slots[i].meta->sizes));
    }

    // True when batches had to be put together first.
    bool rebuild()
    {
        const bool join = std::any_of(m_batches.begin(), m_batches.end(),
                                      [&](const InputBatch &batch) { return samplesOf(batch) % m_size != 0; });
        std::vector<InputBatch> sources = m_batches;
        const bool together = join && m_batches.size() > 1;
        if (together)
            sources = {joined()};
        m_batches.clear();
        for (const InputBatch &source : sources)
            for (std::int64_t at = 0; at + m_size <= samplesOf(source); at += m_size) {
                InputBatch batch = source;
                for (std::size_t i = 0; i < m_fixed.size(); ++i)
                    if (batched(i))
                        // contiguous: strides must not depend on whether the inputs came split
                        batch[i] = source[i].toTensor().narrow(0, at, m_size).contiguous();
                m_batches.push_back(std::move(batch));
            }
        return together;
    }
    [[nodiscard]] InputBatch joined() const
    {
        InputBatch all = m_batches.front();
        for (std::size_t i = 0; i < m_fixed.size(); ++i) {
            if (batched(i)) {
                std::vector<at::Tensor> parts;
                for (const InputBatch &batch : m_batches)
                    parts.push_back(batch[i].toTensor());
                all[i] = at::cat(parts, 0);
                continue;
            }
            for (const InputBatch &batch : m_batches) {
                const bool same = batch[i].isTensor() ? batch[i].toTensor().sizes() == all[i].toTensor().sizes() &&
                                                            at::equal(batch[i].toTensor(), all[i].toTensor())
                                                      : batch[i] == all[i];
                if (!same)
                    throw ReadError("batches cannot be joined to " + std::to_string(m_size) + " samples: input " +
                                    m_reference.slots[i].name + " differs between them; give batches of that size");
            }
        }
        return all;
    }

    const ModelSide &m_reference, &m_candidate;
    std::vector<InputBatch> &m_batches;
    std::vector<std::optional<std::int64_t>> m_fixed; // per slot
    std::int64_t m_size = 0;                          // samples per batch that the programs take
};

} // namespace

std::string shapeText(const std::vector<Dim> &sizes)
{
    std::string result = "[";
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        result += i == 0 ? "" : ", ";
        result += sizes[i].symbol.empty() ? std::to_string(sizes[i].size) : sizes[i].symbol;
    }
    return result + "]";
}

void makeNumbers(const std::vector<InputSlot> &slots, std::vector<InputBatch> &batches)
{
    for (InputBatch &batch : batches)
        for (std::size_t i = 0; i < slots.size(); ++i) {
            if (slots[i].meta || !batch[i].isTensor())
                continue;
            const at::Tensor &tensor = batch[i].toTensor();
            if (tensor.dim() != 0)
                throw ReadError("input " + slots[i].name + ": an array of shape " + shapeText(tensor.sizes()) +
                                " given, the model takes a number; give an array without dimensions");
            const at::Scalar number = tensor.item();
            if (number.isBoolean())
                batch[i] = number.toBool();
            else if (number.isFloatingPoint())
                batch[i] = number.toDouble();
            else
                batch[i] = number.toLong();
        }
}

void checkValue(const c10::IValue &value, const InputSlot &slot, const ModelSide &side)
{
    if (!slot.meta) {
        if (!value.isScalar() && !value.isNone() && !value.isString())
            refuse(slot, side, value.tagKind(), "a number");
        return;
    }
    if (!value.isTensor())
        refuse(slot, side, value.isNone() ? "nothing" : value.tagKind(), "a tensor");
    const at::Tensor &tensor = value.toTensor();
    const TensorMeta &meta = *slot.meta;
    if (const DType given = fromTorch(tensor.scalar_type()); given != meta.dtype && meta.dtype != DType::Unknown)
        refuse(slot, side, std::string(dtypeName(given)) + " values",
               std::string(dtypeName(meta.dtype)) + "; convert them");
    bool fits = static_cast<std::size_t>(tensor.dim()) == meta.sizes.size();
    for (std::size_t d = 1; fits && d < meta.sizes.size(); ++d)
        fits = !isFixed(meta.sizes[d]) || meta.sizes[d].size == tensor.size(static_cast<std::int64_t>(d));
    if (!fits)
        refuse(slot, side, "shape " + shapeText(tensor.sizes()), "shape " + shapeText(meta.sizes));
}

void checkSymbols(const InputBatch &batch, const ModelSide &side)
{
    std::map<std::string, std::int64_t> sizes;
    for (std::size_t i = 0; i < side.slots.size(); ++i) {
        const InputSlot &slot = side.slots[i];
        if (!slot.meta)
            continue;
        const at::Tensor &tensor = batch[i].toTensor();
        for (std::size_t d = 0; d < slot.meta->sizes.size(); ++d) {
            const std::string &symbol = slot.meta->sizes[d].symbol;
            const std::int64_t size = tensor.size(static_cast<std::int64_t>(d));
            const auto range = side.model.m_symbolRanges.find(symbol);
            if (symbol.empty() || range == side.model.m_symbolRanges.end())
                continue; // fixed, or a formula: real shapes decide
            if (size < range->second.lowest || size > range->second.highest)
                refuse(slot, side, "shape " + shapeText(tensor.sizes()),
                       "shape " + shapeText(slot.meta->sizes) + " with " + symbol + " from " +
                           std::to_string(range->second.lowest) + " to " + std::to_string(range->second.highest));
            if (const auto [it, isNew] = sizes.emplace(symbol, size); !isNew && it->second != size)
                refuse(slot, side, "shape " + shapeText(tensor.sizes()),
                       "shape " + shapeText(slot.meta->sizes) + " with " + symbol + " = " + std::to_string(it->second) +
                           " as in the inputs before it");
        }
    }
}

void fitFirstDimension(const ModelSide &reference, const ModelSide &candidate, std::vector<InputBatch> &batches,
                       std::vector<std::string> &notes)
{
    FirstDimension(reference, candidate, batches).fit(notes);
}

} // namespace dblame

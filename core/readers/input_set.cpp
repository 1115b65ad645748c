// SPDX-License-Identifier: GPL-3.0-or-later
//
// Batches for a comparison: read, checked against both signatures, split or joined along the first dimension.
#include <algorithm>
#include <filesystem>
#include <new>
#include <optional>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>

#include "core/readers/input_batches.h"
#include "core/readers/readers.h"
#include "core/readers/sha256.h"

namespace dblame
{

namespace
{

struct ModelSide {
    const char *word; // "reference", "candidate"
    const LoadedModel &model;
    std::vector<InputSlot> slots;
};

std::string baseName(const std::string &path)
{
    return std::filesystem::path(path).filename().string();
}

std::string text(const std::vector<Dim> &sizes)
{
    std::string result = "[";
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        result += i == 0 ? "" : ", ";
        result += sizes[i].symbol.empty() ? std::to_string(sizes[i].size) : sizes[i].symbol;
    }
    return result + "]";
}

std::string text(at::IntArrayRef sizes)
{
    std::string result = "[";
    for (std::size_t i = 0; i < sizes.size(); ++i)
        result += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
    return result + "]";
}

[[noreturn]] void refuse(const InputSlot &slot, const ModelSide &side, const std::string &given,
                         const std::string &expected)
{
    throw ReadError("input " + slot.name + ": " + given + " given, the " + side.word + " takes " + expected);
}

// --- each value against its slot -----------------------------------------------------------------

// 0-dimensional arrays become numbers where the model asks for a number.
void makeNumbers(const std::vector<InputSlot> &slots, std::vector<InputBatch> &batches)
{
    for (InputBatch &batch : batches)
        for (std::size_t i = 0; i < slots.size(); ++i) {
            if (slots[i].meta || !batch[i].isTensor())
                continue;
            const at::Tensor &tensor = batch[i].toTensor();
            if (tensor.dim() != 0)
                throw ReadError("input " + slots[i].name + ": an array of shape " + text(tensor.sizes()) +
                                " given, the model takes a number");
            const at::Scalar number = tensor.item();
            if (number.isBoolean())
                batch[i] = number.toBool();
            else if (number.isFloatingPoint())
                batch[i] = number.toDouble();
            else
                batch[i] = number.toLong();
        }
}

bool isFixed(const Dim &dim)
{
    return dim.symbol.empty();
}

// Type, rank and all sizes but a fixed first one.
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
        refuse(slot, side, "shape " + text(tensor.sizes()), "shape " + text(meta.sizes));
}

// Symbols: one size each, within the range that the program was exported for. After splitting.
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
                refuse(slot, side, "shape " + text(tensor.sizes()),
                       "shape " + text(slot.meta->sizes) + " with " + symbol + " from " +
                           std::to_string(range->second.lowest) + " to " + std::to_string(range->second.highest));
            if (const auto [it, isNew] = sizes.emplace(symbol, size); !isNew && it->second != size)
                refuse(slot, side, "shape " + text(tensor.sizes()),
                       "shape " + text(slot.meta->sizes) + " with " + symbol + " = " + std::to_string(it->second) +
                           " as in the inputs before it");
        }
    }
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
                            std::to_string(samples) + (samples == 1 ? " sample" : " samples") + " in all");
        const std::size_t before = m_batches.size();
        rebuild();
        const std::int64_t left = samples - static_cast<std::int64_t>(m_batches.size()) * m_size;
        std::string note =
            std::to_string(samples) + " samples in " + std::to_string(before) + (before == 1 ? " batch" : " batches") +
            (m_batches.size() > before ? " split into " : " joined into ") + std::to_string(m_batches.size()) +
            (m_batches.size() == 1 ? " batch" : " batches") + " of " + std::to_string(m_size);
        if (left != 0)
            note += "; " + std::to_string(left) + " left over and not used";
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
        refuse(side.slots[i], side, "shape " + text(batch[i].toTensor().sizes()),
               "shape " + text(side.slots[i].meta->sizes));
    }

    void rebuild()
    {
        const bool join = std::any_of(m_batches.begin(), m_batches.end(),
                                      [&](const InputBatch &batch) { return samplesOf(batch) % m_size != 0; });
        std::vector<InputBatch> sources = m_batches;
        if (join && m_batches.size() > 1)
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
                                    m_reference.slots[i].name + " differs between them");
            }
        }
        return all;
    }

    const ModelSide &m_reference, &m_candidate;
    std::vector<InputBatch> &m_batches;
    std::vector<std::optional<std::int64_t>> m_fixed; // per slot
    std::int64_t m_size = 0;                          // samples per batch that the programs take
};

// --- what a report says about them ----------------------------------------------------------------

void describe(const std::vector<InputBatch> &batches, InputsInfo &info)
{
    Sha256 hash;
    for (const InputBatch &batch : batches) {
        std::optional<std::int64_t> samples;
        for (const c10::IValue &value : batch) {
            if (value.isTensor()) {
                const at::Tensor tensor = value.toTensor().contiguous();
                hash.add(tensor.const_data_ptr(), static_cast<std::size_t>(tensor.numel()) * tensor.element_size());
                if (!samples && tensor.dim() > 0)
                    samples = tensor.size(0);
            } else if (value.isDouble()) {
                const double number = value.toDouble();
                hash.add(&number, sizeof number);
            } else if (value.isInt() || value.isBool()) {
                const std::int64_t number = value.isInt() ? value.toInt() : static_cast<std::int64_t>(value.toBool());
                hash.add(&number, sizeof number);
            }
        }
        info.samples += samples.value_or(1);
    }
    info.batches = static_cast<std::int64_t>(batches.size());
    info.sha256 = hash.hex();
}

std::vector<InputBatch> chooseBatches(const InputRequest &request, const ModelSide &reference,
                                      const ModelSide &candidate, InputsInfo &info, ReadControl &control)
{
    if (!request.files.empty()) {
        GivenInputs given = readInputFiles(request.files, reference.model, control);
        for (const std::string &file : request.files)
            info.source += (info.source.empty() ? "" : ", ") + baseName(file);
        info.notes = std::move(given.notes);
        if (request.random)
            info.notes.emplace_back("--random is ignored: inputs are given");
        return std::move(given.batches);
    }
    for (const ModelSide *side : {&reference, &candidate}) {
        if (!side->model.m_info.hasSampleInputs)
            continue;
        info.source = "sample inputs of " + baseName(side->model.m_info.path);
        if (request.random)
            info.notes.emplace_back("--random is ignored: the model has sample inputs");
        return {side->model.m_sampleInputs};
    }
    if (!request.random) {
        const std::string &why = reference.model.m_info.sampleInputsNote;
        throw ReadError((why.empty() ? "no sample inputs in the file" : why) +
                        ": give inputs with --inputs FILE, or ask for random ones with --random SEED");
    }
    info.random = true;
    info.source = "random, seed " + std::to_string(*request.random);
    info.notes.emplace_back("random inputs rank layers differently from real data: normal numbers, integers 0 and 1");
    return {randomBatch(reference.slots, *request.random)};
}

// Both must take the same inputs; Incomparable when they do not.
std::optional<std::string> whyDifferent(const ModelSide &reference, const ModelSide &candidate)
{
    if (reference.slots.size() != candidate.slots.size())
        return "the reference takes " + std::to_string(reference.slots.size()) + " inputs (" +
               slotNames(reference.slots) + "), the candidate " + std::to_string(candidate.slots.size()) + " (" +
               slotNames(candidate.slots) + ")";
    for (std::size_t i = 0; i < reference.slots.size(); ++i) {
        const auto &ours = reference.slots[i].meta, &theirs = candidate.slots[i].meta;
        if (ours.has_value() != theirs.has_value())
            return "input " + reference.slots[i].name + " is a tensor in one program and a number in the other";
        if (!ours)
            continue;
        bool same = ours->sizes.size() == theirs->sizes.size() && ours->dtype == theirs->dtype;
        for (std::size_t d = 0; same && d < ours->sizes.size(); ++d)
            same =
                !isFixed(ours->sizes[d]) || !isFixed(theirs->sizes[d]) || ours->sizes[d].size == theirs->sizes[d].size;
        if (!same)
            return "input " + reference.slots[i].name + ": the reference takes " + std::string(dtypeName(ours->dtype)) +
                   " " + text(ours->sizes) + ", the candidate " + std::string(dtypeName(theirs->dtype)) + " " +
                   text(theirs->sizes) + "; export both with the same example inputs";
    }
    return std::nullopt;
}

std::shared_ptr<const LoadedInputs> read(const InputRequest &request, const ModelSide &reference,
                                         const ModelSide &candidate, ReadControl &control)
{
    auto inputs = std::make_shared<LoadedInputs>();
    std::vector<InputBatch> batches = chooseBatches(request, reference, candidate, inputs->m_info, control);
    if (batches.empty())
        throw ReadError("there are no batches in the inputs");
    makeNumbers(reference.slots, batches);
    for (const InputBatch &batch : batches)
        for (std::size_t i = 0; i < reference.slots.size(); ++i) {
            control.check();
            checkValue(batch[i], reference.slots[i], reference);
            checkValue(batch[i], candidate.slots[i], candidate);
        }
    FirstDimension(reference, candidate, batches).fit(inputs->m_info.notes);
    for (const InputBatch &batch : batches) {
        checkSymbols(batch, reference);
        checkSymbols(batch, candidate);
    }
    describe(batches, inputs->m_info);
    inputs->m_batches = std::move(batches);
    return inputs;
}

} // namespace

Result<std::shared_ptr<const LoadedInputs>> readInputs(const InputRequest &request, const LoadedModel &reference,
                                                       const LoadedModel &candidate, std::stop_token stop)
{
    const ModelSide ours{"reference", reference, inputSlots(reference.graph())};
    const ModelSide theirs{"candidate", candidate, inputSlots(candidate.graph())};
    const std::string where = request.files.empty() ? reference.info().path : request.files.front();
    ReadControl control({}, std::move(stop));
    try {
        if (const auto why = whyDifferent(ours, theirs))
            return fail(ErrorCode::Incomparable, candidate.info().path, *why);
        const bool nothing = request.files.empty() && !request.random && !reference.m_info.hasSampleInputs &&
                             !candidate.m_info.hasSampleInputs;
        try {
            return read(request, ours, theirs, control);
        } catch (const ReadError &error) {
            // Errors of a file name it themselves.
            Error result = error.toError(where);
            if (!error.member().empty())
                result.where = error.member();
            if (nothing)
                result.code = ErrorCode::Usage;
            return tl::unexpected(std::move(result));
        }
    } catch (const ReadCancelled &) {
        return fail(ErrorCode::Cancelled, where, "reading the inputs was cancelled");
    } catch (const c10::Error &error) {
        return fail(ErrorCode::Unreadable, where, error.what_without_backtrace(), error.what());
    } catch (const std::bad_alloc &) {
        return fail(ErrorCode::Unreadable, where, "not enough memory to read the inputs");
    } catch (const std::exception &error) {
        return fail(ErrorCode::Internal, where, std::string("reading inputs failed unexpectedly: ") + error.what());
    }
}

} // namespace dblame

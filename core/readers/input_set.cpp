// SPDX-License-Identifier: GPL-3.0-or-later
//
// Batches for a comparison: read, checked against both signatures, split or joined along the first dimension.
#include <algorithm>
#include <filesystem>
#include <new>
#include <optional>
#include <span>

#include <c10/util/Exception.h>

#include <ATen/core/Tensor.h>

#include "core/random_looking.h"
#include "core/readers/input_checks.h"
#include "core/readers/readers.h"
#include "core/readers/sha256.h"

namespace dblame
{

namespace
{

std::string baseName(const std::string &path)
{
    return std::filesystem::path(path).filename().string();
}

// --- what a report says about them ----------------------------------------------------------------

void describe(std::span<const InputBatch> batches, InputsInfo &info)
{
    Sha256 hash;
    info.samples = 0;
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

// Elements that are looked at: enough for sharp estimates, few enough for no wait.
constexpr std::int64_t kMostElements = 1 << 20;

// What looks like the output of a generator is said. Integers and numbers say nothing of the kind.
void noteRandomLook(std::span<const InputBatch> batches, const std::vector<InputSlot> &slots, InputsInfo &info)
{
    for (std::size_t i = 0; i < slots.size(); ++i) {
        RandomLook look;
        for (const InputBatch &batch : batches) {
            if (!batch[i].isTensor() || look.count() >= kMostElements)
                continue;
            at::Tensor tensor = batch[i].toTensor();
            if (!tensor.is_floating_point() || tensor.numel() == 0)
                continue;
            if (tensor.dim() > 0 && tensor.numel() > kMostElements)
                tensor =
                    tensor.narrow(0, 0, std::max<std::int64_t>(1, tensor.size(0) * kMostElements / tensor.numel()));
            tensor = tensor.to(at::kDouble).contiguous();
            look.add({tensor.const_data_ptr<double>(), static_cast<std::size_t>(tensor.numel())},
                     {tensor.sizes().data(), tensor.sizes().size()});
        }
        if (const auto words = look.words())
            info.notes.push_back(randomLookNote(slots[i].name, *words));
    }
}

std::vector<InputBatch> chooseBatches(const InputRequest &request, const ModelSide &reference,
                                      const ModelSide &candidate, LoadedInputs &inputs, ReadControl &control)
{
    InputsInfo &info = inputs.m_info;
    if (!request.files.empty()) {
        GivenInputs given = readInputFiles(request.files, reference.model, control);
        for (const std::string &file : request.files)
            info.source += (info.source.empty() ? "" : ", ") + baseName(file);
        info.notes = std::move(given.notes);
        inputs.m_files = std::move(given.files);
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
                        "; give inputs with --inputs FILE, or ask for random ones with --random SEED");
    }
    info.random = true;
    info.source = "random, seed " + std::to_string(*request.random);
    info.notes.emplace_back("random inputs rank layers differently from real data: normal numbers, integers 0 and 1");
    return {randomBatch(reference.slots, *request.random)};
}

bool holdsAny(const MappedFile &file, const std::vector<InputBatch> &batches)
{
    return std::any_of(batches.begin(), batches.end(), [&file](const InputBatch &batch) {
        return std::any_of(batch.begin(), batch.end(), [&file](const c10::IValue &value) {
            return value.isTensor() && value.toTensor().has_storage() && file.holds(value.toTensor().const_data_ptr());
        });
    });
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
                   " " + shapeText(ours->sizes) + ", the candidate " + std::string(dtypeName(theirs->dtype)) + " " +
                   shapeText(theirs->sizes) + "; export both with the same example inputs";
    }
    return std::nullopt;
}

std::shared_ptr<const LoadedInputs> read(const InputRequest &request, const ModelSide &reference,
                                         const ModelSide &candidate, ReadControl &control)
{
    auto inputs = std::make_shared<LoadedInputs>();
    std::vector<InputBatch> batches = chooseBatches(request, reference, candidate, *inputs, control);
    if (batches.empty())
        throw ReadError("there are no batches in the inputs");
    makeNumbers(reference.slots, batches);
    for (const InputBatch &batch : batches)
        for (std::size_t i = 0; i < reference.slots.size(); ++i) {
            control.check();
            checkValue(batch[i], reference.slots[i], reference);
            checkValue(batch[i], candidate.slots[i], candidate);
        }
    fitFirstDimension(reference, candidate, batches, inputs->m_info.notes);
    for (const InputBatch &batch : batches) {
        checkSymbols(batch, reference);
        checkSymbols(batch, candidate);
    }
    describe(batches, inputs->m_info);
    if (!inputs->m_info.random) // else it is known
        noteRandomLook(batches, reference.slots, inputs->m_info);
    for (const auto &file : inputs->m_files)
        if (file->changed())
            throw ReadError("the file changed while it was read; give it again when it is written", file->path());
    std::erase_if(inputs->m_files, [&batches](const auto &file) { return !holdsAny(*file, batches); });
    inputs->m_batches = std::move(batches);
    return inputs;
}

} // namespace

InputsInfo LoadedInputs::infoOf(std::size_t batches) const
{
    if (batches >= m_batches.size())
        return m_info;
    InputsInfo info = m_info;
    describe(std::span(m_batches).first(batches), info);
    info.notes.push_back("only the first " + std::to_string(batches) + " of " + std::to_string(m_batches.size()) +
                         " batches were run");
    return info;
}

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
            Error result = error.toError(where, "save the inputs again with torch.save or numpy");
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

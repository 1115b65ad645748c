// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "core/engine.h"
#include "core/error.h"
#include "core/readers/loaded_model.h"

namespace dblame
{

// Opens any model file by its content ("FILE" or "FILE#program"); what cannot be opened yet is refused
// with a message that says what the file is. Never runs code from the file.
[[nodiscard]] Result<std::shared_ptr<const LoadedModel>> readModel(const std::string &path, const Progress &progress,
                                                                   std::stop_token stop);

// The batches of a comparison: for each batch one value per User input of the reference, in signature order.
class LoadedInputs final : public InputSet
{
public:
    InputsInfo m_info;
    std::vector<std::vector<c10::IValue>> m_batches;
    std::vector<std::shared_ptr<const MappedFile>> m_files; // whose mappings hold some of the batches
    [[nodiscard]] const InputsInfo &info() const override { return m_info; }
    // The same for a run on the first batches only: counts and hash are of what is used. May throw c10::Error.
    [[nodiscard]] InputsInfo infoOf(std::size_t batches) const;
};

// Reads, checks against both signatures, and splits or joins along a fixed first dimension where only
// that differs (docs/cli.md, --inputs).
[[nodiscard]] Result<std::shared_ptr<const LoadedInputs>> readInputs(const InputRequest &request,
                                                                     const LoadedModel &reference,
                                                                     const LoadedModel &candidate,
                                                                     std::stop_token stop);

} // namespace dblame

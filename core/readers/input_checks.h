// SPDX-License-Identifier: GPL-3.0-or-later
//
// Given inputs against what two programs take. All functions throw ReadError with a message that names the
// input, what was given and what is taken.
#pragma once

#include <string>
#include <vector>

#include "core/readers/input_batches.h"

namespace dblame
{

struct ModelSide {
    const char *word; // "reference", "candidate"
    const LoadedModel &model;
    std::vector<InputSlot> slots;
};

[[nodiscard]] std::string shapeText(const std::vector<Dim> &sizes);
[[nodiscard]] inline bool isFixed(const Dim &dim)
{
    return dim.symbol.empty();
}

// 0-dimensional arrays become numbers where the model asks for a number.
void makeNumbers(const std::vector<InputSlot> &slots, std::vector<InputBatch> &batches);
// Type, rank and all sizes but a fixed first one.
void checkValue(const c10::IValue &value, const InputSlot &slot, const ModelSide &side);
// Symbols: one size each, within the range that the program was exported for. After fitFirstDimension.
void checkSymbols(const InputBatch &batch, const ModelSide &side);

// Splits or joins batches along the first dimension where the programs fix it and only it differs; says so in
// `notes`. Refused where a per-tensor dynamic quantizer would see other numbers.
void fitFirstDimension(const ModelSide &reference, const ModelSide &candidate, std::vector<InputBatch> &batches,
                       std::vector<std::string> &notes);

} // namespace dblame

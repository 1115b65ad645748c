// SPDX-License-Identifier: GPL-3.0-or-later
//
// From a recipe to the steps of its quantizer.
#include <cmath>
#include <set>

#include <c10/core/InferenceMode.h>

#include "core/engine/quantized_model.h"

namespace dblame
{

namespace
{

// What torch.histc takes; torchao leaves an operand beyond it float.
constexpr double kHugeScalar = 3.4028235e15;

QuantizerFlow flowOf(const Recipe &recipe)
{
    QuantizerFlow flow;
    flow.corrected = recipe.corrected;
    flow.name = recipe.title();
    switch (recipe.kind) {
    case RecipeKind::Xnnpack:
        flow.foldNorms = flow.liftScalars = true;
        break;
    case RecipeKind::X86: // has no step before annotation, so numbers stay numbers
        flow.foldNorms = true;
        break;
    case RecipeKind::CoreAi:
        flow.rewriteNorms = recipe.coreAi.mode == CoreAiMode::Graph;
        flow.observesExample = flow.quantizesWeightsMeanwhile = true;
        break;
    case RecipeKind::Palette:
        break;
    }
    return flow;
}

std::set<ValueId> hugeScalars(const LoadedModel &model)
{
    std::set<ValueId> result;
    for (const GraphInput &input : model.graph().inputs) {
        if (!input.value.valid() || input.kind == InputKind::User || !model.tensor(input.value).defined() ||
            model.tensor(input.value).dim() != 0)
            continue;
        const auto numbers = model.numbers(input.value, 1);
        if (numbers && numbers->size() == 1 && std::abs(numbers->front()) > kHugeScalar)
            result.insert(input.value);
    }
    return result;
}

struct Placed {
    QuantizerFlow flow;
    FloatForm form;
    Placement placement;
};

Result<Placed> place(const std::shared_ptr<const LoadedModel> &model, const Recipe &recipe)
{
    Placed result;
    result.flow = flowOf(recipe);
    result.form = rewriteFloat(model, result.flow);
    Recipe asked = recipe;
    asked.pt2e.hugeScalars = hugeScalars(*result.form.model);
    auto placement = placeRecipe(result.form.model->graph(), asked);
    if (!placement)
        return tl::unexpected<Error>(placement.error());
    result.placement = std::move(*placement);
    return result;
}

} // namespace

Result<QuantizedModel> quantizeModel(const std::shared_ptr<const LoadedModel> &model, const Recipe &recipe,
                                     const LoadedInputs *calibration, const QuantizeOptions &options,
                                     CalibrationCache &cache, const Progress &progress, const std::stop_token &stop)
{
    auto placed = place(model, recipe);
    if (!placed)
        return tl::unexpected<Error>(placed.error());
    return placeAndCalibrate(placed->form, std::move(placed->placement), placed->flow, calibration, options, cache,
                             progress, stop);
}

Result<QuantizedModel> placeOnModel(const std::shared_ptr<const LoadedModel> &model, const Recipe &recipe)
{
    auto placed = place(model, recipe);
    if (!placed)
        return tl::unexpected<Error>(placed.error());
    QuantizedModel result;
    result.placement = std::move(placed->placement);
    result.annotated = std::move(placed->form.model);
    RewriteNotes &notes = placed->form.notes;
    result.placement.defects.insert(result.placement.defects.begin(), notes.defects.begin(), notes.defects.end());
    result.warnings = std::move(notes.warnings);
    return result;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <vector>

#include "core/engine.h"
#include "core/readers/readers.h"

namespace dblame
{

// What openModel and openInputs made, compared (core/engine.h, Comparison).
[[nodiscard]] std::unique_ptr<Comparison> makeComparison(std::shared_ptr<const LoadedModel> reference,
                                                         std::shared_ptr<const LoadedModel> candidate,
                                                         std::shared_ptr<const LoadedInputs> inputs,
                                                         const std::vector<HandPair> &hand, Comparison *before);

// Physical cores, at most 8: the default thread count of a comparison.
[[nodiscard]] int defaultThreadCount();

} // namespace dblame

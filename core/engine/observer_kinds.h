// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to observer*.cpp: the kinds that makeObserver() chooses among. No combination is checked here.
#pragma once

#include <memory>

#include "core/engine/observer.h"

namespace dblame
{

// MinMax, MovingAverage, LastBatch.
[[nodiscard]] std::unique_ptr<Observer> rangeObserver(const TensorSpec &spec, SiteRole role);
// Histogram, Percentile, MeanSquaredError.
[[nodiscard]] std::unique_ptr<Observer> histogramObserver(const TensorSpec &spec, SiteRole role);
// MovingAverage by the rule FusedQat.
[[nodiscard]] std::unique_ptr<Observer> fusedObserver(const TensorSpec &spec, SiteRole role);
// Fixed, Dynamic, casts: always these.
[[nodiscard]] std::unique_ptr<Observer> constantObserver(const TensorSpec &spec, SiteRole role, Qparams qparams);

} // namespace dblame

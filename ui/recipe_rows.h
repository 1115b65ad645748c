// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the Recipe dock lists, as values: the facts of a recipe's candidate, and what its observers saw against what the
// comparison ran on.
#pragma once

#include <optional>
#include <vector>

#include <QString>

#include "core/node_report.h"
#include "core/output_parts.h"
#include "ui/open_pair.h"

namespace dblame::ui
{

struct FactRow {
    QString what, where, value; // "left float", "fc (aten.linear)", "the reason"
    bool marked = false;        // a defect that bites, a layer left float
};
[[nodiscard]] std::vector<FactRow> factRows(const QuantizedModel &quantized);

// What weights and activations cost at each output; `parts` null: not measured yet.
[[nodiscard]] std::vector<FactRow> partRows(const OutputParts *parts);

// One weight that the recipe quantizes.
struct WeightRow {
    WeightError error;
    PairId row; // of the weight; invalid where it has none
};
[[nodiscard]] std::vector<WeightRow> weightRows(const OpenPair &pair);

// One activation site.
struct CalibrationRow {
    QString site;
    SiteId id;  // of the candidate's sites; invalid where it has none
    PairId row; // the row whose value the site quantizes; invalid where none does
    ObserverRange seen;
    bool dynamic = false;                // chosen from each tensor: nothing is calibrated
    std::optional<double> evaluationLow; // of the reference's value in the run that is shown
    std::optional<double> evaluationHigh;
    // How far the evaluation leaves what was observed, at the wider of both ends, as a share of the observed range; 0
    // inside it.
    std::optional<double> drift;
    [[nodiscard]] bool drifts() const { return drift && *drift > kMostDrift; }
    static constexpr double kMostDrift = 0.10;
};
// In execution order. `report`: rows of the pair's alignment; may be null.
[[nodiscard]] std::vector<CalibrationRow> calibrationRows(const OpenPair &pair, const RunReport *report);

// What has to be known before the numbers are believed: random calibration, or the inputs themselves. Empty: nothing.
[[nodiscard]] QString calibrationWarning(const OpenPair &pair);

} // namespace dblame::ui

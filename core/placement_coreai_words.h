// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the parts of coreai-opt's placement share: words for what stays float and for defects, and edits of a placement.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/coreai_annotation.h"
#include "core/placement.h"

namespace dblame
{

// Operators that read a weight and have no site on it, each with the reason. `indivisible`: weights whose blocks do not
// divide them, with the words.
[[nodiscard]] std::vector<LeftFloat> floatOperators(const CoreAiGraph &graph, const CoreAiAnnotation &annotation,
                                                    const Placement &placement,
                                                    const std::map<ValueId, std::string> &indivisible);

// "the configuration declines it: module_name_configs 'fc'"
[[nodiscard]] std::string declineWords(const ChosenConfig &chosen);
[[nodiscard]] std::string epsWords(double eps);
[[nodiscard]] std::string transposedAxisWords();
[[nodiscard]] std::string averagingWords();

// Why a tensor of this shape cannot be cut into the spec's blocks; nullopt when it can (or when the shape is unknown).
[[nodiscard]] std::optional<std::string> indivisibleWords(const TensorSpec &spec,
                                                          const std::vector<std::int64_t> &shape);
// Why it cannot have the spec at all (no such axis); nullopt when it can.
[[nodiscard]] std::optional<std::string> misfitWords(const TensorSpec &spec, const std::vector<std::int64_t> &shape);

// Takes observers and all their sites out; readers go back to what the sites read.
void removeObservers(Placement &placement, const std::set<int> &observers);
// Takes out observers that no site has.
void dropIdleObservers(Placement &placement);
// Ids as recognizeSites gives them to the same sites in a saved candidate.
void nameSitesOf(const Graph &graph, Placement &placement);

} // namespace dblame

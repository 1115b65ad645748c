// SPDX-License-Identifier: GPL-3.0-or-later
//
// The net of the fake engine: the digits net of the window's picture as reference and as int8 candidate, with its
// sites and its alignment.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/alignment.h"
#include "core/model.h"
#include "core/quant_site.h"

namespace dblame::ui::test
{

struct LayerRow {
    const char *value, *op, *module, *type;
    std::vector<int> from; // rows; -1 is the input
    double db;
    bool weight, outputSite;
};
[[nodiscard]] const std::vector<LayerRow> &layers();

// `other`: the last layer's value is called otherwise.
[[nodiscard]] std::shared_ptr<const Model> makeModel(const std::string &path, bool quantized, bool other);
[[nodiscard]] SiteTable makeSites(const Model &candidate);
[[nodiscard]] Alignment makeAlignment(const Graph &ref, const Graph &cand, const SiteTable &sites, bool unpairFc,
                                      const std::vector<HandPair> &hand);

} // namespace dblame::ui::test

// SPDX-License-Identifier: GPL-3.0-or-later
//
// What `dblame inspect` shows of a model.
#pragma once

#include <string>
#include <vector>

#include "core/model.h"
#include "core/quant_site.h"

namespace dblame
{

struct InspectedOperator {
    std::string name; // "aten.conv2d.default"
    int count = 0;
    int cannotRun = 0;       // nodes of it that have a fault
    std::string fault, node; // the first of them
};

struct InspectedValue {
    std::string role;               // "user input", "parameter", ..., "output", "buffer mutation"
    std::string name, target, type; // type: "float32[1, 3]", or a constant's value
    std::uint64_t bytes = 0;        // of stored tensors
    bool mapped = false;
};

struct Inspection {
    ModelInfo info;
    std::size_t nodes = 0, subgraphs = 0;
    std::vector<InspectedValue> inputs, outputs;
    std::vector<InspectedOperator> operators; // by count, those of subgraphs included
    SiteTable sites;
    std::string graph; // text form, when asked for
};

[[nodiscard]] Inspection inspect(const Model &model, bool withGraph);
[[nodiscard]] std::string inspectionText(const Inspection &inspection);
[[nodiscard]] std::string inspectionJson(const Inspection &inspection);

} // namespace dblame

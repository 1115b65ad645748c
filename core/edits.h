// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a user asks to change in a candidate, resolved to sites; and the plan of what that will do.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/quant_site.h"
#include "core/tensor_spec.h"

namespace dblame
{

// A site is bypassed for one reader only; its other readers keep it.
struct EdgeBypass {
    SiteId site;
    NodeId reader;
    friend auto operator<=>(const EdgeBypass &, const EdgeBypass &) = default;
};

// Another spec for a site whose float source is at hand.
struct SpecChange {
    int bits = 8; // 2..16, of the site's own signedness; where `type` is given it does not matter
    Granularity granularity = Granularity::PerTensor;
    std::optional<bool> symmetric;             // absent: as the site is
    std::int64_t blockSize = 32;               // PerBlock
    std::optional<ElementType> type = {};      // any, floating types too
    std::optional<double> low = {}, high = {}; // both: a fixed range, per tensor; else as the site's own range tells
    friend bool operator==(const SpecChange &, const SpecChange &) = default;
    [[nodiscard]] std::string text() const; // "int4 symmetric per channel"
};

struct EditSet {
    std::set<SiteId> off;          // float here
    std::set<EdgeBypass> bypassed; // float on this edge
    std::map<SiteId, SpecChange> respecified;
    friend bool operator==(const EditSet &, const EditSet &) = default;
    [[nodiscard]] bool empty() const { return off.empty() && bypassed.empty() && respecified.empty(); }
};

enum class ChangeKind { Off, Bypassed, Respecified, Refused, NoEffect };
struct PlannedChange {
    ChangeKind kind = ChangeKind::Off;
    SiteId site;
    NodeId reader;    // Bypassed
    std::string id;   // site id, or "path/in[0]" of the edge
    std::string text; // "int8 symmetric per channel -> float, from the reference's weight"
};

struct Plan {
    std::vector<PlannedChange> changes;
    std::vector<std::string>
        notes; // grid groups: "switching relu/out alone changes nothing: pool1/out is on the same grid"
    int nodesToRerun = 0, nodesTotal = 0;
};

} // namespace dblame

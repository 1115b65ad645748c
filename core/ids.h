// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace dblame
{

// A strong index: an id of one kind never converts to another. Default-constructed ids are invalid.
template <class Tag>
struct Id {
    std::int32_t index = -1;

    constexpr Id() = default;
    constexpr explicit Id(std::size_t i) : index(static_cast<std::int32_t>(i)) {}

    [[nodiscard]] constexpr bool valid() const { return index >= 0; }
    [[nodiscard]] constexpr std::size_t get() const { return static_cast<std::size_t>(index); }
    friend constexpr auto operator<=>(Id, Id) = default;
};

using ValueId = Id<struct ValueTag>; // position in Graph::values
using NodeId = Id<struct NodeTag>;   // position in Graph::nodes (= execution order)
using SiteId = Id<struct SiteTag>;   // position in SiteTable::sites
using PairId = Id<struct PairTag>;   // position in Alignment::pairs (= row index)

} // namespace dblame

template <class Tag>
struct std::hash<dblame::Id<Tag>> {
    std::size_t operator()(dblame::Id<Tag> id) const noexcept { return std::hash<std::int32_t>{}(id.index); }
};

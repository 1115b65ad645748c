// SPDX-License-Identifier: GPL-3.0-or-later
//
// The candidate as a tree: modules, their layers, the sites of each layer. Plain data, built once per pair.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <QString>

#include "core/edits.h"
#include "ui/open_pair.h"

namespace dblame::ui
{

struct LayerItem {
    enum Kind { Module, Layer, Site };
    Kind kind = Module;
    QString name;    // "conv1"; "weight", "output", "input 0 of pool1" for sites
    QString path;    // "block.conv1"
    int parent = -1; // position in LayerTree::items
    std::vector<int> children;
    // What unchecking it does ("float here"): exactly what the selector of the same operators does.
    EditSet whole;
    SiteId site;           // Site: the site; Layer: the one that speaks for it in the spec column (weight, else output)
    bool edge = false;     // Site: an input edge that carries another layer's site
    PairId row;            // the layer's last row
    NodeId node;           // Layer: its last operator
    bool hasFloat = false; // Site: it can take another spec, its float source is at hand
};

struct LayerTree {
    std::vector<LayerItem> items; // parents before children
    std::vector<int> roots;
    // The layer item that stands for a row, -1 for none.
    [[nodiscard]] int itemOfRow(PairId row) const;
    std::vector<int> rowItem;
};

[[nodiscard]] LayerTree buildLayerTree(const OpenPair &pair);

enum class LayerState { None, On, Off, Partly }; // None: nothing to quantize in it
[[nodiscard]] LayerState stateOf(const LayerItem &item, const EditSet &edits);
// The edits after the item's check box was pressed.
[[nodiscard]] EditSet toggled(const LayerItem &item, const EditSet &edits);

} // namespace dblame::ui

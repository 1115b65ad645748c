// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the SNR plot draws, as plain values: which rows, in which order, at which height, with which marks.
// Computed from the node table; no widget, no QCustomPlot.
#pragma once

#include <optional>
#include <vector>

#include <QString>

#include "core/node_report.h"
#include "ui/node_table_model.h"

namespace dblame::ui
{

enum class PlotOrder { Reference, Sorted, Module };

enum class PointState {
    Pending,  // no figure yet
    Value,    // a finite dB value
    Exact,    // +inf: both sides are equal
    MinusInf, // a silent reference with an error
    Bad,      // NaN, failed, not computed, shapes or integer values differ
    NoDb,     // nothing to show: no floating-point value
};

struct SnrPoint {
    PairId row;
    double db = 0; // NaN unless Value
    PointState state = PointState::Pending;
    bool flagged = false; // a value, but elements with NaN or infinity were left out of it
};

// Rows of one part of the module tree, next to each other; x positions are inclusive.
struct ModuleBand {
    QString name; // "(top)" for rows outside of every module
    int first = 0, last = 0;
};

struct SnrSeries {
    std::vector<SnrPoint> points;   // x position = index
    std::vector<int> positions;     // row -> x position, -1 when the row is not in the plot
    std::vector<ModuleBand> bands;  // PlotOrder::Module only
    int done = 0;                   // points that are no longer pending
    double lowest = 0, highest = 0; // over finite values; NaN when there is none

    [[nodiscard]] int position(PairId row) const
    {
        return row.valid() && row.get() < positions.size() ? positions[row.get()] : -1;
    }
    [[nodiscard]] bool has(PointState state) const;
};

// Rows with those of one module next to each other, in order of first appearance. It depends on the pair alone, so
// a running plot keeps it.
struct ModuleOrder {
    std::vector<PairId> rows;
    std::vector<ModuleBand> bands;
};
[[nodiscard]] ModuleOrder makeModuleOrder(const NodeTableModel &table, bool everything);

// Activation and output rows in the reference's order; with `everything` also weights and inputs, which come first.
// Sorted: worst first, then exact, then what has no dB, then pending. By module: as `modules` says.
[[nodiscard]] SnrSeries makeSeries(const NodeTableModel &table, bool sorted, bool everything);
[[nodiscard]] SnrSeries makeSeries(const NodeTableModel &table, const ModuleOrder &modules);

// Largest drop by order over the rows that have a figure so far: the mark of a run that still goes on. The final
// one comes from findDrops. nullopt when no row lost anything.
[[nodiscard]] std::optional<Drop> dropSoFar(const NodeTableModel &table);

// A vertical range that only grows, in steps of 5 dB, so that a running plot keeps its axis still.
class SteppedRange
{
public:
    static constexpr double kStep = 5;
    static constexpr double kLeastSpan = 20; // grown downwards: a run starts high and loses

    void reset() { m_empty = true; }
    void include(double db); // NaN and infinities are ignored
    [[nodiscard]] bool empty() const { return m_empty; }
    [[nodiscard]] double lower() const { return m_empty ? 0 : m_lower; }
    [[nodiscard]] double upper() const { return m_empty ? 50 : m_upper; }

private:
    bool m_empty = true;
    double m_lower = 0, m_upper = 0;
};

} // namespace dblame::ui

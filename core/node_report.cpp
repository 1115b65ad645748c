// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/node_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/graph.h"

namespace dblame
{

const char *rowStatusName(RowStatus status)
{
    switch (status) {
    case RowStatus::Pending:
        return "pending";
    case RowStatus::Ok:
        return "ok";
    case RowStatus::Exact:
        return "exact";
    case RowStatus::Mismatch:
        return "mismatch";
    case RowStatus::NotFloat:
        return "not_float";
    case RowStatus::ShapeMismatch:
        return "shape_mismatch";
    case RowStatus::Failed:
        return "failed";
    case RowStatus::NotComputed:
        return "not_computed";
    }
    return "";
}

double shownDb(const NodeReport &row, Signal signal)
{
    return signal == Signal::Reference ? row.metrics.snrDb : row.metrics.sqnrDb;
}

namespace
{

constexpr double kNone = std::numeric_limits<double>::infinity();

bool hasNumber(const NodeReport &row, Signal signal)
{
    return (row.status == RowStatus::Ok || row.status == RowStatus::Exact) && !std::isnan(shownDb(row, signal));
}

bool finite(const NodeReport &row, Signal signal)
{
    return row.status == RowStatus::Ok && std::isfinite(shownDb(row, signal));
}

void note(std::optional<Drop> &largest, PairId row, double db)
{
    if (db > 0 && (!largest || db > largest->db))
        largest = Drop{row, db};
}

void findOrderDrops(RunReport &report, const Alignment &alignment, Signal signal)
{
    std::optional<double> previous;
    for (std::size_t i = 0; i < std::min(report.rows.size(), alignment.pairs.size()); ++i) {
        NodeReport &row = report.rows[i];
        if (alignment.pairs[i].kind == RowKind::Weight || !finite(row, signal))
            continue;
        const double db = shownDb(row, signal);
        if (previous) {
            row.dropDb = *previous - db;
            note(report.largestDrop, PairId{i}, *row.dropDb);
        }
        previous = db;
    }
}

// What a reader of a value sees upstream: the lowest number of the nearest paired values at or before it.
class FlowFloor
{
public:
    FlowFloor(const RunReport &report, const Alignment &alignment, const Graph &reference, Signal signal)
        : m_own(reference.values.size(), kNone), m_stops(reference.values.size(), 0),
          m_floor(reference.values.size(), kNone)
    {
        for (std::size_t i = 0; i < std::min(report.rows.size(), alignment.pairs.size()); ++i)
            enter(alignment.pairs[i], report.rows[i], signal);
        // Nodes stand in execution order: every producer is done before its readers.
        for (const Node &node : reference.nodes) {
            const double floor = above(node);
            for (const ValueId value : node.outputValues())
                m_floor[value.get()] = floor;
        }
    }

    [[nodiscard]] double above(const Node &node) const
    {
        double lowest = kNone;
        for (const ValueId value : node.inputValues())
            lowest = std::min(lowest, m_stops[value.get()] != 0 ? m_own[value.get()] : m_floor[value.get()]);
        return lowest;
    }

private:
    void enter(const AlignedPair &pair, const NodeReport &row, Signal signal)
    {
        const bool weight = pair.kind == RowKind::Weight;
        if (!weight && !hasNumber(row, signal))
            return;
        // A folded norm's value stands for its convolution's row.
        for (const ValueId value : {pair.ref, pair.refCompared}) {
            if (!value.valid() || value.get() >= m_stops.size() || (m_stops[value.get()] != 0 && value != pair.ref))
                continue;
            m_stops[value.get()] = 1;
            m_own[value.get()] = !weight && finite(row, signal) ? shownDb(row, signal) : kNone;
        }
    }

    std::vector<double> m_own;   // number of a paired value
    std::vector<char> m_stops;   // paired: the walk ends here
    std::vector<double> m_floor; // of what is before a value
};

void findFlowDrops(RunReport &report, const Alignment &alignment, const Graph &reference, Signal signal)
{
    const FlowFloor flow(report, alignment, reference, signal);
    for (std::size_t i = 0; i < std::min(report.rows.size(), alignment.pairs.size()); ++i) {
        NodeReport &row = report.rows[i];
        const AlignedPair &pair = alignment.pairs[i];
        const Node *producer = pair.ref.valid() ? reference.producer(pair.ref) : nullptr;
        if (pair.kind == RowKind::Weight || producer == nullptr || !finite(row, signal))
            continue;
        const double before = flow.above(*producer);
        if (before == kNone)
            continue;
        row.flowDropDb = before - shownDb(row, signal);
        note(report.largestFlowDrop, PairId{i}, *row.flowDropDb);
    }
}

} // namespace

void findDrops(RunReport &report, const Alignment &alignment, const Graph &reference, Signal signal)
{
    report.largestDrop.reset();
    report.largestFlowDrop.reset();
    for (NodeReport &row : report.rows) {
        row.dropDb.reset();
        row.flowDropDb.reset();
    }
    findOrderDrops(report, alignment, signal);
    findFlowDrops(report, alignment, reference, signal);
}

} // namespace dblame

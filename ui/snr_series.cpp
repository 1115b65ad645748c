// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/snr_series.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <QHash>
#include <QStringList>

#include "ui/row_words.h"

namespace dblame::ui
{
namespace
{

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostBands = 40; // more than that are stripes, not names

PointState stateOf(const NodeReport &report, double db)
{
    switch (report.status) {
    case RowStatus::Pending:
        return PointState::Pending;
    case RowStatus::Exact:
        return PointState::Exact;
    case RowStatus::NotFloat:
        return PointState::NoDb;
    case RowStatus::Mismatch:
    case RowStatus::ShapeMismatch:
    case RowStatus::Failed:
    case RowStatus::NotComputed:
        return PointState::Bad;
    case RowStatus::Ok:
        break;
    }
    if (std::isnan(db))
        return PointState::Bad;
    if (std::isinf(db))
        return db > 0 ? PointState::Exact : PointState::MinusInf;
    return PointState::Value;
}

SnrPoint pointOf(const NodeTableModel &table, PairId row)
{
    const NodeReport &report = table.report(row);
    const double db = table.shownDb(row);
    SnrPoint point{.row = row, .db = db, .state = stateOf(report, db)};
    if (point.state != PointState::Value)
        point.db = kNoValue;
    point.flagged = point.state == PointState::Value && (report.metrics.nan > 0 || report.metrics.inf > 0);
    return point;
}

void sortWorstFirst(std::vector<SnrPoint> &points)
{
    const auto rank = [](const SnrPoint &p) {
        switch (p.state) {
        case PointState::MinusInf:
            return 0;
        case PointState::Value:
            return 1;
        case PointState::Exact:
            return 2;
        case PointState::Bad:
            return 3;
        case PointState::NoDb:
            return 4;
        case PointState::Pending:
            break;
        }
        return 5;
    };
    std::stable_sort(points.begin(), points.end(), [&rank](const SnrPoint &a, const SnrPoint &b) {
        const int left = rank(a), right = rank(b);
        if (left != right)
            return left < right;
        return left == 1 && a.db < b.db;
    });
}

QString modulePathOf(const NodeTableModel &table, PairId row)
{
    const Graph &graph = table.pair()->reference->graph();
    const AlignedPair &pair = table.aligned(row);
    if (!pair.ref.valid())
        return {};
    if (const Node *node = graph.producer(pair.ref))
        return QString::fromStdString(node->modulePath());
    // A weight lies in the module whose state-dict prefix it has.
    const GraphInput *input = graph.input(pair.ref);
    const QString target = input == nullptr ? QString() : QString::fromStdString(input->target);
    const auto dot = target.lastIndexOf(QLatin1Char('.'));
    return input != nullptr && input->kind != InputKind::User && dot > 0 ? target.left(dot) : QString();
}

QString prefixOf(const QString &path, int depth)
{
    if (path.isEmpty())
        return QStringLiteral("(top)");
    qsizetype dot = -1;
    for (int i = 0; i < depth; ++i) {
        dot = path.indexOf(QLatin1Char('.'), dot + 1);
        if (dot < 0)
            return path;
    }
    return path.left(dot);
}

// How deep in the module tree to cut so that the bands tell something: the least depth at which no band holds more
// than three fifths of the rows, unless that makes too many bands.
int bandDepth(const std::vector<QString> &paths)
{
    int deepest = 1;
    for (const QString &path : paths)
        deepest = std::max(deepest, static_cast<int>(path.count(QLatin1Char('.'))) + 1);
    int depth = 1;
    for (int tried = 1; tried <= deepest; ++tried) {
        QHash<QString, std::size_t> sizes;
        std::size_t largest = 0;
        for (const QString &path : paths)
            largest = std::max(largest, ++sizes[prefixOf(path, tried)]);
        if (static_cast<std::size_t>(sizes.size()) > kMostBands)
            break;
        depth = tried;
        if (largest * 5 <= paths.size() * 3)
            break;
    }
    return depth;
}

std::vector<PairId> rowsOf(const NodeTableModel &table, bool everything)
{
    std::vector<PairId> rows;
    const auto count = static_cast<std::size_t>(table.pairCount());
    rows.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
        if (everything || isActivation(table.aligned(PairId(i)).kind))
            rows.emplace_back(i);
    return rows;
}

void indexPoints(SnrSeries &series, std::size_t rows)
{
    series.positions.assign(rows, -1);
    series.lowest = series.highest = kNoValue;
    for (std::size_t x = 0; x < series.points.size(); ++x) {
        const SnrPoint &point = series.points[x];
        series.positions[point.row.get()] = static_cast<int>(x);
        series.done += point.state != PointState::Pending;
        if (point.state != PointState::Value)
            continue;
        series.lowest = std::isnan(series.lowest) ? point.db : std::min(series.lowest, point.db);
        series.highest = std::isnan(series.highest) ? point.db : std::max(series.highest, point.db);
    }
}

SnrSeries seriesOf(const NodeTableModel &table, const std::vector<PairId> &rows, bool sorted)
{
    SnrSeries series;
    series.points.reserve(rows.size());
    for (const PairId row : rows)
        series.points.push_back(pointOf(table, row));
    if (sorted)
        sortWorstFirst(series.points);
    indexPoints(series, static_cast<std::size_t>(table.pairCount()));
    return series;
}

} // namespace

bool SnrSeries::has(PointState state) const
{
    return std::any_of(points.begin(), points.end(), [state](const SnrPoint &p) { return p.state == state; });
}

ModuleOrder makeModuleOrder(const NodeTableModel &table, bool everything)
{
    ModuleOrder order;
    if (!table.pair() || !table.pair()->reference)
        return order;
    const std::vector<PairId> rows = rowsOf(table, everything);
    std::vector<QString> paths;
    paths.reserve(rows.size());
    for (const PairId row : rows)
        paths.push_back(modulePathOf(table, row));
    const int depth = bandDepth(paths);

    QHash<QString, std::size_t> bandOf;
    std::vector<QString> names;
    std::vector<std::vector<PairId>> members;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        const QString name = prefixOf(paths[i], depth);
        auto found = bandOf.constFind(name);
        if (found == bandOf.constEnd()) {
            found = bandOf.insert(name, names.size());
            names.push_back(name);
            members.emplace_back();
        }
        members[*found].push_back(rows[i]);
    }
    for (std::size_t band = 0; band < names.size(); ++band) {
        const int first = static_cast<int>(order.rows.size());
        order.rows.insert(order.rows.end(), members[band].begin(), members[band].end());
        order.bands.push_back({names[band], first, static_cast<int>(order.rows.size()) - 1});
    }
    return order;
}

SnrSeries makeSeries(const NodeTableModel &table, bool sorted, bool everything)
{
    return seriesOf(table, rowsOf(table, everything), sorted);
}

SnrSeries makeSeries(const NodeTableModel &table, const ModuleOrder &modules)
{
    SnrSeries series = seriesOf(table, modules.rows, false);
    series.bands = modules.bands;
    return series;
}

std::optional<Drop> dropSoFar(const NodeTableModel &table)
{
    std::optional<Drop> largest;
    double before = kNoValue;
    for (std::size_t i = 0; i < static_cast<std::size_t>(table.pairCount()); ++i) {
        const PairId row(i);
        if (table.aligned(row).kind == RowKind::Weight)
            continue;
        const SnrPoint point = pointOf(table, row);
        if (point.state != PointState::Value)
            continue;
        const double lost = before - point.db;
        if (lost > 0 && (!largest || lost > largest->db))
            largest = Drop{row, lost};
        before = point.db;
    }
    return largest;
}

void SteppedRange::include(double db)
{
    if (!std::isfinite(db))
        return;
    const double below = std::floor(db / kStep) * kStep;
    const double above = std::ceil(db / kStep) * kStep;
    if (m_empty) {
        m_upper = above;
        m_lower = std::min(below, above - kLeastSpan);
        m_empty = false;
        return;
    }
    m_lower = std::min(m_lower, below);
    m_upper = std::max(m_upper, above);
}

} // namespace dblame::ui

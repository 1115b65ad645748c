// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/node_table_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <QFont>
#include <QHash>

#include "core/graph_query.h"
#include "ui/row_words.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

struct ColumnWords {
    const char *name;
    const char *what; // tool tip
};

const ColumnWords &columnWords(int column)
{
    static const ColumnWords words[NodeTableModel::ColumnCount] = {
        {"#", "Position in the reference's order"},
        {"Node", "Layer, or the value's name"},
        {"Module", "Module path of the operator"},
        {"Operator", "Operator of the reference"},
        {"Kind", "Activation, weight, input or output"},
        {"State", "What came of the row"},
        {"SNR dB", "Signal-to-noise ratio over all elements of all batches"},
        {"Drop dB", "SNR lost against the row before"},
        {"Flow drop dB", "SNR lost against the worst producer in the data flow"},
        {"Quantizer", "Spec of the row's site"},
        {"MSE", "Mean squared error"},
        {"max |e|", "Largest absolute error"},
        {"Cosine", "Cosine similarity"},
        {"Bias", "Mean error, candidate minus reference"},
        {"Ref min", "Smallest value of the reference"},
        {"Ref max", "Largest value of the reference"},
        {"Cand min", "Smallest value of the candidate"},
        {"Cand max", "Largest value of the candidate"},
        {"Shape", "Shape as computed"},
        {"Type", "Type of the reference value"},
        {"Paired by", "Rule that paired the two values"},
        {"ms", "Time of the two operators, last batch"},
        {"Δ run dB", "SNR against the run that is laid over"},
        {"Value", "Name of the value in the reference's file, as the command line reports it"},
    };
    return words[column];
}

bool isNumber(int column)
{
    switch (column) {
    case NodeTableModel::Name:
    case NodeTableModel::Module:
    case NodeTableModel::Operator:
    case NodeTableModel::Kind:
    case NodeTableModel::Status:
    case NodeTableModel::OwnSite:
    case NodeTableModel::Shape:
    case NodeTableModel::DTypeColumn:
    case NodeTableModel::Rung:
    case NodeTableModel::Value:
        return false;
    default:
        return true;
    }
}

// The metric of a number column; nothing where the row has no figures.
std::optional<double> metric(const NodeReport &report, int column)
{
    if (!hasDb(report) && report.status != RowStatus::Mismatch)
        return std::nullopt;
    const Metrics &m = report.metrics;
    switch (column) {
    case NodeTableModel::Mse:
        return m.mse;
    case NodeTableModel::MaxAbs:
        return m.maxAbs;
    case NodeTableModel::Cosine:
        return m.cosine;
    case NodeTableModel::Bias:
        return m.bias;
    case NodeTableModel::RefMin:
        return m.refMin;
    case NodeTableModel::RefMax:
        return m.refMax;
    case NodeTableModel::CandMin:
        return m.candMin;
    case NodeTableModel::CandMax:
        return m.candMax;
    case NodeTableModel::Time:
        return report.ms;
    default:
        return std::nullopt;
    }
}

} // namespace

NodeTableModel::NodeTableModel(QObject *parent) : QAbstractTableModel(parent) {}

void NodeTableModel::setPair(OpenPairPtr pair)
{
    beginResetModel();
    m_pair = std::move(pair);
    m_rows.clear();
    m_rows.resize(m_pair ? m_pair->alignment.pairs.size() : 0);
    for (std::size_t i = 0; i < m_rows.size(); ++i)
        m_rows[i].row = PairId(i);
    m_largestDrop.reset();
    m_largestFlowDrop.reset();
    m_baseline.reset();
    makeLabels();
    endResetModel();
    Q_EMIT dropsChanged();
}

void NodeTableModel::setSignal(Signal signal)
{
    if (signal == m_signal)
        return;
    m_signal = signal;
    Q_EMIT headerDataChanged(Qt::Horizontal, Snr, Snr);
    if (m_rows.empty())
        return;
    const int last = pairCount() - 1;
    Q_EMIT dataChanged(index(0, 0), index(last, ColumnCount - 1));
    Q_EMIT rowsChanged(0, last);
}

void NodeTableModel::update(const std::vector<NodeReport> &rows)
{
    std::vector<int> touched;
    touched.reserve(rows.size());
    for (const NodeReport &report : rows) {
        if (!report.row.valid() || report.row.get() >= m_rows.size())
            continue;
        m_rows[report.row.get()] = report;
        touched.push_back(report.row.index);
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (std::size_t i = 0; i < touched.size();) {
        std::size_t end = i + 1;
        while (end < touched.size() && touched[end] == touched[end - 1] + 1)
            ++end;
        const int first = touched[i];
        const int last = touched[end - 1];
        Q_EMIT dataChanged(index(first, 0), index(last, ColumnCount - 1));
        Q_EMIT rowsChanged(first, last);
        i = end;
    }
}

void NodeTableModel::setReport(const RunReport &report)
{
    m_largestDrop = report.largestDrop;
    m_largestFlowDrop = report.largestFlowDrop;
    update(report.rows);
    Q_EMIT dropsChanged();
}

void NodeTableModel::startRun()
{
    m_largestDrop.reset();
    m_largestFlowDrop.reset();
    Q_EMIT dropsChanged();
}

void NodeTableModel::setBaseline(std::shared_ptr<const RunReport> baseline)
{
    if (baseline == m_baseline)
        return;
    m_baseline = std::move(baseline);
    if (!m_rows.empty())
        Q_EMIT dataChanged(index(0, Delta), index(pairCount() - 1, Delta));
}

const Node *NodeTableModel::node(PairId row) const
{
    if (!m_pair || !m_pair->reference)
        return nullptr;
    const ValueId value = aligned(row).ref;
    return value.valid() ? m_pair->reference->graph().producer(value) : nullptr;
}

// A layer that gives one row carries its path ("block.relu@1" for its second call); several rows of one module add
// their operator, and where even that is not unique the value's own name stands.
void NodeTableModel::makeLabels()
{
    m_labels.assign(m_rows.size(), QString());
    std::vector<QString> layers(m_rows.size());
    QHash<QString, int> perLayer;
    QHash<QString, int> perOperator;
    const auto withOperator = [&](std::size_t i, const Node &n) {
        return layers[i] + QStringLiteral(" · ") + QString::fromStdString(n.opName());
    };
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        const Node *n = node(PairId(i));
        if (n == nullptr)
            continue;
        layers[i] = QString::fromStdString(moduleCallOf(m_pair->reference->graph(), *n));
        if (!layers[i].isEmpty()) {
            ++perLayer[layers[i]];
            ++perOperator[withOperator(i, *n)];
        }
    }
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        const PairId row(i);
        const ValueId value = aligned(row).ref;
        if (!m_pair->reference || !value.valid())
            continue;
        const Graph &graph = m_pair->reference->graph();
        QString &label = m_labels[i];
        label = QString::fromStdString(graph.value(value).name);
        const Node *n = node(row);
        if (n == nullptr) {
            const GraphInput *input = graph.input(value);
            if (input != nullptr && input->kind != InputKind::User && !input->target.empty())
                label = QString::fromStdString(input->target);
        } else if (!layers[i].isEmpty()) {
            if (perLayer[layers[i]] == 1)
                label = layers[i];
            else if (perOperator[withOperator(i, *n)] == 1)
                label = withOperator(i, *n);
        }
    }
}

QString NodeTableModel::label(PairId row) const
{
    return row.valid() && row.get() < m_labels.size() ? m_labels[row.get()] : QString();
}

double NodeTableModel::shownDb(PairId row) const
{
    if (!row.valid() || row.get() >= m_rows.size() || !hasDb(m_rows[row.get()]))
        return std::numeric_limits<double>::quiet_NaN();
    return dblame::shownDb(m_rows[row.get()], m_signal);
}

QString NodeTableModel::columnName(int column) const
{
    if (column == Snr && m_signal == Signal::Candidate)
        return QStringLiteral("SQNR dB");
    return QString::fromUtf8(columnWords(column).name);
}

QString NodeTableModel::siteText(PairId row) const
{
    const AlignedPair &pair = aligned(row);
    SiteId id = pair.site;
    if (!id.valid() && !pair.inputSites.empty())
        id = pair.inputSites.front();
    if (!id.valid())
        return {};
    for (const SiteReport &site : report(row).sites)
        if (site.site == id && !site.change.empty())
            return QString::fromStdString(site.change);
    const QuantSite &site = m_pair->sites.site(id);
    return site.watchesOnly ? QStringLiteral("watches only") : QString::fromStdString(site.spec.text());
}

std::optional<double> NodeTableModel::delta(PairId row) const
{
    if (!m_baseline || row.get() >= m_baseline->rows.size())
        return std::nullopt;
    const NodeReport &before = m_baseline->rows[row.get()];
    if (!hasDb(before) || !hasDb(report(row)))
        return std::nullopt;
    const double now = dblame::shownDb(report(row), m_signal);
    const double then = dblame::shownDb(before, m_signal);
    return now == then ? 0.0 : now - then; // inf - inf is no news
}

int NodeTableModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : pairCount();
}

int NodeTableModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant NodeTableModel::text(PairId row, int column) const
{
    const NodeReport &report = m_rows[row.get()];
    const AlignedPair &pair = aligned(row);
    const Node *n = node(row);
    switch (column) {
    case Index:
        return row.index + 1;
    case Name:
        return label(row);
    case Module:
        return n != nullptr ? QString::fromStdString(n->modulePath()) : QString();
    case Operator:
        return n != nullptr ? QString::fromStdString(n->opType()) : QString();
    case Kind:
        return QString::fromLatin1(rowKindName(pair.kind));
    case Status:
        return report.carriedOver ? stateWords(report) + QStringLiteral(", as before") : stateWords(report);
    case Snr:
        return snrText(report, m_signal);
    case Drop: {
        if (!report.dropDb)
            return QString();
        const bool largest = m_largestDrop && m_largestDrop->row == row;
        return largest ? QStringLiteral("largest ") + lossDecibels(*report.dropDb) : lossDecibels(*report.dropDb);
    }
    case FlowDrop: {
        if (!report.flowDropDb)
            return QString();
        const bool largest = m_largestFlowDrop && m_largestFlowDrop->row == row;
        return largest ? QStringLiteral("largest ") + lossDecibels(*report.flowDropDb)
                       : lossDecibels(*report.flowDropDb);
    }
    case OwnSite:
        return siteText(row);
    case Shape:
        return sizesText(report.shape);
    case DTypeColumn:
        return QString::fromStdString(report.dtype);
    case Rung:
        return QString::fromLatin1(rungName(pair.rung));
    case Value:
        return valueName(row);
    case Delta: {
        const auto change = delta(row);
        return change ? changeDecibels(*change) : QString();
    }
    default: {
        const auto value = metric(report, column);
        return value ? figure(*value) : QString();
    }
    }
}

QString NodeTableModel::valueName(PairId row) const
{
    const ValueId value = aligned(row).ref;
    return m_pair->reference && value.valid() ? QString::fromStdString(m_pair->reference->graph().value(value).name)
                                              : QString();
}

QString NodeTableModel::names(PairId row) const
{
    QStringList all{label(row), valueName(row)};
    if (const Node *n = node(row); n != nullptr)
        all << QString::fromStdString(n->name) << QString::fromStdString(n->modulePath())
            << QString::fromStdString(n->opType());
    return all.join(QLatin1Char(' '));
}

QVariant NodeTableModel::sortKey(PairId row, int column) const
{
    const NodeReport &report = m_rows[row.get()];
    std::optional<double> key;
    switch (column) {
    case Index:
        return row.index;
    case Snr:
        if (hasDb(report))
            key = dblame::shownDb(report, m_signal);
        break;
    case Drop:
        key = report.dropDb;
        break;
    case FlowDrop:
        key = report.flowDropDb;
        break;
    case Delta:
        key = delta(row);
        break;
    default:
        if (!isNumber(column))
            return text(row, column);
        key = metric(report, column);
    }
    return key ? QVariant(*key) : QVariant();
}

QVariant NodeTableModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= pairCount())
        return {};
    const PairId row(static_cast<std::size_t>(index.row()));
    const int column = index.column();
    switch (role) {
    case Qt::DisplayRole:
        return text(row, column);
    case SortRole:
        return sortKey(row, column);
    case PairRole:
        return row.index;
    case NamesRole:
        return names(row);
    case Qt::TextAlignmentRole:
        return QVariant((isNumber(column) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    case Qt::ToolTipRole:
        if (column == Status)
            return stateWords(m_rows[row.get()]);
        if (column == Rung)
            return QString::fromStdString(aligned(row).reason);
        return {};
    case Qt::FontRole:
        if (m_largestDrop && m_largestDrop->row == row && (column == Name || column == Drop)) {
            QFont font;
            font.setBold(true);
            return font;
        }
        return {};
    case Qt::ForegroundRole:
        if (m_largestDrop && m_largestDrop->row == row && column == Drop)
            return Theme::current().orange;
        if (column == Status && m_rows[row.get()].status >= RowStatus::ShapeMismatch)
            return Theme::current().orange;
        return {};
    default:
        return {};
    }
}

QVariant NodeTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount)
        return QAbstractTableModel::headerData(section, orientation, role);
    if (role == Qt::DisplayRole)
        return columnName(section);
    if (role == Qt::ToolTipRole)
        return QString::fromUtf8(columnWords(section).what);
    if (role == Qt::TextAlignmentRole)
        return QVariant((isNumber(section) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    return {};
}

} // namespace dblame::ui

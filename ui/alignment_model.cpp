// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/alignment_model.h"

#include "ui/node_table_model.h"
#include "ui/row_words.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

QString valueName(const std::shared_ptr<const Model> &model, ValueId value)
{
    return model && value.valid() ? QString::fromStdString(model->graph().value(value).name) : QString();
}

} // namespace

void AlignmentModel::setPair(OpenPairPtr pair)
{
    beginResetModel();
    m_pair = std::move(pair);
    endResetModel();
}

void AlignmentModel::setTable(NodeTableModel *table)
{
    m_table = table;
    connect(table, &NodeTableModel::rowsChanged, this, [this](int first, int last) {
        if (m_table->pair() == m_pair && last < pairs())
            Q_EMIT dataChanged(index(first, 0), index(last, ColumnCount - 1));
    });
}

// Shapes are known to differ from the run, or already from the files.
bool AlignmentModel::mismatched(int row) const
{
    return m_table != nullptr && m_table->pair() == m_pair && row < m_table->pairCount() &&
           m_table->report(PairId(static_cast<std::size_t>(row))).status == RowStatus::ShapeMismatch;
}

AlignmentModel::Group AlignmentModel::groupOf(int row) const
{
    if (row >= pairs())
        return Group::Unpaired;
    if (mismatched(row))
        return Group::Mismatched;
    return m_pair->alignment.pairs[static_cast<std::size_t>(row)].rung == Rung::ByHand ? Group::ByHand : Group::Paired;
}

int AlignmentModel::count(Group group) const
{
    if (!m_pair)
        return 0;
    if (group == Group::All)
        return rowCount();
    if (group == Group::Paired)
        return pairs();
    if (group == Group::Unpaired)
        return static_cast<int>(m_pair->alignment.unmatched.size());
    int count = 0;
    for (int row = 0; row < pairs(); ++row)
        count += groupOf(row) == group ? 1 : 0;
    return count;
}

QString AlignmentModel::referenceName(int row) const
{
    if (row < pairs())
        return valueName(m_pair->reference, m_pair->alignment.pairs[static_cast<std::size_t>(row)].ref);
    const Unmatched &alone = m_pair->alignment.unmatched[static_cast<std::size_t>(row - pairs())];
    return alone.side == Side::Reference ? QString::fromStdString(alone.name) : QString();
}

QString AlignmentModel::candidateName(int row) const
{
    if (row < pairs()) {
        // As the report says it: the value after the output site where there is one.
        const AlignedPair &pair = m_pair->alignment.pairs[static_cast<std::size_t>(row)];
        return valueName(m_pair->candidate, pair.candCompared.valid() ? pair.candCompared : pair.cand);
    }
    const Unmatched &alone = m_pair->alignment.unmatched[static_cast<std::size_t>(row - pairs())];
    return alone.side == Side::Candidate ? QString::fromStdString(alone.name) : QString();
}

int AlignmentModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() || !m_pair ? 0 : pairs() + static_cast<int>(m_pair->alignment.unmatched.size());
}

int AlignmentModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant AlignmentModel::text(int row, int column) const
{
    const bool paired = row < pairs();
    switch (column) {
    case State:
        switch (groupOf(row)) {
        case Group::Mismatched:
            return tr("shapes differ");
        case Group::ByHand:
            return tr("paired by hand");
        case Group::Unpaired:
            return referenceName(row).isEmpty() ? tr("candidate only") : tr("reference only");
        default:
            return tr("paired");
        }
    case Reference:
        return referenceName(row);
    case Candidate:
        return candidateName(row);
    case Rule:
        return paired ? QString::fromLatin1(rungName(m_pair->alignment.pairs[static_cast<std::size_t>(row)].rung))
                      : QString();
    case Reason: {
        if (!paired) {
            const Unmatched &alone = m_pair->alignment.unmatched[static_cast<std::size_t>(row - pairs())];
            const QString reason = QString::fromStdString(alone.reason);
            return alone.module.empty() ? reason : tr("%1 (in %2)").arg(reason, QString::fromStdString(alone.module));
        }
        const AlignedPair &pair = m_pair->alignment.pairs[static_cast<std::size_t>(row)];
        QString reason = QString::fromStdString(pair.reason);
        if (groupOf(row) == Group::Mismatched)
            reason = stateWords(m_table->report(PairId(static_cast<std::size_t>(row))));
        for (const std::string &norm : pair.folded)
            reason += tr("; %1 folded in").arg(QString::fromStdString(norm));
        return reason;
    }
    default:
        return {};
    }
}

QVariant AlignmentModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole:
        return text(index.row(), index.column());
    case GroupRole:
        return static_cast<int>(groupOf(index.row()));
    case PairRole:
        return index.row() < pairs() ? index.row() : -1;
    case Qt::ForegroundRole:
        if (index.column() == State) {
            const Group group = groupOf(index.row());
            return group == Group::Unpaired || group == Group::Mismatched ? Theme::current().orange
                                                                          : Theme::current().mute;
        }
        return {};
    default:
        return {};
    }
}

QVariant AlignmentModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return role == Qt::TextAlignmentRole ? QVariant(Qt::AlignLeft | Qt::AlignVCenter) : QVariant();
    switch (section) {
    case State:
        return tr("State");
    case Reference:
        return tr("Reference value");
    case Candidate:
        return tr("Candidate value");
    case Rule:
        return tr("Paired by");
    default:
        return tr("Reason");
    }
}

void AlignmentFilter::setGroup(AlignmentModel::Group group)
{
    m_group = group;
    invalidateFilter();
}

void AlignmentFilter::setWords(const QString &words)
{
    m_words = words.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    invalidateFilter();
}

bool AlignmentFilter::filterAcceptsRow(int row, const QModelIndex &) const
{
    const auto *model = qobject_cast<const AlignmentModel *>(sourceModel());
    const auto group = model->groupOf(row);
    if (m_group == AlignmentModel::Group::Paired) {
        if (group == AlignmentModel::Group::Unpaired)
            return false;
    } else if (m_group != AlignmentModel::Group::All && group != m_group) {
        return false;
    }
    return std::all_of(m_words.begin(), m_words.end(), [&](const QString &word) {
        for (int column = 0; column < AlignmentModel::ColumnCount; ++column)
            if (model->index(row, column).data().toString().contains(word, Qt::CaseInsensitive))
                return true;
        return false;
    });
}

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layers_model.h"

#include <cmath>

#include <QFont>

#include "ui/node_table_model.h"
#include "ui/row_words.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

// As shortSpec() of what the file has: a layer's line has little room.
QString shortSpec(const SpecChange &change)
{
    SpecChange brief = change;
    brief.symmetric.reset();
    brief.low.reset();
    brief.high.reset();
    QString text = QString::fromStdString(brief.text());
    text.replace(QStringLiteral(" per channel"), QStringLiteral(" per ch"));
    text.replace(QStringLiteral(" per block of"), QStringLiteral(" block"));
    text.remove(QStringLiteral(" per tensor"));
    return change.low || change.high ? text + QStringLiteral(" in range") : text;
}

} // namespace

LayersModel::LayersModel(QObject *parent) : QAbstractItemModel(parent) {}

void LayersModel::setPair(OpenPairPtr pair)
{
    beginResetModel();
    m_pair = std::move(pair);
    m_tree = m_pair ? buildLayerTree(*m_pair) : LayerTree();
    m_edits = {};
    m_ran = {};
    m_rowInParent.assign(m_tree.items.size(), 0);
    m_rowsBelow.assign(m_tree.items.size(), {});
    const auto number = [this](const std::vector<int> &siblings) {
        for (std::size_t i = 0; i < siblings.size(); ++i)
            m_rowInParent[static_cast<std::size_t>(siblings[i])] = static_cast<int>(i);
    };
    number(m_tree.roots);
    for (const LayerItem &item : m_tree.items) {
        number(item.children);
        for (int above = item.parent; item.row.valid() && above >= 0;
             above = m_tree.items[static_cast<std::size_t>(above)].parent)
            m_rowsBelow[static_cast<std::size_t>(above)].push_back(item.row);
    }
    endResetModel();
}

void LayersModel::setTable(NodeTableModel *table)
{
    m_table = table;
    connect(table, &NodeTableModel::rowsChanged, this, [this] { tellAll(); });
}

void LayersModel::setEdits(const EditSet &edits, const EditSet &ran)
{
    m_edits = edits;
    m_ran = ran;
    tellAll();
}

// The tree is small beside the graph; views ask only for the lines on screen.
void LayersModel::tellAll()
{
    const auto tell = [this](const std::vector<int> &siblings) {
        if (!siblings.empty())
            Q_EMIT dataChanged(indexOf(siblings.front()), indexOf(siblings.back(), Snr));
    };
    tell(m_tree.roots);
    for (const LayerItem &item : m_tree.items)
        tell(item.children);
}

const LayerItem *LayersModel::item(const QModelIndex &index) const
{
    return index.isValid() ? &m_tree.items[static_cast<std::size_t>(index.internalId())] : nullptr;
}

QModelIndex LayersModel::indexOf(int item, int column) const
{
    return item < 0 ? QModelIndex() : createIndex(rowInParent(item), column, static_cast<quintptr>(item));
}

QModelIndex LayersModel::indexOfPath(const QString &path) const
{
    for (std::size_t i = 0; i < m_tree.items.size(); ++i)
        if (m_tree.items[i].path == path && !m_tree.items[i].edge)
            return indexOf(static_cast<int>(i));
    return {};
}

QModelIndex LayersModel::index(int row, int column, const QModelIndex &parent) const
{
    if (column < 0 || column >= ColumnCount || row < 0)
        return {};
    const std::vector<int> &siblings = parent.isValid() ? item(parent)->children : m_tree.roots;
    return row < static_cast<int>(siblings.size()) ? indexOf(siblings[static_cast<std::size_t>(row)], column)
                                                   : QModelIndex();
}

QModelIndex LayersModel::parent(const QModelIndex &child) const
{
    return child.isValid() ? indexOf(item(child)->parent) : QModelIndex();
}

int LayersModel::rowCount(const QModelIndex &parent) const
{
    if (!parent.isValid())
        return static_cast<int>(m_tree.roots.size());
    return parent.column() == Name ? static_cast<int>(item(parent)->children.size()) : 0;
}

int LayersModel::columnCount(const QModelIndex &) const
{
    return ColumnCount;
}

bool LayersModel::pending(const LayerItem &item) const
{
    for (const SiteId site : item.whole.off) {
        if (m_edits.off.contains(site) != m_ran.off.contains(site))
            return true;
        const auto now = m_edits.respecified.find(site);
        const auto then = m_ran.respecified.find(site);
        if ((now == m_edits.respecified.end()) != (then == m_ran.respecified.end()) ||
            (now != m_edits.respecified.end() && !(now->second == then->second)))
            return true;
    }
    for (const EdgeBypass &edge : item.whole.bypassed)
        if (m_edits.bypassed.contains(edge) != m_ran.bypassed.contains(edge))
            return true;
    return false;
}

QString LayersModel::specText(const LayerItem &item) const
{
    const LayerState state = stateOf(item, m_edits);
    if (item.kind == LayerItem::Module)
        return state == LayerState::Off      ? tr("float here")
               : state == LayerState::Partly ? tr("partly float")
                                             : QString();
    if (state == LayerState::Off)
        return tr("float here");
    if (!item.site.valid())
        return state == LayerState::Partly ? tr("partly float")
               : state == LayerState::None ? tr("float")
                                           : tr("inputs");
    const QuantSite &site = m_pair->sites.site(item.site);
    if (const auto change = m_edits.respecified.find(item.site); change != m_edits.respecified.end())
        return item.kind == LayerItem::Site ? QString::fromStdString(change->second.text()) : shortSpec(change->second);
    if (site.watchesOnly)
        return tr("watches only");
    if (state == LayerState::Partly)
        return tr("partly float");
    if (item.kind == LayerItem::Site)
        return QString::fromStdString(site.spec.text());
    // The same quantizer earlier in the tree: this layer re-quantizes on its grid.
    if (site.role == SiteRole::Output && !site.instance.empty())
        for (std::size_t i = 0; i < item.site.get(); ++i)
            if (m_pair->sites.sites[i].instance == site.instance)
                return tr("shared");
    return ui::shortSpec(site.spec);
}

PairId LayersModel::worstRow(const LayerItem &item) const
{
    if (item.kind != LayerItem::Module)
        return item.row;
    PairId worst;
    for (const PairId row : m_rowsBelow[static_cast<std::size_t>(&item - m_tree.items.data())]) {
        const double db = m_table->shownDb(row);
        if (!std::isnan(db) && (!worst.valid() || db < m_table->shownDb(worst)))
            worst = row;
    }
    return worst;
}

QString LayersModel::snrText(const LayerItem &item) const
{
    if (m_table == nullptr || m_table->pair() != m_pair)
        return {};
    const PairId row = worstRow(item);
    return row.valid() && row.get() < static_cast<std::size_t>(m_table->pairCount())
               ? ui::snrText(m_table->report(row), m_table->signal())
               : QString();
}

QVariant LayersModel::data(const QModelIndex &index, int role) const
{
    const LayerItem *it = item(index);
    if (it == nullptr)
        return {};
    switch (role) {
    case Qt::DisplayRole:
        return index.column() == Name ? it->name : index.column() == Spec ? specText(*it) : snrText(*it);
    case Qt::CheckStateRole:
        if (index.column() != Name)
            return {};
        switch (stateOf(*it, m_edits)) {
        case LayerState::None:
            return {};
        case LayerState::On:
            return Qt::Checked;
        case LayerState::Off:
            return Qt::Unchecked;
        case LayerState::Partly:
            return Qt::PartiallyChecked;
        }
        return {};
    case Qt::ToolTipRole:
        return index.column() == Snr && it->kind == LayerItem::Module ? tr("The worst row in %1").arg(it->path)
                                                                      : it->path;
    case Qt::AccessibleTextRole:
        return index.column() == Name ? it->path : index.column() == Spec ? specText(*it) : snrText(*it);
    case Qt::TextAlignmentRole:
        return QVariant((index.column() == Snr ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    case Qt::FontRole:
        if (it->kind == LayerItem::Module && index.column() == Name) {
            QFont font;
            font.setWeight(QFont::DemiBold);
            return font;
        }
        return {};
    case Qt::ForegroundRole:
        // Orange says "look here": what a change made float, not what never was quantized.
        if (index.column() == Spec) {
            const LayerState state = stateOf(*it, m_edits);
            const bool changed = pending(*it) || state == LayerState::Off || state == LayerState::Partly;
            return changed ? Theme::current().orange : Theme::current().mute;
        }
        if (index.column() == Snr && it->kind == LayerItem::Module)
            return Theme::current().mute;
        return it->kind == LayerItem::Site ? QVariant(Theme::current().mute) : QVariant();
    default:
        return {};
    }
}

bool LayersModel::setData(const QModelIndex &index, const QVariant &, int role)
{
    const LayerItem *it = item(index);
    if (it == nullptr || role != Qt::CheckStateRole || stateOf(*it, m_edits) == LayerState::None)
        return false;
    const EditSet wanted = toggled(*it, m_edits);
    const bool off = stateOf(*it, wanted) == LayerState::Off;
    Q_EMIT editsWanted(wanted, off ? tr("skip %1").arg(it->path) : tr("quantize %1").arg(it->path));
    return true;
}

Qt::ItemFlags LayersModel::flags(const QModelIndex &index) const
{
    if (!index.isValid())
        return Qt::NoItemFlags;
    Qt::ItemFlags flags = Qt::ItemIsEnabled | Qt::ItemIsSelectable;
    if (index.column() == Name && stateOf(*item(index), m_edits) != LayerState::None)
        flags |= Qt::ItemIsUserCheckable;
    return flags;
}

QVariant LayersModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant((section == Snr ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole)
        return {};
    return section == Name ? tr("layer") : section == Spec ? tr("spec") : tr("SNR dB");
}

} // namespace dblame::ui

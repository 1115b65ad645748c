// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_scene.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ui/graph_tiles.h"
#include "ui/node_table_model.h"
#include "ui/row_words.h"

namespace dblame::ui
{

namespace
{

double quietNan()
{
    return std::numeric_limits<double>::quiet_NaN();
}

// What a set of edits makes of a site. A site that is off as a whole and one that is bypassed for each of its readers
// are the same to everyone.
struct SiteUse {
    std::size_t floatReaders = 0, readers = 1;
    std::set<NodeId> bypassed;
    std::optional<SpecChange> spec;
    [[nodiscard]] bool off() const { return floatReaders >= readers; }
    friend bool operator==(const SiteUse &a, const SiteUse &b)
    {
        return a.off() == b.off() && (a.off() || (a.bypassed == b.bypassed && a.spec == b.spec));
    }
};

SiteUse useOf(const EditSet &edits, SiteId id, const QuantSite &site)
{
    SiteUse use;
    use.readers = std::max<std::size_t>(1, site.readers.size());
    if (edits.off.contains(id)) {
        use.floatReaders = use.readers;
        return use;
    }
    for (auto it = edits.bypassed.lower_bound({id, NodeId()}); it != edits.bypassed.end() && it->site == id; ++it)
        use.bypassed.insert(it->reader);
    use.floatReaders = use.bypassed.size();
    if (const auto change = edits.respecified.find(id); change != edits.respecified.end())
        use.spec = change->second;
    return use;
}

} // namespace

GraphScene::GraphScene(QObject *parent) : QGraphicsScene(parent)
{
    setItemIndexMethod(QGraphicsScene::BspTreeIndex);
}

GraphScene::~GraphScene() = default;

void GraphScene::setTable(NodeTableModel *table)
{
    m_table = table;
    refreshAll();
}

void GraphScene::refreshRows(int first, int last)
{
    if (!m_layout.document)
        return;
    m_worst.clear();
    if (growRange(first, last)) {
        Q_EMIT rangeChanged();
        refreshLooks();
        return;
    }
    const auto &nodeOfRow = m_layout.document->nodeOfRow;
    std::set<std::int32_t> items;
    for (int row = std::max(first, 0); row <= last && row < static_cast<int>(nodeOfRow.size()); ++row)
        if (nodeOfRow[row] >= 0)
            items.insert(m_layout.itemOfNode[nodeOfRow[row]]);
    for (std::int32_t item : items)
        updateItem(item);
    if (!items.empty())
        Q_EMIT looksChanged();
}

void GraphScene::updateItem(std::int32_t item)
{
    m_looks[item] = lookOf(item);
    QRectF dirty = m_layout.items[item].rect.adjusted(-4, -4, 6, 6);
    for (std::int32_t m : m_marks[item])
        dirty |= markRect(m).adjusted(-5, -5, 14, 8);
    update(dirty);
}

void GraphScene::refreshAll()
{
    updateRange();
    refreshLooks();
    Q_EMIT marksChanged();
}

void GraphScene::refreshLooks()
{
    m_worst.clear();
    for (std::size_t i = 0; i < m_layout.items.size(); ++i)
        m_looks[i] = lookOf(static_cast<std::int32_t>(i));
    updateDrop();
    updateLit();
    update();
    Q_EMIT looksChanged();
}

// Whole decibels: the legend stands still while a run goes on.
bool GraphScene::extend(GraphRange &range, double db)
{
    if (!std::isfinite(db) || (range.valid() && db >= range.low && db <= range.high))
        return false;
    range.low = range.valid() ? std::min(range.low, std::floor(db)) : std::floor(db);
    range.high = std::isnan(range.high) ? std::ceil(db) : std::max(range.high, std::ceil(db));
    return true;
}

bool GraphScene::growRange(int first, int last)
{
    bool grown = false;
    for (int row = std::max(first, 0); m_table != nullptr && row <= last && row < m_table->pairCount(); ++row) {
        const PairId id(static_cast<std::size_t>(row));
        // Parameters are far better than any activation: they would flatten the ramp.
        if (isActivation(m_table->aligned(id).kind))
            grown = extend(m_range, m_table->shownDb(id)) || grown;
    }
    return grown;
}

void GraphScene::updateRange()
{
    const GraphRange before = m_range;
    m_range = {};
    if (m_table != nullptr && m_layout.document)
        growRange(0, m_table->pairCount() - 1);
    if (!(m_range == before))
        Q_EMIT rangeChanged();
}

void GraphScene::updateDrop()
{
    m_dropItem = -1;
    m_dropText.clear();
    if (m_table == nullptr || !m_table->largestDrop() || !m_layout.document)
        return;
    m_dropItem = itemOfRow(m_table->largestDrop()->row);
    m_dropText = QStringLiteral("largest drop %1 dB").arg(lossDecibels(m_table->largestDrop()->db));
}

GraphNodeLook GraphScene::lookOf(std::int32_t item) const
{
    if (m_layout.items[item].node < 0)
        return lookOfGroup(item);
    const GraphNode &node = m_layout.document->nodes[m_layout.items[item].node];
    GraphNodeLook look;
    look.name = node.label;
    look.op = node.op;
    look.unpaired = node.unpaired;
    if (node.kind == GraphNode::Kind::Site) {
        look.shape = GraphNodeLook::Shape::Site;
        look.observer = node.observer;
        return look;
    }
    if (node.unpaired) {
        look.state = node.side == Side::Candidate ? QStringLiteral("only in candidate") : QStringLiteral("no partner");
        return look;
    }
    if (!node.row.valid() || m_table == nullptr || static_cast<int>(node.row.get()) >= m_table->pairCount())
        return look;
    const NodeReport &report = m_table->report(node.row);
    // Inputs are the same on both sides; to say so of each would be noise.
    const bool plainInput = node.kind != GraphNode::Kind::Operator && report.status == RowStatus::Exact;
    if (report.status == RowStatus::Pending || plainInput)
        return look;
    look.state = snrText(report, m_table->signal());
    look.db = m_table->shownDb(node.row);
    look.coloured = hasDb(report) && !std::isnan(look.db);
    look.trouble = report.status == RowStatus::Failed || report.status == RowStatus::ShapeMismatch ||
                   report.status == RowStatus::Mismatch || report.metrics.nan > 0;
    return look;
}

GraphNodeLook GraphScene::lookOfGroup(std::int32_t item) const
{
    const GraphGroup &group = m_layout.document->groups[m_layout.items[item].group];
    GraphNodeLook look;
    look.shape = GraphNodeLook::Shape::Group;
    look.name = QStringLiteral("▸ ") + group.path;
    look.op = QStringLiteral("%1 nodes").arg(m_members[item].size());
    const PairId worst = rowOfItem(item);
    if (!worst.valid() || m_table == nullptr)
        return look;
    look.db = m_table->shownDb(worst);
    look.coloured = !std::isnan(look.db);
    if (look.coloured)
        look.state = QStringLiteral("worst ") + decibels(look.db);
    return look;
}

PairId GraphScene::rowOfItem(std::int32_t item) const
{
    if (item < 0)
        return {};
    if (m_layout.items[item].node >= 0)
        return m_layout.document->nodes[m_layout.items[item].node].row;
    PairId worst;
    double lowest = quietNan();
    for (std::int32_t n : m_members[item]) {
        const PairId row = m_layout.document->nodes[n].row;
        if (!row.valid())
            continue;
        const double db = m_table != nullptr ? m_table->shownDb(row) : quietNan();
        if (!worst.valid() || (!std::isnan(db) && !(db >= lowest))) {
            worst = row;
            lowest = db;
        }
    }
    return worst;
}

double GraphScene::worstOfGroup(std::int32_t group) const
{
    const GraphDocument &document = *m_layout.document;
    if (m_worst.empty()) {
        m_worst.assign(document.groups.size(), quietNan());
        for (const GraphNode &node : document.nodes) {
            const double db = m_table != nullptr && node.row.valid() ? m_table->shownDb(node.row) : quietNan();
            if (std::isnan(db))
                continue;
            for (std::int32_t g = node.group; g >= 0; g = document.groups[g].parent)
                if (!(m_worst[g] <= db))
                    m_worst[g] = db;
        }
    }
    return m_worst[group];
}

void GraphScene::setPending(const EditSet &edits, const EditSet &ran)
{
    m_edits = edits;
    m_ran = ran;
    m_anyPending = false;
    for (std::size_t m = 0; m < m_layout.marks.size(); ++m)
        m_anyPending = m_anyPending || markLook(static_cast<std::int32_t>(m)).pending;
    update();
    Q_EMIT marksChanged();
}

GraphMarkLook GraphScene::markLook(std::int32_t index) const
{
    const GraphMark &mark = m_layout.document->marks[m_layout.marks[index].mark];
    GraphMarkLook look;
    look.letter = mark.letter();
    look.watches = mark.watchesOnly;
    look.instance = mark.instance;
    const QuantSite &site = m_layout.document->pair->sites.site(mark.site);
    const SiteUse now = useOf(m_edits, mark.site, site), then = useOf(m_ran, mark.site, site);
    if (now.off() || !mark.enabled)
        look.state = GraphMarkLook::State::Off;
    else if (now.floatReaders > 0)
        look.state = GraphMarkLook::State::Partly;
    look.pending = mark.enabled && !(now == then);
    return look;
}

void GraphScene::setCurrent(std::int32_t item, std::int32_t mark)
{
    if (item == m_item && mark == m_mark)
        return;
    const std::int32_t before = m_item;
    m_item = item;
    m_mark = mark;
    if (m_neighbourhood) {
        updateLit();
        update();
        return;
    }
    for (std::int32_t i : {before, item}) {
        if (i < 0)
            continue;
        updateItem(i);
        // The lines that are drawn stronger.
        for (const GraphLine &line : m_layout.lines)
            if (line.from == i || line.to == i)
                update(linePath(line.points, m_layout.downwards).controlPointRect().adjusted(-8, -8, 8, 8));
    }
}

void GraphScene::setNeighbourhood(bool on)
{
    m_neighbourhood = on;
    updateLit();
    update();
}

void GraphScene::updateLit()
{
    m_dim = m_neighbourhood && m_item >= 0;
    if (!m_dim)
        return;
    m_lit.assign(m_layout.items.size(), 0);
    m_lit[m_item] = 1;
    for (const auto *list : {&m_out[m_item], &m_in[m_item]})
        for (std::int32_t other : *list)
            m_lit[other] = 1;
}

void GraphScene::setMatches(const std::vector<std::int32_t> &items)
{
    m_matched.clear();
    if (!items.empty())
        m_matched.assign(m_layout.items.size(), 0);
    for (std::int32_t item : items)
        m_matched[item] = 1;
    update();
}

} // namespace dblame::ui

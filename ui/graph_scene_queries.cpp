// SPDX-License-Identifier: GPL-3.0-or-later
//
// GraphScene: what is where, what comes next, and how it is put into words.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/graph_scene.h"
#include "ui/graph_tiles.h"
#include "ui/node_table_model.h"
#include "ui/row_words.h"

namespace dblame::ui
{

QRectF GraphScene::markRect(std::int32_t mark) const
{
    const QPointF c = m_layout.marks[mark].centre;
    return {c.x() - kHexWidth, c.y() - kHexHeight, 2 * kHexWidth, 2 * kHexHeight};
}

std::vector<std::int32_t> GraphScene::marksOfItem(std::int32_t item) const
{
    return m_marks[item];
}

GraphHit GraphScene::hitTest(const QPointF &at) const
{
    for (QGraphicsItem *graphicsItem : items(at, Qt::IntersectsItemBoundingRect)) {
        const auto *tile = static_cast<GraphTile *>(graphicsItem);
        if (tile->layer() != GraphTile::Layer::Nodes)
            continue;
        for (std::int32_t item : tile->members()) {
            for (std::int32_t mark : m_marks[item])
                if (markRect(mark).contains(at))
                    return {GraphHit::What::Mark, mark};
            if (m_layout.items[item].rect.contains(at))
                return {GraphHit::What::Item, item};
        }
    }
    GraphHit hit;
    for (const GraphOutline &outline : m_layout.outlines) // inner after outer
        if (outline.rect.contains(at))
            hit = {GraphHit::What::Outline, outline.group};
    return hit;
}

std::int32_t GraphScene::itemOfRow(PairId row) const
{
    if (!row.valid() || !m_layout.document || row.get() >= m_layout.document->nodeOfRow.size())
        return -1;
    const std::int32_t node = m_layout.document->nodeOfRow[row.get()];
    return node < 0 ? -1 : m_layout.itemOfNode[node];
}

std::int32_t GraphScene::markOfRow(PairId row) const
{
    if (!row.valid() || !m_layout.document || row.get() >= m_layout.document->pair->alignment.pairs.size())
        return -1;
    const AlignedPair &pair = m_layout.document->pair->alignment.pairs[row.get()];
    if (pair.kind != RowKind::Weight || !pair.site.valid())
        return -1;
    const std::int32_t mark = m_layout.document->markOfSite[pair.site.get()];
    return mark < 0 ? -1 : m_placedMark[mark];
}

std::int32_t GraphScene::next(std::int32_t item, Qt::Key key, bool far) const
{
    if (m_layout.items.empty())
        return -1;
    if (item < 0)
        return 0;
    const Qt::Key forward = m_layout.downwards ? Qt::Key_Down : Qt::Key_Right;
    const Qt::Key back = m_layout.downwards ? Qt::Key_Up : Qt::Key_Left;
    if (key == forward || key == back) {
        // Items are in execution order: a skip connection leads further than the main path.
        const auto &list = key == forward ? m_out[item] : m_in[item];
        if (list.empty())
            return -1;
        const auto [low, high] = std::minmax_element(list.begin(), list.end());
        return (key == forward) == far ? *high : *low;
    }
    // Across the flow: the nearest box on that side.
    std::int32_t best = -1;
    double least = std::numeric_limits<double>::infinity();
    const QPointF from = m_layout.items[item].rect.center();
    const bool vertical = key == Qt::Key_Up || key == Qt::Key_Down;
    const double sign = key == Qt::Key_Up || key == Qt::Key_Left ? -1 : 1;
    for (std::size_t i = 0; i < m_layout.items.size(); ++i) {
        const QPointF d = m_layout.items[i].rect.center() - from;
        const double along = sign * (vertical ? d.y() : d.x()), across = std::abs(vertical ? d.x() : d.y());
        if (along < 4 || along + 2 * across >= least)
            continue;
        least = along + 2 * across;
        best = static_cast<std::int32_t>(i);
    }
    return best;
}

QString GraphScene::describeItem(std::int32_t item) const
{
    if (item < 0)
        return {};
    const GraphNodeLook &look = m_looks[item];
    if (look.shape == GraphNodeLook::Shape::Group) {
        const GraphGroup &group = m_layout.document->groups[m_layout.items[item].group];
        QString text = QStringLiteral("Group %1, %2, collapsed").arg(group.path, look.op);
        if (!look.state.isEmpty())
            text += QStringLiteral(", %1 dB").arg(look.state);
        return text;
    }
    const GraphNode &node = m_layout.document->nodes[m_layout.items[item].node];
    QStringList parts{node.label, node.op};
    if (node.row.valid() && m_table != nullptr && static_cast<int>(node.row.get()) < m_table->pairCount()) {
        const NodeReport &report = m_table->report(node.row);
        parts << (report.status == RowStatus::Ok ? look.state + QStringLiteral(" dB") : stateWords(report));
    } else if (node.unpaired) {
        parts << look.state;
    }
    if (!node.why.isEmpty())
        parts << node.why;
    if (item == m_dropItem)
        parts << m_dropText;
    for (std::int32_t mark : m_marks[item])
        parts << describeMark(mark);
    return parts.join(QStringLiteral(", "));
}

QString GraphScene::describeMark(std::int32_t index) const
{
    if (index < 0)
        return {};
    const GraphMark &mark = m_layout.document->marks[m_layout.marks[index].mark];
    const GraphMarkLook look = markLook(index);
    QString text = mark.watchesOnly ? QStringLiteral("observer ")
                   : mark.weight    ? QStringLiteral("weight quantizer ")
                                    : QStringLiteral("quantizer ");
    text += mark.name;
    if (!mark.spec.isEmpty() && !mark.watchesOnly)
        text += QStringLiteral(": ") + mark.spec;
    if (look.state == GraphMarkLook::State::Off)
        text += look.pending ? QStringLiteral(", to be skipped") : QStringLiteral(", skipped");
    else if (look.state == GraphMarkLook::State::Partly)
        text += look.pending ? QStringLiteral(", to be skipped for some of its readers")
                             : QStringLiteral(", skipped for some of its readers");
    else if (look.pending)
        text += m_edits.respecified.contains(mark.site) ? QStringLiteral(", to be quantized otherwise")
                                                        : QStringLiteral(", to be switched on");
    if (look.instance > 0)
        text += QStringLiteral(", shared instance %1").arg(look.instance);
    return text;
}

} // namespace dblame::ui

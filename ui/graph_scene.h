// SPDX-License-Identifier: GPL-3.0-or-later
//
// The laid-out graph as a scene. Few items: tiles of about a screen's size that paint all nodes (or edges, or
// outlines) in them, so that twenty thousand nodes are a few hundred items. What a node shows is kept in plain
// arrays here; a changed row repaints its node's rectangle and nothing else.
#pragma once

#include <set>
#include <vector>

#include <QGraphicsScene>
#include <QPersistentModelIndex>
#include <QPointer>

#include "core/edits.h"
#include "ui/graph_layout.h"
#include "ui/graph_paint.h"

namespace dblame::ui
{

class NodeTableModel;
class GraphTile;

struct GraphHit {
    enum class What { Nothing, Item, Mark, Outline };
    What what = What::Nothing;
    std::int32_t index = -1; // item; placed mark; document group of an outline
};

class GraphScene : public QGraphicsScene
{
    Q_OBJECT
public:
    explicit GraphScene(QObject *parent = nullptr);
    ~GraphScene() override;

    void setLayout(GraphLayoutResult layout);
    [[nodiscard]] const GraphLayoutResult &layout() const { return m_layout; }
    [[nodiscard]] bool empty() const { return m_layout.items.empty(); }

    // Figures; null: nothing was run. The model must outlive the scene or be taken back.
    void setTable(NodeTableModel *table);
    void refreshRows(int first, int last); // rows of the table that changed
    void refreshAll();                     // range, drops, colours
    // `ran`: the edits of the run that is shown. What the next run will do otherwise is pending.
    void setPending(const EditSet &edits, const EditSet &ran);
    [[nodiscard]] bool hasPending() const { return m_anyPending; }

    // The current item and, beside it, the current mark (into layout().marks); -1: none.
    void setCurrent(std::int32_t item, std::int32_t mark = -1);
    [[nodiscard]] std::int32_t currentItem() const { return m_item; }
    [[nodiscard]] std::int32_t currentMark() const { return m_mark; }
    // Everything but the current item and what it is joined to is dimmed.
    void setNeighbourhood(bool on);
    [[nodiscard]] bool neighbourhood() const { return m_neighbourhood; }
    void setMatches(const std::vector<std::int32_t> &items);

    [[nodiscard]] GraphHit hitTest(const QPointF &at) const;
    [[nodiscard]] std::int32_t itemOfRow(PairId row) const;  // -1 when it is not drawn
    [[nodiscard]] std::int32_t markOfRow(PairId row) const;  // weights: their hexagon, if it is to be seen
    [[nodiscard]] PairId rowOfItem(std::int32_t item) const; // a collapsed group: its worst row
    [[nodiscard]] std::vector<std::int32_t> marksOfItem(std::int32_t item) const;
    // The next item when moving by an arrow key; -1 when there is none that way. Along the flow: the joined item
    // that is nearest in execution order, or, when `far`, the farthest.
    [[nodiscard]] std::int32_t next(std::int32_t item, Qt::Key key, bool far = false) const;

    // What assistive technology and tool tips say.
    [[nodiscard]] QString describeItem(std::int32_t item) const;
    [[nodiscard]] QString describeMark(std::int32_t mark) const;
    [[nodiscard]] QRectF markRect(std::int32_t mark) const;

    [[nodiscard]] const GraphRange &range() const { return m_range; }
    [[nodiscard]] const GraphNodeLook &look(std::int32_t item) const { return m_looks[item]; }
    [[nodiscard]] GraphMarkLook markLook(std::int32_t mark) const;
    [[nodiscard]] bool dimmed(std::int32_t item) const { return m_dim && !m_lit[item]; }
    [[nodiscard]] bool dimming() const { return m_dim; }
    [[nodiscard]] bool matched(std::int32_t item) const { return !m_matched.empty() && m_matched[item]; }
    [[nodiscard]] std::int32_t largestDropItem() const { return m_dropItem; }
    [[nodiscard]] const QString &largestDropText() const { return m_dropText; }
    // Lowest dB among the members, NaN when none has one; per document group.
    [[nodiscard]] double worstOfGroup(std::int32_t group) const;

Q_SIGNALS:
    void rangeChanged();
    void looksChanged(); // of some nodes or all
    void marksChanged(); // what hexagons look like
    void layoutChanged();

private:
    void makeTiles();
    void refreshLooks();
    void findNeighbours();
    [[nodiscard]] GraphNodeLook lookOf(std::int32_t item) const;
    [[nodiscard]] GraphNodeLook lookOfGroup(std::int32_t item) const;
    void updateRange();
    // True when the rows lie outside the range, which has then grown.
    bool growRange(int first, int last);
    [[nodiscard]] static bool extend(GraphRange &range, double db);
    void updateDrop();
    void updateLit();
    void updateItem(std::int32_t item);

    GraphLayoutResult m_layout;
    QPointer<NodeTableModel> m_table;
    std::vector<GraphNodeLook> m_looks;                 // per item
    std::vector<std::vector<std::int32_t>> m_members;   // per item: nodes of a collapsed group
    std::vector<std::vector<std::int32_t>> m_out, m_in; // per item: joined items
    std::vector<std::vector<std::int32_t>> m_marks;     // per item: placed marks
    std::vector<std::int32_t> m_placedMark;             // document mark -> placed mark, -1
    std::vector<GraphTile *> m_tiles;                   // owned by the scene
    EditSet m_edits, m_ran;
    bool m_anyPending = false;
    std::vector<char> m_lit, m_matched;
    mutable std::vector<double> m_worst; // per group; empty: to be made
    GraphRange m_range;
    QString m_dropText;
    std::int32_t m_item = -1, m_mark = -1, m_dropItem = -1;
    bool m_neighbourhood = false, m_dim = false;
};

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The items of GraphScene: each paints all outlines, lines or nodes of one square of the scene.
#pragma once

#include <vector>

#include <QGraphicsItem>
#include <QLineF>
#include <QPainterPath>

#include "ui/graph_layout.h"

namespace dblame::ui
{

class GraphScene;

class GraphTile : public QGraphicsItem
{
public:
    enum class Layer { Outlines, Lines, LitLines, Nodes, Above };
    GraphTile(const GraphScene &scene, Layer layer);

    void addOutline(std::int32_t outline, const QRectF &rect);
    // One piece of a line, from one of its points to the next bend or curve.
    void addPiece(const QPainterPath &piece);
    void addItem(std::int32_t item, const QRectF &rect); // with its marks and their surroundings
    void cover(const QRectF &rect) { m_bounds |= rect; }

    [[nodiscard]] Layer layer() const { return m_layer; }
    [[nodiscard]] const std::vector<std::int32_t> &members() const { return m_members; }
    [[nodiscard]] QRectF boundingRect() const override { return m_bounds; }
    void paint(QPainter *painter, const QStyleOptionGraphicsItem *option, QWidget *widget) override;

private:
    void paintOutlines(QPainter &painter, double scale, const QRectF &exposed);
    void paintLines(QPainter &painter, double scale, const QRectF &exposed);
    void paintNodes(QPainter &painter, double scale, const QRectF &exposed);
    void paintLitLines(QPainter &painter, double scale);
    void paintDrop(QPainter &painter, double scale);

    const GraphScene &m_scene;
    Layer m_layer;
    QRectF m_bounds;
    std::vector<std::int32_t> m_members; // outlines or items
    std::vector<QRectF> m_rects;         // of the members or pieces
    std::vector<QPainterPath> m_pieces;  // of lines
    QList<QLineF> m_straight;            // the same without curves, for small scales
};

} // namespace dblame::ui

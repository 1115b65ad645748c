// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/snr_chart_layers.h"

#include <array>
#include <cmath>
#include <limits>

#include <QPainterPath>

#include "ui/panel_text.h"

namespace dblame::ui
{
namespace
{

constexpr int kLeftMargin = 48, kRightMargin = 20, kTopMargin = 22, kNumberMargin = 24;
constexpr int kNameCharacters = 18;
constexpr int kAngle = -40;         // degrees: names rise to the tick
constexpr double kNameSpacing = 19; // pixels between rotated names that still read as separate lines
constexpr int kMostSkipped = 8;     // beyond every 8th name, row numbers say more
constexpr int kLeastHeightForNames = 170;
constexpr std::size_t kNamesToMeasure = 400;
constexpr int kCircle = 18;
constexpr int kMostPointsUnderWords = 400;

QPen penOf(const QColor &color, double width, Qt::PenStyle style = Qt::SolidLine)
{
    QPen pen(color, width, style);
    pen.setCapStyle(Qt::RoundCap);
    pen.setJoinStyle(Qt::RoundJoin);
    return pen;
}

double pixelsPerPoint(const QCustomPlot &plot)
{
    // Not coordToPixel: this is asked before the layout of a resized plot.
    return std::max(plot.width() - kLeftMargin - kRightMargin, 1) / plot.xAxis->range().size();
}

} // namespace

SnrChart::Layers::Layers(QCustomPlot &plot) : names(new NameTicker), decibels(new QCPAxisTickerFixed)
{
    plot.axisRect()->setAutoMargins(QCP::msNone);
    plot.axisRect()->setMinimumSize(10, 10);
    plot.xAxis->setTicker(names);
    plot.xAxis->grid()->setVisible(false);
    plot.yAxis->setTicker(decibels);
    plot.yAxis2->setRange(0, 1);
    overlay = plot.addGraph();
    overlay->setName(QStringLiteral("earlier run"));
    line = plot.addGraph();
    line->setName(QStringLiteral("SNR"));
    exact = addEdgeGraph(plot, QStringLiteral("exact"));
    silent = addEdgeGraph(plot, QStringLiteral("minus infinity"));
    bad = addEdgeGraph(plot, QStringLiteral("no figure"));
    selection = new QCPItemStraightLine(&plot);
    selectionText = addText(plot);
    selectionText->setText(QStringLiteral("selected"));
    selectionText->position->setTypeX(QCPItemPosition::ptPlotCoords);
    selectionText->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
    legend = addText(plot);
    legend->position->setType(QCPItemPosition::ptAbsolute);
    legend->setPositionAlignment(Qt::AlignRight | Qt::AlignTop);
    message = addText(plot);
    message->position->setType(QCPItemPosition::ptAxisRectRatio);
    message->position->setCoords(0.5, 0.45);
    message->setPositionAlignment(Qt::AlignCenter);
    message->setTextAlignment(Qt::AlignCenter);
    message->setVisible(false);
    legend->setVisible(false);
    showSelection(plot, -1);
}

QCPGraph *SnrChart::Layers::addEdgeGraph(QCustomPlot &plot, const QString &name)
{
    QCPGraph *graph = plot.addGraph(plot.xAxis, plot.yAxis2);
    graph->setName(name);
    graph->setLineStyle(QCPGraph::lsNone);
    return graph;
}

QCPItemText *SnrChart::Layers::addText(QCustomPlot &plot)
{
    auto *text = new QCPItemText(&plot);
    text->setClipToAxisRect(false);
    text->setPadding(QMargins(5, 0, 5, 0));
    return text;
}

void SnrChart::Layers::restyle(QCustomPlot &plot, const Theme &theme)
{
    plot.setBackground(theme.panel);
    plot.setProperty("exportBackground", theme.panel);
    for (QCPAxis *axis : {plot.xAxis, plot.yAxis}) {
        axis->setBasePen(Qt::NoPen);
        axis->setTickPen(Qt::NoPen);
        axis->setSubTickPen(Qt::NoPen);
        axis->setTickLabelColor(theme.mute);
        axis->setTickLabelFont(Theme::labelFont());
        axis->setTickLabelPadding(8);
    }
    plot.yAxis->grid()->setPen(penOf(theme.grid, 1));
    plot.yAxis->grid()->setZeroLinePen(Qt::NoPen);
    line->setPen(penOf(theme.blue, 2));
    overlay->setPen(penOf(theme.mute, 1.4, Qt::DotLine));
    const auto mark = [](QCPScatterStyle::ScatterShape shape, const QColor &color, bool filled) {
        return QCPScatterStyle(shape, penOf(color, 1.6), filled ? QBrush(color) : QBrush(Qt::NoBrush), 9);
    };
    exact->setScatterStyle(mark(QCPScatterStyle::ssTriangle, theme.blue, true));
    silent->setScatterStyle(mark(QCPScatterStyle::ssTriangleInverted, theme.orange, true));
    bad->setScatterStyle(mark(QCPScatterStyle::ssCross, theme.orange, false));
    selection->setPen(penOf(theme.orange, 1.2, Qt::DashLine));
    selectionText->setColor(theme.orange);
    selectionText->setFont(Theme::labelFont());
    legend->setColor(theme.mute);
    legend->setFont(Theme::labelFont());
    message->setColor(theme.mute);
    message->setFont(Theme::bodyFont());
    QColor wash = theme.blue;
    wash.setAlpha(40);
    plot.selectionRect()->setPen(penOf(theme.blue, 1));
    plot.selectionRect()->setBrush(wash);
    longestName = -1;
}

QString SnrChart::Layers::shortName(const QString &name)
{
    return elideLeft(name, kNameCharacters);
}

void SnrChart::Layers::clearMarks()
{
    for (const Mark &mark : marks) {
        mark.words->parentPlot()->removeItem(mark.words);
        mark.circle->parentPlot()->removeItem(mark.circle);
    }
    marks.clear();
}

void SnrChart::Layers::addMark(QCustomPlot &plot, double x, double db, const QString &text, bool second, bool below)
{
    const QColor orange = Theme::current().orange;
    QColor color = orange;
    if (second)
        color.setAlphaF(0.65F);
    auto *circle = new QCPItemTracer(&plot);
    circle->setStyle(QCPItemTracer::tsCircle);
    circle->setSize(kCircle);
    circle->setPen(penOf(color, second ? 1.2 : 2.2, second ? Qt::DashLine : Qt::SolidLine));
    circle->setBrush(Qt::NoBrush);
    circle->position->setCoords(x, db);

    QCPItemText *words = addText(plot);
    QFont font = Theme::labelFont();
    font.setWeight(second ? QFont::Normal : QFont::DemiBold);
    words->setFont(font);
    words->setColor(orange);
    QColor ground = Theme::current().panel; // keeps the words readable where the line is dense
    ground.setAlphaF(0.75F);
    words->setBrush(ground);
    words->setText(text);
    words->position->setParentAnchor(circle->position);
    words->position->setType(QCPItemPosition::ptAbsolute);
    marks.push_back({circle, words, below});
}

void SnrChart::Layers::showSelection(QCustomPlot &plot, int x)
{
    selection->setVisible(x >= 0);
    selectionText->setVisible(x >= 0);
    selection->point1->setCoords(x, 0);
    selection->point2->setCoords(x, 1);
    selectionText->position->setCoords(x, 0);
    arrangeSelection(plot);
}

void SnrChart::Layers::setBands(QCustomPlot &plot, const std::vector<ModuleBand> &wanted)
{
    for (QCPItemRect *rect : bandRects)
        plot.removeItem(rect);
    for (QCPItemText *text : bandTexts)
        plot.removeItem(text);
    bandRects.clear();
    bandTexts.clear();
    bands = wanted;
    const Theme &theme = Theme::current();
    for (std::size_t i = 0; i < bands.size(); ++i) {
        auto *rect = new QCPItemRect(&plot);
        rect->setLayer(QStringLiteral("background"));
        rect->setPen(Qt::NoPen);
        rect->setBrush(i % 2 == 0 ? theme.base : theme.panel);
        for (QCPItemPosition *corner : {rect->topLeft, rect->bottomRight}) {
            corner->setTypeX(QCPItemPosition::ptPlotCoords);
            corner->setTypeY(QCPItemPosition::ptAxisRectRatio);
        }
        rect->topLeft->setCoords(bands[i].first - 0.5, 0);
        rect->bottomRight->setCoords(bands[i].last + 0.5, 1);
        bandRects.push_back(rect);
        QCPItemText *text = addText(plot);
        text->setFont(Theme::labelFont());
        text->setColor(theme.mute);
        text->position->setType(QCPItemPosition::ptAbsolute);
        text->setPositionAlignment(Qt::AlignHCenter | Qt::AlignBottom);
        bandTexts.push_back(text);
    }
}

void SnrChart::Layers::adapt(QCustomPlot &plot, const RowText &label, const SnrSeries &series)
{
    adaptX(plot, label, series);
    adaptY(plot);
    adaptPoints(plot);
}

void SnrChart::Layers::arrange(QCustomPlot &plot)
{
    words.clear();
    arrangeMarks(plot);
    arrangeSelection(plot);
    arrangeBands(plot);
    legend->position->setCoords(plot.width() - kRightMargin, 3);
}

double SnrChart::Layers::covered(QCustomPlot &plot, const QRectF &place) const
{
    double cost = 0;
    for (const QRectF &other : words)
        if (other.intersects(place))
            cost += 40;
    for (const Mark &mark : marks) {
        const QPointF c = mark.circle->position->pixelPosition();
        if (QRectF(c.x() - kCircle / 2.0, c.y() - kCircle / 2.0, kCircle, kCircle).intersects(place))
            cost += 20;
    }
    const QRectF inside(0, 0, plot.width(), QRectF(plot.axisRect()->rect()).bottom());
    if (!inside.contains(place))
        cost += 100;
    const QRectF near = place.adjusted(-4, -4, 4, 4); // a point is a disc
    for (const QCPGraph *graph : {line, overlay}) {
        const double weight = graph == line ? 1 : 0.3;
        const auto data = graph->data();
        auto it = data->findBegin(plot.xAxis->pixelToCoord(near.left()), true);
        const auto end = data->findEnd(plot.xAxis->pixelToCoord(near.right()), true);
        if (end - it > kMostPointsUnderWords)
            return cost; // nothing is free in a line this dense: the words have a ground of their own
        QPointF before;
        bool joined = false;
        for (; it != end; ++it) {
            if (std::isnan(it->value)) {
                joined = false;
                continue;
            }
            const QPointF at(plot.xAxis->coordToPixel(it->key), plot.yAxis->coordToPixel(it->value));
            cost += near.contains(at) ? 10 * weight : 0;
            const int steps = joined ? static_cast<int>(std::hypot(at.x() - before.x(), at.y() - before.y()) / 6) : 0;
            for (int i = 1; i < std::min(steps, 400); ++i)
                cost += place.contains(before + (at - before) * i / steps) ? weight : 0;
            before = at;
            joined = true;
        }
    }
    return cost;
}

// Words stand beside their circle where they cover least: to its right or left, above or below, near or farther off.
void SnrChart::Layers::arrangeMarks(QCustomPlot &plot)
{
    for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) { // the first mark is the lesser one
        const double x = mark->circle->position->key();
        // Words of a mark outside of the zoomed part would hang over the margin.
        const bool seen =
            plot.xAxis->range().contains(x) && plot.yAxis->range().contains(mark->circle->position->value());
        mark->words->setVisible(seen);
        if (!seen)
            continue;
        const QFontMetrics metrics(mark->words->font());
        const QSizeF size(metrics.horizontalAdvance(mark->words->text()) + 10, metrics.height());
        const QPointF centre = mark->circle->position->pixelPosition();
        double least = std::numeric_limits<double>::infinity();
        QRectF best;
        for (const double away : {6.0, 16.0, 30.0})
            for (const bool below : {mark->below, !mark->below})
                for (const double beside : {13.0, -13.0 - size.width(), -size.width() / 2}) {
                    const double gap = beside == -size.width() / 2 ? away + 8 : away;
                    const QRectF place(centre + QPointF(beside, below ? gap : -gap - size.height()), size);
                    // Far from its circle a word needs a reason to be there.
                    if (const double cost = covered(plot, place) + away / 10; cost < least) {
                        least = cost;
                        best = place;
                    }
                }
        mark->words->setPositionAlignment(Qt::AlignLeft | Qt::AlignTop);
        mark->words->position->setCoords(best.x() - centre.x(), best.y() - centre.y());
        words.push_back(best);
    }
}

void SnrChart::Layers::arrangeSelection(QCustomPlot &plot)
{
    const double x = selection->point1->key();
    const bool seen = selection->visible() && plot.xAxis->range().contains(x);
    selectionText->setVisible(seen);
    if (!seen)
        return;
    const QFontMetrics metrics(selectionText->font());
    const QSizeF size(metrics.horizontalAdvance(selectionText->text()) + 10, metrics.height());
    const QRectF area = plot.axisRect()->rect();
    const double px = plot.xAxis->coordToPixel(x);
    double least = std::numeric_limits<double>::infinity();
    for (const bool top : {true, false})
        for (const bool right : {true, false}) {
            const QRectF place(
                QPointF(right ? px : px - size.width(), top ? area.top() : area.bottom() - size.height()), size);
            const double cost = covered(plot, place) + (top ? 0 : 1);
            if (cost >= least)
                continue;
            least = cost;
            selectionText->position->setCoords(x, top ? 0 : 1);
            selectionText->setPositionAlignment((right ? Qt::AlignLeft : Qt::AlignRight) |
                                                (top ? Qt::AlignTop : Qt::AlignBottom));
        }
}

void SnrChart::Layers::adaptX(QCustomPlot &plot, const RowText &label, const SnrSeries &series)
{
    const QFontMetrics metrics(Theme::labelFont());
    if (longestName < 0 && label) {
        longestName = 0;
        const std::size_t measured = std::min(series.points.size(), kNamesToMeasure);
        for (std::size_t i = 0; i < measured; ++i)
            longestName = std::max(longestName, metrics.horizontalAdvance(shortName(label(series.points[i].row))));
    }
    const double perPoint = pixelsPerPoint(plot);
    const int skip = std::max(1, static_cast<int>(std::ceil(kNameSpacing / perPoint)));
    namesShown = label && skip <= kMostSkipped && plot.height() >= kLeastHeightForNames;
    const double angle = -kAngle * 3.14159265358979 / 180;
    const int bottom = namesShown ? static_cast<int>(std::max(longestName, 0) * std::sin(angle) + metrics.height()) + 12
                                  : kNumberMargin;
    names->step = skip;
    names->offset = 0;
    if (!namesShown) {
        // Numbers lie flat: as many as have room, at round steps.
        const double room = metrics.horizontalAdvance(QStringLiteral("000000")) + 16;
        int step = 1;
        for (const int factor : {2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000})
            if (step * perPoint < room)
                step = factor;
        names->step = step;
        names->offset = step - 1;
    }
    plot.xAxis->setTickLabelRotation(namesShown ? kAngle : 0);
    const int top = bands.empty() ? kTopMargin : 2 * kTopMargin - 6; // a line for the legend, one for the bands
    plot.axisRect()->setMargins(QMargins(kLeftMargin, top, kRightMargin, bottom));
}

void SnrChart::Layers::adaptY(QCustomPlot &plot)
{
    const double height = std::max(plot.height() - kTopMargin - kNumberMargin, 20);
    const double perDb = height / std::max(plot.yAxis->range().size(), 1e-6);
    double step = 0.1;
    for (const double wider : {0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0})
        if (step * perDb < 34)
            step = wider;
    decibels->setTickStep(step);
    plot.yAxis->setNumberFormat(QStringLiteral("f"));
    plot.yAxis->setNumberPrecision(step < 1 ? 1 : 0);
}

void SnrChart::Layers::adaptPoints(QCustomPlot &plot)
{
    const double perPoint = pixelsPerPoint(plot);
    const Theme &theme = Theme::current();
    // Where points share pixels the line alone shows them; a dot (a single pixel) keeps those that stand alone.
    const bool dense = perPoint < 2;
    const double size = perPoint >= 10 ? 7 : perPoint >= 4 ? 4.5 : 2.5;
    const auto shape = dense ? QCPScatterStyle::ssDot : QCPScatterStyle::ssDisc;
    line->setScatterStyle(QCPScatterStyle(shape, penOf(theme.blue, 1), theme.blue, size));
    line->setPen(penOf(theme.blue, perPoint >= 4 ? 2 : 1));
    line->setAntialiased(!dense);
    line->setAntialiasedScatters(!dense);
}

void SnrChart::Layers::arrangeBands(QCustomPlot &plot)
{
    const QFontMetrics metrics(Theme::labelFont());
    const QRect area = plot.axisRect()->rect();
    for (std::size_t i = 0; i < bandTexts.size(); ++i) {
        const double left = std::max<double>(plot.xAxis->coordToPixel(bands[i].first - 0.5), area.left());
        const double right = std::min<double>(plot.xAxis->coordToPixel(bands[i].last + 0.5), area.right());
        const QString name = metrics.elidedText(bands[i].name, Qt::ElideLeft, static_cast<int>(right - left) - 4);
        bandTexts[i]->setText(name);
        bandTexts[i]->setVisible(name.size() > 1);
        bandTexts[i]->position->setCoords((left + right) / 2, area.top() - 2);
    }
}

} // namespace dblame::ui

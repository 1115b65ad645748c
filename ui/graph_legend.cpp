// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_legend.h"

#include <algorithm>

#include <QFontMetrics>
#include <QPainter>

#include "ui/graph_scene.h"
#include "ui/row_words.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

constexpr int kRampWidth = 154, kRampHeight = 9, kSteps = 7, kLeft = 14;
constexpr int kLine = 40, kNextLine = 24; // height of the first line, and of each further one
constexpr int kMarkRoom = 32, kGap = 18, kLeast = 120;

} // namespace

GraphLegend::GraphLegend(GraphScene *scene, QWidget *parent) : QWidget(parent), m_scene(scene)
{
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
    connect(scene, &GraphScene::rangeChanged, this, &GraphLegend::refresh);
    connect(scene, &GraphScene::layoutChanged, this, &GraphLegend::refresh);
    connect(scene, &GraphScene::marksChanged, this, &GraphLegend::refresh);
    refresh();
}

QSize GraphLegend::sizeHint() const
{
    return {640, heightForWidth(640)};
}
QSize GraphLegend::minimumSizeHint() const
{
    return {kLeast, kLine};
}

int GraphLegend::heightForWidth(int width) const
{
    int lines = 1;
    for (const Placed &placed : arrange(width))
        lines = std::max(lines, placed.line + 1);
    return kLine + (lines - 1) * kNextLine;
}

// Words that do not fit beside the others go on in the next line; those that fit into no line are elided.
std::vector<GraphLegend::Placed> GraphLegend::arrange(int width) const
{
    const QFontMetrics metrics(Theme::labelFont());
    std::vector<Placed> list;
    const int first = kLeft + (m_scene->range().valid() ? kRampWidth + kGap : 0);
    int x = first, line = 0;
    for (const Sample &sample : samples()) {
        int words = metrics.horizontalAdvance(sample.words) + 2;
        if (x + kMarkRoom + words > width && x > (line == 0 ? first : kLeft)) {
            ++line;
            x = kLeft;
        }
        words = std::min(words, std::max(0, width - x - kMarkRoom));
        list.push_back({sample, line, x, words});
        x += kMarkRoom + words + kGap;
    }
    return list;
}

void GraphLegend::refresh()
{
    // Called for every batch of rows of a run: assistive technology hears only what is new.
    if (const QString text = tr("Legend: %1").arg(words()); text != accessibleName()) {
        setAccessibleName(text);
        setToolTip(text);
        updateGeometry(); // other words may take another number of lines
    }
    update();
}

std::vector<GraphLegend::Sample> GraphLegend::samples() const
{
    bool activation = false, weight = false, watches = false, off = false, pending = false, shared = false;
    for (std::size_t m = 0; m < m_scene->layout().marks.size(); ++m) {
        const GraphMarkLook look = m_scene->markLook(static_cast<std::int32_t>(m));
        activation = activation || look.letter == QLatin1Char('Q');
        weight = weight || look.letter == QLatin1Char('W');
        watches = watches || look.watches;
        off = off || (look.state != GraphMarkLook::State::On && !look.pending);
        pending = pending || look.pending;
        shared = shared || look.instance > 0;
    }
    std::vector<Sample> list;
    const auto add = [&list](GraphMarkLook look, const QString &what) { list.push_back({look, what}); };
    GraphMarkLook q, w, o, skipped, changed, one;
    w.letter = QLatin1Char('W');
    o.letter = QLatin1Char('O');
    o.watches = true;
    skipped.state = GraphMarkLook::State::Off;
    changed = skipped;
    changed.pending = true;
    one.instance = 1;
    if (activation)
        add(q, tr("activation site"));
    if (weight)
        add(w, tr("weight site"));
    if (watches)
        add(o, tr("observer, only watches"));
    if (off)
        add(skipped, tr("skipped"));
    if (pending)
        add(changed, tr("to be changed"));
    if (shared)
        add(one, tr("same number: shared instance"));
    return list;
}

QString GraphLegend::words() const
{
    QStringList parts;
    if (m_scene->range().valid())
        parts << tr("colour is SNR, %1 dB dark to %2 dB bright")
                     .arg(decibels(m_scene->range().low, 0), decibels(m_scene->range().high, 0));
    for (const Sample &sample : samples())
        parts << QString(sample.look.letter) + QLatin1Char(' ') + sample.words;
    return parts.join(QStringLiteral("; "));
}

void GraphLegend::paintEvent(QPaintEvent *)
{
    const Theme &t = Theme::current();
    QPainter painter(this);
    painter.fillRect(rect(), t.base);
    painter.setFont(Theme::labelFont());
    const int middle = kLine / 2;
    if (m_scene->range().valid()) {
        painter.setPen(Qt::NoPen);
        for (int i = 0; i < kSteps; ++i)
            painter.fillRect(QRect(kLeft + i * kRampWidth / kSteps, middle - 12, kRampWidth / kSteps + 1, kRampHeight),
                             Theme::ramp(static_cast<double>(i) / (kSteps - 1)));
        painter.setPen(t.mute);
        const QRect numbers(kLeft, middle - 1, kRampWidth, 16);
        painter.drawText(numbers, Qt::AlignLeft | Qt::AlignVCenter, decibels(m_scene->range().low, 0));
        painter.drawText(numbers, Qt::AlignRight | Qt::AlignVCenter,
                         tr("%1 dB").arg(decibels(m_scene->range().high, 0)));
    }
    painter.setRenderHint(QPainter::Antialiasing);
    GraphPainter paint(painter, 1);
    for (const Placed &placed : arrange(width())) {
        const int y = middle + placed.line * kNextLine;
        paint.mark({placed.x + 13.0, y - 0.5}, placed.sample.look, false);
        painter.setFont(Theme::labelFont());
        painter.setPen(t.mute);
        painter.drawText(QRect(placed.x + kMarkRoom, y - 10, placed.width, 20), Qt::AlignVCenter,
                         painter.fontMetrics().elidedText(placed.sample.words, Qt::ElideRight, placed.width));
    }
}

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/channel_strip.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include "ui/panel_text.h"
#include "ui/row_words.h"
#include "ui/theme.h"

namespace dblame::ui
{
namespace
{

constexpr int kCellHeight = 28, kNumbersHeight = 16;
constexpr double kLeastCell = 3;      // pixels
constexpr double kLeastColoured = 10; // dB: a smaller spread than this does not use the whole ramp

double dbOf(const ChannelMetrics &channel, Signal signal)
{
    return signal == Signal::Reference ? channel.snrDb : channel.sqnrDb;
}

// The tensor's SNR as its channels make it up, with one of them left out.
double pooledDb(const std::vector<ChannelMetrics> &channels, const ChannelMetrics *without)
{
    double signal = 0, error = 0;
    for (const ChannelMetrics &channel : channels) {
        if (&channel == without || std::isnan(channel.snrDb))
            continue;
        signal += channel.signal;
        error += channel.signal / std::pow(10, channel.snrDb / 10); // 0 for an exact channel
    }
    return 10 * std::log10(signal / error);
}

// NaN is worse than everything: it must not vanish in a run of channels.
bool worseThan(double a, double b)
{
    if (std::isnan(a) || std::isnan(b))
        return std::isnan(a) && !std::isnan(b);
    return a < b;
}

} // namespace

ChannelSummary summarizeChannels(const std::vector<ChannelMetrics> &channels, Signal signal)
{
    ChannelSummary summary;
    summary.count = static_cast<int>(channels.size());
    summary.lowest = summary.highest = std::numeric_limits<double>::quiet_NaN();
    const ChannelMetrics *loudest = nullptr;
    for (const ChannelMetrics &channel : channels) {
        const double db = dbOf(channel, signal);
        if (loudest == nullptr || channel.signal > loudest->signal)
            loudest = &channel;
        if (std::isnan(db))
            continue;
        if (!summary.worst || db < summary.worstDb) {
            summary.worst = channel;
            summary.worstDb = db;
        }
        summary.below += db < ChannelSummary::kLow;
        if (!std::isfinite(db))
            continue;
        summary.lowest = std::isnan(summary.lowest) ? db : std::min(summary.lowest, db);
        summary.highest = std::isnan(summary.highest) ? db : std::max(summary.highest, db);
    }
    if (loudest != nullptr && summary.worst && loudest->index != summary.worst->index &&
        pooledDb(channels, nullptr) - pooledDb(channels, loudest) >= ChannelSummary::kHidden)
        summary.hiddenBy = loudest->index;
    return summary;
}

QString worstChannelText(const ChannelSummary &summary)
{
    if (!summary.worst)
        return {};
    if (summary.worstDb == std::numeric_limits<double>::infinity())
        return QStringLiteral("all exact");
    QString text = QStringLiteral("worst %1 · %2").arg(summary.worst->index).arg(dbUnitText(summary.worstDb, 1));
    if (summary.hiddenBy)
        text += QStringLiteral(", hidden by %1").arg(*summary.hiddenBy);
    return text;
}

QString lowChannelsText(const ChannelSummary &summary)
{
    if (summary.below == 0)
        return {};
    return QStringLiteral("%1 of %2 below %3 dB").arg(summary.below).arg(summary.count).arg(ChannelSummary::kLow);
}

ChannelStrip::ChannelStrip(QWidget *parent) : QWidget(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setAccessibleName(QStringLiteral("SNR by channel"));
}

double ChannelStrip::db(const ChannelMetrics &channel) const
{
    return dbOf(channel, m_signal);
}

void ChannelStrip::setChannels(std::vector<ChannelMetrics> channels, Signal signal)
{
    m_channels = std::move(channels);
    m_signal = signal;
    m_summary = summarizeChannels(m_channels, signal);
    setAccessibleDescription(worstChannelText(m_summary));
    reorder();
}

void ChannelStrip::setSorted(bool on)
{
    m_sorted = on;
    reorder();
}

void ChannelStrip::reorder()
{
    m_shown = m_channels;
    if (m_sorted)
        std::stable_sort(m_shown.begin(), m_shown.end(),
                         [this](const ChannelMetrics &a, const ChannelMetrics &b) { return worseThan(db(a), db(b)); });
    m_current = -1;
    update();
}

std::vector<ChannelStrip::Cell> ChannelStrip::cells() const
{
    std::vector<Cell> all;
    const std::size_t count = m_shown.size();
    const auto room = static_cast<std::size_t>(std::max(width() / kLeastCell, 1.0));
    const std::size_t run = std::max<std::size_t>(1, (count + room - 1) / room);
    for (std::size_t first = 0; first < count; first += run) {
        Cell cell{.first = first, .count = std::min(run, count - first), .worst = first};
        for (std::size_t i = first + 1; i < first + cell.count; ++i)
            if (worseThan(db(m_shown[i]), db(m_shown[cell.worst])))
                cell.worst = i;
        all.push_back(cell);
    }
    return all;
}

QString ChannelStrip::cellText(const Cell &cell) const
{
    double total = 0;
    for (const ChannelMetrics &channel : m_channels)
        total += channel.signal;
    const ChannelMetrics &worst = m_shown[cell.worst];
    QString text;
    if (cell.count > 1 && !m_sorted)
        text = QStringLiteral("channels %1–%2, worst ")
                   .arg(m_shown[cell.first].index)
                   .arg(m_shown[cell.first + cell.count - 1].index);
    else if (cell.count > 1)
        text = QStringLiteral("%1 channels, worst ").arg(cell.count);
    else
        text = QStringLiteral("channel ");
    text += QStringLiteral("%1: %2").arg(worst.index).arg(dbUnitText(db(worst), 2));
    if (total > 0)
        text += QStringLiteral(" · %1 of the signal").arg(shareText(worst.signal / total));
    return text;
}

QSize ChannelStrip::sizeHint() const
{
    return {280, kCellHeight + kNumbersHeight};
}

QSize ChannelStrip::minimumSizeHint() const
{
    return {120, kCellHeight + kNumbersHeight};
}

QRectF ChannelStrip::cellRect(std::size_t cell, std::size_t count) const
{
    const double each = static_cast<double>(width()) / static_cast<double>(count);
    return {each * static_cast<double>(cell), 0, each, static_cast<double>(kCellHeight)};
}

int ChannelStrip::cellAt(QPointF position) const
{
    const std::size_t count = cells().size();
    if (count == 0 || position.y() > kCellHeight || position.x() < 0 || position.x() >= width())
        return -1;
    return static_cast<int>(position.x() * static_cast<double>(count) / width());
}

void ChannelStrip::paintEvent(QPaintEvent * /*event*/)
{
    QPainter painter(this);
    const Theme &theme = Theme::current();
    const std::vector<Cell> all = cells();
    const double low = m_summary.lowest;
    const double high = std::max(m_summary.highest, low + kLeastColoured);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const double value = db(m_shown[all[i].worst]);
        QRectF area = cellRect(i, all.size());
        if (area.width() >= 5)
            area.adjust(0.5, 0, -0.5, 0);
        if (std::isnan(value)) {
            painter.fillRect(area, theme.panel);
            painter.setPen(theme.orange);
            painter.drawLine(area.topLeft(), area.bottomRight());
            painter.drawLine(area.topRight(), area.bottomLeft());
            continue;
        }
        painter.fillRect(area, Theme::ramp(Theme::rampPosition(value, low, high)));
    }
    if (m_current >= 0 && static_cast<std::size_t>(m_current) < all.size()) {
        painter.setPen(QPen(theme.orange, 2));
        painter.drawRect(cellRect(static_cast<std::size_t>(m_current), all.size()).adjusted(1, 1, -1, -1));
    }
    if (hasFocus()) {
        painter.setPen(theme.blue);
        painter.drawRect(QRectF(0.5, 0.5, width() - 1, kCellHeight - 1));
    }
    paintNumbers(painter, all);
}

// A number under each cell where they fit, else under every n-th.
void ChannelStrip::paintNumbers(QPainter &painter, const std::vector<Cell> &all) const
{
    if (all.empty())
        return;
    QFont font = Theme::labelFont();
    font.setPixelSize(std::max(font.pixelSize() - 1, 8));
    painter.setFont(font);
    painter.setPen(Theme::current().mute);
    int widest = 0;
    for (const ChannelMetrics &channel : {m_shown.front(), m_shown.back()})
        widest = std::max(widest, QFontMetrics(font).horizontalAdvance(QString::number(channel.index)));
    if (m_sorted)
        widest = std::max(widest, QFontMetrics(font).horizontalAdvance(QString::number(m_channels.size())));
    const double each = static_cast<double>(width()) / static_cast<double>(all.size());
    const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil((widest + 3) / each)));
    for (std::size_t i = 0; i < all.size(); i += every) {
        const double middle = each * (static_cast<double>(i) + 0.5);
        const QString number = QString::number(m_shown[all[i].first].index);
        const double room = QFontMetrics(font).horizontalAdvance(number);
        const double left = std::clamp(middle - room / 2, 0.0, std::max(0.0, width() - room));
        painter.drawText(QRectF(left, kCellHeight + 1, room, kNumbersHeight),
                         Qt::AlignLeft | Qt::AlignTop | Qt::TextDontClip, number);
    }
}

void ChannelStrip::setCurrent(int cell)
{
    if (cell == m_current)
        return;
    m_current = cell;
    const std::vector<Cell> all = cells();
    const bool valid = cell >= 0 && static_cast<std::size_t>(cell) < all.size();
    const QString text = valid ? cellText(all[static_cast<std::size_t>(cell)]) : QString();
    setAccessibleDescription(valid ? text : worstChannelText(m_summary));
    Q_EMIT cellChanged(text);
    update();
}

void ChannelStrip::mouseMoveEvent(QMouseEvent *event)
{
    setCurrent(cellAt(event->position()));
}

void ChannelStrip::leaveEvent(QEvent *event)
{
    QWidget::leaveEvent(event);
    setCurrent(-1);
}

void ChannelStrip::keyPressEvent(QKeyEvent *event)
{
    const int last = static_cast<int>(cells().size()) - 1;
    if (last < 0)
        return QWidget::keyPressEvent(event);
    switch (event->key()) {
    case Qt::Key_Left:
        return setCurrent(std::max(m_current - 1, 0));
    case Qt::Key_Right:
        return setCurrent(std::min(m_current + 1, last));
    case Qt::Key_Home:
        return setCurrent(0);
    case Qt::Key_End:
        return setCurrent(last);
    default:
        QWidget::keyPressEvent(event);
    }
}

bool ChannelStrip::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event);
        const int cell = cellAt(help->pos());
        const std::vector<Cell> all = cells();
        QToolTip::showText(help->globalPos(), cell >= 0 ? cellText(all[static_cast<std::size_t>(cell)]) : QString(),
                           this);
        return true;
    }
    return QWidget::event(event);
}

} // namespace dblame::ui

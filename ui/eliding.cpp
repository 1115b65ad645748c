// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/eliding.h"

#include <QEvent>
#include <QHelpEvent>
#include <QPainter>
#include <QStyleOptionButton>
#include <QStylePainter>
#include <QToolTip>

namespace dblame::ui
{

ElidingLabel::ElidingLabel(QWidget *parent, Qt::TextElideMode mode) : QLabel(parent), m_mode(mode)
{
    setTextFormat(Qt::PlainText);
}

QSize ElidingLabel::sizeHint() const
{
    // A pixel to spare: advances are rounded.
    return {text().isEmpty() ? 0 : fontMetrics().horizontalAdvance(text()) + 2, QLabel::sizeHint().height()};
}

QSize ElidingLabel::minimumSizeHint() const
{
    const int least = fontMetrics().horizontalAdvance(QStringLiteral("00…"));
    return {std::min(least, sizeHint().width()), QLabel::minimumSizeHint().height()};
}

QString ElidingLabel::shownText() const
{
    return fontMetrics().elidedText(text(), m_mode, contentsRect().width());
}

bool ElidingLabel::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip && toolTip().isEmpty()) {
        const auto *help = static_cast<QHelpEvent *>(event);
        QToolTip::showText(help->globalPos(), shownText() == text() ? QString() : text(), this);
        return true;
    }
    return QLabel::event(event);
}

void ElidingLabel::paintEvent(QPaintEvent * /*event*/)
{
    QPainter painter(this);
    style()->drawItemText(&painter, contentsRect(), static_cast<int>(alignment()), palette(), isEnabled(), shownText(),
                          foregroundRole());
}

ElidingButton::ElidingButton(const QString &text, QWidget *parent) : QPushButton(text, parent), m_least(text)
{
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void ElidingButton::setLeastText(const QString &text)
{
    m_least = text;
    updateGeometry();
}

QSize ElidingButton::minimumSizeHint() const
{
    const QSize whole = sizeHint();
    const int spare = fontMetrics().horizontalAdvance(text()) - fontMetrics().horizontalAdvance(m_least);
    return {whole.width() - std::max(0, spare), whole.height()};
}

QString ElidingButton::shownText() const
{
    QStyleOptionButton option;
    initStyleOption(&option);
    const int room = style()->subElementRect(QStyle::SE_PushButtonContents, &option, this).width();
    return fontMetrics().elidedText(text(), Qt::ElideMiddle, room);
}

void ElidingButton::paintEvent(QPaintEvent * /*event*/)
{
    QStylePainter painter(this);
    QStyleOptionButton option;
    initStyleOption(&option);
    option.text = shownText();
    painter.drawControl(QStyle::CE_PushButton, option);
}

} // namespace dblame::ui

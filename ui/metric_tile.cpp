// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/metric_tile.h"

#include <QEvent>
#include <QFontMetrics>
#include <QLabel>
#include <QRegularExpression>
#include <QVBoxLayout>

namespace dblame::ui
{

namespace
{

// The same figure in fewer and fewer letters: "3.197e-05", "3.20e-05", "3.2e-05", "3e-05"; the unit goes last. A text
// that is no number stays alone.
QStringList shorterFigures(const QString &whole)
{
    QStringList list{whole};
    static const QRegularExpression form(QStringLiteral("^([-−+]?)(\\d+)\\.(\\d+)(e[-−+]?\\d+)?( dB)?$"));
    const auto match = form.match(whole);
    if (!match.hasMatch())
        return list;
    const double mantissa = (match.captured(2) + QLatin1Char('.') + match.captured(3)).toDouble();
    QString unit = match.captured(5);
    for (auto digits = match.captured(3).size() - 1; digits >= 0; --digits)
        list << match.captured(1) + QString::number(mantissa, 'f', static_cast<int>(digits)) + match.captured(4) + unit;
    if (!unit.isEmpty())
        for (const int digits : {1, 0})
            list << match.captured(1) + QString::number(mantissa, 'f', digits);
    return list;
}

} // namespace

MetricTile::MetricTile(QWidget *parent) : QFrame(parent), m_name(new QLabel(this)), m_value(new QLabel(this))
{
    setProperty("role", "tile");
    m_name->setProperty("role", "mute");
    m_value->setProperty("role", "value");
    m_value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    for (QLabel *label : {m_name, m_value})
        label->setMinimumWidth(1); // they show what fits: they ask for nothing
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 4, 4, 4);
    layout->setSpacing(0);
    layout->addWidget(m_name);
    layout->addWidget(m_value);
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed); // tiles of a row are equally wide
}

void MetricTile::setFigure(const QString &name, const QString &value, const QString &toolTip)
{
    m_name->setText(name);
    m_whole = value;
    fit();
    setToolTip(toolTip.isEmpty() ? QStringLiteral("%1: %2").arg(name, value) : toolTip);
    m_value->setAccessibleName(QStringLiteral("%1 %2").arg(name, value));
}

QString MetricTile::name() const
{
    return m_name->text();
}

QString MetricTile::shownValue() const
{
    return m_value->text();
}

void MetricTile::fit()
{
    const QMargins margins = layout()->contentsMargins();
    const int room = contentsRect().width() - margins.left() - margins.right();
    const QFontMetrics metrics(m_value->font());
    const QStringList figures = shorterFigures(m_whole);
    QString shown = metrics.elidedText(figures.back(), Qt::ElideRight, room);
    for (const QString &figure : figures)
        if (metrics.horizontalAdvance(figure) <= room) {
            shown = figure;
            break;
        }
    m_value->setText(shown);
}

void MetricTile::resizeEvent(QResizeEvent *event)
{
    QFrame::resizeEvent(event);
    fit();
}

void MetricTile::changeEvent(QEvent *event)
{
    QFrame::changeEvent(event);
    if (event->type() == QEvent::StyleChange || event->type() == QEvent::FontChange)
        fit();
}

} // namespace dblame::ui

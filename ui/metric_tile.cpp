// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/metric_tile.h"

#include <QLabel>
#include <QVBoxLayout>

namespace dblame::ui
{

MetricTile::MetricTile(QWidget *parent) : QFrame(parent), m_name(new QLabel(this)), m_value(new QLabel(this))
{
    setProperty("role", "tile");
    m_name->setProperty("role", "mute");
    m_value->setProperty("role", "value");
    m_value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_value->setMinimumWidth(0);
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
    m_value->setText(value);
    setToolTip(toolTip.isEmpty() ? QStringLiteral("%1: %2").arg(name, value) : toolTip);
    m_value->setAccessibleName(QStringLiteral("%1 %2").arg(name, value));
}

QString MetricTile::name() const
{
    return m_name->text();
}

QString MetricTile::value() const
{
    return m_value->text();
}

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>

class QLabel;

namespace dblame::ui
{

// A small box with what a figure is and the figure.
class MetricTile : public QFrame
{
    Q_OBJECT
public:
    explicit MetricTile(QWidget *parent = nullptr);
    void setFigure(const QString &name, const QString &value, const QString &toolTip = {});
    [[nodiscard]] QString name() const;
    [[nodiscard]] QString value() const;

private:
    QLabel *m_name, *m_value;
};

} // namespace dblame::ui

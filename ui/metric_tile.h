// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>

class QLabel;

namespace dblame::ui
{

// A small box with what a figure is and the figure. Where there is little room the figure has fewer digits, and then
// no unit: never a part of a number.
class MetricTile : public QFrame
{
    Q_OBJECT
public:
    explicit MetricTile(QWidget *parent = nullptr);
    void setFigure(const QString &name, const QString &value, const QString &toolTip = {});
    [[nodiscard]] QString name() const;
    [[nodiscard]] QString value() const { return m_whole; } // with all its digits
    [[nodiscard]] QString shownValue() const;

protected:
    void resizeEvent(QResizeEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    void fit();

    QLabel *m_name, *m_value;
    QString m_whole;
};

} // namespace dblame::ui

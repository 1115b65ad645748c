// SPDX-License-Identifier: GPL-3.0-or-later
//
// Ticks at whole positions with a row's name under each: every one where they fit, else every n-th, else row numbers.
// Include in .cpp files only (QCustomPlot).
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "ui/qcp.h"

namespace dblame::ui
{

class NameTicker : public QCPAxisTicker
{
public:
    std::function<QString(int)> text;
    int count = 0; // positions 0..count-1
    int step = 1;
    int offset = 0; // the first tick; row numbers count from one, so their round steps lie one position earlier

protected:
    double getTickStep(const QCPRange & /*range*/) override { return step; }
    int getSubTickCount(double /*tickStep*/) override { return 0; }
    QString getTickLabel(double tick, const QLocale &, QChar, int) override
    {
        return text ? text(static_cast<int>(std::lround(tick))) : QString();
    }
    QVector<double> createTickVector(double /*tickStep*/, const QCPRange &range) override
    {
        QVector<double> ticks;
        const int wanted = std::max(step, 1);
        const int skipped = std::max(0, static_cast<int>(std::ceil((range.lower - offset) / wanted)));
        const int from = offset + skipped * wanted;
        for (int x = from; x < count && x <= range.upper; x += wanted)
            ticks << x;
        return ticks;
    }
};

} // namespace dblame::ui

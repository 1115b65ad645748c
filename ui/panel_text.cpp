// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/panel_text.h"

#include <cmath>

#include <QLocale>

#include "ui/row_words.h"

namespace dblame::ui
{

QString dbUnitText(double db, int decimals)
{
    if (std::isnan(db))
        return QStringLiteral("n/a");
    if (std::isinf(db))
        return db > 0 ? QStringLiteral("exact") : QStringLiteral("−inf");
    return decibels(db, decimals) + QStringLiteral(" dB");
}

QString lossText(double dropDb, int decimals)
{
    if (!std::isfinite(dropDb))
        return decibels(-dropDb);
    const QString size = QString::number(std::abs(dropDb), 'f', decimals);
    return (dropDb >= 0 ? QStringLiteral("−") : QStringLiteral("+")) + size;
}

QString countText(double count)
{
    static const QLocale english(QLocale::English);
    return english.toString(static_cast<qlonglong>(std::llround(count)));
}

QString shareText(double share)
{
    const double percent = share * 100;
    if (percent > 0 && percent < 0.05)
        return QStringLiteral("below 0.1 %");
    const int decimals = percent >= 10 || percent == std::floor(percent) ? 0 : 1;
    return QString::number(percent, 'f', decimals) + QStringLiteral(" %");
}

QString rangeText(double low, double high)
{
    return QStringLiteral("[%1, %2]").arg(figure(low), figure(high));
}

QString elideLeft(const QString &text, int characters)
{
    if (text.size() <= characters)
        return text;
    return QChar(0x2026) + text.right(characters - 1);
}

} // namespace dblame::ui

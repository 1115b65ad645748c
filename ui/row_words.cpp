// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/row_words.h"

#include <cmath>

#include <QLocale>
#include <QStringList>

namespace dblame::ui
{

namespace
{

// The typographic minus has the width of the figures, so columns of numbers stay aligned.
QString withMinus(QString text)
{
    if (text.startsWith(QLatin1Char('-')))
        text[0] = QChar(0x2212);
    return text;
}

// "failed: out of memory", without saying the word twice where the reason brings it along.
QString stateWithReason(const QString &word, const std::string &reason, const QString &joint)
{
    const QString why = QString::fromStdString(reason);
    if (why.isEmpty())
        return word;
    return why.startsWith(word) ? why : word + joint + why;
}

} // namespace

QString decibels(double db, int decimals)
{
    if (std::isnan(db))
        return QStringLiteral("NaN");
    if (std::isinf(db))
        return db > 0 ? QStringLiteral("exact") : QStringLiteral("−inf");
    return withMinus(QLocale::c().toString(db, 'f', decimals));
}

QString changeDecibels(double db)
{
    const QString text = std::isinf(db) && db > 0 ? QStringLiteral("inf") : decibels(db);
    return db > 0 ? QLatin1Char('+') + text : text;
}

QString lossDecibels(double dropDb)
{
    return changeDecibels(dropDb == 0 ? 0.0 : -dropDb);
}

QString figure(double value)
{
    if (std::isnan(value))
        return QStringLiteral("NaN");
    if (std::isinf(value))
        return value > 0 ? QStringLiteral("inf") : QStringLiteral("−inf");
    return withMinus(QLocale::c().toString(value, 'g', 4));
}

QString stateWords(const NodeReport &row)
{
    QString words;
    switch (row.status) {
    case RowStatus::Pending:
        return QStringLiteral("not run");
    case RowStatus::Ok:
        words = QStringLiteral("ok");
        break;
    case RowStatus::Exact:
        words = QStringLiteral("exact");
        break;
    case RowStatus::Mismatch:
        words = stateWithReason(QStringLiteral("differs"), row.reason, QStringLiteral(": "));
        if (row.metrics.count > 0)
            words = QStringLiteral("differs in %1 of %2").arg(row.metrics.mismatches).arg(row.metrics.count);
        break;
    case RowStatus::NotFloat:
        words = stateWithReason(QStringLiteral("no dB: %1").arg(QString::fromStdString(row.dtype)), row.reason,
                                QStringLiteral(", "));
        break;
    case RowStatus::ShapeMismatch:
        return stateWithReason(QStringLiteral("shapes differ"), row.reason, QStringLiteral(" "));
    case RowStatus::Failed:
        return stateWithReason(QStringLiteral("failed"), row.reason, QStringLiteral(": "));
    case RowStatus::NotComputed:
        return stateWithReason(QStringLiteral("not computed"), row.reason, QStringLiteral(": "));
    }
    if (row.metrics.nan > 0)
        words += QStringLiteral(", %1 NaN").arg(row.metrics.nan);
    if (row.metrics.inf > 0)
        words += QStringLiteral(", %1 infinite").arg(row.metrics.inf);
    return words;
}

QString snrText(const NodeReport &row, Signal signal)
{
    switch (row.status) {
    case RowStatus::Exact:
        return QStringLiteral("exact");
    case RowStatus::Ok:
        return decibels(dblame::shownDb(row, signal));
    case RowStatus::Pending:
        return {};
    case RowStatus::Mismatch:
        return QStringLiteral("differs");
    case RowStatus::NotFloat:
        return QStringLiteral("no dB");
    case RowStatus::ShapeMismatch:
        return QStringLiteral("shapes differ");
    case RowStatus::Failed:
        return QStringLiteral("failed");
    case RowStatus::NotComputed:
        return QStringLiteral("not computed");
    }
    return {};
}

bool hasDb(const NodeReport &row)
{
    return row.status == RowStatus::Ok || row.status == RowStatus::Exact;
}

QString sizesText(const std::vector<std::int64_t> &shape)
{
    QStringList sizes;
    for (const std::int64_t size : shape)
        sizes << QString::number(size);
    return sizes.join(QChar(0x00D7));
}

QString shortSpec(const QuantSpec &spec)
{
    QString text = QStringLiteral("int%1").arg(spec.effectiveBits());
    const auto storage = dtypeName(spec.storage);
    // Floating-point grids keep their own name; for integers the bits in use say more than the type that holds them.
    if (storage.starts_with("float"))
        text = QString::fromUtf8(storage.data(), static_cast<qsizetype>(storage.size()));
    switch (spec.granularity) {
    case Granularity::PerTensor:
        break;
    case Granularity::PerChannel:
        text += QStringLiteral(" per ch");
        break;
    case Granularity::PerBlock:
        text += QStringLiteral(" block %1").arg(spec.blockSize);
        break;
    case Granularity::PerToken:
        text += QStringLiteral(" per token");
        break;
    }
    if (spec.dynamic)
        text += QStringLiteral(" dyn");
    return text;
}

} // namespace dblame::ui

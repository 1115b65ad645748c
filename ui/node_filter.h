// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sorts and filters the node table. A filter is words and comparisons, all of which must hold:
//   conv                 in node, module, operator, kind, state or quantizer; case does not matter
//   -relu                not there
//   snr<20  drop>=3      figures; snr, drop, flow, mse, max, cosine, bias, ms, delta, row with < <= > >= =
//   kind:weight          the word in one column: node, module, op, kind, state, quant, shape, type, rule
// A comparison never holds where a row has no such figure; NaN is below every number.
#pragma once

#include <optional>
#include <vector>

#include <QSortFilterProxyModel>
#include <QString>

namespace dblame::ui
{

class NodeFilter : public QSortFilterProxyModel
{
    Q_OBJECT
public:
    explicit NodeFilter(QObject *parent = nullptr);

    void setText(const QString &text);
    [[nodiscard]] const QString &text() const { return m_text; }

protected:
    [[nodiscard]] bool filterAcceptsRow(int row, const QModelIndex &parent) const override;
    // Numbers by size with NaN as the worst, rows without a number last in either order.
    [[nodiscard]] bool lessThan(const QModelIndex &left, const QModelIndex &right) const override;

private:
    enum class Relation { Less, LessEqual, Greater, GreaterEqual, Equal };
    struct Term {
        int column = -1; // -1: any of the text columns
        bool negated = false;
        QString word; // lower case; empty for comparisons
        Relation relation = Relation::Equal;
        double bound = 0;
    };
    [[nodiscard]] static std::optional<Term> parseComparison(const QString &word);
    [[nodiscard]] static Term parseWord(const QString &word);
    [[nodiscard]] bool holds(const Term &term, int row) const;

    QString m_text;
    std::vector<Term> m_terms;
};

} // namespace dblame::ui

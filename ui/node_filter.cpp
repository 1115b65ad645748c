// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/node_filter.h"

#include <cmath>

#include <QLocale>
#include <QRegularExpression>

#include "ui/node_table_model.h"

namespace dblame::ui
{

namespace
{

struct Field {
    const char *name;
    int column;
};

constexpr Field kFigures[] = {
    {"snr", NodeTableModel::Snr},    {"sqnr", NodeTableModel::Snr},      {"db", NodeTableModel::Snr},
    {"drop", NodeTableModel::Drop},  {"flow", NodeTableModel::FlowDrop}, {"mse", NodeTableModel::Mse},
    {"max", NodeTableModel::MaxAbs}, {"cosine", NodeTableModel::Cosine}, {"bias", NodeTableModel::Bias},
    {"ms", NodeTableModel::Time},    {"delta", NodeTableModel::Delta},   {"row", NodeTableModel::Index},
};
constexpr Field kTexts[] = {
    {"node", NodeTableModel::Name},     {"name", NodeTableModel::Name},   {"module", NodeTableModel::Module},
    {"op", NodeTableModel::Operator},   {"kind", NodeTableModel::Kind},   {"state", NodeTableModel::Status},
    {"quant", NodeTableModel::OwnSite}, {"shape", NodeTableModel::Shape}, {"type", NodeTableModel::DTypeColumn},
    {"rule", NodeTableModel::Rung},     {"value", NodeTableModel::Value},
};
// Beside the row's names: value, node, layer, operator.
constexpr int kSearched[] = {NodeTableModel::Kind, NodeTableModel::Status, NodeTableModel::OwnSite};

template <std::size_t N>
int columnNamed(const Field (&fields)[N], const QString &name)
{
    for (const Field &field : fields)
        if (name == QLatin1String(field.name))
            return field.column;
    return -1;
}

// A total order: NaN, -inf, numbers, +inf.
bool below(double a, double b)
{
    if (std::isnan(a) || std::isnan(b))
        return std::isnan(a) && !std::isnan(b);
    return a < b;
}

} // namespace

NodeFilter::NodeFilter(QObject *parent) : QSortFilterProxyModel(parent)
{
    setSortRole(NodeTableModel::SortRole);
    setDynamicSortFilter(true);
}

void NodeFilter::setText(const QString &text)
{
    m_text = text;
    m_terms.clear();
    static const QRegularExpression spaces(QStringLiteral("\\s+"));
    for (const QString &word : text.split(spaces, Qt::SkipEmptyParts)) {
        if (auto comparison = parseComparison(word.toLower()))
            m_terms.push_back(*comparison);
        else
            m_terms.push_back(parseWord(word.toLower()));
    }
    invalidateFilter();
}

std::optional<NodeFilter::Term> NodeFilter::parseComparison(const QString &word)
{
    static const QRegularExpression form(QStringLiteral("^([a-z]+)(<=|>=|<|>|=|≤|≥)([-−+]?[0-9.e+-]+|[-−+]?inf)$"));
    const auto match = form.match(word);
    if (!match.hasMatch())
        return std::nullopt;
    Term term;
    term.column = columnNamed(kFigures, match.captured(1));
    QString number = match.captured(3);
    number.replace(QChar(0x2212), QLatin1Char('-'));
    bool ok = true;
    term.bound = number.endsWith(QLatin1String("inf")) ? (number.startsWith(QLatin1Char('-')) ? -INFINITY : INFINITY)
                                                       : QLocale::c().toDouble(number, &ok);
    if (term.column < 0 || !ok)
        return std::nullopt;
    const QString relation = match.captured(2);
    if (relation == QLatin1String("<"))
        term.relation = Relation::Less;
    else if (relation == QLatin1String("<=") || relation == QStringLiteral("≤"))
        term.relation = Relation::LessEqual;
    else if (relation == QLatin1String(">"))
        term.relation = Relation::Greater;
    else if (relation == QLatin1String(">=") || relation == QStringLiteral("≥"))
        term.relation = Relation::GreaterEqual;
    return term;
}

NodeFilter::Term NodeFilter::parseWord(const QString &word)
{
    Term term;
    term.word = word;
    if (word.size() > 1 && word.startsWith(QLatin1Char('-'))) {
        term.negated = true;
        term.word = word.mid(1);
    }
    if (const auto colon = term.word.indexOf(QLatin1Char(':')); colon > 0) {
        if (const int column = columnNamed(kTexts, term.word.left(colon)); column >= 0) {
            term.column = column;
            term.word = term.word.mid(colon + 1);
        }
    }
    return term;
}

bool NodeFilter::holds(const Term &term, int row) const
{
    const auto *table = sourceModel();
    if (!term.word.isEmpty() || (term.column < 0)) {
        const auto contains = [&](int column) {
            return table->index(row, column).data().toString().contains(term.word, Qt::CaseInsensitive);
        };
        if (term.column >= 0)
            return contains(term.column);
        const QString names = table->index(row, 0).data(NodeTableModel::NamesRole).toString();
        return names.contains(term.word, Qt::CaseInsensitive) ||
               std::any_of(std::begin(kSearched), std::end(kSearched), contains);
    }
    const QVariant value = table->index(row, term.column).data(NodeTableModel::SortRole);
    if (value.userType() == QMetaType::QString)
        return true; // "kind:" while it is being typed
    if (!value.isValid())
        return false;
    // The first row is 1 where it is shown.
    const double number = value.toDouble() + (term.column == NodeTableModel::Index ? 1 : 0);
    switch (term.relation) {
    case Relation::Less:
        return below(number, term.bound);
    case Relation::LessEqual:
        return !below(term.bound, number);
    case Relation::Greater:
        return below(term.bound, number);
    case Relation::GreaterEqual:
        return !below(number, term.bound);
    case Relation::Equal:
        return number == term.bound;
    }
    return false;
}

bool NodeFilter::filterAcceptsRow(int row, const QModelIndex &) const
{
    return std::all_of(m_terms.begin(), m_terms.end(),
                       [&](const Term &term) { return holds(term, row) != term.negated; });
}

bool NodeFilter::lessThan(const QModelIndex &left, const QModelIndex &right) const
{
    const QVariant a = left.data(sortRole());
    const QVariant b = right.data(sortRole());
    if (!a.isValid() || !b.isValid()) {
        if (a.isValid() == b.isValid())
            return left.row() < right.row();
        return (sortOrder() == Qt::AscendingOrder) == a.isValid();
    }
    if (a.userType() == QMetaType::QString)
        return QString::localeAwareCompare(a.toString(), b.toString()) < 0;
    return below(a.toDouble(), b.toDouble());
}

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_find.h"

#include <cmath>
#include <limits>
#include <optional>

#include <QRegularExpression>

#include "ui/node_table_model.h"
#include "ui/row_words.h"

namespace dblame::ui
{

namespace
{

struct Comparison {
    bool drop = false;
    QString relation;
    double bound = 0;
};

std::optional<Comparison> comparison(const QString &word)
{
    static const QRegularExpression form(QStringLiteral("^(snr|sqnr|db|drop)(<=|>=|<|>|=)([-−+]?\\d+(?:\\.\\d*)?)$"),
                                         QRegularExpression::CaseInsensitiveOption);
    const auto match = form.match(word);
    if (!match.hasMatch())
        return std::nullopt;
    QString number = match.captured(3);
    number.replace(QChar(0x2212), QLatin1Char('-'));
    return Comparison{match.captured(1).compare(QLatin1String("drop"), Qt::CaseInsensitive) == 0, match.captured(2),
                      number.toDouble()};
}

// A row without the figure fits no comparison.
bool holds(const Comparison &c, double value)
{
    if (std::isnan(value))
        return false;
    if (c.relation == QLatin1String("<"))
        return value < c.bound;
    if (c.relation == QLatin1String("<="))
        return value <= c.bound;
    if (c.relation == QLatin1String(">"))
        return value > c.bound;
    if (c.relation == QLatin1String(">="))
        return value >= c.bound;
    return std::abs(value - c.bound) < 0.05; // as printed, with one decimal
}

double figure(const GraphNode &node, const NodeTableModel *table, bool drop)
{
    if (table == nullptr || !node.row.valid() || static_cast<int>(node.row.get()) >= table->pairCount())
        return std::numeric_limits<double>::quiet_NaN();
    if (!drop)
        return table->shownDb(node.row);
    return table->report(node.row).dropDb.value_or(std::numeric_limits<double>::quiet_NaN());
}

QString searchedText(const GraphDocument &document, const GraphNode &node, const NodeTableModel *table)
{
    QString text = node.label + QLatin1Char(' ') + node.path + QLatin1Char(' ') + node.op;
    // The names of the file, as the command line reports them, whatever the box is called.
    const auto &model = node.side == Side::Reference ? document.pair->reference : document.pair->candidate;
    if (node.value.valid())
        text += QLatin1Char(' ') + QString::fromStdString(model->graph().value(node.value).name);
    if (node.node.valid())
        text += QLatin1Char(' ') + QString::fromStdString(model->graph().node(node.node).name);
    if (node.unpaired)
        text += QStringLiteral(" no partner ") + node.why;
    if (table != nullptr && node.row.valid() && static_cast<int>(node.row.get()) < table->pairCount())
        text += QLatin1Char(' ') + stateWords(table->report(node.row));
    return text;
}

} // namespace

std::vector<std::int32_t> findNodes(const GraphDocument &document, const NodeTableModel *table, const QString &query)
{
    static const QRegularExpression spaces(QStringLiteral("\\s+"));
    const QStringList words = query.split(spaces, Qt::SkipEmptyParts);
    std::vector<std::int32_t> found;
    if (words.isEmpty())
        return found;
    for (std::size_t i = 0; i < document.nodes.size(); ++i) {
        const GraphNode &node = document.nodes[i];
        bool fits = true;
        QString text;
        for (const QString &word : words) {
            if (const auto c = comparison(word)) {
                fits = holds(*c, figure(node, table, c->drop));
            } else {
                if (text.isEmpty())
                    text = searchedText(document, node, table);
                const bool negated = word.size() > 1 && word.startsWith(QLatin1Char('-'));
                fits = text.contains(negated ? word.mid(1) : word, Qt::CaseInsensitive) != negated;
            }
            if (!fits)
                break;
        }
        if (fits)
            found.push_back(static_cast<std::int32_t>(i));
    }
    return found;
}

} // namespace dblame::ui

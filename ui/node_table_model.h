// SPDX-License-Identifier: GPL-3.0-or-later
//
// One row per aligned pair: the model behind the table, and what graph, plot and inspector read.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QAbstractTableModel>

#include "core/node_report.h"
#include "ui/open_pair.h"

namespace dblame::ui
{

class NodeTableModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    enum Column {
        Index,
        Name,
        Module,
        Operator,
        Kind,
        Status,
        Snr,
        Drop,
        FlowDrop,
        OwnSite,
        Mse,
        MaxAbs,
        Cosine,
        Bias,
        RefMin,
        RefMax,
        CandMin,
        CandMax,
        Shape,
        DTypeColumn,
        Rung,
        Time,
        Delta,
        Value,
        ColumnCount
    };
    // SortRole: a number, a text, or nothing where a row has no number in that column (such rows go last in
    // either order). NaN counts as the worst of all, before -inf.
    // NamesRole: every name that a reader may know the row by, for filters.
    enum Role { SortRole = Qt::UserRole + 1, PairRole, NamesRole };

    explicit NodeTableModel(QObject *parent = nullptr);

    void setPair(OpenPairPtr pair);                   // resets; all rows pending
    void setSignal(Signal signal);                    // which of snr/sqnr is shown
    void update(const std::vector<NodeReport> &rows); // rows that changed; one dataChanged per contiguous range
    void setReport(const RunReport &report);          // a finished run: all rows and the drops
    void startRun();                                  // the drops of the run before no longer hold
    // Another run with one row per row of this pair: what the Delta column compares with. Null: nothing.
    void setBaseline(std::shared_ptr<const RunReport> baseline);

    [[nodiscard]] const OpenPairPtr &pair() const { return m_pair; }
    [[nodiscard]] Signal signal() const { return m_signal; }
    [[nodiscard]] int pairCount() const { return static_cast<int>(m_rows.size()); }
    [[nodiscard]] const NodeReport &report(PairId row) const { return m_rows[row.get()]; }
    [[nodiscard]] const AlignedPair &aligned(PairId row) const { return m_pair->alignment.pairs[row.get()]; }
    [[nodiscard]] const std::optional<dblame::Drop> &largestDrop() const { return m_largestDrop; }
    [[nodiscard]] const std::optional<dblame::Drop> &largestFlowDrop() const { return m_largestFlowDrop; }
    [[nodiscard]] QString label(PairId row) const;      // "block.conv1" or the value name
    [[nodiscard]] double shownDb(PairId row) const;     // NaN while pending or without dB
    [[nodiscard]] QString columnName(int column) const; // header text
    [[nodiscard]] QString siteText(PairId row) const;   // spec of the row's site in this run, "" when there is none

    [[nodiscard]] int rowCount(const QModelIndex &parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex &parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex &index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

Q_SIGNALS:
    void rowsChanged(int first, int last); // after dataChanged; for views that do not speak in indexes
    void dropsChanged();

private:
    [[nodiscard]] QVariant text(PairId row, int column) const;
    [[nodiscard]] QString valueName(PairId row) const;
    [[nodiscard]] QString names(PairId row) const;
    [[nodiscard]] QVariant sortKey(PairId row, int column) const;
    [[nodiscard]] const Node *node(PairId row) const; // the reference's operator, null for inputs and parameters
    [[nodiscard]] std::optional<double> delta(PairId row) const;
    void makeLabels();

    OpenPairPtr m_pair;
    std::vector<NodeReport> m_rows;
    std::vector<QString> m_labels;
    std::shared_ptr<const RunReport> m_baseline;
    Signal m_signal = Signal::Reference;
    std::optional<dblame::Drop> m_largestDrop, m_largestFlowDrop;
};

} // namespace dblame::ui

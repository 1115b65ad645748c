// SPDX-License-Identifier: GPL-3.0-or-later
//
// SNR by node: the plot with its controls. Follows the node table and the selection; on the GUI thread.
#pragma once

#include <memory>

#include <QPointer>
#include <QWidget>

#include "core/error.h"
#include "core/node_report.h"
#include "ui/node_table_model.h"
#include "ui/open_pair.h"
#include "ui/selection.h"
#include "ui/snr_series.h"

class QLabel;
class QToolButton;

namespace dblame::ui
{

class ElidingLabel;
class SnrChart;

class SnrPlotPanel : public QWidget
{
    Q_OBJECT
public:
    explicit SnrPlotPanel(QWidget *parent = nullptr);

    void setPair(OpenPairPtr pair);
    void setTable(NodeTableModel *table);    // outlives the panel or is destroyed before; not owned
    void setSelection(Selection *selection); // likewise
    // A run begins: until the table has new drops, the mark is that of the rows so far.
    void runStarted();
    // Whether F5 would do something: what an empty plot says depends on it.
    void setRunnable(bool runnable);
    // Lays an earlier run under the current one, by row; null clears.
    void setOverlay(std::shared_ptr<const RunReport> report, const QString &label);
    [[nodiscard]] Result<void> exportTo(const QString &path); // png, svg, pdf, by extension

    void setOrder(PlotOrder order);
    void setEverything(bool on); // weights and inputs too
    void setBothDrops(bool on);
    [[nodiscard]] SnrChart &chart() { return *m_chart; }
    // Reads the table now; otherwise changes are gathered until the event loop is idle.
    void refresh();

Q_SIGNALS:
    void statusText(const QString &text); // what the mouse is over; empty: nothing
    void exported(const QString &path);
    void exportFailed(const dblame::Error &error);

protected:
    void changeEvent(QEvent *event) override;

private:
    QWidget *buildControls();
    void readSoon(bool newAxes);
    void readMarks();
    void readMessage();
    void readOverlay();
    void describe();
    void step(int by);
    void askExport();
    [[nodiscard]] QString rowText(PairId row) const;
    [[nodiscard]] std::optional<Drop> shownDrop() const; // the finished run's, else that of the rows so far

    OpenPairPtr m_pair;
    QPointer<NodeTableModel> m_table;
    QPointer<Selection> m_selection;
    std::shared_ptr<const RunReport> m_overlay;
    QString m_overlayLabel;
    PlotOrder m_order = PlotOrder::Reference;
    std::optional<ModuleOrder> m_modules; // made when it is first asked for
    bool m_everything = false, m_bothDrops = true;
    bool m_running = false, m_runnable = true;
    bool m_waiting = false, m_newAxes = true; // a reading is queued; it starts with fresh axes

    SnrChart *m_chart = nullptr;
    QLabel *m_unit = nullptr;
    ElidingLabel *m_overlayText = nullptr;
    QToolButton *m_orderButtons[3] = {};
    QToolButton *m_everythingButton = nullptr, *m_bothDropsButton = nullptr;
};

} // namespace dblame::ui

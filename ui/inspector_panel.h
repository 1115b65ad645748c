// SPDX-License-Identifier: GPL-3.0-or-later
//
// Everything about the selected row: figures, histograms of both models, channels, quantizers, pairing, neighbours.
// Follows the node table and the selection; on the GUI thread.
#pragma once

#include <optional>
#include <vector>

#include <QPointer>
#include <QWidget>

#include "core/node_report.h"
#include "ui/node_table_model.h"
#include "ui/open_pair.h"
#include "ui/row_links.h"
#include "ui/selection.h"

class QLabel;
class QPushButton;
class QScrollArea;
class QToolButton;
class QVBoxLayout;

namespace dblame::ui
{

class ChannelStrip;
class FieldGrid;
class HistogramPlot;
class InspectorSection;
class LinkList;
class MetricTile;
class SiteView;

class InspectorPanel : public QWidget
{
    Q_OBJECT
public:
    explicit InspectorPanel(QWidget *parent = nullptr);

    void setPair(OpenPairPtr pair);
    void setTable(NodeTableModel *table);    // not owned
    void setSelection(Selection *selection); // not owned
    void setRunnable(bool runnable);         // whether F5 would do something
    // Exact histograms and channels of one row, which arrive after detailRequested. Shown while that row is selected
    // and its figures are still those of the detail.
    void setDetail(const NodeReport &detail);
    // The detail could not be computed: the words stand where the histogram would.
    void setDetailFailed(PairId row, const QString &why);
    // Reads the table now; otherwise changes are gathered until the event loop is idle.
    void refresh();

    [[nodiscard]] const std::vector<MetricTile *> &tiles() const { return m_tiles; }
    [[nodiscard]] HistogramPlot &histogram() { return *m_histogram; }
    [[nodiscard]] ChannelStrip &channels() { return *m_strip; }
    [[nodiscard]] const std::vector<SiteView *> &siteViews() const { return m_siteViews; }
    [[nodiscard]] LinkList &inputLinks() { return *m_inputs; }
    [[nodiscard]] LinkList &outputLinks() { return *m_outputs; }
    [[nodiscard]] FieldGrid &rowFieldGrid() { return *m_fields; }
    [[nodiscard]] QSize sizeHint() const override;

Q_SIGNALS:
    void skipLayerRequested(dblame::PairId row);
    void jumpRequested(dblame::PairId row);
    void detailRequested(dblame::PairId row);
    void exported(const QString &path); // a picture of the histogram
    void exportFailed(const dblame::Error &error);

protected:
    void changeEvent(QEvent *event) override;

private:
    static constexpr int kTileColumns = 3;

    QWidget *buildContent();
    void buildHistogram(QWidget *content, QVBoxLayout *layout);
    void buildChannels(QWidget *content, QVBoxLayout *layout);
    void buildLinks(QWidget *content, QVBoxLayout *layout);
    void buildButtons(QWidget *content, QVBoxLayout *layout);
    void readSoon();
    void showEmpty(const QString &words);
    void readHead(PairId row, const NodeReport &report);
    void readTiles(const NodeReport &report);
    void readHistogram(PairId row, const NodeReport &report);
    void readChannels(const NodeReport &report);
    void readSites(PairId row, const NodeReport &report);
    void readLinks(PairId row);
    [[nodiscard]] PairId row() const; // the selected one, if it exists
    [[nodiscard]] const NodeReport *detailFor(const NodeReport &report) const;

    OpenPairPtr m_pair;
    QPointer<NodeTableModel> m_table;
    QPointer<Selection> m_selection;
    RowLinks m_links;
    std::optional<NodeReport> m_detail;
    PairId m_waitingDetail;  // asked for, not here yet
    QString m_detailFailure; // of m_waitingDetail
    bool m_waiting = false, m_runnable = true;

    QLabel *m_empty = nullptr;
    QScrollArea *m_scroll = nullptr;
    QLabel *m_title = nullptr, *m_subtitle = nullptr, *m_state = nullptr;
    QWidget *m_tileBox = nullptr;
    std::vector<MetricTile *> m_tiles; // visible ones first
    InspectorSection *m_histogramSection = nullptr, *m_channelSection = nullptr, *m_siteSection = nullptr;
    HistogramPlot *m_histogram = nullptr;
    QToolButton *m_errorButton = nullptr, *m_logButton = nullptr, *m_sortButton = nullptr;
    QLabel *m_worst = nullptr, *m_channelLine = nullptr, *m_noSites = nullptr;
    ChannelStrip *m_strip = nullptr;
    QString m_channelWords;
    QVBoxLayout *m_siteLayout = nullptr;
    std::vector<SiteView *> m_siteViews;
    FieldGrid *m_fields = nullptr;
    LinkList *m_inputs = nullptr, *m_outputs = nullptr;
    QPushButton *m_skip = nullptr, *m_exact = nullptr;
};

} // namespace dblame::ui

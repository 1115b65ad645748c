// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <set>
#include <stop_token>

#include <QPointer>
#include <QWidget>

#include "core/edits.h"
#include "ui/graph_layout.h"
#include "ui/open_pair.h"
#include "ui/selection.h"

class QAction;
class QComboBox;
class QLabel;
class QLineEdit;
class QToolButton;

namespace dblame::ui
{

class ElidingLabel;
struct GraphHit;
class GraphLegend;
class GraphScene;
class GraphView;
class Minimap;
class NodeTableModel;

// The content of the graph dock: a row of controls, the view with its minimap, the legend.
//
// Layout: graphs of up to kDirectLayout boxes are laid out at once on the GUI thread. For larger ones, and for models
// of more than kDirectBuild operators, the panel emits layoutRequested; whoever receives it calls computeLayout on
// another thread and hands the result to setLayout (results of older requests are dropped there). With nobody connected
// all are laid out at once. GUI thread only, computeLayout excepted.
class GraphPanel : public QWidget
{
    Q_OBJECT
public:
    explicit GraphPanel(QWidget *parent = nullptr);
    ~GraphPanel() override;

    void setPair(OpenPairPtr pair); // null: nothing is open
    void setTable(NodeTableModel *table);
    void setSelection(Selection *selection);
    // What the edits switch off is dashed; what differs from `ran`, the edits of the run that is shown, is orange.
    void setPendingChanges(const EditSet &edits, const EditSet &ran);

    static constexpr std::size_t kDirectLayout = 2000;
    static constexpr std::size_t kDirectBuild = 5000; // operators of a model whose document is built at once
    static constexpr std::size_t kOpenBoxes = 1500;   // more than that, and groups start collapsed
    [[nodiscard]] static GraphLayoutResult computeLayout(const GraphLayoutRequest &request, std::stop_token stop = {});
    void setLayout(GraphLayoutResult result);

    [[nodiscard]] GraphScene *scene() const { return m_scene; }
    [[nodiscard]] GraphView *view() const { return m_view; }
    [[nodiscard]] QLineEdit *findField() const { return m_find; }
    [[nodiscard]] GraphDocumentPtr document() const { return m_document; }

    // Choices that a document of the window remembers. saveState is small JSON.
    [[nodiscard]] QByteArray saveState() const;
    void restoreState(const QByteArray &state);

public Q_SLOTS:
    void fit();
    void focusFind();
    void find(const QString &query); // as typed into the find field
    void findNext();
    void findPrevious();
    void setCollapsed(int group, bool collapsed);
    void collapseAll();
    void expandAll();
    void setNeighbourhood(bool on);

Q_SIGNALS:
    void layoutRequested(dblame::ui::GraphLayoutRequest request);
    void layoutCancelRequested();
    void siteActivated(dblame::SiteId site);       // its hexagon was clicked; the selection has followed
    void siteToggleRequested(dblame::SiteId site); // double click, Space, "Skip this quantizer"
    void skipRequested(dblame::PairId row);        // "Skip this layer": float here, or back again
    void skipModuleRequested(QString path);        // "Skip this group"
    void selectInTableRequested(dblame::PairId row);

protected:
    void changeEvent(QEvent *event) override;
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void makeControls();
    void makeShowMenu(QToolButton *button);
    void connectView();
    void rebuild(); // document and layout
    [[nodiscard]] std::size_t operatorCount() const;
    [[nodiscard]] bool somebodyLaysOut() const; // layoutRequested has a receiver
    void relayout();
    [[nodiscard]] GraphLayoutOptions layoutOptions() const;
    [[nodiscard]] const GraphDocument &shown() const; // of the layout in the scene; only while that has items
    void stopOrResume();
    void showMinimap();
    void followSize();
    void followSelection();
    void pickItem(std::int32_t item);
    void pickMark(std::int32_t mark);
    void showMenu(const GraphHit &hit, const QPoint &at);
    void itemMenu(class QMenu &menu, std::int32_t item);
    void updateSummary();
    void announce(); // what is current, to assistive technology
    void runFind();
    void showMatch(int index);

    OpenPairPtr m_pair;
    QPointer<NodeTableModel> m_table;
    QPointer<Selection> m_selection;
    GraphDocumentPtr m_document;
    GraphOptions m_options;
    GraphFlow m_flow = GraphFlow::Rows;
    std::set<std::int32_t> m_collapsed;
    EditSet m_edits, m_ran;
    std::uint64_t m_request = 0;
    double m_aspect = 0;                 // the layout was made for
    bool m_built = true;                 // m_document is that of m_pair and m_options
    bool m_laying = false;               // somebody computes the layout that was asked for
    bool m_stopped = false;              // it was cancelled: what is shown is older than the choices
    bool m_picking = false;              // the selection changes because of a click here
    std::vector<std::int32_t> m_matches; // items
    int m_match = -1;

    GraphScene *m_scene = nullptr;
    GraphView *m_view = nullptr;
    Minimap *m_minimap = nullptr;
    GraphLegend *m_legend = nullptr;
    ElidingLabel *m_summary = nullptr;
    QLabel *m_matchLabel = nullptr, *m_empty = nullptr;
    QLineEdit *m_find = nullptr;
    QComboBox *m_viewBox = nullptr, *m_flowBox = nullptr;
    QToolButton *m_stop = nullptr;
    QAction *m_showSites = nullptr, *m_showParameters = nullptr, *m_showInner = nullptr, *m_showMap = nullptr,
            *m_showNeighbours = nullptr;
};

} // namespace dblame::ui

Q_DECLARE_METATYPE(dblame::ui::GraphLayoutRequest)

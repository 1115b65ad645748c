// SPDX-License-Identifier: GPL-3.0-or-later
//
// The Layers dock: what is quantized, what is to be, and the plan of what that will change.
#pragma once

#include <optional>

#include <QWidget>

#include "core/edits.h"
#include "ui/open_pair.h"

class QLabel;
class QListWidget;
class QPushButton;
class QStackedLayout;
class QTreeView;

namespace dblame::ui
{

class ElidingLabel;
class LayersModel;
class NodeTableModel;
class Selection;
class SpecEditor;

class LayersPanel : public QWidget
{
    Q_OBJECT
public:
    explicit LayersPanel(QWidget *parent = nullptr);

    void setPair(OpenPairPtr pair);
    void setTable(NodeTableModel *table);
    void setSelection(Selection *selection);
    void setEdits(const EditSet &edits, const EditSet &ran);
    // Nothing: it is being worked out, or there is nothing to plan.
    void setPlan(const std::optional<Plan> &plan);
    void setRunnable(bool runnable);
    // Skip, Only, Reset: for the dock's title bar. Made once; the caller places it.
    [[nodiscard]] QWidget *takeControls() { return m_controls; }
    // Skips (or quantizes again) the layer that the row belongs to.
    void toggleRow(PairId row);
    void toggleSite(SiteId site);
    void togglePath(const QString &path); // a module or layer

    [[nodiscard]] QTreeView *view() const { return m_view; }
    [[nodiscard]] LayersModel *model() const { return m_model; }
    [[nodiscard]] SpecEditor *specEditor() const { return m_editor; }
    [[nodiscard]] QPushButton *runButton() const { return m_run; }
    [[nodiscard]] QString planText() const; // as it is shown, one line per entry

Q_SIGNALS:
    void editsWanted(const dblame::EditSet &edits, const QString &what);
    void runWanted();

protected:
    void changeEvent(QEvent *event) override;

private:
    QWidget *buildControls();
    QWidget *buildSpec();
    QWidget *buildPlan();
    void takeCurrent();
    void followSelection();
    void showMenu(const QPoint &at);
    void toggleCurrent();
    void keepOnlyCurrent();
    void showSpec();
    void takeSpec();
    void forgetSpec();
    [[nodiscard]] SiteId specSite() const; // the site whose spec the fields show, invalid when none can change
    void fillPlan();

    LayersModel *m_model;
    QWidget *m_controls = nullptr;
    QTreeView *m_view;
    QStackedLayout *m_stack;
    QPushButton *m_skip = nullptr, *m_only = nullptr, *m_reset = nullptr;
    QWidget *m_spec = nullptr;
    QLabel *m_specName = nullptr;
    SpecEditor *m_editor = nullptr;
    QPushButton *m_asOpened = nullptr;
    QLabel *m_planCount = nullptr;
    QListWidget *m_planList = nullptr;
    QPushButton *m_run = nullptr;
    ElidingLabel *m_reruns = nullptr;
    OpenPairPtr m_pair;
    Selection *m_selection = nullptr;
    EditSet m_edits, m_ran;
    std::optional<Plan> m_plan;
    bool m_runnable = false;
};

} // namespace dblame::ui

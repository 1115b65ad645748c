// SPDX-License-Identifier: GPL-3.0-or-later
//
// The window: toolbar, docks, menus, and the wiring between session, runner and panels. All work is on the Runner's
// thread; nothing here waits for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <QMainWindow>
#include <QPointer>
#include <QStringList>

#include "ui/banner.h"
#include "ui/recipe_file.h"
#include "ui/runner.h"
#include "ui/session.h"

class QAction;
class QComboBox;
class QDockWidget;
class QLabel;
class QLineEdit;
class QMenu;
class QProgressBar;
class QPushButton;

namespace dblame::ui
{

class AlignmentPanel;
class ElidingButton;
class ElidingLabel;
class GraphPanel;
class InspectorPanel;
class LayersPanel;
class LogPanel;
class NodesPanel;
class NodeTableModel;
class RecipeDialog;
class RecipePanel;
class RunsPanel;
class Selection;
class SnrPlotPanel;

class MainWindow : public QMainWindow
{
    Q_OBJECT
public:
    struct Options {
        EngineSource engine;       // called on the engine thread
        bool keepsSettings = true; // geometry, recent files, calibrations; asks before unsaved changes are lost
    };
    explicit MainWindow(Options options, QWidget *parent = nullptr);
    ~MainWindow() override;

    // Opens what is given and keeps the rest as it is; a document or a folder replaces everything.
    // `runWhenOpen`: starts the run as soon as the pair is there. `inputs`, if any, win over those of a document or
    // a folder.
    void openFiles(const QStringList &paths, bool runWhenOpen = false, const QStringList &inputs = {});
    void openPair(const QString &reference, const QString &candidate, const QStringList &inputs, bool runWhenOpen);
    void openDocument(const QString &path, bool runWhenOpen = false, const QStringList &inputs = {});
    // Makes the candidate of the reference that is open (or being opened) by a recipe.
    void quantize(RecipeRequest recipe, bool runWhenOpen);
    // Opens the reference and makes its candidate, in one step. Without `inputs`: the model's sample inputs.
    void openAndQuantize(const QString &reference, RecipeRequest recipe, const QStringList &inputs, bool runWhenOpen);
    [[nodiscard]] bool saveDocumentAs(const QString &path);
    // Format by extension: json, csv, html.
    [[nodiscard]] bool exportReportTo(const QString &path);
    // Says so and does nothing where the run that is shown is already what would come of it.
    void run();
    void stop();
    // Opens what is open again, as it is on disk now; edits are kept by the ids of their sites.
    void reload();
    // "light", "dark", or "" as the desktop; what was chosen in an earlier session counts only for "".
    void useTheme(const QString &name);
    // By value name, node name or layer of the reference; false when nothing is called that.
    bool selectNode(const QString &name);

    // Asks for a recipe; does not wait for the answer. The dialog that is open already comes to the front.
    void chooseRecipe();
    // The recipe of the candidate that is open. A failure stands in a banner.
    [[nodiscard]] bool exportRecipeTo(const QString &path, RecipeFormat format);

    [[nodiscard]] Session &session() { return *m_session; }
    [[nodiscard]] Runner &runner() { return *m_runner; }
    [[nodiscard]] BannerArea &banners() { return *m_banners; }
    [[nodiscard]] NodeTableModel &table() { return *m_table; }
    [[nodiscard]] Selection &selection() { return *m_selection; }
    [[nodiscard]] LayersPanel &layers() { return *m_layers; }
    [[nodiscard]] NodesPanel &nodes() { return *m_nodes; }
    [[nodiscard]] AlignmentPanel &alignment() { return *m_alignment; }
    [[nodiscard]] RunsPanel &runs() { return *m_runs; }
    [[nodiscard]] RecipePanel &recipe() { return *m_recipe; }
    [[nodiscard]] LogPanel &log() { return *m_log; }
    [[nodiscard]] GraphPanel &graph() { return *m_graph; }
    [[nodiscard]] QString statusText() const; // the status bar's three parts
    [[nodiscard]] QString progressText() const;
    [[nodiscard]] const std::optional<Error> &lastError() const { return m_lastError; }

Q_SIGNALS:
    // Nothing runs or waits any more, and everything that came back is on show.
    void settled();

protected:
    void closeEvent(QCloseEvent *event) override;
    void dragEnterEvent(QDragEnterEvent *event) override;
    void dropEvent(QDropEvent *event) override;

private:
    // main_window.cpp
    void makeDocks();
    QDockWidget *addDock(const QString &title, QWidget *content, Qt::DockWidgetArea area, QWidget *inTitle = nullptr);
    void showTitleBars();
    void connectPanels();
    void connectGraph();
    void connectSession();
    void restoreSettings();
    void saveSettings();
    void chooseTheme(const QString &name);
    // main_window_actions.cpp
    void makeToolBar();
    void makeMenus();
    void makeFileMenu();
    void makeViewMenu();
    void makeStatusBar();
    void fillRecentMenu();
    void showShortcuts();
    void showAbout();
    void skipSelected();
    void copySelected();
    // main_window_files.cpp
    void requestOpen(OpenRequest request, bool runWhenOpen);
    [[nodiscard]] OpenRequest wantedRequest() const; // what is being opened, else what is open
    void chooseReference();
    void chooseCandidate();
    void chooseInputs();
    void chooseFolder();
    void chooseDocument();
    void saveDocument();
    void exportReport();
    void exportPlot();
    void exportRecipe();
    void takeExported(const QString &path);
    void takeExportFailure(const Error &error);
    bool mayLoseChanges();
    void remember(const QString &entry);
    void showFileNames();
    void showModified();
    // main_window_recipe.cpp
    void showNoReference();
    void takeEdits(); // the changes to layers go into the recipe
    void measureParts();
    void takeParts(const OutputParts &parts);
    void takePartsFailure(const Error &error);
    // main_window_run.cpp
    void connectRunner();
    void takeOpened(const Opened &opened);
    void takeDocument();
    void logNotes(const OpenPair &pair) const;
    void showNotes(const OpenPair &pair);
    void offerInputs(const Error &error);
    void takeOpenFailure(const Error &error);
    void takeFinished(const std::shared_ptr<const RunReport> &report, const EditSet &edits);
    void takeRunFailure(const Error &error);
    [[nodiscard]] RunOptions runOptions() const;
    void say(const QString &progress);
    // main_window_show.cpp
    void showPair();
    void showChanges();
    void showEdits();
    void showShownRun();
    void showActivity();
    void showStatus();
    [[nodiscard]] EditSet editsOfShownRun() const;

    static constexpr int kProgressSteps = 1000;

    Options m_options;
    Session *m_session;
    NodeTableModel *m_table;
    Selection *m_selection;

    LayersPanel *m_layers = nullptr;
    GraphPanel *m_graph = nullptr;
    SnrPlotPanel *m_plot = nullptr;
    NodesPanel *m_nodes = nullptr;
    AlignmentPanel *m_alignment = nullptr;
    RunsPanel *m_runs = nullptr;
    RecipePanel *m_recipe = nullptr;
    LogPanel *m_log = nullptr;
    InspectorPanel *m_inspector = nullptr;
    QDockWidget *m_layersDock = nullptr, *m_plotDock = nullptr, *m_nodesDock = nullptr, *m_alignmentDock = nullptr,
                *m_runsDock = nullptr, *m_recipeDock = nullptr, *m_logDock = nullptr, *m_inspectorDock = nullptr;
    struct Dock {
        QDockWidget *dock;
        QWidget *bar, *noBar; // its title; what stands there while a tab says the title
    };
    std::vector<Dock> m_docks;

    BannerArea *m_banners = nullptr;
    ElidingButton *m_referenceButton = nullptr, *m_candidateButton = nullptr, *m_inputsButton = nullptr;
    QPushButton *m_runButton = nullptr, *m_stopButton = nullptr;
    QProgressBar *m_progress = nullptr;
    ElidingLabel *m_progressText = nullptr;
    QComboBox *m_signal = nullptr;
    QLineEdit *m_find = nullptr;
    QPushButton *m_counts = nullptr;
    QLabel *m_outcome = nullptr, *m_machine = nullptr;
    QAction *m_runAction = nullptr, *m_stopAction = nullptr, *m_saveAction = nullptr, *m_exportReport = nullptr,
            *m_exportPlot = nullptr, *m_exportRecipe = nullptr, *m_skip = nullptr, *m_reload = nullptr;
    QMenu *m_recent = nullptr;
    QPointer<RecipeDialog> m_recipeDialog; // while it is open

    QString m_document;                                            // path, empty: none
    std::optional<std::pair<QString, Document>> m_openingDocument; // takes effect when its models are open
    QString m_theme;
    std::optional<OpenRequest> m_opening; // asked for, not answered
    bool m_runWhenOpen = false;
    std::optional<EditSet> m_editsLeft; // by the recipe that is being opened, which took the others in
    std::optional<EngineInfo> m_engine;
    std::optional<Error> m_lastError; // of the last job that failed; gone when one succeeds
    Runner *m_runner = nullptr;       // last made, first destroyed
};

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/main_window.h"

#include <QApplication>
#include <QComboBox>
#include <QDockWidget>
#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QSignalBlocker>
#include <QTableView>
#include <QToolBar>
#include <QUndoStack>

#include "core/user_folders.h"
#include "ui/alignment_panel.h"
#include "ui/edits_text.h"
#include "ui/eliding.h"
#include "ui/graph_panel.h"
#include "ui/graph_view.h"
#include "ui/inspector_panel.h"
#include "ui/layers_panel.h"
#include "ui/log_panel.h"
#include "ui/node_table_model.h"
#include "ui/nodes_panel.h"
#include "ui/recipe_panel.h"
#include "ui/runs_panel.h"
#include "ui/selection.h"
#include "ui/snr_plot_panel.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

// A dock's title with room for a few controls at its right. QDockWidget drags by it: it lets the mouse through.
QWidget *dockTitle(const QString &text, QWidget *controls)
{
    auto *title = new QFrame;
    title->setProperty("role", "panel");
    auto *label = new QLabel(text);
    label->setProperty("role", "title");
    auto *layout = new QHBoxLayout(title);
    layout->setContentsMargins(14, 4, 8, 4);
    layout->addWidget(label);
    layout->addStretch();
    if (controls != nullptr)
        layout->addWidget(controls);
    title->setMinimumHeight(32);
    return title;
}

// Another version's columns are another table.
QString columnsKey()
{
    return QStringLiteral("window/columns-%1").arg(int(NodeTableModel::ColumnCount));
}

} // namespace

MainWindow::MainWindow(Options options, QWidget *parent)
    : QMainWindow(parent), m_options(std::move(options)), m_session(new Session(this)),
      m_table(new NodeTableModel(this)), m_selection(new Selection(this))
{
    setObjectName(QStringLiteral("dblame"));
    setAcceptDrops(true);
    setDockNestingEnabled(true);
    resize(1440, 900);
    makeToolBar();
    makeDocks();
    makeStatusBar();
    makeMenus();
    connectPanels();
    connectGraph();
    connectSession();
    m_runner = new Runner(m_options.engine, this, m_options.keepsSettings ? calibrationCacheFolder() : std::string());
    connectRunner();
    showPair();
    showActivity();
    m_graph->view()->setFocus();
    if (m_options.keepsSettings)
        restoreSettings();
}

// The engine thread goes first: nothing is delivered to panels that are being destroyed. Then the panels, which look
// at table, selection and session; those go with the rest.
MainWindow::~MainWindow()
{
    delete m_runner;
    delete takeCentralWidget();
    for (const Dock &each : m_docks)
        delete each.dock;
}

QDockWidget *MainWindow::addDock(const QString &title, QWidget *content, Qt::DockWidgetArea area, QWidget *inTitle)
{
    auto *dock = new QDockWidget(title, this);
    dock->setObjectName(title);
    dock->setWidget(content);
    dock->setFeatures(QDockWidget::DockWidgetMovable | QDockWidget::DockWidgetFloatable |
                      QDockWidget::DockWidgetClosable);
    auto *bar = dockTitle(title, inTitle);
    auto *noBar = new QWidget(dock);
    noBar->hide();
    dock->setTitleBarWidget(bar);
    addDockWidget(area, dock);
    connect(dock, &QDockWidget::dockLocationChanged, this, &MainWindow::showTitleBars);
    connect(dock, &QDockWidget::topLevelChanged, this, &MainWindow::showTitleBars);
    connect(dock, &QDockWidget::visibilityChanged, this, &MainWindow::showTitleBars);
    m_docks.push_back({dock, bar, noBar});
    return dock;
}

// In a group the tab is the title.
void MainWindow::showTitleBars()
{
    for (const Dock &each : m_docks) {
        bool tabbed = false;
        for (const QDockWidget *other : tabifiedDockWidgets(each.dock))
            tabbed = tabbed || !other->isHidden();
        QWidget *wanted = tabbed && !each.dock->isFloating() ? each.noBar : each.bar;
        if (each.dock->titleBarWidget() != wanted)
            each.dock->setTitleBarWidget(wanted);
    }
}

void MainWindow::makeDocks()
{
    setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
    setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);

    m_graph = new GraphPanel;
    m_graph->findField()->hide(); // the toolbar's field finds in graph and table at once
    setCentralWidget(m_graph);
    m_layers = new LayersPanel;
    m_plot = new SnrPlotPanel;
    m_nodes = new NodesPanel;
    m_alignment = new AlignmentPanel;
    m_runs = new RunsPanel(*m_session);
    m_recipe = new RecipePanel;
    m_log = new LogPanel;
    m_inspector = new InspectorPanel;
    m_layersDock = addDock(tr("Layers"), m_layers, Qt::LeftDockWidgetArea, m_layers->takeControls());
    m_inspectorDock = addDock(tr("Inspector"), m_inspector, Qt::RightDockWidgetArea);
    m_plotDock = addDock(tr("SNR by node"), m_plot, Qt::BottomDockWidgetArea);
    m_nodesDock = addDock(tr("Nodes"), m_nodes, Qt::BottomDockWidgetArea);
    m_alignmentDock = addDock(tr("Alignment"), m_alignment, Qt::BottomDockWidgetArea);
    m_runsDock = addDock(tr("Runs"), m_runs, Qt::BottomDockWidgetArea);
    m_recipeDock = addDock(tr("Recipe"), m_recipe, Qt::BottomDockWidgetArea);
    m_logDock = addDock(tr("Log"), m_log, Qt::BottomDockWidgetArea);
    for (QDockWidget *dock : {m_nodesDock, m_alignmentDock, m_runsDock, m_recipeDock, m_logDock})
        tabifyDockWidget(m_plotDock, dock);
    m_plotDock->raise();
    resizeDocks({m_layersDock, m_inspectorDock}, {292, 330}, Qt::Horizontal);
    resizeDocks({m_plotDock}, {340}, Qt::Vertical);
    showTitleBars();
}

void MainWindow::connectPanels()
{
    m_plot->setTable(m_table);
    m_plot->setSelection(m_selection);
    m_nodes->setTable(m_table);
    m_nodes->setSelection(m_selection);
    m_layers->setTable(m_table);
    m_layers->setSelection(m_selection);
    m_alignment->setTable(m_table);
    m_alignment->setSelection(m_selection);
    m_recipe->setSelection(m_selection);
    m_inspector->setTable(m_table);
    m_inspector->setSelection(m_selection);

    connect(m_layers, &LayersPanel::editsWanted, m_session, &Session::changeEdits);
    connect(m_layers, &LayersPanel::runWanted, this, &MainWindow::run);
    connect(m_alignment, &AlignmentPanel::handWanted, m_session, &Session::changeHand);
    connect(m_runs, &RunsPanel::useEditsWanted, this, [this](int run) {
        const RunRecord &record = m_session->runs()[static_cast<std::size_t>(run)];
        m_session->changeEdits(resolveEdits(nameEdits(record.edits, *record.pair), *m_session->pair(), nullptr),
                               tr("changes of run %1").arg(record.number));
    });
    connect(m_recipe, &RecipePanel::recipeWanted, this, &MainWindow::chooseRecipe);
    connect(m_recipe, &RecipePanel::exportWanted, this, &MainWindow::exportRecipe);
    connect(m_recipe, &RecipePanel::takeEditsWanted, this, &MainWindow::takeEdits);
    connect(m_recipe, &RecipePanel::measureWanted, this, &MainWindow::measureParts);
    connect(m_recipe, &RecipePanel::stopMeasuringWanted, this, [this] { m_runner->stopMeasuring(); });
    connect(m_inspector, &InspectorPanel::skipLayerRequested, m_layers, &LayersPanel::toggleRow);
    connect(m_inspector, &InspectorPanel::jumpRequested, m_selection, &Selection::setCurrent);
    connect(m_inspector, &InspectorPanel::detailRequested, this, [this](PairId row) { m_runner->detail(row); });
    connect(m_plot, &SnrPlotPanel::exported, this, &MainWindow::takeExported);
    connect(m_plot, &SnrPlotPanel::exportFailed, this, &MainWindow::takeExportFailure);
    connect(m_inspector, &InspectorPanel::exported, this, &MainWindow::takeExported);
    connect(m_inspector, &InspectorPanel::exportFailed, this, &MainWindow::takeExportFailure);
    connect(m_nodes, &NodesPanel::filterChanged, m_find, &QLineEdit::setText);
    connect(m_find, &QLineEdit::textChanged, m_nodes, &NodesPanel::setFilter);
    connect(m_find, &QLineEdit::textChanged, m_graph, &GraphPanel::find);
    connect(m_find, &QLineEdit::returnPressed, this, [this] { m_nodes->selectNext(true); });
    connect(m_selection, &Selection::currentChanged, this, [this](PairId row) { m_skip->setEnabled(row.valid()); });
}

void MainWindow::connectGraph()
{
    m_graph->setTable(m_table);
    m_graph->setSelection(m_selection);
    connect(m_graph, &GraphPanel::skipRequested, m_layers, &LayersPanel::toggleRow);
    connect(m_graph, &GraphPanel::siteToggleRequested, m_layers, &LayersPanel::toggleSite);
    connect(m_graph, &GraphPanel::skipModuleRequested, m_layers, &LayersPanel::togglePath);
    connect(m_graph, &GraphPanel::selectInTableRequested, this, [this](PairId row) {
        m_nodesDock->show();
        m_nodesDock->raise();
        m_selection->setCurrent(row);
        m_nodes->view()->setFocus();
    });
    // Large graphs are laid out on the engine thread.
    connect(m_graph, &GraphPanel::layoutRequested, this, [this](const GraphLayoutRequest &request) {
        m_runner->layout([this, request](std::stop_token stop) -> Runner::Delivery {
            auto result = std::make_shared<GraphLayoutResult>(GraphPanel::computeLayout(request, stop));
            return [this, result] { m_graph->setLayout(std::move(*result)); };
        });
    });
    connect(m_graph, &GraphPanel::layoutCancelRequested, this, [this] {
        if (m_runner->activity() == Runner::Layout)
            m_runner->cancel();
    });
}

void MainWindow::connectSession()
{
    connect(m_session, &Session::pairChanged, this, &MainWindow::showPair);
    connect(m_session, &Session::editsChanged, this, &MainWindow::showEdits);
    connect(m_session, &Session::planChanged, this, [this] { m_layers->setPlan(m_session->plan()); });
    connect(m_session, &Session::shownRunChanged, this, &MainWindow::showShownRun);
    connect(m_session, &Session::signalChanged, this, [this] {
        const QSignalBlocker quiet(m_signal);
        m_signal->setCurrentIndex(m_session->signal() == Signal::Candidate ? 1 : 0);
        m_table->setSignal(m_session->signal());
        showShownRun();
    });
    connect(m_session, &Session::handChanged, this, [this] {
        OpenRequest request = wantedRequest();
        request.hand = m_session->hand();
        requestOpen(request, false);
    });
    connect(m_session, &Session::modifiedChanged, this, &MainWindow::showModified);
    connect(m_session, &Session::runsChanged, this, [this] {
        const auto count = m_session->runs().size();
        m_runsDock->setWindowTitle(count == 0 ? tr("Runs") : tr("Runs %1").arg(count));
    });
}

void MainWindow::useTheme(const QString &name)
{
    if (name.isEmpty() && !m_theme.isEmpty())
        return; // restored
    chooseTheme(name);
}

void MainWindow::chooseTheme(const QString &name)
{
    m_theme = name;
    Theme::apply(*qApp, name);
}

void MainWindow::restoreSettings()
{
    QSettings settings;
    restoreGeometry(settings.value("window/geometry").toByteArray());
    restoreState(settings.value("window/docks").toByteArray());
    m_nodes->restoreColumns(settings.value(columnsKey()).toByteArray());
    if (m_theme.isEmpty() && settings.contains("window/theme"))
        chooseTheme(settings.value("window/theme").toString());
    showTitleBars();
}

void MainWindow::saveSettings()
{
    QSettings settings;
    settings.setValue("window/geometry", saveGeometry());
    settings.setValue("window/docks", saveState());
    settings.setValue(columnsKey(), m_nodes->columnState());
    settings.setValue("window/theme", m_theme);
}

QString MainWindow::statusText() const
{
    return m_counts->text() + QStringLiteral(" | ") + m_outcome->text() + QStringLiteral(" | ") + m_machine->text();
}

QString MainWindow::progressText() const
{
    return m_progressText->text();
}

} // namespace dblame::ui

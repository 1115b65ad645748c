// SPDX-License-Identifier: GPL-3.0-or-later
//
// Toolbar, menus and status bar of the main window.
#include "ui/main_window.h"

#include <QAction>
#include <QActionGroup>
#include <QApplication>
#include <QComboBox>
#include <QDockWidget>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QMessageBox>
#include <QProgressBar>
#include <QPushButton>
#include <QSettings>
#include <QStatusBar>
#include <QTableView>
#include <QToolBar>
#include <QUndoStack>

#include "core/report.h"
#include "ui/alignment_panel.h"
#include "ui/eliding.h"
#include "ui/graph_panel.h"
#include "ui/layers_panel.h"
#include "ui/node_table_model.h"
#include "ui/nodes_panel.h"
#include "ui/recent_entry.h"
#include "ui/selection.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

QAction *addEntry(QMenu *menu, const QString &text, const QKeySequence &keys, std::function<void()> act)
{
    QAction *action = menu->addAction(text);
    action->setShortcut(keys);
    QObject::connect(action, &QAction::triggered, menu, std::move(act));
    return action;
}

} // namespace

void MainWindow::makeToolBar()
{
    auto *bar = addToolBar(tr("Main"));
    bar->setObjectName(QStringLiteral("main-bar"));
    bar->setMovable(false);
    bar->toggleViewAction()->setEnabled(false);
    const auto place = [&](auto *made, const QString &tip, auto act) {
        made->setToolTip(tip);
        connect(made, &QPushButton::clicked, this, act);
        bar->addWidget(made);
        return made;
    };
    // File names give way before anything else does.
    m_referenceButton =
        place(new ElidingButton(tr("Reference…")), tr("Open the reference model"), &MainWindow::chooseReference);
    m_candidateButton = new ElidingButton(tr("Candidate…"));
    m_candidateButton->setToolTip(tr("Open the candidate model, or make it of the reference"));
    bar->addWidget(m_candidateButton);
    auto *candidate = new QMenu(m_candidateButton);
    addEntry(candidate, tr("Open a &candidate…"), {}, [this] { chooseCandidate(); });
    connect(candidate->addAction(tr("&Quantize the reference…")), &QAction::triggered, this, &MainWindow::chooseRecipe);
    m_candidateButton->setMenu(candidate);
    m_inputsButton = place(new ElidingButton(tr("Inputs…")), tr("Open the inputs that both models run on"),
                           &MainWindow::chooseInputs);
    m_runButton = place(new QPushButton(tr("Run F5")), tr("Run both models and compare every node"), &MainWindow::run);
    m_runButton->setProperty("role", "primary");
    m_runButton->setAccessibleName(tr("Run"));
    m_stopButton =
        place(new QPushButton(tr("Stop")), tr("Stop what is running, at the next operator (Esc)"), &MainWindow::stop);
    m_progress = new QProgressBar;
    m_progress->setTextVisible(false);
    m_progress->setMinimumWidth(60);
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    policy.setRetainSizeWhenHidden(true); // the fields beside it stay where they are
    m_progress->setSizePolicy(policy);
    m_progress->setAccessibleName(tr("Progress"));
    m_progressText = new ElidingLabel;
    m_progressText->setProperty("role", "mute");
    auto *progress = new QWidget;
    auto *progressLayout = new QHBoxLayout(progress);
    progressLayout->setContentsMargins(6, 0, 6, 0);
    progressLayout->addWidget(m_progress, 1);
    progressLayout->addWidget(m_progressText);
    progress->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    bar->addWidget(progress);
    m_signal = new QComboBox;
    m_signal->setObjectName(QStringLiteral("signal"));
    m_signal->addItems({tr("signal: reference"), tr("signal: candidate")});
    m_signal->setAccessibleName(tr("Which model is the signal"));
    m_signal->setToolTip(
        tr("SNR = energy of the reference over energy of the error; SQNR takes the candidate's energy, "
           "as torchao's numeric debugger does"));
    connect(m_signal, &QComboBox::activated, this,
            [this](int index) { m_session->setSignal(index == 1 ? Signal::Candidate : Signal::Reference); });
    bar->addWidget(m_signal);
    m_find = new QLineEdit;
    m_find->setObjectName(QStringLiteral("find"));
    m_find->setPlaceholderText(tr("Find name, op, snr<20"));
    m_find->setAccessibleName(tr("Find nodes"));
    m_find->setToolTip(tr("Words and comparisons; Enter goes to the next match (Ctrl+F)"));
    m_find->setClearButtonEnabled(true);
    m_find->setMinimumWidth(140);
    m_find->setMaximumWidth(176);
    bar->addWidget(m_find);

    addToolBarBreak();
    auto *messages = addToolBar(tr("Messages"));
    messages->setObjectName(QStringLiteral("messages-bar"));
    messages->setMovable(false);
    messages->toggleViewAction()->setEnabled(false);
    m_banners = new BannerArea;
    m_banners->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    messages->addWidget(m_banners);
    messages->hide();
    connect(m_banners, &BannerArea::emptyChanged, messages, &QWidget::setHidden);
}

void MainWindow::makeFileMenu()
{
    QMenu *file = menuBar()->addMenu(tr("&File"));
    addEntry(file, tr("Open &reference…"), QKeySequence::Open, [this] { chooseReference(); });
    addEntry(file, tr("Open &candidate…"), QKeySequence(tr("Ctrl+Shift+O")), [this] { chooseCandidate(); });
    addEntry(file, tr("&Quantize the reference…"), QKeySequence(tr("Ctrl+Shift+R")), [this] { chooseRecipe(); });
    addEntry(file, tr("Open &inputs…"), QKeySequence(tr("Ctrl+I")), [this] { chooseInputs(); });
    addEntry(file, tr("Open pair &folder…"), {}, [this] { chooseFolder(); });
    addEntry(file, tr("Open &document…"), {}, [this] { chooseDocument(); });
    m_reload = addEntry(file, tr("Re&load"), QKeySequence(tr("Ctrl+R")), [this] { reload(); });
    m_reload->setToolTip(tr("Open the same files again, as they are now"));
    m_recent = file->addMenu(tr("R&ecent"));
    connect(m_recent, &QMenu::aboutToShow, this, &MainWindow::fillRecentMenu);
    file->addSeparator();
    m_saveAction = addEntry(file, tr("&Save document"), QKeySequence::Save, [this] { saveDocument(); });
    m_exportReport = addEntry(file, tr("E&xport report…"), QKeySequence(tr("Ctrl+E")), [this] { exportReport(); });
    m_exportPlot = addEntry(file, tr("Export &plot…"), {}, [this] { exportPlot(); });
    m_exportRecipe = addEntry(file, tr("Export recipe…"), {}, [this] { exportRecipe(); });
    file->addSeparator();
    addEntry(file, tr("Qui&t"), QKeySequence::Quit, [this] { close(); });
}

void MainWindow::makeViewMenu()
{
    QMenu *view = menuBar()->addMenu(tr("&View"));
    int number = 1;
    for (const Dock &each : m_docks) {
        QDockWidget *dock = each.dock;
        addEntry(view, tr("Go to %1").arg(dock->windowTitle()), QKeySequence(tr("Ctrl+%1").arg(number++)), [dock] {
            dock->show();
            dock->raise();
            if (QWidget *first = dock->widget()->nextInFocusChain())
                first->setFocus(Qt::ShortcutFocusReason);
        });
    }
    QMenu *shown = view->addMenu(tr("&Docks"));
    for (const Dock &each : m_docks)
        shown->addAction(each.dock->toggleViewAction());
    view->addSeparator();
    QMenu *theme = view->addMenu(tr("&Theme"));
    auto *group = new QActionGroup(this);
    const auto addTheme = [&](const QString &text, const QString &name) {
        QAction *action = addEntry(theme, text, {}, [this, name] { chooseTheme(name); });
        action->setCheckable(true);
        action->setChecked(m_theme == name);
        group->addAction(action);
    };
    addTheme(tr("As the desktop"), QString());
    addTheme(tr("Light"), QStringLiteral("light"));
    addTheme(tr("Dark"), QStringLiteral("dark"));
    QMenu *graph = view->addMenu(tr("&Graph"));
    addEntry(graph, tr("Fit into view"), QKeySequence(tr("Ctrl+0")), [this] { m_graph->fit(); });
    addEntry(graph, tr("Collapse all groups"), {}, [this] { m_graph->collapseAll(); });
    addEntry(graph, tr("Expand all groups"), {}, [this] { m_graph->expandAll(); });
    addEntry(view, tr("&Find"), QKeySequence::Find, [this] {
        m_find->setFocus(Qt::ShortcutFocusReason);
        m_find->selectAll();
    });
    addEntry(view, tr("Next match"), QKeySequence::FindNext, [this] { m_nodes->selectNext(true); });
    addEntry(view, tr("Previous match"), QKeySequence::FindPrevious, [this] { m_nodes->selectNext(false); });
    addEntry(view, tr("Largest &drop"), QKeySequence(tr("Ctrl+L")), [this] {
        if (m_table->largestDrop())
            m_selection->setCurrent(m_table->largestDrop()->row);
    });
}

void MainWindow::makeMenus()
{
    makeFileMenu();
    QMenu *edit = menuBar()->addMenu(tr("&Edit"));
    QAction *undo = m_session->undoStack()->createUndoAction(this, tr("&Undo"));
    undo->setShortcut(QKeySequence::Undo);
    QAction *redo = m_session->undoStack()->createRedoAction(this, tr("&Redo"));
    redo->setShortcuts({QKeySequence(tr("Ctrl+Shift+Z")), QKeySequence(tr("Ctrl+Y"))}); // on every desktop
    edit->addActions({undo, redo});
    edit->addSeparator();
    m_skip = addEntry(edit, tr("&Skip the selected layer, or quantize it again"), QKeySequence(tr("Ctrl+K")),
                      [this] { skipSelected(); });
    m_skip->setEnabled(false);
    addEntry(edit, tr("Reset &all layers"), {}, [this] { m_session->changeEdits({}, tr("reset all layers")); });
    edit->addSeparator();
    addEntry(edit, tr("&Copy nodes as table"), QKeySequence(tr("Ctrl+Shift+C")), [this] { copySelected(); });

    makeViewMenu();
    QMenu *runMenu = menuBar()->addMenu(tr("&Run"));
    m_runAction = addEntry(runMenu, tr("&Run"), QKeySequence(tr("F5")), [this] { run(); });
    m_stopAction = addEntry(runMenu, tr("&Stop"), QKeySequence(tr("Esc")), [this] { stop(); });
    runMenu->addSeparator();
    addEntry(runMenu, tr("&Forget all runs"), {}, [this] { m_session->removeRuns(); });

    QMenu *help = menuBar()->addMenu(tr("&Help"));
    addEntry(help, tr("&Keyboard shortcuts"), QKeySequence::HelpContents, [this] { showShortcuts(); });
    addEntry(help, tr("&About dBlame"), {}, [this] { showAbout(); });
}

void MainWindow::makeStatusBar()
{
    m_counts = new QPushButton;
    m_counts->setProperty("role", "flat");
    m_counts->setToolTip(tr("Show the alignment"));
    connect(m_counts, &QPushButton::clicked, this, [this] {
        m_alignmentDock->show();
        m_alignmentDock->raise();
        m_alignment->view()->setFocus();
    });
    m_outcome = new QLabel;
    m_machine = new QLabel;
    m_machine->setProperty("role", "mute");
    statusBar()->setSizeGripEnabled(false);
    statusBar()->addWidget(m_counts);
    statusBar()->addWidget(m_outcome, 1);
    statusBar()->addPermanentWidget(m_machine);
}

void MainWindow::fillRecentMenu()
{
    m_recent->clear();
    if (!m_options.keepsSettings)
        return;
    const QStringList entries = QSettings().value("recent").toStringList();
    for (const QString &text : entries) {
        auto entry = readRecentEntry(text);
        if (!entry)
            continue; // written by another version
        QAction *action = m_recent->addAction(entry->title);
        connect(action, &QAction::triggered, this, [this, entry = std::move(*entry)] {
            if (!mayLoseChanges())
                return;
            if (!entry.document.isEmpty())
                openDocument(entry.document);
            else
                requestOpen(entry.request, false);
        });
    }
    if (entries.isEmpty())
        m_recent->addAction(tr("Nothing yet"))->setEnabled(false);
    else
        connect(m_recent->addAction(tr("Forget these")), &QAction::triggered, this,
                [] { QSettings().remove("recent"); });
}

void MainWindow::skipSelected()
{
    if (m_selection->current().valid())
        m_layers->toggleRow(m_selection->current());
}

void MainWindow::copySelected()
{
    m_nodes->copy();
}

void MainWindow::showShortcuts()
{
    QString rows;
    for (const QAction *menu : menuBar()->actions())
        for (const QAction *action : menu->menu()->actions())
            if (!action->shortcut().isEmpty())
                rows += QStringLiteral("<tr><td>%1&nbsp;&nbsp;&nbsp;</td><td>%2</td></tr>")
                            .arg(action->shortcut().toString(QKeySequence::NativeText).toHtmlEscaped(),
                                 action->text().remove(QLatin1Char('&')).toHtmlEscaped());
    rows += tr("<tr><td>Space&nbsp;&nbsp;&nbsp;</td><td>In Layers: press the box of the current line</td></tr>"
               "<tr><td>Ctrl+C&nbsp;&nbsp;&nbsp;</td><td>In Nodes: copy the selected rows</td></tr>");
    auto *box = new QMessageBox(QMessageBox::NoIcon, tr("Keyboard shortcuts"),
                                QStringLiteral("<table>%1</table>").arg(rows), QMessageBox::Close, this);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
}

void MainWindow::showAbout()
{
    const QString engine =
        m_engine ? tr("LibTorch %1, %2")
                       .arg(QString::fromStdString(m_engine->libtorch), QString::fromStdString(m_engine->cpu))
                 : tr("LibTorch is not loaded");
    const QString text =
        tr("<h3>dBlame %1</h3><p>Finds the layer to blame for the decibels that quantization costs.</p>"
           "<p>%2 · Qt %3</p>"
           "<p>dBlame is free software under the GNU General Public License, version 3 or later. It stands on LibTorch "
           "(BSD-3-Clause), Qt (LGPL-3), QCustomPlot (GPL-3), spdlog (MIT), fmt (MIT), JSON for Modern C++ (MIT), "
           "CLI11 (BSD-3-Clause), expected (CC0), zlib and OpenSSL (Apache-2.0).</p>")
            .arg(QString::fromLatin1(dblameVersion()), engine, QString::fromLatin1(qVersion()));
    auto *box = new QMessageBox(QMessageBox::NoIcon, tr("About dBlame"), text, QMessageBox::Close, this);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
}

} // namespace dblame::ui

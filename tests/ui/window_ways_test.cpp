// SPDX-License-Identifier: GPL-3.0-or-later
//
// Ways through the window that go beside the main road: files by dialog, by mouse and anew from disk, pictures,
// groups, runs without an effect. On the fake engine, with real events.
#include <functional>

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QDropEvent>
#include <QFile>
#include <QFileDialog>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QMimeData>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <QTreeView>
#include <QUndoStack>

#include <gtest/gtest.h>

#include "fake_engine.h"
#include "ui/alignment_panel.h"
#include "ui/eliding.h"
#include "ui/graph_panel.h"
#include "ui/graph_scene.h"
#include "ui/graph_view.h"
#include "ui/histogram_plot.h"
#include "ui/layers_model.h"
#include "ui/layers_panel.h"
#include "ui/main_window.h"
#include "ui/node_table_model.h"
#include "ui/runs_panel.h"
#include "ui/selection.h"
#include "ui/spec_editor.h"
#include "wait.h"

namespace dblame::ui::test
{
namespace
{

class Ways : public ::testing::Test
{
protected:
    QTemporaryDir folder;
    FakeEngine engine;
    std::unique_ptr<MainWindow> window;

    Ways()
    {
        // Recent files go into the test's own folder.
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, folder.path());
        QCoreApplication::setOrganizationName("dblame");
        QCoreApplication::setApplicationName("ways-test");
        for (const char *name : {"float.pt2", "int8.pt2", "other.pt2", "inputs.pt"}) {
            QFile file(path(name));
            if (file.open(QIODevice::WriteOnly))
                file.write("x");
        }
    }
    ~Ways() override { engine.gate.open(); }
    void make(bool keepsSettings = false)
    {
        window = std::make_unique<MainWindow>(
            MainWindow::Options{[this]() -> Result<Engine *> { return &engine; }, keepsSettings});
        window->resize(1280, 800);
        window->show();
    }
    [[nodiscard]] QString path(const char *name) const { return folder.filePath(name); }
    [[nodiscard]] bool settle()
    {
        return waitUntil([this] { return !window->runner().activity(); });
    }
    void openDigits(bool run = true)
    {
        make();
        window->openPair(path("float.pt2"), path("int8.pt2"), {path("inputs.pt")}, run);
        ASSERT_TRUE(settle());
    }
    void skip(const char *layer)
    {
        window->layers().togglePath(layer);
        ASSERT_TRUE(settle());
    }
    [[nodiscard]] QAction *action(const QString &text) const
    {
        std::function<QAction *(const QMenu *)> find = [&](const QMenu *menu) -> QAction * {
            for (QAction *entry : menu->actions()) {
                if (entry->menu() != nullptr) {
                    if (QAction *inside = find(entry->menu()))
                        return inside;
                } else if (entry->text().remove(QLatin1Char('&')) == text) {
                    return entry;
                }
            }
            return nullptr;
        };
        for (const QAction *top : window->menuBar()->actions())
            if (QAction *found = find(top->menu()))
                return found;
        ADD_FAILURE() << "no action " << text.toStdString();
        return nullptr;
    }
    // Answers the next file dialog with a path, as a user who types it.
    void answerDialog(const QString &file)
    {
        QTimer::singleShot(0, window.get(), [file] {
            auto *dialog = qobject_cast<QFileDialog *>(QApplication::activeModalWidget());
            ASSERT_NE(dialog, nullptr);
            dialog->setDirectory(QFileInfo(file).absolutePath());
            auto *name = dialog->findChild<QLineEdit *>("fileNameEdit");
            ASSERT_NE(name, nullptr);
            name->setText(file);
            QTest::keyClick(name, Qt::Key_Return);
            if (dialog->isVisible())
                dialog->reject();
        });
    }
    // Chooses an entry of the next context menu.
    static void chooseInMenu(const QString &text)
    {
        QTimer::singleShot(0, qApp, [text] {
            auto *menu = qobject_cast<QMenu *>(QApplication::activePopupWidget());
            ASSERT_NE(menu, nullptr);
            QAction *wanted = nullptr;
            for (QAction *entry : menu->actions())
                if (entry->text() == text)
                    wanted = entry;
            ASSERT_NE(wanted, nullptr);
            menu->setActiveAction(wanted);
            QTest::keyClick(menu, Qt::Key_Return);
        });
    }
    void drop(const QStringList &paths)
    {
        QMimeData data;
        QList<QUrl> urls;
        for (const QString &file : paths)
            urls << QUrl::fromLocalFile(file);
        data.setUrls(urls);
        QDragEnterEvent enter({400, 300}, Qt::CopyAction, &data, Qt::LeftButton, {});
        enter.ignore();
        QApplication::sendEvent(window.get(), &enter);
        EXPECT_TRUE(enter.isAccepted());
        QDropEvent event({400, 300}, Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(window.get(), &event);
    }
    [[nodiscard]] QPushButton *button(const QString &text) const
    {
        for (QPushButton *found : window->findChildren<QPushButton *>())
            if (found->text().startsWith(text) && found->isVisible())
                return found;
        ADD_FAILURE() << "no button " << text.toStdString();
        return nullptr;
    }
    [[nodiscard]] static PairId activation(int i) { return PairId(static_cast<std::size_t>(kFakeWeights + 1 + i)); }
};

TEST_F(Ways, FilesAreDropped)
{
    make();
    drop({path("float.pt2"), path("int8.pt2"), path("inputs.pt")});
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().request().reference, path("float.pt2").toStdString());
    EXPECT_EQ(window->session().request().candidate, path("int8.pt2").toStdString());
    EXPECT_TRUE(window->session().runnable());
    drop({path("other.pt2")}); // alone: another candidate
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().request().candidate, path("other.pt2").toStdString());
    QMimeData text;
    text.setText("no file");
    QDragEnterEvent enter({400, 300}, Qt::CopyAction, &text, Qt::LeftButton, {});
    enter.ignore();
    QApplication::sendEvent(window.get(), &enter);
    EXPECT_FALSE(enter.isAccepted());
}

TEST_F(Ways, FilesAreChosenInDialogs)
{
    make();
    answerDialog(path("float.pt2"));
    QTest::mouseClick(button("Reference"), Qt::LeftButton);
    ASSERT_TRUE(settle());
    answerDialog(path("int8.pt2"));
    action("Open candidate…")->trigger();
    ASSERT_TRUE(settle());
    answerDialog(path("inputs.pt"));
    QTest::mouseClick(button("Inputs"), Qt::LeftButton);
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->session().runnable());
    EXPECT_EQ(window->session().request().reference, path("float.pt2").toStdString());
    EXPECT_EQ(window->session().request().inputs.files, std::vector<std::string>{path("inputs.pt").toStdString()});
}

TEST_F(Ways, WhatWasOpenComesBackFromTheRecentMenu)
{
    make(true);
    window->openPair(path("float.pt2"), path("int8.pt2"), {path("inputs.pt")}, false);
    ASSERT_TRUE(settle());
    window->openFiles({path("other.pt2")});
    ASSERT_TRUE(settle());
    QMenu *recent = nullptr;
    for (QMenu *menu : window->findChildren<QMenu *>())
        if (menu->title().remove(QLatin1Char('&')) == "Recent")
            recent = menu;
    ASSERT_NE(recent, nullptr);
    Q_EMIT recent->aboutToShow();
    ASSERT_GE(recent->actions().size(), 3); // two pairs and "Forget these"
    EXPECT_TRUE(recent->actions()[1]->text().contains("int8.pt2"));
    recent->actions()[1]->trigger();
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().request().candidate, path("int8.pt2").toStdString());
    recent->actions().last()->trigger();
    Q_EMIT recent->aboutToShow();
    EXPECT_EQ(recent->actions().size(), 1);
    EXPECT_FALSE(recent->actions()[0]->isEnabled());
}

TEST_F(Ways, ARunThatWouldChangeNothingIsSaidAndNotAdded)
{
    openDigits();
    QTest::keyClick(window.get(), Qt::Key_F5);
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().runs().size(), 1U);
    EXPECT_EQ(engine.runs, 1);
    EXPECT_TRUE(window->progressText().startsWith("no effect: nothing changed since run 1"));
    skip("fc");
    QTest::keyClick(window.get(), Qt::Key_F5);
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().runs().size(), 2U);
    // Other inputs: the same changes are another run.
    window->openFiles({folder.filePath("more.pt")});
    ASSERT_TRUE(settle());
    window->run();
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().runs().size(), 3U);
}

TEST_F(Ways, TheGraphShowsWhatTheRunHasAndWhatTheNextOneWillHave)
{
    openDigits();
    skip("head_conv.conv"); // its weight off, pool2's output bypassed for it
    EXPECT_TRUE(window->graph().scene()->hasPending());
    window->run();
    ASSERT_TRUE(settle());
    EXPECT_FALSE(window->graph().scene()->hasPending());
    window->session().undoStack()->undo();
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->graph().scene()->hasPending());
    window->session().undoStack()->redo();
    ASSERT_TRUE(settle());
    EXPECT_FALSE(window->graph().scene()->hasPending());
    const QString file = folder.filePath("work.dblame");
    ASSERT_TRUE(window->saveDocumentAs(file));
    make();
    window->openFiles({file}, true);
    ASSERT_TRUE(settle());
    ASSERT_EQ(window->session().runs().size(), 1U);
    EXPECT_FALSE(window->graph().scene()->hasPending());
}

TEST_F(Ways, ReloadReadsFilesThatChangedAndKeepsEdits)
{
    openDigits();
    skip("head_conv.conv");
    const EditSet edits = window->session().edits();
    engine.failNextRun = Error{ErrorCode::Unreadable,
                               path("int8.pt2").toStdString(),
                               "the file has changed since it was opened, so its weights may be wrong; open it again",
                               {}};
    window->run();
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->banners().text("run").contains("has changed since it was opened"));
    QFile file(path("int8.pt2"));
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write("written anew");
    file.close();
    QTest::mouseClick(button("Reload"), Qt::LeftButton);
    ASSERT_TRUE(settle());
    EXPECT_EQ(engine.modelsRead, 3); // the candidate alone
    EXPECT_TRUE(window->banners().empty());
    EXPECT_EQ(window->session().edits(), edits);
    EXPECT_FALSE(window->session().undoStack()->isClean()); // they are in no document
    EXPECT_EQ(window->session().shownRun(), -1);            // its figures are those of the file before
    window->run();
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().runs().size(), 2U);
    QTest::keyClick(window.get(), Qt::Key_R, Qt::ControlModifier);
    ASSERT_TRUE(settle());
    EXPECT_EQ(engine.modelsRead, 3); // nothing changed on disk
    EXPECT_EQ(window->session().edits(), edits);
    EXPECT_EQ(window->session().shownRun(), 1);
    window->run();
    EXPECT_TRUE(window->progressText().startsWith("no effect"));
}

TEST_F(Ways, ThePlotIsExportedAsEachKindOfPicture)
{
    openDigits();
    const struct {
        const char *name, *start;
    } kinds[] = {{"plot.png", "\x89PNG"}, {"plot.svg", "<?xml"}, {"plot.pdf", "%PDF"}};
    for (const auto &kind : kinds) {
        answerDialog(path(kind.name));
        action("Export plot…")->trigger();
        QFile file(path(kind.name));
        ASSERT_TRUE(file.open(QIODevice::ReadOnly)) << kind.name;
        EXPECT_TRUE(file.readAll().startsWith(kind.start)) << kind.name;
    }
    EXPECT_EQ(window->progressText(), "written to plot.pdf");
    QToolButton *save = nullptr;
    for (QToolButton *found : window->findChildren<QToolButton *>())
        if (found->text() == QString::fromUtf8("Export…"))
            save = found;
    ASSERT_NE(save, nullptr);
    answerDialog(path("plot.bmp"));
    QTest::mouseClick(save, Qt::LeftButton);
    EXPECT_TRUE(window->banners().text("export").contains("use .png, .svg or .pdf"));
}

TEST_F(Ways, TheHistogramIsExportedFromItsMenu)
{
    openDigits();
    window->selection().setCurrent(activation(9));
    QCoreApplication::processEvents();
    auto *plot = window->findChild<HistogramPlot *>();
    ASSERT_NE(plot, nullptr);
    QTimer::singleShot(0, window.get(), [this] {
        auto *menu = qobject_cast<QMenu *>(QApplication::activePopupWidget());
        ASSERT_NE(menu, nullptr);
        ASSERT_EQ(menu->actions().size(), 1);
        answerDialog(path("h.svg"));
        menu->setActiveAction(menu->actions().front());
        QTest::keyClick(menu, Qt::Key_Return);
    });
    const QPoint at = plot->rect().center();
    QContextMenuEvent event(QContextMenuEvent::Mouse, at, plot->mapToGlobal(at));
    QApplication::sendEvent(plot, &event);
    QFile file(path("h.svg"));
    ASSERT_TRUE(file.open(QIODevice::ReadOnly));
    EXPECT_TRUE(file.readAll().startsWith("<?xml"));
}

TEST_F(Ways, GroupsAreCollapsedFromTheirOutlineAndTheMenu)
{
    openDigits();
    GraphPanel &graph = window->graph();
    const std::size_t open = graph.scene()->layout().items.size();
    ASSERT_FALSE(graph.scene()->layout().outlines.empty());
    action("Collapse all groups")->trigger();
    ASSERT_TRUE(settle());
    const std::size_t closed = graph.scene()->layout().items.size();
    EXPECT_LT(closed, open);
    for (std::size_t i = 0; i < closed; ++i)
        if (graph.scene()->layout().items[i].node < 0) {
            EXPECT_TRUE(graph.scene()->look(static_cast<std::int32_t>(i)).state.startsWith("worst "));
        }
    action("Expand all groups")->trigger();
    ASSERT_TRUE(settle());
    EXPECT_EQ(graph.scene()->layout().items.size(), open);
    // By mouse: the menu of an outline, on its name.
    const GraphOutline outline = graph.scene()->layout().outlines.front();
    chooseInMenu(QString::fromUtf8("Collapse group %1").arg(graph.document()->groups[outline.group].path));
    const QPoint at = graph.view()->mapFromScene(outline.rect.topLeft() + QPointF(12, 6));
    QContextMenuEvent event(QContextMenuEvent::Mouse, at, graph.view()->viewport()->mapToGlobal(at));
    QApplication::sendEvent(graph.view()->viewport(), &event);
    EXPECT_LT(graph.scene()->layout().items.size(), open);
}

TEST_F(Ways, BitsAndGranularityOfASiteAreChangedAndRun)
{
    openDigits();
    QTreeView *view = window->layers().view();
    view->setCurrentIndex(window->layers().model()->indexOfPath("head_conv.conv"));
    SpecEditor *editor = window->layers().specEditor();
    QComboBox *granularity = editor->granularity();
    editor->type()->setFocus();
    ASSERT_EQ(editor->type()->currentText(), "int8");
    QTest::keyClicks(editor->type(), "int1"); // int16 is the only one
    granularity->setFocus();
    ASSERT_EQ(granularity->currentText(), "per channel");
    QTest::keyClick(granularity, Qt::Key_Up);
    ASSERT_TRUE(settle());
    const SiteId site = window->session().pair()->sites.byId("head_conv.conv/weight");
    ASSERT_TRUE(window->session().edits().respecified.contains(site));
    EXPECT_EQ(window->session().edits().respecified.at(site).type, ElementType::Int16);
    EXPECT_EQ(window->session().edits().respecified.at(site).granularity, Granularity::PerTensor);
    EXPECT_TRUE(window->graph().scene()->hasPending());
    QTest::mouseClick(window->layers().runButton(), Qt::LeftButton);
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().runs().size(), 2U);
    EXPECT_DOUBLE_EQ(window->table().report(activation(9)).metrics.snrDb, 31.3 + 8 * kDbPerBit);
}

TEST_F(Ways, ARerunMakesTheWindowNoWider)
{
    openDigits();
    QCoreApplication::processEvents();
    EXPECT_LE(window->minimumSizeHint().width(), 1280);
    skip("head_conv.conv");
    window->run();
    ASSERT_TRUE(settle());
    skip("fc"); // the legend gains "skipped" and "to be changed", the plot "dotted: run 1"
    QCoreApplication::processEvents();
    EXPECT_LE(window->minimumSizeHint().width(), 1280);
    EXPECT_EQ(window->width(), 1280);
}

TEST_F(Ways, LongFileNamesGiveWayToTheFindField)
{
    make();
    const QString name = QString("a_very_long_name_of_a_model_that_somebody_exported_").repeated(3);
    window->openPair("/models/float_" + name + ".pt2", "/models/" + name + "_int8.pt2", {"/models/" + name + ".pt"},
                     true);
    ASSERT_TRUE(settle());
    QCoreApplication::processEvents();
    auto *find = window->findChild<QLineEdit *>("find");
    EXPECT_TRUE(find->isVisible());
    EXPECT_GE(find->width(), 140);
    EXPECT_EQ(window->width(), 1280);
    auto *reference = qobject_cast<ElidingButton *>(button("Reference"));
    ASSERT_NE(reference, nullptr);
    EXPECT_NE(reference->shownText(), reference->text());
    EXPECT_TRUE(reference->shownText().startsWith("Ref"));
    EXPECT_TRUE(reference->text().endsWith(name + ".pt2"));
}

TEST_F(Ways, WhatChangedHasRoomInTheRuns)
{
    openDigits();
    skip("head_conv.conv");
    window->run();
    ASSERT_TRUE(settle());
    action("Go to Runs")->trigger();
    QCoreApplication::processEvents();
    QTableView *view = window->runs().view();
    const QString label = view->model()->index(1, RunsModel::Change).data().toString();
    EXPECT_GE(view->columnWidth(RunsModel::Change), view->fontMetrics().horizontalAdvance(label));
}

TEST_F(Ways, TheAlignmentNamesTheValueThatIsCompared)
{
    openDigits(false);
    const auto *model = window->alignment().view()->model();
    const OpenPair &pair = *window->session().pair();
    for (int row = 0; row < window->table().pairCount(); ++row) {
        const AlignedPair &aligned = pair.alignment.pairs[static_cast<std::size_t>(row)];
        const ValueId compared = aligned.candCompared.valid() ? aligned.candCompared : aligned.cand;
        EXPECT_EQ(model->index(row, AlignmentModel::Candidate).data().toString().toStdString(),
                  pair.candidate->graph().value(compared).name);
    }
}

} // namespace
} // namespace dblame::ui::test

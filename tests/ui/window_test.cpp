// SPDX-License-Identifier: GPL-3.0-or-later
//
// The whole window on the fake engine: real widgets, real clicks.
#include "ui/main_window.h"

#include <QAccessible>
#include <QAction>
#include <QComboBox>
#include <QDockWidget>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLineEdit>
#include <QMenuBar>
#include <QMimeData>
#include <QProgressBar>
#include <QPushButton>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>
#include <QUndoStack>

#include <gtest/gtest.h>

#include "core/log.h"
#include "fake_engine.h"
#include "ui/alignment_panel.h"
#include "ui/layers_model.h"
#include "ui/layers_panel.h"
#include "ui/log_panel.h"
#include "ui/node_table_model.h"
#include "ui/nodes_panel.h"
#include "ui/runs_panel.h"
#include "ui/selection.h"
#include "wait.h"

namespace dblame::ui::test
{
namespace
{

class Window : public ::testing::Test
{
protected:
    FakeEngine engine;
    std::unique_ptr<MainWindow> window;

    Window()
    {
        window =
            std::make_unique<MainWindow>(MainWindow::Options{[this]() -> Result<Engine *> { return &engine; }, false});
        window->resize(1440, 900);
        window->show();
    }
    ~Window() override { engine.gate.open(); }

    [[nodiscard]] bool settle()
    {
        return waitUntil([this] { return !window->runner().activity(); });
    }
    void openDigits(bool run = false)
    {
        window->openPair("/models/float.pt2", "/models/int8.pt2", {"/models/inputs.pt"}, run);
        ASSERT_TRUE(settle());
    }
    [[nodiscard]] QPushButton *button(const QString &text) const
    {
        for (QPushButton *button : window->findChildren<QPushButton *>())
            if (button->text().startsWith(text) && button->isVisible())
                return button;
        ADD_FAILURE() << "no button " << text.toStdString();
        return nullptr;
    }
    // Presses the box of a layer with the mouse, as a user does.
    void clickBox(const char *path)
    {
        QTreeView *view = window->layers().view();
        const QModelIndex index = window->layers().model()->indexOfPath(path);
        view->scrollTo(index);
        const QRect line = view->visualRect(index);
        ASSERT_TRUE(line.isValid());
        QStyleOptionViewItem option;
        option.initFrom(view);
        option.rect = line;
        option.features = QStyleOptionViewItem::HasCheckIndicator;
        const QRect box = view->style()->subElementRect(QStyle::SE_ItemViewItemCheckIndicator, &option, view);
        QTest::mouseClick(view->viewport(), Qt::LeftButton, {}, box.center());
    }
    [[nodiscard]] double outputDb() const
    {
        return window->table().report(PairId(static_cast<std::size_t>(window->table().pairCount() - 1))).metrics.snrDb;
    }
    [[nodiscard]] static PairId activation(int i) { return PairId(static_cast<std::size_t>(kFakeWeights + 1 + i)); }
};

TEST_F(Window, IsThereBeforeTheEngineAndSaysWhatToDoNext)
{
    EXPECT_TRUE(window->isVisible());
    EXPECT_EQ(window->windowTitle(), "dBlame");
    EXPECT_TRUE(window->statusText().contains("drop two models here"));
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->statusText().contains("2 threads · LibTorch 2.13.0"));
    QTest::keyClick(window.get(), Qt::Key_F5);
    EXPECT_TRUE(window->banners().text("run").contains("needs a reference, a candidate and inputs"));
    openDigits();
    window->run();
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->banners().empty());
}

TEST_F(Window, RunsAndReports)
{
    openDigits();
    EXPECT_EQ(window->windowTitle(), QString::fromUtf8("float.pt2 ↔ int8.pt2[*] — dBlame"));
    EXPECT_TRUE(window->statusText().startsWith("20 paired · 0 unpaired · 4 batch norms folded"));
    QTest::mouseClick(button("Run F5"), Qt::LeftButton);
    ASSERT_TRUE(settle());
    EXPECT_DOUBLE_EQ(outputDb(), 33.92);
    EXPECT_TRUE(window->statusText().contains("output 33.92 dB · worst head_conv.conv"));
    EXPECT_EQ(window->session().runs().size(), 1U);
    EXPECT_EQ(window->table().largestDrop()->row, activation(1));
}

TEST_F(Window, ShowsRowsAndProgressWhileTheRunGoesOn)
{
    openDigits();
    engine.gate.hold();
    engine.gate.allow(10);
    window->run();
    engine.gate.waitForArrivals(11);
    ASSERT_TRUE(waitUntil([&] { return window->progressText().startsWith("10 / 14 nodes"); }));
    EXPECT_EQ(window->table().report(activation(9)).status, RowStatus::Ok);
    EXPECT_EQ(window->table().report(activation(10)).status, RowStatus::Pending);
    EXPECT_TRUE(button("Stop")->isEnabled());
    const auto *bar = window->findChild<QProgressBar *>();
    EXPECT_NEAR(static_cast<double>(bar->value()) / bar->maximum(), 10.0 / 14, 0.01);
    engine.gate.open();
    ASSERT_TRUE(settle());
    EXPECT_FALSE(button("Stop")->isEnabled());
}

TEST_F(Window, SkippingOneConvByItsBoxAndRunningGivesTheEnginesNumbers)
{
    openDigits(true);
    ASSERT_DOUBLE_EQ(outputDb(), 33.92);
    clickBox("head_conv.conv");
    ASSERT_TRUE(settle()); // the plan comes back
    EXPECT_TRUE(window->layers().planText().contains("head_conv.conv/weight"));
    QTest::mouseClick(window->layers().runButton(), Qt::LeftButton);
    ASSERT_TRUE(settle());
    // Its weight is off and its input bypassed: two sites upstream of every row from there on.
    EXPECT_DOUBLE_EQ(window->table().report(activation(8)).metrics.snrDb, 36.2);
    EXPECT_DOUBLE_EQ(window->table().report(activation(9)).metrics.snrDb, 31.3 + 2 * kDbPerSite);
    EXPECT_DOUBLE_EQ(outputDb(), 33.92 + 2 * kDbPerSite);
    ASSERT_EQ(window->session().runs().size(), 2U);
    EXPECT_EQ(window->session().runs()[1].label, "head_conv.conv float here");
    EXPECT_EQ(window->session().overlaidRun(), 0);
    EXPECT_EQ(window->table().index(activation(9).index, NodeTableModel::Delta).data().toString(), "+2.5");
}

TEST_F(Window, TheKeyboardDoesItToo)
{
    openDigits(true);
    QTreeView *view = window->layers().view();
    view->setFocus();
    view->setCurrentIndex(window->layers().model()->indexOfPath("fc"));
    QTest::keyClick(view, Qt::Key_Space);
    EXPECT_EQ(window->session().edits().off.size(), 1U);
    QTest::keyClick(window.get(), Qt::Key_F5);
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().runs().size(), 2U);
    QTest::keyClick(window.get(), Qt::Key_Z, Qt::ControlModifier);
    EXPECT_TRUE(window->session().edits().empty());
    EXPECT_EQ(window->layers().model()->indexOfPath("fc").data(Qt::CheckStateRole).toInt(), Qt::Checked);
    QTest::keyClick(window.get(), Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    EXPECT_EQ(window->session().edits().off.size(), 1U);
    window->selection().setCurrent(activation(0));
    QTest::keyClick(window.get(), Qt::Key_K, Qt::ControlModifier);
    EXPECT_EQ(window->session().edits().off.size(), 2U);
}

TEST_F(Window, StopLeavesTheReportBefore)
{
    openDigits(true);
    clickBox("fc");
    engine.gate.hold();
    window->run();
    engine.gate.waitForArrivals(1);
    QTest::keyClick(window.get(), Qt::Key_Escape);
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->progressText(), "stopped");
    EXPECT_EQ(window->session().runs().size(), 1U);
    EXPECT_DOUBLE_EQ(outputDb(), 33.92);
    EXPECT_EQ(window->table().largestDrop()->row, activation(1));
    EXPECT_TRUE(window->banners().empty()); // to stop is no problem
}

TEST_F(Window, AFailedRunLeavesTheReportBeforeAndOffersAWayOut)
{
    openDigits(true);
    clickBox("fc");
    ASSERT_TRUE(settle());
    const EditSet edits = window->session().edits();
    engine.failNextRun = Error{ErrorCode::Internal, "conv2d_3", "out of memory; use fewer samples", {}};
    window->run();
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->banners().text("run"), "conv2d_3: out of memory; use fewer samples");
    EXPECT_DOUBLE_EQ(outputDb(), 33.92);
    EXPECT_EQ(window->session().edits(), edits);
    QTest::mouseClick(button("Run again"), Qt::LeftButton);
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->banners().empty());
    EXPECT_DOUBLE_EQ(outputDb(), 33.92 + kDbPerSite); // its weight; its input is not quantized
}

TEST_F(Window, AFileThatDoesNotOpenLeavesEverythingAsItWas)
{
    openDigits(true);
    clickBox("fc");
    const EditSet edits = window->session().edits();
    window->openFiles({"/models/damaged.pt2", "/models/int8.pt2"});
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->banners().text("open").contains("directory is cut off"));
    EXPECT_EQ(window->session().request().reference, "/models/float.pt2");
    EXPECT_DOUBLE_EQ(outputDb(), 33.92);
    EXPECT_EQ(window->session().edits(), edits);
    EXPECT_TRUE(button("Reference float.pt2") != nullptr);
}

TEST_F(Window, OpeningDuringARunIsSafe)
{
    openDigits();
    engine.gate.hold();
    window->run();
    engine.gate.waitForArrivals(1);
    window->openFiles({"/models/float.pt2", "/models/other.pt2"}, true);
    engine.gate.open();
    ASSERT_TRUE(settle());
    EXPECT_EQ(window->session().request().candidate, "/models/other.pt2");
    EXPECT_EQ(window->session().runs().size(), 1U);
}

TEST_F(Window, QuittingDuringARunIsSafe)
{
    openDigits();
    engine.gate.hold();
    window->run();
    engine.gate.waitForArrivals(1);
    EXPECT_TRUE(window->close());
    window.reset();
    logLine(LogLevel::Info, "nobody listens any more");
}

TEST_F(Window, WithoutInputsItOffersRandomOnesAndWarnsAsLongAsTheyAreUsed)
{
    engine.sampleInputs = false;
    window->openFiles({"/models/float.pt2", "/models/int8.pt2"}, true);
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->banners().text("inputs").contains("no sample inputs"));
    EXPECT_EQ(window->table().pairCount(), static_cast<int>(window->session().pair()->alignment.pairs.size()));
    QTest::mouseClick(button("Use random inputs"), Qt::LeftButton);
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->banners().text("random").contains("rank layers differently"));
    window->run();
    ASSERT_TRUE(settle());
    EXPECT_FALSE(window->banners().text("random").isEmpty());
    window->openFiles({"/models/inputs.npz"});
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->banners().empty());
    EXPECT_TRUE(window->session().runnable());
}

TEST_F(Window, ModelsComeOneByOne)
{
    window->openFiles({"/models/float.pt2"});
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->statusText().contains("now open a candidate"));
    EXPECT_FALSE(window->session().runnable());
    window->openFiles({"/models/int8.pt2"});
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->session().runnable());
    EXPECT_EQ(engine.modelsRead, 2);
}

TEST_F(Window, PairsByHand)
{
    engine.unpairFc = true;
    openDigits(true);
    AlignmentPanel &alignment = window->alignment();
    EXPECT_TRUE(window->statusText().startsWith("19 paired · 2 unpaired"));
    QTest::mouseClick(button("19 paired"), Qt::LeftButton);
    ASSERT_TRUE(waitUntil([&] { return alignment.isVisible(); }));
    alignment.show(AlignmentModel::Group::Unpaired);
    EXPECT_EQ(alignment.shownRows(), 2);
    EXPECT_FALSE(alignment.pairButton()->isEnabled());
    alignment.referenceBox()->setEditText("linear");
    alignment.candidateBox()->setEditText("linear");
    ASSERT_TRUE(alignment.pairButton()->isEnabled());
    QTest::mouseClick(alignment.pairButton(), Qt::LeftButton);
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->statusText().startsWith("20 paired · 0 unpaired"));
    EXPECT_EQ(engine.modelsRead, 2); // aligned anew, not read anew
    EXPECT_EQ(window->session().pair()->alignment.pairs.back().rung, Rung::ByHand);
    // What was measured stays on show; the new row waits for a run.
    EXPECT_EQ(window->table().report(activation(0)).status, RowStatus::Ok);
    EXPECT_EQ(window->table().report(activation(13)).status, RowStatus::Pending);
    window->session().undoStack()->undo();
    ASSERT_TRUE(settle());
    EXPECT_TRUE(window->statusText().startsWith("19 paired"));
}

TEST_F(Window, TwoRunsCanBeLaidOverEachOther)
{
    openDigits(true);
    for (const char *layer : {"fc", "head_conv.conv"}) {
        clickBox(layer);
        window->run();
        ASSERT_TRUE(settle());
    }
    QTableView *view = window->runs().view();
    ASSERT_EQ(view->model()->rowCount(), 3);
    const auto text = [&](int row, int column) { return view->model()->index(row, column).data().toString(); };
    EXPECT_EQ(text(2, RunsModel::Output), "37.67");
    EXPECT_EQ(text(2, RunsModel::Delta), "+2.5"); // against the run before, which is laid under
    view->selectionModel()->select(view->model()->index(0, 0),
                                   QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
    EXPECT_EQ(window->session().shownRun(), 0);
    EXPECT_DOUBLE_EQ(outputDb(), 33.92);
    view->selectionModel()->select(view->model()->index(2, 0), QItemSelectionModel::Select | QItemSelectionModel::Rows);
    EXPECT_EQ(window->session().shownRun(), 2);
    EXPECT_EQ(window->session().overlaidRun(), 0);
    EXPECT_EQ(text(2, RunsModel::Delta), "+3.8");
    EXPECT_EQ(text(0, RunsModel::Delta), "base");
}

TEST_F(Window, TheSignalIsNamedAndCanBeSwitched)
{
    openDigits(true);
    auto *signal = window->findChild<QComboBox *>("signal");
    ASSERT_NE(signal, nullptr);
    signal->setCurrentIndex(1);
    Q_EMIT signal->activated(1);
    EXPECT_EQ(window->table().columnName(NodeTableModel::Snr), "SQNR dB");
    EXPECT_TRUE(window->statusText().contains("output 33.93 dB"));
}

TEST_F(Window, FindFiltersTheTableAndEnterGoesToTheNextMatch)
{
    openDigits(true);
    auto *find = window->findChild<QLineEdit *>("find");
    ASSERT_NE(find, nullptr);
    QTest::keyClicks(find, "conv2d snr<34");
    EXPECT_EQ(window->nodes().shownRows(), 2);
    QTest::keyClick(find, Qt::Key_Return);
    EXPECT_EQ(window->selection().current(), activation(5));
    QTest::keyClick(find, Qt::Key_Return);
    EXPECT_EQ(window->selection().current(), activation(9));
    EXPECT_TRUE(window->selectNode("head_conv.relu"));
    EXPECT_EQ(window->selection().current(), activation(10));
    EXPECT_TRUE(window->selectNode("conv2d"));
    EXPECT_EQ(window->selection().current(), activation(0));
    EXPECT_FALSE(window->selectNode("nowhere"));
}

TEST_F(Window, ADocumentRestoresWhatWasOpenAndChanged)
{
    const QTemporaryDir folder;
    openDigits();
    clickBox("head_conv.conv");
    window->session().setSignal(Signal::Candidate);
    const EditSet edits = window->session().edits();
    const QString path = folder.filePath("work.dblame");
    ASSERT_TRUE(window->saveDocumentAs(path));
    EXPECT_FALSE(window->isWindowModified());
    EXPECT_EQ(window->windowTitle(), QString::fromUtf8("work.dblame[*] — dBlame"));

    MainWindow other({[this]() -> Result<Engine *> { return &engine; }, false});
    other.openFiles({path}, true);
    ASSERT_TRUE(waitUntil([&] { return !other.runner().activity(); }));
    EXPECT_EQ(other.session().request().candidate, "/models/int8.pt2");
    EXPECT_EQ(other.session().request().inputs.files, std::vector<std::string>{"/models/inputs.pt"});
    EXPECT_EQ(other.session().edits(), edits);
    EXPECT_EQ(other.session().signal(), Signal::Candidate);
    ASSERT_EQ(other.session().runs().size(), 1U);
    EXPECT_EQ(other.session().runs()[0].edits, edits);
}

TEST_F(Window, ExportsReports)
{
    const QTemporaryDir folder;
    EXPECT_FALSE(window->exportReportTo(folder.filePath("r.json"))); // nothing to write yet
    openDigits(true);
    const QString path = folder.filePath("r.json");
    ASSERT_TRUE(window->exportReportTo(path));
    QFile file(path);
    ASSERT_TRUE(file.open(QIODevice::ReadOnly));
    const QJsonObject report = QJsonDocument::fromJson(file.readAll()).object();
    EXPECT_EQ(report.value("rows").toArray().size(), kFakeRows);
    EXPECT_DOUBLE_EQ(report.value("output_snr_db").toArray().at(0).toDouble(), 33.92);
    EXPECT_FALSE(window->exportReportTo(folder.filePath("r.docx")));
    EXPECT_FALSE(window->banners().text("export").isEmpty());
}

TEST_F(Window, TheLogTakesLinesOfEveryThread)
{
    std::thread([] { logLine(LogLevel::Warning, "from {elsewhere}"); }).join();
    logLine(LogLevel::Debug, "a detail");
    QCoreApplication::processEvents();
    EXPECT_TRUE(window->log().text().contains("warning: from {elsewhere}"));
    EXPECT_FALSE(window->log().text().contains("a detail"));
}

TEST_F(Window, EveryControlHasAName)
{
    openDigits(true);
    for (const QWidget *widget : window->findChildren<QWidget *>()) {
        const bool viewport = qobject_cast<const QAbstractScrollArea *>(widget->parentWidget()) != nullptr;
        if (widget->focusPolicy() == Qt::NoFocus || !widget->isVisible() || viewport)
            continue;
        const QAccessibleInterface *face = QAccessible::queryAccessibleInterface(const_cast<QWidget *>(widget));
        ASSERT_NE(face, nullptr);
        EXPECT_FALSE(face->text(QAccessible::Name).isEmpty() && face->text(QAccessible::Description).isEmpty())
            << widget->metaObject()->className() << " " << widget->objectName().toStdString() << " in "
            << widget->parentWidget()->metaObject()->className();
    }
}

} // namespace
} // namespace dblame::ui::test

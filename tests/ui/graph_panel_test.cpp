// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_panel.h"

#include <limits>

#include <QApplication>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ui/graph_examples.h"
#include "ui/graph_legend.h"
#include "ui/graph_scene.h"
#include "ui/graph_view.h"
#include "ui/theme.h"

namespace dblame::ui
{
namespace
{

std::string text(const QString &s)
{
    return s.toStdString();
}

class GraphPanelTest : public ::testing::Test
{
protected:
    void SetUp() override
    {
        m_pair = pairOf(digitsNet(false), digitsNet(true));
        m_table.setPair(m_pair);
        m_panel.resize(960, 450);
        m_panel.setTable(&m_table);
        m_panel.setSelection(&m_selection);
        m_panel.setPair(m_pair);
        m_panel.show();
        QApplication::processEvents();
    }
    void run() { m_table.setReport(reportOf(rowsWith(*m_pair, digitsDb()))); }

    [[nodiscard]] PairId row(const char *label) const
    {
        for (int i = 0; i < m_table.pairCount(); ++i)
            if (m_table.label(PairId(static_cast<std::size_t>(i))) == QLatin1String(label))
                return PairId(static_cast<std::size_t>(i));
        ADD_FAILURE() << "no row " << label;
        return PairId(std::size_t{0});
    }
    [[nodiscard]] std::int32_t item(const char *label) const { return m_panel.scene()->itemOfRow(row(label)); }
    [[nodiscard]] SiteId site(const char *id) const { return m_pair->sites.byId(id); }
    // The placed mark of a site.
    [[nodiscard]] std::int32_t mark(const char *id) const
    {
        const auto &layout = m_panel.scene()->layout();
        for (std::size_t m = 0; m < layout.marks.size(); ++m)
            if (layout.document->marks[layout.marks[m].mark].site == site(id))
                return static_cast<std::int32_t>(m);
        ADD_FAILURE() << "no mark " << id;
        return 0;
    }
    [[nodiscard]] QPoint onScreen(const QPointF &scene) const { return m_panel.view()->mapFromScene(scene); }
    [[nodiscard]] QPoint middle(std::int32_t i) const
    {
        return onScreen(m_panel.scene()->layout().items[i].rect.center());
    }
    void click(const QPoint &at) { QTest::mouseClick(m_panel.view()->viewport(), Qt::LeftButton, {}, at); }
    void key(Qt::Key k) { QTest::keyClick(m_panel.view(), k); }
    [[nodiscard]] QImage picture() { return m_panel.view()->viewport()->grab().toImage(); }
    [[nodiscard]] const GraphNodeLook &look(const char *label) const { return m_panel.scene()->look(item(label)); }

    OpenPairPtr m_pair;
    NodeTableModel m_table;
    Selection m_selection;
    GraphPanel m_panel;
};

TEST_F(GraphPanelTest, AClickOnANodeSelectsItsRowAndTheSelectionSelectsTheNode)
{
    click(middle(item("block.conv2")));
    EXPECT_EQ(m_selection.current(), row("block.conv2"));
    EXPECT_EQ(m_panel.scene()->currentItem(), item("block.conv2"));
    m_selection.setCurrent(row("gap"));
    EXPECT_EQ(m_panel.scene()->currentItem(), item("gap"));
    EXPECT_THAT(text(m_panel.view()->accessibleDescription()), ::testing::HasSubstr("gap, adaptive_avg_pool2d"));
    // A weight's row is its hexagon.
    m_selection.setCurrent(row("fc.weight"));
    EXPECT_EQ(m_panel.scene()->currentItem(), item("fc"));
    EXPECT_EQ(m_panel.scene()->currentMark(), mark("fc/weight"));
    // The background selects nothing.
    click({3, m_panel.view()->viewport()->height() - 3});
    EXPECT_FALSE(m_selection.current().valid());
}

TEST_F(GraphPanelTest, AHexagonSelectsItsRowAndADoubleClickAsksToSwitchIt)
{
    QSignalSpy activated(&m_panel, &GraphPanel::siteActivated), toggled(&m_panel, &GraphPanel::siteToggleRequested);
    const QPoint at = onScreen(m_panel.scene()->layout().marks[mark("head_conv.conv/weight")].centre);
    click(at);
    ASSERT_EQ(activated.count(), 1);
    EXPECT_EQ(activated[0][0].value<SiteId>(), site("head_conv.conv/weight"));
    EXPECT_EQ(m_selection.current(), row("head_conv.conv.weight"));
    EXPECT_EQ(toggled.count(), 0);
    QTest::mouseDClick(m_panel.view()->viewport(), Qt::LeftButton, {}, at);
    ASSERT_EQ(toggled.count(), 1);
    EXPECT_EQ(toggled[0][0].value<SiteId>(), site("head_conv.conv/weight"));
}

TEST_F(GraphPanelTest, KeysWalkAlongEdgesAndReachQuantizersAndGroups)
{
    QSignalSpy toggled(&m_panel, &GraphPanel::siteToggleRequested), skip(&m_panel, &GraphPanel::skipRequested);
    m_panel.view()->setFocus();
    key(Qt::Key_Home);
    EXPECT_EQ(m_selection.current(), row("x"));
    std::vector<std::string> way;
    for (int i = 0; i < 20; ++i) {
        const PairId before = m_selection.current();
        key(Qt::Key_Right);
        if (m_selection.current() == before)
            break;
        way.push_back(text(m_table.label(m_selection.current())));
    }
    EXPECT_EQ(way.size(), 13U); // the main path, to the end
    for (std::size_t i = 0; i < m_panel.document()->nodes.size(); ++i)
        EXPECT_EQ(m_panel.document()->nodes[i].label,
                  m_table.label(m_panel.document()->nodes[i].row)); // one name for all
    EXPECT_EQ(way.front(), "stem.conv");
    EXPECT_EQ(way.back(), "fc");
    key(Qt::Key_Left);
    EXPECT_EQ(m_selection.current(), row("gap"));
    // With Shift along the skip connection.
    m_selection.setCurrent(row("pool1"));
    QTest::keyClick(m_panel.view(), Qt::Key_Right, Qt::ShiftModifier);
    EXPECT_EQ(m_selection.current(), row("block"));
    QTest::keyClick(m_panel.view(), Qt::Key_Left, Qt::ShiftModifier);
    EXPECT_EQ(m_selection.current(), row("pool1"));
    m_selection.setCurrent(row("gap"));
    key(Qt::Key_Space);
    ASSERT_EQ(skip.count(), 1);
    EXPECT_EQ(skip[0][0].value<PairId>(), row("gap"));
    m_selection.setCurrent(row("stem.conv"));
    key(Qt::Key_S);
    ASSERT_GE(m_panel.scene()->currentMark(), 0);
    key(Qt::Key_Space);
    ASSERT_EQ(toggled.count(), 1);
    // Both quantizers of stem.conv, then the node again.
    key(Qt::Key_S);
    EXPECT_GE(m_panel.scene()->currentMark(), 0);
    key(Qt::Key_S);
    EXPECT_EQ(m_panel.scene()->currentMark(), -1);
    EXPECT_EQ(m_panel.scene()->currentItem(), item("stem.conv"));

    const std::size_t open = m_panel.scene()->layout().items.size();
    key(Qt::Key_C);
    EXPECT_EQ(m_panel.scene()->layout().items.size(), open - 1);
    EXPECT_EQ(m_panel.scene()->look(m_panel.scene()->currentItem()).shape, GraphNodeLook::Shape::Group);
    key(Qt::Key_Return);
    EXPECT_EQ(m_panel.scene()->layout().items.size(), open);
}

TEST_F(GraphPanelTest, NodesTellFiguresAndStatesInWordsWhileTheRunGoesOn)
{
    EXPECT_EQ(text(look("stem.relu").state), "");
    EXPECT_FALSE(m_panel.scene()->range().valid());
    auto rows = rowsWith(*m_pair, digitsDb());
    m_table.update({rows[row("stem.conv").get()], rows[row("stem.relu").get()]});
    EXPECT_EQ(text(look("stem.relu").state), "40.7");
    EXPECT_EQ(m_panel.scene()->range(), (GraphRange{40, 47}));
    EXPECT_EQ(text(look("fc").state), "");
    NodeReport &failed = rows[row("gap").get()], &shapes = rows[row("pool2").get()], &exact = rows[row("block").get()],
               &missing = rows[row("fc").get()];
    failed.status = RowStatus::Failed;
    failed.reason = "out of memory";
    shapes.status = RowStatus::ShapeMismatch;
    exact.status = RowStatus::Exact;
    exact.metrics.snrDb = std::numeric_limits<double>::infinity();
    missing.status = RowStatus::NotComputed;
    missing.reason = "needs mylib::crelu";
    m_table.update(rows);
    EXPECT_EQ(text(look("gap").state), "failed");
    EXPECT_TRUE(look("gap").trouble);
    EXPECT_EQ(text(look("pool2").state), "shapes differ");
    EXPECT_EQ(text(look("block").state), "exact");
    EXPECT_TRUE(look("block").coloured);
    EXPECT_EQ(text(look("fc").state), "not computed");
    EXPECT_EQ(text(look("x").state), ""); // an input is the same on both sides
    EXPECT_THAT(text(m_panel.scene()->describeItem(item("fc"))), ::testing::HasSubstr("needs mylib::crelu"));
    EXPECT_EQ(m_panel.scene()->range(), (GraphRange{31, 47}));
}

TEST_F(GraphPanelTest, ColoursFollowTheRampAndTheLegendSaysItsNumbers)
{
    run();
    const double ratio = m_panel.devicePixelRatioF();
    const QImage image = picture();
    const auto barColour = [&](const char *label) {
        const QRectF rect = m_panel.scene()->layout().items[item(label)].rect;
        const QPoint at = onScreen({rect.left() + 3, rect.center().y()});
        return image.pixelColor(QPoint(static_cast<int>(at.x() * ratio), static_cast<int>(at.y() * ratio)));
    };
    const auto expected = [](double db) { return Theme::ramp(Theme::rampPosition(db, 31, 47)); };
    EXPECT_EQ(barColour("stem.conv").name(), expected(46.1).name());
    EXPECT_EQ(barColour("head_conv.conv").name(), expected(31.3).name());
    const auto *legend = m_panel.findChild<GraphLegend *>();
    EXPECT_EQ(text(legend->words()), "colour is SNR, 31 dB dark to 47 dB bright; Q activation site; W weight site");
    EXPECT_EQ(m_panel.scene()->largestDropItem(), item("stem.relu"));
    EXPECT_EQ(text(m_panel.scene()->largestDropText()), "largest drop −5.4 dB");
}

TEST_F(GraphPanelTest, FarAwayOnlyColouredBoxesAreDrawn)
{
    run();
    m_panel.view()->zoomBy(0.2 / m_panel.view()->scale());
    ASSERT_LT(m_panel.view()->scale(), kBoxesOnly);
    const QImage image = picture();
    const double ratio = m_panel.devicePixelRatioF();
    const QPoint at = middle(item("fc")) * ratio;
    EXPECT_EQ(image.pixelColor(at).name(), Theme::ramp(Theme::rampPosition(33.9, 31, 47)).name());
}

TEST_F(GraphPanelTest, PendingChangesAreDashedAndOrangeUntilARunHasDoneThem)
{
    run();
    const std::int32_t w = mark("head_conv.conv/weight"), q = mark("pool1/out");
    const auto look = [this](std::int32_t m) { return m_panel.scene()->markLook(m); };
    EXPECT_EQ(look(w).state, GraphMarkLook::State::On);
    const QuantSite &pool = m_pair->sites.site(site("pool1/out"));
    ASSERT_EQ(pool.readers.size(), 2U); // block.conv1 and add
    EditSet edits, ran;
    edits.off = {site("head_conv.conv/weight")};
    edits.bypassed = {{site("pool1/out"), pool.readers[0]}};
    m_panel.setPendingChanges(edits, ran);
    EXPECT_EQ(look(w).state, GraphMarkLook::State::Off);
    EXPECT_TRUE(look(w).pending);
    EXPECT_EQ(look(q).state, GraphMarkLook::State::Partly);
    EXPECT_TRUE(look(q).pending);
    const auto *legend = m_panel.findChild<GraphLegend *>();
    EXPECT_THAT(text(legend->words()), ::testing::HasSubstr("to be changed"));
    // The run has done it: an edge that is float in it is no longer to be changed.
    m_panel.setPendingChanges(edits, edits);
    EXPECT_EQ(look(w).state, GraphMarkLook::State::Off);
    EXPECT_FALSE(look(w).pending);
    EXPECT_EQ(look(q).state, GraphMarkLook::State::Partly);
    EXPECT_FALSE(look(q).pending);
    EXPECT_THAT(text(legend->words()), ::testing::Not(::testing::HasSubstr("to be changed")));
    // Undone: both will change again.
    m_panel.setPendingChanges({}, edits);
    EXPECT_EQ(look(w).state, GraphMarkLook::State::On);
    EXPECT_TRUE(look(w).pending);
    EXPECT_EQ(look(q).state, GraphMarkLook::State::On);
    EXPECT_TRUE(look(q).pending);
    // Every reader on its own is the same as the site as a whole.
    ran.off = {site("pool1/out")};
    edits.bypassed = {{site("pool1/out"), pool.readers[0]}, {site("pool1/out"), pool.readers[1]}};
    m_panel.setPendingChanges(edits, ran);
    EXPECT_EQ(look(q).state, GraphMarkLook::State::Off);
    EXPECT_FALSE(look(q).pending);
    EditSet otherSpec;
    otherSpec.respecified[site("head_conv.conv/weight")] = SpecChange{4, Granularity::PerChannel, {}, 32};
    m_panel.setPendingChanges(otherSpec, {});
    EXPECT_TRUE(look(w).pending);
    EXPECT_THAT(text(m_panel.scene()->describeMark(w)), ::testing::HasSubstr("to be quantized otherwise"));
}

TEST_F(GraphPanelTest, FindsByTheNamesOfTheFile)
{
    run();
    QLineEdit *field = m_panel.findField();
    field->setText(QStringLiteral("block_relu_2")); // the value's name; the box is called block.relu@1
    EXPECT_TRUE(m_panel.scene()->matched(item("block.relu@1")));
    EXPECT_FALSE(m_panel.scene()->matched(item("block.relu")));
    field->setText(QStringLiteral("block.conv1"));
    EXPECT_TRUE(m_panel.scene()->matched(item("block.conv1")));
    field->setText(QStringLiteral("max_pool2d"));
    EXPECT_TRUE(m_panel.scene()->matched(item("pool2")));
}

TEST_F(GraphPanelTest, TheLegendWrapsWhereItIsNarrow)
{
    run();
    EditSet edits;
    edits.off = {site("head_conv.conv/weight")};
    m_panel.setPendingChanges(edits, {});
    const auto *legend = m_panel.findChild<GraphLegend *>();
    EXPECT_EQ(legend->heightForWidth(1200), 40);
    EXPECT_GT(legend->heightForWidth(400), 40);
    EXPECT_LE(legend->minimumSizeHint().width(), 120);
}

TEST_F(GraphPanelTest, NamesOfSixteenLettersAreWhole)
{
    const GraphLayoutOptions &options = m_panel.scene()->layout().options;
    QFont font = Theme::bodyFont();
    font.setWeight(QFont::DemiBold);
    const QFontMetricsF metrics(font);
    for (const GraphItem &i : m_panel.scene()->layout().items) {
        const QString &label = m_panel.document()->nodes[static_cast<std::size_t>(i.node)].label;
        EXPECT_LE(metrics.horizontalAdvance(label), i.rect.width() - 17) << text(label);
    }
    EXPECT_EQ(options.nameWidths.size(), 128U);
}

TEST(GraphPanelEmpty, SaysWhatToOpen)
{
    GraphPanel panel;
    panel.resize(800, 400);
    panel.setPair(std::make_shared<const OpenPair>());
    panel.show();
    QStringList words;
    for (const QLabel *label : panel.findChildren<QLabel *>())
        if (label->isVisible())
            words << label->text();
    EXPECT_THAT(text(words.join(QLatin1Char('|'))), ::testing::HasSubstr("Open a reference and a candidate"));
}

TEST_F(GraphPanelTest, FindGoesFromMatchToMatch)
{
    run();
    QLineEdit *field = m_panel.findField();
    m_panel.focusFind();
    QTest::keyClicks(field, QStringLiteral("snr<33"));
    EXPECT_TRUE(m_panel.scene()->matched(item("head_conv.conv")));
    EXPECT_FALSE(m_panel.scene()->matched(item("gap")));
    QTest::keyClick(field, Qt::Key_Return);
    EXPECT_EQ(m_selection.current(), row("head_conv.conv"));
    QTest::keyClick(field, Qt::Key_Return);
    EXPECT_EQ(m_selection.current(), row("head_conv.relu"));
    QTest::keyClick(field, Qt::Key_Return);
    EXPECT_EQ(m_selection.current(), row("head_conv.conv"));
    QTest::keyClick(field, Qt::Key_Return, Qt::ShiftModifier);
    EXPECT_EQ(m_selection.current(), row("head_conv.relu"));
    QTest::keyClick(field, Qt::Key_Escape);
    EXPECT_TRUE(field->text().isEmpty());
    EXPECT_FALSE(m_panel.scene()->matched(item("head_conv.conv")));
}

TEST_F(GraphPanelTest, NeighboursStayBrightTheRestIsDimmed)
{
    m_selection.setCurrent(row("block"));
    m_panel.view()->setFocus();
    key(Qt::Key_N);
    for (const char *near : {"block", "block.conv2", "pool1", "block.relu@1"})
        EXPECT_FALSE(m_panel.scene()->dimmed(item(near))) << near;
    for (const char *far : {"x", "block.conv1", "fc"})
        EXPECT_TRUE(m_panel.scene()->dimmed(item(far))) << far;
    key(Qt::Key_Escape);
    EXPECT_FALSE(m_panel.scene()->dimmed(item("fc")));
}

TEST_F(GraphPanelTest, ZoomKeepsThePointUnderTheMouseAndFitShowsAll)
{
    GraphView *view = m_panel.view();
    const QRectF bounds = m_panel.scene()->layout().bounds;
    EXPECT_TRUE(view->visibleScene().contains(bounds));
    const QPoint at = middle(item("pool2"));
    const QPointF before = view->mapToScene(at);
    QWheelEvent wheel(at, view->viewport()->mapToGlobal(at), {}, {0, 240}, Qt::NoButton, Qt::NoModifier,
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(view->viewport(), &wheel);
    EXPECT_FALSE(view->fitting());
    EXPECT_LT((view->mapToScene(at) - before).manhattanLength(), 3);
    // Dragging moves the scene with the mouse.
    QTest::mousePress(view->viewport(), Qt::LeftButton, {}, {400, 150});
    const QPointF held = view->mapToScene({400, 150});
    QTest::mouseMove(view->viewport(), {430, 170});
    QTest::mouseMove(view->viewport(), {460, 190});
    QTest::mouseRelease(view->viewport(), Qt::LeftButton, {}, {460, 190});
    EXPECT_LT((view->mapToScene({460, 190}) - held).manhattanLength(), 3);
    EXPECT_FALSE(m_selection.current().valid()); // a drag is no click
    view->setFocus();
    key(Qt::Key_F);
    EXPECT_TRUE(view->fitting());
    EXPECT_TRUE(view->visibleScene().contains(bounds));
}

TEST_F(GraphPanelTest, TheMenuOfANodeSkipsItsLayer)
{
    QSignalSpy skip(&m_panel, &GraphPanel::skipRequested), select(&m_panel, &GraphPanel::selectInTableRequested);
    QStringList offered;
    const auto choose = [&](const QString &what) {
        QTimer::singleShot(0, &m_panel, [&offered, what] {
            auto *menu = qobject_cast<QMenu *>(QApplication::activePopupWidget());
            ASSERT_NE(menu, nullptr);
            offered.clear();
            for (QAction *action : menu->actions()) {
                offered << action->text();
                if (action->text() == what)
                    action->trigger();
            }
            menu->close();
        });
        const QPoint at = middle(item("head_conv.conv"));
        QContextMenuEvent event(QContextMenuEvent::Mouse, at, m_panel.view()->viewport()->mapToGlobal(at));
        QApplication::sendEvent(m_panel.view()->viewport(), &event);
    };
    choose(QStringLiteral("Skip this layer"));
    EXPECT_EQ(offered, QStringList({"Skip this layer", "Select in table", "Collapse group head_conv", "Copy name"}));
    ASSERT_EQ(skip.count(), 1);
    EXPECT_EQ(skip[0][0].value<PairId>(), row("head_conv.conv"));
    choose(QStringLiteral("Select in table"));
    EXPECT_EQ(select.count(), 1);
}

TEST_F(GraphPanelTest, AnotherThemeIsTakenAtOnce)
{
    Theme::apply(*qApp, QStringLiteral("dark"));
    EXPECT_EQ(picture().pixelColor(2, 2).name(), Theme::current().base.name());
    EXPECT_EQ(text(Theme::current().base.name()), "#1b1c1e");
    Theme::apply(*qApp, QStringLiteral("light"));
    EXPECT_EQ(picture().pixelColor(2, 2).name(), QStringLiteral("#f7f7f5"));
}

TEST_F(GraphPanelTest, ChoicesAreSavedAndRestored)
{
    m_panel.restoreState(R"({"view":2,"flow":3,"map":false})");
    EXPECT_EQ(m_panel.document()->nodes.size(), 41U);
    EXPECT_TRUE(m_panel.scene()->layout().downwards);
    const QByteArray saved = m_panel.saveState();
    GraphPanel other;
    other.setPair(m_pair);
    other.restoreState(saved);
    EXPECT_EQ(other.saveState(), saved);
    EXPECT_EQ(other.document()->nodes.size(), 41U);
    other.restoreState("nonsense");
    EXPECT_EQ(other.saveState(), saved);
}

TEST(GraphPanelLarge, LargeLayoutsAreAskedForAndLateOnesDropped)
{
    const auto pair = pairOf(residualNet(260, false), residualNet(260, true));
    NodeTableModel table;
    table.setPair(pair);
    GraphPanel panel;
    panel.resize(960, 450);
    panel.setTable(&table);
    std::vector<GraphLayoutRequest> requests;
    QObject::connect(&panel, &GraphPanel::layoutRequested, &panel,
                     [&](const GraphLayoutRequest &request) { requests.push_back(request); });
    panel.setPair(pair);
    // 2081 nodes: groups start closed, which is small enough to be laid out here.
    ASSERT_TRUE(requests.empty());
    EXPECT_LE(panel.scene()->layout().items.size(), GraphPanel::kOpenBoxes);
    EXPECT_EQ(panel.scene()->look(panel.scene()->layout().itemOfNode[1]).shape, GraphNodeLook::Shape::Group);
    const std::size_t closed = panel.scene()->layout().items.size();
    panel.expandAll();
    panel.expandAll();
    ASSERT_EQ(requests.size(), 2U);
    panel.setLayout(GraphPanel::computeLayout(requests[0]));
    EXPECT_EQ(panel.scene()->layout().items.size(), closed); // late
    GraphLayoutResult cancelled;
    cancelled.request = requests[1].serial;
    cancelled.cancelled = true;
    panel.setLayout(cancelled);
    EXPECT_EQ(panel.scene()->layout().items.size(), closed);
    panel.expandAll();
    ASSERT_EQ(requests.size(), 3U);
    panel.setLayout(GraphPanel::computeLayout(requests[2]));
    EXPECT_EQ(panel.scene()->layout().items.size(), 2081U);
    // Few items, whatever the number of nodes.
    EXPECT_LT(panel.scene()->items().size(), 400);
    // A row of a closed group colours the group.
    panel.collapseAll();
    table.setReport(reportOf(rowsWith(*pair, {40, 35, 30, 20})));
    const GraphNodeLook &look = panel.scene()->look(panel.scene()->layout().itemOfNode[1]);
    EXPECT_EQ(look.shape, GraphNodeLook::Shape::Group);
    EXPECT_EQ(look.db, 20);
    EXPECT_EQ(text(look.state), "worst 20.0");
}

TEST(GraphPanelLarge, VeryLargeModelsAreBuiltByWhoeverLaysOut)
{
    const auto pair = pairOf(residualNet(300, false), residualNet(300, true));
    ASSERT_GT(pair->candidate->graph().nodes.size(), GraphPanel::kDirectBuild);
    const auto small = pairOf(digitsNet(false), digitsNet(true));
    GraphPanel panel;
    panel.resize(960, 450);
    panel.setPair(small);
    EXPECT_EQ(panel.scene()->layout().items.size(), 14U);
    std::vector<GraphLayoutRequest> requests;
    QObject::connect(&panel, &GraphPanel::layoutRequested, &panel,
                     [&](const GraphLayoutRequest &request) { requests.push_back(request); });
    panel.setPair(pair);
    EXPECT_TRUE(panel.scene()->empty()); // not the picture of the pair before
    panel.expandAll();                   // nothing to expand yet
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0].document, nullptr);
    panel.setLayout(GraphPanel::computeLayout(requests[0]));
    EXPECT_EQ(panel.document()->nodes.size(), 2401U);
    EXPECT_LE(panel.scene()->layout().items.size(), GraphPanel::kOpenBoxes);
    panel.setPair(nullptr);
    EXPECT_TRUE(panel.scene()->empty());
}

TEST(Theme, RampRunsFromDarkToBrightAndKnowsItsEnds)
{
    EXPECT_EQ(Theme::ramp(0).name(), QStringLiteral("#440154"));
    EXPECT_EQ(Theme::ramp(1).name(), QStringLiteral("#fde725"));
    EXPECT_EQ(Theme::ramp(0.5).name(), QStringLiteral("#21918c"));
    double before = -1;
    for (int i = 0; i <= 20; ++i) {
        const double light = Theme::ramp(i / 20.0).lightnessF();
        EXPECT_GT(qGray(Theme::ramp(i / 20.0).rgb()), before) << light;
        before = qGray(Theme::ramp(i / 20.0).rgb());
    }
    const double inf = std::numeric_limits<double>::infinity();
    EXPECT_EQ(Theme::rampPosition(30, 20, 40), 0.5);
    EXPECT_EQ(Theme::rampPosition(99, 20, 40), 1);
    EXPECT_EQ(Theme::rampPosition(inf, 20, 40), 1);
    EXPECT_EQ(Theme::rampPosition(-inf, 20, 40), 0);
    EXPECT_EQ(Theme::rampPosition(std::numeric_limits<double>::quiet_NaN(), 20, 40), 0);
    EXPECT_EQ(Theme::textOn(Qt::white), QColor(Qt::black));
    EXPECT_EQ(Theme::textOn(Theme::ramp(0)), QColor(Qt::white));
    EXPECT_TRUE(Theme::wantsDark(QStringLiteral("dark")));
    EXPECT_FALSE(Theme::wantsDark(QStringLiteral("light")));
}

} // namespace
} // namespace dblame::ui

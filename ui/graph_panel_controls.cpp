// SPDX-License-Identifier: GPL-3.0-or-later
//
// GraphPanel: the row of controls, the menus, and finding.
#include <algorithm>

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QStackedLayout>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/eliding.h"
#include "ui/graph_find.h"
#include "ui/graph_legend.h"
#include "ui/graph_panel.h"
#include "ui/graph_scene.h"
#include "ui/graph_view.h"
#include "ui/minimap.h"
#include "ui/node_table_model.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

QToolButton *chip(const QString &text, const QString &tip, QWidget *parent)
{
    auto *button = new QToolButton(parent);
    button->setText(text);
    button->setToolTip(tip);
    button->setAccessibleName(tip);
    button->setProperty("role", QStringLiteral("chip"));
    button->setFocusPolicy(Qt::TabFocus);
    return button;
}

QString counted(std::size_t count, const QString &one, const QString &many)
{
    return QStringLiteral("%1 %2").arg(count).arg(count == 1 ? one : many);
}

} // namespace

void GraphPanel::makeControls()
{
    m_summary = new ElidingLabel(this);
    m_summary->setProperty("role", QStringLiteral("mute"));
    m_find = new QLineEdit(this);
    m_find->setPlaceholderText(tr("Find name, op, snr<20"));
    m_find->setAccessibleName(tr("Find in the graph"));
    m_find->setToolTip(tr("Words and comparisons, all of which must hold: conv, -relu, snr<20, drop>=3, failed. "
                          "Enter: next, Shift+Enter: previous, Esc: back to the graph"));
    m_find->setClearButtonEnabled(true);
    m_find->setMaximumWidth(210);
    m_find->installEventFilter(this);
    m_matchLabel = new QLabel(this);
    m_matchLabel->setProperty("role", QStringLiteral("mute"));
    m_viewBox = new QComboBox(this);
    m_viewBox->addItems({tr("merged"), tr("reference"), tr("candidate")});
    m_viewBox->setAccessibleName(tr("Which graph"));
    m_viewBox->setToolTip(tr("Merged: the reference's operators with the candidate's quantizers"));
    m_flowBox = new QComboBox(this);
    m_flowBox->addItems({tr("rows"), tr("columns"), tr("left to right"), tr("top to bottom")});
    m_flowBox->setAccessibleName(tr("Direction"));
    m_stop = chip(tr("Stop"), tr("Stop the layout, or start it again"), this);
    m_stop->hide();
    auto *show = chip(tr("Show ▾"), tr("What to show"), this);
    makeShowMenu(show);
    auto *fitButton = chip(tr("Fit"), tr("Fit the graph into view (F)"), this);
    auto *in = chip(QStringLiteral("+"), tr("Zoom in (+)"), this);
    auto *out = chip(QStringLiteral("−"), tr("Zoom out (-)"), this);
    connect(fitButton, &QToolButton::clicked, this, &GraphPanel::fit);
    connect(in, &QToolButton::clicked, this, [this] { m_view->zoomBy(1.25); });
    connect(out, &QToolButton::clicked, this, [this] { m_view->zoomBy(0.8); });
    connect(m_stop, &QToolButton::clicked, this, &GraphPanel::stopOrResume);
    connect(m_viewBox, &QComboBox::currentIndexChanged, this, [this](int index) {
        m_options.view = static_cast<GraphViewKind>(index);
        rebuild();
    });
    connect(m_flowBox, &QComboBox::currentIndexChanged, this, [this](int index) {
        m_flow = static_cast<GraphFlow>(index);
        relayout();
    });
    connect(m_find, &QLineEdit::textChanged, this, &GraphPanel::runFind);

    m_empty = new QLabel(this);
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setProperty("role", QStringLiteral("mute"));
    m_empty->setFocusPolicy(Qt::NoFocus);
    m_view->setBackgroundBrush(Theme::current().base);

    auto *row = new QHBoxLayout;
    row->setContentsMargins(14, 6, 14, 6);
    row->setSpacing(6);
    row->addWidget(m_summary, 1);
    row->addWidget(m_stop);
    row->addWidget(m_matchLabel);
    row->addWidget(m_find, 1);
    row->addWidget(m_viewBox);
    row->addWidget(m_flowBox);
    row->addWidget(show);
    row->addWidget(fitButton);
    row->addWidget(out);
    row->addWidget(in);
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addLayout(row);
    auto *stack = new QStackedLayout;
    stack->setStackingMode(QStackedLayout::StackAll);
    stack->addWidget(m_view);
    stack->addWidget(m_empty);
    m_empty->setAttribute(Qt::WA_TransparentForMouseEvents);
    column->addLayout(stack, 1);
    auto *strip = new QFrame(this);
    strip->setProperty("role", QStringLiteral("canvas"));
    auto *bottom = new QHBoxLayout(strip);
    bottom->setContentsMargins(0, 0, 14, 8);
    bottom->addWidget(m_legend, 1);
    bottom->addWidget(m_minimap);
    column->addWidget(strip);
    const QList<QWidget *> order{m_view, m_find, m_viewBox, m_flowBox, show, fitButton, out, in};
    for (qsizetype i = 0; i + 1 < order.size(); ++i)
        setTabOrder(order[i], order[i + 1]);
}

void GraphPanel::makeShowMenu(QToolButton *button)
{
    auto *menu = new QMenu(button);
    const auto toggle = [&](const QString &text, bool on, bool GraphOptions::*option) {
        QAction *action = menu->addAction(text);
        action->setCheckable(true);
        action->setChecked(on);
        if (option != nullptr)
            connect(action, &QAction::toggled, this, [this, option](bool checked) {
                m_options.*option = checked;
                rebuild();
            });
        return action;
    };
    m_showSites = toggle(tr("Quantizers and observers"), m_options.sites, &GraphOptions::sites);
    m_showParameters = toggle(tr("Parameters"), m_options.parameters, &GraphOptions::parameters);
    m_showInner = toggle(tr("Inner nodes of quantizers"), m_options.innerNodes, &GraphOptions::innerNodes);
    menu->addSeparator();
    m_showNeighbours = toggle(tr("Only neighbours of the selection (N)"), false, nullptr);
    connect(m_showNeighbours, &QAction::toggled, this, &GraphPanel::setNeighbourhood);
    m_showMap = toggle(tr("Map"), true, nullptr);
    connect(m_showMap, &QAction::toggled, this, &GraphPanel::showMinimap);
    menu->addSeparator();
    connect(menu->addAction(tr("Collapse all groups")), &QAction::triggered, this, &GraphPanel::collapseAll);
    connect(menu->addAction(tr("Expand all groups")), &QAction::triggered, this, &GraphPanel::expandAll);
    button->setMenu(menu);
    button->setPopupMode(QToolButton::InstantPopup);
}

void GraphPanel::connectView()
{
    connect(m_view, &GraphView::resized, this, &GraphPanel::followSize);
    connect(m_view, &GraphView::itemPicked, this, &GraphPanel::pickItem);
    connect(m_view, &GraphView::markPicked, this, &GraphPanel::pickMark);
    connect(m_view, &GraphView::markToggled, this,
            [this](int mark) { Q_EMIT siteToggleRequested(shown().marks[m_scene->layout().marks[mark].mark].site); });
    connect(m_view, &GraphView::itemToggled, this, [this](int item) {
        const GraphItem &box = m_scene->layout().items[item];
        if (box.node < 0)
            Q_EMIT skipModuleRequested(shown().groups[box.group].path);
        else if (const GraphNode &node = shown().nodes[box.node]; node.site.valid())
            Q_EMIT siteToggleRequested(node.site);
        else if (node.row.valid())
            Q_EMIT skipRequested(node.row);
    });
    connect(m_view, &GraphView::groupToggled, this,
            [this](int group) { setCollapsed(group, !m_collapsed.contains(group)); });
    connect(m_view, &GraphView::menuWanted, this, &GraphPanel::showMenu);
    connect(m_view, &GraphView::findWanted, this, &GraphPanel::focusFind);
    connect(m_view, &GraphView::neighbourhoodWanted, this, [this] { setNeighbourhood(!m_scene->neighbourhood()); });
}

void GraphPanel::showMenu(const GraphHit &hit, const QPoint &at)
{
    QMenu menu(this);
    if (hit.what == GraphHit::What::Mark) {
        const GraphMark &mark = shown().marks[m_scene->layout().marks[hit.index].mark];
        const bool off = m_scene->markLook(hit.index).state == GraphMarkLook::State::Off;
        if (!mark.watchesOnly)
            connect(menu.addAction(off ? tr("Quantize here again") : tr("Skip this quantizer")), &QAction::triggered,
                    this, [this, site = mark.site] { Q_EMIT siteToggleRequested(site); });
        if (mark.row.valid())
            connect(menu.addAction(tr("Select in table")), &QAction::triggered, this,
                    [this, row = mark.row] { Q_EMIT selectInTableRequested(row); });
        connect(menu.addAction(tr("Copy name")), &QAction::triggered, this,
                [name = mark.name] { QApplication::clipboard()->setText(name); });
    } else if (hit.what == GraphHit::What::Item) {
        pickItem(hit.index);
        itemMenu(menu, hit.index);
    } else {
        if (hit.what == GraphHit::What::Outline)
            connect(menu.addAction(tr("Collapse group %1").arg(shown().groups[hit.index].path)), &QAction::triggered,
                    this, [this, group = hit.index] { setCollapsed(group, true); });
        connect(menu.addAction(tr("Fit")), &QAction::triggered, this, &GraphPanel::fit);
        connect(menu.addAction(tr("Collapse all groups")), &QAction::triggered, this, &GraphPanel::collapseAll);
        connect(menu.addAction(tr("Expand all groups")), &QAction::triggered, this, &GraphPanel::expandAll);
    }
    menu.exec(at);
}

void GraphPanel::itemMenu(QMenu &menu, std::int32_t item)
{
    const GraphItem &box = m_scene->layout().items[item];
    const PairId row = m_scene->rowOfItem(item);
    if (box.node < 0) {
        const QString path = shown().groups[box.group].path;
        connect(menu.addAction(tr("Expand group")), &QAction::triggered, this,
                [this, group = box.group] { setCollapsed(group, false); });
        connect(menu.addAction(tr("Skip this group")), &QAction::triggered, this,
                [this, path] { Q_EMIT skipModuleRequested(path); });
        connect(menu.addAction(tr("Copy name")), &QAction::triggered, this,
                [path] { QApplication::clipboard()->setText(path); });
        return;
    }
    const GraphNode &node = shown().nodes[box.node];
    if (row.valid())
        connect(menu.addAction(tr("Skip this layer")), &QAction::triggered, this,
                [this, row] { Q_EMIT skipRequested(row); });
    if (node.site.valid())
        connect(menu.addAction(tr("Skip this quantizer")), &QAction::triggered, this,
                [this, site = node.site] { Q_EMIT siteToggleRequested(site); });
    if (row.valid())
        connect(menu.addAction(tr("Select in table")), &QAction::triggered, this,
                [this, row] { Q_EMIT selectInTableRequested(row); });
    if (node.group >= 0)
        connect(menu.addAction(tr("Collapse group %1").arg(shown().groups[node.group].path)), &QAction::triggered, this,
                [this, group = node.group] { setCollapsed(group, true); });
    connect(menu.addAction(tr("Copy name")), &QAction::triggered, this,
            [label = node.label] { QApplication::clipboard()->setText(label); });
}

void GraphPanel::updateSummary()
{
    const std::size_t boxes = m_built ? visibleCount(*m_document, m_collapsed) : operatorCount();
    m_stop->setVisible(m_laying || m_stopped);
    m_stop->setText(m_laying ? tr("Stop") : tr("Lay out"));
    if (m_laying || m_stopped) {
        m_summary->setText(m_laying ? tr("Laying out %1 nodes…").arg(boxes) : tr("Layout stopped"));
        m_empty->hide();
        return;
    }
    m_empty->setVisible(m_scene->empty());
    if (!m_pair || (!m_pair->reference && !m_pair->candidate))
        m_empty->setText(tr("Open a reference and a candidate to see the graph (Ctrl+O, Ctrl+Shift+O), or drop the "
                            "files here: two models, or a folder that holds a pair."));
    else
        m_empty->setText(tr("This graph has no operators to show."));
    QStringList parts;
    if (!m_document->marks.empty())
        parts << counted(m_document->marks.size(), tr("quantizer"), tr("quantizers"));
    if (!m_document->nodes.empty())
        parts.prepend(counted(m_document->nodes.size(), tr("node"), tr("nodes")));
    if (boxes < m_document->nodes.size())
        parts << counted(m_collapsed.size(), tr("group closed"), tr("groups closed"));
    m_summary->setText(parts.join(QStringLiteral(" · ")));
}

void GraphPanel::focusFind()
{
    m_find->setFocus(Qt::ShortcutFocusReason);
    m_find->selectAll();
}

void GraphPanel::find(const QString &query)
{
    m_find->setText(query);
}

void GraphPanel::runFind()
{
    m_matches.clear();
    m_match = -1;
    if (!m_scene->empty() && m_scene->layout().document == m_document)
        for (std::int32_t node : findNodes(*m_document, m_table, m_find->text()))
            m_matches.push_back(m_scene->layout().itemOfNode[node]);
    std::sort(m_matches.begin(), m_matches.end());
    m_matches.erase(std::unique(m_matches.begin(), m_matches.end()), m_matches.end());
    m_scene->setMatches(m_matches);
    m_matchLabel->setText(m_find->text().trimmed().isEmpty() ? QString()
                          : m_matches.empty()                ? tr("none")
                                                             : tr("%1 found").arg(m_matches.size()));
}

void GraphPanel::showMatch(int index)
{
    m_match = index;
    m_matchLabel->setText(tr("%1 of %2").arg(index + 1).arg(m_matches.size()));
    pickItem(m_matches[static_cast<std::size_t>(index)]);
}

void GraphPanel::findNext()
{
    if (!m_matches.empty())
        showMatch((m_match + 1) % static_cast<int>(m_matches.size()));
}

void GraphPanel::findPrevious()
{
    const int count = static_cast<int>(m_matches.size());
    if (count > 0)
        showMatch((std::max(m_match, 0) - 1 + count) % count);
}

} // namespace dblame::ui

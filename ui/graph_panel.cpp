// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_panel.h"

#include <algorithm>
#include <cmath>

#include <QAccessible>
#include <QEvent>
#include <QFontMetricsF>
#include <QJsonDocument>
#include <QJsonObject>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMetaMethod>
#include <QSignalBlocker>
#include <QToolButton>

#include <QAction>
#include <QComboBox>

#include "ui/graph_legend.h"
#include "ui/graph_scene.h"
#include "ui/graph_view.h"
#include "ui/minimap.h"
#include "ui/node_table_model.h"
#include "ui/theme.h"

namespace dblame::ui
{

GraphPanel::GraphPanel(QWidget *parent) : QWidget(parent)
{
    qRegisterMetaType<GraphLayoutRequest>();
    m_scene = new GraphScene(this);
    m_view = new GraphView(m_scene, this);
    m_minimap = new Minimap(m_scene, m_view);
    m_legend = new GraphLegend(m_scene, this);
    makeControls();
    connectView();
    setFocusProxy(m_view);
    setMinimumSize(240, 160);
    rebuild();
}

GraphPanel::~GraphPanel() = default;

GraphLayoutResult GraphPanel::computeLayout(const GraphLayoutRequest &request, std::stop_token stop)
{
    return layoutGraph(request, std::move(stop));
}

void GraphPanel::setPair(OpenPairPtr pair)
{
    m_pair = std::move(pair);
    m_edits = m_ran = {};
    rebuild();
}

void GraphPanel::setTable(NodeTableModel *table)
{
    if (m_table != nullptr)
        disconnect(m_table, nullptr, this, nullptr);
    m_table = table;
    m_scene->setTable(table);
    if (table == nullptr)
        return;
    connect(table, &NodeTableModel::rowsChanged, this,
            [this](int first, int last) { m_scene->refreshRows(first, last); });
    connect(table, &NodeTableModel::dropsChanged, m_scene, &GraphScene::refreshAll);
    connect(table, &QAbstractItemModel::modelReset, m_scene, &GraphScene::refreshAll);
}

void GraphPanel::setSelection(Selection *selection)
{
    if (m_selection != nullptr)
        disconnect(m_selection, nullptr, this, nullptr);
    m_selection = selection;
    if (selection != nullptr)
        connect(selection, &Selection::currentChanged, this, &GraphPanel::followSelection);
    followSelection();
}

void GraphPanel::setPendingChanges(const EditSet &edits, const EditSet &ran)
{
    m_edits = edits;
    m_ran = ran;
    m_scene->setPending(edits, ran);
}

std::size_t GraphPanel::operatorCount() const
{
    std::size_t count = 0;
    if (m_pair)
        for (const auto *model : {m_pair->reference.get(), m_pair->candidate.get()})
            count = std::max(count, model != nullptr ? model->graph().nodes.size() : 0);
    return count;
}

bool GraphPanel::somebodyLaysOut() const
{
    static const QMetaMethod wanted = QMetaMethod::fromSignal(&GraphPanel::layoutRequested);
    return isSignalConnected(wanted);
}

void GraphPanel::rebuild()
{
    m_showInner->setEnabled(m_options.view != GraphViewKind::Merged);
    // Of very large models even the document takes longer than a frame: whoever lays out builds it too.
    m_built = operatorCount() <= kDirectBuild || !somebodyLaysOut();
    m_document = buildGraph(m_built ? m_pair : nullptr, m_options);
    m_collapsed = groupsToCollapse(*m_document, kOpenBoxes);
    relayout();
}

GraphLayoutOptions GraphPanel::layoutOptions() const
{
    GraphLayoutOptions options;
    options.flow = m_flow;
    options.collapsed = m_collapsed;
    // Letters as they are in names of layers.
    static const QString sample = QStringLiteral("layers.10.conv_proj");
    QFont name = Theme::bodyFont();
    name.setWeight(QFont::DemiBold);
    const QFontMetricsF names(name), details(Theme::labelFont());
    options.nameChar = names.horizontalAdvance(sample) / static_cast<double>(sample.size());
    options.detailChar = details.horizontalAdvance(sample) / static_cast<double>(sample.size());
    for (char16_t c = 0; c < 128; ++c) {
        options.nameWidths.push_back(c < 32 ? 0.0F : static_cast<float>(names.horizontalAdvance(QChar(c))));
        options.detailWidths.push_back(c < 32 ? 0.0F : static_cast<float>(details.horizontalAdvance(QChar(c))));
    }
    options.lineHeight = std::max(names.height(), 13.0);
    const QSize size = m_view->viewport()->size();
    options.aspect = std::clamp(static_cast<double>(size.width()) / std::max(1, size.height()), 0.5, 8.0);
    return options;
}

void GraphPanel::relayout()
{
    GraphLayoutRequest request;
    request.options = layoutOptions();
    request.serial = ++m_request;
    if (m_built) {
        request.document = m_document;
    } else {
        request.pair = m_pair;
        request.graph = m_options;
        request.openBoxes = kOpenBoxes;
    }
    m_aspect = request.options.aspect;
    if (m_built && (visibleCount(*m_document, m_collapsed) <= kDirectLayout || !somebodyLaysOut())) {
        setLayout(computeLayout(request));
        return;
    }
    m_laying = true;
    m_stopped = false;
    // Until the layout is there, the picture of another pair would be wrong; that of another view is still right.
    if (!m_scene->empty() && shown().pair != m_pair)
        m_scene->setLayout({});
    updateSummary();
    Q_EMIT layoutRequested(request);
}

void GraphPanel::setLayout(GraphLayoutResult result)
{
    if (result.request != m_request)
        return;
    m_laying = false;
    m_stopped = result.cancelled;
    if (result.cancelled) {
        updateSummary();
        return;
    }
    m_matches.clear();
    m_match = -1;
    m_document = result.document;
    m_collapsed = result.options.collapsed;
    m_built = true;
    m_scene->setLayout(std::move(result));
    m_scene->setPending(m_edits, m_ran);
    showMinimap();
    m_view->fit();
    followSelection();
    runFind();
    updateSummary();
}

void GraphPanel::fit()
{
    m_view->fit();
}

const GraphDocument &GraphPanel::shown() const
{
    return *m_scene->layout().document;
}

void GraphPanel::stopOrResume()
{
    if (m_laying)
        Q_EMIT layoutCancelRequested();
    else
        relayout();
}

void GraphPanel::setCollapsed(int group, bool collapsed)
{
    if (m_laying || group < 0 || group >= static_cast<int>(m_document->groups.size()))
        return;
    const bool changed = collapsed ? m_collapsed.insert(group).second : m_collapsed.erase(group) > 0;
    if (!changed)
        return;
    // What was in the middle stays in the middle.
    const bool fitting = m_view->fitting();
    const double scale = m_view->scale();
    relayout();
    if (fitting || m_laying)
        return;
    m_view->zoomBy(scale / m_view->scale());
    for (std::size_t i = 0; i < m_scene->layout().items.size(); ++i) {
        const GraphItem &item = m_scene->layout().items[i];
        const std::int32_t at = item.node >= 0 ? shown().nodes[item.node].group : item.group;
        if (shown().groupHolds(group, at)) {
            m_view->showAt(item.rect.center());
            break;
        }
    }
}

void GraphPanel::collapseAll()
{
    if (!m_built)
        return;
    m_collapsed.clear();
    for (std::size_t g = 0; g < m_document->groups.size(); ++g)
        if (m_document->groups[g].depth == 0)
            m_collapsed.insert(static_cast<std::int32_t>(g));
    relayout();
}

void GraphPanel::expandAll()
{
    if (!m_built)
        return;
    m_collapsed.clear();
    relayout();
}

void GraphPanel::setNeighbourhood(bool on)
{
    m_scene->setNeighbourhood(on);
    m_showNeighbours->setChecked(on);
}

void GraphPanel::followSelection()
{
    if (m_picking || m_selection == nullptr)
        return;
    const PairId row = m_selection->current();
    // An unpaired node that was clicked has no row: it stays current until another row is.
    const std::int32_t item = m_scene->itemOfRow(row);
    m_scene->setCurrent(item, m_scene->markOfRow(row));
    if (item >= 0 && isVisible())
        m_view->reveal(item);
    announce();
}

void GraphPanel::pickItem(std::int32_t item)
{
    m_scene->setCurrent(item);
    if (item >= 0)
        m_view->reveal(item);
    m_picking = true;
    if (m_selection != nullptr)
        m_selection->setCurrent(m_scene->rowOfItem(item));
    m_picking = false;
    announce();
}

void GraphPanel::pickMark(std::int32_t mark)
{
    const GraphPlacedMark &placed = m_scene->layout().marks[mark];
    const GraphMark &what = shown().marks[placed.mark];
    m_scene->setCurrent(placed.item, mark);
    m_picking = true;
    if (m_selection != nullptr && what.row.valid())
        m_selection->setCurrent(what.row);
    m_picking = false;
    announce();
    Q_EMIT siteActivated(what.site);
}

void GraphPanel::announce()
{
    const QString text = m_scene->currentMark() >= 0 ? m_scene->describeMark(m_scene->currentMark())
                                                     : m_scene->describeItem(m_scene->currentItem());
    m_view->setAccessibleDescription(text);
    QAccessibleEvent event(m_view, QAccessible::DescriptionChanged);
    QAccessible::updateAccessibility(&event);
}

void GraphPanel::showMinimap()
{
    // Where there is little room the graph gets it.
    m_minimap->setVisible(m_showMap->isChecked() && width() > 420 && height() > 360 && !m_scene->empty());
}

void GraphPanel::followSize()
{
    showMinimap();
    // Rows are cut for a shape of window; another shape wants another cut, unless the user has moved on.
    const double aspect = layoutOptions().aspect;
    const bool small = m_scene->layout().items.size() <= kDirectLayout;
    const bool wraps = m_flow == GraphFlow::Rows || m_flow == GraphFlow::Columns;
    if (wraps && m_view->fitting() && small && !m_laying && std::abs(std::log(aspect / m_aspect)) > 0.2)
        relayout();
}

bool GraphPanel::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == m_find && event->type() == QEvent::KeyPress) {
        const auto *key = static_cast<QKeyEvent *>(event);
        if (key->key() == Qt::Key_Escape) {
            m_find->clear();
            m_view->setFocus();
            return true;
        }
        if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
            if (key->modifiers() & Qt::ShiftModifier)
                findPrevious();
            else
                findNext();
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

void GraphPanel::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) {
        m_view->setBackgroundBrush(Theme::current().base);
        m_scene->update();
        m_legend->update();
    }
    QWidget::changeEvent(event);
}

QByteArray GraphPanel::saveState() const
{
    QJsonObject state;
    state[QStringLiteral("view")] = m_viewBox->currentIndex();
    state[QStringLiteral("flow")] = m_flowBox->currentIndex();
    state[QStringLiteral("sites")] = m_options.sites;
    state[QStringLiteral("parameters")] = m_options.parameters;
    state[QStringLiteral("inner")] = m_options.innerNodes;
    state[QStringLiteral("map")] = m_showMap->isChecked();
    return QJsonDocument(state).toJson(QJsonDocument::Compact);
}

void GraphPanel::restoreState(const QByteArray &bytes)
{
    const QJsonObject state = QJsonDocument::fromJson(bytes).object();
    const auto flag = [&state](const char *name, bool before) { return state[QLatin1String(name)].toBool(before); };
    const auto index = [&state](const char *name, const QComboBox *box) {
        return std::clamp(state[QLatin1String(name)].toInt(box->currentIndex()), 0, box->count() - 1);
    };
    {
        const QSignalBlocker a(m_viewBox), b(m_flowBox), c(m_showSites), d(m_showParameters), e(m_showInner);
        m_viewBox->setCurrentIndex(index("view", m_viewBox));
        m_flowBox->setCurrentIndex(index("flow", m_flowBox));
        m_showSites->setChecked(flag("sites", m_options.sites));
        m_showParameters->setChecked(flag("parameters", m_options.parameters));
        m_showInner->setChecked(flag("inner", m_options.innerNodes));
    }
    m_showMap->setChecked(flag("map", m_showMap->isChecked()));
    m_options.view = static_cast<GraphViewKind>(m_viewBox->currentIndex());
    m_flow = static_cast<GraphFlow>(m_flowBox->currentIndex());
    m_options.sites = m_showSites->isChecked();
    m_options.parameters = m_showParameters->isChecked();
    m_options.innerNodes = m_showInner->isChecked();
    rebuild();
}

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layers_panel.h"

#include <QAction>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QListWidget>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QStackedLayout>
#include <QTreeView>

#include "ui/edits_text.h"
#include "ui/eliding.h"
#include "ui/layers_model.h"
#include "ui/node_table_model.h"
#include "ui/selection.h"
#include "ui/spec_editor.h"
#include "ui/theme.h"

namespace dblame::ui
{

namespace
{

QLabel *emptyText(const QString &text)
{
    auto *label = new QLabel(text);
    label->setAlignment(Qt::AlignCenter);
    label->setWordWrap(true);
    label->setMargin(14);
    label->setProperty("role", "mute");
    return label;
}

} // namespace

LayersPanel::LayersPanel(QWidget *parent)
    : QWidget(parent), m_model(new LayersModel(this)), m_view(new QTreeView), m_stack(new QStackedLayout)
{
    m_view->setModel(m_model);
    m_view->setAccessibleName(tr("Layers"));
    m_view->setAccessibleDescription(tr("A checked layer is quantized; unchecked, it is float in the next run"));
    m_view->setUniformRowHeights(true);
    m_view->setIndentation(14);
    m_view->setExpandsOnDoubleClick(true);
    m_view->setContextMenuPolicy(Qt::CustomContextMenu);
    m_view->header()->setStretchLastSection(false);
    m_view->header()->setMinimumSectionSize(40);
    m_view->header()->setSectionResizeMode(LayersModel::Name, QHeaderView::Stretch);
    m_view->header()->setSectionResizeMode(LayersModel::Spec, QHeaderView::ResizeToContents);
    m_view->header()->setSectionResizeMode(LayersModel::Snr, QHeaderView::ResizeToContents);
    connect(m_view, &QWidget::customContextMenuRequested, this, &LayersPanel::showMenu);
    connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &LayersPanel::takeCurrent);
    connect(m_model, &LayersModel::editsWanted, this, &LayersPanel::editsWanted);

    m_controls = buildControls();
    auto *tree = new QWidget;
    tree->setLayout(m_stack);
    m_stack->addWidget(m_view);
    m_stack->addWidget(emptyText(tr("The candidate's layers will stand here, each with a box:\nchecked is quantized, "
                                    "unchecked is float.\nOpen a candidate.")));
    m_stack->addWidget(emptyText(tr("No quantizer was recognized in the candidate:\nthere is nothing to switch off.\n"
                                    "The Log says what was looked at.")));
    m_stack->setCurrentIndex(1);
    auto *upper = new QWidget;
    auto *upperLayout = new QVBoxLayout(upper);
    upperLayout->setContentsMargins(0, 0, 0, 0);
    upperLayout->setSpacing(0);
    upperLayout->addWidget(tree, 1);
    upperLayout->addWidget(buildSpec());
    auto *splitter = new QSplitter(Qt::Vertical);
    splitter->addWidget(upper);
    splitter->addWidget(buildPlan());
    splitter->setStretchFactor(0, 3);
    splitter->setStretchFactor(1, 1);
    splitter->setChildrenCollapsible(false);
    splitter->setSizes({620, 190});
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(splitter);
    setEdits({}, {});
}

QWidget *LayersPanel::buildControls()
{
    const auto button = [this](const QString &text, const QString &what, void (LayersPanel::*slot)()) {
        auto *made = new QPushButton(text);
        made->setProperty("role", "flat");
        made->setToolTip(what);
        made->setAccessibleDescription(what);
        connect(made, &QPushButton::clicked, this, slot);
        return made;
    };
    m_skip = button(tr("Skip"), tr("Make the selected layer float, or quantize it again"), &LayersPanel::toggleCurrent);
    m_only = button(tr("Only"), tr("Keep only the selected layer quantized"), &LayersPanel::keepOnlyCurrent);
    m_reset = new QPushButton(tr("Reset"));
    m_reset->setProperty("role", "flat");
    m_reset->setToolTip(tr("Take all changes back: the candidate as it was opened"));
    connect(m_reset, &QPushButton::clicked, this, [this] { Q_EMIT editsWanted({}, tr("reset all layers")); });
    auto *bar = new QWidget(this); // until the dock takes it
    auto *layout = new QHBoxLayout(bar);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_skip);
    layout->addWidget(m_only);
    layout->addWidget(m_reset);
    return bar;
}

QWidget *LayersPanel::buildSpec()
{
    m_spec = new QWidget;
    m_specName = new QLabel;
    m_specName->setProperty("role", "mute");
    m_editor = new SpecEditor;
    m_specName->setWordWrap(true);
    m_asOpened = new QPushButton(tr("As opened"));
    m_asOpened->setProperty("role", "flat");
    m_asOpened->setToolTip(tr("Give the site back its own spec"));
    connect(m_editor, &SpecEditor::edited, this, &LayersPanel::takeSpec);
    connect(m_asOpened, &QPushButton::clicked, this, &LayersPanel::forgetSpec);
    auto *head = new QHBoxLayout;
    head->addWidget(m_specName, 1);
    head->addWidget(m_asOpened, 0, Qt::AlignTop);
    auto *layout = new QVBoxLayout(m_spec);
    layout->setContentsMargins(14, 6, 14, 8);
    layout->setSpacing(4);
    layout->addLayout(head);
    layout->addWidget(m_editor);
    return m_spec;
}

QWidget *LayersPanel::buildPlan()
{
    auto *title = new QLabel(tr("Plan"));
    title->setProperty("role", "title");
    m_planCount = new QLabel;
    m_planCount->setProperty("role", "accent");
    m_planList = new QListWidget;
    m_planList->setAccessibleName(tr("Plan: the sites that the next run changes"));
    m_planList->setWordWrap(true);
    m_planList->setTextElideMode(Qt::ElideNone);
    m_planList->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_planList->setSelectionMode(QAbstractItemView::NoSelection);
    m_run = new QPushButton(tr("Run the change"));
    m_run->setProperty("role", "primary");
    connect(m_run, &QPushButton::clicked, this, &LayersPanel::runWanted);
    m_reruns = new ElidingLabel;
    m_reruns->setProperty("role", "mute");
    auto *head = new QHBoxLayout;
    head->addWidget(title);
    head->addWidget(m_planCount);
    head->addStretch();
    auto *foot = new QHBoxLayout;
    foot->addWidget(m_run);
    foot->addWidget(m_reruns, 1);
    auto *plan = new QWidget;
    auto *layout = new QVBoxLayout(plan);
    layout->setContentsMargins(14, 8, 14, 14);
    layout->setSpacing(6);
    layout->addLayout(head);
    layout->addWidget(m_planList, 1);
    layout->addLayout(foot);
    return plan;
}

void LayersPanel::setPair(OpenPairPtr pair)
{
    m_pair = pair;
    m_model->setPair(std::move(pair));
    // A deep net opens with its top modules only; a small one shows its layers at once.
    if (m_model->tree().items.size() < 400) {
        for (std::size_t i = 0; i < m_model->tree().items.size(); ++i)
            if (m_model->tree().items[i].kind == LayerItem::Module)
                m_view->expand(m_model->indexOf(static_cast<int>(i)));
    }
    const bool candidate = m_pair && m_pair->candidate;
    m_stack->setCurrentIndex(!candidate || m_model->tree().items.empty() ? 1 : m_pair->sites.sites.empty() ? 2 : 0);
    m_plan.reset();
    setEdits({}, {});
}

void LayersPanel::setTable(NodeTableModel *table)
{
    m_model->setTable(table);
}

void LayersPanel::setSelection(Selection *selection)
{
    m_selection = selection;
    connect(selection, &Selection::currentChanged, this, &LayersPanel::followSelection);
}

void LayersPanel::setEdits(const EditSet &edits, const EditSet &ran)
{
    m_edits = edits;
    m_ran = ran;
    m_model->setEdits(edits, ran);
    m_reset->setEnabled(!edits.empty());
    showSpec();
    fillPlan();
}

void LayersPanel::setRunnable(bool runnable)
{
    m_runnable = runnable;
    fillPlan();
}

void LayersPanel::takeCurrent()
{
    const LayerItem *item = m_model->item(m_view->currentIndex());
    if (m_selection != nullptr && item != nullptr) {
        PairId row = item->row;
        if (!row.valid() && item->kind == LayerItem::Site && item->parent >= 0)
            row = m_model->tree().items[static_cast<std::size_t>(item->parent)].row;
        if (row.valid())
            m_selection->setCurrent(row);
    }
    showSpec();
}

void LayersPanel::followSelection()
{
    const int item = m_model->tree().itemOfRow(m_selection->current());
    if (item < 0)
        return;
    // A site of the layer, or the layer itself, stays current.
    const QModelIndex current = m_view->currentIndex();
    if (current.isValid() && (static_cast<int>(current.internalId()) == item || m_model->item(current)->parent == item))
        return;
    m_view->setCurrentIndex(m_model->indexOf(item));
    m_view->scrollTo(m_model->indexOf(item));
}

void LayersPanel::toggleCurrent()
{
    if (const QModelIndex current = m_view->currentIndex(); current.isValid())
        m_model->setData(current.siblingAtColumn(LayersModel::Name), {}, Qt::CheckStateRole);
}

void LayersPanel::toggleRow(PairId row)
{
    if (const int item = m_model->tree().itemOfRow(row); item >= 0)
        m_model->setData(m_model->indexOf(item), {}, Qt::CheckStateRole);
}

void LayersPanel::togglePath(const QString &path)
{
    if (const QModelIndex index = m_model->indexOfPath(path); index.isValid())
        m_model->setData(index, {}, Qt::CheckStateRole);
}

void LayersPanel::toggleSite(SiteId site)
{
    const auto &items = m_model->tree().items;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].kind == LayerItem::Site && items[i].site == site && items[i].whole.off.contains(site)) {
            m_model->setData(m_model->indexOf(static_cast<int>(i)), {}, Qt::CheckStateRole);
            return;
        }
    }
}

void LayersPanel::keepOnlyCurrent()
{
    const LayerItem *item = m_model->item(m_view->currentIndex());
    if (item == nullptr)
        return;
    // Off is whatever the layer does not use; a site on its inputs stays for this layer and is bypassed for others.
    EditSet edits;
    for (std::size_t i = 0; i < m_pair->sites.sites.size(); ++i) {
        const SiteId id(i);
        const QuantSite &site = m_pair->sites.sites[i];
        if (site.watchesOnly || item->whole.off.contains(id))
            continue;
        EditSet others;
        bool kept = false;
        for (const NodeId reader : site.readers) {
            kept = kept || item->whole.bypassed.contains({id, reader});
            if (!item->whole.bypassed.contains({id, reader}))
                others.bypassed.insert({id, reader});
        }
        if (kept)
            edits = unite(std::move(edits), others);
        else
            edits.off.insert(id);
    }
    Q_EMIT editsWanted(edits, tr("only %1").arg(item->path));
}

void LayersPanel::showMenu(const QPoint &at)
{
    const LayerItem *item = m_model->item(m_view->indexAt(at));
    if (item == nullptr)
        return;
    QMenu menu(this);
    const LayerState state = stateOf(*item, m_edits);
    QAction *skip = menu.addAction(state == LayerState::On ? tr("Skip: float here") : tr("Quantize again"));
    skip->setEnabled(state != LayerState::None);
    connect(skip, &QAction::triggered, this, &LayersPanel::toggleCurrent);
    connect(menu.addAction(tr("Keep only this quantized")), &QAction::triggered, this, &LayersPanel::keepOnlyCurrent);
    if (specSite().valid()) {
        QMenu *bits = menu.addMenu(tr("Bits"));
        for (const int n : {4, 6, 8, 10, 12, 16})
            connect(bits->addAction(tr("%1 bits").arg(n)), &QAction::triggered, this,
                    [this, n] { m_editor->setBits(n); });
        connect(menu.addAction(tr("Spec as opened")), &QAction::triggered, this, &LayersPanel::forgetSpec);
    }
    menu.addSeparator();
    connect(menu.addAction(tr("Expand all")), &QAction::triggered, m_view, &QTreeView::expandAll);
    connect(menu.addAction(tr("Collapse all")), &QAction::triggered, m_view, &QTreeView::collapseAll);
    menu.exec(m_view->viewport()->mapToGlobal(at));
}

} // namespace dblame::ui

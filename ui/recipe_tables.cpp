// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/recipe_tables.h"

#include <QFont>
#include <QHeaderView>
#include <QStandardItem>
#include <QTableView>

namespace dblame::ui
{

namespace
{

constexpr int kRowHeight = 24; // pixels

} // namespace

QTableView *makeRecipeTable(QStandardItemModel *model, const QString &name)
{
    auto *view = new QTableView;
    view->setModel(model);
    view->setAccessibleName(name);
    view->setSelectionBehavior(QAbstractItemView::SelectRows);
    view->setSelectionMode(QAbstractItemView::SingleSelection);
    view->setEditTriggers(QAbstractItemView::NoEditTriggers);
    view->setShowGrid(false);
    view->setWordWrap(false);
    view->setTabKeyNavigation(false);
    view->verticalHeader()->hide();
    view->verticalHeader()->setDefaultSectionSize(kRowHeight);
    view->horizontalHeader()->setHighlightSections(false);
    view->horizontalHeader()->setStretchLastSection(true);
    return view;
}

QStandardItem *recipeCell(const QString &text, bool number, bool marked)
{
    auto *item = new QStandardItem(text);
    item->setToolTip(text);
    item->setTextAlignment((number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    if (marked) {
        QFont font;
        font.setWeight(QFont::DemiBold);
        item->setFont(font);
    }
    return item;
}

} // namespace dblame::ui

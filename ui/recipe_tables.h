// SPDX-License-Identifier: GPL-3.0-or-later
//
// The tables of the Recipe dock look alike.
#pragma once

#include <QString>

class QStandardItem;
class QStandardItemModel;
class QTableView;

namespace dblame::ui
{

// `name`: for screen readers. The view does not own the model.
[[nodiscard]] QTableView *makeRecipeTable(QStandardItemModel *model, const QString &name);
// `number`: aligned right. `marked`: stands out.
[[nodiscard]] QStandardItem *recipeCell(const QString &text, bool number = false, bool marked = false);

} // namespace dblame::ui

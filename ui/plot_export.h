// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSize>
#include <QString>

#include "core/error.h"

class QCustomPlot;
class QWidget;

namespace dblame::ui
{

// Asks where to; the chosen kind of picture gives the extension where the name has none. Empty: nowhere.
[[nodiscard]] QString choosePlotPath(QWidget *parent, const QString &title, const QString &proposal);

// Writes the plot as it looks now, at `size` in pixels (invalid: its size on screen). The kind of picture is
// the file's extension: png (twice the pixels), svg or pdf; any other is an error that says so. The picture goes
// to a temporary neighbour and is renamed, so a failed export leaves an earlier file whole.
[[nodiscard]] Result<void> exportPlot(QCustomPlot &plot, const QString &path, QSize size = {});

} // namespace dblame::ui

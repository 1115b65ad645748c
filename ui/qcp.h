// SPDX-License-Identifier: GPL-3.0-or-later
//
// The only door to QCustomPlot; include it in .cpp files. The project builds with QT_NO_KEYWORDS (torch has a
// function called slots), but qcustomplot.h 2.1.0 is written with the bare words: they exist for the length of
// the include and no longer.
#pragma once

#include <QtCore/QtGlobal>

#define signals Q_SIGNALS
#define slots Q_SLOTS
#define emit Q_EMIT
#define foreach Q_FOREACH
#include <qcustomplot.h>
#undef signals
#undef slots
#undef emit
#undef foreach

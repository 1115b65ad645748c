// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QFont>
#include <QString>

class QApplication;

namespace dblame::ui
{

// The colours of the window (docs/design.md). One accent blue for actions and the reference, one orange for
// "look here" and the candidate, greys for the rest, viridis for SNR only. GUI thread only.
//
// The style sheet reads the dynamic property "role" of a widget, set before it is shown:
//   QPushButton  "primary" the one action of its place (blue), "flat" no frame until hovered
//   QToolButton  "chip"    a framed button outside toolbars
//   QLabel       "mute" 11 px label, "title" semibold dock title, "value" semibold number, "accent" orange text
//   QFrame       "tile"    metric tile, "panel" panel background, "canvas" the grey behind graph and plots
// Widgets that paint themselves read current() and repaint on QEvent::PaletteChange.
struct Theme {
    bool dark = false;
    QColor base, panel, line, text, mute, blue, orange, chip, grid;
    QColor bar;       // menu bar and status bar
    QColor selection; // background of a selected row; text keeps its colour
    QColor edge;      // lines between the graph's nodes

    [[nodiscard]] static const Theme &current();
    // Chooses and applies palette, font and style sheet; "light", "dark" or "" (follow the desktop).
    static void apply(QApplication &app, const QString &name);
    // What `apply(app, name)` would choose.
    [[nodiscard]] static bool wantsDark(const QString &name);
    // viridis at t in 0..1 (low SNR dark, high SNR bright).
    [[nodiscard]] static QColor ramp(double t);
    // Where a dB value lies between lo and hi, clamped; +inf is 1, -inf and NaN 0.
    [[nodiscard]] static double rampPosition(double db, double lo, double hi);
    // Black or white, whichever reads better on `background`.
    [[nodiscard]] static QColor textOn(const QColor &background);

    // The desktop's UI font with figures of equal width: body text, labels (a pixel less), dock titles.
    [[nodiscard]] static QFont bodyFont();
    [[nodiscard]] static QFont labelFont();
    [[nodiscard]] static QFont titleFont();
};

} // namespace dblame::ui

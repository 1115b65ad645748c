// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QString>

class QApplication;
class QWidget;

namespace dblame::ui {

// The colours of the window (docs/design.md). One accent blue for actions and the reference, one orange for
// "look here" and the candidate, greys for the rest, viridis for SNR only.
struct Theme {
    bool dark = false;
    QColor base, panel, line, text, mute, blue, orange, chip, grid;

    [[nodiscard]] static const Theme &current();
    // Chooses and applies palette and style sheet; "light", "dark" or "" (follow the desktop).
    static void apply(QApplication &app, const QString &name);
    // viridis at t in 0..1 (low SNR dark, high SNR bright).
    [[nodiscard]] static QColor ramp(double t);
    // Where a dB value lies between lo and hi, clamped; +inf is 1, -inf and NaN 0.
    [[nodiscard]] static double rampPosition(double db, double lo, double hi);
    // Black or white, whichever reads better on `background`.
    [[nodiscard]] static QColor textOn(const QColor &background);
};

} // namespace dblame::ui

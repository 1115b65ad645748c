// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <QApplication>
#include <QFontInfo>
#include <QFontMetrics>
#include <QPalette>
#include <QStyle>
#include <QStyleFactory>
#include <QStyleHints>

// The resources of a static library are linked in when asked for; the macro wants the global namespace.
static void loadIcons()
{
    Q_INIT_RESOURCE(theme);
}

namespace dblame::ui
{

namespace
{

Theme lightTheme()
{
    return {.dark = false,
            .base = 0xf7f7f5,
            .panel = 0xffffff,
            .line = 0xdedcd6,
            .text = 0x22211f,
            .mute = 0x6b6963,
            .blue = 0x2a78d6,
            .orange = 0xeb6834,
            .chip = 0xf0efeb,
            .grid = 0xebe9e4,
            .bar = 0xefeeea,
            .selection = 0xdce8f8,
            .edge = 0x6b6963};
}

Theme darkTheme()
{
    return {.dark = true,
            .base = 0x1b1c1e,
            .panel = 0x232528,
            .line = 0x3a3d42,
            .text = 0xe7e6e3,
            .mute = 0x9b9a96,
            .blue = 0x5aa2f0,
            .orange = 0xf28a5c,
            .chip = 0x2e3135,
            .grid = 0x303338,
            .bar = 0x292b2e,
            .selection = 0x223f5f,
            .edge = 0x9b9a96};
}

struct State {
    Theme theme = lightTheme();
    // The desktop's own choices, read before the first apply() covers them with ours.
    bool read = false;
    bool desktopDark = false;
    QFont desktopFont;
    // What the last apply() was asked for: "" keeps following the desktop.
    QString name;
};

State &state()
{
    static State s;
    return s;
}

void readDesktop()
{
    State &s = state();
    if (s.read)
        return;
    s.read = true;
    const QPalette palette = QApplication::palette();
    s.desktopDark = palette.color(QPalette::Window).lightnessF() < palette.color(QPalette::WindowText).lightnessF();
    s.desktopFont = QApplication::font();
}

bool desktopIsDark()
{
    readDesktop();
#if QT_VERSION >= QT_VERSION_CHECK(6, 5, 0)
    switch (QGuiApplication::styleHints()->colorScheme()) {
    case Qt::ColorScheme::Dark:
        return true;
    case Qt::ColorScheme::Light:
        return false;
    case Qt::ColorScheme::Unknown:
        break;
    }
#endif
    return state().desktopDark;
}

// 12 px at least; a desktop that asks for larger type keeps it.
int bodyPixels()
{
    readDesktop();
    return std::max(12, QFontInfo(state().desktopFont).pixelSize());
}

QFont withTabularFigures(QFont font)
{
#if QT_VERSION >= QT_VERSION_CHECK(6, 7, 0)
    font.setFeature(QFont::Tag("tnum"), 1);
#endif
    return font;
}

QFont sized(int pixels, QFont::Weight weight)
{
    readDesktop();
    QFont font = withTabularFigures(state().desktopFont);
    font.setPixelSize(pixels);
    font.setWeight(weight);
    return font;
}

QColor mixed(const QColor &a, const QColor &b, double t)
{
    const auto mix = [t](int x, int y) { return static_cast<int>(std::lround(x + (y - x) * t)); };
    return {mix(a.red(), b.red()), mix(a.green(), b.green()), mix(a.blue(), b.blue())};
}

QPalette paletteOf(const Theme &t)
{
    QPalette p;
    p.setColor(QPalette::Window, t.panel);
    p.setColor(QPalette::WindowText, t.text);
    p.setColor(QPalette::Base, t.panel);
    p.setColor(QPalette::AlternateBase, t.base);
    p.setColor(QPalette::Text, t.text);
    p.setColor(QPalette::PlaceholderText, t.mute);
    p.setColor(QPalette::Button, t.chip);
    p.setColor(QPalette::ButtonText, t.text);
    p.setColor(QPalette::BrightText, t.orange);
    p.setColor(QPalette::ToolTipBase, t.panel);
    p.setColor(QPalette::ToolTipText, t.text);
    p.setColor(QPalette::Link, t.blue);
    p.setColor(QPalette::LinkVisited, t.blue);
    p.setColor(QPalette::Highlight, t.blue);
    p.setColor(QPalette::HighlightedText, t.dark ? t.base : QColor(Qt::white));
    // Frames are drawn from these five; flat means that they all sit close to the separator colour.
    p.setColor(QPalette::Light, t.panel);
    p.setColor(QPalette::Midlight, t.chip);
    p.setColor(QPalette::Mid, t.line);
    p.setColor(QPalette::Dark, t.line);
    p.setColor(QPalette::Shadow, t.line);
    const QColor off = mixed(t.panel, t.mute, 0.65);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        p.setColor(QPalette::Disabled, role, off);
    p.setColor(QPalette::Disabled, QPalette::Highlight, t.line);
    return p;
}

// One sheet for the whole application. %name% stands for a colour or a size.
constexpr const char *kSheet = R"(
QMainWindow, QDialog { background: %panel%; }
QMainWindow::separator { background: %line%; width: 1px; height: 1px; margin: 0; padding: 0; }
QMainWindow::separator:hover { background: %blue%; }
QSplitter::handle { background: %line%; }
QSplitter::handle:horizontal { width: 1px; }
QSplitter::handle:vertical { height: 1px; }
QToolTip { background: %panel%; color: %text%; border: 1px solid %line%; padding: 4px 6px; }

QMenuBar { background: %bar%; border: 0; }
QMenuBar::item { background: transparent; padding: 5px 12px; }
QMenuBar::item:selected { background: %line%; }
QMenu { background: %panel%; border: 1px solid %line%; padding: 4px; }
QMenu::item { padding: 5px 28px 5px 24px; border-radius: 4px; }
QMenu::item:selected { background: %selection%; color: %text%; }
QMenu::item:disabled { color: %off%; }
QMenu::separator { height: 1px; background: %line%; margin: 4px 8px; }
QStatusBar { background: %bar%; border-top: 1px solid %line%; }
QStatusBar::item { border: 0; }
QStatusBar QLabel { padding: 2px 8px; }
QToolBar { background: %panel%; border: 0; border-bottom: 1px solid %line%; spacing: 8px; padding: 7px 14px; }
QToolBar::separator { background: %line%; width: 1px; margin: 4px 4px; }

QPushButton, QToolButton[role="chip"], QToolBar QToolButton, QComboBox {
  background: %chip%; color: %text%; border: 1px solid %line%; border-radius: 6px; padding: 4px 10px; min-height: %linepx%; max-height: %linepx%; }
QPushButton:hover, QToolButton[role="chip"]:hover, QToolBar QToolButton:hover, QComboBox:hover { border-color: %mute%; }
QPushButton:pressed, QToolButton[role="chip"]:pressed, QToolBar QToolButton:pressed, QPushButton:checked,
QToolButton[role="chip"]:checked, QToolBar QToolButton:checked { background: %line%; }
QPushButton:focus, QToolButton[role="chip"]:focus, QToolBar QToolButton:focus, QComboBox:focus { border-color: %blue%; }
QPushButton:disabled, QToolButton[role="chip"]:disabled, QToolBar QToolButton:disabled, QComboBox:disabled {
  color: %off%; }
QPushButton[role="primary"], QToolBar QToolButton[role="primary"] {
  background: %blue%; color: %onblue%; border-color: %blue%; font-weight: 600; }
QPushButton[role="primary"]:hover, QToolBar QToolButton[role="primary"]:hover { background: %bluehover%; }
QPushButton[role="primary"]:focus, QToolBar QToolButton[role="primary"]:focus { border: 1px solid %text%; }
QPushButton[role="primary"]:disabled, QToolBar QToolButton[role="primary"]:disabled {
  background: %chip%; color: %off%; border-color: %line%; }
QPushButton[role="flat"] { background: transparent; border-color: transparent; color: %blue%; }
QPushButton[role="flat"]:hover, QPushButton[role="flat"]:focus { border-color: %blue%; }
QPushButton[role="flat"]:disabled { color: %off%; }
QToolButton { background: transparent; border: 1px solid transparent; border-radius: 6px; padding: 3px 6px; }
QToolButton:hover { background: %chip%; }
QToolButton:focus { border-color: %blue%; }
QToolButton:checked { background: %chip%; border-color: %line%; }
QToolButton::menu-indicator { image: none; width: 0; }
QComboBox::drop-down { border: 0; width: 22px; }
QComboBox::down-arrow { image: url(:/dblame/icons/down-%theme%.svg); width: 10px; height: 10px; }
QComboBox QAbstractItemView { background: %panel%; border: 1px solid %line%; selection-background-color: %selection%;
  selection-color: %text%; outline: 0; }

QLineEdit, QPlainTextEdit, QTextEdit, QSpinBox, QDoubleSpinBox {
  background: %panel%; color: %text%; border: 1px solid %line%; border-radius: 6px; padding: 4px 8px;
  selection-background-color: %blue%; selection-color: %onblue%; }
QLineEdit, QSpinBox, QDoubleSpinBox { min-height: %linepx%; max-height: %linepx%; }
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus { border-color: %blue%; }
QSpinBox::up-button, QDoubleSpinBox::up-button, QSpinBox::down-button, QDoubleSpinBox::down-button {
  border: 0; background: transparent; width: 18px; }
QSpinBox::up-arrow, QDoubleSpinBox::up-arrow { image: url(:/dblame/icons/up-%theme%.svg); width: 8px; height: 8px; }
QSpinBox::down-arrow, QDoubleSpinBox::down-arrow {
  image: url(:/dblame/icons/down-%theme%.svg); width: 8px; height: 8px; }

QDockWidget { color: %text%; font-size: %titlepx%; font-weight: 600; }
QDockWidget > QWidget { font-weight: 400; }
QDockWidget::title { background: %panel%; text-align: left; padding: 8px 14px; border-bottom: 1px solid %line%; }

QTabWidget::pane { border: 0; border-top: 1px solid %line%; }
QTabBar { qproperty-drawBase: 0; background: %panel%; }
QTabBar::tab { background: transparent; color: %mute%; border: 0; border-bottom: 2px solid transparent;
  padding: 7px 4px 6px 4px; margin: 0 10px; }
QTabBar::tab:hover { color: %text%; }
QTabBar::tab:selected { color: %text%; border-bottom-color: %blue%; font-weight: 600; }
QTabBar::tab:focus { color: %blue%; }

QAbstractItemView { background: %panel%; alternate-background-color: %base%; border: 0; outline: 0;
  selection-background-color: %selection%; selection-color: %text%; }
QTreeView::item, QListView::item { min-height: 22px; padding: 0 2px; }
QAbstractItemView::item:hover { background: %base%; }
QAbstractItemView::item:selected { background: %selection%; color: %text%; }
QAbstractItemView::item:focus { border: 1px solid %blue%; }
QRadioButton::indicator { width: 13px; height: 13px; border: 1px solid %mute%; border-radius: 7px; background: %base%; }
QRadioButton::indicator:checked { background: %blue%; border: 1px solid %blue%; }
QRadioButton::indicator:focus, QRadioButton:focus::indicator { border-color: %text%; }
QTreeView::indicator, QCheckBox::indicator { width: 13px; height: 13px; border: 1px solid %mute%; border-radius: 3px;
  background: %panel%; }
QTreeView::indicator:checked, QCheckBox::indicator:checked { background: %blue%; border-color: %blue%;
  image: url(:/dblame/icons/check-%theme%.svg); }
QTreeView::indicator:indeterminate, QCheckBox::indicator:indeterminate { border-color: %blue%;
  image: url(:/dblame/icons/partly-%theme%.svg); }
QTableView { gridline-color: %grid%; }
QHeaderView { background: %panel%; border: 0; }
QHeaderView::section { background: %panel%; color: %mute%; border: 0; border-bottom: 1px solid %line%;
  padding: 4px 6px; font-size: %labelpx%; }
QHeaderView::section:hover { color: %text%; }
QTableCornerButton::section { background: %panel%; border: 0; }

QProgressBar { background: %grid%; border: 0; border-radius: 3px; min-height: 6px; max-height: 6px; }
QProgressBar::chunk { background: %blue%; border-radius: 3px; }
QScrollArea { background: transparent; border: 0; }
QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle { background: %line%; border-radius: 3px; margin: 2px; min-height: 24px; min-width: 24px; }
QScrollBar::handle:hover { background: %mute%; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QLabel[role="mute"] { color: %mute%; font-size: %labelpx%; }
QLabel[role="title"] { font-size: %titlepx%; font-weight: 600; }
QLabel[role="value"] { font-weight: 600; }
QLabel[role="accent"] { color: %orange%; }
QFrame[role="tile"] { background: %chip%; border: 1px solid %line%; border-radius: 6px; }
QFrame[role="panel"] { background: %panel%; border: 0; }
QFrame[role="canvas"] { background: %base%; border: 0; }
)";

QString sheetOf(const Theme &t)
{
    QString sheet = QString::fromLatin1(kSheet);
    const auto put = [&sheet](const char *name, const QString &text) {
        sheet.replace(QLatin1Char('%') + QLatin1String(name) + QLatin1Char('%'), text);
    };
    put("theme", t.dark ? QStringLiteral("dark") : QStringLiteral("light"));
    put("base", t.base.name());
    put("panel", t.panel.name());
    put("line", t.line.name());
    put("text", t.text.name());
    put("mute", t.mute.name());
    put("blue", t.blue.name());
    put("bluehover", mixed(t.blue, t.dark ? Qt::white : Qt::black, 0.12).name());
    put("onblue", (t.dark ? t.base : QColor(Qt::white)).name());
    put("orange", t.orange.name());
    put("chip", t.chip.name());
    put("grid", t.grid.name());
    put("bar", t.bar.name());
    put("selection", t.selection.name());
    put("off", mixed(t.panel, t.mute, 0.65).name());
    put("labelpx", QString::number(Theme::labelFont().pixelSize()) + QStringLiteral("px"));
    put("linepx", QString::number(QFontMetrics(Theme::bodyFont()).height() + 3) + QStringLiteral("px"));
    put("titlepx", QString::number(Theme::titleFont().pixelSize()) + QStringLiteral("px"));
    return sheet;
}

double relativeLuminance(const QColor &c)
{
    const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
    return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
}

} // namespace

const Theme &Theme::current()
{
    return state().theme;
}

bool Theme::wantsDark(const QString &name)
{
    if (name == QLatin1String("dark"))
        return true;
    if (name == QLatin1String("light"))
        return false;
    return desktopIsDark();
}

void Theme::apply(QApplication &app, const QString &name)
{
    loadIcons();
    readDesktop();
    State &s = state();
    s.theme = wantsDark(name) ? darkTheme() : lightTheme();
    s.name = name;
#if QT_VERSION >= QT_VERSION_CHECK(6, 5, 0)
    static bool following = false;
    if (!following) {
        following = true;
        QObject::connect(QGuiApplication::styleHints(), &QStyleHints::colorSchemeChanged, &app, [&app] {
            if (state().name.isEmpty() && desktopIsDark() != current().dark)
                apply(app, {});
        });
    }
#endif
    // Fusion draws what the sheet leaves alone (check marks, arrows) from the palette, the same on every desktop.
    if (app.style()->name().compare(QLatin1String("fusion"), Qt::CaseInsensitive) != 0)
        QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    QApplication::setPalette(paletteOf(s.theme));
    QApplication::setFont(bodyFont());
    app.setStyleSheet(sheetOf(s.theme));
}

QColor Theme::ramp(double t)
{
    // Eleven equidistant samples of matplotlib's viridis (CC0).
    static constexpr std::array<QRgb, 11> kViridis = {0x440154, 0x482475, 0x414487, 0x355f8d, 0x2a788e, 0x21918c,
                                                      0x22a884, 0x44bf70, 0x7ad151, 0xbddf26, 0xfde725};
    const double at = std::clamp(std::isnan(t) ? 0.0 : t, 0.0, 1.0) * (kViridis.size() - 1);
    const auto low = std::min(static_cast<std::size_t>(at), kViridis.size() - 2);
    return mixed(QColor(kViridis[low]), QColor(kViridis[low + 1]), at - static_cast<double>(low));
}

double Theme::rampPosition(double db, double lo, double hi)
{
    if (std::isnan(db))
        return 0;
    if (std::isinf(db))
        return db > 0 ? 1 : 0;
    if (!(hi > lo))
        return 1; // one value only: nothing is worse than anything else
    return std::clamp((db - lo) / (hi - lo), 0.0, 1.0);
}

QColor Theme::textOn(const QColor &background)
{
    const double l = relativeLuminance(background);
    return 1.05 / (l + 0.05) > (l + 0.05) / 0.05 ? QColor(Qt::white) : QColor(Qt::black);
}

QFont Theme::bodyFont()
{
    return sized(bodyPixels(), QFont::Normal);
}

QFont Theme::labelFont()
{
    return sized(bodyPixels() - 1, QFont::Normal);
}

QFont Theme::titleFont()
{
    return sized(bodyPixels() + 1, QFont::DemiBold);
}

} // namespace dblame::ui

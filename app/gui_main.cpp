// SPDX-License-Identifier: GPL-3.0-or-later
//
// dblame-gui: the window. `dblame` without a subcommand starts it with the same arguments.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <QApplication>
#include <QDockWidget>
#include <QEventLoop>
#include <QPixmap>
#include <QSize>

#include "core/engine.h"
#include "core/log.h"
#include "core/report.h"
#include "ui/file_kinds.h"
#include "ui/main_window.h"
#include "ui/recipe_file.h"
#include "ui/theme.h"

namespace
{

using dblame::ErrorCode;
using dblame::ui::MainWindow;

struct Arguments {
    std::vector<std::string> models; // reference, candidate; or a document or a pair folder
    std::vector<std::string> inputs;
    std::string preset, recipe; // quantize the reference, in place of a candidate
    std::vector<std::string> calibration;
    bool run = false;
    std::string select, dock, theme, size, screenshot;
};

// "1440x900"
std::optional<QSize> parseSize(const std::string &text)
{
    int width = 0;
    int height = 0;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%dx%d%c", &width, &height, &rest) != 2 || width < 320 || height < 240 ||
        width > 16384 || height > 16384)
        return std::nullopt;
    return QSize(width, height);
}

void describe(CLI::App &app, Arguments &arguments)
{
    app.set_version_flag("--version", std::string("dBlame ") + dblame::dblameVersion());
    app.add_option(
           "model", arguments.models,
           "Reference and candidate (.pt2, FILE#program); or a .dblame document, or a folder with reference.pt2, "
           "candidate.pt2 and inputs")
        ->expected(0, 2)
        ->option_text("[REF [CAND]]");
    app.add_option("--inputs", arguments.inputs, "What both run on: .pt, .npz, .npy, .safetensors")->expected(1, -1);
    auto *preset =
        app.add_option("--preset", arguments.preset, "Quantize the one model as this preset does, as dblame compare");
    app.add_option("--recipe", arguments.recipe, "Quantize the one model as this recipe file says")->excludes(preset);
    app.add_option("--calibration", arguments.calibration,
                   "What the observers of the recipe see, in the forms of --inputs (default: the inputs themselves)")
        ->expected(1, -1);
    app.add_flag("--run", arguments.run, "Start the run as soon as both are open");
    app.add_option("--dock", arguments.dock, "Bring this dock to the front")
        ->check(CLI::IsMember({"SNR by node", "Nodes", "Alignment", "Runs", "Recipe", "Log"}, CLI::ignore_case));
    app.add_option("--select", arguments.select, "Select this node (value name, node name or layer)");
    app.add_option("--theme", arguments.theme, "light or dark; without it, as the desktop")
        ->check(CLI::IsMember({"light", "dark"}));
    app.add_option("--size", arguments.size, "Size of the window, WIDTHxHEIGHT")->check([](const std::string &text) {
        return parseSize(text) ? std::string() : "not a size: " + text;
    });
    app.add_option("--screenshot", arguments.screenshot, "Write the window to this PNG when the run is done, and end");
}

int exitStatus(const dblame::Error &error)
{
    switch (error.code) {
    case ErrorCode::Usage:
        return 2;
    case ErrorCode::Unreadable:
        return 3;
    case ErrorCode::Incomparable:
        return 4;
    case ErrorCode::Cancelled:
        return 5;
    case ErrorCode::Internal:
        return 70;
    }
    return 70;
}

int complain(const std::string &text, int status)
{
    std::fprintf(stderr, "dblame: %s\n", text.c_str());
    return status;
}

// Qt's own options, which QApplication takes out of the command line: those that stand alone or carry their value
// behind a '=', and those that take the next argument.
constexpr std::array<std::string_view, 2> kQtFlags = {"reverse", "widgetcount"};
constexpr std::array<std::string_view, 13> kQtOptions = {
    "platform",    "platformpluginpath", "platformtheme", "plugin", "qwindowgeometry",
    "qwindowicon", "qwindowtitle",       "session",       "style",  "stylesheet",
    "display",     "geometry",           "title"};

// What is left for us, in the order in which CLI::App::parse() wants it, and whether a platform was asked for.
struct OwnArguments {
    std::vector<std::string> reversed;
    bool platform = false;
};
OwnArguments withoutQtOptions(int argc, char **argv)
{
    OwnArguments own;
    for (int i = 1; i < argc; ++i) {
        std::string_view name = argv[i];
        if (!name.starts_with('-')) {
            own.reversed.emplace_back(argv[i]);
            continue;
        }
        name.remove_prefix(name.starts_with("--") ? 2 : 1);
        const bool valued = name.find('=') != std::string_view::npos;
        name = name.substr(0, name.find('='));
        const auto among = [name](const auto &list) { return std::find(list.begin(), list.end(), name) != list.end(); };
        if (!among(kQtFlags) && !among(kQtOptions)) {
            own.reversed.emplace_back(argv[i]);
            continue;
        }
        own.platform = own.platform || name == "platform" || name == "display";
        i += static_cast<int>(!valued && among(kQtOptions));
    }
    std::reverse(own.reversed.begin(), own.reversed.end());
    return own;
}

bool isSet(const char *variable)
{
    const char *value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

constexpr const char *kNoDisplay = "no display; set QT_QPA_PLATFORM=offscreen with --screenshot, or use dblame compare";

// While QApplication starts: Qt ends the process with a signal where it finds no display.
void onStartMessage(QtMsgType type, const QMessageLogContext &, const QString &text)
{
    if (type != QtFatalMsg) {
        std::fprintf(stderr, "%s\n", qPrintable(text)); // as Qt does
        return;
    }
    std::fprintf(stderr, "dblame: %s\n", kNoDisplay);
    _exit(2);
}

QStringList toQt(const std::vector<std::string> &texts)
{
    QStringList list;
    for (const std::string &text : texts)
        list << QString::fromStdString(text);
    return list;
}

// The recipe that was asked for, if any. Usage: it does not go with the other arguments.
dblame::Result<std::optional<dblame::ui::RecipeRequest>> wantedRecipe(const Arguments &arguments)
{
    if (arguments.preset.empty() && arguments.recipe.empty()) {
        if (!arguments.calibration.empty())
            return dblame::fail(ErrorCode::Usage, "--calibration",
                                "is for a recipe's observers; give --preset or --recipe");
        return std::nullopt;
    }
    if (arguments.models.size() != 1)
        return dblame::fail(ErrorCode::Usage, arguments.preset.empty() ? "--recipe" : "--preset",
                            "makes the candidate of a reference; give one model");
    std::vector<std::string> notes;
    auto recipe = arguments.preset.empty()
                      ? dblame::ui::readRecipeFile(QString::fromStdString(arguments.recipe), &notes)
                      : dblame::presetRecipe(arguments.preset);
    if (!recipe)
        return tl::unexpected(recipe.error());
    for (const std::string &note : notes)
        dblame::logLine(dblame::LogLevel::Warning, arguments.recipe + ": " + note);
    return dblame::ui::RecipeRequest{std::move(*recipe), arguments.calibration};
}

// The picture of the finished window. Returns the exit status.
int takePicture(MainWindow &window, const std::string &path)
{
    if (window.lastError())
        return complain(window.lastError()->text(), exitStatus(*window.lastError()));
    // Layouts ask for further layouts (a label that wraps makes its row higher); each asks once more.
    for (int round = 0; round < 8; ++round) {
        QCoreApplication::sendPostedEvents();
        QCoreApplication::processEvents(QEventLoop::ExcludeUserInputEvents);
    }
    if (!window.grab().save(QString::fromStdString(path), "PNG"))
        return complain(path + ": the picture could not be written; give a path in a folder that can be written", 3);
    return 0;
}

void connectEnd(MainWindow &window, const Arguments &arguments)
{
    if (arguments.select.empty() && arguments.screenshot.empty())
        return;
    const bool opens = !arguments.models.empty() || !arguments.inputs.empty();
    QObject::connect(&window, &MainWindow::settled, &window, [&window, &arguments, opens] {
        // The engine library is the first to settle; a pair that was asked for comes after it.
        const bool answered =
            !opens || window.lastError() || window.session().pair()->reference || window.session().pair()->candidate;
        if (!answered)
            return;
        static bool selected = false;
        if (!selected && !arguments.select.empty()) {
            selected = true;
            if (!window.selectNode(QString::fromStdString(arguments.select)) && !window.lastError()) {
                const int status = complain("--select " + arguments.select +
                                                ": no row is called that; give a value name, a node name or a layer",
                                            2);
                if (!arguments.screenshot.empty()) {
                    QCoreApplication::exit(status);
                    return;
                }
            }
        }
        if (arguments.screenshot.empty())
            return;
        // What the selection changed is drawn after this turn of the event loop; a second one lets queued layouts in.
        const auto later = [](auto &&act) { QMetaObject::invokeMethod(qApp, act, Qt::QueuedConnection); };
        later([&window, &arguments, later] {
            later([&window, &arguments] {
                if (!window.runner().activity())
                    QCoreApplication::exit(takePicture(window, arguments.screenshot));
            });
        });
    });
}

} // namespace

int main(int argc, char **argv)
{
    Arguments arguments;
    CLI::App cli("dBlame finds the layer to blame for the decibels that quantization costs.", "dblame-gui");
    describe(cli, arguments);
    // Before Qt starts: help and wrong usage need no display.
    OwnArguments own = withoutQtOptions(argc, argv);
    try {
        cli.parse(std::move(own.reversed));
    } catch (const CLI::Success &wanted) { // help, version
        return cli.exit(wanted);
    } catch (const CLI::ParseError &error) {
        return complain(std::string(error.what()) + "; dblame-gui --help lists the options", 2);
    }
    if (!own.platform && !isSet("QT_QPA_PLATFORM") && !isSet("DISPLAY") && !isSet("WAYLAND_DISPLAY"))
        return complain(kNoDisplay, 2);
    const auto recipe = wantedRecipe(arguments);
    if (!recipe)
        return complain(recipe.error().text(), exitStatus(recipe.error()));
    const QtMessageHandler handler = qInstallMessageHandler(onStartMessage);
    QApplication app(argc, argv);
    qInstallMessageHandler(handler);
    QApplication::setOrganizationName(QStringLiteral("dblame"));
    QApplication::setApplicationName(QStringLiteral("dblame-gui"));
    QApplication::setApplicationVersion(QString::fromLatin1(dblame::dblameVersion()));
    const bool picture = !arguments.screenshot.empty();
    dblame::ui::Theme::apply(app, QString::fromStdString(arguments.theme));

    MainWindow window({[] { return dblame::loadEngine(); }, !picture});
    window.useTheme(QString::fromStdString(arguments.theme));
    if (const auto size = parseSize(arguments.size))
        window.resize(*size);
    connectEnd(window, arguments);
    window.show();
    for (auto *dock : window.findChildren<QDockWidget *>())
        if (dock->objectName().compare(QString::fromStdString(arguments.dock), Qt::CaseInsensitive) == 0) {
            dock->show();
            dock->raise();
        }
    if (*recipe)
        window.openAndQuantize(QString::fromStdString(arguments.models.front()), **recipe, toQt(arguments.inputs),
                               arguments.run || picture);
    else if (!arguments.models.empty() || !arguments.inputs.empty())
        window.openFiles(toQt(arguments.models), arguments.run || picture, toQt(arguments.inputs));
    return QApplication::exec();
}

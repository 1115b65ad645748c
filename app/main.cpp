// SPDX-License-Identifier: GPL-3.0-or-later
//
// dblame: the command line. Without a subcommand it becomes dblame-gui, with the same arguments.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>

#include <unistd.h>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/report.h"

namespace dblame
{
namespace
{

constexpr std::array<std::string_view, 6> kCommands = {"compare", "inspect", "align", "diff", "plan", "recipe"};
constexpr std::array<std::string_view, 3> kOwnOptions = {"--help", "-h", "--version"};

// Fed by signals. request_stop() with no callback registered (nobody registers one) is a few atomic operations.
std::stop_source g_stop;
volatile std::sig_atomic_t g_signals = 0;

extern "C" void onSignal(int)
{
    const auto count = g_signals + 1;
    g_signals = count;
    if (count > 1)
        _exit(kCancelled); // asked twice: at once. Reports are renamed into place, so no half of one is left.
    g_stop.request_stop();
}

void installSignals()
{
    struct sigaction action {
    };
    action.sa_handler = onSignal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

[[nodiscard]] bool isOurs(std::string_view argument)
{
    const auto among = [argument](const auto &list) {
        return std::find(list.begin(), list.end(), argument) != list.end();
    };
    return among(kCommands) || among(kOwnOptions);
}

// A word that is neither a file nor an option is a mistyped command rather than a model.
[[nodiscard]] bool looksLikeACommand(std::string_view argument)
{
    std::error_code ec;
    return !argument.empty() && argument.front() != '-' && argument.find_first_of("./#") == std::string_view::npos &&
           !std::filesystem::exists(argument, ec);
}

// Replaces this process; returns only when that fails.
int becomeWindow(char **argv)
{
    std::error_code ec;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", ec);
    const auto window = (ec ? std::filesystem::path(argv[0]) : self).parent_path() / "dblame-gui";
    if (!std::filesystem::exists(window, ec)) {
        say("dblame-gui: is not beside dblame (built without the window?); use a command: compare, inspect, align, "
            "diff, plan or recipe");
        return kWrongUsage;
    }
    const std::string name = window.string();
    argv[0] = const_cast<char *>(name.c_str());
    execv(name.c_str(), argv);
    say(name + ": cannot be started: " + std::strerror(errno));
    return kInternalError;
}

int printVersion()
{
    std::printf("dBlame %s\n", dblameVersion());
    const auto engine = loadEngine();
    if (!engine)
        return failed(engine.error());
    std::printf("LibTorch %s\n", (*engine)->info().libtorch.c_str());
    return kDone;
}

int run(int argc, char **argv)
{
    CLI::App program("dBlame finds the layer to blame for the decibels that quantization costs.\n"
                     "Without a command (dblame [REF [CAND]] ...) the window opens with the same arguments.",
                     "dblame");
    program.require_subcommand(1);
    bool version = false;
    program.add_flag("--version", version, "Print dBlame's and LibTorch's versions");
    program.footer("Exit status: 0 done; 1 a --fail-* threshold was crossed; 2 wrong usage; 3 a file cannot be read;\n"
                   "4 nothing could be compared; 5 cancelled; 70 internal error.");
    Command chosen;
    addCompare(program, chosen);
    addInspect(program, chosen);
    addAlign(program, chosen);
    addDiff(program, chosen);
    addPlan(program, chosen);
    addRecipe(program, chosen);
    if (argc > 1 && std::string_view(argv[1]) == "--version")
        return printVersion();
    try {
        program.parse(argc, argv);
    } catch (const CLI::CallForHelp &help) {
        program.exit(help); // prints the help of the command that was asked
        return kDone;
    } catch (const CLI::ParseError &error) {
        const auto commands = program.get_subcommands();
        const std::string command = commands.empty() ? "" : commands.front()->get_name();
        say((command.empty() ? "" : command + ": ") + error.what() + "; dblame " +
            (command.empty() ? "" : command + " ") + "--help lists the options");
        return kWrongUsage;
    }
    installSignals();
    return chosen(g_stop.get_token());
}

} // namespace
} // namespace dblame

int main(int argc, char **argv)
{
    using namespace dblame;
    try {
        if (argc > 1 && isOurs(argv[1]))
            return run(argc, argv);
        if (argc > 1 && looksLikeACommand(argv[1])) {
            say(std::string(argv[1]) + ": neither a command (compare, inspect, align, diff, plan, recipe) nor a file; "
                                       "dblame --help lists the commands");
            return kWrongUsage;
        }
        return becomeWindow(argv);
    } catch (const std::bad_alloc &) {
        say("not enough memory; close other programs, or compare fewer samples with --limit-batches");
    } catch (const std::exception &error) {
        say(std::string("internal error: ") + error.what());
    }
    return kInternalError;
}

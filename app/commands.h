// SPDX-License-Identifier: GPL-3.0-or-later
//
// The subcommands. Each adds its options to the program's and runs with what was parsed; data goes to stdout or
// to files, messages to stderr. The result is the exit status (docs/cli.md).
#pragma once

#include <functional>
#include <stop_token>

#include <CLI/CLI.hpp>

namespace dblame
{

// What main() runs after parsing: set by the subcommand that was given.
using Command = std::function<int(std::stop_token)>;

void addCompare(CLI::App &program, Command &chosen);
void addInspect(CLI::App &program, Command &chosen);
void addAlign(CLI::App &program, Command &chosen);
void addDiff(CLI::App &program, Command &chosen);
void addPlan(CLI::App &program, Command &chosen);
void addRecipe(CLI::App &program, Command &chosen);

} // namespace dblame

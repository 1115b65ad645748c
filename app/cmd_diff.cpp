// SPDX-License-Identifier: GPL-3.0-or-later
//
// dblame diff A.json B.json: what changed between two reports, regressions first.
#include "app/commands.h"
#include "app/numbers.h"
#include "app/terminal.h"
#include "core/number_text.h"
#include "core/report_diff.h"
#include "core/report_reader.h"

namespace dblame
{

namespace
{

struct DiffOptions {
    std::string a, b;
    std::string key = "node";
    std::optional<double> failRegress;
};

int runDiff(const DiffOptions &options)
{
    const auto a = readReport(options.a);
    if (!a)
        return failed(a.error());
    const auto b = readReport(options.b);
    if (!b)
        return failed(b.error());
    const ReportDiff diff = diffReports(*a, *b, options.key == "module" ? DiffKey::Module : DiffKey::Node);
    for (const auto &warning : diff.warnings)
        say("warning: " + warning);
    if (diff.rows.empty() && !a->rows.empty() && !b->rows.empty())
        say("warning: no row is in both reports" +
            std::string(options.key == "node" ? "; values may have been renamed, try --key module" : ""));
    if (const auto written = deliver("-", diffTable(diff)); !written)
        return failed(written.error());
    if (options.failRegress && diff.worst > *options.failRegress) {
        const auto &row = diff.rows.front();
        say(row.key + ": a regression of " + fixedText(diff.worst, 2) + " dB is above --fail-regress " +
            fixedText(*options.failRegress, 2) + " dB");
        return kThresholdCrossed;
    }
    return kDone;
}

} // namespace

void addDiff(CLI::App &program, Command &chosen)
{
    auto *command = program.add_subcommand("diff", "Compare two JSON reports row by row, regressions first");
    const auto options = std::make_shared<DiffOptions>();
    command->add_option("a", options->a, "The report before (JSON)")->required()->type_name("A.json");
    command->add_option("b", options->b, "The report after (JSON)")->required()->type_name("B.json");
    command->add_option("--key", options->key, "What makes rows the same: node (value name) or module (its last row)")
        ->type_name("KEY")
        ->check(CLI::IsMember({"node", "module"}))
        ->capture_default_str();
    command->add_option("--fail-regress", options->failRegress, "Exit 1 if a row lost more than this")
        ->type_name("DB")
        ->check(decibelNumber());
    command->callback([options, &chosen] { chosen = [options](std::stop_token) { return runDiff(*options); }; });
}

} // namespace dblame

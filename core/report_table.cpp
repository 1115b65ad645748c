// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/number_text.h"
#include "core/report_words.h"
#include "core/report_writer.h"
#include "core/text_table.h"

namespace dblame
{

namespace
{

std::vector<std::string> cells(const Report &report, const ReportRow &row)
{
    std::string name = row.ref;
    if (!row.node.empty())
        name += " (" + row.node + "[" + std::to_string(row.output.value_or(0)) + "])";
    const bool largest = report.largestDrop && report.largestDrop->row == row.index;
    return {std::to_string(row.index),
            name,
            row.target.empty() ? row.module : row.target,
            row.op.empty() ? row.kind : row.op,
            words::shown(report, row),
            row.dropDb ? fixedText(*row.dropDb, 2) : "",
            words::site(row),
            largest ? "<== largest drop: " + fixedText(report.largestDrop->db, 2) + " dB" : ""};
}

} // namespace

std::string reportTable(const Report &report)
{
    std::string out = "reference  " + words::model(report.reference) + "\n" + "candidate  " +
                      words::model(report.candidate) + "\n" + "inputs     " + words::inputs(report) + "\n" +
                      "engine     " + words::engine(report) + "\n";
    if (report.recipe)
        out += "recipe     " + report.recipe->title + "\n";
    if (!report.inputs.calibration.empty())
        out += "calibrated " + report.inputs.calibration + "\n";
    if (!report.skipped.empty())
        out += "float here " + words::list(report.skipped) + "\n";
    out += "\n";
    TextTable table({">#", "node", "module", "operator", report.signal == "candidate" ? ">SQNR dB" : ">SNR dB", ">drop",
                     "site", ""});
    for (const auto &row : report.rows)
        table.add(cells(report, row));
    out += table.text() + "\n";
    out += words::outputs(report) + "\n";
    out += words::drop(report) + "\n";
    if (!report.unmatched.empty())
        out += std::to_string(report.unmatched.size()) + (report.unmatched.size() == 1 ? " value" : " values") +
               " without a partner (dblame align lists them)\n";
    for (const auto &warning : report.warnings)
        out += "warning: " + warning + "\n";
    return out;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "core/report_words.h"
#include "core/report_writer.h"

namespace dblame
{

namespace
{

// Code points, not bytes: module paths and site ids may hold any.
std::size_t width(const std::string &text)
{
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

struct Line {
    std::vector<std::string> cells;
    std::string mark;
};

Line header(const Report &report)
{
    return {{"#", "node", "module", "operator", report.signal == "candidate" ? "SQNR dB" : "SNR dB", "drop", "site"},
            {}};
}

Line line(const Report &report, const ReportRow &row)
{
    Line out;
    std::string name = row.ref;
    if (!row.node.empty())
        name += " (" + row.node + "[" + std::to_string(row.output.value_or(0)) + "])";
    out.cells = {std::to_string(row.index),
                 name,
                 row.target.empty() ? row.module : row.target,
                 row.op.empty() ? row.kind : row.op,
                 words::shown(report, row),
                 row.dropDb ? fixedText(*row.dropDb, 2) : "",
                 words::site(row)};
    if (report.largestDrop && report.largestDrop->row == row.index)
        out.mark = "<== largest drop: " + fixedText(report.largestDrop->db, 2) + " dB";
    return out;
}

bool rightAligned(std::size_t column)
{
    return column == 0 || column == 4 || column == 5;
}

std::string aligned(const std::vector<Line> &lines)
{
    std::vector<std::size_t> widths(lines.front().cells.size(), 0);
    for (const auto &l : lines)
        for (std::size_t i = 0; i < l.cells.size(); ++i)
            widths[i] = std::max(widths[i], width(l.cells[i]));
    std::string out;
    for (const auto &l : lines) {
        std::string text;
        for (std::size_t i = 0; i < l.cells.size(); ++i) {
            const std::string padding(widths[i] - width(l.cells[i]), ' ');
            text += (i == 0 ? "" : "  ") + (rightAligned(i) ? padding + l.cells[i] : l.cells[i] + padding);
        }
        if (!l.mark.empty())
            text += "  " + l.mark;
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + "\n";
    }
    return out;
}

} // namespace

std::string reportTable(const Report &report)
{
    std::string out = "reference  " + words::model(report.reference) + "\n" + "candidate  " +
                      words::model(report.candidate) + "\n" + "inputs     " + words::inputs(report) + "\n" +
                      "engine     " + words::engine(report) + "\n";
    if (!report.skipped.empty())
        out += "float here " + words::list(report.skipped) + "\n";
    out += "\n";
    std::vector<Line> lines = {header(report)};
    for (const auto &row : report.rows)
        lines.push_back(line(report, row));
    out += aligned(lines) + "\n";
    out += words::outputs(report) + "\n";
    out += words::drop(report) + "\n";
    if (!report.unmatched.empty())
        out += std::to_string(report.unmatched.size()) + " values without a partner (dblame align lists them)\n";
    for (const auto &warning : report.warnings)
        out += "warning: " + warning + "\n";
    return out;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report_words.h"

#include <algorithm>
#include <cmath>

#include "core/number_text.h"

namespace dblame::words
{

namespace
{

std::string counted(std::int64_t count, const char *one, const char *many)
{
    return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string decibels(const std::vector<double> &values)
{
    std::string text;
    for (const double v : values)
        text += (text.empty() ? "" : ", ") +
                (std::isnan(v) ? "no figure" : fixedText(v, 2) + (std::isfinite(v) ? " dB" : ""));
    return text;
}

} // namespace

std::string list(const std::vector<std::string> &texts)
{
    std::string out;
    for (const auto &text : texts)
        out += (out.empty() ? "" : ", ") + text;
    return out;
}

std::string shown(const Report &report, const ReportRow &row)
{
    if (row.status == "exact")
        return "exact";
    if (const auto db = shownDb(report, row))
        return fixedText(*db, 2);
    std::string word = row.status;
    std::replace(word.begin(), word.end(), '_', ' ');
    return row.reason.empty() ? word : word + ": " + row.reason;
}

std::string site(const ReportRow &row)
{
    if (!row.site)
        return {};
    const ReportSite &s = *row.site;
    if (!s.on)
        return s.change.empty() ? "off" : s.change;
    const std::string text = s.dtype + " " + s.scheme + " per " + s.granularity;
    return s.change.empty() ? text : s.change;
}

std::string model(const ReportModel &model)
{
    std::string detail = model.format;
    if (!model.producer.empty())
        detail += (detail.empty() ? "" : ", ") + model.producer;
    return detail.empty() ? model.path : model.path + " (" + detail + ")";
}

std::string inputs(const Report &report)
{
    const ReportInputs &in = report.inputs;
    return in.source + ": " + counted(in.batches, "batch", "batches") + ", " + counted(in.samples, "sample", "samples");
}

std::string engine(const Report &report)
{
    return "LibTorch " + report.libtorch + ", " + report.cpu + ", " + counted(report.threads, "thread", "threads") +
           ", " + fixedText(report.seconds, 2) + " s";
}

std::string outputs(const Report &report)
{
    if (std::all_of(report.outputSnrDb.begin(), report.outputSnrDb.end(), [](double v) { return std::isnan(v); }))
        return "no output could be compared";
    return std::string("output") + (report.outputSnrDb.size() == 1 ? "" : "s") + " SNR " +
           decibels(report.outputSnrDb) + " (SQNR " + decibels(report.outputSqnrDb) + ")";
}

std::string drop(const Report &report)
{
    if (!report.largestDrop)
        return "no drop: no two rows with finite figures follow each other";
    const auto row = std::find_if(report.rows.begin(), report.rows.end(),
                                  [&](const ReportRow &r) { return r.index == report.largestDrop->row; });
    std::string text = "largest drop " + fixedText(report.largestDrop->db, 2) + " dB";
    if (row != report.rows.end())
        text += " at " + row->ref + (row->module.empty() ? "" : " (" + row->module + ")");
    return text;
}

} // namespace dblame::words

// SPDX-License-Identifier: GPL-3.0-or-later
#include <functional>

#include "core/number_text.h"
#include "core/report_writer.h"

namespace dblame
{

namespace
{

struct Column {
    const char *name;
    std::function<std::string(const ReportRow &)> text;
};

std::string cell(const std::optional<double> &value)
{
    return value ? shortestText(*value) : std::string();
}

template <class Integer>
std::string integerCell(const std::optional<Integer> &value)
{
    return value ? std::to_string(*value) : std::string();
}

// A field of the row's site; empty without one.
template <class F>
std::function<std::string(const ReportRow &)> ofSite(F text)
{
    return [text](const ReportRow &row) { return row.site ? text(*row.site) : std::string(); };
}

void addSiteColumns(std::vector<Column> &columns)
{
    using Site = ReportSite;
    const auto add = [&columns](const char *name, auto text) { columns.push_back({name, ofSite(text)}); };
    add("site.id", [](const Site &s) { return s.id; });
    add("site.on", [](const Site &s) { return std::string(s.on ? "true" : "false"); });
    add("site.role", [](const Site &s) { return s.role; });
    add("site.instance", [](const Site &s) { return s.instance; });
    add("site.group", [](const Site &s) { return integerCell(s.group); });
    add("site.dtype", [](const Site &s) { return s.dtype; });
    add("site.effective_bits", [](const Site &s) { return std::to_string(s.effectiveBits); });
    add("site.scheme", [](const Site &s) { return s.scheme; });
    add("site.granularity", [](const Site &s) { return s.granularity; });
    add("site.axis", [](const Site &s) { return integerCell(s.axis); });
    add("site.scale", [](const Site &s) { return s.scale.size() == 1 ? shortestText(s.scale[0]) : std::string(); });
    add("site.zero_point",
        [](const Site &s) { return s.zeroPoint.size() == 1 ? std::to_string(s.zeroPoint[0]) : std::string(); });
    add("site.quant_min", [](const Site &s) { return std::to_string(s.quantMin); });
    add("site.quant_max", [](const Site &s) { return std::to_string(s.quantMax); });
    add("site.clipped", [](const Site &s) { return cell(s.clipped); });
    add("site.unused_range", [](const Site &s) { return cell(s.unusedRange); });
    add("site.change", [](const Site &s) { return s.change; });
}

std::vector<Column> columns(bool hashes)
{
    using Row = ReportRow;
    std::vector<Column> all = {
        {"index", [](const Row &r) { return std::to_string(r.index); }},
        {"ref", [](const Row &r) { return r.ref; }},
        {"cand", [](const Row &r) { return r.cand; }},
        {"node", [](const Row &r) { return r.node; }},
        {"output", [](const Row &r) { return integerCell(r.output); }},
        {"module", [](const Row &r) { return r.module; }},
        {"module_type", [](const Row &r) { return r.moduleType; }},
        {"target", [](const Row &r) { return r.target; }},
        {"op", [](const Row &r) { return r.op; }},
        {"rung", [](const Row &r) { return r.rung; }},
        {"kind", [](const Row &r) { return r.kind; }},
        {"dtype", [](const Row &r) { return r.dtype; }},
        {"status", [](const Row &r) { return r.status; }},
        {"reason", [](const Row &r) { return r.reason; }},
        {"snr_db", [](const Row &r) { return cell(r.snrDb); }},
        {"sqnr_db", [](const Row &r) { return cell(r.sqnrDb); }},
        {"after_site_db", [](const Row &r) { return cell(r.afterSiteDb); }},
        {"before_site_db", [](const Row &r) { return cell(r.beforeSiteDb); }},
        {"mse", [](const Row &r) { return cell(r.mse); }},
        {"mae", [](const Row &r) { return cell(r.mae); }},
        {"max_abs", [](const Row &r) { return cell(r.maxAbs); }},
        {"cosine", [](const Row &r) { return cell(r.cosine); }},
        {"bias", [](const Row &r) { return cell(r.bias); }},
        {"ref_min", [](const Row &r) { return cell(r.refMin); }},
        {"ref_max", [](const Row &r) { return cell(r.refMax); }},
        {"cand_min", [](const Row &r) { return cell(r.candMin); }},
        {"cand_max", [](const Row &r) { return cell(r.candMax); }},
        {"nan", [](const Row &r) { return integerCell(r.nan); }},
        {"inf", [](const Row &r) { return integerCell(r.inf); }},
        {"drop_db", [](const Row &r) { return cell(r.dropDb); }},
        {"flow_drop_db", [](const Row &r) { return cell(r.flowDropDb); }},
    };
    addSiteColumns(all);
    all.push_back({"channel_axis", [](const Row &r) { return integerCell(r.channelAxis); }});
    if (hashes) {
        all.push_back({"ref_sha256", [](const Row &r) { return r.refSha256; }});
        all.push_back({"cand_sha256", [](const Row &r) { return r.candSha256; }});
    }
    all.push_back({"ms", [](const Row &r) { return cell(r.ms); }});
    all.push_back({"source", [](const Row &r) { return r.source; }});
    return all;
}

} // namespace

std::string csvField(const std::string &text)
{
    if (text.find_first_of(",\"\r\n") == std::string::npos)
        return text;
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"')
            out += '"';
        out += c;
    }
    return out + '"';
}

std::string reportCsv(const Report &report)
{
    bool hashes = false;
    for (const auto &row : report.rows)
        hashes = hashes || !row.refSha256.empty() || !row.candSha256.empty();
    const auto all = columns(hashes);
    std::string out;
    const auto line = [&](const auto &field) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (i > 0)
                out += ',';
            out += csvField(field(all[i]));
        }
        out += "\r\n";
    };
    line([](const Column &column) { return std::string(column.name); });
    for (const auto &row : report.rows)
        line([&row](const Column &column) { return column.text(row); });
    return out;
}

} // namespace dblame

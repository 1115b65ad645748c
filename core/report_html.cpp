// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "core/report_html.h"
#include "core/report_words.h"
#include "core/report_writer.h"

namespace dblame
{

namespace
{

using html::escaped;

// The colours of the window (light, dark), and a page that needs nothing from outside.
constexpr const char *kStyle = R"(
:root{color-scheme:light dark;--base:#f7f7f5;--panel:#ffffff;--line:#dedcd6;--text:#22211f;--mute:#6b6963;--blue:#2a78d6;--orange:#eb6834;--chip:#f0efeb;--grid:#ebe9e4}
@media(prefers-color-scheme:dark){:root{--base:#1b1c1e;--panel:#232528;--line:#3a3d42;--text:#e7e6e3;--mute:#9b9a96;--blue:#5aa2f0;--orange:#f28a5c;--chip:#2e3135;--grid:#303338}}
body{margin:0;padding:24px;background:var(--base);color:var(--text);font:13px/1.5 system-ui,sans-serif}
h1{font-size:18px;margin:0 0 4px}h2{font-size:13px;margin:0 0 8px}
section{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:14px;margin:14px 0;overflow-x:auto}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;margin:0}dt{color:var(--mute)}dd{margin:0;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:4px 8px;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;white-space:nowrap}
td.n,th.n{text-align:right}td.w{white-space:normal;min-width:12em}
th{position:sticky;top:0;background:var(--panel)}
th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible{outline:2px solid var(--blue)}
th[aria-sort=ascending] button::after{content:" \2191"}th[aria-sort=descending] button::after{content:" \2193"}
tr.drop td{background:color-mix(in srgb,var(--orange) 18%,transparent)}
.warning{border-color:var(--orange)}.mute{color:var(--mute)}
input{font:inherit;padding:4px 8px;border:1px solid var(--line);border-radius:6px;background:var(--base);color:var(--text);width:24em;max-width:100%}
svg{width:100%;height:auto;display:block}
svg text{fill:var(--mute);font:11px system-ui,sans-serif}svg .grid{stroke:var(--grid)}svg .axis{stroke:var(--line)}
svg .curve{fill:none;stroke:var(--blue);stroke-width:1.5}svg .point{fill:var(--blue)}svg .edge{fill:none;stroke:var(--mute)}
svg .ring{fill:none;stroke:var(--orange);stroke-width:2}svg .note{fill:var(--orange);font-weight:600}
)";

// Sorts by data-v (a number) or by text, and hides rows that lack the filter's words. Rows without a number
// go last in either direction.
constexpr const char *kScript = R"(
(function () {
  var table = document.getElementById('rows'), body = table.tBodies[0];
  var filter = document.getElementById('filter'), count = document.getElementById('count');
  function key(row, column) {
    var cell = row.cells[column], v = cell.getAttribute('data-v');
    if (v === null) return cell.textContent;
    if (v === '') return NaN;
    return v === 'inf' ? Infinity : v === '-inf' ? -Infinity : Number(v);
  }
  Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
    head.firstChild.addEventListener('click', function () {
      var up = head.getAttribute('aria-sort') !== 'ascending';
      Array.prototype.forEach.call(table.tHead.rows[0].cells, function (h) { h.removeAttribute('aria-sort'); });
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      var rows = Array.prototype.map.call(body.rows, function (row, i) { return { row: row, key: key(row, column), i: i }; });
      rows.sort(function (a, b) {
        var an = a.key !== a.key, bn = b.key !== b.key;
        if (an || bn) return an === bn ? a.i - b.i : an ? 1 : -1;
        var c = typeof a.key === 'number' && typeof b.key === 'number'
              ? (a.key < b.key ? -1 : a.key > b.key ? 1 : 0) : String(a.key).localeCompare(String(b.key));
        return c === 0 ? a.i - b.i : up ? c : -c;
      });
      rows.forEach(function (r) { body.appendChild(r.row); });
    });
  });
  function show() {
    var words = filter.value.toLowerCase().split(/\s+/).filter(Boolean), shown = 0;
    Array.prototype.forEach.call(body.rows, function (row) {
      var text = row.textContent.toLowerCase();
      row.hidden = !words.every(function (w) { return text.indexOf(w) >= 0; });
      if (!row.hidden) shown++;
    });
    count.textContent = shown + ' of ' + body.rows.length + ' rows';
  }
  filter.addEventListener('input', show);
  show();
})();
)";

std::string definition(const char *name, const std::string &text)
{
    return "<dt>" + std::string(name) + "</dt><dd>" + escaped(text) + "</dd>\n";
}

std::string list(const std::vector<std::string> &texts)
{
    std::string out = "<ul>\n";
    for (const auto &text : texts)
        out += "<li>" + escaped(text) + "</li>\n";
    return out + "</ul>\n";
}

std::string numberCell(const std::optional<double> &value, const std::string &text)
{
    return "<td class=\"n\" data-v=\"" + (value && !std::isnan(*value) ? shortestText(*value) : std::string()) + "\">" +
           escaped(text) + "</td>";
}

std::string decibelCell(const std::optional<double> &value)
{
    return numberCell(value, value ? fixedText(*value, 2) : std::string());
}

std::string smallCell(const std::optional<double> &value)
{
    return numberCell(value, value ? significantText(*value, 4) : std::string());
}

std::string textCell(const std::string &text, const char *style = "")
{
    return "<td" + std::string(style) + ">" + escaped(text) + "</td>";
}

// Of the channels that have a number.
std::optional<double> worstChannel(const ReportRow &row)
{
    std::optional<double> worst;
    for (const auto &channel : row.channels)
        if (!std::isnan(channel.snrDb) && !(worst && *worst <= channel.snrDb))
            worst = channel.snrDb;
    return worst;
}

std::string tableRow(const Report &report, const ReportRow &row, bool channels)
{
    const bool drop = report.largestDrop && report.largestDrop->row == row.index;
    std::string out = "<tr id=\"r" + std::to_string(row.index) + "\"" + (drop ? " class=\"drop\"" : "") + ">";
    const std::string name =
        row.node.empty() ? row.ref : row.ref + " (" + row.node + "[" + std::to_string(row.output.value_or(0)) + "])";
    out += numberCell(row.index, std::to_string(row.index));
    out += textCell(name) + textCell(row.cand) + textCell(row.target.empty() ? row.module : row.target) +
           textCell(row.op.empty() ? row.kind : row.op);
    const auto state = row.status == "ok" ? std::string() : words::shown(report, row);
    out += textCell(drop ? "largest drop" : state, " class=\"w\"");
    out += decibelCell(row.snrDb) + decibelCell(row.sqnrDb) + decibelCell(row.dropDb) + decibelCell(row.flowDropDb);
    if (channels)
        out += decibelCell(worstChannel(row));
    out += smallCell(row.mse) + smallCell(row.maxAbs) + smallCell(row.cosine);
    out += textCell(row.site ? row.site->id : std::string()) + textCell(words::site(row));
    out += textCell(row.rung) + textCell(row.source);
    return out + "</tr>\n";
}

std::string rowsTable(const Report &report)
{
    const bool channels =
        std::any_of(report.rows.begin(), report.rows.end(), [](const auto &r) { return !r.channels.empty(); });
    std::vector<std::pair<const char *, bool>> heads = {
        // name, number
        {"#", true},      {"Node", false},  {"Candidate", false}, {"Module", false}, {"Operator", false},
        {"State", false}, {"SNR dB", true}, {"SQNR dB", true},    {"Drop", true},    {"Drop in flow", true}};
    if (channels)
        heads.emplace_back("Worst channel dB", true);
    for (const auto &head : {std::pair{"MSE", true},
                             {"Max error", true},
                             {"Cosine", true},
                             {"Site", false},
                             {"Quantized as", false},
                             {"Paired by", false},
                             {"Source", false}})
        heads.push_back(head);
    std::string out = "<table id=\"rows\">\n<thead><tr>";
    for (const auto &[name, isNumber] : heads)
        out += std::string("<th") + (isNumber ? " class=\"n\"" : "") + "><button>" + name + "</button></th>";
    out += "</tr></thead>\n<tbody>\n";
    for (const auto &row : report.rows)
        out += tableRow(report, row, channels);
    return out + "</tbody>\n</table>\n";
}

std::string unmatchedSection(const Report &report)
{
    if (report.unmatched.empty())
        return {};
    std::string out =
        "<section><h2>Without a partner</h2>\n<table id=\"unmatched\"><thead><tr><th>Side</th><th>Value</th>"
        "<th>Module</th><th>Reason</th></tr></thead><tbody>\n";
    for (const auto &u : report.unmatched)
        out += "<tr>" + textCell(u.side) + textCell(u.node) + textCell(u.module) + textCell(u.reason, " class=\"w\"") +
               "</tr>\n";
    return out + "</tbody></table></section>\n";
}

std::string summary(const Report &report)
{
    std::string out = "<section><dl>\n";
    out += definition("Reference", words::model(report.reference));
    out += definition("Candidate", words::model(report.candidate));
    out += definition("Inputs", words::inputs(report));
    out += definition("Engine", words::engine(report));
    out += definition("Signal", report.signal == "candidate" ? "candidate (SQNR)" : "reference (SNR)");
    if (report.recipe)
        out += definition("Recipe", report.recipe->title);
    if (!report.inputs.calibration.empty())
        out += definition("Calibrated on", report.inputs.calibration);
    if (!report.skipped.empty())
        out += definition("Float here", words::list(report.skipped));
    if (!report.changed.empty())
        out += definition("Changed", words::list(report.changed));
    out += definition("Outputs", words::outputs(report));
    out += definition("Largest drop", words::drop(report));
    return out + "</dl></section>\n";
}

} // namespace

std::string reportHtml(const Report &report)
{
    std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<title>dBlame: " +
                      escaped(words::drop(report)) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n";
    out +=
        "<h1>" + escaped(words::drop(report)) + "</h1>\n<p class=\"mute\">dBlame " + escaped(report.dblame) + "</p>\n";
    if (!report.warnings.empty())
        out += "<section class=\"warning\"><h2>Warnings</h2>" + list(report.warnings) + "</section>\n";
    out += summary(report);
    out += "<section><h2>" + std::string(report.signal == "candidate" ? "SQNR" : "SNR") +
           " along the reference's order</h2>\n" + html::plot(report) + "</section>\n";
    out +=
        "<section><h2>Nodes</h2>\n<p><input id=\"filter\" type=\"search\" placeholder=\"Filter: words in any column\" "
        "aria-label=\"Filter rows\"> <span id=\"count\" class=\"mute\"></span></p>\n" +
        rowsTable(report) + "</section>\n";
    out += unmatchedSection(report);
    out += "<script>" + std::string(kScript) + "</script>\n</body>\n</html>\n";
    return out;
}

} // namespace dblame

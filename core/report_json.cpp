// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/report_writer.h"

namespace dblame
{

namespace
{

using Json = nlohmann::ordered_json;

Json number(double value)
{
    if (std::isnan(value))
        return "nan";
    if (std::isinf(value))
        return value < 0 ? "-inf" : "inf";
    return value;
}

Json numbers(const std::vector<double> &values)
{
    Json list = Json::array();
    for (const double v : values)
        list.push_back(number(v));
    return list;
}

void put(Json &json, const char *name, const std::string &text)
{
    if (!text.empty())
        json[name] = text;
}

void put(Json &json, const char *name, const std::optional<double> &value)
{
    if (value)
        json[name] = number(*value);
}

template <class Integer>
void putInteger(Json &json, const char *name, const std::optional<Integer> &value)
{
    if (value)
        json[name] = *value;
}

Json modelJson(const ReportModel &model)
{
    return {{"path", model.path}, {"sha256", model.sha256}, {"format", model.format}, {"producer", model.producer}};
}

Json siteJson(const ReportSite &site)
{
    Json json;
    json["id"] = site.id;
    json["on"] = site.on;
    json["role"] = site.role;
    put(json, "instance", site.instance);
    putInteger(json, "group", site.group);
    json["dtype"] = site.dtype;
    json["effective_bits"] = site.effectiveBits;
    json["scheme"] = site.scheme;
    json["granularity"] = site.granularity;
    putInteger(json, "axis", site.axis);
    // One number per tensor, a list per channel or block.
    if (site.scale.size() == 1)
        json["scale"] = number(site.scale.front());
    else if (!site.scale.empty())
        json["scale"] = numbers(site.scale);
    if (site.zeroPoint.size() == 1)
        json["zero_point"] = site.zeroPoint.front();
    else if (!site.zeroPoint.empty())
        json["zero_point"] = site.zeroPoint;
    json["quant_min"] = site.quantMin;
    json["quant_max"] = site.quantMax;
    put(json, "clipped", site.clipped);
    put(json, "unused_range", site.unusedRange);
    put(json, "change", site.change);
    return json;
}

void putFigures(Json &json, const ReportRow &row)
{
    put(json, "snr_db", row.snrDb);
    put(json, "sqnr_db", row.sqnrDb);
    put(json, "after_site_db", row.afterSiteDb);
    put(json, "before_site_db", row.beforeSiteDb);
    put(json, "mse", row.mse);
    put(json, "mae", row.mae);
    put(json, "max_abs", row.maxAbs);
    put(json, "cosine", row.cosine);
    put(json, "bias", row.bias);
    put(json, "ref_min", row.refMin);
    put(json, "ref_max", row.refMax);
    put(json, "cand_min", row.candMin);
    put(json, "cand_max", row.candMax);
    putInteger(json, "nan", row.nan);
    putInteger(json, "inf", row.inf);
    put(json, "drop_db", row.dropDb);
    put(json, "flow_drop_db", row.flowDropDb);
}

Json rowJson(const ReportRow &row)
{
    Json json;
    json["index"] = row.index;
    json["ref"] = row.ref;
    json["cand"] = row.cand;
    put(json, "node", row.node);
    putInteger(json, "output", row.output);
    json["module"] = row.module;
    put(json, "module_type", row.moduleType);
    put(json, "target", row.target);
    put(json, "op", row.op);
    json["rung"] = row.rung;
    json["kind"] = row.kind;
    if (row.shape)
        json["shape"] = *row.shape;
    put(json, "dtype", row.dtype);
    json["status"] = row.status;
    put(json, "reason", row.reason);
    putFigures(json, row);
    if (!row.folded.empty())
        json["folded"] = row.folded;
    json["site"] = row.site ? siteJson(*row.site) : Json();
    for (const auto &site : row.sites)
        json["sites"].push_back(siteJson(site));
    putInteger(json, "channel_axis", row.channelAxis);
    for (const auto &channel : row.channels)
        json["channels"].push_back({{"index", channel.index}, {"snr_db", number(channel.snrDb)}});
    if (row.histogram)
        json["histogram"] = {{"edges", numbers(row.histogram->edges)},
                             {"reference", numbers(row.histogram->reference)},
                             {"candidate", numbers(row.histogram->candidate)}};
    put(json, "ref_sha256", row.refSha256);
    put(json, "cand_sha256", row.candSha256);
    put(json, "ms", row.ms);
    put(json, "source", row.source);
    return json;
}

std::string dumped(const Json &json)
{
    // A name that is no UTF-8 becomes readable rather than an exception.
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "name": [ one element per line ]
template <class List, class F>
std::string lines(const char *name, const List &list, const F &element)
{
    std::string out = "\"" + std::string(name) + "\": [";
    const char *separator = "\n  ";
    for (const auto &item : list) {
        out += separator + dumped(element(item));
        separator = ",\n  ";
    }
    return out + (list.empty() ? "]" : "\n]");
}

} // namespace

std::string reportJson(const Report &report)
{
    const auto field = [](const char *name, const Json &value) {
        return "\"" + std::string(name) + "\": " + dumped(value) + ",\n";
    };
    std::string out = "{\n";
    out += field("dblame", report.dblame);
    out += field("libtorch", report.libtorch);
    out += field("cpu", report.cpu);
    out += field("threads", report.threads);
    out += field("reference", modelJson(report.reference));
    out += field("candidate", modelJson(report.candidate));
    out +=
        field("recipe", report.recipe ? Json{{"title", report.recipe->title}, {"text", report.recipe->text}} : Json());
    out += field("skipped", report.skipped);
    if (!report.changed.empty())
        out += field("changed", report.changed);
    out += field("inputs",
                 {{"source", report.inputs.source},
                  {"batches", report.inputs.batches},
                  {"samples", report.inputs.samples},
                  {"sha256", report.inputs.sha256},
                  {"random", report.inputs.random},
                  {"calibration", report.inputs.calibration.empty() ? Json() : Json(report.inputs.calibration)}});
    out += field("signal", report.signal);
    out += lines("rows", report.rows, rowJson) + ",\n";
    out +=
        field("largest_drop",
              report.largestDrop
                  ? Json{{"row", report.largestDrop->row}, {"drop_db", number(report.largestDrop->db)}, {"by", "order"}}
                  : Json());
    out += lines("unmatched", report.unmatched,
                 [](const ReportUnmatched &u) {
                     return Json{{"side", u.side}, {"node", u.node}, {"module", u.module}, {"reason", u.reason}};
                 }) +
           ",\n";
    out += lines("warnings", report.warnings, [](const std::string &text) { return Json(text); }) + ",\n";
    out += field("output_snr_db", numbers(report.outputSnrDb));
    out += field("output_sqnr_db", numbers(report.outputSqnrDb));
    out += "\"seconds\": " + dumped(number(report.seconds)) + "\n}\n";
    return out;
}

} // namespace dblame

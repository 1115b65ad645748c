// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report_reader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <nlohmann/json.hpp>

namespace dblame
{

namespace
{

using Json = nlohmann::json;

// A field of another type or out of place; `what` names it: "rows[3].site.scale".
struct BadField {
    std::string what, expected;
};

// One JSON object with the place it stands at, for messages.
class Fields
{
public:
    Fields(const Json &json, std::string place) : m_json(json), m_place(std::move(place))
    {
        if (!json.is_object())
            throw BadField{m_place, "an object"};
    }

    [[nodiscard]] const Json *find(const char *name) const
    {
        const auto found = m_json.find(name);
        return found == m_json.end() || found->is_null() ? nullptr : &*found;
    }
    [[nodiscard]] const Json &require(const char *name, const char *expected) const
    {
        const Json *json = find(name);
        if (json == nullptr)
            throw BadField{path(name), expected};
        return *json;
    }
    [[nodiscard]] std::string path(const char *name) const { return m_place.empty() ? name : m_place + "." + name; }

    void text(const char *name, std::string &out) const
    {
        if (const Json *json = find(name))
            out = asText(*json, path(name));
    }
    void flag(const char *name, bool &out) const
    {
        if (const Json *json = find(name)) {
            if (!json->is_boolean())
                throw BadField{path(name), "true or false"};
            out = json->get<bool>();
        }
    }
    template <class Integer>
    void integer(const char *name, Integer &out) const
    {
        if (const Json *json = find(name))
            out = asInteger<Integer>(*json, path(name));
    }
    template <class Integer>
    void integer(const char *name, std::optional<Integer> &out) const
    {
        if (const Json *json = find(name))
            out = asInteger<Integer>(*json, path(name));
    }
    void number(const char *name, double &out) const
    {
        if (const Json *json = find(name))
            out = asNumber(*json, path(name));
    }
    void number(const char *name, std::optional<double> &out) const
    {
        if (const Json *json = find(name))
            out = asNumber(*json, path(name));
    }
    // A list of what `element` makes of (json, place); a single value counts as a list of one.
    template <class T, class F>
    void list(const char *name, std::vector<T> &out, const F &element) const
    {
        const Json *json = find(name);
        if (json == nullptr)
            return;
        if (!json->is_array()) {
            out.push_back(element(*json, path(name)));
            return;
        }
        for (std::size_t i = 0; i < json->size(); ++i)
            out.push_back(element((*json)[i], path(name) + "[" + std::to_string(i) + "]"));
    }

    static std::string asText(const Json &json, const std::string &place)
    {
        if (!json.is_string())
            throw BadField{place, "a text"};
        return json.get<std::string>();
    }
    template <class Integer>
    static Integer asInteger(const Json &json, const std::string &place)
    {
        if (!json.is_number_integer())
            throw BadField{place, "a whole number"};
        const auto value = json.get<std::int64_t>();
        if (value < std::numeric_limits<Integer>::min() || value > std::numeric_limits<Integer>::max())
            throw BadField{place, "a whole number in range"};
        return static_cast<Integer>(value);
    }
    static double asNumber(const Json &json, const std::string &place)
    {
        if (json.is_number())
            return json.get<double>();
        const auto word = json.is_string() ? json.get<std::string>() : std::string();
        if (word == "nan")
            return std::numeric_limits<double>::quiet_NaN();
        if (word == "inf" || word == "-inf")
            return word == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
        throw BadField{place, "a number, \"inf\", \"-inf\" or \"nan\""};
    }

private:
    const Json &m_json;
    std::string m_place;
};

ReportModel readModelFields(const Fields &fields, const char *name)
{
    const Fields from(fields.require(name, "an object"), fields.path(name));
    ReportModel model;
    from.text("path", model.path);
    from.text("sha256", model.sha256);
    from.text("format", model.format);
    from.text("producer", model.producer);
    return model;
}

ReportSite readSite(const Json &json, const std::string &place)
{
    const Fields from(json, place);
    ReportSite site;
    from.text("id", site.id);
    from.flag("on", site.on);
    from.text("role", site.role);
    from.text("instance", site.instance);
    from.integer("group", site.group);
    from.text("dtype", site.dtype);
    from.integer("effective_bits", site.effectiveBits);
    from.text("scheme", site.scheme);
    from.text("granularity", site.granularity);
    from.integer("axis", site.axis);
    from.list("scale", site.scale, Fields::asNumber);
    from.list("zero_point", site.zeroPoint, Fields::asInteger<std::int64_t>);
    from.integer("quant_min", site.quantMin);
    from.integer("quant_max", site.quantMax);
    from.number("clipped", site.clipped);
    from.number("unused_range", site.unusedRange);
    from.text("change", site.change);
    return site;
}

void readFigures(const Fields &from, ReportRow &row)
{
    from.number("snr_db", row.snrDb);
    from.number("sqnr_db", row.sqnrDb);
    from.number("after_site_db", row.afterSiteDb);
    from.number("before_site_db", row.beforeSiteDb);
    from.number("mse", row.mse);
    from.number("mae", row.mae);
    from.number("max_abs", row.maxAbs);
    from.number("cosine", row.cosine);
    from.number("bias", row.bias);
    from.number("ref_min", row.refMin);
    from.number("ref_max", row.refMax);
    from.number("cand_min", row.candMin);
    from.number("cand_max", row.candMax);
    from.integer("nan", row.nan);
    from.integer("inf", row.inf);
    from.number("drop_db", row.dropDb);
    from.number("flow_drop_db", row.flowDropDb);
    from.number("ms", row.ms);
}

ReportChannel readChannel(const Json &json, const std::string &place)
{
    const Fields from(json, place);
    ReportChannel channel;
    from.integer("index", channel.index);
    from.number("snr_db", channel.snrDb);
    return channel;
}

ReportRow readRow(const Json &json, const std::string &place)
{
    const Fields from(json, place);
    ReportRow row;
    row.index = Fields::asInteger<int>(from.require("index", "a whole number"), from.path("index"));
    row.ref = Fields::asText(from.require("ref", "a text"), from.path("ref"));
    from.text("cand", row.cand);
    from.text("node", row.node);
    from.integer("output", row.output);
    from.text("module", row.module);
    from.text("module_type", row.moduleType);
    from.text("target", row.target);
    from.text("op", row.op);
    from.text("rung", row.rung);
    from.text("kind", row.kind);
    if (from.find("shape") != nullptr) {
        row.shape.emplace();
        from.list("shape", *row.shape, Fields::asInteger<std::int64_t>);
    }
    from.text("dtype", row.dtype);
    row.status = Fields::asText(from.require("status", "a text"), from.path("status"));
    from.text("reason", row.reason);
    readFigures(from, row);
    from.list("folded", row.folded, Fields::asText);
    if (const Json *site = from.find("site"))
        row.site = readSite(*site, from.path("site"));
    from.list("sites", row.sites, readSite);
    from.integer("channel_axis", row.channelAxis);
    from.list("channels", row.channels, readChannel);
    if (const Json *histogram = from.find("histogram")) {
        const Fields parts(*histogram, from.path("histogram"));
        row.histogram.emplace();
        parts.list("edges", row.histogram->edges, Fields::asNumber);
        parts.list("reference", row.histogram->reference, Fields::asNumber);
        parts.list("candidate", row.histogram->candidate, Fields::asNumber);
    }
    from.text("ref_sha256", row.refSha256);
    from.text("cand_sha256", row.candSha256);
    from.text("source", row.source);
    return row;
}

ReportUnmatched readUnmatched(const Json &json, const std::string &place)
{
    const Fields from(json, place);
    ReportUnmatched unmatched;
    from.text("side", unmatched.side);
    from.text("node", unmatched.node);
    from.text("module", unmatched.module);
    from.text("reason", unmatched.reason);
    return unmatched;
}

Report readFields(const Json &json)
{
    const Fields from(json, "");
    Report report;
    report.dblame = Fields::asText(from.require("dblame", "dBlame's version"), "dblame");
    from.text("libtorch", report.libtorch);
    from.text("cpu", report.cpu);
    from.integer("threads", report.threads);
    report.reference = readModelFields(from, "reference");
    report.candidate = readModelFields(from, "candidate");
    if (const Json *recipe = from.find("recipe")) {
        const Fields parts(*recipe, "recipe");
        report.recipe.emplace();
        parts.text("title", report.recipe->title);
        parts.text("text", report.recipe->text);
    }
    from.list("skipped", report.skipped, Fields::asText);
    from.list("changed", report.changed, Fields::asText);
    if (const Json *inputs = from.find("inputs")) {
        const Fields parts(*inputs, "inputs");
        parts.text("source", report.inputs.source);
        parts.integer("batches", report.inputs.batches);
        parts.integer("samples", report.inputs.samples);
        parts.text("sha256", report.inputs.sha256);
        parts.flag("random", report.inputs.random);
        parts.text("calibration", report.inputs.calibration);
    }
    from.text("signal", report.signal);
    if (report.signal != "reference" && report.signal != "candidate")
        throw BadField{"signal", "\"reference\" or \"candidate\""};
    if (!from.require("rows", "a list").is_array())
        throw BadField{"rows", "a list"};
    from.list("rows", report.rows, readRow);
    if (const Json *drop = from.find("largest_drop")) {
        const Fields parts(*drop, "largest_drop");
        report.largestDrop.emplace();
        parts.integer("row", report.largestDrop->row);
        parts.number("drop_db", report.largestDrop->db);
    }
    from.list("unmatched", report.unmatched, readUnmatched);
    from.list("warnings", report.warnings, Fields::asText);
    from.list("output_snr_db", report.outputSnrDb, Fields::asNumber);
    from.list("output_sqnr_db", report.outputSqnrDb, Fields::asNumber);
    from.number("seconds", report.seconds);
    return report;
}

} // namespace

Result<Report> parseReport(std::string_view text, const std::string &name)
{
    try {
        return readFields(Json::parse(text));
    } catch (const BadField &bad) {
        return fail(ErrorCode::Unreadable, name,
                    "is no report of dBlame: " + (bad.what.empty() ? std::string("the file") : bad.what) +
                        " should be " + bad.expected + "; give a file that compare --json wrote");
    } catch (const Json::parse_error &error) {
        return fail(ErrorCode::Unreadable, name,
                    "is no JSON (byte " + std::to_string(error.byte) + "); give a file that compare --json wrote",
                    error.what());
    } catch (const Json::exception &error) {
        return fail(ErrorCode::Unreadable, name, "is no report of dBlame; give a file that compare --json wrote",
                    error.what());
    }
}

Result<Report> readReport(const std::string &path)
{
    std::error_code ec;
    if (std::filesystem::is_directory(path, ec))
        return fail(ErrorCode::Unreadable, path, "is a folder; give a file that compare --json wrote");
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return fail(ErrorCode::Unreadable, path, std::string("cannot be opened: ") + std::strerror(errno));
    std::ostringstream content;
    content << file.rdbuf();
    if (file.bad())
        return fail(ErrorCode::Unreadable, path, std::string("cannot be read: ") + std::strerror(errno));
    return parseReport(content.str(), path);
}

} // namespace dblame

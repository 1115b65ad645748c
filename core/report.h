// SPDX-License-Identifier: GPL-3.0-or-later
//
// A report as it is written to a file: names and figures, no ids of a run. docs/cli.md lists the fields.
// An absent optional is a field that was not asked for or does not apply.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/alignment.h"
#include "core/model.h"
#include "core/node_report.h"
#include "core/quant_site.h"

namespace dblame
{

struct ReportModel {
    std::string path; // "FILE", or "FILE#program" where the file holds several
    std::string sha256, format, producer;
    friend bool operator==(const ReportModel &, const ReportModel &) = default;
};

struct ReportSite {
    std::string id;
    bool on = true;
    std::string role, instance;
    std::optional<int> group;
    std::string dtype;
    int effectiveBits = 0;
    std::string scheme;      // "sym", "affine"
    std::string granularity; // "tensor", "channel", "block32", "token"
    std::optional<int> axis;
    std::vector<double> scale; // one, or one per channel or block
    std::vector<std::int64_t> zeroPoint;
    std::int64_t quantMin = 0, quantMax = 0;
    std::optional<double> clipped, unusedRange; // shares, 0..1
    std::string change;                         // what an edit made of it; empty when untouched
    friend bool operator==(const ReportSite &, const ReportSite &) = default;
};

struct ReportChannel {
    int index = 0;
    double snrDb = 0;
    friend bool operator==(const ReportChannel &, const ReportChannel &) = default;
};

struct ReportHistogram {
    std::vector<double> edges, reference, candidate;
    friend bool operator==(const ReportHistogram &, const ReportHistogram &) = default;
};

struct ReportRow {
    int index = 0;
    std::string ref, cand;     // value names; cand after its output site
    std::string node;          // values of multi-output nodes: the node's name ...
    std::optional<int> output; // ... and which of its values
    std::string module, moduleType;
    std::string target; // state-dict name of parameters and buffers
    std::string op;     // "aten.conv2d.default"; empty for inputs and parameters
    std::string rung, kind;
    std::optional<std::vector<std::int64_t>> shape;
    std::string dtype;
    std::string status, reason;
    std::optional<double> snrDb, sqnrDb;
    std::optional<double> afterSiteDb, beforeSiteDb; // in the report's signal convention
    std::optional<double> mse, mae, maxAbs, cosine, bias, refMin, refMax, candMin, candMax;
    std::optional<std::int64_t> nan, inf;
    std::optional<double> dropDb, flowDropDb;
    std::vector<std::string> folded;
    std::optional<ReportSite> site;
    std::vector<ReportSite> sites; // more, where several
    std::optional<int> channelAxis;
    std::vector<ReportChannel> channels;
    std::optional<ReportHistogram> histogram;
    std::string refSha256, candSha256;
    std::optional<double> ms;
    std::string source;

    friend bool operator==(const ReportRow &, const ReportRow &) = default;
};

struct ReportUnmatched {
    std::string side; // "reference", "candidate"
    std::string node, module, reason;
    friend bool operator==(const ReportUnmatched &, const ReportUnmatched &) = default;
};

struct ReportDrop {
    int row = 0;
    double db = 0;
    friend bool operator==(const ReportDrop &, const ReportDrop &) = default;
};

struct ReportInputs {
    std::string source;
    std::int64_t batches = 0, samples = 0;
    std::string sha256;
    bool random = false;
    std::string calibration; // source of the observers' inputs; empty: none, or no recipe
    friend bool operator==(const ReportInputs &, const ReportInputs &) = default;
};

// The recipe that the candidate was made with.
struct ReportRecipe {
    std::string title; // "xnnpack-static, 2 overrides"
    std::string text;  // as a file: `--recipe` reads it
    friend bool operator==(const ReportRecipe &, const ReportRecipe &) = default;
};

struct Report {
    std::string dblame, libtorch, cpu;
    int threads = 0;
    ReportModel reference, candidate;
    std::optional<ReportRecipe> recipe;
    std::vector<std::string> skipped, changed;
    ReportInputs inputs;
    std::string signal = "reference"; // or "candidate"
    std::vector<ReportRow> rows;
    std::optional<ReportDrop> largestDrop; // by order
    std::vector<ReportUnmatched> unmatched;
    std::vector<std::string> warnings;
    std::vector<double> outputSnrDb, outputSqnrDb;
    double seconds = 0;

    friend bool operator==(const Report &, const Report &) = default;
};

// What is asked for beyond the figures that every report has.
struct ReportFields {
    bool channels = false, histograms = false, hashes = false;
};

[[nodiscard]] Report makeReport(const RunReport &run, const Alignment &alignment, const SiteTable &sites,
                                const Model &reference, const Model &candidate, const ReportFields &fields = {});

// snr, or sqnr, as the report's signal convention wants it; absent without dB.
[[nodiscard]] std::optional<double> shownDb(const Report &report, const ReportRow &row);

// dBlame's version, "0.1.0".
[[nodiscard]] const char *dblameVersion();

} // namespace dblame

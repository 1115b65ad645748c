// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a comparison hands out per aligned pair. Plain values; docs/cli.md lists the fields of the report.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/alignment.h"
#include "core/ids.h"
#include "core/quant_site.h"

namespace dblame
{

enum class RowStatus { Pending, Ok, Exact, Mismatch, NotFloat, ShapeMismatch, Failed, NotComputed };
[[nodiscard]] const char *rowStatusName(RowStatus status); // "ok", "exact", "mismatch", "not_float", ...

inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

// Figures of one pair over all batches so far (pooled sums in fp64, docs/metrics.md).
struct Metrics {
    // NaN where there is no figure: nothing was computed, or the values are no floats.
    double snrDb = kNoFigure;  // signal = reference: 10 log10(sum r^2 / sum (r-c)^2); +inf equal, -inf silent reference
    double sqnrDb = kNoFigure; // signal = candidate: 10 log10(sum c^2 / sum (r-c)^2), torchao's convention
    double mse = 0, mae = 0, maxAbs = 0;
    double cosine = 0; // sum rc / sqrt(sum r^2 sum c^2); nan when one side is all zero
    double bias = 0;   // mean of c - r
    double refMin = 0, refMax = 0, candMin = 0, candMax = 0; // over finite elements
    std::int64_t nan = 0, inf = 0;                           // elements with a NaN (an infinity) on either side
    std::int64_t count = 0;                                  // elements compared
    std::int64_t mismatches = 0;                             // integer and bool values: elements that differ
};

struct ChannelMetrics {
    std::int32_t index = 0;
    double snrDb = 0, sqnrDb = 0;
    double signal = 0; // sum r^2
};

// Counts of both sides (and of the error) on common edges: edges.size() == counts + 1. Exact ones are whole numbers of
// elements, edges[i] <= x < edges[i + 1]; sampled ones are estimates, spread over the bars that a bin of bits touches.
struct Histogram {
    std::vector<double> edges;
    std::vector<double> reference, candidate; // counts (sampled counts scaled up to all elements)
    std::vector<double> errorEdges, error;
    bool sampled = false;
};

// State of a site in this run.
struct SiteReport {
    SiteId site;
    bool on = true;
    std::string change;                // "float here", "int4 symmetric per channel"; empty when untouched
    std::optional<double> clipped;     // share of source elements outside the grid's range, 0..1
    std::optional<double> unusedRange; // share of the grid's range that no element used, 0..1
    std::vector<double> scale;         // as used (dynamic: of the last batch)
    std::vector<std::int64_t> zeroPoint;
};

struct NodeReport {
    PairId row;
    RowStatus status = RowStatus::Pending;
    std::string reason; // why it failed, was not computed, or does not fit
    Metrics metrics;
    std::optional<double> beforeSiteDb, beforeSiteSqnrDb; // raw operator output, where an output site follows
    std::optional<double> afterSiteDb, afterSiteSqnrDb;   // after the consumers' input site
    std::optional<double> dropDb;     // dB lost against the previous finite activation row: previous - this
    std::optional<double> flowDropDb; // dB lost against the worst producer in the data flow: producer - this
    std::vector<ChannelMetrics> channels;
    std::optional<Histogram> histogram;
    std::vector<SiteReport> sites;   // the output/weight site first, then input sites
    std::vector<std::int64_t> shape; // as computed
    std::string dtype;               // of the compared reference value
    std::string refSha256, candSha256;
    double ms = 0;            // time of the two operators, last batch
    int batches = 0;          // batches that went into the figures
    bool carriedOver = false; // not downstream of the edit: figures of the run before
};

// snr, or sqnr, of a row as the chosen signal convention wants it.
enum class Signal { Reference, Candidate };
[[nodiscard]] double shownDb(const NodeReport &row, Signal signal);

struct Drop {
    PairId row;
    double db = 0; // positive: how many dB were lost
};

struct InputsInfo {
    std::string source; // "inputs.pt", "sample inputs of float.pt2", "random, seed 1"
    std::int64_t batches = 0, samples = 0;
    std::string sha256; // over the tensors' elements, in order
    bool random = false;
    std::vector<std::string> notes; // "64 samples split into 2 batches of 32"
};

struct RunReport {
    std::vector<NodeReport> rows;                  // one per pair of the alignment, in its order
    std::optional<Drop> largestDrop;               // by order
    std::optional<Drop> largestFlowDrop;           // by data flow
    std::vector<double> outputSnrDb, outputSqnrDb; // per tensor that the reference returns; NaN without a figure
    std::vector<std::string> skipped;              // ids of sites (and edges) that were off
    std::vector<std::string> changed;              // "block.conv1/weight=int4:sym:channel"
    std::vector<std::string> warnings;
    Signal signal = Signal::Reference;
    int threads = 0;
    std::string cpu; // capability that LibTorch chose, "AVX512"
    std::string libtorch;
    InputsInfo inputs;
    double seconds = 0;
    int rowsRecomputed = 0; // of an incremental rerun; all rows of a full one
};

// Fills dropDb, flowDropDb and the two largest drops, of the dB that `signal` names. Pure; order and data flow come
// from the reference. Rows that count: activations, inputs and outputs with a finite number; weights never. A row
// without a row before it (without a finite producer) has no drop; where nothing was lost there is no largest one.
// Producers: the nearest paired ancestors in the reference that have a number; unpaired and uncomputed values are
// walked through, and an equal (+inf) or all-wrong (-inf) one ends the walk without being a producer.
void findDrops(RunReport &report, const Alignment &alignment, const Graph &reference, Signal signal);

} // namespace dblame

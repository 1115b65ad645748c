// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/output_parts.h"

#include <algorithm>

#include "core/number_text.h"
#include "core/text_table.h"

namespace dblame
{

namespace
{

constexpr std::uint64_t kStepsPerRun = 1000;

class ProgressSink final : public ReportSink
{
public:
    ProgressSink(const Progress &progress, const char *what, std::uint64_t run, std::uint64_t runs)
        : m_progress(progress), m_what(what), m_done(run * kStepsPerRun), m_total(runs * kStepsPerRun)
    {
        report(0);
    }
    void row(const NodeReport &) override {}
    void progress(std::int64_t batch, std::int64_t batches, std::int64_t node, std::int64_t nodes) override
    {
        const double inBatch = nodes > 0 ? static_cast<double>(node) / static_cast<double>(nodes) : 0.0;
        report(batches > 0 ? (static_cast<double>(batch) + inBatch) / static_cast<double>(batches) : 0.0);
    }

private:
    void report(double part)
    {
        if (m_progress)
            m_progress(m_done +
                           static_cast<std::uint64_t>(static_cast<double>(kStepsPerRun) * std::clamp(part, 0., 1.)),
                       m_total, m_what);
    }
    const Progress &m_progress;
    const char *m_what;
    std::uint64_t m_done, m_total;
};

// Switches off every site that changes its value and is (or is not) a weight's.
EditSet allOff(const SiteTable &sites, bool weights)
{
    EditSet edits;
    for (std::size_t i = 0; i < sites.sites.size(); ++i) {
        const QuantSite &site = sites.sites[i];
        if (!site.watchesOnly && (site.role == SiteRole::Weight) == weights)
            edits.off.insert(SiteId(i));
    }
    return edits;
}

} // namespace

EditSet onlyWeights(const SiteTable &sites)
{
    return allOff(sites, false);
}

EditSet onlyActivations(const SiteTable &sites)
{
    return allOff(sites, true);
}

Result<OutputParts> measureOutputParts(Comparison &comparison, const RunOptions &options, const Progress &progress,
                                       std::stop_token stop)
{
    const EditSet noActivations = onlyWeights(comparison.sites());
    const EditSet noWeights = onlyActivations(comparison.sites());
    const int activations = static_cast<int>(noActivations.off.size());
    const int weights = static_cast<int>(noWeights.off.size());
    struct Run {
        OutputPart OutputParts::*part;
        const EditSet edits;
        int sites;
        const char *what;
    };
    std::vector<Run> runs = {{&OutputParts::everything, {}, weights + activations, "measuring the outputs"}};
    const bool both = weights > 0 && activations > 0;
    if (both) {
        runs.push_back({&OutputParts::weights, noActivations, weights, "measuring the weights alone"});
        runs.push_back({&OutputParts::activations, noWeights, activations, "measuring the activations alone"});
    } else if (weights + activations > 0) {
        // One part is everything; the other is the candidate without a site.
        OutputPart OutputParts::*none = weights > 0 ? &OutputParts::activations : &OutputParts::weights;
        runs.push_back({none, weights > 0 ? noWeights : noActivations, 0, "measuring the float model"});
    }
    OutputParts parts;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        ProgressSink sink(progress, runs[i].what, i, runs.size());
        auto report = comparison.run(runs[i].edits, options, sink, stop);
        if (!report)
            return tl::unexpected(report.error());
        if (stop.stop_requested())
            return fail(ErrorCode::Cancelled, {}, "measuring was stopped");
        parts.*runs[i].part = {runs[i].sites, std::move(report->outputSnrDb), std::move(report->outputSqnrDb)};
    }
    if (!both) {
        if (weights > 0 || activations == 0)
            parts.weights = parts.everything;
        if (activations > 0 || weights == 0)
            parts.activations = parts.everything;
    }
    return parts;
}

std::string outputPartsText(const OutputParts &parts)
{
    TextTable table({"output", "quantized", ">sites", ">SNR dB", ">SQNR dB"});
    const auto add = [&table](const char *name, const OutputPart &part) {
        for (std::size_t i = 0; i < part.snrDb.size(); ++i)
            table.add({std::to_string(i), name, std::to_string(part.sites), fixedText(part.snrDb[i], 2),
                       fixedText(part.sqnrDb[i], 2)});
    };
    add("everything", parts.everything);
    add("weights only", parts.weights);
    add("activations only", parts.activations);
    return table.text();
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "comparison_support.h"

#include <cstring>
#include <filesystem>
#include <iterator>
#include <tuple>

#include <gtest/gtest.h>

namespace dblame::test
{

std::string dataPath(const std::string &relative)
{
    return std::string(DBLAME_TEST_DATA) + "/" + relative;
}

const AlignedPair *OpenedPair::pairOf(const std::string &refName) const
{
    const PairId row = rowOf(refName);
    return row.valid() ? &comparison->alignment().pairs[row.get()] : nullptr;
}

PairId OpenedPair::rowOf(const std::string &refName) const
{
    const auto &pairs = comparison->alignment().pairs;
    for (std::size_t i = 0; i < pairs.size(); ++i)
        if (reference->graph().value(pairs[i].ref).name == refName)
            return PairId(i);
    return {};
}

PairId OpenedPair::rowOfTarget(const std::string &target) const
{
    const auto &pairs = comparison->alignment().pairs;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const GraphInput *input = reference->graph().input(pairs[i].ref);
        if (input && input->kind != InputKind::User && input->target == target)
            return PairId(i);
    }
    return {};
}

OpenedPair openPair(const std::string &folder, const std::string &reference, const std::string &candidate)
{
    OpenedPair pair;
    Engine &engine = *dblame_engine_instance();
    const auto open = [&](const std::string &file) -> std::shared_ptr<const Model> {
        auto model = engine.openModel(dataPath(folder + "/" + file), {}, {});
        if (!model) {
            ADD_FAILURE() << model.error().text();
            return nullptr;
        }
        return *model;
    };
    pair.reference = open(reference);
    pair.candidate = open(candidate);
    if (!pair.reference || !pair.candidate)
        return pair;
    InputRequest request;
    const std::string inputs = dataPath(folder + "/inputs.pt");
    if (std::filesystem::exists(inputs))
        request.files = {inputs};
    auto set = engine.openInputs(request, *pair.reference, *pair.candidate, {});
    if (!set) {
        ADD_FAILURE() << set.error().text();
        return pair;
    }
    pair.inputs = *set;
    auto comparison = engine.compare(pair.reference, pair.candidate, pair.inputs);
    if (!comparison) {
        ADD_FAILURE() << comparison.error().text();
        return pair;
    }
    pair.comparison = std::move(*comparison);
    return pair;
}

RunOptions plainOptions()
{
    RunOptions options;
    options.threads = 2;
    options.channels = true;
    options.histograms = false;
    return options;
}

RunReport runOrFail(Comparison &comparison, const EditSet &edits, const RunOptions &options)
{
    NullSink sink;
    auto report = comparison.run(edits, options, sink, {});
    if (!report) {
        ADD_FAILURE() << report.error().text();
        return {};
    }
    return *report;
}

namespace
{

bool sameBits(double a, double b)
{
    return std::memcmp(&a, &b, sizeof a) == 0;
}

bool sameMetrics(const Metrics &a, const Metrics &b)
{
    return sameBits(a.snrDb, b.snrDb) && sameBits(a.sqnrDb, b.sqnrDb) && sameBits(a.mse, b.mse) &&
           sameBits(a.mae, b.mae) && sameBits(a.maxAbs, b.maxAbs) && sameBits(a.cosine, b.cosine) &&
           sameBits(a.bias, b.bias) && sameBits(a.refMin, b.refMin) && sameBits(a.refMax, b.refMax) &&
           sameBits(a.candMin, b.candMin) && sameBits(a.candMax, b.candMax) && a.nan == b.nan && a.inf == b.inf &&
           a.count == b.count;
}

bool sameOptional(const std::optional<double> &a, const std::optional<double> &b)
{
    return a.has_value() == b.has_value() && (!a || sameBits(*a, *b));
}

} // namespace

std::string firstDifference(const RunReport &a, const RunReport &b)
{
    if (a.rows.size() != b.rows.size())
        return "number of rows";
    for (std::size_t i = 0; i < a.rows.size(); ++i) {
        const NodeReport &x = a.rows[i];
        const NodeReport &y = b.rows[i];
        const std::string row = "row " + std::to_string(i) + ": ";
        if (x.status != y.status)
            return row + "status";
        if (!sameMetrics(x.metrics, y.metrics))
            return row + "metrics " + std::to_string(x.metrics.snrDb) + " / " + std::to_string(y.metrics.snrDb);
        if (!sameOptional(x.beforeSiteDb, y.beforeSiteDb) || !sameOptional(x.afterSiteDb, y.afterSiteDb))
            return row + "before or after the site";
        if (!sameOptional(x.dropDb, y.dropDb) || !sameOptional(x.flowDropDb, y.flowDropDb))
            return row + "drops";
        if (x.channels.size() != y.channels.size())
            return row + "number of channels";
        for (std::size_t c = 0; c < x.channels.size(); ++c)
            if (!sameBits(x.channels[c].snrDb, y.channels[c].snrDb))
                return row + "channel " + std::to_string(c);
        for (std::size_t s = 0; s < x.sites.size(); ++s)
            if (x.sites[s].on != y.sites[s].on || x.sites[s].change != y.sites[s].change)
                return row + "state of site " + std::to_string(s);
    }
    if (a.skipped != b.skipped)
        return "skipped sites";
    return {};
}

namespace
{

SpecChange randomChange(std::mt19937 &random)
{
    constexpr ElementType types[] = {ElementType::Int4,       ElementType::UInt8,      ElementType::Int16,
                                     ElementType::Float8E4M3, ElementType::Float8E5M2, ElementType::Float4E2M1,
                                     ElementType::BFloat16,   ElementType::UInt6};
    SpecChange change{static_cast<int>(3 + random() % 6), Granularity::PerTensor, {}, 32};
    if (random() % 3 != 0)
        change.type = types[random() % std::size(types)];
    const bool cast = change.type == ElementType::BFloat16;
    if (!cast && random() % 3 == 0)
        change.granularity = Granularity::PerChannel;
    else if (!cast && random() % 3 == 0)
        std::tie(change.low, change.high) =
            std::pair(-0.25 * static_cast<double>(random() % 8), 0.5 + static_cast<double>(random() % 4));
    return change;
}

} // namespace

void editAtRandom(EditSet &edits, const std::vector<QuantSite> &sites, std::mt19937 &random)
{
    const SiteId site(random() % sites.size());
    switch (random() % 3) {
    case 0:
        if (!edits.off.erase(site))
            edits.off.insert(site);
        break;
    case 1:
        if (!sites[site.get()].readers.empty())
            edits.bypassed.insert({site, sites[site.get()].readers.front()});
        break;
    default:
        edits.respecified[site] = randomChange(random);
    }
}

} // namespace dblame::test

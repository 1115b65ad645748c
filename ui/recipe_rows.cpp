// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/recipe_rows.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>

#include "core/random_looking.h"
#include "core/recipe_facts.h"
#include "ui/row_words.h"

namespace dblame::ui
{

namespace
{

QString tr(const char *text)
{
    return QCoreApplication::translate("dblame::ui::RecipePanel", text);
}

QString text(const std::string &words)
{
    return QString::fromStdString(words);
}

QString placeOf(const std::string &module, const std::string &node)
{
    return text(module.empty() ? node : module);
}

void addWeights(const QuantizedModel &quantized, std::vector<FactRow> &rows)
{
    for (const WeightError &weight : quantized.weightErrors) {
        QString value = tr("%1 dB").arg(decibels(weight.snrDb, 2));
        if (weight.worstChannel >= 0)
            value += tr(", worst channel %1: %2 dB")
                         .arg(weight.worstChannel)
                         .arg(decibels(weight.channelDb[static_cast<std::size_t>(weight.worstChannel)], 2));
        rows.push_back({tr("weight error"), text(weight.site), value});
    }
}

// The row whose value the site quantizes.
PairId rowOf(const OpenPair &pair, const QuantSite &site, SiteId id)
{
    const auto &rowOfCand = pair.alignment.rowOfCand;
    if (site.source.valid() && site.source.get() < rowOfCand.size() && rowOfCand[site.source.get()] >= 0)
        return PairId(static_cast<std::size_t>(rowOfCand[site.source.get()]));
    const auto &pairs = pair.alignment.pairs;
    for (std::size_t i = 0; i < pairs.size(); ++i)
        if (pairs[i].site == id)
            return PairId(i);
    return {};
}

void addDrift(CalibrationRow &row, const NodeReport &report)
{
    if (report.metrics.count == 0 || !std::isfinite(report.metrics.refMin) || !std::isfinite(report.metrics.refMax))
        return;
    row.evaluationLow = report.metrics.refMin;
    row.evaluationHigh = report.metrics.refMax;
    const double width = row.seen.highest - row.seen.lowest;
    if (row.dynamic || row.seen.batches == 0 || row.seen.elements == 0)
        return;
    const double beyond = std::max({0.0, row.seen.lowest - *row.evaluationLow, *row.evaluationHigh - row.seen.highest});
    row.drift = beyond == 0 ? 0.0 : beyond / width; // a constant that is one no more: infinitely far
}

} // namespace

std::vector<FactRow> factRows(const QuantizedModel &quantized)
{
    const RecipeFacts facts = factsOf(quantized);
    std::vector<FactRow> rows;
    rows.push_back({tr("observers"), {}, tr("%1 at %2 sites").arg(facts.observerCount).arg(facts.siteCount)});
    for (const ObserverCount &count : facts.observers)
        rows.push_back({count.weight ? tr("on weights") : tr("on activations"), text(count.kind),
                        tr("%1 at %2 sites").arg(count.observers).arg(count.sites)});
    rows.push_back({tr("converted graph"),
                    {},
                    tr("%1 quantize, %2 dequantize nodes").arg(facts.quantizeNodes).arg(facts.dequantizeNodes)});
    for (const OperatorCount &count : facts.operators)
        rows.push_back({tr("quantized"), text(count.op), tr("%1 of %2").arg(count.quantized).arg(count.total)});
    for (const FloatOperator &left : facts.leftFloat)
        rows.push_back({tr("weights left float"), tr("%1 (%2)").arg(placeOf(left.module, left.node), text(left.op)),
                        text(left.reason), true});
    for (const BitBoundary &boundary : facts.boundaries)
        rows.push_back({tr("bits change"), placeOf(boundary.module, boundary.node),
                        tr("%1 bits in, %2 bits out").arg(boundary.bitsIn).arg(boundary.bitsOut)});
    for (const std::string &defect : facts.defects)
        rows.push_back({tr("known defect"), {}, text(defect), true});
    addWeights(quantized, rows);
    return rows;
}

std::vector<FactRow> partRows(const OutputParts *parts)
{
    std::vector<FactRow> rows;
    const auto add = [&](const QString &name, const OutputPart *part) {
        if (part == nullptr) {
            rows.push_back({tr("output"), name, tr("not measured")});
            return;
        }
        for (std::size_t i = 0; i < part->snrDb.size(); ++i)
            rows.push_back({part->snrDb.size() == 1 ? tr("output") : tr("output %1").arg(i), name,
                            tr("SNR %1 dB, SQNR %2 dB, %3 sites")
                                .arg(decibels(part->snrDb[i], 2), decibels(part->sqnrDb[i], 2))
                                .arg(part->sites)});
    };
    add(tr("everything quantized"), parts != nullptr ? &parts->everything : nullptr);
    add(tr("weights only"), parts != nullptr ? &parts->weights : nullptr);
    add(tr("activations only"), parts != nullptr ? &parts->activations : nullptr);
    return rows;
}

std::vector<WeightRow> weightRows(const OpenPair &pair)
{
    std::vector<WeightRow> rows;
    if (!pair.made)
        return rows;
    for (const WeightError &error : pair.made->quantized.weightErrors) {
        WeightRow row{error, {}};
        const SiteId site = pair.sites.byId(error.site);
        const auto &pairs = pair.alignment.pairs;
        for (std::size_t i = 0; site.valid() && i < pairs.size() && !row.row.valid(); ++i)
            if (pairs[i].site == site)
                row.row = PairId(i);
        rows.push_back(std::move(row));
    }
    return rows;
}

std::vector<CalibrationRow> calibrationRows(const OpenPair &pair, const RunReport *report)
{
    std::vector<CalibrationRow> rows;
    if (!pair.made)
        return rows;
    const QuantizedModel &quantized = pair.made->quantized;
    for (std::size_t i = 0; i < quantized.placement.sites.size(); ++i) {
        const PlacedSite &placed = quantized.placement.sites[i];
        if (placed.role == SiteRole::Weight || placed.instance < 0)
            continue;
        CalibrationRow row;
        row.site = text(placed.id);
        const auto instance = static_cast<std::size_t>(placed.instance);
        row.dynamic = quantized.placement.observers[instance].spec.observer == ObserverKind::Dynamic;
        if (instance < quantized.observed.size())
            row.seen = quantized.observed[instance];
        if (i < quantized.siteOfPlaced.size())
            row.id = quantized.siteOfPlaced[i];
        if (row.id.valid())
            row.row = rowOf(pair, pair.sites.site(row.id), row.id);
        if (report != nullptr && row.row.valid() && row.row.get() < report->rows.size())
            addDrift(row, report->rows[row.row.get()]);
        rows.push_back(std::move(row));
    }
    return rows;
}

QString calibrationWarning(const OpenPair &pair)
{
    if (!pair.made || pair.made->quantized.calibrationBatches == 0)
        return {};
    if (pair.made->calibration.random)
        return tr("The observers saw random numbers: the ranges are not those of real data. Give calibration files.");
    if (const auto note = randomLookNote(pair.made->calibration))
        return tr("What the observers saw is no real data: %1. Give other calibration files.").arg(text(*note));
    if (pair.made->onInputs)
        return tr(
            "The observers saw the inputs of the comparison themselves: other data would give worse figures. Give "
            "calibration files.");
    return {};
}

} // namespace dblame::ui

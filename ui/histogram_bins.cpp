// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/histogram_bins.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace dblame::ui
{
namespace
{

struct Bins {
    std::vector<double> edges, reference, candidate;
};

// Ascending finite edges, cut to the bins that hold something.
Bins trimmed(const std::vector<double> &edges, const std::vector<double> &reference,
             const std::vector<double> &candidate)
{
    std::size_t first = 0, end = reference.size();
    const auto usable = [&](std::size_t i) {
        const double count = reference[i] + (i < candidate.size() ? candidate[i] : 0);
        return count > 0 && std::isfinite(edges[i]) && std::isfinite(edges[i + 1]) && edges[i + 1] > edges[i];
    };
    while (first < end && !usable(first))
        ++first;
    while (end > first && !usable(end - 1))
        --end;
    Bins out;
    for (std::size_t i = first; i < end; ++i) {
        if (i == first)
            out.edges.push_back(edges[i]);
        out.edges.push_back(edges[i + 1]);
        out.reference.push_back(reference[i]);
        if (!candidate.empty())
            out.candidate.push_back(candidate[i]);
    }
    return out;
}

std::vector<double> spread(const std::vector<double> &edges, const std::vector<double> &counts,
                           const std::vector<double> &target)
{
    std::vector<double> out(target.size() - 1, 0.0);
    const double low = target.front();
    const double width = (target.back() - low) / static_cast<double>(out.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (!(counts[i] > 0))
            continue;
        const double from = (edges[i] - low) / width, to = (edges[i + 1] - low) / width;
        const auto last = out.size() - 1;
        auto bin = std::min(static_cast<std::size_t>(std::max(from, 0.0)), last);
        // All in one bin, which is the rule for the narrow ones near zero, or a share to each that it overlaps.
        if (to <= static_cast<double>(bin + 1) || bin == last) {
            out[bin] += counts[i];
            continue;
        }
        for (; bin <= last && static_cast<double>(bin) < to; ++bin) {
            const double overlap =
                std::min(to, static_cast<double>(bin + 1)) - std::max(from, static_cast<double>(bin));
            out[bin] += counts[i] * std::max(overlap, 0.0) / (to - from);
        }
    }
    return out;
}

void toDensity(const std::vector<double> &edges, std::vector<double> &counts)
{
    for (std::size_t i = 0; i < counts.size(); ++i)
        counts[i] /= edges[i + 1] - edges[i];
}

} // namespace

DensityBins densityBins(const std::vector<double> &edges, const std::vector<double> &reference,
                        const std::vector<double> &candidate, int most)
{
    DensityBins out;
    if (edges.size() < 2 || reference.size() + 1 != edges.size() ||
        (!candidate.empty() && candidate.size() != reference.size()))
        return out;
    Bins bins = trimmed(edges, reference, candidate);
    if (bins.reference.empty())
        return out;
    const double range = bins.edges.back() - bins.edges.front();
    double narrowest = range;
    for (std::size_t i = 0; i + 1 < bins.edges.size(); ++i)
        narrowest = std::min(narrowest, bins.edges[i + 1] - bins.edges[i]);
    if (bins.reference.size() > static_cast<std::size_t>(most) || narrowest < range / (4.0 * most)) {
        std::vector<double> target(static_cast<std::size_t>(most) + 1);
        for (int i = 0; i <= most; ++i)
            target[static_cast<std::size_t>(i)] = bins.edges.front() + range * i / most;
        bins.reference = spread(bins.edges, bins.reference, target);
        if (!bins.candidate.empty())
            bins.candidate = spread(bins.edges, bins.candidate, target);
        bins.edges = std::move(target);
    }
    toDensity(bins.edges, bins.reference);
    toDensity(bins.edges, bins.candidate);
    out.edges = std::move(bins.edges);
    out.reference = std::move(bins.reference);
    out.candidate = std::move(bins.candidate);
    return out;
}

} // namespace dblame::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/row_figures.h"

#include "core/engine.h"
#include "core/readers/loaded_model.h"

namespace dblame
{

namespace
{

MetricOptions metricOptions(const AlignedPair &pair, const RunOptions &options)
{
    MetricOptions result;
    result.channelAxis = options.channels ? pair.channelAxis : -1;
    result.histograms = options.histograms || options.exactHistograms;
    result.exact = options.exactHistograms;
    return result;
}

std::string shapeOf(const at::Tensor &tensor)
{
    if (tensor.dim() == 0)
        return "scalar";
    std::string text;
    for (std::int64_t size : tensor.sizes())
        text += (text.empty() ? "" : "×") + std::to_string(size);
    return text;
}

bool isRealOrComplexFloat(const at::Tensor &tensor)
{
    return tensor.is_floating_point() || tensor.is_complex();
}

} // namespace

RowFigures::RowFigures(const AlignedPair &pair, const SiteTable &sites, const RunOptions &options)
    : m_main(metricOptions(pair, options))
{
    if (options.hashes) {
        m_refHash = std::make_unique<Sha256>();
        m_candHash = std::make_unique<Sha256>();
    }
    if (!options.histograms || pair.kind == RowKind::Weight)
        return;
    std::vector<SiteId> observed = pair.inputSites;
    if (pair.site.valid())
        observed.insert(observed.begin(), pair.site);
    for (SiteId id : observed) {
        const QuantSite &site = sites.site(id);
        if (site.watchesOnly || site.spec.dynamic || site.scale.size() != 1 || site.zeroPoint.size() > 1 ||
            isFloatingPoint(site.spec.storage))
            continue;
        const double zero = site.zeroPoint.empty() ? 0.0 : static_cast<double>(site.zeroPoint.front());
        m_ranges.push_back({id,
                            (static_cast<double>(site.spec.quantMin) - zero) * site.scale.front(),
                            (static_cast<double>(site.spec.quantMax) - zero) * site.scale.front(),
                            {}});
    }
}

void RowFigures::add(const RowTensors &tensors)
{
    const at::Tensor &r = tensors.reference;
    const at::Tensor &c = tensors.candidate;
    ++m_batches;
    m_shape.assign(r.sizes().begin(), r.sizes().end());
    m_dtype = dtypeName(fromTorch(r.scalar_type()));
    if (r.sizes() != c.sizes()) {
        m_trouble = RowStatus::ShapeMismatch;
        m_reason = "shapes differ " + shapeOf(r) + " / " + shapeOf(c);
        return;
    }
    if (isRealOrComplexFloat(r) != isRealOrComplexFloat(c)) {
        m_trouble = RowStatus::NotFloat;
        m_reason = "types differ: " + m_dtype + " / " + std::string(dtypeName(fromTorch(c.scalar_type())));
        return;
    }
    m_main.add(r, c);
    const auto addLike = [&r](SnrAccumulator &sums, const at::Tensor &own, const at::Tensor &candidate) {
        const at::Tensor &reference = own.defined() ? own : r;
        if (candidate.defined() && candidate.sizes() == reference.sizes())
            sums.add(reference, candidate);
    };
    addLike(m_before, tensors.referenceBefore, tensors.before);
    addLike(m_after, tensors.referenceAfter, tensors.after);
    const at::Tensor &raw = tensors.before.defined() ? tensors.before : c;
    for (ObservedRange &observed : m_ranges)
        observed.range.add(raw, observed.lo, observed.hi);
    addHashes(tensors);
}

void RowFigures::addHashes(const RowTensors &tensors)
{
    if (!m_refHash)
        return;
    const auto add = [](Sha256 &hash, const at::Tensor &tensor) {
        const at::Tensor dense = tensor.contiguous();
        hash.add(dense.const_data_ptr(), dense.nbytes());
    };
    add(*m_refHash, tensors.reference);
    add(*m_candHash, tensors.candidate);
}

void RowFigures::setMissing(bool failedItself, std::string reason)
{
    m_trouble = failedItself ? RowStatus::Failed : RowStatus::NotComputed;
    m_reason = std::move(reason);
}

void RowFigures::fill(NodeReport &report, bool final)
{
    report.shape = m_shape;
    report.dtype = m_dtype;
    report.batches = m_batches;
    report.reason = m_reason;
    if (m_trouble != RowStatus::Pending) {
        report.status = m_trouble;
        return;
    }
    if (m_main.empty())
        return;
    m_main.fill(report);
    if (!m_before.empty()) {
        report.beforeSiteDb = m_before.snrDb();
        report.beforeSiteSqnrDb = m_before.sqnrDb();
    }
    if (!m_after.empty()) {
        report.afterSiteDb = m_after.snrDb();
        report.afterSiteSqnrDb = m_after.sqnrDb();
    }
    for (const ObservedRange &observed : m_ranges)
        for (SiteReport &site : report.sites)
            if (site.site == observed.site) {
                site.clipped = observed.range.clipped();
                site.unusedRange = observed.range.unusedRange();
            }
    if (m_refHash && final) {
        report.refSha256 = m_refHash->hex();
        report.candSha256 = m_candHash->hex();
    }
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <c10/util/Exception.h>

#include "core/engine/palette.h"
#include "core/engine/quantize_tensor.h"
#include "core/engine/site_kernels.h"
#include "core/graph_query.h"

namespace dblame
{

namespace
{

double decibels(double signal, double error)
{
    return error == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / error);
}

// SNR of a weight, whole and per index of `axis`; sums in float64.
WeightError errorOf(const at::Tensor &weight, const at::Tensor &quantized, int axis)
{
    WeightError result;
    result.axis = axis;
    const at::Tensor w = weight.to(at::kDouble);
    const at::Tensor e = at::sub(w, quantized.to(at::kDouble));
    const at::Tensor signal = at::mul(w, w);
    const at::Tensor error = at::mul(e, e);
    result.snrDb = decibels(at::sum(signal).item<double>(), at::sum(error).item<double>());
    if (w.dim() < 2 || axis >= w.dim())
        return result;
    std::vector<std::int64_t> others;
    for (std::int64_t d = 0; d < w.dim(); ++d)
        if (d != axis)
            others.push_back(d);
    const at::Tensor signals = at::sum(signal, others);
    const at::Tensor errors = at::sum(error, others);
    for (std::int64_t c = 0; c < signals.numel(); ++c) {
        result.channelDb.push_back(decibels(signals[c].item<double>(), errors[c].item<double>()));
        const auto worst = static_cast<std::size_t>(std::max(result.worstChannel, 0));
        if (std::isfinite(result.channelDb.back()) &&
            (result.worstChannel < 0 || result.channelDb.back() < result.channelDb[worst]))
            result.worstChannel = static_cast<int>(c);
    }
    return result;
}

at::Tensor valueOrThrow(Result<at::Tensor> result)
{
    TORCH_CHECK(result.has_value(), result.error().text());
    return *std::move(result);
}

// What decides a weight's numbers besides its own values, where several weights share an observer.
ValueKey placementKey(const Placement &placement)
{
    Digest digest("placement");
    for (const PlacedSite &site : placement.sites) {
        digest.text(site.id).number(site.instance);
        digest.spec(placement.observers[static_cast<std::size_t>(site.instance)].spec);
    }
    return digest.key();
}

} // namespace

Calibration::Calibration(std::shared_ptr<LoadedModel> model, const Placement &placement,
                         const std::vector<SiteId> &siteOfPlaced, const QuantizerFlow &flow, CalibrationCache *cache)
    : m_model(std::move(model)), m_placement(placement), m_flow(flow), m_cache(cache),
      m_program(Program::compile(m_model)), m_instances(placement.observers.size())
{
    const SiteTable &table = m_model->m_planned->table;
    const std::vector<char> depends = dependsOnUserInput(m_model->graph());
    m_live.resize(table.sites.size());
    for (std::size_t i = 0; i < siteOfPlaced.size(); ++i) {
        Live &live = m_live[siteOfPlaced[i].get()];
        live.instance = static_cast<std::size_t>(placement.sites[i].instance);
        const QuantSite &site = table.site(siteOfPlaced[i]);
        live.source = site.source;
        live.result = site.result;
        live.constant = depends[site.source.get()] == 0;
        m_siteOfNode.emplace(site.nodes.front(), siteOfPlaced[i].get());
    }
    for (std::size_t s = 0; s < m_live.size(); ++s) {
        Instance &instance = m_instances[m_live[s].instance];
        instance.sites.push_back(s);
        instance.activations = instance.activations && !m_live[s].constant;
    }
    if (m_cache != nullptr)
        m_keys = keysWhileCalibrating();
}

Result<void> Calibration::makeObservers()
{
    std::vector<SiteRole> roles(m_placement.observers.size(), SiteRole::Output);
    for (const PlacedSite &site : m_placement.sites)
        if (site.role == SiteRole::Weight)
            roles[static_cast<std::size_t>(site.instance)] = SiteRole::Weight;
    for (std::size_t i = 0; i < m_instances.size(); ++i) {
        ObserverOptions options;
        options.trackHistogram = roles[i] != SiteRole::Weight;
        if (m_placement.observers[i].spec.palette)
            continue;
        auto observer = makeObserver(m_placement.observers[i].spec, roles[i], options);
        if (!observer)
            return fail(observer.error().code, nameOf(i), observer.error().text());
        m_instances[i].observer = std::move(*observer);
    }
    for (Live &live : m_live)
        live.observer = m_instances[live.instance].observer.get();
    return {};
}

bool Calibration::needsInputs() const
{
    return std::any_of(m_live.begin(), m_live.end(), [&](const Live &live) {
        const TensorSpec &spec = specOf(live);
        return !live.constant && spec.observer != ObserverKind::Dynamic && spec.observer != ObserverKind::Fixed;
    });
}

Result<void> Calibration::weights(const std::stop_token &stop)
{
    std::vector<ValueId> wanted;
    for (const Live &live : m_live)
        if (live.constant)
            wanted.push_back(live.result);
    return pass({}, wanted, Phase::Weights, stop, [](std::size_t, std::size_t) {});
}

// --- what is known already ------------------------------------------------------------------------------------------

ValueKey Calibration::weightKey(const Live &live, const ValueKey &source) const
{
    Digest digest("weight");
    digest.spec(specOf(live)).text(source);
    if (m_instances[live.instance].sites.size() > 1)
        digest.text(placementKey(m_placement));
    return digest.key();
}

// Observers pass on what they see; weights that are quantized meanwhile, and fused observers, do not.
std::vector<ValueKey> Calibration::keysWhileCalibrating() const
{
    return valueKeys(*m_model, m_model->m_planned->origin,
                     [&](NodeId node, const std::vector<ValueKey> &known) -> std::optional<ValueKey> {
                         const auto at = m_siteOfNode.find(node);
                         if (at == m_siteOfNode.end())
                             return std::nullopt;
                         const Live &live = m_live[at->second];
                         const ValueKey &source = known[live.source.get()];
                         const bool fused = specOf(live).rule == QparamRule::FusedQat;
                         if (live.constant)
                             return m_flow.quantizesWeightsMeanwhile || fused ? weightKey(live, source) : source;
                         if (!fused)
                             return source;
                         Digest digest("fused");
                         digest.spec(specOf(live)).text(source);
                         if (m_instances[live.instance].sites.size() > 1)
                             digest.text(placementKey(m_placement));
                         return digest.key();
                     });
}

std::vector<ValueKey> Calibration::observerKeys() const
{
    std::vector<ValueKey> keys(m_instances.size());
    for (std::size_t i = 0; i < m_instances.size(); ++i) {
        const Instance &instance = m_instances[i];
        if (!instance.observer || !instance.activations || instance.sites.empty())
            continue;
        Digest digest("observer");
        digest.spec(m_placement.observers[i].spec).number(static_cast<std::int64_t>(instance.observer->role()));
        for (const std::size_t site : instance.sites)
            digest.text(m_keys[m_live[site].source.get()]);
        keys[i] = digest.key();
    }
    return keys;
}

int Calibration::recall(const ValueKey &context)
{
    if (m_cache == nullptr)
        return 0;
    const std::vector<ValueKey> keys = observerKeys();
    int known = 0;
    bool fusedUnknown = false;
    for (std::size_t i = 0; i < m_instances.size(); ++i) {
        const KnownObserver *found = keys[i].empty() ? nullptr : m_cache->observer(context, keys[i]);
        if (found != nullptr) {
            m_instances[i].known = *found;
            ++known;
        } else if (m_instances[i].activations && m_placement.observers[i].spec.rule == QparamRule::FusedQat) {
            fusedUnknown = true;
        }
    }
    // A fused observer changes what those behind it see, by what it saw itself: then all have to look.
    if (fusedUnknown) {
        for (Instance &instance : m_instances)
            if (instance.activations)
                instance.known.reset();
        known = 0;
    }
    return known;
}

bool Calibration::incomplete() const
{
    return std::any_of(m_live.begin(), m_live.end(),
                       [&](const Live &live) { return !live.constant && !m_instances[live.instance].known; });
}

Result<void> Calibration::keep(const ValueKey &context)
{
    if (m_cache == nullptr || !m_failure.empty())
        return {};
    const std::vector<ValueKey> keys = observerKeys();
    for (std::size_t i = 0; i < m_instances.size(); ++i) {
        if (keys[i].empty() || m_instances[i].known)
            continue;
        auto outcome = outcomeOf(i);
        if (!outcome)
            return tl::unexpected<Error>(outcome.error());
        if (!outcome->qparams.dynamic)
            m_cache->put(context, keys[i], std::move(*outcome));
    }
    return {};
}

// --- running --------------------------------------------------------------------------------------------------------

Result<void> Calibration::run(const std::vector<std::vector<c10::IValue>> &batches, bool quantizeWeights,
                              const std::function<void(std::size_t, std::size_t, std::size_t)> &progress,
                              const std::stop_token &stop)
{
    m_weightsQuantized = quantizeWeights;
    std::vector<ValueId> wanted;
    for (const Live &live : m_live)
        if (!live.constant && !m_instances[live.instance].known)
            wanted.push_back(live.result);
    for (std::size_t b = 0; b < batches.size(); ++b) {
        auto done = pass(batches[b], wanted, Phase::Batches, stop,
                         [&](std::size_t node, std::size_t nodes) { progress(b, node, nodes); });
        if (!done)
            return done;
    }
    return {};
}

Result<void> Calibration::pass(const std::vector<c10::IValue> &inputs, const std::vector<ValueId> &wanted, Phase phase,
                               const std::stop_token &stop,
                               const std::function<void(std::size_t, std::size_t)> &progress)
{
    const std::vector<NodeId> nodes = m_program->schedule(wanted, [](ValueId) { return false; });
    Execution execution(m_program, nodes, wanted);
    std::size_t next = 0;
    for (const GraphInput &input : m_model->graph().inputs)
        if (input.kind == InputKind::User && input.value.valid() && next < inputs.size())
            execution.bind(input.value, inputs[next++]);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        if (stop.stop_requested())
            return fail(ErrorCode::Cancelled, {}, "cancelled; nothing has changed");
        const auto at = m_siteOfNode.find(nodes[n]);
        const c10::IValue source =
            at == m_siteOfNode.end() ? c10::IValue() : execution.value(m_live[at->second].source);
        if (!source.isTensor()) {
            if (!execution.run(nodes[n], stop) && phase == Phase::Batches && m_failure.empty())
                m_failure = m_model->graph().node(nodes[n]).name + ": " + execution.fault(nodes[n]);
        } else {
            auto result = site(at->second, source.toTensor(), phase, stop);
            if (!result)
                return fail(result.error().code, m_model->m_planned->table.sites[at->second].id, result.error().text());
            execution.provide(nodes[n], *result);
            execution.release(m_live[at->second].result);
        }
        progress(n + 1, nodes.size());
    }
    return {};
}

Result<at::Tensor> Calibration::site(std::size_t index, const at::Tensor &x, Phase phase, const std::stop_token &stop)
{
    const Live &live = m_live[index];
    if (!live.constant)
        return m_instances[live.instance].known ? Result<at::Tensor>(x) : live.observer->forward(x);
    if (phase == Phase::Weights)
        return weight(index, x, stop);
    return m_weightsQuantized || specOf(live).rule == QparamRule::FusedQat ? live.seen : x;
}

Result<at::Tensor> Calibration::weight(std::size_t index, const at::Tensor &x, const std::stop_token &stop)
{
    Live &live = m_live[index];
    // Alone under its observer, and deployed as it is simulated: only then do spec and values say everything.
    const bool ownsObserver = m_instances[live.instance].sites.size() == 1;
    const bool keepable = m_cache != nullptr && ownsObserver && specOf(live).rule != QparamRule::FusedQat;
    const ValueKey key = keepable ? weightKey(live, m_keys[live.source.get()]) : ValueKey();
    std::optional<KnownWeight> known = keepable ? m_cache->weight(key) : std::nullopt;
    if (!known) {
        auto made = quantizeWeight(live, x, stop);
        if (!made)
            return tl::unexpected<Error>(made.error());
        known = std::move(*made);
        if (keepable)
            m_cache->putWeight(key, *known);
    } else if (known->qparams) {
        m_instances[live.instance].known = KnownObserver{*known->qparams, known->range};
    }
    live.quantized = known->quantized;
    live.error = known->error;
    for (DefectNote &defect : known->defects) {
        defect.text = nameOf(live.instance) + ": " + defect.text;
        m_defects.push_back(std::move(defect));
    }
    if (!live.seen.defined())
        live.seen = live.quantized;
    return live.seen;
}

Result<KnownWeight> Calibration::quantizeWeight(Live &live, const at::Tensor &x, const std::stop_token &stop)
{
    const TensorSpec &spec = specOf(live);
    KnownWeight made;
    if (spec.palette) {
        auto palette = palettize(x, *spec.palette, stop);
        if (!palette)
            return tl::unexpected<Error>(palette.error());
        made.quantized = reconstruct(*palette, *spec.palette);
        made.defects = paletteDefects(*palette);
        made.error = errorOf(x, made.quantized, spec.palette->axis);
        return made;
    }
    auto seen = live.observer->forward(x);
    if (!seen)
        return tl::unexpected<Error>(seen.error());
    auto outcome = outcomeOf(live.instance);
    if (!outcome)
        return tl::unexpected<Error>(outcome.error());
    auto quantized = fakeQuantize(x, outcome->qparams, spec, SiteRole::Weight);
    if (!quantized)
        return tl::unexpected<Error>(quantized.error());
    made.quantized = *quantized;
    made.qparams = std::move(outcome->qparams);
    made.range = outcome->range;
    const auto axis = spec.axis.value_or(0);
    made.error = errorOf(x, *quantized, axis < 0 ? axis + static_cast<int>(x.dim()) : axis);
    // A fused observer simulates with other numbers than it is deployed with.
    if (spec.rule == QparamRule::FusedQat)
        live.seen = *seen;
    return made;
}

// --- afterwards -----------------------------------------------------------------------------------------------------

Result<void> Calibration::finish(PlannedSites &planned, QuantizedModel &result, bool observed)
{
    std::vector<std::shared_ptr<const Qparams>> qparams(m_instances.size());
    for (std::size_t i = 0; i < m_instances.size(); ++i) {
        const TensorSpec &spec = m_placement.observers[i].spec;
        result.observed.emplace_back();
        if (spec.palette)
            continue;
        auto outcome = m_instances[i].known ? Result<KnownObserver>(*m_instances[i].known) : outcomeOf(i);
        if (!outcome)
            return fail(outcome.error().code, nameOf(i), outcome.error().text());
        for (const std::string &note : observed ? outcome->qparams.notes : std::vector<std::string>{})
            result.warnings.push_back(nameOf(i) + ": " + note);
        for (DefectNote &defect : qparamDefects(outcome->qparams, spec)) {
            defect.text = nameOf(i) + ": " + defect.text;
            result.placement.defects.push_back(std::move(defect));
        }
        qparams[i] = std::make_shared<const Qparams>(std::move(outcome->qparams));
        result.observed.back() = outcome->range;
    }
    planned.kernels.resize(m_live.size());
    planned.keys.resize(m_live.size());
    for (std::size_t s = 0; s < m_live.size(); ++s) {
        Live &live = m_live[s];
        QuantSite &site = planned.table.sites[s];
        const auto &numbers = qparams[live.instance];
        if (numbers && !numbers->dynamic) {
            site.scale = numbers->scales();
            site.zeroPoint = numbers->zeroPoints();
            if (numbers->quantMax > numbers->quantMin) {
                site.spec.quantMin = numbers->quantMin;
                site.spec.quantMax = numbers->quantMax;
            }
        }
        planned.kernels[s] = kernelOf(live, specOf(live), numbers, site.role);
        Digest does("site");
        does.spec(specOf(live)).number(static_cast<std::int64_t>(site.role));
        if (numbers)
            does.qparams(*numbers);
        planned.keys[s] = does.key();
        if (site.role == SiteRole::Weight && live.error) {
            live.error->site = site.id;
            result.weightErrors.push_back(std::move(*live.error));
        }
    }
    result.placement.defects.insert(result.placement.defects.end(), m_defects.begin(), m_defects.end());
    if (!m_failure.empty())
        result.warnings.push_back("calibration: " + m_failure + "; observers behind it have seen nothing");
    return {};
}

std::string Calibration::nameOf(std::size_t instance) const
{
    for (const PlacedSite &site : m_placement.sites)
        if (static_cast<std::size_t>(site.instance) == instance)
            return site.id;
    return m_placement.observers[instance].name;
}

Result<KnownObserver> Calibration::outcomeOf(std::size_t instance) const
{
    const Observer &observer = *m_instances[instance].observer;
    auto qparams = observer.qparams();
    if (!qparams)
        return tl::unexpected<Error>(qparams.error());
    const ObserverState state = observer.state();
    KnownObserver outcome;
    ObserverRange &range = outcome.range;
    range.batches = state.batches;
    range.elements = state.elements;
    range.lowest = state.lowest;
    range.highest = state.highest;
    if (!qparams->dynamic) {
        const RangeFit fit = rangeFit(state, *qparams, m_placement.observers[instance].spec);
        range.low = fit.low;
        range.high = fit.high;
        range.clipped = fit.clipped;
        range.unused = fit.unused;
    }
    outcome.qparams = std::move(*qparams);
    return outcome;
}

std::function<at::Tensor(const at::Tensor &)> Calibration::kernelOf(const Live &live, const TensorSpec &spec,
                                                                    const std::shared_ptr<const Qparams> &qparams,
                                                                    SiteRole role)
{
    if (live.constant)
        return [quantized = live.quantized](const at::Tensor &) { return quantized; };
    SiteKernel fast; // bit-equal, in one pass; undefined where it cannot promise that
    if (!qparams->dynamic && isInteger(spec.type) && spec.granularity == Granularity::PerTensor && !spec.minValue)
        fast = spec.arithmetic == Arithmetic::Division
                   ? fusedDecomposedFakeQuant(qparams->scale, qparams->zeroPoint, qparams->quantMin, qparams->quantMax)
                   : fusedQdqPerTensor(qparams->scales().front(), qparams->zeroPoints().front(), qparams->quantMin,
                                       qparams->quantMax, storageOf(spec.type));
    return [fast, qparams, spec, role](const at::Tensor &x) {
        if (fast)
            if (at::Tensor y = fast(x); y.defined())
                return y;
        return valueOrThrow(fakeQuantize(x, *qparams, spec, role));
    };
}

} // namespace dblame

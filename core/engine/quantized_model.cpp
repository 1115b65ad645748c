// SPDX-License-Identifier: GPL-3.0-or-later
//
// Calibration over the graph with its sites, and numbers into the sites. Calibration runs the candidate's own graph,
// each site observing as its node comes up; so shared observers see their sites in execution order, as in the peers.
#include "core/engine/quantized_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include "core/engine/comparison.h"
#include "core/engine/observer.h"
#include "core/engine/palette.h"
#include "core/engine/program.h"
#include "core/engine/quantize_tensor.h"
#include "core/engine/quantized_form.h"
#include "core/engine/site_kernels.h"
#include "core/graph_query.h"
#include "core/site_ownership.h"

namespace dblame
{

namespace
{

using Kernel = std::function<at::Tensor(const at::Tensor &)>;

constexpr int kNormEpsDefect = 2; // docs/quantization.md

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

// --- calibration ----------------------------------------------------------------------------------------------------

// One site while the model is calibrated.
struct Live {
    Observer *observer = nullptr;
    std::size_t instance = 0;
    ValueId source, result;
    bool constant = false; // on weights alone: observed once
    at::Tensor seen;       // constant: what readers see during calibration
    at::Tensor quantized;  // constant: what readers see afterwards
    std::optional<WeightError> error;
};

class Calibration
{
public:
    Calibration(std::shared_ptr<LoadedModel> model, const Placement &placement, const std::vector<SiteId> &siteOfPlaced,
                const QuantizerFlow &flow)
        : m_model(std::move(model)), m_placement(placement), m_flow(flow), m_program(Program::compile(m_model))
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
    }

    // Palettes need none; they keep the place of one.
    Result<void> makeObservers()
    {
        std::vector<SiteRole> roles(m_placement.observers.size(), SiteRole::Output);
        for (const PlacedSite &site : m_placement.sites)
            if (site.role == SiteRole::Weight)
                roles[static_cast<std::size_t>(site.instance)] = SiteRole::Weight;
        for (std::size_t i = 0; i < m_placement.observers.size(); ++i) {
            ObserverOptions options;
            options.trackHistogram = roles[i] != SiteRole::Weight;
            if (m_placement.observers[i].spec.palette) {
                m_observers.push_back(nullptr);
                continue;
            }
            auto observer = makeObserver(m_placement.observers[i].spec, roles[i], options);
            if (!observer)
                return fail(observer.error().code, nameOf(i), observer.error().text());
            m_observers.push_back(std::move(*observer));
        }
        for (Live &live : m_live)
            live.observer = m_observers[live.instance].get();
        return {};
    }

    // An activation has to be seen before its numbers are known.
    [[nodiscard]] bool needsInputs() const
    {
        return std::any_of(m_live.begin(), m_live.end(), [&](const Live &live) {
            const TensorSpec &spec = specOf(live);
            return !live.constant && spec.observer != ObserverKind::Dynamic && spec.observer != ObserverKind::Fixed;
        });
    }

    // Weights: observed, quantized, once and for all.
    Result<void> weights(const std::stop_token &stop)
    {
        std::vector<ValueId> wanted;
        for (const Live &live : m_live)
            if (live.constant)
                wanted.push_back(live.result);
        return pass({}, wanted, Phase::Weights, stop, [](std::size_t, std::size_t) {});
    }

    Result<void> run(const std::vector<std::vector<c10::IValue>> &batches, bool quantizeWeights,
                     const std::function<void(std::size_t, std::size_t, std::size_t)> &progress,
                     const std::stop_token &stop)
    {
        m_weightsQuantized = quantizeWeights;
        std::vector<ValueId> wanted;
        for (const Live &live : m_live)
            if (!live.constant)
                wanted.push_back(live.result);
        for (std::size_t b = 0; b < batches.size(); ++b) {
            auto done = pass(batches[b], wanted, Phase::Batches, stop,
                             [&](std::size_t node, std::size_t nodes) { progress(b, node, nodes); });
            if (!done)
                return done;
        }
        return {};
    }

    // What each site does from now on, and its numbers for the table.
    // `observed`: activations were looked at, so an observer that saw nothing is worth a word.
    Result<void> finish(PlannedSites &planned, QuantizedModel &result, bool observed)
    {
        std::vector<std::shared_ptr<const Qparams>> qparams(m_observers.size());
        for (std::size_t i = 0; i < m_observers.size(); ++i) {
            const TensorSpec &spec = m_placement.observers[i].spec;
            result.observed.emplace_back();
            if (spec.palette)
                continue;
            auto chosen = m_observers[i]->qparams();
            if (!chosen)
                return fail(chosen.error().code, nameOf(i), chosen.error().text());
            for (const std::string &note : observed ? chosen->notes : std::vector<std::string>{})
                result.warnings.push_back(nameOf(i) + ": " + note);
            for (DefectNote &defect : qparamDefects(*chosen, spec)) {
                defect.text = nameOf(i) + ": " + defect.text;
                result.placement.defects.push_back(std::move(defect));
            }
            qparams[i] = std::make_shared<const Qparams>(std::move(*chosen));
            result.observed.back() = rangeOf(i, *qparams[i]);
        }
        planned.kernels.resize(m_live.size());
        for (std::size_t s = 0; s < m_live.size(); ++s) {
            Live &live = m_live[s];
            QuantSite &site = planned.table.sites[s];
            if (const auto &numbers = qparams[live.instance]; numbers && !numbers->dynamic) {
                site.scale = numbers->scales();
                site.zeroPoint = numbers->zeroPoints();
                if (numbers->quantMax > numbers->quantMin) {
                    site.spec.quantMin = numbers->quantMin;
                    site.spec.quantMax = numbers->quantMax;
                }
            }
            planned.kernels[s] = kernelOf(live, qparams[live.instance], site.role);
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

private:
    enum class Phase { Weights, Batches };

    [[nodiscard]] const TensorSpec &specOf(const Live &live) const { return m_placement.observers[live.instance].spec; }

    [[nodiscard]] std::string nameOf(std::size_t instance) const
    {
        for (const PlacedSite &site : m_placement.sites)
            if (static_cast<std::size_t>(site.instance) == instance)
                return site.id;
        return m_placement.observers[instance].name;
    }

    [[nodiscard]] ObserverRange rangeOf(std::size_t instance, const Qparams &qparams) const
    {
        const ObserverState state = m_observers[instance]->state();
        ObserverRange range;
        range.batches = state.batches;
        range.elements = state.elements;
        range.lowest = state.lowest;
        range.highest = state.highest;
        if (qparams.dynamic)
            return range;
        const RangeFit fit = rangeFit(state, qparams, m_placement.observers[instance].spec);
        range.low = fit.low;
        range.high = fit.high;
        range.clipped = fit.clipped;
        range.unused = fit.unused;
        return range;
    }

    template <class F>
    Result<void> pass(const std::vector<c10::IValue> &inputs, const std::vector<ValueId> &wanted, Phase phase,
                      const std::stop_token &stop, const F &progress)
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
                if (!execution.run(nodes[n], stop) && phase == Phase::Batches)
                    noteFailure(nodes[n], execution);
            } else {
                auto result = site(m_live[at->second], source.toTensor(), phase, stop);
                if (!result)
                    return fail(result.error().code, m_model->m_planned->table.sites[at->second].id,
                                result.error().text());
                execution.provide(nodes[n], *result);
                execution.release(m_live[at->second].result);
            }
            progress(n + 1, nodes.size());
        }
        return {};
    }

    // What the readers of a site see while the model is calibrated.
    Result<at::Tensor> site(Live &live, const at::Tensor &x, Phase phase, const std::stop_token &stop)
    {
        if (!live.constant)
            return live.observer->forward(x);
        if (phase == Phase::Weights)
            return weight(live, x, stop);
        return m_weightsQuantized || specOf(live).rule == QparamRule::FusedQat ? live.seen : x;
    }

    Result<at::Tensor> weight(Live &live, const at::Tensor &x, const std::stop_token &stop)
    {
        const TensorSpec &spec = specOf(live);
        if (spec.palette) {
            auto palette = palettize(x, *spec.palette, stop);
            if (!palette)
                return tl::unexpected<Error>(palette.error());
            live.quantized = live.seen = reconstruct(*palette, *spec.palette);
            for (DefectNote &defect : paletteDefects(*palette)) {
                defect.text = nameOf(live.instance) + ": " + defect.text;
                m_defects.push_back(std::move(defect));
            }
            live.error = errorOf(x, live.quantized, spec.palette->axis);
            return live.seen;
        }
        auto seen = live.observer->forward(x);
        if (!seen)
            return seen;
        const auto qparams = live.observer->qparams();
        if (!qparams)
            return tl::unexpected<Error>(qparams.error());
        auto quantized = fakeQuantize(x, *qparams, spec, SiteRole::Weight);
        if (!quantized)
            return quantized;
        live.quantized = *quantized;
        const auto axis = spec.axis.value_or(0);
        live.error = errorOf(x, *quantized, axis < 0 ? axis + static_cast<int>(x.dim()) : axis);
        // A fused observer simulates with other numbers than it is deployed with.
        live.seen = spec.rule == QparamRule::FusedQat ? *seen : *quantized;
        return live.seen;
    }

    [[nodiscard]] static Kernel kernelOf(const Live &live, const std::shared_ptr<const Qparams> &qparams, SiteRole role)
    {
        if (live.constant)
            return [quantized = live.quantized](const at::Tensor &) { return quantized; };
        const TensorSpec &spec = live.observer->spec();
        SiteKernel fast; // bit-equal, in one pass; undefined where it cannot promise that
        if (!qparams->dynamic && isInteger(spec.type) && spec.granularity == Granularity::PerTensor && !spec.minValue)
            fast =
                spec.arithmetic == Arithmetic::Division
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

    void noteFailure(NodeId node, const Execution &execution)
    {
        if (!m_failure.empty())
            return;
        m_failure = m_model->graph().node(node).name + ": " + execution.fault(node);
    }

    std::shared_ptr<LoadedModel> m_model;
    const Placement &m_placement;
    const QuantizerFlow &m_flow;
    std::shared_ptr<const Program> m_program;
    std::vector<std::unique_ptr<Observer>> m_observers; // per placement observer
    std::vector<Live> m_live;                           // per planned site
    std::unordered_map<NodeId, std::size_t> m_siteOfNode;
    bool m_weightsQuantized = false;
    std::string m_failure;
    std::vector<DefectNote> m_defects;
};

} // namespace

Result<QuantizedModel> placeAndCalibrate(const FloatForm &form, Placement placement, const QuantizerFlow &flow,
                                         const LoadedInputs *calibration, const QuantizeOptions &options,
                                         const Progress &progress, const std::stop_token &stop)
{
    const c10::InferenceMode guard;
    const int threads = options.threads > 0 ? options.threads : defaultThreadCount();
    if (at::get_num_threads() != threads)
        at::set_num_threads(threads);

    QuantizedModel result;
    result.placement = std::move(placement);
    RewriteNotes notes = form.notes;
    const std::shared_ptr<LoadedModel> model = insertSites(form, result.placement, flow, notes, result.siteOfPlaced);
    model->m_info.format = "float model with the recipe " + flow.name;
    std::vector<DefectNote> placed = std::exchange(result.placement.defects, std::move(notes.defects));
    if (flow.rewriteNorms) // said of each norm by the rewrite itself
        std::erase_if(placed, [](const DefectNote &note) { return note.defect == kNormEpsDefect; });
    result.placement.defects.insert(result.placement.defects.end(), placed.begin(), placed.end());
    result.warnings = std::move(notes.warnings);

    Calibration calibrated(model, result.placement, result.siteOfPlaced, flow);
    if (auto made = calibrated.makeObservers(); !made)
        return tl::unexpected<Error>(made.error());
    if (auto done = calibrated.weights(stop); !done)
        return tl::unexpected<Error>(done.error());
    if (calibrated.needsInputs() && !options.weightsOnly) {
        std::vector<std::vector<c10::IValue>> example, batches;
        if (calibration) {
            batches = calibration->m_batches;
            if (options.limitBatches > 0 && static_cast<std::size_t>(options.limitBatches) < batches.size())
                batches.resize(static_cast<std::size_t>(options.limitBatches));
        }
        if (flow.observesExample && !form.model->m_sampleInputs.empty()) {
            example.push_back(form.model->m_sampleInputs);
        } else if (flow.observesExample && !batches.empty()) {
            example.push_back(std::move(batches.front()));
            batches.erase(batches.begin());
        }
        if (example.empty() && batches.empty())
            return fail(ErrorCode::Usage, model->info().path,
                        "the recipe " + flow.name +
                            " observes activations, but there are no calibration inputs; give some with --calibration");
        const std::size_t all = example.size() + batches.size();
        std::size_t before = 0;
        const auto report = [&](std::size_t batch, std::size_t node, std::size_t nodes) {
            if (progress)
                progress((before + batch) * nodes + node, all * nodes, "calibrating");
        };
        if (auto done = calibrated.run(example, false, report, stop); !done)
            return tl::unexpected<Error>(done.error());
        before = example.size();
        if (auto done = calibrated.run(batches, flow.quantizesWeightsMeanwhile, report, stop); !done)
            return tl::unexpected<Error>(done.error());
        result.calibrationBatches = static_cast<std::int64_t>(all);
    }
    auto planned = std::make_shared<PlannedSites>(*model->m_planned);
    if (auto done = calibrated.finish(*planned, result, !options.weightsOnly); !done)
        return tl::unexpected<Error>(done.error());
    assignGroups(*model, planned->table);
    model->m_planned = std::move(planned);
    result.model = model;
    result.annotated = form.model;
    return result;
}

} // namespace dblame

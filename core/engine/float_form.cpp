// SPDX-License-Identifier: GPL-3.0-or-later
//
// The float model as a quantizer annotates it: the rewritten graph with the tensors it needs.
#include <ATen/ops/add.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>

#include "core/engine/quantized_form.h"

namespace dblame
{

namespace
{

class Tensors
{
public:
    explicit Tensors(const LoadedModel &model) : m_model(model) {}

    // float32, in the order of operations of torchao's fold, which decides the bits.
    [[nodiscard]] at::Tensor derive(const DerivedTensor &tensor) const
    {
        if (tensor.kind == DerivedTensor::Kind::Number)
            return at::full({}, tensor.number, at::kFloat);
        const at::Tensor variance = stored(tensor.variance);
        const at::Tensor mean = stored(tensor.mean);
        const at::Tensor inverse = at::rsqrt(at::add(variance, tensor.eps));
        const at::Tensor gamma = tensor.gamma.valid() ? stored(tensor.gamma) : at::ones_like(mean);
        if (tensor.kind == DerivedTensor::Kind::FoldedWeight) {
            const at::Tensor weight = stored(tensor.source);
            std::vector<std::int64_t> along(static_cast<std::size_t>(weight.dim()), 1);
            along[static_cast<std::size_t>(tensor.axis)] = -1;
            return at::mul(weight, at::mul(gamma, inverse).reshape(along)).to(weight.scalar_type());
        }
        const at::Tensor beta = tensor.beta.valid() ? stored(tensor.beta) : at::zeros_like(mean);
        const at::Tensor bias = tensor.source.valid() ? stored(tensor.source) : at::zeros_like(mean);
        return at::add(at::mul(at::mul(at::sub(bias, mean), inverse), gamma), beta).to(bias.scalar_type());
    }

private:
    [[nodiscard]] at::Tensor stored(ValueId value) const { return m_model.tensor(value); }

    const LoadedModel &m_model;
};

} // namespace

std::shared_ptr<LoadedModel> rebuilt(const LoadedModel &original, GraphEdit::Finished &finished,
                                     const std::vector<DerivedTensor> &derived)
{
    auto model = std::make_shared<LoadedModel>();
    model->m_graph = std::move(finished.graph);
    model->m_info = original.m_info;
    model->m_sampleInputs = original.m_sampleInputs;
    model->m_inputTree = original.m_inputTree;
    model->m_symbolRanges = original.m_symbolRanges;
    model->m_file = original.m_file;
    model->m_tensors.resize(model->m_graph.values.size());
    model->m_mapped.assign(model->m_graph.values.size(), false);
    model->m_nodeFaults.resize(model->m_graph.nodes.size());
    for (std::size_t v = 0; v < original.m_tensors.size(); ++v)
        if (const ValueId now = finished.value[v]; now.valid()) {
            model->m_tensors[now.get()] = original.m_tensors[v];
            model->m_mapped[now.get()] = v < original.m_mapped.size() && original.m_mapped[v];
        }
    for (std::size_t n = 0; n < original.m_nodeFaults.size(); ++n)
        if (const NodeId now = finished.node[n]; now.valid())
            model->m_nodeFaults[now.get()] = original.m_nodeFaults[n];
    const Tensors tensors(original);
    for (const DerivedTensor &tensor : derived) {
        const ValueId now = finished.value[tensor.value.get()];
        model->m_tensors[now.get()] = tensors.derive(tensor);
        model->m_mapped[now.get()] = false;
    }
    return model;
}

FloatForm rewriteFloat(const std::shared_ptr<const LoadedModel> &model, const QuantizerFlow &flow)
{
    const c10::InferenceMode guard;
    FloatForm form;
    if (!flow.foldNorms && !flow.liftScalars) {
        form.model = model;
        return form;
    }
    GraphEdit edit(model->graph());
    std::vector<DerivedTensor> derived;
    if (flow.foldNorms)
        derived = foldNorms(edit, flow.corrected, form.notes);
    if (flow.liftScalars) {
        const auto lifted = liftScalars(edit);
        derived.insert(derived.end(), lifted.begin(), lifted.end());
    }
    GraphEdit::Finished finished = std::move(edit).finish();
    form.model = rebuilt(*model, finished, derived);
    return form;
}

} // namespace dblame

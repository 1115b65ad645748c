// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/site_kernels.h"

#include <cmath>
#include <limits>

#include <ATen/ops/full.h>

#include "core/engine/metric_kernels.h"
#include "core/engine/site_arithmetic.h"

namespace dblame
{

namespace
{

using kernels::QuantParams;

// Integers up to here are exact in float32.
constexpr std::int64_t kExact = std::int64_t{1} << 24U;

// Below this the operators one by one are faster than a call per run.
constexpr std::int64_t kShortestRun = 32;

bool exactInFloat(std::int64_t v)
{
    return v > -kExact && v < kExact;
}

// --- quantized_decomposed ------------------------------------------------------------------------

at::ScalarType integerType(DType storage)
{
    switch (storage) {
    case DType::UInt8:
        return at::kByte;
    case DType::Int8:
        return at::kChar;
    case DType::UInt16:
        return at::kUInt16;
    case DType::Int16:
        return at::kShort;
    case DType::Int32:
        return at::kInt;
    default:
        return at::ScalarType::Undefined;
    }
}

// The same operators one by one, for layouts that only they know how to carry on.
at::Tensor compositeQdq(const at::Tensor &x, double scale, const QuantParams &params)
{
    at::Tensor q = x.mul(1.0 / scale).round_().add_(params.zeroPoint).clamp_(params.quantMin, params.quantMax);
    q = q.nan_to_num(params.nanInteger);
    return q.sub_(params.zeroPoint).mul_(scale);
}

} // namespace

SiteKernel fusedQdqPerTensor(double scale, std::int64_t zeroPoint, std::int64_t quantMin, std::int64_t quantMax,
                             DType storage)
{
    if (!exactInFloat(zeroPoint) || !exactInFloat(quantMin) || !exactInFloat(quantMax) || scale == 0)
        return {};
    const at::ScalarType type = integerType(storage);
    if (type == at::ScalarType::Undefined)
        return {};
    QuantParams params;
    params.scale = static_cast<float>(scale);
    params.inverse = static_cast<float>(1.0 / scale);
    params.zeroPoint = static_cast<float>(zeroPoint);
    params.quantMin = static_cast<float>(quantMin);
    params.quantMax = static_cast<float>(quantMax);
    // Asked of the conversion itself: it is the platform's.
    params.nanInteger = at::full({64}, std::numeric_limits<float>::quiet_NaN(), at::kFloat)
                            .to(type)
                            .to(at::kFloat)
                            .const_data_ptr<float>()[0];
    return [scale, params](const at::Tensor &x) -> at::Tensor {
        if (x.scalar_type() != at::kFloat || !x.is_cpu())
            return {};
        const auto layout = plainLayout(x);
        return layout ? mapAll(x, *layout, kernels::kernels().quantDequant, params) : compositeQdq(x, scale, params);
    };
}

// --- coreai-opt -----------------------------------------------------------------------------------

namespace
{

// The one axis of x that the scale varies along; -1: none or several.
std::int64_t broadcastAxis(const at::Tensor &x, const at::Tensor &scale)
{
    std::int64_t axis = -1;
    const std::int64_t offset = x.dim() - scale.dim();
    for (std::int64_t d = 0; d < scale.dim(); ++d) {
        if (scale.size(d) == 1)
            continue;
        if (axis >= 0 || offset < 0 || x.size(d + offset) != scale.size(d))
            return -1;
        axis = d + offset;
    }
    return axis;
}

} // namespace

SiteKernel fusedDecomposedFakeQuant(const at::Tensor &scaleView, const at::Tensor &zeroPointView, std::int64_t quantMin,
                                    std::int64_t quantMax)
{
    // A wider or narrower type would change the type that the chain computes in.
    const auto z = zeroPointView.defined() ? zeroPointView.scalar_type() : at::ScalarType::Undefined;
    if (!scaleView.defined() || scaleView.scalar_type() != at::kFloat ||
        !(z == at::kFloat || at::isIntegralType(z, /*includeBool=*/false)) ||
        scaleView.sizes() != zeroPointView.sizes() || !exactInFloat(quantMin) || !exactInFloat(quantMax) ||
        scaleView.numel() == 0)
        return {};
    std::vector<QuantParams> params = paramsOf(scaleView, zeroPointView, quantMin, quantMax);
    for (const QuantParams &p : params)
        if (!(std::abs(p.zeroPoint) < static_cast<float>(kExact)))
            return {};
    return [scale = scaleView, zeroPoint = zeroPointView, params = std::move(params), quantMin,
            quantMax](const at::Tensor &x) -> at::Tensor {
        if (x.scalar_type() != at::kFloat || !x.is_cpu())
            return {};
        const auto layout = plainLayout(x);
        const QuantLoop loop = kernels::kernels().fakeQuant;
        if (layout && params.size() == 1 && scale.dim() <= x.dim())
            return mapAll(x, *layout, loop, params.front());
        const std::int64_t axis = layout && params.size() > 1 ? broadcastAxis(x, scale) : -1;
        if (axis < 0 || x.numel() == 0 || x.stride(axis) < kShortestRun)
            return compositeFakeQuant(x, scale, zeroPoint, quantMin, quantMax);
        return mapChannels(x, *layout, x.stride(axis), loop, params);
    };
}

} // namespace dblame

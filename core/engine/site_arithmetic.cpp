// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/site_arithmetic.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

namespace dblame
{

namespace
{

// Elements worth a thread.
constexpr std::int64_t kGrain = std::int64_t{1} << 16U;

} // namespace

using kernels::QuantParams;

std::optional<at::MemoryFormat> plainLayout(const at::Tensor &x)
{
    if (x.is_contiguous())
        return at::MemoryFormat::Contiguous;
    if (x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast))
        return at::MemoryFormat::ChannelsLast;
    if (x.dim() == 5 && x.is_contiguous(at::MemoryFormat::ChannelsLast3d))
        return at::MemoryFormat::ChannelsLast3d;
    return std::nullopt;
}

at::Tensor mapAll(const at::Tensor &x, at::MemoryFormat layout, QuantLoop loop, const QuantParams &params)
{
    at::Tensor y = at::empty(x.sizes(), x.options().memory_format(layout));
    const float *from = x.const_data_ptr<float>();
    float *to = y.mutable_data_ptr<float>();
    at::parallel_for(0, x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        loop(from + begin, to + begin, end - begin, params);
    });
    return y;
}

at::Tensor mapChannels(const at::Tensor &x, at::MemoryFormat layout, std::int64_t inner, QuantLoop loop,
                       const std::vector<QuantParams> &params)
{
    at::Tensor y = at::empty(x.sizes(), x.options().memory_format(layout));
    const float *from = x.const_data_ptr<float>();
    float *to = y.mutable_data_ptr<float>();
    const auto channels = static_cast<std::int64_t>(params.size());
    const std::int64_t runs = x.numel() / inner;
    at::parallel_for(0, runs, std::max<std::int64_t>(1, kGrain / inner), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t run = begin; run < end; ++run)
            loop(from + run * inner, to + run * inner, inner, params[static_cast<std::size_t>(run % channels)]);
    });
    return y;
}

at::Tensor compositeFakeQuant(const at::Tensor &x, const at::Tensor &scale, const at::Tensor &zeroPoint,
                              std::int64_t quantMin, std::int64_t quantMax)
{
    return x.sub(0).div(scale).round_().add_(zeroPoint).clamp_(quantMin, quantMax).sub(zeroPoint).mul(scale).add(0);
}

std::vector<QuantParams> paramsOf(const at::Tensor &scale, const at::Tensor &zeroPoint, std::int64_t quantMin,
                                  std::int64_t quantMax)
{
    const at::Tensor s = scale.contiguous();
    const at::Tensor z = zeroPoint.to(at::kFloat).contiguous();
    std::vector<QuantParams> params(static_cast<std::size_t>(s.numel()));
    for (std::size_t i = 0; i < params.size(); ++i) {
        params[i].scale = s.const_data_ptr<float>()[i];
        params[i].inverse = 1.0F / params[i].scale;
        params[i].zeroPoint = z.const_data_ptr<float>()[i];
        params[i].quantMin = static_cast<float>(quantMin);
        params[i].quantMax = static_cast<float>(quantMax);
    }
    return params;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/quantize_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <ATen/ops/add.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/round.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include "core/engine/site_arithmetic.h"

namespace dblame
{

namespace
{

constexpr std::array<float, 8> kFloat4{0, 0.5F, 1, 1.5F, 2, 3, 4, 6};

// --- float4 -------------------------------------------------------------------------------------

// Code of the nearest value; a tie goes to the even code.
std::uint8_t float4Code(float x)
{
    const float m = std::abs(x);
    const int code = m <= 0.25F   ? 0
                     : m < 0.75F  ? 1
                     : m <= 1.25F ? 2
                     : m < 1.75F  ? 3
                     : m <= 2.5F  ? 4
                     : m < 3.5F   ? 5
                     : m <= 5.0F  ? 6
                                  : 7;
    return static_cast<std::uint8_t>(code | (std::signbit(x) ? 8 : 0));
}

float float4Value(std::uint8_t code)
{
    const float m = kFloat4[code & 7U];
    return (code & 8U) != 0 ? -m : m;
}

template <class To, class From, class Function>
at::Tensor mapped(const at::Tensor &x, at::ScalarType type, Function function)
{
    const at::Tensor from = x.contiguous();
    at::Tensor to = at::empty(from.sizes(), type);
    const From *in = from.const_data_ptr<From>();
    To *out = to.mutable_data_ptr<To>();
    for (std::int64_t i = 0; i < from.numel(); ++i)
        out[i] = function(in[i]);
    return to;
}

// --- grids --------------------------------------------------------------------------------------

struct Site {
    const Qparams &qparams;
    const TensorSpec &spec;
    Units units;
    at::Tensor scale, zeroPoint, minValue; // shaped to broadcast against inUnits(x)

    [[nodiscard]] bool tokens() const
    {
        return spec.granularity == Granularity::PerToken && spec.arithmetic == Arithmetic::Reciprocal;
    }
};

Result<Site> siteOf(const Qparams &qparams, const TensorSpec &spec, SiteRole role, at::IntArrayRef shape)
{
    auto units = unitsOf(spec, role, shape);
    if (!units)
        return tl::unexpected(std::move(units.error()));
    const std::int64_t given = qparams.scale.numel();
    std::int64_t wanted = 1;
    for (const std::int64_t count : units->counts)
        wanted *= count;
    if (given != 1 && given != wanted)
        return fail(ErrorCode::Usage, "",
                    std::to_string(given) + " scales for a tensor of " + std::to_string(wanted) + " units (" +
                        granularityName(spec.granularity) +
                        "): the tensor changed its shape since the scales were "
                        "chosen");
    Site site{qparams, spec, std::move(*units), {}, {}, {}};
    site.scale = besideUnits(qparams.scale, site.units);
    if (isInteger(spec.type))
        site.zeroPoint = besideUnits(qparams.zeroPoint, site.units);
    if (isInteger(spec.type) && spec.minValue)
        site.minValue = besideUnits(qparams.minValue, site.units);
    return site;
}

// The grid's integers as floats, in the shape of inUnits(x). x: float32.
at::Tensor integersOf(const at::Tensor &x, const Site &site)
{
    const auto low = static_cast<double>(site.qparams.quantMin);
    const auto high = static_cast<double>(site.qparams.quantMax);
    const at::Tensor view = inUnits(x, site.units);
    if (site.minValue.defined())
        return at::clamp(at::add(at::round(at::div(at::sub(view, site.minValue), site.scale)), low), low, high);
    if (site.spec.arithmetic == Arithmetic::Division)
        return at::clamp(at::add(at::round(at::div(view, site.scale)), site.zeroPoint), low, high);
    const at::Tensor scaled = at::mul(view, at::reciprocal(site.scale));
    return site.tokens() ? at::clamp(at::round(at::add(scaled, site.zeroPoint)), low, high)
                         : at::clamp(at::add(at::round(scaled), site.zeroPoint), low, high);
}

// x / s within the type's values, in the shape of inUnits(x).
at::Tensor scaledFloats(const at::Tensor &x, const Site &site)
{
    const double largest = largestValue(site.spec.type);
    return at::clamp(at::div(inUnits(x, site.units), site.scale), -largest, largest);
}

// Values of integers that are held as floats, float32 (float64 where the scale is).
at::Tensor valuesOf(const at::Tensor &integers, const Site &site)
{
    if (site.minValue.defined())
        return at::add(at::mul(at::sub(integers, static_cast<double>(site.qparams.quantMin)), site.scale),
                       site.minValue);
    at::Tensor values = at::mul(at::sub(integers, site.zeroPoint), site.scale);
    // coreai-opt adds an offset of zero: no negative zeros.
    return site.spec.arithmetic == Arithmetic::Division ? at::add(values, 0) : values;
}

Result<at::Tensor> quantizeUnguarded(const at::Tensor &x, const Qparams &qparams, const TensorSpec &spec, SiteRole role)
{
    const at::ScalarType storage = scalarTypeOf(spec.type);
    if (isCast(spec.type))
        return x.to(storage);
    const auto site = siteOf(qparams, spec, role, x.sizes());
    if (!site)
        return tl::unexpected(site.error());
    const at::Tensor wide = x.to(at::kFloat);
    if (isInteger(spec.type))
        return integersOf(wide, *site).to(storage).reshape(x.sizes());
    const at::Tensor scaled = scaledFloats(wide, *site).reshape(x.sizes());
    return spec.type == ElementType::Float4E2M1 ? mapped<std::uint8_t, float>(scaled, at::kByte, float4Code)
                                                : scaled.to(storage);
}

Result<at::Tensor> dequantizeUnguarded(const at::Tensor &q, const Qparams &qparams, const TensorSpec &spec,
                                       SiteRole role, at::ScalarType out)
{
    if (isCast(spec.type))
        return q.to(out);
    const auto site = siteOf(qparams, spec, role, q.sizes());
    if (!site)
        return tl::unexpected(site.error());
    if (!isInteger(spec.type)) {
        const at::Tensor wide = spec.type == ElementType::Float4E2M1
                                    ? mapped<float, std::uint8_t>(q, at::kFloat, float4Value)
                                    : q.to(at::kFloat);
        return at::mul(inUnits(wide, site->units), site->scale).reshape(q.sizes()).to(out);
    }
    // dequantize_per_tensor works in its output's type, with plain numbers.
    if (out != at::kFloat && site->units.single() && spec.arithmetic == Arithmetic::Reciprocal &&
        !site->minValue.defined())
        return q.to(out).sub(qparams.zeroPoint.item()).mul(qparams.scale.item());
    return valuesOf(inUnits(q.to(at::kFloat), site->units), *site).reshape(q.sizes()).to(out);
}

// --- fast paths ---------------------------------------------------------------------------------

constexpr std::int64_t kExact = std::int64_t{1} << 24U;

// Fewer elements of a unit side by side than this are not worth a loop of their own.
constexpr std::int64_t kShortestRun = 8;

// Elements of one unit that lie side by side in a contiguous tensor, if the units follow one another in row-major
// order and then begin anew, as mapChannels() takes them; else 0.
std::int64_t unitRun(const Units &units)
{
    std::int64_t run = 1;
    std::size_t d = units.shape.size();
    while (d > 0 && units.extents[d - 1] == units.shape[d - 1])
        run *= units.shape[--d];
    if (d == 0)
        return 0;
    run *= units.extents[d - 1];
    bool repeats = false; // a whole dimension lies further in
    for (std::size_t e = d - 1; e-- > 0;) {
        if (units.shape[e] == 1)
            continue;
        if (units.extents[e] == units.shape[e])
            repeats = true;
        else if (units.extents[e] != 1 || repeats)
            return 0;
    }
    return run >= kShortestRun ? run : 0;
}

// nullopt: no loop gives these bits.
std::optional<at::Tensor> fastFakeQuantize(const at::Tensor &x, const Site &site)
{
    const Qparams &q = site.qparams;
    if (x.scalar_type() != at::kFloat || !x.is_cpu() || x.numel() == 0 || site.minValue.defined() || site.tokens() ||
        q.quantMin <= -kExact || q.quantMax >= kExact || q.scale.scalar_type() != at::kFloat)
        return std::nullopt;
    auto params = paramsOf(q.scale.reshape({-1}), q.zeroPoint.reshape({-1}), q.quantMin, q.quantMax);
    const auto &set = kernels::kernels();
    const bool divides = site.spec.arithmetic == Arithmetic::Division;
    const QuantLoop loop = divides ? set.fakeQuant : set.quantDequant;
    if (!divides) {
        const at::Tensor nan = at::full({64}, std::numeric_limits<float>::quiet_NaN(), at::kFloat);
        const auto integer = nan.to(scalarTypeOf(site.spec.type)).to(at::kFloat).const_data_ptr<float>()[0];
        for (auto &p : params)
            p.nanInteger = integer;
    }
    if (params.size() == 1) {
        const auto layout = plainLayout(x);
        return layout ? std::optional(mapAll(x, *layout, loop, params.front())) : std::nullopt;
    }
    const std::int64_t run = x.is_contiguous() ? unitRun(site.units) : 0;
    if (run == 0)
        return std::nullopt;
    return mapChannels(x, at::MemoryFormat::Contiguous, run, loop, params);
}

Result<at::Tensor> fakeQuantizeUnguarded(const at::Tensor &x, const Qparams &qparams, const TensorSpec &spec,
                                         SiteRole role)
{
    if (isCast(spec.type))
        return x.to(scalarTypeOf(spec.type)).to(x.scalar_type());
    const auto site = siteOf(qparams, spec, role, x.sizes());
    if (!site)
        return tl::unexpected(site.error());
    if (isInteger(spec.type)) {
        if (auto fast = fastFakeQuantize(x, *site))
            return std::move(*fast);
        if (spec.arithmetic == Arithmetic::Division || site->minValue.defined())
            return valuesOf(integersOf(x.to(at::kFloat), *site), *site).reshape(x.sizes()).to(x.scalar_type());
    } else if (spec.type == ElementType::Float4E2M1) {
        const at::Tensor scaled = scaledFloats(x.to(at::kFloat), *site);
        const at::Tensor rounded = mapped<float, float>(
            scaled, at::kFloat, [](float v) { return std::isnan(v) ? v : float4Value(float4Code(v)); });
        return at::mul(rounded, site->scale).reshape(x.sizes()).to(x.scalar_type());
    }
    auto q = quantizeUnguarded(x, qparams, spec, role);
    if (!q)
        return q;
    return dequantizeUnguarded(*q, qparams, spec, role, x.scalar_type());
}

template <class Work>
Result<at::Tensor> guarded(const at::Tensor &x, const Qparams &qparams, const TensorSpec &spec, SiteRole role,
                           Work work)
{
    try {
        if (!qparams.dynamic)
            return work(qparams);
        const auto chosen = chooseQparams(x, spec, role);
        if (!chosen)
            return tl::unexpected(chosen.error());
        return work(*chosen);
    } catch (const c10::Error &error) {
        return fail(ErrorCode::Incomparable, "", error.what_without_backtrace(), error.what());
    }
}

} // namespace

Result<at::Tensor> quantizeTensor(const at::Tensor &x, const Qparams &qparams, const TensorSpec &spec, SiteRole role)
{
    return guarded(x, qparams, spec, role, [&](const Qparams &q) { return quantizeUnguarded(x, q, spec, role); });
}

Result<at::Tensor> dequantizeTensor(const at::Tensor &q, const Qparams &qparams, const TensorSpec &spec, SiteRole role,
                                    at::ScalarType out)
{
    if (qparams.dynamic)
        return fail(ErrorCode::Usage, "", "dynamic qparams cannot be read back from integers: choose them first");
    return guarded(q, qparams, spec, role,
                   [&](const Qparams &p) { return dequantizeUnguarded(q, p, spec, role, out); });
}

Result<at::Tensor> fakeQuantize(const at::Tensor &x, const Qparams &qparams, const TensorSpec &spec, SiteRole role)
{
    return guarded(x, qparams, spec, role, [&](const Qparams &q) { return fakeQuantizeUnguarded(x, q, spec, role); });
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/flat_pair.h"

#include <utility>

#include <ATen/ops/view_as_real.h>
#include <c10/core/ScalarType.h>

namespace dblame
{

namespace
{

// A strided tensor on the CPU with a type that has numbers, or an undefined one.
at::Tensor plain(at::Tensor t)
{
    if (!t.defined() || t.is_meta())
        return {};
    if (t.is_quantized())
        t = t.dequantize();
    if (t.layout() != at::kStrided)
        t = t.to_dense();
    if (!t.is_cpu())
        t = t.cpu();
    if (t.is_complex())
        t = at::view_as_real(
            t.resolve_conj().to(t.scalar_type() == at::kComplexHalf ? at::kComplexFloat : t.scalar_type()));
    return t.resolve_neg();
}

bool sameLayout(const at::Tensor &a, const at::Tensor &b)
{
    for (std::int64_t d = 0; d < a.dim(); ++d)
        if (a.size(d) > 1 && a.stride(d) != b.stride(d))
            return false;
    return true;
}

at::ScalarType commonType(at::ScalarType a, at::ScalarType b, Numbers &numbers)
{
    const auto integer = [](at::ScalarType t) { return at::isIntegralType(t, /*includeBool=*/true); };
    const auto known = [&](at::ScalarType t) { return integer(t) || at::isFloatingType(t); };
    const auto wide = [](at::ScalarType t) {
        return t == at::kDouble || t == at::kLong || t == at::kInt || t == at::kUInt32 || t == at::kUInt64;
    };
    if (!known(a) || !known(b)) {
        numbers = Numbers::None;
        return at::ScalarType::Undefined;
    }
    if (integer(a) && integer(b)) {
        numbers = Numbers::Integer;
        return a == at::kUInt64 && b == at::kUInt64 ? at::kUInt64 : at::kLong;
    }
    numbers = wide(a) || wide(b) ? Numbers::Double : Numbers::Single;
    return numbers == Numbers::Double ? at::kDouble : at::kFloat;
}

void setChannels(FlatPair &pair, const at::Tensor &r, int axis)
{
    if (axis < 0 || axis >= r.dim() || pair.n == 0)
        return;
    pair.channels = r.size(axis);
    pair.inner = pair.channels == 1 ? pair.n : r.stride(axis);
}

// What nearly every pair is; costs no reference count.
bool readableAsIs(const at::Tensor &t)
{
    return t.defined() && t.scalar_type() == at::kFloat && t.layout() == at::kStrided && t.is_cpu() && !t.is_neg() &&
           t.is_contiguous();
}

} // namespace

FlatPair flatten(const at::Tensor &reference, const at::Tensor &candidate, int channelAxis)
{
    FlatPair pair;
    if (readableAsIs(reference) && readableAsIs(candidate) && reference.sizes() == candidate.sizes()) {
        pair.numbers = Numbers::Single;
        pair.r = reference.const_data_ptr();
        pair.c = candidate.const_data_ptr();
        pair.n = reference.numel();
        setChannels(pair, reference, channelAxis);
        return pair;
    }
    at::Tensor r = plain(reference);
    at::Tensor c = plain(candidate);
    if (!r.defined() || !c.defined() || r.sizes() != c.sizes())
        return pair;
    const at::ScalarType type = commonType(r.scalar_type(), c.scalar_type(), pair.numbers);
    if (pair.numbers == Numbers::None)
        return pair;
    if (r.scalar_type() != type)
        r = r.to(type);
    if (c.scalar_type() != type)
        c = c.to(type);
    if (!r.is_non_overlapping_and_dense())
        r = r.contiguous();
    if (!sameLayout(r, c) || !c.is_non_overlapping_and_dense())
        c = r.new_empty_strided(r.sizes(), r.strides()).copy_(c);
    pair.r = r.const_data_ptr();
    pair.c = c.const_data_ptr();
    pair.n = r.numel();
    pair.unsigned64 = type == at::kUInt64;
    setChannels(pair, r, channelAxis);
    pair.rHeld = std::move(r);
    pair.cHeld = std::move(c);
    return pair;
}

} // namespace dblame

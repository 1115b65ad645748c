// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/loaded_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include <ATen/ops/empty.h>
#include <torch/version.h>

namespace dblame
{

namespace
{

using at::ScalarType;

constexpr std::array<std::pair<DType, ScalarType>, 23> kTypes = {{
    {DType::UInt8, ScalarType::Byte},
    {DType::Int8, ScalarType::Char},
    {DType::Int16, ScalarType::Short},
    {DType::Int32, ScalarType::Int},
    {DType::Int64, ScalarType::Long},
    {DType::Float16, ScalarType::Half},
    {DType::Float32, ScalarType::Float},
    {DType::Float64, ScalarType::Double},
    {DType::Complex32, ScalarType::ComplexHalf},
    {DType::Complex64, ScalarType::ComplexFloat},
    {DType::Complex128, ScalarType::ComplexDouble},
    {DType::Bool, ScalarType::Bool},
    {DType::BFloat16, ScalarType::BFloat16},
    {DType::UInt16, ScalarType::UInt16},
    {DType::Float8E4M3FN, ScalarType::Float8_e4m3fn},
    {DType::Float8E5M2, ScalarType::Float8_e5m2},
    {DType::Float8E4M3FNUZ, ScalarType::Float8_e4m3fnuz},
    {DType::Float8E5M2FNUZ, ScalarType::Float8_e5m2fnuz},
    {DType::UInt32, ScalarType::UInt32},
    {DType::UInt64, ScalarType::UInt64},
    {DType::QInt8, ScalarType::QInt8},
    {DType::QUInt8, ScalarType::QUInt8},
    {DType::QInt32, ScalarType::QInt32},
}};

StoredTensor describe(const GraphInput &input, const at::Tensor &tensor, bool mapped)
{
    StoredTensor stored;
    stored.target = input.target;
    stored.dtype = fromTorch(tensor.scalar_type());
    stored.shape = tensor.sizes().vec();
    stored.bytes = static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
    stored.mapped = mapped;
    return stored;
}

} // namespace

DType fromTorch(at::ScalarType type)
{
    for (const auto &[ours, theirs] : kTypes)
        if (theirs == type)
            return ours;
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 7
    if (type == ScalarType::Float8_e8m0fnu)
        return DType::Float8E8M0FNU;
#endif
    return DType::Unknown;
}

at::ScalarType toTorch(DType dtype)
{
    for (const auto &[ours, theirs] : kTypes)
        if (ours == dtype)
            return theirs;
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 7
    if (dtype == DType::Float8E8M0FNU)
        return ScalarType::Float8_e8m0fnu;
#endif
    return ScalarType::Undefined;
}

std::vector<StoredTensor> LoadedModel::storedTensors() const
{
    std::vector<StoredTensor> result;
    for (const GraphInput &input : m_graph.inputs)
        if (auto one = stored(input.value))
            result.push_back(std::move(*one));
    return result;
}

std::optional<StoredTensor> LoadedModel::stored(ValueId input) const
{
    if (!input.valid() || input.get() >= m_tensors.size() || !m_tensors[input.get()].defined())
        return std::nullopt;
    const GraphInput *graphInput = m_graph.input(input);
    if (graphInput == nullptr)
        return std::nullopt;
    return describe(*graphInput, m_tensors[input.get()], m_mapped[input.get()]);
}

bool LoadedModel::fileChanged() const
{
    const bool anyMapped = std::find(m_mapped.begin(), m_mapped.end(), true) != m_mapped.end();
    return anyMapped && m_file != nullptr && m_file->changed();
}

std::optional<std::vector<double>> LoadedModel::numbers(ValueId input, std::size_t maxElements) const
{
    if (!input.valid() || input.get() >= m_tensors.size())
        return std::nullopt;
    at::Tensor tensor = m_tensors[input.get()];
    if (!tensor.defined() || static_cast<std::size_t>(tensor.numel()) > maxElements || tensor.is_complex())
        return std::nullopt;
    try {
        if (tensor.is_quantized())
            tensor = tensor.int_repr();
        const at::Tensor wide = tensor.to(at::kDouble).contiguous();
        const auto *data = wide.const_data_ptr<double>();
        return std::vector<double>(data, data + wide.numel());
    } catch (const c10::Error &) {
        return std::nullopt; // a type without a conversion
    }
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/pickle_objects.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/ops/_empty_affine_quantized.h>
#include <ATen/ops/_empty_per_channel_affine_quantized.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include "core/readers/zip_archive.h"

namespace dblame
{

using Kind = PickleValue::Kind;

namespace
{

const std::map<std::string, at::ScalarType, std::less<>> &storageTypes()
{
    static const std::map<std::string, at::ScalarType, std::less<>> types = {
        {"torch.FloatStorage", at::kFloat},
        {"torch.DoubleStorage", at::kDouble},
        {"torch.HalfStorage", at::kHalf},
        {"torch.BFloat16Storage", at::kBFloat16},
        {"torch.LongStorage", at::kLong},
        {"torch.IntStorage", at::kInt},
        {"torch.ShortStorage", at::kShort},
        {"torch.CharStorage", at::kChar},
        {"torch.ByteStorage", at::kByte},
        {"torch.BoolStorage", at::kBool},
        {"torch.ComplexFloatStorage", at::kComplexFloat},
        {"torch.ComplexDoubleStorage", at::kComplexDouble},
        {"torch.QInt8Storage", at::kQInt8},
        {"torch.QUInt8Storage", at::kQUInt8},
        {"torch.QInt32Storage", at::kQInt32},
        {"torch.storage.UntypedStorage", at::kByte},
    };
    return types;
}

const std::map<std::string, at::ScalarType, std::less<>> &dtypes()
{
    static const std::map<std::string, at::ScalarType, std::less<>> types = {
        {"torch.float32", at::kFloat},
        {"torch.float64", at::kDouble},
        {"torch.float16", at::kHalf},
        {"torch.bfloat16", at::kBFloat16},
        {"torch.int64", at::kLong},
        {"torch.int32", at::kInt},
        {"torch.int16", at::kShort},
        {"torch.int8", at::kChar},
        {"torch.uint8", at::kByte},
        {"torch.bool", at::kBool},
        {"torch.complex32", at::kComplexHalf},
        {"torch.complex64", at::kComplexFloat},
        {"torch.complex128", at::kComplexDouble},
        {"torch.uint16", at::kUInt16},
        {"torch.uint32", at::kUInt32},
        {"torch.uint64", at::kUInt64},
        {"torch.float8_e4m3fn", at::kFloat8_e4m3fn},
        {"torch.float8_e5m2", at::kFloat8_e5m2},
        {"torch.float8_e4m3fnuz", at::kFloat8_e4m3fnuz},
        {"torch.float8_e5m2fnuz", at::kFloat8_e5m2fnuz},
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 7
        {"torch.float8_e8m0fnu", at::ScalarType::Float8_e8m0fnu},
#endif
    };
    return types;
}

// Names that REDUCE may "call"; what they do is written out below.
bool isKnownGlobal(const std::string &name)
{
    static const std::vector<std::string_view> names = {
        "collections.OrderedDict",
        "torch.Size",
        "torch.device",
        "builtins.complex",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_tensor_v3",
        "torch._utils._rebuild_parameter",
        "torch._utils._rebuild_parameter_with_state",
        "torch._utils._rebuild_qtensor",
        "torch.per_tensor_affine",
        "torch.per_channel_affine",
        // Never built; known so that the refusal names the tensor's own class, which comes next.
        "torch._tensor._rebuild_from_type_v2",
        "torch._utils._rebuild_wrapper_subclass",
    };
    return std::find(names.begin(), names.end(), name) != names.end() || storageTypes().count(name) != 0;
}

const PickleValue &argument(const std::vector<PickleValue> &arguments, std::size_t i, Kind kind, const char *what)
{
    if (i >= arguments.size() || arguments[i].kind != kind)
        throw ReadError(std::string("the pickle is damaged (") + what + ")");
    return arguments[i];
}
std::vector<std::int64_t> integers(const std::vector<PickleValue> &arguments, std::size_t i, const char *what)
{
    if (i >= arguments.size() || !arguments[i].isSequence())
        throw ReadError(std::string("the pickle is damaged (") + what + ")");
    std::vector<std::int64_t> result;
    for (const PickleValue &item : *arguments[i].items) {
        if (item.kind != Kind::Int)
            throw ReadError(std::string("the pickle is damaged (") + what + ")");
        result.push_back(item.integer);
    }
    return result;
}
Strided strided(const std::vector<PickleValue> &arguments)
{
    Strided shape;
    shape.offset = argument(arguments, 1, Kind::Int, "storage offset").integer;
    shape.sizes = integers(arguments, 2, "sizes");
    shape.strides = integers(arguments, 3, "strides");
    return shape;
}

// Newer torch warns that quantized tensors are deprecated, on stderr and for files that exist.
class Silent : public c10::WarningHandler
{
public:
    void process(const c10::Warning & /*warning*/) override {}
};

} // namespace

PickleValue PickleObjects::container(Kind kind, std::vector<PickleValue> items)
{
    m_containers.push_back(std::move(items));
    PickleValue value;
    value.kind = kind;
    value.items = &m_containers.back();
    return value;
}

PickleValue PickleObjects::global(std::string name)
{
    if (const auto it = dtypes().find(name); it != dtypes().end()) {
        PickleValue value;
        value.kind = Kind::DType;
        value.type = it->second;
        return value;
    }
    // Protocols below 3 spell builtins as Python 2 does.
    if (name == "__builtin__.complex")
        name = "builtins.complex";
    if (!isKnownGlobal(name))
        throw NeedsCode("refuses to build " + printable(name) + ": that needs its Python code (nothing was run)");
    PickleValue value;
    value.kind = Kind::Global;
    value.text = std::move(name);
    return value;
}

// ("storage", type, key, location, number of elements)
PickleValue PickleObjects::storage(const PickleValue &id)
{
    if (id.kind != Kind::Tuple || id.items->size() < 5 || (*id.items)[0].text != "storage" ||
        (*id.items)[1].kind != Kind::Global || (*id.items)[2].kind != Kind::Text || (*id.items)[4].kind != Kind::Int)
        throw ReadError("the pickle is damaged (persistent id)");
    const std::string &typeName = (*id.items)[1].text;
    const std::string &key = (*id.items)[2].text;
    const std::int64_t count = (*id.items)[4].integer;
    const auto type = storageTypes().find(typeName);
    if (type == storageTypes().end())
        throw ReadError("storage type " + printable(typeName) + " is not known");
    auto found = m_storageIndex.find(key);
    if (found == m_storageIndex.end()) {
        m_storages.push_back(m_source(key));
        found = m_storageIndex.emplace(key, m_storages.size() - 1).first;
    }
    const std::size_t item = c10::elementSize(type->second);
    const std::size_t size = m_storages[found->second].size;
    if (count < 0 || static_cast<std::uint64_t>(count) != size / item || size % item != 0)
        throw ReadError("storage " + printable(key) + " declares " + std::to_string(count) + " elements of " +
                        std::to_string(item) + " bytes, the file has " + std::to_string(size) + " bytes");
    PickleValue value;
    value.kind = Kind::Storage;
    value.type = type->second;
    value.integer = static_cast<std::int64_t>(found->second);
    return value;
}

PickleValue PickleObjects::reduce(const std::string &function, const std::vector<PickleValue> &arguments)
{
    if (function == "collections.OrderedDict")
        return orderedDict(arguments);
    if (function == "torch.Size") {
        if (arguments.empty())
            return container(Kind::Tuple, {});
        if (!arguments[0].isSequence())
            throw ReadError("the pickle is damaged (size)");
        PickleValue size = arguments[0];
        size.kind = Kind::Tuple;
        return size;
    }
    if (function == "torch.device") {
        PickleValue device = argument(arguments, 0, Kind::Text, "device");
        device.kind = Kind::Device;
        return device;
    }
    if (function == "builtins.complex") {
        PickleValue value;
        value.kind = Kind::Complex;
        value.complex = {argument(arguments, 0, Kind::Float, "complex number").number,
                         argument(arguments, 1, Kind::Float, "complex number").number};
        return value;
    }
    if (function == "torch._utils._rebuild_parameter" || function == "torch._utils._rebuild_parameter_with_state")
        return argument(arguments, 0, Kind::Tensor, "parameter");
    if (function == "torch._utils._rebuild_tensor_v2" || function == "torch._utils._rebuild_tensor_v3")
        return tensor(function.back() == '3', arguments);
    if (function == "torch._utils._rebuild_qtensor")
        return quantizedTensor(arguments);
    throw NeedsCode("refuses to build " + printable(function) + ": that needs its Python code (nothing was run)");
}
PickleValue PickleObjects::orderedDict(const std::vector<PickleValue> &arguments)
{
    std::vector<PickleValue> items;
    if (!arguments.empty()) { // older writers pass a list of pairs
        if (!arguments[0].isSequence())
            throw ReadError("the pickle is damaged (dictionary)");
        for (const PickleValue &pair : *arguments[0].items) {
            if (!pair.isSequence() || pair.items->size() != 2)
                throw ReadError("the pickle is damaged (dictionary)");
            items.insert(items.end(), pair.items->begin(), pair.items->end());
        }
    }
    return container(Kind::Dict, std::move(items));
}
// (storage, offset, sizes, strides, requires_grad, hooks[, dtype of v3][, {conj, neg}])
PickleValue PickleObjects::tensor(bool typeGiven, const std::vector<PickleValue> &arguments) const
{
    const PickleValue &storage = argument(arguments, 0, Kind::Storage, "storage of a tensor");
    const std::size_t metadata = typeGiven ? 7 : 6;
    if (arguments.size() > metadata && arguments[metadata].kind == Kind::Dict && !arguments[metadata].items->empty())
        throw ReadError("a tensor is a conjugate or negative view; save it after .resolve_conj().resolve_neg()");
    const at::ScalarType type = typeGiven ? argument(arguments, 6, Kind::DType, "dtype").type : storage.type;
    PickleValue value;
    value.kind = Kind::Tensor;
    value.tensor = makeTensor(payload(storage), type, strided(arguments), "tensor in the pickle");
    return value;
}
// (storage, offset, sizes, strides, (scheme, parameters...), ...)
PickleValue PickleObjects::quantizedTensor(const std::vector<PickleValue> &arguments) const
{
    const PickleValue &storage = argument(arguments, 0, Kind::Storage, "storage of a tensor");
    if (!c10::isQIntType(storage.type))
        throw ReadError("the pickle is damaged (a quantized tensor on a plain storage)");
    const Strided shape = strided(arguments);
    const auto &scheme = *argument(arguments, 4, Kind::Tuple, "quantization scheme").items;
    const std::string &name = argument(scheme, 0, Kind::Global, "quantization scheme").text;
    const Payload &data = payload(storage);
    checkStrided(shape, c10::elementSize(storage.type), data.size, "quantized tensor in the pickle");
    Silent silent;
    const c10::WarningUtils::WarningHandlerGuard guard(&silent);
    at::Tensor result;
    if (name == "torch.per_tensor_affine") {
        result = at::_empty_affine_quantized({0}, at::TensorOptions(storage.type),
                                             argument(scheme, 1, Kind::Float, "scale").number,
                                             argument(scheme, 2, Kind::Int, "zero point").integer);
    } else if (name == "torch.per_channel_affine") {
        const at::Tensor &scales = argument(scheme, 1, Kind::Tensor, "scales").tensor;
        const at::Tensor &zeroPoints = argument(scheme, 2, Kind::Tensor, "zero points").tensor;
        const std::int64_t axis = argument(scheme, 3, Kind::Int, "axis").integer;
        if (axis < 0 || static_cast<std::size_t>(axis) >= shape.sizes.size() || scales.dim() != 1 ||
            zeroPoints.dim() != 1 || scales.numel() != shape.sizes[static_cast<std::size_t>(axis)] ||
            zeroPoints.numel() != scales.numel())
            throw ReadError("the pickle is damaged (scales of a quantized tensor)");
        // The shape is set below: an allocation must not depend on what the file declares.
        std::vector<std::int64_t> empty = shape.sizes;
        for (std::size_t i = 0; i < empty.size(); ++i)
            if (static_cast<std::int64_t>(i) != axis)
                empty[i] = 0;
        result =
            at::_empty_per_channel_affine_quantized(empty, scales, zeroPoints, axis, at::TensorOptions(storage.type));
    } else {
        throw ReadError("quantization scheme " + printable(name) + " is not known");
    }
    PickleValue value;
    value.kind = Kind::Tensor;
    value.tensor = result.set_(data.storage, shape.offset, shape.sizes, shape.strides);
    return value;
}

} // namespace dblame

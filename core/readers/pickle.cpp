// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/pickle.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include <ATen/ops/_empty_affine_quantized.h>
#include <ATen/ops/_empty_per_channel_affine_quantized.h>
#include <torch/version.h>

#include "core/readers/zip_archive.h"

namespace dblame
{

namespace
{

constexpr std::size_t kMaxStack = 10'000'000;
constexpr std::size_t kMaxMemo = 50'000'000;

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
    };
    return std::find(names.begin(), names.end(), name) != names.end() || storageTypes().count(name) != 0;
}

} // namespace

class Unpickler
{
public:
    using Value = PickleValue;
    using Kind = PickleValue::Kind;

    Unpickler(std::string_view bytes, const StorageSource &storages, ReadControl *control)
        : m_bytes(bytes), m_source(storages), m_control(control)
    {
    }

    PickleDocument run()
    {
        constexpr std::size_t kBetweenChecks = 65536;
        for (std::size_t count = 1;; ++count) {
            if (m_control != nullptr && count % kBetweenChecks == 0)
                m_control->check();
            const std::uint8_t opcode = u8();
            if (opcode == '.')
                break;
            if (!literal(opcode) && !container(opcode) && !memo(opcode) && !object(opcode))
                throw ReadError("the pickle uses opcode " + std::to_string(opcode) + ", which no weight file needs");
            if (m_stack.size() > kMaxStack)
                throw ReadError("the pickle needs too deep a stack");
        }
        m_document.m_root = pop();
        if (m_document.m_root.kind >= Kind::Mark)
            throw ReadError("the pickle holds no object");
        return std::move(m_document);
    }

private:
    // --- bytes ---
    std::uint8_t u8() { return little<std::uint8_t>(); }
    template <class T>
    T little()
    {
        if (m_bytes.size() - m_at < sizeof(T))
            throw ReadError("the pickle is truncated");
        T value;
        std::memcpy(&value, m_bytes.data() + m_at, sizeof(T));
        m_at += sizeof(T);
        return value;
    }
    std::string text(std::uint64_t length)
    {
        if (m_bytes.size() - m_at < length)
            throw ReadError("the pickle is truncated");
        std::string result(m_bytes.substr(m_at, length));
        m_at += length;
        return result;
    }
    std::string line()
    {
        const auto end = m_bytes.find('\n', m_at);
        if (end == std::string_view::npos)
            throw ReadError("the pickle is truncated");
        std::string result(m_bytes.substr(m_at, end - m_at));
        m_at = end + 1;
        return result;
    }

    // --- stack ---
    Value pop()
    {
        if (m_stack.empty())
            throw ReadError("the pickle is damaged (empty stack)");
        Value value = std::move(m_stack.back());
        m_stack.pop_back();
        return value;
    }
    Value &top()
    {
        if (m_stack.empty())
            throw ReadError("the pickle is damaged (empty stack)");
        return m_stack.back();
    }
    void push(Value value) { m_stack.push_back(std::move(value)); }
    void pushInt(std::int64_t integer)
    {
        Value value;
        value.kind = Kind::Int;
        value.integer = integer;
        push(std::move(value));
    }
    void pushText(Kind kind, std::string content)
    {
        Value value;
        value.kind = kind;
        value.text = std::move(content);
        push(std::move(value));
    }
    std::vector<Value> toMark()
    {
        std::size_t mark = m_stack.size();
        while (mark > 0 && m_stack[mark - 1].kind != Kind::Mark)
            --mark;
        if (mark == 0)
            throw ReadError("the pickle is damaged (no mark)");
        std::vector<Value> values(std::make_move_iterator(m_stack.begin() + static_cast<std::ptrdiff_t>(mark)),
                                  std::make_move_iterator(m_stack.end()));
        m_stack.resize(mark - 1);
        return values;
    }
    std::vector<Value> popMany(std::size_t count)
    {
        if (m_stack.size() < count)
            throw ReadError("the pickle is damaged (empty stack)");
        std::vector<Value> values(std::make_move_iterator(m_stack.end() - static_cast<std::ptrdiff_t>(count)),
                                  std::make_move_iterator(m_stack.end()));
        m_stack.resize(m_stack.size() - count);
        return values;
    }
    Value make(Kind kind, std::vector<Value> items)
    {
        m_document.m_containers.push_back(std::move(items));
        Value value;
        value.kind = kind;
        value.items = &m_document.m_containers.back();
        return value;
    }

    // --- opcodes; each group returns false when the opcode is not one of its own ---
    bool literal(std::uint8_t opcode)
    {
        switch (opcode) {
        case 0x80: // PROTO
            if (const auto protocol = u8(); protocol < 2 || protocol > 5)
                throw ReadError("pickle protocol " + std::to_string(protocol) + " is not known");
            return true;
        case 0x95: // FRAME
            (void)little<std::uint64_t>();
            return true;
        case 'N':
            push({});
            return true;
        case 0x88:   // NEWTRUE
        case 0x89: { // NEWFALSE
            pushInt(opcode == 0x88 ? 1 : 0);
            top().kind = Kind::Bool;
            return true;
        }
        case 'J':
            pushInt(little<std::int32_t>());
            return true;
        case 'K':
            pushInt(u8());
            return true;
        case 'M':
            pushInt(little<std::uint16_t>());
            return true;
        case 0x8a: // LONG1
            pushInt(longInt(u8()));
            return true;
        case 'G': {
            auto bits = little<std::uint64_t>();
            bits = __builtin_bswap64(bits);
            Value value;
            value.kind = Kind::Float;
            std::memcpy(&value.number, &bits, sizeof bits);
            push(std::move(value));
            return true;
        }
        case 'X':
            pushText(Kind::Text, text(little<std::uint32_t>()));
            return true;
        case 0x8c: // SHORT_BINUNICODE
        case 'U':  // SHORT_BINSTRING
            pushText(Kind::Text, text(u8()));
            return true;
        case 0x8d: // BINUNICODE8
            pushText(Kind::Text, text(little<std::uint64_t>()));
            return true;
        case 'T':
            pushText(Kind::Text, text(little<std::uint32_t>()));
            return true;
        case 'C':
            pushText(Kind::Bytes, text(u8()));
            return true;
        case 'B':
            pushText(Kind::Bytes, text(little<std::uint32_t>()));
            return true;
        case 0x8e: // BINBYTES8
            pushText(Kind::Bytes, text(little<std::uint64_t>()));
            return true;
        default:
            return false;
        }
    }
    std::int64_t longInt(std::size_t length)
    {
        const std::string digits = text(length);
        if (length > sizeof(std::int64_t))
            throw ReadError("the pickle holds an integer beyond 64 bits");
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < length; ++i)
            value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(digits[i])) << (8 * i);
        if (length > 0 && length < sizeof value && (static_cast<std::uint8_t>(digits.back()) & 0x80U) != 0)
            value |= ~std::uint64_t{0} << (8 * length);
        return static_cast<std::int64_t>(value);
    }

    bool container(std::uint8_t opcode)
    {
        switch (opcode) {
        case '(': {
            Value mark;
            mark.kind = Kind::Mark;
            push(std::move(mark));
            return true;
        }
        case ')':
            push(make(Kind::Tuple, {}));
            return true;
        case 't':
            push(make(Kind::Tuple, toMark()));
            return true;
        case 0x85: // TUPLE1..3
        case 0x86:
        case 0x87:
            push(make(Kind::Tuple, popMany(opcode - 0x84U)));
            return true;
        case ']':
            push(make(Kind::List, {}));
            return true;
        case 'l':
            push(make(Kind::List, toMark()));
            return true;
        case 'a': {
            std::vector<Value> one;
            one.push_back(pop());
            extend(Kind::List, std::move(one));
            return true;
        }
        case 'e':
            extend(Kind::List, toMark());
            return true;
        case '}':
            push(make(Kind::Dict, {}));
            return true;
        case 'd':
            push(make(Kind::Dict, evenItems(toMark())));
            return true;
        case 's':
            extend(Kind::Dict, popMany(2));
            return true;
        case 'u':
            extend(Kind::Dict, evenItems(toMark()));
            return true;
        case '0':
            (void)pop();
            return true;
        case '1':
            (void)toMark();
            return true;
        case '2': {
            Value copy = top();
            push(std::move(copy));
            return true;
        }
        default:
            return false;
        }
    }
    static std::vector<Value> evenItems(std::vector<Value> items)
    {
        if (items.size() % 2 != 0)
            throw ReadError("the pickle is damaged (a key without a value)");
        return items;
    }
    void extend(Kind kind, std::vector<Value> items)
    {
        const Value &target = top();
        if (target.kind != kind)
            throw ReadError("the pickle is damaged (items for something that is no container)");
        target.items->insert(target.items->end(), std::make_move_iterator(items.begin()),
                             std::make_move_iterator(items.end()));
    }

    bool memo(std::uint8_t opcode)
    {
        switch (opcode) {
        case 'q':
            remember(u8());
            return true;
        case 'r':
            remember(little<std::uint32_t>());
            return true;
        case 0x94: // MEMOIZE
            remember(static_cast<std::uint32_t>(m_memo.size()));
            return true;
        case 'h':
            recall(u8());
            return true;
        case 'j':
            recall(little<std::uint32_t>());
            return true;
        default:
            return false;
        }
    }
    void remember(std::uint32_t slot)
    {
        if (m_memo.size() > kMaxMemo)
            throw ReadError("the pickle remembers too much");
        m_memo[slot] = top();
    }
    void recall(std::uint32_t slot)
    {
        const auto it = m_memo.find(slot);
        if (it == m_memo.end())
            throw ReadError("the pickle is damaged (unknown memo)");
        push(it->second);
    }

    bool object(std::uint8_t opcode)
    {
        switch (opcode) {
        case 'c': {
            const std::string module = line();
            global(module + "." + line());
            return true;
        }
        case 0x93: { // STACK_GLOBAL
            const std::vector<Value> names = popMany(2);
            if (names[0].kind != Kind::Text || names[1].kind != Kind::Text)
                throw ReadError("the pickle is damaged (name of a class)");
            global(names[0].text + "." + names[1].text);
            return true;
        }
        case 'R':    // REDUCE
        case 0x81: { // NEWOBJ
            const Value arguments = pop();
            const Value function = pop();
            if (function.kind != Kind::Global || arguments.kind != Kind::Tuple)
                throw ReadError("the pickle is damaged (call of something that is no function)");
            push(reduce(function.text, *arguments.items));
            return true;
        }
        case 'b': // BUILD: attributes of an OrderedDict (_metadata), of no interest
            (void)pop();
            if (top().kind != Kind::Dict)
                throw NeedsCode("the file sets the state of an object; that needs its Python code");
            return true;
        case 'Q':
            push(persistentStorage(pop()));
            return true;
        default:
            return false;
        }
    }
    void global(std::string name)
    {
        if (const auto it = dtypes().find(name); it != dtypes().end()) {
            Value value;
            value.kind = Kind::DType;
            value.type = it->second;
            push(std::move(value));
            return;
        }
        // Protocols below 3 spell builtins as Python 2 does.
        if (name == "__builtin__.complex")
            name = "builtins.complex";
        if (!isKnownGlobal(name))
            throw NeedsCode("refuses to build " + printable(name) + ": that needs its Python code (nothing was run)");
        pushText(Kind::Global, std::move(name));
    }

    // ("storage", type, key, location, number of elements)
    Value persistentStorage(const Value &id)
    {
        if (id.kind != Kind::Tuple || id.items->size() < 5 || (*id.items)[0].text != "storage" ||
            (*id.items)[1].kind != Kind::Global || (*id.items)[2].kind != Kind::Text ||
            (*id.items)[4].kind != Kind::Int)
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
        Value value;
        value.kind = Kind::Storage;
        value.type = type->second;
        value.integer = static_cast<std::int64_t>(found->second);
        return value;
    }

    static const Value &argument(const std::vector<Value> &arguments, std::size_t i, Kind kind, const char *what)
    {
        if (i >= arguments.size() || arguments[i].kind != kind)
            throw ReadError(std::string("the pickle is damaged (") + what + ")");
        return arguments[i];
    }
    static std::vector<std::int64_t> integers(const std::vector<Value> &arguments, std::size_t i, const char *what)
    {
        if (i >= arguments.size() || !arguments[i].isSequence())
            throw ReadError(std::string("the pickle is damaged (") + what + ")");
        std::vector<std::int64_t> result;
        for (const Value &item : *arguments[i].items) {
            if (item.kind != Kind::Int)
                throw ReadError(std::string("the pickle is damaged (") + what + ")");
            result.push_back(item.integer);
        }
        return result;
    }
    static Strided strided(const std::vector<Value> &arguments)
    {
        Strided shape;
        shape.offset = argument(arguments, 1, Kind::Int, "storage offset").integer;
        shape.sizes = integers(arguments, 2, "sizes");
        shape.strides = integers(arguments, 3, "strides");
        return shape;
    }

    Value reduce(const std::string &function, const std::vector<Value> &arguments)
    {
        if (function == "collections.OrderedDict")
            return orderedDict(arguments);
        if (function == "torch.Size") {
            if (arguments.empty())
                return make(Kind::Tuple, {});
            if (!arguments[0].isSequence())
                throw ReadError("the pickle is damaged (size)");
            Value size = arguments[0];
            size.kind = Kind::Tuple;
            return size;
        }
        if (function == "torch.device") {
            Value device = argument(arguments, 0, Kind::Text, "device");
            device.kind = Kind::Device;
            return device;
        }
        if (function == "builtins.complex") {
            Value value;
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
    Value orderedDict(const std::vector<Value> &arguments)
    {
        std::vector<Value> items;
        if (!arguments.empty()) { // older writers pass a list of pairs
            if (!arguments[0].isSequence())
                throw ReadError("the pickle is damaged (dictionary)");
            for (const Value &pair : *arguments[0].items) {
                if (!pair.isSequence() || pair.items->size() != 2)
                    throw ReadError("the pickle is damaged (dictionary)");
                items.insert(items.end(), pair.items->begin(), pair.items->end());
            }
        }
        return make(Kind::Dict, std::move(items));
    }
    // (storage, offset, sizes, strides, requires_grad, hooks[, dtype of v3][, {conj, neg}])
    Value tensor(bool typeGiven, const std::vector<Value> &arguments)
    {
        const Value &storage = argument(arguments, 0, Kind::Storage, "storage of a tensor");
        const std::size_t metadata = typeGiven ? 7 : 6;
        if (arguments.size() > metadata && arguments[metadata].kind == Kind::Dict &&
            !arguments[metadata].items->empty())
            throw ReadError("a tensor is a conjugate or negative view: save it after .resolve_conj().resolve_neg()");
        const at::ScalarType type = typeGiven ? argument(arguments, 6, Kind::DType, "dtype").type : storage.type;
        Value value;
        value.kind = Kind::Tensor;
        value.tensor = makeTensor(payload(storage), type, strided(arguments), "tensor in the pickle");
        return value;
    }
    // (storage, offset, sizes, strides, (scheme, parameters...), ...)
    Value quantizedTensor(const std::vector<Value> &arguments)
    {
        const Value &storage = argument(arguments, 0, Kind::Storage, "storage of a tensor");
        if (!c10::isQIntType(storage.type))
            throw ReadError("the pickle is damaged (a quantized tensor on a plain storage)");
        const Strided shape = strided(arguments);
        const auto &scheme = *argument(arguments, 4, Kind::Tuple, "quantization scheme").items;
        const std::string &name = argument(scheme, 0, Kind::Global, "quantization scheme").text;
        const Payload &data = payload(storage);
        checkStrided(shape, c10::elementSize(storage.type), data.size, "quantized tensor in the pickle");
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
            result = at::_empty_per_channel_affine_quantized(empty, scales, zeroPoints, axis,
                                                             at::TensorOptions(storage.type));
        } else {
            throw ReadError("quantization scheme " + printable(name) + " is not known");
        }
        Value value;
        value.kind = Kind::Tensor;
        value.tensor = result.set_(data.storage, shape.offset, shape.sizes, shape.strides);
        return value;
    }
    [[nodiscard]] const Payload &payload(const Value &storage) const
    {
        return m_storages[static_cast<std::size_t>(storage.integer)];
    }

    std::string_view m_bytes;
    std::size_t m_at = 0;
    const StorageSource &m_source;
    ReadControl *m_control;
    std::vector<Value> m_stack;
    std::unordered_map<std::uint32_t, Value> m_memo;
    std::vector<Payload> m_storages;
    std::unordered_map<std::string, std::size_t> m_storageIndex;
    PickleDocument m_document;
};

PickleDocument unpickle(std::string_view bytes, const StorageSource &storages, ReadControl *control)
{
    return Unpickler(bytes, storages, control).run();
}

} // namespace dblame

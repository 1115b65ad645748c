// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/tensor_files.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <optional>

#include "core/readers/file_kind.h"
#include "core/readers/json_text.h"
#include "core/readers/loaded_model.h"
#include "core/readers/tensor_storage.h"
#include "core/readers/torch_save.h"
#include "core/readers/zip_archive.h"

namespace dblame
{

namespace
{

// The header of an .npy file: a Python dictionary literal with three known keys, and nothing else is accepted.
class NpyHeader
{
public:
    explicit NpyHeader(std::string_view text) : m_text(text) {}

    std::string descr;
    bool fortran = false;
    std::vector<std::int64_t> shape;

    void parse()
    {
        bool hasDescr = false, hasOrder = false, hasShape = false;
        expect('{');
        while (!accept('}')) {
            const std::string key = quoted();
            expect(':');
            if (key == "descr") {
                if (peek() == '[')
                    throw ReadError("structured arrays are not supported; save plain arrays");
                descr = quoted();
                hasDescr = true;
            } else if (key == "fortran_order") {
                fortran = boolean();
                hasOrder = true;
            } else if (key == "shape") {
                tuple();
                hasShape = true;
            } else {
                throw ReadError("the .npy header has the unknown key " + printable(key));
            }
            if (!accept(',') && peek() != '}')
                damaged();
        }
        if (!hasDescr || !hasOrder || !hasShape)
            damaged();
    }

private:
    [[noreturn]] static void damaged() { throw ReadError("the .npy header is damaged"); }
    char peek()
    {
        while (m_at < m_text.size() && std::isspace(static_cast<unsigned char>(m_text[m_at])) != 0)
            ++m_at;
        return m_at < m_text.size() ? m_text[m_at] : '\0';
    }
    bool accept(char c)
    {
        if (peek() != c)
            return false;
        ++m_at;
        return true;
    }
    void expect(char c)
    {
        if (!accept(c))
            damaged();
    }
    std::string quoted()
    {
        const char quote = peek();
        if (quote != '\'' && quote != '"')
            damaged();
        const auto end = m_text.find(quote, m_at + 1);
        if (end == std::string_view::npos)
            damaged();
        std::string result(m_text.substr(m_at + 1, end - m_at - 1));
        m_at = end + 1;
        return result;
    }
    bool boolean()
    {
        (void)peek();
        for (const std::string_view word : {"True", "False"})
            if (m_text.substr(m_at).starts_with(word)) {
                m_at += word.size();
                return word == "True";
            }
        damaged();
    }
    void tuple()
    {
        expect('(');
        while (!accept(')')) {
            std::int64_t size = 0;
            if (std::isdigit(static_cast<unsigned char>(peek())) == 0)
                damaged();
            while (m_at < m_text.size() && std::isdigit(static_cast<unsigned char>(m_text[m_at])) != 0)
                if (__builtin_mul_overflow(size, 10, &size) ||
                    __builtin_add_overflow(size, m_text[m_at++] - '0', &size))
                    throw ReadError("a size in the .npy header overflows");
            (void)accept('L'); // Python 2's long integers
            shape.push_back(size);
            if (!accept(',') && peek() != ')')
                damaged();
        }
    }

    std::string_view m_text;
    std::size_t m_at = 0;
};

struct NpyType {
    at::ScalarType type;
    std::size_t swapped; // bytes to swap as one: the parts of a complex number are swapped singly
};

NpyType npyType(const std::string &descr)
{
    static const std::map<std::string, NpyType, std::less<>> types = {
        {"b1", {at::kBool, 1}},         {"i1", {at::kChar, 1}},           {"i2", {at::kShort, 2}},
        {"i4", {at::kInt, 4}},          {"i8", {at::kLong, 8}},           {"u1", {at::kByte, 1}},
        {"u2", {at::kUInt16, 2}},       {"u4", {at::kUInt32, 4}},         {"u8", {at::kUInt64, 8}},
        {"f2", {at::kHalf, 2}},         {"f4", {at::kFloat, 4}},          {"f8", {at::kDouble, 8}},
        {"c8", {at::kComplexFloat, 4}}, {"c16", {at::kComplexDouble, 8}},
    };
    if (descr.size() > 1 && descr[1] == 'O')
        throw ReadError("object arrays hold pickled Python objects and are not read; save plain arrays");
    if (descr.size() < 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
        throw ReadError("the .npy type " + printable(descr) + " is not supported");
    const auto found = types.find(std::string_view(descr).substr(1));
    if (found == types.end())
        throw ReadError("the .npy type " + printable(descr) + " is not supported");
    return found->second;
}

Bytes byteSwapped(const Bytes &bytes, std::size_t item)
{
    auto buffer = std::make_shared<std::vector<std::uint8_t>>(bytes.data, bytes.data + bytes.size);
    for (std::size_t at = 0; at + item <= buffer->size(); at += item)
        std::reverse(buffer->begin() + static_cast<std::ptrdiff_t>(at),
                     buffer->begin() + static_cast<std::ptrdiff_t>(at + item));
    return {buffer, buffer->data(), buffer->size(), false};
}

std::optional<at::ScalarType> safeTensorsType(const std::string &name)
{
    static const std::map<std::string, DType> types = {
        {"BOOL", DType::Bool},
        {"U8", DType::UInt8},
        {"I8", DType::Int8},
        {"I16", DType::Int16},
        {"U16", DType::UInt16},
        {"I32", DType::Int32},
        {"U32", DType::UInt32},
        {"I64", DType::Int64},
        {"U64", DType::UInt64},
        {"F16", DType::Float16},
        {"BF16", DType::BFloat16},
        {"F32", DType::Float32},
        {"F64", DType::Float64},
        {"F8_E4M3", DType::Float8E4M3FN},
        {"F8_E5M2", DType::Float8E5M2},
        {"C64", DType::Complex64},
    };
    const auto found = types.find(name);
    return found == types.end() ? std::nullopt : std::optional(toTorch(found->second));
}

std::vector<NamedTensor> readNpz(const ZipArchive &archive, ReadControl &control)
{
    std::vector<NamedTensor> arrays;
    for (const auto &member : archive.members()) {
        const std::string name = member.name.substr(0, member.name.size() - std::string_view(".npy").size());
        try {
            arrays.push_back({name, readNpy(archive.read(member, &control))});
        } catch (const ReadError &error) {
            throw ReadError(error.what(), printable(member.name));
        }
    }
    return arrays;
}

} // namespace

at::Tensor readNpy(const Bytes &bytes)
{
    constexpr std::size_t kMagic = 8; // "\x93NUMPY", major, minor
    const std::string_view text = bytes.text();
    if (!text.starts_with("\x93NUMPY") || text.size() < kMagic + 2)
        throw ReadError("not an .npy array");
    const int version = bytes.data[6];
    if (version < 1 || version > 3)
        throw ReadError(".npy version " + std::to_string(version) + " is not known");
    std::size_t length = 0, begin = kMagic;
    for (const std::size_t lengthBytes = version == 1 ? 2 : 4; begin < kMagic + lengthBytes; ++begin) {
        if (begin >= bytes.size)
            throw ReadError("the .npy header is cut");
        length |= static_cast<std::size_t>(bytes.data[begin]) << (8 * (begin - kMagic));
    }
    if (length > bytes.size - begin)
        throw ReadError("the .npy header is cut");
    NpyHeader header(text.substr(begin, length));
    header.parse();
    const NpyType type = npyType(header.descr);

    Strided shape;
    shape.sizes = header.shape;
    std::int64_t count = 1;
    for (const std::int64_t size : shape.sizes)
        if (__builtin_mul_overflow(count, std::max<std::int64_t>(size, 1), &count))
            throw ReadError("the shape in the .npy header overflows");
    if (std::find(shape.sizes.begin(), shape.sizes.end(), 0) != shape.sizes.end())
        count = 0;
    Bytes data = bytes.part(begin + length, bytes.size - begin - length);
    const std::size_t item = c10::elementSize(type.type);
    if (static_cast<std::uint64_t>(count) != data.size / item || data.size % item != 0)
        throw ReadError("the .npy data has " + std::to_string(data.size) + " bytes, its header asks for " +
                        std::to_string(count) + " elements of " + std::to_string(item));
    if (header.descr[0] == '>' && type.swapped > 1)
        data = byteSwapped(data, type.swapped);
    shape.strides = contiguousStrides(shape.sizes);
    if (header.fortran) {
        std::vector<std::int64_t> reversed(shape.sizes.rbegin(), shape.sizes.rend());
        reversed = contiguousStrides(reversed);
        shape.strides.assign(reversed.rbegin(), reversed.rend());
    }
    return makeTensor(makePayload(data), type.type, shape, "the array");
}

std::vector<NamedTensor> readSafeTensors(const Bytes &bytes)
{
    std::uint64_t length = 0;
    if (bytes.size < sizeof length)
        throw ReadError("the safetensors header is cut");
    std::memcpy(&length, bytes.data, sizeof length);
    if (length > bytes.size - sizeof length)
        throw ReadError("the safetensors header reaches beyond the file");
    const Json header = parseJson(bytes.text().substr(sizeof length, length), "header");
    const Bytes buffer = bytes.part(sizeof length + length, bytes.size - sizeof length - length);

    struct Entry {
        std::string name;
        const Json *json;
        std::int64_t begin, end;
    };
    std::vector<Entry> entries;
    for (const auto &[name, json] : asObject(header, "header").items()) {
        if (name == "__metadata__")
            continue;
        const Json &offsets = listField(json, "data_offsets");
        if (offsets.size() != 2)
            throw ReadError("data_offsets of " + printable(name) + " must be two numbers");
        entries.push_back({name, &json, asInt(offsets[0], "data_offsets"), asInt(offsets[1], "data_offsets")});
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry &a, const Entry &b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
    std::vector<NamedTensor> tensors;
    std::int64_t expected = 0;
    for (const Entry &entry : entries) {
        const std::string who = "tensor " + printable(entry.name);
        if (entry.begin != expected || entry.end < entry.begin || static_cast<std::uint64_t>(entry.end) > buffer.size)
            throw ReadError(who + ": its data overlaps, leaves a hole or reaches beyond the file");
        expected = entry.end;
        const std::string &typeName = textField(*entry.json, "dtype");
        const auto type = safeTensorsType(typeName);
        if (!type)
            throw ReadError(who + " has the type " + printable(typeName) + ", which is not supported");
        Strided shape;
        for (const Json &size : listField(*entry.json, "shape"))
            shape.sizes.push_back(asInt(size, "shape"));
        const auto bytesOf = static_cast<std::size_t>(entry.end - entry.begin);
        // Checks sizes and overflow before strides are made from them.
        const std::int64_t count =
            checkStrided({shape.sizes, std::vector<std::int64_t>(shape.sizes.size(), 0), 0}, 0, bytesOf, who);
        if (static_cast<std::uint64_t>(count) != bytesOf / c10::elementSize(*type) ||
            bytesOf % c10::elementSize(*type) != 0)
            throw ReadError(who + ": shape and data length differ");
        shape.strides = contiguousStrides(shape.sizes);
        const Bytes data = buffer.part(static_cast<std::size_t>(entry.begin), bytesOf);
        tensors.push_back({entry.name, makeTensor(makePayload(data), *type, shape, who)});
    }
    if (static_cast<std::uint64_t>(expected) != buffer.size)
        throw ReadError("the safetensors file has " + std::to_string(buffer.size - static_cast<std::size_t>(expected)) +
                        " bytes that no tensor covers");
    return tensors;
}

TensorFile readTensorFile(const std::string &path, ReadControl &control)
{
    TensorFile file;
    file.file = MappedFile::open(path);
    const Bytes bytes = MappedFile::bytes(file.file);
    std::optional<ZipArchive> archive;
    if (ZipArchive::looksLikeZip(bytes)) {
        // Arrays may be deflated, and zeros deflate a thousandfold.
        ZipLimits limits;
        limits.inflated = limits.inflatedTotal = std::uint64_t{1} << 30U;
        limits.ratio = 1100;
        archive.emplace(bytes, limits);
    }
    switch (recognize(bytes, archive ? &*archive : nullptr)) {
    case FileKind::Npy:
        file.kind = TensorFile::Kind::Npy;
        file.arrays.push_back({{}, readNpy(bytes)});
        return file;
    case FileKind::Npz:
        file.arrays = readNpz(*archive, control);
        return file;
    case FileKind::SafeTensors:
        file.arrays = readSafeTensors(bytes);
        return file;
    case FileKind::TorchSave:
        file.kind = TensorFile::Kind::Pickled;
        file.pickled = readTorchSave(*archive, {}, &control);
        return file;
    case FileKind::LegacyTorchSave:
        throw ReadError("the old torch.save format (before torch 1.6); load and save it again with torch 1.6 or later");
    case FileKind::PlainPickle:
        throw ReadError("a plain Python pickle is never loaded because it runs code; save with torch.save or numpy");
    case FileKind::Pt2Archive:
    case FileKind::Pt2Flat:
    case FileKind::TorchScript:
        throw ReadError("this is a model, not an input file; give .pt, .npz, .npy or .safetensors");
    default:
        throw ReadError("no known input file; give .pt (torch.save), .npz, .npy or .safetensors");
    }
}

} // namespace dblame

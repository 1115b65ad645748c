// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tensor files of every kind, the pickles inside them, and the rule that keeps tensors inside their payload.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/readers/tensor_files.h"
#include "core/readers/tensor_storage.h"
#include "core/readers/torch_save.h"
#include "readers_support.h"

namespace dblame::test
{
namespace
{

using ::testing::HasSubstr;

TensorFile readSample(const std::string &name)
{
    ReadControl control;
    return readTensorFile(sample(name), control);
}

std::string refusal(const std::string &name)
{
    try {
        (void)readSample(name);
    } catch (const ReadError &error) {
        return error.what();
    }
    return {};
}

std::vector<std::pair<std::string, at::Tensor>> tensorsOf(const TensorFile &file)
{
    if (file.kind == TensorFile::Kind::Pickled)
        return namedTensors(file.pickled.root());
    std::vector<std::pair<std::string, at::Tensor>> tensors;
    for (const NamedTensor &array : file.arrays)
        tensors.emplace_back(array.name, array.tensor);
    return tensors;
}

void checkTensor(const at::Tensor &tensor, const nlohmann::json &expected)
{
    if (expected.contains("quantized")) {
        ASSERT_TRUE(tensor.is_quantized());
        EXPECT_EQ(dtypeName(fromTorch(tensor.scalar_type())), expected["quantized"].get<std::string>());
        checkTensor(tensor.int_repr(), expected["int_repr"]);
        checkTensor(tensor.dequantize(), expected["dequantized"]);
        return;
    }
    EXPECT_EQ(tensor.sizes().vec(), expected["shape"].get<std::vector<std::int64_t>>());
    EXPECT_EQ(sha256(tensor), expected["sha256"].get<std::string>());
    if (expected.contains("dtype")) {
        EXPECT_EQ(dtypeName(fromTorch(tensor.scalar_type())), expected["dtype"].get<std::string>());
    }
}

TEST(ReadersTensors, EveryKindOfFileGivesItsElements)
{
    const nlohmann::json expected = readJson(sample("weights/expected.json"))["files"];
    int read = 0;
    for (const auto &[file, entry] : expected.items()) {
        const std::string kind = entry["kind"].get<std::string>();
        if (kind != "weights" && kind != "input")
            continue;
        SCOPED_TRACE(file);
        const TensorFile content = readSample("weights/" + file);
        const auto tensors = tensorsOf(content);
        if (!entry.contains("tensors")) { // .npy
            ASSERT_EQ(tensors.size(), 1U);
            checkTensor(tensors[0].second, entry);
            ++read;
            continue;
        }
        for (const auto &[name, value] : entry["tensors"].items()) {
            SCOPED_TRACE(name);
            const auto found =
                std::find_if(tensors.begin(), tensors.end(), [&n = name](const auto &t) { return t.first == n; });
            ASSERT_NE(found, tensors.end());
            checkTensor(found->second, value);
        }
        ++read;
    }
    EXPECT_EQ(read, 24);
}

TEST(ReadersTensors, WhatWouldRunCodeIsRefusedByName)
{
    EXPECT_THAT(refusal("weights/full_module.pth"), HasSubstr("__main__.Net"));
    EXPECT_THAT(refusal("weights/sparse.pt"), HasSubstr("_rebuild_sparse_tensor"));
    EXPECT_THAT(refusal("weights/plain_pickle.pkl"), HasSubstr("never loaded"));
    EXPECT_THAT(refusal("weights/state_dict_legacy.pth"), HasSubstr("old torch.save format"));
    EXPECT_THAT(refusal("weights/object.npy"), HasSubstr("object arrays"));
    EXPECT_THAT(refusal("weights/structured.npy"), HasSubstr("structured arrays"));
    EXPECT_THAT(refusal("weights/legacy_tar.pth"), HasSubstr("no known input file"));
    EXPECT_THAT(refusal("2.13.0/toy.pt2"), HasSubstr("this is a model"));
    EXPECT_THAT(refusal("inputs/conjugate.pt"), HasSubstr("resolve_conj"));
    EXPECT_THAT(refusal("weights/nothing.npy"), HasSubstr("No such file"));
}

TEST(ReadersTensors, TiedTensorsShareTheirStorage)
{
    const TensorFile file = readSample("weights/state_dict.pth");
    const auto tensors = namedTensors(file.pickled.root());
    const auto storage = [&](const std::string &name) -> const void * {
        for (const auto &[key, tensor] : tensors)
            if (key == name)
                return tensor.storage().unsafeGetStorageImpl();
        return nullptr;
    };
    ASSERT_NE(storage("tied"), nullptr);
    EXPECT_EQ(storage("tied"), storage("fc.weight"));
    EXPECT_NE(storage("tied"), storage("fc.bias"));
}

// --- the bounds rule ------------------------------------------------------------------------------

std::string boundsError(const Strided &shape, std::size_t itemSize, std::uint64_t bytes)
{
    try {
        (void)checkStrided(shape, itemSize, bytes, "weight w");
    } catch (const ReadError &error) {
        return error.what();
    }
    return {};
}

TEST(ReadersTensors, BoundsAreExact)
{
    EXPECT_EQ(checkStrided({{2, 3}, {3, 1}, 0}, 4, 24, "w"), 6);
    EXPECT_THAT(boundsError({{2, 3}, {3, 1}, 0}, 4, 23), HasSubstr("reaches outside its payload of 23 bytes"));
    EXPECT_EQ(boundsError({{2, 3}, {3, 1}, 1}, 4, 28), "");
    EXPECT_NE(boundsError({{2, 3}, {3, 1}, 2}, 4, 28), "");
    EXPECT_EQ(boundsError({{2, 3}, {0, 0}, 0}, 4, 4), ""); // expanded
    EXPECT_EQ(boundsError({{}, {}, 0}, 8, 8), "");         // 0-dimensional
    EXPECT_NE(boundsError({{}, {}, 0}, 8, 7), "");
    EXPECT_EQ(checkStrided({{0, 1LL << 40}, {1, 1}, 5}, 4, 0, "w"), 0);
    constexpr std::int64_t kMost = INT64_MAX;
    EXPECT_NE(boundsError({{2}, {kMost}, 0}, 8, kMost), "");
    EXPECT_NE(boundsError({{2, 2, 2}, {kMost, kMost, kMost}, kMost}, 8, kMost), "");
    EXPECT_THAT(boundsError({{kMost, kMost}, {0, 0}, 0}, 1, kMost), HasSubstr("size overflows"));
    EXPECT_THAT(boundsError({{0, kMost, kMost}, {0, 0, 0}, 0}, 1, kMost), HasSubstr("size overflows"));
    EXPECT_THAT(boundsError({std::vector<std::int64_t>(65, 1), std::vector<std::int64_t>(65, 1), 0}, 1, 1),
                HasSubstr("65 dimensions"));
}

// --- .npy and safetensors, made on the spot -------------------------------------------------------

std::string npy(const std::string &header, const std::string &data, char version = 1)
{
    std::string content = "\x93NUMPY";
    content += {version, '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8U)};
    if (version > 1)
        content += std::string(2, '\0');
    return content + header + data;
}

std::string npyError(const std::string &content)
{
    try {
        (void)readNpy(bytesOf(content));
    } catch (const ReadError &error) {
        return error.what();
    }
    return {};
}

TEST(ReadersTensors, NpyHeaders)
{
    const std::string eight(8, '\1');
    EXPECT_EQ(readNpy(bytesOf(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", eight))).sizes().vec(),
              std::vector<std::int64_t>{2});
    EXPECT_EQ(readNpy(bytesOf(npy("{\"shape\":(1,2L),\"descr\":\"<i4\",\"fortran_order\":True}", eight, 2))).dim(), 2);
    EXPECT_EQ(readNpy(bytesOf(npy("{'descr':'=f8','fortran_order':False,'shape':()}", eight, 3))).dim(), 0);
    for (const char *header : {
             "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", // 12 bytes needed
             "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
             "{'descr': '<f4', 'fortran_order': False}",
             "{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0)}",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
             "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
             "{'descr': '<U2', 'fortran_order': False, 'shape': (1,)}",
             "{'descr': 'f4', 'fortran_order': False, 'shape': (2,)}",
             "{'descr': __import__('os').system('x'), 'fortran_order': False, 'shape': (2,)}",
             "{'descr",
             "",
         })
        EXPECT_NE(npyError(npy(header, eight)), "") << header;
    EXPECT_THAT(npyError(npy("{}", "", 4)), HasSubstr("version 4"));
    std::string cut = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", eight);
    for (std::size_t length = 0; length < cut.size(); ++length)
        EXPECT_NE(npyError(cut.substr(0, length)), "") << length;
}

std::string safeTensors(const std::string &header, const std::string &data)
{
    const std::uint64_t length = header.size();
    return std::string(reinterpret_cast<const char *>(&length), sizeof length) + header + data;
}

std::string safeTensorsError(const std::string &content)
{
    try {
        (void)readSafeTensors(bytesOf(content));
    } catch (const ReadError &error) {
        return error.what();
    }
    return {};
}

TEST(ReadersTensors, SafeTensorsHeaders)
{
    const std::string data(8, '\1');
    const auto tensors = readSafeTensors(bytesOf(safeTensors(
        R"({"__metadata__": {"format": "pt"}, "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
            "a": {"dtype": "U8", "shape": [2, 2], "data_offsets": [0, 4]}})",
        data)));
    ASSERT_EQ(tensors.size(), 2U);
    EXPECT_EQ(tensors[0].name, "a"); // in the order of the data
    EXPECT_EQ(tensors[1].tensor.scalar_type(), at::kFloat);
    for (
        const char *header : {
            R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})",                      // length
            R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})",                      // uncovered
            R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",                      // hole
            R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}})",                     // beyond
            R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})",                      // backwards
            R"({"a": {"dtype": "F8_E8M0", "shape": [8], "data_offsets": [0, 8]}})",                  // type
            R"({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})",                     // size
            R"({"a": {"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 8]}})", // overflow
            R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0]}})",
            R"({"a": {"shape": [2], "data_offsets": [0, 8]}})",
            R"(["a"])",
            R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}, "b": {"dtype": "U8", "shape": [5], "data_offsets": [3, 8]}})",
        })
        EXPECT_NE(safeTensorsError(safeTensors(header, data)), "") << header;
    const std::string good = safeTensors(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", data);
    ASSERT_EQ(safeTensorsError(good), "");
    for (std::size_t length = 0; length < good.size(); ++length)
        EXPECT_NE(safeTensorsError(good.substr(0, length)), "") << length;
}

// --- pickles --------------------------------------------------------------------------------------

std::string pickleError(const std::string &pickle)
{
    try {
        const PickleDocument document = unpickle(
            pickle, [](const std::string &) { return Payload{}; }, nullptr);
        (void)flattenLeaves(document.root(), nullptr);
        (void)namedTensors(document.root());
    } catch (const ReadError &error) {
        return error.what();
    }
    return {};
}

std::string bytes(std::initializer_list<int> values)
{
    std::string result;
    for (const int value : values)
        result += static_cast<char>(value);
    return result;
}

TEST(ReadersTensors, PickledLiterals)
{
    // [None, True, -2, 300, 2**40, 1.5, "hé"] of protocol 2
    const std::string pickle = bytes({0x80, 2,    ']', 'q', 0, '(', 'N', 0x88, 'J', 0xfe, 0xff, 0xff, 0xff, 'M', 0x2c,
                                      1,    0x8a, 6,   0,   0, 0,   0,   0,    1,   'G',  0x3f, 0xf8, 0,    0,   0,
                                      0,    0,    0,   'X', 3, 0,   0,   0,    'h', 0xc3, 0xa9, 'e',  '.'});
    const PickleDocument document = unpickle(
        pickle, [](const std::string &) { return Payload{}; }, nullptr);
    const auto &items = *document.root().items;
    ASSERT_EQ(items.size(), 7U);
    EXPECT_TRUE(toIValue(items[0]).isNone());
    EXPECT_EQ(toIValue(items[1]).toBool(), true);
    EXPECT_EQ(toIValue(items[2]).toInt(), -2);
    EXPECT_EQ(toIValue(items[3]).toInt(), 300);
    EXPECT_EQ(toIValue(items[4]).toInt(), 1LL << 40);
    EXPECT_EQ(toIValue(items[5]).toDouble(), 1.5);
    EXPECT_EQ(toIValue(items[6]).toStringRef(), "h\xc3\xa9");
}

TEST(ReadersTensors, HostilePickles)
{
    EXPECT_THAT(pickleError("\x80\x02"
                            "cposix\nsystem\n(X\x02\x00\x00\x00lstR."),
                HasSubstr("posix.system"));
    EXPECT_THAT(pickleError(bytes({0x80, 4, 0x8c, 2, 'o', 's', 0x8c, 6, 's', 'y', 's', 't', 'e', 'm', 0x93, '.'})),
                HasSubstr("os.system"));
    EXPECT_THAT(pickleError(bytes({0x80, 2, 'i', 'a', '\n', 'b', '\n', '.'})), HasSubstr("opcode")); // INST
    EXPECT_THAT(pickleError(bytes({0x80, 2, 'N', 'N', 'b', '.'})), HasSubstr("state of an object"));
    EXPECT_THAT(pickleError(bytes({0x80, 6, 'N', '.'})), HasSubstr("protocol 6"));
    EXPECT_THAT(pickleError(bytes({0x80, 2, 'h', 7, '.'})), HasSubstr("unknown memo"));
    EXPECT_THAT(pickleError(bytes({0x80, 2, 't', '.'})), HasSubstr("no mark"));
    EXPECT_THAT(pickleError(bytes({0x80, 2, '.'})), HasSubstr("empty stack"));
    EXPECT_THAT(pickleError(bytes({0x80, 2, '(', '.'})), HasSubstr("no object"));
    EXPECT_THAT(pickleError(bytes({0x80, 2, 'X', 0xff, 0xff, 0xff, 0xff, '.'})), HasSubstr("truncated"));
    EXPECT_THAT(pickleError(bytes({0x80, 2, 'N', 'N', 'a', '.'})), HasSubstr("no container"));
    EXPECT_THAT(pickleError(bytes({0x80, 2, '}', '(', 'N', 'u', '.'})), HasSubstr("a key without a value"));
    EXPECT_THAT(pickleError(bytes({0x80, 2, 0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, '.'})), HasSubstr("64 bits"));
    EXPECT_THAT(pickleError(bytes({0x80, 2, 'N', 'Q', '.'})), HasSubstr("persistent id"));
    // A list that holds itself, and lists that grow tenfold at each level: bounded where they are walked.
    EXPECT_THAT(pickleError(bytes({0x80, 2, ']', 'q', 0, 'h', 0, 'a', '.'})), HasSubstr("nested too deep"));
    std::string growing = bytes({0x80, 2, 'K', 1, 'q', 0});
    for (int level = 0; level < 12; ++level) {
        growing += '(';
        for (int i = 0; i < 10; ++i)
            growing += bytes({'h', level});
        growing += bytes({'t', 'q', level + 1});
    }
    EXPECT_THAT(pickleError(growing + "."), HasSubstr("too many"));
}

TEST(ReadersTensors, StoragesMustHaveTheDeclaredSize)
{
    const std::string good = readText(sample("weights/tensor.pt"));
    const TempFolder folder;
    for (const std::size_t size : {0U, 1U, 23U, 25U, 4000U}) {
        const std::string content(size, '\1');
        writeFile(folder.file("t.pt"), withMember(sample("weights/tensor.pt"), "data/0", &content));
        ReadControl control;
        EXPECT_THROW((void)readTensorFile(folder.file("t.pt"), control), ReadError) << size;
    }
    writeFile(folder.file("t.pt"), withMember(sample("weights/tensor.pt"), "data/0", nullptr));
    ReadControl control;
    EXPECT_THROW((void)readTensorFile(folder.file("t.pt"), control), ReadError);
    EXPECT_FALSE(good.empty());
}

} // namespace
} // namespace dblame::test

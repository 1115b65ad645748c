// SPDX-License-Identifier: GPL-3.0-or-later
//
// Damaged and hostile files: refused with the facts, or opened with the fault at its node; never a crash.
#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "readers_support.h"

namespace dblame::test
{
namespace
{

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

struct Refused {
    const char *file;
    std::vector<const char *> facts;
};

// What must be named, from the text that the samples' author asks for.
const std::vector<Refused> kRefused = {
    {"absolute_name", {"unsafe member name", "/tmp/evil.txt"}},
    {"aotinductor_package", {"compiled AOTInductor code", "without a graph", "torch.export.save"}},
    {"aotinductor_package_flat", {"compiled AOTInductor code", "2.5", "2.7", "without a graph"}},
    {"archive_format_unknown", {"archive_format pt3 is unknown"}},
    {"archive_version_1", {"archive_version 1 is newer", "(0)"}},
    {"backslash_name", {"unsafe member name", "m\\..\\evil.txt"}},
    {"big_endian", {"big-endian archive"}},
    {"cycle_self", {"node 0", "value linear is used before it is defined"}},
    {"cycle_two_nodes", {"node 0", "value add is used before it is defined"}},
    {"directory_offset_outside", {"directory lies outside the file"}},
    {"drive_name", {"unsafe member name", "C:/evil.txt"}},
    {"dtype_unknown", {"weight fc.weight", "unknown scalar type 99"}},
    {"duplicate_member", {"two members named m/models/model.json"}},
    {"empty", {"the file is empty"}},
    {"encrypted_member", {"member m/data/weights/weight_0 is encrypted"}},
    // Flat layouts are not opened at all yet: the message says what they are.
    {"flat_version_99", {"flat layout", "2.1", "2.7", "save it again"}},
    {"flat_without_weights", {"flat layout"}},
    {"inner_archive_truncated", {"flat layout"}},
    {"pickle_runs_code", {"flat layout"}},
    {"flipped_directory_byte", {"directory of the archive is damaged"}},
    {"flipped_json_byte", {"checksum of m/models/model.json does not match"}},
    {"flipped_weight_byte", {"checksum of m/data/weights/weight_0 does not match"}},
    {"graphs_nested", {"nested too deep"}},
    {"input_count_wrong", {"signature lists 2 inputs, the graph 3"}},
    {"input_spec_unknown", {"input 0", "kind mystery is unknown"}},
    {"input_union_empty", {"graph input 0 must have exactly one value"}},
    {"int_as_text", {"node 3", "as_int must be an integer"}},
    {"int_too_large", {"node 3", "as_int is outside the 64-bit range"}},
    {"json_duplicate_key", {"models/model.json", "key schema_version appears twice"}},
    {"json_empty", {"models/model.json", "not valid JSON"}},
    {"json_nested_20000", {"models/model.json", "nested too deep"}},
    {"json_not_utf8", {"models/model.json", "not valid UTF-8"}},
    {"json_truncated", {"models/model.json", "not valid JSON"}},
    {"layout_sparse", {"weight fc.weight is not a strided tensor"}},
    {"member_count_huge", {"directory of the archive is damaged", "more members than fit"}},
    {"member_size_huge", {"m/data/weights/weight_0", "4294967280 bytes", "the file is smaller"}},
    {"missing_model_json", {"models/model.json is missing"}},
    {"missing_weight_payload", {"data/weights/weight_0 is missing", "weight fc.weight"}},
    {"missing_weights_config", {"data/weights/model_weights_config.json is missing"}},
    {"nodes_not_a_list", {"nodes must be a list"}},
    {"not_zip", {"not a zip archive"}},
    {"offset_negative", {"weight fc.weight", "negative storage offset"}},
    {"offset_outside", {"weight fc.weight reaches outside its payload"}},
    {"output_count_wrong", {"node 5", "aten::mul.Tensor returns 1 value, the file names 2"}},
    {"output_undefined", {"output 0", "value nowhere is not defined"}},
    {"output_union_empty", {"node 3", "an output must have exactly one value"}},
    {"outputs_null", {"node 3", "outputs is missing"}},
    {"overlapping_members", {"local name and directory name differ", "m/data/weights/weight_9"}},
    {"path_name_traversal", {"unsafe path_name ../../weight_0"}},
    {"plain_zip", {"a zip, but no known model archive"}},
    {"schema_major_9", {"schema version 9.0 is newer", "8.x"}},
    {"size_negative", {"weight fc.weight", "negative size"}},
    {"size_symbolic", {"weight fc.weight", "sizes of stored tensors must be integers"}},
    {"sizes_huge", {"weight fc.weight reaches outside its payload of 64 bytes"}},
    {"sizes_overflow", {"weight fc.weight", "size overflows"}},
    {"state_dict_named", {"torch.save file", "weights only", "no graph"}},
    {"stride_negative", {"weight fc.weight", "negative stride"}},
    {"stride_outside", {"weight fc.weight reaches outside its payload"}},
    {"strides_wrong_length", {"weight fc.weight", "sizes and strides differ in length"}},
    {"symlink_member", {"member m/link is a symbolic link"}},
    {"target_not_text", {"node 0", "target must be text"}},
    {"torchscript_named", {"TorchScript archive", "not an exported program"}},
    {"traversal_name", {"unsafe member name", "m/../../evil.txt"}},
    {"truncated_100_bytes", {"truncated", "no end-of-directory record"}},
    {"truncated_half", {"truncated", "no end-of-directory record"}},
    {"truncated_last_byte", {"truncated", "end-of-directory record is cut"}},
    {"two_root_folders", {"more than one top folder", "not a known archive"}},
    {"undefined_value", {"node 8", "value nowhere is used before it is defined"}},
    {"union_no_keys", {"node 3", "an argument must have exactly one value"}},
    {"union_two_keys", {"node 3", "an argument must have exactly one value"}},
    {"unknown_compression", {"unknown compression (99)"}},
    {"value_defined_twice", {"node 5", "value view is defined twice"}},
    {"weight_not_listed", {"parameter fc.bias has no data in the file"}},
    {"zip_bomb", {"compressed member m/models/bomb.json", "60000000 bytes", "limit"}},
    {"zip_header_only", {"truncated", "no end-of-directory record"}},
};

std::string badFile(const std::string &name)
{
    return sample("bad/" + name + ".pt2");
}

TEST(ReadersBadFiles, AreRefusedWithTheFacts)
{
    for (const Refused &refused : kRefused) {
        SCOPED_TRACE(refused.file);
        const auto model = readModel(badFile(refused.file), {}, {});
        ASSERT_FALSE(model.has_value());
        EXPECT_EQ(model.error().code, ErrorCode::Unreadable);
        EXPECT_THAT(model.error().where, HasSubstr(std::string(refused.file) + ".pt2"));
        for (const char *fact : refused.facts)
            EXPECT_THAT(model.error().text(), HasSubstr(fact));
    }
}

// Every sample is in exactly one of the tests of this file, and each follows the samples' own expectation.
TEST(ReadersBadFiles, FollowTheirExpectations)
{
    const nlohmann::json expected = readJson(sample("bad/expected.json"));
    std::size_t refused = 0;
    for (const auto &[file, entry] : expected.items()) {
        SCOPED_TRACE(file);
        const bool opens = readModel(sample("bad/" + file), {}, {}).has_value();
        if (entry["load"].is_boolean()) {
            EXPECT_EQ(opens, entry["load"].get<bool>());
        }
        refused += opens ? 0 : 1;
    }
    EXPECT_EQ(refused, kRefused.size());
    EXPECT_GT(expected.size(), 90U);
}

struct Opened {
    const char *file;
    std::size_t node; // whose fault
    const char *fault;
};

TEST(ReadersBadFiles, FaultsThatConcernOneNodeStayThere)
{
    const std::vector<Opened> opened = {
        {"argument_kind_unknown", 3, "argument kind as_future is unknown"},
        {"weights_left_out", 0, "weight fc.weight holds no data: the model was saved without its weights"},
    };
    for (const Opened &file : opened) {
        SCOPED_TRACE(file.file);
        const auto model = readModel(badFile(file.file), {}, {});
        ASSERT_TRUE(model.has_value()) << model.error().text();
        ASSERT_EQ((*model)->nodeFaults().size(), (*model)->graph().nodes.size());
        for (std::size_t i = 0; i < (*model)->nodeFaults().size(); ++i)
            EXPECT_EQ((*model)->nodeFaults()[i], i == file.node ? file.fault : "") << i;
    }
    // Operators are looked up when the graph is compiled, not here: these open without a word.
    for (const char *file : {"argument_missing", "argument_unknown", "operator_unknown", "overload_unknown",
                             "shape_mismatch", "higher_order_unknown"})
        EXPECT_TRUE(readModel(badFile(file), {}, {}).has_value()) << file;
}

TEST(ReadersBadFiles, ObjectsThatNeedTheirLibraryAreNamed)
{
    const auto model = mustRead(badFile("custom_object_constant"));
    EXPECT_THAT(model->info().notes,
                Contains("constant obj is a custom object and cannot be read without its library"));
}

TEST(ReadersBadFiles, OddButSoundFilesOpenWithANote)
{
    EXPECT_TRUE(mustRead(badFile("load_deflated_json"))->info().notes.empty());
    EXPECT_TRUE(mustRead(badFile("load_without_byteorder"))->info().notes.empty());
    EXPECT_TRUE(mustRead(badFile("load_zip_comment"))->info().notes.empty());
    EXPECT_THAT(mustRead(badFile("load_newer_minor"))->info().notes,
                Contains(AllOf(HasSubstr("schema 8.99 is newer than 8.20"), HasSubstr("brand_new_field"),
                               HasSubstr("another_field"))));
    EXPECT_THAT(mustRead(badFile("load_unaligned"))->info().notes,
                Contains(HasSubstr("not aligned, so they are copied instead of mapped")));

    const auto badSamples = mustRead(badFile("load_sample_inputs_bad"));
    EXPECT_FALSE(badSamples->info().hasSampleInputs);
    EXPECT_THAT(badSamples->info().notes, Contains(HasSubstr("sample inputs cannot be read")));
    const auto none = mustRead(badFile("load_without_sample_inputs"));
    EXPECT_FALSE(none->info().hasSampleInputs);
    EXPECT_EQ(none->info().sampleInputsNote, "no sample inputs in the file");

    // All of them hold the same small program: the weights must be there whatever the packing.
    const auto plain = mustRead(badFile("load_zip_comment"));
    for (const char *file : {"load_deflated_json", "load_unaligned", "load_without_byteorder"}) {
        const auto model = mustRead(badFile(file));
        ASSERT_EQ(model->graph().nodes.size(), 9U);
        for (const GraphInput &input : model->graph().inputs)
            if (input.kind == InputKind::Parameter) {
                const ValueId same = plain->graph().find(model->graph().value(input.value).name);
                ASSERT_TRUE(same.valid()) << file << " " << input.target;
                EXPECT_EQ(sha256(model->tensor(input.value)), sha256(plain->tensor(same)))
                    << file << " " << input.target;
            }
    }
}

TEST(ReadersBadFiles, FilesThatAreNoModelSayWhatTheyAre)
{
    const std::vector<std::pair<const char *, const char *>> files = {
        {"weights/state_dict.pth", "torch.save file with weights only"},
        {"weights/state_dict_legacy.pth", "old format (before torch 1.6)"},
        {"weights/legacy_tar.pth", "tar checkpoint of torch before 0.1.10"},
        {"weights/plain_pickle.pkl", "plain Python pickle, which is never loaded"},
        {"weights/input_f4.npy", "NumPy arrays, not a model"},
        {"weights/inputs.npz", "NumPy arrays, not a model"},
        {"weights/weights.safetensors", "safetensors file"},
        {"weights/expected.json", "not a zip archive"},
    };
    for (const auto &[file, words] : files) {
        const auto model = readModel(sample(file), {}, {});
        ASSERT_FALSE(model.has_value()) << file;
        EXPECT_EQ(model.error().code, ErrorCode::Unreadable);
        EXPECT_THAT(model.error().message, HasSubstr(words)) << file;
    }
}

TEST(ReadersBadFiles, MissingFilesAndFolders)
{
    const auto missing = readModel(sample("nowhere.pt2"), {}, {});
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().code, ErrorCode::Unreadable);
    EXPECT_THAT(missing.error().message, HasSubstr("No such file"));
    const auto folder = readModel(sample("bad"), {}, {});
    ASSERT_FALSE(folder.has_value());
    EXPECT_THAT(folder.error().message, HasSubstr("is a folder"));
}

} // namespace
} // namespace dblame::test

// SPDX-License-Identifier: GPL-3.0-or-later
//
// From input files to batches that fit both programs.
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "readers_support.h"

namespace dblame::test
{
namespace
{

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<std::shared_ptr<const LoadedInputs>> load(const std::vector<std::string> &files, const LoadedModel &reference,
                                                 const LoadedModel &candidate, std::optional<std::uint64_t> random = {})
{
    InputRequest request;
    for (const std::string &file : files)
        request.files.push_back(file.starts_with("/") ? file : sample("inputs/" + file));
    request.random = random;
    return readInputs(request, reference, candidate, {});
}

Result<std::shared_ptr<const LoadedInputs>> load(const std::vector<std::string> &files, const LoadedModel &model,
                                                 std::optional<std::uint64_t> random = {})
{
    return load(files, model, model, random);
}

std::string errorOf(const Result<std::shared_ptr<const LoadedInputs>> &result)
{
    return result ? "" : result.error().text();
}

// First element of an input in a batch: the files count up from round numbers.
double first(const LoadedInputs &inputs, std::size_t batch, std::size_t slot)
{
    return inputs.m_batches.at(batch).at(slot).toTensor().flatten()[0].item<double>();
}

std::vector<double> firsts(const LoadedInputs &inputs, std::size_t slot)
{
    std::vector<double> values;
    for (std::size_t i = 0; i < inputs.m_batches.size(); ++i)
        values.push_back(first(inputs, i, slot));
    return values;
}

const std::vector<MadeInput> kTwo = {{"a", {2, 3}}, {"b", {2, 3}}};

TEST(ReadersInputs, OneBatchInEveryForm)
{
    const auto model = makeModel(kTwo);
    for (const std::vector<std::string> &files :
         {std::vector<std::string>{"two_tensors.pt"}, {"positional.npz"}, {"named.npz"}, {"a.npy", "b.npy"}}) {
        SCOPED_TRACE(files[0]);
        const auto inputs = load(files, *model);
        ASSERT_TRUE(inputs.has_value()) << errorOf(inputs);
        ASSERT_EQ((*inputs)->m_batches.size(), 1U);
        EXPECT_EQ(first(**inputs, 0, 0), 0.0);
        EXPECT_EQ(first(**inputs, 0, 1), 100.0);
        EXPECT_EQ((*inputs)->info().batches, 1);
        EXPECT_EQ((*inputs)->info().samples, 2);
        EXPECT_FALSE((*inputs)->info().random);
        // x[6] counts from 0, b from 100: the same elements, whatever the file
        EXPECT_EQ((*inputs)->info().sha256, load({"two_tensors.pt"}, *model).value()->info().sha256);
    }
    EXPECT_EQ(load({"a.npy", "b.npy"}, *model).value()->info().source, "a.npy, b.npy");
    EXPECT_THAT(load({"named.npz"}, *model).value()->info().notes, ElementsAre(HasSubstr("labels is no input")));
}

TEST(ReadersInputs, BatchesInEveryForm)
{
    const auto model = makeModel(kTwo);
    const auto lists = load({"batches.pt"}, *model);
    ASSERT_TRUE(lists.has_value()) << errorOf(lists);
    EXPECT_THAT(firsts(**lists, 0), ElementsAre(0, 200, 400));
    EXPECT_THAT(firsts(**lists, 1), ElementsAre(100, 300, 500));
    EXPECT_EQ((*lists)->info().samples, 6);
    const auto dicts = load({"dict_batches.pt"}, *model);
    ASSERT_TRUE(dicts.has_value()) << errorOf(dicts);
    EXPECT_THAT(firsts(**dicts, 0), ElementsAre(0, 200)); // by name, whatever the order in the dictionary
    EXPECT_THAT(firsts(**dicts, 1), ElementsAre(100, 300));
    const auto numbered = load({"batches.npz"}, *model);
    ASSERT_TRUE(numbered.has_value()) << errorOf(numbered);
    EXPECT_THAT(firsts(**numbered, 0), ElementsAre(0, 200, 400, 2000)); // b0, b1, b2, b10
    const auto several = load({"two_tensors.pt", "positional.npz", "dict_batches.pt"}, *model);
    ASSERT_TRUE(several.has_value()) << errorOf(several);
    EXPECT_EQ((*several)->info().batches, 4);
    EXPECT_EQ((*several)->info().source, "two_tensors.pt, positional.npz, dict_batches.pt");
    EXPECT_THAT(errorOf(load({"a.npy", "two_tensors.pt"}, *model)), HasSubstr("not both"));
}

TEST(ReadersInputs, AListOfTensorsIsBatchesForAModelWithOneInput)
{
    const auto model = makeModel({{"x", {2, 3}}});
    const auto inputs = load({"three_tensors.pt"}, *model);
    ASSERT_TRUE(inputs.has_value()) << errorOf(inputs);
    EXPECT_THAT(firsts(**inputs, 0), ElementsAre(0, 6, 12));
    EXPECT_THAT((*inputs)->info().notes, ElementsAre(HasSubstr("a list of 3 tensors, read as batches")));
    const auto renamed = load({"other_name.npz"}, *model);
    ASSERT_TRUE(renamed.has_value()) << errorOf(renamed);
    EXPECT_THAT((*renamed)->info().notes, ElementsAre("array images taken as input x"));
}

TEST(ReadersInputs, KeywordAndBakedArguments)
{
    const auto model = mustRead(sample("2.13.0/grad.pt2")); // forward(x, scale=4.0, bias)
    const auto inputs = load({"grad_args_kwargs.pt"}, *model);
    ASSERT_TRUE(inputs.has_value()) << errorOf(inputs);
    ASSERT_EQ((*inputs)->m_batches[0].size(), 2U); // the baked scale is left out
    EXPECT_EQ((*inputs)->m_batches[0][1].toTensor().dim(), 1);
    const auto own = load({}, *model);
    ASSERT_TRUE(own.has_value()) << errorOf(own);
    EXPECT_EQ((*own)->info().source, "sample inputs of grad.pt2");
    EXPECT_EQ((*own)->m_batches[0].size(), 2U);
}

TEST(ReadersInputs, NumbersWhereTheModelAsksForOne)
{
    const auto model = makeModel({{"a", {2, 3}}, {"n", {}, DType::Int64, true}});
    const auto arrays = load({"a.npy", "seven.npy"}, *model);
    ASSERT_TRUE(arrays.has_value()) << errorOf(arrays);
    ASSERT_TRUE((*arrays)->m_batches[0][1].isInt());
    EXPECT_EQ((*arrays)->m_batches[0][1].toInt(), 7);
    const auto pickled = load({"number.pt"}, *model);
    ASSERT_TRUE(pickled.has_value()) << errorOf(pickled);
    EXPECT_EQ((*pickled)->m_batches[0][1].toInt(), 7);
    EXPECT_THAT(errorOf(load({"two_tensors.pt"}, *model)), HasSubstr("input n: an array of shape [2, 3] given, the "
                                                                     "model takes a number"));
    // Where it asks for a 0-dimensional tensor it stays one.
    const auto tensor = makeModel({{"a", {2, 3}}, {"n", {}, DType::Int64}});
    const auto kept = load({"a.npy", "seven.npy"}, *tensor);
    ASSERT_TRUE(kept.has_value()) << errorOf(kept);
    EXPECT_TRUE((*kept)->m_batches[0][1].isTensor());
}

TEST(ReadersInputs, WhatDoesNotFitIsSaidWithNamesAndShapes)
{
    const auto model = makeModel(kTwo);
    EXPECT_THAT(errorOf(load({"missing_name.pt"}, *model)), HasSubstr("input b is not among the arrays (a); the model "
                                                                      "takes 2 inputs (a, b)"));
    EXPECT_THAT(errorOf(load({"a.npy"}, *model)),
                HasSubstr("1 array given, the model takes 2 inputs (a, b); give one per input"));
    EXPECT_THAT(errorOf(load({"three_tensors.pt"}, *model)), HasSubstr("batch 0 has 3 values"));
    EXPECT_THAT(errorOf(load({"empty_list.pt"}, *model)), HasSubstr("empty list"));
    EXPECT_THAT(errorOf(load({"double.pt"}, *model)),
                HasSubstr("input a: float64 values given, the reference takes float32"));
    EXPECT_THAT(errorOf(load({"nothing.pt"}, *model)), HasSubstr("No such file"));
    EXPECT_THAT(errorOf(load({"nothing.pt"}, *model)), HasSubstr("nothing.pt"));

    const auto wide = makeModel({{"a", {2, 4}}, {"b", {2, 3}}});
    EXPECT_THAT(errorOf(load({"two_tensors.pt"}, *wide)),
                HasSubstr("input a: shape [2, 3] given, the reference takes shape [2, 4]"));
    const auto ranked = makeModel({{"a", {2, 3, 1}}, {"b", {2, 3}}});
    EXPECT_THAT(errorOf(load({"two_tensors.pt"}, *ranked)), HasSubstr("takes shape [2, 3, 1]"));
    const auto result = load({"two_tensors.pt"}, *wide);
    EXPECT_EQ(result.error().code, ErrorCode::Unreadable);
}

TEST(ReadersInputs, SplitsToTheFixedFirstDimension)
{
    const auto model = makeModel({{"a", {1, 3}}, {"b", {1, 3}}});
    const auto inputs = load({"batches.pt"}, *model);
    ASSERT_TRUE(inputs.has_value()) << errorOf(inputs);
    EXPECT_THAT(firsts(**inputs, 0), ElementsAre(0, 3, 200, 203, 400, 403));
    EXPECT_THAT(firsts(**inputs, 1), ElementsAre(100, 103, 300, 303, 500, 503));
    EXPECT_THAT((*inputs)->info().notes,
                ElementsAre("6 samples in 3 batches split into 6 batches of 1, the size that the programs fix"));
    EXPECT_EQ((*inputs)->info().samples, 6);
    // The same elements in the same order for one input; interleaved by batch for two.
    const auto whole = load({"three_tensors.pt"}, *makeModel({{"x", {2, 3}}}));
    const auto split = load({"three_tensors.pt"}, *makeModel({{"x", {1, 3}}}));
    EXPECT_EQ((*whole)->info().sha256, (*split)->info().sha256);
}

TEST(ReadersInputs, JoinsToTheFixedFirstDimension)
{
    const auto model = makeModel({{"a", {4, 3}}, {"b", {4, 3}}});
    const auto inputs = load({"batches.pt"}, *model);
    ASSERT_TRUE(inputs.has_value()) << errorOf(inputs);
    ASSERT_EQ((*inputs)->m_batches.size(), 1U);
    const at::Tensor a = (*inputs)->m_batches[0][0].toTensor();
    EXPECT_EQ(a.sizes().vec(), (std::vector<std::int64_t>{4, 3}));
    EXPECT_EQ(a[2][0].item<double>(), 200.0);
    EXPECT_THAT(
        (*inputs)->info().notes,
        ElementsAre("6 samples in 3 batches joined and split into 1 batch of 4, the size that the programs fix; "
                    "the last 2 samples are left over and not used"));
    EXPECT_THAT(errorOf(load({"two_tensors.pt"}, *model)), HasSubstr("batches of 4, the inputs have only 2 samples"));
    const auto five = load({"batches.pt"}, *makeModel({{"a", {3, 3}}, {"b", {3, 3}}}));
    ASSERT_TRUE(five.has_value()) << errorOf(five);
    EXPECT_EQ((*five)->m_batches.size(), 2U);
    EXPECT_EQ((*five)->m_batches[1][0].toTensor()[1][0].item<double>(), 400.0);
}

TEST(ReadersInputs, InputsWithoutSamplesAreRepeated)
{
    // b is a table of 2 rows whatever the batch
    const auto model = makeModel({{"a", {1, 3}}, {"b", {2, 3}}});
    const auto inputs = load({"two_tensors.pt"}, *model);
    ASSERT_TRUE(inputs.has_value()) << errorOf(inputs);
    EXPECT_THAT(firsts(**inputs, 0), ElementsAre(0, 3));
    EXPECT_THAT(firsts(**inputs, 1), ElementsAre(100, 100));
    const auto four = makeModel({{"a", {4, 3}}, {"b", {2, 3}}});
    EXPECT_THAT(errorOf(load({"batches.pt"}, *four)), HasSubstr("input b differs between them"));
}

TEST(ReadersInputs, DynamicQuantizersForbidIt)
{
    const auto reference = makeModel({{"x", {1, 3}}});
    const auto candidate = makeModel({{"x", {1, 3}}});
    addNode(*candidate, "quantized_decomposed.choose_qparams.tensor");
    EXPECT_THAT(errorOf(load({"three_tensors.pt"}, *reference, *candidate)),
                HasSubstr("the candidate quantizes dynamically per tensor"));
    const auto perToken = makeModel({{"x", {1, 3}}});
    addNode(*perToken, "quantized_decomposed.choose_qparams_per_token_asymmetric.default");
    EXPECT_TRUE(load({"three_tensors.pt"}, *reference, *perToken).has_value());
    const auto fitting = makeModel({{"x", {2, 3}}});
    addNode(*fitting, "quantized_decomposed.choose_qparams.tensor");
    EXPECT_TRUE(load({"three_tensors.pt"}, *fitting, *fitting).has_value());
}

TEST(ReadersInputs, OneSideFixesTheSize)
{
    const auto dynamic = makeModel({{"x", {-2, 3}}});
    const auto fixed = makeModel({{"x", {1, 3}}});
    for (const auto &[reference, candidate] : {std::pair{dynamic, fixed}, {fixed, dynamic}}) {
        const auto inputs = load({"three_tensors.pt"}, *reference, *candidate);
        ASSERT_TRUE(inputs.has_value()) << errorOf(inputs);
        EXPECT_EQ((*inputs)->info().batches, 6);
    }
    EXPECT_EQ(load({"three_tensors.pt"}, *dynamic).value()->info().batches, 3);
}

TEST(ReadersInputs, ProgramsThatTakeDifferentInputs)
{
    const auto one = makeModel({{"x", {2, 3}}});
    const auto check = [&](const LoadedModel &candidate, const char *words) {
        const auto result = load({"three_tensors.pt"}, *one, candidate);
        ASSERT_FALSE(result.has_value());
        EXPECT_EQ(result.error().code, ErrorCode::Incomparable);
        EXPECT_THAT(result.error().message, HasSubstr(words));
    };
    check(*makeModel(kTwo), "the reference takes 1 inputs (x), the candidate 2 (a, b)");
    check(*makeModel({{"x", {4, 3}}}), "the reference takes float32 [2, 3], the candidate float32 [4, 3]");
    check(*makeModel({{"x", {2, 3}, DType::Int64}}), "the candidate int64 [2, 3]");
    check(*makeModel({{"x", {}, DType::Int64, true}}), "a number in the other");
}

TEST(ReadersInputs, SymbolicSizesHaveARangeAndOneValue)
{
    const auto model = mustRead(sample("2.13.0/dynamic.pt2")); // x: [s77 = 4..64, 6]
    EXPECT_THAT(errorOf(load({"three_tensors.pt"}, *model)), HasSubstr("takes shape [s77, 6]"));
    const auto ranged = makeModel({{"a", {-2, 3}}, {"b", {-2, 3}}});
    ranged->m_symbolRanges["s0"] = {3, 64};
    EXPECT_THAT(errorOf(load({"two_tensors.pt"}, *ranged)),
                HasSubstr("input a: shape [2, 3] given, the reference takes shape [s0, 3] with s0 from 3 to 64"));
    ranged->m_symbolRanges["s0"] = {1, 64};
    EXPECT_TRUE(load({"two_tensors.pt"}, *ranged).has_value());
    const auto square = makeModel({{"a", {-2, -2}}, {"b", {2, 3}}});
    square->m_symbolRanges["s0"] = {1, 64};
    EXPECT_THAT(errorOf(load({"two_tensors.pt"}, *square)), HasSubstr("s0 = 2 as in the inputs before it"));
}

TEST(ReadersInputs, RandomInputsOnlyOnRequestAndWithAWarning)
{
    const auto model = makeModel({{"x", {64, 33}}, {"ids", {16}, DType::Int64}, {"h", {4}, DType::Float16}});
    const auto none = load({}, *model);
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code, ErrorCode::Usage);
    EXPECT_THAT(none.error().message, HasSubstr("--inputs FILE"));
    EXPECT_THAT(none.error().message, HasSubstr("--random SEED"));

    const auto random = load({}, *model, 7);
    ASSERT_TRUE(random.has_value()) << errorOf(random);
    EXPECT_TRUE((*random)->info().random);
    EXPECT_EQ((*random)->info().source, "random, seed 7");
    EXPECT_THAT((*random)->info().notes, Contains(HasSubstr("rank layers differently from real data")));
    const at::Tensor x = (*random)->m_batches[0][0].toTensor();
    EXPECT_EQ(x.scalar_type(), at::kFloat);
    EXPECT_LT(std::fabs(x.mean().item<double>()), 0.1);
    EXPECT_NEAR(x.std().item<double>(), 1.0, 0.1);
    const at::Tensor ids = (*random)->m_batches[0][1].toTensor();
    EXPECT_EQ(ids.min().item<std::int64_t>(), 0);
    EXPECT_EQ(ids.max().item<std::int64_t>(), 1);
    EXPECT_EQ((*random)->m_batches[0][2].toTensor().scalar_type(), at::kHalf);
    EXPECT_EQ((*random)->info().sha256, load({}, *model, 7).value()->info().sha256);
    EXPECT_NE((*random)->info().sha256, load({}, *model, 8).value()->info().sha256);

    const auto own = load({}, *mustRead(sample("2.13.0/toy.pt2")), 7);
    ASSERT_TRUE(own.has_value()) << errorOf(own);
    EXPECT_FALSE((*own)->info().random);
    EXPECT_EQ((*own)->info().source, "sample inputs of toy.pt2");
    EXPECT_THAT((*own)->info().notes, Contains(HasSubstr("--random is ignored")));

    const auto unknown = makeModel({{"x", {2, 3}}});
    unknown->m_graph.values[0].meta->sizes[0] = {-1, "s0"};
    EXPECT_THAT(errorOf(load({}, *unknown, 1)), HasSubstr("does not say how large s0 was"));
}

TEST(ReadersInputs, TheHashIsOverTheElementsInOrder)
{
    const auto inputs = load({"a.npy"}, *makeModel({{"x", {2, 3}}}));
    ASSERT_TRUE(inputs.has_value()) << errorOf(inputs);
    std::string elements;
    for (int i = 0; i < 6; ++i) {
        const auto value = static_cast<float>(i);
        elements.append(reinterpret_cast<const char *>(&value), sizeof value);
    }
    EXPECT_EQ((*inputs)->info().sha256, sha256(elements));
}

TEST(ReadersInputs, AStopTokenIsObeyed)
{
    std::stop_source stop;
    stop.request_stop();
    InputRequest request;
    request.files = {sample("inputs/batches.npz")};
    const auto model = makeModel(kTwo);
    const auto inputs = readInputs(request, *model, *model, stop.get_token());
    ASSERT_FALSE(inputs.has_value());
    EXPECT_EQ(inputs.error().code, ErrorCode::Cancelled);
}

// float32 in C order.
std::string npy(const std::vector<float> &elements, const std::string &shape)
{
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
    while ((10 + header.size() + 1) % 64 != 0)
        header += ' ';
    header += '\n';
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(header.size() % 256);
    text += static_cast<char>(header.size() / 256);
    text += header;
    return text.append(reinterpret_cast<const char *>(elements.data()), 4 * elements.size());
}

// Saved from a generator, so nothing but the values tells.
TEST(ReadersInputs, NumbersThatLookRandomAreSaidWithTheReason)
{
    const auto model = makeModel({{"x", {4, 8, 32}}});
    const std::string path = testing::TempDir() + "dblame_look_" + std::to_string(getpid()) + ".npy";
    std::mt19937 engine(5);
    std::vector<float> elements(4 * 8 * 32);
    const auto notes = [&](const std::function<float(std::size_t)> &next) {
        for (std::size_t i = 0; i < elements.size(); ++i)
            elements[i] = next(i);
        writeFile(path, npy(elements, "4, 8, 32"));
        const auto inputs = load({path}, *model);
        EXPECT_TRUE(inputs.has_value()) << errorOf(inputs);
        return inputs ? (*inputs)->info().notes : std::vector<std::string>{};
    };
    std::normal_distribution<float> normal;
    EXPECT_THAT(notes([&](std::size_t) { return normal(engine); }),
                ElementsAre(AllOf(HasSubstr("the inputs look random: x holds standard normal numbers (mean "),
                                  HasSubstr("1024 elements"))));
    std::uniform_real_distribution<float> uniform(0, 1);
    EXPECT_THAT(notes([&](std::size_t) { return uniform(engine); }), ElementsAre(HasSubstr("uniform numbers in 0..1")));
    EXPECT_THAT(notes([](std::size_t i) { return std::sin(0.2F * static_cast<float>(i)); }), IsEmpty());
    std::filesystem::remove(path);
}

} // namespace
} // namespace dblame::test

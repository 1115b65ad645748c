// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/readers/json_text.h"

namespace dblame::test
{
namespace
{

using ::testing::HasSubstr;

std::string refusal(const std::string &text)
{
    try {
        (void)parseJson(text, "doc");
    } catch (const ReadError &error) {
        EXPECT_EQ(error.member(), "doc");
        return error.what();
    }
    return {};
}

TEST(ReadersJson, BareNonFiniteNumbersAreAccepted)
{
    const Json json =
        parseJson(R"({"a": NaN, "b": [Infinity, -Infinity], "c": "NaN \" Infinity", "d": "-Infinity"})", "doc");
    EXPECT_TRUE(std::isnan(asFloat(json["a"], "a")));
    EXPECT_EQ(asFloat(json["b"][0], "b"), HUGE_VAL);
    EXPECT_EQ(asFloat(json["b"][1], "b"), -HUGE_VAL);
    EXPECT_EQ(json["c"].get<std::string>(), "NaN \" Infinity");
    EXPECT_EQ(asFloat(json["d"], "d"), -HUGE_VAL);
    EXPECT_THROW((void)asFloat(json["c"], "c"), ReadError);
}

TEST(ReadersJson, NullMembersAreAbsentAndNullElementsStay)
{
    const Json json = parseJson(R"({"a": null, "b": {"as_none": null, "as_int": 3}, "c": [null, 1], "d": 2})", "doc");
    EXPECT_EQ(json.size(), 3U);
    EXPECT_EQ(asUnion(json["b"], "b").tag, "as_int");
    EXPECT_EQ(json["c"].size(), 2U);
    EXPECT_EQ(json["d"], 2);
}

TEST(ReadersJson, RefusesWhatIsNotJson)
{
    for (const char *text :
         {"", "{", "[1,]", "{\"a\" 1}", "[1] 2", "{'a': 1}", "[01]", "nul", "[1e999]", "\"\\ud800\""})
        EXPECT_THAT(refusal(text), HasSubstr("not valid JSON")) << text;
    EXPECT_THAT(refusal(R"({"a": 1, "a": 1})"), HasSubstr("key a appears twice"));
    EXPECT_THAT(refusal(R"({"a": null, "b": {"c": 1, "c": 2}})"), HasSubstr("key c appears twice"));
}

TEST(ReadersJson, RefusesWhatIsNotUtf8)
{
    for (const char *text :
         {"\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "\x80"})
        EXPECT_THAT(refusal(text), HasSubstr("not valid UTF-8")) << text;
    EXPECT_EQ(parseJson("\"\xe2\x82\xac \xf0\x9f\x98\x80\"", "doc").get<std::string>(),
              "\xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(ReadersJson, DepthIsBounded)
{
    const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
    EXPECT_EQ(refusal(nested(512)), "");
    EXPECT_THAT(refusal(nested(513)), HasSubstr("nested too deep"));
    EXPECT_THAT(refusal(std::string(5'000'000, '[')), HasSubstr("nested too deep"));
    EXPECT_EQ(refusal("\"" + std::string(1000, '[') + "\""), ""); // in a string it is no nesting
}

TEST(ReadersJson, IntegersHave64Bits)
{
    const Json json =
        parseJson("[9223372036854775807, -9223372036854775808, 9223372036854775808, -9223372036854775809, "
                  "1e30, 1.5, true, \"1\"]",
                  "doc");
    EXPECT_EQ(asInt(json[0], "n"), INT64_MAX);
    EXPECT_EQ(asInt(json[1], "n"), INT64_MIN);
    const auto text = [&](std::size_t i) {
        try {
            (void)asInt(json[i], "n");
        } catch (const ReadError &error) {
            return std::string(error.what());
        }
        return std::string();
    };
    for (const std::size_t i : {2U, 3U, 4U})
        EXPECT_EQ(text(i), "n is outside the 64-bit range") << i;
    for (const std::size_t i : {5U, 6U, 7U})
        EXPECT_EQ(text(i), "n must be an integer") << i;
}

TEST(ReadersJson, FieldsSayWhatIsWrong)
{
    const Json json = parseJson(R"({"list": [], "text": "t", "flag": true})", "doc");
    const auto text = [](const auto &take) {
        try {
            (void)take();
        } catch (const ReadError &error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(text([&] { return field(json, "none"); }), "none is missing");
    EXPECT_EQ(text([&] { return listField(json, "text"); }), "text must be a list");
    EXPECT_EQ(text([&] { return objectField(json, "list"); }), "list must be an object");
    EXPECT_EQ(text([&] { return textField(json, "flag"); }), "flag must be text");
    EXPECT_EQ(text([&] { return asBool(json["text"], "flag"); }), "flag must be true or false");
    EXPECT_EQ(text([&] { return asUnion(json, "it").tag; }), "it must have exactly one value");
    EXPECT_EQ(text([&] { return asUnion(Json::object(), "it").tag; }), "it must have exactly one value");
    EXPECT_EQ(text([&] { return field(json["list"], "x"); }), "x is missing");
    EXPECT_EQ(optionalField(json, "none"), nullptr);
}

TEST(ReadersJson, AStopTokenEndsTheParsing)
{
    std::stop_source stop;
    stop.request_stop();
    const ReadControl control({}, stop.get_token());
    std::string text = "[0";
    for (int i = 0; i < 10'000; ++i)
        text += ",0";
    EXPECT_THROW((void)parseJson(text + "]", "doc", &control), ReadCancelled);
}

} // namespace
} // namespace dblame::test

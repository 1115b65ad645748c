// SPDX-License-Identifier: GPL-3.0-or-later
//
// JSON as exported programs hold it, from files that nobody has checked: strict, bounded, and taken apart
// only through functions that name what is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/readers/read_control.h"

namespace dblame
{

using Json = nlohmann::json;

// Parses `text`; `member` is what messages call it. Accepts bare NaN, Infinity and -Infinity (as the strings
// "NaN", ...) and drops null members of objects (absent optional fields; unused union members of old writers).
// Throws ReadError: not UTF-8, nested deeper than 512, over 1 GiB, a key twice, not JSON.
[[nodiscard]] Json parseJson(std::string_view text, const std::string &member, const ReadControl *control = nullptr);

// --- taking documents apart: all throw ReadError with the field's name ---------------------------

[[nodiscard]] const Json &field(const Json &object, const char *name);            // "<name> is missing"
[[nodiscard]] const Json *optionalField(const Json &object, const char *name);    // nullptr when absent
[[nodiscard]] const Json &listField(const Json &object, const char *name);        // "<name> must be a list"
[[nodiscard]] const Json &objectField(const Json &object, const char *name);      // "<name> must be an object"
[[nodiscard]] const std::string &textField(const Json &object, const char *name); // "<name> must be text"

[[nodiscard]] const Json &asList(const Json &value, const std::string &what);
[[nodiscard]] const Json &asObject(const Json &value, const std::string &what);
[[nodiscard]] const std::string &asText(const Json &value, const std::string &what);
[[nodiscard]] std::int64_t asInt(const Json &value, const std::string &what); // "... is outside the 64-bit range"
[[nodiscard]] bool asBool(const Json &value, const std::string &what);
[[nodiscard]] double asFloat(const Json &value, const std::string &what); // numbers and "NaN", "Infinity", "-Infinity"

// The single member of a union: "<what> must have exactly one value".
struct UnionMember {
    const std::string &tag;
    const Json &value;
};
[[nodiscard]] UnionMember asUnion(const Json &value, const std::string &what);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/json_text.h"

#include <cmath>
#include <limits>
#include <vector>

namespace dblame
{

namespace
{

constexpr std::size_t kMaxDepth = 512;
constexpr std::size_t kMaxBytes = std::size_t{1} << 30U;

// Length of the UTF-8 sequence at `text`, 0 when it is none (overlong and surrogate forms included).
std::size_t utf8Length(std::string_view text)
{
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto tail = [&](std::size_t i) { return i < text.size() && (at(i) & 0xC0U) == 0x80U; };
    const unsigned char c = at(0);
    if (c < 0x80)
        return 1;
    if (c >= 0xC2 && c <= 0xDF)
        return tail(1) ? 2 : 0;
    if (c >= 0xE0 && c <= 0xEF) {
        if (!tail(1) || !tail(2) || (c == 0xE0 && at(1) < 0xA0) || (c == 0xED && at(1) > 0x9F))
            return 0;
        return 3;
    }
    if (c >= 0xF0 && c <= 0xF4) {
        if (!tail(1) || !tail(2) || !tail(3) || (c == 0xF0 && at(1) < 0x90) || (c == 0xF4 && at(1) > 0x8F))
            return 0;
        return 4;
    }
    return 0;
}

// One pass before parsing: UTF-8, depth, and the places of bare NaN and Infinity outside strings.
struct Scan {
    struct Bare {
        std::size_t begin, end;
    };
    std::vector<Bare> bare;
    bool utf8 = true;
    bool tooDeep = false;
};

Scan scan(std::string_view text)
{
    Scan result;
    std::size_t depth = 0;
    bool inString = false;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (static_cast<unsigned char>(c) >= 0x80) {
            const std::size_t length = utf8Length(text.substr(i));
            if (length == 0) {
                result.utf8 = false;
                return result;
            }
            i += length;
            continue;
        }
        if (inString) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                inString = false;
        } else if (c == '"') {
            inString = true;
        } else if (c == '[' || c == '{') {
            if (++depth > kMaxDepth) {
                result.tooDeep = true;
                return result;
            }
        } else if (c == ']' || c == '}') {
            depth -= depth > 0 ? 1 : 0;
        } else if (c == 'N' || c == 'I') {
            const std::string_view word = c == 'N' ? "NaN" : "Infinity";
            if (text.substr(i).starts_with(word)) {
                const std::size_t begin = c == 'I' && i > 0 && text[i - 1] == '-' ? i - 1 : i;
                result.bare.push_back({begin, i + word.size()});
                i += word.size();
                continue;
            }
        }
        ++i;
    }
    return result;
}

std::string quoteBare(std::string_view text, const std::vector<Scan::Bare> &places)
{
    std::string quoted;
    quoted.reserve(text.size() + 2 * places.size());
    std::size_t from = 0;
    for (const auto &place : places) {
        quoted.append(text.substr(from, place.begin - from));
        quoted += '"';
        quoted.append(text.substr(place.begin, place.end - place.begin));
        quoted += '"';
        from = place.end;
    }
    quoted.append(text.substr(from));
    return quoted;
}

// Builds the document without recursion; nlohmann's own builder silently keeps the last of two equal keys.
class Builder
{
public:
    Builder(const std::string &member, const ReadControl *control) : m_member(member), m_control(control) {}
    [[nodiscard]] Json take() { return std::move(m_root); }
    [[nodiscard]] bool done() const { return m_stack.empty() && m_started; }

    bool null() { return m_stack.empty() || m_stack.back()->is_array() ? put(nullptr) : dropKey(); }
    bool boolean(bool value) { return put(value); }
    bool number_integer(Json::number_integer_t value) { return put(value); }
    bool number_unsigned(Json::number_unsigned_t value) { return put(value); }
    bool number_float(Json::number_float_t value, const std::string & /*text*/) { return put(value); }
    bool string(std::string &value) { return put(std::move(value)); }
    bool binary(Json::binary_t & /*value*/) { return false; }
    bool start_object(std::size_t /*size*/) { return open(Json::object()); }
    bool end_object() { return close(); }
    bool start_array(std::size_t /*size*/) { return open(Json::array()); }
    bool end_array() { return close(); }
    bool key(std::string &name)
    {
        const auto [it, isNew] = m_stack.back()->get_ref<Json::object_t &>().emplace(name, nullptr);
        if (!isNew)
            throw ReadError("key " + name + " appears twice", m_member);
        m_slot = &it->second;
        m_key = name;
        return true;
    }
    bool parse_error(std::size_t position, const std::string & /*token*/, const nlohmann::detail::exception & /*e*/)
    {
        throw ReadError("not valid JSON (at byte " + std::to_string(position) + ")", m_member);
    }

private:
    bool put(Json value)
    {
        place(std::move(value));
        return true;
    }
    bool open(Json value)
    {
        m_stack.push_back(place(std::move(value)));
        return true;
    }
    bool close()
    {
        m_stack.pop_back();
        return true;
    }
    bool dropKey()
    {
        m_stack.back()->erase(m_key);
        return true;
    }
    Json *place(Json value)
    {
        constexpr std::size_t kBetweenChecks = 4096;
        if (m_control != nullptr && ++m_count % kBetweenChecks == 0)
            m_control->check();
        m_started = true;
        if (m_stack.empty()) {
            m_root = std::move(value);
            return &m_root;
        }
        Json &top = *m_stack.back();
        if (top.is_array()) {
            top.push_back(std::move(value));
            return &top.back();
        }
        *m_slot = std::move(value);
        return m_slot;
    }

    const std::string &m_member;
    const ReadControl *m_control;
    Json m_root;
    std::vector<Json *> m_stack;
    Json *m_slot = nullptr;
    std::string m_key;
    std::size_t m_count = 0;
    bool m_started = false;
};

} // namespace

Json parseJson(std::string_view text, const std::string &member, const ReadControl *control)
{
    if (text.size() > kMaxBytes)
        throw ReadError("larger than 1 GiB", member);
    const Scan found = scan(text);
    if (!found.utf8)
        throw ReadError("not valid UTF-8", member);
    if (found.tooDeep)
        throw ReadError("nested too deep (more than " + std::to_string(kMaxDepth) + " levels)", member);
    std::string quoted;
    if (!found.bare.empty()) {
        quoted = quoteBare(text, found.bare);
        text = quoted;
    }
    Builder builder(member, control);
    if (!Json::sax_parse(text.begin(), text.end(), &builder) || !builder.done())
        throw ReadError("not valid JSON", member);
    return builder.take();
}

const Json *optionalField(const Json &object, const char *name)
{
    if (!object.is_object())
        return nullptr;
    const auto it = object.find(name);
    return it == object.end() ? nullptr : &*it;
}

const Json &field(const Json &object, const char *name)
{
    const Json *found = optionalField(object, name);
    if (found == nullptr)
        throw ReadError(std::string(name) + " is missing");
    return *found;
}

const Json &listField(const Json &object, const char *name)
{
    return asList(field(object, name), name);
}

const Json &objectField(const Json &object, const char *name)
{
    return asObject(field(object, name), name);
}

const std::string &textField(const Json &object, const char *name)
{
    return asText(field(object, name), name);
}

const Json &asList(const Json &value, const std::string &what)
{
    if (!value.is_array())
        throw ReadError(what + " must be a list");
    return value;
}

const Json &asObject(const Json &value, const std::string &what)
{
    if (!value.is_object())
        throw ReadError(what + " must be an object");
    return value;
}

const std::string &asText(const Json &value, const std::string &what)
{
    if (!value.is_string())
        throw ReadError(what + " must be text");
    return value.get_ref<const std::string &>();
}

std::int64_t asInt(const Json &value, const std::string &what)
{
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    constexpr double kOutside = 9.2e18;
    if (value.is_number_unsigned()) {
        const auto number = value.get<std::uint64_t>();
        if (number <= kMax)
            return static_cast<std::int64_t>(number);
    } else if (value.is_number_integer()) {
        return value.get<std::int64_t>();
    } else if (!value.is_number_float() || std::fabs(value.get<double>()) < kOutside) {
        throw ReadError(what + " must be an integer");
    }
    // The parser gives integers beyond 64 bits as doubles.
    throw ReadError(what + " is outside the 64-bit range");
}

bool asBool(const Json &value, const std::string &what)
{
    if (!value.is_boolean())
        throw ReadError(what + " must be true or false");
    return value.get<bool>();
}

double asFloat(const Json &value, const std::string &what)
{
    if (value.is_number())
        return value.get<double>();
    if (value.is_string()) {
        const auto &text = value.get_ref<const std::string &>();
        if (text == "NaN")
            return std::numeric_limits<double>::quiet_NaN();
        if (text == "Infinity")
            return std::numeric_limits<double>::infinity();
        if (text == "-Infinity")
            return -std::numeric_limits<double>::infinity();
    }
    throw ReadError(what + " must be a number");
}

UnionMember asUnion(const Json &value, const std::string &what)
{
    if (!value.is_object() || value.size() != 1)
        throw ReadError(what + " must have exactly one value");
    const auto it = value.begin();
    return {it.key(), it.value()};
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/config_reader.h"

#include <cmath>

#include "core/selector_pattern.h"

namespace dblame
{

namespace
{

std::string listed(const Names &names)
{
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + std::string(names[i]);
    return text;
}

std::string suggestion(const std::string &key, const Names &known)
{
    const auto near = nearest(key, {known.begin(), known.end()}, 1);
    return "it takes " + listed(known) + (near.empty() ? "" : "; nearest: " + near.front());
}

} // namespace

void ConfigReader::refuse(int line, const std::string &message)
{
    if (!m_error)
        m_error = Error{ErrorCode::Unreadable, place(line), message, {}};
}

void ConfigReader::note(int line, const std::string &message)
{
    m_notes.push_back(place(line) + ": " + message);
}

const YamlNode &ConfigReader::mapping(const YamlNode &node, const std::string &what, const Names &known)
{
    static const YamlNode kEmpty;
    if (!node.isMap()) {
        refuse(node.line, what + " must be a mapping, not " + node.words());
        return kEmpty;
    }
    for (const auto &[key, value] : node.map) {
        const bool isKnown = known.empty() || std::find(known.begin(), known.end(), key.scalar) != known.end();
        if (!isKnown)
            refuse(key.line, "unknown key " + key.words() + " in " + what + "; " + suggestion(key.scalar, known));
    }
    return node;
}

const YamlNode &ConfigReader::looseMapping(const YamlNode &node, const std::string &what, const Names &known)
{
    const YamlNode &map = mapping(node, what, {});
    for (const auto &[key, value] : map.map)
        if (std::find(known.begin(), known.end(), key.scalar) == known.end())
            note(key.line,
                 "unknown key " + key.words() + " in " + what + " is ignored; " + suggestion(key.scalar, known));
    return map;
}

std::string ConfigReader::textKey(const YamlNode &key, const std::string &what)
{
    if (auto text = key.text())
        return *text;
    refuse(key.line,
           "a key of " + what + " must be text, not " + key.words() + "; write it in quotes: \"" + key.scalar + "\"");
    return {};
}

std::int64_t ConfigReader::integer(const YamlNode &node, const std::string &what, std::int64_t lowest)
{
    auto value = node.integer();
    if (!value && node.quoted) { // pydantic reads numbers out of text
        YamlNode plain = node;
        plain.quoted = false;
        value = plain.integer();
    }
    if (!value)
        if (const auto number = node.number(); number && std::abs(*number) < 1e15 && *number == std::trunc(*number))
            value = static_cast<std::int64_t>(*number);
    if (!value || *value < lowest) {
        refuse(node.line, what + " must be a whole number" +
                              (lowest > INT64_MIN ? " of at least " + std::to_string(lowest) : "") + ", not " +
                              node.words());
        return lowest > INT64_MIN ? lowest : 0;
    }
    return *value;
}

bool ConfigReader::flag(const YamlNode &node, const std::string &what)
{
    if (const auto value = node.flag())
        return *value;
    if (const auto number = node.integer(); number && (*number == 0 || *number == 1))
        return *number == 1;
    refuse(node.line, what + " must be true or false, not " + node.words());
    return false;
}

double ConfigReader::number(const YamlNode &node, const std::string &what)
{
    if (const auto value = node.number())
        return *value;
    refuse(node.line, what + " must be a number, not " + node.words() +
                          (node.quoted ? std::string() : "; write 1.0e-04 rather than 1e-4"));
    return 0.0;
}

std::size_t ConfigReader::word(const YamlNode &node, const std::string &what, const Names &words)
{
    const auto it =
        node.kind == YamlNode::Kind::Scalar ? std::find(words.begin(), words.end(), node.scalar) : words.end();
    if (it != words.end())
        return static_cast<std::size_t>(it - words.begin());
    refuse(node.line,
           what + " must be " + (words.size() == 1 ? "" : "one of ") + listed(words) + ", not " + node.words());
    return 0;
}

void ConfigReader::pattern(const YamlNode &key, const std::string &what)
{
    if (auto compiled = compilePattern(key.scalar); !compiled)
        refuse(key.line, "the key " + key.words() + " of " + what + ": " + compiled.error().message);
}

std::string ConfigReader::place(int line) const
{
    return line > 0 ? m_fileName + ":" + std::to_string(line) : m_fileName;
}

} // namespace dblame

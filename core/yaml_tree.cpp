// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/yaml_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <yaml-cpp/yaml.h>

#include "core/number_text.h"

namespace dblame
{

namespace
{

constexpr std::size_t kMostNodes = 200'000; // aliases multiply: a small file can stand for a huge tree
constexpr int kDeepest = 64;

bool isNullWord(const std::string &word)
{
    return word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL";
}

std::optional<bool> flagOf(const std::string &word)
{
    static constexpr std::array kTrue = {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
    static constexpr std::array kFalse = {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
    const auto among = [&](const auto &words) { return std::find(words.begin(), words.end(), word) != words.end(); };
    if (among(kTrue))
        return true;
    if (among(kFalse))
        return false;
    return std::nullopt;
}

std::string withoutUnderscores(std::string word)
{
    std::erase(word, '_');
    return word;
}

std::optional<std::int64_t> integerOf(const std::string &word)
{
    std::string digits = withoutUnderscores(word);
    bool negative = false;
    if (!digits.empty() && (digits.front() == '-' || digits.front() == '+')) {
        negative = digits.front() == '-';
        digits.erase(0, 1);
    }
    int base = 10;
    if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'b')) {
        base = digits[1] == 'x' ? 16 : 2;
        digits.erase(0, 2);
    } else if (digits.size() > 1 && digits[0] == '0') {
        base = 8;
    }
    if (digits.empty() || digits.front() == '-' || digits.front() == '+')
        return std::nullopt;
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (failure != std::errc() || end != digits.data() + digits.size())
        return std::nullopt;
    return negative ? -value : value;
}

std::optional<double> fractionOf(const std::string &word)
{
    const std::string digits = withoutUnderscores(word);
    if (digits.find('.') == std::string::npos)
        return std::nullopt; // "1e-4" is text to PyYAML
    std::string body = digits;
    const bool negative = !body.empty() && body.front() == '-';
    if (!body.empty() && (body.front() == '-' || body.front() == '+'))
        body.erase(0, 1);
    if (body == ".inf" || body == ".Inf" || body == ".INF")
        return negative ? -HUGE_VAL : HUGE_VAL;
    if (body == ".nan" || body == ".NaN" || body == ".NAN")
        return std::nan("");
    if (body.empty() || (body.front() != '.' && (body.front() < '0' || body.front() > '9')))
        return std::nullopt;
    // PyYAML wants a sign in the exponent.
    if (const auto e = body.find_first_of("eE"); e != std::string::npos)
        if (e + 1 >= body.size() || (body[e + 1] != '+' && body[e + 1] != '-'))
            return std::nullopt;
    double value = 0.0;
    const auto [end, failure] = std::from_chars(body.data(), body.data() + body.size(), value);
    if (failure != std::errc() || end != body.data() + body.size())
        return std::nullopt;
    return negative ? -value : value;
}

class TreeBuilder
{
public:
    explicit TreeBuilder(const std::string &fileName) : m_fileName(fileName) {}

    Result<YamlNode> build(const YAML::Node &source, int depth = 0)
    {
        YamlNode node;
        node.line = source.Mark().is_null() ? 0 : source.Mark().line + 1;
        if (++m_count > kMostNodes)
            return refuse(node, "the document is too large once its aliases are followed");
        if (depth > kDeepest)
            return refuse(node,
                          "nested more than " + std::to_string(kDeepest) + " deep, or an anchor that contains itself");
        switch (source.Type()) {
        case YAML::NodeType::Undefined:
        case YAML::NodeType::Null:
            return node;
        case YAML::NodeType::Scalar:
            return scalar(source, std::move(node));
        case YAML::NodeType::Sequence:
            return sequence(source, std::move(node), depth);
        case YAML::NodeType::Map:
            return mapping(source, std::move(node), depth);
        }
        return node;
    }

private:
    [[nodiscard]] tl::unexpected<Error> refuse(const YamlNode &node, const std::string &what) const
    {
        return fail(ErrorCode::Unreadable, m_fileName + ":" + std::to_string(node.line), what);
    }

    Result<YamlNode> scalar(const YAML::Node &source, YamlNode node) const
    {
        const std::string &tag = source.Tag();
        if (!tag.empty() && tag != "?" && tag != "!" && tag != "tag:yaml.org,2002:str")
            return refuse(node, "the tag '" + tag + "' is not known here; write the value without it");
        node.kind = YamlNode::Kind::Scalar;
        node.scalar = source.Scalar();
        node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
        if (!node.quoted && isNullWord(node.scalar))
            node.kind = YamlNode::Kind::Null;
        return node;
    }

    Result<YamlNode> sequence(const YAML::Node &source, YamlNode node, int depth)
    {
        node.kind = YamlNode::Kind::List;
        for (const auto &element : source) {
            auto built = build(element, depth + 1);
            if (!built)
                return built;
            node.list.push_back(std::move(*built));
        }
        return node;
    }

    static void put(std::vector<std::pair<YamlNode, YamlNode>> &map, YamlNode key, YamlNode value)
    {
        const auto same = std::find_if(map.begin(), map.end(), [&](const auto &entry) {
            return entry.first.scalar == key.scalar && entry.first.quoted == key.quoted && entry.first.kind == key.kind;
        });
        if (same == map.end())
            map.emplace_back(std::move(key), std::move(value));
        else
            same->second = std::move(value);
    }

    Result<YamlNode> mapping(const YAML::Node &source, YamlNode node, int depth)
    {
        node.kind = YamlNode::Kind::Map;
        std::vector<std::pair<YamlNode, YamlNode>> own;
        for (const auto &entry : source) {
            auto key = build(entry.first, depth + 1);
            if (!key)
                return key;
            auto value = build(entry.second, depth + 1);
            if (!value)
                return value;
            if (key->isMap() || key->isList())
                return refuse(*key, "a key must be a word or a number");
            if (key->scalar != "<<" || key->quoted) {
                own.emplace_back(std::move(*key), std::move(*value));
                continue;
            }
            const YamlNode merged = std::move(*value);
            const std::vector<YamlNode> several = merged.isList() ? merged.list : std::vector<YamlNode>{merged};
            // Of several, the first one that has a key wins.
            for (auto it = several.rbegin(); it != several.rend(); ++it) {
                if (!it->isMap())
                    return refuse(*key, "'<<' merges mappings; this is " + it->words());
                for (const auto &[mergedKey, mergedValue] : it->map)
                    put(node.map, mergedKey, mergedValue);
            }
        }
        for (auto &[key, value] : own)
            put(node.map, std::move(key), std::move(value));
        return node;
    }

    const std::string &m_fileName;
    std::size_t m_count = 0;
};

// Words that some reader of YAML takes for something other than text.
bool looksLikeText(std::string_view text)
{
    if (text.empty() || text == "y" || text == "Y" || text == "n" || text == "N")
        return false;
    const std::string word(text);
    if (isNullWord(word) || flagOf(word) || integerOf(word) || fractionOf(word))
        return false;
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
               c == '-' || c == '/';
    };
    const char first = text.front();
    const bool letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first == '_';
    return letter && std::all_of(text.begin(), text.end(), plain);
}

} // namespace

const YamlNode *YamlNode::find(std::string_view key) const
{
    const auto it = std::find_if(map.begin(), map.end(), [&](const auto &entry) { return entry.first.scalar == key; });
    return it == map.end() ? nullptr : &it->second;
}

std::optional<bool> YamlNode::flag() const
{
    return kind == Kind::Scalar && !quoted ? flagOf(scalar) : std::nullopt;
}

std::optional<std::int64_t> YamlNode::integer() const
{
    return kind == Kind::Scalar && !quoted ? integerOf(scalar) : std::nullopt;
}

std::optional<double> YamlNode::number() const
{
    if (kind != Kind::Scalar || quoted)
        return std::nullopt;
    if (const auto whole = integerOf(scalar))
        return static_cast<double>(*whole);
    return fractionOf(scalar);
}

std::optional<std::string> YamlNode::text() const
{
    if (kind != Kind::Scalar || (!quoted && (flagOf(scalar) || integerOf(scalar) || fractionOf(scalar))))
        return std::nullopt;
    return scalar;
}

std::string YamlNode::words() const
{
    switch (kind) {
    case Kind::Null:
        return "null";
    case Kind::Scalar:
        return quoted || text() ? "'" + scalar + "'" : scalar;
    case Kind::List:
        return "a list";
    case Kind::Map:
        return "a mapping";
    }
    return {};
}

Result<YamlNode> parseYaml(std::string_view text, const std::string &fileName)
{
    try {
        const auto documents = YAML::LoadAll(std::string(text));
        if (documents.empty())
            return YamlNode{};
        if (documents.size() > 1)
            return fail(ErrorCode::Unreadable, fileName, "holds several YAML documents; keep one");
        return TreeBuilder(fileName).build(documents.front());
    } catch (const YAML::Exception &error) {
        const auto line = error.mark.is_null() ? std::string() : ":" + std::to_string(error.mark.line + 1);
        return fail(ErrorCode::Unreadable, fileName + line, "no YAML: " + error.msg);
    }
}

void YamlWriter::indent()
{
    m_text.append(static_cast<std::size_t>(m_depth) * 2, ' ');
}

void YamlWriter::comment(std::string_view line)
{
    indent();
    m_text += "# ";
    m_text += line;
    m_text += '\n';
}

void YamlWriter::open(std::string_view key)
{
    indent();
    m_text += quoted(key) + ":\n";
    ++m_depth;
}

void YamlWriter::close()
{
    --m_depth;
}

void YamlWriter::line(std::string_view key, std::string_view flow)
{
    indent();
    m_text += quoted(key) + ": ";
    m_text += flow;
    m_text += '\n';
}

void YamlWriter::item(std::string_view flow)
{
    indent();
    m_text += "- ";
    m_text += flow;
    m_text += '\n';
}

std::string YamlWriter::quoted(std::string_view text)
{
    if (looksLikeText(text))
        return std::string(text);
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (c == '\n') {
            result += "\\n";
        } else if (c == '\t') {
            result += "\\t";
        } else if (byte < 0x20 || byte == 0x7F) {
            constexpr char kHex[] = "0123456789ABCDEF";
            result += "\\x";
            result += kHex[byte >> 4U];
            result += kHex[byte & 15U];
        } else {
            result += c;
        }
    }
    return result + '"';
}

std::string YamlWriter::number(double value)
{
    if (std::isinf(value))
        return value > 0 ? ".inf" : "-.inf";
    if (std::isnan(value))
        return ".nan";
    std::string text = shortestText(value);
    const auto e = text.find('e');
    if (text.find('.') == std::string::npos)
        text.insert(e == std::string::npos ? text.size() : e, ".0");
    return text;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// A YAML document as plain values, read as PyYAML's safe_load reads it (YAML 1.1: "no" is a flag, "1e-4" is text;
// merge keys are merged; a key given twice keeps its first place and its last value). The parser behind it is known to
// yaml_tree.cpp alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace dblame
{

struct YamlNode {
    enum class Kind : std::uint8_t { Null, Scalar, List, Map };
    Kind kind = Kind::Null;
    std::string scalar;
    bool quoted = false; // text whatever it looks like
    std::vector<YamlNode> list;
    std::vector<std::pair<YamlNode, YamlNode>> map; // key, value
    int line = 0;                                   // 1 = first; 0: not from a file

    [[nodiscard]] bool isNull() const { return kind == Kind::Null; }
    [[nodiscard]] bool isMap() const { return kind == Kind::Map; }
    [[nodiscard]] bool isList() const { return kind == Kind::List; }
    [[nodiscard]] const YamlNode *find(std::string_view key) const; // of a map; nullptr when absent

    // What a plain scalar stands for; nullopt when it is something else.
    [[nodiscard]] std::optional<bool> flag() const;
    [[nodiscard]] std::optional<std::int64_t> integer() const; // decimal, 0x, 0b, octal after a 0
    [[nodiscard]] std::optional<double> number() const;        // integers too; a fraction needs its point
    // Text: quoted, or nothing of the above.
    [[nodiscard]] std::optional<std::string> text() const;
    // "null", "true", "7", "'7'", "a list", "a mapping": for messages.
    [[nodiscard]] std::string words() const;
};

// Errors: Unreadable at "fileName:line". An empty document is Null.
[[nodiscard]] Result<YamlNode> parseYaml(std::string_view text, const std::string &fileName);

// Builds YAML text: block style for mappings, flow style where asked. Strings are quoted where any reader could take
// them for something else.
class YamlWriter
{
public:
    void comment(std::string_view line);
    void open(std::string_view key); // "key:" of a nested mapping, or "- " items under it
    void close();
    void line(std::string_view key, std::string_view flow); // "key: flow"; `flow` as it stands
    void item(std::string_view flow);                       // "- flow"
    [[nodiscard]] const std::string &text() const { return m_text; }

    [[nodiscard]] static std::string quoted(std::string_view text); // only where needed
    [[nodiscard]] static std::string number(double value);          // with a point: "0.0001", "1.0e-05"

private:
    void indent();
    std::string m_text;
    int m_depth = 0;
};

} // namespace dblame

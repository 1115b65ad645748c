// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reading of coreai-opt's configuration files, what both of them share. What coreai-opt refuses is refused, with the
// line; what it drops silently becomes a note. Private to coreai_yaml.cpp and palette_yaml.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/coreai_config.h"
#include "core/yaml_tree.h"

namespace dblame
{

using Names = std::vector<std::string_view>;

// The first error is kept; what follows it is not worth reading.
class ConfigReader
{
public:
    ConfigReader(const std::string &fileName, std::vector<std::string> &notes) : m_fileName(fileName), m_notes(notes) {}

    [[nodiscard]] const std::optional<Error> &error() const { return m_error; }
    void refuse(int line, const std::string &message);
    void note(int line, const std::string &message);

    // The entries of a mapping. `known` empty: any key.
    [[nodiscard]] const YamlNode &mapping(const YamlNode &node, const std::string &what, const Names &known);
    // The same where coreai-opt drops unknown keys.
    [[nodiscard]] const YamlNode &looseMapping(const YamlNode &node, const std::string &what, const Names &known);
    // A key that must be text: "0" needs its quotes.
    std::string textKey(const YamlNode &key, const std::string &what);
    std::int64_t integer(const YamlNode &node, const std::string &what, std::int64_t lowest);
    bool flag(const YamlNode &node, const std::string &what);
    double number(const YamlNode &node, const std::string &what);
    // One of the words; its position.
    std::size_t word(const YamlNode &node, const std::string &what, const Names &words);
    // The key is a regular expression.
    void pattern(const YamlNode &key, const std::string &what);

private:
    [[nodiscard]] std::string place(int line) const;

    const std::string &m_fileName;
    std::vector<std::string> &m_notes;
    std::optional<Error> m_error;
};

[[nodiscard]] CoreAiSpec readCoreAiSpec(ConfigReader &in, const YamlNode &node);

enum class KeyKind : std::uint8_t { Positions, Names };

template <class Spec, class Read>
KeyedList<std::optional<Spec>> readSpecs(ConfigReader &in, const YamlNode &node, const std::string &what, KeyKind kind,
                                         bool nullDeclines, const Read &read)
{
    KeyedList<std::optional<Spec>> specs;
    if (node.isNull()) {
        if (nullDeclines)
            specs.emplace_back("*", std::nullopt);
        return specs;
    }
    std::set<std::string> seen;
    for (const auto &[key, value] : in.mapping(node, what, {}).map) {
        std::string name =
            kind == KeyKind::Positions && key.integer() ? std::to_string(*key.integer()) : in.textKey(key, what);
        if (kind == KeyKind::Positions && key.quoted && !name.empty() &&
            name.find_first_not_of("0123456789") == std::string::npos)
            name = std::to_string(std::stoll(name.substr(0, 9))); // "007" is position 7
        if (!seen.insert(name).second)
            in.refuse(key.line, "position " + name + " is given twice in " + what);
        specs.emplace_back(std::move(name), value.isNull() ? std::nullopt : std::optional<Spec>(read(in, value)));
    }
    return specs;
}

// Entries in order; a null entry is `declined`.
template <class Config, class Read>
KeyedList<Config> readKeyed(ConfigReader &in, const YamlNode &node, const std::string &what, const Read &read)
{
    KeyedList<Config> list;
    if (node.isNull())
        return list;
    for (const auto &[key, value] : in.mapping(node, what, {}).map) {
        const std::string name = in.textKey(key, what);
        if (what == "op_name_config" || what == "module_name_configs")
            in.pattern(key, what);
        else if (what == "module_type_configs" && name.find('.') == std::string::npos)
            in.refuse(key.line, "module_type_configs takes full class names, such as torch.nn.modules.linear.Linear, "
                                "not " +
                                    key.words());
        list.emplace_back(name, value.isNull() ? Config::declined() : read(in, value));
    }
    return list;
}

template <class Config>
Result<Config> parseFile(std::string_view text, const std::string &fileName, std::vector<std::string> &notes,
                         const std::string &configKey, const std::string &specKey,
                         const std::function<Config(ConfigReader &, const YamlNode &)> &read)
{
    const auto document = parseYaml(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    if (document->isNull())
        return fail(ErrorCode::Unreadable, fileName, "is empty; it needs the key " + configKey);
    ConfigReader in(fileName, notes);
    const YamlNode *body = in.mapping(*document, "the file", {specKey, configKey}).find(configKey);
    if (!body)
        in.refuse(document->line, "the file needs the key " + configKey);
    Config config = body ? read(in, *body) : Config{};
    if (in.error())
        return tl::unexpected(*in.error());
    return config;
}

} // namespace dblame

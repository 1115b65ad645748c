// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which module a configuration of coreai-opt claims: by name, by class, or globally. A match claims the module and all
// that it contains and is not claimed yet; the entry listed last comes first; names before classes before global.
#pragma once

#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/coreai_config.h"
#include "core/graph.h"

namespace dblame
{

struct ModuleNode {
    std::string path; // "" is the model
    std::string type; // fully qualified class; "" where the file does not say
    std::vector<int> children;
};

// The modules that the graph knows of, as its frames and its parameters' names tell, in the order in which the model
// lists them (a module, then its children; children in the order of the parameters, then of the calls).
class ModuleTree
{
public:
    explicit ModuleTree(const Graph &graph);
    [[nodiscard]] const std::vector<ModuleNode> &modules() const { return m_modules; }
    [[nodiscard]] int find(const std::string &path) const; // -1 when there is none
    // The innermost module of an operator, -1 when it names none.
    [[nodiscard]] int ofNode(const Node &node) const;

private:
    std::vector<ModuleNode> m_modules;
    std::map<std::string, int, std::less<>> m_byPath;
};
// "block.conv1" of "block.conv1@1".
[[nodiscard]] std::string withoutCallNumber(const std::string &path);

enum class ConfigLevel : std::uint8_t { ModuleName, ModuleType, Global }; // strongest first

template <class ModuleConfig>
struct ModuleClaim {
    ConfigLevel level = ConfigLevel::Global;
    int place = 0;       // position in the level's table: smaller is stronger
    bool direct = false; // the module itself matched: its module_* specs count
    const ModuleConfig *config = nullptr;
    int entry = -1; // position in module_name_configs or module_type_configs
};

// Keys that claimed no module, by level.
struct IdleKeys {
    std::vector<std::string> names, types;
};

template <class Config>
class ModuleLevels
{
public:
    using ModuleConfig = std::decay_t<decltype(std::declval<Config>().global)>;
    using Claim = ModuleClaim<ModuleConfig>;

    // Patterns must compile (parse*Config and the recipe see to it).
    ModuleLevels(const ModuleTree &tree, const Config &config) : m_tree(tree), m_claims(tree.modules().size())
    {
        m_global.config = &config.global;
        claimAll(config.moduleNames, ConfigLevel::ModuleName, m_idle.names, [](const std::string &key) {
            return [pattern = std::regex(key)](const ModuleNode &m) { return std::regex_match(m.path, pattern); };
        });
        claimAll(config.moduleTypes, ConfigLevel::ModuleType, m_idle.types,
                 [](const std::string &key) { return [key](const ModuleNode &m) { return m.type == key; }; });
        for (auto &claim : m_claims)
            if (!claim.config)
                claim = m_global;
    }

    // Of a module (-1: of an operator outside all modules).
    [[nodiscard]] const Claim &of(int module) const
    {
        return module < 0 ? m_global : m_claims[static_cast<std::size_t>(module)];
    }
    // Modules of one level in the order of its table.
    [[nodiscard]] const std::vector<int> &table(ConfigLevel level) const
    {
        return m_tables[static_cast<std::size_t>(level)];
    }
    [[nodiscard]] const IdleKeys &idle() const { return m_idle; }

private:
    template <class MakeMatcher>
    void claimAll(const KeyedList<ModuleConfig> &entries, ConfigLevel level, std::vector<std::string> &idle,
                  const MakeMatcher &makeMatcher)
    {
        for (std::size_t e = entries.size(); e-- > 0;) {
            const auto matches = makeMatcher(entries[e].first);
            bool any = false;
            for (std::size_t m = m_tree.modules().size(); m-- > 0;) {
                if (!matches(m_tree.modules()[m]))
                    continue;
                any = true;
                claim(static_cast<int>(m), level, entries[e].second, static_cast<int>(e), true);
            }
            if (!any)
                idle.insert(idle.begin(), entries[e].first);
        }
    }

    void claim(int module, ConfigLevel level, const ModuleConfig &config, int entry, bool direct)
    {
        Claim &mine = m_claims[static_cast<std::size_t>(module)];
        if (mine.config)
            return;
        auto &table = m_tables[static_cast<std::size_t>(level)];
        mine = {level, static_cast<int>(table.size()), direct, &config, entry};
        table.push_back(module);
        for (const int child : m_tree.modules()[static_cast<std::size_t>(module)].children)
            claim(child, level, config, entry, false);
    }

    const ModuleTree &m_tree;
    Claim m_global;
    std::vector<Claim> m_claims;
    std::vector<int> m_tables[3];
    IdleKeys m_idle;
};

} // namespace dblame

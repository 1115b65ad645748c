// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/coreai_choice.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <tuple>

#include "core/selector_pattern.h"

namespace dblame
{

namespace
{

constexpr std::size_t kNearest = 3;

class Chooser
{
public:
    Chooser(const CoreAiGraph &graph, const ModuleTree &tree, const ModuleLevels<CoreAiConfig> &levels,
            const CoreAiConfig &config, const CoreAiOptions &options)
        : m_graph(graph), m_tree(tree), m_levels(levels), m_config(config), m_options(options)
    {
        m_choice.configs.resize(graph.nodes().size());
        m_choice.covers.resize(graph.nodes().size());
    }

    Result<CoreAiChoice> run()
    {
        if (auto checked = checkKeys(); !checked)
            return tl::unexpected(checked.error());
        const auto patterns = matchCoreAiPatterns(m_graph, cacheTypes());
        chooseConfigs(patterns);
        cover(patterns);
        warnIdleOperators();
        return std::move(m_choice);
    }

private:
    [[nodiscard]] std::string nameOf(int entry) const { return std::string(m_graph.name(entry)); }
    [[nodiscard]] ChosenConfig &configOf(int entry) { return m_choice.configs[static_cast<std::size_t>(entry)]; }
    [[nodiscard]] CoreAiCover &coverOf(int entry) { return m_choice.covers[static_cast<std::size_t>(entry)]; }
    [[nodiscard]] const std::regex &compiled(const std::string &key)
    {
        const auto known = m_patterns.find(key);
        return known != m_patterns.end() ? known->second : m_patterns.emplace(key, std::regex(key)).first->second;
    }

    [[nodiscard]] std::vector<std::string> cacheTypes() const
    {
        std::vector<std::string> types;
        for (const auto &[type, op] : m_config.kvCaches)
            types.push_back(type);
        return types;
    }

    // Named inputs and outputs other than the first are in the schema, but graph mode refuses them.
    [[nodiscard]] Result<void> checkKeys() const
    {
        std::optional<Error> error;
        const auto checkSpecs = [&](const CoreAiSpecs &specs, const std::string &what, bool onlyFirst) {
            for (const auto &[key, spec] : specs) {
                const bool position = key.find_first_not_of("0123456789") == std::string::npos;
                if (error || key == "*" || (position && (!onlyFirst || key == "0")))
                    continue;
                error = Error{ErrorCode::Usage,
                              what,
                              "the key '" + key + "' is not supported by coreai-opt's graph mode; use " +
                                  (onlyFirst ? "0 or \"*\"" : "a position or \"*\""),
                              {}};
            }
        };
        const auto checkModule = [&](const CoreAiModuleConfig &module) {
            const auto checkOp = [&](const CoreAiOpConfig &op) {
                checkSpecs(op.inputs, "op_input_spec", false);
                checkSpecs(op.outputs, "op_output_spec", true);
            };
            checkOp(module.op);
            for (const auto &[key, op] : module.opTypes)
                checkOp(op);
            for (const auto &[key, op] : module.opNames)
                checkOp(op);
            checkSpecs(module.moduleInputs, "module_input_spec", false);
            checkSpecs(module.moduleOutputs, "module_output_spec", false);
        };
        checkModule(m_config.global);
        for (const auto &[key, module] : m_config.moduleTypes)
            checkModule(module);
        for (const auto &[key, module] : m_config.moduleNames)
            checkModule(module);
        return error ? Result<void>(tl::unexpected(*error)) : Result<void>();
    }

    void chooseConfigs(const std::vector<CoreAiPattern> &patterns)
    {
        static const CoreAiOpConfig kDeclined = CoreAiOpConfig::declined();
        for (const CoreAiPattern &pattern : patterns) {
            ChosenConfig &chosen = configOf(pattern.anchor);
            if (chosen.config)
                continue;
            const NodeId node = m_graph.at(pattern.anchor).node;
            if (m_options.excluded.contains(node)) {
                chosen = {&kDeclined, ConfigLevel::ModuleName, OpConfigLevel::Name, -1, {}, true};
                continue;
            }
            const auto &claim = m_levels.of(m_tree.ofNode(m_graph.graph().node(node)));
            chosen = chooseInModule(pattern.anchor, *claim.config);
            chosen.level = claim.level;
            chosen.place = claim.level == ConfigLevel::Global ? 0 : claim.place;
            if (chosen.key.empty() && claim.entry >= 0) {
                const auto &list = claim.level == ConfigLevel::ModuleName ? m_config.moduleNames : m_config.moduleTypes;
                chosen.key = list[static_cast<std::size_t>(claim.entry)].first;
            }
        }
    }

    [[nodiscard]] ChosenConfig chooseInModule(int entry, const CoreAiModuleConfig &module)
    {
        ChosenConfig chosen;
        const std::string name = nameOf(entry);
        for (auto it = module.opNames.rbegin(); it != module.opNames.rend(); ++it)
            if (std::regex_match(name, compiled(it->first))) {
                chosen.config = &it->second;
                chosen.opLevel = OpConfigLevel::Name;
                chosen.key = it->first;
                return chosen;
            }
        const auto type = m_graph.opType(entry);
        for (auto it = module.opTypes.rbegin(); it != module.opTypes.rend(); ++it)
            if (!type.empty() && type == it->first) {
                chosen.config = &it->second;
                chosen.opLevel = OpConfigLevel::Type;
                chosen.key = it->first;
                return chosen;
            }
        chosen.config = &module.op;
        return chosen;
    }

    // Operator names and types that no quantized operator of a claimed module has.
    void warnIdleOperators()
    {
        std::set<std::string> names, types;
        for (int i = 0; i < m_graph.size(); ++i)
            if (m_graph.isCall(i)) {
                names.insert(nameOf(i));
                if (!m_graph.opType(i).empty())
                    types.insert(std::string(m_graph.opType(i)));
            }
        std::set<std::string> said;
        const auto warn = [&](const std::string &what, const std::string &key, const std::set<std::string> &known) {
            if (!said.insert(what + key).second)
                return;
            std::string text = what + " '" + key + "' matches no operator of this model, and coreai-opt says nothing";
            const auto near = nearest(key, {known.begin(), known.end()}, kNearest);
            for (std::size_t i = 0; i < near.size(); ++i)
                text += (i == 0 ? "; nearest: " : ", ") + near[i];
            m_choice.warnings.push_back(std::move(text));
        };
        const auto check = [&](const CoreAiModuleConfig &module) {
            for (const auto &[key, op] : module.opNames) {
                const std::regex &pattern = compiled(key);
                if (std::none_of(names.begin(), names.end(),
                                 [&](const std::string &n) { return std::regex_match(n, pattern); }))
                    warn("op_name_config", key, names);
            }
            for (const auto &[key, op] : module.opTypes)
                if (!types.contains(key))
                    warn("op_type_config", key, types);
        };
        check(m_config.global);
        for (const auto &[key, module] : m_config.moduleTypes)
            check(module);
        for (const auto &[key, module] : m_config.moduleNames)
            check(module);
    }

    // Longer patterns first within a level; the first that reaches an operator has it.
    void cover(const std::vector<CoreAiPattern> &patterns)
    {
        std::vector<const CoreAiPattern *> order;
        std::vector<std::vector<const CoreAiPattern *>> byAnchor(static_cast<std::size_t>(m_graph.size()));
        for (const CoreAiPattern &pattern : patterns)
            byAnchor[static_cast<std::size_t>(pattern.anchor)].push_back(&pattern);
        for (const auto &list : byAnchor)
            order.insert(order.end(), list.begin(), list.end());
        const auto key = [&](const CoreAiPattern *p) {
            const ChosenConfig &c = configOf(p->anchor);
            return std::tuple(c.level, c.opLevel, -p->length(), c.place);
        };
        std::stable_sort(order.begin(), order.end(), [&](const auto *a, const auto *b) { return key(a) < key(b); });
        for (std::size_t priority = 0; priority < order.size(); ++priority)
            for (const int entry : order[priority]->covered) {
                CoreAiCover &mine = coverOf(entry);
                if (mine.priority >= 0)
                    continue;
                mine.priority = static_cast<int>(priority);
                mine.pattern = order[priority]->covered;
                mine.config = configOf(order[priority]->anchor).config;
                mine.anchor = entry == order[priority]->anchor;
            }
    }

    const CoreAiGraph &m_graph;
    const ModuleTree &m_tree;
    const ModuleLevels<CoreAiConfig> &m_levels;
    const CoreAiConfig &m_config;
    const CoreAiOptions &m_options;
    std::map<std::string, std::regex> m_patterns;
    CoreAiChoice m_choice;
};

} // namespace

Result<CoreAiChoice> chooseCoreAiConfigs(const CoreAiGraph &graph, const ModuleTree &tree,
                                         const ModuleLevels<CoreAiConfig> &levels, const CoreAiConfig &config,
                                         const CoreAiOptions &options)
{
    return Chooser(graph, tree, levels, config, options).run();
}

} // namespace dblame

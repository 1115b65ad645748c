// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/recipe_translate.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/coreai_graph.h"
#include "core/graph_query.h"
#include "core/selector_pattern.h"

namespace dblame
{

namespace
{

// Where a module's configuration is written.
struct Place {
    ConfigLevel level = ConfigLevel::Global;
    int entry = -1;
    friend auto operator<=>(const Place &, const Place &) = default;
};

CoreAiModuleConfig &at(CoreAiConfig &config, Place place)
{
    switch (place.level) {
    case ConfigLevel::ModuleName:
        return config.moduleNames[static_cast<std::size_t>(place.entry)].second;
    case ConfigLevel::ModuleType:
        return config.moduleTypes[static_cast<std::size_t>(place.entry)].second;
    case ConfigLevel::Global:
        break;
    }
    return config.global;
}

template <class T>
void setKey(KeyedList<T> &list, const std::string &key, T value)
{
    std::erase_if(list, [&](const auto &entry) { return entry.first == key; });
    list.emplace_back(key, std::move(value)); // the last entry is the first looked at
}

std::string bareType(const std::string &opType)
{
    const auto dot = opType.rfind('.');
    return dot == std::string::npos ? opType : opType.substr(dot + 1);
}

// One override as an edit of an operator's configuration.
class Edit
{
public:
    Edit(const Recipe &recipe, const RecipeOverride &change) : m_recipe(recipe), m_change(change) {}

    // Why the configuration cannot say this; empty when it can.
    std::string prepare(bool ranges)
    {
        if (!ranges && (m_change.low || m_change.high))
            return "coreai-opt widens a range where other sites of the tensor have none";
        for (const OverridePart &part : m_change.parts) {
            if (!part.spec && m_change.meaning == OverrideMeaning::FloatHere)
                return "float for this reader only is nothing that coreai-opt's configuration can say; 'none' is what "
                       "it "
                       "does for a layer";
            if (part.facet == Facet::All && part.spec)
                return "a spec needs its role";
            if (!part.spec)
                continue;
            const bool weight = part.facet == Facet::Weight;
            auto spec = parseTensorSpec(*part.spec, baseSpec(m_recipe, weight));
            if (!spec)
                return spec.error().text();
            if (!weight) {
                spec->low = m_change.low;
                spec->high = m_change.high;
            }
            auto translated = coreAiSpecOf(*spec);
            if (!translated)
                return translated.error().text();
            m_specs.push_back(*translated);
        }
        return {};
    }

    [[nodiscard]] bool declinesAll() const
    {
        return m_change.parts.size() == 1 && m_change.parts.front().facet == Facet::All && !m_change.parts.front().spec;
    }

    void apply(CoreAiOpConfig &op) const
    {
        std::size_t next = 0;
        for (const OverridePart &part : m_change.parts) {
            const std::optional<CoreAiSpec> spec = part.spec ? std::optional(m_specs[next++]) : std::nullopt;
            const bool all = part.facet == Facet::All;
            if (all || part.facet == Facet::Weight)
                applyToWeights(op.states, spec);
            if (all || part.facet == Facet::Act || (part.facet == Facet::In && part.inputIndex < 0))
                op.inputs = {{"*", spec}};
            if (part.facet == Facet::In && part.inputIndex >= 0)
                setKey(op.inputs, std::to_string(part.inputIndex), spec);
            if (all || part.facet == Facet::Act || part.facet == Facet::Out)
                op.outputs = {{"*", spec}};
        }
    }

    // The operators' own entries are looked at before the module's: they change too.
    void apply(CoreAiModuleConfig &module) const
    {
        apply(module.op);
        for (auto &[key, op] : module.opTypes)
            apply(op);
        for (auto &[key, op] : module.opNames)
            apply(op);
    }

private:
    static void applyToWeights(CoreAiSpecs &states, const std::optional<CoreAiSpec> &spec)
    {
        if (!spec) {
            states = declinedSpecs();
            return;
        }
        setKey(states, std::string("weight"), spec);
        std::erase_if(states, [](const auto &entry) { return entry.first == "*" && !entry.second; });
    }

    const Recipe &m_recipe;
    const RecipeOverride &m_change;
    std::vector<CoreAiSpec> m_specs; // of the parts that have one, in order
};

class Translator
{
public:
    Translator(const Recipe &recipe, const Graph *graph, bool ranges)
        : m_recipe(recipe), m_graph(graph), m_ranges(ranges)
    {
        m_result.config = recipe.coreAi;
        if (graph) {
            m_fx.emplace(*graph);
            m_tree.emplace(*graph);
        }
    }

    TranslatedConfig run()
    {
        for (const RecipeOverride &change : m_recipe.overrides) {
            Edit edit(m_recipe, change);
            std::string reason = edit.prepare(m_ranges);
            if (reason.empty())
                reason = m_graph ? translateOnGraph(change, edit) : translateBlind(change, edit);
            if (reason.empty())
                continue;
            m_result.left.push_back(change);
            m_result.reasons.push_back(std::move(reason));
        }
        return std::move(m_result);
    }

private:
    // --- without a model ------------------------------------------------------------------------------------------

    template <class F>
    void eachModuleConfig(const F &f)
    {
        f(m_result.config.global);
        for (auto &[key, module] : m_result.config.moduleTypes)
            f(module);
        for (auto &[key, module] : m_result.config.moduleNames)
            f(module);
    }

    [[nodiscard]] bool onlyGlobal() const
    {
        return m_result.config.moduleNames.empty() && m_result.config.moduleTypes.empty();
    }

    [[nodiscard]] CoreAiModuleConfig editedGlobal(const Edit &edit) const
    {
        if (edit.declinesAll())
            return CoreAiModuleConfig::declined();
        CoreAiModuleConfig module = m_result.config.global;
        edit.apply(module);
        return module;
    }

    std::string translateBlind(const RecipeOverride &change, const Edit &edit)
    {
        const std::string &pattern = change.selector.pattern;
        const bool eager = m_result.config.mode == CoreAiMode::Eager;
        switch (change.selector.by) {
        case SelectBy::Module:
            if (pattern.find('@') != std::string::npos)
                return "one call of a module that is called twice has no name in coreai-opt's configuration";
            if (!onlyGlobal() && !edit.declinesAll())
                return "the entry that this layer has now is to be changed, and which one that is only the model "
                       "tells: "
                       "give the model";
            setKey(m_result.config.moduleNames, pattern, editedGlobal(edit));
            return {};
        case SelectBy::ModuleType:
            if (pattern.find('.') == std::string::npos)
                return "coreai-opt wants the class's full name, such as torch.nn.modules.linear.Linear: write that, or "
                       "give the model";
            if (!onlyGlobal())
                return "the entry that this layer has now is to be changed, and which one that is only the model "
                       "tells: "
                       "give the model";
            setKey(m_result.config.moduleTypes, pattern, editedGlobal(edit));
            return {};
        case SelectBy::Node:
            if (eager)
                return "in eager mode operators have other names; give the module";
            eachModuleConfig([&](CoreAiModuleConfig &module) {
                CoreAiOpConfig op = module.op;
                edit.apply(op);
                setKey(module.opNames, literalPattern(pattern), std::move(op));
            });
            return {};
        case SelectBy::OpType:
            eachModuleConfig([&](CoreAiModuleConfig &module) {
                CoreAiOpConfig op = module.op;
                edit.apply(op);
                setKey(module.opTypes, bareType(pattern), std::move(op));
            });
            return {};
        }
        return {};
    }

    // --- on a model -----------------------------------------------------------------------------------------------

    std::string translateOnGraph(const RecipeOverride &change, const Edit &edit)
    {
        const auto nodes = selectNodes(change.selector, *m_graph);
        if (!nodes)
            return nodes.error().text();
        std::set<NodeId> selected(nodes->begin(), nodes->end());
        if (change.selector.by == SelectBy::Module || change.selector.by == SelectBy::ModuleType) {
            std::vector<int> modules = matchingModules(change.selector);
            if (!modules.empty())
                translateModules(change.selector, edit, modules);
            for (const int module : modules)
                removeCovered(module, selected);
        }
        return selected.empty() ? std::string() : translateOperators(change.selector, edit, selected);
    }

    [[nodiscard]] std::vector<int> matchingModules(const Selector &selector) const
    {
        std::vector<int> modules;
        const auto pattern = selector.by == SelectBy::Module ? compilePattern(selector.pattern) : Result<std::regex>();
        for (std::size_t i = 0; i < m_tree->modules().size(); ++i) {
            const ModuleNode &module = m_tree->modules()[i];
            const auto dot = module.type.rfind('.');
            const bool matches =
                selector.by == SelectBy::Module
                    ? pattern && std::regex_match(module.path, *pattern)
                    : !module.type.empty() &&
                          (module.type == selector.pattern ||
                           (dot != std::string::npos && module.type.substr(dot + 1) == selector.pattern));
            if (matches)
                modules.push_back(static_cast<int>(i));
        }
        return modules;
    }

    void addBelow(int module, std::vector<int> &all) const
    {
        if (std::find(all.begin(), all.end(), module) != all.end())
            return;
        all.push_back(module);
        for (const int child : m_tree->modules()[static_cast<std::size_t>(module)].children)
            addBelow(child, all);
    }

    void removeCovered(int module, std::set<NodeId> &selected) const
    {
        std::vector<int> below;
        addBelow(module, below);
        std::erase_if(selected, [&](NodeId node) {
            const int own = m_tree->ofNode(m_graph->node(node));
            return std::find(below.begin(), below.end(), own) != below.end();
        });
    }

    [[nodiscard]] ModuleLevels<CoreAiConfig> levels() const { return {*m_tree, m_result.config}; }

    void translateModules(const Selector &selector, const Edit &edit, const std::vector<int> &matches)
    {
        const auto current = levels();
        std::vector<int> all;
        for (const int module : matches)
            addBelow(module, all);
        std::set<Place> places;
        for (const int module : all)
            places.insert({current.of(module).level, current.of(module).entry});
        const bool byClass = selector.by == SelectBy::ModuleType;
        const bool named = std::any_of(places.begin(), places.end(),
                                       [](const Place &p) { return p.level == ConfigLevel::ModuleName; });
        if (places.size() == 1 || edit.declinesAll()) {
            CoreAiModuleConfig module =
                edit.declinesAll() ? CoreAiModuleConfig::declined() : at(m_result.config, *places.begin());
            if (!edit.declinesAll()) {
                edit.apply(module);
                const bool direct =
                    std::all_of(matches.begin(), matches.end(), [&](int m) { return current.of(m).direct; });
                if (!direct)
                    module.moduleInputs = module.moduleOutputs = module.moduleStates = {};
            }
            if (!byClass) {
                setKey(m_result.config.moduleNames, selector.pattern, std::move(module));
                return;
            }
            if (!named) {
                std::set<std::string> classes;
                for (const int m : matches)
                    classes.insert(m_tree->modules()[static_cast<std::size_t>(m)].type);
                for (const std::string &name : classes)
                    setKey(m_result.config.moduleTypes, name, module);
                return;
            }
        }
        // Different entries: each module gets its own, containers before what they contain.
        std::sort(all.begin(), all.end());
        std::vector<std::pair<std::string, CoreAiModuleConfig>> added;
        for (const int m : all) {
            const auto &claim = current.of(m);
            CoreAiModuleConfig module = *claim.config;
            if (edit.declinesAll())
                module = CoreAiModuleConfig::declined();
            else
                edit.apply(module);
            if (!claim.direct)
                module.moduleInputs = module.moduleOutputs = module.moduleStates = {};
            added.emplace_back(literalPattern(m_tree->modules()[static_cast<std::size_t>(m)].path), std::move(module));
        }
        for (auto &[key, module] : added)
            setKey(m_result.config.moduleNames, key, std::move(module));
    }

    // Operators by name, in the entry that governs them already: no module changes its level.
    std::string translateOperators(const Selector &selector, const Edit &edit, const std::set<NodeId> &selected)
    {
        if (m_result.config.mode == CoreAiMode::Eager)
            return "in eager mode operators have other names; give the module";
        const auto current = levels();
        std::map<Place, std::vector<int>> byPlace;
        for (const NodeId node : selected) {
            const auto &claim = current.of(m_tree->ofNode(m_graph->node(node)));
            byPlace[{claim.level, claim.entry}].push_back(m_fx->ofNode(node));
        }
        for (const auto &[place, entries] : byPlace) {
            CoreAiModuleConfig &module = at(m_result.config, place);
            std::map<std::string, std::vector<int>> byType;
            for (const int entry : entries)
                byType[std::string(m_fx->opType(entry))].push_back(entry);
            for (const auto &[type, same] : byType)
                if (selector.by == SelectBy::OpType && !type.empty() && coversType(place, type, same, current))
                    editType(module, type, edit);
                else
                    for (const int entry : same)
                        editNode(module, entry, edit);
        }
        return {};
    }

    // Every operator of this type that the entry governs is meant, and none has an entry of its own.
    [[nodiscard]] bool coversType(Place place, const std::string &type, const std::vector<int> &entries,
                                  const ModuleLevels<CoreAiConfig> &current) const
    {
        std::size_t count = 0;
        for (int i = 0; i < m_fx->size(); ++i) {
            if (m_fx->opType(i) != type)
                continue;
            const auto &claim = current.of(m_tree->ofNode(m_graph->node(m_fx->at(i).node)));
            if (Place{claim.level, claim.entry} != place)
                continue;
            ++count;
            for (const auto &[key, op] : claim.config->opNames)
                if (std::regex_match(std::string(m_fx->name(i)), std::regex(key)))
                    return false;
        }
        return count == entries.size();
    }

    static void editType(CoreAiModuleConfig &module, const std::string &type, const Edit &edit)
    {
        CoreAiOpConfig op = module.op;
        for (const auto &[key, existing] : module.opTypes)
            if (key == type)
                op = existing;
        edit.apply(op);
        setKey(module.opTypes, type, std::move(op));
    }

    void editNode(CoreAiModuleConfig &module, int entry, const Edit &edit) const
    {
        const std::string name(m_fx->name(entry));
        CoreAiOpConfig op = module.op;
        const std::string type(m_fx->opType(entry));
        for (const auto &[key, existing] : module.opTypes)
            if (!type.empty() && key == type)
                op = existing;
        for (const auto &[key, existing] : module.opNames)
            if (std::regex_match(name, std::regex(key)))
                op = existing;
        edit.apply(op);
        setKey(module.opNames, literalPattern(name), std::move(op));
    }

    const Recipe &m_recipe;
    const Graph *m_graph;
    bool m_ranges;
    std::optional<CoreAiGraph> m_fx;
    std::optional<ModuleTree> m_tree;
    TranslatedConfig m_result;
};

} // namespace

std::string literalPattern(const std::string &text)
{
    std::string pattern;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!plain)
            pattern += '\\';
        pattern += c;
    }
    return pattern;
}

TranslatedConfig translateOverrides(const Recipe &recipe, const Graph *graph, bool ranges)
{
    return Translator(recipe, graph, ranges).run();
}

} // namespace dblame

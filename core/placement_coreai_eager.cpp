// SPDX-License-Identifier: GPL-3.0-or-later
//
// coreai-opt's eager mode: quantizers hang on calls of functions inside modules. Each registered call gets one per
// input and output tensor, nothing is shared or fused, and a module that is called again uses the ones of its first
// call. Weights are quantized where the module reads them.
#include "core/placement_coreai.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string_view>

#include "core/coreai_annotation.h"
#include "core/graph_query.h"
#include "core/placement_coreai_words.h"

namespace dblame
{

namespace
{

bool isRegistered(std::string_view type)
{
    static const std::set<std::string_view> kTypes = {"conv1d",
                                                      "conv2d",
                                                      "conv3d",
                                                      "conv_transpose1d",
                                                      "conv_transpose2d",
                                                      "conv_transpose3d",
                                                      "linear",
                                                      "embedding",
                                                      "max_pool2d",
                                                      "adaptive_avg_pool2d",
                                                      "add",
                                                      "add_",
                                                      "matmul",
                                                      "mul",
                                                      "mul_",
                                                      "sub",
                                                      "sub_"};
    return kTypes.contains(type);
}

// The registry's name for a call: the in-place forms are the same type.
std::string registryType(std::string_view type)
{
    return std::string(type.ends_with('_') ? type.substr(0, type.size() - 1) : type);
}

struct Call {
    int entry = -1;
    int module = -1;
    std::string name; // "conv2d", "conv2d_1": counted within its module's call
    const CoreAiOpConfig *config = nullptr;
};

struct Boundary {
    std::vector<int> inputs, outputs; // entries, in order of first use
};

class EagerPlacement
{
public:
    EagerPlacement(const Graph &graph, const CoreAiConfig &config, const CoreAiOptions &options)
        : m_graph(graph), m_config(config), m_options(options), m_fx(graph), m_tree(graph), m_levels(m_tree, config)
    {
        m_annotation.configs.resize(static_cast<std::size_t>(m_fx.size()));
    }

    Result<Placement> run()
    {
        m_placement.warnings = idleKeyWarnings(m_tree, m_levels.idle());
        findCalls();
        if (auto settled = settleStates(); !settled)
            return tl::unexpected(settled.error());
        for (const Call &call : m_calls)
            if (auto placed = place(call); !placed)
                return tl::unexpected(placed.error());
        dropIndivisible();
        nameSitesOf(m_graph, m_placement);
        noteDefects();
        m_placement.leftFloat = floatOperators(m_fx, m_annotation, m_placement, m_indivisible);
        return std::move(m_placement);
    }

private:
    [[nodiscard]] const Node &nodeOf(int entry) const { return m_graph.node(m_fx.at(entry).node); }
    [[nodiscard]] std::string pathOf(int module) const
    {
        return module < 0 ? std::string() : m_tree.modules()[static_cast<std::size_t>(module)].path;
    }

    // --- calls and their configuration ----------------------------------------------------------------------------

    // A module that has module_* specs, or lies in one: all of its calls are looked at, not only registered ones.
    [[nodiscard]] bool underModuleSpec(const std::string &path) const
    {
        for (std::string at = path;;) {
            const int module = m_tree.find(at);
            const auto &claim = m_levels.of(module);
            if (module >= 0 && claim.direct &&
                (!claim.config->moduleInputs.empty() || !claim.config->moduleOutputs.empty() ||
                 !claim.config->moduleStates.empty()))
                return true;
            if (at.empty())
                return false;
            const auto dot = at.rfind('.');
            at = dot == std::string::npos ? std::string() : at.substr(0, dot);
        }
    }

    void findCalls()
    {
        std::map<std::string, int> counts; // by the module's call and the function
        for (int i = 0; i < m_fx.size(); ++i) {
            const std::string type(m_fx.opType(i));
            if (type.empty())
                continue;
            const Node &node = nodeOf(i);
            Call call;
            call.entry = i;
            call.module = m_tree.ofNode(node);
            const std::string path = pathOf(call.module);
            if (!isRegistered(type) && !underModuleSpec(path))
                continue;
            const std::string key = node.modules.empty() ? std::string() : node.modules.back().key;
            const int count = counts[key + "/" + type]++;
            call.name = count == 0 ? type : type + "_" + std::to_string(count);
            static const CoreAiOpConfig kNothing{{}, {}, {}};
            call.config = isRegistered(type) ? choose(call, path) : &kNothing;
            m_calls.push_back(std::move(call));
        }
    }

    // Operator names are "module.path.conv2d_1" here, not nodes of a graph.
    const CoreAiOpConfig *choose(const Call &call, const std::string &path)
    {
        static const CoreAiOpConfig kDeclined = CoreAiOpConfig::declined();
        ChosenConfig &chosen = m_annotation.configs[static_cast<std::size_t>(call.entry)];
        if (m_options.excluded.contains(m_fx.at(call.entry).node)) {
            chosen = {&kDeclined, ConfigLevel::ModuleName, OpConfigLevel::Name, -1, {}, true};
            return chosen.config;
        }
        const auto &claim = m_levels.of(call.module);
        chosen.level = claim.level;
        chosen.place = claim.place;
        if (claim.entry >= 0) {
            const auto &list = claim.level == ConfigLevel::ModuleName ? m_config.moduleNames : m_config.moduleTypes;
            chosen.key = list[static_cast<std::size_t>(claim.entry)].first;
        }
        const std::string name = path.empty() ? call.name : path + "." + call.name;
        const std::string type = registryType(m_fx.opType(call.entry));
        for (auto it = claim.config->opNames.rbegin(); it != claim.config->opNames.rend(); ++it)
            if (std::regex_match(name, std::regex(it->first))) {
                chosen.opLevel = OpConfigLevel::Name;
                chosen.key = it->first;
                return chosen.config = &it->second;
            }
        for (auto it = claim.config->opTypes.rbegin(); it != claim.config->opTypes.rend(); ++it)
            if (it->first == type) {
                chosen.opLevel = OpConfigLevel::Type;
                chosen.key = it->first;
                return chosen.config = &it->second;
            }
        return chosen.config = &claim.config->op;
    }

    [[nodiscard]] bool quantizable(int entry) const
    {
        if (!m_fx.isFloat(entry) || m_fx.isSingleElement(entry))
            return false;
        const DType dtype = m_graph.value(m_fx.at(entry).value).meta->dtype;
        return dtype == DType::Float64 || dtype == DType::Float32 || dtype == DType::Float16 ||
               dtype == DType::BFloat16;
    }

    // The spec that a module's boundary gives a tensor, innermost module first; nullptr when none does.
    [[nodiscard]] const std::optional<CoreAiSpec> *boundarySpec(int entry, bool input)
    {
        const std::optional<CoreAiSpec> *found = nullptr;
        std::size_t deepest = 0;
        for (const ConfigLevel level : {ConfigLevel::ModuleName, ConfigLevel::ModuleType})
            for (const int module : m_levels.table(level)) {
                const auto &claim = m_levels.of(module);
                const CoreAiSpecs &specs = input ? claim.config->moduleInputs : claim.config->moduleOutputs;
                if (!claim.direct || specs.empty())
                    continue;
                const Boundary &boundary = boundaryOf(module);
                const auto &list = input ? boundary.inputs : boundary.outputs;
                const auto it = std::find(list.begin(), list.end(), entry);
                const std::string path = pathOf(module);
                if (it == list.end() || (found && path.size() < deepest))
                    continue;
                if (const auto *spec = lookUp(specs, {std::to_string(it - list.begin())})) {
                    found = spec;
                    deepest = path.size();
                }
            }
        return found;
    }

    [[nodiscard]] bool lies(int entry, const std::string &path) const
    {
        if (!m_fx.isCall(entry))
            return false;
        const auto &frames = nodeOf(entry).modules;
        return std::any_of(frames.begin(), frames.end(),
                           [&](const ModuleFrame &frame) { return withoutCallNumber(frame.path) == path; });
    }

    const Boundary &boundaryOf(int module)
    {
        const auto [it, isNew] = m_boundaries.try_emplace(module);
        if (!isNew)
            return it->second;
        const std::string path = pathOf(module);
        const auto add = [](std::vector<int> &list, int entry) {
            if (std::find(list.begin(), list.end(), entry) == list.end())
                list.push_back(entry);
        };
        for (int i = 0; i < m_fx.size(); ++i) {
            if (!lies(i, path))
                continue;
            for (const int input : m_fx.at(i).inputs)
                if (!m_fx.isState(input) && !lies(input, path))
                    add(it->second.inputs, input);
            const auto &users = m_fx.at(i).users;
            if (std::any_of(users.begin(), users.end(), [&](int user) { return !lies(user, path); }))
                add(it->second.outputs, i);
        }
        return it->second;
    }

    // --- states ---------------------------------------------------------------------------------------------------

    // One spec per parameter: module_state_spec of an owner, else the strongest module that reads it; of equals the
    // last one.
    Result<void> settleStates()
    {
        std::map<int, std::pair<int, int>> priorities; // state -> (level, place) of what decided
        for (const Call &call : m_calls)
            for (const int input : m_fx.at(call.entry).inputs) {
                if (!m_fx.isState(input) || !quantizable(input))
                    continue;
                const auto &claim = m_levels.of(call.module);
                const std::pair priority{static_cast<int>(claim.level), claim.place};
                const auto known = priorities.find(input);
                if (known != priorities.end() && known->second < priority)
                    continue;
                const std::optional<CoreAiSpec> *spec = nullptr;
                std::pair decided = priority;
                if (known == priorities.end()) {
                    spec = ownerSpec(input);
                    if (spec)
                        decided = {-1, -1};
                }
                if (!spec)
                    spec = lookUp(call.config->states, m_fx.localNames(input));
                priorities[input] = decided;
                m_stateSpecs[input] = spec && *spec ? **spec : std::optional<CoreAiSpec>();
            }
        return {};
    }

    [[nodiscard]] const std::optional<CoreAiSpec> *ownerSpec(int state) const
    {
        const auto &owners = m_fx.owners(state);
        for (const ConfigLevel level : {ConfigLevel::ModuleName, ConfigLevel::ModuleType})
            for (const int module : m_levels.table(level)) {
                const auto &claim = m_levels.of(module);
                if (!claim.direct || std::find(owners.begin(), owners.end(), pathOf(module)) == owners.end())
                    continue;
                if (const auto *spec = lookUp(claim.config->moduleStates, m_fx.localNames(state)))
                    return spec;
            }
        return nullptr;
    }

    // --- placement ------------------------------------------------------------------------------------------------

    [[nodiscard]] const SpecOverride *overrideOf(int entry, Facet facet, int position) const
    {
        const SpecOverride *found = nullptr;
        for (const SpecOverride &change : m_options.overrides) {
            const bool named =
                std::find(change.nodes.begin(), change.nodes.end(), m_fx.at(entry).node) != change.nodes.end();
            const bool covers = change.facet == Facet::All || change.facet == facet ||
                                (change.facet == Facet::Act && facet != Facet::Weight);
            const bool here = facet != Facet::In || change.facet != Facet::In || change.inputIndex < 0 ||
                              change.inputIndex == position;
            if (named && covers && here)
                found = &change;
        }
        return found;
    }

    Result<std::optional<TensorSpec>> settle(int entry, const std::optional<CoreAiSpec> &spec, bool weight,
                                             const SpecOverride *change)
    {
        if (change)
            return change->spec;
        if (!spec)
            return std::optional<TensorSpec>();
        if (const auto broken = brokenRule(*spec))
            return fail(ErrorCode::Usage, std::string(m_fx.name(entry)), *broken);
        if (weight && spec->calculator == CoreAiCalculator::Dynamic)
            return fail(ErrorCode::Usage, std::string(m_fx.name(entry)),
                        "qparam_calculator_cls dynamic is for activations only");
        if (spec->calculator == CoreAiCalculator::Dynamic && (spec->low || spec->high))
            return fail(ErrorCode::Usage, std::string(m_fx.name(entry)),
                        "qparam_calculator_cls dynamic takes no float_range");
        TensorSpec result = tensorSpecOf(*spec, weight);
        if (m_options.corrected && result.observer == ObserverKind::MovingAverage)
            result.observer = ObserverKind::MinMax;
        const bool perChannel = result.granularity == Granularity::PerChannel;
        const bool perBlock = result.granularity == Granularity::PerBlock && !spec->granularity.perDimension;
        const bool transposed = isConvTranspose(m_fx, entry);
        if (m_options.corrected && weight && perChannel && transposed && result.axis == 0)
            result.axis = 1;
        if ((perChannel || perBlock) && !result.axis) {
            if (!weight || !isWeighted(m_fx, entry))
                return fail(ErrorCode::Usage, std::string(m_fx.name(entry)),
                            "there is no default axis here; write axis into granularity");
            result.axis = (perChannel ? 0 : 1) ^ (transposed ? 1 : 0);
        }
        return std::optional(result);
    }

    // The observer of this name in this module, made at its first use.
    int observer(const std::string &name, const TensorSpec &spec)
    {
        const auto [it, isNew] = m_observers.try_emplace(name, static_cast<int>(m_placement.observers.size()));
        if (isNew)
            m_placement.observers.push_back({spec, name});
        return it->second;
    }

    Result<void> place(const Call &call)
    {
        const std::string path = pathOf(call.module);
        const std::string prefix = (path.empty() ? std::string() : path + ".") + call.name + "_quantize_";
        if (auto placed = placeWeights(call); !placed)
            return placed;
        const Node &node = nodeOf(call.entry);
        int tensorPosition = 0;
        std::set<ValueId> done;
        for (std::size_t a = 0; a < node.inputs.size(); ++a) {
            const auto *value = std::get_if<ValueId>(&node.inputs[a].value);
            const int entry = value ? m_fx.ofValue(*value) : -1;
            if (entry < 0)
                continue;
            const int position = m_graph.value(*value).meta && done.insert(*value).second ? tensorPosition++ : -1;
            if (m_fx.isState(entry) || !quantizable(entry))
                continue;
            const auto *boundary = boundarySpec(entry, true);
            const auto *spec = boundary ? boundary : lookUp(call.config->inputs, {std::to_string(a)});
            auto settled =
                settle(call.entry, spec ? *spec : std::nullopt, false, overrideOf(call.entry, Facet::In, position));
            if (!settled)
                return tl::unexpected(settled.error());
            if (*settled)
                placeInput(
                    call, *value,
                    observer(prefix + (node.inputs[a].name == "self" ? "input" : node.inputs[a].name), **settled));
        }
        return placeOutput(call, prefix);
    }

    Result<void> placeWeights(const Call &call)
    {
        for (const int input : m_fx.at(call.entry).inputs) {
            const auto state = m_stateSpecs.find(input);
            if (state == m_stateSpecs.end())
                continue;
            const bool isWeight = valueArgument(nodeOf(call.entry), "weight") == m_fx.at(input).value;
            const SpecOverride *change =
                isWeight || state->second ? overrideOf(call.entry, Facet::Weight, -1) : nullptr;
            auto settled = settle(call.entry, state->second, true, change);
            if (!settled)
                return tl::unexpected(settled.error());
            if (!*settled)
                continue;
            // A tied weight goes by the layer that reads it first.
            const auto &names = m_fx.localNames(input);
            const std::string path = isWeighted(m_fx, call.entry) && isWeight ? pathOf(call.module) : ownerOf(input);
            const std::string owner = m_weightNames.try_emplace(input, path.empty() ? path : path + ".").first->second;
            PlacedSite site;
            site.role = SiteRole::Weight;
            site.owner = m_fx.at(call.entry).node;
            site.value = m_fx.at(input).value;
            site.readers = {site.owner};
            const auto arguments = distinctTensorArguments(m_graph, nodeOf(call.entry));
            site.inputIndex =
                static_cast<int>(std::find(arguments.begin(), arguments.end(), site.value) - arguments.begin());
            site.instance =
                observer(owner + "parametrizations." + (names.empty() ? std::string("weight") : names.front()) + ".0",
                         **settled);
            m_placement.sites.push_back(std::move(site));
        }
        return {};
    }

    [[nodiscard]] std::string ownerOf(int state) const
    {
        const auto &owners = m_fx.owners(state);
        return owners.empty() ? std::string() : owners.front();
    }

    void placeInput(const Call &call, ValueId value, int instance)
    {
        const NodeId reader = m_fx.at(call.entry).node;
        const auto before = m_outputSite.find(value);
        PlacedSite site;
        site.role = SiteRole::Output;
        site.owner = m_graph.value(value).producer;
        site.value = value;
        site.after = before == m_outputSite.end() ? -1 : before->second;
        site.readers = {reader};
        site.instance = instance;
        if (site.after >= 0)
            std::erase(m_placement.sites[static_cast<std::size_t>(site.after)].readers, reader);
        m_placement.sites.push_back(std::move(site));
    }

    Result<void> placeOutput(const Call &call, const std::string &prefix)
    {
        if (!quantizable(call.entry))
            return {};
        const auto *boundary = boundarySpec(call.entry, false);
        const auto *spec = boundary ? boundary : lookUp(call.config->outputs, {"0"});
        auto settled = settle(call.entry, spec ? *spec : std::nullopt, false, overrideOf(call.entry, Facet::Out, -1));
        if (!settled)
            return tl::unexpected(settled.error());
        if (!*settled)
            return {};
        PlacedSite site;
        site.role = SiteRole::Output;
        site.owner = m_fx.at(call.entry).node;
        site.value = m_fx.at(call.entry).value;
        site.readers = m_graph.readers(site.value);
        std::sort(site.readers.begin(), site.readers.end());
        site.readers.erase(std::unique(site.readers.begin(), site.readers.end()), site.readers.end());
        site.readByOutput = m_graph.isOutput(site.value);
        site.instance = observer(prefix + "output_0", **settled);
        m_outputSite[site.value] = static_cast<int>(m_placement.sites.size());
        m_placement.sites.push_back(std::move(site));
        return {};
    }

    void dropIndivisible()
    {
        std::set<int> removed;
        for (const PlacedSite &site : m_placement.sites) {
            const TensorSpec &spec = m_placement.observers[static_cast<std::size_t>(site.instance)].spec;
            const auto words = indivisibleWords(spec, m_fx.shape(m_fx.ofValue(site.value)));
            if (!words || !removed.insert(site.instance).second)
                continue;
            m_indivisible.emplace(site.value, *words);
            m_placement.warnings.push_back(m_graph.value(site.value).name + ": stays float, " + *words +
                                           "; coreai-opt says so in its log only");
        }
        removeObservers(m_placement, removed);
    }

    void noteDefects()
    {
        if (m_options.corrected)
            return;
        bool averages = false;
        std::set<int> seen;
        for (const PlacedSite &site : m_placement.sites) {
            const TensorSpec &spec = m_placement.observers[static_cast<std::size_t>(site.instance)].spec;
            averages = averages || (site.role != SiteRole::Weight && spec.observer == ObserverKind::MovingAverage);
            if (site.role == SiteRole::Weight && spec.granularity == Granularity::PerChannel && spec.axis == 0 &&
                isConvTranspose(m_fx, m_fx.ofNode(site.owner)) && seen.insert(site.instance).second)
                m_placement.defects.push_back({10, site.owner, transposedAxisWords()});
        }
        if (averages)
            m_placement.defects.push_back({8, NodeId{}, averagingWords()});
    }

    const Graph &m_graph;
    const CoreAiConfig &m_config;
    const CoreAiOptions &m_options;
    CoreAiGraph m_fx;
    ModuleTree m_tree;
    ModuleLevels<CoreAiConfig> m_levels;
    CoreAiAnnotation m_annotation; // configs only: for the reasons of what stays float
    std::vector<Call> m_calls;
    std::map<int, Boundary> m_boundaries;
    std::map<int, std::optional<CoreAiSpec>> m_stateSpecs;
    std::map<int, std::string> m_weightNames; // state -> path of its module with a dot
    std::map<std::string, int> m_observers;
    std::map<ValueId, int> m_outputSite;
    std::map<ValueId, std::string> m_indivisible;
    Placement m_placement;
};

} // namespace

Result<Placement> placeCoreAiEager(const Graph &graph, const CoreAiConfig &config, const CoreAiOptions &options)
{
    return EagerPlacement(graph, config, options).run();
}

} // namespace dblame

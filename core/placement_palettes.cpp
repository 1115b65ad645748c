// SPDX-License-Identifier: GPL-3.0-or-later
//
// coreai-opt's k-means palettizer: lookup tables on the weights of convolutions and linears, placed as its eager mode
// does. What does not divide into groups stays float.
#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "core/coreai_annotation.h"
#include "core/coreai_graph.h"
#include "core/graph_query.h"
#include "core/module_levels.h"
#include "core/placement_coreai.h"
#include "core/placement_coreai_words.h"

namespace dblame
{

namespace
{

bool isPalettized(std::string_view type)
{
    static const std::set<std::string_view> kTypes = {
        "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear"};
    return kTypes.contains(type);
}

const std::optional<PaletteWeightSpec> *lookUpPalette(const PaletteSpecs &specs, const std::vector<std::string> &names)
{
    const std::optional<PaletteWeightSpec> *found = nullptr;
    const std::optional<PaletteWeightSpec> *all = nullptr;
    for (const auto &[key, spec] : specs) {
        if (std::find(names.begin(), names.end(), key) != names.end())
            found = &spec;
        else if (key == "*")
            all = &spec;
    }
    return found ? found : all;
}

class PalettePlacement
{
public:
    PalettePlacement(const Graph &graph, const PaletteConfig &config, const CoreAiOptions &options)
        : m_graph(graph), m_config(config), m_options(options), m_fx(graph), m_tree(graph), m_levels(m_tree, config)
    {
    }

    Result<Placement> run()
    {
        m_placement.warnings = idleKeyWarnings(m_tree, m_levels.idle());
        for (int i = 0; i < m_fx.size(); ++i)
            if (m_fx.isCall(i))
                decide(i);
        for (int i = 0; i < m_fx.size(); ++i)
            if (m_fx.isCall(i))
                if (auto placed = place(i); !placed)
                    return tl::unexpected(placed.error());
        std::stable_sort(m_placement.sites.begin(), m_placement.sites.end(),
                         [&](const PlacedSite &a, const PlacedSite &b) { return inputPlace(a) < inputPlace(b); });
        nameSitesOf(m_graph, m_placement);
        return std::move(m_placement);
    }

private:
    struct Decision {
        std::pair<int, int> priority; // (level, place)
        std::optional<PaletteWeightSpec> spec;
        bool fast = true;
        std::int64_t rounding = 4;
        std::string reason; // of a weight without a spec
    };

    [[nodiscard]] std::int64_t inputPlace(const PlacedSite &site) const
    {
        for (std::size_t i = 0; i < m_graph.inputs.size(); ++i)
            if (m_graph.inputs[i].value == site.value)
                return static_cast<std::int64_t>(i);
        return static_cast<std::int64_t>(m_graph.inputs.size()) + site.value.index;
    }

    [[nodiscard]] std::string callName(int entry)
    {
        const Node &node = m_graph.node(m_fx.at(entry).node);
        const int module = m_tree.ofNode(node);
        const std::string type(m_fx.opType(entry));
        const std::string key = node.modules.empty() ? std::string() : node.modules.back().key;
        const int count = m_counts[key + "/" + type]++;
        const std::string name = count == 0 ? type : type + "_" + std::to_string(count);
        const std::string path = module < 0 ? std::string() : m_tree.modules()[static_cast<std::size_t>(module)].path;
        return path.empty() ? name : path + "." + name;
    }

    const PaletteOpConfig *choose(const PaletteModuleConfig &module, const std::string &name, std::string_view type)
    {
        for (auto it = module.opNames.rbegin(); it != module.opNames.rend(); ++it)
            if (std::regex_match(name, std::regex(it->first)))
                return &it->second;
        for (auto it = module.opTypes.rbegin(); it != module.opTypes.rend(); ++it)
            if (it->first == type)
                return &it->second;
        return &module.op;
    }

    // module_state_spec of an owner reaches its parameters whoever reads them.
    [[nodiscard]] const std::optional<PaletteWeightSpec> *ownerSpec(int state, const PaletteModuleConfig **by) const
    {
        const auto &owners = m_fx.owners(state);
        for (const ConfigLevel level : {ConfigLevel::ModuleName, ConfigLevel::ModuleType})
            for (const int module : m_levels.table(level)) {
                const auto &claim = m_levels.of(module);
                const std::string &path = m_tree.modules()[static_cast<std::size_t>(module)].path;
                if (!claim.direct || std::find(owners.begin(), owners.end(), path) == owners.end())
                    continue;
                if (const auto *spec = lookUpPalette(claim.config->moduleStates, m_fx.localNames(state))) {
                    *by = claim.config;
                    return spec;
                }
            }
        return nullptr;
    }

    void decide(int entry)
    {
        const std::string type(m_fx.opType(entry));
        const bool registered = isPalettized(type);
        const std::string name = registered ? callName(entry) : std::string();
        const auto &claim = m_levels.of(m_tree.ofNode(m_graph.node(m_fx.at(entry).node)));
        for (const int input : m_fx.at(entry).inputs) {
            if (m_fx.at(input).kind != FxKind::State || !m_fx.isFloat(input) || m_fx.isSingleElement(input))
                continue;
            const PaletteModuleConfig *by = claim.config;
            const auto *owner = ownerSpec(input, &by);
            if (!registered && !owner)
                continue;
            const std::pair priority{static_cast<int>(claim.level), claim.place};
            const auto known = m_decisions.find(input);
            if (known != m_decisions.end() && known->second.priority < priority)
                continue;
            Decision decision;
            decision.priority = owner ? std::pair{-1, -1} : priority;
            decision.fast = by->fast && !m_options.corrected;
            decision.rounding = by->roundingPrecision;
            const auto *spec =
                owner ? owner : lookUpPalette(choose(*claim.config, name, type)->states, m_fx.localNames(input));
            if (m_options.excluded.contains(m_fx.at(entry).node) && !owner)
                decision.reason = "left out by the recipe";
            else if (spec && *spec)
                decision.spec = **spec;
            else
                decision.reason =
                    spec ? "the configuration declines it" : "no entry of op_state_spec names the parameter";
            m_decisions.insert_or_assign(input, std::move(decision));
        }
    }

    [[nodiscard]] const SpecOverride *overrideOf(int entry) const
    {
        const SpecOverride *found = nullptr;
        for (const SpecOverride &change : m_options.overrides)
            if ((change.facet == Facet::All || change.facet == Facet::Weight) &&
                std::find(change.nodes.begin(), change.nodes.end(), m_fx.at(entry).node) != change.nodes.end())
                found = &change;
        return found;
    }

    Result<void> place(int entry)
    {
        const Node &node = m_graph.node(m_fx.at(entry).node);
        bool any = false;
        std::string reason;
        int weight = -1;
        for (const int input : m_fx.at(entry).inputs) {
            const bool isWeight =
                valueArgument(node, "weight") == m_fx.at(input).value && m_fx.rank(input).value_or(0) >= 2;
            if (isWeight && m_fx.at(input).kind == FxKind::State)
                weight = input;
            const auto known = m_decisions.find(input);
            if (known == m_decisions.end())
                continue;
            const SpecOverride *change = isWeight ? overrideOf(entry) : nullptr;
            if (change && change->spec && !change->spec->palette)
                return fail(ErrorCode::Usage, change->text,
                            "a palette preset has lookup tables only: " + change->spec->text() + " cannot be placed");
            if (change && !change->spec) {
                reason = "left out by the recipe";
                continue;
            }
            if (!known->second.spec && !change) {
                if (isWeight)
                    reason = known->second.reason;
                continue;
            }
            TensorSpec spec = change ? *change->spec : tensorSpec(entry, known->second);
            if (auto unfit = misfit(spec, known->second, m_fx.shape(input)); !unfit.empty()) {
                m_placement.warnings.push_back(m_graph.value(m_fx.at(input).value).name + ": stays float, " + unfit +
                                               "; coreai-opt says so in its log only");
                if (isWeight)
                    reason = "the weight stays float: " + unfit;
                continue;
            }
            any = any || isWeight;
            addSite(entry, input, std::move(spec));
        }
        if (weight >= 0 && !any)
            m_placement.leftFloat.push_back(
                {m_fx.at(entry).node, reason.empty() ? "coreai-opt's palettizer knows convolutions, linears and "
                                                       "multi-head attention only"
                                                     : reason});
        return {};
    }

    [[nodiscard]] TensorSpec tensorSpec(int entry, const Decision &decision) const
    {
        const PaletteWeightSpec &asked = *decision.spec;
        TensorSpec spec;
        spec.rule = QparamRule::CoreAi;
        spec.arithmetic = Arithmetic::Division;
        spec.observer = ObserverKind::LastBatch;
        spec.scheme = Scheme::Symmetric;
        PaletteSpec palette;
        palette.bits = asked.bits;
        palette.groupSize = asked.groupSize;
        palette.axis = asked.axis.value_or(isConvTranspose(m_fx, entry) ? 1 : 0);
        palette.fast = decision.fast;
        palette.perChannelScale = asked.perChannelScale;
        if (asked.lut) {
            palette.tableType = asked.lut->type;
            palette.tableSymmetric = asked.lut->scheme != Scheme::Affine;
        }
        spec.palette = palette;
        return spec;
    }

    // Why a weight cannot have this table; empty when it can.
    [[nodiscard]] static std::string misfit(const TensorSpec &spec, const Decision &decision,
                                            const std::vector<std::int64_t> &shape)
    {
        const PaletteSpec &palette = *spec.palette;
        if (decision.spec && decision.spec->clusterDim > 1)
            return "tables of vectors (cluster_dim " + std::to_string(decision.spec->clusterDim) +
                   ") depend on random seeds and on the library at hand, and dBlame does not make them";
        if (palette.groupSize == 0)
            return {};
        const auto axis = static_cast<std::size_t>(palette.axis);
        if (axis >= shape.size())
            return "it has no axis " + std::to_string(palette.axis);
        if (shape[axis] % palette.groupSize != 0)
            return "its size " + std::to_string(shape[axis]) + " along axis " + std::to_string(axis) +
                   " is not divisible by groups of " + std::to_string(palette.groupSize);
        return {};
    }

    void addSite(int entry, int input, TensorSpec spec)
    {
        const NodeId reader = m_fx.at(entry).node;
        const ValueId value = m_fx.at(input).value;
        for (PlacedSite &site : m_placement.sites)
            if (site.value == value) {
                site.readers.push_back(reader); // a shared weight has one table
                return;
            }
        PlacedSite site;
        site.role = SiteRole::Weight;
        site.owner = reader;
        site.value = value;
        const auto arguments = distinctTensorArguments(m_graph, m_graph.node(reader));
        site.inputIndex = static_cast<int>(std::find(arguments.begin(), arguments.end(), value) - arguments.begin());
        site.readers = {reader};
        site.instance = static_cast<int>(m_placement.observers.size());
        const auto &owners = m_fx.owners(input);
        const auto &names = m_fx.localNames(input);
        const std::string owner = owners.empty() || owners.front().empty() ? std::string() : owners.front() + ".";
        m_placement.observers.push_back(
            {std::move(spec), owner + "parametrizations." + (names.empty() ? "weight" : names.front()) + ".0"});
        m_placement.sites.push_back(std::move(site));
    }

    const Graph &m_graph;
    const PaletteConfig &m_config;
    const CoreAiOptions &m_options;
    CoreAiGraph m_fx;
    ModuleTree m_tree;
    ModuleLevels<PaletteConfig> m_levels;
    std::map<std::string, int> m_counts;
    std::map<int, Decision> m_decisions;
    Placement m_placement;
};

} // namespace

Result<Placement> placePalettes(const Graph &graph, const PaletteConfig &config, const CoreAiOptions &options)
{
    return PalettePlacement(graph, config, options).run();
}

Result<Placement> placePalettes(const Graph &graph, const PaletteConfig &config, bool corrected)
{
    CoreAiOptions options;
    options.corrected = corrected;
    return placePalettes(graph, config, options);
}

} // namespace dblame

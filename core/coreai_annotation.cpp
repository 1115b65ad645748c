// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/coreai_annotation.h"

#include <algorithm>
#include <set>

#include "core/coreai_slots.h"
#include "core/graph_query.h"
#include "core/selector_pattern.h"

namespace dblame
{

namespace
{

constexpr std::size_t kNearest = 3;

bool hasKey(const CoreAiSpecs &specs, const std::string &key)
{
    return std::any_of(specs.begin(), specs.end(), [&](const auto &entry) { return entry.first == key; });
}

std::optional<double> boundArgument(const Node &node, const char *name)
{
    return numberArgument(node, name);
}

struct Intrinsic {
    Scheme scheme;
    std::optional<double> low, high;
};

// Operators whose results have known bounds.
std::optional<Intrinsic> intrinsicOf(const CoreAiGraph &graph, int entry)
{
    const std::string &target = graph.target(entry);
    const auto is = [&](std::string_view op) {
        return target == "aten." + std::string(op) + ".default" || target == "aten." + std::string(op) + "_.default";
    };
    if (is("tanh"))
        return Intrinsic{Scheme::Symmetric, -1.0, 1.0};
    if (is("sigmoid") || is("hardsigmoid") || target == "aten.softmax.int" || target == "aten._softmax.default")
        return Intrinsic{Scheme::Affine, 0.0, 1.0};
    if (is("relu"))
        return Intrinsic{Scheme::Affine, 0.0, std::nullopt};
    if (is("relu6"))
        return Intrinsic{Scheme::Affine, 0.0, 6.0};
    if (is("hardtanh")) {
        const Node &node = graph.graph().node(graph.at(entry).node);
        const auto low = boundArgument(node, "min_val");
        const auto high = boundArgument(node, "max_val");
        if (low && high)
            return Intrinsic{*low == -*high ? Scheme::Symmetric : Scheme::Affine, low, high};
    }
    return std::nullopt;
}

class Annotator
{
public:
    Annotator(const CoreAiGraph &graph, const ModuleTree &tree, const CoreAiConfig &config,
              const CoreAiOptions &options)
        : m_graph(graph), m_tree(tree), m_config(config), m_options(options), m_levels(tree, config), m_slots(graph)
    {
    }

    Result<CoreAiAnnotation> run()
    {
        m_result.warnings = idleKeyWarnings(m_tree, m_levels.idle());
        auto choice = chooseCoreAiConfigs(m_graph, m_tree, m_levels, m_config, m_options);
        if (!choice)
            return tl::unexpected(choice.error());
        m_result.configs = std::move(choice->configs);
        m_result.covers = std::move(choice->covers);
        m_result.warnings.insert(m_result.warnings.end(), choice->warnings.begin(), choice->warnings.end());
        CoreAiRecords records(m_graph, m_result.covers);
        if (auto seeded = seed(records); !seeded)
            return tl::unexpected(seeded.error());
        if (auto settled = records.settle(); !settled)
            return tl::unexpected(settled.error());
        if (auto resolved = resolve(records); !resolved)
            return tl::unexpected(resolved.error());
        if (auto done = applyModuleSpecs(); !done)
            return tl::unexpected(done.error());
        if (auto done = applyCaches(); !done)
            return tl::unexpected(done.error());
        for (const SpecOverride &change : m_options.overrides)
            for (const NodeId node : change.nodes)
                m_slots.apply(change, m_graph.ofNode(node));
        auto asked = m_slots.write();
        if (!asked)
            return tl::unexpected(asked.error());
        m_result.asked = std::move(*asked);
        return std::move(m_result);
    }

private:
    [[nodiscard]] std::string nameOf(int entry) const { return std::string(m_graph.name(entry)); }
    [[nodiscard]] CoreAiCover &coverOf(int entry) { return m_result.covers[static_cast<std::size_t>(entry)]; }

    // --- seeds ----------------------------------------------------------------------------------------------------

    Result<void> seed(CoreAiRecords &records)
    {
        // In the order of the claims, as the peer does: it decides nothing, but keeps the records comparable.
        std::vector<int> order;
        for (int i = 0; i < m_graph.size(); ++i)
            if (coverOf(i).priority >= 0)
                order.push_back(i);
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return coverOf(a).priority < coverOf(b).priority; });
        for (const int entry : order) {
            if (coverOf(entry).anchor)
                if (auto seeded = seedInputs(records, entry); !seeded)
                    return seeded;
            if (auto seeded = seedOutput(records, entry); !seeded)
                return seeded;
        }
        return {};
    }

    Result<void> seedInputs(CoreAiRecords &records, int entry)
    {
        const CoreAiCover &cover = coverOf(entry);
        const auto &inputs = m_graph.at(entry).inputs;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const int producer = inputs[i];
            const std::string position = std::to_string(i);
            if (std::find(cover.pattern.begin(), cover.pattern.end(), producer) != cover.pattern.end())
                continue;
            if (!m_graph.isFloat(producer) || m_graph.isSingleElement(producer)) {
                if (hasKey(cover.config->inputs, position))
                    m_result.warnings.push_back(nameOf(entry) + ": input " + position +
                                                " is no quantizable tensor; its spec has no effect");
                continue;
            }
            const bool state = m_graph.isState(producer);
            const std::optional<CoreAiSpec> *spec = nullptr;
            static const std::optional<CoreAiSpec> kDeclined;
            if (state) {
                if (hasKey(cover.config->inputs, position))
                    return fail(ErrorCode::Usage, nameOf(entry),
                                "op_input_spec " + position +
                                    " is a parameter; coreai-opt takes parameters in op_state_spec, by name");
                const auto &names = m_graph.localNames(producer);
                spec = names.empty() ? &kDeclined : lookUp(cover.config->states, names);
            } else {
                spec = lookUp(cover.config->inputs, {position});
            }
            const CoreAiSlot slot{entry, static_cast<int>(i)};
            if (!spec)
                continue;
            if (*spec)
                records.populate(slot, **spec, cover.priority, state);
            else
                records.decline(slot, cover.priority);
        }
        return {};
    }

    Result<void> seedOutput(CoreAiRecords &records, int entry)
    {
        const CoreAiCover &cover = coverOf(entry);
        const auto &users = m_graph.at(entry).users;
        if (users.empty() || !m_graph.isFloat(entry) || m_graph.isSingleElement(entry))
            return {};
        const auto inside = static_cast<std::size_t>(std::count_if(users.begin(), users.end(), [&](int user) {
            return std::find(cover.pattern.begin(), cover.pattern.end(), user) != cover.pattern.end();
        }));
        if (inside == users.size())
            return {};
        if (inside > 0)
            return fail(ErrorCode::Usage, nameOf(entry),
                        "is read inside and outside its pattern; coreai-opt refuses to prepare such a model");
        const std::optional<CoreAiSpec> *spec = lookUp(cover.config->outputs, {"0"});
        if (!spec)
            return {};
        const CoreAiSlot slot{entry, -1};
        if (!*spec) {
            records.decline(slot, cover.priority);
            return {};
        }
        records.populate(slot, **spec, cover.priority, false);
        if (const auto intrinsic = intrinsicOf(m_graph, entry)) {
            const bool anyScheme = isInteger((*spec)->type) && !(*spec)->powerOfTwoScale;
            records.setIntrinsic(slot, anyScheme ? std::optional(intrinsic->scheme) : std::nullopt, intrinsic->low,
                                 intrinsic->high);
        }
        return {};
    }

    // --- records to slots -----------------------------------------------------------------------------------------

    // The axis that a weight's spec leaves open, by the operators that read it.
    [[nodiscard]] Result<TensorSpec> withAxis(TensorSpec spec, bool weight, const std::vector<CoreAiSlot> &slots,
                                              bool perDimension)
    {
        const bool perChannel = spec.granularity == Granularity::PerChannel;
        const bool perBlock = spec.granularity == Granularity::PerBlock && !perDimension;
        if (m_options.corrected && weight && perChannel)
            correctTransposed(spec, slots);
        if ((!perChannel && !perBlock) || spec.axis)
            return spec;
        const std::string where = nameOf(slots.front().entry);
        if (!weight)
            return fail(ErrorCode::Usage, where,
                        "an activation quantized per channel or per block needs its axis; write axis into granularity");
        std::set<int> axes;
        for (const CoreAiSlot &slot : slots)
            if (isWeighted(m_graph, slot.entry))
                axes.insert((perChannel ? 0 : 1) ^ (isConvTranspose(m_graph, slot.entry) ? 1 : 0));
        if (axes.size() != 1)
            return fail(ErrorCode::Usage, where,
                        axes.empty()
                            ? "coreai-opt has no default axis for this operator's parameter; write axis into "
                              "granularity"
                            : "the operators that share this parameter have different default axes; write axis "
                              "into granularity");
        spec.axis = *axes.begin();
        return spec;
    }

    void correctTransposed(TensorSpec &spec, const std::vector<CoreAiSlot> &slots) const
    {
        const bool all = std::all_of(slots.begin(), slots.end(),
                                     [&](const CoreAiSlot &slot) { return isConvTranspose(m_graph, slot.entry); });
        if (all && spec.axis == 0)
            spec.axis = 1;
    }

    Result<TensorSpec> concrete(const CoreAiSpec &spec, bool weight, const std::vector<CoreAiSlot> &slots)
    {
        const std::string where = nameOf(slots.front().entry);
        if (const auto broken = brokenRule(spec))
            return fail(ErrorCode::Usage, where, "the specs that meet at this tensor do not go together: " + *broken);
        if (weight && spec.calculator == CoreAiCalculator::Dynamic)
            return fail(ErrorCode::Usage, where, "qparam_calculator_cls dynamic is for activations only");
        if (spec.calculator == CoreAiCalculator::Dynamic && (spec.low || spec.high))
            return fail(ErrorCode::Usage, where,
                        "qparam_calculator_cls dynamic takes no float_range, and this tensor has one (its own, or the "
                        "operator's known bounds)");
        TensorSpec result = tensorSpecOf(spec, weight);
        if (m_options.corrected && result.observer == ObserverKind::MovingAverage)
            result.observer = ObserverKind::MinMax; // or the first batch outweighs all others
        return withAxis(std::move(result), weight, slots, spec.granularity.perDimension);
    }

    Result<void> resolve(const CoreAiRecords &records)
    {
        for (const auto &[record, all] : records.groups()) {
            if (record.declinedBy || !record.fields)
                continue;
            std::vector<CoreAiSlot> slots;
            for (const CoreAiSlot &slot : all) {
                const int tensor =
                    slot.input < 0 ? slot.entry : m_graph.at(slot.entry).inputs[static_cast<std::size_t>(slot.input)];
                if (!m_graph.isSingleElement(tensor))
                    slots.push_back(slot);
            }
            if (slots.empty())
                continue;
            auto spec = concrete(record.fields->spec(), record.fields->weight.value, slots);
            if (!spec)
                return tl::unexpected(spec.error());
            m_slots.ask(slots.front(), std::move(*spec));
            for (std::size_t i = 1; i < slots.size(); ++i)
                m_slots.ask(slots[i], SharedWith{m_slots.keyOf(slots.front())});
        }
        return {};
    }

    // --- module boundaries ----------------------------------------------------------------------------------------

    Result<AskedSpec> boundarySpec(const std::optional<CoreAiSpec> &spec, bool weight, CoreAiSlot slot)
    {
        if (!spec)
            return AskedSpec(NoSpec{});
        auto made = concrete(*spec, weight, {slot});
        if (!made)
            return tl::unexpected(made.error());
        return AskedSpec(std::move(*made));
    }

    [[nodiscard]] bool lies(int entry, const std::string &path) const
    {
        if (!m_graph.isCall(entry))
            return false;
        const auto &frames = m_graph.graph().node(m_graph.at(entry).node).modules;
        return std::any_of(frames.begin(), frames.end(),
                           [&](const ModuleFrame &frame) { return withoutCallNumber(frame.path) == path; });
    }

    Result<void> applyModuleSpecs()
    {
        for (const ConfigLevel level : {ConfigLevel::ModuleType, ConfigLevel::ModuleName})
            for (const int module : m_levels.table(level)) {
                const auto &claim = m_levels.of(module);
                if (!claim.direct || (claim.config->moduleInputs.empty() && claim.config->moduleOutputs.empty()))
                    continue;
                if (auto done = applyBoundary(m_tree.modules()[static_cast<std::size_t>(module)].path, *claim.config);
                    !done)
                    return done;
            }
        for (int i = 0; i < m_graph.size(); ++i)
            if (m_graph.isState(i) && !m_graph.isSingleElement(i))
                if (auto done = applyModuleState(i); !done)
                    return done;
        return {};
    }

    Result<void> applyBoundary(const std::string &path, const CoreAiModuleConfig &config)
    {
        int inputPosition = 0;
        int outputPosition = 0;
        for (int i = 0; i < m_graph.size(); ++i) {
            if (!lies(i, path))
                continue;
            const auto &inputs = m_graph.at(i).inputs;
            for (std::size_t k = 0; k < inputs.size(); ++k) {
                if (m_graph.isState(inputs[k]) || lies(inputs[k], path))
                    continue;
                const auto *spec = lookUp(config.moduleInputs, {std::to_string(inputPosition++)});
                const CoreAiSlot slot{i, static_cast<int>(k)};
                if (auto done = applyAt(slot, inputs[k], spec); !done)
                    return done;
            }
            const auto &users = m_graph.at(i).users;
            if (std::all_of(users.begin(), users.end(), [&](int user) { return lies(user, path); }))
                continue;
            const auto *spec = lookUp(config.moduleOutputs, {std::to_string(outputPosition++)});
            if (auto done = applyAt({i, -1}, i, spec); !done)
                return done;
        }
        return {};
    }

    Result<void> applyAt(CoreAiSlot slot, int tensor, const std::optional<CoreAiSpec> *spec)
    {
        if (!spec || m_graph.isSingleElement(tensor))
            return {};
        auto asked = boundarySpec(*spec, false, slot);
        if (!asked)
            return tl::unexpected(asked.error());
        m_slots.ask(slot, std::move(*asked));
        return {};
    }

    Result<void> applyModuleState(int state)
    {
        for (const ConfigLevel level : {ConfigLevel::ModuleName, ConfigLevel::ModuleType})
            for (const int module : m_levels.table(level)) {
                const auto &claim = m_levels.of(module);
                const auto &owners = m_graph.owners(state);
                const std::string &path = m_tree.modules()[static_cast<std::size_t>(module)].path;
                if (!claim.direct || std::find(owners.begin(), owners.end(), path) == owners.end())
                    continue;
                const auto *spec = lookUp(claim.config->moduleStates, m_graph.localNames(state));
                if (!spec)
                    continue;
                for (const int user : m_graph.at(state).users) {
                    if (!m_graph.isCall(user))
                        continue;
                    const CoreAiSlot slot{user, m_graph.inputIndex(user, state)};
                    auto asked = boundarySpec(*spec, true, slot);
                    if (!asked)
                        return tl::unexpected(asked.error());
                    m_slots.ask(slot, std::move(*asked));
                }
                return {};
            }
        return {};
    }

    // A cache's spec stands alone on its operator, whatever was asked there.
    Result<void> applyCaches()
    {
        for (const auto &[type, op] : m_config.kvCaches) {
            bool any = false;
            for (int i = 0; i < m_graph.size(); ++i) {
                if (m_graph.opType(i) != type)
                    continue;
                any = true;
                const auto position = static_cast<std::size_t>(std::stoul(op.inputs.front().first));
                m_slots.clearOperator(i);
                if (position >= m_graph.at(i).inputs.size())
                    return fail(ErrorCode::Usage, nameOf(i),
                                "kv_cache_quant_configs names input " + std::to_string(position) + " of " +
                                    std::to_string(m_graph.at(i).inputs.size()));
                auto asked = boundarySpec(op.inputs.front().second, false, {i, static_cast<int>(position)});
                if (!asked)
                    return tl::unexpected(asked.error());
                m_slots.ask({i, static_cast<int>(position)}, std::move(*asked));
            }
            if (!any)
                return fail(ErrorCode::Usage, type,
                            "kv_cache_quant_configs names an operator type that the model lacks");
        }
        return {};
    }

    const CoreAiGraph &m_graph;
    const ModuleTree &m_tree;
    const CoreAiConfig &m_config;
    const CoreAiOptions &m_options;
    ModuleLevels<CoreAiConfig> m_levels;
    CoreAiSlots m_slots;
    CoreAiAnnotation m_result;
};

} // namespace

const std::optional<CoreAiSpec> *lookUp(const CoreAiSpecs &specs, const std::vector<std::string> &names)
{
    const std::optional<CoreAiSpec> *found = nullptr;
    const std::optional<CoreAiSpec> *all = nullptr;
    for (const auto &[key, spec] : specs) {
        if (std::find(names.begin(), names.end(), key) != names.end())
            found = &spec;
        else if (key == "*")
            all = &spec;
    }
    return found ? found : all;
}

std::vector<std::string> idleKeyWarnings(const ModuleTree &tree, const IdleKeys &idle)
{
    std::vector<std::string> paths, types, warnings;
    for (const ModuleNode &module : tree.modules()) {
        paths.push_back(module.path);
        types.push_back(module.type);
    }
    const auto warn = [&](const char *what, const std::string &key, const std::vector<std::string> &known) {
        std::string text =
            std::string(what) + " '" + key + "' matches no module of this model, and coreai-opt says nothing";
        const auto near = nearest(key, known, kNearest);
        for (std::size_t i = 0; i < near.size(); ++i)
            text += (i == 0 ? "; nearest: " : ", ") + near[i];
        warnings.push_back(std::move(text));
    };
    for (const auto &key : idle.names)
        warn("module_name_configs", key, paths);
    for (const auto &key : idle.types)
        warn("module_type_configs", key, types);
    return warnings;
}

Result<CoreAiAnnotation> annotateCoreAi(const CoreAiGraph &graph, const ModuleTree &tree, const CoreAiConfig &config,
                                        const CoreAiOptions &options)
{
    return Annotator(graph, tree, config, options).run();
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/coreai_annotation.h"

#include <algorithm>
#include <regex>
#include <set>

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
        : m_graph(graph), m_tree(tree), m_config(config), m_options(options), m_levels(tree, config)
    {
        m_result.configs.resize(static_cast<std::size_t>(graph.size()));
        m_result.covers.resize(static_cast<std::size_t>(graph.size()));
        m_inputs.resize(static_cast<std::size_t>(graph.size()));
        m_outputs.resize(static_cast<std::size_t>(graph.size()));
    }

    Result<CoreAiAnnotation> run()
    {
        m_result.warnings = idleKeyWarnings(m_tree, m_levels.idle());
        if (auto checked = checkKeys(); !checked)
            return tl::unexpected(checked.error());
        const auto patterns = matchCoreAiPatterns(m_graph, cacheTypes());
        chooseConfigs(patterns);
        cover(patterns);
        warnIdleOperators();
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
        applyOverrides();
        if (auto written = write(); !written)
            return tl::unexpected(written.error());
        return std::move(m_result);
    }

private:
    [[nodiscard]] std::string nameOf(int entry) const { return std::string(m_graph.name(entry)); }
    [[nodiscard]] ChosenConfig &configOf(int entry) { return m_result.configs[static_cast<std::size_t>(entry)]; }
    [[nodiscard]] CoreAiCover &coverOf(int entry) { return m_result.covers[static_cast<std::size_t>(entry)]; }

    // --- configuration --------------------------------------------------------------------------------------------

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

    [[nodiscard]] ChosenConfig chooseInModule(int entry, const CoreAiModuleConfig &module) const
    {
        ChosenConfig chosen;
        const std::string name = nameOf(entry);
        for (auto it = module.opNames.rbegin(); it != module.opNames.rend(); ++it)
            if (std::regex_match(name, std::regex(it->first))) {
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
            m_result.warnings.push_back(std::move(text));
        };
        const auto check = [&](const CoreAiModuleConfig &module) {
            for (const auto &[key, op] : module.opNames) {
                const std::regex pattern(key);
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

    // --- annotations ----------------------------------------------------------------------------------------------

    [[nodiscard]] ValueId tensorOf(CoreAiSlot slot) const
    {
        return slot.input < 0 ? m_graph.at(slot.entry).value
                              : m_graph.at(m_graph.at(slot.entry).inputs[static_cast<std::size_t>(slot.input)]).value;
    }

    [[nodiscard]] SpecKey keyOf(CoreAiSlot slot) const
    {
        return slot.input < 0 ? outputKey(tensorOf(slot)) : edgeKey(tensorOf(slot), m_graph.at(slot.entry).node);
    }

    // An output that asks for nothing has no key.
    void ask(CoreAiSlot slot, AskedSpec spec)
    {
        const auto entry = static_cast<std::size_t>(slot.entry);
        if (slot.input < 0) {
            m_outputs[entry] = std::move(spec);
            return;
        }
        m_inputs[entry].resize(m_graph.at(slot.entry).inputs.size());
        m_inputs[entry][static_cast<std::size_t>(slot.input)] = std::move(spec);
    }

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
            ask(slots.front(), std::move(*spec));
            for (std::size_t i = 1; i < slots.size(); ++i)
                ask(slots[i], SharedWith{keyOf(slots.front())});
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
        if (slot.input < 0 && std::holds_alternative<NoSpec>(*asked))
            m_outputs[static_cast<std::size_t>(slot.entry)].reset();
        else
            ask(slot, std::move(*asked));
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
                    ask(slot, std::move(*asked));
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
                const auto entry = static_cast<std::size_t>(i);
                m_outputs[entry].reset();
                m_inputs[entry].assign(m_graph.at(i).inputs.size(), NoSpec{});
                if (position >= m_graph.at(i).inputs.size())
                    return fail(ErrorCode::Usage, nameOf(i),
                                "kv_cache_quant_configs names input " + std::to_string(position) + " of " +
                                    std::to_string(m_graph.at(i).inputs.size()));
                auto asked = boundarySpec(op.inputs.front().second, false, {i, static_cast<int>(position)});
                if (!asked)
                    return tl::unexpected(asked.error());
                ask({i, static_cast<int>(position)}, std::move(*asked));
            }
            if (!any)
                return fail(ErrorCode::Usage, type,
                            "kv_cache_quant_configs names an operator type that the model lacks");
        }
        return {};
    }

    // --- overrides ------------------------------------------------------------------------------------------------

    // A slot leaves its group: the next one of the group becomes the one the others share with.
    void detach(CoreAiSlot slot)
    {
        const SpecKey key = keyOf(slot);
        std::optional<CoreAiSlot> heir;
        std::optional<AskedSpec> spec = current(slot);
        if (!spec || std::holds_alternative<SharedWith>(*spec))
            return;
        eachSlot([&](CoreAiSlot other) {
            const auto asked = current(other);
            const auto *shared = asked ? std::get_if<SharedWith>(&*asked) : nullptr;
            if (other == slot || !shared || shared->key != key)
                return;
            if (!heir) {
                heir = other;
                ask(other, *spec);
            } else {
                ask(other, SharedWith{keyOf(*heir)});
            }
        });
    }

    [[nodiscard]] std::optional<AskedSpec> current(CoreAiSlot slot) const
    {
        const auto entry = static_cast<std::size_t>(slot.entry);
        if (slot.input < 0)
            return m_outputs[entry];
        const auto input = static_cast<std::size_t>(slot.input);
        return input < m_inputs[entry].size() ? m_inputs[entry][input] : std::nullopt;
    }

    template <class F>
    void eachSlot(const F &f)
    {
        for (int i = 0; i < m_graph.size(); ++i) {
            for (int k = 0; k < static_cast<int>(m_graph.at(i).inputs.size()); ++k)
                f(CoreAiSlot{i, k});
            f(CoreAiSlot{i, -1});
        }
    }

    // The slot whose spec counts for this one; nullopt when nothing is asked.
    [[nodiscard]] std::optional<SpecKey> rootOf(CoreAiSlot slot) const
    {
        const auto asked = current(slot);
        if (!asked || std::holds_alternative<NoSpec>(*asked))
            return std::nullopt;
        const auto *shared = std::get_if<SharedWith>(&*asked);
        return shared ? shared->key : keyOf(slot);
    }

    void replace(CoreAiSlot slot, const SpecOverride &change)
    {
        // Readers that were to see what the producer writes still are.
        std::vector<CoreAiSlot> followers;
        if (slot.input < 0 && change.spec)
            for (const int user : m_graph.at(slot.entry).users) {
                const CoreAiSlot reader{user, m_graph.inputIndex(user, slot.entry)};
                if (m_graph.isCall(user) && rootOf(reader) && rootOf(reader) == rootOf(slot))
                    followers.push_back(reader);
            }
        detach(slot);
        for (const CoreAiSlot &reader : followers) {
            detach(reader);
            ask(reader, SharedWith{keyOf(slot)});
        }
        if (change.spec)
            ask(slot, *change.spec);
        else if (slot.input < 0)
            m_outputs[static_cast<std::size_t>(slot.entry)].reset();
        else
            ask(slot, NoSpec{});
    }

    void applyOverrides()
    {
        for (const SpecOverride &change : m_options.overrides)
            for (const NodeId node : change.nodes)
                overrideNode(change, m_graph.ofNode(node));
    }

    void overrideNode(const SpecOverride &change, int entry)
    {
        const Facet facet = change.facet;
        int tensorPosition = 0;
        for (int k = 0; k < static_cast<int>(m_graph.at(entry).inputs.size()); ++k) {
            const int producer = m_graph.at(entry).inputs[static_cast<std::size_t>(k)];
            const auto &value = m_graph.at(producer).value;
            if (!value.valid() || !m_graph.graph().value(value).meta)
                continue;
            const int position = tensorPosition++;
            if (!m_graph.isFloat(producer) || m_graph.isSingleElement(producer))
                continue;
            const bool weight = m_graph.isState(producer);
            const bool wanted =
                weight ? facet == Facet::All || facet == Facet::Weight
                       : facet == Facet::All || facet == Facet::Act ||
                             (facet == Facet::In && (change.inputIndex < 0 || change.inputIndex == position));
            // A spec replaces what is asked; only a weight that has none yet is not given one (a bias).
            if (wanted && (!weight || current({entry, k}) || isWeightArgument(entry, value)))
                replace({entry, k}, change);
        }
        if ((facet == Facet::All || facet == Facet::Act || facet == Facet::Out) && m_graph.isFloat(entry) &&
            !m_graph.isSingleElement(entry))
            replace({entry, -1}, change);
    }

    [[nodiscard]] bool isWeightArgument(int entry, ValueId value) const
    {
        return valueArgument(m_graph.graph().node(m_graph.at(entry).node), "weight") == value;
    }

    // --- result ---------------------------------------------------------------------------------------------------

    Result<void> write()
    {
        for (int i = 0; i < m_graph.size(); ++i) {
            const auto entry = static_cast<std::size_t>(i);
            const bool any = std::any_of(m_inputs[entry].begin(), m_inputs[entry].end(),
                                         [](const auto &spec) { return spec.has_value(); });
            const auto &inputs = m_graph.at(i).inputs;
            for (std::size_t k = 0; any && k < inputs.size(); ++k)
                if (m_graph.at(inputs[k]).value.valid())
                    m_result.asked.set(keyOf({i, static_cast<int>(k)}), m_inputs[entry][k].value_or(NoSpec{}));
            if (m_outputs[entry] && m_graph.at(i).value.valid())
                m_result.asked.set(outputKey(m_graph.at(i).value), *m_outputs[entry]);
        }
        for (const auto &[key, spec] : m_result.asked.entries())
            if (const auto *shared = std::get_if<SharedWith>(&spec); shared && !m_result.asked.find(shared->key))
                return fail(
                    ErrorCode::Usage, m_graph.graph().value(shared->key.value).name,
                    "module_output_spec takes the spec from a tensor that others share; coreai-opt fails on this "
                    "(KeyError). Use op_output_spec of the module instead");
        return {};
    }

    const CoreAiGraph &m_graph;
    const ModuleTree &m_tree;
    const CoreAiConfig &m_config;
    const CoreAiOptions &m_options;
    ModuleLevels<CoreAiConfig> m_levels;
    std::vector<std::vector<std::optional<AskedSpec>>> m_inputs; // per entry and input
    std::vector<std::optional<AskedSpec>> m_outputs;             // per entry
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

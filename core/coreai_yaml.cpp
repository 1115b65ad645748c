// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reading of coreai-opt's configuration files. What it refuses is refused here, with the line; what it drops silently
// becomes a note.
#include <algorithm>
#include <array>
#include <functional>
#include <regex>
#include <set>

#include "core/coreai_config.h"
#include "core/selector_pattern.h"
#include "core/yaml_tree.h"

namespace dblame
{

namespace
{

using Names = std::vector<std::string_view>;

std::string listed(const Names &names)
{
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + std::string(names[i]);
    return text;
}

// The first error is kept; what follows it is not worth reading.
class Reader
{
public:
    Reader(const std::string &fileName, std::vector<std::string> &notes) : m_fileName(fileName), m_notes(notes) {}

    [[nodiscard]] const std::optional<Error> &error() const { return m_error; }

    void refuse(int line, const std::string &message)
    {
        if (!m_error)
            m_error = Error{ErrorCode::Unreadable, place(line), message, {}};
    }
    void note(int line, const std::string &message) { m_notes.push_back(place(line) + ": " + message); }

    // The entries of a mapping. `known` empty: any key.
    [[nodiscard]] const YamlNode &mapping(const YamlNode &node, const std::string &what, const Names &known)
    {
        static const YamlNode kEmpty;
        if (!node.isMap()) {
            refuse(node.line, what + " must be a mapping, not " + node.words());
            return kEmpty;
        }
        for (const auto &[key, value] : node.map) {
            const bool isKnown = known.empty() || std::find(known.begin(), known.end(), key.scalar) != known.end();
            if (!isKnown)
                refuse(key.line, "unknown key " + key.words() + " in " + what + "; " + suggestion(key.scalar, known));
        }
        return node;
    }

    // The same where coreai-opt drops unknown keys.
    [[nodiscard]] const YamlNode &looseMapping(const YamlNode &node, const std::string &what, const Names &known)
    {
        const YamlNode &map = mapping(node, what, {});
        for (const auto &[key, value] : map.map)
            if (std::find(known.begin(), known.end(), key.scalar) == known.end())
                note(key.line,
                     "unknown key " + key.words() + " in " + what + " is ignored; " + suggestion(key.scalar, known));
        return map;
    }

    // A key that must be text: "0" needs its quotes.
    std::string textKey(const YamlNode &key, const std::string &what)
    {
        if (auto text = key.text())
            return *text;
        refuse(key.line, "a key of " + what + " must be text, not " + key.words() + "; write it in quotes: \"" +
                             key.scalar + "\"");
        return {};
    }

    std::int64_t integer(const YamlNode &node, const std::string &what, std::int64_t lowest)
    {
        auto value = node.integer();
        if (!value && node.quoted) { // pydantic reads numbers out of text
            YamlNode plain = node;
            plain.quoted = false;
            value = plain.integer();
        }
        if (!value)
            if (const auto number = node.number();
                number && *number == static_cast<double>(static_cast<std::int64_t>(*number)))
                value = static_cast<std::int64_t>(*number);
        if (!value || *value < lowest) {
            refuse(node.line, what + " must be a whole number" +
                                  (lowest > INT64_MIN ? " of at least " + std::to_string(lowest) : "") + ", not " +
                                  node.words());
            return lowest > INT64_MIN ? lowest : 0;
        }
        return *value;
    }

    bool flag(const YamlNode &node, const std::string &what)
    {
        if (const auto value = node.flag())
            return *value;
        if (const auto number = node.integer(); number && (*number == 0 || *number == 1))
            return *number == 1;
        refuse(node.line, what + " must be true or false, not " + node.words());
        return false;
    }

    double number(const YamlNode &node, const std::string &what)
    {
        if (const auto value = node.number())
            return *value;
        refuse(node.line, what + " must be a number, not " + node.words() +
                              (node.quoted ? std::string() : "; write 1.0e-04 rather than 1e-4"));
        return 0.0;
    }

    // One of the words; its position.
    std::size_t word(const YamlNode &node, const std::string &what, const Names &words)
    {
        const auto it =
            node.kind == YamlNode::Kind::Scalar ? std::find(words.begin(), words.end(), node.scalar) : words.end();
        if (it != words.end())
            return static_cast<std::size_t>(it - words.begin());
        refuse(node.line,
               what + " must be " + (words.size() == 1 ? "" : "one of ") + listed(words) + ", not " + node.words());
        return 0;
    }

    void pattern(const YamlNode &key, const std::string &what)
    {
        if (auto compiled = compilePattern(key.scalar); !compiled)
            refuse(key.line, "the key " + key.words() + " of " + what + ": " + compiled.error().message);
    }

private:
    [[nodiscard]] std::string place(int line) const
    {
        return line > 0 ? m_fileName + ":" + std::to_string(line) : m_fileName;
    }

    static std::string suggestion(const std::string &key, const Names &known)
    {
        const auto near = nearest(key, {known.begin(), known.end()}, 1);
        return "it takes " + listed(known) + (near.empty() ? "" : "; nearest: " + near.front());
    }

    const std::string &m_fileName;
    std::vector<std::string> &m_notes;
    std::optional<Error> m_error;
};

// --- specs ------------------------------------------------------------------------------------------------------

const Names kSpecKeys = {"dtype",
                         "qscheme",
                         "qformulation",
                         "granularity",
                         "fake_quantize_cls",
                         "qparam_calculator_cls",
                         "range_calculator_cls",
                         "float_range",
                         "scale_dtype"};

ElementType readType(Reader &in, const YamlNode &node, const std::string &what)
{
    const auto type = node.kind == YamlNode::Kind::Scalar ? elementTypeFromName(node.scalar) : std::nullopt;
    const bool alias = node.scalar == "float8_e4m3" || node.scalar == "float4_e2m1fn";
    if (type && (coreAiTypeName(*type) == node.scalar || alias))
        return *type;
    in.refuse(node.line, what +
                             " must be int2, int4, int6, int8, their unsigned forms, float8_e4m3fn, float8_e5m2 or "
                             "float4_e2m1fn_x2, not " +
                             node.words() + (node.scalar.starts_with("torch.") ? "; leave out 'torch.'" : ""));
    return ElementType::Int8;
}

CoreAiGranularity readGranularity(Reader &in, const YamlNode &node)
{
    CoreAiGranularity result;
    const YamlNode &map = in.mapping(node, "granularity", {"type", "axis", "block_size"});
    const YamlNode *type = map.find("type");
    if (!type) {
        in.refuse(node.line, "granularity needs its type: per_tensor, per_channel or per_block");
        return result;
    }
    constexpr std::array kKinds = {Granularity::PerTensor, Granularity::PerChannel, Granularity::PerBlock};
    result.kind = kKinds[in.word(*type, "the type of granularity", {"per_tensor", "per_channel", "per_block"})];
    const YamlNode *axis = map.find("axis");
    if (axis && !axis->isNull()) {
        if (result.kind == Granularity::PerTensor)
            in.refuse(axis->line, "per_tensor has no axis");
        result.axis = static_cast<int>(in.integer(*axis, "axis", INT64_MIN));
    }
    const YamlNode *size = map.find("block_size");
    if (result.kind != Granularity::PerBlock) {
        if (size)
            in.refuse(size->line, "only per_block has a block_size");
        return result;
    }
    if (!size) {
        in.refuse(node.line, "per_block needs its block_size");
        return result;
    }
    if (!size->isList()) {
        result.blockSizes = {in.integer(*size, "block_size", 1)};
        return result;
    }
    result.perDimension = true;
    for (const YamlNode &entry : size->list) {
        result.blockSizes.push_back(in.integer(entry, "an entry of block_size", -1));
        if (result.blockSizes.back() == 0)
            in.refuse(entry.line, "an entry of block_size is positive, or -1 for the whole dimension");
    }
    if (result.axis)
        in.refuse(size->line, "a list as block_size has one entry per dimension; leave out axis");
    return result;
}

std::pair<std::optional<double>, std::optional<double>> readRange(Reader &in, const YamlNode &node)
{
    if (!node.isList() || node.list.size() != 2) {
        in.refuse(node.line, "float_range must be a list of two numbers or nulls, such as [null, 6.0]");
        return {};
    }
    const auto bound = [&](const YamlNode &entry) {
        return entry.isNull() ? std::nullopt : std::optional(in.number(entry, "a bound of float_range"));
    };
    return {bound(node.list[0]), bound(node.list[1])};
}

CoreAiSpec readSpec(Reader &in, const YamlNode &node)
{
    CoreAiSpec spec;
    constexpr std::array kSchemes = {Scheme::Symmetric, Scheme::SymmetricWithClipping, Scheme::Affine};
    constexpr std::array kCalculators = {CoreAiCalculator::Default, CoreAiCalculator::Static,
                                         CoreAiCalculator::MovingAverage, CoreAiCalculator::GlobalMinMax,
                                         CoreAiCalculator::Dynamic};
    for (const auto &[key, value] : in.looseMapping(node, "a spec", kSpecKeys).map) {
        if (key.scalar == "dtype") {
            spec.type = readType(in, value, "dtype");
        } else if (key.scalar == "qscheme") {
            spec.scheme = kSchemes[in.word(value, "qscheme", {"symmetric", "symmetric_with_clipping", "asymmetric"})];
        } else if (key.scalar == "qformulation") {
            spec.minValue = in.word(value, "qformulation", {"zp", "minval"}) == 1;
        } else if (key.scalar == "granularity") {
            spec.granularity = readGranularity(in, value);
        } else if (key.scalar == "qparam_calculator_cls") {
            spec.calculator = kCalculators[in.word(
                value, "qparam_calculator_cls", {"default", "static", "moving_average", "global_minmax", "dynamic"})];
        } else if (key.scalar == "float_range") {
            std::tie(spec.low, spec.high) = readRange(in, value);
        } else if (key.scalar == "fake_quantize_cls") {
            (void)in.word(value, "fake_quantize_cls", {"default"}); // others are Python classes
        } else if (key.scalar == "range_calculator_cls") {
            (void)in.word(value, "range_calculator_cls", {"minmax"});
        } else if (key.scalar == "scale_dtype" && !value.isNull()) {
            (void)in.word(value, "scale_dtype", {"float8_e8m0fnu", "float8_e8m0"});
            spec.powerOfTwoScale = true;
        }
    }
    if (spec.type == ElementType::Float4E2M1)
        spec.powerOfTwoScale = true;
    if (const auto broken = brokenRule(spec))
        in.refuse(node.line, *broken);
    return spec;
}

enum class KeyKind { Positions, Names };

template <class Spec, class Read>
KeyedList<std::optional<Spec>> readSpecs(Reader &in, const YamlNode &node, const std::string &what, KeyKind kind,
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

CoreAiSpecs activationSpecs(Reader &in, const YamlNode &node, const std::string &what, bool nullDeclines)
{
    return readSpecs<CoreAiSpec>(in, node, what, KeyKind::Positions, nullDeclines, readSpec);
}

CoreAiSpecs stateSpecs(Reader &in, const YamlNode &node, const std::string &what, bool nullDeclines)
{
    return readSpecs<CoreAiSpec>(in, node, what, KeyKind::Names, nullDeclines, readSpec);
}

// Entries in order; a null entry is `declined`.
template <class Config, class Read>
KeyedList<Config> readKeyed(Reader &in, const YamlNode &node, const std::string &what, const Read &read)
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

bool readOpSpecs(Reader &in, const std::string &key, const YamlNode &value, CoreAiOpConfig &op)
{
    if (key == "op_input_spec")
        op.inputs = activationSpecs(in, value, key, true);
    else if (key == "op_output_spec")
        op.outputs = activationSpecs(in, value, key, true);
    else if (key == "op_state_spec")
        op.states = stateSpecs(in, value, key, true);
    else
        return false;
    return true;
}

CoreAiOpConfig readOp(Reader &in, const YamlNode &node)
{
    CoreAiOpConfig op;
    for (const auto &[key, value] :
         in.mapping(node, "an operator's configuration", {"op_input_spec", "op_output_spec", "op_state_spec"}).map)
        readOpSpecs(in, key.scalar, value, op);
    return op;
}

QatSchedule readSchedule(Reader &in, const YamlNode &node)
{
    QatSchedule schedule;
    for (const auto &[key, value] :
         in.looseMapping(node, "qat_schedule", {"enable_observer", "enable_fake_quant", "disable_observer"}).map) {
        if (key.scalar == "enable_observer")
            schedule.enableObserver = in.integer(value, key.scalar, 0);
        else if (key.scalar == "enable_fake_quant")
            schedule.enableFakeQuant = in.integer(value, key.scalar, 0);
        else if (key.scalar == "disable_observer" && !value.isNull())
            schedule.disableObserver = in.integer(value, key.scalar, 1);
    }
    if (schedule.enableFakeQuant < schedule.enableObserver)
        in.refuse(node.line, "enable_fake_quant must not be below enable_observer");
    if (schedule.disableObserver &&
        (*schedule.disableObserver <= schedule.enableObserver || *schedule.disableObserver < schedule.enableFakeQuant))
        in.refuse(node.line, "disable_observer must be above enable_observer and not below enable_fake_quant");
    return schedule;
}

const Names kModuleKeys = {"op_input_spec",      "op_output_spec",    "op_state_spec",
                           "op_type_config",     "op_name_config",    "module_input_spec",
                           "module_output_spec", "module_state_spec", "qat_schedule"};

CoreAiModuleConfig readModule(Reader &in, const YamlNode &node)
{
    CoreAiModuleConfig module;
    for (const auto &[key, value] : in.mapping(node, "a module's configuration", kModuleKeys).map) {
        if (readOpSpecs(in, key.scalar, value, module.op))
            continue;
        if (key.scalar == "op_type_config")
            module.opTypes = readKeyed<CoreAiOpConfig>(in, value, key.scalar, readOp);
        else if (key.scalar == "op_name_config")
            module.opNames = readKeyed<CoreAiOpConfig>(in, value, key.scalar, readOp);
        else if (key.scalar == "module_input_spec")
            module.moduleInputs = activationSpecs(in, value, key.scalar, false);
        else if (key.scalar == "module_output_spec")
            module.moduleOutputs = activationSpecs(in, value, key.scalar, false);
        else if (key.scalar == "module_state_spec")
            module.moduleStates = stateSpecs(in, value, key.scalar, false);
        else if (key.scalar == "qat_schedule" && !value.isNull())
            module.qatSchedule = readSchedule(in, value);
    }
    return module;
}

bool isActive(const CoreAiSpecs &specs)
{
    return std::any_of(specs.begin(), specs.end(), [](const auto &entry) { return entry.second.has_value(); });
}

CoreAiOpConfig readCache(Reader &in, const YamlNode &node)
{
    CoreAiOpConfig op;
    const YamlNode *inner =
        in.looseMapping(node, "a key-value cache's configuration", {"op_quantizer_config"}).find("op_quantizer_config");
    if (!inner) {
        in.refuse(node.line, "a key-value cache needs its op_quantizer_config");
        return op;
    }
    op = readOp(in, *inner);
    const bool onePosition = op.inputs.size() == 1 && op.inputs.front().second && op.inputs.front().first != "*" &&
                             op.inputs.front().first.find_first_not_of("0123456789") == std::string::npos;
    if (!onePosition)
        in.refuse(inner->line, "op_input_spec of a key-value cache holds one position with its spec");
    if (isActive(op.outputs) || isActive(op.states))
        in.refuse(inner->line, "op_output_spec and op_state_spec of a key-value cache must be null");
    return op;
}

CoreAiConfig readConfig(Reader &in, const YamlNode &node)
{
    CoreAiConfig config;
    for (const auto &[key, value] : in.mapping(node, "quantization_config",
                                               {"execution_mode", "preserved_attributes", "kv_cache_quant_configs",
                                                "global_config", "module_type_configs", "module_name_configs"})
                                        .map) {
        if (key.scalar == "execution_mode") {
            config.mode =
                in.word(value, key.scalar, {"graph", "eager", "pt2e"}) == 1 ? CoreAiMode::Eager : CoreAiMode::Graph;
        } else if (key.scalar == "preserved_attributes" && !value.isNull()) {
            config.preservedAttributes.emplace();
            if (!value.isList())
                in.refuse(value.line, "preserved_attributes must be a list of names");
            for (const YamlNode &entry : value.list)
                config.preservedAttributes->push_back(in.textKey(entry, key.scalar));
        } else if (key.scalar == "kv_cache_quant_configs" && !value.isNull()) {
            for (const auto &[op, cache] : in.mapping(value, key.scalar, {}).map)
                config.kvCaches.emplace_back(in.textKey(op, key.scalar), readCache(in, cache));
        } else if (key.scalar == "global_config") {
            config.global = value.isNull() ? CoreAiModuleConfig::declined() : readModule(in, value);
            if (!config.global.moduleInputs.empty() || !config.global.moduleOutputs.empty() ||
                !config.global.moduleStates.empty())
                in.refuse(key.line, "global_config takes no module_input_spec, module_output_spec or "
                                    "module_state_spec; put them under module_name_configs or module_type_configs");
        } else if (key.scalar == "module_type_configs") {
            config.moduleTypes = readKeyed<CoreAiModuleConfig>(in, value, key.scalar, readModule);
        } else if (key.scalar == "module_name_configs") {
            config.moduleNames = readKeyed<CoreAiModuleConfig>(in, value, key.scalar, readModule);
        }
    }
    if (config.mode == CoreAiMode::Eager && !config.kvCaches.empty())
        in.refuse(node.line, "kv_cache_quant_configs needs execution_mode graph");
    return config;
}

// --- palettes ---------------------------------------------------------------------------------------------------

void readPaletteGranularity(Reader &in, const YamlNode &node, PaletteWeightSpec &spec)
{
    const YamlNode &map = in.mapping(node, "granularity", {"type", "axis", "group_size"});
    const YamlNode *type = map.find("type");
    if (!type) {
        in.refuse(node.line, "granularity needs its type: per_tensor or per_grouped_channel");
        return;
    }
    const bool grouped = in.word(*type, "the type of granularity", {"per_tensor", "per_grouped_channel"}) == 1;
    const YamlNode *axis = map.find("axis");
    const YamlNode *size = map.find("group_size");
    if (!grouped && ((axis && !axis->isNull()) || size))
        in.refuse(node.line, "per_tensor has neither axis nor group_size");
    if (!grouped)
        return;
    if (!size) {
        in.refuse(node.line, "per_grouped_channel needs its group_size");
        return;
    }
    spec.groupSize = in.integer(*size, "group_size", 1);
    if (axis && !axis->isNull()) {
        spec.axis = static_cast<int>(in.integer(*axis, "axis", 0));
        if (*spec.axis > 1)
            in.refuse(axis->line, "the axis of per_grouped_channel is 0 or 1");
    }
}

CoreAiSpec readTableSpec(Reader &in, const YamlNode &node)
{
    const CoreAiSpec spec = readSpec(in, node);
    const bool known = spec.type == ElementType::Int8 || spec.type == ElementType::UInt8 ||
                       spec.type == ElementType::Float8E4M3 || spec.type == ElementType::Float8E5M2;
    if (!known)
        in.refuse(node.line, "lut_qspec takes int8, uint8, float8_e4m3fn and float8_e5m2");
    else if (spec.granularity.kind != Granularity::PerTensor)
        in.refuse(node.line, "lut_qspec is per_tensor");
    else if (spec.minValue)
        in.refuse(node.line, "lut_qspec takes qformulation zp only");
    else if (isInteger(spec.type) && spec.powerOfTwoScale)
        in.refuse(node.line, "lut_qspec of an integer type has no scale_dtype");
    return spec;
}

PaletteWeightSpec readPaletteSpec(Reader &in, const YamlNode &node)
{
    PaletteWeightSpec spec;
    for (const auto &[key, value] :
         in.mapping(node, "a palette's spec",
                    {"n_bits", "lut_qspec", "granularity", "cluster_dim", "enable_per_channel_scale",
                     "training_strategy_spec", "sparsity_detection_threshold"})
             .map) {
        if (key.scalar == "n_bits") {
            spec.bits = static_cast<int>(in.integer(value, "n_bits", 1));
            if (!value.integer() || spec.bits > 8 || spec.bits == 5 || spec.bits == 7)
                in.refuse(value.line, "n_bits must be 1, 2, 3, 4, 6 or 8, not " + value.words());
        } else if (key.scalar == "lut_qspec" && !value.isNull()) {
            spec.lut = readTableSpec(in, value);
        } else if (key.scalar == "granularity") {
            readPaletteGranularity(in, value, spec);
        } else if (key.scalar == "cluster_dim") {
            spec.clusterDim = static_cast<int>(in.integer(value, "cluster_dim", 1));
        } else if (key.scalar == "enable_per_channel_scale") {
            spec.perChannelScale = in.flag(value, key.scalar);
        } else if (key.scalar == "training_strategy_spec") {
            if (const YamlNode *type = in.mapping(value, key.scalar, {"type"}).find("type"))
                (void)in.word(*type, "the type of training_strategy_spec", {"default"});
        } else if (key.scalar == "sparsity_detection_threshold" && !value.isNull()) {
            spec.sparsityThreshold = in.number(value, key.scalar);
            if (*spec.sparsityThreshold < 0.0 || *spec.sparsityThreshold > 1.0)
                in.refuse(value.line, "sparsity_detection_threshold lies between 0 and 1");
        }
    }
    return spec;
}

PaletteSpecs paletteSpecs(Reader &in, const YamlNode &node, const std::string &what, bool nullDeclines)
{
    return readSpecs<PaletteWeightSpec>(in, node, what, KeyKind::Names, nullDeclines, readPaletteSpec);
}

// Activations cannot be palettized: only null, {} and null entries pass.
bool readNoActivations(Reader &in, const std::string &key, const YamlNode &value)
{
    if (!key.ends_with("_input_spec") && !key.ends_with("_output_spec"))
        return false;
    if (value.isNull())
        return true;
    for (const auto &[position, spec] : in.mapping(value, key, {}).map)
        if (!spec.isNull())
            in.refuse(position.line, "a palettizer has only weights: " + key + " must be null");
    return true;
}

PaletteOpConfig readPaletteOp(Reader &in, const YamlNode &node)
{
    PaletteOpConfig op;
    for (const auto &[key, value] :
         in.mapping(node, "an operator's configuration", {"op_input_spec", "op_output_spec", "op_state_spec"}).map)
        if (!readNoActivations(in, key.scalar, value))
            op.states = paletteSpecs(in, value, key.scalar, true);
    return op;
}

VectorKMeans readVectorKMeans(Reader &in, const YamlNode &node)
{
    VectorKMeans settings;
    for (const auto &[key, value] :
         in.mapping(node, "vector_kmeans_config", {"n_local_trials", "n_init", "max_iter", "tol"}).map) {
        if (key.scalar == "n_local_trials" && !value.isNull())
            settings.localTrials = in.integer(value, key.scalar, 1);
        else if (key.scalar == "n_init")
            settings.runs = in.integer(value, key.scalar, 1);
        else if (key.scalar == "max_iter")
            settings.maxIterations = in.integer(value, key.scalar, 1);
        else if (key.scalar == "tol")
            settings.tolerance = in.number(value, key.scalar);
    }
    if (settings.tolerance < 0.0)
        in.refuse(node.line, "tol must not be negative");
    return settings;
}

bool hasVectors(const PaletteSpecs &specs)
{
    return std::any_of(specs.begin(), specs.end(),
                       [](const auto &entry) { return entry.second && entry.second->clusterDim > 1; });
}

void checkVectors(Reader &in, const YamlNode &node, const PaletteModuleConfig &module)
{
    if (module.fast && hasVectors(module.op.states))
        in.refuse(node.line, "cluster_dim above 1 needs enable_fast_kmeans_mode: false");
    const auto among = [](const KeyedList<PaletteOpConfig> &list) {
        return std::any_of(list.begin(), list.end(), [](const auto &entry) { return hasVectors(entry.second.states); });
    };
    if (module.vectorKMeans && !hasVectors(module.op.states) && !hasVectors(module.moduleStates) &&
        !among(module.opTypes) && !among(module.opNames))
        in.refuse(node.line, "vector_kmeans_config needs a spec with cluster_dim above 1");
}

const Names kPaletteModuleKeys = {"op_input_spec",      "op_output_spec",    "op_state_spec",
                                  "op_type_config",     "op_name_config",    "module_input_spec",
                                  "module_output_spec", "module_state_spec", "enable_fast_kmeans_mode",
                                  "rounding_precision", "pat_schedule",      "vector_kmeans_config"};

PaletteModuleConfig readPaletteModule(Reader &in, const YamlNode &node)
{
    PaletteModuleConfig module;
    for (const auto &[key, value] : in.mapping(node, "a module's configuration", kPaletteModuleKeys).map) {
        if (readNoActivations(in, key.scalar, value))
            continue;
        if (key.scalar == "op_state_spec") {
            module.op.states = paletteSpecs(in, value, key.scalar, true);
        } else if (key.scalar == "op_type_config") {
            module.opTypes = readKeyed<PaletteOpConfig>(in, value, key.scalar, readPaletteOp);
        } else if (key.scalar == "op_name_config") {
            module.opNames = readKeyed<PaletteOpConfig>(in, value, key.scalar, readPaletteOp);
        } else if (key.scalar == "module_state_spec") {
            module.moduleStates = paletteSpecs(in, value, key.scalar, false);
        } else if (key.scalar == "enable_fast_kmeans_mode") {
            module.fast = in.flag(value, key.scalar);
        } else if (key.scalar == "rounding_precision") {
            module.roundingPrecision = in.integer(value, key.scalar, 1);
        } else if (key.scalar == "pat_schedule" && !value.isNull()) {
            const YamlNode *step =
                in.looseMapping(value, key.scalar, {"enable_fake_palettize"}).find("enable_fake_palettize");
            module.enableFakePalettize = step ? in.integer(*step, "enable_fake_palettize", 0) : 0;
        } else if (key.scalar == "vector_kmeans_config" && !value.isNull()) {
            module.vectorKMeans = readVectorKMeans(in, value);
        }
    }
    checkVectors(in, node, module);
    return module;
}

PaletteConfig readPalettes(Reader &in, const YamlNode &node)
{
    PaletteConfig config;
    for (const auto &[key, value] : in.mapping(node, "kmeans_palettization_config",
                                               {"global_config", "module_type_configs", "module_name_configs"})
                                        .map) {
        if (key.scalar == "global_config") {
            config.global = value.isNull() ? PaletteModuleConfig::declined() : readPaletteModule(in, value);
            if (!config.global.moduleStates.empty())
                in.refuse(key.line, "global_config takes no module_state_spec; put it under module_name_configs or "
                                    "module_type_configs");
        } else if (key.scalar == "module_type_configs") {
            config.moduleTypes = readKeyed<PaletteModuleConfig>(in, value, key.scalar, readPaletteModule);
        } else if (key.scalar == "module_name_configs") {
            config.moduleNames = readKeyed<PaletteModuleConfig>(in, value, key.scalar, readPaletteModule);
        }
    }
    return config;
}

template <class Config>
Result<Config> parseFile(std::string_view text, const std::string &fileName, std::vector<std::string> &notes,
                         const std::string &configKey, const std::string &specKey,
                         const std::function<Config(Reader &, const YamlNode &)> &read)
{
    const auto document = parseYaml(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    if (document->isNull())
        return fail(ErrorCode::Unreadable, fileName, "is empty; it needs the key " + configKey);
    Reader in(fileName, notes);
    const YamlNode *body = in.mapping(*document, "the file", {specKey, configKey}).find(configKey);
    if (!body)
        in.refuse(document->line, "the file needs the key " + configKey);
    Config config = body ? read(in, *body) : Config{};
    if (in.error())
        return tl::unexpected(*in.error());
    return config;
}

} // namespace

Result<CoreAiConfig> parseCoreAiConfig(std::string_view text, const std::string &fileName,
                                       std::vector<std::string> &notes)
{
    return parseFile<CoreAiConfig>(text, fileName, notes, "quantization_config", "quantization_spec", readConfig);
}

Result<PaletteConfig> parsePaletteConfig(std::string_view text, const std::string &fileName,
                                         std::vector<std::string> &notes)
{
    return parseFile<PaletteConfig>(text, fileName, notes, "kmeans_palettization_config", "palettization_spec",
                                    readPalettes);
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reading of QuantizerConfig's files.
#include <array>
#include <tuple>

#include "core/config_reader.h"

namespace dblame
{

namespace
{

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

ElementType readType(ConfigReader &in, const YamlNode &node, const std::string &what)
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

CoreAiGranularity readGranularity(ConfigReader &in, const YamlNode &node)
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

std::pair<std::optional<double>, std::optional<double>> readRange(ConfigReader &in, const YamlNode &node)
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

} // namespace

CoreAiSpec readCoreAiSpec(ConfigReader &in, const YamlNode &node)
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

namespace
{

CoreAiSpecs activationSpecs(ConfigReader &in, const YamlNode &node, const std::string &what, bool nullDeclines)
{
    return readSpecs<CoreAiSpec>(in, node, what, KeyKind::Positions, nullDeclines, readCoreAiSpec);
}

CoreAiSpecs stateSpecs(ConfigReader &in, const YamlNode &node, const std::string &what, bool nullDeclines)
{
    return readSpecs<CoreAiSpec>(in, node, what, KeyKind::Names, nullDeclines, readCoreAiSpec);
}

bool readOpSpecs(ConfigReader &in, const std::string &key, const YamlNode &value, CoreAiOpConfig &op)
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

CoreAiOpConfig readOp(ConfigReader &in, const YamlNode &node)
{
    CoreAiOpConfig op;
    for (const auto &[key, value] :
         in.mapping(node, "an operator's configuration", {"op_input_spec", "op_output_spec", "op_state_spec"}).map)
        readOpSpecs(in, key.scalar, value, op);
    return op;
}

QatSchedule readSchedule(ConfigReader &in, const YamlNode &node)
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

CoreAiModuleConfig readModule(ConfigReader &in, const YamlNode &node)
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

CoreAiOpConfig readCache(ConfigReader &in, const YamlNode &node)
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

CoreAiConfig readConfig(ConfigReader &in, const YamlNode &node)
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

} // namespace

Result<CoreAiConfig> parseCoreAiConfig(std::string_view text, const std::string &fileName,
                                       std::vector<std::string> &notes)
{
    return parseFile<CoreAiConfig>(text, fileName, notes, "quantization_config", "quantization_spec", readConfig);
}

} // namespace dblame

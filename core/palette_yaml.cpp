// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reading of KMeansPalettizerConfig's files.
#include "core/config_reader.h"

namespace dblame
{

namespace
{

void readPaletteGranularity(ConfigReader &in, const YamlNode &node, PaletteWeightSpec &spec)
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

CoreAiSpec readTableSpec(ConfigReader &in, const YamlNode &node)
{
    const CoreAiSpec spec = readCoreAiSpec(in, node);
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

PaletteWeightSpec readPaletteSpec(ConfigReader &in, const YamlNode &node)
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

PaletteSpecs paletteSpecs(ConfigReader &in, const YamlNode &node, const std::string &what, bool nullDeclines)
{
    return readSpecs<PaletteWeightSpec>(in, node, what, KeyKind::Names, nullDeclines, readPaletteSpec);
}

// Activations cannot be palettized: only null, {} and null entries pass.
bool readNoActivations(ConfigReader &in, const std::string &key, const YamlNode &value)
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

PaletteOpConfig readPaletteOp(ConfigReader &in, const YamlNode &node)
{
    PaletteOpConfig op;
    for (const auto &[key, value] :
         in.mapping(node, "an operator's configuration", {"op_input_spec", "op_output_spec", "op_state_spec"}).map)
        if (!readNoActivations(in, key.scalar, value))
            op.states = paletteSpecs(in, value, key.scalar, true);
    return op;
}

VectorKMeans readVectorKMeans(ConfigReader &in, const YamlNode &node)
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

void checkVectors(ConfigReader &in, const YamlNode &node, const PaletteModuleConfig &module)
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

PaletteModuleConfig readPaletteModule(ConfigReader &in, const YamlNode &node)
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

PaletteConfig readPalettes(ConfigReader &in, const YamlNode &node)
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

} // namespace

Result<PaletteConfig> parsePaletteConfig(std::string_view text, const std::string &fileName,
                                         std::vector<std::string> &notes)
{
    return parseFile<PaletteConfig>(text, fileName, notes, "kmeans_palettization_config", "palettization_spec",
                                    readPalettes);
}

} // namespace dblame

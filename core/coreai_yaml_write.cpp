// SPDX-License-Identifier: GPL-3.0-or-later
//
// Writing of coreai-opt's configuration files. Keys and spellings as its from_yaml takes them; every field is written,
// because what is left out takes a default that is not the parent's value.
#include "core/coreai_config.h"
#include "core/yaml_tree.h"

namespace dblame
{

namespace
{

const char *schemeWord(Scheme scheme)
{
    switch (scheme) {
    case Scheme::Symmetric:
        return "symmetric";
    case Scheme::SymmetricWithClipping:
        return "symmetric_with_clipping";
    case Scheme::Affine:
        return "asymmetric";
    }
    return "";
}

const char *calculatorWord(CoreAiCalculator calculator)
{
    switch (calculator) {
    case CoreAiCalculator::Default:
        return "default";
    case CoreAiCalculator::Static:
        return "static";
    case CoreAiCalculator::MovingAverage:
        return "moving_average";
    case CoreAiCalculator::GlobalMinMax:
        return "global_minmax";
    case CoreAiCalculator::Dynamic:
        return "dynamic";
    }
    return "";
}

std::string granularityFlow(const CoreAiGranularity &granularity)
{
    const std::string axis = granularity.axis ? std::to_string(*granularity.axis) : "null";
    switch (granularity.kind) {
    case Granularity::PerChannel:
        return "{type: per_channel, axis: " + axis + "}";
    case Granularity::PerBlock: {
        std::string sizes;
        for (const auto size : granularity.blockSizes)
            sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
        return "{type: per_block, axis: " + axis +
               ", block_size: " + (granularity.perDimension ? "[" + sizes + "]" : sizes) + "}";
    }
    default:
        return "{type: per_tensor}";
    }
}

std::string boundFlow(const std::optional<double> &bound)
{
    return bound ? YamlWriter::number(*bound) : "null";
}

std::string specFlow(const CoreAiSpec &spec)
{
    return "{dtype: " + std::string(coreAiTypeName(spec.type).value_or("int8")) +
           ", qscheme: " + schemeWord(spec.scheme) + ", qformulation: " + (spec.minValue ? "minval" : "zp") +
           ", granularity: " + granularityFlow(spec.granularity) +
           ", fake_quantize_cls: default, qparam_calculator_cls: " + calculatorWord(spec.calculator) +
           ", range_calculator_cls: minmax, float_range: [" + boundFlow(spec.low) + ", " + boundFlow(spec.high) +
           "], scale_dtype: " + (spec.powerOfTwoScale ? "float8_e8m0fnu" : "null") + "}";
}

std::string specFlow(const PaletteWeightSpec &spec)
{
    std::string granularity = "{type: per_tensor}";
    if (spec.groupSize > 0)
        granularity = "{type: per_grouped_channel, axis: " + (spec.axis ? std::to_string(*spec.axis) : "null") +
                      ", group_size: " + std::to_string(spec.groupSize) + "}";
    return "{n_bits: " + std::to_string(spec.bits) + ", granularity: " + granularity +
           ", cluster_dim: " + std::to_string(spec.clusterDim) +
           ", enable_per_channel_scale: " + (spec.perChannelScale ? "true" : "false") +
           ", lut_qspec: " + (spec.lut ? specFlow(*spec.lut) : "null") +
           ", sparsity_detection_threshold: " + boundFlow(spec.sparsityThreshold) + "}";
}

template <class Spec>
void writeSpecs(YamlWriter &out, std::string_view key, const KeyedList<std::optional<Spec>> &specs, bool nullDeclines)
{
    const bool declined = specs.size() == 1 && specs.front().first == "*" && !specs.front().second;
    if (nullDeclines && declined) {
        out.line(key, "null");
        return;
    }
    if (specs.empty()) {
        out.line(key, "{}");
        return;
    }
    out.open(key);
    for (const auto &[name, spec] : specs)
        out.line(name, spec ? specFlow(*spec) : "null");
    out.close();
}

void writeOp(YamlWriter &out, const CoreAiOpConfig &op)
{
    writeSpecs(out, "op_input_spec", op.inputs, true);
    writeSpecs(out, "op_output_spec", op.outputs, true);
    writeSpecs(out, "op_state_spec", op.states, true);
}

void writeOp(YamlWriter &out, const PaletteOpConfig &op)
{
    writeSpecs(out, "op_state_spec", op.states, true);
}

void writeModule(YamlWriter &out, const CoreAiModuleConfig &module);
void writeModule(YamlWriter &out, const PaletteModuleConfig &module);

inline void writeEntry(YamlWriter &out, const CoreAiOpConfig &op)
{
    writeOp(out, op);
}
inline void writeEntry(YamlWriter &out, const PaletteOpConfig &op)
{
    writeOp(out, op);
}
inline void writeEntry(YamlWriter &out, const CoreAiModuleConfig &module)
{
    writeModule(out, module);
}
inline void writeEntry(YamlWriter &out, const PaletteModuleConfig &module)
{
    writeModule(out, module);
}

template <class Config>
void writeKeyed(YamlWriter &out, std::string_view key, const KeyedList<Config> &list)
{
    if (list.empty()) {
        out.line(key, "{}");
        return;
    }
    out.open(key);
    for (const auto &[name, config] : list) {
        if (config == Config::declined()) {
            out.line(name, "null");
            continue;
        }
        out.open(name);
        writeEntry(out, config);
        out.close();
    }
    out.close();
}

void writeModule(YamlWriter &out, const CoreAiModuleConfig &module)
{
    writeOp(out, module.op);
    writeKeyed(out, "op_type_config", module.opTypes);
    writeKeyed(out, "op_name_config", module.opNames);
    if (!module.moduleInputs.empty())
        writeSpecs(out, "module_input_spec", module.moduleInputs, false);
    if (!module.moduleOutputs.empty())
        writeSpecs(out, "module_output_spec", module.moduleOutputs, false);
    if (!module.moduleStates.empty())
        writeSpecs(out, "module_state_spec", module.moduleStates, false);
    if (const auto &schedule = module.qatSchedule)
        out.line("qat_schedule",
                 "{enable_observer: " + std::to_string(schedule->enableObserver) +
                     ", enable_fake_quant: " + std::to_string(schedule->enableFakeQuant) + ", disable_observer: " +
                     (schedule->disableObserver ? std::to_string(*schedule->disableObserver) : "null") + "}");
}

void writeModule(YamlWriter &out, const PaletteModuleConfig &module)
{
    writeOp(out, module.op);
    writeKeyed(out, "op_type_config", module.opTypes);
    writeKeyed(out, "op_name_config", module.opNames);
    if (!module.moduleStates.empty())
        writeSpecs(out, "module_state_spec", module.moduleStates, false);
    out.line("enable_fast_kmeans_mode", module.fast ? "true" : "false");
    out.line("rounding_precision", std::to_string(module.roundingPrecision));
    if (module.enableFakePalettize)
        out.line("pat_schedule", "{enable_fake_palettize: " + std::to_string(*module.enableFakePalettize) + "}");
    if (const auto &vectors = module.vectorKMeans)
        out.line("vector_kmeans_config",
                 "{n_local_trials: " + (vectors->localTrials ? std::to_string(*vectors->localTrials) : "null") +
                     ", n_init: " + std::to_string(vectors->runs) + ", max_iter: " +
                     std::to_string(vectors->maxIterations) + ", tol: " + YamlWriter::number(vectors->tolerance) + "}");
}

template <class Config>
void writeLevels(YamlWriter &out, const Config &config)
{
    if (config.global == std::decay_t<decltype(config.global)>::declined()) {
        out.line("global_config", "null");
    } else {
        out.open("global_config");
        writeModule(out, config.global);
        out.close();
    }
    writeKeyed(out, "module_type_configs", config.moduleTypes);
    writeKeyed(out, "module_name_configs", config.moduleNames);
}

} // namespace

std::string coreAiConfigText(const CoreAiConfig &config)
{
    YamlWriter out;
    out.open("quantization_config");
    out.line("execution_mode", config.mode == CoreAiMode::Eager ? "eager" : "graph");
    if (!config.preservedAttributes) {
        out.line("preserved_attributes", "null");
    } else if (config.preservedAttributes->empty()) {
        out.line("preserved_attributes", "[]");
    } else {
        out.open("preserved_attributes");
        for (const auto &name : *config.preservedAttributes)
            out.item(YamlWriter::quoted(name));
        out.close();
    }
    if (!config.kvCaches.empty()) {
        out.open("kv_cache_quant_configs");
        for (const auto &[name, op] : config.kvCaches) {
            out.open(name);
            out.open("op_quantizer_config");
            writeOp(out, op);
            out.close();
            out.close();
        }
        out.close();
    }
    writeLevels(out, config);
    out.close();
    return out.text();
}

std::string paletteConfigText(const PaletteConfig &config)
{
    YamlWriter out;
    out.open("kmeans_palettization_config");
    writeLevels(out, config);
    out.close();
    return out.text();
}

} // namespace dblame

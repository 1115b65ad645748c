// SPDX-License-Identifier: GPL-3.0-or-later
//
// coreai-opt's configuration files as plain values: what its QuantizerConfig and KMeansPalettizerConfig can say, with
// its defaults filled in. Reading and writing: parse*/…Text below; the files are YAML that coreai-opt loads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/tensor_spec.h"

namespace dblame
{

// A YAML mapping in the order of the file: which entry wins depends on it.
template <class T>
using KeyedList = std::vector<std::pair<std::string, T>>;

// --- quantizer ----------------------------------------------------------------------------------

enum class CoreAiCalculator : std::uint8_t {
    Default, // static for weights, moving average for activations
    Static,  // range of the tensor seen last
    MovingAverage,
    GlobalMinMax,
    Dynamic,
};

struct CoreAiGranularity {
    Granularity kind = Granularity::PerTensor; // never PerToken
    std::optional<int> axis;                   // per channel, per block; absent: by the operator (weights only)
    std::vector<std::int64_t> blockSizes;      // per block: one extent along `axis`, or one per dimension (-1 whole)
    bool perDimension = false;                 // blockSizes has one entry per dimension, `axis` is absent
    friend bool operator==(const CoreAiGranularity &, const CoreAiGranularity &) = default;
};

struct CoreAiSpec {
    ElementType type = ElementType::Int8;
    Scheme scheme = Scheme::Symmetric;
    bool minValue = false;
    CoreAiGranularity granularity;
    CoreAiCalculator calculator = CoreAiCalculator::Default;
    std::optional<double> low, high; // float_range
    bool powerOfTwoScale = false;    // scale_dtype: float8_e8m0fnu
    friend bool operator==(const CoreAiSpec &, const CoreAiSpec &) = default;
};

// A key is "*", a position ("0") or a parameter's name; nullopt declines, an absent key has no opinion.
using CoreAiSpecs = KeyedList<std::optional<CoreAiSpec>>;

// Defaults: W8A8.
[[nodiscard]] CoreAiSpec defaultActivationSpec(); // int8 symmetric per tensor, moving average
[[nodiscard]] CoreAiSpec defaultWeightSpec();     // int8 symmetric per channel, axis 0, static
[[nodiscard]] CoreAiSpecs declinedSpecs();        // {"*": null}

struct CoreAiOpConfig {
    CoreAiSpecs inputs{{"*", defaultActivationSpec()}};
    CoreAiSpecs outputs{{"*", defaultActivationSpec()}};
    CoreAiSpecs states{{"weight", defaultWeightSpec()}};
    friend bool operator==(const CoreAiOpConfig &, const CoreAiOpConfig &) = default;

    [[nodiscard]] static CoreAiOpConfig declined(); // what null stands for
};

struct QatSchedule {
    std::int64_t enableObserver = 0;
    std::int64_t enableFakeQuant = 0;
    std::optional<std::int64_t> disableObserver;
    friend bool operator==(const QatSchedule &, const QatSchedule &) = default;
};

struct CoreAiModuleConfig {
    CoreAiOpConfig op;
    KeyedList<CoreAiOpConfig> opTypes; // by the last part of torch_fn: "conv2d", "add"
    KeyedList<CoreAiOpConfig> opNames; // regular expression for the graph's node name, in full
    CoreAiSpecs moduleInputs, moduleOutputs, moduleStates;
    std::optional<QatSchedule> qatSchedule;
    friend bool operator==(const CoreAiModuleConfig &, const CoreAiModuleConfig &) = default;

    [[nodiscard]] static CoreAiModuleConfig declined();
};

enum class CoreAiMode : std::uint8_t { Graph, Eager };

struct CoreAiConfig {
    CoreAiMode mode = CoreAiMode::Graph;
    std::optional<std::vector<std::string>> preservedAttributes;
    KeyedList<CoreAiOpConfig> kvCaches; // by operator type
    CoreAiModuleConfig global;
    KeyedList<CoreAiModuleConfig> moduleTypes; // fully qualified class name
    KeyedList<CoreAiModuleConfig> moduleNames; // regular expression for the module path, in full
    friend bool operator==(const CoreAiConfig &, const CoreAiConfig &) = default;
};

// Presets of coreai-opt: weights only.
[[nodiscard]] CoreAiConfig coreAiWeightOnly(ElementType type, std::optional<std::int64_t> blockSize = std::nullopt);

// What an observer does for a spec on a weight or on an activation; the axis stays as written.
[[nodiscard]] TensorSpec tensorSpecOf(const CoreAiSpec &spec, bool weight);
// Usage: coreai-opt has no such type, observer, rounding or granularity.
[[nodiscard]] Result<CoreAiSpec> coreAiSpecOf(const TensorSpec &spec);
// The rules that join a spec's fields (float types are symmetric, low <= 0 <= high, ...): the first that is broken.
[[nodiscard]] std::optional<std::string> brokenRule(const CoreAiSpec &spec);

// --- palettizer ---------------------------------------------------------------------------------

struct PaletteWeightSpec {
    int bits = 4; // 1, 2, 3, 4, 6, 8
    std::optional<CoreAiSpec> lut;
    std::int64_t groupSize = 0; // 0: per tensor
    std::optional<int> axis;    // of the groups; absent: by the operator
    int clusterDim = 1;
    bool perChannelScale = false;
    std::optional<double> sparsityThreshold;
    friend bool operator==(const PaletteWeightSpec &, const PaletteWeightSpec &) = default;
};
using PaletteSpecs = KeyedList<std::optional<PaletteWeightSpec>>;
[[nodiscard]] PaletteSpecs defaultPaletteSpecs(); // weight and in_proj_weight: 4 bits per tensor

struct PaletteOpConfig {
    PaletteSpecs states = defaultPaletteSpecs();
    friend bool operator==(const PaletteOpConfig &, const PaletteOpConfig &) = default;

    [[nodiscard]] static PaletteOpConfig declined();
};

struct VectorKMeans {
    std::optional<std::int64_t> localTrials;
    std::int64_t runs = 5;
    std::int64_t maxIterations = 300;
    double tolerance = 1e-4;
    friend bool operator==(const VectorKMeans &, const VectorKMeans &) = default;
};

struct PaletteModuleConfig {
    PaletteOpConfig op;
    KeyedList<PaletteOpConfig> opTypes;
    KeyedList<PaletteOpConfig> opNames;
    PaletteSpecs moduleStates;
    bool fast = true;
    std::int64_t roundingPrecision = 4;
    std::optional<std::int64_t> enableFakePalettize; // pat_schedule
    std::optional<VectorKMeans> vectorKMeans;
    friend bool operator==(const PaletteModuleConfig &, const PaletteModuleConfig &) = default;

    [[nodiscard]] static PaletteModuleConfig declined();
};

struct PaletteConfig {
    PaletteModuleConfig global;
    KeyedList<PaletteModuleConfig> moduleTypes;
    KeyedList<PaletteModuleConfig> moduleNames;
    friend bool operator==(const PaletteConfig &, const PaletteConfig &) = default;
};

// --- files --------------------------------------------------------------------------------------
// `fileName` is for messages only. `notes` receives what the peer would drop silently (unknown keys of a spec).
// Errors: Unreadable, at "file:line", with the key and what to do. core/coreai_yaml.cpp.

[[nodiscard]] Result<CoreAiConfig> parseCoreAiConfig(std::string_view text, const std::string &fileName,
                                                     std::vector<std::string> &notes);
[[nodiscard]] Result<PaletteConfig> parsePaletteConfig(std::string_view text, const std::string &fileName,
                                                       std::vector<std::string> &notes);
// Everything is written out, nothing is left to a default. Parsing gives the same value.
[[nodiscard]] std::string coreAiConfigText(const CoreAiConfig &config);
[[nodiscard]] std::string paletteConfigText(const PaletteConfig &config);

// The file's spelling of a type ("float8_e4m3fn"); nullopt where coreai-opt has no such type.
[[nodiscard]] std::optional<std::string_view> coreAiTypeName(ElementType type);

} // namespace dblame

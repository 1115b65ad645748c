// SPDX-License-Identifier: GPL-3.0-or-later
//
// The door to everything that links torch. The implementation lives in libdblame_engine, which is opened
// by loadEngine() so that a window can be on screen before torch is in the process. All calls are
// synchronous; call them from one thread (LibTorch's modes and thread counts are per thread).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/alignment.h"
#include "core/edits.h"
#include "core/error.h"
#include "core/model.h"
#include "core/node_report.h"
#include "core/quant_site.h"
#include "core/quantization.h"
#include "core/recipe.h"

namespace dblame
{

struct EngineInfo {
    std::string libtorch;   // "2.13.0"
    std::string cpu;        // "AVX512"
    int defaultThreads = 1; // physical cores, at most 8
};

// `done` of `total` in units of the work; called from the engine's thread, often: keep it cheap.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total, const char *what)>;

// The batches a comparison runs on. Opaque outside the engine.
class InputSet
{
public:
    virtual ~InputSet() = default;
    [[nodiscard]] virtual const InputsInfo &info() const = 0;
};

struct InputRequest {
    std::vector<std::string> files;      // empty: the model's sample inputs
    std::optional<std::uint64_t> random; // seed; only used when there are neither files nor sample inputs
};

struct RunOptions {
    Signal signal = Signal::Reference;
    bool channels = true;
    bool histograms = true; // sampled in whole blocks
    bool exactHistograms = false;
    bool hashes = false;
    int threads = 0;               // 0: EngineInfo::defaultThreads
    std::int64_t limitBatches = 0; // 0: all
    std::uint64_t cacheBytes = 0;  // activations kept for reruns; 0: none, reruns start from the inputs
    bool refuseFullRerun = false;
};

// Receives a run as it goes on, on the engine's thread.
class ReportSink
{
public:
    virtual ~ReportSink() = default;
    // A row has (new) figures. During a run: in execution order, once per batch.
    virtual void row(const NodeReport &report) = 0;
    virtual void progress(std::int64_t batch, std::int64_t batches, std::int64_t node, std::int64_t nodes) = 0;
};

// One pair of models on one set of inputs. Keeps what reruns need; not thread-safe.
class Comparison
{
public:
    virtual ~Comparison() = default;
    [[nodiscard]] virtual const SiteTable &sites() const = 0; // of the candidate
    [[nodiscard]] virtual const Alignment &alignment() const = 0;
    // What the edits will do; each refusal with its reason ("changed weight: rescaled per channel").
    [[nodiscard]] virtual Result<Plan> plan(const EditSet &edits) = 0;
    // Runs with these edits. The first run is full; a later one recomputes what is downstream of the
    // difference to the run before and equals a full run bit for bit. A cancelled or failed run leaves
    // the state of the last finished one.
    [[nodiscard]] virtual Result<RunReport> run(const EditSet &edits, const RunOptions &options, ReportSink &sink,
                                                std::stop_token stop) = 0;
    // Exact (not sampled) histograms and per-channel figures of one row under the edits of the last run.
    [[nodiscard]] virtual Result<NodeReport> detail(PairId row, std::stop_token stop) = 0;
};

class Engine
{
public:
    virtual ~Engine() = default;
    [[nodiscard]] virtual EngineInfo info() const = 0;
    // `path` may be "FILE#program".
    [[nodiscard]] virtual Result<std::shared_ptr<const Model>>
    openModel(const std::string &path, const Progress &progress, std::stop_token stop) = 0;
    [[nodiscard]] virtual Result<std::shared_ptr<const InputSet>>
    openInputs(const InputRequest &request, const Model &reference, const Model &candidate, std::stop_token stop) = 0;
    // What the recipe's quantizer would make of a float model: batch norms folded or rewritten as it does, observers
    // placed as it does, calibrated in one pass (any number of batches, constant memory), weights quantized.
    // `calibration` (from openInputs() with the model as both sides) may be null for recipes that observe no
    // activation. coreai-opt's recipes observe the model's sample inputs first, as its prepare() does with its example,
    // or else the first batch. Values of the result are named as in the model.
    [[nodiscard]] virtual Result<QuantizedModel> quantize(std::shared_ptr<const Model> model, const Recipe &recipe,
                                                          std::shared_ptr<const InputSet> calibration,
                                                          const QuantizeOptions &options, const Progress &progress,
                                                          std::stop_token stop) = 0;
    // The recipe's sites without their numbers: nothing runs. `model` of the result is null.
    [[nodiscard]] virtual Result<QuantizedModel> place(std::shared_ptr<const Model> model, const Recipe &recipe) = 0;
    // `before`: a comparison of the same reference on the same inputs. Where its candidate and this one compute the
    // same values in the same way (two recipes for one model), figures and activations are taken over from its last
    // run, and the first run here recomputes what is downstream of the difference. Null, or nothing in common: all is
    // computed.
    [[nodiscard]] virtual Result<std::unique_ptr<Comparison>> compare(std::shared_ptr<const Model> reference,
                                                                      std::shared_ptr<const Model> candidate,
                                                                      std::shared_ptr<const InputSet> inputs,
                                                                      const std::vector<HandPair> &hand = {},
                                                                      Comparison *before = nullptr) = 0;
};

// Opens libdblame_engine (from `folder`, or by the program's run path) once per process; the same engine afterwards.
[[nodiscard]] Result<Engine *> loadEngine(const std::filesystem::path &folder = {});

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include <ATen/Version.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include "core/engine/allocator.h"
#include "core/engine/calibration_cache.h"
#include "core/engine/comparison.h"
#include "core/engine/program.h"
#include "core/engine/quantized_model.h"
#include "core/readers/readers.h"

namespace dblame
{

namespace
{

// Hyper-threads share a core's vector units: count cores, as /proc/cpuinfo pairs them.
int physicalCores()
{
    std::ifstream info("/proc/cpuinfo");
    std::set<std::pair<std::string, std::string>> cores;
    std::string line, package;
    while (std::getline(info, line)) {
        const auto colon = line.find(':');
        if (colon == std::string::npos)
            continue;
        if (line.starts_with("physical id"))
            package = line.substr(colon + 1);
        else if (line.starts_with("core id"))
            cores.emplace(package, line.substr(colon + 1));
    }
    const int logical = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    return cores.empty() ? logical : std::min(logical, static_cast<int>(cores.size()));
}

template <class F>
auto guarded(const std::string &where, const F &f) -> decltype(f())
{
    try {
        return f();
    } catch (const c10::Error &error) {
        return fail(ErrorCode::Internal, where, error.what_without_backtrace(), error.what());
    } catch (const std::bad_alloc &) {
        return fail(ErrorCode::Unreadable, where, "not enough memory; close other programs or give a smaller model");
    } catch (const std::exception &error) {
        return fail(ErrorCode::Internal, where, error.what());
    }
}

class TorchEngine final : public Engine
{
public:
    TorchEngine() { tuneAllocator(); }

    EngineInfo info() const override
    {
        EngineInfo result;
        result.libtorch = TORCH_VERSION;
        result.cpu = at::get_cpu_capability();
        result.defaultThreads = defaultThreadCount();
        return result;
    }

    Result<std::shared_ptr<const Model>> openModel(const std::string &path, const Progress &progress,
                                                   std::stop_token stop) override
    {
        return guarded(path, [&]() -> Result<std::shared_ptr<const Model>> {
            auto model = readModel(path, progress, stop);
            if (!model)
                return tl::unexpected<Error>(model.error());
            // What the operators cannot run is part of what a user wants to know of a file: compile once to see.
            // Nobody else has the model yet, so it may still be completed.
            std::const_pointer_cast<LoadedModel>(*model)->m_nodeFaults = Program::compile(*model)->faults();
            return std::shared_ptr<const Model>(*model);
        });
    }

    Result<std::shared_ptr<const InputSet>> openInputs(const InputRequest &request, const Model &reference,
                                                       const Model &candidate, std::stop_token stop) override
    {
        return guarded("inputs", [&]() -> Result<std::shared_ptr<const InputSet>> {
            auto inputs = readInputs(request, dynamic_cast<const LoadedModel &>(reference),
                                     dynamic_cast<const LoadedModel &>(candidate), stop);
            if (!inputs)
                return tl::unexpected<Error>(inputs.error());
            return std::shared_ptr<const InputSet>(*inputs);
        });
    }

    Result<QuantizedModel> quantize(std::shared_ptr<const Model> model, const Recipe &recipe,
                                    std::shared_ptr<const InputSet> calibration, const QuantizeOptions &options,
                                    const Progress &progress, std::stop_token stop) override
    {
        return guarded(model->info().path, [&] {
            return quantizeModel(std::dynamic_pointer_cast<const LoadedModel>(model), recipe,
                                 dynamic_cast<const LoadedInputs *>(calibration.get()), options, m_calibrations,
                                 progress, stop);
        });
    }

    Result<QuantizedModel> place(std::shared_ptr<const Model> model, const Recipe &recipe) override
    {
        return guarded(model->info().path,
                       [&] { return placeOnModel(std::dynamic_pointer_cast<const LoadedModel>(model), recipe); });
    }

    Result<std::unique_ptr<Comparison>> compare(std::shared_ptr<const Model> reference,
                                                std::shared_ptr<const Model> candidate,
                                                std::shared_ptr<const InputSet> inputs,
                                                const std::vector<HandPair> &hand, Comparison *before) override
    {
        const std::string where = candidate->info().path;
        return guarded(where, [&]() -> Result<std::unique_ptr<Comparison>> {
            return makeComparison(std::dynamic_pointer_cast<const LoadedModel>(reference),
                                  std::dynamic_pointer_cast<const LoadedModel>(candidate),
                                  std::dynamic_pointer_cast<const LoadedInputs>(inputs), hand, before);
        });
    }

private:
    CalibrationCache m_calibrations;
};

} // namespace

int defaultThreadCount()
{
    static const int kThreads = std::min(8, physicalCores());
    return kThreads;
}

} // namespace dblame

// The one symbol that loadEngine() looks up. The engine lives as long as the process: torch is never unloaded.
extern "C" dblame::Engine *dblame_engine_instance()
{
    static auto *engine = new dblame::TorchEngine;
    return engine;
}

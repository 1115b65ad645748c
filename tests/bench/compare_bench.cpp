// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a comparison costs beside the two bare forwards that it cannot do without, in the same engine; and its peak
// memory against the sum of all activations. All variants are interleaved in one process.
//
//     dblame_compare_bench [ROUNDS [residual|small|memory|rerun|recipe]]
//
// With one thread: CPU time of the process, which other work on the machine disturbs little. With more: wall time.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "core/engine/allocator.h"
#include "core/engine/calibration_cache.h"
#include "core/engine/comparison.h"
#include "core/engine/program.h"
#include "core/engine/quantized_model.h"
#include "core/recipe.h"
#include "tests/bench/bench_models.h"

namespace
{

using namespace dblame;
using bench::ModelPair;

double seconds(clockid_t clock)
{
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// One model, all nodes, values dropped after their last reader.
class BareForward
{
public:
    explicit BareForward(const std::shared_ptr<const LoadedModel> &model) : m_program(Program::compile(model))
    {
        for (std::size_t i = 0; i < m_program->graph().nodes.size(); ++i)
            m_nodes.emplace_back(i);
        for (const auto &output : m_program->graph().outputs)
            m_outputs.push_back(output.value);
    }

    // Bytes of all node outputs, views included.
    std::uint64_t run(const std::vector<c10::IValue> &inputs, bool count = false)
    {
        Execution execution(m_program, m_nodes, m_outputs);
        const Graph &graph = m_program->graph();
        std::size_t next = 0;
        for (const auto &input : graph.inputs)
            if (input.kind == InputKind::User)
                execution.bind(input.value, inputs[next++]);
        std::uint64_t bytes = 0;
        for (const NodeId node : m_nodes) {
            if (!execution.run(node))
                throw std::runtime_error(graph.node(node).name + ": " + execution.fault(node));
            if (count)
                for (const ValueId id : graph.node(node).outputValues())
                    if (const c10::IValue &value = execution.value(id); value.isTensor())
                        bytes += value.toTensor().nbytes();
        }
        return bytes;
    }

private:
    std::shared_ptr<const Program> m_program;
    std::vector<NodeId> m_nodes;
    std::vector<ValueId> m_outputs;
};

// Counts what it is given, so that a comparison that reports nothing is noticed.
class CountingSink final : public ReportSink
{
public:
    void row(const NodeReport &report) override { m_rows += report.batches > 0 ? 1 : 0; }
    void progress(std::int64_t, std::int64_t, std::int64_t, std::int64_t) override {}
    std::size_t m_rows = 0;
};

struct Mode {
    const char *name;
    bool channels, histograms;
};
constexpr std::array<Mode, 3> kModes{Mode{"sums", false, false}, Mode{"sums, channels", true, false},
                                     Mode{"sums, channels, sampled histograms", true, true}};

RunOptions optionsOf(const Mode &mode, int threads)
{
    RunOptions options;
    options.channels = mode.channels;
    options.histograms = mode.histograms;
    options.threads = threads;
    return options;
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void runOnce(Comparison &comparison, const RunOptions &options)
{
    CountingSink sink;
    const auto report = comparison.run({}, options, sink, {});
    if (!report)
        throw std::runtime_error(report.error().text());
    if (report->rowsRecomputed != static_cast<int>(report->rows.size()) || sink.m_rows == 0)
        throw std::runtime_error("the comparison did not compute all rows");
}

void timeRatios(const char *name, const ModelPair &pair, int threads, int rounds)
{
    at::set_num_threads(threads);
    BareForward reference(pair.reference);
    BareForward candidate(pair.candidate);
    const auto comparison = makeComparison(pair.reference, pair.candidate, pair.inputs, {}, nullptr);
    const clockid_t clock = threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    const auto &inputs = pair.inputs->m_batches.front();
    const auto forwards = [&] {
        const c10::InferenceMode inference;
        reference.run(inputs);
        candidate.run(inputs);
    };
    const auto timed = [&](const std::function<void()> &work) {
        const double start = seconds(clock);
        work();
        return seconds(clock) - start;
    };
    forwards();
    std::vector<double> bare;
    std::array<std::vector<double>, kModes.size()> times, ratios;
    for (int round = 0; round < rounds; ++round) {
        bare.push_back(timed(forwards));
        for (std::size_t m = 0; m < kModes.size(); ++m) {
            times[m].push_back(timed([&] { runOnce(*comparison, optionsOf(kModes[m], threads)); }));
            ratios[m].push_back(times[m].back() / bare.back());
        }
    }
    const double best = *std::min_element(bare.begin(), bare.end());
    std::printf("%s, %d thread%s: %zu + %zu nodes, %zu rows; two forwards %.2f ms\n", name, threads,
                threads == 1 ? " (CPU time)" : "s (wall time)", pair.reference->graph().nodes.size(),
                pair.candidate->graph().nodes.size(), comparison->alignment().pairs.size(), best * 1e3);
    for (std::size_t m = 0; m < kModes.size(); ++m) {
        const double least = *std::min_element(times[m].begin(), times[m].end());
        std::printf("    %-36s %8.2f ms   ratio of minima %.3f   median ratio %.3f\n", kModes[m].name, least * 1e3,
                    least / best, median(ratios[m]));
    }
    std::fflush(stdout);
}

// A line of /proc/self/status in bytes.
std::uint64_t statusBytes(const std::string &field)
{
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line))
        if (line.starts_with(field + ":"))
            return std::strtoull(line.c_str() + field.size() + 1, nullptr, 10) * 1024;
    return 0;
}

// Peak of a comparison above what the process held before it: models and program are loaded, nothing has run.
void memoryOfDepth(int depth)
{
    const c10::InferenceMode inference;
    at::set_num_threads(1);
    const ModelPair pair = bench::constantWidth(depth);
    const auto &inputs = pair.inputs->m_batches.front();
    const auto comparison = makeComparison(pair.reference, pair.candidate, pair.inputs, {}, nullptr);
    const std::uint64_t activations =
        BareForward(pair.reference).run(inputs, true) + BareForward(pair.candidate).run(inputs, true);
    std::ofstream("/proc/self/clear_refs") << "5"; // the peak starts anew
    const std::uint64_t before = statusBytes("VmRSS");
    runOnce(*comparison, optionsOf(kModes[2], 1));
    const std::uint64_t peak = statusBytes("VmHWM");
    std::printf("    %5d %16.1f MB %16.1f MB %18.1f MB\n", depth, static_cast<double>(activations) / 1e6,
                static_cast<double>(before) / 1e6, static_cast<double>(peak) / 1e6);
}

void memory()
{
    std::printf("memory: blocks of 3.2 MB activations, one process per depth\n    depth   all activations   held "
                "before run     peak during run\n");
    std::fflush(stdout);
    for (const int depth : {8, 32, 128}) {
        const std::string command = "/proc/" + std::to_string(getpid()) + "/exe memory " + std::to_string(depth);
        if (std::system(command.c_str()) != 0)
            throw std::runtime_error("the run of depth " + std::to_string(depth) + " failed");
    }
}

// A rerun after one site was switched off, against a full run: only what is downstream of the edit is computed anew.
void timeReruns(const ModelPair &pair, int rounds)
{
    at::set_num_threads(1);
    const auto comparison = makeComparison(pair.reference, pair.candidate, pair.inputs, {}, nullptr);
    RunOptions options = optionsOf(kModes[2], 1);
    options.cacheBytes = std::uint64_t{4} << 30U;
    const auto &sites = comparison->sites().sites;
    std::vector<std::size_t> activations;
    for (std::size_t i = 0; i < sites.size(); ++i)
        if (sites[i].role != SiteRole::Weight)
            activations.push_back(i);
    const auto run = [&](const EditSet &edits) {
        CountingSink sink;
        const double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
        const auto report = comparison->run(edits, options, sink, {});
        if (!report)
            throw std::runtime_error(report.error().text());
        return std::pair(seconds(CLOCK_PROCESS_CPUTIME_ID) - start, report->rowsRecomputed);
    };
    // Other options than the run before: nothing can be carried over.
    const auto full = [&] {
        options.channels = !options.channels;
        return run({}).first;
    };
    std::vector<double> whole;
    for (int round = 0; round < rounds; ++round)
        whole.push_back(full());
    std::printf("reruns, residual net, 1 thread (CPU time): full run %.1f ms, %zu rows\n", median(whole) * 1e3,
                comparison->alignment().pairs.size());
    for (const double depth : {0.05, 0.25, 0.5, 0.75, 0.95}) {
        EditSet edit;
        edit.off.insert(SiteId(activations[static_cast<std::size_t>(depth * static_cast<double>(activations.size()))]));
        std::vector<double> times;
        int rows = 0;
        for (int round = 0; round < rounds; ++round) {
            const auto [time, recomputed] = run(edit);
            times.push_back(time);
            rows = recomputed;
            run({});
        }
        std::printf("    edit at %3.0f %% of the depth: %4d rows, %8.1f ms, ratio to a full run %.3f\n", depth * 100,
                    rows, median(times) * 1e3, median(times) / median(whole));
    }
}

// Another spec for one convolution's weight in the recipe: calibrated, quantized, aligned and run, with what the
// candidate before has in common, against all of it from nothing.
void timeRecipeEdits(const char *preset, int rounds)
{
    at::set_num_threads(1);
    const ModelPair pair = bench::residualNet(1);
    const Recipe recipe = presetRecipe(preset).value();
    std::vector<std::string> convolutions;
    for (const Node &node : pair.reference->graph().nodes)
        if (node.opName() == "conv2d")
            convolutions.push_back(node.name);
    RunOptions options = optionsOf(kModes[2], 1);
    options.cacheBytes = std::uint64_t{4} << 30U;
    CalibrationCache cache;
    struct Made {
        std::unique_ptr<Comparison> comparison;
        double time = 0;
        int rows = 0;
    };
    const auto make = [&](const Recipe &asked, bool reuse, Comparison *before) {
        QuantizeOptions quantize;
        quantize.threads = 1;
        quantize.reuse = reuse;
        CountingSink sink;
        const double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
        const auto quantized = quantizeModel(pair.reference, asked, pair.inputs.get(), quantize, cache, {}, {});
        if (!quantized)
            throw std::runtime_error(quantized.error().text());
        Made made;
        made.comparison = makeComparison(pair.reference, std::dynamic_pointer_cast<const LoadedModel>(quantized->model),
                                         pair.inputs, {}, before);
        const auto report = made.comparison->run({}, options, sink, {});
        if (!report)
            throw std::runtime_error(report.error().text());
        made.time = seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
        made.rows = report->rowsRecomputed;
        return made;
    };
    std::vector<double> whole;
    for (int round = 0; round < rounds; ++round)
        whole.push_back(make(recipe, false, nullptr).time);
    std::printf("recipe edits, %s, residual net, 1 thread (CPU time): from nothing %.1f ms\n", preset,
                median(whole) * 1e3);
    const Made base = make(recipe, true, nullptr);
    for (const double depth : {0.05, 0.25, 0.5, 0.75, 0.95}) {
        const auto &name = convolutions[static_cast<std::size_t>(depth * static_cast<double>(convolutions.size()))];
        std::vector<double> times;
        int rows = 0;
        for (int round = 0; round < rounds; ++round) {
            Recipe next = recipe; // another spec each round: nothing of the edit itself is known
            next.overrides.push_back(
                parseOverride("op:" + name, "weight=int" + std::to_string(2 + round % 6) + ":sym:tensor").value());
            const Made made = make(next, true, base.comparison.get());
            times.push_back(made.time);
            rows = made.rows;
        }
        std::printf("    weight at %3.0f %% of the depth: %4d rows, %8.1f ms, ratio to all from nothing %.3f\n",
                    depth * 100, rows, median(times) * 1e3, median(times) / median(whole));
    }
}

} // namespace

int main(int argc, char **argv)
try {
    tuneAllocator();
    if (argc > 2 && std::string(argv[1]) == "memory") {
        memoryOfDepth(std::atoi(argv[2]));
        return 0;
    }
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
    const std::string only = argc > 2 ? argv[2] : "";
    const auto asked = [&](const char *part) { return only.empty() || only == part; };
    if (asked("residual")) {
        const ModelPair residual = bench::residualNet(1);
        for (const int threads : {1, 2})
            timeRatios("residual net, 1x3x224x224", residual, threads, rounds);
    }
    if (asked("small")) {
        const ModelPair small = bench::smallOperators(1000);
        for (const int threads : {1, 2})
            timeRatios("small operators, 64 floats", small, threads, rounds);
    }
    if (asked("rerun"))
        timeReruns(bench::residualNet(1), rounds);
    if (asked("recipe"))
        for (const char *preset : {"xnnpack-static", "coreai-w8a8"})
            timeRecipeEdits(preset, rounds);
    if (asked("memory"))
        memory();
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "dblame_compare_bench: %s\n", error.what());
    return 70;
}

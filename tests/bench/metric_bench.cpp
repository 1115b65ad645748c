// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the metric costs per element pair, and per call for small tensors. Process CPU time, all variants
// interleaved, minima: other work on the machine disturbs little.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include "core/engine/metric.h"
#include "core/engine/metric_kernels.h"
#include "core/engine/site_kernels.h"

namespace
{

using namespace dblame;

double cpuNanoseconds()
{
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

struct Variant {
    std::string name;
    std::function<void()> run;
    double best = 1e30;
};

// Each variant is repeated until it is long enough for the clock.
void measure(std::vector<Variant> &variants, std::int64_t elements, int rounds)
{
    const int repeats = static_cast<int>(std::max<std::int64_t>(1, 200000 / elements));
    for (int round = 0; round < rounds; ++round)
        for (Variant &v : variants) {
            const double start = cpuNanoseconds();
            for (int i = 0; i < repeats; ++i)
                v.run();
            v.best = std::min(v.best, (cpuNanoseconds() - start) / repeats);
        }
}

void kernelSets(int rounds)
{
    constexpr std::int64_t kElements = 4096;
    const at::Tensor r = at::randn({kElements});
    const at::Tensor c = r.add(at::randn({kElements}), 0.01);
    at::Tensor y = at::zeros({kElements});
    std::vector<std::uint16_t> bins(3 * kElements);
    std::printf("kernels, ns per element (4096 in the first-level cache)\n");
    for (const auto id :
         {kernels::InstructionSet::Baseline, kernels::InstructionSet::Avx2, kernels::InstructionSet::Avx512}) {
        const kernels::KernelSet *set = kernels::kernelsFor(id);
        if (set == nullptr)
            continue;
        const auto *a = r.const_data_ptr<float>();
        const auto *b = c.const_data_ptr<float>();
        volatile double sink = 0;
        std::vector<Variant> variants;
        variants.push_back({"pair", [&] { sink = set->pairF32(a, b, kElements).ee; }});
        variants.push_back({"energy", [&] { sink = set->energyF32(a, b, kElements).ee; }});
        variants.push_back(
            {"bins",
             [&] { set->bins(a, b, kElements, bins.data(), bins.data() + kElements, bins.data() + 2 * kElements); }});
        variants.push_back({"q-dq", [&] { set->quantDequant(a, y.mutable_data_ptr<float>(), kElements, {}); }});
        variants.push_back({"fake-quant", [&] { set->fakeQuant(a, y.mutable_data_ptr<float>(), kElements, {}); }});
        measure(variants, kElements, rounds);
        std::printf("  %-9s", set->name);
        for (const Variant &v : variants)
            std::printf(" %s %.3f", v.name.c_str(), v.best / static_cast<double>(kElements));
        std::printf("\n");
    }
}

void accumulators(int rounds)
{
    struct Shape {
        std::vector<std::int64_t> sizes;
        int axis;
    };
    std::printf("PairAccumulator::add, one thread\n%-22s %12s %20s %20s %20s %14s\n", "shape", "sums", "+ channels",
                "+ sampled histogram", "+ exact histogram", "fill");
    for (const Shape &shape :
         {Shape{{64}, 0}, Shape{{1, 16, 16}, 1}, Shape{{1, 64, 56, 56}, 1}, Shape{{1, 256, 14, 14}, 1},
          Shape{{1, 512, 7, 7}, 1}, Shape{{128, 768}, 1}, Shape{{1, 64, 112, 112}, 1}, Shape{{8, 64, 112, 112}, 1}}) {
        const at::Tensor r = at::randn(shape.sizes).clamp_min(0);
        const at::Tensor c = r.add(at::randn(shape.sizes), 0.01);
        std::vector<Variant> variants;
        for (int mode = 0; mode < 4; ++mode) {
            MetricOptions options;
            options.channelAxis = mode >= 1 ? shape.axis : -1;
            options.histograms = mode >= 2;
            options.exact = mode == 3;
            variants.push_back({"", [=] { PairAccumulator(options).add(r, c); }});
        }
        MetricOptions options;
        options.histograms = true;
        options.channelAxis = shape.axis;
        PairAccumulator full(options);
        full.add(r, c);
        variants.push_back({"", [&] {
                                NodeReport report;
                                full.fill(report);
                            }});
        measure(variants, r.numel(), rounds);
        std::string name;
        for (const std::int64_t size : shape.sizes)
            name += (name.empty() ? "" : "x") + std::to_string(size);
        std::printf("%-22s", name.c_str());
        const auto n = static_cast<double>(r.numel());
        for (std::size_t i = 0; i < 4; ++i)
            std::printf(i == 0 ? " %6.3f %5.0f us" : "     %6.3f %6.1f us", variants[i].best / n,
                        variants[i].best / 1e3);
        std::printf("  %6.2f us\n", variants[4].best / 1e3);
    }
}

} // namespace

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 30;
    const c10::InferenceMode inference;
    at::set_num_threads(1);
    at::manual_seed(1);
    kernelSets(rounds);
    accumulators(rounds);
    return 0;
}

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Observers: what turns the tensors of a calibration into scales and zero points (docs/quantization.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/engine/observer_histogram.h"
#include "core/engine/qparams.h"
#include "core/error.h"
#include "core/tensor_spec.h"

namespace dblame
{

// What an observer has seen, for panels.
struct ObserverState {
    std::int64_t batches = 0, elements = 0;
    std::int64_t nan = 0, infinite = 0; // elements among them
    double lowest = 0, highest = 0;     // of all finite elements of all batches; equal and 0 if there were none
    std::vector<double> low, high;      // as the observer keeps them (averaged, last, ...), per unit, row-major
    // Counts of all finite elements in equal bins between histogramLow and histogramHigh; empty if not tracked.
    // float32 counts, as the peer's: a bin stops at 2^24.
    std::vector<float> histogram;
    double histogramLow = 0, histogramHigh = 0;
};

// How a grid fits what was observed. Shares, 0..1; nullopt: several units, no histogram (clipped), nothing observed.
struct RangeFit {
    std::optional<double> clipped; // of the elements, outside [low, high]; inside a bin of the histogram they are even
    std::optional<double> unused;  // of [low, high], outside [lowest, highest]
    double low = 0, high = 0;      // what the lowest and the highest integer stand for
};
[[nodiscard]] RangeFit rangeFit(const ObserverState &state, const Qparams &qparams, const TensorSpec &spec);

struct ObserverOptions {
    // Keep a histogram for rangeFit() even where the observer needs none (one more pass over each tensor).
    bool trackHistogram = false;
};

// One observer; several sites may share it, and then it observes at each, in execution order. State does not grow with
// the number of batches. Not for use from several threads at once.
class Observer
{
public:
    virtual ~Observer() = default;
    Observer(const Observer &) = delete;
    Observer &operator=(const Observer &) = delete;

    // Any strides; float32, float16 or bfloat16. An empty tensor changes nothing. Errors (Usage, Incomparable): the
    // spec does not fit the shape, the number of units changed, NaN where the peer refuses it. After an error the
    // state is what it was before the call, except that the batch is counted.
    [[nodiscard]] Result<void> observe(const at::Tensor &x);
    // As observe(), and what the readers of the site see while it observes: x itself, except of fused
    // quantization-aware observers, whose output is already fake-quantized.
    [[nodiscard]] Result<at::Tensor> forward(const at::Tensor &x);

    // What the site is quantized with from now on. Nothing observed: scale 1, zero point 0, and a note.
    [[nodiscard]] Result<Qparams> qparams() const;
    // What a fused quantization-aware observer simulated with last; else qparams().
    [[nodiscard]] Result<Qparams> simulatedQparams() const;
    void reset();

    [[nodiscard]] ObserverState state() const;
    [[nodiscard]] const TensorSpec &spec() const { return m_spec; }
    [[nodiscard]] SiteRole role() const { return m_role; }

protected:
    // A batch, with the extremes of the whole of it (0-dimensional, its own type; NaN if it has one).
    struct Batch {
        at::Tensor x, low, high;
    };

    Observer(TensorSpec spec, SiteRole role) : m_spec(std::move(spec)), m_role(role) {}

    // May throw c10::Error. `watch` returns what the readers see.
    virtual Result<at::Tensor> watch(const Batch &batch) = 0;
    [[nodiscard]] virtual Result<Qparams> choose() const = 0;
    [[nodiscard]] virtual Result<Qparams> simulated() const { return choose(); }
    virtual void forget() = 0;
    virtual void describe(ObserverState & /*state*/) const {}

private:
    friend Result<std::unique_ptr<Observer>> makeObserver(const TensorSpec &, SiteRole, ObserverOptions);
    [[nodiscard]] Result<at::Tensor> forwardUnguarded(const at::Tensor &x);
    void count(const Batch &batch);

    TensorSpec m_spec;
    SiteRole m_role;
    std::int64_t m_batches = 0, m_elements = 0, m_nan = 0, m_infinite = 0;
    std::optional<double> m_lowest, m_highest;
    std::unique_ptr<RangeHistogram> m_tracked;
};

// By spec.observer and spec.rule:
//   MinMax            min(low, amin x), max(high, amax x) per unit. CoreAi: of ranges that hold zero.
//   MovingAverage     the first batch's range, then Torchao: low += c (amin x - low); CoreAi: low = c lo + (1 - c) low
//                     with lo = min(amin x, 0), c and 1 - c as float32. FusedQat: as Torchao, and each forward() is
//                     fake-quantized with its own rule (per tensor and per channel, integers only).
//   Histogram, Percentile, MeanSquaredError  see RangeHistogram; per tensor only.
//   LastBatch         the range of the last tensor.
//   Fixed             spec.low and spec.high, both; observes nothing.
//   Dynamic           observes nothing; qparams() says dynamic: use chooseQparams() on each tensor.
// spec.low, spec.high: that bound is given and not observed. bf16, f16: casts, nothing is observed.
// Errors (Usage): combinations that do not exist.
[[nodiscard]] Result<std::unique_ptr<Observer>> makeObserver(const TensorSpec &spec, SiteRole role,
                                                             ObserverOptions options);

[[nodiscard]] inline Result<std::unique_ptr<Observer>> makeObserver(const TensorSpec &spec, SiteRole role)
{
    return makeObserver(spec, role, ObserverOptions{});
}

// An observer that always answers these.
[[nodiscard]] std::unique_ptr<Observer> makeFixedObserver(const TensorSpec &spec, SiteRole role, Qparams qparams);

} // namespace dblame

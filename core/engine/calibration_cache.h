// SPDX-License-Identifier: GPL-3.0-or-later
//
// What calibrations found out, by content: an observer that sees the same values under the same spec again, in this
// process or a later one, need not look at them. Not for use from several threads at once.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include <ATen/core/Tensor.h>

#include "core/engine/qparams.h"
#include "core/engine/value_keys.h"
#include "core/quantization.h"

namespace dblame
{

// An activation's observer after its calibration.
struct KnownObserver {
    Qparams qparams;
    ObserverRange range;
};

// A quantized weight. The tensor is held by the candidates that use it, not by the cache.
struct KnownWeight {
    at::Tensor quantized;
    std::optional<Qparams> qparams; // none: a palette
    ObserverRange range;
    WeightError error;
    std::vector<DefectNote> defects;
};

class CalibrationCache
{
public:
    // `context`: what all its observers have in common: inputs, threads, versions. Read from `folder` if it is there
    // and was not read yet; a file that is damaged or of another version counts as absent.
    void open(const ValueKey &context, const std::string &folder);
    [[nodiscard]] const KnownObserver *observer(const ValueKey &context, const ValueKey &key) const;
    void put(const ValueKey &context, const ValueKey &key, KnownObserver known);
    // Writes the context to `folder`, whole or not at all. Nothing to write, or no place to: nothing happens, for a
    // calibration is right without its cache. The folder keeps the newest files only.
    void save(const ValueKey &context, const std::string &folder);

    [[nodiscard]] std::optional<KnownWeight> weight(const ValueKey &key) const; // nullopt: unknown, or no longer held
    void putWeight(const ValueKey &key, const KnownWeight &known);

private:
    struct Context {
        std::unordered_map<ValueKey, KnownObserver> observers;
        bool changed = false;
    };
    struct HeldWeight {
        c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl> quantized;
        KnownWeight rest; // without the tensor
    };
    std::unordered_map<ValueKey, Context> m_contexts;
    std::deque<ValueKey> m_order; // of m_contexts, oldest first
    std::unordered_map<ValueKey, HeldWeight> m_weights;
};

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/higher_order.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/select.h>
#include <ATen/ops/stack.h>

#include "core/engine/argument_fit.h"
#include "core/engine/step_runner.h"

namespace dblame
{

namespace
{

// Autocast for the CPU while it lives; nested blocks restore what was there.
class AutocastScope
{
public:
    explicit AutocastScope(const HigherOrder &hop)
        : m_enabled(at::autocast::is_autocast_enabled(at::kCPU)), m_dtype(at::autocast::get_autocast_dtype(at::kCPU)),
          m_cache(at::autocast::is_autocast_cache_enabled())
    {
        if (hop.dtype)
            at::autocast::set_autocast_dtype(at::kCPU, *hop.dtype);
        at::autocast::set_autocast_enabled(at::kCPU, hop.enabled);
        if (hop.cacheEnabled)
            at::autocast::set_autocast_cache_enabled(*hop.cacheEnabled);
        at::autocast::increment_nesting();
    }
    ~AutocastScope()
    {
        if (at::autocast::decrement_nesting() == 0)
            at::autocast::clear_cache();
        at::autocast::set_autocast_enabled(at::kCPU, m_enabled);
        at::autocast::set_autocast_dtype(at::kCPU, m_dtype);
        at::autocast::set_autocast_cache_enabled(m_cache);
    }
    AutocastScope(const AutocastScope &) = delete;
    AutocastScope &operator=(const AutocastScope &) = delete;

private:
    bool m_enabled;
    at::ScalarType m_dtype;
    bool m_cache;
};

std::vector<c10::IValue> gather(const std::vector<ListItem> &items, const std::vector<c10::IValue> &inputs)
{
    std::vector<c10::IValue> values;
    values.reserve(items.size());
    for (const auto &item : items)
        values.push_back(item.input < 0 ? item.constant : inputs[static_cast<std::size_t>(item.input)]);
    return values;
}

std::vector<c10::IValue> runLoop(const HigherOrder &hop, std::vector<c10::IValue> values, const std::stop_token &stop)
{
    for (;;) {
        if (stop.stop_requested())
            throw Cancelled{};
        const auto go = runGraph(*hop.graphs[0], hop.names[0], values, stop);
        if (go.size() != 1)
            throw std::runtime_error("the condition of while_loop must give one value");
        if (!fitValue(go[0], Fit::Bool).toBool())
            break;
        auto next = runGraph(*hop.graphs[1], hop.names[1], values, stop);
        if (next.size() != hop.leading)
            throw std::runtime_error("the body of while_loop gives " + std::to_string(next.size()) + " values, " +
                                     std::to_string(hop.leading) + " are carried");
        std::move(next.begin(), next.end(), values.begin());
    }
    values.resize(hop.leading);
    return values;
}

std::vector<c10::IValue> runMap(const HigherOrder &hop, std::vector<c10::IValue> values, const std::stop_token &stop)
{
    if (hop.leading == 0 || !values[0].isTensor() || values[0].toTensor().dim() == 0)
        throw std::runtime_error("map_impl needs a tensor to slice");
    const std::int64_t count = values[0].toTensor().size(0);
    if (count == 0)
        throw std::runtime_error("map_impl over nothing");
    const std::vector<c10::IValue> whole(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(hop.leading));
    std::vector<std::vector<at::Tensor>> columns;
    for (std::int64_t i = 0; i < count; ++i) {
        if (stop.stop_requested())
            throw Cancelled{};
        for (std::size_t k = 0; k < hop.leading; ++k)
            values[k] = at::select(whole[k].toTensor(), 0, i);
        const auto results = runGraph(*hop.graphs[0], hop.names[0], values, stop);
        columns.resize(results.size());
        for (std::size_t k = 0; k < results.size(); ++k)
            columns[k].push_back(fitValue(results[k], Fit::Tensor).toTensor());
    }
    std::vector<c10::IValue> stacked;
    for (const auto &column : columns)
        stacked.emplace_back(at::stack(column));
    return stacked;
}

// As torch's fallback on the CPU: all tensors in the type that they promote to together with the result's.
std::vector<c10::IValue> runOutDtype(const HigherOrder &hop, std::vector<c10::IValue> values,
                                     const std::stop_token &stop)
{
    at::native::ResultTypeState types;
    const auto promote = [&](const c10::IValue &v) {
        if (v.isTensor() || v.isInt() || v.isDouble() || v.isBool())
            types = at::native::update_result_type_state(fitValue(v, Fit::Tensor).toTensor(), types);
    };
    for (const auto &v : values)
        promote(v);
    const auto &arguments = hop.call->arguments;
    for (std::size_t a = 0; a < arguments.size(); ++a)
        if (arguments[a].kind == ArgumentTemplate::Kind::Constant &&
            !hop.call->op->schema().arguments()[a].default_value())
            promote(arguments[a].constant);
    promote(at::ones({1}, *hop.dtype));
    const auto common = at::native::result_type(types);
    std::vector<Slot> slots;
    for (auto &v : values) {
        slots.push_back(static_cast<Slot>(slots.size()));
        if (v.isTensor())
            v = v.toTensor().to(common);
    }
    StepScratch scratch;
    runStep(*hop.call, slots.data(), values, scratch, stop);
    return {scratch.stack.at(0).toTensor().to(*hop.dtype)};
}

} // namespace

std::vector<c10::IValue> runHigherOrder(const HigherOrder &hop, const std::vector<c10::IValue> &inputs,
                                        const std::stop_token &stop)
{
    auto values = gather(hop.operands, inputs);
    switch (hop.kind) {
    case HopKind::Autocast: {
        const AutocastScope scope(hop);
        return runGraph(*hop.graphs[0], hop.names[0], values, stop);
    }
    case HopKind::Cond: {
        const auto &item = hop.predicate;
        const auto &predicate = item.input < 0 ? item.constant : inputs[static_cast<std::size_t>(item.input)];
        const std::size_t branch = fitValue(predicate, Fit::Bool).toBool() ? 0 : 1;
        return runGraph(*hop.graphs[branch], hop.names[branch], values, stop);
    }
    case HopKind::WhileLoop:
        return runLoop(hop, std::move(values), stop);
    case HopKind::Map:
        return runMap(hop, std::move(values), stop);
    case HopKind::OutDtype:
        return runOutDtype(hop, inputs, stop);
    default:
        return runGraph(*hop.graphs[0], hop.names[0], values, stop);
    }
}

} // namespace dblame

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

struct Operands {
    const Node &node;
    const CompiledGraph &owner;
    std::uint32_t &nextInput;
    std::size_t at = 0;

    [[nodiscard]] const Argument &peek() const
    {
        if (at >= node.inputs.size())
            throw CompileFault(node.opName() + " has too few operands");
        return node.inputs[at].value;
    }
    const CompiledGraph &graph()
    {
        const auto *sub = std::get_if<SubgraphArg>(&peek());
        if (!sub || sub->index >= owner.subgraphs.size())
            throw CompileFault("operand " + std::to_string(at) + " of " + node.opName() + " is no graph");
        ++at;
        return *owner.subgraphs[sub->index];
    }
    c10::IValue literal()
    {
        auto v = literalOf(peek());
        ++at;
        return v;
    }
    void append(std::vector<ListItem> &items)
    {
        appendOperands(peek(), nextInput, items);
        ++at;
    }
    void appendRest(std::vector<ListItem> &items)
    {
        while (at < node.inputs.size())
            append(items);
    }
};

void checkCount(const CompiledGraph &graph, std::size_t given, const std::string &name)
{
    if (graph.graph->inputs.size() != given)
        throw CompileFault(name + " takes " + std::to_string(graph.graph->inputs.size()) +
                           " operands, the file gives " + std::to_string(given));
}

// Before torch 2.7 a node that returns several values names one list, later one entry for each.
void checkResults(const HigherOrder &hop, const Node &node, bool listOutput, const std::string &name)
{
    const std::size_t named = listOutput ? node.outputValues().size() : node.outputs.size();
    const std::size_t returned = hop.kind == HopKind::WhileLoop ? hop.leading : hop.graphs[0]->graph->outputs.size();
    if (!node.outputs.empty() && named != returned)
        throw CompileFault(name + " returns " + std::to_string(returned) + " values, the file names " +
                           std::to_string(named));
}

void addGraph(HigherOrder &hop, const CompiledGraph &graph, std::string name)
{
    hop.graphs.push_back(&graph);
    hop.names.push_back(std::move(name));
}

void compileAutocast(Operands &in, HigherOrder &hop)
{
    const auto device = in.literal();
    const auto dtype = in.literal();
    const auto enabled = in.literal();
    const auto cache = in.literal();
    if (!device.isString() || !(dtype.isInt() || dtype.isNone()) || !enabled.isBool())
        throw CompileFault("wrap_with_autocast has operands of the wrong kind");
    if (dtype.isInt())
        hop.dtype = static_cast<at::ScalarType>(dtype.toInt());
    hop.enabled = enabled.toBool();
    if (cache.isBool())
        hop.cacheEnabled = cache.toBool();
}

// out_dtype(operator, dtype, arguments...): the operator computed and returned in another type.
void compileOutDtype(Operands &in, HigherOrder &hop)
{
    const auto *op = std::get_if<OperatorArg>(&in.peek());
    ++in.at;
    const auto dtype = in.literal();
    if (!op || !dtype.isInt())
        throw CompileFault("out_dtype has operands of the wrong kind");
    hop.dtype = static_cast<at::ScalarType>(dtype.toInt());
    hop.call = compileCall(
        op->name, {in.node.inputs.begin() + static_cast<std::ptrdiff_t>(in.at), in.node.inputs.end()}, in.nextInput);
}

// Which operand of the graph's inputs: item k of `operands` feeds graph input k.
void aliasesOfCalls(const HigherOrder &hop, std::size_t outputs, StepAliases &aliases)
{
    for (std::size_t k = 0; k < hop.graphs.size(); ++k) {
        const auto &inner = hop.graphs[k]->aliases;
        for (std::size_t i = 0; i < inner.written.size() && i < hop.operands.size(); ++i)
            if (inner.written[i] && hop.operands[i].input >= 0)
                aliases.written.push_back(static_cast<std::uint32_t>(hop.operands[i].input));
        for (std::size_t o = 0; o < inner.outputShares.size() && o < outputs; ++o)
            for (std::uint32_t i : inner.outputShares[o])
                if (i < hop.operands.size() && hop.operands[i].input >= 0)
                    aliases.shared.emplace_back(static_cast<std::uint32_t>(o),
                                                static_cast<std::uint32_t>(hop.operands[i].input));
    }
}

// A loop may hand any carried operand back in any place.
void aliasesOfLoop(const HigherOrder &hop, std::size_t outputs, StepAliases &aliases)
{
    aliasesOfCalls(hop, outputs, aliases);
    for (std::size_t o = 0; o < outputs; ++o)
        for (const auto &item : hop.operands)
            if (item.input >= 0)
                aliases.shared.emplace_back(static_cast<std::uint32_t>(o), static_cast<std::uint32_t>(item.input));
}

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

void compileHigherOrder(const CompiledGraph &owner, const Node &node, const std::string &name, Step &step,
                        std::uint32_t &nextInput)
{
    auto hop = std::make_unique<HigherOrder>();
    Operands in{node, owner, nextInput};
    if (name == "wrap_with_set_grad_enabled") {
        hop->kind = HopKind::SetGradEnabled;
        (void)in.literal();
        addGraph(*hop, in.graph(), name);
        in.appendRest(hop->operands);
    } else if (name == "wrap_with_autocast") {
        hop->kind = HopKind::Autocast;
        compileAutocast(in, *hop);
        addGraph(*hop, in.graph(), name);
        in.appendRest(hop->operands);
    } else if (name == "invoke_subgraph") {
        hop->kind = HopKind::InvokeSubgraph;
        addGraph(*hop, in.graph(), name);
        (void)in.literal(); // an id of the exporter
        in.appendRest(hop->operands);
    } else if (name == "out_dtype") {
        hop->kind = HopKind::OutDtype;
        compileOutDtype(in, *hop);
        step.hop = std::move(hop);
        step.kind = Step::Kind::HigherOrder;
        return;
    } else if (name == "cond") {
        hop->kind = HopKind::Cond;
        std::vector<ListItem> predicate;
        in.append(predicate);
        if (predicate.size() != 1)
            throw CompileFault("the predicate of cond must be one value");
        hop->predicate = predicate[0];
        addGraph(*hop, in.graph(), "cond[true]");
        addGraph(*hop, in.graph(), "cond[false]");
        in.appendRest(hop->operands);
    } else if (name == "while_loop") {
        hop->kind = HopKind::WhileLoop;
        addGraph(*hop, in.graph(), "while_loop[cond]");
        addGraph(*hop, in.graph(), "while_loop[body]");
        in.append(hop->operands);
        hop->leading = hop->operands.size();
        in.appendRest(hop->operands);
    } else if (name == "map_impl" || name == "map") {
        hop->kind = HopKind::Map;
        addGraph(*hop, in.graph(), name);
        if (const auto *count = std::get_if<std::int64_t>(&in.peek())) { // torch 2.1 and 2.2: number, flat operands
            hop->leading = static_cast<std::size_t>(std::max<std::int64_t>(*count, 0));
            ++in.at;
        } else {
            in.append(hop->operands);
            hop->leading = hop->operands.size();
        }
        in.appendRest(hop->operands);
        if (hop->leading > hop->operands.size())
            throw CompileFault(name + " has too few operands");
    } else {
        throw CompileFault("needs higher-order operator " + name);
    }
    for (std::size_t k = 0; k < hop->graphs.size(); ++k)
        checkCount(*hop->graphs[k], hop->operands.size(), hop->names[k]);
    const std::size_t outputs = node.outputValues().size();
    checkResults(*hop, node, step.listOutput, name);
    if (hop->kind == HopKind::WhileLoop)
        aliasesOfLoop(*hop, outputs, step.aliases);
    else if (hop->kind == HopKind::Map) // results are stacked; the slices are written where the graph writes
        aliasesOfCalls(*hop, 0, step.aliases);
    else
        aliasesOfCalls(*hop, outputs, step.aliases);
    step.hop = std::move(hop);
    step.kind = Step::Kind::HigherOrder;
    if (step.hop->kind != HopKind::Cond) // of a branch that may not be taken it is said when it is
        for (const CompiledGraph *graph : step.hop->graphs)
            for (const std::string &fault : graph->faults)
                if (!fault.empty())
                    throw CompileFault(fault);
}

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

// SPDX-License-Identifier: GPL-3.0-or-later
//
// How the file writes higher-order operators: operands are positional, graphs among them, lists flattened.
#include <algorithm>

#include "core/engine/argument_fit.h"
#include "core/engine/higher_order.h"

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

void compileCond(Operands &in, HigherOrder &hop)
{
    std::vector<ListItem> predicate;
    in.append(predicate);
    if (predicate.size() != 1)
        throw CompileFault("the predicate of cond must be one value");
    hop.predicate = predicate[0];
    addGraph(hop, in.graph(), "cond[true]");
    addGraph(hop, in.graph(), "cond[false]");
    in.appendRest(hop.operands);
}

void compileWhileLoop(Operands &in, HigherOrder &hop)
{
    addGraph(hop, in.graph(), "while_loop[cond]");
    addGraph(hop, in.graph(), "while_loop[body]");
    in.append(hop.operands);
    hop.leading = hop.operands.size();
    in.appendRest(hop.operands);
}

void compileMap(Operands &in, HigherOrder &hop)
{
    addGraph(hop, in.graph(), "map");
    if (const auto *count = std::get_if<std::int64_t>(&in.peek())) { // torch 2.1 and 2.2: number, flat operands
        hop.leading = static_cast<std::size_t>(std::max<std::int64_t>(*count, 0));
        ++in.at;
    } else {
        in.append(hop.operands);
        hop.leading = hop.operands.size();
    }
    in.appendRest(hop.operands);
    if (hop.leading > hop.operands.size())
        throw CompileFault("map has too few operands");
}

void readOperands(Operands &in, HigherOrder &hop, const std::string &name)
{
    const auto wrap = [&](HopKind kind) {
        hop.kind = kind;
        addGraph(hop, in.graph(), name);
        if (kind == HopKind::InvokeSubgraph)
            (void)in.literal(); // an id of the exporter
        in.appendRest(hop.operands);
    };
    if (name == "wrap_with_set_grad_enabled") {
        (void)in.literal(); // on or off: there is no autograd here
        wrap(HopKind::SetGradEnabled);
    } else if (name == "wrap_with_autocast") {
        compileAutocast(in, hop);
        wrap(HopKind::Autocast);
    } else if (name == "invoke_subgraph") {
        wrap(HopKind::InvokeSubgraph);
    } else if (name == "out_dtype") {
        hop.kind = HopKind::OutDtype;
        compileOutDtype(in, hop);
    } else if (name == "cond") {
        hop.kind = HopKind::Cond;
        compileCond(in, hop);
    } else if (name == "while_loop") {
        hop.kind = HopKind::WhileLoop;
        compileWhileLoop(in, hop);
    } else if (name == "map_impl" || name == "map") {
        hop.kind = HopKind::Map;
        compileMap(in, hop);
    } else {
        throw CompileFault("needs higher-order operator " + name);
    }
}

} // namespace

void compileHigherOrder(const CompiledGraph &owner, const Node &node, const std::string &name, Step &step,
                        std::uint32_t &nextInput)
{
    auto hop = std::make_unique<HigherOrder>();
    Operands in{node, owner, nextInput};
    readOperands(in, *hop, name);
    for (std::size_t k = 0; k < hop->graphs.size(); ++k)
        checkCount(*hop->graphs[k], hop->operands.size(), hop->names[k]);
    if (hop->kind != HopKind::OutDtype)
        checkResults(*hop, node, step.listOutput, name);
    const std::size_t outputs = node.outputValues().size();
    if (hop->kind == HopKind::WhileLoop)
        aliasesOfLoop(*hop, outputs, step.aliases);
    else // map stacks its results; its slices are written where its graph writes
        aliasesOfCalls(*hop, hop->kind == HopKind::Map ? 0 : outputs, step.aliases);
    step.hop = std::move(hop);
    step.kind = Step::Kind::HigherOrder;
    if (step.hop->kind == HopKind::Cond) // of a branch that may not be taken it is said when it is
        return;
    for (const CompiledGraph *graph : step.hop->graphs)
        for (const std::string &fault : graph->faults)
            if (!fault.empty())
                throw CompileFault(fault);
}

} // namespace dblame

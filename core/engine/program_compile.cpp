// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <unordered_map>

#include <ATen/core/function_schema.h>

#include "core/engine/alias_analysis.h"
#include "core/engine/argument_fit.h"
#include "core/engine/compiled_graph.h"
#include "core/engine/higher_order.h"
#include "core/engine/operator_names.h"
#include "core/engine/size_arithmetic.h"

namespace dblame
{

namespace
{

// An operator of the dispatcher, looked up once per target.
struct FoundOperator {
    std::optional<c10::OperatorHandle> handle;
    OperatorName name;
    std::string fault;
    OperatorAliases aliases;
    bool random = false;
};

FoundOperator findOperator(const std::string &target)
{
    FoundOperator found;
    const auto name = operatorName(target);
    if (!name) {
        found.fault = "needs " + target;
        return found;
    }
    found.name = *name;
    if (isDenied(*name)) {
        found.fault = name->shown() + " is not run: it reaches outside the model";
        return found;
    }
    found.handle = c10::Dispatcher::singleton().findSchema({name->registered(), name->overload});
    if (!found.handle) {
        found.fault = "needs " + name->shown();
        return found;
    }
    found.random = found.handle->hasTag(at::Tag::nondeterministic_seeded);
    found.aliases = aliasesOf(*found.handle);
    return found;
}

std::string plural(std::size_t n, const char *word)
{
    return std::to_string(n) + " " + word + (n == 1 ? "" : "s");
}

void fitArguments(const Node &node, const FoundOperator &found, Step &step, std::vector<Span> &inputsOf,
                  std::uint32_t &nextInput)
{
    const auto &arguments = found.handle->schema().arguments();
    const std::string shown = found.name.shown();
    step.arguments.resize(arguments.size());
    std::vector<char> given(arguments.size());
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        const auto &input = node.inputs[k];
        std::size_t a = 0;
        while (a < arguments.size() && arguments[a].name() != input.name)
            ++a;
        if (a == arguments.size() && input.name.empty() && k < arguments.size())
            a = k;
        if (a == arguments.size())
            throw CompileFault(shown + " has no argument " + input.name);
        if (given[a] != 0)
            throw CompileFault("argument " + input.name + " of " + shown + " is given twice");
        given[a] = 1;
        inputsOf[a].begin = nextInput;
        step.arguments[a] =
            fitArgument(input.value, &arguments[a], nextInput, "argument " + arguments[a].name() + " of " + shown);
        inputsOf[a].end = nextInput;
    }
    for (std::size_t a = 0; a < arguments.size(); ++a) {
        if (given[a] != 0)
            continue;
        if (!arguments[a].default_value())
            throw CompileFault("argument " + arguments[a].name() + " of " + shown + " is missing");
        step.arguments[a].constant = *arguments[a].default_value();
    }
}

class Compiler
{
public:
    explicit Compiler(CompiledGraph &out) : m_out(out), m_graph(*out.graph) {}

    void run(const std::vector<std::string> &modelFaults)
    {
        m_out.steps.resize(m_graph.nodes.size());
        m_out.faults.resize(m_graph.nodes.size());
        m_out.useCounts.resize(m_graph.values.size());
        for (std::size_t n = 0; n < m_graph.nodes.size(); ++n) {
            const Node &node = m_graph.nodes[n];
            Step &step = m_out.steps[n];
            step.inputsBegin = static_cast<std::uint32_t>(m_out.inputValues.size());
            for (ValueId v : node.inputValues()) {
                m_out.inputValues.push_back(static_cast<Slot>(v.get()));
                ++m_out.useCounts[v.get()];
            }
            step.inputsEnd = static_cast<std::uint32_t>(m_out.inputValues.size());
            try {
                compileNode(node, step);
            } catch (const std::exception &error) {
                step.kind = Step::Kind::Faulty;
                m_out.faults[n] = error.what();
                if (step.aliases.shared.empty() && step.aliases.written.empty())
                    step.aliases = aliasesOfFaulty(node);
            }
            if (n < modelFaults.size() && !modelFaults[n].empty())
                m_out.faults[n] = modelFaults[n];
        }
        for (const auto &output : m_graph.outputs)
            if (output.value.valid())
                ++m_out.useCounts[output.value.get()];
        makeNotes();
        m_out.aliases = summarize(m_out);
    }

private:
    void compileNode(const Node &node, Step &step)
    {
        for (const auto &output : node.outputs)
            step.listOutput = step.listOutput || std::holds_alternative<std::vector<ValueId>>(output);
        std::uint32_t nextInput = 0;
        if (const auto size = sizeOpOf(node.target)) {
            step.kind = Step::Kind::Size;
            step.size = *size;
            for (const auto &input : node.inputs)
                step.arguments.push_back(fitArgument(input.value, nullptr, nextInput, "an operand of " + node.target));
            return;
        }
        if (const auto hop = higherOrderName(node.target)) {
            compileHigherOrder(m_out, node, *hop, step, nextInput);
            return;
        }
        compileOperator(node, step);
    }

    void compileOperator(const Node &node, Step &step)
    {
        auto it = m_found.find(node.target);
        if (it == m_found.end())
            it = m_found.emplace(node.target, findOperator(node.target)).first;
        const FoundOperator &found = it->second;
        if (!found.fault.empty())
            throw CompileFault(found.fault);
        step.kind = Step::Kind::Operator;
        step.op = found.handle;
        const auto &schema = found.handle->schema();
        std::vector<Span> inputsOf(schema.arguments().size());
        std::uint32_t nextInput = 0;
        fitArguments(node, found, step, inputsOf, nextInput);
        const auto outputsOf = checkOutputs(node, found);
        step.aliases = aliasesOf(found.aliases, inputsOf, outputsOf);
        if (found.random && drawsNumbers(step))
            step.random = m_random++;
    }

    // Per return: the positions of its values in Node::outputValues().
    static std::vector<Span> checkOutputs(const Node &node, const FoundOperator &found)
    {
        const auto &returns = found.handle->schema().returns();
        if (!node.outputs.empty() && node.outputs.size() != returns.size())
            throw CompileFault(found.name.shown() + " returns " + plural(returns.size(), "value") +
                               ", the file names " + std::to_string(node.outputs.size()));
        std::vector<Span> outputsOf;
        std::uint32_t next = 0;
        for (std::size_t r = 0; r < node.outputs.size(); ++r) {
            const bool list = std::holds_alternative<std::vector<ValueId>>(node.outputs[r]);
            const bool returnsList = returns[r].type()->kind() == c10::TypeKind::ListType;
            if (list != returnsList && !std::holds_alternative<NoneArg>(node.outputs[r]))
                throw CompileFault(found.name.shown() + (returnsList ? " returns a list, the file names one value"
                                                                     : " returns one value, the file names a list"));
            Span span{next, next};
            if (list)
                span.end += static_cast<std::uint32_t>(std::get<std::vector<ValueId>>(node.outputs[r]).size());
            else if (std::holds_alternative<ValueId>(node.outputs[r]))
                ++span.end;
            next = span.end;
            outputsOf.push_back(span);
        }
        return outputsOf;
    }

    // Dropout outside training, and attention without dropout, are marked as random but draw nothing.
    static bool drawsNumbers(const Step &step)
    {
        const auto &arguments = step.op->schema().arguments();
        for (std::size_t a = 0; a < arguments.size(); ++a) {
            const auto &name = arguments[a].name();
            const c10::IValue &v = step.arguments[a].constant;
            if (step.arguments[a].kind != ArgumentTemplate::Kind::Constant)
                continue;
            if ((name == "train" || name == "training") && v.isBool() && !v.toBool())
                return false;
            if ((name == "dropout_p" || name == "dropout") && v.isDouble() && v.toDouble() == 0)
                return false;
        }
        return true;
    }

    void note(const std::string &text)
    {
        if (std::find(m_out.notes.begin(), m_out.notes.end(), text) == m_out.notes.end())
            m_out.notes.push_back(text);
    }

    void makeNotes()
    {
        for (const auto &sub : m_out.subgraphs)
            for (const auto &text : sub->notes)
                note(text);
        for (const Node &node : m_graph.nodes)
            for (const auto &input : node.inputs)
                if (const auto *device = std::get_if<DeviceArg>(&input.value))
                    if (device->type != "cpu" && device->type != "meta")
                        note("made for " + device->type + ": runs on the CPU here");
        if (m_random > 0)
            note(plural(static_cast<std::size_t>(m_random), "operator") +
                 " of the graph draw random numbers (dropout in training mode, noise): each starts from a fixed seed");
    }

    // A node that cannot run still says what it would have shared and written: values that a missing write leaves as
    // they were must not pass for computed.
    StepAliases aliasesOfFaulty(const Node &node) const
    {
        const auto outputs = static_cast<std::uint32_t>(node.outputValues().size());
        const auto found = m_found.find(node.target);
        if (found == m_found.end() || !found->second.handle) {
            StepAliases result;
            if (higherOrderName(node.target) || node.inputValues().empty())
                return result;
            for (std::uint32_t o = 0; o < outputs; ++o) // an unknown operator: its first input, as a view would
                result.shared.emplace_back(o, 0);
            if (node.opName().ends_with('_'))
                result.written.push_back(0);
            return result;
        }
        const auto &schema = found->second.handle->schema();
        std::vector<Span> inputsOf(schema.arguments().size()), outputsOf(schema.returns().size(), Span{0, outputs});
        std::uint32_t next = 0;
        for (const auto &input : node.inputs) {
            Node alone;
            alone.inputs.push_back(input);
            const Span span{next, next + static_cast<std::uint32_t>(alone.inputValues().size())};
            next = span.end;
            for (std::size_t a = 0; a < inputsOf.size(); ++a)
                if (schema.arguments()[a].name() == input.name)
                    inputsOf[a] = span;
        }
        return aliasesOf(found->second.aliases, inputsOf, outputsOf);
    }

    CompiledGraph &m_out;
    const Graph &m_graph;
    std::unordered_map<std::string, FoundOperator> m_found;
    std::int32_t m_random = 0;
};

} // namespace

HigherOrder::HigherOrder() = default;
HigherOrder::~HigherOrder() = default;

std::unique_ptr<Step> compileCall(const std::string &target, std::vector<NamedArgument> positional,
                                  std::uint32_t &nextInput)
{
    const FoundOperator found = findOperator(target);
    if (!found.fault.empty())
        throw CompileFault(found.fault);
    auto step = std::make_unique<Step>();
    step->kind = Step::Kind::Operator;
    step->op = found.handle;
    std::vector<Span> inputsOf(found.handle->schema().arguments().size());
    Node call;
    call.inputs = std::move(positional);
    fitArguments(call, found, *step, inputsOf, nextInput);
    step->inputsEnd = nextInput;
    return step;
}

std::unique_ptr<CompiledGraph> compileGraph(const Graph &graph, const std::vector<std::string> &modelFaults)
{
    auto compiled = std::make_unique<CompiledGraph>();
    compiled->graph = &graph;
    for (const auto &sub : graph.subgraphs)
        compiled->subgraphs.push_back(compileGraph(*sub, {}));
    Compiler(*compiled).run(modelFaults);
    return compiled;
}

} // namespace dblame

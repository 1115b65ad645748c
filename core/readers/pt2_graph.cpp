// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/pt2_graph.h"

#include <set>
#include <unordered_map>
#include <utility>

#include "core/graph_inline.h"
#include "core/readers/node_metadata.h"
#include "core/readers/operator_returns.h"
#include "core/readers/pt2_arguments.h"
#include "core/readers/pt2_signature.h"
#include "core/readers/zip_archive.h"

namespace dblame
{

namespace
{

constexpr int kMaxGraphDepth = 64;

// "torch.ops.aten.conv2d.default" -> "aten.conv2d.default"; higher-order operators, however spelled, become
// "higher_order.<name>"; Python functions stay as they are.
std::string shortTarget(const std::string &target)
{
    constexpr std::string_view ops = "torch.ops.", hops = "torch._higher_order_ops.";
    if (target.starts_with(ops)) {
        std::string rest = target.substr(ops.size());
        return rest.find('.') == std::string::npos ? "higher_order." + rest : rest;
    }
    if (target.starts_with(hops))
        return "higher_order." + target.substr(target.rfind('.') + 1);
    return target;
}

// One graph of the file; subgraphs get a builder of their own (names are local to their graph).
class GraphBuilder
{
public:
    GraphBuilder(int depth, const ReadControl *control, std::set<std::string> &devices)
        : m_depth(depth), m_control(control), m_devices(devices)
    {
        if (depth > kMaxGraphDepth)
            throw ReadError("graphs are nested too deep (more than " + std::to_string(kMaxGraphDepth) + " levels)");
    }

    Graph m_graph;
    std::vector<std::string> m_faults;

    void readInputs(const Json &inputs)
    {
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const std::string what = "graph input " + std::to_string(i);
            GraphInput input;
            inContext(what, [&] { readInput(inputs[i], what, input); });
            m_graph.inputs.push_back(std::move(input));
        }
    }

    void readNodes(const Json &nodes)
    {
        m_graph.nodes.reserve(nodes.size());
        std::unordered_map<std::string, int> taken;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            if (m_control != nullptr)
                m_control->check();
            inContext("node " + std::to_string(i), [&] { readNode(nodes[i], taken); });
        }
    }

    void readTensorValues(const Json &graph)
    {
        const Json *values = optionalField(graph, "tensor_values");
        if (values == nullptr)
            return;
        for (const auto &[name, meta] : asObject(*values, "tensor_values").items()) {
            const auto found = m_values.find(name);
            if (found != m_values.end())
                inContext("value " + printable(name),
                          [&] { m_graph.values[found->second.get()].meta = readTensorMeta(meta); });
        }
    }

    void readOutputs(const Json &outputs)
    {
        for (std::size_t i = 0; i < outputs.size(); ++i)
            inContext("output " + std::to_string(i), [&] {
                const Argument value = argument(outputs[i]);
                // A list counts as its elements, the way node outputs do.
                if (const auto *list = std::get_if<ValueListArg>(&value)) {
                    for (const auto &element : list->values)
                        m_graph.outputs.push_back({OutputKind::User, element.value_or(ValueId{}), {}, NoneArg{}});
                    return;
                }
                GraphOutput output;
                if (const auto *id = std::get_if<ValueId>(&value))
                    output.value = *id;
                else
                    output.literal = value;
                m_graph.outputs.push_back(std::move(output));
            });
        m_graph.index();
    }

private:
    template <class F>
    static void inContext(const std::string &context, const F &read)
    {
        try {
            read();
        } catch (const ReadError &error) {
            const std::string message = error.what();
            throw ReadError(message.starts_with(context) ? message : context + ": " + message, error.member());
        }
    }

    ValueId define(const std::string &name, NodeId producer, int outputIndex)
    {
        const ValueId id(m_graph.values.size());
        if (!m_values.emplace(name, id).second)
            throw ReadError("value " + printable(name) + " is defined twice");
        Value value;
        value.name = name;
        value.producer = producer;
        value.outputIndex = outputIndex;
        m_graph.values.push_back(std::move(value));
        return id;
    }
    ValueId use(const std::string &name) const
    {
        const auto found = m_values.find(name);
        if (found == m_values.end())
            throw ReadError("value " + printable(name) +
                            (m_nodesRead ? " is not defined" : " is used before it is defined"));
        return found->second;
    }

    void readInput(const Json &json, const std::string &what, GraphInput &input)
    {
        const auto [tag, value] = asUnion(json, what);
        if (value.is_object()) {
            if (const Json *name = optionalField(value, "name")) {
                if (tag == "as_custom_obj")
                    input.kind = InputKind::CustomObject;
                input.value = define(asText(*name, "name"), {}, 0);
                return;
            }
            if (const Json *name = optionalField(value, "as_name")) {
                input.value = define(asText(*name, "as_name"), {}, 0);
                return;
            }
        }
        input.kind = InputKind::Constant;
        input.constant = argument(json);
    }

    void readNode(const Json &json, std::unordered_map<std::string, int> &taken)
    {
        const NodeId id(m_graph.nodes.size());
        Node node;
        node.target = shortTarget(textField(json, "target"));
        m_fault.clear();
        for (const Json &input : listField(json, "inputs")) {
            NamedArgument named;
            if (const Json *name = optionalField(input, "name"))
                named.name = asText(*name, "name");
            named.value = argument(field(input, "arg"));
            if (const auto *bad = std::get_if<UnsupportedArg>(&named.value); bad != nullptr && m_fault.empty())
                m_fault = bad->what;
            node.inputs.push_back(std::move(named));
        }
        int outputIndex = 0;
        for (const Json &output : listField(json, "outputs"))
            node.outputs.push_back(nodeOutput(output, id, outputIndex));
        checkOutputCount(node);
        if (const Json *metadata = optionalField(json, "metadata"))
            readNodeMetadata(*metadata, node);
        nameNode(json, node, taken);
        m_graph.nodes.push_back(std::move(node));
        m_faults.push_back(m_fault);
    }

    // One entry for each value that the operator returns; operators that are not here are left to the engine.
    void checkOutputCount(const Node &node)
    {
        const auto [it, isNew] = m_returns.try_emplace(node.target);
        if (isNew)
            it->second = operatorReturns(node.target);
        if (it->second && *it->second != node.outputs.size())
            throw ReadError(printable(dispatcherName(node.target)) + " returns " + std::to_string(*it->second) +
                            (*it->second == 1 ? " value" : " values") + ", the file names " +
                            std::to_string(node.outputs.size()));
    }

    void nameNode(const Json &json, Node &node, std::unordered_map<std::string, int> &taken) const
    {
        if (const Json *name = optionalField(json, "name"); name != nullptr && name->is_string())
            node.name = name->get<std::string>();
        if (node.name.empty())
            if (const auto outputs = node.outputValues(); !outputs.empty())
                node.name = m_graph.values[outputs.front().get()].name;
        if (node.name.empty())
            node.name = node.opName();
        const std::string base = node.name;
        while (!taken.emplace(node.name, 0).second)
            node.name = base + "_" + std::to_string(++taken[base]);
    }

    NodeOutput nodeOutput(const Json &json, NodeId producer, int &index)
    {
        const auto [tag, value] = asUnion(json, "an output");
        const auto one = [&](const Json &holder, const char *key) -> NodeOutput {
            return define(textField(holder, key), producer, index++);
        };
        if (tag == "as_none")
            return NoneArg{};
        if (tag == "as_optional_tensor")
            return nodeOutput(value, producer, index);
        if (value.is_array()) {
            std::vector<ValueId> values;
            for (const Json &element : value) {
                const Json *name = optionalField(element, "name");
                if (name == nullptr)
                    name = optionalField(element, "as_name");
                if (name == nullptr)
                    if (const Json *tensor = optionalField(element, "as_tensor"))
                        name = optionalField(*tensor, "name");
                if (name != nullptr) // holes and literals carry no value
                    values.push_back(define(asText(*name, "name of an output"), producer, index++));
            }
            return values;
        }
        if (optionalField(value, "name") != nullptr)
            return one(value, "name");
        if (optionalField(value, "as_name") != nullptr)
            return one(value, "as_name");
        if (tag == "as_tensor")
            return one(value, "name");
        return NoneArg{}; // a literal: nothing that a later node could read
    }

    // --- arguments ---

    Argument argument(const Json &json)
    {
        const auto [tag, value] = asUnion(json, "an argument");
        if (auto literal = literalArgument(tag, value))
            return std::move(*literal);
        if (tag.starts_with("as_sym_"))
            return symbolicArgument(tag, value);
        if (tag == "as_tensor")
            return use(textField(value, "name"));
        if (tag == "as_optional_tensor")
            return argument(value);
        if (tag == "as_tensors" || tag == "as_optional_tensors")
            return ValueListArg{listOf<std::optional<ValueId>>(value, tag, [&](const Json &v) { return element(v); })};
        if (tag == "as_nested_tensors")
            return NestedValueListArg{listOf<std::vector<ValueId>>(value, tag, [&](const Json &inner) {
                return listOf<ValueId>(inner, tag, [&](const Json &v) { return use(textField(v, "name")); });
            })};
        return otherArgument(tag, value);
    }

    std::optional<ValueId> element(const Json &json) const
    {
        if (optionalField(json, "as_none") != nullptr)
            return std::nullopt;
        const Json *tensor = optionalField(json, "as_tensor");
        return use(textField(tensor != nullptr ? *tensor : json, "name"));
    }

    Argument symbolicArgument(const std::string &tag, const Json &value)
    {
        using IntOrValue = std::variant<std::int64_t, ValueId>;
        using BoolOrValue = std::variant<bool, ValueId>;
        if (tag == "as_sym_ints")
            return IntListArg{listOf<IntOrValue>(value, tag, [&](const Json &v) -> IntOrValue {
                const auto [kind, inner] = asUnion(v, "a size");
                if (kind == "as_name")
                    return use(asText(inner, kind));
                return asInt(inner, kind);
            })};
        if (tag == "as_sym_bools")
            return BoolListArg{listOf<BoolOrValue>(value, tag, [&](const Json &v) -> BoolOrValue {
                const auto [kind, inner] = asUnion(v, "a flag");
                if (kind == "as_name")
                    return use(asText(inner, kind));
                return asBool(inner, kind);
            })};
        if (tag == "as_sym_floats") {
            bool named = false;
            auto numbers = listOf<double>(value, tag, [&](const Json &v) {
                const auto [kind, inner] = asUnion(v, "a number");
                named = named || kind == "as_name";
                return kind == "as_name" ? 0.0 : asFloat(inner, kind);
            });
            if (named)
                return UnsupportedArg{"a list of computed numbers is not supported"};
            return FloatListArg{std::move(numbers)};
        }
        if (tag != "as_sym_int" && tag != "as_sym_float" && tag != "as_sym_bool")
            return UnsupportedArg{"argument kind " + printable(tag) + " is unknown"};
        const auto [kind, inner] = asUnion(value, tag);
        if (kind == "as_name")
            return use(asText(inner, kind));
        if (kind == "as_int")
            return asInt(inner, kind);
        if (kind == "as_float")
            return asFloat(inner, kind);
        if (kind == "as_bool")
            return asBool(inner, kind);
        return UnsupportedArg{"argument kind " + tag + "." + printable(kind) + " is unknown"};
    }

    Argument otherArgument(const std::string &tag, const Json &value)
    {
        if (tag == "as_device")
            return device(value);
        if (tag == "as_graph")
            return subgraph(value);
        if (tag == "as_custom_obj") {
            const std::string &name = textField(value, "name");
            if (const auto found = m_values.find(name); found != m_values.end())
                return found->second;
            return UnsupportedArg{"custom object " + printable(name) + " is not in the file"};
        }
        if (tag == "as_string_to_argument")
            return UnsupportedArg{"a dictionary as an argument is not supported"};
        return UnsupportedArg{"argument kind " + printable(tag) + " is unknown"};
    }

    // dBlame runs on the CPU: other devices are replaced, once for all.
    Argument device(const Json &value)
    {
        DeviceArg result;
        result.type = textField(value, "type");
        if (const Json *index = optionalField(value, "index"))
            result.index = asInt(*index, "index");
        if (result.type != "cpu" && result.type != "meta") {
            m_devices.insert(result.type);
            result = {"cpu", -1};
        }
        return result;
    }

    Argument subgraph(const Json &value)
    {
        const std::string &name = textField(value, "name");
        const Json &json = objectField(value, "graph");
        GraphBuilder inner(m_depth + 1, m_control, m_devices);
        inContext("graph " + printable(name), [&] { inner.readAll(json); });
        for (std::size_t i = 0; i < inner.m_faults.size(); ++i)
            if (!inner.m_faults[i].empty() && m_fault.empty())
                m_fault = name + "/" + inner.m_graph.nodes[i].name + ": " + inner.m_faults[i];
        m_graph.subgraphs.push_back(std::make_unique<Graph>(std::move(inner.m_graph)));
        m_graph.subgraphNames.push_back(name);
        return SubgraphArg{m_graph.subgraphs.size() - 1};
    }

public:
    void readAll(const Json &graph)
    {
        readInputs(listField(graph, "inputs"));
        readNodes(listField(graph, "nodes"));
        m_nodesRead = true;
        readTensorValues(graph);
        readOutputs(listField(graph, "outputs"));
    }

private:
    int m_depth;
    const ReadControl *m_control;
    std::set<std::string> &m_devices; // replaced by the CPU
    std::unordered_map<std::string, ValueId> m_values;
    std::unordered_map<std::string, std::optional<std::size_t>> m_returns; // by target: looked up once
    std::string m_fault;                                                   // of the node being read
    bool m_nodesRead = false;
};

} // namespace

Pt2Graph readPt2Graph(const Json &graphModule, const ReadControl *control)
{
    const Json &json = objectField(graphModule, "graph");
    std::set<std::string> devices;
    GraphBuilder builder(0, control, devices);
    builder.readAll(json);
    applySignature(objectField(graphModule, "signature"), builder.m_graph);
    nameInputsAndOutputs(graphModule, builder.m_graph);
    Pt2Graph result;
    result.graph = std::move(builder.m_graph);
    const std::vector<std::size_t> origin = inlineGradBlocks(result.graph);
    result.graph.index();
    for (std::size_t node : origin)
        result.faults.push_back(builder.m_faults[node]);
    for (const std::string &device : devices)
        result.notes.push_back("the program names device " + printable(device) + "; it is run on the CPU");
    return result;
}

} // namespace dblame

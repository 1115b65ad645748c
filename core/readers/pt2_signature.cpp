// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/pt2_signature.h"

#include <map>
#include <utility>

#include "core/readers/zip_archive.h"

namespace dblame
{

namespace
{

constexpr int kMaxDepth = 64;

// Dictionaries keep their keys as JSON text of a list; keys that are not text are shown as JSON.
std::vector<std::string> keyList(const std::string &context)
{
    std::vector<std::string> keys;
    const Json list = parseJson(context, "context");
    for (const Json &key : asList(list, "context"))
        keys.push_back(key.is_string() ? key.get<std::string>() : key.dump());
    return keys;
}

std::vector<std::string> namedTupleFields(const std::string &type, const Json &graphModule)
{
    std::vector<std::string> names;
    const Json *all = optionalField(graphModule, "treespec_namedtuple_fields");
    const Json *entry = all != nullptr ? optionalField(*all, type.c_str()) : nullptr;
    const Json *list = entry != nullptr ? optionalField(*entry, "field_names") : nullptr;
    if (list != nullptr && list->is_array())
        for (const Json &name : *list)
            names.push_back(asText(name, "field_names"));
    return names;
}

Pytree parseNode(const Json &json, const Json &graphModule, int depth)
{
    if (depth > kMaxDepth)
        throw ReadError("the nesting of arguments is too deep");
    Pytree tree;
    const Json *type = optionalField(json, "type");
    if (type == nullptr) // null members were dropped: a leaf
        return tree;
    tree.type = asText(*type, "type");
    const Json *context = optionalField(json, "context");
    if (context != nullptr && context->is_string()) {
        if (tree.type == "builtins.dict" || tree.type == "collections.OrderedDict" ||
            tree.type == "collections.defaultdict")
            tree.keys = keyList(context->get<std::string>());
        else if (tree.type == "collections.namedtuple")
            tree.keys = namedTupleFields(context->get<std::string>(), graphModule);
    }
    for (const Json &child : listField(json, "children_spec"))
        tree.children.push_back(parseNode(child, graphModule, depth + 1));
    return tree;
}

void collectLabels(const Pytree &tree, const std::string &prefix, std::vector<std::string> &labels)
{
    if (tree.isLeaf()) {
        labels.push_back(prefix);
        return;
    }
    for (std::size_t i = 0; i < tree.children.size(); ++i) {
        std::string label;
        if (i < tree.keys.size())
            label = prefix.empty() ? tree.keys[i] : prefix + "." + tree.keys[i];
        else
            label = prefix + "[" + std::to_string(i) + "]";
        collectLabels(tree.children[i], label, labels);
    }
}

const Json *rootSignature(const Json &graphModule)
{
    const Json *calls = optionalField(graphModule, "module_call_graph");
    if (calls == nullptr || !calls->is_array())
        return nullptr;
    for (const Json &call : *calls) {
        const Json *fqn = optionalField(call, "fqn");
        if (fqn != nullptr && fqn->is_string() && fqn->get_ref<const std::string &>().empty())
            return optionalField(call, "signature");
    }
    return nullptr;
}

// (args, kwargs) with the names of the arguments at the top.
std::vector<std::string> inputLabels(const Json &signature, const Pytree &tree)
{
    std::vector<std::string> names;
    if (const Json *list = optionalField(signature, "forward_arg_names"); list != nullptr && list->is_array())
        for (const Json &name : *list)
            names.push_back(asText(name, "forward_arg_names"));
    std::vector<std::string> labels;
    if (tree.children.size() != 2 || tree.children[0].isLeaf() || tree.children[1].isLeaf())
        return leafLabels(tree);
    for (std::size_t i = 0; i < tree.children[0].children.size(); ++i)
        collectLabels(tree.children[0].children[i], i < names.size() ? names[i] : "x" + std::to_string(i), labels);
    collectLabels(tree.children[1], {}, labels);
    return labels;
}

void labelInputs(const Json &graphModule, Graph &graph)
{
    const Json *signature = rootSignature(graphModule);
    std::vector<std::string> labels;
    if (signature != nullptr)
        labels = inputLabels(*signature, inputTree(graphModule));
    std::vector<GraphInput *> given;
    for (GraphInput &input : graph.inputs)
        if (input.kind == InputKind::User || input.kind == InputKind::Constant)
            given.push_back(&input);
    const bool fits = labels.size() == given.size();
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (fits)
            given[i]->target = labels[i];
        else if (given[i]->value.valid())
            given[i]->target = graph.value(given[i]->value).name;
    }
}

void labelOutputs(const Json &graphModule, Graph &graph)
{
    const Json *signature = rootSignature(graphModule);
    if (signature == nullptr)
        return;
    const auto labels = leafLabels(parsePytree(textField(*signature, "out_spec"), graphModule));
    std::vector<GraphOutput *> returned;
    for (GraphOutput &output : graph.outputs)
        if (output.kind == OutputKind::User)
            returned.push_back(&output);
    if (labels.size() == returned.size())
        for (std::size_t i = 0; i < labels.size(); ++i)
            returned[i]->target = labels[i];
}

void applyInputSpec(const Json &spec, std::size_t i, Graph &graph)
{
    const std::string what = "input " + std::to_string(i);
    GraphInput &input = graph.inputs[i];
    const auto [kind, value] = asUnion(spec, what);
    const auto stored = [&](InputKind inputKind, const char *target) {
        input.kind = inputKind;
        input.target = textField(value, target);
        if (!input.value.valid())
            throw ReadError(what + ": " + kind + " " + printable(input.target) + " has no name in the graph");
        const std::string &name = textField(field(value, "arg"), "name");
        if (name != graph.value(input.value).name)
            throw ReadError(what + ": the signature names " + printable(name) + ", the graph " +
                            printable(graph.value(input.value).name));
    };
    if (kind == "parameter") {
        stored(InputKind::Parameter, "parameter_name");
    } else if (kind == "buffer") {
        stored(InputKind::Buffer, "buffer_name");
        if (const Json *persistent = optionalField(value, "persistent"))
            input.persistent = asBool(*persistent, "persistent");
    } else if (kind == "tensor_constant") {
        stored(InputKind::TensorConstant, "tensor_constant_name");
    } else if (kind == "custom_obj") {
        stored(InputKind::CustomObject, "custom_obj_name");
    } else if (kind == "token") {
        input.kind = InputKind::Token;
    } else if (kind == "constant_input") {
        input.kind = InputKind::Constant;
        input.target = textField(value, "name");
    } else if (kind == "user_input") {
        if (input.kind == InputKind::CustomObject)
            input.target = graph.value(input.value).name;
        else if (input.kind != InputKind::Constant)
            input.kind = InputKind::User;
    } else {
        throw ReadError(what + ": kind " + printable(kind) + " is unknown");
    }
}

void applyOutputSpec(const Json &spec, std::size_t i, GraphOutput &output)
{
    const std::string what = "output " + std::to_string(i);
    const auto [kind, value] = asUnion(spec, what);
    static const std::map<std::string, std::pair<OutputKind, const char *>> kinds = {
        {"user_output", {OutputKind::User, nullptr}},
        {"loss_output", {OutputKind::Loss, nullptr}},
        {"token", {OutputKind::Token, nullptr}},
        {"buffer_mutation", {OutputKind::BufferMutation, "buffer_name"}},
        {"parameter_mutation", {OutputKind::ParameterMutation, "parameter_name"}},
        {"user_input_mutation", {OutputKind::InputMutation, "user_input_name"}},
        {"gradient_to_parameter", {OutputKind::Gradient, "parameter_name"}},
        {"gradient_to_user_input", {OutputKind::Gradient, "user_input_name"}},
    };
    const auto found = kinds.find(kind);
    if (found == kinds.end())
        throw ReadError(what + ": kind " + printable(kind) + " is unknown");
    output.kind = found->second.first;
    if (found->second.second != nullptr)
        output.target = textField(value, found->second.second);
}

} // namespace

void applySignature(const Json &signature, Graph &graph)
{
    const Json &inputs = listField(signature, "input_specs");
    if (inputs.size() != graph.inputs.size())
        throw ReadError("the signature lists " + std::to_string(inputs.size()) + " inputs, the graph " +
                        std::to_string(graph.inputs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i)
        applyInputSpec(inputs[i], i, graph);
    const Json &outputs = listField(signature, "output_specs");
    if (outputs.size() != graph.outputs.size())
        throw ReadError("the signature lists " + std::to_string(outputs.size()) + " outputs, the graph " +
                        std::to_string(graph.outputs.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i)
        applyOutputSpec(outputs[i], i, graph.outputs[i]);
}

Pytree parsePytree(const std::string &text, const Json &graphModule)
{
    const Json json = parseJson(text, "treespec");
    const Json &list = asList(json, "treespec");
    if (list.size() != 2)
        throw ReadError("treespec must be [version, tree]");
    return parseNode(list[1], graphModule, 0);
}

std::vector<std::string> leafLabels(const Pytree &tree)
{
    std::vector<std::string> labels;
    collectLabels(tree, {}, labels);
    return labels;
}

Pytree inputTree(const Json &graphModule)
{
    try {
        if (const Json *signature = rootSignature(graphModule))
            return parsePytree(textField(*signature, "in_spec"), graphModule);
    } catch (const ReadError &) {
        return {};
    }
    return {};
}

void nameInputsAndOutputs(const Json &graphModule, Graph &graph)
{
    // Labels only: a damaged spec must not refuse a model that runs without them.
    for (const auto label : {labelInputs, labelOutputs}) {
        try {
            label(graphModule, graph);
        } catch (const ReadError &) {
            for (GraphInput &input : graph.inputs)
                if (input.kind == InputKind::User && input.target.empty() && input.value.valid())
                    input.target = graph.value(input.value).name;
        }
    }
}

} // namespace dblame

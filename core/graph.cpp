// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/graph.h"

#include <algorithm>
#include <array>

namespace dblame
{

namespace
{

constexpr std::array<std::string_view, 25> kDTypeNames = {
    "unknown", "uint8",         "int8",        "int16",           "int32",           "int64",          "float16",
    "float32", "float64",       "complex32",   "complex64",       "complex128",      "bool",           "bfloat16",
    "uint16",  "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "uint32",
    "uint64",  "qint8",         "quint8",      "qint32",
};

template <class F>
void eachValue(const Argument &argument, const F &f)
{
    if (const auto *one = std::get_if<ValueId>(&argument)) {
        f(*one);
    } else if (const auto *list = std::get_if<ValueListArg>(&argument)) {
        for (const auto &v : list->values)
            if (v)
                f(*v);
    } else if (const auto *nested = std::get_if<NestedValueListArg>(&argument)) {
        for (const auto &inner : nested->values)
            for (ValueId v : inner)
                f(v);
    } else if (const auto *ints = std::get_if<IntListArg>(&argument)) {
        for (const auto &v : ints->values)
            if (const auto *id = std::get_if<ValueId>(&v))
                f(*id);
    } else if (const auto *bools = std::get_if<BoolListArg>(&argument)) {
        for (const auto &v : bools->values)
            if (const auto *id = std::get_if<ValueId>(&v))
                f(*id);
    }
}

} // namespace

std::string_view dtypeName(DType dtype)
{
    return kDTypeNames[static_cast<std::size_t>(dtype)];
}

DType dtypeFromName(std::string_view name)
{
    const auto it = std::find(kDTypeNames.begin(), kDTypeNames.end(), name);
    return it == kDTypeNames.end() ? DType::Unknown : static_cast<DType>(it - kDTypeNames.begin());
}

bool isFloatingPoint(DType dtype)
{
    switch (dtype) {
    case DType::Float16:
    case DType::Float32:
    case DType::Float64:
    case DType::BFloat16:
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0FNU:
        return true;
    default:
        return false;
    }
}

const std::string &Node::modulePath() const
{
    static const std::string kNone;
    return modules.empty() ? kNone : modules.back().path;
}

const std::string &Node::moduleType() const
{
    static const std::string kNone;
    return modules.empty() ? kNone : modules.back().type;
}

std::string Node::opName() const
{
    const auto first = target.find('.');
    if (first == std::string::npos)
        return target;
    const auto last = target.rfind('.');
    return last == first ? target.substr(first + 1) : target.substr(first + 1, last - first - 1);
}

std::string Node::opType() const
{
    const auto first = target.find('.');
    const auto last = target.rfind('.');
    return first == last ? target : target.substr(0, last);
}

const Argument *Node::argument(std::string_view name) const
{
    for (const auto &input : inputs)
        if (input.name == name)
            return &input.value;
    return nullptr;
}

std::vector<ValueId> Node::inputValues() const
{
    std::vector<ValueId> result;
    for (const auto &input : inputs)
        eachValue(input.value, [&](ValueId v) { result.push_back(v); });
    return result;
}

std::vector<ValueId> Node::outputValues() const
{
    std::vector<ValueId> result;
    for (const auto &output : outputs) {
        if (const auto *one = std::get_if<ValueId>(&output))
            result.push_back(*one);
        else if (const auto *list = std::get_if<std::vector<ValueId>>(&output))
            result.insert(result.end(), list->begin(), list->end());
    }
    return result;
}

ValueId Graph::find(std::string_view valueName) const
{
    const auto it = m_byName.find(std::string(valueName));
    return it == m_byName.end() ? ValueId{} : it->second;
}

NodeId Graph::findNode(std::string_view nodeName) const
{
    const auto it = m_nodeByName.find(std::string(nodeName));
    return it == m_nodeByName.end() ? NodeId{} : it->second;
}

const Node *Graph::producer(ValueId id) const
{
    const NodeId node = value(id).producer;
    return node.valid() ? &nodes[node.get()] : nullptr;
}

const GraphInput *Graph::input(ValueId id) const
{
    const auto position = m_inputOf[id.get()];
    return position < 0 ? nullptr : &inputs[static_cast<std::size_t>(position)];
}

bool Graph::isOutput(ValueId id) const
{
    return m_isOutput[id.get()] != 0;
}

void Graph::index()
{
    m_byName.clear();
    m_nodeByName.clear();
    m_readers.assign(values.size(), {});
    m_inputOf.assign(values.size(), -1);
    m_isOutput.assign(values.size(), 0);
    for (std::size_t i = 0; i < values.size(); ++i)
        m_byName.emplace(values[i].name, ValueId(i));
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].value.valid())
            m_inputOf[inputs[i].value.get()] = static_cast<std::int32_t>(i);
    for (const auto &output : outputs)
        if (output.kind == OutputKind::User && output.value.valid())
            m_isOutput[output.value.get()] = 1;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        m_nodeByName.emplace(nodes[i].name, NodeId(i));
        for (ValueId v : nodes[i].inputValues()) {
            auto &readers = m_readers[v.get()];
            if (readers.empty() || readers.back() != NodeId(i))
                readers.push_back(NodeId(i));
        }
    }
}

} // namespace dblame

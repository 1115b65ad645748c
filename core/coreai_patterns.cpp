// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/coreai_patterns.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/graph_query.h"

namespace dblame
{

namespace
{

using Words = std::vector<std::string_view>;

bool among(std::string_view word, const Words &words)
{
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool isConv(std::string_view target)
{
    static const Words kTargets = {"aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default",
                                   "aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding"};
    return among(target, kTargets);
}

bool isTransposed(std::string_view target)
{
    static const Words kTargets = {"aten.conv_transpose1d.default", "aten.conv_transpose2d.input",
                                   "aten.conv_transpose3d.input"};
    return among(target, kTargets);
}

// By operator, in the structural patterns.
bool isActivationTarget(std::string_view target)
{
    static const Words kTargets = {
        "aten.relu.default",        "aten.relu_.default",        "aten.relu6.default",     "aten.relu6_.default",
        "aten.leaky_relu.default",  "aten.leaky_relu_.default",  "aten.silu.default",      "aten.silu_.default",
        "aten.elu.default",         "aten.elu_.default",         "aten.celu.default",      "aten.celu_.default",
        "aten.selu.default",        "aten.selu_.default",        "aten.mish.default",      "aten.mish_.default",
        "aten.hardtanh.default",    "aten.hardtanh_.default",    "aten.hardswish.default", "aten.hardswish_.default",
        "aten.hardsigmoid.default", "aten.hardsigmoid_.default", "aten.gelu.default",      "aten.sigmoid.default",
        "aten.log_sigmoid.default", "aten.tanh.default",         "aten.softmax.int"};
    return among(target, kTargets);
}

// By type, after an n-ary operator.
bool isActivationType(std::string_view type)
{
    static const Words kTypes = {"relu",    "relu6",       "leaky_relu", "silu",      "elu",         "celu",
                                 "selu",    "mish",        "hardtanh",   "hardswish", "hardsigmoid", "gelu",
                                 "sigmoid", "log_sigmoid", "tanh",       "softmax"};
    return among(type, kTypes);
}

struct NaryPattern {
    Words types;
    bool activation;
};

// In the order of the peer's registry; the order decides only among patterns of one length and priority.
const std::vector<NaryPattern> &naryPatterns()
{
    static const std::vector<NaryPattern> kPatterns = {
        {{"matmul"}, false},      {{"matmul"}, true},       {{"einsum"}, false},
        {{"einsum"}, true},       {{"add", "add_"}, false}, {{"add", "add_"}, true},
        {{"mul", "mul_"}, false}, {{"mul", "mul_"}, true},  {{"sub", "sub_", "isub"}, false},
    };
    return kPatterns;
}

const Words &valueSharingTypes()
{
    static const Words kTypes = {
        "flatten",    "max_pool1d",          "max_pool2d",          "max_pool3d",          "avg_pool1d", "avg_pool2d",
        "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "mean"};
    return kTypes;
}

class Matcher
{
public:
    explicit Matcher(const CoreAiGraph &graph) : m_graph(graph) {}

    // The weighted operator that `last` ends, going up through an activation and a norm as asked; -1 when it is none.
    [[nodiscard]] std::vector<int> weightedChain(int last, bool norm, bool activation) const
    {
        std::vector<int> chain;
        int at = last;
        if (activation) {
            if (!isActivationTarget(m_graph.target(at)) || !readsSingly(at))
                return {};
            chain.push_back(at);
            at = m_graph.at(at).inputs.front();
        }
        if (norm) {
            if (m_graph.target(at) != "aten.batch_norm.default" || (!chain.empty() && !onlyReadBy(at, chain.back())) ||
                m_graph.at(at).inputs.empty())
                return {};
            chain.push_back(at);
            at = m_graph.ofValue(valueArgument(m_graph.graph().node(m_graph.at(at).node), "input"));
        }
        if (at < 0 || !isAnchor(at) || (!chain.empty() && !onlyReadBy(at, chain.back())))
            return {};
        chain.push_back(at);
        std::reverse(chain.begin(), chain.end());
        return chain;
    }

private:
    [[nodiscard]] bool readsSingly(int entry) const
    {
        return m_graph.isCall(entry) && m_graph.at(entry).inputs.size() == 1;
    }
    [[nodiscard]] bool onlyReadBy(int entry, int reader) const
    {
        return m_graph.at(entry).users.size() == 1 && m_graph.at(entry).users.front() == reader;
    }

    // Convolution or linear whose input, weight and bias are different tensors, as the peer's matcher needs them.
    [[nodiscard]] bool isAnchor(int entry) const
    {
        const std::string &target = m_graph.target(entry);
        if (!isConv(target) && !isTransposed(target) && target != "aten.linear.default")
            return false;
        const Node &node = m_graph.graph().node(m_graph.at(entry).node);
        const ValueId weight = valueArgument(node, "weight");
        return weight.valid() && weight != valueArgument(node, "input") && valueArgument(node, "bias") != weight;
    }

    const CoreAiGraph &m_graph;
};

enum class Family : std::uint8_t { Conv, Transposed, Linear };

Family familyOf(const CoreAiGraph &graph, int entry)
{
    const std::string &target = graph.target(entry);
    return isConv(target) ? Family::Conv : isTransposed(target) ? Family::Transposed : Family::Linear;
}

void matchWeighted(const CoreAiGraph &graph, std::vector<CoreAiPattern> &found)
{
    const Matcher matcher(graph);
    struct Form {
        Family family;
        bool norm, activation;
    };
    static constexpr std::array<Form, 12> kForms = {{
        {Family::Conv, true, true},
        {Family::Transposed, true, true},
        {Family::Conv, false, true},
        {Family::Transposed, false, true},
        {Family::Conv, true, false},
        {Family::Transposed, true, false},
        {Family::Conv, false, false},
        {Family::Transposed, false, false},
        {Family::Linear, true, true},
        {Family::Linear, false, true},
        {Family::Linear, true, false},
        {Family::Linear, false, false},
    }};
    for (const Form &form : kForms)
        for (int i = 0; i < graph.size(); ++i) {
            const auto chain = matcher.weightedChain(i, form.norm, form.activation);
            if (!chain.empty() && familyOf(graph, chain.front()) == form.family)
                found.push_back({chain.front(), chain});
        }
    for (int i = 0; i < graph.size(); ++i)
        if (graph.target(i) == "aten.embedding.default")
            found.push_back({i, {i}});
}

void matchAlone(const CoreAiGraph &graph, const Words &types, std::vector<CoreAiPattern> &found)
{
    for (int i = 0; i < graph.size(); ++i)
        if (const auto type = graph.opType(i); !type.empty() && among(type, types))
            found.push_back({i, {i}});
}

void matchNary(const CoreAiGraph &graph, const NaryPattern &pattern, std::vector<CoreAiPattern> &found)
{
    if (!pattern.activation) {
        matchAlone(graph, pattern.types, found);
        return;
    }
    for (int i = 0; i < graph.size(); ++i) {
        const auto type = graph.opType(i);
        if (type.empty() || !among(type, pattern.types) || graph.at(i).users.size() != 1)
            continue;
        const int user = graph.at(i).users.front();
        if (isActivationType(graph.opType(user)))
            found.push_back({i, {i, user}});
    }
}

} // namespace

std::vector<CoreAiPattern> matchCoreAiPatterns(const CoreAiGraph &graph, const std::vector<std::string> &extraTypes)
{
    std::vector<CoreAiPattern> found;
    matchWeighted(graph, found);
    for (const NaryPattern &pattern : naryPatterns())
        matchNary(graph, pattern, found);
    matchAlone(graph, valueSharingTypes(), found);
    matchAlone(graph, {"cat", "concat"}, found);
    for (const std::string &type : extraTypes)
        matchAlone(graph, {type}, found);
    return found;
}

SharedOp sharedOp(const CoreAiGraph &graph, int entry)
{
    const auto type = graph.opType(entry);
    if (type.empty())
        return SharedOp::None;
    if (among(type, valueSharingTypes()))
        return SharedOp::Values;
    return type == "cat" || type == "concat" ? SharedOp::Concat : SharedOp::None;
}

bool isWeighted(const CoreAiGraph &graph, int entry)
{
    const std::string &target = graph.target(entry);
    return isConv(target) || isTransposed(target) || target == "aten.linear.default" ||
           target == "aten.embedding.default";
}

bool isConvTranspose(const CoreAiGraph &graph, int entry)
{
    return isTransposed(graph.target(entry));
}

int batchNormAfter(const CoreAiGraph &graph, int entry)
{
    if (!isConv(graph.target(entry)) && !isTransposed(graph.target(entry)))
        return -1;
    const auto &users = graph.at(entry).users;
    if (users.size() != 1 || graph.target(users.front()) != "aten.batch_norm.default")
        return -1;
    const Node &norm = graph.graph().node(graph.at(users.front()).node);
    return valueArgument(norm, "input") == graph.at(entry).value ? users.front() : -1;
}

} // namespace dblame

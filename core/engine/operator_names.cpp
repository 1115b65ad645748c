// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/operator_names.h"

#include <algorithm>
#include <array>

namespace dblame
{

namespace
{

constexpr std::array<std::string_view, 3> kOurs = {"quantized_decomposed", "torchao", "coreai"};

bool startsWith(std::string_view text, std::string_view head)
{
    return text.substr(0, head.size()) == head;
}

} // namespace

std::string OperatorName::shown() const
{
    return ns + "::" + op + (overload.empty() ? "" : "." + overload);
}

std::string OperatorName::registered() const
{
    const bool ours = std::find(kOurs.begin(), kOurs.end(), ns) != kOurs.end();
    return ours ? "dblame::" + ns + "_" + op : ns + "::" + op;
}

std::optional<OperatorName> operatorName(std::string_view target)
{
    constexpr std::string_view kPrefix = "torch.ops.";
    if (startsWith(target, kPrefix))
        target.remove_prefix(kPrefix.size());
    const auto first = target.find('.');
    if (first == std::string_view::npos || first == 0)
        return std::nullopt;
    const auto last = target.rfind('.');
    OperatorName name;
    name.ns = std::string(target.substr(0, first));
    if (last == first) {
        name.op = std::string(target.substr(first + 1));
    } else {
        name.op = std::string(target.substr(first + 1, last - first - 1));
        name.overload = std::string(target.substr(last + 1));
        if (name.overload == "default")
            name.overload.clear();
    }
    if (name.op.empty() || name.op.find('.') != std::string::npos)
        return std::nullopt;
    return name;
}

std::optional<std::string> higherOrderName(std::string_view target)
{
    constexpr std::string_view kOps = "torch.ops.";
    if (startsWith(target, "torch._higher_order_ops."))
        return std::string(target.substr(target.rfind('.') + 1));
    if (startsWith(target, kOps))
        target.remove_prefix(kOps.size());
    else if (startsWith(target, "torch.") || startsWith(target, "_operator.") || startsWith(target, "math."))
        return std::nullopt;
    if (startsWith(target, "higher_order."))
        return std::string(target.substr(target.find('.') + 1));
    if (target.find('.') == std::string_view::npos) // torch.ops.map_impl of torch 2.1
        return std::string(target);
    return std::nullopt;
}

bool isDenied(const OperatorName &name)
{
    static constexpr std::array<std::string_view, 9> kNamespaces = {
        "inductor", "aoti", "aoti_torch", "c10d", "_c10d_functional", "c10d_functional", "_dtensor", "triton", "rpc"};
    if (std::find(kNamespaces.begin(), kNamespaces.end(), name.ns) != kNamespaces.end())
        return true;
    return name.ns == "aten" && (name.op == "from_file" || name.op == "save" || startsWith(name.op, "_save") ||
                                 name.op == "_load" || name.op == "_print");
}

} // namespace dblame

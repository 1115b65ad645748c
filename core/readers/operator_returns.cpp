// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/operator_returns.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace dblame
{

namespace
{

struct OperatorName {
    std::string name, overload;
};

// Namespace up to the first dot, overload after the last; "default" is the empty overload.
std::optional<OperatorName> split(const std::string &target)
{
    const auto first = target.find('.'), last = target.rfind('.');
    if (first == std::string::npos || last == first)
        return std::nullopt;
    std::string overload = target.substr(last + 1);
    if (overload == "default")
        overload.clear();
    return OperatorName{target.substr(0, first) + "::" + target.substr(first + 1, last - first - 1), overload};
}

} // namespace

std::optional<std::size_t> operatorReturns(const std::string &target)
{
    const auto name = split(target);
    if (!name)
        return std::nullopt;
    const auto handle = c10::Dispatcher::singleton().findSchema({name->name, name->overload});
    return handle ? std::optional(handle->schema().returns().size()) : std::nullopt;
}

std::string dispatcherName(const std::string &target)
{
    const auto name = split(target);
    if (!name)
        return target;
    return name->overload.empty() ? name->name : name->name + "." + name->overload;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/module_levels.h"

#include <algorithm>

#include "core/graph_query.h"

namespace dblame
{

namespace
{

bool isNumber(const std::string &name)
{
    return !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string::npos;
}

std::string parentOf(const std::string &path)
{
    const auto dot = path.rfind('.');
    return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

std::string lastPart(const std::string &path)
{
    const auto dot = path.rfind('.');
    return dot == std::string::npos ? path : path.substr(dot + 1);
}

void append(std::vector<std::string> &list, const std::string &name)
{
    if (std::find(list.begin(), list.end(), name) == list.end())
        list.push_back(name);
}

// Children as the parameters and as the calls list them.
struct Children {
    std::vector<std::string> byState, byCall;

    [[nodiscard]] std::vector<std::string> ordered() const
    {
        std::vector<std::string> result = byState;
        for (std::size_t i = 0; i < byCall.size(); ++i) {
            if (std::find(result.begin(), result.end(), byCall[i]) != result.end())
                continue;
            auto at = result.begin();
            if (i > 0) // after the call before it, which has its place already
                at = std::find(result.begin(), result.end(), byCall[i - 1]) + 1;
            result.insert(at, byCall[i]);
        }
        const bool numbered =
            std::all_of(result.begin(), result.end(), [](const std::string &path) { return isNumber(lastPart(path)); });
        if (numbered)
            std::stable_sort(result.begin(), result.end(), [](const std::string &a, const std::string &b) {
                return std::stol(lastPart(a)) < std::stol(lastPart(b));
            });
        return result;
    }
};

class TreeBuilder
{
public:
    explicit TreeBuilder(const Graph &graph)
    {
        for (const GraphInput &input : graph.inputs)
            if (input.kind != InputKind::User && !input.target.empty())
                add(parentOf(input.target), true);
        for (const Node &node : graph.nodes) {
            for (const ModuleFrame &frame : node.modules) {
                const std::string path = withoutCallNumber(frame.path);
                add(path, false);
                m_types.try_emplace(path, frame.type);
            }
            if (node.modules.empty())
                add(moduleOf(graph, node), false);
        }
    }

    std::vector<ModuleNode> build()
    {
        std::vector<ModuleNode> modules;
        append(modules, std::string());
        return modules;
    }

private:
    void add(const std::string &path, bool state)
    {
        if (path.empty())
            return;
        const std::string parent = parentOf(path);
        add(parent, state);
        Children &children = m_children[parent];
        dblame::append(state ? children.byState : children.byCall, path);
    }

    int append(std::vector<ModuleNode> &modules, const std::string &path)
    {
        const auto index = modules.size();
        const auto type = m_types.find(path);
        modules.push_back({path, type == m_types.end() ? std::string() : type->second, {}});
        if (const auto children = m_children.find(path); children != m_children.end())
            for (const std::string &child : children->second.ordered()) {
                const int at = append(modules, child);
                modules[index].children.push_back(at);
            }
        return static_cast<int>(index);
    }

    std::map<std::string, Children> m_children;
    std::map<std::string, std::string> m_types;
};

} // namespace

std::string withoutCallNumber(const std::string &path)
{
    const auto at = path.rfind('@');
    const bool call = at != std::string::npos && at + 1 < path.size() &&
                      path.find_first_not_of("0123456789", at + 1) == std::string::npos;
    return call ? path.substr(0, at) : path;
}

ModuleTree::ModuleTree(const Graph &graph) : m_modules(TreeBuilder(graph).build())
{
    for (std::size_t i = 0; i < m_modules.size(); ++i)
        m_byPath.emplace(m_modules[i].path, static_cast<int>(i));
}

int ModuleTree::find(const std::string &path) const
{
    const auto it = m_byPath.find(path);
    return it == m_byPath.end() ? -1 : it->second;
}

int ModuleTree::ofNode(const Node &node) const
{
    return node.modules.empty() ? -1 : find(withoutCallNumber(node.modules.back().path));
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/node_metadata.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace dblame
{

namespace
{

// Classes that export puts around the user's module, and the marker of nodes that got no stack.
bool isWrapper(std::string_view key, std::string_view type)
{
    if (key == "_empty_nn_module_stack_from_metadata_hook")
        return true;
    const auto dot = type.rfind('.');
    const std::string_view name = dot == std::string_view::npos ? type : type.substr(dot + 1);
    if (name == "Wrapper")
        return type.starts_with("torch.export.") || type.starts_with("torch._export.");
    if (name == "WrapperModule")
        return type.starts_with("torchao.") || type.starts_with("torch.");
    return false;
}

// Position of the '@' of a trailing "@<digits>", or npos.
std::size_t repeatSuffix(std::string_view text)
{
    const auto at = text.rfind('@');
    if (at == std::string_view::npos || at + 1 == text.size())
        return std::string_view::npos;
    const std::string_view digits = text.substr(at + 1);
    const bool all = std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    return all ? at : std::string_view::npos;
}

bool isLibraryFile(std::string_view file)
{
    return file.starts_with("torch/") || file.find("/torch/") != std::string_view::npos ||
           file.find("site-packages/") != std::string_view::npos ||
           file.find("dist-packages/") != std::string_view::npos || file.starts_with("<");
}

std::string_view baseName(std::string_view file)
{
    const auto slash = file.find_last_of("/\\");
    return slash == std::string_view::npos ? file : file.substr(slash + 1);
}

void flattenProvenance(const Json &list, std::vector<ProvenanceStep> &steps)
{
    constexpr std::size_t kMaxSteps = 10'000;
    for (const Json &entry : asList(list, "from_node")) {
        if (steps.size() >= kMaxSteps)
            return;
        ProvenanceStep step;
        step.name = textField(entry, "name");
        if (const Json *target = optionalField(entry, "target"); target != nullptr && target->is_string())
            step.target = target->get<std::string>();
        if (const Json *pass = optionalField(entry, "pass_name"); pass != nullptr && pass->is_string())
            step.pass = pass->get<std::string>();
        if (const Json *id = optionalField(entry, "graph_id"); id != nullptr && id->is_number_integer())
            step.graphId = id->get<std::int64_t>();
        steps.push_back(std::move(step));
        if (const Json *inner = optionalField(entry, "from_node"))
            flattenProvenance(*inner, steps);
    }
}

const std::string *textOf(const Json &metadata, const char *key)
{
    const Json *value = optionalField(metadata, key);
    return value != nullptr && value->is_string() ? &value->get_ref<const std::string &>() : nullptr;
}

// Recursive descent over the constructor notation; depth-bounded.
class SymbolParser
{
public:
    explicit SymbolParser(std::string_view text) : m_text(text) {}

    std::optional<std::string> parse()
    {
        auto result = expression(0);
        return result && m_at == m_text.size() ? result : std::nullopt;
    }

private:
    std::optional<std::string> expression(int depth)
    {
        constexpr int kMaxDepth = 32;
        if (depth > kMaxDepth)
            return std::nullopt;
        const std::string name = word();
        if (name.empty() || !take('('))
            return std::nullopt;
        if (name == "Symbol") {
            std::string symbol = quoted();
            const auto close = m_text.find(')', m_at); // assumptions: positive=True, ...
            if (symbol.empty() || close == std::string_view::npos)
                return std::nullopt;
            m_at = close + 1;
            return symbol;
        }
        if (name == "Integer") {
            const auto close = m_text.find(')', m_at);
            if (close == std::string_view::npos)
                return std::nullopt;
            std::string number(m_text.substr(m_at, close - m_at));
            m_at = close + 1;
            return number;
        }
        std::vector<std::string> parts;
        do {
            skipSpace();
            auto part = expression(depth + 1);
            if (!part)
                return std::nullopt;
            parts.push_back(std::move(*part));
        } while (take(','));
        if (!take(')'))
            return std::nullopt;
        return combine(name, parts);
    }

    static std::string combine(const std::string &name, const std::vector<std::string> &parts)
    {
        const char *sign = name == "Mul"        ? "*"
                           : name == "Add"      ? " + "
                           : name == "FloorDiv" ? "//"
                           : name == "Pow"      ? "**"
                                                : nullptr;
        std::string result = sign != nullptr ? "" : name + "(";
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (i > 0)
                result += sign != nullptr ? sign : ", ";
            const bool compound = parts[i].find_first_of(" /*") != std::string::npos;
            result += sign != nullptr && compound ? "(" + parts[i] + ")" : parts[i];
        }
        return sign != nullptr ? result : result + ")";
    }

    void skipSpace()
    {
        while (m_at < m_text.size() && m_text[m_at] == ' ')
            ++m_at;
    }
    bool take(char c)
    {
        if (m_at >= m_text.size() || m_text[m_at] != c)
            return false;
        ++m_at;
        return true;
    }
    std::string word()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() &&
               (std::isalnum(static_cast<unsigned char>(m_text[m_at])) != 0 || m_text[m_at] == '_'))
            ++m_at;
        return std::string(m_text.substr(begin, m_at - begin));
    }
    std::string quoted()
    {
        if (!take('\''))
            return {};
        const auto end = m_text.find('\'', m_at);
        if (end == std::string_view::npos)
            return {};
        std::string result(m_text.substr(m_at, end - m_at));
        m_at = end + 1;
        return result;
    }

    std::string_view m_text;
    std::size_t m_at = 0;
};

} // namespace

std::vector<ModuleFrame> parseModuleStack(std::string_view text)
{
    std::vector<ModuleFrame> frames;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(';'), text.size());
        const std::string_view item = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const auto first = item.find(','), last = item.rfind(',');
        if (first == std::string_view::npos || last == first)
            continue;
        ModuleFrame frame;
        frame.key = item.substr(0, first);
        frame.path = item.substr(first + 1, last - first - 1);
        frame.type = item.substr(last + 1);
        if (isWrapper(frame.key, frame.type))
            continue;
        if (const auto suffix = repeatSuffix(frame.path); suffix != std::string_view::npos) {
            if (repeatSuffix(frame.key) == std::string_view::npos)
                frame.key += frame.path.substr(suffix);
            frame.path.resize(suffix);
        }
        frames.push_back(std::move(frame));
    }
    return frames;
}

std::string sourceLine(std::string_view stackTrace)
{
    // Lines of the form: File "net.py", line 41, in forward
    std::string innermost, user;
    constexpr std::string_view kFile = "File \"", kLine = "\", line ";
    for (std::size_t at = stackTrace.find(kFile); at != std::string_view::npos; at = stackTrace.find(kFile, at)) {
        at += kFile.size();
        const auto quote = stackTrace.find(kLine, at);
        const auto newline = std::min(stackTrace.find('\n', at), stackTrace.size());
        if (quote == std::string_view::npos || quote > newline)
            continue;
        const std::string_view file = stackTrace.substr(at, quote - at);
        std::size_t digits = quote + kLine.size();
        std::string location = std::string(baseName(file)) + ":";
        while (digits < stackTrace.size() && std::isdigit(static_cast<unsigned char>(stackTrace[digits])) != 0)
            location += stackTrace[digits++];
        innermost = location;
        if (!isLibraryFile(file))
            user = location;
    }
    return user.empty() ? innermost : user;
}

std::string symbolText(const std::string &expression)
{
    return SymbolParser(expression).parse().value_or(expression);
}

void readNodeMetadata(const Json &metadata, Node &node)
{
    if (const std::string *stack = textOf(metadata, "nn_module_stack"))
        node.modules = parseModuleStack(*stack);
    if (const std::string *trace = textOf(metadata, "stack_trace"); trace != nullptr && *trace != "NoneType: None") {
        node.stackTrace = *trace;
        node.source = sourceLine(*trace);
    }
    if (const std::string *torchFn = textOf(metadata, "torch_fn"))
        node.torchFn = *torchFn;
    if (const std::string *sourceFn = textOf(metadata, "source_fn_stack"))
        node.sourceFn = sourceFn->substr(sourceFn->rfind(';') + 1);
    // JSON inside text; a damaged note loses the note only.
    try {
        if (const std::string *history = textOf(metadata, "from_node"))
            flattenProvenance(parseJson(*history, "from_node"), node.provenance);
    } catch (const ReadError &) {
        node.provenance.clear();
    }
    try {
        if (const std::string *custom = textOf(metadata, "custom")) {
            const Json notes = parseJson(*custom, "custom");
            if (const Json *handle = optionalField(notes, "numeric_debug_handle");
                handle != nullptr && handle->is_number_integer())
                node.debugHandle = handle->get<std::int64_t>();
        }
    } catch (const ReadError &) {
        node.debugHandle.reset();
    }
}

} // namespace dblame

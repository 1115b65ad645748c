// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/graph_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/graph_text_words.h"

namespace dblame
{

namespace
{

std::string quoted(std::string_view text)
{
    static constexpr std::string_view kHex = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\t') {
            out += "\\t";
        } else if (byte < 0x20 || byte == 0x7f) {
            out += "\\x";
            out += kHex[byte >> 4U];
            out += kHex[byte & 15U];
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string floatText(double number)
{
    if (std::isnan(number))
        return "nan";
    if (std::isinf(number))
        return number < 0 ? "-inf" : "inf";
    std::array<char, 40> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
    std::string text(buffer.data(), end);
    if (text.find_first_of(".e") == std::string::npos)
        text += ".0";
    return text;
}

std::string word(std::string_view text)
{
    const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), text_words::isWordChar) &&
                       std::isdigit(static_cast<unsigned char>(text.front())) == 0 && text.front() != '-';
    return plain ? std::string(text) : quoted(text);
}

std::string valueRef(std::string_view name)
{
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), text_words::isWordChar);
    return "%" + (plain ? std::string(name) : quoted(name));
}

template <class Range, class F>
std::string joined(const Range &range, const F &text)
{
    std::string out;
    for (const auto &element : range) {
        if (!out.empty())
            out += ", ";
        out += text(element);
    }
    return out;
}

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

class Printer
{
public:
    Printer(const Graph &graph, const GraphTextOptions &options) : m_graph(graph), m_options(options) {}

    [[nodiscard]] std::string body(int depth) const;
    [[nodiscard]] std::string call(const Node &node) const;

private:
    [[nodiscard]] std::string ref(ValueId id) const { return valueRef(m_graph.value(id).name); }
    [[nodiscard]] std::string definition(ValueId id) const;
    [[nodiscard]] std::string argument(const Argument &argument) const;
    [[nodiscard]] std::string list(const ValueListArg &list) const;
    [[nodiscard]] std::string list(const NestedValueListArg &list) const;
    template <class T, class F>
    [[nodiscard]] std::string mixedList(const std::vector<std::variant<T, ValueId>> &list, const char *kind,
                                        bool plainEmpty, const F &text) const;
    [[nodiscard]] std::string input(const GraphInput &input) const;
    [[nodiscard]] std::string node(const Node &node) const;
    [[nodiscard]] std::string slots(const Node &node) const;
    [[nodiscard]] std::string attributes(const Node &node) const;
    [[nodiscard]] std::string results() const;

    const Graph &m_graph;
    const GraphTextOptions &m_options;
};

std::string Printer::definition(ValueId id) const
{
    const auto meta = printMeta(m_graph.value(id).meta);
    return meta.empty() ? ref(id) : ref(id) + ": " + meta;
}

std::string Printer::list(const ValueListArg &list) const
{
    const bool told = std::any_of(list.values.begin(), list.values.end(), [](const auto &v) { return v.has_value(); });
    return (told ? "[" : "tensors[") +
           joined(list.values, [this](const auto &v) { return v ? ref(*v) : std::string("None"); }) + "]";
}

std::string Printer::list(const NestedValueListArg &list) const
{
    const bool told = std::any_of(list.values.begin(), list.values.end(), [](const auto &v) { return !v.empty(); });
    return (told ? "[" : "tensorlists[") +
           joined(
               list.values,
               [this](const auto &inner) { return "[" + joined(inner, [this](ValueId v) { return ref(v); }) + "]"; }) +
           "]";
}

template <class T, class F>
std::string Printer::mixedList(const std::vector<std::variant<T, ValueId>> &list, const char *kind, bool plainEmpty,
                               const F &text) const
{
    const bool told = list.empty() ? plainEmpty : std::any_of(list.begin(), list.end(), [](const auto &v) {
        return std::holds_alternative<T>(v);
    });
    return (told ? "" : kind) + std::string("[") +
           joined(list,
                  [&](const auto &v) {
                      const auto *id = std::get_if<ValueId>(&v);
                      return id != nullptr ? ref(*id) : text(std::get<T>(v));
                  }) +
           "]";
}

std::string Printer::argument(const Argument &argument) const
{
    const auto integer = [](std::int64_t v) { return std::to_string(v); };
    const auto boolean = [](bool v) { return std::string(v ? "True" : "False"); };
    const auto lists = [](const auto &outer, const char *kind, const auto &text) {
        const bool told = std::any_of(outer.begin(), outer.end(), [](const auto &v) { return !v.empty(); });
        return (told ? "" : kind) + std::string("[") +
               joined(outer, [&](const auto &inner) { return "[" + joined(inner, text) + "]"; }) + "]";
    };
    return std::visit(
        Overloaded{
            [](NoneArg) { return std::string("None"); },
            [&](ValueId v) { return ref(v); },
            [&](const ValueListArg &v) { return list(v); },
            [&](const NestedValueListArg &v) { return list(v); },
            [&](std::int64_t v) { return integer(v); },
            [&](double v) { return floatText(v); },
            [&](bool v) { return boolean(v); },
            [&](const std::string &v) { return quoted(v); },
            [&](std::complex<double> v) { return "complex(" + floatText(v.real()) + ", " + floatText(v.imag()) + ")"; },
            [&](const IntListArg &v) { return mixedList(v.values, "ints", true, integer); },
            [&](const IntListsArg &v) { return lists(v.values, "intlists", integer); },
            [&](const FloatListArg &v) {
                return (v.values.empty() ? "floats[" : "[") + joined(v.values, floatText) + "]";
            },
            [&](const FloatListsArg &v) { return lists(v.values, "floatlists", floatText); },
            [&](const BoolListArg &v) { return mixedList(v.values, "bools", false, boolean); },
            [&](const StringListArg &v) {
                return (v.values.empty() ? "strings[" : "[") +
                       joined(v.values, [](const auto &s) { return quoted(s); }) + "]";
            },
            [](ScalarTypeArg v) { return "torch." + std::string(dtypeName(v.dtype)); },
            [&](LayoutArg v) { return "layout(" + integer(v.layout) + ")"; },
            [&](MemoryFormatArg v) { return "memory_format(" + integer(v.format) + ")"; },
            [&](const DeviceArg &v) {
                return "device(" + quoted(v.type) + (v.index < 0 ? "" : ", " + integer(v.index)) + ")";
            },
            [](SubgraphArg v) { return "subgraph(" + std::to_string(v.index) + ")"; },
            [](const OperatorArg &v) { return "operator(" + quoted(v.name) + ")"; },
            [](const UnsupportedArg &v) { return "unsupported(" + quoted(v.what) + ")"; },
        },
        argument);
}

std::string Printer::call(const Node &node) const
{
    return word(node.target) + "(" +
           joined(node.inputs,
                  [this](const NamedArgument &a) {
                      return a.name.empty() ? argument(a.value) : word(a.name) + "=" + argument(a.value);
                  }) +
           ")";
}

std::string Printer::input(const GraphInput &input) const
{
    std::string out =
        std::string("input ") + std::string(text_words::kInputKinds[static_cast<std::size_t>(input.kind)]) + " ";
    out += input.value.valid() ? definition(input.value) : "_";
    if (!input.target.empty())
        out += " " + quoted(input.target);
    if (!input.persistent)
        out += " nonpersistent";
    if (!std::holds_alternative<NoneArg>(input.constant))
        out += " = " + argument(input.constant);
    return out;
}

std::string Printer::slots(const Node &node) const
{
    if (node.outputs.empty())
        return {};
    const auto slot = [this](const NodeOutput &output) {
        if (const auto *one = std::get_if<ValueId>(&output))
            return definition(*one);
        if (const auto *many = std::get_if<std::vector<ValueId>>(&output))
            return "[" + joined(*many, [this](ValueId v) { return definition(v); }) + "]";
        return std::string("None");
    };
    const auto all = joined(node.outputs, slot);
    return (node.outputs.size() == 1 ? all : "(" + all + ")") + " = ";
}

std::string Printer::attributes(const Node &node) const
{
    std::string out;
    const auto first = m_options.frames || node.modules.empty() ? 0U : node.modules.size() - 1;
    for (std::size_t i = first; i < node.modules.size(); ++i) {
        const auto &frame = node.modules[i];
        const bool key = m_options.frames && frame.key != "L__self__" + frame.path;
        out += " @" + quoted(frame.path);
        if (!frame.type.empty() || key)
            out += ":" + quoted(frame.type);
        if (key)
            out += ":" + quoted(frame.key);
    }
    const auto values = node.outputValues();
    if (node.name != (values.empty() ? std::string() : m_graph.value(values.front()).name))
        out += " name=" + quoted(node.name);
    if (!node.source.empty())
        out += " source=" + quoted(node.source);
    if (m_options.stackTraces && !node.stackTrace.empty())
        out += " stack=" + quoted(node.stackTrace);
    if (!m_options.provenance)
        return out;
    if (!node.torchFn.empty())
        out += " torch_fn=" + quoted(node.torchFn);
    if (!node.sourceFn.empty())
        out += " source_fn=" + quoted(node.sourceFn);
    if (node.debugHandle)
        out += " handle=" + std::to_string(*node.debugHandle);
    if (!node.provenance.empty())
        out += " from_node=[" +
               joined(node.provenance,
                      [](const ProvenanceStep &s) {
                          if (s.target.empty() && s.pass.empty() && s.graphId == 0)
                              return quoted(s.name);
                          std::string step = "(" + quoted(s.name) + ", " + quoted(s.target);
                          if (!s.pass.empty() || s.graphId != 0)
                              step += ", " + quoted(s.pass);
                          if (s.graphId != 0)
                              step += ", " + std::to_string(s.graphId);
                          return step + ")";
                      }) +
               "]";
    return out;
}

std::string Printer::node(const Node &node) const
{
    return slots(node) + call(node) + attributes(node);
}

std::string Printer::results() const
{
    return "return " + joined(m_graph.outputs, [this](const GraphOutput &output) {
               std::string out;
               if (output.kind != OutputKind::User)
                   out = std::string(text_words::kOutputKinds[static_cast<std::size_t>(output.kind)]) + " ";
               out += output.value.valid() ? ref(output.value) : argument(output.literal);
               return output.target.empty() ? out : out + " " + quoted(output.target);
           });
}

std::string Printer::body(int depth) const
{
    const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
    std::string out;
    for (const auto &in : m_graph.inputs)
        out += indent + input(in) + "\n";
    for (const auto &n : m_graph.nodes)
        out += indent + node(n) + "\n";
    if (!m_graph.outputs.empty())
        out += indent + results() + "\n";
    for (std::size_t i = 0; i < m_graph.subgraphs.size(); ++i) {
        out += indent + "subgraph " + quoted(i < m_graph.subgraphNames.size() ? m_graph.subgraphNames[i] : "") + " {\n";
        out += Printer(*m_graph.subgraphs[i], m_options).body(depth + 1);
        out += indent + "}\n";
    }
    return out;
}

} // namespace

std::string printMeta(const std::optional<TensorMeta> &meta)
{
    if (!meta)
        return {};
    return std::string(dtypeName(meta->dtype)) + "[" +
           joined(meta->sizes,
                  [](const Dim &dim) {
                      if (dim.symbol.empty())
                          return std::to_string(dim.size);
                      return word(dim.symbol) + (dim.size < 0 ? "" : "=" + std::to_string(dim.size));
                  }) +
           "]";
}

std::string printCall(const Graph &graph, const Node &node)
{
    return Printer(graph, {}).call(node);
}

std::string printGraph(const Graph &graph, const GraphTextOptions &options)
{
    return "graph {\n" + Printer(graph, options).body(1) + "}\n";
}

} // namespace dblame

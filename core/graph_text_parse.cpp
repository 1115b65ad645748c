// SPDX-License-Identifier: GPL-3.0-or-later
//
// Recursive descent over the grammar of core/graph_text.h. Inside, a syntax error is a private exception
// that carries the position; parseGraph() turns it into an Error. One file, since its functions call each other in a
// ring.
#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "core/graph_text.h"
#include "core/graph_text_lists.h"
#include "core/graph_text_scanner.h"
#include "core/graph_text_words.h"

namespace dblame
{

namespace
{

using text_words::Scanner;
using text_words::SyntaxError;

constexpr int kMaxDepth = 64; // nested lists and subgraphs: a hand-written text never comes near

class GraphParser
{
public:
    GraphParser(Scanner &scanner, Graph &graph, int depth) : m_in(scanner), m_graph(graph), m_depth(depth) {}
    void body();

private:
    ValueId define(NodeId producer, int outputIndex);
    ValueId reference();
    std::string valueName();
    TensorMeta meta();
    void input();
    void node();
    std::vector<NodeOutput> slots(NodeId id);
    NodeOutput slot(NodeId id, int &outputIndex);
    void attribute(Node &node);
    void provenance(Node &node);
    void returns();
    void subgraph();
    NamedArgument namedArgument();
    Argument argument(int depth);
    Argument wordArgument();
    Argument number(std::string_view word, std::size_t at);
    Argument list(std::string_view kind, int depth);
    double floating();
    void endOfStatement();

    Scanner &m_in;
    Graph &m_graph;
    int m_depth;
    std::size_t m_readable = std::numeric_limits<std::size_t>::max();
    std::unordered_map<std::string, ValueId> m_names;
};

std::string GraphParser::valueName()
{
    m_in.expect('%');
    return m_in.wordOrString();
}

ValueId GraphParser::define(NodeId producer, int outputIndex)
{
    m_in.skipSpaces();
    const auto at = m_in.position();
    Value value;
    value.name = valueName();
    value.producer = producer;
    value.outputIndex = outputIndex;
    if (m_in.accept(':'))
        value.meta = meta();
    const ValueId id(m_graph.values.size());
    if (!m_names.emplace(value.name, id).second) {
        m_in.rewind(at);
        m_in.error("%" + value.name + " is defined twice");
    }
    m_graph.values.push_back(std::move(value));
    return id;
}

ValueId GraphParser::reference()
{
    m_in.skipSpaces();
    const auto at = m_in.position();
    const auto name = valueName();
    const auto found = m_names.find(name);
    if (found == m_names.end() || found->second.get() >= m_readable) {
        m_in.rewind(at);
        m_in.error("%" + name + " is not defined before this");
    }
    return found->second;
}

TensorMeta GraphParser::meta()
{
    TensorMeta result;
    const auto dtype = m_in.takeWord();
    result.dtype = dtypeFromName(dtype);
    if (result.dtype == DType::Unknown && dtype != "unknown")
        m_in.error("unknown dtype '" + std::string(dtype) + "'");
    m_in.expect('[');
    while (!m_in.accept(']')) {
        if (!result.sizes.empty())
            m_in.expect(',');
        Dim dim;
        const char c = m_in.peek();
        if (c == '-' || (c >= '0' && c <= '9')) {
            dim.size = m_in.integer();
        } else {
            dim.symbol = m_in.wordOrString();
            dim.size = m_in.accept('=') ? m_in.integer() : -1;
        }
        result.sizes.push_back(std::move(dim));
    }
    return result;
}

void GraphParser::input()
{
    GraphInput input;
    const auto kind = m_in.takeWord();
    const auto found = std::find(text_words::kInputKinds.begin(), text_words::kInputKinds.end(), kind);
    if (found == text_words::kInputKinds.end())
        m_in.error("unknown kind of input '" + std::string(kind) + "'");
    input.kind = static_cast<InputKind>(found - text_words::kInputKinds.begin());
    if (!m_in.acceptWord("_"))
        input.value = define({}, 0);
    if (m_in.peek() == '"')
        input.target = m_in.takeString();
    if (m_in.acceptWord("nonpersistent"))
        input.persistent = false;
    if (m_in.accept('='))
        input.constant = argument(0);
    m_graph.inputs.push_back(std::move(input));
}

NodeOutput GraphParser::slot(NodeId id, int &outputIndex)
{
    if (m_in.acceptWord("None"))
        return NoneArg{};
    if (!m_in.accept('['))
        return define(id, outputIndex++);
    std::vector<ValueId> values;
    while (!m_in.accept(']')) {
        if (!values.empty())
            m_in.expect(',');
        values.push_back(define(id, outputIndex++));
    }
    return values;
}

std::vector<NodeOutput> GraphParser::slots(NodeId id)
{
    std::vector<NodeOutput> result;
    int outputIndex = 0;
    const char first = m_in.peek();
    if (first == '(') {
        m_in.expect('(');
        while (!m_in.accept(')')) {
            if (!result.empty())
                m_in.expect(',');
            result.push_back(slot(id, outputIndex));
        }
    } else if (first == '%' || first == '[' || m_in.peekWord() == "None") {
        result.push_back(slot(id, outputIndex));
    } else {
        return result;
    }
    m_in.expect('=');
    return result;
}

void GraphParser::node()
{
    const NodeId id(m_graph.nodes.size());
    Node node;
    const auto firstOwn = m_graph.values.size();
    node.outputs = slots(id);
    node.target = m_in.wordOrString();
    m_in.expect('(');
    m_readable = firstOwn; // a value may not be read by the node that makes it
    while (!m_in.accept(')')) {
        if (!node.inputs.empty())
            m_in.expect(',');
        node.inputs.push_back(namedArgument());
    }
    m_readable = std::numeric_limits<std::size_t>::max();
    const auto values = node.outputValues();
    if (!values.empty())
        node.name = m_graph.value(values.front()).name;
    while (m_in.peek() != '\n' && m_in.peek() != '\0' && m_in.peek() != '#')
        attribute(node);
    m_graph.nodes.push_back(std::move(node));
}

void GraphParser::attribute(Node &node)
{
    if (m_in.accept('@')) {
        ModuleFrame frame;
        frame.path = m_in.takeString();
        if (m_in.accept(':'))
            frame.type = m_in.takeString();
        frame.key = m_in.accept(':') ? m_in.takeString() : "L__self__" + frame.path;
        node.modules.push_back(std::move(frame));
        return;
    }
    m_in.skipSpaces();
    const auto at = m_in.position();
    const auto name = m_in.takeWord();
    m_in.expect('=');
    if (name == "name") {
        node.name = m_in.takeString();
    } else if (name == "source") {
        node.source = m_in.takeString();
    } else if (name == "stack") {
        node.stackTrace = m_in.takeString();
    } else if (name == "torch_fn") {
        node.torchFn = m_in.takeString();
    } else if (name == "source_fn") {
        node.sourceFn = m_in.takeString();
    } else if (name == "handle") {
        node.debugHandle = m_in.integer();
    } else if (name == "from_node") {
        provenance(node);
    } else {
        m_in.rewind(at);
        m_in.error("unknown attribute '" + std::string(name) + "'");
    }
}

void GraphParser::provenance(Node &node)
{
    m_in.expect('[');
    while (!m_in.accept(']')) {
        if (!node.provenance.empty())
            m_in.expect(',');
        ProvenanceStep step;
        if (m_in.accept('(')) {
            step.name = m_in.takeString();
            m_in.expect(',');
            step.target = m_in.takeString();
            if (m_in.accept(','))
                step.pass = m_in.takeString();
            if (m_in.accept(','))
                step.graphId = m_in.integer();
            m_in.expect(')');
        } else {
            step.name = m_in.takeString();
        }
        node.provenance.push_back(std::move(step));
    }
}

void GraphParser::returns()
{
    do {
        GraphOutput output;
        const auto word = m_in.peekWord();
        const auto kind = std::find(text_words::kOutputKinds.begin(), text_words::kOutputKinds.end(), word);
        if (kind != text_words::kOutputKinds.end()) {
            output.kind = static_cast<OutputKind>(kind - text_words::kOutputKinds.begin());
            m_in.takeWord();
        }
        if (m_in.peek() == '%')
            output.value = reference();
        else
            output.literal = argument(0);
        if (m_in.peek() == '"')
            output.target = m_in.takeString();
        m_graph.outputs.push_back(std::move(output));
    } while (m_in.accept(','));
}

void GraphParser::subgraph()
{
    if (m_depth >= kMaxDepth)
        m_in.error("subgraphs nested too deeply");
    m_graph.subgraphNames.push_back(m_in.takeString());
    m_graph.subgraphs.push_back(std::make_unique<Graph>());
    m_in.expect('{');
    GraphParser(m_in, *m_graph.subgraphs.back(), m_depth + 1).body();
}

void GraphParser::endOfStatement()
{
    const char c = m_in.peek();
    if (c != '\n' && c != '#' && c != '}' && c != '\0')
        m_in.error("expected the end of the line");
}

void GraphParser::body()
{
    for (;;) {
        m_in.skipLines();
        if (m_in.atEnd())
            m_in.error("expected '}'");
        if (m_in.accept('}'))
            break;
        const auto word = m_in.peekWord();
        // "input" and "return" are no targets: those hold a namespace and a dot.
        if (word == "input" || word == "return" || word == "subgraph") {
            m_in.takeWord();
            if (word == "input")
                input();
            else if (word == "return")
                returns();
            else
                subgraph();
        } else {
            node();
        }
        endOfStatement();
    }
    m_graph.index();
}

NamedArgument GraphParser::namedArgument()
{
    m_in.skipSpaces();
    const auto at = m_in.position();
    if (m_in.peek() == '"' || m_in.atWord()) {
        auto name = m_in.wordOrString();
        if (m_in.accept('='))
            return {std::move(name), argument(0)};
        m_in.rewind(at);
    }
    return {{}, argument(0)};
}

double GraphParser::floating()
{
    const auto at = m_in.position();
    const auto value = number(m_in.takeWord(), at);
    if (const auto *exact = std::get_if<std::int64_t>(&value))
        return static_cast<double>(*exact);
    return std::get<double>(value);
}

Argument GraphParser::number(std::string_view word, std::size_t at)
{
    if (word == "nan")
        return std::numeric_limits<double>::quiet_NaN();
    const char *const end = word.data() + word.size();
    if (word.find_first_of(".en") == std::string_view::npos) {
        std::int64_t whole = 0;
        const auto [last, failure] = std::from_chars(word.data(), end, whole);
        if (failure == std::errc() && last == end)
            return whole;
    } else {
        // '+' is no word character: the word ends before the sign of an exponent.
        std::string text(word);
        if (!text.empty() && text.back() == 'e' && m_in.accept('+'))
            text += m_in.takeWord();
        double real = 0;
        const auto [last, failure] = std::from_chars(text.data(), text.data() + text.size(), real);
        if (failure == std::errc() && last == text.data() + text.size())
            return real;
    }
    m_in.rewind(at);
    m_in.error("expected an argument");
}

Argument GraphParser::wordArgument()
{
    m_in.skipSpaces();
    const auto at = m_in.position();
    const auto word = m_in.takeWord();
    if (word == "None")
        return NoneArg{};
    if (word == "True" || word == "False")
        return word == "True";
    if (word.substr(0, 6) == "torch.") {
        const auto dtype = dtypeFromName(word.substr(6));
        if (dtype == DType::Unknown && word != "torch.unknown") {
            m_in.rewind(at);
            m_in.error("unknown dtype '" + std::string(word.substr(6)) + "'");
        }
        return ScalarTypeArg{dtype};
    }
    if (!m_in.accept('('))
        return number(word, at);
    Argument result;
    if (word == "complex") {
        const auto real = (m_in.skipSpaces(), floating());
        m_in.expect(',');
        result = std::complex<double>(real, (m_in.skipSpaces(), floating()));
    } else if (word == "layout") {
        result = LayoutArg{m_in.integer()};
    } else if (word == "memory_format") {
        result = MemoryFormatArg{m_in.integer()};
    } else if (word == "device") {
        DeviceArg device;
        device.type = m_in.takeString();
        device.index = m_in.accept(',') ? m_in.integer() : -1;
        result = device;
    } else if (word == "subgraph") {
        result = SubgraphArg{static_cast<std::size_t>(m_in.integer())};
    } else if (word == "operator") {
        result = OperatorArg{m_in.takeString()};
    } else if (word == "unsupported") {
        result = UnsupportedArg{m_in.takeString()};
    } else {
        m_in.rewind(at);
        m_in.error("unknown argument '" + std::string(word) + "(...)'");
    }
    m_in.expect(')');
    return result;
}

Argument GraphParser::list(std::string_view kind, int depth)
{
    if (depth >= kMaxDepth)
        m_in.error("lists nested too deeply");
    m_in.expect('[');
    std::vector<Argument> elements;
    while (!m_in.accept(']')) {
        if (!elements.empty())
            m_in.expect(',');
        elements.push_back(argument(depth + 1));
    }
    auto typed = text_words::typedList(kind, elements);
    if (typed)
        return std::move(*typed);
    m_in.error(typed.error());
}

Argument GraphParser::argument(int depth)
{
    switch (m_in.peek()) {
    case '%':
        return reference();
    case '"':
        return m_in.takeString();
    case '[':
        return list({}, depth);
    default:
        break;
    }
    const auto at = m_in.position();
    const auto word = m_in.takeWord();
    if (m_in.peek() == '[')
        return list(word, depth);
    m_in.rewind(at);
    return wordArgument();
}

std::string place(std::string_view text, std::size_t position)
{
    const auto before = text.substr(0, position);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto lineStart = before.rfind('\n');
    const auto column = position - (lineStart == std::string_view::npos ? 0 : lineStart + 1) + 1;
    return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

} // namespace

Result<Graph> parseGraph(std::string_view text)
{
    Scanner scanner(text);
    Graph graph;
    try {
        scanner.skipLines();
        if (!scanner.acceptWord("graph"))
            scanner.error("expected 'graph'");
        scanner.expect('{');
        GraphParser(scanner, graph, 0).body();
        scanner.skipLines();
        if (!scanner.atEnd())
            scanner.error("text after the graph");
    } catch (const SyntaxError &error) {
        return fail(ErrorCode::Unreadable, place(text, error.position), error.message);
    }
    return graph;
}

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// The graph of one exported program, as plain values. Every file format becomes this; it is read-only
// after loading. No tensor lives here: weights belong to the Model, values to a run.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/ids.h"

namespace dblame
{

enum class DType : std::uint8_t {
    Unknown,
    UInt8,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    Float32,
    Float64,
    Complex32,
    Complex64,
    Complex128,
    Bool,
    BFloat16,
    UInt16,
    Float8E4M3FN,
    Float8E5M2,
    Float8E4M3FNUZ,
    Float8E5M2FNUZ,
    Float8E8M0FNU,
    UInt32,
    UInt64,
    QInt8,
    QUInt8,
    QInt32,
};
[[nodiscard]] std::string_view dtypeName(DType dtype); // "float32", "int8", ... ("unknown")
[[nodiscard]] DType dtypeFromName(std::string_view name);
[[nodiscard]] bool isFloatingPoint(DType dtype); // float8 and half types included, complex not

// A dimension as the file states it: a number, or a symbol with the size seen at export.
struct Dim {
    std::int64_t size = 0; // the number, or the hint of a symbolic size (-1 when there is none)
    std::string symbol;    // "s0", "2*s0"; empty for a fixed size. Shown, never evaluated.
};

struct TensorMeta {
    DType dtype = DType::Unknown;
    std::vector<Dim> sizes;
};

// --- arguments ----------------------------------------------------------------------------------

struct NoneArg {
    friend bool operator==(NoneArg, NoneArg) = default;
};
// A list of values, with holes where the operator takes an optional element.
struct ValueListArg {
    std::vector<std::optional<ValueId>> values;
};
struct NestedValueListArg {
    std::vector<std::vector<ValueId>> values;
};
// A size list: numbers and symbolic values may be mixed.
struct IntListArg {
    std::vector<std::variant<std::int64_t, ValueId>> values;
};
struct IntListsArg {
    std::vector<std::vector<std::int64_t>> values;
};
struct FloatListArg {
    std::vector<double> values;
};
struct FloatListsArg {
    std::vector<std::vector<double>> values;
};
struct BoolListArg {
    std::vector<std::variant<bool, ValueId>> values;
};
struct StringListArg {
    std::vector<std::string> values;
};
struct ScalarTypeArg {
    DType dtype = DType::Unknown;
};
// As numbered by c10 (c10::Layout, c10::MemoryFormat), not by the file.
struct LayoutArg {
    std::int64_t layout = 0;
};
struct MemoryFormatArg {
    std::int64_t format = 0;
};
struct DeviceArg {
    std::string type;
    std::int64_t index = -1;
};
struct SubgraphArg {
    std::size_t index = 0;
}; // into Graph::subgraphs
struct OperatorArg {
    std::string name;
};
// A tag that this version does not know, or a value that cannot be carried; the node cannot run.
struct UnsupportedArg {
    std::string what;
};

using Argument =
    std::variant<NoneArg, ValueId, ValueListArg, NestedValueListArg, std::int64_t, double, bool, std::string,
                 std::complex<double>, IntListArg, IntListsArg, FloatListArg, FloatListsArg, BoolListArg, StringListArg,
                 ScalarTypeArg, LayoutArg, MemoryFormatArg, DeviceArg, SubgraphArg, OperatorArg, UnsupportedArg>;

struct NamedArgument {
    std::string name; // the schema's name; empty (positional) for higher-order operators
    Argument value;
};

// --- nodes --------------------------------------------------------------------------------------

struct ModuleFrame {
    std::string key;  // "L__self___conv@1": unique per call
    std::string path; // "block.conv1"
    std::string type; // "torch.nn.modules.conv.Conv2d"
};

// One step of a node's history, newest first (from_node of the exporter, flattened).
// graphId is a memory number of the writing process: comparable only within one file or one process.
struct ProvenanceStep {
    std::string name;
    std::string target;
    std::string pass;
    std::int64_t graphId = 0;
};

// One slot of a node's result list: nothing, one value, or a list of values.
using NodeOutput = std::variant<NoneArg, ValueId, std::vector<ValueId>>;

struct Node {
    std::string name;   // FX name if the file has one, else the first output's name, else made from the operator
    std::string target; // "aten.conv2d.default", "quantized_decomposed.quantize_per_tensor.default",
                        // "higher_order.wrap_with_set_grad_enabled", "_operator.floordiv", "torch.sym_max"
    std::vector<NamedArgument> inputs;
    std::vector<NodeOutput> outputs;

    std::vector<ModuleFrame> modules;       // outermost first; the wrapper frames of re-exported graphs are left out
    std::string source;                     // "net.py:41", the innermost user frame of the stack trace
    std::string stackTrace;                 // as the file gives it
    std::string torchFn;                    // "conv2d_1;builtin_function_or_method.conv2d"
    std::string sourceFn;                   // "conv2d,torch.nn.modules.conv.Conv2d"; strict exports only
    std::vector<ProvenanceStep> provenance; // newest first; back() is the innermost
    std::optional<std::int64_t> debugHandle;

    [[nodiscard]] const std::string &modulePath() const; // innermost frame's path, "" when there is none
    [[nodiscard]] const std::string &moduleType() const;
    // "conv2d" of aten.conv2d.default; the part between namespace and overload, trailing '_' (in place) kept.
    [[nodiscard]] std::string opName() const;
    // "aten.conv2d": what `optype:` selectors name.
    [[nodiscard]] std::string opType() const;
    [[nodiscard]] const Argument *argument(std::string_view name) const; // nullptr when absent
    // Values in all arguments, in order, lists entered; the same value may appear twice.
    [[nodiscard]] std::vector<ValueId> inputValues() const;
    [[nodiscard]] std::vector<ValueId> outputValues() const;
};

struct Value {
    std::string name;               // unique in its graph: the identity of results
    NodeId producer;                // invalid for graph inputs
    int outputIndex = 0;            // which value of a multi-output node (flattened)
    std::optional<TensorMeta> meta; // absent for sizes, flags and other non-tensors
};

enum class InputKind { User, Parameter, Buffer, TensorConstant, Constant, CustomObject, Token };
struct GraphInput {
    InputKind kind = InputKind::User;
    ValueId value;          // invalid for Constant inputs, which have no name
    std::string target;     // state-dict name of parameters, buffers and constants; argument name of user inputs
    bool persistent = true; // buffers
    Argument constant;      // Constant inputs: the value baked into the graph
};

enum class OutputKind { User, BufferMutation, ParameterMutation, InputMutation, Loss, Gradient, Token };
struct GraphOutput {
    OutputKind kind = OutputKind::User;
    ValueId value;      // invalid for literal outputs
    std::string target; // the buffer, parameter or user input that is written; label of a user output ("logits", "[0]")
    Argument literal;   // NoneArg unless the output is a literal
};

class Graph
{
public:
    std::vector<Value> values;
    std::vector<Node> nodes;
    std::vector<GraphInput> inputs;
    std::vector<GraphOutput> outputs;
    std::vector<std::unique_ptr<Graph>> subgraphs;
    std::vector<std::string> subgraphNames;

    [[nodiscard]] const Node &node(NodeId id) const { return nodes[id.get()]; }
    [[nodiscard]] const Value &value(ValueId id) const { return values[id.get()]; }
    [[nodiscard]] ValueId find(std::string_view valueName) const; // invalid when there is none
    [[nodiscard]] NodeId findNode(std::string_view nodeName) const;
    [[nodiscard]] const std::vector<NodeId> &readers(ValueId id) const { return m_readers[id.get()]; }
    [[nodiscard]] const Node *producer(ValueId id) const;    // nullptr for graph inputs
    [[nodiscard]] const GraphInput *input(ValueId id) const; // nullptr for produced values
    [[nodiscard]] bool isOutput(ValueId id) const;           // among the user outputs

    // Builds the lookups from values, nodes, inputs and outputs; call once after they are complete.
    void index();

private:
    std::unordered_map<std::string, ValueId> m_byName;
    std::unordered_map<std::string, NodeId> m_nodeByName;
    std::vector<std::vector<NodeId>> m_readers;
    std::vector<std::int32_t> m_inputOf; // value -> position in inputs, or -1
    std::vector<char> m_isOutput;
};

} // namespace dblame

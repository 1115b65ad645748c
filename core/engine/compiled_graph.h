// SPDX-License-Identifier: GPL-3.0-or-later
//
// Private to the program target: a graph whose nodes are ready to run. One per Graph and per subgraph;
// immutable after compilation, shared by every Program that is a rewiring of the same model.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "core/graph.h"

namespace dblame
{

// Where a value lies during a run: slots below Graph::values.size() are the graph's values, those above are
// private copies that a rewiring needs (Program::Impl::derived).
using Slot = std::uint32_t;
constexpr Slot kNoSlot = UINT32_MAX;

// What an argument that is only known at run time must become before the operator sees it.
enum class Fit : std::uint8_t {
    AsIs,
    Tensor, // numbers become wrapped 0-dim tensors
    Scalar, // 0-dim tensors become numbers
    Float,
    Int,
    Bool,
    TensorList,
    OptionalTensorList,
    IntList,
    FloatList,
    BoolList,
};

struct ListItem {
    std::int32_t input = -1; // position in the node's inputs; -1: `constant`
    c10::IValue constant;
};

struct ArgumentTemplate {
    enum class Kind : std::uint8_t { Constant, Value, List };
    Kind kind = Kind::Constant;
    Fit fit = Fit::AsIs;
    std::uint32_t input = 0;     // Value: position in the node's inputs
    c10::IValue constant;        // Constant
    std::vector<ListItem> items; // List
};

// _operator.*, torch.sym_* and math.* on sizes.
enum class SizeOp : std::uint8_t {
    Add,
    Sub,
    Mul,
    FloorDiv,
    TrueDiv,
    Mod,
    Pow,
    Neg,
    Pos,
    Abs,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Xor,
    Not,
    Invert,
    LShift,
    RShift,
    Max,
    Min,
    Sum,
    Ite,
    ToInt,
    ToFloat,
    Trunc,
    Ceil,
    Floor,
    Sqrt,
    GetItem,
};

enum class HopKind : std::uint8_t { SetGradEnabled, Autocast, Cond, WhileLoop, Map, InvokeSubgraph, OutDtype };

struct CompiledGraph;
struct Step;

struct HigherOrder {
    HopKind kind = HopKind::SetGradEnabled;
    std::vector<const CompiledGraph *> graphs; // cond: true, false; while_loop: condition, body
    std::vector<std::string> names;            // "cond[true]", for faults inside
    std::vector<ListItem> operands;            // flattened
    std::size_t leading = 0;                   // while_loop: carried; map: sliced operands
    ListItem predicate;                        // cond
    bool enabled = true;                       // autocast
    std::optional<bool> cacheEnabled;
    std::optional<at::ScalarType> dtype; // autocast, out_dtype
    std::unique_ptr<Step> call;          // out_dtype: the operator on all of the node's inputs
    HigherOrder();
    ~HigherOrder();
    HigherOrder(const HigherOrder &) = delete;
    HigherOrder &operator=(const HigherOrder &) = delete;
};

// What the outputs of a node may share storage with, and what it writes; positions in the node's inputs.
struct StepAliases {
    std::vector<std::uint32_t> written;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> shared; // (flat output, input)
};

struct Step {
    enum class Kind : std::uint8_t { Operator, Size, HigherOrder, Faulty };
    Kind kind = Kind::Faulty;
    SizeOp size = SizeOp::Add;
    bool listOutput = false;  // some output is a list of values
    std::int32_t random = -1; // ordinal among the operators that draw random numbers
    std::optional<c10::OperatorHandle> op;
    std::vector<ArgumentTemplate> arguments; // in schema order; Size: in file order
    std::unique_ptr<HigherOrder> hop;
    std::uint32_t inputsBegin = 0, inputsEnd = 0; // into CompiledGraph::inputValues
    StepAliases aliases;
};

// How the whole graph, called as a subgraph, treats its inputs.
struct GraphAliases {
    std::vector<char> written;                            // per graph input
    std::vector<std::vector<std::uint32_t>> outputShares; // per graph output: inputs it may share storage with
};

struct CompiledGraph {
    const Graph *graph = nullptr;
    std::vector<Step> steps;         // one per node
    std::vector<Slot> inputValues;   // of all nodes, flat: Node::inputValues() in order
    std::vector<std::string> faults; // per node; empty = runnable
    std::vector<std::string> notes;  // of this graph and those below it
    std::vector<std::unique_ptr<CompiledGraph>> subgraphs;
    std::vector<std::uint32_t> useCounts; // per value: reads by nodes and by the graph's outputs
    GraphAliases aliases;
};

// The call of an operator that a higher-order operator names, with positional arguments. Throws CompileFault.
[[nodiscard]] std::unique_ptr<Step> compileCall(const std::string &target, std::vector<NamedArgument> positional,
                                                std::uint32_t &nextInput);

// Compiles a graph and everything below it. `modelFaults` (may be empty): per node, what the reader found.
[[nodiscard]] std::unique_ptr<CompiledGraph> compileGraph(const Graph &graph,
                                                          const std::vector<std::string> &modelFaults);

} // namespace dblame

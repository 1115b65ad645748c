// SPDX-License-Identifier: GPL-3.0-or-later
//
// Text form of a Graph, for `inspect --graph` and for graphs written by hand in tests. Printing and
// parsing are inverse: parse(print(g)) prints the same text.
//
//     graph {
//       input user %x: float32[s0=1, 1, 8, 8] "x"
//       input parameter %p_conv_weight: float32[4, 1, 3, 3] "conv.weight"
//       %conv2d: float32[s0=1, 4, 6, 6] = aten.conv2d.default(input=%x, weight=%p_conv_weight, stride=[1, 1])
//       @"conv":"torch.nn.modules.conv.Conv2d"
//       (%a, [%b, None], None) = higher_order.wrap(subgraph(0), %conv2d)
//       return %conv2d "logits"
//       subgraph "submod_1" {
//         ...
//       }
//     }
//
// Grammar (one statement per line; blank lines and `# comments` are skipped; [..] optional, {..} repeated):
//
//     graph     = "graph" "{" body "}"
//     body      = {input} {node} ["return" result {"," result}] {"subgraph" STRING "{" body "}"}
//     input     = "input" kind ( value | "_" ) [STRING] ["nonpersistent"] ["=" argument]
//     kind      = "user" | "parameter" | "buffer" | "tensor_constant" | "constant" | "custom_object" | "token"
//                 STRING is GraphInput::target. `input constant _ "flag" = True` has no value.
//     node      = [slots "="] target "(" [arg {"," arg}] ")" {attribute}
//     slots     = slot | "(" slot {"," slot} ")"
//     slot      = value | "None" | "[" [value {"," value}] "]"
//     value     = "%"NAME [":" meta]            NAME = letters, digits and . _ $ @ - or a STRING: %"a b"
//     meta      = DTYPE "[" [dim {"," dim}] "]"  dim = NUMBER | symbol ["=" HINT];  symbol = WORD | STRING ("2*s0")
//     target    = WORD | STRING                  aten.conv2d.default
//     arg       = [NAME "="] argument            without a name: positional (higher-order operators)
//     argument  = "None" | "True" | "False" | NUMBER | STRING | %NAME | "complex(" re "," im ")"
//               | "torch."DTYPE | "layout(" N ")" | "memory_format(" N ")" | "device(" STRING ["," N] ")"
//               | "subgraph(" N ")" | "operator(" STRING ")" | "unsupported(" STRING ")" | [listkind] list
//     list      = "[" [element {"," element}] "]"
//     listkind  = "tensors" | "tensorlists" | "ints" | "intlists" | "floats" | "floatlists" | "bools" | "strings"
//                 Without it the elements tell: [%a, None] tensors, [1, %s] ints, [1.0] floats, [True] bools,
//                 ["a"] strings, [[1], [2]] intlists, [[1.0]] floatlists, [[%a]] tensorlists, [] ints.
//     attribute = "@" STRING [":" STRING [":" STRING]]   a module frame, outermost first: path, type, key
//                                                         (default key: "L__self__" + path)
//               | "name=" STRING                          node name (default: name of its first value)
//               | "source=" STRING | "stack=" STRING | "torch_fn=" STRING | "source_fn=" STRING | "handle=" N
//               | "from_node=[" step {"," step} "]"       newest first
//     step      = STRING | "(" NAME "," TARGET ["," PASS ["," GRAPH_ID]] ")"
//     result    = [outkind] ( %NAME | argument ) [STRING]   STRING is GraphOutput::target
//     outkind   = "buffer_mutation" | "parameter_mutation" | "input_mutation" | "loss" | "gradient" | "token"
//
// Numbers with a point, an exponent, or the words inf and nan are floats; others are integers. Strings know
// \" \\ \n \t \xHH. A value must be defined before it is read.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "core/graph.h"

namespace dblame
{

struct GraphTextOptions {
    bool frames = true;     // every module frame; false: the innermost one without its key
    bool provenance = true; // from_node, torch_fn, source_fn, debug handle
    bool stackTraces = true;
};

[[nodiscard]] std::string printGraph(const Graph &graph, const GraphTextOptions &options = {});

// The graph, indexed. Errors name line and column ("line 3, column 14: ...") with code Unreadable.
[[nodiscard]] Result<Graph> parseGraph(std::string_view text);

// "aten.conv2d.default(input=%x, ...)" alone; for messages and tooltips.
[[nodiscard]] std::string printCall(const Graph &graph, const Node &node);
// "float32[1, 4, 6, 6]"; "" for a value without meta.
[[nodiscard]] std::string printMeta(const std::optional<TensorMeta> &meta);

} // namespace dblame

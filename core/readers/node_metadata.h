// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the exporter notes at a node: module stack, source line, history. Never a reason to refuse a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph.h"
#include "core/readers/json_text.h"

namespace dblame
{

// Fills modules, source, stackTrace, torchFn, sourceFn, provenance and debugHandle from a node's `metadata` object.
// sourceFn is the innermost entry of source_fn_stack, "name,function or leaf module class"; non-strict exports have
// none.
void readNodeMetadata(const Json &metadata, Node &node);

// "key,path,class;key,path,class", outermost first. Frames of the exporter's own wrappers are left out; the
// "@k" of a repeated call stays in the key and leaves the path.
[[nodiscard]] std::vector<ModuleFrame> parseModuleStack(std::string_view text);

// "net.py:41": the innermost frame outside torch and site-packages, else the innermost frame; "" for none.
[[nodiscard]] std::string sourceLine(std::string_view stackTrace);

// SymPy's constructor notation as a formula: "Mul(Integer(2), Symbol('s0', integer=True))" -> "2*s0".
// What is not understood comes back as it is.
[[nodiscard]] std::string symbolText(const std::string &expression);

} // namespace dblame

// SPDX-License-Identifier: GPL-3.0-or-later
//
// A graph made ready to run: operator handles resolved once, argument templates, last uses, and what
// in-place operators may overwrite. Program is immutable; Execution holds the values of one run.
//
// Values are bit-equal to PyTorch's on the same machine at the same thread count. Operators that only exist in Python
// (quantized_decomposed, torchao, coreai) are ours. Operators that draw random numbers start from a fixed seed plus
// their ordinal in the graph, so a node draws the same whatever ran before it: in a part of a graph as in all of it,
// and in the same place of two models alike (it is not the sequence that one seed gives in Python).
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "core/error.h"
#include "core/graph.h"
#include "core/readers/loaded_model.h"

namespace dblame
{

// result = function(source), instead of the nodes that computed it.
struct Substitute {
    ValueId source;
    std::function<at::Tensor(const at::Tensor &)> function;
};

// What a run reads and computes differently from the file. Chains of redirects are followed
// (a site off whose source is the result of another site that is off).
// A redirected value means what its source held when the file's nodes read it: where an in-place operator writes to
// the source later, or writes through the redirected value, its readers get a private copy. Given tensors are never
// written to.
struct Rewiring {
    std::unordered_map<ValueId, ValueId> redirect; // every read of first becomes a read of second
    struct EdgeHash {
        std::size_t operator()(const std::pair<NodeId, ValueId> &e) const noexcept
        {
            return std::hash<NodeId>{}(e.first) * 1000003U ^ std::hash<ValueId>{}(e.second);
        }
    };
    std::unordered_map<std::pair<NodeId, ValueId>, ValueId, EdgeHash> redirectFor; // the same, for one reader only
    std::unordered_map<ValueId, at::Tensor> given;                                 // values from outside
    std::unordered_map<ValueId, Substitute> computed; // values from a function of another value
};

class Program
{
public:
    // Never fails as a whole: what cannot run is a fault of its node (faults()).
    // `model` is kept alive by the program.
    [[nodiscard]] static std::shared_ptr<const Program> compile(std::shared_ptr<const LoadedModel> model);
    // The same program under a rewiring (in place of this one's, if it has one); shares handles and templates.
    [[nodiscard]] std::shared_ptr<const Program> rewired(Rewiring rewiring) const;

    [[nodiscard]] const Graph &graph() const;
    [[nodiscard]] const LoadedModel &model() const;
    [[nodiscard]] const std::vector<std::string> &faults() const; // per node; empty = runnable

    // What a report should say about every run: devices replaced by the CPU, random operators.
    [[nodiscard]] const std::vector<std::string> &notes() const;

    // Nodes to run, in execution order, so that every wanted value can be read (the graph's results at the end, other
    // values right after their node), when the values for which `available` is true need not be computed. Includes
    // every in-place writer that the read values depend on, and recomputes a whole alias class when it is written to
    // anywhere (a hot value is never a leaf).
    [[nodiscard]] std::vector<NodeId> schedule(const std::vector<ValueId> &wanted,
                                               const std::function<bool(ValueId)> &available) const;
    // Its storage may be written by a node after the one that made it: clone before keeping it, never reuse it as a
    // leaf.
    [[nodiscard]] bool hot(ValueId value) const;
    // Values that can differ when `changed` differ: data flow through reads (as rewired) and through in-place writes.
    [[nodiscard]] std::vector<char> downstream(const std::vector<ValueId> &changed) const;
    // Where reads of `value` by `reader` really go under the rewiring (`reader` may be invalid: any reader).
    [[nodiscard]] ValueId resolve(NodeId reader, ValueId value) const;

    struct Impl;
    explicit Program(std::shared_ptr<const Impl> impl);
    [[nodiscard]] const Impl &impl() const { return *m_impl; }

private:
    std::shared_ptr<const Impl> m_impl;
};

// The values of one run. Runs under c10::InferenceMode, which the caller opens on its thread.
class Execution
{
public:
    // `nodes`: what will be run (a schedule); last uses are counted over these, and `wanted` values are
    // dropped by release() only.
    Execution(std::shared_ptr<const Program> program, const std::vector<NodeId> &nodes,
              const std::vector<ValueId> &wanted);
    ~Execution();
    Execution(Execution &&) noexcept;
    Execution &operator=(Execution &&) noexcept;

    // Gives a graph input or a leaf its value; an input that some node writes is copied. Stored tensors are bound by
    // the constructor: those that some node writes as private copies, so every run starts from the file's state.
    void bind(ValueId value, c10::IValue v);
    // Runs one node. False when it failed or could not be computed; then fault(node) says why.
    // Values whose last reader this was are dropped, wanted ones excepted. Cancels inside loops of control flow.
    bool run(NodeId node, const std::stop_token &stop = {});
    // In place of run(): the node's one result is given, as another made it from value() of what the node reads.
    void provide(NodeId node, at::Tensor result);
    // The value as its readers see it now (redirects, given and computed values included); None when it is not there.
    [[nodiscard]] const c10::IValue &value(ValueId value);
    // No longer wanted: dropped now if no scheduled reader is left, else after its last reader.
    void release(ValueId value);
    [[nodiscard]] const std::string &fault(NodeId node) const;
    // "failed: <why>" when its own node failed, "needs <value>" when something before it failed; empty when computed.
    [[nodiscard]] std::string faultOf(ValueId value) const;
    [[nodiscard]] bool failedItself(ValueId value) const; // its own node failed (else: it was not computed)

private:
    struct State;
    std::unique_ptr<State> m_state;
};

} // namespace dblame

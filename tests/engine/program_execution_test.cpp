// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include "tests/engine/text_program.h"

namespace dblame::test
{

namespace
{

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Runs everything; values stay until the end.
struct FullRun {
    explicit FullRun(const std::shared_ptr<const LoadedModel> &model,
                     const std::map<std::string, c10::IValue> &inputs = {}, const std::stop_token &stop = {})
        : graph(model->graph()), program(Program::compile(model)),
          execution(program, everyNode(graph), everyValue(graph))
    {
        for (const auto &[name, value] : inputs)
            execution.bind(id(graph, name), value);
        for (NodeId n : everyNode(graph))
            ok.push_back(execution.run(n, stop));
    }
    const c10::IValue &operator[](std::string_view name) { return execution.value(id(graph, name)); }
    std::vector<float> floats(std::string_view name)
    {
        const at::Tensor t = (*this)[name].toTensor().to(at::kFloat).contiguous();
        return {t.const_data_ptr<float>(), t.const_data_ptr<float>() + t.numel()};
    }
    std::string faultOf(std::string_view name) const { return execution.faultOf(id(graph, name)); }
    const std::string &fault(std::string_view node) const { return execution.fault(graph.findNode(node)); }

    c10::InferenceMode guard;
    const Graph &graph;
    std::shared_ptr<const Program> program;
    Execution execution;
    std::vector<bool> ok;
};

TEST(ProgramExecution, NumbersForTensorsDoNotPromote)
{
    FullRun run(textModel(R"(graph {
        input user %x: int32[2]
        %half: float16[2] = aten.to.dtype(self=%x, dtype=torch.float16)
        %a: int32[2] = aten.add.Tensor(self=%x, other=1)
        %b: float32[2] = aten.mul.Tensor(self=%x, other=2.0)
        %c: float16[2] = aten.mul.Tensor(self=%half, other=2.5)
        return %c
    })"),
                {{"x", at::tensor({1, 2}, at::kInt)}});
    EXPECT_EQ(run["a"].toTensor().scalar_type(), at::kInt);
    EXPECT_EQ(run["b"].toTensor().scalar_type(), at::kFloat);
    EXPECT_EQ(run["c"].toTensor().scalar_type(), at::kHalf);
    EXPECT_EQ(run.floats("c"), (std::vector<float>{2.5F, 5}));
}

TEST(ProgramExecution, ArgumentsTakeTheirSchemaTypes)
{
    FullRun run(textModel(R"(graph {
        input user %x: float32[1, 2, 4, 4]
        input user %i: int64[1]
        %rows = aten.sym_size.int(self=%x, dim=2)
        %pool: float32[1, 2, 2, 2] = aten.avg_pool2d.default(self=%x, kernel_size=2)
        %flat: float32[1, 2, 16] = aten.reshape.default(self=%x, shape=[1, 2, -1])
        %again: float32[1, 2, 4, 4] = aten.view.default(self=%flat, size=[1, 2, %rows, %rows])
        %cat: float32[2, 2, 4, 4] = aten.cat.default(tensors=[%x, %again])
        %full: float32[4] = aten.full.default(size=[%rows], fill_value=3, dtype=torch.float32, device=device("cuda", 0), pin_memory=False)
        %picked: float32[1, 2, 1] = aten.index.Tensor(self=%x, indices=[None, None, %i, %i])
        %scaled: float32[1, 2, 4, 4] = aten.mul.Scalar(self=%x, other=%rows)
        return %cat
    })"),
                {{"x", at::arange(32, at::kFloat).view({1, 2, 4, 4})}, {"i", at::tensor({3}, at::kLong)}});
    EXPECT_EQ(run["rows"].toInt(), 4);
    EXPECT_EQ(run["pool"].toTensor().sizes(), (std::vector<std::int64_t>{1, 2, 2, 2})); // one number for int[2]
    EXPECT_EQ(run["cat"].toTensor().size(0), 2);
    EXPECT_EQ(run.floats("full"), (std::vector<float>{3, 3, 3, 3}));
    EXPECT_TRUE(run["full"].toTensor().device().is_cpu());
    EXPECT_EQ(run.floats("picked"), (std::vector<float>{15, 31}));
    EXPECT_EQ(run.floats("scaled")[31], 124);
}

TEST(ProgramExecution, ListsAndHolesOfResults)
{
    FullRun run(textModel(R"(graph {
        input user %x: float32[4, 6]
        [%a, %b] = aten.split.Tensor(self=%x, split_size=2)
        [%p, %q, %r] = aten.split.Tensor(self=%x, split_size=2)
        (%v, %i) = aten.topk.default(self=%x, k=2)
        (%top, None) = aten.max.dim(self=%x, dim=0)
        aten._assert_scalar.default(self=1, assert_msg="never")
        return %v
    })"),
                {{"x", at::arange(24, at::kFloat).view({4, 6})}});
    EXPECT_EQ(run.floats("b")[0], 12);
    EXPECT_FALSE(run.ok[1]);
    EXPECT_THAT(run.fault("p"), HasSubstr("returns a list of 2, the file names 3"));
    EXPECT_EQ(run["i"].toTensor().scalar_type(), at::kLong);
    EXPECT_EQ(run.floats("top")[5], 23);
    EXPECT_TRUE(run.ok[4]); // an operator without results
}

TEST(ProgramExecution, FaultsAreOfTheirNodes)
{
    const auto model = textModel(R"(graph {
        input user %x: float32[2, 3]
        %unknown: float32[2, 3] = mylib.crelu.default(self=%x)
        %behind: float32[2, 3] = aten.relu.default(self=%unknown)
        %overload: float32[2, 3] = aten.mul.NoSuch(self=%x)
        %bogus: float32[2, 3] = aten.mul.Tensor(self=%x, other=%x, bogus=1)
        %missing: float32[2, 3] = aten.linear.default(input=%x)
        %denied = aten.from_file.default(filename="/etc/passwd", shared=False, size=3)
        %flex: float32[2, 3] = higher_order.flex_attention(%x)
        (%one, %two) = aten.mul.Tensor(self=%x, other=%x)
        %shape: float32[5, 5] = aten.view.default(self=%x, size=[5, 5])
        %after: float32[5, 5] = aten.relu.default(self=%shape)
        %last: float32[5, 5] = aten.relu.default(self=%after)
        %kind: float32[2, 3] = aten.relu.default(self=unsupported("argument kind as_future is unknown"))
        %fine: float32[2, 3] = aten.relu.default(self=%x)
        return %fine
    })");
    const auto faults = Program::compile(model)->faults();
    EXPECT_EQ(faults[0], "needs mylib::crelu");
    EXPECT_EQ(faults[2], "needs aten::mul.NoSuch");
    EXPECT_EQ(faults[3], "aten::mul.Tensor has no argument bogus");
    EXPECT_EQ(faults[4], "argument weight of aten::linear is missing");
    EXPECT_THAT(faults[5], HasSubstr("aten::from_file is not run"));
    EXPECT_EQ(faults[6], "needs higher-order operator flex_attention");
    EXPECT_EQ(faults[7], "aten::mul.Tensor returns 1 value, the file names 2");
    EXPECT_EQ(faults[8], "");
    EXPECT_THAT(faults[11], HasSubstr("as_future"));

    FullRun run(model, {{"x", at::ones({2, 3})}});
    EXPECT_EQ(run.faultOf("unknown"), "needs mylib::crelu");
    EXPECT_EQ(run.faultOf("behind"), "needs mylib::crelu");
    EXPECT_FALSE(run.execution.failedItself(id(run.graph, "behind")));
    EXPECT_THAT(run.faultOf("missing"), HasSubstr("failed: argument weight"));
    EXPECT_THAT(run.faultOf("shape"), HasSubstr("failed: shape '[5, 5]' is invalid for input of size 6"));
    EXPECT_THAT(run.fault("shape"), Not(HasSubstr("Exception raised from"))); // no backtrace
    EXPECT_TRUE(run.execution.failedItself(id(run.graph, "shape")));
    EXPECT_EQ(run.faultOf("last"), "needs shape");
    EXPECT_FALSE(run.execution.failedItself(id(run.graph, "last")));
    EXPECT_TRUE(run["last"].isNone());
    EXPECT_EQ(run.faultOf("fine"), "");
    EXPECT_EQ(run.floats("fine"), std::vector<float>(6, 1));
}

TEST(ProgramExecution, TheReadersFaultsAreTakenOver)
{
    auto model = std::make_shared<LoadedModel>();
    model->m_graph =
        std::move(*parseGraph("graph {\n input user %x: float32[2]\n %y: float32[2] = aten.relu.default(self=%x)\n}"));
    model->m_tensors.resize(2);
    model->m_nodeFaults = {"argument kind as_future is unknown"};
    EXPECT_EQ(Program::compile(model)->faults()[0], "argument kind as_future is unknown");
}

TEST(ProgramExecution, AFailedInPlaceOperatorTakesItsStorageWithIt)
{
    FullRun run(textModel(R"(graph {
        input user %x: float32[2, 3]
        input user %y: float32[5]
        %a: float32[2, 3] = aten.neg.default(self=%x)
        %w: float32[2, 3] = aten.copy_.default(self=%a, src=%y)
        %b: float32[2, 3] = aten.relu.default(self=%a)
        %c: float32[2, 3] = aten.relu.default(self=%x)
    })"),
                {{"x", at::ones({2, 3})}, {"y", at::ones({5})}});
    EXPECT_THAT(run.faultOf("w"), HasSubstr("failed: "));
    EXPECT_EQ(run.faultOf("b"), "needs w"); // %a was to be overwritten: what it still holds means nothing
    EXPECT_EQ(run.faultOf("c"), "");
}

TEST(ProgramExecution, AViewThatCannotRunKeepsItsStorageFromPassingForComputed)
{
    FullRun run(textModel(R"(graph {
        input user %x: float32[2, 3]
        %a: float32[2, 3] = aten.neg.default(self=%x)
        %part: float32[3] = aten.select.int(self=%a, dim=unsupported("an argument of a later version"), index=0)
        %w: float32[3] = aten.add_.Tensor(self=%part, other=1)
        %b: float32[2, 3] = aten.relu.default(self=%a)
        %d: float32[2, 3] = aten.neg.default(self=%x)
        %gone: float32[2, 3] = mylib.scale_.default(self=%d)
        %e: float32[2, 3] = aten.relu.default(self=%d)
        (%inner) = higher_order.wrap_with_set_grad_enabled(False, subgraph(0), %x)
        subgraph "body" {
            input user %y: float32[2, 3]
            %z: float32[2, 3] = mylib.crelu.default(self=%y)
            return %z
        }
    })"),
                {{"x", at::ones({2, 3})}});
    EXPECT_EQ(run.faultOf("b"), "needs part"); // the write through the part did not happen
    EXPECT_EQ(run.faultOf("e"), "needs mylib::scale_");
    EXPECT_EQ(run.faultOf("inner"), "needs mylib::crelu");
}

TEST(ProgramExecution, EveryRunStartsFromTheFilesState)
{
    // Two buffers on one storage, one of them written; the input is written, too.
    const at::Tensor whole = at::zeros({4});
    const at::Tensor counter = whole.slice(0, 0, 2), other = whole.slice(0, 1, 4);
    const auto model = textModel(R"(graph {
        input buffer %counter: float32[2] "counter"
        input buffer %other: float32[3] "other"
        input user %x: float32[2]
        %add_: float32[2] = aten.add_.Tensor(self=%counter, other=%x)
        %seen: float32[3] = aten.clone.default(self=%other)
        %mul_: float32[2] = aten.mul_.Tensor(self=%x, other=10)
        return %add_, %seen
    })",
                                 {{"counter", counter}, {"other", other}});
    const at::Tensor x = at::ones({2});
    for (int i = 0; i < 2; ++i) {
        FullRun run(model, {{"x", x}});
        EXPECT_EQ(run.floats("add_"), (std::vector<float>{1, 1}));
        EXPECT_EQ(run.floats("seen"), (std::vector<float>{1, 0, 0})); // the shared element
        EXPECT_EQ(run.floats("mul_"), (std::vector<float>{10, 10}));
    }
    EXPECT_TRUE(at::equal(whole, at::zeros({4})));
    EXPECT_TRUE(at::equal(x, at::ones({2})));
}

TEST(ProgramExecution, SubgraphsRunAndNameTheirNodes)
{
    const auto text = R"(graph {
        input user %p: bool[]
        input user %x: float32[2]
        (%c) = higher_order.cond(%p, subgraph(0), subgraph(1), [%x, %x])
        (%n, %acc) = higher_order.while_loop(subgraph(2), subgraph(3), [0, %x], [])
        (%m) = higher_order.map_impl(subgraph(4), [%x], [%x])
        return %c, %acc
        subgraph "true_graph" {
            input user %a: float32[2]
            input user %b: float32[2]
            %sum: float32[2] = aten.add.Tensor(self=%a, other=%b)
            return %sum
        }
        subgraph "false_graph" {
            input user %a: float32[2]
            input user %b: float32[2]
            %bad: float32[3] = aten.view.default(self=%a, size=[3])
            return %bad
        }
        subgraph "condition" {
            input user %i
            input user %v: float32[2]
            %lt = _operator.lt(%i, 3)
            return %lt
        }
        subgraph "body" {
            input user %i
            input user %v: float32[2]
            %next = _operator.add(%i, 1)
            %twice: float32[2] = aten.mul.Tensor(self=%v, other=2)
            return %next, %twice
        }
        subgraph "each" {
            input user %one: float32[]
            input user %all: float32[2]
            %r: float32[2] = aten.mul.Tensor(self=%all, other=%one)
            return %r
        }
    })";
    FullRun yes(textModel(text), {{"p", at::ones({}, at::kBool)}, {"x", at::tensor({1.0F, 2.0F})}});
    EXPECT_EQ(yes.floats("c"), (std::vector<float>{2, 4}));
    EXPECT_EQ(yes.floats("acc"), (std::vector<float>{8, 16}));
    EXPECT_EQ(yes["n"].toInt(), 3);
    EXPECT_EQ(yes.floats("m"), (std::vector<float>{1, 2, 2, 4}));
    FullRun no(textModel(text), {{"p", at::zeros({}, at::kBool)}, {"x", at::tensor({1.0F, 2.0F})}});
    EXPECT_THAT(no.fault("c"), HasSubstr("in cond[false]/bad: shape '[3]' is invalid"));
    EXPECT_EQ(no.floats("acc"), (std::vector<float>{8, 16}));

    std::stop_source stop;
    stop.request_stop();
    FullRun stopped(textModel(text), {{"p", at::ones({}, at::kBool)}, {"x", at::tensor({1.0F, 2.0F})}},
                    stop.get_token());
    EXPECT_EQ(stopped.fault("n"), "cancelled"); // inside the loop, which might never end
}

TEST(ProgramExecution, OutDtypeComputesInTheResultsType)
{
    FullRun run(textModel(R"(graph {
        input user %a: int8[2]
        input user %b: int8[2]
        %wide: int32[2] = higher_order.out_dtype(operator("torch.ops.aten.mul.Tensor"), torch.int32, %a, %b)
        %bad: int32[2] = higher_order.out_dtype(operator("torch.ops.aten.nothing.Tensor"), torch.int32, %a, %b)
    })"),
                {{"a", at::tensor({100, -128}, at::kChar)}, {"b", at::tensor({100, 127}, at::kChar)}});
    EXPECT_EQ(run["wide"].toTensor().scalar_type(), at::kInt);
    EXPECT_EQ(run.floats("wide"), (std::vector<float>{10000, -16256})); // int8 would wrap
    EXPECT_EQ(run.fault("bad"), "needs aten::nothing.Tensor");
}

TEST(ProgramExecution, AutocastHoldsInsideItsBlockOnly)
{
    const auto text = R"(graph {
        input user %x: float32[2, 2]
        (%inside) = higher_order.wrap_with_autocast("cpu", torch.bfloat16, True, None, subgraph(0), %x)
        %outside: float32[2, 2] = aten.mm.default(self=%x, mat2=%x)
        (%grad) = higher_order.wrap_with_set_grad_enabled(False, subgraph(0), %x)
        subgraph "body" {
            input user %a: float32[2, 2]
            %mm: float32[2, 2] = aten.mm.default(self=%a, mat2=%a)
            return %mm
        }
    })";
    FullRun run(textModel(text), {{"x", at::ones({2, 2})}});
    EXPECT_EQ(run["inside"].toTensor().scalar_type(), at::kBFloat16);
    EXPECT_EQ(run["outside"].toTensor().scalar_type(), at::kFloat);
    EXPECT_EQ(run["grad"].toTensor().scalar_type(), at::kFloat);
}

TEST(ProgramExecution, RandomOperatorsDrawTheSameInPartsAndInFull)
{
    const auto model = textModel(R"(graph {
        input user %x: float32[64]
        %a: float32[64] = aten.dropout.default(input=%x, p=0.5, train=True)
        %b: float32[64] = aten.rand_like.default(self=%x)
        return %a, %b
    })");
    FullRun first(model, {{"x", at::ones({64})}}), second(model, {{"x", at::ones({64})}});
    EXPECT_TRUE(at::equal(first["a"].toTensor(), second["a"].toTensor()));
    const c10::InferenceMode guard;
    const auto &graph = model->graph();
    EXPECT_THAT(first.program->notes(), ElementsAre(HasSubstr("2 operators of the graph draw random numbers")));
    const std::vector<ValueId> wanted{id(graph, "b")};
    const auto nodes = first.program->schedule(wanted, [](ValueId) { return false; });
    ASSERT_EQ(nodes.size(), 1U); // the first random operator does not run
    Execution part(first.program, nodes, wanted);
    part.bind(id(graph, "x"), at::ones({64}));
    part.run(nodes[0]);
    EXPECT_TRUE(at::equal(part.value(wanted[0]).toTensor(), first["b"].toTensor()));
}

TEST(ProgramExecution, NotesSayWhatIsNotAsInTheFile)
{
    const auto model = textModel(R"(graph {
        input user %x: float32[8]
        %a: float32[8] = aten.dropout.default(input=%x, p=0.5, train=False)
        %b: float32[8] = aten.scaled_dot_product_attention.default(query=%x, key=%x, value=%x)
        return %a
    })");
    EXPECT_THAT(Program::compile(model)->notes(), IsEmpty()); // nothing random in them
    const auto cuda = textModel(R"(graph {
        input user %x: float32[8]
        %a: float32[8] = aten.zeros.default(size=[8], device=device("cuda", 0))
        %b: float32[8] = aten.ones.default(size=[8], device=device("cuda", 1))
        return %a
    })");
    EXPECT_THAT(Program::compile(cuda)->notes(), ElementsAre("made for cuda: runs on the CPU here"));
}

TEST(ProgramExecution, ValuesAreDroppedAfterTheirLastReader)
{
    const auto model = textModel(R"(graph {
        input user %x: float32[8]
        %a: float32[8] = aten.neg.default(self=%x)
        %b: float32[8] = aten.neg.default(self=%a)
        %c: float32[8] = aten.neg.default(self=%b)
        return %c
    })");
    const c10::InferenceMode guard;
    const auto program = Program::compile(model);
    const auto &graph = model->graph();
    const ValueId a = id(graph, "a"), b = id(graph, "b"), c = id(graph, "c");
    Execution execution(program, everyNode(graph), {b, c});
    execution.bind(id(graph, "x"), at::ones({8}));
    execution.run(NodeId(std::size_t{0}));
    EXPECT_TRUE(execution.value(a).isTensor());
    execution.run(NodeId(std::size_t{1}));
    EXPECT_TRUE(execution.value(a).isNone());
    execution.run(NodeId(std::size_t{2}));
    EXPECT_TRUE(execution.value(b).isTensor()); // wanted
    execution.release(b);
    EXPECT_TRUE(execution.value(b).isNone());
    EXPECT_TRUE(execution.value(c).isTensor());
}

} // namespace

} // namespace dblame::test

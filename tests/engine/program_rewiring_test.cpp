// SPDX-License-Identifier: GPL-3.0-or-later
//
// Redirects, edges, given and computed values; with in-place operators around them; and incremental schedules
// against full runs, on graphs made at random.
#include <random>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/clone.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "tests/engine/text_program.h"

namespace dblame::test
{

namespace
{

// x -> a -> [site: half(a) = h] -> two readers; the site of b follows it.
constexpr const char *kSites = R"(graph {
    input user %x: float32[2]
    %a: float32[2] = aten.add.Tensor(self=%x, other=1)
    %h: float32[2] = aten.mul.Tensor(self=%a, other=0.5)
    %b: float32[2] = aten.add.Tensor(self=%h, other=10)
    %c: float32[2] = aten.add.Tensor(self=%h, other=20)
    %hh: float32[2] = aten.mul.Tensor(self=%h, other=0.5)
    %d: float32[2] = aten.add.Tensor(self=%hh, other=30)
    return %b, %c, %d
})";

struct Rewired {
    explicit Rewired(const char *text, const std::map<std::string, at::Tensor> &stored = {})
        : model(textModel(text, stored)), graph(model->graph()), program(Program::compile(model))
    {
    }

    ValueId operator[](std::string_view name) const { return id(graph, name); }
    NodeId node(std::string_view name) const { return graph.findNode(name); }

    // Wanted values, each as it is right after the node that makes it; `x` is bound where there is one.
    std::map<std::string, std::vector<float>> run(const Rewiring &rewiring, const std::vector<std::string> &wanted)
    {
        const c10::InferenceMode guard;
        const auto changed = program->rewired(rewiring);
        std::vector<ValueId> ids;
        for (const auto &name : wanted)
            ids.push_back(id(graph, name));
        nodes = changed->schedule(ids, [](ValueId) { return false; });
        Execution execution(changed, nodes, ids);
        if (const ValueId x = graph.find("x"); x.valid())
            execution.bind(x, at::tensor({1.0F, 2.0F}));
        for (NodeId n : nodes)
            EXPECT_TRUE(execution.run(n)) << execution.fault(n);
        std::map<std::string, std::vector<float>> result;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const auto &v = execution.value(ids[i]);
            EXPECT_TRUE(v.isTensor()) << wanted[i] << " " << execution.faultOf(ids[i]);
            if (v.isTensor()) {
                const at::Tensor t = v.toTensor().contiguous();
                result[wanted[i]] = {t.const_data_ptr<float>(), t.const_data_ptr<float>() + t.numel()};
            }
        }
        return result;
    }

    std::shared_ptr<const LoadedModel> model;
    const Graph &graph;
    std::shared_ptr<const Program> program;
    std::vector<NodeId> nodes; // of the last run
};

using Floats = std::vector<float>;

TEST(ProgramRewiring, ASiteOffIsReadThrough)
{
    Rewired r(kSites);
    Rewiring off;
    off.redirect[r["h"]] = r["a"];
    auto values = r.run(off, {"h", "b", "c", "d"});
    EXPECT_EQ(values["h"], (Floats{2, 3})); // as its readers see it
    EXPECT_EQ(values["b"], (Floats{12, 13}));
    EXPECT_EQ(values["c"], (Floats{22, 23}));
    EXPECT_EQ(values["d"], (Floats{31, 31.5F})); // the second site reads a
    EXPECT_EQ(std::count(r.nodes.begin(), r.nodes.end(), r.node("h")), 0);
}

TEST(ProgramRewiring, ChainsOfSitesOffAreFollowed)
{
    Rewired r(kSites);
    Rewiring off;
    off.redirect[r["h"]] = r["a"];
    off.redirect[r["hh"]] = r["h"]; // its source is the result of a site that is off, too
    auto values = r.run(off, {"d", "hh"});
    EXPECT_EQ(values["d"], (Floats{32, 33}));
    EXPECT_EQ(values["hh"], (Floats{2, 3}));
    EXPECT_EQ(r.program->rewired(off)->resolve(NodeId{}, r["hh"]), r["a"]);
}

TEST(ProgramRewiring, AnEdgeIsOneReadersAlone)
{
    Rewired r(kSites);
    Rewiring edge;
    edge.redirectFor[{r.node("b"), r["h"]}] = r["a"];
    auto values = r.run(edge, {"b", "c", "d", "h"});
    EXPECT_EQ(values["b"], (Floats{12, 13}));
    EXPECT_EQ(values["c"], (Floats{21, 21.5F}));
    EXPECT_EQ(values["d"], (Floats{30.5F, 30.75F}));
    EXPECT_EQ(values["h"], (Floats{1, 1.5F}));
    const auto program = r.program->rewired(edge);
    EXPECT_EQ(program->resolve(r.node("b"), r["h"]), r["a"]);
    EXPECT_EQ(program->resolve(r.node("c"), r["h"]), r["h"]);
    // An edge onto a site that is off goes on to that site's source.
    edge.redirectFor.clear();
    edge.redirectFor[{r.node("d"), r["hh"]}] = r["h"];
    edge.redirect[r["h"]] = r["a"];
    EXPECT_EQ(r.run(edge, {"d"})["d"], (Floats{32, 33}));
}

TEST(ProgramRewiring, GivenAndComputedValuesReplaceTheirNodes)
{
    Rewired r(kSites);
    Rewiring given;
    given.given[r["h"]] = at::full({2}, 7.0F);
    auto values = r.run(given, {"b", "d", "h"});
    EXPECT_EQ(values["b"], (Floats{17, 17}));
    EXPECT_EQ(values["d"], (Floats{33.5F, 33.5F}));
    EXPECT_EQ(values["h"], (Floats{7, 7}));
    EXPECT_EQ(std::count(r.nodes.begin(), r.nodes.end(), r.node("a")), 0);

    Rewiring computed;
    int calls = 0;
    computed.computed[r["h"]] = {r["a"], [&](const at::Tensor &t) {
                                     ++calls;
                                     return at::mul(t, 3);
                                 }};
    values = r.run(computed, {"b", "c", "d", "h"});
    EXPECT_EQ(values["b"], (Floats{16, 19}));
    EXPECT_EQ(values["d"], (Floats{33, 34.5F}));
    EXPECT_EQ(calls, 1); // once for all its readers
    EXPECT_EQ(std::count(r.nodes.begin(), r.nodes.end(), r.node("h")), 0);

    // Its source may itself be redirected, and its readers may have an edge of their own.
    computed.redirect[r["a"]] = r["x"];
    computed.redirectFor[{r.node("c"), r["h"]}] = r["a"];
    values = r.run(computed, {"b", "c"});
    EXPECT_EQ(values["b"], (Floats{13, 16}));
    EXPECT_EQ(values["c"], (Floats{21, 22}));
}

TEST(ProgramRewiring, AFailingSubstituteIsAFaultOfItsValue)
{
    Rewired r(kSites);
    Rewiring computed;
    computed.computed[r["h"]] = {r["a"],
                                 [](const at::Tensor &) -> at::Tensor { throw std::runtime_error("no such grid"); }};
    const c10::InferenceMode guard;
    const auto program = r.program->rewired(computed);
    const std::vector<ValueId> wanted{r["b"], r["h"]};
    const auto nodes = program->schedule(wanted, [](ValueId) { return false; });
    Execution execution(program, nodes, wanted);
    execution.bind(r["x"], at::tensor({1.0F, 2.0F}));
    EXPECT_TRUE(execution.run(nodes[0]));
    EXPECT_FALSE(execution.run(nodes[1]));
    EXPECT_EQ(execution.faultOf(r["h"]), "failed: no such grid");
    EXPECT_EQ(execution.faultOf(r["b"]), "needs h");
    EXPECT_TRUE(execution.failedItself(r["h"]));
}

TEST(ProgramRewiring, AReaderThatWritesGetsItsOwnCopy)
{
    // Both q->dq copies of one value go; the first reader of a copy writes to it in place.
    Rewired r(R"(graph {
        input user %x: float32[2]
        %a: float32[2] = aten.add.Tensor(self=%x, other=1)
        %h1: float32[2] = aten.mul.Tensor(self=%a, other=0.5)
        %h2: float32[2] = aten.mul.Tensor(self=%a, other=0.5)
        %view: float32[2] = aten.view.default(self=%h1, size=[2])
        %add_: float32[2] = aten.add_.Tensor(self=%view, other=100)
        %b: float32[2] = aten.add.Tensor(self=%h2, other=10)
        return %add_, %b
    })");
    Rewiring off;
    off.redirect[r["h1"]] = r["a"];
    off.redirect[r["h2"]] = r["a"];
    auto values = r.run(off, {"add_", "b", "h2"});
    EXPECT_EQ(values["add_"], (Floats{102, 103}));
    EXPECT_EQ(values["b"], (Floats{12, 13}));
    EXPECT_EQ(values["h2"], (Floats{2, 3}));
    // The same for a value from outside, which the next run needs again, and for a function that returns its argument.
    const at::Tensor outside = at::full({2}, 7.0F);
    Rewiring given;
    given.given[r["h1"]] = outside;
    EXPECT_EQ(r.run(given, {"add_"})["add_"], (Floats{107, 107}));
    EXPECT_TRUE(at::equal(outside, at::full({2}, 7.0F)));
    Rewiring identity;
    for (const char *name : {"h1", "h2"})
        identity.computed[r[name]] = {r["a"], [](const at::Tensor &t) { return t; }};
    values = r.run(identity, {"add_", "b"});
    EXPECT_EQ(values["add_"], (Floats{102, 103}));
    EXPECT_EQ(values["b"], (Floats{12, 13}));
}

TEST(ProgramRewiring, TheSourceIsReadBeforeItIsOverwritten)
{
    // The site reads a, then a is written, then the site's reader runs.
    Rewired r(R"(graph {
        input user %x: float32[2]
        %a: float32[2] = aten.add.Tensor(self=%x, other=1)
        %h: float32[2] = aten.mul.Tensor(self=%a, other=0.5)
        %add_: float32[2] = aten.add_.Tensor(self=%a, other=100)
        %b: float32[2] = aten.add.Tensor(self=%h, other=10)
        %c: float32[2] = aten.add.Tensor(self=%a, other=0)
        return %b, %c
    })");
    Rewiring off;
    off.redirect[r["h"]] = r["a"];
    auto values = r.run(off, {"b", "c"});
    EXPECT_EQ(values["b"], (Floats{12, 13}));
    EXPECT_EQ(values["c"], (Floats{102, 103}));
    Rewiring computed;
    computed.computed[r["h"]] = {r["a"], [](const at::Tensor &t) { return at::sub(t, 1); }};
    values = r.run(computed, {"b", "c"});
    EXPECT_EQ(values["b"], (Floats{11, 12}));
    EXPECT_EQ(values["c"], (Floats{102, 103}));
}

TEST(ProgramRewiring, AChainGoesThroughCopiesThatWereWritten)
{
    // The second site reads the first one's result after it was written to.
    Rewired r(R"(graph {
        input user %x: float32[2]
        %a: float32[2] = aten.add.Tensor(self=%x, other=1)
        %h: float32[2] = aten.mul.Tensor(self=%a, other=0.5)
        %add_: float32[2] = aten.add_.Tensor(self=%h, other=100)
        %hh: float32[2] = aten.mul.Tensor(self=%h, other=0.5)
        %b: float32[2] = aten.add.Tensor(self=%hh, other=0)
        %c: float32[2] = aten.add.Tensor(self=%a, other=0)
        return %b, %c
    })");
    Rewiring off;
    off.redirect[r["h"]] = r["a"];
    off.redirect[r["hh"]] = r["h"];
    auto values = r.run(off, {"b", "c"});
    EXPECT_EQ(values["b"], (Floats{102, 103}));
    EXPECT_EQ(values["c"], (Floats{2, 3}));
    off.redirect.erase(r["hh"]);
    off.redirectFor[{r.node("b"), r["hh"]}] = r["h"];
    EXPECT_EQ(r.run(off, {"b"})["b"], (Floats{102, 103}));
}

TEST(ProgramRewiring, WhatIsDownstreamOfAChange)
{
    Rewired r(R"(graph {
        input user %x: float32[2]
        input user %y: float32[2]
        %a: float32[2] = aten.neg.default(self=%x)
        %v: float32[2] = aten.view.default(self=%a, size=[2])
        %before: float32[2] = aten.neg.default(self=%a)
        %add_: float32[2] = aten.add_.Tensor(self=%v, other=%y)
        %after: float32[2] = aten.neg.default(self=%a)
        %apart: float32[2] = aten.neg.default(self=%x)
    })");
    const auto down = r.program->downstream({r["y"]});
    for (const char *name : {"y", "add_", "after", "a", "v"})
        EXPECT_TRUE(down[r[name].get()]) << name;
    for (const char *name : {"x", "before", "apart"})
        EXPECT_FALSE(down[r[name].get()]) << name;
    EXPECT_TRUE(r.program->hot(r["a"]));
    EXPECT_TRUE(r.program->hot(r["v"]));
    EXPECT_FALSE(r.program->hot(r["add_"]));
    EXPECT_FALSE(r.program->hot(r["before"]));
}

TEST(ProgramRewiring, WhoSharesStorageWithWhom)
{
    Rewired r(R"(graph {
        input user %x: float32[2, 4]
        input parameter %w: float32[4, 4] "w"
        %a: float32[2, 4] = aten.neg.default(self=%x)
        [%p, %q] = aten.chunk.default(self=%a, chunks=2)
        %in_part: float32[1, 4] = aten.add_.Tensor(self=%q, other=1)
        %b: float32[2, 4] = aten.neg.default(self=%x)
        %maybe: float32[2, 4] = aten.dropout.default(input=%b, p=0.5, train=False)
        %in_maybe: float32[2, 4] = aten.relu_.default(self=%maybe)
        %c: float32[2, 4] = aten.neg.default(self=%x)
        %fresh: float32[2, 4] = aten.linear.default(input=%c, weight=%w)
        %in_fresh: float32[2, 4] = aten.relu_.default(self=%fresh)
        %d: float32[2, 4] = aten.neg.default(self=%x)
        %q8: int8[2, 4] = quantized_decomposed.quantize_per_tensor.default(input=%d, scale=0.1, zero_point=0, quant_min=-128, quant_max=127, dtype=torch.int8)
        %dq: float32[2, 4] = quantized_decomposed.dequantize_per_tensor.default(input=%q8, scale=0.1, zero_point=0, quant_min=-128, quant_max=127, dtype=torch.int8)
        %in_dq: float32[2, 4] = aten.relu_.default(self=%dq)
        %e: float32[2, 4] = aten.neg.default(self=%x)
        (%sum) = higher_order.wrap_with_set_grad_enabled(False, subgraph(0), %e)
        subgraph "writes" {
            input user %inner: float32[2, 4]
            %view: float32[2, 4] = aten.view.default(self=%inner, size=[2, 4])
            %in_inner: float32[2, 4] = aten.relu_.default(self=%view)
            return %in_inner
        }
    })");
    for (const char *name : {"a", "p", "q", "b", "maybe", "fresh", "dq", "e"})
        EXPECT_TRUE(r.program->hot(r[name])) << name;
    for (const char *name : {"x", "w", "c", "d", "q8", "in_part", "in_dq", "sum"})
        EXPECT_FALSE(r.program->hot(r[name])) << name;
}

TEST(ProgramRewiring, RingsOfRedirectsDoNotHang)
{
    Rewired r(kSites);
    Rewiring ring;
    ring.redirect[r["h"]] = r["hh"];
    ring.redirect[r["hh"]] = r["h"];
    EXPECT_EQ(r.run(ring, {"b"})["b"], (Floats{11, 11.5F}));
}

// --- at random ----------------------------------------------------------------------------------

struct RandomGraph {
    std::string text;
    std::vector<std::string> sites; // values made by one node from one value
};

using Edge = std::pair<std::string, std::string>; // node, site

// A graph of 2x4 tensors full of views and in-place operators. What a rewiring means, as a graph of its own: `cloned`
// sites are clones of what they read; the nodes of `edges` read a clone of what the site reads, made where the site is.
RandomGraph randomGraph(unsigned seed, const std::set<std::string> &cloned = {}, const std::set<Edge> &edges = {})
{
    std::mt19937 rng(seed);
    const auto pick = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(rng); };
    RandomGraph result;
    std::ostringstream text;
    text << "graph {\n input buffer %buf: float32[2, 4] \"buf\"\n input user %x: float32[2, 4]\n";
    std::vector<std::string> values{"buf", "x"};
    const int count = 12 + static_cast<int>(pick(25));
    for (int i = 0; i < count; ++i) {
        const std::string name = "v" + std::to_string(i);
        const std::string first = values[pick(values.size())], second = values[pick(values.size())];
        const auto kind = pick(12);
        const auto read = [&](const std::string &node, const std::string &value) {
            return edges.count({node, value}) != 0 ? value + "e" : value;
        };
        const std::string a = read(kind == 6 ? name + "p" : name, first), b = read(name, second);
        const auto def = [&](const std::string &call) { text << " %" << name << ": float32[2, 4] = " << call << "\n"; };
        switch (kind) {
        case 0:
            def("aten.add_.Tensor(self=%" + a + ", other=%" + b + ")");
            break;
        case 1:
            def("aten.mul_.Tensor(self=%" + a + ", other=0.75)");
            break;
        case 2:
            def("aten.sigmoid_.default(self=%" + a + ")");
            break;
        case 3:
            def("aten.view.default(self=%" + a + ", size=[2, 4])");
            break;
        case 4:
            def("aten.reshape.default(self=%" + a + ", shape=[2, 4])");
            break;
        case 5:
            def("aten.dropout.default(input=%" + a + ", p=0.5, train=False)");
            break;
        case 6: { // writes through a part of the value
            text << " %" << name << "p: float32[4] = aten.select.int(self=%" << a << ", dim=0, index=1)\n";
            text << " %" << name << "w: float32[4] = aten.add_.Tensor(self=%" << name << "p, other=1.5)\n";
            def("aten.tanh.default(self=%" + b + ")");
            break;
        }
        case 7:
            def("aten.copy_.default(self=%" + a + ", src=%" + b + ")");
            break;
        case 8:
        case 9:
            result.sites.push_back(name);
            text << " %" << name << "e: float32[2, 4] = aten.clone.default(self=%" << first << ")\n";
            def(cloned.count(name) != 0 ? "aten.clone.default(self=%" + first + ")"
                                        : "aten.round.default(self=%" + a + ")");
            break;
        default:
            def("aten.sub.Tensor(self=%" + a + ", other=%" + b + ")");
        }
        values.push_back(name);
    }
    text << " return %" << values.back() << "\n}";
    result.text = text.str();
    return result;
}

const std::map<std::string, at::Tensor> &storedForRandom()
{
    static const std::map<std::string, at::Tensor> stored{
        {"buf", at::tensor({0.3F, -1.2F, 2.5F, 0.7F, -0.4F, 1.9F, 3.1F, -2.2F}).view({2, 4})}};
    return stored;
}

at::Tensor inputForRandom()
{
    return at::tensor({1.1F, 0.2F, -3.5F, 4.4F, 0.6F, -0.8F, 2.3F, 1.7F}).view({2, 4});
}

// Every value right after its node ran, and as it is at the end.
struct Captured {
    std::vector<at::Tensor> atOnce, atEnd;
};

Captured capture(const std::shared_ptr<const Program> &program, const std::vector<NodeId> &nodes,
                 const std::vector<ValueId> &wanted, const std::map<ValueId, at::Tensor> &leaves)
{
    const Graph &graph = program->graph();
    Execution execution(program, nodes, wanted);
    execution.bind(id(graph, "x"), inputForRandom());
    for (const auto &[value, tensor] : leaves)
        execution.bind(value, tensor);
    Captured result;
    result.atOnce.resize(graph.values.size());
    result.atEnd.resize(graph.values.size());
    for (NodeId n : nodes) {
        EXPECT_TRUE(execution.run(n)) << execution.fault(n);
        for (ValueId v : graph.node(n).outputValues())
            if (execution.value(v).isTensor())
                result.atOnce[v.get()] = at::clone(execution.value(v).toTensor());
    }
    for (ValueId v : wanted)
        if (execution.value(v).isTensor())
            result.atEnd[v.get()] = at::clone(execution.value(v).toTensor());
    return result;
}

TEST(ProgramSchedule, PartsEqualFullRunsOnRandomGraphs)
{
    const c10::InferenceMode guard;
    std::size_t compared = 0, skipped = 0;
    for (unsigned seed = 0; seed < 400; ++seed) {
        const auto model = textModel(randomGraph(seed).text, storedForRandom());
        const Graph &graph = model->graph();
        const auto program = Program::compile(model);
        const auto full = capture(program, everyNode(graph), everyValue(graph), {});
        std::mt19937 rng(seed * 7919 + 1);
        for (int round = 0; round < 4; ++round) {
            std::vector<ValueId> wanted;
            std::map<ValueId, at::Tensor> leaves;
            for (ValueId v : everyValue(graph)) {
                if (rng() % 5 == 0)
                    wanted.push_back(v);
                if (rng() % 2 == 0 && graph.value(v).producer.valid() && !program->hot(v))
                    leaves[v] = full.atOnce[v.get()];
            }
            wanted.push_back(graph.outputs[0].value);
            const auto nodes = program->schedule(wanted, [&](ValueId v) { return leaves.count(v) != 0; });
            skipped += graph.nodes.size() - nodes.size();
            const auto part = capture(program, nodes, wanted, leaves);
            for (ValueId v : wanted) {
                const NodeId producer = graph.value(v).producer;
                if (!producer.valid())
                    continue;
                const bool ran = std::count(nodes.begin(), nodes.end(), producer) != 0;
                const at::Tensor &got = ran ? part.atOnce[v.get()] : part.atEnd[v.get()];
                ASSERT_TRUE(got.defined()) << seed << " " << graph.value(v).name;
                ASSERT_TRUE(at::equal(got, full.atOnce[v.get()])) << seed << " " << graph.value(v).name;
                ++compared;
            }
            // The graph's result is read at the end of the run.
            const ValueId out = graph.outputs[0].value;
            ASSERT_TRUE(at::equal(part.atEnd[out.get()], full.atEnd[out.get()])) << seed;
        }
    }
    EXPECT_GT(compared, 5000U);
    EXPECT_GT(skipped, 5000U); // otherwise the schedules prove nothing
}

TEST(ProgramSchedule, RewiredRunsEqualGraphsWithoutTheSites)
{
    const c10::InferenceMode guard;
    std::size_t rewiredSites = 0;
    for (unsigned seed = 0; seed < 400; ++seed) {
        const auto model = textModel(randomGraph(seed).text, storedForRandom());
        const Graph &graph = model->graph();
        std::mt19937 rng(seed + 77);
        Rewiring rewiring;
        std::set<std::string> off;
        std::set<Edge> edges;
        for (const auto &site : randomGraph(seed).sites) {
            const auto choice = rng() % 5;
            const ValueId v = id(graph, site), source = graph.producer(v)->inputValues()[0];
            if (choice == 0)
                rewiring.redirect[v] = source;
            else if (choice == 1)
                rewiring.computed[v] = {source, [](const at::Tensor &t) { return t; }};
            else if (choice == 2) {
                std::vector<NodeId> readers;
                for (NodeId n : graph.readers(v))
                    if (graph.node(n).name.back() != 'e') // the clones that only serve the other graph
                        readers.push_back(n);
                if (readers.empty())
                    continue;
                const NodeId reader = readers[rng() % readers.size()];
                rewiring.redirectFor[{reader, v}] = source;
                edges.insert({graph.node(reader).name, site});
            }
            if (choice < 2)
                off.insert(site);
        }
        rewiredSites += off.size() + edges.size();
        const auto without = textModel(randomGraph(seed, off, edges).text, storedForRandom());
        const auto expected =
            capture(Program::compile(without), everyNode(without->graph()), everyValue(without->graph()), {});
        const auto program = Program::compile(model)->rewired(rewiring);
        const auto wanted = everyValue(graph);
        const auto nodes = program->schedule(wanted, [](ValueId) { return false; });
        const auto got = capture(program, nodes, wanted, {});
        for (NodeId n : nodes)
            for (ValueId v : graph.node(n).outputValues()) {
                if (off.count(graph.value(v).name) != 0)
                    continue;
                ASSERT_TRUE(at::equal(got.atOnce[v.get()], expected.atOnce[v.get()]))
                    << seed << " " << graph.value(v).name;
            }
        const ValueId out = graph.outputs[0].value;
        ASSERT_TRUE(at::equal(got.atEnd[out.get()], expected.atEnd[out.get()])) << seed;
    }
    EXPECT_GT(rewiredSites, 400U);
}

// What downstream() leaves out really stays the same.
TEST(ProgramSchedule, NothingOutsideDownstreamChanges)
{
    const c10::InferenceMode guard;
    std::size_t unchanged = 0;
    for (unsigned seed = 0; seed < 400; ++seed) {
        const auto random = randomGraph(seed);
        if (random.sites.empty())
            continue;
        const auto model = textModel(random.text, storedForRandom());
        const Graph &graph = model->graph();
        const auto base = Program::compile(model);
        const ValueId site = id(graph, random.sites[seed % random.sites.size()]);
        Rewiring rewiring;
        rewiring.redirect[site] = graph.producer(site)->inputValues()[0];
        const auto program = base->rewired(rewiring);
        const auto down = program->downstream({site});
        const auto wanted = everyValue(graph);
        const auto before = capture(base, everyNode(graph), wanted, {});
        const auto after = capture(program, program->schedule(wanted, [](ValueId) { return false; }), wanted, {});
        for (ValueId v : wanted) {
            if (down[v.get()] != 0 || !after.atOnce[v.get()].defined())
                continue;
            ASSERT_TRUE(at::equal(before.atOnce[v.get()], after.atOnce[v.get()])) << seed << " " << graph.value(v).name;
            ++unchanged;
        }
    }
    EXPECT_GT(unchanged, 1000U);
}

} // namespace

} // namespace dblame::test

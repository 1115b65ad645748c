// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph_document.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ui/graph_examples.h"
#include "ui/graph_find.h"
#include "ui/graph_layout.h"

namespace dblame::ui
{
namespace
{

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string text(const QString &s)
{
    return s.toStdString();
}

std::vector<std::string> labels(const GraphDocument &d)
{
    std::vector<std::string> result;
    for (const GraphNode &n : d.nodes)
        result.push_back(text(n.label));
    return result;
}

std::set<std::string> edges(const GraphDocument &d)
{
    std::set<std::string> result;
    for (const GraphEdge &e : d.edges)
        result.insert(text(d.nodes[e.from].label) + " > " + text(d.nodes[e.to].label));
    return result;
}

std::int32_t named(const GraphDocument &d, const char *label)
{
    for (std::size_t i = 0; i < d.nodes.size(); ++i)
        if (d.nodes[i].label == QLatin1String(label))
            return static_cast<std::int32_t>(i);
    ADD_FAILURE() << "no node " << label;
    return 0;
}

// x -> a -> b (reads a twice) -> out in both; the candidate's `a` passes a cluster of five operators that one
// observer made, `b` is watched, and the same instance serves x and a.
OpenPairPtr clustered()
{
    auto pair = std::make_shared<OpenPair>();
    pair->reference = std::make_shared<TextModel>(R"(graph {
        input user %x: float32[2, 4] "x"
        %a: float32[2, 4] = aten.relu.default(self=%x) @"m.a":"R"
        %b: float32[2, 4] = aten.mul.Tensor(self=%a, other=%a) @"m.b":"M"
        return %b "out"
    })");
    auto candidate = std::make_shared<TextModel>(R"(graph {
        input user %x: float32[2, 4] "x"
        %xq: float32[2, 4] = aten.fake_quantize_per_tensor_affine.default(self=%x, scale=0.1, zero_point=0, quant_min=-128, quant_max=127)
        %a: float32[2, 4] = aten.relu.default(self=%xq) @"m.a":"R"
        %c1: float32[2, 4] = aten.div.Tensor(self=%a, other=0.1)
        %c2: float32[2, 4] = aten.round.default(self=%c1)
        %c3: float32[2, 4] = aten.clamp.default(self=%c2, min=-128, max=127)
        %c4: float32[2, 4] = aten.mul.Tensor(self=%c3, other=0.1)
        %c5: float32[2, 4] = aten.detach.default(self=%c4)
        %b: float32[2, 4] = aten.mul.Tensor(self=%c5, other=%c5) @"m.b":"M"
        return %b "out"
    })");
    pair->candidate = candidate;
    const Graph &g = candidate->graph();
    const auto value = [&g](const char *name) { return g.find(name); };
    const auto site = [&](const char *id, SiteForm form, SiteRole role, const char *source, const char *result,
                          std::initializer_list<const char *> nodes, const char *owner, const char *reader,
                          const char *instance) {
        QuantSite s;
        s.id = id;
        s.form = form;
        s.role = role;
        s.source = value(source);
        s.result = value(result);
        for (const char *name : nodes)
            s.nodes.push_back(g.findNode(name));
        if (owner != nullptr)
            s.owner = g.findNode(owner);
        if (reader != nullptr)
            s.readers = {g.findNode(reader)};
        s.instance = instance;
        return s;
    };
    auto &sites = pair->sites.sites;
    sites.push_back(site("x/out", SiteForm::FakeQuantizeOp, SiteRole::Output, "x", "xq", {"xq"}, nullptr, "a", "obs"));
    sites.push_back(site("m.a/out", SiteForm::DecomposedFakeQuant, SiteRole::Output, "a", "c5",
                         {"c1", "c2", "c3", "c4", "c5"}, "a", "b", "obs"));
    QuantSite watch =
        site("m.b/out", SiteForm::WatchingObserver, SiteRole::Output, "b", "b", {}, "b", nullptr, "other");
    watch.watchesOnly = true;
    sites.push_back(watch);
    pair->sites.ofNode.assign(g.nodes.size(), -1);
    for (std::size_t s = 0; s < sites.size(); ++s)
        for (NodeId n : sites[s].nodes)
            pair->sites.ofNode[n.get()] = static_cast<std::int32_t>(s);
    const Graph &r = pair->reference->graph();
    const auto row = [&](RowKind kind, const char *ref, const char *cand, const char *compared, int siteIndex) {
        AlignedPair p;
        p.kind = kind;
        p.ref = p.refCompared = r.find(ref);
        p.cand = value(cand);
        p.candCompared = value(compared);
        p.site = SiteId(static_cast<std::size_t>(siteIndex));
        return p;
    };
    pair->alignment.pairs = {row(RowKind::Input, "x", "x", "xq", 0), row(RowKind::Activation, "a", "a", "c5", 1),
                             row(RowKind::Output, "b", "b", "b", 2)};
    return pair;
}

TEST(GraphDocument, MergedViewHasTheReferencesOperatorsAndTheCandidatesQuantizersAsMarks)
{
    const auto pair = pairOf(digitsNet(false), digitsNet(true));
    const auto d = buildGraph(pair, {});
    EXPECT_THAT(labels(*d),
                ElementsAre("x", "stem.conv", "stem.relu", "pool1", "block.conv1", "block.relu", "block.conv2", "block",
                            "block.relu@1", "pool2", "head_conv.conv", "head_conv.relu", "gap", "fc"));
    EXPECT_EQ(edges(*d).count("pool1 > block"), 1U);
    EXPECT_EQ(edges(*d).count("block.conv2 > block"), 1U);
    EXPECT_EQ(d->edges.size(), 14U);
    std::map<std::string, std::string> letters; // node -> marks
    for (const GraphMark &m : d->marks)
        letters[text(d->nodes[m.node].label)] += m.letter().toLatin1();
    EXPECT_EQ(letters["fc"], "WQ");
    EXPECT_EQ(letters["head_conv.conv"], "W");
    EXPECT_EQ(letters["pool1"], "Q");
    EXPECT_EQ(letters.count("block"), 0U);
    EXPECT_EQ(d->marks.size(), pair->sites.sites.size());
    for (const GraphNode &n : d->nodes) {
        EXPECT_TRUE(n.row.valid()) << text(n.label);
        EXPECT_FALSE(n.unpaired);
    }
}

TEST(GraphDocument, AWeightsRowIsShownByItsHexagon)
{
    const auto pair = pairOf(digitsNet(false), digitsNet(true));
    const auto d = buildGraph(pair, {});
    int weights = 0;
    for (std::size_t i = 0; i < pair->alignment.pairs.size(); ++i) {
        const AlignedPair &p = pair->alignment.pairs[i];
        if (p.kind != RowKind::Weight)
            continue;
        ++weights;
        ASSERT_TRUE(p.site.valid());
        const GraphMark &mark = d->marks[d->markOfSite[p.site.get()]];
        EXPECT_EQ(mark.row, PairId(i));
        EXPECT_EQ(d->nodeOfRow[i], mark.node);
        EXPECT_EQ(mark.place, GraphMark::Place::Side);
    }
    EXPECT_EQ(weights, 5);
    GraphOptions options;
    options.parameters = true;
    const auto all = buildGraph(pair, options);
    EXPECT_EQ(all->nodes.size(), d->nodes.size() + 5);
    EXPECT_EQ(all->nodes[named(*all, "fc.weight")].kind, GraphNode::Kind::Parameter);
}

TEST(GraphDocument, AClusterIsOneMarkOneHexagonOrItsOperators)
{
    const auto pair = clustered();
    const auto merged = buildGraph(pair, {});
    EXPECT_THAT(labels(*merged), ElementsAre("x", "m.a", "m.b"));
    ASSERT_EQ(merged->marks.size(), 3U);
    EXPECT_EQ(merged->marks[0].node, named(*merged, "x"));
    EXPECT_EQ(merged->marks[1].node, named(*merged, "m.a"));
    EXPECT_EQ(merged->marks[2].letter(), QLatin1Char('O'));
    // One instance for two sites; the third is alone.
    EXPECT_EQ(merged->marks[0].instance, 1);
    EXPECT_EQ(merged->marks[1].instance, 1);
    EXPECT_EQ(merged->marks[2].instance, 0);

    GraphOptions options;
    options.view = GraphViewKind::Candidate;
    const auto whole = buildGraph(pair, options);
    EXPECT_THAT(labels(*whole), ElementsAre("x", "fake_quantize_per_tensor_affine", "m.a", "m.a/out", "m.b"));
    EXPECT_EQ(whole->nodes[3].kind, GraphNode::Kind::Site);
    EXPECT_EQ(whole->nodes[3].site, SiteId(1));
    EXPECT_EQ(edges(*whole).count("m.a/out > m.b"), 1U);
    options.innerNodes = true;
    EXPECT_EQ(buildGraph(pair, options)->nodes.size(), 9U);
    options.sites = false;
    options.innerNodes = false;
    EXPECT_THAT(edges(*buildGraph(pair, options)), UnorderedElementsAre("x > m.a", "m.a > m.b"));
}

TEST(GraphDocument, AnInputSiteStandsOnItsEdge)
{
    auto pair = std::make_shared<OpenPair>(*clustered());
    QuantSite &site = pair->sites.sites[1];
    site.role = SiteRole::Input;
    site.owner = pair->candidate->graph().findNode("b");
    const auto d = buildGraph(pair, {});
    const GraphMark &mark = d->marks[1];
    EXPECT_EQ(mark.place, GraphMark::Place::In);
    EXPECT_EQ(mark.node, named(*d, "m.b"));
    ASSERT_GE(mark.edge, 0);
    EXPECT_EQ(d->edges[mark.edge].from, named(*d, "m.a"));
    EXPECT_THAT(d->edges[mark.edge].marks, ElementsAre(1));
}

TEST(GraphDocument, WhatOnlyOneSideHasIsMarkedAndStandsBetweenItsNeighbours)
{
    const auto pair = pairOf(R"(graph {
        input user %x: float32[2, 4] "x"
        %a: float32[2, 4] = aten.relu.default(self=%x) @"a":"R"
        %gone: float32[2, 4] = aten.sin.default(self=%a) @"gone":"S"
        %b: float32[2, 4] = aten.sigmoid.default(self=%gone) @"b":"G"
        return %b "out"
    })",
                             R"(graph {
        input user %x: float32[2, 4] "x"
        %a: float32[2, 4] = aten.relu.default(self=%x) @"a":"R"
        %extra: float32[2, 4] = aten.cosh.default(self=%a) @"extra":"C"
        %b: float32[2, 4] = aten.sigmoid.default(self=%extra) @"b":"G"
        return %b "out"
    })");
    const auto d = buildGraph(pair, {});
    EXPECT_THAT(edges(*d), UnorderedElementsAre("x > a", "a > gone", "gone > b", "a > extra", "extra > b"));
    const GraphNode &gone = d->nodes[named(*d, "gone")], &extra = d->nodes[named(*d, "extra")];
    EXPECT_TRUE(gone.unpaired);
    EXPECT_FALSE(gone.why.isEmpty());
    EXPECT_TRUE(extra.unpaired);
    EXPECT_EQ(extra.side, Side::Candidate);
    EXPECT_FALSE(extra.row.valid());
    EXPECT_FALSE(d->nodes[named(*d, "b")].unpaired);
}

TEST(GraphDocument, AFoldedNormIsPartOfItsConvolution)
{
    auto pair = std::make_shared<OpenPair>();
    pair->reference = std::make_shared<TextModel>(R"(graph {
        input user %x: float32[2, 4] "x"
        %conv: float32[2, 4] = aten.conv2d.default(input=%x) @"conv":"C"
        %bn: float32[2, 4] = aten.batch_norm.default(input=%conv) @"bn":"B"
        %r: float32[2, 4] = aten.relu.default(self=%bn) @"r":"R"
        return %r "out"
    })");
    pair->candidate = std::make_shared<TextModel>(R"(graph {
        input user %x: float32[2, 4] "x"
        %conv: float32[2, 4] = aten.conv2d.default(input=%x) @"conv":"C"
        %r: float32[2, 4] = aten.relu.default(self=%conv) @"r":"R"
        return %r "out"
    })");
    const Graph &r = pair->reference->graph(), &c = pair->candidate->graph();
    pair->sites = recognizeSites(*pair->candidate);
    for (const char *name : {"x", "conv", "r"}) {
        AlignedPair p;
        p.ref = p.refCompared = r.find(name);
        p.cand = p.candCompared = c.find(name);
        if (std::string(name) == "conv") {
            p.refCompared = r.find("bn");
            p.folded = {"bn"};
            p.foldedNorm = 0;
        }
        pair->alignment.pairs.push_back(p);
    }
    pair->alignment.folds = {{r.findNode("conv"), r.findNode("bn"), "bn"}};
    const auto d = buildGraph(pair, {});
    EXPECT_THAT(edges(*d), UnorderedElementsAre("x > conv", "conv > r"));
    EXPECT_EQ(text(d->nodes[named(*d, "conv")].why), "bn folded");
}

TEST(GraphDocument, OneModelAloneIsShown)
{
    auto pair = std::make_shared<OpenPair>(*pairOf(digitsNet(false), digitsNet(true)));
    pair->reference = nullptr;
    pair->alignment = {};
    const auto d = buildGraph(pair, {});
    EXPECT_EQ(d->nodes.size(), 41U);
    EXPECT_TRUE(buildGraph(nullptr, {})->nodes.empty());
    GraphOptions reference;
    reference.view = GraphViewKind::Reference;
    EXPECT_TRUE(buildGraph(pair, reference)->nodes.empty());
}

TEST(GraphDocument, GroupsHoldTwoNodesOrMoreAndEachCallIsItsOwn)
{
    const auto pair = pairOf(R"(graph {
        input user %x: float32[2, 4] "x"
        %a: float32[2, 4] = aten.relu.default(self=%x) @"net":"N" @"net.body":"B" @"net.body.a":"R"
        %b: float32[2, 4] = aten.sin.default(self=%a) @"net":"N" @"net.body":"B" @"net.body.b":"S"
        %c: float32[2, 4] = aten.cos.default(self=%b) @"net":"N" @"net.body":"B":"second" @"net.body.a":"R":"a2"
        %d: float32[2, 4] = aten.tan.default(self=%c) @"net":"N" @"net.body":"B":"second" @"net.body.b":"S":"b2"
        %e: float32[2, 4] = aten.exp.default(self=%d) @"only":"N" @"only.deep":"D"
        %f: float32[2, 4] = aten.log.default(self=%e) @"only":"N" @"only.deep":"D"
        return %f "out"
    })",
                             digitsNet(true));
    GraphOptions options;
    options.view = GraphViewKind::Reference;
    const auto d = buildGraph(pair, options);
    std::vector<std::string> groups;
    for (const GraphGroup &g : d->groups)
        groups.push_back(text(g.path) + "/" + text(g.name) + " " + std::to_string(g.depth) + " " +
                         std::to_string(g.members));
    // `only` holds nothing but only.deep, and says no more than that.
    EXPECT_THAT(groups,
                ElementsAre("net/net 0 4", "net.body/body 1 2", "net.body/body 1 2", "only.deep/only.deep 0 2"));
    EXPECT_TRUE(d->groupHolds(0, 1));
    EXPECT_FALSE(d->groupHolds(1, 2));
    EXPECT_EQ(visibleCount(*d, {}), 7U);
    EXPECT_EQ(visibleCount(*d, {0}), 4U);
    EXPECT_THAT(groupsToCollapse(*d, 100), IsEmpty());
    EXPECT_THAT(groupsToCollapse(*d, 5), UnorderedElementsAre(1, 2));
    EXPECT_THAT(groupsToCollapse(*d, 3), UnorderedElementsAre(0, 1, 2, 3));
}

TEST(GraphFind, WordsAndComparisonsAllHold)
{
    const auto pair = pairOf(digitsNet(false), digitsNet(true));
    const auto d = buildGraph(pair, {});
    NodeTableModel table;
    table.setPair(pair);
    table.setReport(reportOf(rowsWith(*pair, digitsDb())));
    const auto found = [&](const char *query) {
        std::vector<std::string> names;
        for (std::int32_t n : findNodes(*d, &table, QString::fromUtf8(query)))
            names.push_back(text(d->nodes[n].label));
        return names;
    };
    EXPECT_THAT(found("snr<33"), ElementsAre("head_conv.conv", "head_conv.relu"));
    EXPECT_THAT(found("SNR>=40 -relu"), ElementsAre("x", "stem.conv")); // x is exact: no error is more than 40 dB
    EXPECT_THAT(found("conv2d block"), ElementsAre("block.conv1", "block.conv2"));
    EXPECT_THAT(found("drop>4.5"), ElementsAre("stem.relu", "head_conv.conv"));
    EXPECT_THAT(found("snr=33.8"), ElementsAre("gap"));
    EXPECT_THAT(found("  "), IsEmpty());
    EXPECT_THAT(found("nowhere"), IsEmpty());
}

} // namespace
} // namespace dblame::ui

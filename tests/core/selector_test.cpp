// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text_model.h"

namespace dblame
{
namespace
{

using testing::ElementsAre;
using testing::HasSubstr;

// layers.0.conv -> relu -> {layers.1.conv, add}; fc twice. Sites written by hand, in the order
// x/out-less input site of conv0, weights, relu output, conv1 output, fc weight, fc input.
constexpr const char *kText = R"(graph {
  input user %x: float32[1, 4]
  input parameter %p_w0: float32[4, 4] "layers.0.conv.weight"
  input parameter %p_w1: float32[4, 4] "layers.1.conv.weight"
  input parameter %p_fc: float32[4, 4] "fc.weight"
  %qx: float32[1, 4] = quantized_decomposed.fake.default(input=%x)
  %qw0: float32[4, 4] = quantized_decomposed.fake.default(input=%p_w0)
  %conv: float32[1, 4] = aten.conv2d.default(input=%qx, weight=%qw0) @"":"net.Net" @"layers.0":"net.Block" @"layers.0.conv":"torch.nn.modules.conv.Conv2d"
  %relu: float32[1, 4] = aten.relu.default(self=%conv) @"":"net.Net" @"layers.0":"net.Block" @"layers.0.relu":"torch.nn.modules.activation.ReLU"
  %qrelu: float32[1, 4] = quantized_decomposed.fake.default(input=%relu)
  %qw1: float32[4, 4] = quantized_decomposed.fake.default(input=%p_w1)
  %conv_1: float32[1, 4] = aten.conv2d.default(input=%qrelu, weight=%qw1) @"":"net.Net" @"layers.1":"net.Block" @"layers.1.conv":"torch.nn.modules.conv.Conv2d"
  %qconv1: float32[1, 4] = quantized_decomposed.fake.default(input=%conv_1)
  %add: float32[1, 4] = aten.add.Tensor(self=%qconv1, other=%qrelu) @"":"net.Net"
  %qfc: float32[4, 4] = quantized_decomposed.fake.default(input=%p_fc)
  %linear: float32[1, 4] = aten.linear.default(input=%add, weight=%qfc) @"":"net.Net" @"fc":"torch.nn.modules.linear.Linear"
  %linear_1: float32[1, 4] = aten.linear.default(input=%linear, weight=%qfc) @"":"net.Net" @"fc":"torch.nn.modules.linear.Linear":"L__self__fc@1"
  %pool: float32[1, 4] = aten.mean.dim(self=%linear_1) @"":"net.Net" @"pool":"net.Pool"
  return %pool
}
)";

class SelectorTest : public testing::Test
{
protected:
    SelectorTest()
    {
        m_table.ofNode.assign(m_model.m_graph.nodes.size(), -1);
        site("layers.0.conv/in[0]", SiteRole::Input, "layers.0.conv", "qx", "conv", {"conv"}, 0);
        site("layers.0.conv/weight", SiteRole::Weight, "layers.0.conv", "qw0", "conv", {"conv"}, 1);
        site("layers.0.relu/out", SiteRole::Output, "layers.0.relu", "qrelu", "relu", {"conv_1", "add"});
        site("layers.1.conv/weight", SiteRole::Weight, "layers.1.conv", "qw1", "conv_1", {"conv_1"}, 1);
        site("layers.1.conv/out", SiteRole::Output, "layers.1.conv", "qconv1", "conv_1", {"add"});
        site("fc/weight", SiteRole::Weight, "fc", "qfc", "linear", {"linear", "linear_1"}, 1);
    }

    void site(const char *id, SiteRole role, const char *module, const char *node, const char *owner,
              const std::vector<const char *> &readers, int inputIndex = -1)
    {
        const Graph &g = m_model.m_graph;
        QuantSite s;
        s.id = id;
        s.role = role;
        s.module = module;
        s.owner = g.findNode(owner);
        s.moduleType = g.node(s.owner).moduleType();
        s.inputIndex = inputIndex;
        s.nodes = {g.findNode(node)};
        s.result = g.find(node);
        s.source = g.node(s.nodes[0]).inputValues().at(0);
        for (const char *reader : readers)
            s.readers.push_back(g.findNode(reader));
        m_table.ofNode[s.nodes[0].get()] = static_cast<std::int32_t>(m_table.sites.size());
        m_table.sites.push_back(std::move(s));
    }

    // Sites that go off, then "site→reader" for bypassed edges.
    [[nodiscard]] std::vector<std::string> words(const Result<EditSet> &edits) const
    {
        std::vector<std::string> result;
        if (!edits)
            return {"error: " + edits.error().text()};
        for (const SiteId id : edits->off)
            result.push_back(m_table.site(id).id);
        for (const auto &edge : edits->bypassed)
            result.push_back(m_table.site(edge.site).id + "→" + m_model.m_graph.node(edge.reader).name);
        return result;
    }
    [[nodiscard]] std::vector<std::string> skip(const char *text) const
    {
        const auto selector = parseSelector(text);
        return selector ? words(selectForSkip(*selector, m_model, m_table))
                        : std::vector<std::string>{"error: " + selector.error().text()};
    }
    [[nodiscard]] std::vector<std::string> only(const std::vector<const char *> &texts) const
    {
        std::vector<Selector> selectors;
        for (const char *text : texts)
            selectors.push_back(*parseSelector(text));
        return words(selectAllBut(selectors, m_model, m_table));
    }

    TextModel m_model{kText};
    SiteTable m_table;
};

TEST_F(SelectorTest, FloatHereTakesWeightOutputAndTheEdgesOfThisReaderOnly)
{
    EXPECT_THAT(skip("module:layers.1.conv"),
                ElementsAre("layers.1.conv/weight", "layers.1.conv/out", "layers.0.relu/out→conv_1"));
    EXPECT_THAT(skip("module:layers.0.conv"), ElementsAre("layers.0.conv/weight", "layers.0.conv/in[0]→conv"));
    EXPECT_THAT(skip("op:add"), ElementsAre("layers.0.relu/out→add", "layers.1.conv/out→add"));
}

TEST_F(SelectorTest, FacetsNarrow)
{
    EXPECT_THAT(skip("module:layers.1.conv/weight"), ElementsAre("layers.1.conv/weight"));
    EXPECT_THAT(skip("module:layers.1.conv/out"), ElementsAre("layers.1.conv/out"));
    EXPECT_THAT(skip("module:layers.1.conv/in"), ElementsAre("layers.0.relu/out→conv_1"));
    EXPECT_THAT(skip("module:layers.1.conv/act"), ElementsAre("layers.1.conv/out", "layers.0.relu/out→conv_1"));
    EXPECT_THAT(skip("op:add/in[0]"), ElementsAre("layers.1.conv/out→add"));
    EXPECT_THAT(skip("op:add/in[1]"), ElementsAre("layers.0.relu/out→add"));
    EXPECT_THAT(skip("module:layers.0.conv/in[0]"), ElementsAre("layers.0.conv/in[0]→conv"));
}

TEST_F(SelectorTest, ContainersCoverWhatTheyContain)
{
    const auto first = ElementsAre("layers.0.conv/weight", "layers.0.relu/out", "layers.0.conv/in[0]→conv");
    EXPECT_THAT(skip("module:layers.0"), first);
    EXPECT_THAT(skip("module:layers\\.0"), first);
    // `layers` is a ModuleList: it is never called, so no frame names it.
    EXPECT_THAT(skip("module:layers/weight"), ElementsAre("layers.0.conv/weight", "layers.1.conv/weight"));
    EXPECT_THAT(skip("module:.*/weight"), ElementsAre("layers.0.conv/weight", "layers.1.conv/weight", "fc/weight"));
    EXPECT_THAT(skip("module:.*"), ElementsAre("layers.0.conv/weight", "layers.0.relu/out", "layers.1.conv/weight",
                                               "layers.1.conv/out", "fc/weight", "layers.0.conv/in[0]→conv"));
    // In full: no prefix, no substring.
    EXPECT_THAT(skip("module:layer"), ElementsAre(HasSubstr("matches no module of the candidate")));
    EXPECT_THAT(skip("module:conv"), ElementsAre(HasSubstr("matches no module of the candidate")));
    EXPECT_THAT(skip("module:.*conv/weight"), ElementsAre("layers.0.conv/weight", "layers.1.conv/weight"));
}

TEST_F(SelectorTest, SecondCallHasASuffix)
{
    EXPECT_THAT(skip("module:fc"), ElementsAre("fc/weight"));
    // The second call alone: the first one keeps the shared weight quantized.
    EXPECT_THAT(skip("module:fc@1"), ElementsAre("fc/weight→linear_1"));
    EXPECT_THAT(skip("module:fc@2"), ElementsAre(HasSubstr("nearest: fc@1, fc")));
}

TEST_F(SelectorTest, ByClassAndByOperator)
{
    const auto both = ElementsAre("layers.0.conv/weight", "layers.1.conv/weight", "layers.1.conv/out",
                                  "layers.0.conv/in[0]→conv", "layers.0.relu/out→conv_1");
    EXPECT_THAT(skip("type:torch.nn.modules.conv.Conv2d"), both);
    EXPECT_THAT(skip("type:Conv2d"), both);
    EXPECT_THAT(skip("optype:aten.conv2d"), both);
    EXPECT_THAT(skip("optype:aten.conv2d.default"), both);
    EXPECT_THAT(skip("type:Block/out"), ElementsAre("layers.0.relu/out", "layers.1.conv/out"));
    EXPECT_THAT(skip("type:Conv"), ElementsAre(HasSubstr("matches no module class of the candidate; nearest: Conv2d")));
    EXPECT_THAT(skip("optype:aten.conv3d"), ElementsAre(HasSubstr("nearest: aten.conv2d")));
    EXPECT_THAT(skip("op:qrelu"), ElementsAre("layers.0.relu/out")); // a node of the site itself
}

TEST_F(SelectorTest, ErrorsNameTheNearest)
{
    EXPECT_THAT(skip("module:layers.2.conv"),
                ElementsAre("error: module:layers.2.conv: matches no module of the candidate; nearest: layers.0.conv, "
                            "layers.1.conv, layers.0.relu"));
    EXPECT_THAT(skip("op:convv"), ElementsAre(HasSubstr("nearest: conv,")));
    EXPECT_THAT(skip("module:pool"),
                ElementsAre(HasSubstr("no quantization site belongs to what this selects, and none is on its inputs")));
    EXPECT_THAT(skip("module:fc/out"),
                ElementsAre("error: module:fc/out: what this selects has no such site; it has: fc/weight"));
    m_table.sites.clear();
    EXPECT_THAT(skip("module:fc"),
                ElementsAre(HasSubstr("no quantization site was recognized in the candidate at all")));
    EXPECT_EQ(selectForSkip(*parseSelector("module:fc"), m_model, m_table).error().code, ErrorCode::Usage);
}

TEST_F(SelectorTest, OnlyLeavesTheNamedQuantized)
{
    EXPECT_THAT(only({"module:layers.1.conv/weight"}),
                ElementsAre("layers.0.conv/in[0]", "layers.0.conv/weight", "layers.0.relu/out", "layers.1.conv/out",
                            "fc/weight"));
    // conv_1 keeps its input site; the other reader of that site does not.
    EXPECT_THAT(only({"module:layers.1.conv", "module:fc/weight"}),
                ElementsAre("layers.0.conv/in[0]", "layers.0.conv/weight", "layers.0.relu/out→add"));
    EXPECT_THAT(only({"module:.*"}), ElementsAre());
}

TEST_F(SelectorTest, WatchersAreLeftOutUnlessAlone)
{
    m_table.sites[2].watchesOnly = true; // layers.0.relu/out
    EXPECT_THAT(skip("module:layers.0"), ElementsAre("layers.0.conv/weight", "layers.0.conv/in[0]→conv"));
    EXPECT_THAT(skip("module:layers.0.relu"), ElementsAre("layers.0.relu/out"));
}

TEST_F(SelectorTest, SitesOfASelector)
{
    const auto ids = [this](const char *text) {
        std::vector<std::string> result;
        const auto sites = selectSites(*parseSelector(text), m_model, m_table);
        if (sites)
            for (const SiteId id : *sites)
                result.push_back(m_table.site(id).id);
        return result;
    };
    EXPECT_THAT(ids("module:layers.1.conv"), ElementsAre("layers.1.conv/weight", "layers.1.conv/out"));
    EXPECT_THAT(ids("module:layers.1.conv/in"), ElementsAre("layers.0.relu/out"));
    EXPECT_THAT(ids("module:layers.0.conv/in[0]"), ElementsAre("layers.0.conv/in[0]"));
}

TEST(Selector, Parses)
{
    const auto s = parseSelector("module:layer.4.attention/in[2]");
    ASSERT_TRUE(s);
    EXPECT_EQ(s->by, SelectBy::Module);
    EXPECT_EQ(s->pattern, "layer.4.attention");
    EXPECT_EQ(s->facet, Facet::In);
    EXPECT_EQ(s->inputIndex, 2);
    EXPECT_EQ(parseSelector("optype:aten.conv2d/act")->facet, Facet::Act);
    EXPECT_EQ(parseSelector("type:Conv2d")->facet, Facet::All);
}

struct Bad {
    const char *text, *message;
};
class BadSelector : public testing::TestWithParam<Bad>
{
};
TEST_P(BadSelector, IsAUsageErrorWithItsReason)
{
    const auto selector = parseSelector(GetParam().text);
    ASSERT_FALSE(selector);
    EXPECT_EQ(selector.error().code, ErrorCode::Usage);
    EXPECT_EQ(selector.error().where, GetParam().text);
    EXPECT_THAT(selector.error().message, HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(All, BadSelector,
                         testing::Values(Bad{"conv1", "begins with module:, type:, op: or optype:"},
                                         Bad{"module:", "names nothing; module:.* is everything"},
                                         Bad{"op:/weight", "names nothing"},
                                         Bad{"module:a/wheight", "unknown facet 'wheight'"},
                                         Bad{"module:a/in[]", "unknown facet"}, Bad{"module:a/in[-1]", "unknown facet"},
                                         Bad{"module:a/in[x]", "unknown facet"},
                                         Bad{"module:a(b", "'(' without ')' (character 2)"},
                                         Bad{"module:ab)c", "')' without '(' (character 3)"},
                                         Bad{"module:conv[12", "'[' without ']' (character 5)"},
                                         Bad{"module:*conv", "nothing to repeat before this (character 1)"},
                                         Bad{"module:conv\\", "nothing follows '\\' (character 5)"},
                                         Bad{"module:a[z-a]", "range that runs backwards (character 3)"},
                                         Bad{"module:a{x}", "'{' takes one or two numbers"}));

TEST(SpecChange, SaysWhatItIs)
{
    EXPECT_EQ((SpecChange{4, Granularity::PerChannel, true, 32}.text()), "int4 symmetric per channel");
    EXPECT_EQ((SpecChange{8, Granularity::PerTensor, std::nullopt, 32}.text()), "int8 per tensor");
    EXPECT_EQ((SpecChange{4, Granularity::PerBlock, false, 32}.text()), "int4 affine per block of 32");
}

} // namespace
} // namespace dblame

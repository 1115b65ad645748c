// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels_fixture.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/graph_text.h"

namespace dblame::ui::test
{
namespace
{

constexpr double kInf = std::numeric_limits<double>::infinity();

const char *const kNet = R"(graph {
  input parameter %p_stem_conv_weight: float32[16, 1, 3, 3] "stem.conv.weight"
  input parameter %p_head_conv_weight: float32[16, 16, 3, 3] "head_conv.conv.weight"
  input user %x: float32[32, 1, 8, 8] "x"
  %conv2d: float32[32, 16, 8, 8] = aten.conv2d.default(input=%x, weight=%p_stem_conv_weight) @"stem":"Stem" @"stem.conv":"Conv2d" source="net.py:21"
  %relu: float32[32, 16, 8, 8] = aten.relu.default(self=%conv2d) @"stem":"Stem" @"stem.relu":"ReLU" source="net.py:21"
  %max_pool2d: float32[32, 16, 4, 4] = aten.max_pool2d.default(self=%relu, kernel_size=[2, 2]) @"pool1":"MaxPool2d" source="net.py:50"
  %conv2d_1: float32[32, 16, 4, 4] = aten.conv2d.default(input=%max_pool2d, weight=%p_head_conv_weight) @"block":"Block" @"block.conv":"Conv2d" source="net.py:31"
  %relu_1: float32[32, 16, 4, 4] = aten.relu.default(self=%conv2d_1) @"block":"Block" @"block.relu":"ReLU" source="net.py:32"
  %add: float32[32, 16, 4, 4] = aten.add.Tensor(self=%relu_1, other=%max_pool2d) @"block":"Block" source="net.py:33"
  %identity: float32[32, 16, 4, 4] = aten.alias.default(self=%add) source="net.py:52"
  %max_pool2d_1: float32[32, 16, 2, 2] = aten.max_pool2d.default(self=%identity, kernel_size=[2, 2]) @"pool2":"MaxPool2d" source="net.py:52"
  %conv2d_3: float32[32, 16, 2, 2] = aten.conv2d.default(input=%max_pool2d_1, weight=%p_head_conv_weight) @"head_conv":"Head" @"head_conv.conv":"Conv2d" source="net.py:41"
  %relu_3: float32[32, 16, 2, 2] = aten.relu.default(self=%conv2d_3) @"head_conv":"Head" @"head_conv.relu":"ReLU" source="net.py:41"
  %linear: float32[32, 10] = aten.linear.default(input=%relu_3, weight=%p_head_conv_weight) @"fc":"Linear" source="net.py:60"
  return %linear "logits"
}
)";

class TextModel : public Model
{
public:
    explicit TextModel(const char *text)
    {
        auto graph = parseGraph(text);
        if (!graph)
            throw std::runtime_error(graph.error().text());
        m_graph = std::move(*graph);
        m_faults.resize(m_graph.nodes.size());
    }
    explicit TextModel(Graph graph) : m_graph(std::move(graph)) { m_faults.resize(m_graph.nodes.size()); }
    const Graph &graph() const override { return m_graph; }
    const ModelInfo &info() const override { return m_info; }
    std::vector<StoredTensor> storedTensors() const override { return {}; }
    std::optional<StoredTensor> stored(ValueId) const override { return std::nullopt; }
    std::optional<std::vector<double>> numbers(ValueId, std::size_t) const override { return std::nullopt; }
    const std::vector<std::string> &nodeFaults() const override { return m_faults; }

private:
    Graph m_graph;
    ModelInfo m_info;
    std::vector<std::string> m_faults;
};

void addSites(OpenPair &pair)
{
    const Graph &graph = pair.candidate->graph();
    QuantSite weight;
    weight.id = "head_conv.conv/weight";
    weight.form = SiteForm::DequantizedWeight;
    weight.role = SiteRole::Weight;
    weight.module = "head_conv.conv";
    weight.owner = graph.findNode("conv2d_3");
    weight.inputIndex = 1;
    weight.spec.symmetric = true;
    weight.spec.quantMin = -127;
    weight.spec.granularity = Granularity::PerChannel;
    weight.spec.axis = 0;
    for (int channel = 0; channel < 16; ++channel)
        weight.scale.push_back(0.001 * (channel + 1));
    weight.zeroPoint.assign(16, 0);
    pair.sites.sites.push_back(weight);

    QuantSite output;
    output.id = "head_conv.conv/out";
    output.role = SiteRole::Output;
    output.module = "head_conv.conv";
    output.owner = graph.findNode("conv2d_3");
    output.instance = "activation_post_process_9";
    output.group = 2;
    output.scale = {0.06077};
    output.zeroPoint = {-128};
    pair.sites.sites.push_back(output);

    QuantSite twin = output;
    twin.id = "head_conv.relu/out";
    twin.owner = graph.findNode("relu_3");
    pair.sites.sites.push_back(twin);
}

// Sixteen channels around the row's number: 11 far below, 3 with most of the signal.
std::vector<ChannelMetrics> sixteenChannels()
{
    const double db[] = {33, 29, 33.5, 37, 29.5, 26, 28, 33, 33.6, 29, 26.2, 17.2, 33, 29.4, 28.8, 29.1};
    std::vector<ChannelMetrics> channels;
    for (int i = 0; i < 16; ++i)
        channels.push_back({i, db[i], db[i] - 0.01, i == 3 ? 900.0 : 20.0});
    return channels;
}

Histogram bell()
{
    Histogram histogram;
    const int bins = 48;
    const double low = -6.1, high = 9.4, width = (high - low) / bins;
    for (int i = 0; i <= bins; ++i) {
        histogram.edges.push_back(low + i * width);
        histogram.errorEdges.push_back(-0.25 + i * 0.5 / bins);
    }
    for (int i = 0; i < bins; ++i) {
        const double x = low + (i + 0.5) * width, e = -0.25 + (i + 0.5) * 0.5 / bins;
        histogram.reference.push_back(std::round(1300 * std::exp(-x * x / 8)));
        histogram.candidate.push_back(std::round(1240 * std::exp(-(x - 0.15) * (x - 0.15) / 8.4)));
        histogram.error.push_back(std::round(900 * std::exp(-e * e / 0.006)));
    }
    histogram.sampled = true;
    return histogram;
}

} // namespace

OpenPairPtr makePair()
{
    auto pair = std::make_shared<OpenPair>();
    pair->reference = std::make_shared<TextModel>(kNet);
    pair->candidate = std::make_shared<TextModel>(kNet);
    addSites(*pair);
    const char *const values[RowCount] = {"p_stem_conv_weight",
                                          "p_head_conv_weight",
                                          "x",
                                          "conv2d",
                                          "relu",
                                          "max_pool2d",
                                          "conv2d_1",
                                          "relu_1",
                                          "add",
                                          "max_pool2d_1",
                                          "conv2d_3",
                                          "relu_3",
                                          "linear"};
    const Graph &graph = pair->reference->graph();
    for (std::size_t row = 0; row < RowCount; ++row) {
        AlignedPair aligned;
        aligned.kind = row <= HeadWeight ? RowKind::Weight : RowKind::Activation;
        if (row == Input)
            aligned.kind = RowKind::Input;
        if (row == Fc)
            aligned.kind = RowKind::Output;
        aligned.ref = aligned.cand = aligned.refCompared = aligned.candCompared = graph.find(values[row]);
        pair->alignment.pairs.push_back(aligned);
    }
    AlignedPair &head = pair->alignment.pairs[HeadConv];
    head.rung = Rung::Provenance;
    head.reason = "same innermost source conv2d_3";
    head.folded = {"batch_norm_3"};
    head.channelAxis = 1;
    head.site = SiteId(std::size_t(1));
    pair->alignment.pairs[HeadRelu].site = SiteId(std::size_t(2));
    pair->alignment.pairs[HeadWeight].site = SiteId(std::size_t(0));
    return pair;
}

NodeReport makeReport(Row row)
{
    NodeReport report;
    report.row = rowId(row);
    report.dtype = "float32";
    report.batches = 2;
    report.metrics.count = 4096;
    if (row < StemConv) {
        report.status = row == Input ? RowStatus::Exact : RowStatus::Ok;
        report.metrics.snrDb = report.metrics.sqnrDb = row == Input ? kInf : 44.5;
        report.metrics.cosine = 1;
        report.shape = {16, 1, 3, 3};
        return report;
    }
    report.status = RowStatus::Ok;
    report.metrics.snrDb = kDb[row - StemConv];
    report.metrics.sqnrDb = report.metrics.snrDb - 0.01;
    report.metrics.mse = 0.0014299;
    report.metrics.mae = 0.0301;
    report.metrics.maxAbs = 0.214;
    report.metrics.cosine = 0.99963;
    report.metrics.bias = -0.00052;
    report.metrics.refMin = -6.1;
    report.metrics.refMax = 9.4;
    report.metrics.candMin = -6.07;
    report.metrics.candMax = 9.31;
    report.shape = {32, 16, 2, 2};
    if (row != HeadConv)
        return report;
    report.beforeSiteDb = 36.4;
    report.beforeSiteSqnrDb = 36.39;
    report.channels = sixteenChannels();
    report.histogram = bell();
    SiteReport site;
    site.site = SiteId(std::size_t(1));
    site.clipped = 0.004;
    site.unusedRange = 0.03;
    site.scale = {0.06077};
    site.zeroPoint = {-128};
    report.sites = {site};
    return report;
}

std::vector<NodeReport> makeReports(Row first, Row last)
{
    std::vector<NodeReport> reports;
    for (std::size_t row = first; row <= last; ++row)
        reports.push_back(makeReport(static_cast<Row>(row)));
    return reports;
}

RunReport makeRun()
{
    RunReport run;
    run.rows = makeReports();
    const OpenPairPtr pair = makePair();
    findDrops(run, pair->alignment, pair->reference->graph(), Signal::Reference);
    return run;
}

OpenPairPtr makeLongPair(std::size_t rows)
{
    Graph graph;
    graph.values.resize(rows + 1);
    graph.nodes.resize(rows);
    graph.values[0].name = "x";
    graph.inputs.push_back({InputKind::User, ValueId(std::size_t(0)), "x", true, NoneArg{}});
    for (std::size_t i = 0; i < rows; ++i) {
        Node &node = graph.nodes[i];
        node.name = "relu_" + std::to_string(i);
        node.target = "aten.relu.default";
        node.inputs.push_back({"self", ValueId(i)});
        node.outputs.emplace_back(ValueId(i + 1));
        node.modules.push_back(
            {"m" + std::to_string(i), "layers." + std::to_string(i / 40) + ".relu" + std::to_string(i % 40), "ReLU"});
        graph.values[i + 1].name = node.name;
        graph.values[i + 1].producer = NodeId(i);
    }
    graph.index();
    auto pair = std::make_shared<OpenPair>();
    pair->reference = pair->candidate = std::make_shared<TextModel>(std::move(graph));
    for (std::size_t i = 0; i < rows; ++i) {
        AlignedPair aligned;
        aligned.ref = aligned.cand = aligned.refCompared = aligned.candCompared = ValueId(i + 1);
        pair->alignment.pairs.push_back(aligned);
    }
    return pair;
}

} // namespace dblame::ui::test

// SPDX-License-Identifier: GPL-3.0-or-later
#include "fake_net.h"

#include "core/graph_text.h"

namespace dblame::ui::test
{

// The digits net of the picture.
const std::vector<LayerRow> &layers()
{
    static const std::vector<LayerRow> rows = {
        {"conv2d", "aten.conv2d.default", "stem.conv", "Conv2d", {-1}, 46.1, true, false},
        {"relu", "aten.relu.default", "stem.relu", "ReLU", {0}, 40.7, false, true},
        {"max_pool2d", "aten.max_pool2d.default", "pool1", "MaxPool2d", {1}, 39.9, false, true},
        {"conv2d_1", "aten.conv2d.default", "block.conv1", "Conv2d", {2}, 37.7, true, false},
        {"relu_1", "aten.relu.default", "block.relu1", "ReLU", {3}, 36.7, false, true},
        {"conv2d_2", "aten.conv2d.default", "block.conv2", "Conv2d", {4}, 33.7, true, true},
        {"add", "aten.add.Tensor", "block", "Block", {5, 2}, 34.7, false, false},
        {"relu_2", "aten.relu.default", "block.relu2", "ReLU", {6}, 35.2, false, true},
        {"max_pool2d_1", "aten.max_pool2d.default", "pool2", "MaxPool2d", {7}, 36.2, false, true},
        {"conv2d_3", "aten.conv2d.default", "head_conv.conv", "Conv2d", {8}, 31.3, true, false},
        {"relu_3", "aten.relu.default", "head_conv.relu", "ReLU", {9}, 32.8, false, true},
        {"mean", "aten.mean.dim", "gap", "AdaptiveAvgPool2d", {10}, 33.8, false, true},
        {"flatten", "aten.flatten.using_ints", "", "", {11}, 33.8, false, false},
        {"linear", "aten.linear.default", "fc", "Linear", {12}, 33.92, true, false},
    };
    return rows;
}

namespace
{

std::string frames(const LayerRow &row)
{
    std::string text;
    const std::string path = row.module;
    if (const auto dot = path.find('.'); dot != std::string::npos)
        text += " @\"" + path.substr(0, dot) + "\":\"net." + path.substr(0, dot) + "\"";
    if (!path.empty())
        text += " @\"" + path + "\":\"torch.nn.modules." + row.type + "\"";
    return text + " source=\"net.py:41\"";
}

// The value that readers of a row see: its dq where it has an output site.
std::string seen(int row, bool quantized)
{
    if (row < 0)
        return "x";
    const LayerRow &layer = layers()[static_cast<std::size_t>(row)];
    return std::string(layer.value) + (quantized && layer.outputSite ? "_dq" : "");
}

std::string graphText(bool quantized, bool other)
{
    std::string inputs = "  input user %x: float32[64, 1, 8, 8] \"x\"\n";
    std::string nodes;
    for (const LayerRow &row : layers()) {
        const std::string value = row.value;
        std::string call = std::string(row.op) + "(self=%" + seen(row.from.front(), quantized);
        if (row.from.size() > 1)
            call += ", other=%" + seen(row.from[1], quantized);
        if (row.weight) {
            const std::string weight = "w_" + value;
            const std::string type = quantized ? ": int8[16, 16, 3, 3] \"" : ": float32[16, 16, 3, 3] \"";
            inputs += "  input parameter %" + weight + type + row.module + ".weight\"\n";
            if (quantized)
                nodes += "  %" + weight + "_dq: float32[16, 16, 3, 3] = quantized_decomposed.dequantize_per_channel." +
                         "default(input=%" + weight + ")\n";
            call += ", weight=%" + weight + (quantized ? "_dq" : "");
        }
        const bool last = &row == &layers().back();
        const std::string name = last && other ? "logits" : value;
        nodes += "  %" + name + ": float32[64, 16, 8, 8] = " + call + ")" + frames(row) + "\n";
        if (quantized && row.outputSite) {
            nodes += "  %" + value +
                     "_q: int8[64, 16, 8, 8] = quantized_decomposed.quantize_per_tensor.default(input=%" + value +
                     ")\n";
            nodes += "  %" + value +
                     "_dq: float32[64, 16, 8, 8] = quantized_decomposed.dequantize_per_tensor.default(" + "input=%" +
                     value + "_q)\n";
        }
    }
    return "graph {\n" + inputs + nodes + "  return %" + std::string(other ? "logits" : layers().back().value) +
           " \"logits\"\n}\n";
}

class FakeModel final : public Model
{
public:
    FakeModel(const std::string &path, bool quantized, bool other)
        : m_graph(parseGraph(graphText(quantized, other)).value()), m_faults(m_graph.nodes.size())
    {
        m_info.path = path;
        m_info.sha256 = path;
        m_info.format = "pt2 archive";
        m_info.producer = "torch 2.13.0";
        m_info.program = "model";
        m_info.bytes = 151'000'000;
        m_info.hasSampleInputs = true;
    }
    [[nodiscard]] const Graph &graph() const override { return m_graph; }
    [[nodiscard]] const ModelInfo &info() const override { return m_info; }
    [[nodiscard]] std::vector<StoredTensor> storedTensors() const override { return {}; }
    [[nodiscard]] std::optional<StoredTensor> stored(ValueId) const override { return std::nullopt; }
    [[nodiscard]] std::optional<std::vector<double>> numbers(ValueId, std::size_t) const override
    {
        return std::nullopt;
    }
    [[nodiscard]] const std::vector<std::string> &nodeFaults() const override { return m_faults; }

private:
    Graph m_graph;
    ModelInfo m_info;
    std::vector<std::string> m_faults;
};

QuantSite makeSite(const Graph &graph, const LayerRow &row, bool weight)
{
    const std::string value = row.value;
    QuantSite site;
    const std::string layer = *row.module != '\0' ? row.module : row.value;
    site.id = layer + (weight ? "/weight" : "/out");
    site.role = weight ? SiteRole::Weight : SiteRole::Output;
    site.form = weight ? SiteForm::DequantizedWeight : SiteForm::QdqPair;
    site.module = row.module;
    site.moduleType = row.type;
    site.owner = graph.findNode(value);
    site.spec.granularity = weight ? Granularity::PerChannel : Granularity::PerTensor;
    site.spec.symmetric = weight;
    site.spec.axis = weight ? 0 : -1;
    site.scale = {0.06077};
    site.zeroPoint = {weight ? 0 : -128};
    site.inputIndex = weight ? 1 : -1;
    site.weightTarget = weight ? std::string(row.module) + ".weight" : "";
    site.result = graph.find(weight ? "w_" + value + "_dq" : value + "_dq");
    site.source = weight ? ValueId() : graph.find(value);
    site.stored = weight ? graph.find("w_" + value) : ValueId();
    site.nodes = {graph.value(site.result).producer};
    if (!weight)
        site.nodes.insert(site.nodes.begin(), graph.findNode(value + "_q"));
    site.readers = graph.readers(site.result);
    site.instance = site.id;
    return site;
}

AlignedPair weightPair(const Graph &ref, const Graph &cand, const SiteTable &sites, const std::string &value)
{
    AlignedPair pair;
    pair.kind = RowKind::Weight;
    pair.ref = pair.refCompared = ref.find("w_" + value);
    pair.cand = cand.find("w_" + value);
    pair.candCompared = cand.find("w_" + value + "_dq");
    for (std::size_t i = 0; i < sites.sites.size(); ++i)
        if (sites.sites[i].stored.valid() && sites.sites[i].stored == pair.cand)
            pair.site = SiteId(i);
    pair.channelAxis = 0;
    pair.reason = "same state-dict name";
    return pair;
}

} // namespace

std::shared_ptr<const Model> makeModel(const std::string &path, bool quantized, bool other)
{
    return std::make_shared<const FakeModel>(path, quantized, other);
}

SiteTable makeSites(const Model &candidate)
{
    SiteTable table;
    const Graph &graph = candidate.graph();
    table.ofNode.assign(graph.nodes.size(), -1);
    table.ofResult.assign(graph.values.size(), -1);
    table.outputOf.assign(graph.values.size(), -1);
    for (const LayerRow &row : layers()) {
        for (const bool weight : {true, false}) {
            if (!(weight ? row.weight : row.outputSite) || !graph.findNode(row.value).valid())
                continue;
            table.sites.push_back(makeSite(graph, row, weight));
            const auto at = static_cast<std::int32_t>(table.sites.size() - 1);
            for (const NodeId node : table.sites.back().nodes)
                table.ofNode[node.get()] = at;
            table.ofResult[table.sites.back().result.get()] = at;
            if (!weight)
                table.outputOf[table.sites.back().source.get()] = at;
        }
    }
    return table;
}

Alignment makeAlignment(const Graph &ref, const Graph &cand, const SiteTable &sites, bool unpairFc,
                        const std::vector<HandPair> &hand)
{
    Alignment alignment;
    for (const LayerRow &row : layers())
        if (row.weight && cand.find(std::string("w_") + row.value).valid())
            alignment.pairs.push_back(weightPair(ref, cand, sites, row.value));
    AlignedPair input;
    input.kind = RowKind::Input;
    input.ref = input.refCompared = ref.find("x");
    input.cand = input.candCompared = cand.find("x");
    input.reason = "argument x";
    alignment.pairs.push_back(input);
    for (const LayerRow &row : layers()) {
        const bool last = &row == &layers().back();
        AlignedPair pair;
        pair.kind = last ? RowKind::Output : RowKind::Activation;
        pair.ref = pair.refCompared = ref.find(row.value);
        pair.cand = pair.candCompared = cand.find(row.value);
        pair.rung = Rung::Provenance;
        pair.reason = std::string("same innermost source ") + row.value;
        pair.channelAxis = 1;
        if (last && (unpairFc || !pair.cand.valid())) {
            const ValueId out = cand.outputs.front().value;
            const bool paired = hand.size() == 1 && hand[0].ref == row.value && hand[0].cand == cand.value(out).name;
            if (!paired) {
                const std::string why = "no partner: no node of that name or module";
                alignment.unmatched.push_back({Side::Reference, pair.ref, row.value, row.module, why});
                alignment.unmatched.push_back({Side::Candidate, out, cand.value(out).name, row.module, why});
                continue;
            }
            pair.cand = pair.candCompared = out;
            pair.rung = Rung::ByHand;
            pair.reason = "paired by hand";
        }
        if (row.outputSite) {
            pair.candCompared = cand.find(std::string(row.value) + "_dq");
            pair.site = sites.outputSiteOf(pair.cand);
        }
        alignment.pairs.push_back(pair);
    }
    alignment.notes = {"4 batch norms folded into the convolutions before them"};
    for (int i = 0; i < 4; ++i)
        alignment.folds.push_back({NodeId(0), NodeId(0), "batch_norm"});
    return alignment;
}

} // namespace dblame::ui::test

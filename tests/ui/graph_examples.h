// SPDX-License-Identifier: GPL-3.0-or-later
//
// Pairs of models for the tests of the graph: written as graph text, with the real site recognition and the real
// alignment.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tests/core/text_model.h"
#include "ui/node_table_model.h"
#include "ui/open_pair.h"

namespace dblame::ui
{

inline OpenPairPtr pairOf(const std::string &reference, const std::string &candidate)
{
    auto pair = std::make_shared<OpenPair>();
    pair->reference = std::make_shared<TextModel>(reference);
    pair->candidate = std::make_shared<TextModel>(candidate);
    pair->sites = recognizeSites(*pair->candidate);
    pair->alignment = align(*pair->reference, *pair->candidate, pair->sites);
    return pair;
}

// Writes one graph text per side of a quantized network, as torchao converts it.
class NetText
{
public:
    explicit NetText(bool quantized) : m_quantized(quantized) {}

    std::string input(const std::string &name)
    {
        m_inputs += "input user %" + name + ": float32[8, 4, 8, 8] \"" + name + "\"\n";
        return quantize(name);
    }
    // A layer with a weight; returns the name that its readers use.
    std::string layer(const std::string &path, const std::string &op, const std::string &from,
                      const std::string &type = "torch.nn.modules.conv.Conv2d")
    {
        const std::string id = identifier(path), weight = "p_" + id + "_weight";
        std::string used = weight;
        if (m_quantized) {
            m_inputs += "input parameter %" + weight + "_q: int8[4, 4] \"" + path + ".weight_q\"\n";
            used = weight + "_dq";
            m_body += "%" + used + ": float32[4, 4] = quantized_decomposed.dequantize_per_tensor.default(input=%" +
                      weight + "_q, scale=0.01, zero_point=0, quant_min=-127, quant_max=127, dtype=torch.int8)\n";
        } else {
            m_inputs += "input parameter %" + weight + ": float32[4, 4] \"" + path + ".weight\"\n";
        }
        m_body += "%" + id + ": float32[8, 4, 8, 8] = aten." + op + ".default(input=%" + from + ", weight=%" + used +
                  ")" + frames(path, type) + "\n";
        return id;
    }
    std::string op(const std::string &name, const std::string &op, const std::string &from, const std::string &path,
                   const std::string &other = {}, const std::string &type = "torch.nn.modules.activation.ReLU")
    {
        m_body += "%" + name + ": float32[8, 4, 8, 8] = aten." + op + "(self=%" + from +
                  (other.empty() ? "" : ", other=%" + other) + ")" + frames(path, type) + "\n";
        return name;
    }
    // An activation's q -> dq after `name`.
    std::string quantize(const std::string &name)
    {
        if (!m_quantized)
            return name;
        m_body += "%" + name + "_q: int8[8, 4, 8, 8] = quantized_decomposed.quantize_per_tensor.default(input=%" +
                  name + ", scale=0.05, zero_point=3, quant_min=-128, quant_max=127, dtype=torch.int8)\n";
        m_body += "%" + name + "_dq: float32[8, 4, 8, 8] = quantized_decomposed.dequantize_per_tensor.default(input=%" +
                  name +
                  "_q, scale=0.05, zero_point=3, quant_min=-128, quant_max=127, dtype=torch.int8) from_node=[\"" +
                  name + "_dq\", \"" + name + "\"]\n";
        return name + "_dq";
    }
    std::string finish(const std::string &output)
    {
        return "graph {\n" + m_inputs + m_body + "return %" + output + " \"out\"\n}\n";
    }

private:
    static std::string identifier(std::string path)
    {
        for (char &c : path)
            if (c == '.')
                c = '_';
        return path;
    }
    std::string frames(const std::string &path, const std::string &type)
    {
        // A module that is called twice has a key of its own for each call.
        const int call = m_calls[path]++;
        std::string text;
        for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
            text += " @\"" + path.substr(0, dot) + "\":\"net.Block\":\"" + path.substr(0, dot) + "\"";
        if (!path.empty())
            text +=
                " @\"" + path + "\":\"" + type + "\":\"" + path + (call > 0 ? "@" + std::to_string(call) : "") + "\"";
        return text;
    }

    bool m_quantized;
    std::map<std::string, int> m_calls;
    std::string m_inputs, m_body;
};

// The digits net of the picture.
inline std::string digitsNet(bool quantized)
{
    NetText n(quantized);
    const auto q = [&n](const std::string &name) { return n.quantize(name); };
    std::string v = n.input("x");
    v = n.layer("stem.conv", "conv2d", v);
    v = q(n.op("stem_relu", "relu.default", v, "stem.relu"));
    const std::string pool =
        q(n.op("pool1", "max_pool2d.default", v, "pool1", {}, "torch.nn.modules.pooling.MaxPool2d"));
    v = q(n.layer("block.conv1", "conv2d", pool));
    v = q(n.op("block_relu_1", "relu.default", v, "block.relu"));
    v = q(n.layer("block.conv2", "conv2d", v));
    v = n.op("add", "add.Tensor", v, "block", pool, "net.Block");
    v = q(n.op("block_relu_2", "relu.default", v, "block.relu"));
    v = q(n.op("pool2", "max_pool2d.default", v, "pool2", {}, "torch.nn.modules.pooling.MaxPool2d"));
    v = n.layer("head_conv.conv", "conv2d", v);
    v = q(n.op("head_conv_relu", "relu.default", v, "head_conv.relu"));
    v = q(n.op("gap", "adaptive_avg_pool2d.default", v, "gap", {}, "torch.nn.modules.pooling.AdaptiveAvgPool2d"));
    v = n.layer("fc", "linear", v, "torch.nn.modules.linear.Linear");
    return n.finish(q(v));
}

// `blocks` residual blocks of eight operators, in stages of eight.
inline std::string residualNet(int blocks, bool quantized)
{
    NetText n(quantized);
    std::string v = n.input("x");
    for (int i = 0; i < blocks; ++i) {
        const std::string path = "stage" + std::to_string(i / 8) + "." + std::to_string(i % 8);
        const std::string id = "b" + std::to_string(i) + "_";
        std::string w = n.layer(path + ".conv1", "conv2d", v);
        w = n.quantize(n.op(id + "relu1", "relu.default", w, path + ".act1"));
        w = n.layer(path + ".conv2", "conv2d", w);
        w = n.quantize(n.op(id + "relu2", "relu.default", w, path + ".act2"));
        w = n.layer(path + ".conv3", "conv2d", w);
        w = n.op(id + "drop", "hardtanh.default", w, path + ".act3");
        v = n.op(id + "add", "add.Tensor", w, path + ".add", v);
        v = n.quantize(n.op(id + "relu3", "relu.default", v, path + ".act4"));
    }
    return n.finish(v);
}

// Rows with figures: `db` in the order of the activation rows, cycled.
inline std::vector<NodeReport> rowsWith(const OpenPair &pair, const std::vector<double> &db)
{
    std::vector<NodeReport> rows;
    std::size_t next = 0;
    for (std::size_t i = 0; i < pair.alignment.pairs.size(); ++i) {
        const AlignedPair &aligned = pair.alignment.pairs[i];
        NodeReport row;
        row.row = PairId(i);
        row.status = RowStatus::Ok;
        row.metrics.snrDb = row.metrics.sqnrDb = 44;
        if (aligned.kind == RowKind::Input)
            row.status = RowStatus::Exact;
        else if (aligned.kind != RowKind::Weight)
            row.metrics.snrDb = row.metrics.sqnrDb = db[next++ % db.size()];
        row.metrics.count = 100;
        if (aligned.site.valid())
            row.sites.push_back({aligned.site, true, {}, {}, {}, {}, {}});
        for (SiteId site : aligned.inputSites)
            row.sites.push_back({site, true, {}, {}, {}, {}, {}});
        rows.push_back(std::move(row));
    }
    return rows;
}

inline std::vector<double> digitsDb()
{
    return {46.1, 40.7, 39.9, 37.7, 36.7, 33.7, 34.7, 35.2, 36.2, 31.3, 32.8, 33.8, 33.9};
}

inline RunReport reportOf(std::vector<NodeReport> rows)
{
    RunReport report;
    report.rows = std::move(rows);
    double before = 0;
    bool any = false;
    for (NodeReport &row : report.rows) {
        if (row.status != RowStatus::Ok || row.metrics.snrDb == 44)
            continue;
        if (any) {
            row.dropDb = before - row.metrics.snrDb;
            if (!report.largestDrop || *row.dropDb > report.largestDrop->db)
                report.largestDrop = Drop{row.row, *row.dropDb};
        }
        before = row.metrics.snrDb;
        any = true;
    }
    return report;
}

} // namespace dblame::ui

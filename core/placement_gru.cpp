// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/placement_gru.h"

#include <algorithm>

#include "core/placement_patterns.h"

namespace dblame
{

namespace
{

// What the partition reads from outside, parameters aside.
std::vector<ValueId> partitionInputs(const Graph &graph, const SourcePartition &partition)
{
    std::vector<ValueId> inputs;
    for (NodeId node : partition.nodes)
        for (const NamedArgument &argument : graph.node(node).inputs) {
            const auto *value = std::get_if<ValueId>(&argument.value);
            if (!value || std::find(inputs.begin(), inputs.end(), *value) != inputs.end())
                continue;
            const GraphInput *input = graph.input(*value);
            const NodeId producer = graph.value(*value).producer;
            if (input ? input->kind == InputKind::User : !partition.contains(producer))
                inputs.push_back(*value);
        }
    return inputs;
}

std::vector<ValueId> partitionOutputs(const Graph &graph, const SourcePartition &partition)
{
    std::vector<ValueId> outputs;
    for (NodeId node : partition.nodes)
        for (ValueId value : graph.node(node).outputValues()) {
            const auto &readers = graph.readers(value);
            if (graph.isOutput(value) ||
                std::any_of(readers.begin(), readers.end(), [&](NodeId reader) { return !partition.contains(reader); }))
                outputs.push_back(value);
        }
    return outputs;
}

class Grus
{
public:
    Grus(const Graph &graph, const Pt2eConfig &config, const TensorSpec &activation, Annotations &notes,
         std::vector<std::string> &warnings)
        : m_graph(graph), m_config(config), m_activation(activation), m_notes(notes), m_warnings(warnings)
    {
    }

    std::string run()
    {
        Sources sources;
        sources.classes = {"torch.nn.modules.rnn.GRU"};
        for (const SourcePartition &partition : findPartitions(m_graph, sources))
            if (std::none_of(partition.nodes.begin(), partition.nodes.end(),
                             [&](NodeId node) { return m_config.excluded.contains(node); }))
                ask(partition);
        return m_note;
    }

private:
    void ask(const SourcePartition &partition)
    {
        const auto inputs = partitionInputs(m_graph, partition);
        const auto outputs = partitionOutputs(m_graph, partition);
        const auto isTaken = [&](ValueId value) { return m_notes.annotated(value); };
        if (std::any_of(inputs.begin(), inputs.end(), isTaken) ||
            std::any_of(outputs.begin(), outputs.end(), isTaken)) {
            m_note = "an input or output of the layer is quantized for another operator already";
            return;
        }
        if (inputs.size() != 2 || outputs.size() != 2) {
            m_note = "it needs a given initial state and both results in use";
            if (!m_config.corrected)
                m_warnings.push_back("XNNPACKQuantizer stops with an error at the GRU '" + partition.name +
                                     "', which needs a given initial state and both results in use; it is left float "
                                     "here");
            return;
        }
        if (m_config.corrected) {
            for (ValueId input : inputs)
                for (NodeId reader : m_graph.readers(input))
                    if (partition.contains(reader))
                        m_notes.at(reader).setInput(input, m_activation);
        } else {
            // One note at each input's first reader. Where that is the layer for both, the second note replaces the
            // first; which input comes second is not determined, the sequence is taken here.
            for (ValueId input : {inputs[1], inputs[0]}) {
                const auto &readers = m_graph.readers(input);
                Annotation note;
                note.setInput(input, m_activation);
                note.annotated = true;
                m_notes.at(*std::min_element(readers.begin(), readers.end())) = std::move(note);
            }
            m_warnings.push_back("XNNPACKQuantizer observes only one of the two inputs of the GRU '" + partition.name +
                                 "', and which one differs from run to run; the sequence is taken here");
        }
        for (ValueId output : outputs)
            m_notes.at(output).output = m_activation;
        for (NodeId node : partition.nodes) {
            m_notes.mark(node);
            for (ValueId value : m_graph.node(node).outputValues())
                m_notes.mark(value);
        }
    }

    const Graph &m_graph;
    const Pt2eConfig &m_config;
    const TensorSpec &m_activation;
    Annotations &m_notes;
    std::vector<std::string> &m_warnings;
    std::string m_note;
};

} // namespace

std::string annotateGrus(const Graph &graph, const Pt2eConfig &config, const TensorSpec &activation, Annotations &notes,
                         std::vector<std::string> &warnings)
{
    return Grus(graph, config, activation, notes, warnings).run();
}

} // namespace dblame

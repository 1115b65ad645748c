// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/value_keys.h"

#include <bit>
#include <type_traits>
#include <variant>

namespace dblame
{

namespace
{

constexpr std::size_t kSmallTensor = 1U << 16U; // bytes

class GraphKeys
{
public:
    GraphKeys(const Graph &graph, std::vector<ValueKey> inputs, const SiteKey &siteKey)
        : m_graph(graph), m_siteKey(siteKey), m_keys(std::move(inputs))
    {
        for (std::size_t n = 0; n < m_graph.nodes.size(); ++n)
            node(NodeId(n));
    }

    [[nodiscard]] std::vector<ValueKey> take() { return std::move(m_keys); }

private:
    void node(NodeId id)
    {
        const Node &node = m_graph.node(id);
        if (m_siteKey)
            if (auto key = m_siteKey(id, m_keys)) {
                for (const ValueId out : node.outputValues())
                    m_keys[out.get()] = *key;
                return;
            }
        Digest digest("node");
        digest.text(node.target).number(static_cast<std::int64_t>(node.inputs.size()));
        for (const NamedArgument &argument : node.inputs) {
            digest.text(argument.name).number(static_cast<std::int64_t>(argument.value.index()));
            std::visit([&](const auto &value) { add(digest, value); }, argument.value);
        }
        const ValueKey whole = digest.key();
        std::int64_t position = 0;
        for (const ValueId out : node.outputValues())
            m_keys[out.get()] = Digest("output").text(whole).number(position++).key();
    }

    // --- arguments ---
    void add(Digest & /*digest*/, NoneArg /*none*/) const {}
    void add(Digest &digest, ValueId value) const { digest.text(m_keys[value.get()]); }
    void add(Digest &digest, std::int64_t value) const { digest.number(value); }
    void add(Digest &digest, double value) const { digest.real(value); }
    void add(Digest &digest, bool value) const { digest.number(value ? 1 : 0); }
    void add(Digest &digest, const std::string &value) const { digest.text(value); }
    void add(Digest &digest, const std::complex<double> &value) const { digest.real(value.real()).real(value.imag()); }
    void add(Digest &digest, const ScalarTypeArg &value) const
    {
        digest.number(static_cast<std::int64_t>(value.dtype));
    }
    void add(Digest &digest, const LayoutArg &value) const { digest.number(value.layout); }
    void add(Digest &digest, const MemoryFormatArg &value) const { digest.number(value.format); }
    void add(Digest &digest, const DeviceArg &value) const { digest.text(value.type).number(value.index); }
    void add(Digest &digest, const OperatorArg &value) const { digest.text(value.name); }
    void add(Digest &digest, const UnsupportedArg &value) const { digest.text(value.what); }
    void add(Digest &digest, const std::optional<ValueId> &value) const
    {
        digest.number(value ? 1 : 0);
        if (value)
            add(digest, *value);
    }
    template <class A, class B>
    void add(Digest &digest, const std::variant<A, B> &value) const
    {
        digest.number(static_cast<std::int64_t>(value.index()));
        std::visit([&](const auto &element) { add(digest, element); }, value);
    }
    template <class T>
    void add(Digest &digest, const std::vector<T> &list) const
    {
        digest.number(static_cast<std::int64_t>(list.size()));
        for (const auto &element : list)
            add(digest, T(element));
    }
    template <class List>
    requires requires(const List &list) { list.values.size(); }
    void add(Digest &digest, const List &list) const { add(digest, list.values); }
    // A block counts by what its outputs are in terms of its own inputs.
    void add(Digest &digest, SubgraphArg block) const
    {
        const Graph &graph = *m_graph.subgraphs[block.index];
        std::vector<ValueKey> inputs(graph.values.size());
        for (std::size_t i = 0; i < graph.inputs.size(); ++i)
            if (graph.inputs[i].value.valid())
                inputs[graph.inputs[i].value.get()] = Digest("block input").number(static_cast<std::int64_t>(i)).key();
        const std::vector<ValueKey> keys = GraphKeys(graph, std::move(inputs), {}).take();
        for (const ValueKey &key : keys)
            digest.text(key);
        for (const GraphOutput &output : graph.outputs)
            digest.text(output.value.valid() ? keys[output.value.get()] : ValueKey());
    }

    const Graph &m_graph;
    const SiteKey &m_siteKey;
    std::vector<ValueKey> m_keys;
};

ValueKey inputKey(const LoadedModel &model, const GraphInput &input, std::int64_t position, const std::string &origin)
{
    if (input.kind == InputKind::User)
        return Digest("user input").number(position).key();
    const at::Tensor &tensor = model.tensor(input.value);
    if (tensor.defined() && tensor.nbytes() <= kSmallTensor)
        return Digest("small").tensor(tensor).key();
    Digest digest("stored");
    digest.text(origin).number(static_cast<std::int64_t>(input.kind)).text(input.target);
    digest.text(model.graph().value(input.value).name);
    return digest.key();
}

} // namespace

Digest &Digest::text(std::string_view part)
{
    number(static_cast<std::int64_t>(part.size()));
    m_hash.add(part.data(), part.size());
    return *this;
}

Digest &Digest::number(std::int64_t part)
{
    m_hash.add(&part, sizeof part);
    return *this;
}

Digest &Digest::real(double part)
{
    return number(std::bit_cast<std::int64_t>(part));
}

Digest &Digest::tensor(const at::Tensor &part)
{
    number(part.defined() ? 1 : 0);
    if (!part.defined())
        return *this;
    number(static_cast<std::int64_t>(part.scalar_type())).number(part.dim());
    for (std::int64_t d = 0; d < part.dim(); ++d)
        number(part.size(d)).number(part.stride(d));
    const at::Tensor elements = part.contiguous();
    m_hash.add(elements.const_data_ptr(), elements.nbytes());
    return *this;
}

Digest &Digest::spec(const TensorSpec &part)
{
    // A field that is added has to be added here: the bindings stop compiling without it.
    const auto &[type, quantMin, quantMax, scheme, minValue, granularity, axis, blockSizes, observer, rule, arithmetic,
                 averaging, eps, percentile, low, high, powerOfTwoScale, palette] = part;
    const auto optional = [&](const auto &value) {
        number(value ? 1 : 0);
        if (value)
            real(static_cast<double>(*value));
    };
    number(static_cast<std::int64_t>(type)).number(quantMin).number(quantMax).number(static_cast<std::int64_t>(scheme));
    number(minValue ? 1 : 0).number(static_cast<std::int64_t>(granularity));
    optional(axis);
    number(static_cast<std::int64_t>(blockSizes.size()));
    for (const std::int64_t size : blockSizes)
        number(size);
    number(static_cast<std::int64_t>(observer)).number(static_cast<std::int64_t>(rule));
    number(static_cast<std::int64_t>(arithmetic)).real(averaging).real(eps).real(percentile);
    optional(low);
    optional(high);
    number(powerOfTwoScale ? 1 : 0).number(palette ? 1 : 0);
    if (palette) {
        const auto &[bits, groupSize, groupAxis, fast, perChannelScale, tableType, tableSymmetric] = *palette;
        number(bits).number(groupSize).number(groupAxis).number(fast ? 1 : 0).number(perChannelScale ? 1 : 0);
        number(tableType ? static_cast<std::int64_t>(*tableType) : -1).number(tableSymmetric ? 1 : 0);
    }
    return *this;
}

Digest &Digest::qparams(const Qparams &part)
{
    tensor(part.scale).tensor(part.zeroPoint).tensor(part.minValue);
    return number(part.quantMin).number(part.quantMax).number(part.dynamic ? 1 : 0);
}

std::vector<ValueKey> valueKeys(const LoadedModel &model, const std::string &origin, const SiteKey &siteKey)
{
    const Graph &graph = model.graph();
    std::vector<ValueKey> inputs(graph.values.size());
    std::int64_t position = 0;
    for (const GraphInput &input : graph.inputs)
        if (input.value.valid())
            inputs[input.value.get()] = inputKey(model, input, input.kind == InputKind::User ? position++ : 0, origin);
    return GraphKeys(graph, std::move(inputs), siteKey).take();
}

} // namespace dblame
